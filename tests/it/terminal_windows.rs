//! Terminals as a page uses them: picked up elsewhere, kept from others, ended for many reasons.

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use portolan::sites::OnByDefault;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::folders::with_alice;
use crate::support::cluster::Cluster;
use crate::support::connections::run;
use crate::support::server::site_at;
use crate::support::wait::wait_for;
use crate::support::{Client, TestApp};

/// A window that shows a terminal.
struct Window {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    screen: vt100::Parser,
    received: usize,
    /// How many frames of input were sent, and taken.
    frames: (u64, u64),
    /// Whether it tells how much it has shown.
    is_attentive: bool,
}

impl Window {
    async fn open(portal: &TestApp, who: &Client, terminal: &str) -> Self {
        Self::try_open(who, terminal, Some(&portal.url), portal).await.unwrap()
    }

    /// The status if it is refused.
    async fn try_open(who: &Client, terminal: &str, origin: Option<&str>, portal: &TestApp) -> Result<Self, u16> {
        let url = format!("{}{terminal}/socket?cols=80&rows=24", portal.url.replace("http", "ws"));
        let mut request = url.into_client_request().unwrap();
        request.headers_mut().insert("cookie", who.cookies().parse().unwrap());
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().unwrap());
        }
        match tokio_tungstenite::connect_async(request).await {
            Ok((socket, _)) => Ok(Self {
                socket,
                screen: vt100::Parser::new(24, 80, 0),
                received: 0,
                frames: (0, 0),
                is_attentive: true,
            }),
            Err(Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.socket.send(Message::Binary(Bytes::copy_from_slice(bytes))).await.unwrap();
        self.frames.0 += 1;
    }

    /// Sends a large text as the page does: the next part when the one before was taken.
    async fn paste(&mut self, text: &str) {
        for part in text.as_bytes().chunks(32 * 1024) {
            while self.frames.0 > self.frames.1 + 1 {
                assert_eq!(self.next().await, Some(Value::Null));
            }
            self.send(part).await;
        }
    }

    async fn type_line(&mut self, line: &str) {
        self.send(format!("{line}\r").as_bytes()).await;
    }

    async fn tell(&mut self, words: Value) {
        self.socket.send(Message::Text(words.to_string().into())).await.unwrap();
    }

    /// The next words of the portal; output goes onto the screen.
    async fn next(&mut self) -> Option<Value> {
        match self.socket.next().await {
            Some(Ok(Message::Binary(bytes))) => {
                self.screen.process(&bytes);
                self.received += bytes.len();
                if self.is_attentive {
                    // It may have been cut in the meantime, which the next look finds.
                    let words = serde_json::json!({ "shown": self.received });
                    let _ = self.socket.send(Message::Text(words.to_string().into())).await;
                }
                Some(Value::Null)
            }
            Some(Ok(Message::Text(text))) => {
                let told: Value = serde_json::from_str(&text).unwrap();
                match told["taken"].as_u64() {
                    Some(count) => self.frames.1 = count,
                    None => return Some(told),
                }
                Some(Value::Null)
            }
            Some(Ok(_)) => Some(Value::Null),
            Some(Err(_)) | None => None,
        }
    }

    fn text(&self) -> String {
        self.screen.screen().contents()
    }

    async fn wait_for(&mut self, words: &str) {
        while !self.text().contains(words) {
            let told = self.next().await;
            assert_eq!(told, Some(Value::Null), "instead of {words:?}: {}", self.text());
        }
    }

    /// The words with which the portal ends it.
    async fn wait_for_end(&mut self) -> Value {
        loop {
            match self.next().await {
                Some(Value::Null) => {}
                told => return told.unwrap_or_default(),
            }
        }
    }
}

/// Opens a terminal and gives its address.
async fn open_terminal(who: &Client) -> String {
    let opened = who.post("/clusters/key/terminal", &[]).await;
    assert_eq!(opened.status, 303, "{}", opened.text());
    assert!(opened.location().starts_with("/terminals/"), "{}", who.get(opened.location()).await.text());
    opened.location().to_owned()
}

#[tokio::test]
async fn terminal_is_picked_up_as_it_was() {
    let (portal, _, alice) = with_alice().await;
    let terminal = open_terminal(&alice).await;
    let page = alice.get(&terminal).await;
    assert!(page.header("content-security-policy").contains("style-src 'self' 'unsafe-inline'"));
    assert!(page.header("content-security-policy").contains("script-src 'self';"));
    let mut first = Window::open(&portal, &alice, &terminal).await;
    first.type_line("echo sum=$((40+2))").await;
    first.wait_for("sum=42").await;
    drop(first);
    assert!(alice.get("/terminals").await.text().contains(&terminal));
    let mut second = Window::open(&portal, &alice, &terminal).await;
    second.wait_for("sum=42").await;
    second.tell(serde_json::json!({ "cols": 100, "rows": 30 })).await;
    let whole =
        r"until [ $(stty size | tr ' ' x) = 30x100 ]; do sleep 0.1; done; printf '\033[?1049h\033[H\033[2J%s' wh'ole';";
    second.type_line(&format!(r"{whole} read x; printf '\033[?1049l%s\n' ag'ain'")).await;
    second.wait_for("whole").await;
    let mut third = Window::open(&portal, &alice, &terminal).await;
    assert_eq!(second.wait_for_end().await, serde_json::json!({ "moved": true }));
    third.wait_for("whole").await;
    assert!(third.screen.screen().alternate_screen());
    third.send(b"\r").await;
    third.wait_for("again").await;
    assert!(third.text().contains("sum=42"), "{}", third.text());
}

#[tokio::test]
async fn terminals_are_their_owners_alone() {
    let (portal, admin, alice) = with_alice().await;
    let terminal = open_terminal(&alice).await;
    for other in [&admin, &portal.member(&admin, "bob").await] {
        assert_eq!(other.get(&terminal).await.status, 404);
        assert_eq!(other.post(&format!("{terminal}/close"), &[]).await.status, 404);
        assert_eq!(Window::try_open(other, &terminal, Some(&portal.url), &portal).await.err(), Some(404));
        assert!(!other.get("/terminals").await.text().contains(&terminal));
    }
    let visitor = portal.visitor();
    assert_eq!(visitor.get(&terminal).await.status, 303);
    assert_eq!(Window::try_open(&visitor, &terminal, Some(&portal.url), &portal).await.err(), Some(401));
    let dashboards = portal.dashboards_url.clone();
    for origin in [Some("http://evil.example.org"), Some(dashboards.as_str()), Some("null"), None] {
        assert_eq!(Window::try_open(&alice, &terminal, origin, &portal).await.err(), Some(403), "{origin:?}");
    }
    let request = alice.request(reqwest::Method::GET, &format!("{terminal}/socket")).header("origin", &portal.url);
    assert_eq!(crate::support::client::send(request).await.status, 400, "no socket");
}

#[tokio::test]
async fn disabled_account_loses_its_terminals_at_once() {
    let (portal, admin, alice) = with_alice().await;
    let terminal = open_terminal(&alice).await;
    let mut window = Window::open(&portal, &alice, &terminal).await;
    window.type_line("sleep 86398").await;
    let running = || Cluster::get().count_processes("sleep 86398");
    wait_for("the program", async || if running() == 1 { Ok(()) } else { Err(running().to_string()) }).await;
    let id = portal.person_id("alice").await;
    assert_eq!(admin.post(&format!("/people/{id}/disable"), &[]).await.status, 303);
    let told = window.wait_for_end().await;
    assert!(told["signed_out"] == true || told["ended"].is_string(), "{told}");
    wait_for("its end", async || if running() == 0 { Ok(()) } else { Err(running().to_string()) }).await;
    wait_for("the list", async || match portal.app.terminals.list(portolan::domain::PersonId(id)).len() {
        0 => Ok(()),
        count => Err(count.to_string()),
    })
    .await;
}

#[tokio::test]
async fn signing_out_ends_the_window_but_not_the_terminal() {
    let (portal, _, alice) = with_alice().await;
    let terminal = open_terminal(&alice).await;
    let mut window = Window::open(&portal, &alice, &terminal).await;
    window.type_line("echo sum=$((40+2))").await;
    window.wait_for("sum=42").await;
    alice.post("/sign-out", &[]).await;
    assert_eq!(window.wait_for_end().await, serde_json::json!({ "signed_out": true }));
    let again = portal.visitor();
    again.sign_in("alice", crate::support::PASSWORD).await;
    if again.get(&terminal).await.status == 200 {
        Window::open(&portal, &again, &terminal).await.wait_for("sum=42").await;
    }
}

/// What nobody shows is not sent, and holds up nothing else.
#[tokio::test]
async fn endless_output_is_bounded() {
    let (portal, _, alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let terminal = open_terminal(&alice).await;
    let mut window = Window::open(&portal, &alice, &terminal).await;
    window.is_attentive = false;
    window.type_line("yes filler").await;
    let end = async {
        let told = window.wait_for_end().await;
        (told, window.received)
    };
    let others = async {
        for _ in 0..10 {
            assert_eq!(run(&line, "echo", &["well"]).await.unwrap().stdout_text(), "well\n");
        }
    };
    let ((told, received), ()) = tokio::join!(end, others);
    assert_eq!(told, serde_json::json!({ "stuck": true }));
    assert!((512 * 1024..700 * 1024).contains(&received), "{received}");
    // Without a window it goes on; the next one finds it at work.
    let mut window = Window::open(&portal, &alice, &terminal).await;
    window.wait_for("filler\nfiller").await;
    window.send(b"\x03").await;
    window.type_line("clear; echo sum=$((40+2))").await;
    window.wait_for("sum=42").await;
}

#[tokio::test]
async fn letters_split_between_frames_arrive_whole() {
    let (portal, _, alice) = with_alice().await;
    let terminal = open_terminal(&alice).await;
    let mut window = Window::open(&portal, &alice, &terminal).await;
    for byte in "printf '[%s]\\n' 'äß€'\r".as_bytes() {
        window.send(&[*byte]).await;
    }
    window.wait_for("[äß€]").await;
    // A large paste, all of which comes back as it would on a screen.
    window.type_line("echo re''ady; wc -c").await;
    window.wait_for("ready").await;
    window.paste(&format!("{}\r", "x".repeat(63)).repeat(16 * 1024)).await;
    window.send(b"\x04").await;
    window.wait_for("1048576").await;
}

#[tokio::test]
async fn end_of_a_terminal_is_told_and_recorded() {
    let (mut portal, admin, alice) = with_alice().await;
    let terminal = open_terminal(&alice).await;
    let mut window = Window::open(&portal, &alice, &terminal).await;
    window.type_line("echo top''secret; exit").await;
    assert_eq!(window.wait_for_end().await, serde_json::json!({ "ended": "The shell has ended." }));
    let gone = alice.get(&terminal).await;
    assert_eq!(gone.status, 404);
    assert!(gone.text().contains("This terminal has ended") && gone.text().contains("Open a new terminal"));
    let log = wait_for("the entry", async || {
        let page = admin.get("/activity").await;
        let is_there = page.text().contains("Ended a terminal on a cluster");
        if is_there { Ok(page) } else { Err(page.text().to_owned()) }
    })
    .await;
    assert!(log.text().contains("Opened a terminal on a cluster") && !log.text().contains("topsecret"));

    // Closing one, nobody looking, the connection, the portal.
    let terminal = open_terminal(&alice).await;
    let mut window = Window::open(&portal, &alice, &terminal).await;
    let closed = alice.post_and_follow(&format!("{terminal}/close"), &[]).await;
    assert!(closed.text().contains("Terminal closed.") && !closed.text().contains(&terminal));
    assert_eq!(window.wait_for_end().await, serde_json::json!({ "ended": "You closed this terminal." }));

    let terminal = open_terminal(&alice).await;
    let seen = open_terminal(&alice).await;
    let mut window = Window::open(&portal, &alice, &seen).await;
    portal.clock.advance(31 * 60);
    portal.app.terminals.sweep().await.unwrap();
    wait_for("the unseen one's end", async || match alice.get(&terminal).await.status {
        404 => Ok(()),
        status => Err(status),
    })
    .await;
    assert_eq!(alice.get(&seen).await.status, 200, "someone looks at it");
    alice.post("/clusters/key/disconnect", &[]).await;
    assert_eq!(window.wait_for_end().await, serde_json::json!({ "ended": "The connection to the cluster was lost." }));

    alice.connect("key").await;
    let terminal = open_terminal(&alice).await;
    let mut window = Window::open(&portal, &alice, &terminal).await;
    let (told, ()) = tokio::join!(window.wait_for_end(), portal.stop());
    assert_eq!(told, serde_json::json!({ "ended": "The portal is restarting." }));
    portal.start_again().await;
    assert_eq!(alice.get(&terminal).await.status, 404);
}

#[tokio::test]
async fn terminals_are_limited_and_can_be_switched_off() {
    let (mut portal, admin, alice) = with_alice().await;
    let most = portal.connection("alice", "key").await.session_limit() / 2;
    for _ in 0..most {
        open_terminal(&alice).await;
    }
    let refused = alice.post_and_follow("/clusters/key/terminal", &[]).await;
    assert!(refused.text().contains("allows no further terminal"), "{}", refused.text());
    assert_eq!(alice.get("/terminals").await.select_all("form[action$='/close']").len(), most);
    // However many clusters there are, each person has a limit.
    let mut opened = most;
    let refused = 'opening: loop {
        let slug = format!("more-{opened}");
        portal.add_site(&site_at(&slug, Cluster::get().port("key"))).await;
        alice.name_user(&slug, "alice").await;
        alice.connect(&slug).await;
        for _ in 0..most {
            let answer = alice.post(&format!("/clusters/{slug}/terminal"), &[]).await;
            if !answer.location().starts_with("/terminals/") {
                break 'opening alice.get(answer.location()).await;
            }
            opened += 1;
        }
    };
    assert_eq!(opened, portolan::terminals::MAX_PER_PERSON);
    assert!(refused.text().contains("You already have 8 terminals."), "{}", refused.text());

    let mut site = site_at("quiet", Cluster::get().port("key"));
    site.terminals = OnByDefault(false);
    portal.add_site(&site).await;
    alice.name_user("quiet", "alice").await;
    alice.connect("quiet").await;
    assert!(!alice.get("/clusters/quiet").await.text().contains("Open terminal"));
    assert!(alice.get("/clusters/key").await.text().contains("Open terminal"));
    let refused = alice.post_and_follow("/clusters/quiet/terminal", &[]).await;
    assert!(refused.text().contains("Terminals are switched off for this cluster."), "{}", refused.text());

    portal.restart_with(|config| config.terminals.enabled = false).await;
    assert!(alice.get("/terminals").await.text().contains("switched off on this portal"));
    let page = alice.get("/clusters/key").await;
    assert!(!page.text().contains("Open terminal") && !page.text().contains("/terminals"), "{}", page.text());
    let refused = alice.post_and_follow("/clusters/key/terminal", &[]).await;
    assert!(refused.text().contains("Terminals are switched off on this portal."), "{}", refused.text());
    drop(admin);
}

#[tokio::test]
async fn shell_opens_inside_a_running_job() {
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    let alice = portal.member(&admin, "alice").await;
    portal.add_cluster("key").await;
    alice.prepare("key", "alice").await;
    alice.connect("key").await;
    let line = portal.connection("alice", "key").await;
    let made =
        run(&line, "sbatch", &["--parsable", "-t", "10", "-o", "/dev/null", "--wrap", "sleep 600"]).await.unwrap();
    let id = made.stdout_text().trim().to_owned();
    let page = format!("/jobs/key/{id}");
    wait_for("the button", async || {
        let page = alice.get(&page).await;
        if page.text().contains("Open shell in job") { Ok(()) } else { Err(page.text().to_owned()) }
    })
    .await;
    let opened = alice.post(&format!("{page}/terminal"), &[]).await;
    let terminal = opened.location().to_owned();
    assert!(terminal.starts_with("/terminals/"), "{}", alice.get(&terminal).await.text());
    let mut window = Window::open(&portal, &alice, &terminal).await;
    window.type_line("echo job=$SLURM_JOB_ID").await;
    window.wait_for(&format!("job={id}")).await;
    assert_eq!(admin.post(&format!("{page}/terminal"), &[]).await.status, 404, "someone else's");
    run(&line, "scancel", &[&id]).await.unwrap();
    assert!(window.wait_for_end().await["ended"].is_string());
    let refused = wait_for("the end", async || {
        let answer = alice.post_and_follow(&format!("{page}/terminal"), &[]).await;
        if answer.text().contains("running, so you can") { Ok(()) } else { Err(answer.text().to_owned()) }
    });
    refused.await;
}
