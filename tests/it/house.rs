//! The house's rules that a compiler does not check: directions between rooms, and what docs must name.

mod arrows;
mod self_test;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use self::arrows::FoundArrows;
use self::source::{SourceFacts, Target, TypeName};
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
    inside.components().next().unwrap().as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned()
}

/// A file of `src`, parsed.
struct Source {
    room: String,
    file: String,
    facts: SourceFacts,
}

/// Where something stands.
struct Place {
    file: String,
    line: usize,
}

impl Display for Place {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

/// All of `src`, parsed once for all tests.
static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
    let paths = files("src", ".rs");
    let rooms: BTreeSet<String> = paths.iter().map(|path| room(path)).collect();
    let rooms: Vec<&str> = rooms.iter().map(String::as_str).collect();
    let read = |path: &PathBuf| {
        let inside = path.strip_prefix(root().join("src")).unwrap().with_extension("");
        let module: Vec<&str> = inside.iter().map(|name| name.to_str().unwrap()).collect();
        let module = if matches!(module[..], ["main" | "lib"]) { &[] } else { &module[..] };
        let facts = source::read(&std::fs::read_to_string(path).unwrap(), module, &rooms)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Source { room: room(path), file: format!("src/{}.rs", inside.display()), facts }
    };
    paths.iter().map(read).collect()
});

/// Complains about all that is wrong at once.
#[track_caller]
fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn crates_stay_in_their_rooms() {
    let homes = [
        ("sqlx", "store"),
        ("axum", "web"),
        ("axum_extra", "web"),
        ("askama", "web"),
        ("openssh", "ssh"),
        ("openssh_mux_client", "ssh"),
        ("minijinja", "recipes"),
    ];
    let mut wrong = Vec::new();
    for source in SOURCES.iter() {
        for (target, line) in &source.facts.targets {
            let Target::Outside(name) = target else { continue };
            let home = homes.iter().find(|(guest, _)| guest == name);
            if let Some((_, home)) = home.filter(|(_, home)| *home != source.room) {
                wrong.push(format!("{}:{line} names {name}, which belongs to src/{home}", source.file));
            }
        }
    }
    assert_none(&wrong);
}

/// Only the verbs of `cluster` reach a cluster, so that everything is bounded, counted and allowed there.
#[test]
fn remote_commands_are_made_in_one_room() {
    let makes = |source: &Source| source.facts.identifiers.contains("RemoteCommand");
    let outside = |source: &Source| !["ssh", "cluster"].contains(&source.room.as_str());
    let wrong: Vec<String> = SOURCES
        .iter()
        .filter(|source| makes(source) && outside(source))
        .map(|source| format!("{} names RemoteCommand", source.file))
        .collect();
    assert_none(&wrong);
}

/// All arrows between rooms. `lib.rs` only lists them.
fn found_arrows() -> FoundArrows {
    let mut found = FoundArrows::new();
    for source in SOURCES.iter().filter(|source| source.room != "lib") {
        for (target, line) in &source.facts.targets {
            let Target::Room(to) = target else { continue };
            if *to != source.room {
                let arrow = (source.room.clone(), to.clone());
                found.entry(arrow).or_insert_with(|| format!("{}:{line}", source.file));
            }
        }
    }
    found
}

#[test]
fn rooms_use_each_other_as_the_table_says() {
    let found = found_arrows();
    assert_none(&arrows::differences(&found, arrows::ARROWS));
    for room in SOURCES.iter().map(|source| source.room.as_str()).filter(|room| *room != "lib") {
        let has_row = arrows::ARROWS.iter().any(|(from, _)| *from == room);
        assert!(has_row, "src/{room} has no row in the table of arrows");
    }
}

#[test]
fn rooms_do_not_use_each_other_in_a_circle() {
    let found = found_arrows();
    let pairs = found.keys().map(|(from, to)| (from.as_str(), to.as_str()));
    if let Some(rooms) = arrows::cycle(pairs) {
        let step = |pair: &[String]| {
            let place = &found[&(pair[0].clone(), pair[1].clone())];
            format!("{} → {} ({place})", pair[0], pair[1])
        };
        panic!("a cycle: {}", rooms.windows(2).map(step).collect::<Vec<_>>().join(", "));
    }
}

/// Each name that more than one type has, with all places.
fn repeated_types(types: impl IntoIterator<Item = (String, Place)>) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, place) in types {
        places.entry(name).or_default().push(place.to_string());
    }
    places.retain(|_, places| places.len() > 1);
    places.into_iter().map(|(name, places)| format!("{name}: {}", places.join(", "))).collect()
}

/// A name that is read alone says which type is meant.
#[test]
fn type_names_occur_once() {
    let types = SOURCES.iter().flat_map(|source| {
        let place = |one: &TypeName| Place { file: source.file.clone(), line: one.line };
        source.facts.types.iter().map(move |one| (one.name.clone(), place(one)))
    });
    assert_none(&repeated_types(types));
}

/// The numbers of the lines that are too long to compare side by side.
fn long_lines(text: &str) -> Vec<usize> {
    let is_long = |line: &str| line.chars().count() > 140;
    text.lines().zip(1..).filter(|(line, _)| is_long(line)).map(|(_, number)| number).collect()
}

#[test]
fn template_lines_stay_short() {
    let mut wrong = Vec::new();
    for path in files("templates", "") {
        let text = std::fs::read_to_string(&path).unwrap();
        let found = long_lines(&text);
        wrong.extend(found.iter().map(|line| format!("{}:{line}", path.display())));
    }
    assert_none(&wrong);
}

#[test]
fn templates_hold_no_inline_script_or_style() {
    for path in files("templates", ".html") {
        let text = std::fs::read_to_string(&path).unwrap();
        for forbidden in ["style=", "onclick=", "hx-on", "javascript:", "|safe", "<style", "http://", "https://"] {
            assert!(!text.contains(forbidden), "{} holds {forbidden}", path.display());
        }
        for tag in text.split("<script").skip(1) {
            assert!(tag.contains(" src=") && tag.contains("></script>"), "{} has an inline script", path.display());
        }
    }
}

#[test]
fn every_setting_is_documented() {
    let admin = std::fs::read_to_string(root().join("docs/ADMIN.md")).unwrap();
    for key in portolan::config::SETTING_KEYS {
        assert!(admin.contains(&format!("`{}`", key.name)), "docs/ADMIN.md does not name {}", key.name);
        assert!(admin.contains(&key.env_variable()), "docs/ADMIN.md does not name {}", key.env_variable());
    }
}

#[test]
fn architecture_doc_names_every_room() {
    let map = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    // `lib.rs` only lists the others.
    for room in SOURCES.iter().map(|source| &source.room).filter(|room| *room != "lib") {
        assert!(map.contains(room), "docs/ARCHITECTURE.md does not name src/{room}");
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
