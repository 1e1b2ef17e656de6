//! Who has how much in the folders of projects, as `diskusage_report --per_user` prints it below its usual table.

use serde::{Deserialize, Serialize};

use super::quota::{Amount, Amounts, lines, one_line};

/// No more rows than this are kept.
const MOST_ROWS: usize = 1000;
/// Longest name of a project or a person.
const LONGEST_NAME: usize = 100;

/// What one person has in a project's folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UserPlace {
    /// The project: `def-x`.
    pub project: String,
    /// The person's name on the cluster.
    pub user: String,
    /// Space used. The program rounds: it is near to that.
    pub used_bytes: u64,
    /// Files there.
    pub files: u64,
}

/// Reads the answer: blocks that begin with `Breakdown for project def-x (Last update: …)`. What is on tape is left
/// out, and so are sums.
pub fn read(answer: &str) -> Vec<UserPlace> {
    let mut found = Vec::new();
    let mut project: Option<String> = None;
    for line in lines(answer) {
        if let Some(rest) = line.trim_start().strip_prefix("Breakdown for ") {
            project = project_of(rest);
        } else if let Some(project) = &project
            && found.len() < MOST_ROWS
        {
            found.extend(row(line, project));
        }
    }
    found
}

/// `project def-x (Last update: 2023-02-27 23:00:57)` → `def-x`.
fn project_of(text: &str) -> Option<String> {
    let name = text.strip_prefix("project ").unwrap_or(text).split_whitespace().next()?;
    let name = one_line(name, LONGEST_NAME);
    (!name.is_empty()).then_some(name)
}

/// `user01   2   0.00 GiB   On disk`.
fn row(line: &str, project: &str) -> Option<UserPlace> {
    let mut words = line.split_whitespace();
    let user = words.next().filter(|name| *name != "Total")?;
    let files = words.next()?.parse().ok()?;
    let size = format!("{} {}", words.next()?, words.next()?);
    let used_bytes = Amounts(&size).next().and_then(Amount::bytes)?;
    let on_disk = words.next_back().is_none_or(|word| word == "disk");
    let user = one_line(user, LONGEST_NAME);
    (on_disk && !user.is_empty()).then(|| UserPlace {
        project: project.to_owned(),
        user,
        used_bytes,
        files,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALLIANCE: &str = include_str!("../../tests/fixtures/sites/diskusage-per-user.txt");
    const DEMO: &str = include_str!("../../tests/fixtures/sites/diskusage-per-user-demo.txt");

    #[test]
    fn blocks_of_a_report() {
        let found = read(ALLIANCE);
        let rows: Vec<_> = found.iter().map(|one| (&*one.project, &*one.user, one.files)).collect();
        assert_eq!(
            rows,
            [("def-x", "user01", 2), ("def-x", "user02", 381_816), ("rrg-x", "user01", 7)]
        );
        assert_eq!(found[0].used_bytes, 0);
        assert_eq!(found[1].used_bytes >> 30, 36_804);
        assert_eq!(found[2].used_bytes, 3 << 29);
    }

    #[test]
    fn the_demo_prints_the_same() {
        let found = read(DEMO);
        assert!(
            found.iter().any(|one| one.project == "def-smith" && one.user == "asmith"),
            "{found:?}"
        );
        assert!(found.iter().all(|one| one.user != "Total" && one.user != "User"));
    }

    #[test]
    fn nothing_without_a_block() {
        assert_eq!(read("user01 2 0.00 GiB On disk\nUsage: diskusage_report [--home]\n"), []);
        assert_eq!(read("Breakdown for project \nuser01 2 0.00 GiB On disk\n"), []);
        let tape =
            "Breakdown for project a\nu 2 1.00 GiB On tape\nv 1 1.00 GiB\nw -1 1 GiB On disk\n";
        assert_eq!(read(tape).len(), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,200}|[a-z0-9. GiB\n]{0,80}") {
            let _ = read(&text);
            let found = read(&format!("Breakdown for project p\n{text}"));
            prop_assert!(found.iter().all(|one| !one.user.chars().any(char::is_control)));
        }
    }
}
