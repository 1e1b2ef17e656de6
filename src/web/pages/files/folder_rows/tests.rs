use super::*;
use crate::domain::{RemoteName, RemotePath};
use crate::ssh::sftp::{RemoteDirListing, RemoteFileAttrs};

fn contents(names: impl Iterator<Item = Vec<u8>>) -> FolderContents {
    let attrs = RemoteFileAttrs {
        kind: RemoteFileKind::File,
        size: 5,
        modified: Some(UnixTime(1_000_000)),
        mode: None,
        owner: None,
    };
    let entry = |name: Vec<u8>| RemoteDirEntry { name: RemoteName::parse(&name).unwrap(), attrs, is_link: false };
    let listing = RemoteDirListing { entries: names.map(entry).collect(), is_truncated: false };
    FolderContents::new(RemotePath::parse(b"/scratch/ada/run").unwrap(), listing, UnixTime(0))
}

fn location() -> FolderLocation {
    FolderLocation::new("key", RemotePath::parse(b"/scratch/ada/run").unwrap())
}

#[test]
fn a_long_folder_is_shown_a_part_at_a_time() {
    let folder = contents((0..100_000).map(|number| format!("part-{number}").into_bytes()));
    let mut from = 0;
    for _ in 0..3 {
        let listed = ListedFolder::new(&folder, &location(), from);
        let last = from + listed.rows.len();
        assert_eq!(listed.rows[0].name, format!("part-{from}"));
        assert!((50..=PAGE_ROWS).contains(&listed.rows.len()) && listed.next == Some(last));
        assert_eq!(listed.sum(), "100,000 items");
        from = last;
    }
    let end = ListedFolder::new(&folder, &location(), 99_999);
    assert_eq!((end.rows.len(), end.next), (1, None));
    assert!(ListedFolder::new(&folder, &location(), usize::MAX).rows.is_empty());
    let filtered = ListedFolder::new(&folder, &location().with_filter("part-9999"), 0);
    assert_eq!((filtered.rows.len(), filtered.sum().as_str()), (11, "11 of 100,000 items"));
}

#[test]
fn long_and_hostile_names_make_fewer_rows() {
    let folder = contents(
        (0..200_u8).map(|number| [vec![b'<'; 250], vec![number.max(b'0'); 2], vec![b'a' + number % 26; 3]].concat()),
    );
    let listed = ListedFolder::new(&folder, &location(), 0);
    assert!(!listed.rows.is_empty() && listed.rows.len() < 30, "{}", listed.rows.len());
    let bytes: usize = listed.rows.iter().map(FolderRow::html_bytes).sum();
    assert!(bytes <= MAX_ROWS_BYTES);
}

#[test]
fn rows_say_what_they_are() {
    let row = |kind, is_link| {
        let attrs = RemoteFileAttrs { kind, size: 2048, modified: None, mode: None, owner: None };
        FolderRow::new(&RemoteDirEntry { name: RemoteName::parse(b"x%\xff").unwrap(), attrs, is_link }, &location())
    };
    let folder = row(RemoteFileKind::Folder, true);
    assert_eq!((folder.kind, folder.note, folder.size.as_str()), ("folder", "Link to a folder", ""));
    assert_eq!(folder.href, "/files/key?path=%2Fscratch%2Fada%2Frun%2Fx%2525%25FF");
    let file = row(RemoteFileKind::File, false);
    assert_eq!((file.kind, file.note, file.size.as_str(), file.encoded.as_str()), ("file", "", "2 kB", "x%25%FF"));
    assert_eq!(file.href, "/files/key/view?path=%2Fscratch%2Fada%2Frun%2Fx%2525%25FF");
    let broken = row(RemoteFileKind::Link, true);
    assert_eq!((broken.kind, broken.note, broken.href.as_str()), ("other", "Broken link", ""));
}

#[test]
fn counts_in_words() {
    let folder = contents([&b".a"[..], b"b"].into_iter().map(<[u8]>::to_vec));
    assert_eq!(ListedFolder::new(&folder, &location(), 0).sum(), "2 items, 1 hidden");
    assert_eq!(ListedFolder::new(&folder, &location().with_hidden(true), 0).sum(), "2 items");
    assert_eq!(ListedFolder::new(&contents(std::iter::empty()), &location(), 0).sum(), "empty");
}

#[test]
fn only_archives_can_be_extracted() {
    let row = |name: &[u8], kind| {
        let attrs = RemoteFileAttrs { kind, size: 5, modified: None, mode: None, owner: None };
        let entry = RemoteDirEntry { name: RemoteName::parse(name).unwrap(), attrs, is_link: false };
        FolderRow::new(&entry, &location()).is_archive
    };
    assert!(row(b"data.tar.gz", RemoteFileKind::File) && row(b"DATA.ZIP", RemoteFileKind::File));
    assert!(!row(b"notes.txt", RemoteFileKind::File) && !row(b"data.zip", RemoteFileKind::Folder));
}
