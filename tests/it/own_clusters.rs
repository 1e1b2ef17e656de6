//! Each person's own view of the clusters: what comes after connecting, hiding, order, forgetting, one centre's user
//! name and key, and two entries for one Slurm cluster.

use portolan::cluster::ConnectionStatus;
use portolan::domain::ConnectionRole;
use portolan::store;
use portolan::store::connections::ConnectionKey;

use crate::notifications::{ended, tell};
use crate::queue::{cancel, submit, wait_for_list};
use crate::support::browser::Browser;
use crate::support::cluster::Cluster;
use crate::support::server::{Server, site_at};
use crate::support::{Client, Page, TestApp};

/// The clusters that someone's list shows, in its order.
async fn listed(who: &Client) -> Vec<String> {
    who.get("/clusters").await.select_all("#connections .row-title a")
}

#[tokio::test]
async fn clusters_are_hidden_and_ordered_for_one_person_only() {
    let (portal, admin, alice) = TestApp::with_member("alice").await;
    let bob = portal.member(&admin, "bob").await;
    for kind in ["key", "mfa", "duo"] {
        portal.add_cluster(kind).await;
    }
    assert_eq!(listed(&alice).await, ["Harbour duo", "Harbour key", "Harbour mfa"], "by name");
    let moved = alice.post("/clusters/mfa/move", &[("to", "up")]).await;
    assert_eq!((moved.status, moved.location()), (303, "/clusters#to-mfa"));
    assert_eq!(listed(&alice).await, ["Harbour duo", "Harbour mfa", "Harbour key"]);
    assert_eq!(listed(&bob).await, ["Harbour duo", "Harbour key", "Harbour mfa"], "his own order");
    assert!(alice.post("/clusters/mfa/move", &[("to", "sideways")]).await.status >= 400);

    let hidden = alice.post_and_follow("/clusters/duo/hide", &[]).await;
    assert!(hidden.text().contains("Cluster hidden."), "{}", hidden.text());
    assert_eq!(listed(&alice).await, ["Harbour mfa", "Harbour key"]);
    assert!(hidden.select_text("#hidden-clusters").contains("Harbour duo"));
    assert!(hidden.select_all("#hidden-clusters[open]").is_empty(), "folded");
    assert!(!alice.get("/").await.select_text("main").contains("Harbour duo"), "not on Home");
    assert!(alice.get("/clusters/duo").await.text().contains("Show again"), "its page is still there");
    assert_eq!(listed(&bob).await.len(), 3);

    for slug in ["key", "mfa", "duo"] {
        alice.name_user(slug, "alice").await;
    }
    let choice = |page: &Page| {
        let chips = page.select_all(".compose-places a");
        chips.iter().map(|chip| chip.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(choice(&alice.get("/compose").await), ["Harbour mfa", "Harbour key"]);
    let chosen = alice.get("/compose?cluster=duo").await.select_text(".compose-places [aria-current]");
    assert!(chosen.starts_with("Harbour duo"), "a link to a hidden cluster still works: {chosen}");
    let jobs = alice.get("/jobs").await;
    assert!(!jobs.text().contains("Harbour duo"), "{}", jobs.select_text("main"));
    let away = jobs.select_text(".away");
    assert!(away.contains("Not connected: Harbour mfa, Harbour key."), "one line for all: {away}");
    assert!(jobs.select_all(".alert").is_empty());
    assert!(!alice.get("/dashboards/new").await.text().contains("Harbour duo"));

    alice.post("/clusters/key/move", &[("to", "up")]).await;
    let shown = alice.post_and_follow("/clusters/duo/show", &[]).await;
    assert!(shown.text().contains("back in your lists") && shown.select_all("#hidden-clusters").is_empty());
    assert_eq!(listed(&alice).await, ["Harbour duo", "Harbour key", "Harbour mfa"]);
}

#[tokio::test]
async fn forgetting_a_cluster_removes_only_ones_own_account() {
    let server = Server::start();
    let (portal, admin, alice) = TestApp::with_member("alice").await;
    let bob = portal.member(&admin, "bob").await;
    portal.add_server("own", &server).await;
    for (person, name) in [(&alice, "alice"), (&bob, "bob")] {
        person.prepare_on(&server, "own", name).await;
        person.connect("own").await;
    }
    let page = alice.get("/clusters/own").await;
    let links = page.attributes("nav[aria-label='Next steps'] a", "href");
    assert_eq!(links, ["/compose?cluster=own", "/jobs?cluster=own", "/files/own", "/dashboards?cluster=own"]);
    let dashboards = alice.get("/dashboards?cluster=own").await;
    assert!(dashboards.select_text("main").contains("Only dashboards on"), "{}", dashboards.select_text("main"));
    assert_eq!(dashboards.attribute("#boards", "hx-get"), "/dashboards?cluster=own");
    assert!(!alice.get("/dashboards?cluster=nowhere").await.text().contains("Only dashboards on"));
    let about = page.select_text("#about-cluster");
    assert!(about.contains("Commands available"), "{about}");
    assert!(page.select_all("#about-cluster[open]").is_empty(), "folded");
    assert!(page.select_all(".alert").is_empty(), "nothing is announced on a later visit");

    let asked = alice.get("/clusters/own/forget").await;
    for words in ["Deleted", "Kept", "keep running", "Your job history, which reappears"] {
        assert!(asked.text().contains(words), "{words} in {}", asked.text());
    }
    for name in ["alice", "bob"] {
        tell(&portal, name, "own", &ended(7..9, "align", "COMPLETED")).await;
    }
    assert!(alice.get("/notifications").await.select_text(".notices").contains("align"));
    let alices = portal.connection_key("alice", "own").await;
    let done = alice.post_and_follow("/clusters/own/forget", &[]).await;
    assert!(done.text().contains("Cluster forgotten."), "{}", done.text());
    assert!(matches!(portal.app.connections.status(alices), ConnectionStatus::Down));
    let mut db = portal.app.store.read().await.unwrap();
    for role in [ConnectionRole::Login, ConnectionRole::Automation] {
        let left = store::connections::get(&mut db, ConnectionKey { role, ..alices }).await.unwrap();
        assert_eq!(left, None);
    }
    drop(db);
    let notified = alice.get("/notifications").await;
    assert!(!notified.text().contains("align"), "nothing that leads to a missing page: {}", notified.text());
    assert!(bob.get("/notifications").await.select_text(".notices").contains("align"), "his own stay");
    assert!(alice.get("/account/activity").await.text().contains("Forgot a cluster"));
    for answer in [alice.get("/clusters/own/forget").await, alice.post("/clusters/own/forget", &[]).await] {
        assert_eq!(answer.status, 404, "there is nothing left to forget");
    }
    assert_eq!(portal.stored_connection("bob", "own").await.remote_user, "bob");
    let bobs = portal.app.connections.status(portal.connection_key("bob", "own").await);
    assert!(matches!(bobs, ConnectionStatus::Up(_)), "{bobs:?}");

    alice.name_user("own", "alice").await;
    alice.connect("own").await;
}

#[tokio::test]
async fn clusters_of_one_centre_share_user_name_and_key() {
    let server = Server::start();
    let (portal, _, alice) = TestApp::with_member("alice").await;
    for (slug, page) in [
        ("first", "https://keys.example.org/ssh"),
        ("second", "https://keys.example.org/other"),
        ("third", "https://example.com/keys"),
    ] {
        let mut site = server.site(slug);
        site.keys.page = Some(page.parse().unwrap());
        portal.add_pinned(&site, &server.pins()).await;
    }
    let step = |page: &Page| page.select_text(".step[aria-current=step] h3");
    assert!(alice.get("/clusters/third").await.text().contains("create one here with one click"));
    alice.prepare_on(&server, "first", "alice").await;
    assert!(step(&alice.get("/clusters/first").await).starts_with("Your SSH key"));
    alice.connect("first").await;

    let page = alice.get("/clusters/second").await;
    assert_eq!(page.attribute("#f-user", "value"), "alice");
    assert!(page.text().contains("belongs to the same centre"), "{}", page.text());
    alice.name_user("second", "alice").await;
    let page = alice.get("/clusters/second").await;
    assert!(step(&page).starts_with("Connect"), "{}", step(&page));
    assert!(page.select_text("main").contains("Your key already works on Harbour first"), "{}", page.text());
    alice.connect("second").await;

    let page = alice.get("/clusters/third").await;
    assert_eq!(page.attribute("#f-user", "value"), "", "another centre may know her by another name");
    assert!(page.text().contains("Use alice, your user name"), "{}", page.text());
    assert!(page.text().contains("You already have a key."), "not told to create one: {}", page.text());
    alice.name_user("third", "alice").await;
    assert!(step(&alice.get("/clusters/third").await).starts_with("Your SSH key"), "to be registered there too");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_entries_for_one_slurm_cluster_show_each_job_once() {
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    let bob = portal.member(&admin, "bob").await;
    portal.add_cluster("key").await;
    portal.add_site(&site_at("again", Cluster::get().port("key"))).await;
    bob.prepare("key", "bob").await;
    bob.name_user("again", "bob").await;
    for slug in ["key", "again"] {
        bob.connect(slug).await;
    }
    let job = submit("bob", "sleep 200", &["-o", "/dev/null", "-t", "5", "--hold"]);
    let rows = |list: &Page| {
        let links = list.attributes("#queue .cell-title a", "href");
        links.iter().filter(|link| link.ends_with(&format!("/{job}"))).count()
    };
    let list = wait_for_list(&bob, "/jobs", "the job", |list| rows(list) > 0).await;
    assert_eq!(rows(&list), 1, "{}", list.select_text("#queue"));
    let named = ["Harbour key (also Harbour again)", "Harbour again (also Harbour key)"];
    assert!(named.iter().any(|words| list.text().contains(words)), "{}", list.select_text("main"));
    for (slug, words) in [("key", named[0]), ("again", named[1])] {
        let path = format!("/jobs?cluster={slug}");
        let list = wait_for_list(&bob, &path, "the job, by this entry", |list| rows(list) == 1).await;
        assert!(list.text().contains(words) && list.text().contains(&format!("/jobs/{slug}/{job}")));
    }
    cancel("bob", &job);
    let past = |list: &Page| rows(list) > 0;
    let list = wait_for_list(&bob, "/jobs?view=history", "its end", past).await;
    assert_eq!(rows(&list), 1, "{}", list.select_text("#queue"));
}

#[tokio::test(flavor = "multi_thread")]
async fn connecting_leads_on_and_the_list_is_arranged_by_hand() {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_cluster("key").await;
    portal.add_cluster("mfa").await;
    alice.prepare("key", "alice").await;
    let browser = Browser::open(&portal.url, 390).await;
    browser.sign_in("alice").await;
    browser.go("/clusters/key").await;
    browser.press("Connect").await;
    browser.wait_for_text("You can now submit jobs").await;
    browser.go("/jobs").await;
    browser.back().await;
    browser.wait_for_text("Connected as alice").await;
    assert!(!browser.text().await.contains("You can now submit jobs"), "not after coming back");
    browser.go("/clusters/key").await;
    browser.wait_for_text("Connected as alice").await;
    assert!(!browser.text().await.contains("You can now submit jobs"), "only right after connecting");
    browser.find("nav[aria-label='Next steps'] a[href='/compose?cluster=key']").await;

    browser.go("/clusters").await;
    browser.find("#menu-key > summary").await.click().await.unwrap();
    browser.press_in_row("Harbour key", "Move down").await;
    let first = "return document.querySelector('#connections .row-title a').textContent === 'Harbour mfa'";
    browser.wait_until_true("the order has changed", first).await;
    browser.find("#menu-mfa > summary").await.click().await.unwrap();
    let wide = browser.run("return document.documentElement.scrollWidth > innerWidth").await;
    assert_eq!(wide, false, "the menu fits a phone");
    browser.press_in_row("Harbour mfa", "Hide").await;
    browser.wait_for_text("Cluster hidden").await;
    browser.press("Hidden clusters").await;
    browser.press_in_row("Harbour mfa", "Show again").await;
    browser.wait_for_text("back in your lists").await;
    browser.close().await;
}

#[tokio::test]
async fn a_second_entry_for_the_same_cluster_is_noticed() {
    let (portal, admin, alice) = TestApp::with_member("alice").await;
    let import = async |slug: &str, kind: &str| {
        let file = site_at(slug, Cluster::get().port(kind)).to_toml().unwrap();
        admin.post("/clusters/import", &[("file", &file)]).await
    };
    let alone = import("key", "key").await;
    assert_eq!(alone.select_all(".alert.is-warning"), Vec::<String>::new(), "the first one");
    portal.add_cluster("key").await;
    let same = import("again", "key").await;
    let words = same.select_text(".alert.is-warning");
    assert!(words.contains("Harbour key has the same login host."), "{words}");
    let other_port = import("again", "mfa").await;
    let words = other_port.select_text(".alert.is-warning");
    assert!(words.contains("Harbour key has a login host with the same host key."), "{words}");
    // Nothing keeps the administrator from adding it.
    let site = site_at("again", Cluster::get().port("mfa")).to_toml().unwrap();
    let keys = other_port.attribute("input[name=keys]", "value");
    let form = [("site", site.as_str()), ("keys", keys.as_str()), ("compared", "true")];
    let added = admin.post("/clusters", &form).await;
    assert_eq!(added.status, 303, "{}", added.select_text("main"));

    // Once people have connected to both, Slurm's own name tells.
    let settings = async || admin.get("/clusters/again/settings").await;
    assert!(!settings().await.text().contains("may already be on the portal"));
    let facts = r#"{"slurm_cluster": "harbour", "slurm_controller": "ctl1"}"#;
    for slug in ["key", "again"] {
        alice.name_user(slug, "alice").await;
        let key = portal.connection_key("alice", slug).await;
        let mut tx = portal.app.store.write().await.unwrap();
        store::connections::save_discovered(&mut tx, key, facts, portal.clock.now()).await.unwrap();
        store::commit(tx).await.unwrap();
    }
    let words = settings().await.select_text(".alert.is-warning");
    assert!(words.contains("Harbour key leads to the same Slurm cluster, harbour."), "{words}");
}

/// Everybody has to choose these names, so nothing is in the fields; the heading says what is added.
#[tokio::test]
async fn a_preset_of_no_cluster_in_particular_has_no_names() {
    let (_portal, admin) = TestApp::with_admin().await;
    let names = async |preset: &str| {
        let page = admin.get(&format!("/clusters/new?preset={preset}")).await;
        let value = |field: &str| page.attribute(&format!("#f-{field}"), "value");
        assert!(!page.attribute("#f-title", "placeholder").is_empty());
        (page.select_text("h1"), value("title"), value("name"))
    };
    let another = ("Another Slurm cluster".to_owned(), String::new(), String::new());
    assert_eq!(names("generic").await, another);
    let (heading, title, name) = names("fir").await;
    assert_eq!((heading, name), (title, "fir".to_owned()));
}

#[tokio::test]
async fn a_preset_asks_first_what_a_lab_must_decide() {
    let (_portal, admin) = TestApp::with_admin().await;
    let page = admin.get("/clusters/new?preset=fir").await;
    let asked = page.attributes("form > section input:not([type=hidden])", "name");
    assert_eq!(asked, ["title", "name", "host", "port"]);
    assert!(page.select_all("form details[open]").is_empty(), "the rest is folded");
    let rest = page.attributes("form details input", "name");
    assert!(rest.contains(&"idle_minutes".to_owned()) && rest.contains(&"robot_host".to_owned()), "{rest:?}");
    let assumed = page.select_all("form details dt");
    assert!(assumed.contains(&"Submission folder".to_owned()), "{assumed:?}");
    assert!(!page.select_text("main").contains("jobs.submit_from"), "words, not names of settings");
}
