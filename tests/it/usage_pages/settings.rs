//! Accounts and allocations of a group: what may be set, by whom, and that bad input changes nothing.

use portolan::store;

use super::{World, world};
use crate::support::Page;
use crate::support::app::START;

impl World {
    /// Everything that the forms can change.
    async fn set(&self) -> String {
        let group = portolan::domain::GroupId(self.lab);
        let mut db = self.portal.app.store.read().await.unwrap();
        let accounts = store::allocations::list_accounts(&mut db, group).await.unwrap();
        let granted = store::allocations::list_for_group(&mut db, group).await.unwrap();
        drop(db);
        format!("{accounts:?}{granted:?}{}", self.portal.snapshot().await)
    }
}

const GOOD: [(&str, &str); 5] = [
    ("account", "key/def-one"),
    ("unit", "core-hours"),
    ("amount", "12 000"),
    ("begins", "2026-04-01"),
    ("ends", "2027-03-31"),
];

fn with<'a>(key: &str, value: &'a str) -> Vec<(&'a str, &'a str)> {
    GOOD.into_iter().map(|(known, old)| (known, if known == key { value } else { old })).collect()
}

#[tokio::test]
async fn bad_input_changes_nothing() {
    let world = world().await;
    world.choose(&["key/def-one"]).await;
    let before = world.set().await;
    let long = "9".repeat(400);
    for (key, values) in [
        ("account", vec!["", "key/def-two", "key/nobody", "x/def-one", "def-one", "key/<b>"]),
        ("unit", vec!["", "site-hours", "site-years", "bananas"]),
        (
            "amount",
            vec![
                "",
                "0",
                "-1",
                "NaN",
                "inf",
                "1e5",
                "1,00",
                "1.250,50",
                "12.000,00",
                "1.0,000",
                "12.000",
                "1.250.000",
                "0x10",
                long.as_str(),
            ],
        ),
        ("begins", vec!["", "x", "2026-02-30", "0001-01-01", "9999-12-31", "2028-01-01"]),
        ("ends", vec!["", "2026-03-31", "2099-01-01", "<b>"]),
    ] {
        for value in values {
            let page = world.pi.post(&world.url("allocations"), &with(key, value)).await;
            assert_eq!(page.status, 422, "{key}={value}: {}", page.text());
            assert!(page.text().contains("There is a problem"), "{key}={value}");
            assert!(!page.text().contains("<b>"));
        }
    }
    for account in ["key/def-three", "nowhere/def-one", "def-one", "", "key/a;b", "key/"] {
        let form = [("account", "key/def-one"), ("account", account)];
        let page = world.pi.post(&world.url("accounts"), &form).await;
        assert_eq!(page.status, 422, "{account}: {}", page.text());
    }
    assert_eq!(world.pi.post(&world.url("allocations/99/remove"), &[]).await.status, 404);
    assert_eq!(world.pi.post(&world.url("allocations/99"), &GOOD).await.status, 404);
    assert_eq!(world.pi.get(&world.url("accounts?change=99")).await.status, 404);
    assert_eq!(world.set().await, before);
}

#[tokio::test]
async fn changed_settings_are_shown_and_recorded() {
    let world = world().await;
    world.choose(&["key/def-one", "key/def-two"]).await;
    let page = world.pi.post_and_follow(&world.url("allocations"), &GOOD).await;
    assert!(page.text().contains("12,000 core hours"), "{}", page.text());
    assert!(page.text().contains("1 Apr 2026 to 31 Mar 2027"));
    let used = world.member.get(&world.url("usage")).await;
    assert!(used.text().contains("12,000 core hours granted; usage not loaded yet"), "{}", used.text());
    assert!(used.text().contains("none of them in this period"), "{}", used.text());
    // The same once more would be charged with the same use.
    let twice = world.pi.post(&world.url("allocations"), &with("amount", "500")).await;
    assert_eq!(twice.status, 422);
    assert!(twice.text().contains("Edit that one instead"), "{}", twice.text());
    let remove = page.attribute("form[action$='/remove']", "action");
    for who in [&world.member, &world.other, &world.admin] {
        assert_eq!(who.post(&remove, &[]).await.status, 403);
        assert_eq!(who.post(&world.url("allocations"), &GOOD).await.status, 403);
        assert_eq!(who.post(&world.url("accounts"), &[]).await.status, 403);
    }
    let jones = world.portal.group(&world.admin, "Jones Lab").await;
    let elsewhere = remove.replace(&world.url(""), &format!("/groups/{jones}/"));
    assert_eq!(world.other.post(&elsewhere, &[]).await.status, 404, "of another group");
    assert_eq!(world.pi.post(&remove, &[]).await.status, 303);
    assert_eq!(world.pi.post(&remove, &[]).await.status, 404);
    let log = world.admin.get("/activity").await;
    for words in [
        "Changed a group&#39;s Slurm accounts",
        "def-one on Harbour key, def-two on Harbour key",
        "Added an allocation to a group",
        "def-one: 12,000 core hours, 1 Apr 2026 to 31 Mar 2027",
        "Removed an allocation from a group",
    ] {
        assert!(log.text().contains(words), "{words}");
    }
}

#[tokio::test]
async fn two_pis_do_not_overwrite_each_other() {
    let world = world().await;
    let form = |chosen: &'static [&'static str], was: &'static [&'static str]| {
        let chosen = chosen.iter().map(|one| ("account", *one));
        chosen.chain(was.iter().map(|one| ("was", *one))).collect::<Vec<_>>()
    };
    let save = async |form: Vec<(&'static str, &'static str)>| {
        let page = world.pi.post(&world.url("accounts"), &form).await;
        assert_eq!(page.status, 303, "{}", page.text());
        world.pi.get(&world.url("accounts")).await.attributes("input[name=was]", "value")
    };
    assert_eq!(save(form(&["key/def-one"], &[])).await, ["key/def-one"]);
    // A second form was opened before the first was saved.
    let both = save(form(&["key/def-two"], &[])).await;
    assert_eq!(both, ["key/def-one", "key/def-two"]);
    // A third was opened when both were there, and is saved after the second account was taken away.
    assert_eq!(save(form(&["key/def-one"], &["key/def-one", "key/def-two"])).await, ["key/def-one"]);
    let late = form(&["key/def-one", "key/def-two"], &["key/def-one", "key/def-two"]);
    assert_eq!(save(late).await, ["key/def-one"], "what was not touched is not set again");
    assert!(save(form(&[], &["key/def-one", "key/gone"])).await.is_empty());
}

/// A letter brings another amount: what was typed is corrected, not typed again.
#[tokio::test]
async fn allocation_is_edited_in_place() {
    let world = world().await;
    world.choose(&["key/def-one"]).await;
    let page = world.pi.post_and_follow(&world.url("allocations"), &GOOD).await;
    let change = page.attribute("a[href*='?change=']", "href");
    let form = world.pi.get(&change).await;
    let path = form.attribute("form[action*='/allocations/']:has(#f-amount)", "action");
    for (field, value) in [("amount", "12000"), ("begins", "2026-04-01"), ("ends", "2027-03-31")] {
        assert_eq!(form.attribute(&format!("#f-{field}"), "value"), value);
    }
    for (field, value) in [("account", "key/def-one"), ("unit", "core-hours")] {
        let chosen = form.attribute(&format!("#f-{field} option[selected]"), "value");
        assert_eq!(chosen, value);
    }
    // Whoever was told that most of it is used has to be told again once most of the new amount is.
    let (group, about) = (portolan::domain::GroupId(world.lab), path.rsplit('/').next().unwrap());
    let (pia, about) = (world.portal.person_id("pia").await, format!("quota:{about}:80"));
    let pia = portolan::domain::PersonId(pia);
    let mut tx = world.portal.app.store.write().await.unwrap();
    store::usage_alerts::mark_notified(&mut tx, pia, group, &about, START).await.unwrap();
    store::commit(tx).await.unwrap();

    // Saved as it was: nothing is changed, told again or recorded.
    assert_eq!(world.pi.post(&path, &GOOD).await.status, 303);
    let was_told = async || {
        let mut db = world.portal.app.store.read().await.unwrap();
        store::usage_alerts::was_notified(&mut db, pia, group, &about).await.unwrap()
    };
    assert!(was_told().await);
    assert!(!world.admin.get("/activity").await.text().contains(" changed to "));

    let before = world.set().await;
    for (key, value) in [("amount", "much"), ("account", "key/def-two"), ("ends", "2026-03-31")] {
        let page = world.pi.post(&path, &with(key, value)).await;
        assert_eq!(page.status, 422, "{key}={value}");
        assert_eq!(page.attribute("form:has(#f-amount)", "action"), path, "it is still that one");
    }
    for who in [&world.member, &world.other, &world.admin] {
        assert_eq!(who.post(&path, &GOOD).await.status, 403);
        assert_eq!(who.get(&change).await.status, 403);
    }
    let jones = world.portal.group(&world.admin, "Jones Lab").await;
    let elsewhere = |path: &str| path.replace(&world.url(""), &format!("/groups/{jones}/"));
    assert_eq!(world.other.get(&elsewhere(&change)).await.status, 404, "of another group");
    let taken = world.other.post(&elsewhere(&path), &GOOD).await;
    assert!([404, 422].contains(&taken.status), "{}", taken.status);
    assert_eq!(world.set().await, before);

    let page = world.pi.post_and_follow(&path, &with("amount", "15000")).await;
    assert!(page.text().contains("Allocation saved."), "{}", page.text());
    assert!(page.text().contains("15,000 core hours") && !page.text().contains("12,000"));
    assert!(!was_told().await);
    let used = world.pi.get(&world.url("usage")).await;
    assert!(used.text().contains("15,000 core hours granted; usage not loaded yet"), "{}", used.text());
    let log = world.admin.get("/activity").await;
    let words = "def-one: 12,000 core hours, 1 Apr 2026 to 31 Mar 2027 changed to def-one: 15,000 core hours";
    assert!(log.text().contains(words), "{}", log.text());

    // Its account is no longer the group's: no other takes its place by chance.
    world.choose(&["key/def-two"]).await;
    let form = world.pi.get(&change).await;
    assert_eq!(form.attribute("#f-account option[selected]", "value"), "");
    assert_eq!(world.pi.post(&path, &with("account", "")).await.status, 422);
    world.choose(&[]).await;
    assert!(!world.pi.get(&world.url("accounts")).await.text().contains("?change="));
}

#[tokio::test]
async fn what_a_pi_sets_is_behind_one_tab() {
    let world = world().await;
    let tabs = |page: &Page| page.select_all("nav.tabs a");
    for (file, words) in [
        ("accounts", "Accounts and allocations"),
        ("user-names", "User names"),
        ("sharing", "Job sharing"),
        ("alerts", "Alerts"),
    ] {
        let page = world.pi.get(&world.url(file)).await;
        assert_eq!(tabs(&page), ["Usage", "Your priority", "Members", "Report", "Settings"], "{file}");
        assert_eq!(page.select_all("nav.tabs [aria-current]"), ["Settings"], "{file}");
        assert_eq!(page.select_all("nav.group-settings [aria-current]"), [words]);
        assert_eq!(page.attribute("nav.group-settings [aria-current]", "href"), world.url(file));
        assert_eq!(page.select_all("nav.group-settings a").len(), 4, "{file}");
    }
    let page = world.pi.get(&world.url("members")).await;
    assert_eq!(page.select_all("nav.tabs [aria-current]"), ["Members"]);
    assert!(page.select_all("nav.group-settings").is_empty());
    // Members set only whether they share their jobs.
    let page = world.member.get(&world.url("sharing")).await;
    assert_eq!(tabs(&page), ["Usage", "Your priority", "Members", "Job sharing"]);
    assert_eq!(page.select_all("nav.tabs [aria-current]"), ["Job sharing"]);
}
