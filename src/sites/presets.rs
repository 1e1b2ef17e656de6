//! The sites that come with the program, and those that are gone.

use std::sync::LazyLock;

use rust_embed::Embed;
use serde::Deserialize;

use super::{Name, Site, SiteError};

#[derive(Embed)]
#[folder = "sites/"]
#[include = "*.toml"]
struct Files;

/// The file that names what is gone.
const RETIRED: &str = "retired.toml";
/// Names less alike than this are not suggested.
const ALIKE: f64 = 0.8;

/// A cluster that was switched off.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retired {
    /// Its short name.
    pub name: Name,
    /// As people called it.
    pub title: String,
    /// The day it ended, as in `2025-09-12`, where that is known.
    #[serde(default)]
    pub ended: Option<String>,
    /// The sites to use now.
    pub instead: Vec<Name>,
    /// What happened and what to do, in one or two sentences.
    pub sentence: String,
    /// Its hosts, so that whoever pastes one is told.
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// What is known under a name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lookup {
    /// A site.
    Site(&'static Site),
    /// A site that is gone.
    Retired(&'static Retired),
    /// Nothing.
    Unknown {
        /// The name most like it, where one is alike enough to be meant.
        nearest: Option<&'static str>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetiredFile {
    retired: Vec<Retired>,
}

static PRESETS: LazyLock<Vec<Site>> = LazyLock::new(|| {
    // A file that cannot be read is left out here; a test makes sure that there is none.
    let mut sites: Vec<Site> = parsed().filter_map(|(_, site)| site.ok()).collect();
    sites.sort_by(|a, b| (a.family, a.name.as_str()).cmp(&(b.family, b.name.as_str())));
    sites
});

static GONE: LazyLock<Vec<Retired>> = LazyLock::new(|| {
    let file = Files::get(RETIRED).map(|file| file.data);
    let text = file.as_deref().and_then(|data| str::from_utf8(data).ok()).unwrap_or_default();
    toml::from_str::<RetiredFile>(text).map(|file| file.retired).unwrap_or_default()
});

/// Every file of a site, by its name, with what became of it.
fn parsed() -> impl Iterator<Item = (String, Result<Site, SiteError>)> {
    Files::iter().filter(|path| path != RETIRED).filter_map(|path| {
        let file = Files::get(&path)?;
        Some((path.into_owned(), Site::from_toml(str::from_utf8(&file.data).unwrap_or_default())))
    })
}

/// The sites that come with the program; those of one centre stand together.
pub fn presets() -> &'static [Site] {
    &PRESETS
}

/// The clusters that are gone.
pub fn retired() -> &'static [Retired] {
    &GONE
}

/// Finds a site by its name or by one of its hosts, as typed by a person.
pub fn lookup(text: &str) -> Lookup {
    let wanted = text.trim().trim_end_matches('.').to_lowercase();
    let is_host = |site: &&Site| {
        let robots = site.robot.iter().flat_map(|robot| &robot.hosts);
        site.login.host.iter().chain(&site.login.also).chain(robots).any(|h| h.as_str() == wanted)
    };
    let site = presets().iter().find(|site| site.name.as_str() == wanted);
    if let Some(site) = site.or_else(|| presets().iter().find(is_host)) {
        return Lookup::Site(site);
    }
    let is_gone = |old: &&Retired| old.name.as_str() == wanted || old.hosts.contains(&wanted);
    if let Some(old) = retired().iter().find(is_gone) {
        return Lookup::Retired(old);
    }
    let names =
        presets().iter().map(|site| &site.name).chain(retired().iter().map(|old| &old.name));
    let nearest = names
        .map(|name| (strsim::jaro_winkler(name.as_str(), &wanted), name.as_str()))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name);
    Lookup::Unknown { nearest }
}

#[cfg(test)]
mod tests;
