//! The one table of arrows, and what is wrong with the arrows that are found.

use std::collections::{BTreeMap, BTreeSet};

/// Who may use whom: a room, and what stands below it. Each room is one row; a room only uses rooms of rows above its
/// own, so a cycle has no place here.
pub const ARROWS: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("config", &[]),
    ("entropy", &[]),
    ("http_client", &[]),
    ("proxy", &[]),
    ("text", &[]),
    ("domain", &["text"]),
    ("format", &["clock"]),
    ("logs", &["text"]),
    ("telemetry", &["config"]),
    ("vault", &["entropy"]),
    ("probe", &["clock", "vault"]),
    ("sites", &["domain", "text"]),
    ("slurm", &["clock", "text"]),
    ("store", &["clock", "domain"]),
    ("recipes", &["format", "sites", "slurm", "text"]),
    ("ssh", &["clock", "domain", "entropy", "text"]),
    ("auth", &["clock", "config", "domain", "entropy", "store", "vault"]),
    ("error", &["auth", "store"]),
    ("core", &["auth", "clock", "config", "store", "vault"]),
    ("health", &["clock", "core", "store"]),
    ("explain", &["clock", "format", "logs", "recipes", "sites", "slurm", "text"]),
    ("cluster", &["auth", "clock", "core", "domain", "entropy", "sites", "slurm", "ssh", "store", "text"]),
    (
        "jobs",
        &[
            "auth",
            "clock",
            "cluster",
            "config",
            "core",
            "domain",
            "entropy",
            "explain",
            "format",
            "http_client",
            "logs",
            "recipes",
            "sites",
            "slurm",
            "ssh",
            "store",
            "text",
            "vault",
        ],
    ),
    (
        "files",
        &[
            "auth",
            "clock",
            "cluster",
            "core",
            "domain",
            "entropy",
            "format",
            "http_client",
            "jobs",
            "logs",
            "sites",
            "ssh",
            "store",
            "text",
        ],
    ),
    ("terminals", &["auth", "clock", "cluster", "core", "domain", "slurm", "ssh", "store"]),
    ("housekeeping", &["auth", "clock", "core", "jobs", "store"]),
    (
        "usage",
        &[
            "auth", "clock", "cluster", "core", "domain", "explain", "format", "jobs", "sites", "slurm", "ssh",
            "store", "text",
        ],
    ),
    (
        "dashboards",
        &[
            "auth", "clock", "cluster", "core", "domain", "entropy", "jobs", "proxy", "recipes", "sites", "slurm",
            "ssh", "store", "text",
        ],
    ),
    (
        "app",
        &[
            "clock",
            "cluster",
            "config",
            "core",
            "dashboards",
            "files",
            "housekeeping",
            "jobs",
            "recipes",
            "sites",
            "store",
            "telemetry",
            "terminals",
            "usage",
            "vault",
        ],
    ),
    (
        "web",
        &[
            "app",
            "auth",
            "clock",
            "cluster",
            "config",
            "dashboards",
            "domain",
            "entropy",
            "error",
            "explain",
            "files",
            "format",
            "health",
            "jobs",
            "logs",
            "probe",
            "proxy",
            "recipes",
            "sites",
            "slurm",
            "ssh",
            "store",
            "terminals",
            "text",
            "usage",
            "vault",
        ],
    ),
    (
        "cli",
        &[
            "app",
            "auth",
            "clock",
            "cluster",
            "config",
            "domain",
            "format",
            "health",
            "http_client",
            "probe",
            "sites",
            "ssh",
            "store",
            "telemetry",
            "vault",
            "web",
        ],
    ),
    ("main", &["cli", "ssh"]),
];

/// Arrow → the first place where it is found, as `file:line`.
pub type FoundArrows = BTreeMap<(String, String), String>;
/// A row of the table.
pub type Row<'a> = (&'a str, &'a [&'a str]);

/// Everything by which the arrows that are found differ from the table.
pub fn differences(found: &FoundArrows, table: &[Row<'_>]) -> Vec<String> {
    let mut wrong = Vec::new();
    for ((from, to), place) in found {
        match table.iter().find(|(room, _)| room == from) {
            None => wrong.push(format!("{place}: src/{from} has no row in the table of arrows")),
            Some(_) if to == "*" => {
                wrong.push(format!("{place}: imports the crate's root, which hides the arrows"));
            }
            Some((_, allowed)) if !allowed.contains(&to.as_str()) => {
                wrong.push(format!("{place}: {from} → {to} is not in the table of arrows"));
            }
            Some(_) => {}
        }
    }
    let mut rows = BTreeSet::new();
    for (from, allowed) in table {
        if !rows.insert(from) {
            wrong.push(format!("{from} has two rows"));
        }
        let mut known = BTreeSet::new();
        for to in *allowed {
            if !known.insert(to) {
                wrong.push(format!("{from} → {to} stands twice in the table"));
            }
            if !found.contains_key(&((*from).to_owned(), (*to).to_owned())) {
                wrong.push(format!("{from} → {to} is in the table, but nobody needs it"));
            }
        }
    }
    wrong
}

/// A way from a room back to itself, if there is one.
pub fn cycle<'a>(arrows: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<Vec<String>> {
    let mut uses: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in arrows {
        uses.entry(from).or_default().push(to);
    }
    let mut done = BTreeSet::new();
    uses.keys().find_map(|room| cycle_from(room, &uses, &mut Vec::new(), &mut done))
}

fn cycle_from<'a>(
    room: &'a str,
    uses: &BTreeMap<&'a str, Vec<&'a str>>,
    way: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<String>> {
    if let Some(start) = way.iter().position(|passed| *passed == room) {
        return Some(way[start..].iter().chain([&room]).map(ToString::to_string).collect());
    }
    if done.contains(room) {
        return None;
    }
    way.push(room);
    for next in uses.get(room).into_iter().flatten() {
        if let Some(found) = cycle_from(next, uses, way, done) {
            return Some(found);
        }
    }
    way.pop();
    done.insert(room);
    None
}
