//! Who sees and does what: owners all, their group looks and may wake, everybody else finds nothing.

use portolan::auth::guest_links::GuestLinkRequest;
use portolan::domain::DashboardId;

use super::{EVIL, Run, buttons, says};
use crate::dashboard_access::{actor, come_in, guest};
use crate::support::app::START;
use crate::support::{Client, TestApp};

struct World {
    portal: TestApp,
    admin: Client,
    max: Client,
    mia: Client,
    otto: Client,
    lab: i64,
    other: i64,
    board: i64,
}

async fn world() -> World {
    let (portal, admin, max) = TestApp::with_member("max").await;
    let lab = portal.group(&admin, "Smith Lab").await;
    let other = portal.group(&admin, "Jones Lab").await;
    let mia = portal.member(&admin, "mia").await;
    let otto = portal.join(&portal.invite(&admin, other, "pi").await, "otto").await;
    portal.give_cluster_account(&max, "max").await;
    let board = portal.put_board("max", EVIL, &["/scratch/max/runs"]).await;
    portal.put_run(board, Run { state: "over", end: "time", ..Run::default() }).await;
    World { portal, admin, max, mia, otto, lab, other, board }
}

const FORM: &[(&str, &str)] = &[("title", "Mine now"), ("label", "x"), ("days", "7"), ("wakes", "3"), ("group", "")];
const DEEDS: [&str; 7] = ["start", "wake", "extend", "stop", "remove", "settings", "guest-links"];

impl World {
    /// For this person there is no such dashboard, wherever they ask.
    async fn sees_nothing(&self, who: &Client, name: &str) {
        let before = self.portal.dashboards_as_stored().await;
        for end in ["", "/fragment", "/open"] {
            let path = format!("/dashboards/{}{end}", self.board);
            assert_eq!(who.get(&path).await.status, 404, "{name}: {path}");
        }
        for deed in DEEDS {
            let path = format!("/dashboards/{}/{deed}", self.board);
            assert_eq!(who.post(&path, FORM).await.status, 404, "{name}: {path}");
        }
        assert_eq!(who.post("/dashboards/999/stop", &[]).await.status, 404, "the same as for none");
        assert!(!who.get("/dashboards").await.text().contains("dashboard-row"), "{name}");
        assert_eq!(self.portal.dashboards_as_stored().await, before, "{name}");
    }

    async fn show_to(&self, group: &str, wakes: &str) -> u16 {
        let form = [("title", EVIL), ("group", group), ("wakes", wakes), ("wake_minutes", "30")];
        self.max.post(&format!("/dashboards/{}/settings", self.board), &form).await.status
    }
}

#[tokio::test]
async fn shared_dashboard_is_read_only_for_the_group_and_hidden_from_others() {
    let world = world().await;
    let World { portal, admin, max, mia, otto, lab, other, board } = &world;
    for (who, name) in [(mia, "mia"), (otto, "otto"), (admin, "ada")] {
        world.sees_nothing(who, name).await;
    }
    assert_eq!(portal.visitor().get(&format!("/dashboards/{board}")).await.status, 303, "sign in");
    assert_eq!(world.show_to(&other.to_string(), "0").await, 403, "not their group");
    assert_eq!(world.show_to("x", "0").await, 400);
    assert_eq!(world.show_to(&lab.to_string(), "0").await, 303);
    world.sees_nothing(otto, "otto").await;
    world.sees_nothing(admin, "ada").await;

    let path = format!("/dashboards/{board}");
    let list = mia.get("/dashboards").await;
    let row = list.select_text("[aria-labelledby=groups-title] .dashboard-row");
    assert!(row.contains("max") && row.contains("Smith Lab"), "{row}");
    assert!(list.select_all("#evil").is_empty() && !row.contains("Start again"));
    let page = mia.get(&path).await;
    assert!(says(&page).contains("Time limit reached"));
    assert!(page.text().contains("Only max can start this dashboard."), "{}", page.text());
    assert_eq!(buttons(&page), [""; 0]);
    assert!(page.select_all("#share, #settings, #evil").is_empty());
    assert!(!page.text().contains("/jobs/key/"), "the job is its owner's");
    let before = portal.dashboards_as_stored().await;
    for deed in DEEDS.iter().filter(|deed| **deed != "wake") {
        assert_eq!(mia.post(&format!("{path}/{deed}"), FORM).await.status, 403, "{deed}");
    }
    assert_eq!(portal.dashboards_as_stored().await, before);

    let id = portal.person_id("mia").await;
    admin.post(&format!("/groups/{lab}/people/{id}/remove"), &[]).await;
    world.sees_nothing(mia, "mia").await;
    let id = portal.person_id("max").await;
    admin.post(&format!("/groups/{lab}/people/{id}/remove"), &[]).await;
    assert_eq!(max.get(&path).await.select_all(".job-line .tag"), [""; 0], "revoked");
}

#[tokio::test]
async fn group_members_start_it_within_the_owners_limits() {
    let world = world().await;
    let World { portal, max, mia, lab, board, .. } = &world;
    assert_eq!(world.show_to(&lab.to_string(), "1").await, 303);
    let path = format!("/dashboards/{board}");
    let page = mia.get(&path).await;
    assert!(page.select_text("main").contains("who isn't connected to"), "its owner is not connected");
    assert_eq!(buttons(&page), [""; 0]);
    let page = mia.post_and_follow(&format!("{path}/wake"), &[]).await;
    assert!(page.select_text("main > .alert").contains("Ask them to connect."));
    let mine = max.post(&format!("{path}/wake"), &[]).await;
    assert_eq!(mine.status, 403, "one's own is started, not woken");

    let woken_by = Some(portal.person_id("mia").await);
    portal.put_run(*board, Run { state: "over", end: "time", woken_by, ..Run::default() }).await;
    let page = mia.get(&path).await;
    assert!(page.text().contains("1 start a day, and none are left"), "{}", page.text());
    let page = mia.post_and_follow(&format!("{path}/wake"), &[]).await;
    assert!(page.select_text("main > .alert").contains("as often as its owner allows"));
    portal.on_dashboard(*board, "UPDATE dashboard_runs SET asked_at = asked_at - 90000 WHERE dashboard_id = $1").await;
    assert!(!mia.get(&path).await.text().contains("none are left"), "a new day");
    portal.put_run(*board, Run { state: "ready", started_at: Some(START.0), woken_by, ..Run::default() }).await;
    let page = mia.get(&path).await;
    assert!(says(&page).contains("The dashboard runs as max, who isn't connected to"), "{}", says(&page));
    assert!(says(&page).contains("Started by mia"));
    assert_eq!(buttons(&page), [""; 0], "nothing of someone else's is stopped or extended");
}

#[tokio::test]
async fn invalid_settings_are_refused() {
    let world = world().await;
    let World { portal, max, board, .. } = &world;
    let path = format!("/dashboards/{board}/settings");
    let before = portal.dashboards_as_stored().await;
    for (field, value, problem) in [
        ("title", " ", "Enter a name."),
        ("title", "a\u{202e}b", "invisible"),
        ("wakes", "21", "Enter a number between 0 and 20."),
        ("wakes", "-1", "Enter a number between 0 and 20."),
        ("wakes", "many", "Enter a number between 0 and 20."),
        ("wake_minutes", "5", "Choose one of the listed times."),
    ] {
        let mut form = vec![("title", "T"), ("wakes", "1"), ("wake_minutes", "30")];
        form.retain(|(known, _)| *known != field);
        form.push((field, value));
        let page = max.post(&path, &form).await;
        assert_eq!(page.status, 422, "{field}={value}");
        assert!(page.select_text(".error-summary").contains(problem), "{field}={value}");
    }
    assert_eq!(max.post(&path, &[("wakes", "1")]).await.status, 400);
    assert_eq!(portal.dashboards_as_stored().await, before);
    let page = max.post_and_follow(&path, &[("title", "Other <i>")]).await;
    assert_eq!(page.select_text("h1"), "Other <i>");
}

/// A page is told of dashboards that its person sees, and of no others.
#[tokio::test]
async fn events_reach_everyone_who_may_see_the_dashboard() {
    let world = world().await;
    let World { max, mia, otto, lab, .. } = &world;
    let open = async |who: &Client| who.request(reqwest::Method::GET, "/events").send().await.unwrap();
    let (mut owner, mut stranger) = (open(max).await, open(otto).await);
    let mut member = open(mia).await;
    assert_eq!(world.show_to(&lab.to_string(), "0").await, 303);
    for stream in [&mut owner, &mut member] {
        let told = stream.chunk().await.unwrap().unwrap();
        let told = String::from_utf8_lossy(&told).into_owned();
        assert!(told.contains("event: dashboards"), "{told}");
    }
    tokio::select! {
        biased;
        told = stranger.chunk() => panic!("a stranger was told {told:?}"),
        () = async { for _ in 0..3 { otto.get("/healthz").await; } } => {}
    }
}

/// With an account go its dashboards, and every guest link to them.
#[tokio::test]
async fn deleting_the_owner_ends_dashboards_and_guest_links() {
    let world = world().await;
    let World { portal, admin, mia, lab, board, .. } = &world;
    assert_eq!(world.show_to(&lab.to_string(), "0").await, 303);
    let path = format!("/dashboards/{board}");
    assert_eq!(mia.get(&path).await.status, 200);
    let request = GuestLinkRequest { label: "Prof. Berg".to_owned(), days: 7, passphrase: String::new().into() };
    let max = actor(portal, "max").await;
    let token = portal.app.dashboards.create_guest_link(&max, DashboardId(*board), &request).await.unwrap();
    let link = format!("/s/{}", token.as_str());
    let visitor = guest(portal);
    let place = come_in(&visitor, &link).await;
    let page = admin.get(&format!("/people/{}/delete", max.id.unwrap())).await;
    for words in ["Dashboards: 1.", "Guest links: 1."] {
        assert!(page.text().contains(words), "{}", page.text());
    }
    assert_eq!(admin.post(&format!("/people/{}/delete", max.id.unwrap()), &[]).await.status, 303);
    assert_eq!(mia.get(&path).await.status, 404);
    assert_eq!(visitor.get(&place).await.status, 404);
    assert_eq!(guest(portal).get(&link).await.status, 404);
}
