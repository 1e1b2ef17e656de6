//! Home in a real browser: how much room it takes, what stays open when it renews itself, and the shape that all pages
//! share: one width, one family of fields, and messages that leave buttons free.

use portolan::store;
use serde_json::json;

use crate::support::app::START;
use crate::support::browser::Browser;
use crate::support::server::site_at;
use crate::support::{Client, TestApp};

const HOST_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINfWrr1i597zvwGC8fHEx8KXa4aGkFm6BJk/3bOELP8w";
const CLUSTERS: [&str; 5] = ["fram", "saga", "betzy", "olivia", "lumi"];

/// A PI with five clusters that were read once. One of them is nearly full.
async fn five_clusters() -> (TestApp, Client) {
    let (portal, admin) = TestApp::with_admin().await;
    let lab = portal.group(&admin, "Smith Lab").await;
    let pi = portal.join(&portal.invite(&admin, lab, "pi").await, "pia").await;
    for slug in CLUSTERS {
        portal.add_pinned(&site_at(slug, 9), &[("login".to_owned(), HOST_KEY.to_owned())]).await;
        pi.name_user(slug, "pia").await;
        let used: u64 = if slug == "saga" { 97 } else { 20 };
        let place = json!({ "label": "/home", "used_bytes": used << 30, "limit_bytes": 100_u64 << 30 });
        let standing = json!({ "places": [place], "places_at": START.0 }).to_string();
        let key = portal.connection_key("pia", slug).await;
        let mut tx = portal.app.store.write().await.unwrap();
        store::queues::mark_seen(&mut tx, key.person, key.cluster, START).await.unwrap();
        store::queues::set_standing(&mut tx, key.person, key.cluster, &standing).await.unwrap();
        store::commit(tx).await.unwrap();
    }
    (portal, pi)
}

pub fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn clusters_that_are_not_connected_share_one_line() {
    let (_portal, pi) = five_clusters().await;
    let page = pi.get("/").await;
    let line = in_one_line(&page.select_text("#home-away > summary"));
    for slug in CLUSTERS {
        assert!(line.contains(&format!("Harbour {slug}")), "{line}");
    }
    assert!(line.contains("Harbour saga: /home is full or almost full: 97 GB of 100 GB (97%)"), "{line}");
    assert_eq!(page.select_all(".home-clusters > li").len(), 1, "and no line each");
    assert_eq!(page.select_all(".home-stale").len(), 1, "{}", page.select_text("main"));
    assert_eq!(page.select_all("#home-away .home-folder").len(), 5, "what was read last is one click away");
}

#[tokio::test]
async fn newcomers_are_offered_an_example_and_pis_their_accounts() {
    let (portal, pi) = five_clusters().await;
    let page = pi.get("/").await;
    assert_eq!(page.attribute(".home-example a", "href"), "/compose/example");
    let lab = page.attribute(".home-groups a[href$='/accounts']", "href");
    assert!(page.select_text(".steps").contains("Select Smith Lab's accounts"), "{}", page.select_text(".steps"));
    let key = portal.connection_key("pia", "fram").await;
    let mut tx = portal.app.store.write().await.unwrap();
    store::connections::mark_connected(&mut tx, key, "pia", false, START).await.unwrap();
    store::commit(tx).await.unwrap();
    let next = pi.get("/").await;
    assert_eq!(next.attribute(".step.is-next a", "href"), lab, "the next step once they have connected");
    assert_eq!(pi.get(&lab).await.status, 200);

    let group = lab.split('/').nth(2).unwrap().parse().unwrap();
    let mut tx = portal.app.store.write().await.unwrap();
    let accounts = ["def-one".to_owned()];
    let group = portolan::domain::GroupId(group);
    store::allocations::set_accounts(&mut tx, group, key.cluster, &accounts).await.unwrap();
    store::commit(tx).await.unwrap();
    let page = pi.get("/").await;
    assert!(!page.select_text("main").contains("Select accounts") && !page.text().contains("Select the accounts"));
    assert_eq!(page.attribute(".step.is-next a", "href"), "/compose/example", "then the first job");
}

#[tokio::test(flavor = "multi_thread")]
async fn home_fits_and_keeps_what_is_open() {
    let (portal, _pi) = five_clusters().await;
    for (width, most) in [(1280, 1200), (390, 4 * 844)] {
        let browser = Browser::open(&portal.url, width).await;
        browser.sign_in("pia").await;
        let height = browser.run("return document.documentElement.scrollHeight").await.as_i64().unwrap();
        assert!(height <= most, "{height} at {width}");
        browser.run("document.querySelector('#home-away').open = true").await;
        browser.run("document.querySelector('#home-cluster-saga').open = true").await;
        browser.run("document.querySelector('#home-now').dataset.old = 'yes'").await;
        browser.run("htmx.trigger('#home-now', 'seen')").await;
        let is_new = "return document.querySelector('#home-now').dataset.old === undefined \
            && document.querySelector('#home-away').open && document.querySelector('#home-cluster-saga').open";
        browser.wait_until_true("renewed, and still open", is_new).await;
        browser.close().await;
    }
}

/// Every page begins below the logo, however wide the window is.
#[tokio::test(flavor = "multi_thread")]
async fn pages_have_one_width_and_fields_one_shape() {
    let (portal, _pi) = five_clusters().await;
    let browser = Browser::open(&portal.url, 1700).await;
    browser.sign_in("pia").await;
    let edges = "const left = (at) => Math.round(document.querySelector(at).getBoundingClientRect().left); \
        return `${left('.brand')} ${left('main')} ${document.querySelector('main').clientWidth}`";
    let mut seen = Vec::new();
    for path in ["/", "/jobs", "/dashboards/new", "/clusters", "/groups/1/members", "/groups/1/accounts", "/account"] {
        browser.go(path).await;
        let edge = browser.run(edges).await.as_str().unwrap().to_owned();
        let parts: Vec<&str> = edge.split(' ').collect();
        assert_eq!(parts[0], parts[1], "{path}: the content begins below the logo");
        seen.push(parts[2].to_owned());
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "one width: {seen:?}");

    let shapes = "const look = (one) => { const style = getComputedStyle(one); \
          return [style.borderTopWidth, style.borderTopLeftRadius, style.borderTopColor].join(' ') }; \
        const all = [...document.querySelectorAll('main .input, main input[type=checkbox]')]; \
        for (const one of all) one.checked = false; \
        return [...new Set(all.map(look))].join('; ')";
    let mut seen = Vec::new();
    for path in ["/groups/1/members", "/groups/1/alerts"] {
        browser.go(path).await;
        seen.push(browser.run(shapes).await.as_str().unwrap().to_owned());
    }
    assert!(!seen[0].is_empty() && !seen[0].contains(';') && seen[0] == seen[1], "fields, then checkboxes: {seen:?}");
    browser.close().await;
}

/// A message never hides a button for good: at the end of the page, all of them are free.
#[tokio::test(flavor = "multi_thread")]
async fn messages_leave_buttons_free() {
    let (portal, _pi) = five_clusters().await;
    for width in [1280, 390] {
        let browser = Browser::open(&portal.url, width).await;
        browser.sign_in("pia").await;
        for path in ["/groups/1/members", "/jobs", "/account"] {
            browser.go(path).await;
            browser.run("document.dispatchEvent(new Event('htmx:sendError'))").await;
            browser.find(".toasts .toast").await;
            browser.run("scrollTo(0, document.documentElement.scrollHeight)").await;
            let covered = "const toast = document.querySelector('.toast').getBoundingClientRect(); \
                const under = (one) => { const at = one.getBoundingClientRect(); \
                  return at.width > 0 && at.left < toast.right && at.right > toast.left \
                    && at.top < toast.bottom && at.bottom > toast.top }; \
                const all = [...document.querySelectorAll('main button, main .btn')]; \
                return all.filter(under).map((one) => one.textContent.trim()).join(', ')";
            assert_eq!(browser.run(covered).await, "", "{path} at {width}");
        }
        browser.close().await;
    }
}
