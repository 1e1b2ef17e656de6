//! What transfers leave on the cluster under hidden names goes, even if their owner isn't connected at that moment.

use portolan::domain::{PersonId, RemoteName, TransferId};
use portolan::store;
use portolan::store::transfers::{NewTransfer, TransferKind, TransferState};

use crate::files_transfers::transfers;
use crate::folders::{Folder, with_alice};
use crate::support::TestApp;
use crate::support::cluster::remote_path;
use crate::support::wait::wait_for_value;

/// A folder with a half-written copy.
fn half_copy() -> Folder {
    Folder::new("alice", "echo all >large; printf al >.portolan-1-5e7-large.part")
}

/// A copy that was left half-way: failed, or paused.
async fn add_half_copy(portal: &TestApp, folder: &Folder, state: TransferState) -> TransferId {
    let new = NewTransfer {
        person: PersonId(portal.person_id("alice").await),
        kind: TransferKind::Copy,
        cluster: portal.cluster_id("key").await,
        folder: remote_path(&folder.path),
        names: vec![RemoteName::parse(b"large").unwrap()],
        url: String::new(),
        target: Some((portal.cluster_id("key").await, remote_path(&folder.path))),
    };
    let now = portal.app.clock.now();
    let mut tx = portal.app.store.write().await.unwrap();
    let id = store::transfers::add(&mut tx, &new, "5e7", now).await.unwrap();
    let part = format!("{}/.portolan-1-5e7-large.part", folder.path);
    let checkpoint = serde_json::json!({"partial": {"path": part, "offset": 2, "source": "large"}});
    store::transfers::set_checkpoint(&mut tx, id, &checkpoint.to_string()).await.unwrap();
    if state == TransferState::Failed {
        assert!(store::transfers::finish(&mut tx, id, state, "The disk is full.", now).await.unwrap());
    } else {
        assert!(store::transfers::pause(&mut tx, new.person, id).await.unwrap());
    }
    store::commit(tx).await.unwrap();
    id
}

async fn wait_until_removed(portal: &TestApp, folder: &Folder) {
    let line = portal.connection("alice", "key").await;
    let path = remote_path(&folder.path);
    let look = async || portolan::ssh::sftp::list(&line, &path, 10).await.unwrap().entries.len();
    wait_for_value("the half copy is removed", look, |left| *left == 1).await;
}

async fn is_stored(portal: &TestApp, id: TransferId) -> bool {
    let mut db = portal.app.store.read().await.unwrap();
    store::transfers::get(&mut db, id).await.unwrap().is_some()
}

#[tokio::test]
async fn dismissing_a_failed_transfer_removes_what_it_left() {
    let (portal, _, alice) = with_alice().await;
    let folder = half_copy();
    let id = add_half_copy(&portal, &folder, TransferState::Failed).await;
    alice.post(&format!("/transfers/{id}/dismiss"), &[]).await;
    assert!(transfers(&portal).await.is_empty());
    wait_until_removed(&portal, &folder).await;
    wait_for_value("the row goes", async || is_stored(&portal, id).await, |is_there| !is_there).await;
    folder.tell(&format!("test \"$(ls -A {})\" = large", folder.path));
}

#[tokio::test]
async fn what_cannot_be_removed_now_is_removed_with_the_next_connection() {
    for state in [TransferState::Failed, TransferState::Paused] {
        let (portal, _, alice) = with_alice().await;
        let folder = half_copy();
        let id = add_half_copy(&portal, &folder, state).await;
        alice.post("/clusters/key/disconnect", &[]).await;
        if state == TransferState::Failed {
            alice.post(&format!("/transfers/{id}/dismiss"), &[]).await;
            assert!(transfers(&portal).await.is_empty() && is_stored(&portal, id).await);
            assert_eq!(alice.post(&format!("/transfers/{id}/resume"), &[]).await.status, 404);
        } else {
            alice.post(&format!("/transfers/{id}/cancel"), &[]).await;
            let row = alice.get("/transfers").await.select_text(".transfer-row");
            assert!(row.contains("Cancelled") && row.contains("removed when you connect"), "{row}");
        }
        folder.tell(&format!("test -f {}/.portolan-1-5e7-large.part", folder.path));
        alice.connect("key").await;
        wait_until_removed(&portal, &folder).await;
    }
}

#[tokio::test]
async fn old_failed_transfers_leave_nothing_behind() {
    let (portal, _, _alice) = with_alice().await;
    let folder = half_copy();
    let id = add_half_copy(&portal, &folder, TransferState::Failed).await;
    let mut tx = portal.app.store.write().await.unwrap();
    let before = portal.app.clock.now().plus(1);
    assert_eq!(store::transfers::sweep(&mut tx, before).await.unwrap(), 0, "not before it is cleaned up");
    store::commit(tx).await.unwrap();
    wait_until_removed(&portal, &folder).await;
    wait_for_value("the row goes", async || is_stored(&portal, id).await, |is_there| !is_there).await;
}
