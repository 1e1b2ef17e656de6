//! Home on the real cluster: jobs now, what ended, fair-share and storage, from what the portal knows already.

use portolan::sites::QuotaTool;

use crate::browser_home::in_one_line;
use crate::queue::{cancel, connected, states, submit, wait_for_list};
use crate::support::cluster::Cluster;
use crate::support::server::site_at;
use crate::support::{Page, TestApp};

fn counts(page: &Page) -> String {
    page.select_all(".home-count").join(", ")
}

#[tokio::test(flavor = "multi_thread")]
async fn home_shows_jobs_fair_share_and_storage() {
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    let alice = portal.member(&admin, "alice").await;
    let mut site = site_at("key", Cluster::get().port("key"));
    site.units.fair_share = true;
    site.storage.quota_tool = QuotaTool::DiskusageReport;
    portal.add_site(&site).await;
    let first = alice.get("/").await;
    assert!(first.text().contains("First steps"));
    assert!(first.select_all(".home-example").is_empty(), "the example needs a cluster that is set up");
    alice.prepare("key", "alice").await;
    let page = alice.get("/").await;
    assert!(page.select_text("main").contains("First steps") && page.select_all(".home-count").is_empty());
    assert_eq!(page.select_all(".home-example a").len(), 1);
    alice.connect("key").await;

    let [running, held] = states("alice", ["running", "held"]);
    // A look may have come between a job's submission and its start.
    let page = wait_for_list(&alice, "/", "both jobs, one of them running", |page| {
        let links = [&running, &held].map(|job| format!("href=\"/jobs/key/{job}\""));
        links.iter().all(|link| page.text().contains(link))
            && counts(page).contains("running")
            && counts(page).contains("pending")
            && page.text().contains("Time used")
    })
    .await;
    assert!(page.select_text(".fold summary").contains("First steps"), "folded once there are jobs to see");

    let page = wait_for_list(&alice, "/", "share and storage", |page| {
        !page.select_all(".scale").is_empty() && page.select_all(".home-folder").len() >= 2
    })
    .await;
    let accounts = page.select_all(".share .bar-label");
    assert!(accounts.iter().any(|account| account == "def-smith"), "{accounts:?}");
    assert!(page.text().contains("LevelFS"), "one click away");
    let line = page.select_text("#home-cluster-key > summary");
    assert!(line.contains("Fair share of") || line.contains("full"), "the worst figure in words: {line}");
    assert!(page.select_text(".home-folder").contains("/home"), "{}", page.select_text(".home-folder"));

    // Without a connection the last picture stays, and says so.
    alice.post("/clusters/key/disconnect", &[]).await;
    let page = alice.get("/").await;
    assert!(page.text().contains("not connected to Harbour key"), "{}", page.select_text("main"));
    assert!(page.text().contains("action=\"/clusters/key/connect\"") && page.select_all(".scale").len() > 1);
    let line = in_one_line(&page.select_text("#home-away > summary"));
    assert!(line.contains("Not connected: Harbour key"), "{line}");
    cancel("alice", &running);
    cancel("alice", &held);
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_jobs_are_listed_with_failures_first() {
    let (_portal, _, fin) = connected("fin").await;
    wait_for_list(&fin, "/", "a first look", |page| page.text().contains("fresh-dot")).await;
    let name = |what: &str| format!("{what}-{}", std::process::id());
    submit("fin", "exit 4", &["-J", &name("bad"), "-t", "5"]);
    let page = wait_for_list(&fin, "/", "the failed one", |page| page.text().contains(&name("bad"))).await;
    assert!(page.status == 200);
    submit("fin", "true", &["-J", &name("good"), "-t", "5"]);
    let page = wait_for_list(&fin, "/", "both ends", |page| {
        let lines = page.select_all(".home-ended li a").join("\n");
        lines.contains(&format!("{} failed", name("bad"))) && lines.contains(&format!("{} completed", name("good")))
    })
    .await;
    let lines = page.select_all(".home-ended li a");
    let place = |what: &str| lines.iter().position(|line| line.starts_with(&name(what)));
    assert!(place("bad") < place("good"), "{lines:?}");
    let ended = page.select_text("section[aria-labelledby=ended-title]");
    assert!(ended.contains("in the last 24 hours"), "the first visit: {ended}");
}
