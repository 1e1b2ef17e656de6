//! Background work on files of the real cluster: deletions and copies that survive whatever happens meanwhile.

use portolan::domain::{PersonId, RemoteName, TransferId};
use portolan::store;
use portolan::store::transfers::{NewTransfer, Transfer, TransferKind, TransferState};
use reqwest::Method;

use crate::folders::{Folder, with_alice};
use crate::support::client::send;
use crate::support::cluster::remote_path;
use crate::support::wait::wait_for_value;
use crate::support::{Client, TestApp};

pub async fn transfers(portal: &TestApp) -> Vec<Transfer> {
    let alice = PersonId(portal.person_id("alice").await);
    let mut db = portal.app.store.read().await.unwrap();
    store::transfers::list(&mut db, alice, 100).await.unwrap()
}

/// Waits until the only transfer is in one of these states.
pub async fn wait_for_state(portal: &TestApp, states: &[TransferState]) -> Transfer {
    let is_there = |all: &Vec<Transfer>| matches!(all.as_slice(), [one] if states.contains(&one.state));
    wait_for_value(&format!("{states:?}"), async || transfers(portal).await, is_there).await.remove(0)
}

/// Sends the form of a folder page with these rows ticked.
pub async fn post_selection(who: &Client, to: &str, folder: &str, names: &[&str], more: &[(&str, &str)]) -> String {
    let mut form = vec![("path", folder)];
    form.extend(names.iter().map(|name| ("name", *name)));
    form.extend(more);
    let answer = who.post(to, &form).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    answer.location().to_owned()
}

async fn confirm_delete(who: &Client, folder: &str, names: &[&str]) -> String {
    post_selection(who, "/files/key/delete", folder, names, &[("step", "confirm")]).await
}

#[tokio::test]
async fn deletion_counts_first_then_goes_and_never_follows_links() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "mkdir -p kept big/a/b 'big/it'\"'\"'s $(id)'; touch kept/precious; ln -s ../kept big/link
         (cd big/a && seq 3000 | xargs touch); touch big/a/b/x $'big/bad\\xff\\nname' -- big/-rf; mkfifo big/pipe",
    );
    let question = alice.post("/files/key/delete", &[("path", folder.path.as_str()), ("name", "big")]).await;
    assert_eq!(question.status, 200);
    assert!(question.text().contains("Delete big?") && question.text().contains("hx-post"), "{}", question.text());
    assert!(transfers(&portal).await.is_empty(), "asking changes nothing");
    let form = [("path", folder.path.as_str()), ("name", "big"), ("step", "count")];
    let count = alice.post("/files/key/delete", &form).await;
    assert!(count.text().contains("3,009 items, including 4 folders"), "{}", count.select_text("main"));

    let back = confirm_delete(&alice, &folder.path, &["big"]).await;
    assert!(back.starts_with("/files/key?path="), "{back}");
    let note = alice.get(&back).await.select_text("#folder-transfers");
    assert!(["Deleting big", "Deleted big"].iter().any(|words| note.contains(words)), "{note}");
    let done = wait_for_state(&portal, &[TransferState::Done, TransferState::Failed]).await;
    assert_eq!((done.state, done.message.as_str()), (TransferState::Done, ""));
    assert_eq!((done.files_done, done.files_total), (3009, 3009));
    folder.tell(&format!("cd {} && test ! -e big && test -f kept/precious", folder.path));
    // Open pages ask for the number again when it changes.
    let look = async || alice.get("/transfers/nav").await.text().to_owned();
    let nav = wait_for_value("none is open", look, |nav: &String| !nav.contains("nav-count")).await;
    assert!(
        nav.contains("hx-get=\"/transfers/nav\"") && !nav.contains("<a "),
        "it comes back with the next one: {nav}"
    );
    let page = alice.get("/transfers").await;
    assert!(page.select_text(".transfer-row").contains("Delete big"), "{}", page.select_text("main"));
    let told = alice.get("/notifications").await;
    assert!(!told.text().contains("Deleted big"), "so short a one is told on its page only");
}

#[tokio::test]
async fn single_file_link_or_empty_folder_goes_at_once() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "touch $'bad\\xff\\nname'; mkdir empty full; touch full/x; ln -s full link");
    for name in ["bad%FF%0Aname", "empty", "link"] {
        let back = confirm_delete(&alice, &folder.path, &[name]).await;
        assert!(back.starts_with("/files/key?path="), "{back}");
    }
    assert!(transfers(&portal).await.is_empty());
    folder.tell(&format!("cd {} && test \"$(ls -A)\" = full && test -f full/x", folder.path));
    let missing = [("path", folder.path.as_str()), ("name", "missing"), ("step", "confirm")];
    let answer = alice.post("/files/key/delete", &missing).await;
    assert_eq!(answer.status, 422);
    assert!(answer.select_text("main").contains("doesn't exist"), "{}", answer.select_text("main"));
}

#[tokio::test]
async fn places_are_not_deleted_and_names_stay_in_their_folder() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "ln -s /scratch to-scratch");
    let through_link = format!("{}/to-scratch", folder.path);
    for (path, name) in
        [("/home", "alice"), ("/", "home"), ("/", "scratch"), ("/scratch", "alice"), (through_link.as_str(), "alice")]
    {
        let answer = alice.post("/files/key/delete", &[("path", path), ("name", name), ("step", "confirm")]).await;
        assert_eq!(answer.status, 422, "{path}/{name}");
        assert!(answer.text().contains("as a whole"), "{}", answer.select_text("main"));
    }
    for name in ["..", ".", "a/b", "%2E%2E/x", ""] {
        let form = [("path", folder.path.as_str()), ("name", name), ("step", "confirm")];
        assert_eq!(alice.post("/files/key/delete", &form).await.status, 400, "{name}");
    }
    let none = alice.post("/files/key/delete", &[("path", folder.path.as_str()), ("step", "confirm")]).await;
    assert!(none.status == 422 && none.text().contains("Nothing is selected"));
    assert!(transfers(&portal).await.is_empty());
}

#[tokio::test]
async fn what_cannot_be_deleted_is_named_and_the_rest_goes() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir -p top/shut top/open; touch top/shut/kept top/open/x; chmod 555 top/shut");
    confirm_delete(&alice, &folder.path, &["top"]).await;
    let failed = wait_for_state(&portal, &[TransferState::Done, TransferState::Failed]).await;
    assert_eq!(failed.state, TransferState::Failed);
    assert!(failed.message.contains("top/shut/kept") && failed.message.contains("permission"), "{}", failed.message);
    folder.tell(&format!("cd {} && test -f top/shut/kept && test ! -e top/open && chmod 755 top/shut", folder.path));
    alice.post("/transfers/clear", &[]).await;
    assert_eq!(transfers(&portal).await.len(), 1, "what failed stays in the list");
    alice.post(&format!("/transfers/{}/resume", failed.id), &[]).await;
    wait_for_state(&portal, &[TransferState::Done]).await;
    folder.tell(&format!("test ! -e {}/top", folder.path));
}

#[tokio::test]
async fn cancelled_deletion_says_what_is_gone() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "mkdir big; cd big; for folder in $(seq 100); do mkdir $folder; (cd $folder; seq 500 | xargs touch); done",
    );
    confirm_delete(&alice, &folder.path, &["big"]).await;
    let person = PersonId(portal.person_id("alice").await);
    let begun = wait_for_value(
        "some are gone",
        async || portal.app.transfers.list(person).await.unwrap().remove(0),
        |(row, progress)| progress.files_done > 0 || row.state.is_over(),
    )
    .await;
    assert!(!begun.0.state.is_over(), "50,000 files take longer than that");
    alice.post(&format!("/transfers/{}/cancel", begun.0.id), &[]).await;
    // The last count is saved a moment after the answer.
    let look = async || {
        let row = transfers(&portal).await.remove(0);
        assert_eq!(row.state, TransferState::Cancelled);
        let gone = portolan::format::number(u64::try_from(row.files_done).unwrap());
        (gone, alice.get("/transfers").await.select_text(".transfer-row"))
    };
    let holds = |(gone, row): &(String, String)| row.contains("Cancelled") && row.contains(&format!("{gone} of"));
    let (_, row) = wait_for_value("the row says what is gone", look, holds).await;
    wait_for_value("it says what is left", look, |(_, row)| row.contains("has its old name again")).await;
    folder.tell(&format!("cd {} && test \"$(ls -A)\" = big", folder.path));
    assert!(!row.contains(".portolan-"), "{row}");
}

#[tokio::test]
async fn paused_transfer_waits_and_others_see_nothing_of_it() {
    let (portal, admin, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir big; cd big; seq 4000 | xargs touch");
    let bob = portal.member(&admin, "bob").await;
    // Not started by the page, so that nothing happens before it is paused.
    let id = {
        let new = NewTransfer {
            person: PersonId(portal.person_id("alice").await),
            kind: TransferKind::Delete,
            cluster: portal.cluster_id("key").await,
            folder: remote_path(&folder.path),
            names: vec![RemoteName::parse(b"big").unwrap()],
            url: String::new(),
            target: None,
        };
        let mut tx = portal.app.store.write().await.unwrap();
        let id = store::transfers::add(&mut tx, &new, "0f", portal.app.clock.now()).await.unwrap();
        assert!(store::transfers::pause(&mut tx, new.person, id).await.unwrap());
        store::commit(tx).await.unwrap();
        id
    };
    for action in ["pause", "resume", "cancel", "dismiss"] {
        assert_eq!(bob.post(&format!("/transfers/{id}/{action}"), &[]).await.status, 404, "{action}");
        let missing = TransferId(id.0 + 1000);
        assert_eq!(alice.post(&format!("/transfers/{missing}/{action}"), &[]).await.status, 404, "{action}");
    }
    assert!(!bob.get("/transfers").await.text().contains("Delete big"));
    let row = alice.get("/transfers").await.select_text(".transfer-row");
    assert!(row.contains("Paused") && row.contains("Resume"), "{row}");
    let fragment = send(
        alice
            .request(Method::POST, &format!("/transfers/{id}/resume"))
            .header("hx-request", "true")
            .header("origin", &portal.url),
    )
    .await;
    assert_eq!(fragment.status, 200);
    assert!(fragment.text().starts_with("<div id=\"transfers\""), "{}", fragment.text());
    wait_for_state(&portal, &[TransferState::Done]).await;
    alice.post(&format!("/transfers/{id}/dismiss"), &[]).await;
    assert!(transfers(&portal).await.is_empty());
    assert!(alice.get("/transfers").await.text().contains("No transfers"));
}

#[tokio::test]
async fn finished_transfers_are_removed_from_the_list_together() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir a b; touch a/x b/x");
    for (name, finished) in [("a", 1), ("b", 2)] {
        confirm_delete(&alice, &folder.path, &[name]).await;
        let all_done =
            |all: &Vec<Transfer>| all.iter().filter(|one| one.state == TransferState::Done).count() == finished;
        wait_for_value("done", async || transfers(&portal).await, all_done).await;
    }
    assert!(alice.get("/transfers").await.text().contains("action=\"/transfers/clear\""));
    assert_eq!(alice.post("/transfers/clear", &[]).await.status, 303);
    assert!(transfers(&portal).await.is_empty());
}

#[tokio::test]
async fn ended_transfers_are_kept_for_a_month() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir a b; touch a/x b/x");
    confirm_delete(&alice, &folder.path, &["a", "b"]).await;
    let done = wait_for_state(&portal, &[TransferState::Done]).await;
    let ended = done.ended_at.unwrap();
    let sweep = async |days: i64| {
        let before = ended.plus(days * 86_400 - 30 * 86_400);
        let mut tx = portal.app.store.write().await.unwrap();
        let gone = store::transfers::sweep(&mut tx, before).await.unwrap();
        store::commit(tx).await.unwrap();
        gone
    };
    assert_eq!((sweep(29).await, sweep(31).await), (0, 1));
    assert!(alice.get("/transfers").await.text().contains("No transfers"));
}
