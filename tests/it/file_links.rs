//! Guest links to files on the real cluster: what guests read, and everything that they don't.

use std::process::Command;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portolan::clock::UnixTime;
use portolan::domain::{PersonId, RemoteName};
use portolan::store;
use portolan::store::transfers::{NewTransfer, TransferKind, TransferState};
use reqwest::Method;

use crate::folders::{Folder, with_alice};
use crate::support::client::send;
use crate::support::cluster::remote_path;
use crate::support::{Client, Page, TestApp};

pub const PASSPHRASE: &str = "gulls above the fish market";

/// Shares a path and gives the link's path on the dashboards' origin.
async fn share(portal: &TestApp, who: &Client, path: &str, passphrase: &str) -> String {
    let form = [("path", path), ("label", "Ada"), ("days", "7"), ("passphrase", passphrase)];
    let page = who.post_and_follow("/files/key/share", &form).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let link = page.select_text("main > .alert code");
    assert_eq!(page.select_all("main > .alert .qr").len(), 1);
    link.strip_prefix(&portal.dashboards_url).expect("the dashboards' origin").to_owned()
}

/// A guest who opened a link, and the address of what they see.
pub struct Guest {
    pub who: Client,
    pub base: String,
}

impl Guest {
    pub async fn open(portal: &TestApp, link: &str) -> Self {
        let who = Client::new(&portal.dashboards_url);
        let entered = who.get(link).await;
        assert_eq!(entered.status, 303, "{}", entered.text());
        let base = entered.location().trim_end_matches('/').to_owned();
        Self { who, base }
    }

    pub async fn get(&self, below: &str, path: &str) -> Page {
        let query: &[(&str, &str)] = if path.is_empty() { &[] } else { &[("path", path)] };
        send(self.who.request(Method::GET, &format!("{}/{below}", self.base)).query(query)).await
    }

    /// What the page shows once the cluster has answered.
    async fn look(&self, path: &str) -> Page {
        self.get("content", path).await
    }
}

#[tokio::test]
async fn guest_reads_a_file_and_nothing_else() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "seq 1000 >data.csv; echo no >other");
    let link = share(&portal, &alice, &format!("{}/data.csv", folder.path), "").await;
    assert!(link.starts_with("/f/"), "{link}");
    let guest = Guest::open(&portal, &link).await;
    let page = guest.get("", "").await;
    assert_eq!((page.status, page.select_text("h1")), (200, "data.csv".to_owned()));
    assert!(page.text().contains("alice") && !page.text().contains(&folder.path), "the name, not where it lies");
    let content = guest.look("").await;
    assert_eq!(content.attribute("a[download]", "href"), format!("{}/download", guest.base));
    assert!(!content.text().contains(&folder.path));

    let file = guest.get("download", "").await;
    let expected: Vec<String> = (1..=1000).map(|number| number.to_string()).collect();
    let expected = format!("{}\n", expected.join("\n"));
    assert_eq!((file.status, file.text()), (200, expected.as_str()));
    for (name, value) in [
        ("content-disposition", "attachment; filename=\"data.csv\""),
        ("content-type", "application/octet-stream"),
        ("x-content-type-options", "nosniff"),
        ("accept-ranges", "bytes"),
    ] {
        assert_eq!(file.header(name), value, "{name}");
    }
    assert!(file.header("content-security-policy").starts_with("sandbox; default-src 'none'"));
    let range = guest.who.request(Method::GET, &format!("{}/download", guest.base)).header("range", "bytes=2-4");
    let range = send(range).await;
    assert_eq!((range.status, range.text()), (206, "2\n3"));

    for path in ["/other", "/../other", "/data.csv", "other", "/%2e%2e/other"] {
        assert_eq!(guest.get("download", path).await.status, 404, "{path}");
    }
    assert_eq!(guest.get("archive", "").await.status, 404, "a file is no folder");
    let page = alice.get("/file-links").await;
    assert!(page.select_text("[aria-labelledby=links-title]").contains("opened once"), "{}", page.text());
    assert!(!page.text().contains(link.trim_start_matches("/f/")), "the link is shown once");
    let log = alice.get("/account/activity").await;
    assert!(log.text().contains("Opened a guest link to files"), "{}", log.text());
}

#[tokio::test]
async fn guest_sees_pictures_and_nothing_that_only_looks_like_one() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "mkdir in; printf '\\x89PNG\\r\\n\\x1a\\n0123' >secret.png; cp secret.png in/plot.png; cd in
         echo '<script>alert(1)</script>' >page.png; echo '<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>' >drawing.svg
         echo text >notes.txt; ln -s ../secret.png out.png",
    );
    let guest = Guest::open(&portal, &share(&portal, &alice, &format!("{}/in", folder.path), "").await).await;
    let shown = guest.look("/plot.png").await;
    let src = shown.attribute("img.guest-picture", "src");
    assert!(src.starts_with(&format!("{}/picture?", guest.base)), "{src}");
    assert_eq!(shown.attribute("img.guest-picture", "alt"), "plot.png");
    for (path, kind) in [("/plot.png", "image/png"), ("/drawing.svg", "image/svg+xml")] {
        let picture = guest.get("picture", path).await;
        assert_eq!((picture.status, picture.header("content-type")), (200, kind), "{path}");
        assert!(picture.header("content-security-policy").starts_with("sandbox; default-src 'none'"), "{path}");
        assert_eq!(picture.header("x-content-type-options"), "nosniff", "{path}");
    }
    for path in ["/page.png", "/notes.txt", "/out.png", "/../secret.png", "/missing.png", ""] {
        assert_eq!(guest.get("picture", path).await.status, 404, "{path}");
    }
    assert!(guest.look("/notes.txt").await.select_all("img").is_empty());
}

#[tokio::test]
async fn guest_reads_a_folder_and_no_way_leads_out_of_it() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "mkdir -p in/sub/deep secret; echo a >in/a.txt; echo b >in/sub/b.txt; echo s >secret/s.txt; cd in
         ln -s sub/b.txt inside; ln -s ../secret out; ln -s ../secret/s.txt out.txt; ln -s /etc/passwd passwd
         ln -s / root; ln -s loop loop; mkfifo pipe; echo h >.hidden; echo m >'<img src=x onerror=alert(1)>'
         printf n >$'bad\\xff'",
    );
    let shared = format!("{}/in", folder.path);
    let guest = Guest::open(&portal, &share(&portal, &alice, &shared, "").await).await;
    let page = guest.look("").await;
    assert!(page.text().contains("a.txt") && page.text().contains("sub"), "{}", page.text());
    assert!(page.select_all("img").is_empty(), "names are text");
    assert!(!page.text().contains(&folder.path));
    let waiting = send(guest.who.request(Method::GET, &format!("{}/?wait=true", guest.base))).await;
    assert!(waiting.status == 200 && waiting.text().contains("a.txt"), "without JavaScript");
    let below = guest.look("/sub").await;
    assert!(below.text().contains("b.txt") && !below.text().contains("a.txt"), "{}", below.text());

    for (path, content) in
        [("/a.txt", "a\n"), ("/sub/b.txt", "b\n"), ("/inside", "b\n"), ("/.hidden", "h\n"), ("/bad%FF", "n")]
    {
        let file = guest.get("download", path).await;
        assert_eq!((file.status, file.text()), (200, content), "{path}");
    }
    let outside = format!("{}/secret/s.txt", folder.path);
    for path in [
        "/out.txt",
        "/out/s.txt",
        "/passwd",
        "/root/etc/passwd",
        "/loop",
        "/pipe",
        "/gone",
        "/sub",
        "/../secret/s.txt",
        "/..",
        "/sub/../../secret/s.txt",
        "/%2e%2e/secret/s.txt",
        "/%2E%2E%2Fsecret%2Fs.txt",
        "/..%2fsecret%2fs.txt",
        "../secret/s.txt",
        "secret/s.txt",
        "a.txt",
        "/%00",
        "/etc/passwd",
        &outside,
    ] {
        let file = guest.get("download", path).await;
        assert_eq!(file.status, 404, "{path}: {}", file.text());
        assert!(!file.text().contains("root:") && !file.text().contains(&folder.path), "{path}");
    }
    for path in ["/out", "/root", "/..", "/a.txt/..", "/%2e%2e"] {
        let page = guest.look(path).await;
        assert!(page.text().contains("isn&#39;t available"), "{path}: {}", page.text());
        assert_eq!(guest.get("archive", path).await.status, 404, "{path}");
    }
    // What was shared is replaced by a link.
    folder.tell(&format!("cd {} && mv in was && ln -s secret in", folder.path));
    assert_eq!(guest.get("download", "/s.txt").await.status, 404);
    assert!(guest.look("").await.text().contains("isn&#39;t available"));
}

#[tokio::test]
async fn guest_downloads_a_folder_as_a_zip_without_what_lies_outside() {
    let (portal, _, alice) = with_alice().await;
    let script = "mkdir -p in/sub; echo a >in/a.txt; echo b >in/sub/b.txt; ln -s /etc/passwd in/passwd
                  echo c >in/closed; chmod 000 in/closed";
    let folder = Folder::new("alice", script);
    let link = share(&portal, &alice, &format!("{}/in", folder.path), "").await;
    let guest = Guest::open(&portal, &link).await;
    let response = guest.who.request(Method::GET, &format!("{}/archive", guest.base)).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-disposition"], "attachment; filename=\"in.zip\"");
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("in.zip"), response.bytes().await.unwrap()).unwrap();
    let unpacked = Command::new("unzip").args(["-q", "in.zip"]).current_dir(here.path()).output().unwrap();
    assert!(unpacked.status.success(), "{unpacked:?}");
    assert_eq!(std::fs::read_to_string(here.path().join("in/sub/b.txt")).unwrap(), "b\n");
    assert!(std::fs::symlink_metadata(here.path().join("in/passwd")).is_err(), "no link leads out");
    let note = std::fs::read_to_string(here.path().join("NOT INCLUDED.txt")).unwrap();
    assert!(note.contains("in/passwd: It's a symbolic link.\n"), "{note}");
    assert!(note.contains("in/closed: It can't be read.\n"), "nothing of what its owner may do: {note}");
    assert!(!note.contains("/etc") && !note.contains("You don't"), "{note}");
}

#[tokio::test]
async fn guests_spend_nothing_of_what_the_owner_may_ask() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir -p in/sub; echo a >in/sub/a.txt");
    let path = format!("{}/in", folder.path);
    let guest = Guest::open(&portal, &share(&portal, &alice, &path, "").await).await;
    let other = Guest::open(&portal, &share(&portal, &alice, &path, "").await).await;
    let line = portal.connection("alice", "key").await;
    let commands = || line.call_budget().stats(Instant::now()).commands;
    let before = commands();
    for _ in 0..40 {
        assert!(guest.look("/sub").await.text().contains("a.txt"));
        assert_eq!(guest.get("download", "/sub/a.txt").await.text(), "a\n");
    }
    assert!(commands() - before < 80, "{} for 80 requests: they share a session", commands() - before);

    // Whoever asks without end has to wait; others don't.
    let mut refused = guest.get("download", "/sub/a.txt").await;
    for _ in 0..300 {
        if refused.status == 429 {
            break;
        }
        refused = guest.get("download", "/sub/a.txt").await;
    }
    assert_eq!(refused.status, 429);
    assert!(refused.text().contains("Too many requests") && !refused.header("retry-after").is_empty());
    // Time makes room for one now and then.
    let mut page = guest.look("").await;
    for _ in 0..300 {
        if page.text().contains("used too often") {
            break;
        }
        page = guest.look("").await;
    }
    assert!(page.text().contains("used too often"), "{}", page.text());
    assert_eq!(other.get("download", "/sub/a.txt").await.text(), "a\n");
    let page = alice.get(&format!("/files/key?path={path}&wait=true")).await;
    assert!(page.status == 200 && page.text().contains("sub"), "{}", page.select_text("main"));
}

#[tokio::test]
async fn passphrase_protects_and_an_ended_link_opens_nothing() {
    let (portal, admin, alice) = with_alice().await;
    let folder = Folder::new("alice", "echo secret-content >data");
    let link = share(&portal, &alice, &format!("{}/data", folder.path), PASSPHRASE).await;
    let guest = Guest::open(&portal, &link).await;
    let page = guest.get("", "").await;
    assert!(page.text().contains("protected by a passphrase") && !page.text().contains("data<"), "{}", page.text());
    for below in ["content", "download"] {
        assert!(!guest.get(below, "").await.text().contains("secret-content"), "{below}");
    }
    let unlock = async |passphrase: &str| {
        let request = guest.who.request(Method::POST, &format!("{}/unlock", guest.base));
        send(request.header("origin", &portal.dashboards_url).form(&[("passphrase", passphrase)])).await
    };
    assert_eq!(unlock("gulls above the fish").await.status, 403);
    assert!(!guest.get("download", "").await.text().contains("secret-content"));
    assert_eq!(unlock(PASSPHRASE).await.status, 303);
    assert_eq!(guest.get("download", "").await.text(), "secret-content\n");
    // The key in the address is no use without the cookie.
    let stranger = Client::new(&portal.dashboards_url);
    for below in ["", "content", "download", "archive"] {
        let page = stranger.get(&format!("{}/{below}", guest.base)).await;
        assert!(page.status == 404 && !page.text().contains("secret-content"), "{below}");
    }

    // Nobody else revokes it, nor sees it.
    let bob = portal.member(&admin, "bob").await;
    assert_eq!(bob.post("/file-links/1/revoke", &[]).await.status, 404);
    assert_eq!(alice.post("/file-links/999/revoke", &[]).await.status, 404);
    assert!(!bob.get("/file-links").await.text().contains("Ada"));
    assert_eq!(guest.get("download", "").await.status, 200);
    let revoked = alice.post("/file-links/1/revoke", &[]).await;
    assert_eq!((revoked.status, revoked.location()), (303, "/file-links"));
    for below in ["", "content", "download"] {
        assert_eq!(guest.get(below, "").await.status, 404, "{below}");
    }
    assert_eq!(stranger.get(&link).await.status, 410);
    assert!(alice.get("/file-links").await.select_text("#ended-links").contains("revoked"));

    let link = share(&portal, &alice, &format!("{}/data", folder.path), "").await;
    let guest = Guest::open(&portal, &link).await;
    assert_eq!(guest.get("download", "").await.status, 200);
    let mut tx = portal.app.store.write().await.unwrap();
    sqlx::query("UPDATE guest_links SET expires_at = created_at").execute(&mut *tx).await.unwrap();
    portolan::store::commit(tx).await.unwrap();
    assert_eq!(guest.get("download", "").await.status, 404);
    let page = stranger.get(&link).await;
    assert!(page.status == 410 && page.text().contains("has expired"), "{}", page.text());
}

#[tokio::test]
async fn forgetting_a_cluster_ends_everything_about_files_there() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir in; echo x >in/data");
    let shared = format!("{}/in", folder.path);
    let link = share(&portal, &alice, &shared, "").await;
    let guest = Guest::open(&portal, &link).await;
    assert_eq!(guest.get("download", "/data").await.status, 200);
    let drop_box = [("path", shared.as_str()), ("kind", "drop-box"), ("max_mb", "1"), ("max_files", "3")];
    let drop_box = [&drop_box[..], &[("label", "x"), ("days", "7")]].concat();
    assert_eq!(alice.post("/files/key/share", &drop_box).await.status, 303);
    let metadata = [("cluster", "key"), ("folder", &shared), ("filename", "new")];
    let metadata = metadata.map(|(key, value)| format!("{key} {}", STANDARD.encode(value))).join(",");
    let upload = alice.request(Method::POST, "/uploads").header("tus-resumable", "1.0.0").header("upload-length", 10);
    let upload = upload.header("upload-metadata", metadata).header("origin", &portal.url);
    let upload = upload.header("content-type", "application/offset+octet-stream").body("abc");
    let upload = send(upload).await;
    assert_eq!(upload.status, 201, "{}", upload.text());
    folder.tell(&format!("ls -A '{shared}' | grep -q portolan-upload"));
    let person = PersonId(portal.person_id("alice").await);
    let mut tx = portal.app.store.write().await.unwrap();
    let cluster = store::clusters::find_by_slug(&mut tx, "key").await.unwrap().unwrap().id;
    let deletion = NewTransfer {
        person,
        kind: TransferKind::Delete,
        cluster,
        folder: remote_path(&shared),
        names: vec![RemoteName::parse(b"data").unwrap()],
        url: String::new(),
        target: None,
    };
    let deletion = store::transfers::add(&mut tx, &deletion, "a1", UnixTime(1)).await.unwrap();
    assert!(store::transfers::pause(&mut tx, person, deletion).await.unwrap());
    store::commit(tx).await.unwrap();

    let asked = alice.get("/clusters/key/forget").await;
    for words in ["Your guest links to files and your drop-boxes", "Unfinished transfers and uploads"] {
        assert!(asked.text().contains(words), "{words} in {}", asked.text());
    }
    assert_eq!(alice.post("/clusters/key/forget", &[]).await.status, 303);
    folder.tell(&format!("test \"$(ls -A '{shared}')\" = data"));
    assert_eq!(guest.get("", "").await.status, 404);
    assert_eq!(Client::new(&portal.dashboards_url).get(&link).await.status, 410);
    let mut db = portal.app.store.read().await.unwrap();
    let deletion = store::transfers::get(&mut db, deletion).await.unwrap().unwrap();
    assert_eq!(deletion.state, TransferState::Cancelled);
    let open = "SELECT (SELECT count(*) FROM uploads) + (SELECT count(*) FROM guest_links WHERE revoked_at IS NULL)";
    assert_eq!(sqlx::query_scalar::<_, i64>(open).fetch_one(&mut *db).await.unwrap(), 0);
    assert!(alice.get("/file-links").await.select_text("#ended-links").contains("revoked"));
}

#[tokio::test]
async fn without_the_owners_connection_guests_are_told_so() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "echo x >data");
    let path = format!("{}/data", folder.path);
    let guest = Guest::open(&portal, &share(&portal, &alice, &path, "").await).await;
    alice.post("/clusters/key/disconnect", &[]).await;
    assert_eq!(guest.get("", "").await.status, 200, "the page doesn't wait for the cluster");
    let words = "can&#39;t be reached right now";
    assert!(guest.look("").await.text().contains(words), "{}", guest.look("").await.text());
    let page = guest.get("download", "").await;
    assert!(page.status == 503 && page.text().contains(words), "{}", page.text());
    assert!(page.text().contains("alice isn&#39;t connected"), "{}", page.text());
    let refused = alice.post("/files/key/share", &[("path", &path), ("label", "x"), ("days", "7")]).await;
    assert!(refused.status == 422 && refused.text().contains("not connected"), "{}", refused.text());
}

#[tokio::test]
async fn what_must_not_be_shared_is_refused_in_words() {
    let (portal, admin, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir .git sub; echo x >sub/x; ln -s /home/alice home; mkfifo pipe");
    let inside = |name: &str| format!("{}/{name}", folder.path);
    let post = async |who: &Client, path: &str, label: &str| {
        who.post("/files/key/share", &[("path", path), ("label", label), ("days", "7")]).await
    };
    for (path, words) in [
        ("/".to_owned(), "home folder"),
        ("/home".to_owned(), "home folder"),
        ("/home/alice".to_owned(), "home folder"),
        (inside("home"), "home folder"),
        (inside(".git"), "Hidden files"),
        (inside("pipe"), "neither a file nor a folder"),
        (inside("gone"), "doesn&#39;t exist"),
    ] {
        let page = post(&alice, &path, "x").await;
        assert!(page.status == 422 && page.text().contains(words), "{path}: {}", page.select_text("main"));
    }
    let as_file =
        [("path", inside("sub")), ("is_file", "yes".to_owned()), ("label", "x".to_owned()), ("days", "7".to_owned())];
    let as_file: Vec<(&str, &str)> = as_file.iter().map(|(key, text)| (*key, text.as_str())).collect();
    let page = alice.post("/files/key/share", &as_file).await;
    assert!(page.status == 422 && page.text().contains("is now a folder"), "{}", page.select_text("main"));
    assert_eq!(post(&alice, &inside("sub"), "").await.status, 422, "a note is needed");
    assert_eq!(post(&alice, "relative", "x").await.status, 400);
    assert_eq!(post(&alice, "/a/../b", "x").await.status, 400);
    let bob = portal.member(&admin, "bob").await;
    assert_eq!(post(&bob, &inside("sub"), "x").await.status, 422, "alice's connection is hers");
    assert_eq!(post(&portal.visitor(), &inside("sub"), "x").await.status, 303, "to sign in");
    assert!(alice.get("/file-links").await.text().contains("None. To share"));

    // The form: for the open folder, for one ticked row, not for several.
    let form = async |names: &[&str]| {
        let mut query = vec![("path", folder.path.as_str())];
        query.extend(names.iter().map(|name| ("name", *name)));
        send(alice.request(Method::GET, "/files/key/share").query(&query)).await
    };
    assert_eq!(form(&[]).await.attribute("input[name=path]", "value"), folder.path);
    assert_eq!(form(&["sub"]).await.attribute("input[name=path]", "value"), inside("sub"));
    let several = form(&["sub", "home"]).await;
    assert!(several.status == 422 && several.text().contains("one file or folder at a time"));
    assert_eq!(form(&[".."]).await.status, 400);
    let page = alice.get(&format!("/files/key?path={}&wait=true", folder.path)).await;
    assert_eq!(page.attribute("button[formaction='/files/key/share']", "formmethod"), "get");

    // Nothing is known about the account yet.
    let key = portal.connection_key("alice", "key").await;
    let mut tx = portal.app.store.write().await.unwrap();
    store::connections::save_discovered(&mut tx, key, "{}", portal.clock.now()).await.unwrap();
    store::commit(tx).await.unwrap();
    let page = post(&alice, "/home/alice", "x").await;
    assert!(page.status == 422 && page.text().contains("home folder"), "{}", page.select_text("main"));
}
