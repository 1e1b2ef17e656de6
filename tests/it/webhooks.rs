//! Notices at an address of one's own: signed, once, tried again, and never into networks that are not one's own.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use portolan::domain::PersonId;
use portolan::store;
use sha2::Sha256;

use crate::notifications::{Told, ended, tell};
use crate::support::wait::{PATIENCE, note_seen, wait_for_value, wait_until};
use crate::support::{Client, PASSWORD, TestApp};

/// A request that arrived: its head in lower case, and its body.
struct Arrived {
    head: String,
    body: Vec<u8>,
}

impl Arrived {
    fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_default()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn is_signed_with(&self, secret: &str) -> bool {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(self.header("x-portolan-timestamp").as_bytes());
        mac.update(b".");
        mac.update(&self.body);
        let mut expected = "sha256=".to_owned();
        for byte in mac.finalize().into_bytes() {
            write!(expected, "{byte:02x}").unwrap();
        }
        self.header("x-portolan-signature") == expected
    }
}

/// Answers every request with this, and tells of it.
fn receive(listener: TcpListener, answer: String) -> Receiver<Arrived> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let mut bytes = Vec::new();
            let mut buffer = [0; 4096];
            let arrived = loop {
                let Ok(count @ 1..) = stream.read(&mut buffer) else { break None };
                bytes.extend_from_slice(&buffer[..count]);
                let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
                    continue;
                };
                let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
                if bytes.len() >= end + 4 + length {
                    break Some(Arrived { head, body: bytes[end + 4..].to_vec() });
                }
            };
            let _ = stream.write_all(answer.as_bytes());
            if arrived.is_some_and(|arrived| sender.send(arrived).is_err()) {
                return;
            }
        }
    });
    receiver
}

const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// A portal whose administrator allows addresses inside, with a member.
async fn open_portal() -> (TestApp, Client) {
    let portal = TestApp::start_with(|config| config.notifications.allow_private = true).await;
    let admin = portal.set_up("ada").await;
    let bob = portal.member(&admin, "bob").await;
    portal.add_cluster("key").await;
    (portal, bob)
}

/// Sets the address and gives the secret that is shown once.
async fn set(bob: &Client, address: &str) -> String {
    let kinds = [("kind", "ended"), ("kind", "never")];
    let form: Vec<_> = [("address", address)].into_iter().chain(kinds).collect();
    let page = bob.post_and_follow("/account/notifications/webhook", &form).await;
    let secret = page.select_text(".alert code");
    assert!(secret.len() >= 40, "{secret}");
    assert!(!bob.get("/account/notifications").await.text().contains(&secret), "shown once");
    secret
}

async fn stored_webhook(portal: &TestApp) -> store::webhooks::Webhook {
    let bob = PersonId(portal.person_id("bob").await);
    let mut db = portal.app.store.read().await.unwrap();
    let webhook = store::webhooks::get(&mut db, bob).await.unwrap().unwrap();
    note_seen(|| format!("{webhook:#?}"));
    webhook
}

fn next(arrived: &Receiver<Arrived>) -> Arrived {
    arrived.recv_timeout(PATIENCE).expect("a message")
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_message_arrives_once_signed_and_folded() {
    let (portal, bob) = open_portal().await;
    let (listener, port) = listen();
    let arrived = receive(listener, FINE.to_owned());
    tell(&portal, "bob", "key", &ended(1..2, "before", "COMPLETED")).await;
    let secret = set(&bob, &format!("http://127.0.0.1:{port}/hook/s3cr3t")).await;

    let page = bob.post("/account/notifications/webhook/test", &[]).await;
    assert!(page.text().contains("Test message sent"), "{}", page.select_text("main"));
    let trial = next(&arrived);
    assert!(trial.is_signed_with(&secret) && trial.head.starts_with("post /hook/s3cr3t "));
    assert!(trial.json()["text"].as_str().unwrap().contains("test message"));
    let page = bob.post("/account/notifications/webhook/test", &[]).await;
    assert!(page.text().contains("a moment ago. Wait a few seconds"), "not a hammer");

    let name = "<!channel> \"x\" \u{202e}<script>";
    let mut all = ended(2..30, name, "COMPLETED");
    all.push(Told { number: 99, task: -1, name: "unwanted", kind: "started", state: "RUNNING" });
    tell(&portal, "bob", "key", &all).await;
    let message = next(&arrived);
    assert!(message.is_signed_with(&secret) && !message.is_signed_with("another"));
    assert_eq!(message.header("content-type"), "application/json");
    let body = message.json();
    let text = body["text"].as_str().unwrap();
    assert!(text.starts_with("28 jobs named &lt;!channel&gt;"), "{text}");
    assert!(!text.contains('\u{202e}') && !text.contains("before") && !text.contains("unwanted"), "{text}");
    assert_eq!(body["portolan"]["counts"]["done"], 28);
    assert_eq!(body["portolan"]["counts"]["started"], 0);

    // The next one waits half a minute, and then holds everything.
    wait_until("it is noted", async || stored_webhook(&portal).await.sent_at.is_some()).await;
    tell(&portal, "bob", "key", &ended(40..41, "soon", "FAILED")).await;
    portal.app.webhooks.send_due().await.unwrap();
    tell(&portal, "bob", "key", &ended(41..42, "later", "FAILED")).await;
    assert!(arrived.try_recv().is_err(), "not yet");
    portal.clock.advance(31);
    portal.app.notifications.notify(PersonId(portal.person_id("bob").await));
    let text = next(&arrived).json()["text"].as_str().unwrap().to_owned();
    assert!(text.contains("soon failed") && text.contains("later failed"), "{text}");
    let noted = portal.clock.now().plus(30);
    wait_for_value("it is noted", async || stored_webhook(&portal).await.next_at, |seen| *seen == noted).await;
    portal.clock.advance(31);
    portal.app.webhooks.send_due().await.unwrap();
    assert!(arrived.try_recv().is_err(), "once");
    let listed = bob.get("/account/activity").await;
    assert!(listed.text().contains("Changed where notifications are sent"));
    assert!(!listed.text().contains("s3cr3t") && !bob.get("/account/notifications").await.text().contains("s3cr3t"));
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_alerts_of_a_group_arrive_if_chosen() {
    let (portal, bob) = open_portal().await;
    let (listener, port) = listen();
    let arrived = receive(listener, FINE.to_owned());
    let address = format!("http://127.0.0.1:{port}/hook");
    set(&bob, &address).await;
    let person = PersonId(portal.person_id("bob").await);
    let alert = async |text: &str| {
        let mut tx = portal.app.store.write().await.unwrap();
        let group = store::groups::list_for_person(&mut tx, person).await.unwrap()[0].group_id;
        store::notifications::add_group(&mut tx, person, group, text, portal.clock.now()).await.unwrap();
        store::commit(tx).await.unwrap();
        portal.app.webhooks.send_due().await.unwrap();
    };
    alert("Unwanted alert.").await;
    let form = [("address", ""), ("kind", "ended"), ("kind", "group")];
    assert_eq!(bob.post("/account/notifications/webhook", &form).await.status, 303);
    let page = bob.get("/account/notifications").await;
    assert_eq!(page.select_all("input[value=group][checked]").len(), 1);
    alert("86% of the 100 core hours has been used.").await;
    let body = next(&arrived).json();
    let text = body["text"].as_str().unwrap();
    assert!(text.starts_with("86% of the 100 core hours has been used. http") && !text.contains("Unwanted"), "{text}");
    assert_eq!(body["portolan"]["alerts"][0]["text"], "86% of the 100 core hours has been used.");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_delivery_is_retried_also_after_a_restart() {
    let (mut portal, bob) = open_portal().await;
    let (listener, port) = listen();
    drop(listener);
    let secret = set(&bob, &format!("http://127.0.0.1:{port}/")).await;
    tell(&portal, "bob", "key", &ended(1..2, "first", "COMPLETED")).await;
    wait_for_value("one failure", async || stored_webhook(&portal).await.failures, |seen| *seen == 1).await;
    let page = bob.get("/account/notifications").await;
    assert!(page.text().contains("reach 127.0.0.1."), "{}", page.select_text("main"));
    assert_eq!(stored_webhook(&portal).await.next_at, portal.clock.now().plus(60));
    portal.clock.advance(61);
    portal.app.webhooks.send_due().await.unwrap();
    assert_eq!(stored_webhook(&portal).await.next_at, portal.clock.now().plus(120), "pauses grow");

    portal.stop().await;
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let arrived = receive(listener, FINE.to_owned());
    portal.clock.advance(121);
    portal.start_again().await;
    let message = next(&arrived);
    assert!(message.is_signed_with(&secret));
    assert!(message.json()["text"].as_str().unwrap().starts_with("first completed"));
    wait_for_value("it is noted", async || stored_webhook(&portal).await.failures, |seen| *seen == 0).await;
    assert!(stored_webhook(&portal).await.problem.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn delivery_is_given_up_after_three_days_and_reported() {
    let (portal, bob) = open_portal().await;
    let (listener, port) = listen();
    let arrived = receive(listener, "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".into());
    set(&bob, &format!("http://127.0.0.1:{port}/")).await;
    tell(&portal, "bob", "key", &ended(1..2, "first", "COMPLETED")).await;
    next(&arrived);
    wait_for_value("one failure", async || stored_webhook(&portal).await.failures, |seen| *seen == 1).await;
    assert!(stored_webhook(&portal).await.problem.contains("status 404"));
    portal.clock.advance(3 * 86_400);
    portal.app.webhooks.send_due().await.unwrap();
    bob.sign_in("bob", PASSWORD).await;
    wait_until("it is off", async || stored_webhook(&portal).await.stopped_at.is_some()).await;
    wait_until("and said", async || bob.get("/notifications").await.text().contains("Your webhook was turned off"))
        .await;
    let page = bob.get("/account/notifications").await;
    assert!(page.text().contains("Turned off"));
    while arrived.try_recv().is_ok() {}
    tell(&portal, "bob", "key", &ended(2..3, "second", "COMPLETED")).await;
    portal.clock.advance(86_400);
    bob.sign_in("bob", PASSWORD).await;
    portal.app.webhooks.send_due().await.unwrap();
    assert!(arrived.try_recv().is_err(), "nothing is sent");
    // Saving it again turns it on, for what is new from then on.
    assert_eq!(bob.post("/account/notifications/webhook", &[("address", ""), ("kind", "ended")]).await.status, 303);
    portal.app.webhooks.send_due().await.unwrap();
    tell(&portal, "bob", "key", &ended(3..4, "third", "COMPLETED")).await;
    let text = next(&arrived).json()["text"].as_str().unwrap().to_owned();
    assert!(text.contains("third") && !text.contains("second"), "{text}");
    assert_eq!(bob.post("/account/notifications/webhook/remove", &[]).await.status, 303);
    assert!(!bob.get("/account/notifications").await.text().contains("Sent to"));
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_refused() {
    let (portal, _, bob) = TestApp::with_member("bob").await;
    let (listener, port) = listen();
    let arrived = receive(listener, FINE.to_owned());
    for (address, words) in [
        (format!("https://127.0.0.1:{port}/"), "private network"),
        (format!("https://2130706433:{port}/"), "private network"),
        (format!("https://[::ffff:127.0.0.1]:{port}/"), "private network"),
        (format!("https://localhost:{port}/"), "private network"),
        ("https://10.1.2.3/".into(), "private network"),
        ("https://192.168.0.1/".into(), "private network"),
        ("https://169.254.169.254/latest/meta-data/".into(), "private network"),
        ("https://[::1]/".into(), "private network"),
        ("https://[fd00::1]/".into(), "private network"),
        ("https://0.0.0.0/".into(), "private network"),
        (format!("http://127.0.0.1:{port}/"), "must start with https"),
        ("https://no-such-host.invalid/".into(), "The host name wasn't found"),
        ("https://u:p@example.org/".into(), "must not contain a user name or password"),
        ("https://example.org:22/".into(), "port"),
        ("file:///etc/passwd".into(), "a web address. Copy it"),
        ("javascript:alert(1)".into(), "a web address. Copy it"),
        (String::new(), "Enter a webhook address"),
    ] {
        let page = bob.post("/account/notifications/webhook", &[("address", &address), ("kind", "ended")]).await;
        assert_eq!(page.status, 422, "{address}");
        assert!(
            page.select_text(".error-summary").contains(words),
            "{address}: {}",
            page.select_text(".error-summary")
        );
    }
    assert!(arrived.try_recv().is_err(), "nobody was asked");
    assert_eq!(bob.post("/account/notifications/webhook/test", &[]).await.status, 404, "there is none");
    assert_eq!(bob.post("/account/notifications/webhook/secret", &[]).await.status, 404);
    drop(portal);
}

/// What was allowed once is checked at each sending.
#[tokio::test(flavor = "multi_thread")]
async fn saved_addresses_are_checked_again_at_each_delivery() {
    let (mut portal, bob) = open_portal().await;
    let (listener, port) = listen();
    let arrived = receive(listener, FINE.to_owned());
    set(&bob, &format!("http://127.0.0.1:{port}/")).await;
    portal.restart_with(|config| config.notifications.allow_private = false).await;
    tell(&portal, "bob", "key", &ended(1..2, "first", "COMPLETED")).await;
    wait_for_value("one failure", async || stored_webhook(&portal).await.failures, |seen| *seen >= 1).await;
    assert!(stored_webhook(&portal).await.problem.contains("private network"));
    assert!(arrived.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_not_followed() {
    let (_portal, bob) = open_portal().await;
    let ((inner, inner_port), (outer, outer_port)) = (listen(), listen());
    let reached = receive(inner, FINE.to_owned());
    let moved = format!(
        "HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:{inner_port}/x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    let arrived = receive(outer, moved);
    set(&bob, &format!("http://127.0.0.1:{outer_port}/")).await;
    let page = bob.post("/account/notifications/webhook/test", &[]).await;
    assert!(page.text().contains("redirects to another address"), "{}", page.select_text("main"));
    next(&arrived);
    assert!(reached.try_recv().is_err(), "nobody went there");
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_secret_can_be_renewed() {
    let (_portal, bob) = open_portal().await;
    let (listener, port) = listen();
    let arrived = receive(listener, FINE.to_owned());
    let old = set(&bob, &format!("http://127.0.0.1:{port}/")).await;
    let new = bob.post_and_follow("/account/notifications/webhook/secret", &[]).await.select_text(".alert code");
    assert_ne!(old, new);
    bob.post("/account/notifications/webhook/test", &[]).await;
    let test = next(&arrived);
    assert!(test.is_signed_with(&new) && !test.is_signed_with(&old));
}
