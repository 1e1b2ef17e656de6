//! The activity log: everyone reads their own, administrators read, filter and export all of it.

use portolan::clock::UnixTime;
use portolan::store::activity::{NewActivityEntry, add};

use crate::support::{Client, TestApp};

/// The sentences on a page of the log, newest first.
async fn sentences(viewer: &Client, path: &str) -> Vec<String> {
    viewer.get(path).await.select_all("tbody .cell-title")
}

/// Writes entries of which the subject is counted up.
async fn write(portal: &TestApp, count: usize, at: UnixTime) {
    let mut tx = portal.app.store.write().await.unwrap();
    for number in 1..=count {
        let entry = NewActivityEntry {
            actor: None,
            actor_name: "command line",
            action: "cluster.added",
            person: None,
            subject: &format!("entry-{number}-"),
            detail: "",
            address: "",
        };
        add(&mut tx, &entry, at).await.unwrap();
    }
    portolan::store::commit(tx).await.unwrap();
}

#[tokio::test]
async fn people_see_their_own_actions_and_actions_on_them() {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    let zoe = portal.member(&admin, "zoe").await;
    let id = portal.person_id("bob").await;
    zoe.post("/account/name", &[("display_name", "Secret Zoe")]).await;
    bob.post("/account/name", &[("display_name", "Bob")]).await;
    admin.post(&format!("/people/{id}/reset-link"), &[]).await;
    portal.visitor().sign_in("bob", "not the right password").await;

    let expected = ["Failed to sign in", "Created a password reset link", "Changed the display name", "Joined a group"];
    assert_eq!(sentences(&bob, "/account/activity").await, expected);
    let page = bob.get("/account/activity").await;
    let who = page.select_all("td[data-label=Who]");
    assert_eq!(who[1..], ["ada", "You", "You"], "who did it is told");
    assert!(!page.text().contains("zoe") && !page.text().contains("Secret"));
    for trick in ["?text=zoe", "?action=profile.name", "?about=1", "?person=3", "?before=-1"] {
        let path = format!("/account/activity{trick}");
        assert!(!bob.get(&path).await.text().to_lowercase().contains("zoe"), "{trick}");
    }
}

#[tokio::test]
async fn only_administrators_see_the_whole_log() {
    let (_portal, admin, bob) = TestApp::with_member("bob").await;
    for path in ["/activity", "/activity.csv", "/activity?text=x", "/activity?before=x"] {
        let page = bob.get(path).await;
        assert!([400, 403].contains(&page.status), "{path}: {}", page.status);
        assert!(!page.text().contains("Set up the portal"));
    }
    let all = sentences(&admin, "/activity").await;
    assert_eq!(all, ["Joined a group", "Created an invitation", "Created a group", "Set up the portal"]);
}

#[tokio::test]
async fn log_is_filtered_by_action_and_text() {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    write(&portal, 3, portal.clock.now()).await;
    bob.post("/account/name", &[("display_name", "100% _Bob_")]).await;
    for (query, count) in [
        ("action=invitation.used", 1),
        ("action=cluster.added", 3),
        ("action=cluster.added&text=ENTRY-2", 1),
        ("action=no.such.thing", 0),
        ("action='%20OR%201=1", 0),
        ("text=bob", 2),
        ("text=BOB", 2),
        ("text=100%25", 1),
        ("text=%25", 1),
        ("text=_bob_", 1),
        ("text=smith+lab", 3),
        ("text=127.0.0.1", 5),
        ("text=no-such-text", 0),
        ("text=%00", 0),
        ("text=%27%3B+DROP+TABLE+activity%3B--", 0),
        ("", 8),
    ] {
        assert_eq!(sentences(&admin, &format!("/activity?{query}")).await.len(), count, "{query}");
    }
    let page = admin.get("/activity?text=bob&action=profile.name").await;
    assert_eq!(page.attribute("input[name=text]", "value"), "bob", "the filter stays visible");
    assert_eq!(page.attribute("option[selected]", "value"), "profile.name");
    for bad in ["before=x", "before=99999999999999999999"] {
        assert_eq!(admin.get(&format!("/activity?{bad}")).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn long_logs_are_read_page_by_page() {
    let (portal, admin) = TestApp::with_admin().await;
    write(&portal, 120, portal.clock.now()).await;
    let mut seen = Vec::new();
    let mut path = "/activity?action=cluster.added&text=entry".to_owned();
    let mut sizes = Vec::new();
    for _ in 0..3 {
        let page = admin.get(&path).await;
        let subjects = page.select_all("td[data-label=Item]");
        sizes.push(subjects.len());
        seen.extend(subjects);
        if sizes.len() < 3 {
            path = page.attribute("a[rel=next]", "href");
        } else {
            assert!(page.select_all("a[rel=next]").is_empty(), "nothing is older");
        }
    }
    assert_eq!(sizes, [50, 50, 20]);
    let expected: Vec<String> = (1..=120).rev().map(|n| format!("entry-{n}-")).collect();
    assert_eq!(seen, expected, "each once, newest first");
}

/// A name must not become a formula in the spreadsheet of whoever reads the export.
#[tokio::test]
async fn the_export_is_safe_to_open_and_recorded() {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    for name in ["=HYPERLINK(\"http://evil.org\")", "+1", "-1", "@SUM(A1)", "a,\"b\""] {
        assert_eq!(bob.post("/account/name", &[("display_name", name)]).await.status, 303);
    }
    let page = admin.get("/activity.csv?action=profile.name").await;
    assert_eq!(page.header("content-type"), "text/csv; charset=utf-8");
    assert!(page.header("content-disposition").starts_with("attachment;"));
    assert_eq!(page.header("cache-control"), "private, no-store");
    let lines: Vec<&str> = page.text().lines().collect();
    assert_eq!(lines[0], "time,who,action,subject,detail,address,event");
    let subjects =
        ["\"a,\"\"b\"\"\"", "\"'@SUM(A1)\"", "\"'-1\"", "\"'+1\"", "\"'=HYPERLINK(\"\"http://evil.org\"\")\""];
    for (line, subject) in lines[1..].iter().zip(subjects) {
        let start = "\"2026-11-16T09:12:00Z\",\"bob\",\"profile.name\",";
        assert_eq!(*line, format!("{start}{subject},\"\",\"127.0.0.1\",\"Changed the display name\""));
    }
    assert_eq!(lines.len(), 6);
    let page = admin.get("/activity?action=activity.exported").await;
    assert!(page.select_text("tbody tr").contains("5 entries"));
    write(&portal, 120, portal.clock.now()).await;
    let page = admin.get("/activity.csv?action=cluster.added").await;
    assert_eq!(page.text().lines().count(), 121, "the whole of it, not a page");
}

#[tokio::test]
async fn old_entries_are_deleted() {
    let portal = TestApp::start_with(|config| config.activity.keep_days = 30).await;
    let day = 86_400;
    write(&portal, 1, portal.clock.now().plus(-30 * day - 1)).await;
    write(&portal, 2, portal.clock.now().plus(-30 * day)).await;
    let admin = portal.set_up("ada").await;
    portolan::housekeeping::sweep(&portal.app, &portal.app.notifications).await;
    assert_eq!(sentences(&admin, "/activity?action=cluster.added").await.len(), 2);
    assert_eq!(sentences(&admin, "/activity").await.len(), 3);
}

#[tokio::test]
async fn log_is_filtered_by_date() {
    let (portal, admin) = TestApp::with_admin().await;
    let today = portal.clock.now();
    write(&portal, 3, today.plus(-2 * 86_400)).await;
    write(&portal, 1, today).await;
    for (dates, count) in [
        ("", 4),
        ("from=2026-11-15", 1),
        ("from=2026-11-14", 4),
        ("to=2026-11-15", 3),
        ("to=2026-11-13", 0),
        ("from=2026-11-14&to=2026-11-14", 3),
        ("from=2026-11-15&to=2026-11-15", 0),
    ] {
        let query = format!("action=cluster.added&{dates}");
        assert_eq!(sentences(&admin, &format!("/activity?{query}")).await.len(), count, "{dates}");
        let export = admin.get(&format!("/activity.csv?{query}")).await;
        assert_eq!(export.text().lines().count(), count + 1, "{dates}");
    }
    let page = admin.get("/activity?from=2026-11-14&to=2026-11-15").await;
    assert_eq!(page.attribute("input[name=from]", "value"), "2026-11-14", "the filter stays visible");
    assert_eq!(page.select_all("td[data-label=Time]")[0], "14 Nov 2026, 09:12 UTC");
    assert!(page.select_all("td time[data-relative]").is_empty(), "no script makes it relative");
    let all = admin.get("/activity").await;
    assert!(!all.select_all("td time[data-relative]").is_empty());
    assert!(page.attribute("a[href^='/activity.csv']", "href").contains("to=2026-11-15"), "and is exported");
    for bad in ["from=yesterday", "from=2026-11-16&to=2026-11-15"] {
        let page = admin.get(&format!("/activity?{bad}")).await;
        assert_eq!((page.status, page.select_all("tbody tr").len()), (422, 0), "{bad}");
        assert!(page.select_text(".alert").contains("Check the dates"), "{bad}");
        assert_eq!(admin.get(&format!("/activity.csv?{bad}")).await.status, 400, "{bad}");
    }
}

/// Whatever is done to a cluster, the log calls it by the name that people see.
#[tokio::test]
async fn each_cluster_has_one_name_in_the_log() {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    portal.add_cluster("key").await;
    bob.name_user("key", "bob").await;
    bob.post("/clusters/key/disconnect", &[]).await;
    bob.post("/clusters/key/forget", &[]).await;
    admin.post("/clusters/key/retire", &[]).await;
    for action in ["cluster.added", "line.user", "line.disconnected", "line.forgotten", "cluster.retired"] {
        let page = admin.get(&format!("/activity?action={action}")).await;
        assert_eq!(page.select_all("td[data-label=Item]"), ["Harbour key"], "{action}");
    }
}
