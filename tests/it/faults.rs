//! A full disk, a locked database, a killed server: nothing half-written, and clear words.

use std::process::{Command, Stdio};

use crate::support::app::new_person;
use crate::support::program::{Installation, PROGRAM, Server, stderr, stdout};
use crate::support::wait::wait_until;
use crate::support::{Client, PASSWORD, TestApp};

/// Starts the portal with its data on a disk of four megabytes of its own.
async fn serve_on_small_disk(installation: &Installation) -> Server {
    std::fs::create_dir(installation.data()).unwrap();
    let script = r#"mount -t tmpfs -o size=4M,mode=700 tmpfs "$1" && exec "$2" serve"#;
    let mut command = Command::new("unshare");
    if !is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(installation.data()).arg(PROGRAM);
    installation.configure(&mut command);
    let log = installation.dir.path().join("log");
    let child = command
        .env("PATH", std::env::var_os("PATH").unwrap())
        .stderr(std::fs::File::create(&log).unwrap())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let server = Server::new(child, log);
    server.wait_until_ready(&installation.url()).await;
    server
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Fills the small disk to the last byte; gives the file to delete.
fn fill(installation: &Installation, pid: u32) -> std::path::PathBuf {
    use std::io::Write as _;
    let data = installation.data();
    let path = std::path::PathBuf::from(format!("/proc/{pid}/root{}/filler", data.display()));
    let mut file = std::fs::File::create(&path).unwrap();
    for size in [65536, 4096, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
    path
}

#[tokio::test]
async fn a_full_disk_changes_nothing_and_says_so() {
    let installation = Installation::new();
    let server = serve_on_small_disk(&installation).await;
    let admin = Client::new(&installation.url());
    assert_eq!(admin.post(&server.setup_path(), &new_person("ada")).await.status, 303);

    let filler = fill(&installation, server.child.id());
    let page = admin.post("/groups", &[("name", "Tide Group")]).await;
    assert_eq!((page.status, page.select_text("h1").as_str()), (507, "The portal's disk is full"));
    assert_eq!(admin.get("/").await.status, 200, "what is known can still be read");
    assert!(!admin.get("/groups").await.text().contains("Tide Group"), "nothing was written");
    let health = Client::new(&format!("http://127.0.0.1:{}", installation.ports[2])).get("/healthz").await;
    assert_eq!(health.status, 503);
    assert!(health.text().contains("almost full"), "{}", health.text());

    std::fs::remove_file(filler).unwrap();
    let page = admin.post("/groups", &[("name", "Tide Group")]).await;
    assert_eq!(page.status, 303, "with room again it goes on by itself: {}", server.log());
}

#[tokio::test]
async fn a_locked_database_is_waited_for_and_then_named() {
    let (portal, admin) = TestApp::with_admin().await;
    let other = portolan::store::Store::open(portal.app.store.path()).await.unwrap();
    let lock = other.write().await.unwrap();
    let page = admin.post("/groups", &[("name", "Smith Lab")]).await;
    assert_eq!((page.status, page.select_text("h1").as_str()), (503, "The portal is busy"));
    assert_eq!(admin.get("/").await.status, 200, "readers do not wait");
    drop(lock);
    assert_eq!(admin.post("/groups", &[("name", "Smith Lab")]).await.status, 303);
}

#[tokio::test]
async fn a_server_killed_during_a_sign_up_leaves_a_whole_account_or_none() {
    let installation = Installation::new();
    let add = ["user", "add", "ada", "--admin", "--password-stdin"];
    assert!(installation.run_with_input(&add, PASSWORD).status.success());
    let mut outcomes = [0, 0];
    let log = installation.data().join("portolan.db-wal");
    let written = || std::fs::metadata(&log).map_or(0, |file| file.len());
    for round in 0..8 {
        let name = format!("bob{round}");
        let server = installation.serve().await;
        let link = stdout(&installation.run(&["invite", "--group", "Smith Lab"]));
        let path = link.trim().strip_prefix(&installation.url()).unwrap().to_owned();
        let visitor = Client::new(&installation.url());
        let request =
            visitor.request(reqwest::Method::POST, &path).header("origin", installation.url()).form(&new_person(&name));
        let before = written();
        let answer = tokio::spawn(request.send());
        // The moment differs from round to round: at once, as soon as something is written, and after the answer.
        // Whatever it hits must hold.
        match round % 3 {
            0 => tokio::task::yield_now().await,
            1 => wait_until("it writes", async || written() != before || answer.is_finished()).await,
            _ => wait_until("it answers", async || answer.is_finished()).await,
        }
        let _killed = server.stop("KILL");
        let _ = answer.await;

        let server = installation.serve().await;
        let joined = visitor.get(&path).await.status;
        let signed_in = Client::new(&installation.url()).sign_in(&name, PASSWORD).await.status;
        let listed = stdout(&installation.run(&["user", "list"]));
        let in_group = listed.lines().any(|line| line.starts_with(&name) && line.contains("Smith Lab"));
        match (joined, signed_in, in_group) {
            (410, 303, true) => outcomes[0] += 1,
            (200, 422, false) => outcomes[1] += 1,
            half => panic!("half an account in round {round}: {half:?}\n{listed}"),
        }
        assert!(server.stop("TERM").success());
    }
    assert_eq!(outcomes[0] + outcomes[1], 8);
    let doctor = installation.run(&["doctor"]);
    assert!(stdout(&doctor).contains("The database is intact"), "{}{}", stdout(&doctor), stderr(&doctor));
}

#[tokio::test]
async fn told_to_stop_it_lets_requests_finish_and_ends_streams() {
    let installation = Installation::new();
    let server = installation.serve().await;
    let admin = Client::new(&installation.url());
    assert_eq!(admin.post(&server.setup_path(), &new_person("ada")).await.status, 303);
    let mut stream = admin.request(reqwest::Method::GET, "/events").send().await.unwrap();
    assert_eq!(stream.status(), 200);
    assert!(server.stop("TERM").success(), "an open stream does not hold it up");
    assert!(matches!(stream.chunk().await, Ok(None) | Err(_)), "the stream has ended");
}

#[tokio::test]
async fn two_portals_do_not_share_a_folder() {
    let installation = Installation::new();
    let server = installation.serve().await;
    let second = installation.run(&["serve"]);
    assert!(!second.status.success());
    assert!(stderr(&second).contains("Another portal is already using"), "{}", stderr(&second));
    assert!(server.stop("TERM").success());
}
