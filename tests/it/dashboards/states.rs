//! The page of a dashboard in each of its states, in words.

use super::{EVIL, Run, buttons, form_with, says};
use crate::support::app::START;
use crate::support::{Client, TestApp};

async fn with_dashboard() -> (TestApp, Client, i64) {
    let (portal, _admin, max) = TestApp::with_member("max").await;
    portal.give_cluster_account(&max, "max").await;
    let board = portal.put_board("max", EVIL, &[EVIL, "/scratch/max/runs"]).await;
    (portal, max, board)
}

#[tokio::test]
async fn every_end_is_explained_with_a_next_step() {
    let (portal, max, board) = with_dashboard().await;
    let path = format!("/dashboards/{board}");
    assert!(says(&max.get(&path).await).contains("Not started yet"));
    for (end, words) in [
        ("time", "The dashboard ran for the requested 1 h."),
        ("stopped", "You stopped the dashboard"),
        ("idle", "nobody was viewing it"),
        ("replaced", "Replaced by a follow-up job"),
        ("cancelled", "The job was cancelled on the cluster"),
        ("node", "The node failed"),
        ("memory", "Out of memory"),
        ("failed", "The dashboard couldn't be started"),
        ("refused", "Slurm rejected the job"),
        ("not-sent", "The job wasn't submitted"),
        ("gone", "The job can't be found"),
        ("something new", "The dashboard has ended"),
    ] {
        let message = "sbatch: error: <i id=evil>Invalid account</i>";
        portal.put_run(board, Run { state: "over", end, message, ..Run::default() }).await;
        let page = max.get(&path).await;
        assert!(says(&page).contains(words), "{end}: {}", says(&page));
        assert_eq!(buttons(&page), ["Start again", "Edit and restart"], "{end}");
        let said = page.select_all("#dashboard-said .said");
        let is_raw = ["failed", "refused", "not-sent"].contains(&end);
        assert_eq!(said, if is_raw { vec![message.to_owned()] } else { vec![] }, "{end}");
        assert!(page.select_all("#evil").is_empty(), "{end}");
        assert_eq!(page.select_text("h1"), EVIL);
        let job = format!("/jobs/key/{}", 4711);
        assert!(page.text().contains(&job), "{end}");
        assert_eq!(max.get(&format!("{path}/fragment")).await.select_text("h1"), EVIL);
    }
    let run = Run { state: "over", end: "failed", ready_at: Some(START.0), ..Run::default() };
    portal.put_run(board, run).await;
    assert!(says(&max.get(&path).await).contains("The dashboard crashed"));
    let list = max.get("/dashboards").await;
    assert_eq!(list.select_text(".dashboard-row .badge"), "Failed");
    assert!(list.select_text(".dashboard-row").contains("Start again"));
    assert!(list.select_all("#evil").is_empty());
    let another = max.get(&path).await.attribute(".dashboard-actions > a", "href");
    let form = max.get(&another).await;
    assert_eq!(form.select_all(".dashboard-offer input[checked]").len(), 2, "{another}");
}

/// Nobody is connected in these tests: the page says so, and that it comes back.
#[tokio::test]
async fn page_without_a_connection_offers_to_connect() {
    let (portal, max, board) = with_dashboard().await;
    let path = format!("/dashboards/{board}");
    for state in ["waiting", "starting", "ready"] {
        let started_at = Some(START.0).filter(|_| state != "waiting");
        portal.put_run(board, Run { state, started_at, ..Run::default() }).await;
        let page = max.get(&path).await;
        assert!(says(&page).contains("It reappears here automatically when you connect."), "{state}");
        let expected: &[&str] =
            if state == "waiting" { &["Connect", "Stop…"] } else { &["Connect", "Extend", "Stop…"] };
        assert_eq!(buttons(&page), expected, "{state}");
        let opened = max.get(&format!("{path}/open")).await;
        assert_eq!((opened.status, opened.location()), (303, path.as_str()), "{state}");
        assert!(max.get(&path).await.select_text("main").contains("The dashboard isn't ready yet."));
    }
    let page = max.get(&format!("{path}?do=stop")).await;
    assert_eq!(page.attribute("#dashboard-stop", "open"), "");
    assert_eq!(page.attribute("#dashboard-stop button", "autofocus"), "");
    let page = max.get(&format!("{path}?do=extend")).await;
    assert_eq!(page.attribute("form[action$='/extend'] button", "autofocus"), "");
    let page = max.get(&format!("{path}?do=share")).await;
    assert_eq!(page.attribute("#f-label", "autofocus"), "");
    assert!(max.get(&format!("{path}?do=%3Cb%3E")).await.select_all("[autofocus]").is_empty());
}

#[tokio::test]
async fn dashboard_can_be_started_extended_and_stopped() {
    let (portal, max, board) = with_dashboard().await;
    let path = format!("/dashboards/{board}");
    let follow = async |verb: &str| {
        let page = max.post_and_follow(&format!("{path}/{verb}"), &[]).await;
        let flash = page.select_all("main > .alert");
        flash.into_iter().next().unwrap_or_default()
    };
    assert!(follow("extend").await.contains("can't be extended or stopped"));
    assert!(follow("stop").await.contains("can't be extended or stopped"));
    let run = Run { state: "ready", started_at: Some(START.0), ..Run::default() };
    portal.put_run(board, run).await;
    assert!(follow("start").await.contains("already running or starting"));
    assert!(follow("extend").await.contains("Dashboard extended."));
    assert!(follow("extend").await.contains("The dashboard has already been extended."));
    let extended = max.get(&path).await;
    assert!(!buttons(&extended).contains(&"Extend".to_owned()) && says(&extended).contains("This run ends"));
    assert_eq!(follow("stop").await, "");
    let told = says(&max.get(&path).await);
    assert!(!told.contains("This run ends") && !told.contains("It stops"), "it ends earlier than that: {told}");
    assert!(!max.get("/dashboards").await.select_text(".dashboard-row").contains("stops"));
    let mut db = portal.app.store.read().await.unwrap();
    let stops: Vec<String> = sqlx::query_scalar("SELECT stop FROM dashboard_runs").fetch_all(&mut *db).await.unwrap();
    assert_eq!(stops, ["person", "person"]);
    drop(db);
    assert!(follow("remove").await.contains("Dashboard deleted"));
    assert_eq!(max.get(&path).await.status, 404);
    assert_eq!(max.post(&format!("{path}/start"), &[]).await.status, 404);
    assert!(!max.get("/dashboards").await.text().contains("dashboard-row"));
}

/// The first run waits for its connection, as every job does.
#[tokio::test]
async fn new_dashboard_waits_for_the_connection() {
    let (portal, _admin, max) = TestApp::with_member("max").await;
    portal.give_cluster_account(&max, "max").await;
    let made = max.post("/dashboards", &form_with(&[])).await;
    let page = max.get(made.location()).await;
    assert!(says(&page).contains("Waiting for the cluster connection"), "{}", says(&page));
    assert_eq!(buttons(&page), ["Connect", "Stop…"]);
    assert_eq!(page.select_text("h1"), "max/runs");
    assert!(page.attribute("#dashboard-live", "hx-trigger").contains("sse:dashboards"));
}
