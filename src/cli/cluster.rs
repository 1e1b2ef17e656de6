//! `portolan cluster`: the clusters this portal knows, with their pinned host keys.

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};

use super::open_existing;
use crate::app::AppState;
use crate::auth::Event;
use crate::auth::activity::{About, Actor, record};
use crate::config::Config;
use crate::domain::{HostName, Label, Slug};
use crate::ssh::host_keys::{self, HostKey};
use crate::store::{self, StoreError};

#[derive(Debug, Subcommand)]
pub(super) enum ClusterCommand {
    /// Add a cluster and pin its host keys.
    Add(AddArgs),
    /// List the clusters and the fingerprints of their host keys.
    List,
    /// Forget a cluster.
    Remove {
        /// Its short name.
        name: Slug,
    },
}

#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// A short name: lower-case letters, digits and dashes.
    name: Slug,
    /// The login host.
    #[arg(long)]
    host: HostName,
    /// The port of its SSH server.
    #[arg(long, default_value_t = 22, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// The name people see; the short name if left out.
    #[arg(long)]
    title: Option<Label>,
    /// The fingerprint that the centre publishes (SHA256:…). May be given several times. Only keys with these
    /// fingerprints are pinned.
    #[arg(long, value_name = "FINGERPRINT")]
    host_key: Vec<String>,
}

pub(super) async fn run(config: Config, command: ClusterCommand) -> anyhow::Result<()> {
    let app = open_existing(config).await?;
    match command {
        ClusterCommand::Add(args) => add(&app, args).await,
        ClusterCommand::List => list(&app).await,
        ClusterCommand::Remove { name } => remove(&app, &name).await,
    }
}

async fn add(app: &AppState, args: AddArgs) -> anyhow::Result<()> {
    let shown =
        host_keys::scan(&args.host, args.port).await.context("The cluster was not added")?;
    if args.host_key.is_empty() {
        say!("{} shows these host keys:", args.host.as_str());
        for key in &shown {
            say!("  {:<22} {}", key.kind(), key.fingerprint());
        }
        bail!(
            "Nothing was added yet. Compare them with what the centre publishes, then run the command again with --host-key and the right fingerprint."
        );
    }
    let pinned: Vec<String> = shown
        .iter()
        .filter(|key| args.host_key.iter().any(|wanted| *wanted == key.fingerprint()))
        .map(HostKey::line)
        .collect();
    if pinned.is_empty() {
        bail!(
            "None of the host keys that {} shows has a fingerprint that you gave. Do not connect to it before you know why. Nothing was added.",
            args.host.as_str()
        );
    }
    let title = match args.title {
        Some(title) => title,
        None => args.name.as_str().parse()?,
    };
    let now = app.clock.now();
    let mut tx = app.store.write().await?;
    let place = (&args.host, args.port);
    match store::clusters::add(&mut tx, &args.name, &title, place, &pinned, now).await {
        Err(StoreError::Taken) => {
            bail!("There is a cluster called {} already.", args.name.as_str())
        }
        other => other?,
    };
    let about = About { subject: args.name.as_str(), ..About::default() };
    record(&mut tx, &Actor::command_line(), Event::ClusterAdded, about, now).await?;
    store::commit(tx).await?;
    say!("{title} is known now, with {} pinned host key(s).", pinned.len());
    Ok(())
}

async fn list(app: &AppState) -> anyhow::Result<()> {
    let mut db = app.store.read().await?;
    for cluster in store::clusters::list(&mut db).await? {
        say!("{:<16} {:<30} {}:{}", cluster.slug, cluster.title, cluster.host, cluster.port);
        for line in store::clusters::host_keys(&mut db, cluster.id).await? {
            if let Some(key) = HostKey::parse(&line) {
                say!("{:<16} {:<30} {}", "", key.kind(), key.fingerprint());
            }
        }
    }
    Ok(())
}

async fn remove(app: &AppState, name: &Slug) -> anyhow::Result<()> {
    let mut tx = app.store.write().await?;
    if !store::clusters::remove(&mut tx, name).await? {
        bail!("There is no cluster called {}. See: portolan cluster list", name.as_str());
    }
    let about = About { subject: name.as_str(), ..About::default() };
    record(&mut tx, &Actor::command_line(), Event::ClusterRemoved, about, app.clock.now()).await?;
    store::commit(tx).await?;
    say!("{} is forgotten.", name.as_str());
    Ok(())
}
