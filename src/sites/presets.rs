//! The sites that ship with the program, and those that were shut down.

use std::sync::LazyLock;

use rust_embed::Embed;
use serde::Deserialize;

use super::{Site, SiteError, SiteName};

#[derive(Embed)]
#[folder = "sites/"]
#[include = "*.toml"]
struct PresetFiles;

/// The file that lists retired sites.
const RETIRED_FILE: &str = "retired.toml";
/// Names that are less similar than this are not suggested.
const MIN_SIMILARITY: f64 = 0.8;

/// A cluster that was shut down.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetiredSite {
    pub name: SiteName,
    pub title: String,
    /// The day it was shut down, as in `2025-09-12`, if known.
    #[serde(default)]
    pub ended: Option<String>,
    /// The sites to use now.
    pub instead: Vec<SiteName>,
    /// What happened and what to do, in one or two sentences.
    pub sentence: String,
    /// Its hosts, so that anyone who pastes one sees the explanation.
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// The result of looking up a name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SiteLookupResult {
    Site(&'static Site),
    Retired(&'static RetiredSite),
    Unknown {
        /// The most similar name, if one is similar enough.
        nearest: Option<&'static str>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetiredSiteList {
    retired: Vec<RetiredSite>,
}

static PRESETS: LazyLock<Vec<Site>> = LazyLock::new(|| {
    // A file that cannot be parsed is left out here; a test makes sure that there is none.
    let mut sites: Vec<Site> = parse_preset_files().filter_map(|(_, site)| site.ok()).collect();
    sites.sort_by(|a, b| (a.family, a.name.as_str()).cmp(&(b.family, b.name.as_str())));
    sites
});

static RETIRED_SITES: LazyLock<Vec<RetiredSite>> = LazyLock::new(|| {
    let file = PresetFiles::get(RETIRED_FILE).map(|file| file.data);
    let text = file.as_deref().and_then(|data| str::from_utf8(data).ok()).unwrap_or_default();
    toml::from_str::<RetiredSiteList>(text).map(|file| file.retired).unwrap_or_default()
});

/// Every site file by its name, with the result of parsing it.
fn parse_preset_files() -> impl Iterator<Item = (String, Result<Site, SiteError>)> {
    PresetFiles::iter().filter(|path| path != RETIRED_FILE).filter_map(|path| {
        let file = PresetFiles::get(&path)?;
        Some((path.into_owned(), Site::from_toml(str::from_utf8(&file.data).unwrap_or_default())))
    })
}

/// The sites that ship with the program; those of one centre come together.
pub fn presets() -> &'static [Site] {
    &PRESETS
}

pub fn retired_sites() -> &'static [RetiredSite] {
    &RETIRED_SITES
}

/// Finds a site by its name or by one of its hosts, as a person typed it.
pub fn find_site(text: &str) -> SiteLookupResult {
    let wanted = text.trim().trim_end_matches('.').to_lowercase();
    let is_host = |site: &&Site| {
        let automation_hosts = site.automation.iter().flat_map(|automation| &automation.hosts);
        site.login.host.iter().chain(&site.login.also).chain(automation_hosts).any(|h| h.as_str() == wanted)
    };
    let site = presets().iter().find(|site| site.name.as_str() == wanted);
    if let Some(site) = site.or_else(|| presets().iter().find(is_host)) {
        return SiteLookupResult::Site(site);
    }
    let is_gone = |old: &&RetiredSite| old.name.as_str() == wanted || old.hosts.contains(&wanted);
    if let Some(old) = retired_sites().iter().find(is_gone) {
        return SiteLookupResult::Retired(old);
    }
    let names = presets().iter().map(|site| &site.name).chain(retired_sites().iter().map(|old| &old.name));
    let nearest = names
        .map(|name| (strsim::jaro_winkler(name.as_str(), &wanted), name.as_str()))
        .filter(|(alike, _)| *alike >= MIN_SIMILARITY)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name);
    SiteLookupResult::Unknown { nearest }
}

#[cfg(test)]
mod tests;
