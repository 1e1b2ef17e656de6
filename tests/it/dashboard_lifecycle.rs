//! The life of a dashboard on the real cluster: connections that break, portals that are restarted, jobs that end
//! otherwise than planned, follow-ups, and dashboards that nobody looks at.

use portolan::dashboards::DashboardKind;
use portolan::store::dashboards::runs::DashboardRunState;

use crate::dashboard_access::{
    OWNER, actor, come_in, dashboard_status, guest, link, new_dashboard, opened, stopped, ticket, wait_for,
};
use crate::queue::{cancel, connected};
use crate::support::app::hurry;
use crate::support::cluster::Cluster;
use crate::support::program::signal_pid;
use crate::support::wait::{self, wait_until};
use crate::support::{Client, TestApp};

/// Asks until a page answers as wanted.
async fn until(browser: &Client, path: &str, status: u16) {
    wait_until(&format!("{path} gives {status}"), async || browser.get(path).await.status == status).await;
}

/// A portal that is stopped and started again finds its dashboards; whoever looked goes on looking.
#[tokio::test(flavor = "multi_thread")]
async fn restarted_portal_takes_over_running_dashboards() {
    let (mut portal, _, owner) = connected(OWNER).await;
    let id = opened(&portal, DashboardKind::TensorBoard, &["/tmp"]).await;
    let browser = guest(&portal);
    let place = come_in(&browser, &ticket(&portal, &owner, id).await).await;
    let visitor = guest(&portal);
    let shared = come_in(&visitor, &link(&portal, id, "").await).await;
    let job = dashboard_status(&portal, id).await.run.unwrap().job;
    portal.restart().await;
    wait_for(&portal, id, "live again", |now| now.is_live).await;
    for (who, place) in [(&browser, &place), (&visitor, &shared)] {
        until(who, &format!("{place}app/data/runs"), 200).await;
    }
    assert_eq!(dashboard_status(&portal, id).await.run.unwrap().job, job, "the same job");
    stopped(&portal, id).await;
}

/// When the connection breaks, the page says so; when it is back, so is the dashboard.
#[tokio::test(flavor = "multi_thread")]
async fn dashboard_returns_when_the_connection_returns() {
    let (portal, _, owner) = connected(OWNER).await;
    let id = opened(&portal, DashboardKind::TensorBoard, &["/tmp"]).await;
    let browser = guest(&portal);
    let place = come_in(&browser, &link(&portal, id, "").await).await;
    let master = portal.connection(OWNER, "key").await.master().pid();
    signal_pid(u32::try_from(master).unwrap(), "KILL");
    wait_for(&portal, id, "not to be reached", |now| !now.is_live).await;
    let page = browser.get(&place).await;
    assert!(page.select_text("body").contains("can't be reached right now"), "{}", page.text());
    assert_eq!(browser.get(&format!("{place}app/data/runs")).await.status, 503);
    owner.connect("key").await;
    wait_for(&portal, id, "reached again", |now| now.is_live).await;
    until(&browser, &format!("{place}app/data/runs"), 200).await;
    stopped(&portal, id).await;
    let page = browser.get(&place).await;
    assert!(page.select_text("body").contains("isn't running"), "{}", page.text());
    assert!(page.text().contains("Ended"), "and says since when: {}", page.text());
}

/// Whatever ends its job, the dashboard says how it ended and can be started again.
#[tokio::test(flavor = "multi_thread")]
async fn dashboard_job_cancelled_on_the_cluster_is_noticed() {
    let (portal, _, owner) = connected(OWNER).await;
    let id = opened(&portal, DashboardKind::TensorBoard, &["/tmp"]).await;
    let status = dashboard_status(&portal, id).await;
    let job = status.run.unwrap().job.unwrap().to_string();
    let page = owner.get(&format!("/jobs/{}/{job}", status.dashboard.slug)).await;
    assert_eq!(page.attribute(".job-head .btn-primary", "href"), format!("/dashboards/{id}"), "{}", page.text());
    let offered = page.select_text(".job-head");
    assert!(
        !offered.contains("resubmit") && !offered.contains("Requeue") && offered.contains("Cancel job"),
        "{offered}"
    );
    cancel(OWNER, &job);
    let over = wait_for(&portal, id, "over", |now| !now.is_open()).await;
    assert_eq!(over.run.unwrap().end, "cancelled");
    assert!(!over.is_live);
    // Twice is one too many: the second request is refused, and nothing is started twice.
    let actor = actor(&portal, OWNER).await;
    portal.app.dashboards.start(&actor, id).await.unwrap();
    assert!(portal.app.dashboards.start(&actor, id).await.is_err());
    let again = wait_for(&portal, id, "ready", |now| now.is_live || !now.is_open()).await;
    let run = again.run.unwrap();
    assert_eq!(run.state, DashboardRunState::Ready, "{run:#?}");
    assert_ne!(run.job.unwrap().to_string(), job);
    stopped(&portal, id).await;
}

/// The same form sent twice is one dashboard and one job; stopped before it was a job, it never becomes one.
#[tokio::test(flavor = "multi_thread")]
async fn same_form_sent_twice_makes_one_dashboard() {
    let (portal, _, _owner) = connected(OWNER).await;
    let request = new_dashboard(&portal, DashboardKind::TensorBoard, &["/tmp"]).await;
    let actor = actor(&portal, OWNER).await;
    let boards = &portal.app.dashboards;
    let (one, two) = tokio::join!(boards.create(&actor, &request), boards.create(&actor, &request));
    assert_eq!(one.unwrap(), two.unwrap());
    let list = portal.app.dashboards.list(&viewer(&portal).await).await.unwrap();
    assert_eq!(list.len(), 1);
    let id = list[0].dashboard.id;
    boards.stop(&actor, id).await.unwrap();
    let over = wait_for(&portal, id, "over", |now| !now.is_open()).await;
    assert_eq!(over.run.unwrap().end, "stopped");
}

async fn viewer(portal: &TestApp) -> portolan::auth::Viewer {
    let person = portolan::domain::PersonId(portal.person_id(OWNER).await);
    let mut db = portal.app.store.read().await.unwrap();
    portal.app.auth.viewer(&mut db, person).await.unwrap().unwrap()
}

/// A follow-up waits in the queue for its time, takes over when it is ready, and what it follows is ended.
#[tokio::test(flavor = "multi_thread")]
async fn follow_up_job_takes_over_before_the_first_ends() {
    let (portal, _, owner) = connected(OWNER).await;
    let id = opened(&portal, DashboardKind::TensorBoard, &["/tmp"]).await;
    let browser = guest(&portal);
    let place = come_in(&browser, &ticket(&portal, &owner, id).await).await;
    let actor = actor(&portal, OWNER).await;
    portal.app.dashboards.extend(&actor, id).await.unwrap();
    assert!(portal.app.dashboards.extend(&actor, id).await.is_err(), "one follow-up at a time");
    let now = wait_for(&portal, id, "followed", |now| {
        now.next.as_ref().is_some_and(|next| next.job.is_some() && next.state == DashboardRunState::Waiting)
    })
    .await;
    let (run, next) = (now.run.unwrap(), now.next.unwrap());
    let begins = next.begin_at.unwrap();
    assert_eq!(run.ends_at().unwrap().since(begins), 180, "three minutes before the end");
    // Its time has come earlier than planned: Slurm lets people move it.
    let job = next.job.unwrap().to_string();
    let done =
        Cluster::get().script(&["exec", "--as", OWNER, "scontrol", "update", &format!("jobid={job}"), "starttime=now"]);
    assert!(done.status.success(), "{done:?}");
    let taken =
        wait_for(&portal, id, "taken over", |now| now.is_live && now.run.as_ref().is_some_and(|now| now.id == next.id))
            .await;
    assert!(taken.next.is_none());
    until(&browser, &format!("{place}app/data/runs"), 200).await;
    let first = wait::wait_for("the first run ends", async || {
        let mut db = portal.app.store.read().await.unwrap();
        let now = portolan::store::dashboards::runs::get(&mut db, run.id).await.unwrap().unwrap();
        if now.state == DashboardRunState::Over { Ok(now) } else { Err(format!("{now:?}")) }
    })
    .await;
    assert_eq!(first.end, "replaced");
    stopped(&portal, id).await;
}

/// One that nobody looks at is stopped, and its owner is told.
#[tokio::test(flavor = "multi_thread")]
async fn unused_dashboard_is_stopped_and_its_owner_notified() {
    let portal = TestApp::start_at(portolan::clock::Clock::system(), |config| {
        hurry(config);
        config.dashboards.idle_minutes = 0;
    })
    .await;
    let admin = portal.set_up("ada").await;
    let owner = portal.member(&admin, OWNER).await;
    portal.add_cluster("key").await;
    owner.prepare("key", OWNER).await;
    owner.connect("key").await;
    let request = new_dashboard(&portal, DashboardKind::TensorBoard, &["/tmp"]).await;
    let id = portal.app.dashboards.create(&actor(&portal, OWNER).await, &request).await.unwrap();
    let over = wait_for(&portal, id, "over", |now| !now.is_open()).await;
    let run = over.run.unwrap();
    assert_eq!(run.end, "idle", "{run:#?}");
    assert!(run.ready_at.is_some());
    let notices = owner.get("/notifications").await;
    assert!(notices.text().contains("nobody was viewing it"), "{}", notices.text());
    assert!(notices.text().contains(&format!("/dashboards/{id}")), "{}", notices.text());
}

/// What cannot be shown says why: a folder that is not there, a project that may not pay.
#[tokio::test(flavor = "multi_thread")]
async fn slurm_refusal_of_a_dashboard_job_is_shown() {
    let (portal, _, _owner) = connected(OWNER).await;
    let mut request = new_dashboard(&portal, DashboardKind::TensorBoard, &["/tmp"]).await;
    request.account = "no-such-project".to_owned();
    let id = portal.app.dashboards.create(&actor(&portal, OWNER).await, &request).await.unwrap();
    let over = wait_for(&portal, id, "over", |now| !now.is_open()).await;
    let run = over.run.unwrap();
    assert_eq!(run.end, "refused");
    assert!(run.message.contains("ccount"), "Slurm's words are kept: {}", run.message);
}
