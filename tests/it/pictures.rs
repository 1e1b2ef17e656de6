//! The pictures in the README: the home page on a working day, on the real cluster. Run by `script/pictures`, never by
//! `script/test`, because it changes files of the project.

use portolan::domain::GroupId;
use portolan::sites::QuotaTool;
use portolan::store;

use crate::queue::{cancel, submit, wait_for_list};
use crate::support::browser::Browser;
use crate::support::cluster::{Cluster, root};
use crate::support::server::site_at;
use crate::support::{Client, PASSWORD, TestApp};

/// A portal with one lab, whose member Alice is connected to the cluster.
async fn working_portal() -> (TestApp, Client) {
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    let group = portal.group(&admin, "Smith Lab").await;
    let link = portal.invite(&admin, group, "member").await;
    let alice = portal.visitor();
    let form = [("display_name", "Alice Martin"), ("name", "alice"), ("password", PASSWORD), ("again", PASSWORD)];
    let joined = alice.post(&link, &form).await;
    assert_eq!((joined.status, joined.location()), (303, "/"), "{}", joined.text());
    let mut site = site_at("harbour", Cluster::get().port("key"));
    site.title = "Harbour".into();
    site.units.fair_share = true;
    site.storage.quota_tool = QuotaTool::DiskusageReport;
    portal.add_site(&site).await;
    let mut tx = portal.app.store.write().await.unwrap();
    let cluster = store::clusters::find_by_slug(&mut tx, "harbour").await.unwrap().unwrap().id;
    store::allocations::set_accounts(&mut tx, GroupId(group), cluster, &["def-smith".to_owned()]).await.unwrap();
    store::commit(tx).await.unwrap();
    alice.prepare("harbour", "alice").await;
    alice.connect("harbour").await;
    // Only jobs that end from now on are news.
    wait_for_list(&alice, "/", "a first look", |page| !page.select_all(".scale").is_empty()).await;
    (portal, alice)
}

/// What someone has in the queue on an ordinary day: some run, some wait, some have ended, one of them badly.
fn submit_a_days_work() -> Vec<String> {
    let job = |name: &str, script: &str, options: &[&str]| {
        submit("alice", script, &[&["-A", "def-smith", "-o", "/dev/null", "-J", name][..], options].concat())
    };
    let broken = "echo \"FileNotFoundError: counts.csv\" >&2; exit 1";
    vec![
        job("quality-control", "sleep 5", &["-c", "2", "-t", "30"]),
        job("count-cells", broken, &["-t", "30"]),
        job("train-unet", "sleep 3600", &["-p", "gpu", "--gres=gpu:t4:1", "-c", "4", "--mem=8G", "-t", "6:00:00"]),
        job("align-reads", "sleep 3600", &["-c", "4", "--mem=4G", "-t", "2:00:00", "-a", "1-12%2"]),
        // Both T4s at once: it has to wait until the training above has ended.
        job("train-large", "sleep 3600", &["-p", "gpu", "--gres=gpu:t4:2", "-c", "4", "-t", "12:00:00"]),
        job("summarise", "sleep 3600", &["-t", "20", "--begin=now+3hours"]),
    ]
}

/// Takes a picture of the home page once it shows all of that.
async fn take_picture(portal: &TestApp, width: u32, theme: &str, file: &str) {
    let browser = Browser::open(&portal.url, width).await;
    browser.go("/sign-in").await;
    browser.fill("name", "alice").await;
    browser.fill("password", PASSWORD).await;
    browser.press("Sign in").await;
    for words in ["train-unet", "train-large", "count-cells", "quality-control", "def-smith"] {
        browser.wait_for_text(words).await;
    }
    browser.prefer(theme).await;
    std::fs::write(root().join("docs/images").join(file), browser.picture().await).unwrap();
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "changes docs/images; run script/pictures"]
async fn home_page_on_a_working_day() {
    let (portal, alice) = working_portal().await;
    let jobs = submit_a_days_work();
    wait_for_list(&alice, "/", "a working day", |page| {
        let ended = page.select_all(".home-ended li a").join("\n");
        let text = page.text();
        ended.contains("count-cells")
            && ended.contains("quality-control")
            && page.select_all(".home-jobs .badge").iter().any(|state| state == "Running")
            && text.contains("train-large")
            && !page.select_all(".scale").is_empty()
            && !page.select_all(".home-folder").is_empty()
    })
    .await;
    take_picture(&portal, 1280, "light", "home.png").await;
    take_picture(&portal, 390, "dark", "home-phone-dark.png").await;
    cancel("alice", &jobs.join(" "));
}
