//! A cluster's description from the command line: a preset or a file, plus what the administrator adds.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;

use crate::app::{AppState, files};
use crate::domain::{DisplayName, HostName, Slug};
use crate::sites::{self, Site, SiteHost, SiteLookupResult, SiteName};

#[derive(Debug, Args)]
pub(super) struct ClusterDescriptionArgs {
    /// A preset, such as fir or saga, or one of your own files in the sites folder of the data folder.
    #[arg(long, conflicts_with = "file")]
    preset: Option<String>,
    /// A cluster configuration file, from `cluster export` or the cluster's settings page.
    #[arg(long)]
    file: Option<PathBuf>,
    /// The login host.
    #[arg(long)]
    host: Option<HostName>,
    /// The port of its SSH server (default: 22).
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// The name that people see.
    #[arg(long)]
    title: Option<DisplayName>,
}

impl ClusterDescriptionArgs {
    /// The description from the preset, the file or `otherwise`, with the given options applied.
    pub(super) fn into_site(self, app: &AppState, name: &Slug, otherwise: Site) -> anyhow::Result<Site> {
        let mut site = match (&self.preset, &self.file) {
            (Some(preset), _) => find_preset(app, preset)?,
            (None, Some(file)) => read_site_file(file)?,
            (None, None) => otherwise,
        };
        site.name = SiteName(name.clone());
        if let Some(host) = self.host {
            site.login.host = Some(SiteHost(host));
        }
        if let Some(port) = self.port {
            site.login.port = port;
        }
        if let Some(title) = self.title {
            title.as_str().clone_into(&mut site.title);
        }
        if site.login.host.is_none() {
            bail!("Specify the login host with --host HOST, or use --preset or --file.");
        }
        site.check()?;
        Ok(site)
    }
}

fn read_site_file(path: &Path) -> anyhow::Result<Site> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{} couldn't be read", path.display()))?;
    Site::from_toml(&text).with_context(|| format!("{} isn't a valid cluster configuration", path.display()))
}

/// The administrator's own presets come first, as on the portal's pages.
fn find_preset(app: &AppState, text: &str) -> anyhow::Result<Site> {
    if let Some(site) = app.site_presets.iter().find(|site| site.name.as_str() == text) {
        return Ok(site.clone());
    }
    // A file that can't be read is missing from the list. Someone who names it wants to know why.
    let own = app.config.data_dir.join(files::SITES).join(text).with_extension("toml");
    if text.parse::<Slug>().is_ok() && own.exists() {
        return read_site_file(&own);
    }
    match sites::find_site(text) {
        SiteLookupResult::Site(site) => Ok(site.clone()),
        SiteLookupResult::Retired(gone) => {
            let instead: Vec<&str> = gone.instead.iter().map(SiteName::as_str).collect();
            bail!("{} Presets to use instead: {}", gone.sentence, instead.join(", "))
        }
        SiteLookupResult::Unknown { nearest: Some(name) } => {
            bail!("There is no preset called {text}. Did you mean {name}?")
        }
        SiteLookupResult::Unknown { nearest: None } => {
            let names: Vec<&str> = app.site_presets.iter().map(|site| site.name.as_str()).collect();
            bail!("There is no preset called {text}. Available presets: {}", names.join(", "))
        }
    }
}
