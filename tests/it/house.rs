//! The house's rules that a compiler does not check: directions between rooms, and what docs must name.

use std::path::{Path, PathBuf};

use crate::support::cluster::root;

/// All files below a folder with this ending.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "no {ending} below {folder}");
    found
}

/// The room of a source file: the first folder below `src`, or the file's own name.
fn room(path: &Path) -> String {
    let inside = path.strip_prefix(root().join("src")).unwrap();
    inside
        .components()
        .next()
        .unwrap()
        .as_os_str()
        .to_string_lossy()
        .trim_end_matches(".rs")
        .to_owned()
}

#[test]
fn crates_stay_in_their_rooms() {
    let rules = [
        ("sqlx::", "store"),
        ("axum::", "web"),
        ("axum_extra::", "web"),
        ("askama::", "web"),
        ("openssh::", "ssh"),
        ("openssh_mux_client::", "ssh"),
        ("russh_sftp::", "ssh"),
        ("minijinja::", "recipes"),
    ];
    for path in files("src", ".rs") {
        let text = std::fs::read_to_string(&path).unwrap();
        for (word, home) in rules {
            let outside = text.contains(word) && room(&path) != home;
            assert!(!outside, "{} names {word}, which belongs to src/{home}", path.display());
        }
    }
}

/// Only the verbs of `cluster` reach a cluster, so that everything is bounded, counted and allowed there.
#[test]
fn remote_commands_are_made_in_one_room() {
    for path in files("src", ".rs") {
        let text = std::fs::read_to_string(&path).unwrap();
        let outside =
            text.contains("RemoteCommand") && !["ssh", "cluster"].contains(&room(&path).as_str());
        assert!(!outside, "{} makes a remote command", path.display());
    }
}

/// Who may use whom. What is not listed is not allowed.
#[test]
fn nothing_points_back() {
    /// Pure, and used by all rooms.
    const EVERYONE: &[&str] = &["format", "text"];
    const SHARED: &[&str] = &["clock", "domain", "entropy", "config"];
    let allowed: &[(&str, &[&str])] = &[
        ("clock", &[]),
        ("text", &[]),
        ("format", &["clock"]),
        ("domain", &[]),
        ("entropy", &[]),
        ("config", &[]),
        ("vault", &["entropy"]),
        ("store", SHARED),
        ("ssh", SHARED),
        ("slurm", &["clock"]),
        (
            "cluster",
            &[
                "auth", "clock", "core", "domain", "entropy", "recipes", "sites", "slurm", "ssh",
                "store",
            ],
        ),
        ("sites", &["domain"]),
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
                "logs",
                "http_client",
                "recipes",
                "sites",
                "slurm",
                "ssh",
                "store",
                "vault",
            ],
        ),
        ("logs", &[]),
        (
            "dashboards",
            &[
                "auth", "clock", "cluster", "core", "domain", "entropy", "jobs", "proxy",
                "recipes", "sites", "slurm", "ssh", "store",
            ],
        ),
        (
            "usage",
            &[
                "auth", "clock", "cluster", "core", "domain", "explain", "jobs", "sites", "slurm",
                "ssh", "store",
            ],
        ),
        ("recipes", &["sites", "slurm"]),
        ("explain", &["clock", "logs", "recipes", "sites", "slurm"]),
        ("auth", &["clock", "domain", "entropy", "config", "store", "vault"]),
        ("error", &["auth", "store"]),
        ("telemetry", &["config"]),
        ("probe", &["clock", "vault"]),
        ("http_client", &[]),
        ("proxy", &[]),
        ("dashboards", &["proxy"]),
        ("core", &["auth", "clock", "config", "store", "vault"]),
        ("health", &["clock", "core", "store"]),
        ("housekeeping", &["auth", "clock", "core", "jobs", "store"]),
        (
            "web",
            &[
                "app",
                "auth",
                "dashboards",
                "clock",
                "cluster",
                "config",
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
                "dashboards",
                "clock",
                "cluster",
                "config",
                "core",
                "jobs",
                "recipes",
                "sites",
                "store",
                "usage",
                "vault",
                "telemetry",
                "housekeeping",
            ],
        ),
    ];
    for path in files("src", ".rs") {
        let from = room(&path);
        let Some((_, may)) = allowed.iter().find(|(name, _)| *name == from) else {
            assert!(
                ["cli", "main", "lib"].contains(&from.as_str()),
                "src/{from} is not on the map: add it here"
            );
            continue;
        };
        let text = std::fs::read_to_string(&path).unwrap();
        for part in text.split("crate::").skip(1) {
            let to: String =
                part.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            let fine = to.is_empty()
                || to == from
                || EVERYONE.contains(&to.as_str())
                || may.contains(&to.as_str());
            assert!(fine, "{} uses crate::{to}; src/{from} may use {may:?}", path.display());
        }
    }
}

#[test]
fn templates_hold_no_script_or_style() {
    for path in files("templates", ".html") {
        let text = std::fs::read_to_string(&path).unwrap();
        for forbidden in
            ["style=", "onclick=", "hx-on", "javascript:", "|safe", "<style", "http://", "https://"]
        {
            assert!(!text.contains(forbidden), "{} holds {forbidden}", path.display());
        }
        for tag in text.split("<script").skip(1) {
            assert!(
                tag.contains(" src=") && tag.contains("></script>"),
                "{} has an inline script",
                path.display()
            );
        }
    }
}

#[test]
fn every_setting_is_documented() {
    let admin = std::fs::read_to_string(root().join("docs/ADMIN.md")).unwrap();
    for key in portolan::config::SETTING_KEYS {
        assert!(
            admin.contains(&format!("`{}`", key.name)),
            "docs/ADMIN.md does not name {}",
            key.name
        );
        assert!(
            admin.contains(&key.env_variable()),
            "docs/ADMIN.md does not name {}",
            key.env_variable()
        );
    }
}

#[test]
fn the_map_names_every_room() {
    let map = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    for path in files("src", ".rs") {
        let room = room(&path);
        assert!(map.contains(&room), "docs/ARCHITECTURE.md does not name src/{room}");
    }
}

#[test]
fn files_stay_short() {
    for path in files("src", ".rs") {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).count();
        assert!(lines <= 400, "{} has {lines} lines: split it", path.display());
    }
}
