//! The guard's own tests: small sources that it has to see through, or else it guards nothing.

use super::arrows::{FoundArrows, Row, cycle, differences};
use super::source::{SourceFacts, Target, read};
use super::{Place, repeated_types};

const ROOMS: &[&str] = &["auth", "cluster", "store", "web"];

fn facts(text: &str, module: &[&str]) -> SourceFacts {
    read(text, module, ROOMS).unwrap()
}

/// The rooms that a source in `src/web/pages.rs` leads to.
fn rooms_used(text: &str) -> Vec<String> {
    rooms_used_by(text, &["web", "pages"])
}

fn rooms_used_by(text: &str, module: &[&str]) -> Vec<String> {
    let mut rooms: Vec<String> = facts(text, module)
        .targets
        .into_iter()
        .filter_map(|(target, _)| match target {
            Target::Room(room) => Some(room),
            Target::Outside(_) => None,
        })
        .collect();
    rooms.dedup();
    rooms
}

#[test]
fn every_form_of_use_is_seen() {
    for text in [
        "use crate::store;",
        "use crate::store::users::User;",
        "use crate::store as tables;",
        "use crate::store::users as people;",
        "use crate::store::*;",
        "use crate::{store};",
        "use crate::{store as tables};",
        "use crate::{store::{users::{User, UserId}, self}};",
        "use {crate::store};",
        "use {std::fmt, crate::{store::users}};",
        "pub(crate) use crate::store::User;",
        "use super::super::store;",
        "use super::super::{store::User};",
        "use self::super::super::store::User;",
        "fn f() { use crate::store::User; }",
        "mod inner { use super::super::super::store::User; }",
        "mod inner { fn f() { super::super::super::store::load() } }",
        "use\n    crate\n    ::\n    store;",
        "use crate :: /* hidden */ store;",
    ] {
        assert_eq!(rooms_used(text), ["store"], "{text}");
    }
}

#[test]
fn paths_without_use_are_seen() {
    for text in [
        "fn f() { crate::store::load(); }",
        "fn f() -> crate::store::User { todo!() }",
        "fn f(_: &[Option<crate::store::User>]) {}",
        "struct S { user: crate::store::User }",
        "impl crate::store::Find for S {}",
        "impl<T: crate::store::Find> S<T> {}",
        "fn f() { <crate::store::User as Default>::default(); }",
        "fn f(u: U) { match u { crate::store::U::A => {} } }",
        "fn f() { crate::store::table!(); }",
        "#[crate::store::table] struct S;",
        "const N: usize = crate::store::N;",
    ] {
        assert_eq!(rooms_used(text), ["store"], "{text}");
    }
}

#[test]
fn macros_and_attributes_are_searched() {
    for text in [
        "fn f() { println!(\"{}\", crate::store::N); }",
        "fn f() { select! { x = crate::store::load() => {} } }",
        "fn f() { select! { x = (y as crate::store::N) => {} } }",
        "fn f() { select! { { use crate::{store::User as Person}; } } }",
        "fn f() { select! { { use crate::{store::*}; } } }",
        "macro_rules! m { () => { $crate::store::load() } }",
        "macro_rules! m { () => { super::super::store::load() } }",
        "#[derive(crate::store::Table)] struct S;",
        "#[serde(with = \"crate::store::seconds\")] struct S;",
        "struct S { #[serde(default = \"super::super::store::now\")] at: u8 }",
    ] {
        assert_eq!(rooms_used(text), ["store"], "{text}");
    }
}

#[test]
fn several_rooms_in_one_use_are_all_seen() {
    let text = "use crate::{auth::{self, roles::{Role, Right as R}}, cluster as c, store::*};";
    assert_eq!(rooms_used(text), ["auth", "cluster", "store"]);
}

#[test]
fn the_root_itself_is_not_imported() {
    for text in [
        "use crate::*;",
        "use crate as root;",
        "use crate::{self as root};",
        "use super::super::*;",
        "use super::super as root;",
        "extern crate self as root;",
        "fn f() { select! { { use crate::*; } } }",
    ] {
        assert_eq!(rooms_used(text), ["*"], "{text}");
    }
}

#[test]
fn what_is_no_path_is_no_arrow() {
    for text in [
        "// use crate::store;",
        "/// [`crate::store`]\nstruct S;",
        "const TEXT: &str = \"use crate::store;\";",
        "pub(crate) struct S; pub(super) fn f() {}",
        "fn f() { store::load(); }", // imported or a child: the `use` tells
        "use super::parts; use self::inner::A; impl S { fn f(self) { self.store() } }",
    ] {
        let rooms = rooms_used(text);
        assert!(!rooms.contains(&"store".to_owned()) && !rooms.contains(&"*".to_owned()), "{text}");
    }
}

#[test]
fn main_and_lib_name_rooms_without_crate() {
    assert_eq!(rooms_used_by("use portolan::store;", &[]), ["store"]);
    assert_eq!(rooms_used_by("fn main() { portolan::store::load() }", &[]), ["store"]);
    assert_eq!(rooms_used_by("pub use store::User;", &[]), ["store"]);
    assert_eq!(rooms_used_by("fn main() { let store = 1; print(store) }", &[]), [""; 0]);
}

#[test]
fn crates_are_seen_in_every_form() {
    for text in [
        "use sqlx;",
        "use sqlx::Row;",
        "use ::sqlx::Row;",
        "use {std::fmt, sqlx::{Row as R}};",
        "use sqlx as database;",
        "extern crate sqlx;",
        "fn f() { sqlx::query(\"\"); }",
        "fn f() { select! { x = sqlx::query(\"\") => {} } }",
        "#[derive(sqlx::FromRow)] struct S;",
        "struct S { #[sqlx(rename = \"x\")] y: u8 }",
    ] {
        let wanted = Target::Outside("sqlx".to_owned());
        assert!(facts(text, &["web"]).targets.iter().any(|(found, _)| *found == wanted), "{text}");
    }
    assert!(facts("fn f() { m!(RemoteCommand::new()) }", &[]).identifiers.contains("RemoteCommand"));
}

fn found(arrows: &[(&str, &str)]) -> FoundArrows {
    arrows.iter().map(|(from, to)| (((*from).to_owned(), (*to).to_owned()), format!("src/{from}.rs:1"))).collect()
}

#[test]
fn the_table_fits_exactly_or_fails() {
    let good = found(&[("web", "store"), ("web", "auth")]);
    let none: &[&str] = &[];
    assert_eq!(differences(&good, &[("web", &["auth", "store"]), ("store", none)]), none);
    let cases: [(&[Row<'_>], &str); 5] = [
        (&[("web", &["auth"])], "src/web.rs:1: web → store is not in the table of arrows"),
        (&[("store", none)], "src/web.rs:1: src/web has no row in the table of arrows"),
        (&[("web", &["auth", "store", "ssh"])], "web → ssh is in the table, but nobody needs it"),
        (&[("web", &["auth", "store", "auth"])], "web → auth stands twice in the table"),
        (&[("web", &["auth", "store"]), ("web", none)], "web has two rows"),
    ];
    for (table, complaint) in cases {
        let wrong = differences(&good, table);
        assert!(wrong.iter().any(|one| one == complaint), "{complaint}: {wrong:?}");
    }
    let glob = found(&[("web", "*")]);
    let wrong = differences(&glob, &[("web", none)]);
    assert_eq!(wrong, ["src/web.rs:1: imports the crate's root, which hides the arrows"]);
}

#[test]
fn a_cycle_is_found_and_named() {
    assert_eq!(cycle([("web", "store"), ("auth", "store"), ("web", "auth")]), None);
    let short = cycle([("app", "web"), ("web", "app"), ("web", "store")]);
    assert_eq!(short.unwrap(), ["app", "web", "app"]);
    let long = cycle([("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")]);
    assert_eq!(long.unwrap(), ["b", "c", "d", "b"]);
}

#[test]
fn a_type_name_that_occurs_twice_is_found() {
    let sources = [
        ("a.rs", "pub struct Job; pub struct Error;"),
        ("b.rs", "pub(crate) enum Job {} pub type Result = (); enum Hidden {}"),
        ("c.rs", "pub(in crate::c) trait Queue {} mod inner { pub type Queue = u8; }"),
        ("d.rs", "pub enum Error {} impl Iterator for X { type Item = u8; }"),
        ("e.rs", "type Result = (); impl Iterator for Y { type Item = u8; } enum Hidden {}"),
        ("f.rs", "struct Once; #[cfg(test)] mod tests { struct Once; }"),
        ("g.rs", "macro_rules! m { () => { pub struct Made; } }\npub union Made { a: u8 }"),
    ];
    let types = sources.iter().flat_map(|(file, text)| {
        let at = |line| Place { file: (*file).to_owned(), line };
        facts(text, &[]).types.into_iter().map(move |one| (one.name, at(one.line)))
    });
    assert_eq!(
        repeated_types(types),
        ["Hidden: b.rs:1, e.rs:1", "Job: a.rs:1, b.rs:1", "Made: g.rs:1, g.rs:2", "Queue: c.rs:1, c.rs:1",]
    );
}

#[test]
fn a_long_line_is_found() {
    let text = format!("short\n{}\n{}\n", "é".repeat(140), "x".repeat(141));
    assert_eq!(super::long_lines(&text), [3]);
}
