//! Copies and downloads as transfers: what arrives is identical, whatever breaks meanwhile.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use portolan::domain::{PersonId, TransferId};
use portolan::store::transfers::{Transfer, TransferState};
use reqwest::Method;

use crate::files_transfers::{transfers, wait_for_state};
use crate::folders::{Folder, with_alice};
use crate::support::cluster::Cluster;
use crate::support::server::Server;
use crate::support::wait::wait_for_value;
use crate::support::{Client, TestApp};

const OVER: [TransferState; 3] = [TransferState::Done, TransferState::Failed, TransferState::Cancelled];

/// Waits until the only transfer is over; it must be done.
async fn wait_until_done(portal: &TestApp) -> Transfer {
    let is_over = |all: &Vec<Transfer>| matches!(all.as_slice(), [one] if OVER.contains(&one.state));
    let done = wait_for_value("over", async || transfers(portal).await, is_over).await.remove(0);
    assert_eq!(done.state, TransferState::Done, "{done:?}");
    done
}

/// Waits until some bytes have passed.
async fn wait_for_bytes(portal: &TestApp) {
    let person = PersonId(portal.person_id("alice").await);
    let look = async || portal.app.transfers.list(person).await.unwrap().remove(0);
    let (row, _) = wait_for_value("bytes pass", look, |(row, now)| now.bytes_done > 0 || row.state.is_over()).await;
    assert!(!row.state.is_over(), "it is too fast for this test: {row:?}");
}

async fn start_copy(who: &Client, slug: &str, folder: &str, names: &[&str], to: (&str, &str)) {
    let mut form = vec![("path", folder), ("cluster", to.0), ("target", to.1), ("step", "confirm")];
    form.extend(names.iter().map(|name| ("name", *name)));
    let answer = who.post(&format!("/files/{slug}/copy"), &form).await;
    let there = format!("/files/{}?path=", to.0);
    assert!(answer.status == 303 && answer.location().starts_with(&there), "{}", answer.select_text("main"));
}

#[tokio::test]
async fn copy_keeps_names_links_modes_and_times_and_replaces_nothing() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "mkdir -p tree/sub/empty to; echo 1 >tree/a; echo secret >tree/key; chmod 600 tree/key; chmod 700 tree/sub
         head -c 3000000 /dev/urandom >tree/sub/large; : >tree/nothing; touch -d 2020-02-02 tree/a
         touch $'tree/bad\\xff\\nname' 'tree/it'\"'\"'s $(id)' -- tree/-rf; ln -s ../a tree/sub/link; ln -s nowhere tree/lost
         mkfifo tree/pipe; echo old >to/data.csv; echo new >data.csv; chmod 4755 tree/-rf",
    );
    let question = alice.post("/files/key/copy", &[("path", folder.path.as_str()), ("name", "tree")]).await;
    assert!(question.status == 200 && question.text().contains("Copy tree"), "{}", question.select_text("main"));
    let to = format!("{}/to", folder.path.replace("/scratch/alice", "$SCRATCH"));
    start_copy(&alice, "key", &folder.path, &["tree", "data.csv"], ("key", &to)).await;
    let done = wait_until_done(&portal).await;
    assert!(done.message.contains("1 special file"), "{}", done.message);
    assert_eq!((done.files_done, done.files_total), (10, 11), "all but the pipe");
    folder.tell(&format!(
        "set -e
         cd {}
         rm tree/pipe
         diff -r --no-dereference tree to/tree
         test \"$(cat to/data.csv)\" = old
         test \"$(cat 'to/data (2).csv')\" = new
         test \"$(readlink to/tree/lost)\" = nowhere
         test \"$(stat -c %a to/tree/key to/tree/sub to/tree/-rf | xargs)\" = '600 700 755'
         test \"$(stat -c %Y tree/a)\" = \"$(stat -c %Y to/tree/a)\"
         ! ls -A to to/tree | grep portolan-",
        folder.path
    ));
}

#[tokio::test]
async fn folder_is_not_copied_into_itself_or_to_nowhere() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir -p tree/sub; touch tree/a; ln -s tree/sub link");
    for (target, words) in [("tree/sub", "into itself"), ("link", "into itself")] {
        start_copy(&alice, "key", &folder.path, &["tree"], ("key", &format!("{}/{target}", folder.path))).await;
        let look = async || transfers(&portal).await;
        let is_over = |all: &Vec<Transfer>| all.iter().all(|one| one.state.is_over());
        let failed = wait_for_value("over", look, is_over).await.remove(0);
        assert!(failed.state == TransferState::Failed && failed.message.contains(words), "{failed:?}");
        alice.post(&format!("/transfers/{}/dismiss", failed.id), &[]).await;
    }
    folder.tell(&format!("cd {} && mkdir -p \"deep$(printf '/d%.0s' $(seq 70))\" to", folder.path));
    start_copy(&alice, "key", &folder.path, &["deep"], ("key", &format!("{}/to", folder.path))).await;
    let is_over = |all: &Vec<Transfer>| all.iter().all(|one| one.state.is_over());
    let failed = wait_for_value("over", async || transfers(&portal).await, is_over).await.remove(0);
    assert!(failed.state == TransferState::Failed && failed.message.contains("64 folders deep"), "{failed:?}");
    for (cluster, target) in [("key", "relative"), ("key", "/a/../b"), ("unknown", "/scratch"), ("key", "/missing")] {
        let form = [("path", folder.path.as_str()), ("name", "tree"), ("cluster", cluster), ("target", target)];
        let form: Vec<_> = form.into_iter().chain([("step", "confirm")]).collect();
        assert_eq!(alice.post("/files/key/copy", &form).await.status, 422, "{cluster} {target}");
    }
    folder.tell(&format!("cd {} && test -z \"$(ls -A tree/sub)\"", folder.path));
}

#[tokio::test]
async fn copy_goes_on_after_a_pause_and_a_restart() {
    let (mut portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir to tree; head -c 500000000 /dev/urandom >tree/large; echo 1 >tree/small");
    start_copy(&alice, "key", &folder.path, &["tree"], ("key", &format!("{}/to", folder.path))).await;
    wait_for_bytes(&portal).await;
    let id = transfers(&portal).await[0].id;
    alice.post(&format!("/transfers/{id}/pause"), &[]).await;
    assert_eq!(transfers(&portal).await[0].state, TransferState::Paused);
    folder.tell(&format!("test ! -e {}/to/tree/large", folder.path));
    alice.post(&format!("/transfers/{id}/resume"), &[]).await;
    wait_for_bytes(&portal).await;
    portal.clock.advance(60);
    portal.restart().await;
    alice.wait_until_connected("key").await;
    let done = wait_until_done(&portal).await;
    assert_eq!((done.files_done, done.bytes_done), (2, 500_000_002));
    assert!(alice.get("/notifications").await.text().contains("Copied tree"), "it took longer than a moment");
    folder.tell(&format!("cd {} && cmp tree/large to/tree/large && diff -r tree to/tree", folder.path));
}

#[tokio::test]
async fn cancelled_copy_leaves_no_half_file() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir to; head -c 500000000 /dev/zero >large");
    start_copy(&alice, "key", &folder.path, &["large"], ("key", &format!("{}/to", folder.path))).await;
    wait_for_bytes(&portal).await;
    let id = transfers(&portal).await[0].id;
    alice.post(&format!("/transfers/{id}/cancel"), &[]).await;
    let line = portal.connection("alice", "key").await;
    let to = crate::support::cluster::remote_path(&format!("{}/to", folder.path));
    let look = async || portolan::ssh::sftp::list(&line, &to, 10).await.unwrap().entries.len();
    wait_for_value("nothing is left", look, |left| *left == 0).await;
    assert_eq!(transfers(&portal).await[0].state, TransferState::Cancelled);
}

/// Copies a folder with a large file, and pauses when some of that has passed.
async fn copy_and_pause(portal: &TestApp, who: &Client, folder: &Folder) -> TransferId {
    start_copy(who, "key", &folder.path, &["tree"], ("key", &format!("{}/to", folder.path))).await;
    wait_for_bytes(portal).await;
    let id = transfers(portal).await[0].id;
    who.post(&format!("/transfers/{id}/pause"), &[]).await;
    // Where it stopped is saved once it has.
    let look = async || transfers(portal).await.remove(0).checkpoint;
    wait_for_value("saved", look, |checkpoint| checkpoint.contains("-large.part")).await;
    id
}

/// Whoever may write to the target's folder can replace what is being filled, or the target itself.
#[tokio::test]
async fn copy_goes_nowhere_but_to_its_target() {
    for replaced in ["to/tree", "to"] {
        let (portal, _, alice) = with_alice().await;
        let folder = Folder::new(
            "alice",
            "mkdir -p elsewhere to tree/sub; head -c 500000000 /dev/zero >tree/large; echo x >tree/sub/evil",
        );
        let id = copy_and_pause(&portal, &alice, &folder).await;
        folder.tell(&format!("cd {} && mv {replaced} was && ln -s $PWD/elsewhere {replaced}", folder.path));
        alice.post(&format!("/transfers/{id}/resume"), &[]).await;
        let over = wait_for_state(&portal, &OVER).await;
        let words = if replaced == "to" { "was replaced after the copy started" } else { "replaced by something else" };
        assert!(over.state == TransferState::Failed && over.message.contains(words), "{over:?}");
        folder.tell(&format!("test -z \"$(ls -A {}/elsewhere)\"", folder.path));
    }
}

#[tokio::test]
async fn half_of_a_file_that_is_gone_does_not_stay() {
    let (portal, _, alice) = with_alice().await;
    let folder =
        Folder::new("alice", "mkdir -p to tree/sub; head -c 500000000 /dev/zero >tree/large; echo 1 >tree/sub/x");
    let id = copy_and_pause(&portal, &alice, &folder).await;
    folder.tell(&format!("cd {} && ls -A to/tree | grep -q portolan- && rm tree/large", folder.path));
    alice.post(&format!("/transfers/{id}/resume"), &[]).await;
    wait_until_done(&portal).await;
    folder.tell(&format!("cd {} && test \"$(ls -A to/tree)\" = sub", folder.path));
}

#[tokio::test]
async fn copy_waits_for_the_connection_and_goes_on() {
    let server = Server::start();
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_server("own", &server).await;
    alice.prepare_on(&server, "own", "alice").await;
    alice.connect("own").await;
    let folder = Folder::new("alice", "mkdir to; head -c 500000000 /dev/urandom >large");
    start_copy(&alice, "own", &folder.path, &["large"], ("own", &format!("{}/to", folder.path))).await;
    wait_for_bytes(&portal).await;
    server.drop_connections();
    let look = async || alice.get("/transfers").await.select_text(".transfer-row");
    wait_for_value("waits", look, |row| row.contains("Waiting for your connection")).await;
    alice.connect("own").await;
    wait_until_done(&portal).await;
    folder.tell(&format!("cd {} && cmp large to/large && test \"$(ls -A to)\" = large", folder.path));
}

#[tokio::test]
async fn copy_between_clusters_is_compared() {
    let server = Server::start();
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_cluster("key").await;
    portal.add_server("own", &server).await;
    let key = alice.make_key().await;
    Cluster::get().install_key("alice", &key);
    server.allow("alice", &key);
    for slug in ["key", "own"] {
        alice.name_user(slug, "alice").await;
        alice.connect(slug).await;
    }
    let folder = Folder::new(
        "alice",
        "mkdir -p to tree/sub; head -c 5000000 /dev/urandom >tree/large; touch $'tree/sub/bad\\xff\\nname' -- tree/-rf
         (cd tree/sub; for n in $(seq 300); do echo $n >$n; done)",
    );
    start_copy(&alice, "key", &folder.path, &["tree"], ("own", &format!("{}/to", folder.path))).await;
    let done = wait_until_done(&portal).await;
    assert_eq!((done.files_done, done.message.as_str()), (303, ""));
    assert!(done.target_cluster_id.is_some());
    folder.tell(&format!("cd {} && diff -r tree to/tree", folder.path));
    // Both have the same file systems, as clusters of one centre often do.
    alice.post(&format!("/transfers/{}/dismiss", done.id), &[]).await;
    start_copy(&alice, "key", &folder.path, &["tree"], ("own", &format!("{}/tree/sub", folder.path))).await;
    let is_over = |all: &Vec<Transfer>| matches!(all.as_slice(), [one] if OVER.contains(&one.state));
    let failed = wait_for_value("over", async || transfers(&portal).await, is_over).await.remove(0);
    assert!(failed.state == TransferState::Failed && failed.message.contains("into itself"), "{failed:?}");
    folder.tell(&format!("test ! -e {}/tree/sub/tree", folder.path));
}

/// A web server for a few requests: answers each with what `answer` makes of its head.
fn serve(answers: usize, answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(answers) {
            let Ok(mut stream) = stream else { return };
            let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
            while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
                let Ok(count @ 1..) = stream.read(&mut buffer) else { break };
                bytes.extend_from_slice(&buffer[..count]);
            }
            let head = String::from_utf8_lossy(&bytes).to_lowercase();
            let _ = stream.write_all(&answer(&head));
            let _ = sender.send(head);
        }
    });
    (port, receiver)
}

async fn start_fetch(who: &Client, folder: &str, url: &str) -> (u16, String) {
    let answer = who.post("/files/key/fetch", &[("path", folder), ("url", url), ("step", "confirm")]).await;
    let text = if answer.status == 303 { String::new() } else { answer.select_text("main") };
    (answer.status, text)
}

#[tokio::test]
async fn private_addresses_are_not_downloaded_from() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "true");
    let (port, asked) = serve(1, |_| b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx".to_vec());
    for url in [
        format!("http://127.0.0.1:{port}/x"),
        format!("http://localhost:{port}/x"),
        format!("http://[::1]:{port}/x"),
        format!("http://2130706433:{port}/x"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ] {
        let (status, text) = start_fetch(&alice, &folder.path, &url).await;
        assert!(status == 422 && text.contains("private network"), "{url}: {text}");
    }
    for url in ["file:///etc/passwd", "x", "http://me:pw@example.org/", "http://example.org:22/"] {
        assert_eq!(start_fetch(&alice, &folder.path, url).await.0, 422, "{url}");
    }
    assert!(asked.try_recv().is_err() && transfers(&portal).await.is_empty());
}

#[tokio::test]
async fn interrupted_download_goes_on_and_its_name_stays_in_the_folder() {
    let (mut portal, _, alice) = with_alice().await;
    portal.restart_with(|config| config.transfers.allow_private = true).await;
    alice.wait_until_connected("key").await;
    let folder = Folder::new("alice", "echo mine >set.csv");
    let body: Vec<u8> = (0..6_000_000_u32).flat_map(u32::to_be_bytes).collect();
    let sent = body.clone();
    let (port, asked) = serve(2, move |head| {
        let common = "etag: \"v1\"\r\ncontent-disposition: attachment; filename=\"../../set.csv\"\r\nconnection: close";
        let range = head.lines().find_map(|line| line.strip_prefix("range: bytes=")?.strip_suffix('-'));
        let (status, from, to) = match range {
            // Only half of it arrives.
            None => ("200 OK", 0, sent.len() / 2),
            Some(from) => ("206 Partial Content", from.parse().unwrap(), sent.len()),
        };
        let (all, length) = (sent.len(), sent.len() - from);
        let last = all - 1;
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {length}\r\ncontent-range: bytes {from}-{last}/{all}\r\n{common}\r\n\r\n"
        );
        [head.as_bytes(), &sent[from..to]].concat()
    });
    // Half of the file, then the rest.
    assert_eq!(start_fetch(&alice, &folder.path, &format!("http://127.0.0.1:{port}/set")).await.0, 303);
    let done = wait_until_done(&portal).await;
    assert_eq!(done.message, "Saved as set (2).csv.");
    assert_eq!(done.bytes_done, i64::try_from(body.len()).unwrap());
    let heads: Vec<String> = asked.try_iter().collect();
    assert!(
        heads.len() >= 2 && heads[1].contains("range: bytes=") && heads[1].contains("if-range: \"v1\""),
        "{heads:?}"
    );
    let line = portal.connection("alice", "key").await;
    let path = crate::support::cluster::remote_path(&format!("{}/set (2).csv", folder.path));
    assert!(portolan::ssh::sftp::read(&line, &path, body.len()).await.unwrap() == body);
    folder.tell(&format!("cd {} && test \"$(cat set.csv)\" = mine && test \"$(ls -A | wc -l)\" = 2", folder.path));
}

#[tokio::test]
async fn redirect_to_a_private_address_and_errors_end_a_download() {
    let (mut portal, _, alice) = with_alice().await;
    portal.restart_with(|config| config.transfers.allow_private = true).await;
    alice.wait_until_connected("key").await;
    let folder = Folder::new("alice", "true");
    let (port, _asked) = serve(2, |head| match head {
        head if head.starts_with("get /file ") => {
            b"HTTP/1.1 302 Found\r\nlocation: file:///etc/passwd\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                .to_vec()
        }
        _ => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
    });
    for (path, words) in [("file", "isn't a web address"), ("missing", "status 404")] {
        let url = format!("http://127.0.0.1:{port}/{path}");
        assert_eq!(start_fetch(&alice, &folder.path, &url).await.0, 303);
        let is_over = |all: &Vec<Transfer>| all.iter().all(|one| one.state.is_over());
        let failed = wait_for_value("over", async || transfers(&portal).await, is_over).await.remove(0);
        assert!(failed.state == TransferState::Failed && failed.message.contains(words), "{failed:?}");
        alice.post(&format!("/transfers/{}/dismiss", failed.id), &[]).await;
    }
    folder.tell(&format!("test -z \"$(ls -A {})\"", folder.path));
}

/// An open page of the folder learns that something in it ended, and says what.
#[tokio::test]
async fn folder_page_tells_of_a_copy_and_reads_its_rows_again() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir to; echo 1 >'<b>it'");
    let to = format!("{}/to", folder.path);
    start_copy(&alice, "key", &folder.path, &["<b>it"], ("key", &to)).await;
    let id = wait_until_done(&portal).await.id;
    let notes = format!("/files/key/transfers?path={to}&open=");
    let ended = alice.request(Method::GET, &format!("{notes}{id}")).header("hx-request", "true").send().await.unwrap();
    assert_eq!(ended.headers()["hx-trigger"], "files-changed");
    let text = ended.text().await.unwrap();
    assert!(text.contains("Copied &#60;b&#62;it."), "{text}");
    let known = alice.request(Method::GET, &notes).header("hx-request", "true").send().await.unwrap();
    assert!(!known.headers().contains_key("hx-trigger"), "nothing new");
    let page = alice.get(&format!("/files/key?path={to}")).await;
    assert!(page.select_text("#folder-transfers").contains("Copied <b>it."), "{}", page.select_text("main"));
    let dismiss = page.attribute("#folder-transfers button", "hx-get");
    assert_eq!(alice.get(&dismiss).await.select_text("#folder-transfers").trim(), "", "dismissed: {dismiss}");
    let elsewhere = alice.get(&format!("/files/key?path={}", folder.path)).await;
    assert_eq!(elsewhere.select_text("#folder-transfers").trim(), "");
}
