//! Downloads from the real cluster: whole files and ranges, whatever happens to file and connection meanwhile, and
//! archives as other programs unpack them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use portolan::domain::{RemoteName, RemotePath};
use portolan::ssh::sftp;
use reqwest::header::HeaderMap;
use reqwest::{Method, Response};

use crate::folders::{Folder, with_alice, with_alice_on};
use crate::support::cluster::{Cluster, remote_path};
use crate::support::server::Server;
use crate::support::wait::wait_until;
use crate::support::{Client, TestApp};

/// Lines of numbers, as `seq` writes them: more than fits into all buffers on the way.
const MANY_LINES: usize = 4_000_000;

pub fn numbers(count: usize) -> Vec<u8> {
    let mut text = String::with_capacity(count * 8);
    for number in 1..=count {
        let _ = writeln!(text, "{number}");
    }
    text.into_bytes()
}

/// Asks for a file.
pub async fn ask(who: &Client, slug: &str, path: &RemotePath, headers: &[(&str, &str)]) -> Response {
    let request = who.request(Method::GET, &format!("/files/{slug}/download")).query(&[("path", path.to_encoded())]);
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).send().await.unwrap()
}

/// The whole answer.
async fn fetch(who: &Client, path: &RemotePath, headers: &[(&str, &str)]) -> (u16, HeaderMap, Vec<u8>) {
    let response = ask(who, "key", path, headers).await;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    (status, headers, response.bytes().await.unwrap().to_vec())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

/// What comes until the end, and whether the end is one.
pub async fn read_rest(mut response: Response, mut bytes: Vec<u8>) -> (Vec<u8>, bool) {
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => return (bytes, true),
            Err(_) => return (bytes, false),
        }
    }
}

/// The first part of an answer, at least so long.
pub async fn read_some(response: &mut Response, least: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < least {
        bytes.extend_from_slice(&response.chunk().await.unwrap().unwrap());
    }
    bytes
}

#[tokio::test]
async fn file_comes_whole_in_ranges_and_from_where_it_stopped() {
    let (_portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "seq 100000 >data.csv; : >empty; touch -d @1700000000 data.csv");
    let path = remote_path(&format!("{}/data.csv", folder.path));
    let expected = numbers(100_000);
    let (status, headers, body) = fetch(&alice, &path, &[("accept-encoding", "gzip")]).await;
    assert!(status == 200 && body == expected);
    for (name, value) in [
        ("content-length", expected.len().to_string().as_str()),
        ("accept-ranges", "bytes"),
        ("content-type", "application/octet-stream"),
        ("content-disposition", "attachment; filename=\"data.csv\""),
        ("x-content-type-options", "nosniff"),
        ("last-modified", "Tue, 14 Nov 2023 22:13:20 GMT"),
        ("content-encoding", ""),
    ] {
        assert_eq!(text(&headers, name), value, "{name}");
    }
    assert!(text(&headers, "content-security-policy").starts_with("sandbox; default-src 'none'"));
    assert_eq!(headers.get_all("content-security-policy").iter().count(), 1);
    let tag = text(&headers, "etag").to_owned();
    let last = expected.len() - 1;
    for (range, from, to) in
        [("bytes=0-0", 0, 0), ("bytes=5-99", 5, 99), ("bytes=-7", last - 6, last), ("bytes=400000-", 400_000, last)]
    {
        let (status, headers, body) = fetch(&alice, &path, &[("range", range)]).await;
        assert!(status == 206 && body == expected[from..=to], "{range}");
        assert_eq!(text(&headers, "content-range"), format!("bytes {from}-{to}/{}", expected.len()));
        assert_eq!(text(&headers, "etag"), tag);
    }
    let (status, headers, _) = fetch(&alice, &path, &[("range", "bytes=99999999-")]).await;
    assert_eq!((status, text(&headers, "content-range")), (416, format!("bytes */{}", expected.len()).as_str()));
    let (status, _, body) = fetch(&alice, &path, &[("range", "bytes=0-1,5-6")]).await;
    assert!(status == 200 && body == expected, "several ranges: the whole file");

    let resume = [("range", "bytes=100-"), ("if-range", tag.as_str())];
    let (status, _, body) = fetch(&alice, &path, &resume).await;
    assert!(status == 206 && body == expected[100..]);
    let (status, ..) =
        fetch(&alice, &path, &[("range", "bytes=100-"), ("if-range", "Tue, 14 Nov 2023 22:13:20 GMT")]).await;
    assert_eq!(status, 206);
    folder.tell(&format!("echo more >>{path}"));
    let (status, headers, body) = fetch(&alice, &path, &resume).await;
    assert!(status == 200 && body.len() == expected.len() + 5, "another version: all of it again");
    assert_ne!(text(&headers, "etag"), tag);

    let head = alice.request(Method::HEAD, "/files/key/download").query(&[("path", path.to_encoded())]);
    let head = head.send().await.unwrap();
    assert_eq!(text(head.headers(), "content-length"), (expected.len() + 5).to_string());
    assert_eq!(text(head.headers(), "accept-ranges"), "bytes");
    let (status, _, body) = fetch(&alice, &remote_path(&format!("{}/empty", folder.path)), &[]).await;
    assert!(status == 200 && body.is_empty());
}

#[tokio::test]
async fn names_of_any_bytes_are_downloaded_under_safe_names() {
    let (portal, _, alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let folder = Folder::new("alice", "true");
    let long = vec![b'x'; 255];
    for name in [
        &b"-rf"[..],
        b"a\r\nSet-Cookie: evil=1\r\n\r\n<b>",
        b"\"; filename=\"evil.exe",
        b"it's $(a) `b`\\*",
        b"..\\..\\evil",
        b"\xff\xfe",
        "gpj\u{202e}exe".as_bytes(),
        "Ünï.txt".as_bytes(),
        b"%2e%2e%2f",
        b" ",
        &long,
    ] {
        let path = remote_path(&folder.path).join(&RemoteName::parse(name).unwrap());
        sftp::write_new(&line, &path, name.to_vec(), None).await.unwrap();
        let (status, headers, body) = fetch(&alice, &path, &[]).await;
        assert!(status == 200 && body == name, "{path:?}");
        let disposition = text(&headers, "content-disposition");
        assert!(disposition.starts_with("attachment; filename=\""), "{disposition}");
        assert_eq!(disposition.matches('"').count(), 2, "{disposition}");
        assert!(!disposition.contains(['/', '\\']), "{disposition}");
        assert!(headers.get("set-cookie").is_none());
    }
}

#[tokio::test]
async fn what_is_no_readable_file_is_explained() {
    let (portal, admin, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkfifo pipe; ln -s loop loop; ln -s pipe to-pipe; mkdir sub; echo x >own");
    let inside = |name: &str| format!("{}/{name}", folder.path);
    for (path, status, words) in [
        (inside("missing"), 404, "doesn't exist"),
        (inside("pipe"), 422, "a device, a pipe"),
        (inside("to-pipe"), 422, "a device, a pipe"),
        ("/dev/zero".to_owned(), 422, "a device, a pipe"),
        (inside("sub"), 422, "This is a folder"),
        ("/home/bob/.ssh/authorized_keys".to_owned(), 403, "have permission"),
    ] {
        let (found, headers, body) = fetch(&alice, &remote_path(&path), &[]).await;
        let body = String::from_utf8(body).unwrap();
        assert!(found == status && body.contains("Nothing was downloaded"), "{path}: {found} {body}");
        assert!(body.replace("&#39;", "'").contains(words), "{path}: {body}");
        assert!(text(&headers, "content-type").starts_with("text/html"));
        assert_eq!(text(&headers, "content-disposition"), "");
    }
    assert_ne!(fetch(&alice, &remote_path(&inside("loop")), &[]).await.0, 200);
    for path in ["own", "../etc/passwd", "/etc/../etc/passwd", "/a%2F..%2Fb%00", ""] {
        let response = alice.request(Method::GET, "/files/key/download").query(&[("path", path)]).send().await.unwrap();
        assert_eq!(response.status(), 400, "{path}");
    }
    // Alice's connection is nobody else's.
    let bob = portal.member(&admin, "bob").await;
    bob.name_user("key", "alice").await;
    let own = remote_path(&inside("own"));
    for other in [&bob, &admin] {
        let (status, _, body) = fetch(other, &own, &[]).await;
        assert!(status == 409 && !body.ends_with(b"x\n"), "{status}");
    }
    let page = portal.visitor().get(&format!("/files/key/download?path={own}")).await;
    assert_eq!((page.status, page.location().starts_with("/sign-in")), (303, true));
    assert_eq!(ask(&alice, "nowhere", &own, &[]).await.status(), 404);
}

#[tokio::test]
async fn file_that_changes_its_length_is_never_padded_or_cut_silently() {
    let (_portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", &format!("seq {MANY_LINES} >grows; cp grows shrinks"));
    let inside = |name: &str| remote_path(&format!("{}/{name}", folder.path));
    let expected = numbers(MANY_LINES);

    let mut response = ask(&alice, "key", &inside("grows"), &[]).await;
    let first = response.chunk().await.unwrap().unwrap().to_vec();
    folder.tell(&format!("seq 1000 >>{}", inside("grows")));
    let (body, is_whole) = read_rest(response, first).await;
    assert!(is_whole && body == expected, "exactly what was announced: {} of {}", body.len(), expected.len());

    let mut response = ask(&alice, "key", &inside("shrinks"), &[]).await;
    assert_eq!(response.content_length(), Some(expected.len() as u64));
    let first = response.chunk().await.unwrap().unwrap().to_vec();
    folder.tell(&format!("truncate -s 1000 {}", inside("shrinks")));
    let (body, is_whole) = read_rest(response, first).await;
    assert!(!is_whole && body.len() < expected.len(), "{}", body.len());
    assert!(expected.starts_with(&body), "nothing was made up");
}

/// A portal with alice on a server of the test's own, and a large file there.
async fn with_large_file(server: &Server) -> (TestApp, Client, Folder, RemotePath) {
    let (portal, alice) = with_alice_on(server).await;
    let folder = Folder::new("alice", &format!("seq {MANY_LINES} >large"));
    let path = remote_path(&format!("{}/large", folder.path));
    (portal, alice, folder, path)
}

/// Ends alice's connection on the server's side, and waits until the portal knows.
async fn lose_connection(portal: &TestApp, server: &Server) {
    let key = portal.connection_key("alice", "own").await;
    server.drop_connections();
    wait_until("the portal notices", async || portal.app.connections.connection(key).is_err()).await;
}

#[tokio::test]
async fn download_goes_on_over_the_next_connection() {
    let server = Server::start();
    let (portal, alice, _folder, path) = with_large_file(&server).await;
    let expected = numbers(MANY_LINES);
    for percent in [1, 50, 99] {
        let mut response = ask(&alice, "own", &path, &[]).await;
        let first = read_some(&mut response, expected.len() * percent / 100).await;
        lose_connection(&portal, &server).await;
        let reading = tokio::spawn(read_rest(response, first));
        alice.connect("own").await;
        let (body, is_whole) = reading.await.unwrap();
        assert!(is_whole && body == expected, "{percent} %: {} {is_whole}", body.len());
    }
}

#[tokio::test]
async fn download_fails_if_the_file_changed_while_the_connection_was_gone() {
    let server = Server::start();
    let (portal, alice, folder, path) = with_large_file(&server).await;
    let mut response = ask(&alice, "own", &path, &[]).await;
    let first = response.chunk().await.unwrap().unwrap().to_vec();
    lose_connection(&portal, &server).await;
    folder.tell(&format!("echo more >>{path}"));
    let reading = tokio::spawn(read_rest(response, first));
    alice.connect("own").await;
    let (body, is_whole) = reading.await.unwrap();
    assert!(!is_whole && body.len() < numbers(MANY_LINES).len(), "{}", body.len());
}

/// Asks for an archive, as the form does.
async fn fetch_archive(who: &Client, url: &str, folder: &str, fields: &[(&str, &str)]) -> (u16, HeaderMap, Vec<u8>) {
    let mut form = vec![("path", folder)];
    form.extend_from_slice(fields);
    let request = who.request(Method::POST, "/files/key/archive").header("origin", url).form(&form);
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    (status, headers, response.bytes().await.unwrap().to_vec())
}

/// Prints names, types, permissions, links, contents and files' times of everything in the folder that it runs in.
const MANIFEST: &str = r#"export LC_ALL=C
    find . -mindepth 1 -print0 | sort -z | while IFS= read -r -d '' f; do
        find "$f" -maxdepth 0 -printf '%p %y %m %l\n'; find "$f" -maxdepth 0 -type f -printf '%Ts\n'
    done
    find . -type f -print0 | sort -z | xargs -0 sha256sum"#;

fn run_in(folder: &Path, program: &str, args: &[&str]) -> Vec<u8> {
    let done = Command::new(program).args(args).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{program} {args:?}: {done:?}");
    done.stdout
}

fn manifest_there(folder: &Folder, name: &str) -> Vec<u8> {
    let script = format!("cd {}/{name} && {{ {}\n}}", folder.path, MANIFEST);
    let done = Cluster::get().script(&["exec", "--as", "alice", "bash", "-c", &script]);
    assert!(done.status.success(), "{done:?}");
    done.stdout
}

#[tokio::test]
async fn tar_unpacks_to_what_was_there() {
    let (portal, _, alice) = with_alice().await;
    let long = "deep ".repeat(40).trim_end().to_owned();
    let folder = Folder::new(
        "alice",
        &format!(
            "mkdir -p tree/sub/'{long}' tree/locked; cd tree; : >empty; seq 300000 >large; seq 10 >sub/small
             printf x >$'sub/bad\\xff\\xfe'; printf y >$'sub/line\\nbreak'; printf z >-rf; printf w >'it'\"'\"'s \"q\"'
             ln -s sub/small inside; ln -s /etc/passwd outside; ln -s loop loop; ln -s . again; mkfifo pipe
             seq 3 >'sub/{long}/{long}'; chmod 640 large; chmod 755 sub/small
             seq 5 >unreadable; chmod 0 unreadable; touch -d @1600000000 sub/small"
        ),
    );
    // Nobody can read these, so nobody can compare them either.
    folder.tell(&format!("mkdir {0}/kept; mv {0}/tree/unreadable {0}/kept/; mv {0}/tree/pipe {0}/kept/", folder.path));
    let fields = [("name", "tree"), ("name", "kept"), ("format", "tar")];
    let (status, headers, body) = fetch_archive(&alice, &portal.url, &folder.path, &fields).await;
    assert_eq!((status, text(&headers, "content-type")), (200, "application/x-tar"));
    let name = folder.path.rsplit('/').next().unwrap();
    assert_eq!(text(&headers, "content-disposition"), format!("attachment; filename=\"{name}.tar\""));
    assert!(text(&headers, "content-security-policy").starts_with("sandbox"));
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("a.tar"), &body).unwrap();
    run_in(here.path(), "tar", &["-xpf", "a.tar"]);
    let unpacked = run_in(&here.path().join("tree"), "bash", &["-c", MANIFEST]);
    let there = manifest_there(&folder, "tree");
    assert_eq!(String::from_utf8_lossy(&unpacked), String::from_utf8_lossy(&there));
    assert!(unpacked == there);
    let note = std::fs::read_to_string(here.path().join("NOT INCLUDED.txt")).unwrap();
    assert!(note.contains("kept/unreadable: You don't have permission"), "{note}");
    assert!(note.contains("kept/pipe: It's a device, a pipe"), "{note}");
    assert!(!here.path().join("kept/unreadable").exists());
}

#[tokio::test]
async fn zip_unpacks_to_what_was_there_and_leads_nowhere_else() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "mkdir -p tree/sub/deeper; cd tree; : >empty; seq 300000 >large; seq 10 >sub/small; seq 4 >'sub/Ünï code'
         printf z >-rf; ln -s sub/small inside; chmod 640 large; touch -d @1600000000 sub/small
         mkdir ../odd; cd ../odd; ln -s /etc/passwd outside; ln -s ../../../x up; ln -s loop loop
         printf a >'..\\..\\evil'; printf b >'C:evil'; mkfifo pipe; printf c >$'bad\\xff'; printf d >fine",
    );
    let fields = [("name", "tree"), ("name", "odd"), ("name", "gone")];
    let (status, headers, body) = fetch_archive(&alice, &portal.url, &folder.path, &fields).await;
    assert_eq!((status, text(&headers, "content-type")), (200, "application/zip"));
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("a.zip"), &body).unwrap();
    run_in(here.path(), "unzip", &["-tq", "a.zip"]);
    run_in(here.path(), "env", &["LC_ALL=C.UTF-8", "unzip", "-q", "a.zip", "tree/*", "NOT INCLUDED.txt"]);
    let unpacked = run_in(&here.path().join("tree"), "bash", &["-c", MANIFEST]);
    let there = manifest_there(&folder, "tree");
    assert_eq!(String::from_utf8_lossy(&unpacked), String::from_utf8_lossy(&there));
    let script = "import sys, zipfile
for info in zipfile.ZipFile('a.zip').infolist():
    print(repr(info.filename))
    assert not info.filename.startswith('/') and '..' not in info.filename.replace('\\\\', '/').split('/')";
    let names = String::from_utf8(run_in(here.path(), "python3", &["-c", script])).unwrap();
    assert!(names.contains("'odd/fine'") && names.contains("'odd/loop'"), "{names}");
    let note = std::fs::read_to_string(here.path().join("NOT INCLUDED.txt")).unwrap();
    for words in [
        "odd/outside: It's a symbolic link to /etc/passwd",
        "odd/up: It's a symbolic link to ../../../x",
        "odd/..\\..\\evil: Windows would read its name as a path",
        "odd/C:evil: Windows",
        "odd/pipe: It's a device",
        "gone: This file or folder doesn't exist",
    ] {
        assert!(note.contains(words), "{words}: {note}");
    }
    for left_out in ["outside", "'odd/up'", "evil", "pipe"] {
        assert!(!names.contains(left_out), "{left_out}: {names}");
    }
}

#[tokio::test]
async fn what_is_ticked_decides_what_is_downloaded() {
    let (portal, admin, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir sub; seq 3 >sub/a; seq 4 >b; ln -s b to-b");
    let fetch = async |fields: &[(&str, &str)]| fetch_archive(&alice, &portal.url, &folder.path, fields).await;
    for (name, file) in [("b", "b"), ("to-b", "to-b")] {
        let (status, headers, _) = fetch(&[("name", name)]).await;
        let to = text(&headers, "location").to_owned();
        assert!(status == 303 && to.starts_with("/files/key/download?path="), "{status} {to}");
        assert!(to.ends_with(file), "{to}");
        assert_eq!(alice.get(&to).await.text(), "1\n2\n3\n4\n", "one file comes as it is");
    }
    let members = |body: &[u8], program: &str, args: &[&str]| -> Vec<String> {
        let here = tempfile::tempdir().unwrap();
        std::fs::write(here.path().join("archive"), body).unwrap();
        let listed = String::from_utf8(run_in(here.path(), program, args)).unwrap();
        listed.lines().map(str::to_owned).collect()
    };
    let (_, headers, body) = fetch(&[("name", "sub")]).await;
    assert_eq!(text(&headers, "content-disposition"), "attachment; filename=\"sub.zip\"");
    assert_eq!(members(&body, "unzip", &["-Z1", "archive"]), ["sub/", "sub/a"]);
    let (_, _, body) = fetch(&[("name", "b"), ("format", "tar")]).await;
    assert_eq!(members(&body, "tar", &["-tf", "archive"]), ["b"]);
    let (_, _, body) = fetch(&[]).await;
    let top = folder.path.rsplit('/').next().unwrap();
    let whole = ["b", "to-b", "sub/a"].map(|name| format!("{top}/{name}"));
    let listed = members(&body, "unzip", &["-Z1", "archive"]);
    assert!(whole.iter().all(|name| listed.contains(name)) && listed.len() == 5, "{listed:?}");

    for bad in ["..", "a/b", "/etc", ""] {
        assert_eq!(fetch(&[("name", bad)]).await.0, 400, "{bad}");
    }
    assert_eq!(fetch(&[("name", "gone")]).await.0, 404);
    assert_eq!(fetch_archive(&admin, &portal.url, &folder.path, &[("name", "b"), ("name", "sub")]).await.0, 409);
    let other = alice.request(Method::POST, "/files/key/archive").header("origin", "https://evil.example");
    assert_eq!(other.form(&[("path", &folder.path)]).send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn folder_of_many_small_files_comes_whole() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "mkdir many; cd many; for n in $(seq 20); do mkdir $n; seq -f \"$n/%g\" 100 | while read f; do echo $f >$f; done; done",
    );
    let line = portal.connection("alice", "key").await;
    let calls = || line.call_budget().stats(std::time::Instant::now()).commands;
    let before = calls();
    let fields = [("name", "many"), ("format", "tar")];
    let (_, _, body) = fetch_archive(&alice, &portal.url, &folder.path, &fields).await;
    assert!(calls() - before < 10, "not a call for each file: {}", calls() - before);
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("a.tar"), &body).unwrap();
    run_in(here.path(), "tar", &["-xf", "a.tar"]);
    let mut found = BTreeMap::new();
    for number in 1..=20 {
        for file in 1..=100 {
            let name = format!("{number}/{file}");
            found.insert(name.clone(), std::fs::read_to_string(here.path().join("many").join(&name)).unwrap());
        }
    }
    assert!(found.iter().all(|(name, content)| *content == format!("{name}\n")));
}
