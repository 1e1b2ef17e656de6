//! The person's own folders by the variables that forms use: `$SCRATCH/data` instead of `/scratch/alice/data`, so
//! that a filled-in form works for others, and on another cluster.

use super::join_path;
use crate::cluster::discovered_facts::{DiscoveredFacts, FolderKind};

/// Stands for the home folder in every shell.
const TILDE: &str = "~";

/// The variables that stand for a person's folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderVariables(Vec<PathVariable>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct PathVariable {
    /// `$SCRATCH`.
    variable: &'static str,
    folder: String,
    /// Whether it is the only folder of its kind. Otherwise it is uncertain which one the cluster means.
    is_certain: bool,
}

impl FolderVariables {
    pub fn from_facts(facts: &DiscoveredFacts) -> Self {
        let mut names = Vec::new();
        for (variable, kind) in [
            ("$HOME", FolderKind::Home),
            ("$SCRATCH", FolderKind::Scratch),
            ("$PROJECT", FolderKind::Project),
            ("$USERWORK", FolderKind::Work),
        ] {
            let home = facts.home.as_deref().filter(|_| kind == FolderKind::Home);
            let mut folders = facts.folders_of_kind(kind).map(|folder| folder.path.as_str());
            let Some(folder) = home.or_else(|| folders.next()) else { continue };
            let is_certain = home.is_some() || folders.next().is_none();
            let folder = folder.trim_end_matches('/').to_owned();
            names.push(PathVariable { variable, folder, is_certain });
        }
        names.retain(|name| !name.folder.is_empty());
        Self(names)
    }

    /// The full path of what someone typed; `None` if it does not begin with a known folder.
    pub fn expand(&self, typed: &str) -> Option<String> {
        let typed = typed.trim();
        if typed.starts_with('/') {
            return Some(typed.to_owned());
        }
        let (first, rest) = typed.split_once('/').unwrap_or((typed, ""));
        let first = first.replace(['{', '}'], "");
        let variable = if first == TILDE { "$HOME" } else { &first };
        let name = self.0.iter().find(|name| name.variable == variable)?;
        Some(if rest.is_empty() { name.folder.clone() } else { join_path(&name.folder, rest) })
    }

    /// A path for forms: with the variable of the innermost folder that contains it.
    pub fn abbreviate(&self, path: &str) -> String {
        let below = |name: &PathVariable| match path.strip_prefix(name.folder.as_str()) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => Some(rest.to_owned()),
            _ => None,
        };
        let certain = self.0.iter().filter(|name| name.is_certain);
        let around = certain.filter_map(|name| Some((name.variable, below(name)?)));
        let innermost = around.min_by_key(|(_, rest)| rest.len());
        innermost.map_or_else(|| path.to_owned(), |(variable, rest)| format!("{variable}{rest}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::discovered_facts::DiscoveredUserFolder;

    fn names(folders: &[(FolderKind, &str)]) -> FolderVariables {
        let folder = |(label, path): &(FolderKind, &str)| DiscoveredUserFolder {
            label: *label,
            path: (*path).to_owned(),
            ..DiscoveredUserFolder::default()
        };
        FolderVariables::from_facts(&DiscoveredFacts {
            folders: folders.iter().map(folder).collect(),
            ..DiscoveredFacts::default()
        })
    }

    #[test]
    fn there_and_back() {
        let names = names(&[
            (FolderKind::Home, "/home/alice"),
            (FolderKind::Scratch, "/scratch/alice/"),
            (FolderKind::Project, "/home/alice/project"),
        ]);
        for (typed, full, short) in [
            ("$SCRATCH/data/set.tar", "/scratch/alice/data/set.tar", "$SCRATCH/data/set.tar"),
            ("${SCRATCH}/data", "/scratch/alice/data", "$SCRATCH/data"),
            ("$SCRATCH", "/scratch/alice", "$SCRATCH"),
            ("$SCRATCH/", "/scratch/alice", "$SCRATCH"),
            ("~", "/home/alice", "$HOME"),
            ("~/a b", "/home/alice/a b", "$HOME/a b"),
            ("$HOME/project/x", "/home/alice/project/x", "$PROJECT/x"),
            (" /tmp ", "/tmp", "/tmp"),
            ("/home/alicex", "/home/alicex", "/home/alicex"),
            ("/", "/", "/"),
        ] {
            assert_eq!(names.expand(typed).as_deref(), Some(full), "{typed}");
            assert_eq!(names.abbreviate(full), short, "{full}");
        }
        for unknown in ["", "data", "$USERWORK/x", "$HOMER/x", "~bob", "$(id)/x", "./x"] {
            assert_eq!(names.expand(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn where_there_are_several_no_variable_is_given_back() {
        let names = names(&[(FolderKind::Project, "/project/a"), (FolderKind::Project, "/project/b")]);
        assert_eq!(names.expand("$PROJECT/x").as_deref(), Some("/project/a/x"), "a place to look at");
        assert_eq!(names.abbreviate("/project/a/x"), "/project/a/x", "but not to rely on");
    }
}
