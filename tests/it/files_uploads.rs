//! Uploads over HTTP, as a tus client makes them: whole, in parts, interrupted in every way, and with hostile intent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portolan::ssh::sftp;
use reqwest::{Method, RequestBuilder};
use sha2::{Digest as _, Sha256};

use crate::folders::{Folder, with_alice, with_alice_on};
use crate::support::client::{send, send_too_large};
use crate::support::cluster::{remote_path, root};
use crate::support::server::Server;
use crate::support::wait::{wait_for_value, wait_until};
use crate::support::{Client, Page, TestApp};

const MIB: usize = 1024 * 1024;
const PART: &str = "application/offset+octet-stream";

/// Bytes that differ everywhere.
pub fn sample(len: usize) -> Vec<u8> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

fn metadata(pairs: &[(&str, &[u8])]) -> String {
    let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key} {}", STANDARD.encode(value))).collect();
    pairs.join(",")
}

/// Someone with a tus client, and the folder that they upload to.
pub struct Uploader<'a> {
    pub who: &'a Client,
    pub url: String,
    pub slug: &'static str,
    pub folder: &'a str,
}

impl<'a> Uploader<'a> {
    pub fn new(portal: &TestApp, who: &'a Client, slug: &'static str, folder: &'a str) -> Self {
        Self { who, url: portal.url.clone(), slug, folder }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.who.request(method, path).header("origin", &self.url).header("tus-resumable", "1.0.0")
    }

    fn creation(&self, name: &[u8], size: usize, more: &[(&str, &[u8])]) -> RequestBuilder {
        let mut pairs: Vec<(&str, &[u8])> =
            vec![("cluster", self.slug.as_bytes()), ("folder", self.folder.as_bytes()), ("relativePath", name)];
        pairs.extend_from_slice(more);
        self.request(Method::POST, "/uploads").header("upload-length", size).header("upload-metadata", metadata(&pairs))
    }

    /// Begins an upload and gives its address.
    pub async fn create(&self, name: &str, size: usize) -> String {
        let page = send(self.creation(name.as_bytes(), size, &[])).await;
        assert_eq!(page.status, 201, "{}", page.text());
        assert_eq!(page.header("tus-resumable"), "1.0.0");
        assert!(page.header("upload-expires").ends_with(" GMT"), "{}", page.header("upload-expires"));
        page.location().to_owned()
    }

    pub fn part(&self, at: &str, offset: usize, bytes: &[u8]) -> RequestBuilder {
        let request = self.request(Method::PATCH, at).header("content-type", PART).header("upload-offset", offset);
        request.body(bytes.to_vec())
    }

    pub async fn append(&self, at: &str, offset: usize, bytes: &[u8]) -> Page {
        send(self.part(at, offset, bytes)).await
    }

    pub async fn offset(&self, at: &str) -> usize {
        let page = send(self.request(Method::HEAD, at)).await;
        assert_eq!((page.status, page.header("cache-control")), (200, "no-store"));
        page.header("upload-offset").parse().unwrap()
    }

    async fn finish(&self, at: &str, decision: &str) -> Page {
        send(self.request(Method::POST, &format!("{at}/finish")).form(&[("decision", decision)])).await
    }
}

/// The names in a folder, also the hidden ones.
async fn names(portal: &TestApp, slug: &str, folder: &str) -> Vec<Vec<u8>> {
    let line = portal.connection("alice", slug).await;
    let listing = sftp::list(&line, &remote_path(folder), 1000).await.unwrap();
    let mut names: Vec<Vec<u8>> = listing.entries.iter().map(|entry| entry.name.as_bytes().to_vec()).collect();
    names.sort();
    names
}

/// Whether a file on the cluster has exactly these bytes.
pub fn assert_content(folder: &Folder, name: &str, bytes: &[u8]) {
    use std::fmt::Write as _;
    let sum = Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    folder.tell(&format!("test \"$(sha256sum <'{}/{name}' | cut -d' ' -f1)\" = {sum}", folder.path));
}

#[tokio::test]
async fn file_arrives_in_parts_and_gets_its_name_at_the_end() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "true");
    let tus = Uploader::new(&portal, &alice, "key", &folder.path);
    let options = send(tus.request(Method::OPTIONS, "/uploads")).await;
    assert_eq!((options.status, options.header("tus-version")), (204, "1.0.0"));
    assert_eq!(options.header("tus-extension"), "creation,creation-with-upload,checksum,termination,expiration");
    assert_eq!(options.header("tus-checksum-algorithm"), "sha1,sha256");

    // Large enough to be checked by a command on the cluster.
    let bytes = sample(9 * MIB + 77);
    let page = send(tus.creation(b"a/b/data.bin", bytes.len(), &[("modified", b"1700000000")])).await;
    assert_eq!(page.status, 201, "{}", page.text());
    let at = page.location().to_owned();
    assert_eq!(tus.offset(&at).await, 0);
    let (first, second) = bytes.split_at(4 * MIB + 1);
    let page = tus.append(&at, 0, first).await;
    assert_eq!((page.status, page.header("upload-offset")), (204, first.len().to_string().as_str()), "{}", page.text());
    let inside = format!("{}/a/b", folder.path);
    let hidden = names(&portal, "key", &inside).await;
    assert!(hidden.len() == 1 && hidden[0].starts_with(b".portolan-upload-"), "{hidden:?}");
    let fragment = alice.get("/files/key/uploads").await;
    assert!(fragment.text().contains("1 unfinished upload") && fragment.text().contains("data.bin"));

    assert_eq!(tus.offset(&at).await, first.len());
    let page = tus.append(&at, first.len(), second).await;
    assert_eq!((page.status, page.header("upload-offset")), (204, bytes.len().to_string().as_str()), "{}", page.text());
    assert_eq!(names(&portal, "key", &inside).await, [b"data.bin"]);
    assert_content(&folder, "a/b/data.bin", &bytes);
    folder.tell(&format!("test $(stat -c %Y {inside}/data.bin) = 1700000000"));
    // The client may have missed the answer.
    assert_eq!(tus.offset(&at).await, bytes.len());
    assert_eq!(tus.append(&at, bytes.len(), b"").await.status, 204);
    assert_eq!(tus.finish(&at, "").await.status, 200);
    assert!(!alice.get("/files/key/uploads").await.text().contains("data.bin"));
}

/// What is written already may be deleted, or replaced by whoever may write to the folder.
#[tokio::test]
async fn upload_begins_again_if_what_was_there_is_gone_or_something_else() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "printf mine >mine");
    let tus = Uploader::new(&portal, &alice, "key", &folder.path);
    let bytes = sample(100_000);
    for (name, change) in [
        ("removed", "rm .portolan-upload-*"),
        ("cut", "truncate -s 10 .portolan-upload-*"),
        ("linked", "rm .portolan-upload-*; ln -s $PWD/mine $HIDDEN"),
    ] {
        let at = tus.create(name, bytes.len()).await;
        assert_eq!(tus.append(&at, 0, &bytes[..60_000]).await.status, 204);
        folder.tell(&format!("cd {} && HIDDEN=$(echo .portolan-upload-*) && {change}", folder.path));
        assert_eq!(tus.append(&at, 60_000, &bytes[60_000..]).await.status, 409, "{name}");
        assert_eq!(tus.offset(&at).await, 0, "{name}");
        assert_eq!(tus.append(&at, 0, &bytes).await.status, 204, "{name}");
        assert_content(&folder, name, &bytes);
        assert_content(&folder, "mine", b"mine");
    }
    assert_eq!(names(&portal, "key", &folder.path).await, [&b"cut"[..], b"linked", b"mine", b"removed"]);
}

#[tokio::test]
async fn creation_can_carry_the_file_or_be_all_of_it() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "true");
    let tus = Uploader::new(&portal, &alice, "key", &folder.path);
    let page = send(tus.creation(b"whole", 5, &[]).header("content-type", PART).body("hello")).await;
    assert_eq!((page.status, page.header("upload-offset")), (201, "5"), "{}", page.text());
    let page = send(tus.creation(b"half", 5, &[]).header("content-type", PART).body("he")).await;
    assert_eq!((page.status, page.header("upload-offset")), (201, "2"), "{}", page.text());
    let at = page.location().to_owned();
    // As a client that can send nothing but POST.
    let request = tus.request(Method::POST, &at).header("x-http-method-override", "PATCH");
    let request = request.header("content-type", PART).header("upload-offset", 2).body("llo");
    assert_eq!(send(request).await.status, 204);
    let page = send(tus.creation(b"empty", 0, &[])).await;
    assert_eq!(page.status, 201, "{}", page.text());
    assert_eq!(names(&portal, "key", &folder.path).await, [&b"empty"[..], b"half", b"whole"]);
    assert_content(&folder, "whole", b"hello");
    assert_content(&folder, "half", b"hello");
    assert_content(&folder, "empty", b"");
}

#[tokio::test]
async fn wrong_requests_get_the_statuses_of_the_protocol_and_change_nothing() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "true");
    let tus = Uploader::new(&portal, &alice, "key", &folder.path);
    let at = tus.create("file", 11).await;
    let status = async |request: RequestBuilder| send(request).await.status;

    let old = alice.request(Method::PATCH, &at).header("origin", &portal.url).header("tus-resumable", "0.2.2");
    let page = send(old).await;
    assert_eq!((page.status, page.header("tus-version")), (412, "1.0.0"));
    assert_eq!(status(tus.part(&at, 5, b"world")).await, 409);
    assert_eq!(status(tus.request(Method::PATCH, &at).header("upload-offset", 0).body("x")).await, 415);
    assert_eq!(status(tus.request(Method::PATCH, &at).header("content-type", PART).body("x")).await, 400);
    assert_eq!(status(tus.part(&at, 0, b"hello world and more")).await, 400);
    assert_eq!(status(tus.request(Method::POST, "/uploads").header("upload-length", 1)).await, 400);
    let nowhere = format!("{}/missing", folder.path);
    let lost = Uploader::new(&portal, &alice, "key", &nowhere);
    assert_eq!(status(lost.creation(b"x", 1, &[])).await, 422);
    let other = Uploader::new(&portal, &alice, "nowhere", &folder.path);
    assert_eq!(status(other.creation(b"x", 1, &[])).await, 400);
    let bobs = Uploader::new(&portal, &alice, "key", "/home/bob");
    assert_eq!(status(bobs.creation(b"x", 1, &[])).await, 403);

    // What more arrived than announced does not count, up to the last byte before it or not at all.
    let begun = tus.offset(&at).await;
    assert!(begun <= 11, "{begun}");
    let at = tus.create("checked", 11).await;
    let sum = |bytes: &[u8]| format!("sha256 {}", STANDARD.encode(Sha256::digest(bytes)));
    let part = tus.part(&at, 0, b"hellX ").header("upload-checksum", sum(b"hello "));
    assert_eq!(status(part).await, 460);
    assert_eq!(tus.offset(&at).await, 0);
    assert_eq!(status(tus.part(&at, 0, b"hello ").header("upload-checksum", "md5 AAAA")).await, 400);
    assert_eq!(status(tus.part(&at, 0, b"hello ").header("upload-checksum", sum(b"hello "))).await, 204);
    let sha1 = "sha1 fCEUM/AgcVl3Qeb/Wo6jR4mrv0M=";
    assert_eq!(status(tus.part(&at, 6, b"worle").header("upload-checksum", sha1)).await, 460);
    assert_eq!(tus.offset(&at).await, 6);
    assert_eq!(status(tus.part(&at, 6, b"world").header("upload-checksum", sha1)).await, 204);
    assert_content(&folder, "checked", b"hello world");
}

#[tokio::test]
async fn cancelled_and_expired_uploads_leave_nothing() {
    let (portal, admin, alice) = with_alice().await;
    let folder = Folder::new("alice", "true");
    let tus = Uploader::new(&portal, &alice, "key", &folder.path);
    let at = tus.create("file", 10).await;
    assert_eq!(tus.append(&at, 0, b"hello").await.status, 204);
    assert_eq!(names(&portal, "key", &folder.path).await.len(), 1);
    assert_eq!(send(tus.request(Method::DELETE, &at)).await.status, 204);
    assert_eq!(names(&portal, "key", &folder.path).await.len(), 0);
    for method in [Method::HEAD, Method::DELETE] {
        assert_eq!(send(tus.request(method, &at)).await.status, 404);
    }
    assert_eq!(tus.append(&at, 5, b"world").await.status, 404);

    let at = tus.create("file", 10).await;
    assert_eq!(tus.append(&at, 0, b"hello").await.status, 204);
    portal.app.uploads.sweep().await.unwrap();
    assert_eq!(names(&portal, "key", &folder.path).await.len(), 1, "it has not expired");
    let mut tx = portal.app.store.write().await.unwrap();
    sqlx::query("UPDATE uploads SET touched_at = touched_at - 8 * 86400").execute(&mut *tx).await.unwrap();
    portolan::store::commit(tx).await.unwrap();
    assert_eq!(send(tus.request(Method::HEAD, &at)).await.status, 410);
    // Older ones of someone who isn't connected don't hold it up.
    portal.member(&admin, "bob").await;
    let mut tx = portal.app.store.write().await.unwrap();
    let copies = "INSERT INTO uploads (id, person_id, cluster_id, target, temporary, metadata, size, confirmed,
                      checksum_state, replaces, state, problem, created_at, touched_at)
                  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
                  SELECT 'bob-' || i, $1, u.cluster_id, u.target, u.temporary, u.metadata, u.size, u.confirmed,
                         u.checksum_state, u.replaces, u.state, u.problem, u.created_at, u.touched_at - 60
                  FROM uploads u, n";
    sqlx::query(copies).bind(portal.person_id("bob").await).execute(&mut *tx).await.unwrap();
    portolan::store::commit(tx).await.unwrap();
    portal.app.uploads.sweep().await.unwrap();
    assert_eq!(names(&portal, "key", &folder.path).await.len(), 0);
}

#[tokio::test]
async fn nobody_else_can_touch_an_upload() {
    let (portal, admin, alice) = with_alice().await;
    let bob = portal.member(&admin, "bob").await;
    let folder = Folder::new("alice", "true");
    let tus = Uploader::new(&portal, &alice, "key", &folder.path);
    let at = tus.create("file", 10).await;
    for other in [&bob, &admin] {
        let other = Uploader::new(&portal, other, "key", &folder.path);
        for method in [Method::HEAD, Method::DELETE] {
            assert_eq!(send(other.request(method, &at)).await.status, 404);
        }
        assert_eq!(other.append(&at, 0, b"x").await.status, 404);
        assert_eq!(other.finish(&at, "replace").await.status, 404);
        assert_eq!(send(other.creation(b"x", 1, &[])).await.status, 503, "alice's connection is hers");
    }
    let visitor = portal.visitor();
    let visitor = Uploader::new(&portal, &visitor, "key", &folder.path);
    assert_eq!(visitor.append(&at, 0, b"x").await.status, 401);
    let foreign = alice.request(Method::PATCH, &at).header("origin", "https://evil.example");
    let foreign = foreign.header("tus-resumable", "1.0.0").header("content-type", PART).header("upload-offset", 0);
    assert_eq!(send(foreign.body("x")).await.status, 403);
    assert_eq!(tus.offset(&at).await, 0);

    alice.post("/clusters/key/disconnect", &[]).await;
    let page = tus.append(&at, 0, b"hello").await;
    assert_eq!((page.status, page.header("retry-after")), (503, "5"));
    assert!(page.text().contains("not connected"), "{}", page.text());
}

#[tokio::test]
async fn any_name_arrives_as_it_is_and_none_leads_out_of_the_folder() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir in");
    let inside = format!("{}/in", folder.path);
    let tus = Uploader::new(&portal, &alice, "key", &inside);
    let long = "n".repeat(255);
    let good: [&[u8]; 8] = [
        b"-rf",
        b"it's $(id) `id`; \"q\" \\ * & #?%",
        b"line\nbreak",
        b"bad\xff\xfename",
        b"<img src=x onerror=alert(1)>",
        b" blank ",
        b"..%2f..%2fx",
        long.as_bytes(),
    ];
    for name in good {
        let page = send(tus.creation(name, 1, &[]).header("content-type", PART).body("x")).await;
        assert_eq!(page.status, 201, "{name:?}: {}", page.text());
    }
    let mut expected: Vec<Vec<u8>> = good.iter().map(|name| name.to_vec()).collect();
    expected.sort();
    assert_eq!(names(&portal, "key", &inside).await, expected);
    let too_long = "n".repeat(256);
    for bad in ["", ".", "..", "../x", "a/../../x", "/tmp/x", "a//b", "a/", "a\0b", &too_long] {
        let page = send(tus.creation(bad.as_bytes(), 1, &[]).header("content-type", PART).body("x")).await;
        assert_eq!(page.status, 400, "{bad:?}: {}", page.text());
    }
    assert_eq!(names(&portal, "key", &folder.path).await, [b"in"]);
    assert_eq!(names(&portal, "key", &inside).await, expected);
}

#[tokio::test]
async fn taken_name_is_said_and_decided_by_the_owner() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "printf old >file.txt; mkdir folder");
    let tus = Uploader::new(&portal, &alice, "key", &folder.path);
    let page = send(tus.creation(b"file.txt", 3, &[])).await;
    assert_eq!(page.status, 409);
    assert!(page.text().contains("already exists"), "before anything is sent: {}", page.text());
    assert_eq!(send(tus.creation(b"folder", 3, &[("replace", b"yes")])).await.status, 409);
    let page = send(tus.creation(b"file.txt", 3, &[("replace", b"yes")])).await;
    assert_eq!(tus.append(page.location(), 0, b"new").await.status, 204);
    assert_content(&folder, "file.txt", b"new");

    // Taken while the bytes were on their way.
    let mut uploads = Vec::new();
    for bytes in [b"one", b"two"] {
        let at = tus.create("later.txt", 3).await;
        uploads.push((at, bytes));
    }
    folder.tell(&format!("printf first >{}/later.txt", folder.path));
    for (at, bytes) in &uploads {
        let page = tus.append(at, 0, *bytes).await;
        assert_eq!(page.status, 409, "{}", page.text());
        assert!(page.text().contains("already exists"));
        assert_eq!(tus.offset(at).await, 3, "nothing needs to be sent again");
    }
    assert_content(&folder, "later.txt", b"first");
    let fragment = alice.get("/files/key/uploads").await;
    assert_eq!(fragment.select_all("[data-upload-finish=replace]").len(), 2);
    assert_eq!(tus.finish(&uploads[0].0, "").await.status, 409);
    let page = tus.finish(&uploads[0].0, "keep-both").await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.text().contains("later (2).txt"), "{}", page.text());
    assert_eq!(tus.finish(&uploads[1].0, "replace").await.status, 200);
    assert_content(&folder, "later (2).txt", b"one");
    assert_content(&folder, "later.txt", b"two");
    let expected: [&[u8]; 4] = [b"file.txt", b"folder", b"later (2).txt", b"later.txt"];
    assert_eq!(names(&portal, "key", &folder.path).await, expected);
}

#[tokio::test]
async fn upload_goes_on_after_a_restart_of_the_portal() {
    let (mut portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "true");
    let bytes = sample(6 * MIB + 5);
    let path = folder.path.clone();
    let (at, first) = {
        let tus = Uploader::new(&portal, &alice, "key", &path);
        let at = tus.create("file", bytes.len()).await;
        assert_eq!(tus.append(&at, 0, &bytes[..2 * MIB]).await.status, 204);
        // A request that is still sending when the portal stops.
        let (sender, body) = tokio::sync::mpsc::channel::<Result<Vec<u8>, std::io::Error>>(1);
        let body = futures_util::stream::unfold(body, async |mut body| body.recv().await.map(|piece| (piece, body)));
        let request = tus.part(&at, 2 * MIB, b"").body(reqwest::Body::wrap_stream(body));
        let sending = tokio::spawn(request.send());
        sender.send(Ok(bytes[2 * MIB..3 * MIB].to_vec())).await.unwrap();
        sender.send(Ok(bytes[3 * MIB..4 * MIB].to_vec())).await.unwrap();
        (at, (sender, sending))
    };
    portal.restart().await;
    drop(first);
    let tus = Uploader::new(&portal, &alice, "key", &path);
    let offset = tus.offset(&at).await;
    assert!((2 * MIB..=4 * MIB).contains(&offset), "{offset}");
    let page = tus.append(&at, offset, &bytes[offset..]).await;
    assert_eq!(page.status, 204, "{}", page.text());
    assert_content(&folder, "file", &bytes);
    assert_eq!(names(&portal, "key", &path).await, [b"file"]);
}

#[tokio::test]
async fn client_that_went_away_comes_back_to_what_arrived() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "true");
    let tus = Uploader::new(&portal, &alice, "key", &folder.path);
    let bytes = sample(4 * MIB);
    let at = tus.create("file", bytes.len()).await;
    let (sender, body) = tokio::sync::mpsc::channel::<Result<Vec<u8>, std::io::Error>>(1);
    let body = futures_util::stream::unfold(body, async |mut body| body.recv().await.map(|piece| (piece, body)));
    let sending = tokio::spawn(tus.part(&at, 0, b"").body(reqwest::Body::wrap_stream(body)).send());
    sender.send(Ok(bytes[..MIB].to_vec())).await.unwrap();
    let line = portal.connection("alice", "key").await;
    let size = async || {
        let listing = sftp::list(&line, &remote_path(&folder.path), 10).await.unwrap();
        listing.entries.first().map_or(0, |entry| entry.attrs.size)
    };
    wait_until("something arrives", async || size().await > 0).await;
    // The old request still hangs: whoever asks takes the upload over from it.
    let offset = tus.offset(&at).await;
    assert!(offset > 0 && offset <= MIB, "{offset}");
    let page = tus.append(&at, offset, &bytes[offset..]).await;
    assert_eq!(page.status, 204, "{}", page.text());
    drop(sender);
    let _ = sending.await;
    assert_content(&folder, "file", &bytes);
}

/// Runs what is asked, but with another `cksum` while `kills` exists.
const WITH_OWN_CKSUM: &str = r#"
case "$SSH_ORIGINAL_COMMAND" in
  *cksum*)
    if [ -e @DIR@/kills ]; then
      SSH_ORIGINAL_COMMAND=$(printf %s "$SSH_ORIGINAL_COMMAND" | sed 's#cksum#@DIR@/killed#')
    fi ;;
esac
exec "$SHELL" -c "$SSH_ORIGINAL_COMMAND"
"#;

#[tokio::test]
async fn checksum_that_was_never_computed_is_no_damage() {
    // Login nodes kill what takes too much time or memory.
    let server = Server::with("ForceCommand /bin/sh @DIR@/asked");
    server.write("asked", &WITH_OWN_CKSUM.replace("@DIR@", &server.inside()));
    server
        .write("killed", "#!/bin/sh\ntouch @DIR@/box/called\nkill -9 $$\n".replace("@DIR@", &server.inside()).as_str());
    server.tell("chmod 755 killed; mkdir -m 777 box; touch kills");
    let (portal, alice) = with_alice_on(&server).await;
    let folder = Folder::new("alice", "true");
    let tus = Uploader::new(&portal, &alice, "own", &folder.path);
    // Larger than what is read back instead.
    let bytes = sample(9 * MIB);
    let at = tus.create("file", bytes.len()).await;
    let page = tus.append(&at, 0, &bytes).await;
    assert_eq!(page.status, 503, "{}", page.text());
    assert!(!page.text().contains("differs"), "{}", page.text());
    server.tell("test -e box/called");
    let left = names(&portal, "own", &folder.path).await;
    assert!(left.len() == 1 && left[0].starts_with(b".portolan-upload-"), "it is kept: {left:?}");
    server.tell("rm kills");
    assert_eq!(tus.offset(&at).await, bytes.len(), "nothing is sent again");
    let page = tus.finish(&at, "").await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert_content(&folder, "file", &bytes);
    assert_eq!(names(&portal, "own", &folder.path).await, [b"file"]);

    // Nor if the portal was killed after the file got its name.
    let tell = async |sql: &'static str| {
        let mut tx = portal.app.store.write().await.unwrap();
        sqlx::query(sql).execute(&mut *tx).await.unwrap();
        portolan::store::commit(tx).await.unwrap();
    };
    tell("CREATE TRIGGER killed BEFORE UPDATE OF state ON uploads BEGIN SELECT RAISE(ABORT, 'killed'); END").await;
    let at = tus.create("second", bytes.len()).await;
    assert_eq!(tus.append(&at, 0, &bytes).await.status, 500);
    assert_eq!(names(&portal, "own", &folder.path).await, [&b"file"[..], b"second"]);
    tell("DROP TRIGGER killed").await;
    server.tell("touch kills");
    let page = tus.finish(&at, "").await;
    assert!(page.status == 503 && !page.text().contains("differs"), "{}: {}", page.status, page.text());
    server.tell("rm kills");
    assert_eq!(tus.finish(&at, "").await.status, 200);
    assert_eq!(names(&portal, "own", &folder.path).await, [&b"file"[..], b"second"]);
}

/// A disk may be away for a while.
#[tokio::test]
async fn upload_waits_while_its_folder_is_away() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir in");
    let inside = format!("{}/in", folder.path);
    let tus = Uploader::new(&portal, &alice, "key", &inside);
    let begun = tus.create("begun", 6).await;
    assert_eq!(tus.append(&begun, 0, b"abc").await.status, 204);
    let named = tus.create("named", 3).await;
    folder.tell(&format!("printf old >{inside}/named"));
    assert_eq!(tus.append(&named, 0, b"new").await.status, 409);
    folder.tell(&format!("mv {inside} {}/away", folder.path));
    let page = tus.append(&begun, 3, b"def").await;
    assert!(page.status == 422 && page.text().contains("no longer exists"), "{}: {}", page.status, page.text());
    let page = tus.finish(&named, "keep-both").await;
    assert!(page.status == 422 && page.text().contains("no longer exists"), "{}: {}", page.status, page.text());
    folder.tell(&format!("mv {}/away {inside}", folder.path));
    assert_eq!(tus.offset(&begun).await, 3, "nothing is sent again");
    assert_eq!(tus.append(&begun, 3, b"def").await.status, 204);
    assert_eq!(tus.finish(&named, "keep-both").await.status, 200);
    assert_eq!(names(&portal, "key", &inside).await, [&b"begun"[..], b"named", b"named (2)"]);
}

#[tokio::test]
async fn full_disk_is_said_and_the_upload_goes_on_when_there_is_room() {
    // Files of this account can't grow beyond 2 MiB: for the writer that is like a quota.
    let server = Server::with("Subsystem sftp /bin/bash @DIR@/sftp.sh");
    let run = "exec /usr/lib/openssh/sftp-server";
    server.write("sftp.sh", &format!("trap '' XFSZ; ulimit -f 2048; {run}\n"));
    let (portal, alice) = with_alice_on(&server).await;
    let folder = Folder::new("alice", "true");
    let tus = Uploader::new(&portal, &alice, "own", &folder.path);
    let bytes = sample(3 * MIB);
    let at = tus.create("file", bytes.len()).await;
    let page = send_too_large(tus.part(&at, 0, &bytes)).await;
    assert!(page.is_none_or(|page| page.status == 507 && page.text().contains("reached your quota")));
    let head = send(tus.request(Method::HEAD, &at)).await;
    assert!(head.header("portolan-upload-problem").contains("reached your quota"));
    let fragment = alice.get("/files/own/uploads").await;
    assert!(fragment.text().contains("reached your quota"), "{}", fragment.text());
    let left = names(&portal, "own", &folder.path).await;
    assert!(left.iter().all(|name| name.starts_with(b".portolan-upload-")), "never half a file: {left:?}");
    server.write("sftp.sh", &format!("{run}\n"));
    alice.post("/clusters/own/disconnect", &[]).await;
    wait_for_value("it is closed", async || server.connections(), |seen| *seen == 0).await;
    alice.connect("own").await;
    let offset = tus.offset(&at).await;
    let page = tus.append(&at, offset, &bytes[offset..]).await;
    assert_eq!(page.status, 204, "{}", page.text());
    assert_content(&folder, "file", &bytes);
}

/// A request with small files.
fn batch(files: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (path, data) in files {
        body.extend_from_slice(&u32::try_from(path.len()).unwrap().to_be_bytes());
        body.extend_from_slice(path);
        body.extend_from_slice(&u64::try_from(data.len()).unwrap().to_be_bytes());
        body.extend_from_slice(data);
    }
    body
}

#[tokio::test]
async fn many_small_files_arrive_in_one_request_and_once_more_without_harm() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "printf mine >taken; printf x >file");
    let post = async |path: &str, replace: &str, body: Vec<u8>| {
        let request = alice.request(Method::POST, "/files/key/upload-batch").header("origin", &portal.url);
        send(request.query(&[("path", path), ("replace", replace)]).body(body)).await
    };
    let outcomes = |page: &Page| -> Vec<String> {
        let json: serde_json::Value = serde_json::from_str(page.text()).unwrap();
        let files = json["files"].as_array().unwrap();
        files.iter().map(|file| file["outcome"].as_str().unwrap().to_owned()).collect()
    };
    let files: [(&[u8], &[u8]); 7] = [
        (b"set/a/1", b"one"),
        (b"set/a/line\nbreak\xff", b"two"),
        (b"set/empty", b""),
        (b"taken", b"theirs"),
        (b"../out", b"x"),
        (b"file/below", b"x"),
        (b"set/b/c/d", b"deep"),
    ];
    for round in 0..2 {
        let page = post(&folder.path, "", batch(&files)).await;
        assert_eq!(page.status, 200, "{}", page.text());
        let expected = ["done", "done", "done", "exists", "failed", "failed", "done"];
        assert_eq!(outcomes(&page), expected, "round {round}: {}", page.text());
    }
    assert_content(&folder, "set/b/c/d", b"deep");
    assert_content(&folder, "taken", b"mine");
    let inside = format!("{}/set/a", folder.path);
    assert_eq!(names(&portal, "key", &inside).await, [&b"1"[..], b"line\nbreak\xff"], "nothing hidden is left");
    let folders: [(&[u8], &[u8]); 4] =
        [(b"set/hollow/", b""), (b"set/a/deep/hollow\xff/", b""), (b"file/", b""), (b"../out/", b"")];
    for round in 0..2 {
        let page = post(&folder.path, "", batch(&folders)).await;
        assert_eq!(outcomes(&page), ["done", "done", "failed", "failed"], "round {round}: {}", page.text());
    }
    folder.tell(&format!("cd {} && rmdir set/hollow $'set/a/deep/hollow\\xff' set/a/deep", folder.path));
    let page = post(&folder.path, "yes", batch(&files[3..4])).await;
    assert_eq!(outcomes(&page), ["done"]);
    assert_content(&folder, "taken", b"theirs");
    assert_eq!(names(&portal, "key", &folder.path).await, [&b"file"[..], b"set", b"taken"]);

    let many: Vec<(String, Vec<u8>)> =
        (0..1500).map(|number| (format!("many/{}/{number}", number % 7), vec![b'x'; 100])).collect();
    let many: Vec<(&[u8], &[u8])> = many.iter().map(|(path, data)| (path.as_bytes(), &data[..])).collect();
    let page = post(&folder.path, "", batch(&many)).await;
    assert!(outcomes(&page).iter().all(|outcome| outcome == "done"), "{}", page.text());
    folder.tell(&format!("test $(find {}/many -type f -size 100c | wc -l) = 1500", folder.path));

    assert_eq!(post(&folder.path, "", b"\0\0\0\x05ab".to_vec()).await.status, 400);
    assert_eq!(post("relative", "", Vec::new()).await.status, 400);
    alice.post("/clusters/key/disconnect", &[]).await;
    let page = post(&folder.path, "", batch(&files)).await;
    assert_eq!((page.status, page.header("retry-after")), (503, "5"));
}

/// `script/judges/tus` installs them and says where.
#[tokio::test]
async fn outside_tus_clients_upload_unmodified() {
    let Ok(judges) = std::env::var("PORTOLAN_TUS_JUDGES") else { return };
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "true");
    let local = tempfile::tempdir().unwrap();
    let file = local.path().join("file");
    let bytes = sample(11 * MIB + 3);
    std::fs::write(&file, &bytes).unwrap();
    let script = |name: &str| root().join("script/judges").join(name);
    let file = file.to_str().unwrap();
    let common = [portal.url.as_str(), &alice.cookies(), "key", &folder.path, file].map(str::to_owned);
    let python = format!("{judges}/venv/bin/python");
    for (mut command, name) in
        [(tokio::process::Command::new("node"), "by tus-js-client"), (tokio::process::Command::new(python), "by tuspy")]
    {
        if name == "by tuspy" {
            command.arg(script("tus_upload.py"));
        } else {
            command.arg(script("tus_upload.js")).arg(&judges);
        }
        let output = command.args(&common).output().await.unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
        assert_content(&folder, name, &bytes);
    }
}
