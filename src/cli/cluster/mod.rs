//! `portolan cluster`: the clusters this portal knows, with their descriptions and pinned host keys.

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};

use super::open_existing;
use crate::app::{self, AppState};
use crate::auth::activity::Actor;
use crate::cluster::Known;
use crate::cluster::administration::{Refused, hosts};
use crate::config::Config;
use crate::domain::Slug;
use crate::sites::{Site, SiteName};
use crate::store;
use crate::store::clusters::Pin;

mod description;
mod host_keys;

use description::DescriptionArgs;
use host_keys::{HostKeyArgs, hop_words};

#[derive(Debug, Subcommand)]
pub(super) enum ClusterCommand {
    /// Add a cluster and pin its host keys.
    Add(NewArgs),
    /// Change what is known of a cluster. People's user names there stay.
    Change(NewArgs),
    /// List the clusters, the fingerprints of their host keys, and which are out of use or stopped.
    List,
    /// Print a cluster's description, as a file for `cluster add --file` or for another portal.
    Export {
        /// Its short name.
        name: Slug,
    },
    /// Forget a cluster, and everyone's user names there. Connections to it are closed.
    Remove {
        /// Its short name.
        name: Slug,
    },
}

#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// A short name: lower-case letters, digits and dashes.
    name: Slug,
    #[command(flatten)]
    description: DescriptionArgs,
    #[command(flatten)]
    keys: HostKeyArgs,
}

pub(super) async fn run(config: Config, command: ClusterCommand) -> anyhow::Result<()> {
    let app = open_existing(config).await?;
    match command {
        ClusterCommand::Add(args) => add(&app, args).await,
        ClusterCommand::Change(args) => change(&app, args).await,
        ClusterCommand::List => list(&app).await,
        ClusterCommand::Export { name } => export(&app, &name).await,
        ClusterCommand::Remove { name } => remove(&app, &name).await,
    }
}

async fn add(app: &AppState, args: NewArgs) -> anyhow::Result<()> {
    let name = args.name.as_str();
    let known = Known::by_slug(&mut *app.store.read().await?, name).await?;
    if known.is_some() {
        bail!("There is a cluster called {name} already. To change it: portolan cluster change");
    }
    let nothing_known = Site::with_defaults(SiteName(args.name.clone()), name);
    let site = args.description.read(app, &args.name, nothing_known)?;
    let pins = args.keys.choose(&site).await?;
    match app.lines.add_cluster(&Actor::command_line(), &site, &pins).await {
        Err(Refused::Taken) => bail!("There is a cluster called {name} already."),
        other => other.context("Nothing was changed")?,
    };
    say!("{} is known now, with {} pinned host key(s).", site.title, pins.len());
    Ok(())
}

async fn change(app: &AppState, args: NewArgs) -> anyhow::Result<()> {
    let known = find(app, &args.name).await?;
    let site = args.description.read(app, &args.name, known.site.clone())?;
    let places = |site: &Site| {
        hosts(site).into_iter().map(|(hop, host, port, _)| (hop, host, port)).collect::<Vec<_>>()
    };
    let moved = places(&site) != places(&known.site);
    let pins = if moved || args.keys.are_given() {
        Some(args.keys.choose(&site).await?).filter(|pins| moved || !same_keys(pins, &known))
    } else {
        None
    };
    if site == known.site && pins.is_none() {
        say!("{} is as you wish already.", site.title);
        return Ok(());
    }
    // Connections to the host of before must end with it, and only whoever holds them can end them.
    let _lock = match &pins {
        None => None,
        Some(_) => Some(take_over(app).await?),
    };
    app.lines
        .change_cluster(&Actor::command_line(), &known, &site, pins.as_deref())
        .await
        .context("Nothing was changed")?;
    say!("{} is changed.", site.title);
    Ok(())
}

/// Takes the stopped portal's place, and its connections.
async fn take_over(app: &AppState) -> anyhow::Result<std::fs::File> {
    let lock = app::lock_data_dir(&app.config.data_dir).context(
        "Other hosts or host keys close connections, which the running portal holds. Change them on the cluster's page of settings, or here once the portal has stopped",
    )?;
    app.lines.adopt().await?;
    Ok(lock)
}

fn same_keys(pins: &[Pin], known: &Known) -> bool {
    let mut chosen = pins.to_vec();
    let mut present: Vec<Pin> =
        known.pins.iter().map(|(hop, key)| (hop.clone(), key.to_line())).collect();
    chosen.sort();
    present.sort();
    chosen == present
}

async fn list(app: &AppState) -> anyhow::Result<()> {
    let mut db = app.store.read().await?;
    let clusters = store::clusters::list(&mut db).await?;
    if clusters.is_empty() {
        say!("No cluster is known yet. Add one: portolan cluster add NAME --preset PRESET");
    }
    for row in clusters {
        let known = Known::of(&mut db, row).await?;
        let row = &known.row;
        say!("{:<16} {:<30} {}:{}", row.slug, row.title, row.host, row.port);
        if let Some(since) = row.retired() {
            say!("{:<16} OUT OF USE since {since}. Nobody can connect to it.", "");
        }
        if let Some(since) = row.alarmed() {
            say!(
                "{:<16} STOPPED since {since}: {}, which is not pinned. An administrator decides on the page of its host keys.",
                "",
                row.alarm
            );
        }
        for (hop, host, port, _) in hosts(&known.site) {
            let keys = known.keys_of(hop);
            if keys.is_empty() {
                let host = host.as_str();
                say!("{:<16} {} {host}:{port}: no host key is pinned", "", hop_words(hop));
            }
            for key in keys {
                let fingerprint = key.fingerprint();
                say!("{:<16} {:<16} {:<20} {fingerprint}", "", hop_words(hop), key.kind());
            }
        }
    }
    Ok(())
}

async fn export(app: &AppState, name: &Slug) -> anyhow::Result<()> {
    let known = find(app, name).await?;
    say!("{}", known.site.to_toml()?.trim_end());
    Ok(())
}

async fn remove(app: &AppState, name: &Slug) -> anyhow::Result<()> {
    let known = find(app, name).await?;
    app.lines.remove_cluster(&Actor::command_line(), &known).await?;
    say!("{} is forgotten.", name.as_str());
    Ok(())
}

async fn find(app: &AppState, name: &Slug) -> anyhow::Result<Known> {
    let known = Known::by_slug(&mut *app.store.read().await?, name.as_str()).await?;
    known.with_context(|| {
        format!("There is no cluster called {}. See: portolan cluster list", name.as_str())
    })
}
