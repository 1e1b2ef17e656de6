//! Questions of a server on their way to the page: hostile, late, given up, asked twice, and nobody else's business.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::support::cluster::Cluster;
use crate::support::program::{PROGRAM, stdout};
use crate::support::server::{CODE, Server, is_alive};
use crate::support::wait::wait_until;
use crate::support::{Client, PASSWORD, Page, TestApp};

/// A portal with alice, who is about to sign in to a server of her own.
async fn with_alice_on(server: &Server) -> (TestApp, Client) {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_server("own", server).await;
    alice.prepare_on(server, "own", "alice").await;
    (portal, alice)
}

async fn begin(person: &Client) {
    assert_eq!(person.post("/clusters/own/connect", &[]).await.status, 303);
}

fn code() -> String {
    Cluster::get().code("alice")
}

/// The process of the only connection that is being opened.
fn ssh_of(portal: &TestApp) -> i32 {
    let [folder] = &portal.run_folders()[..] else { panic!("one connection") };
    let pid = portal.app.config.run_dir().join(folder).join("pid");
    std::fs::read_to_string(pid).unwrap().parse().unwrap()
}

fn refuse_tricks(page: &Page, place: &str) {
    for trick in ["<script>a", "<img", "\u{1b}", "\u{202e}", "\u{7}"] {
        assert!(!page.text().contains(trick), "{trick:?} in {place}: {}", page.text());
    }
    assert!(page.text().len() < 60_000, "{place} has {} bytes", page.text().len());
}

#[tokio::test]
async fn hostile_prompts_and_banners_are_shown_as_text_and_truncated() {
    let tricks = "<script>alert(1)</script> \u{1b}[31mred\u{7} \u{202e}gnp.exe \u{5d0}\u{5d1}\n";
    let banner = format!("{tricks}{}", "<img src=x> banner\n".repeat(5500));
    let question = format!("{tricks}{}", "<b>long</b>\n".repeat(9000));
    let prompt = " [authtok_prompt=<img src=x onerror=alert(1)> Verification code: ]\n";
    let pam = format!("auth required pam_echo.so file=@DIR@/q\n{}", CODE.replace('\n', prompt));
    let files = [("q", question.as_str()), ("banner", &banner)];
    let server = Server::asking_beside(&files, &pam, "Banner @DIR@/banner");
    let (_portal, alice) = with_alice_on(&server).await;
    begin(&alice).await;
    let asked = alice.wait_until_asked("own", "own asks").await;
    refuse_tricks(&asked, "the question");
    let said = asked.select_all("pre.said");
    assert!(said.iter().all(|text| text.starts_with("<script>alert(1)</script>")), "{said:?}");
    assert!(said.iter().any(|text| text.contains("<b>long</b>")), "the question, as text");
    alice.answer("own", &asked, &code()).await;
    let up = alice.wait_until_connected("own").await;
    assert!(up.text().contains("Sign-in message from the cluster"));
    refuse_tricks(&up, "the connection");
    refuse_tricks(&alice.get("/clusters/own").await, "the page");
}

#[tokio::test]
async fn prompt_is_not_lost_on_a_busy_machine() {
    // Between knocking and asking, the program that asks may have to wait for its turn.
    let slow = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let script = "#!/usr/bin/python3\nimport os, socket, sys, time\ns = socket.socket(socket.AF_UNIX)\n\
        s.connect(os.environ['PORTOLAN_ASKPASS_SOCKET'])\ntime.sleep(0.3)\ns.sendall(sys.argv[1].encode())\n\
        s.shutdown(socket.SHUT_WR)\nsys.stdout.write(s.recv(1024).decode())\n";
    std::fs::write(&slow, script).unwrap();
    std::fs::set_permissions(&slow, std::fs::Permissions::from_mode(0o700)).unwrap();
    let server = Server::asking(CODE, "");
    let portal = TestApp::start_with(|config| config.program = slow.to_path_buf()).await;
    let alice = portal.set_up("alice").await;
    portal.add_server("own", &server).await;
    alice.prepare_on(&server, "own", "alice").await;
    begin(&alice).await;
    let asked = alice.wait_until_asked("own", "Verification code").await;
    assert!(!asked.text().contains("asking again"), "nobody has answered yet: {}", asked.text());
    alice.answer("own", &asked, &code()).await;
    alice.wait_until_connected("own").await;
}

#[tokio::test]
async fn two_tabs_share_one_attempt_and_one_prompt() {
    let server = Server::asking(CODE, "");
    let (portal, alice) = with_alice_on(&server).await;
    tokio::join!(begin(&alice), begin(&alice), begin(&alice), begin(&alice));
    let asked = alice.wait_until_asked("own", "Verification code").await;
    begin(&alice).await;
    let other = alice.get("/clusters/own/panel").await;
    assert_eq!(other.attribute("input[name=number]", "value"), "1");
    let right = code();
    tokio::join!(alice.answer("own", &asked, &right), alice.answer("own", &other, &right));
    alice.wait_until_connected("own").await;
    begin(&alice).await;
    assert!(!server.log().contains("Failed"), "the second answer went nowhere: {}", server.log());
    assert_eq!((portal.tries("alice", "own").await, server.visits()), (1, 1));
}

#[tokio::test]
async fn login_left_half_way_can_be_cancelled_later() {
    let server = Server::asking(CODE, "");
    let (portal, alice) = with_alice_on(&server).await;
    begin(&alice).await;
    alice.wait_until_asked("own", "Verification code").await;
    drop(alice);
    let ssh = ssh_of(&portal);
    let helper = Command::new("pgrep").args(["-P", &ssh.to_string()]).output().unwrap();
    let helper = stdout(&helper).trim().parse().unwrap();
    assert!(is_alive(ssh) && is_alive(helper));
    let later = portal.visitor();
    later.sign_in("alice", PASSWORD).await;
    let panel = later.get("/clusters/own/panel").await;
    assert!(panel.text().contains("Verification code"), "it still waits: {}", panel.text());
    let form = [("purpose", "connect")];
    let after = later.post_and_follow("/clusters/own/cancel", &form).await;
    assert!(after.text().contains(">Connect<") && !after.text().contains("Not connected"));
    assert!(!is_alive(ssh) && portal.run_folders().is_empty(), "nothing is left");
    wait_until("the program that asks has ended", async || !is_alive(helper)).await;
    begin(&later).await;
    let asked = later.wait_until_asked("own", "Verification code").await;
    later.answer("own", &asked, &code()).await;
    later.wait_until_connected("own").await;
}

#[tokio::test]
async fn answer_to_an_old_prompt_never_reaches_the_next() {
    let server = Server::asking(CODE, "");
    let (_portal, alice) = with_alice_on(&server).await;
    begin(&alice).await;
    let first = alice.wait_until_asked("own", "Verification code").await;
    alice.answer("own", &first, "000000").await;
    let second = alice.wait_until_asked("own", "asking again").await;
    alice.answer("own", &first, &code()).await;
    let still = alice.get("/clusters/own/panel").await;
    assert_eq!(still.attribute("input[name=number]", "value"), "2", "the right code went nowhere");
    for odd in ["with\nbreak", &"x".repeat(1024), "\0"] {
        alice.answer("own", &second, odd).await;
    }
    assert!(alice.get("/clusters/own/panel").await.text().contains("Verification code"));
    alice.answer("own", &second, &code()).await;
    alice.wait_until_connected("own").await;
}

#[tokio::test]
async fn foreign_process_gets_no_answers_and_no_signatures() {
    let server = Server::asking(CODE, "");
    let (portal, alice) = with_alice_on(&server).await;
    begin(&alice).await;
    let asked = alice.wait_until_asked("own", "Verification code").await;
    let folder = portal.app.config.run_dir().join(&portal.run_folders()[0]);
    // Not in a blocking way: the portal that is to answer is in this very thread.
    let mut keys = tokio::process::Command::new("ssh-add");
    let keys = keys.arg("-l").env("SSH_AUTH_SOCK", folder.join("a")).output().await.unwrap();
    assert!(!keys.status.success() && stdout(&keys).is_empty(), "{keys:?}");
    let stranger = tokio::process::Command::new(PROGRAM)
        .arg("Please?")
        .env("PORTOLAN_ASKPASS_SOCKET", folder.join("p"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    alice.answer("own", &asked, &code()).await;
    alice.wait_until_connected("own").await;
    let got = stranger.wait_with_output().await.unwrap();
    assert!(!got.status.success() && got.stdout.is_empty(), "{got:?}");
    assert!(!folder.join("a").exists() && !folder.join("p").exists(), "closed after the sign-in");
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
}
