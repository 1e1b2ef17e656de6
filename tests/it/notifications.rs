//! What people are told about their jobs: once, folded, to themselves only. On the real cluster where jobs matter.

use portolan::clock::UnixTime;
use portolan::domain::PersonId;
use portolan::store;
use portolan::store::jobs::StoredJobRow;
use portolan::store::notifications::NewJobNotification;

use crate::queue::{connected, submit, wait_for_list};
use crate::support::browser::Browser;
use crate::support::cluster::Cluster;
use crate::support::wait::{wait_for_value, wait_until};
use crate::support::{Client, PASSWORD, Page, TestApp};

/// A job of someone's in the records, and a notice of it.
pub struct Told<'a> {
    pub number: i64,
    pub task: i64,
    pub name: &'a str,
    pub kind: &'a str,
    pub state: &'a str,
}

/// Writes jobs with a notice of each, as a look at the cluster does, and rings.
pub async fn tell(portal: &TestApp, name: &str, slug: &str, all: &[Told<'_>]) {
    let person = PersonId(portal.person_id(name).await);
    let cluster = portal.cluster_id(slug).await;
    let now = portal.clock.now();
    let mut tx = portal.app.store.write().await.unwrap();
    for one in all {
        let row = StoredJobRow {
            person_id: person.0,
            cluster_id: cluster.0,
            number: one.number,
            task: one.task,
            raw: one.number,
            user: name.to_owned(),
            name: one.name.to_owned(),
            state: one.state.to_owned(),
            is_over: one.kind == "ended",
            end_at: (one.kind == "ended").then_some(now.0),
            ..StoredJobRow::default()
        };
        let job = store::jobs::save(&mut tx, &row).await.unwrap();
        let (kind, state) = (one.kind, one.state);
        let new = NewJobNotification { person, job, kind, state, restarts: 0, is_quiet: false };
        store::notifications::add(&mut tx, &new, now).await.unwrap();
    }
    store::commit(tx).await.unwrap();
    portal.app.notifications.notify(person);
}

/// Jobs that ended, one after the other.
pub fn ended<'a>(numbers: std::ops::Range<i64>, name: &'a str, state: &'a str) -> Vec<Told<'a>> {
    numbers.map(|number| Told { number, task: -1, name, kind: "ended", state }).collect()
}

/// The lines of the list.
fn lines(page: &Page) -> Vec<String> {
    page.select_all(".notices .row-title a")
}

fn badge(page: &Page) -> String {
    page.select_all(".bell-count").into_iter().next().unwrap_or_default()
}

/// A job's name that nobody else has.
fn unique(what: &str) -> String {
    format!("{what}-{}", std::process::id())
}

async fn member() -> (TestApp, Client, Client) {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    portal.add_cluster("key").await;
    (portal, admin, bob)
}

#[tokio::test(flavor = "multi_thread")]
async fn job_end_is_notified_once_even_after_a_restart() {
    let (mut portal, _, tessa) = connected("tessa").await;
    let said = |page: &Page, words: &str| lines(page).iter().filter(|line| *line == words).count();
    wait_for_list(&tessa, "/jobs", "a first look", |page| page.text().contains("fresh-dot")).await;

    let name = unique("short");
    submit("tessa", "sleep 1", &["-J", &name, "-t", "5"]);
    let words = format!("{name} completed");
    let page = wait_for_list(&tessa, "/notifications", &words, |page| said(page, &words) == 1).await;
    assert!(badge(&page).contains("new"), "{}", badge(&page));

    let name = unique("meanwhile");
    let job = submit("tessa", "sleep 2; exit 3", &["-J", &name, "-t", "5"]);
    wait_for_list(&tessa, "/jobs", "the job", |page| page.text().contains(&name)).await;
    portal.stop().await;
    wait_until("the job is over", async || {
        let told = Cluster::get().script(&["exec", "--as", "tessa", "sacct", "-nPX", "-j", &job, "-o", "state"]);
        String::from_utf8_lossy(&told.stdout).contains("FAILED")
    })
    .await;
    portal.start_again().await;
    let words = format!("{name} failed");
    wait_for_list(&tessa, "/notifications", &words, |page| said(page, &words) == 1).await;
    // Further looks tell nothing again.
    let seen = async || {
        let key = portal.connection_key("tessa", "key").await;
        let key = portolan::cluster::ClusterAccountId { person: key.person, cluster: key.cluster };
        portal.app.queue_monitor.view(key, false).await.unwrap().version
    };
    let before = seen().await;
    wait_for_value("three more looks", async || seen().await, |seen| *seen >= before + 3).await;
    let page = tessa.get("/notifications").await;
    assert_eq!(said(&page, &words), 1);
    assert_eq!(said(&page, &format!("{} completed", unique("short"))), 1);
}

#[tokio::test]
async fn many_notifications_fold_into_one_toast() {
    let (portal, _, bob) = member().await;
    assert_eq!(badge(&bob.get("/").await), "");
    let mut all = ended(1..13, "align", "COMPLETED");
    all.extend(ended(13..15, "sort", "OUT_OF_MEMORY"));
    tell(&portal, "bob", "key", &all).await;
    let ring = bob.get("/notifications/badge?after=0").await;
    let toasts = ring.select_all(".toast-text");
    assert_eq!(toasts.len(), 1, "{toasts:?}");
    assert!(toasts[0].starts_with("14 jobs ended: 12 completed, 2 failed"), "{toasts:?}");
    assert_eq!(ring.attribute(".toast a", "href"), "/jobs?state=problem");
    assert_eq!(badge(&ring), "2 new", "as many as there are lines in the list");

    let after = ring.attribute("#bell", "hx-get");
    let tasks: Vec<Told<'_>> = (0..12)
        .map(|task| {
            let state = if task == 7 { "TIMEOUT" } else { "COMPLETED" };
            Told { number: 500, task, name: "sweep", kind: "ended", state }
        })
        .collect();
    tell(&portal, "bob", "key", &tasks).await;
    let ring = bob.get(&after).await;
    let toasts = ring.select_all(".toast-text");
    assert_eq!(toasts.len(), 1, "only what the page has not shown: {toasts:?}");
    assert!(toasts[0].starts_with("12 tasks of sweep ended: 11 completed, 1 failed"), "{toasts:?}");
    assert_eq!(ring.attribute(".toast a", "href"), "/jobs/key/500");
    let again = bob.get(&ring.attribute("#bell", "hx-get")).await;
    assert!(again.select_all(".toast").is_empty(), "nothing is new");
    let list = lines(&bob.get("/notifications").await);
    assert_eq!(
        list,
        [
            "12 tasks of sweep ended: 11 completed, 1 failed",
            "2 jobs named sort failed",
            "12 jobs named align completed",
        ]
    );
}

/// A job is one line with its latest event, and an array one with counts; each counts once in the bell.
#[tokio::test]
async fn events_fold_by_job_and_array() {
    let (portal, _, bob) = member().await;
    let one = |kind, state| Told { number: 7, task: -1, name: "align", kind, state };
    tell(&portal, "bob", "key", &[one("started", "RUNNING")]).await;
    assert_eq!(lines(&bob.get("/notifications").await), ["align started"]);
    tell(&portal, "bob", "key", &[one("ended", "COMPLETED")]).await;
    let task = |task, kind, state| Told { number: 500, task, name: "sweep", kind, state };
    let started: Vec<Told<'_>> = (0..20).map(|number| task(number, "started", "RUNNING")).collect();
    tell(&portal, "bob", "key", &started).await;
    let ended: Vec<Told<'_>> = (0..18).map(|number| task(number, "ended", "COMPLETED")).collect();
    tell(&portal, "bob", "key", &ended).await;
    let page = bob.get("/notifications").await;
    let expected = ["sweep: 18 tasks ended (18 completed), 2 tasks started", "align completed"];
    assert_eq!(lines(&page), expected);
    assert_eq!(badge(&page), "2 new", "forty events are two");
    assert_eq!(page.attribute(".notices .row-title a", "href"), "/jobs/key/500");

    let up_to = page.attribute("input[name=up_to]", "value");
    assert_eq!(bob.post("/notifications/read", &[("up_to", &up_to)]).await.status, 303);
    assert_eq!(badge(&bob.get("/").await), "");
    tell(&portal, "bob", "key", &[task(18, "ended", "FAILED")]).await;
    let page = bob.get("/notifications").await;
    let expected = ["sweep: 19 tasks ended (18 completed, 1 failed), 1 task started", "align completed"];
    assert_eq!(lines(&page), expected, "still one line");
    assert_eq!((badge(&page).as_str(), page.select_all(".is-new").len()), ("1 new", 1), "and new again");
}

#[tokio::test]
async fn read_notifications_are_no_longer_new() {
    let (portal, _, bob) = member().await;
    tell(&portal, "bob", "key", &ended(1..3, "a", "COMPLETED")).await;
    let page = bob.get("/notifications").await;
    assert_eq!(badge(&page), "1 new");
    assert_eq!(page.select_all(".is-new").len(), 1);
    let up_to = page.attribute("input[name=up_to]", "value");
    tell(&portal, "bob", "key", &ended(3..4, "b", "COMPLETED")).await;
    assert_eq!(bob.post("/notifications/read", &[("up_to", &up_to)]).await.location(), "/notifications");
    assert_eq!(badge(&bob.get("/account").await), "1 new", "what came later was not seen");
    assert_eq!(bob.post("/notifications/read", &[("up_to", "9999")]).await.status, 303);
    assert_eq!(badge(&bob.get("/groups").await), "");
    for nonsense in ["", "x", "9223372036854775808"] {
        assert_eq!(bob.post("/notifications/read", &[("up_to", nonsense)]).await.status, 400);
        let ring = bob.get(&format!("/notifications/badge?after={nonsense}")).await;
        assert_eq!(ring.status, 400, "{nonsense}");
    }
}

#[tokio::test]
async fn toasts_are_shown_as_chosen() {
    let (portal, _, bob) = member().await;
    let started = |number| Told { number, task: -1, name: "a", kind: "started", state: "RUNNING" };
    let never = |number| Told { number, task: -1, name: "b", kind: "never", state: "PENDING" };
    tell(&portal, "bob", "key", &[started(1), never(2)]).await;
    let toasts = bob.get("/notifications/badge?after=0").await.select_all(".toast-text a");
    assert_eq!(toasts, ["b can't start as submitted", "a started"], "what needs a look first");
    assert_eq!(bob.post("/account/notifications", &[("kind", "ended")]).await.status, 303);
    let page = bob.get("/account/notifications").await;
    assert_eq!(page.select_all("input[name=kind][checked]").len(), 1 + 2, "and two for the webhook");
    assert!(bob.get("/notifications/badge?after=0").await.select_all(".toast").is_empty());
    assert_eq!(lines(&bob.get("/notifications").await).len(), 2, "the list has everything");
}

#[tokio::test]
async fn hostile_job_names_are_shown_as_text() {
    let (portal, _, bob) = member().await;
    let name = "<script>alert(1)</script>\" onload=\"x' \u{202e}<b>|&amp;";
    tell(&portal, "bob", "key", &ended(1..2, name, "FAILED")).await;
    for path in ["/notifications", "/notifications/badge?after=0", "/"] {
        let page = bob.get(path).await;
        assert_eq!(page.status, 200);
        assert!(!page.text().contains("<script>alert") && !page.text().contains("<b>|"), "{path}");
        assert!(!page.text().contains('\u{202e}'), "{path}");
        assert!(page.select_all("[onload]").is_empty(), "{path}");
    }
    let shown = bob.get("/notifications").await.select_text(".notices bdi");
    assert!(shown.starts_with("<script>alert(1)</script>\" onload=\"x'"), "as text: {shown}");
}

#[tokio::test]
async fn nobody_sees_the_notifications_of_others() {
    let (portal, admin, bob) = member().await;
    let eve = portal.member(&admin, "eve").await;
    tell(&portal, "bob", "key", &ended(1..2, "private-matter", "FAILED")).await;
    for other in [&eve, &admin] {
        for path in ["/notifications", "/notifications/badge?after=0", "/", "/account/notifications"] {
            let page = other.get(path).await;
            assert_eq!((page.status, badge(&page).as_str()), (200, ""), "{path}");
            assert!(!page.text().contains("private-matter"), "{path}");
        }
        assert_eq!(other.post("/notifications/read", &[("up_to", "9999")]).await.status, 303);
    }
    assert_eq!(badge(&bob.get("/").await), "1 new", "nobody has read it for bob");
}

#[tokio::test]
async fn old_notifications_and_jobs_are_deleted() {
    let (portal, _, bob) = member().await;
    tell(&portal, "bob", "key", &ended(1..2, "old", "COMPLETED")).await;
    assert_eq!(badge(&bob.get("/").await), "1 new");
    let count = async |sql: &'static str| -> i64 {
        let mut db = portal.app.store.read().await.unwrap();
        sqlx::query_scalar(sql).fetch_one(&mut *db).await.unwrap()
    };
    portal.clock.advance(91 * 86_400);
    portolan::housekeeping::sweep(&portal.app, &portal.app.notifications).await;
    assert_eq!(count("SELECT count(*) FROM notifications").await, 0);
    assert_eq!(count("SELECT count(*) FROM jobs").await, 1, "the history is longer");
    assert_eq!(portal.app.notifications.cached_unread(PersonId(portal.person_id("bob").await)).count, 0);
    portal.clock.advance(300 * 86_400);
    portolan::housekeeping::sweep(&portal.app, &portal.app.notifications).await;
    assert_eq!(count("SELECT count(*) FROM jobs").await, 0);
    assert!(portal.clock.now() > UnixTime(0));
}

/// In a real browser: the badge and a toast come by themselves, the toast leads to the job, the list is read by opening.
#[tokio::test(flavor = "multi_thread")]
async fn open_page_shows_new_notifications_by_itself() {
    let (portal, _, _) = member().await;
    let browser = Browser::open(&portal.url, 1280).await;
    browser.go("/sign-in").await;
    browser.fill("name", "bob").await;
    browser.fill("password", PASSWORD).await;
    browser.press("Sign in").await;
    browser.wait_for_text("Hello bob").await;
    let bob = PersonId(portal.person_id("bob").await);
    // Its stream of events must be open before the bell rings.
    wait_for_value("the page listens", async || portal.state.pages.event_streams.count(bob), |seen| *seen > 0).await;
    tell(&portal, "bob", "key", &ended(7..8, "align", "COMPLETED")).await;
    browser.wait_for_text("align completed").await;
    assert!(browser.find(".bell-count").await.text().await.unwrap().starts_with('1'));
    let state = browser.run("return Notification.permission").await;
    assert_ne!(state, "granted", "nobody was asked");
    browser.go("/notifications").await;
    wait_for_value("it is read", async || portal.app.notifications.cached_unread(bob).count, |seen| *seen == 0).await;
    wait_until("the badge goes", async || browser.run("return !document.querySelector('.bell-count')").await == true)
        .await;
    browser.close().await;
}
