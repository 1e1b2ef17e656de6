//! The places where someone can keep files on a cluster: those that were found when they connected, and those that the
//! cluster's preset names, each with what it is for, when its files are deleted, and how full it is.

use crate::cluster::DiscoveredFacts;
use crate::cluster::discovered_facts::{DiscoveredUserFolder, FolderKind};
use crate::cluster::folders::FolderVariables;
use crate::domain::RemotePath;
use crate::sites::quota::StorageQuota;
use crate::sites::{SiteStorage, SiteStorageArea, StorageAreaKind};

const MAX_PLACES: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoragePlace {
    /// Home, Scratch, or Project and the name of the group whose folder it is.
    pub label: String,
    pub path: RemotePath,
    /// What it is for, as a sentence.
    pub purpose: String,
    /// When files are deleted, as a sentence; empty if nothing is known.
    pub purge: String,
    /// The capacity in words, if the preset names it and no quota was read.
    pub room: String,
    /// Whether the person can only read there.
    pub is_read_only: bool,
    /// How full it is, as last read.
    pub quota: Option<StorageQuota>,
}

/// A person's places on a cluster, in the order in which the portal found them.
pub fn list_places(facts: &DiscoveredFacts, storage: &SiteStorage, quotas: &[StorageQuota]) -> Vec<StoragePlace> {
    let variables = FolderVariables::from_facts(facts);
    let mut places: Vec<StoragePlace> = Vec::new();
    for folder in &facts.folders {
        let Ok(path) = RemotePath::parse(folder.path.as_bytes()) else { continue };
        let area = find_area(storage, folder, &variables);
        places.push(StoragePlace {
            label: label_of(folder, area),
            purpose: area.map_or_else(|| default_purpose(folder.label).to_owned(), |area| area.purpose.clone()),
            quota: find_quota(quotas, folder).cloned(),
            is_read_only: !folder.writable,
            ..from_area(area, path)
        });
    }
    for area in &storage.areas {
        let full = variables.expand(&area.path).filter(|path| !path.contains(['{', '$']));
        let Some(path) = full.and_then(|path| RemotePath::parse(path.as_bytes()).ok()) else { continue };
        if !places.iter().any(|place| place.path == path) {
            places.push(from_area(Some(area), path));
        }
    }
    places.truncate(MAX_PLACES);
    places
}

/// The innermost place that contains a path.
pub fn innermost_place<'a>(places: &'a [StoragePlace], path: &RemotePath) -> Option<&'a StoragePlace> {
    let around = places.iter().filter(|place| path.is_within(&place.path));
    around.max_by_key(|place| place.path.as_bytes().len())
}

fn from_area(area: Option<&SiteStorageArea>, path: RemotePath) -> StoragePlace {
    StoragePlace {
        label: area.map(|area| area.label.clone()).unwrap_or_default(),
        path,
        purpose: area.map(|area| area.purpose.clone()).unwrap_or_default(),
        purge: area.and_then(|area| area.purge.clone()).unwrap_or_default(),
        room: area.and_then(|area| area.room.clone()).unwrap_or_default(),
        is_read_only: false,
        quota: None,
    }
}

/// What the preset says about a folder: by its path, or else by its kind.
fn find_area<'a>(
    storage: &'a SiteStorage,
    folder: &DiscoveredUserFolder,
    variables: &FolderVariables,
) -> Option<&'a SiteStorageArea> {
    let path = folder.path.trim_end_matches('/');
    let is_same = |area: &&SiteStorageArea| variables.expand(&area.path).is_some_and(|full| full == path);
    let kind = match folder.label {
        FolderKind::Home => Some(StorageAreaKind::Home),
        FolderKind::Scratch => Some(StorageAreaKind::Scratch),
        FolderKind::Project => Some(StorageAreaKind::Project),
        FolderKind::Work => None,
    };
    storage.areas.iter().find(is_same).or_else(|| storage.area(kind?))
}

/// What a place is called, wherever it's named.
pub fn label_of(folder: &DiscoveredUserFolder, area: Option<&SiteStorageArea>) -> String {
    match (&folder.group, area) {
        (Some(group), _) if folder.label == FolderKind::Project => format!("{} {group}", folder.label.title()),
        (_, Some(area)) if folder.label == FolderKind::Work => area.label.clone(),
        _ => folder.label.title().to_owned(),
    }
}

const fn default_purpose(kind: FolderKind) -> &'static str {
    match kind {
        FolderKind::Home => "Programs, scripts and settings. Usually too small for data sets.",
        FolderKind::Scratch => {
            "Large files that jobs read and write. Many centres delete old files here: check with yours."
        }
        FolderKind::Project => "Shared data and results that your group wants to keep.",
        FolderKind::Work => "Large files that jobs read and write.",
    }
}

/// The quota of a folder. Programs print `/home (user ada)`, `Scratch (ada)`, `/project (project def-x)` or a path.
fn find_quota<'a>(quotas: &'a [StorageQuota], folder: &DiscoveredUserFolder) -> Option<&'a StorageQuota> {
    let path = RemotePath::parse(folder.path.as_bytes()).ok()?;
    let by_path = quotas.iter().filter_map(|quota| {
        let root = quota.label.split_whitespace().next().and_then(|word| RemotePath::parse(word.as_bytes()).ok())?;
        let is_deep = root.ancestors_and_self().len() > 2;
        (is_deep && path.is_within(&root)).then_some((root.as_bytes().len(), quota))
    });
    if let Some((_, quota)) = by_path.max_by_key(|(len, _)| *len) {
        return Some(quota);
    }
    let kind = folder.label.title().to_lowercase();
    let is_kind = |quota: &&StorageQuota| {
        let word = quota.label.split_whitespace().next().unwrap_or_default();
        word.trim_matches('/').to_lowercase() == kind
    };
    let names_group = |quota: &&StorageQuota| match &folder.group {
        Some(group) => quota.label.split(|c: char| c.is_whitespace() || c == '(' || c == ')').any(|word| word == group),
        None => true,
    };
    let mut found = quotas.iter().filter(is_kind).filter(names_group);
    // Of several, nobody can tell which one it is.
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(label: FolderKind, path: &str, group: Option<&str>) -> DiscoveredUserFolder {
        DiscoveredUserFolder { label, path: path.into(), writable: true, group: group.map(str::to_owned) }
    }

    fn quota(label: &str) -> StorageQuota {
        StorageQuota { label: label.into(), used_bytes: 1, ..StorageQuota::default() }
    }

    fn preset(name: &str) -> SiteStorage {
        crate::sites::presets().iter().find(|site| site.name.as_str() == name).unwrap().storage.clone()
    }

    #[test]
    fn places_say_what_they_are_for_and_how_full_they_are() {
        let facts = DiscoveredFacts {
            home: Some("/home/ada".into()),
            folders: vec![
                folder(FolderKind::Home, "/home/ada", None),
                folder(FolderKind::Scratch, "/scratch/ada", None),
                folder(FolderKind::Project, "/home/ada/projects/def-x", Some("def-x")),
                folder(FolderKind::Project, "/home/ada/projects/def-y", Some("def-y")),
            ],
            ..DiscoveredFacts::default()
        };
        let quotas = [
            quota("/home (user ada)"),
            quota("/scratch (user ada)"),
            quota("/project (project def-x)"),
            quota("/project (project def-y)"),
        ];
        let places = list_places(&facts, &preset("fir"), &quotas);
        let labels: Vec<&str> = places.iter().map(|place| place.label.as_str()).collect();
        assert_eq!(labels, ["Home", "Scratch", "Project def-x", "Project def-y"]);
        assert!(places[1].purge.contains("60 days") && places[1].purpose.contains("jobs read and write"));
        assert!(places.iter().all(|place| !place.purpose.is_empty()));
        let found: Vec<&str> = places.iter().map(|place| place.quota.as_ref().unwrap().label.as_str()).collect();
        assert_eq!(found, quotas.iter().map(|quota| quota.label.as_str()).collect::<Vec<_>>());
        let inside = RemotePath::parse(b"/home/ada/projects/def-x/run").unwrap();
        assert_eq!(innermost_place(&places, &inside).unwrap().label, "Project def-x");
        assert_eq!(innermost_place(&places, &RemotePath::root()), None);
    }

    #[test]
    fn quotas_by_path_and_a_work_folder() {
        let facts = DiscoveredFacts {
            home: Some("/cluster/home/ada".into()),
            folders: vec![
                folder(FolderKind::Home, "/cluster/home/ada", None),
                folder(FolderKind::Work, "/cluster/work/users/ada", None),
            ],
            ..DiscoveredFacts::default()
        };
        let quotas = [quota("/cluster/home/ada"), quota("/cluster/projects/nn1k")];
        let places = list_places(&facts, &preset("betzy"), &quotas);
        assert_eq!(places.len(), 2, "a project's path isn't known: {places:?}");
        assert_eq!(places[0].quota.as_ref().unwrap().label, "/cluster/home/ada");
        assert!(places[1].quota.is_none() && places[1].purge.contains("21 to 42 days"));
        assert_eq!(places[1].label, "Work");
    }

    #[test]
    fn places_without_a_preset_or_a_connection() {
        let facts = DiscoveredFacts {
            folders: vec![
                folder(FolderKind::Scratch, "/scratch/ada", None),
                folder(FolderKind::Work, "not-a-path", None),
            ],
            ..DiscoveredFacts::default()
        };
        let places = list_places(&facts, &SiteStorage::default(), &[quota("Scratch (ada)"), quota("Scratch (x)")]);
        assert_eq!((places.len(), places[0].quota.is_none()), (1, true), "two fit, so none is certain");
        assert!(places[0].purpose.contains("check with yours"));
        assert!(list_places(&DiscoveredFacts::default(), &preset("fir"), &[]).is_empty());
    }
}
