//! Drop-boxes on the real cluster: what guests upload arrives, up to the limit, and nothing else happens.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portolan::ssh::sftp;
use reqwest::{Method, RequestBuilder};

use crate::file_links::{Guest, PASSPHRASE};
use crate::folders::{Folder, with_alice};
use crate::support::client::send;
use crate::support::cluster::remote_path;
use crate::support::wait::wait_until;
use crate::support::{Client, Page, TestApp};

/// Makes a folder a drop-box and gives the link's path on the dashboards' origin.
async fn make_drop_box(portal: &TestApp, who: &Client, path: &str, limits: (&str, &str), passphrase: &str) -> String {
    let (max_mb, max_files) = limits;
    let form = [
        ("path", path),
        ("kind", "drop-box"),
        ("max_mb", max_mb),
        ("max_files", max_files),
        ("label", "Ada"),
        ("days", "7"),
        ("passphrase", passphrase),
    ];
    let page = who.post_and_follow("/files/key/share", &form).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let link = page.select_text("main > .alert code");
    link.strip_prefix(&portal.dashboards_url).expect("the dashboards' origin").to_owned()
}

impl Guest {
    /// A request of a tus client.
    fn tus(&self, portal: &TestApp, method: Method, path: &str) -> RequestBuilder {
        let request = self.who.request(method, path).header("origin", &portal.dashboards_url);
        request.header("tus-resumable", "1.0.0")
    }

    fn creation(&self, portal: &TestApp, name: &[u8], size: usize, more: &str) -> RequestBuilder {
        let metadata = format!("filename {}{more}", STANDARD.encode(name));
        let request = self.tus(portal, Method::POST, &format!("{}/uploads", self.base));
        request.header("upload-length", size).header("upload-metadata", metadata)
    }

    /// Uploads a file in one request.
    async fn upload(&self, portal: &TestApp, name: &[u8], bytes: &[u8]) -> Page {
        let request = self.creation(portal, name, bytes.len(), "");
        send(request.header("content-type", "application/offset+octet-stream").body(bytes.to_vec())).await
    }
}

/// The names in a folder, also the hidden ones.
async fn names(portal: &TestApp, folder: &str) -> Vec<String> {
    let line = portal.connection("alice", "key").await;
    let listing = sftp::list(&line, &remote_path(folder), 1000).await.unwrap();
    let mut names: Vec<String> = listing.entries.iter().map(|entry| entry.name.to_string()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn guest_uploads_into_a_drop_box_without_seeing_it() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir in other; echo old >in/data.csv; mkdir in/taken");
    let inside = format!("{}/in", folder.path);
    let link = make_drop_box(&portal, &alice, &inside, ("1", "10"), "").await;
    assert!(link.starts_with("/d/"), "{link}");
    let guest = Guest::open(&portal, &link).await;
    let page = guest.get("", "").await;
    assert!(page.status == 200 && page.text().contains("10 more files"), "{}", page.text());
    assert!(!page.text().contains("data.csv") && !page.text().contains(&folder.path), "nothing of what is there");
    let key = guest.base.trim_start_matches("/drop-box/");
    for path in ["content", "download", "archive", "uploads"] {
        assert_ne!(guest.get(path, "").await.status, 200, "{path}");
        assert_eq!(guest.who.get(&format!("/files/{key}/{path}")).await.status, 404, "{path}");
    }

    // Names that are taken are neither replaced nor refused; other folders are not reached.
    let created = guest.upload(&portal, b"data.csv", b"new").await;
    assert_eq!((created.status, created.header("upload-offset")), (201, "3"), "{}", created.text());
    assert!(created.location().starts_with(&format!("{}/uploads/", guest.base)), "{}", created.location());
    assert_eq!(guest.upload(&portal, b"taken", b"file").await.status, 201);
    let elsewhere = format!(
        ",cluster {},folder {},relativePath {},replace {}",
        STANDARD.encode("key"),
        STANDARD.encode(format!("{}/other", folder.path)),
        STANDARD.encode("sub/x"),
        STANDARD.encode("yes")
    );
    let request =
        guest.creation(&portal, b"<b>x", 1, &elsewhere).header("content-type", "application/offset+octet-stream");
    assert_eq!(send(request.body("x")).await.status, 201);
    assert_eq!(guest.upload(&portal, b"empty", b"").await.status, 201);
    let expected = ["<b>x", "data (2).csv", "data.csv", "empty", "taken", "taken (2)"];
    assert_eq!(names(&portal, &inside).await, expected);
    assert_eq!(names(&portal, &format!("{}/other", folder.path)).await, [""; 0]);
    folder.tell(&format!("test \"$(cat '{inside}/data.csv')\" = old && test \"$(cat '{inside}/data (2).csv')\" = new"));
    // Not even a name that has no room for a number tells that it exists.
    let long = "n".repeat(255);
    for _ in 0..2 {
        let created = guest.upload(&portal, long.as_bytes(), b"x").await;
        assert_eq!(created.status, 201, "{}", created.text());
    }
    folder.tell(&format!("test $(ls '{inside}' | grep -c nnnn) = 2 && rm '{inside}'/nnnn*"));
    for bad in ["", ".", "..", "../x", "a/b", "/etc/x", ".bashrc", "a\0"] {
        assert_eq!(guest.upload(&portal, bad.as_bytes(), b"x").await.status, 400, "{bad:?}");
    }
    assert_eq!(names(&portal, &inside).await, expected);

    // The owner is told once, and sees how full it is.
    let links = alice.get("/file-links").await;
    assert!(links.text().contains("6 of 10 files, 10 bytes of 1 MB"), "{}", links.select_text("main"));
    let told = alice.get("/notifications").await;
    assert!(told.text().contains("Files arrived in your drop-box"), "{}", told.text());
    let mut db = portal.app.store.read().await.unwrap();
    let count = "SELECT count(*) FROM notifications WHERE state = 'drop-box'";
    assert_eq!(sqlx::query_scalar::<_, i64>(count).fetch_one(&mut *db).await.unwrap(), 1, "told once");

    // The activity log doesn't say that she did it.
    let activity = alice.get("/account/activity").await;
    let by: Vec<_> =
        activity.select_all("tbody .cell-title").into_iter().zip(activity.select_all("td[data-label=Who]")).collect();
    let uploads = by.iter().filter(|(event, who)| event == "Uploaded a file to a drop-box" && who == "A guest");
    assert_eq!(uploads.count(), 6, "{by:?}");
    assert_eq!(activity.select_all("td[data-label='IP address'] code")[0], "127.0.0.1");
}

#[tokio::test]
async fn drop_box_takes_no_more_than_its_owner_allows() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir in; echo x >file");
    let inside = format!("{}/in", folder.path);
    let guest = Guest::open(&portal, &make_drop_box(&portal, &alice, &inside, ("1", "3"), "").await).await;
    let announce = async |name: &str, size: usize| send(guest.creation(&portal, name.as_bytes(), size, "")).await;
    assert_eq!(announce("large", 1_000_001).await.status, 413);
    // What is announced counts at once, so that many at the same time don't get around the limit.
    let first = announce("first", 900_000).await;
    assert_eq!(first.status, 201, "{}", first.text());
    let refused = announce("second", 100_001).await;
    assert!(refused.status == 413 && refused.text().contains("doesn't fit"), "{}", refused.text());
    // No more bytes than announced.
    let part = guest.tus(&portal, Method::PATCH, announce("small", 3).await.location());
    let part = part.header("content-type", "application/offset+octet-stream").header("upload-offset", 0);
    assert_eq!(send(part.body("more than three")).await.status, 400);
    assert_eq!(announce("third", 0).await.status, 201);
    assert_eq!(announce("fourth", 0).await.status, 413, "so many files");
    assert!(guest.get("", "").await.text().contains("is full"));
    // What is cancelled makes room; what has arrived doesn't.
    assert_eq!(send(guest.tus(&portal, Method::DELETE, first.location())).await.status, 204);
    assert_eq!(announce("second", 900_000).await.status, 201);
    assert_eq!(announce("fifth", 0).await.status, 413);

    assert!(!alice.get("/files/key/uploads").await.text().contains("second"), "guests' uploads are not hers");

    // Nobody else's uploads are touched by it, and its own by nobody else.
    let other = Guest::open(&portal, &make_drop_box(&portal, &alice, &inside, ("1", "3"), "").await).await;
    let own = other.upload(&portal, b"own", b"abc").await;
    let id = own.location().rsplit('/').next().unwrap().to_owned();
    for path in [format!("{}/uploads/{id}", guest.base), own.location().to_owned()] {
        assert_eq!(send(guest.tus(&portal, Method::HEAD, &path)).await.status, 404, "{path}");
        assert_eq!(send(guest.tus(&portal, Method::DELETE, &path)).await.status, 404, "{path}");
    }
    let hers = alice.request(Method::HEAD, &format!("/uploads/{id}")).header("tus-resumable", "1.0.0");
    assert_eq!(send(hers).await.status, 404);
    let foreign = guest.who.request(Method::POST, &format!("{}/uploads", guest.base)).header("tus-resumable", "1.0.0");
    assert_eq!(send(foreign.header("origin", "https://evil.example").header("upload-length", 0)).await.status, 403);

    for (path, limits, words) in [
        (format!("{}/file", folder.path), ("1", "3"), "Only a folder can be a drop-box"),
        (inside.clone(), ("0", "3"), "whole number of megabytes"),
        (inside.clone(), ("1", "1001"), "number of files"),
    ] {
        let (max_mb, max_files) = limits;
        let form = [("path", path.as_str()), ("kind", "drop-box"), ("max_mb", max_mb), ("max_files", max_files)];
        let form = [&form[..], &[("label", "x"), ("days", "7")]].concat();
        let page = alice.post("/files/key/share", &form).await;
        assert!(page.status == 422 && page.text().contains(words), "{words}: {}", page.select_text("main"));
    }
}

#[tokio::test]
async fn guest_drops_many_files_in_a_row() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir in");
    let inside = format!("{}/in", folder.path);
    let guest = Guest::open(&portal, &make_drop_box(&portal, &alice, &inside, ("1", "100"), "").await).await;
    let line = portal.connection("alice", "key").await;
    let commands = || line.call_budget().stats(Instant::now()).commands;
    let before = commands();
    for number in 0..40 {
        let created = guest.upload(&portal, format!("{number}.csv").as_bytes(), b"x").await;
        assert_eq!(created.status, 201, "{}", created.text());
    }
    assert_eq!(names(&portal, &inside).await.len(), 40);
    assert!(commands() - before < 40, "{} for 40 files: they share a session", commands() - before);
    // Beginning and cancelling without end is limited, though it takes no room.
    let mut refused = None;
    for _ in 0..300 {
        let begun = send(guest.creation(&portal, b"again", 3, "")).await;
        if begun.status != 201 {
            refused = Some(begun);
            break;
        }
        assert_eq!(send(guest.tus(&portal, Method::DELETE, begun.location())).await.status, 204);
    }
    let refused = refused.expect("a limit");
    assert_eq!((refused.status, refused.header("retry-after").is_empty()), (429, false), "{}", refused.text());
}

#[tokio::test]
async fn revoking_a_drop_box_stops_what_is_being_sent() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir in");
    let inside = format!("{}/in", folder.path);
    for ending in ["revoked", "expired"] {
        let guest = Guest::open(&portal, &make_drop_box(&portal, &alice, &inside, ("1", "3"), "").await).await;
        let begun = send(guest.creation(&portal, b"large", 900_000, "")).await.location().to_owned();
        let (send_bytes, bytes) = tokio::sync::mpsc::channel::<Result<Vec<u8>, std::io::Error>>(1);
        let bytes =
            futures_util::stream::unfold(bytes, async |mut bytes| bytes.recv().await.map(|piece| (piece, bytes)));
        let part = guest.tus(&portal, Method::PATCH, &begun).header("content-type", "application/offset+octet-stream");
        let part = part.header("upload-offset", 0).body(reqwest::Body::wrap_stream(bytes));
        let sending = tokio::spawn(part.send());
        // It is under way once its file is there.
        send_bytes.send(Ok(vec![b'x'; 300_000])).await.unwrap();
        wait_until("an upload under way", async || {
            names(&portal, &inside).await.iter().any(|name| name.starts_with(".portolan"))
        })
        .await;
        if ending == "revoked" {
            assert_eq!(alice.post("/file-links/1/revoke", &[]).await.status, 303);
        } else {
            let mut tx = portal.app.store.write().await.unwrap();
            sqlx::query("UPDATE guest_links SET expires_at = created_at").execute(&mut *tx).await.unwrap();
            portolan::store::commit(tx).await.unwrap();
        }
        // Not every client reads an answer before it has sent everything.
        if let Ok(ended) = sending.await.unwrap() {
            assert_eq!(ended.status(), 404, "{ending}");
        }
        assert_eq!(names(&portal, &inside).await, [""; 0], "{ending}");
        drop(send_bytes);
    }

    // One that has arrived but has no name yet gets none.
    let guest = Guest::open(&portal, &make_drop_box(&portal, &alice, &inside, ("1", "3"), "").await).await;
    let begun = send(guest.creation(&portal, b"late", 3, "")).await.location().to_owned();
    let mut tx = portal.app.store.write().await.unwrap();
    let close = "CREATE TRIGGER close_it AFTER UPDATE OF confirmed ON uploads BEGIN
                 UPDATE guest_links SET expires_at = created_at; END";
    sqlx::query(close).execute(&mut *tx).await.unwrap();
    portolan::store::commit(tx).await.unwrap();
    let part = guest.tus(&portal, Method::PATCH, &begun).header("content-type", "application/offset+octet-stream");
    assert_eq!(send(part.header("upload-offset", 0).body("abc")).await.status, 404);
    assert_eq!(names(&portal, &inside).await, [""; 0]);
}

/// Whoever may write to the folder that a drop-box is in can replace it at any time.
#[tokio::test]
async fn guest_writes_nowhere_but_into_the_folder_that_was_shared() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir in elsewhere");
    let (inside, elsewhere) = (format!("{}/in", folder.path), format!("{}/elsewhere", folder.path));
    let guest = Guest::open(&portal, &make_drop_box(&portal, &alice, &inside, ("1", "9"), "").await).await;
    let prepare = async |name: &str| {
        let begun = send(guest.creation(&portal, name.as_bytes(), 6, "")).await;
        assert_eq!(begun.status, 201, "{}", begun.text());
        begun.location().to_owned()
    };
    let append = async |at: &str, offset: usize, bytes: &'static str| {
        let part = guest.tus(&portal, Method::PATCH, at).header("content-type", "application/offset+octet-stream");
        send(part.header("upload-offset", offset).body(bytes)).await.status
    };
    let (announced, begun) = (prepare("authorized_keys").await, prepare("rc").await);
    assert_eq!(append(&begun, 0, "abc").await, 204);
    folder.tell(&format!("cd {} && mv in was && ln -s elsewhere in", folder.path));
    assert_eq!(append(&announced, 0, "abcdef").await, 422);
    // Even if what has arrived so far is there, too.
    folder.tell(&format!("cd {} && cp was/.portolan-upload-* elsewhere/", folder.path));
    assert_eq!(append(&begun, 3, "def").await, 422);
    assert_eq!(guest.upload(&portal, b"empty", b"").await.status, 422);
    folder
        .tell(&format!("cd {elsewhere} && test \"$(ls -A | wc -l)\" = 1 && test \"$(cat .portolan-upload-*)\" = abc"));
    // It goes on once the folder is back.
    folder.tell(&format!("cd {} && rm in && mv was in", folder.path));
    assert_eq!((append(&announced, 0, "abcdef").await, append(&begun, 3, "def").await), (204, 204));
    assert_eq!(names(&portal, &inside).await, ["authorized_keys", "rc"]);
}

/// The link may work again when its owner's account does.
#[tokio::test]
async fn paused_drop_box_keeps_what_has_arrived() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir in");
    let inside = format!("{}/in", folder.path);
    let guest = Guest::open(&portal, &make_drop_box(&portal, &alice, &inside, ("1", "3"), "").await).await;
    let begun = send(guest.creation(&portal, b"late", 3, "")).await.location().to_owned();
    let tell = async |sql: &'static str| {
        let mut tx = portal.app.store.write().await.unwrap();
        sqlx::query(sql).execute(&mut *tx).await.unwrap();
        portolan::store::commit(tx).await.unwrap();
    };
    tell("CREATE TRIGGER disable AFTER UPDATE OF confirmed ON uploads BEGIN UPDATE people SET disabled_at = 1; END")
        .await;
    let part = guest.tus(&portal, Method::PATCH, &begun).header("content-type", "application/offset+octet-stream");
    assert_eq!(send(part.header("upload-offset", 0).body("abc")).await.status, 503);
    assert_eq!(names(&portal, &inside).await.len(), 1, "it waits under its hidden name");
    tell("UPDATE people SET disabled_at = NULL").await;
    let finished = send(guest.tus(&portal, Method::POST, &format!("{begun}/finish"))).await;
    assert_eq!(finished.status, 200, "{}", finished.text());
    assert_eq!(names(&portal, &inside).await, ["late"]);
}

#[tokio::test]
async fn new_name_is_stored_before_the_file_gets_it() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir in; echo old >in/data.csv");
    let inside = format!("{}/in", folder.path);
    let guest = Guest::open(&portal, &make_drop_box(&portal, &alice, &inside, ("1", "3"), "").await).await;
    let tell = async |sql: &'static str| {
        let mut tx = portal.app.store.write().await.unwrap();
        sqlx::query(sql).execute(&mut *tx).await.unwrap();
        portolan::store::commit(tx).await.unwrap();
    };
    // As if the portal were killed when it is to store the new name.
    tell("CREATE TRIGGER killed BEFORE UPDATE OF target ON uploads BEGIN SELECT RAISE(ABORT, 'killed'); END").await;
    let created = guest.upload(&portal, b"data.csv", b"new").await;
    assert_eq!(created.status, 500, "{}", created.text());
    tell("DROP TRIGGER killed").await;
    let finish = format!("{}/finish", created.location());
    let finished = send(guest.tus(&portal, Method::POST, &finish)).await;
    assert_eq!(finished.status, 200, "{}", finished.text());
    assert_eq!(names(&portal, &inside).await, ["data (2).csv", "data.csv"]);

    // As if it were killed after that.
    tell("CREATE TRIGGER killed BEFORE UPDATE OF state ON uploads BEGIN SELECT RAISE(ABORT, 'killed'); END").await;
    let created = guest.upload(&portal, b"data.csv", b"third").await;
    assert_eq!(created.status, 500, "{}", created.text());
    assert_eq!(names(&portal, &inside).await, ["data (2).csv", "data (3).csv", "data.csv"]);
    tell("DROP TRIGGER killed").await;
    let finish = format!("{}/finish", created.location());
    assert_eq!(send(guest.tus(&portal, Method::POST, &finish)).await.status, 200);
    assert_eq!(names(&portal, &inside).await, ["data (2).csv", "data (3).csv", "data.csv"]);
    let links = alice.get("/file-links").await;
    assert!(links.text().contains("2 of 3 files, 8 bytes of 1 MB"), "{}", links.select_text("main"));
}

#[tokio::test]
async fn ended_or_locked_drop_box_takes_nothing() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir in");
    let inside = format!("{}/in", folder.path);
    let link = make_drop_box(&portal, &alice, &inside, ("1", "3"), PASSPHRASE).await;
    let guest = Guest::open(&portal, &link).await;
    assert_eq!(guest.upload(&portal, b"a", b"x").await.status, 404);
    let unlock = guest.who.request(Method::POST, &format!("{}/unlock", guest.base));
    let unlock = unlock.header("origin", &portal.dashboards_url).form(&[("passphrase", PASSPHRASE)]);
    assert_eq!(send(unlock).await.status, 303);
    assert_eq!(guest.upload(&portal, b"a", b"x").await.status, 201);
    let begun = send(guest.creation(&portal, b"b", 3, "")).await.location().to_owned();

    alice.post("/clusters/key/disconnect", &[]).await;
    let away = guest.upload(&portal, b"c", b"x").await;
    assert!(away.status == 503 && away.text().contains("can't be reached right now"), "{}", away.text());
    assert!(guest.get("", "").await.text().contains("can&#39;t be reached right now"));
    alice.connect("key").await;

    // Someone replaces the folder by a link.
    folder.tell(&format!("cd {} && mv in was && mkdir elsewhere && ln -s elsewhere in", folder.path));
    assert_eq!(guest.upload(&portal, b"d", b"x").await.status, 422);
    folder.tell(&format!("cd {} && rm in && mv was in && rmdir elsewhere", folder.path));

    assert_eq!(alice.post("/file-links/1/revoke", &[]).await.status, 303);
    let part = guest.tus(&portal, Method::PATCH, &begun).header("content-type", "application/offset+octet-stream");
    assert_eq!(send(part.header("upload-offset", 0).body("abc")).await.status, 404);
    assert_eq!(guest.upload(&portal, b"e", b"x").await.status, 404);
    assert_eq!(names(&portal, &inside).await, ["a"]);

    let guest = Guest::open(&portal, &make_drop_box(&portal, &alice, &inside, ("1", "3"), "").await).await;
    let mut tx = portal.app.store.write().await.unwrap();
    sqlx::query("UPDATE guest_links SET expires_at = created_at").execute(&mut *tx).await.unwrap();
    portolan::store::commit(tx).await.unwrap();
    assert_eq!(guest.upload(&portal, b"f", b"x").await.status, 404);
    assert_eq!(names(&portal, &inside).await, ["a"]);
}
