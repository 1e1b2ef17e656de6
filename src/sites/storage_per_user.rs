//! Storage per user in projects' folders, as `diskusage_report --per_user` prints it below its usual table.

use serde::{Deserialize, Serialize};

use super::quota::{QuotaNumber, QuotaNumberIter, bounded_lines};
use crate::text::one_line;

const MAX_ROWS: usize = 1000;
const MAX_NAME_CHARS: usize = 100;

/// What one person stores in a project's folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UserProjectStorage {
    /// The project: `def-x`.
    pub project: String,
    /// The person's user name on the cluster.
    pub user: String,
    /// Approximate, because the program rounds.
    pub used_bytes: u64,
    pub files: u64,
}

/// Parses the output: blocks that begin with `Breakdown for project def-x (Last update: …)`. Leaves out what is on
/// tape, and totals.
pub fn parse_per_user(answer: &str) -> Vec<UserProjectStorage> {
    let mut found = Vec::new();
    let mut project: Option<String> = None;
    for line in bounded_lines(answer) {
        if let Some(rest) = line.trim_start().strip_prefix("Breakdown for ") {
            project = parse_project(rest);
        } else if let Some(project) = &project
            && found.len() < MAX_ROWS
        {
            found.extend(parse_row(line, project));
        }
    }
    found
}

/// `project def-x (Last update: 2023-02-27 23:00:57)` → `def-x`.
fn parse_project(text: &str) -> Option<String> {
    let name = text.strip_prefix("project ").unwrap_or(text).split_whitespace().next()?;
    let name = one_line(name, MAX_NAME_CHARS);
    (!name.is_empty()).then_some(name)
}

/// `user01   2   0.00 GiB   On disk`.
fn parse_row(line: &str, project: &str) -> Option<UserProjectStorage> {
    let mut words = line.split_whitespace();
    let user = words.next().filter(|name| *name != "Total")?;
    let files = words.next()?.parse().ok()?;
    let size = format!("{} {}", words.next()?, words.next()?);
    let used_bytes = QuotaNumberIter(&size).next().and_then(QuotaNumber::bytes)?;
    let on_disk = words.next_back().is_none_or(|word| word == "disk");
    let user = one_line(user, MAX_NAME_CHARS);
    (on_disk && !user.is_empty()).then(|| UserProjectStorage { project: project.to_owned(), user, used_bytes, files })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALLIANCE: &str = include_str!("../../tests/fixtures/sites/diskusage-per-user.txt");
    const DEMO: &str = include_str!("../../tests/fixtures/sites/diskusage-per-user-demo.txt");

    #[test]
    fn blocks_of_a_report() {
        let found = parse_per_user(ALLIANCE);
        let rows: Vec<_> = found.iter().map(|one| (&*one.project, &*one.user, one.files)).collect();
        assert_eq!(rows, [("def-x", "user01", 2), ("def-x", "user02", 381_816), ("rrg-x", "user01", 7)]);
        assert_eq!(found[0].used_bytes, 0);
        assert_eq!(found[1].used_bytes >> 30, 36_804);
        assert_eq!(found[2].used_bytes, 3 << 29);
    }

    #[test]
    fn the_demo_prints_the_same() {
        let found = parse_per_user(DEMO);
        assert!(found.iter().any(|one| one.project == "def-smith" && one.user == "asmith"), "{found:?}");
        assert!(found.iter().all(|one| one.user != "Total" && one.user != "User"));
    }

    #[test]
    fn nothing_without_a_block() {
        assert_eq!(parse_per_user("user01 2 0.00 GiB On disk\nUsage: diskusage_report [--home]\n"), []);
        assert_eq!(parse_per_user("Breakdown for project \nuser01 2 0.00 GiB On disk\n"), []);
        let tape = "Breakdown for project a\nu 2 1.00 GiB On tape\nv 1 1.00 GiB\nw -1 1 GiB On disk\n";
        assert_eq!(parse_per_user(tape).len(), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,200}|[a-z0-9. GiB\n]{0,80}") {
            let _ = parse_per_user(&text);
            let found = parse_per_user(&format!("Breakdown for project p\n{text}"));
            prop_assert!(found.iter().all(|one| !one.user.chars().any(char::is_control)));
        }
    }
}
