//! Files over a real sshd: names of any bytes, large files over several sessions, and what happens when things break.

use portolan::domain::{RemoteName, RemotePath};
use portolan::ssh::sftp::transfer::{RemoteFileReader, RemoteFileWriter, TransferSession};
use portolan::ssh::sftp::{self, RemoteFileKind, RenameMode, SftpError};
use sha2::{Digest as _, Sha256};

use crate::folders::{Folder, with_alice, with_alice_on};
use crate::support::cluster::remote_path;
use crate::support::relay::{Relay, with_alice_over};
use crate::support::server::Server;

const MIB: usize = 1024 * 1024;

/// Bytes that repeat nowhere near.
fn sample(len: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend((state >> 16).to_be_bytes());
    }
    bytes.truncate(len);
    bytes
}

async fn read_all(reader: &mut RemoteFileReader) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(chunk) = reader.next_chunk().await.unwrap() {
        bytes.extend_from_slice(&chunk);
    }
    bytes
}

#[tokio::test]
async fn names_of_any_bytes_come_back_exactly() {
    let (portal, _, _alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let folder = Folder::new("alice", "true");
    let here = remote_path(&folder.path);
    let mut long = vec![b'x'; 250];
    long.extend(b"\xff\xfe\n\"'");
    let names: Vec<RemoteName> = [
        &b"-rf"[..],
        b"it's $(a) `b`\\*",
        b"a\nb",
        b"\xff\xfe",
        b"<img src=x onerror=alert(1)>",
        b" ",
        b"..a",
        b"%2F",
        &long,
    ]
    .iter()
    .map(|name| RemoteName::parse(name).unwrap())
    .collect();
    for name in &names {
        let path = here.join(name);
        sftp::write_new(&line, &path, name.as_bytes().to_vec(), Some(0o640)).await.unwrap();
        assert_eq!(sftp::write_new(&line, &path, vec![], None).await, Err(SftpError::AlreadyExists));
    }
    let listing = sftp::list(&line, &here, 100).await.unwrap();
    let mut found: Vec<RemoteName> = listing.entries.iter().map(|entry| entry.name.clone()).collect();
    let mut expected = names.clone();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    for name in &names {
        let path = RemotePath::from_encoded(&here.join(name).to_encoded()).unwrap();
        assert_eq!(sftp::read(&line, &path, 1000).await.unwrap(), name.as_bytes());
        let attrs = sftp::stat(&line, &path).await.unwrap();
        assert_eq!((attrs.kind, attrs.mode), (RemoteFileKind::File, Some(0o640)));
        let moved = here.join(&RemoteName::parse(b"moved").unwrap());
        sftp::rename(&line, &path, &moved, RenameMode::KeepExisting).await.unwrap();
        sftp::remove_file(&line, &moved).await.unwrap();
        assert_eq!(sftp::lstat(&line, &path).await, Err(SftpError::NotFound));
    }
}

#[tokio::test]
async fn renaming_keeps_or_replaces_what_is_there() {
    let (portal, _, _alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let folder = Folder::new("alice", "echo old >old; echo new >new; mkdir full; touch full/x");
    let path = |name: &str| remote_path(&format!("{}/{name}", folder.path));
    let kept = sftp::rename(&line, &path("new"), &path("old"), RenameMode::KeepExisting).await;
    assert_eq!(kept, Err(SftpError::AlreadyExists));
    sftp::rename(&line, &path("new"), &path("old"), RenameMode::Replace).await.unwrap();
    assert_eq!(sftp::read(&line, &path("old"), 10).await.unwrap(), b"new\n");
    assert!(sftp::remove_folder(&line, &path("full")).await.is_err(), "only empty folders go");
    let space = sftp::disk_space(&line, &path("full")).await.unwrap().unwrap();
    assert!(space.bytes >= space.free_bytes && space.free_bytes > 0);
}

#[tokio::test]
async fn large_file_goes_over_several_sessions_and_comes_back_whole() {
    let (portal, _, _alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let folder = Folder::new("alice", "true");
    let path = remote_path(&format!("{}/large", folder.path));
    let bytes = sample(24 * MIB + 12_345);
    let mut writer = RemoteFileWriter::open(&line, &path, 0, bytes.len() as u64).await.unwrap();
    for part in bytes.chunks(777_777) {
        writer.write(bytes::Bytes::copy_from_slice(part)).await.unwrap();
    }
    assert_eq!(writer.finish().await.unwrap(), bytes.len() as u64);
    folder.tell(&format!("test \"$(sha256sum <{path} | cut -d' ' -f1)\" = {}", hex(&Sha256::digest(&bytes))));
    let again = RemoteFileWriter::open(&line, &path, 0, 1).await;
    assert_eq!(again.err(), Some(SftpError::AlreadyExists), "an upload never begins over a file");
    let mut reader = RemoteFileReader::open(&line, &path).await.unwrap();
    assert_eq!(reader.attrs().size, bytes.len() as u64);
    assert!(read_all(&mut reader).await == bytes);
    let (from, to) = (5 * MIB + 3, 9 * MIB + 1);
    reader.seek(from as u64..to as u64);
    assert!(read_all(&mut reader).await == bytes[from..to]);
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whoever may write to a folder can put another file or a link in the place of one that is being opened.
#[tokio::test]
async fn large_file_is_written_only_where_it_was_created() {
    // Here, the same path leads each session to a file of its own.
    let server = Server::with("Subsystem sftp /bin/sh @DIR@/sftp.sh");
    server.write(
        "sftp.sh",
        "cd \"$(mktemp -d @DIR@/box/XXXXXX)\"
         test -e @DIR@/armed && printf mine >file
         exec /usr/lib/openssh/sftp-server\n"
            .replace("@DIR@", &server.inside())
            .as_str(),
    );
    server.tell("mkdir -m 777 box");
    let (portal, _alice) = with_alice_on(&server).await;
    let line = portal.connection("alice", "own").await;
    let session = TransferSession::open(&line).await.unwrap();
    server.tell("touch armed");
    let path = remote_path("/proc/self/cwd/file");
    let bytes = sample(8 * MIB);
    let mut writer = RemoteFileWriter::open(&line, &path, 0, bytes.len() as u64).await.unwrap();
    writer.write(bytes.clone().into()).await.unwrap();
    assert_eq!(writer.finish().await.unwrap(), bytes.len() as u64);
    let sizes = format!("4 {} ", bytes.len());
    server.tell(&format!("test \"$(stat -c %s box/*/file | sort -nu | tr '\\n' ' ')\" = '{sizes}'"));
    assert!(session.lstat(&path).await.unwrap().size == bytes.len() as u64, "all of it is in one file");
    drop(session);

    // Nor is what was begun gone on with somewhere else.
    let folder = Folder::new("alice", "printf 'mine alone' >mine; ln -s mine begun");
    let begun = remote_path(&format!("{}/begun", folder.path));
    let resumed = RemoteFileWriter::open(&line, &begun, 5, bytes.len() as u64).await;
    assert_eq!(resumed.err(), Some(SftpError::Replaced));
    folder.tell(&format!("test \"$(cat {}/mine)\" = 'mine alone'", folder.path));
}

#[tokio::test]
async fn file_that_shrinks_while_it_is_read_just_ends() {
    let (portal, _, _alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let folder = Folder::new("alice", "head -c 9000000 /dev/zero >shrinks");
    let path = remote_path(&format!("{}/shrinks", folder.path));
    let mut reader = RemoteFileReader::open(&line, &path).await.unwrap();
    folder.tell(&format!("truncate -s 100000 {path}"));
    assert_eq!(read_all(&mut reader).await.len(), 100_000);
}

#[tokio::test]
async fn pipes_devices_and_folders_are_not_opened() {
    let (portal, _, _alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let folder = Folder::new("alice", "mkfifo pipe; ln -s loop loop; ln -s pipe to-pipe");
    let inside = |name: &str| remote_path(&format!("{}/{name}", folder.path));
    for (path, expected) in [
        (inside("pipe"), SftpError::SpecialFile),
        (inside("to-pipe"), SftpError::SpecialFile),
        (remote_path("/dev/zero"), SftpError::SpecialFile),
        (remote_path(&folder.path), SftpError::NotAFile),
        (inside("missing"), SftpError::NotFound),
    ] {
        assert_eq!(RemoteFileReader::open(&line, &path).await.err(), Some(expected.clone()), "{path}");
        assert_eq!(sftp::read(&line, &path, 10).await.err(), Some(expected), "{path}");
    }
    assert!(RemoteFileReader::open(&line, &inside("loop")).await.is_err());
    let secret = remote_path("/home/bob/.ssh/authorized_keys");
    assert_eq!(sftp::read(&line, &secret, 10).await.err(), Some(SftpError::NotAllowed), "the cluster's rights decide");
}

#[tokio::test]
async fn upload_goes_on_from_what_was_confirmed_when_the_network_broke() {
    let server = Server::start();
    let relay = Relay::to(server.port).await;
    let (portal, alice) = with_alice_over(&relay, &server).await;
    let line = portal.connection("alice", "own").await;
    let folder = Folder::new("alice", "true");
    let path = remote_path(&format!("{}/resumed", folder.path));
    let bytes = sample(16 * MIB);
    let mut writer = RemoteFileWriter::open(&line, &path, 0, bytes.len() as u64).await.unwrap();
    let cut = async {
        relay.cut_after(7 * MIB).await;
        alice.post("/clusters/own/disconnect", &[]).await;
    };
    let ((), sent) = tokio::join!(cut, async {
        for part in bytes.chunks(MIB) {
            writer.write(bytes::Bytes::copy_from_slice(part)).await?;
        }
        writer.flush().await
    });
    assert!(sent.is_err(), "{sent:?}");
    let confirmed = writer.confirmed();
    assert!(confirmed > 0 && confirmed < bytes.len() as u64, "{confirmed}");
    drop(writer);
    relay.mend();
    alice.connect("own").await;
    let line = portal.connection("alice", "own").await;
    let left = bytes.len() as u64 - confirmed;
    let mut writer = RemoteFileWriter::open(&line, &path, confirmed, left).await.unwrap();
    let rest = usize::try_from(confirmed).unwrap();
    writer.write(bytes::Bytes::copy_from_slice(&bytes[rest..])).await.unwrap();
    writer.finish().await.unwrap();
    let mut reader = RemoteFileReader::open(&line, &path).await.unwrap();
    assert!(read_all(&mut reader).await == bytes);
}

#[tokio::test]
async fn many_small_files_pass_over_one_session() {
    let (portal, _, _alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let folder = Folder::new("alice", "true");
    let session = TransferSession::open(&line).await.unwrap();
    let calls = || line.call_budget().stats(std::time::Instant::now()).commands;
    let before = calls();
    let path = |number: usize| remote_path(&format!("{}/{number}", folder.path));
    futures_util::future::join_all((0..300).map(|number| {
        let (session, path) = (session.clone(), path(number));
        async move { session.write_new(&path, path.as_bytes(), None).await.unwrap() }
    }))
    .await;
    assert_eq!(session.list(&remote_path(&folder.path), 1000).await.unwrap().entries.len(), 300);
    assert_eq!(session.read(&path(299), 1000).await.unwrap(), path(299).as_bytes());
    assert_eq!(calls(), before, "the session counts, not each file");
}

#[tokio::test]
async fn replacing_loses_nothing_on_servers_that_need_several_steps() {
    let server = Server::with("Subsystem sftp /usr/lib/openssh/sftp-server -P posix-rename");
    let (portal, _alice) = with_alice_on(&server).await;
    let line = portal.connection("alice", "own").await;
    let folder = Folder::new("alice", "printf old >file; printf new >draft; mkdir sub");
    let at = |name: &str| remote_path(&format!("{}/{name}", folder.path));
    let replace = async |from: &str, to: &str| sftp::rename(&line, &at(from), &at(to), RenameMode::Replace).await;
    let names = async || {
        let mut names: Vec<String> = sftp::list(&line, &remote_path(&folder.path), 10)
            .await
            .unwrap()
            .entries
            .iter()
            .map(|entry| entry.name.to_string())
            .collect();
        names.sort();
        names
    };
    // The new one can't take the name: the old one has it again.
    assert_eq!(replace("missing", "file").await, Err(SftpError::NotFound));
    assert_eq!(sftp::read(&line, &at("file"), 10).await.unwrap(), b"old");
    assert_eq!(replace("draft", "sub").await, Err(SftpError::NotAFile));
    assert_eq!(names().await, ["draft", "file", "sub"]);
    replace("draft", "file").await.unwrap();
    assert_eq!(sftp::read(&line, &at("file"), 10).await.unwrap(), b"new");
    replace("file", "free").await.unwrap();
    assert_eq!(names().await, ["free", "sub"]);
}
