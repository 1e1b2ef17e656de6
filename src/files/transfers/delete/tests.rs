use super::*;
use crate::domain::RemoteName;
use crate::ssh::sftp::{RemoteDirEntry, RemoteFileAttrs};

fn entry(name: &str, kind: RemoteFileKind) -> RemoteDirEntry {
    let attrs = RemoteFileAttrs { kind, size: 0, modified: None, mode: Some(0o644), owner: None };
    let name = RemoteName::parse(name.as_bytes()).unwrap();
    RemoteDirEntry { name, attrs, is_link: kind == RemoteFileKind::Link }
}

fn path(text: &str) -> RemotePath {
    RemotePath::parse(text.as_bytes()).unwrap()
}

/// Runs the plan against folders that exist only here; says in which order paths went.
fn carry_out(tree: &[(&str, &[(&str, RemoteFileKind)])], stuck: &[&str], names_at_once: usize) -> (Vec<String>, u64) {
    let progress = TransferProgress::unseen();
    let mut deletion = Deletion::new(&progress, HashMap::new());
    let first = DeletionStep { node: None, path: path(tree[0].0), kind: DeletionStepKind::List(None) };
    deletion.steps.push(first);
    let (mut gone, mut next_node): (Vec<String>, u64) = (Vec::new(), 0);
    while let Some(step) = deletion.steps.pop() {
        let at = step.path.to_string();
        if let DeletionStepKind::List(_) = step.kind {
            let folder = tree.iter().find(|(folder, _)| *folder == at).unwrap();
            let inside = |name: &str| path(&at).join(&RemoteName::parse(name.as_bytes()).unwrap()).to_string();
            let left: Vec<_> = folder.1.iter().filter(|(name, _)| !gone.contains(&inside(name))).collect();
            let entries = left.iter().take(names_at_once).map(|(name, kind)| entry(name, *kind)).collect();
            let listing = RemoteDirListing { entries, is_truncated: left.len() > names_at_once };
            deletion.enter(step, listing, &mut next_node);
        } else if let DeletionStepKind::Check(id) = step.kind
            && !stuck.contains(&at.as_str())
        {
            deletion.release(id);
        } else if stuck.contains(&at.as_str()) {
            deletion.record_failure(&step.path, SftpError::NotAllowed);
            deletion.finish(&step, false);
        } else {
            gone.push(at);
            deletion.finish(&step, true);
        }
    }
    assert!(deletion.nodes.is_empty(), "every folder is settled");
    (gone, deletion.failures.map_or(0, |failures| failures.count))
}

use RemoteFileKind::{File, Folder, Link, Other};

#[test]
fn folders_go_after_what_is_in_them_and_links_are_not_entered() {
    let tree: &[(&str, &[_])] = &[
        ("/t", &[("a", File), ("sub", Folder), ("link", Link), ("pipe", Other)]),
        ("/t/sub", &[("b", File), ("empty", Folder)]),
        ("/t/sub/empty", &[]),
    ];
    let (gone, failures) = carry_out(tree, &[], 100);
    assert_eq!((gone.len(), failures), (7, 0), "{gone:?}");
    let at = |path: &str| gone.iter().position(|one| one == path).unwrap();
    assert!(at("/t/sub/empty") < at("/t/sub") && at("/t/sub/b") < at("/t/sub") && at("/t/sub") < at("/t"));
    assert_eq!(at("/t"), 6);
    assert!(gone.contains(&"/t/link".to_owned()), "the link itself goes");
}

#[test]
fn large_folders_are_read_in_parts() {
    let tree: &[(&str, &[_])] = &[("/t", &[("a", File), ("b", File), ("c", File), ("d", File), ("e", File)])];
    let (gone, failures) = carry_out(tree, &[], 2);
    assert_eq!((gone.len(), gone.last().unwrap().as_str(), failures), (6, "/t", 0));
}

#[test]
fn folder_is_checked_between_its_files() {
    let names: Vec<String> = (0..=FILES_PER_CHECK * 2).map(|number| number.to_string()).collect();
    let files: Vec<(&str, RemoteFileKind)> = names.iter().map(|name| (name.as_str(), File)).collect();
    let tree: &[(&str, &[_])] = &[("/t", &[("sub", Folder)]), ("/t/sub", &files)];
    assert_eq!(carry_out(tree, &[], 1000).0.len(), files.len() + 2);
    // It was replaced by something else after it was read.
    let (gone, failures) = carry_out(tree, &["/t/sub"], 1000);
    assert_eq!((gone.len(), failures), (FILES_PER_CHECK, 1));
}

#[test]
fn what_cannot_go_keeps_its_folders_and_nothing_else() {
    let tree: &[(&str, &[_])] = &[("/t", &[("a", File), ("sub", Folder)]), ("/t/sub", &[("kept", File), ("b", File)])];
    let (gone, failures) = carry_out(tree, &["/t/sub/kept"], 100);
    assert_eq!(failures, 1);
    let mut gone = gone;
    gone.sort();
    assert_eq!(gone, ["/t/a", "/t/sub/b"]);
    // A folder that is read in parts isn't read for ever.
    assert_eq!(carry_out(tree, &["/t/sub/kept"], 1).1, 1);
}

#[test]
fn items_are_called_by_the_names_that_people_know() {
    let progress = TransferProgress::unseen();
    let shown = HashMap::from([(path("/real/.portolan-1-delete-0.part"), path("/link/big"))]);
    let deletion = Deletion::new(&progress, shown);
    assert_eq!(deletion.show(&path("/real/.portolan-1-delete-0.part")), "/link/big");
    assert_eq!(deletion.show(&path("/real/.portolan-1-delete-0.part/a/b")), "/link/big/a/b");
    assert_eq!(deletion.show(&path("/real/other")), "/real/other");
}
