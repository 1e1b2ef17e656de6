//! Work in folders that others can write to: whatever they put in the place of a file or folder that is being worked on,
//! nothing outside is touched.

use portolan::domain::PersonId;
use portolan::domain::RemoteName;
use portolan::files::sharing::{AccessScope, FileAccess, set_access};
use portolan::ssh::sftp::SftpError;
use portolan::ssh::sftp::transfer::TransferSession;
use portolan::store::transfers::{Transfer, TransferState};

use crate::files_transfers::{post_selection, transfers};
use crate::folders::{Folder, with_alice};
use crate::support::TestApp;
use crate::support::cluster::remote_path;
use crate::support::wait::wait_for_value;

/// Waits until a transfer has done something, and isn't over.
async fn wait_until_begun(portal: &TestApp) {
    let person = PersonId(portal.person_id("alice").await);
    let look = async || portal.app.transfers.list(person).await.unwrap().remove(0);
    let (row, _) = wait_for_value("it has begun", look, |(row, now)| {
        now.files_done > 0 || now.bytes_done > 0 || row.state.is_over()
    })
    .await;
    assert!(!row.state.is_over(), "it is too fast for this test: {row:?}");
}

async fn wait_until_over(portal: &TestApp) -> Transfer {
    let is_over = |all: &Vec<Transfer>| matches!(all.as_slice(), [one] if one.state.is_over());
    wait_for_value("over", async || transfers(portal).await, is_over).await.remove(0)
}

#[tokio::test]
async fn deletion_does_not_enter_links_that_replace_folders() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "mkdir home moved big; touch home/precious
         cd big; for folder in $(seq 100); do mkdir $folder; (cd $folder; seq 500 | xargs touch); done",
    );
    post_selection(&alice, "/files/key/delete", &folder.path, &["big"], &[("step", "confirm")]).await;
    wait_until_begun(&portal).await;
    folder.tell(&format!(
        "cd {0}/.portolan-*-delete-0.part || cd {0}/big
         for folder in *; do mv $folder {0}/moved/ && ln -s {0}/home $folder; done 2>/dev/null
         true",
        folder.path
    ));
    wait_until_over(&portal).await;
    folder.tell(&format!("test -f {}/home/precious", folder.path));
}

#[tokio::test]
async fn copy_changes_nothing_that_takes_the_place_of_its_file() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "mkdir to; head -c 500000000 /dev/zero >large; chmod 644 large; echo precious >thesis; chmod 600 thesis",
    );
    let to = format!("{}/to", folder.path);
    let more = [("cluster", "key"), ("target", to.as_str()), ("step", "confirm")];
    post_selection(&alice, "/files/key/copy", &folder.path, &["large"], &more).await;
    wait_until_begun(&portal).await;
    folder.tell(&format!("cd {to} && for part in .portolan-*; do mv $part ../moved && ln -s ../thesis $part; done"));
    let failed = wait_until_over(&portal).await;
    assert!(
        failed.state == TransferState::Failed && failed.message.contains("replaced by something else"),
        "{failed:?}"
    );
    folder.tell(&format!(
        "cd {} && test \"$(cat thesis)\" = precious && test \"$(stat -c %a thesis)\" = 600 && test ! -e to/large",
        folder.path
    ));
}

#[tokio::test]
async fn extraction_stops_when_its_folder_is_replaced() {
    let (portal, _, alice) = with_alice().await;
    let folder =
        Folder::new("alice", "mkdir home many; (cd many; seq 30000 | xargs touch); tar -cf many.tar many; rm -r many");
    post_selection(&alice, "/files/key/extract", &folder.path, &["many.tar"], &[("step", "confirm")]).await;
    wait_until_begun(&portal).await;
    folder.tell(&format!("cd {} && for part in .portolan-*; do mv $part moved && ln -s home $part; done", folder.path));
    let failed = wait_until_over(&portal).await;
    // Depending on the moment, something else was in its place, or the folder was missing.
    assert_eq!(failed.state, TransferState::Failed, "{failed:?}");
    // Files whose writing had begun at this moment may arrive there; no others.
    folder.tell(&format!("cd {} && test $(ls -A home | wc -l) -le 32", folder.path));
}

#[tokio::test]
async fn links_on_the_way_to_a_file_are_noticed() {
    let (portal, _, _alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir a; touch a/x; chmod 644 a/x; ln -s a link; ln -s x a/y");
    let line = portal.connection("alice", "key").await;
    let session = TransferSession::open(&line).await.unwrap();
    let root = session.real_path(&remote_path(&folder.path)).await.unwrap();
    let look = async |inside: &str| session.lstat_in_place(&remote_path(&format!("{root}/{inside}"))).await;
    assert!(look("a").await.is_ok() && look("a/x").await.is_ok());
    for linked in ["link", "link/x", "a/y"] {
        assert_eq!(look(linked).await.unwrap_err(), SftpError::Replaced, "{linked}");
    }
    assert_eq!(look("missing").await.unwrap_err(), SftpError::NotFound);
    // A folder that is reached by a link is no reason to refuse: only what changes meanwhile is.
    let by_link = remote_path(&format!("{}/link", folder.path));
    let names = [RemoteName::parse(b"x").unwrap()];
    let changed = set_access(&line, &by_link, &names, FileAccess::OnlyYou, AccessScope::Itself).await.unwrap();
    assert_eq!((changed.changed, changed.failed), (1, 0), "{changed:?}");
}

#[tokio::test]
async fn hidden_files_of_another_portal_stay() {
    let (portal, _, alice) = with_alice().await;
    // Another portal's first transfers have the same numbers.
    let folder = Folder::new(
        "alice",
        "mkdir to; head -c 1000000 /dev/zero >large; touch x; tar -cf one.tar x
         echo theirs >to/.portolan-1-large.part; mkdir .portolan-2-extract-1.part; touch .portolan-2-extract-1.part/theirs",
    );
    let to = format!("{}/to", folder.path);
    let more = [("cluster", "key"), ("target", to.as_str()), ("step", "confirm")];
    post_selection(&alice, "/files/key/copy", &folder.path, &["large"], &more).await;
    let done = wait_until_over(&portal).await;
    assert_eq!((done.id.0, done.state), (1, TransferState::Done), "{done:?}");
    alice.post(&format!("/transfers/{}/dismiss", done.id), &[]).await;
    post_selection(&alice, "/files/key/extract", &folder.path, &["one.tar"], &[("step", "confirm")]).await;
    let done = wait_until_over(&portal).await;
    assert_eq!((done.id.0, done.state), (2, TransferState::Done), "{done:?}");
    folder.tell(&format!(
        "cd {} && test \"$(cat to/.portolan-1-large.part)\" = theirs && test -f .portolan-2-extract-1.part/theirs &&
         cmp large to/large && test -f one/x && test \"$(ls -A | wc -l)\" = 6",
        folder.path
    ));
}
