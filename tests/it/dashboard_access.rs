//! Who gets to see a dashboard on its own origin, against a real TensorBoard on the real cluster: tickets, links,
//! cookies, and every way in that must stay shut.

use std::time::Duration;

use portolan::auth::activity::Actor;
use portolan::auth::guest_links::{GuestLinkRequest, GuestLinkTarget};
use portolan::auth::token::SecretToken;
use portolan::clock::UnixTime;
use portolan::dashboards::{DashboardKind, DashboardWithRuns, NewDashboard};
use portolan::domain::{DashboardId, PersonId};
use portolan::store;
use portolan::store::dashboards::runs::DashboardRunState;
use portolan::store::guest_links::{self, NewGuestLink};
use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::queue::connected;
use crate::support::client::{send, send_too_large};
use crate::support::wait;
use crate::support::{Client, Page, TestApp};

/// Whose dashboards these tests open: their environment is made once on the cluster.
pub const OWNER: &str = "tessa";

/// Someone as the one who does something.
pub async fn actor(portal: &TestApp, name: &str) -> Actor {
    let id = PersonId(portal.person_id(name).await);
    Actor { id: Some(id), name: name.to_owned(), address: String::new() }
}

/// The request for a dashboard of some folders.
pub async fn new_dashboard(portal: &TestApp, kind: DashboardKind, places: &[&str]) -> NewDashboard {
    let key = portal.connection_key(OWNER, "key").await;
    NewDashboard {
        person: key.person,
        cluster: key.cluster,
        kind,
        title: "Curves".to_owned(),
        places: places.iter().map(|place| (*place).to_owned()).collect(),
        minutes: 10,
        account: String::new(),
        form: SecretToken::generate().unwrap().as_str().to_owned(),
    }
}

/// What is known of a dashboard, as its owner sees it.
pub async fn dashboard_status(portal: &TestApp, id: DashboardId) -> DashboardWithRuns {
    let mut db = portal.app.store.read().await.unwrap();
    let person = PersonId(portal.person_id(OWNER).await);
    let viewer = portal.app.auth.viewer(&mut db, person).await.unwrap().unwrap();
    drop(db);
    portal.app.dashboards.get(&viewer, id).await.unwrap().expect("the dashboard")
}

/// Waits until a dashboard is as wanted. The first one on a cluster makes its environment.
pub async fn wait_for(
    portal: &TestApp,
    id: DashboardId,
    what: &str,
    holds: impl Fn(&DashboardWithRuns) -> bool,
) -> DashboardWithRuns {
    wait::wait_for(what, async || {
        let now = dashboard_status(portal, id).await;
        if holds(&now) { Ok(now) } else { Err(format!("{now:#?}")) }
    })
    .await
}

/// A dashboard that is ready.
pub async fn opened(portal: &TestApp, kind: DashboardKind, places: &[&str]) -> DashboardId {
    let request = new_dashboard(portal, kind, places).await;
    let id = portal.app.dashboards.create(&actor(portal, OWNER).await, &request).await.unwrap();
    let now = wait_for(portal, id, "ready", |now| now.is_live || !now.is_open()).await;
    assert!(now.is_live, "{:#?}", now.run);
    id
}

/// Ends what a test has opened, so that the next one finds room.
pub async fn stopped(portal: &TestApp, id: DashboardId) {
    let _ = portal.app.dashboards.stop(&actor(portal, OWNER).await, id).await;
    wait_for(portal, id, "over", |now| !now.is_open()).await;
}

/// A portal with the owner connected, and a TensorBoard of theirs.
async fn with_dashboard() -> (TestApp, Client, Client, DashboardId) {
    let (portal, admin, owner) = connected(OWNER).await;
    let id = opened(&portal, DashboardKind::TensorBoard, &["/tmp"]).await;
    (portal, admin, owner, id)
}

/// A browser on the dashboards' origin.
pub fn guest(portal: &TestApp) -> Client {
    Client::new(&portal.dashboards_url)
}

/// Comes in by a path of that origin and gives the place one was led to.
pub async fn come_in(browser: &Client, path: &str) -> String {
    let answer = browser.get(path).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    answer.location().to_owned()
}

/// The owner's way in: a ticket from the portal.
pub async fn ticket(portal: &TestApp, who: &Client, id: DashboardId) -> String {
    let led = who.get(&format!("/dashboards/{id}/open")).await;
    assert_eq!(led.status, 303, "{}", led.text());
    let path = led.location().strip_prefix(&portal.dashboards_url).expect("the dashboards' origin");
    assert!(path.starts_with("/enter/"), "{path}");
    path.to_owned()
}

/// Makes a link and gives its path.
pub async fn link(portal: &TestApp, id: DashboardId, passphrase: &str) -> String {
    let invitation =
        GuestLinkRequest { label: "Prof. <b>Ada</b>".to_owned(), days: 7, passphrase: passphrase.to_owned().into() };
    let actor = actor(portal, OWNER).await;
    let token = portal.app.dashboards.create_guest_link(&actor, id, &invitation).await.unwrap();
    format!("/s/{}", token.as_str())
}

async fn asks(browser: &Client, method: Method, path: &str, headers: &[(&str, &str)]) -> Page {
    let request = browser.request(method, path);
    send(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
}

/// The owner's ticket works once; what it leads to is one browser's, and nothing of the portal's.
#[tokio::test(flavor = "multi_thread")]
async fn ticket_admits_one_browser_once() {
    let (portal, _, owner, id) = with_dashboard().await;
    let path = ticket(&portal, &owner, id).await;
    let browser = guest(&portal);
    let entered = browser.get(&path).await;
    let cookie = entered.header("set-cookie").to_owned();
    let place = entered.location().to_owned();
    for part in ["HttpOnly", "SameSite=Lax", &format!("Path={place}")] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert_eq!(guest(&portal).get(&path).await.status, 410, "a ticket works once");
    let page = browser.get(&place).await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.text().contains("Curves"), "{}", page.text());
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    let app = browser.get(&format!("{place}app/")).await;
    assert!(app.text().contains("tensorboard") || app.text().contains("TensorBoard"));
    assert!(app.header("content-security-policy").contains("connect-src 'self'"));
    let environment = browser.get(&format!("{place}app/data/environment")).await;
    assert_eq!(environment.status, 200, "{}", environment.text());

    // Another browser, another place, the portal: nothing.
    for path in ["", "bar", "app/", "app/data/environment"] {
        let path = format!("{place}{path}");
        let stranger = guest(&portal);
        assert_eq!(stranger.get(&path).await.status, 404, "{path} without a cookie");
        stranger.set_cookie("portolan_board=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; Path=/");
        assert_eq!(stranger.get(&path).await.status, 404, "{path} with a wrong cookie");
    }
    let secret = cookie.split(['=', ';']).nth(1).unwrap().to_owned();
    let other = guest(&portal);
    let second = come_in(&other, &ticket(&portal, &owner, id).await).await;
    assert_ne!(second, place);
    other.set_cookie(&format!("portolan_board={secret}; Path={second}"));
    assert_eq!(other.get(&second).await.status, 404, "a cookie is good for its own place");
    let visitor = portal.visitor();
    for name in ["portolan_board", "portolan_session"] {
        visitor.set_cookie(&format!("{name}={secret}; Path=/"));
    }
    assert!(!visitor.is_signed_in().await, "it opens nothing of the portal");

    // Signed out of the portal means out of its dashboards, whether they run or not.
    stopped(&portal, id).await;
    assert_eq!(browser.get(&place).await.status, 200);
    assert_eq!(owner.post("/sign-out", &[]).await.status, 303);
    assert_eq!(browser.get(&place).await.status, 404);
    assert_eq!(browser.get(&format!("{place}app/data/environment")).await.status, 404);
}

/// A guest sees this dashboard, reads, and is shut out the moment the link is taken back.
#[tokio::test(flavor = "multi_thread")]
async fn guest_reads_one_dashboard_until_the_link_ends() {
    let (portal, admin, _owner, id) = with_dashboard().await;
    let path = link(&portal, id, "").await;
    let browser = guest(&portal);
    let place = come_in(&browser, &path).await;
    let page = browser.get(&place).await;
    assert!(page.text().contains(OWNER) && page.text().contains("read-only"), "{}", page.text());
    assert!(!page.text().contains("/tmp"), "guests are not told how folders are called");
    assert!(!page.text().contains(&portal.url), "and nothing of the portal");
    for path in ["app/", "app/data/environment", "app/data/plugins_listing", "app/data/runs"] {
        let answer = browser.get(&format!("{place}{path}")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    let origin = portal.dashboards_url.clone();
    let ours = [("origin", origin.as_str())];
    for (method, path) in [
        (Method::POST, "app/data/runs"),
        (Method::PUT, "app/"),
        (Method::DELETE, "app/"),
        (Method::GET, "app/data/plugin/projector/info"),
        (Method::GET, "app/data/plugin/profile/capture_profile?service_addr=127.0.0.1:22"),
        (Method::GET, "app/data%2Fruns"),
    ] {
        let answer = asks(&browser, method.clone(), &format!("{place}{path}"), &ours).await;
        assert_eq!(answer.status, 403, "{method} {path}: {}", answer.text());
    }
    // Searches are short: nobody fills the job's memory with one.
    let search = format!("{place}app/data/plugin/timeseries/timeSeries");
    let large = browser.request(Method::POST, &search).header("origin", &origin);
    assert!(send_too_large(large.body("x".repeat(2 << 20))).await.is_none_or(|answer| answer.status == 413));
    let upgrade = [
        ("origin", origin.as_str()),
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let answer = asks(&browser, Method::GET, &format!("{place}app/"), &upgrade).await;
    assert_eq!(answer.status, 403, "no WebSocket for guests");

    // What it was opened by is counted, and kept as a hash only.
    let mut db = portal.app.store.read().await.unwrap();
    let target = GuestLinkTarget::Dashboard(id);
    let links = guest_links::list(&mut db, target, portal.app.clock.now()).await.unwrap();
    drop(db);
    assert_eq!(links[0].opened, 1);
    // The lab's leader or an administrator takes it back; here the administrator.
    portal.app.dashboards.revoke_guest_link(&actor(&portal, "ada").await, links[0].id).await.unwrap();
    assert_eq!(browser.get(&place).await.status, 404);
    assert_eq!(browser.get(&format!("{place}app/data/runs")).await.status, 404);
    assert_eq!(guest(&portal).get(&path).await.status, 410);
    assert!(admin.get("/activity").await.text().contains("Revoked a guest link"));

    // One whose time is up.
    let token = SecretToken::generate().unwrap();
    let old = NewGuestLink {
        target,
        created_by: PersonId(portal.person_id(OWNER).await),
        token_hash: token.hash_token(),
        label: "old",
        passphrase: "",
        expires_at: UnixTime(1_700_000_000),
    };
    let mut tx = portal.app.store.write().await.unwrap();
    guest_links::add(&mut tx, &old, UnixTime(1_600_000_000)).await.unwrap();
    store::commit(tx).await.unwrap();
    let expired = guest(&portal).get(&format!("/s/{}", token.as_str())).await;
    assert_eq!(expired.status, 410);
    assert!(expired.text().contains("This link has expired"), "{}", expired.text());
    stopped(&portal, id).await;
}

/// A passphrase stands before the dashboard; guesses are counted.
#[tokio::test(flavor = "multi_thread")]
async fn guest_link_asks_for_its_passphrase() {
    let (portal, _, _owner, id) = with_dashboard().await;
    let path = link(&portal, id, "three old boats").await;
    let browser = guest(&portal);
    let place = come_in(&browser, &path).await;
    let page = browser.get(&place).await;
    assert!(page.text().contains("is protected by a passphrase"), "{}", page.text());
    assert_eq!(browser.get(&format!("{place}app/data/runs")).await.status, 404, "not before");
    let unlock = format!("{place}unlock");
    let wrong = browser.post(&unlock, &[("passphrase", "three new boats")]).await;
    assert_eq!(wrong.status, 403);
    assert!(wrong.text().contains("Wrong passphrase"), "{}", wrong.text());
    let foreign = browser.request(Method::POST, &unlock).header("origin", "https://evil.example");
    let foreign = send(foreign.form(&[("passphrase", "three old boats")])).await;
    assert_eq!(foreign.status, 403);
    assert_eq!(browser.get(&format!("{place}app/data/runs")).await.status, 404, "still not");
    let right = browser.post(&unlock, &[("passphrase", "three old boats")]).await;
    assert_eq!(right.status, 303, "{}", right.text());
    assert_eq!(browser.get(&format!("{place}app/data/runs")).await.status, 200);
    // Another browser guesses until it must wait.
    let guesser = guest(&portal);
    let place = come_in(&guesser, &path).await;
    let mut last = 0;
    for number in 0..20 {
        let guess = format!("guess number {number}");
        last = guesser.post(&format!("{place}unlock"), &[("passphrase", &guess)]).await.status;
    }
    assert_eq!(last, 429);
    stopped(&portal, id).await;
}

/// Ten thousand guesses are stopped after a few, and tell nothing.
#[tokio::test(flavor = "multi_thread")]
async fn guessing_guest_links_is_limited() {
    let portal = TestApp::start().await;
    portal.set_up("ada").await;
    let browser = guest(&portal);
    let mut statuses = std::collections::BTreeMap::<u16, u32>::new();
    let mut texts = std::collections::BTreeSet::new();
    for number in 0..10_000 {
        let token = SecretToken::generate().unwrap();
        let path = match number % 4 {
            0 => format!("/s/{}", token.as_str()),
            1 => format!("/enter/{}", token.as_str()),
            2 => format!("/pdf/{}", token.as_str()),
            _ => format!("/s/{number}"),
        };
        let answer = browser.get(&path).await;
        *statuses.entry(answer.status).or_default() += 1;
        if answer.status == 404 {
            texts.insert(answer.text().to_owned());
        }
        assert!(!answer.text().contains(token.as_str()), "nothing of the guess is repeated");
    }
    assert!(statuses[&429] > 9_900, "{statuses:?}");
    assert!(texts.len() <= 1, "all wrong links read the same");
    let signed_in = portal.visitor().sign_in("ada", crate::support::PASSWORD).await;
    assert_eq!(signed_in.status, 303, "nobody is kept from signing in by that");
}

/// Requests that could be read in two ways, or that name another host, get nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn ambiguous_requests_are_refused() {
    let (portal, _, owner, id) = with_dashboard().await;
    let browser = guest(&portal);
    let entered = browser.get(&ticket(&portal, &owner, id).await).await;
    let place = entered.location().to_owned();
    let cookie = entered.header("set-cookie").split(';').next().unwrap().to_owned();
    let host = portal.dashboards_url.strip_prefix("http://").unwrap();
    let ask = async |head: String, body: &str| {
        let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
        stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        let _ = tokio::time::timeout(Duration::from_secs(20), read).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        answer.split(' ').nth(1).unwrap_or("none").to_owned()
    };
    let common = format!("Cookie: {cookie}\r\nConnection: close\r\nOrigin: {}", portal.dashboards_url);
    let get = |target: &str, host: &str| format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{common}");
    assert_eq!(ask(get(&format!("{place}app/data/runs"), host), "").await, "200");
    for (target, name, expected) in [
        (format!("{place}app/../../../etc/passwd"), host, &["400", "404"][..]),
        (format!("{place}app/%2e%2e/%2e%2e/x"), host, &["400"]),
        (format!("{place}app/..%2f..%2fx"), host, &["400"]),
        (format!("{place}app//evil.example/x"), host, &["400"]),
        (format!("{place}app/\\evil.example"), host, &["400"]),
        (format!("//evil.example{place}"), host, &["404"]),
        (format!("http://evil.example{place}app/"), host, &["421"]),
        (format!("{place}app/"), "evil.example", &["421"]),
        (format!("{place}app/"), "localhost", &["421"]),
        (format!("{place}app/ HTTP/1.1\r\nX-A: b\r\nX"), host, &["400"]),
    ] {
        let status = ask(get(&target, name), "").await;
        assert!(expected.contains(&status.as_str()), "{target} of {name}: {status}");
    }
    let two_hosts = format!("GET {place}app/ HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n{common}");
    assert!(["400", "421"].contains(&ask(two_hosts, "").await.as_str()));
    let post = |headers: &str| format!("POST {place}app/data/runs HTTP/1.1\r\nHost: {host}\r\n{common}\r\n{headers}");
    for headers in [
        "Content-Length: 4\r\nContent-Length: 40",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Content-Length: 4, 40",
        "Content-Length: +4",
    ] {
        let status = ask(post(headers), "0\r\n\r\nGET / HTTP/1.1\r\n\r\n").await;
        assert!(["400", "none"].contains(&status.as_str()), "{headers}: {status}");
    }
    // This one is read in one way, as chunks, and passed on framed anew: what follows is no part of it.
    let both = post("Content-Length: 4\r\nTransfer-Encoding: chunked");
    let status = ask(both, "0\r\n\r\nGET / HTTP/1.1\r\n\r\n").await;
    assert!(["200", "400", "405"].contains(&status.as_str()), "{status}");
    let long = format!("{}\r\nX-Long: {}", get(&format!("{place}app/"), host), "x".repeat(600_000));
    assert!(["431", "none"].contains(&ask(long, "").await.as_str()));
    // A page of another site can neither change anything nor open a WebSocket, even with the cookie.
    for (method, headers) in [
        (Method::POST, vec![("origin", "https://evil.example")]),
        (Method::POST, vec![("origin", portal.url.as_str())]),
        (Method::POST, vec![]),
        (Method::GET, vec![("upgrade", "websocket"), ("origin", "https://evil.example")]),
        (Method::GET, vec![("upgrade", "websocket")]),
    ] {
        let answer = asks(&browser, method.clone(), &format!("{place}app/data/runs"), &headers).await;
        assert_eq!(answer.status, 403, "{method} {headers:?}");
    }
    stopped(&portal, id).await;
}

/// Someone else's dashboard: not seen, not opened, not shared, not woken, until it is shown to the group.
#[tokio::test(flavor = "multi_thread")]
async fn group_members_see_shared_dashboards_read_only() {
    let (portal, admin, _owner, id) = with_dashboard().await;
    let member = portal.member(&admin, "bob").await;
    let bob = actor(&portal, "bob").await;
    let boards = &portal.app.dashboards;
    assert_eq!(member.get(&format!("/dashboards/{id}/open")).await.status, 404);
    let invitation = GuestLinkRequest { label: "me".into(), days: 1, passphrase: String::new().into() };
    assert!(boards.create_guest_link(&bob, id, &invitation).await.is_err());
    assert!(boards.stop(&bob, id).await.is_err());
    assert!(boards.wake(&bob, id).await.is_err());
    let group = portolan::domain::GroupId(portal.group(&admin, "Smith Lab").await);
    let settings = portolan::store::dashboards::DashboardOwnerSettings {
        title: "Curves",
        group: Some(group),
        wakes_per_day: 1,
        wake_minutes: 10,
    };
    boards.update_settings(&actor(&portal, OWNER).await, id, settings).await.unwrap();
    let browser = guest(&portal);
    let place = come_in(&browser, &ticket(&portal, &member, id).await).await;
    assert_eq!(browser.get(&format!("{place}app/data/runs")).await.status, 200);
    let origin = portal.dashboards_url.clone();
    let ours = [("origin", origin.as_str())];
    let answer = asks(&browser, Method::POST, &format!("{place}app/data/runs"), &ours).await;
    assert_eq!(answer.status, 403, "colleagues read");
    assert!(boards.stop(&bob, id).await.is_err(), "and stop nothing");
    assert!(boards.wake(&bob, id).await.is_err(), "it runs already");
    stopped(&portal, id).await;
    // Woken: it runs as its owner, as often as they allowed.
    boards.wake(&bob, id).await.unwrap();
    // It can be reached a moment before that is written down.
    let is_ready = |now: &DashboardWithRuns| now.run.as_ref().is_some_and(|run| run.state == DashboardRunState::Ready);
    let now = wait_for(&portal, id, "ready again", |now| is_ready(now) || !now.is_open()).await;
    let run = now.run.unwrap();
    assert_eq!((run.state, run.woken_by_name.as_deref()), (DashboardRunState::Ready, Some("bob")));
    stopped(&portal, id).await;
    let refused = boards.wake(&bob, id).await.unwrap_err();
    assert!(refused.to_string().contains("as often as its owner allows"), "{refused}");
    // Taken out of the group, out of the dashboard.
    assert_eq!(browser.get(&place).await.status, 200);
    let person = portal.person_id("bob").await;
    let out = admin.post(&format!("/groups/{}/people/{person}/remove", group.0), &[]).await;
    assert_eq!(out.status, 303, "{}", out.text());
    assert_eq!(browser.get(&place).await.status, 404);
}
