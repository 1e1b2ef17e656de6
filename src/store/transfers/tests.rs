use super::*;
use crate::domain::{DisplayName, HostName};
use crate::store::clusters::ClusterSettings;
use crate::store::{self, Store};

#[tokio::test]
async fn states_follow_each_other_and_only_their_owner_changes_them() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("p.db")).await.unwrap();
    let mut tx = store.write().await.unwrap();
    let title: DisplayName = "Own".parse().unwrap();
    let host: HostName = "login.example.org".parse().unwrap();
    let alice = store::people::add(&mut tx, &"alice".parse().unwrap(), &title, false, UnixTime(1)).await.unwrap();
    let bob = store::people::add(&mut tx, &"bob".parse().unwrap(), &title, false, UnixTime(1)).await.unwrap();
    let what = ClusterSettings { title: &title, host: &host, port: 22, site: "" };
    let cluster = store::clusters::add(&mut tx, &"own".parse().unwrap(), &what, UnixTime(1)).await.unwrap();
    let names = [&b"b\xff\n"[..], b"-rf"].map(|name| RemoteName::parse(name).unwrap());
    let folder = RemotePath::parse(b"/scratch/\xfe").unwrap();
    let new = NewTransfer {
        person: alice,
        kind: TransferKind::Copy,
        cluster,
        folder: folder.clone(),
        names: names.to_vec(),
        url: String::new(),
        target: Some((cluster, RemotePath::parse(b"/to").unwrap())),
    };
    let id = add(&mut tx, &new, "a1", UnixTime(2)).await.unwrap();
    let row = get(&mut tx, id).await.unwrap().unwrap();
    assert_eq!((row.folder(), row.names(), row.kind()), (folder, names.to_vec(), Some(TransferKind::Copy)));
    assert_eq!((row.target_cluster_id, row.target_cluster()), (None, cluster), "the same cluster");
    assert_eq!(row.token, "a1");

    for stranger in [pause(&mut tx, bob, id).await, cancel(&mut tx, bob, id, UnixTime(3)).await] {
        assert!(!stranger.unwrap());
    }
    assert!(!resume(&mut tx, alice, id).await.unwrap(), "it waits already");
    assert!(mark_running(&mut tx, id, UnixTime(3)).await.unwrap());
    assert!(mark_running(&mut tx, id, UnixTime(4)).await.unwrap(), "a restart takes it up again");
    assert!(!dismiss(&mut tx, alice, id).await.unwrap(), "it isn't over");
    assert!(pause(&mut tx, alice, id).await.unwrap());
    assert!(!mark_running(&mut tx, id, UnixTime(5)).await.unwrap(), "paused");
    assert_eq!(list_due(&mut tx).await.unwrap(), []);
    assert!(resume(&mut tx, alice, id).await.unwrap());
    assert_eq!(list_due(&mut tx).await.unwrap().len(), 1);
    assert!(finish(&mut tx, id, TransferState::Failed, "Why.", UnixTime(6)).await.unwrap());
    assert!(!cancel(&mut tx, alice, id, UnixTime(7)).await.unwrap(), "over");
    assert!(resume(&mut tx, alice, id).await.unwrap(), "tried again");
    let row = get(&mut tx, id).await.unwrap().unwrap();
    assert_eq!((row.state, row.message.as_str(), row.ended_at), (TransferState::Queued, "", None));
    assert_eq!(cancel_for_cluster(&mut tx, bob, cluster, UnixTime(8)).await.unwrap(), 0);
    assert!(cancel(&mut tx, alice, id, UnixTime(8)).await.unwrap());
    assert_eq!(cancel_for_cluster(&mut tx, alice, cluster, UnixTime(8)).await.unwrap(), 0, "over");
    let other = add(&mut tx, &new, "a2", UnixTime(8)).await.unwrap();
    assert_eq!(cancel_for_cluster(&mut tx, alice, cluster, UnixTime(8)).await.unwrap(), 1);
    assert!(!resume(&mut tx, alice, other).await.unwrap(), "cancelled");
    assert!(dismiss(&mut tx, alice, other).await.unwrap());
    finish_clean_up(&mut tx, other, "").await.unwrap();
    assert!(!finish(&mut tx, id, TransferState::Done, "", UnixTime(9)).await.unwrap(), "cancelled");
    assert_eq!((count_open_of(&mut tx, alice).await.unwrap(), count_open(&mut tx).await.unwrap()), (0, vec![]));
    // Until nothing is left on the cluster, it stays, but nobody sees it.
    assert_eq!((sweep(&mut tx, UnixTime(8)).await.unwrap(), list(&mut tx, alice, 9).await.unwrap().len()), (0, 1));
    assert_eq!((sweep(&mut tx, UnixTime(9)).await.unwrap(), list(&mut tx, alice, 9).await.unwrap().len()), (0, 0));
    assert!(!resume(&mut tx, alice, id).await.unwrap() && dismiss(&mut tx, alice, id).await.unwrap());
    assert_eq!(list_to_clean_up(&mut tx).await.unwrap().len(), 1);
    finish_clean_up(&mut tx, id, "").await.unwrap();
    assert_eq!(get(&mut tx, id).await.unwrap(), None);
}

#[tokio::test]
async fn what_failed_is_cleaned_up_once_nobody_can_resume_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("p.db")).await.unwrap();
    let mut tx = store.write().await.unwrap();
    let title: DisplayName = "Own".parse().unwrap();
    let host: HostName = "login.example.org".parse().unwrap();
    let alice = store::people::add(&mut tx, &"alice".parse().unwrap(), &title, false, UnixTime(1)).await.unwrap();
    let what = ClusterSettings { title: &title, host: &host, port: 22, site: "" };
    let cluster = store::clusters::add(&mut tx, &"own".parse().unwrap(), &what, UnixTime(1)).await.unwrap();
    let new = NewTransfer {
        person: alice,
        kind: TransferKind::Copy,
        cluster,
        folder: RemotePath::root(),
        names: Vec::new(),
        url: String::new(),
        target: None,
    };
    let mut ids = Vec::new();
    for checkpoint in ["", "{}", "{}"] {
        let id = add(&mut tx, &new, "", UnixTime(2)).await.unwrap();
        set_checkpoint(&mut tx, id, checkpoint).await.unwrap();
        assert!(finish(&mut tx, id, TransferState::Failed, "Why.", UnixTime(3)).await.unwrap());
        ids.push(id);
    }
    assert_eq!(list_to_clean_up(&mut tx).await.unwrap(), [], "they can be resumed");
    for id in &ids[..2] {
        assert!(dismiss(&mut tx, alice, *id).await.unwrap());
    }
    let is_there = async |tx: &mut DbConnection, id| get(tx, id).await.unwrap().is_some();
    assert!(!is_there(&mut tx, ids[0]).await && is_there(&mut tx, ids[1]).await, "it never began");
    assert_eq!(sweep(&mut tx, UnixTime(4)).await.unwrap(), 0);
    let due: Vec<TransferId> = list_to_clean_up(&mut tx).await.unwrap().iter().map(|open| open.id).collect();
    assert_eq!(due, ids[1..]);
    assert_eq!(list(&mut tx, alice, 9).await.unwrap(), []);
    assert_eq!(sweep(&mut tx, UnixTime(4).plus(MAX_CLEAN_UP_WAIT_SECS)).await.unwrap(), 2, "not for ever");
}
