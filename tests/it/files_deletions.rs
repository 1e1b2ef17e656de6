//! Deletions that are interrupted: whatever happens meanwhile, nothing goes that its owner didn't choose.

use portolan::domain::{PersonId, RemoteName, TransferId};
use portolan::store;
use portolan::store::transfers::{NewTransfer, TransferKind, TransferState};

use crate::files_transfers::{post_selection, transfers, wait_for_state};
use crate::folders::{Folder, with_alice};
use crate::support::cluster::remote_path;
use crate::support::server::Server;
use crate::support::wait::wait_for_value;
use crate::support::{Client, TestApp};

/// Fills `big` with so much that its deletion can be interrupted.
const MANY_FILES: &str =
    "mkdir big; cd big; for folder in $(seq 100); do mkdir $folder; (cd $folder; seq 500 | xargs touch); done";

/// Starts deleting `big` and waits until some of it is gone.
async fn begin_deletion(portal: &TestApp, who: &Client, slug: &str, folder: &str) -> TransferId {
    post_selection(who, &format!("/files/{slug}/delete"), folder, &["big"], &[("step", "confirm")]).await;
    let person = PersonId(portal.person_id("alice").await);
    let look = async || portal.app.transfers.list(person).await.unwrap().remove(0);
    let (row, _) = wait_for_value("some are gone", look, |(row, now)| now.files_done > 0 || row.state.is_over()).await;
    assert!(!row.state.is_over(), "50,000 files take longer than that");
    row.id
}

/// A deletion whose checkpoint is that of an earlier run, which is due now.
async fn add_interrupted(portal: &TestApp, folder: &Folder, checkpoint: &str) -> TransferId {
    let new = NewTransfer {
        person: PersonId(portal.person_id("alice").await),
        kind: TransferKind::Delete,
        cluster: portal.cluster_id("key").await,
        folder: remote_path(&folder.path),
        names: ["a", "b"].map(|name| RemoteName::parse(name.as_bytes()).unwrap()).to_vec(),
        url: String::new(),
        target: None,
    };
    let mut tx = portal.app.store.write().await.unwrap();
    let id = store::transfers::add(&mut tx, &new, "5e7", portal.app.clock.now()).await.unwrap();
    store::transfers::set_checkpoint(&mut tx, id, checkpoint).await.unwrap();
    store::commit(tx).await.unwrap();
    id
}

#[tokio::test]
async fn interrupted_deletion_leaves_what_gets_the_name_meanwhile() {
    let server = Server::start();
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_server("own", &server).await;
    alice.prepare_on(&server, "own", "alice").await;
    alice.connect("own").await;
    let folder = Folder::new("alice", MANY_FILES);
    begin_deletion(&portal, &alice, "own", &folder.path).await;
    server.drop_connections();
    let look = async || alice.get("/transfers").await.select_text(".transfer-row");
    wait_for_value("waits", look, |row| row.contains("Waiting for your connection")).await;
    // The next day, a job writes its results.
    folder.tell(&format!("cd {} && mkdir -p big && echo new >big/precious", folder.path));
    alice.connect("own").await;
    let done = wait_for_state(&portal, &[TransferState::Done, TransferState::Failed, TransferState::Paused]).await;
    assert_eq!(done.state, TransferState::Done, "{done:?}");
    folder.tell(&format!(
        "cd {} && test \"$(cat big/precious)\" = new && test \"$(ls -A . big | xargs)\" = '.: big big: precious'",
        folder.path
    ));
}

#[tokio::test]
async fn restarted_deletion_goes_on() {
    let (mut portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", MANY_FILES);
    begin_deletion(&portal, &alice, "key", &folder.path).await;
    portal.restart().await;
    alice.wait_until_connected("key").await;
    wait_for_state(&portal, &[TransferState::Done]).await;
    folder.tell(&format!("test -z \"$(ls -A {})\"", folder.path));
}

#[tokio::test]
async fn what_may_have_been_replaced_is_asked_about() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir a b; touch a/x b/x");
    // The portal was killed before anything was renamed.
    let id = add_interrupted(&portal, &folder, r#"{"stage": "hiding"}"#).await;
    let paused = wait_for_state(&portal, &[TransferState::Done, TransferState::Paused]).await;
    assert_eq!(paused.state, TransferState::Paused, "{paused:?}");
    let row = alice.get("/transfers").await.select_text(".transfer-row");
    assert!(row.contains("a and 1 more item may have been replaced") && row.contains("Resume"), "{row}");
    assert!(alice.get("/notifications").await.text().contains("may have been replaced"));
    folder.tell(&format!("cd {} && test -f a/x && test -f b/x", folder.path));
    alice.post(&format!("/transfers/{id}/resume"), &[]).await;
    wait_for_state(&portal, &[TransferState::Done]).await;
    folder.tell(&format!("test -z \"$(ls -A {})\"", folder.path));
}

#[tokio::test]
async fn deletion_goes_on_with_hidden_items_alone() {
    let (portal, _, _alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir a b; touch a/x b/x");
    let mark = format!("cd {}", folder.path);
    // The number of the next transfer is part of the hidden name: it is the first.
    folder.tell(&format!("{mark} && mv a .portolan-1-5e7-delete-0.part && mkdir a && echo new >a/x"));
    let id = add_interrupted(&portal, &folder, r#"{"stage": "hidden"}"#).await;
    assert_eq!(id, TransferId(1));
    wait_for_state(&portal, &[TransferState::Done]).await;
    folder.tell(&format!("{mark} && test \"$(cat a/x)\" = new && test -f b/x && test \"$(ls -A | xargs)\" = 'a b'"));
}

#[tokio::test]
async fn what_is_left_of_a_cancelled_deletion_never_replaces_anything() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", MANY_FILES);
    let id = begin_deletion(&portal, &alice, "key", &folder.path).await;
    alice.post(&format!("/transfers/{id}/pause"), &[]).await;
    folder.tell(&format!("cd {} && mkdir -p big && echo new >big/precious", folder.path));
    alice.post(&format!("/transfers/{id}/cancel"), &[]).await;
    let look = async || transfers(&portal).await.remove(0).message;
    wait_for_value("it says where the rest is", look, |said| said.contains(".portolan-")).await;
    folder.tell(&format!("cd {} && test \"$(ls big)\" = precious && ls -A | grep -q ^.portolan-", folder.path));
}

/// Nobody would look for their files under such names.
#[tokio::test]
async fn owner_is_told_what_keeps_a_hidden_name() {
    let (mut portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", &format!("mkdir in; cd in; {MANY_FILES}"));
    let id = begin_deletion(&portal, &alice, "key", &format!("{}/in", folder.path)).await;
    alice.post(&format!("/transfers/{id}/pause"), &[]).await;
    folder.tell(&format!("cd {} && mv in away", folder.path));
    alice.post(&format!("/transfers/{id}/cancel"), &[]).await;
    let look = async || transfers(&portal).await.remove(0).message;
    wait_for_value("it says that", look, |said| said.contains("has a hidden name")).await;
    let told = alice.get("/notifications").await;
    assert!(told.text().contains("has a hidden name"), "{}", told.select_text("main"));
    // It is tried again, and the result is told even if it was removed from the list.
    alice.post(&format!("/transfers/{id}/dismiss"), &[]).await;
    assert!(transfers(&portal).await.is_empty());
    folder.tell(&format!("cd {} && mv away in && mkdir in/big", folder.path));
    portal.restart().await;
    alice.wait_until_connected("key").await;
    let look = async || alice.get("/notifications").await.select_text("main");
    wait_for_value("it is told", look, |told| told.contains("is now called")).await;
}

#[tokio::test]
async fn deletion_on_a_forgotten_cluster_leaves_names_as_they_were() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", MANY_FILES);
    begin_deletion(&portal, &alice, "key", &folder.path).await;
    assert_eq!(alice.post("/clusters/key/forget", &[]).await.status, 303);
    folder.tell(&format!("test \"$(ls -A {})\" = big", folder.path));
}

#[tokio::test]
async fn folder_that_cannot_be_renamed_is_emptied_under_its_own_name() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir -p shut/a; touch shut/a/x shut/a/y; chmod 555 shut");
    let inside = format!("{}/shut", folder.path);
    post_selection(&alice, "/files/key/delete", &inside, &["a"], &[("step", "confirm")]).await;
    let failed = wait_for_state(&portal, &[TransferState::Done, TransferState::Failed]).await;
    assert!(failed.state == TransferState::Failed && failed.message.contains("shut/a "), "{failed:?}");
    folder.tell(&format!("cd {inside} && test -z \"$(ls -A a)\" && test \"$(ls -A)\" = a && chmod 755 ."));
    alice.post(&format!("/transfers/{}/resume", failed.id), &[]).await;
    wait_for_state(&portal, &[TransferState::Done]).await;
    folder.tell(&format!("test -z \"$(ls -A {inside})\""));
}
