//! The one table of arrows, and what is wrong with the arrows that are found.

use std::collections::{BTreeMap, BTreeSet};

/// Who may use whom: a room, and what stands below it. Each room is one row; a room only uses rooms of rows above its
/// own, so a cycle has no place here.
pub const ARROWS: &[(&str, &[&str])] = &[
    ("entropy", &[]),
    ("clock", &[]),
    ("domain", &[]),
    ("config", &[]),
    ("logs", &[]),
    ("proxy", &[]),
    ("http_client", &[]),
    ("sites", &["domain"]),
    ("slurm", &["clock"]),
    ("vault", &["entropy"]),
    ("telemetry", &["config"]),
    ("probe", &["clock", "vault"]),
    ("store", &["clock", "domain"]),
    ("ssh", &["clock", "domain", "entropy"]),
    ("recipes", &["sites", "slurm"]),
    ("explain", &["clock", "logs", "recipes", "sites", "slurm"]),
    ("auth", &["clock", "config", "domain", "entropy", "store", "vault"]),
    ("error", &["auth", "store"]),
    ("cluster", &["auth", "clock", "domain", "entropy", "sites", "slurm", "ssh", "store"]),
    (
        "jobs",
        &[
            "auth",
            "clock",
            "cluster",
            "config",
            "domain",
            "entropy",
            "explain",
            "http_client",
            "logs",
            "recipes",
            "sites",
            "slurm",
            "ssh",
            "store",
            "vault",
        ],
    ),
    (
        "dashboards",
        &[
            "auth", "clock", "cluster", "domain", "entropy", "jobs", "proxy", "recipes", "sites",
            "slurm", "ssh", "store",
        ],
    ),
    (
        "usage",
        &[
            "auth", "clock", "cluster", "config", "domain", "explain", "jobs", "sites", "slurm",
            "ssh", "store",
        ],
    ),
    ("health", &["app", "clock", "store"]),
    ("housekeeping", &["app", "auth", "clock", "store"]),
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
            "usage",
            "vault",
        ],
    ),
    (
        "app",
        &[
            "auth",
            "clock",
            "cluster",
            "config",
            "dashboards",
            "entropy",
            "housekeeping",
            "jobs",
            "recipes",
            "sites",
            "store",
            "telemetry",
            "usage",
            "vault",
            "web",
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
            "health",
            "http_client",
            "probe",
            "sites",
            "ssh",
            "store",
            "telemetry",
            "vault",
        ],
    ),
    ("main", &["cli", "ssh"]),
];

/// Arrows that still lead back: `App` holds what pages need. Not one may be added, and each goes when its arrow is gone.
pub const TEMPORARY_BACK_ARROWS: &[(&str, &str)] =
    &[("web", "app"), ("health", "app"), ("housekeeping", "app")];

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
