//! The places where a person stores files on a cluster, each with what the site says about it and the quota that the
//! site's own program reports. Pure.

use crate::cluster::discovered_facts::{DiscoveredFacts, DiscoveredUserFolder, FolderKind};
use crate::cluster::folders::FolderVariables;
use crate::domain::RemotePath;
use crate::sites::quota::StorageQuota;
use crate::sites::{Site, SiteStorageArea, StorageAreaKind};

/// A place where a person stores files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceWithQuota {
    /// `Scratch`, `Project def-smith`.
    pub title: String,
    pub path: RemotePath,
    /// What the site says about it.
    pub area: Option<SiteStorageArea>,
    /// `None` if no program reports one.
    pub quota: Option<StorageQuota>,
}

impl PlaceWithQuota {
    /// After how many days without use files are deleted, if the site says so.
    pub fn purge_days(&self) -> Option<u16> {
        self.area.as_ref().and_then(|area| area.purge_days)
    }
}

/// All places of a person on a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoragePlaces {
    pub places: Vec<PlaceWithQuota>,
    /// Quotas that belong to none of them.
    pub other_quotas: Vec<StorageQuota>,
}

impl StoragePlaces {
    pub fn new(facts: &DiscoveredFacts, site: &Site, quotas: &[StorageQuota]) -> Self {
        let variables = FolderVariables::from_facts(facts);
        let home = facts.home.iter().map(|path| DiscoveredUserFolder {
            label: FolderKind::Home,
            path: path.clone(),
            writable: true,
            group: None,
        });
        let home = home.filter(|_| facts.folders_of_kind(FolderKind::Home).next().is_none());
        let folders: Vec<DiscoveredUserFolder> = home.chain(facts.folders.iter().cloned()).collect();
        let mut taken = vec![false; quotas.len()];
        let mut places = Vec::new();
        for folder in &folders {
            let Ok(path) = RemotePath::parse(folder.path.as_bytes()) else { continue };
            let at = find_quota(folder, &folders, quotas);
            if let Some(at) = at {
                taken[at] = true;
            }
            places.push(PlaceWithQuota {
                title: place_title(folder, &folders),
                path,
                area: find_area(folder, site, &variables).cloned(),
                quota: at.map(|at| quotas[at].clone()),
            });
        }
        let other = quotas.iter().zip(taken).filter(|(_, is_taken)| !is_taken);
        Self { places, other_quotas: other.map(|(quota, _)| quota.clone()).collect() }
    }

    pub fn find(&self, path: &RemotePath) -> Option<&PlaceWithQuota> {
        self.places.iter().find(|place| place.path == *path)
    }
}

/// Its kind, and its group or last name where there are several of the kind.
fn place_title(folder: &DiscoveredUserFolder, all: &[DiscoveredUserFolder]) -> String {
    let kind = folder.label.title();
    let is_only = all.iter().filter(|other| other.label == folder.label).count() == 1;
    match (&folder.group, folder.path.trim_end_matches('/').rsplit('/').next()) {
        (Some(group), _) => format!("{kind} {group}"),
        (None, Some(name)) if !is_only => format!("{kind} {name}"),
        _ => kind.to_owned(),
    }
}

fn find_area<'a>(
    folder: &DiscoveredUserFolder,
    site: &'a Site,
    variables: &FolderVariables,
) -> Option<&'a SiteStorageArea> {
    let is_same = |area: &&SiteStorageArea| variables.expand(&area.path).is_some_and(|path| path == folder.path);
    let kind = match folder.label {
        FolderKind::Home => StorageAreaKind::Home,
        FolderKind::Project => StorageAreaKind::Project,
        FolderKind::Scratch | FolderKind::Work => StorageAreaKind::Scratch,
    };
    site.storage.areas.iter().find(is_same).or_else(|| site.storage.area(kind))
}

/// The quota of a folder: the one whose label names it.
fn find_quota(folder: &DiscoveredUserFolder, all: &[DiscoveredUserFolder], quotas: &[StorageQuota]) -> Option<usize> {
    let is_only_project = all.iter().filter(|other| other.label == FolderKind::Project).count() == 1;
    let rank = |quota: &StorageQuota| match quota.label.split_once(" (") {
        None => path_rank(&folder.path, &quota.label),
        Some((name, owner)) => {
            let is_only = is_only_project && count_named(quotas, name) == 1;
            named_rank(folder, name, owner.trim_end_matches(')'), is_only)
        }
    };
    let ranked = quotas.iter().enumerate().map(|(at, quota)| (rank(quota), at));
    ranked.filter(|(rank, _)| *rank > 0).max_by_key(|(rank, at)| (*rank, usize::MAX - at)).map(|(_, at)| at)
}

fn count_named(quotas: &[StorageQuota], name: &str) -> usize {
    quotas.iter().filter(|quota| quota.label.split_once(" (").is_some_and(|(other, _)| other == name)).count()
}

/// `/cluster/home/alice`: the longest path that contains the folder, but not the root of everything.
fn path_rank(folder: &str, label: &str) -> usize {
    let label = label.trim_end_matches('/');
    let is_deep = label.matches('/').count() >= 2;
    let is_inside = folder.strip_prefix(label).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_deep && is_inside { label.len() } else { 0 }
}

/// `/project (project def-smith)`: a kind of folder, and whose it is.
fn named_rank(folder: &DiscoveredUserFolder, name: &str, owner: &str, is_only: bool) -> usize {
    let name = name.trim_start_matches('/').to_ascii_lowercase();
    let owner = owner.rsplit(' ').next().unwrap_or_default();
    let is_kind = match folder.label {
        FolderKind::Home => name == "home",
        FolderKind::Scratch => name == "scratch",
        FolderKind::Project => name == "project",
        FolderKind::Work => matches!(name.as_str(), "work" | "userwork"),
    };
    let is_owner = || {
        let names_owner = folder.path.split('/').any(|part| part == owner);
        folder.label != FolderKind::Project || is_only || folder.group.as_deref() == Some(owner) || names_owner
    };
    usize::from(is_kind && is_owner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::quota::{parse_diskusage_report, parse_dusage};
    use crate::sites::{SiteName, presets};

    const DEMO: &str = include_str!("../../tests/fixtures/sites/diskusage-demo.txt");

    fn facts(folders: &[(FolderKind, &str, Option<&str>)]) -> DiscoveredFacts {
        let folder = |(label, path, group): &(FolderKind, &str, Option<&str>)| DiscoveredUserFolder {
            label: *label,
            path: (*path).to_owned(),
            writable: true,
            group: group.map(str::to_owned),
        };
        DiscoveredFacts {
            home: Some("/home/alice".to_owned()),
            folders: folders.iter().map(folder).collect(),
            ..DiscoveredFacts::default()
        }
    }

    fn quotas(places: &StoragePlaces) -> Vec<(&str, &str)> {
        let all = places.places.iter();
        all.map(|place| (&*place.title, place.quota.as_ref().map_or("none", |quota| &*quota.label))).collect()
    }

    #[test]
    fn quotas_belong_to_the_folders_that_they_name() {
        let facts = facts(&[
            (FolderKind::Home, "/home/alice", None),
            (FolderKind::Scratch, "/scratch/alice", None),
            (FolderKind::Project, "/project/def-smith", Some("def-smith")),
            (FolderKind::Project, "/project/rrg-other", Some("rrg-other")),
        ]);
        let site = Site::with_defaults(SiteName("own".parse().unwrap()), "Own");
        let found = StoragePlaces::new(&facts, &site, &parse_diskusage_report(DEMO));
        assert_eq!(
            quotas(&found),
            [
                ("Home", "/home (user alice)"),
                ("Scratch", "/scratch (user alice)"),
                ("Project def-smith", "/project (project def-smith)"),
                ("Project rrg-other", "none"),
            ]
        );
        let other: Vec<&str> = found.other_quotas.iter().map(|quota| quota.label.as_str()).collect();
        assert_eq!(other, ["/project (project rrg-smith)", "/project (project def-jones)"], "none is lost");
        assert!(found.find(&RemotePath::parse(b"/scratch/alice").unwrap()).is_some());
        assert!(found.find(&RemotePath::parse(b"/scratch/bob").unwrap()).is_none());
    }

    #[test]
    fn quotas_that_are_paths() {
        let table = "-----------------------  ---------  ---------  ---------  -----  -----  -----\n\
                     \u{20}             /cluster/    9.0 GiB                           5\n\
                     \u{20}   /cluster/home/alice    5.4 GiB   20.0 GiB   20.0 GiB      3      9      9\n\
                     /cluster/projects/nn12k    1.7 TiB    2.0 TiB    2.0 TiB      6      7      7\n";
        let mut facts = facts(&[
            (FolderKind::Work, "/cluster/work/users/alice", None),
            (FolderKind::Project, "/cluster/projects/nn12k", None),
            (FolderKind::Project, "/cluster/projects/nn12", None),
        ]);
        facts.home = Some("/cluster/home/alice".to_owned());
        let site = presets().iter().find(|site| site.name.as_str() == "saga").unwrap();
        let found = StoragePlaces::new(&facts, site, &parse_dusage(table));
        assert_eq!(
            quotas(&found),
            [
                ("Home", "/cluster/home/alice"),
                ("Work", "none"),
                ("Project nn12k", "/cluster/projects/nn12k"),
                ("Project nn12", "none"),
            ]
        );
        let purges: Vec<bool> = found.places.iter().map(|place| place.area.as_ref().unwrap().purge.is_some()).collect();
        assert_eq!(purges, [false, true, false, false], "work is purged like scratch");
    }

    #[test]
    fn purge_rules_name_one_number_of_days() {
        for site in presets() {
            for area in &site.storage.areas {
                let Some(days) = area.purge_days else { continue };
                let rule = area.purge.as_deref().unwrap();
                assert!(rule.contains(&format!("{days} days")), "{}: {rule}", site.name);
            }
        }
        let narval = presets().iter().find(|site| site.name.as_str() == "narval").unwrap();
        let facts = facts(&[(FolderKind::Scratch, "/scratch/alice", None)]);
        let found = StoragePlaces::new(&facts, narval, &[]);
        assert_eq!(found.places.iter().map(PlaceWithQuota::purge_days).collect::<Vec<_>>(), [None, Some(60)]);
    }
}
