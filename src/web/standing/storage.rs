//! Storage of a group's projects, and who has how much of it.

use super::super::home::standing::{Folder, folder};
use crate::explain::sizes;
use crate::sites::per_user::UserPlace;
use crate::sites::quota;
use crate::usage::{Facts, View};

/// Folders that are drawn.
const MOST_FOLDERS: usize = 20;
/// People who are listed for a project.
const MOST_PEOPLE: usize = 100;

/// A project's folder.
pub struct ProjectFolder {
    /// How full it is.
    pub folder: Folder,
}

/// Who has how much in a project's folder.
pub struct ProjectPeople {
    /// The project.
    pub project: String,
    /// The people, those with most first.
    pub people: Vec<PersonPlace>,
    /// How many are not listed.
    pub more: usize,
}

/// What someone has.
pub struct PersonPlace {
    /// As people read it.
    pub name: String,
    /// Their name on the cluster, where it differs.
    pub user: String,
    /// Space in words.
    pub space: String,
    /// Files in words.
    pub files: String,
}

/// The folders that belong to the group's accounts.
pub fn folders(places: &[quota::Place], accounts: &[&Facts]) -> Vec<ProjectFolder> {
    let of_group = places.iter().filter(|place| names(&place.label, accounts));
    of_group.take(MOST_FOLDERS).map(|place| ProjectFolder { folder: folder(place) }).collect()
}

/// Whether a label names one of the accounts as a word of its own: `/project (project def-x)`, `/cluster/projects/nn1k`.
fn names(label: &str, accounts: &[&Facts]) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '_';
    // A person may be called as an account is: `/home (user def-x)`.
    let is_own = label.contains("(user ");
    !is_own
        && label
            .split(|letter| !is_part(letter))
            .any(|word| accounts.iter().any(|one| is_of(word, one)))
}

fn is_of(word: &str, facts: &Facts) -> bool {
    facts.account == word || facts.slurm_names.iter().any(|name| name == word)
}

/// Who has how much, for those who lead the group.
pub fn people(rows: &[UserPlace], accounts: &[&Facts], view: &View) -> Vec<ProjectPeople> {
    let mut found: Vec<(String, Vec<&UserPlace>)> = Vec::new();
    let Some(cluster) = accounts.first().map(|facts| facts.cluster) else { return Vec::new() };
    let of_group = |row: &&UserPlace| accounts.iter().any(|facts| is_of(&row.project, facts));
    for row in rows.iter().filter(of_group) {
        match found.iter_mut().find(|(project, _)| *project == row.project) {
            Some((_, of_project)) => of_project.push(row),
            None => found.push((row.project.clone(), vec![row])),
        }
    }
    let project = |(project, mut rows): (String, Vec<&UserPlace>)| {
        rows.sort_by_key(|row| std::cmp::Reverse((row.used_bytes, row.files)));
        let more = rows.len().saturating_sub(MOST_PEOPLE);
        let person = |row: &&UserPlace| {
            let known = view.people.get(&(cluster, row.user.clone()));
            PersonPlace {
                name: known.map_or_else(|| row.user.clone(), |person| person.name.clone()),
                user: known.map(|_| row.user.clone()).unwrap_or_default(),
                space: sizes::memory(row.used_bytes.div_ceil(1 << 20)),
                files: sizes::number(row.files),
            }
        };
        let people = rows.iter().take(MOST_PEOPLE).map(person).collect();
        ProjectPeople { project, people, more }
    };
    found.into_iter().map(project).collect()
}
