//! Folders that nobody means to delete as a whole: home, scratch, projects, and whatever contains them.

use crate::cluster::DiscoveredFacts;
use crate::domain::RemotePath;

/// The places that a person has on a cluster.
#[derive(Debug, Clone, Default)]
pub struct ProtectedPlaces(Vec<RemotePath>);

/// A folder that can't be deleted as a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} can't be deleted as a whole: it's one of your places on this cluster, or contains one. Open it and select what to delete."
)]
pub struct ProtectedPlaceError(pub String);

impl ProtectedPlaces {
    pub fn from_facts(facts: &DiscoveredFacts) -> Self {
        let places = facts.folders.iter().map(|folder| folder.path.as_str()).chain(facts.home.as_deref());
        Self(places.filter_map(|path| RemotePath::parse(path.as_bytes()).ok()).collect())
    }

    /// Refuses a place and every folder that a place is in.
    pub fn check(&self, path: &RemotePath) -> Result<(), ProtectedPlaceError> {
        let is_protected = path.parent().is_none() || self.0.iter().any(|place| place.is_within(path));
        if is_protected { Err(ProtectedPlaceError(path.to_string())) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::discovered_facts::DiscoveredUserFolder;

    #[test]
    fn places_and_what_contains_them_stay() {
        let folder = |path: &str| DiscoveredUserFolder { path: path.to_owned(), ..DiscoveredUserFolder::default() };
        let facts = DiscoveredFacts {
            home: Some("/home/alice/".to_owned()),
            folders: vec![folder("/scratch/alice"), folder("/project/def-smith")],
            ..DiscoveredFacts::default()
        };
        let places = ProtectedPlaces::from_facts(&facts);
        let check = |path: &str| places.check(&RemotePath::parse(path.as_bytes()).unwrap());
        for kept in ["/", "/home", "/home/alice", "/scratch", "/scratch/alice", "/project/def-smith"] {
            assert!(check(kept).is_err(), "{kept}");
        }
        for own in ["/home/alice/data", "/scratch/alice/x", "/scratch/alice2", "/tmp", "/project/def-smith/alice"] {
            assert!(check(own).is_ok(), "{own}");
        }
    }
}
