//! `portolan cluster`: the clusters that this portal knows, with their descriptions and pinned host keys.

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};

use super::open_existing_app;
use crate::app::{self, AppState};
use crate::auth::activity::Actor;
use crate::cluster::ClusterProfile;
use crate::cluster::administration::{ClusterChangeError, hosts_to_pin};
use crate::cluster::cluster_profile::hops;
use crate::config::Config;
use crate::domain::Slug;
use crate::format;
use crate::sites::{Site, SiteName};
use crate::store;
use crate::store::clusters::PinnedHostKey;

mod description;
mod host_keys;

use description::ClusterDescriptionArgs;
use host_keys::{PinHostKeysArgs, hop_label};

#[derive(Debug, Subcommand)]
pub(super) enum ClusterSubcommand {
    /// Add a cluster and pin its host keys.
    Add(ClusterEditArgs),
    /// Change a cluster's settings. People keep their user names on it.
    Change(ClusterEditArgs),
    /// List the clusters and their host key fingerprints, and which are retired or blocked.
    List,
    /// Print a cluster's configuration, for use with `cluster add --file` here or on another portal.
    Export {
        /// The cluster's short name.
        name: Slug,
    },
    /// Remove a cluster and everyone's user names on it. Connections to it are closed.
    Remove {
        /// The cluster's short name.
        name: Slug,
    },
}

#[derive(Debug, Args)]
pub(super) struct ClusterEditArgs {
    /// The cluster's short name: lower-case letters, digits and dashes.
    name: Slug,
    #[command(flatten)]
    description: ClusterDescriptionArgs,
    #[command(flatten)]
    keys: PinHostKeysArgs,
}

pub(super) async fn run(config: Config, command: ClusterSubcommand) -> anyhow::Result<()> {
    let app = open_existing_app(config).await?;
    match command {
        ClusterSubcommand::Add(args) => add_cluster(&app, args).await,
        ClusterSubcommand::Change(args) => change_cluster(&app, args).await,
        ClusterSubcommand::List => list_clusters(&app).await,
        ClusterSubcommand::Export { name } => export_cluster(&app, &name).await,
        ClusterSubcommand::Remove { name } => remove_cluster(&app, &name).await,
    }
}

async fn add_cluster(app: &AppState, args: ClusterEditArgs) -> anyhow::Result<()> {
    let name = args.name.as_str();
    let profile = ClusterProfile::find_by_slug(&mut *app.store.read().await?, name).await?;
    if profile.is_some() {
        bail!("A cluster called {name} already exists. To change it: portolan cluster change");
    }
    let nothing_known = Site::with_defaults(SiteName(args.name.clone()), name);
    let site = args.description.into_site(app, &args.name, nothing_known)?;
    let pins = args.keys.choose_pins(&site).await?;
    let login = pins.iter().filter(|(hop, _)| hop == hops::LOGIN);
    let shown: Vec<String> = login.map(|(_, line)| line.clone()).collect();
    let same = app.connections.find_same_hosts(&site, &shown).await?;
    match app.connections.add_cluster(&Actor::command_line(), &site, &pins).await {
        Err(ClusterChangeError::SlugTaken) => bail!("A cluster called {name} already exists."),
        other => other.context("Nothing was changed")?,
    };
    let keys = format::count(u64::try_from(pins.len()).unwrap_or(u64::MAX), "pinned host key");
    say!("Added {} with {keys}.", site.title);
    for entry in same {
        say!("It may already be on the portal: {} ({}) {}.", entry.title, entry.slug, entry.evidence.words());
    }
    Ok(())
}

async fn change_cluster(app: &AppState, args: ClusterEditArgs) -> anyhow::Result<()> {
    let profile = find_cluster(app, &args.name).await?;
    let site = args.description.into_site(app, &args.name, Site::clone(&profile.site))?;
    let hosts =
        |site: &Site| hosts_to_pin(site).into_iter().map(|(hop, host, port, _)| (hop, host, port)).collect::<Vec<_>>();
    let moved = hosts(&site) != hosts(&profile.site);
    let pins = if moved || args.keys.is_given() {
        Some(args.keys.choose_pins(&site).await?).filter(|pins| moved || !are_same_keys(pins, &profile))
    } else {
        None
    };
    if site == *profile.site && pins.is_none() {
        say!("{} already has these settings. Nothing was changed.", site.title);
        return Ok(());
    }
    // Connections to the previous host must end too, and only the process that holds them can close them.
    let _lock = match &pins {
        None => None,
        Some(_) => Some(adopt_connections(app).await?),
    };
    app.connections
        .update_cluster(&Actor::command_line(), &profile, &site, pins.as_deref())
        .await
        .context("Nothing was changed")?;
    say!("Changed {}.", site.title);
    Ok(())
}

/// Takes over the stopped portal's lock and its connections.
async fn adopt_connections(app: &AppState) -> anyhow::Result<std::fs::File> {
    let lock = app::lock_data_dir(&app.config.data_dir).context(
        "Changing hosts or host keys closes connections, which the running portal holds open. Change them on the cluster's settings page, or stop the portal and run this command again",
    )?;
    app.connections.adopt_masters().await?;
    Ok(lock)
}

fn are_same_keys(pins: &[PinnedHostKey], profile: &ClusterProfile) -> bool {
    let mut chosen = pins.to_vec();
    let mut present: Vec<PinnedHostKey> = profile.pins.iter().map(|(hop, key)| (hop.clone(), key.to_line())).collect();
    chosen.sort();
    present.sort();
    chosen == present
}

async fn list_clusters(app: &AppState) -> anyhow::Result<()> {
    let mut db = app.store.read().await?;
    let clusters = store::clusters::list(&mut db).await?;
    if clusters.is_empty() {
        say!("There are no clusters yet. Add one: portolan cluster add NAME --preset PRESET");
    }
    for row in clusters {
        let profile = ClusterProfile::load(&mut db, row).await?;
        let row = &profile.row;
        say!("{:<16} {:<30} {}:{}", row.slug, row.title, row.host, row.port);
        if let Some(since) = row.retired_at() {
            say!("{:<16} RETIRED since {since}. Nobody can connect.", "");
        }
        if let Some(since) = row.alarm_at() {
            say!(
                "{:<16} BLOCKED since {since}: {}, which isn't pinned. An administrator must check it on the cluster's host keys page.",
                "",
                row.alarm
            );
        }
        for (hop, host, port, _) in hosts_to_pin(&profile.site) {
            let keys = profile.host_keys(hop);
            if keys.is_empty() {
                let host = host.as_str();
                say!("{:<16} {} {host}:{port}: no host key pinned", "", hop_label(hop));
            }
            for key in keys {
                let fingerprint = key.fingerprint();
                say!("{:<16} {:<16} {:<20} {fingerprint}", "", hop_label(hop), key.kind());
            }
        }
    }
    Ok(())
}

async fn export_cluster(app: &AppState, name: &Slug) -> anyhow::Result<()> {
    let profile = find_cluster(app, name).await?;
    say!("{}", profile.site.to_toml()?.trim_end());
    Ok(())
}

async fn remove_cluster(app: &AppState, name: &Slug) -> anyhow::Result<()> {
    let profile = find_cluster(app, name).await?;
    app.connections.remove_cluster(&Actor::command_line(), &profile).await?;
    say!("Removed {}.", name.as_str());
    Ok(())
}

async fn find_cluster(app: &AppState, name: &Slug) -> anyhow::Result<ClusterProfile> {
    let profile = ClusterProfile::find_by_slug(&mut *app.store.read().await?, name.as_str()).await?;
    profile.with_context(|| format!("There is no cluster called {}. See: portolan cluster list", name.as_str()))
}
