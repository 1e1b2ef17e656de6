//! Compressing and extracting on the real cluster: what comes out is what went in, and hostile archives leave nothing.

use portolan::domain::PersonId;
use portolan::store;
use portolan::store::transfers::{Transfer, TransferState};

use crate::folders::{Folder, with_alice};
use crate::support::wait::wait_for_value;
use crate::support::{Client, Page, TestApp};

async fn transfers(portal: &TestApp) -> Vec<Transfer> {
    let alice = PersonId(portal.person_id("alice").await);
    let mut db = portal.app.store.read().await.unwrap();
    store::transfers::list(&mut db, alice, 100).await.unwrap()
}

/// Waits until the only transfer is over, and removes it from the list.
async fn wait_until_over(portal: &TestApp, who: &Client) -> Transfer {
    let is_over = |all: &Vec<Transfer>| matches!(all.as_slice(), [one] if one.state.is_over());
    let over = wait_for_value("over", async || transfers(portal).await, is_over).await.remove(0);
    who.post(&format!("/transfers/{}/dismiss", over.id), &[]).await;
    over
}

/// Whether an answer leads to the folder that the result is in.
fn leads_back(answer: &Page, folder: &str) -> bool {
    let path = answer.location().strip_prefix("/files/key?path=").unwrap_or_default();
    answer.status == 303 && path.replace("%2F", "/") == folder
}

async fn compress(who: &Client, folder: &str, names: &[&str], archive: &str, format: &str) {
    let mut form = vec![("path", folder), ("archive", archive), ("format", format), ("step", "confirm")];
    form.extend(names.iter().map(|name| ("name", *name)));
    let answer = who.post("/files/key/compress", &form).await;
    assert!(leads_back(&answer, folder), "{} {}", answer.status, answer.select_text("main"));
}

async fn extract(who: &Client, folder: &str, name: &str) {
    let answer = who.post("/files/key/extract", &[("path", folder), ("name", name)]).await;
    assert!(leads_back(&answer, folder), "{} {}", answer.status, answer.select_text("main"));
}

/// Nothing with a hidden name of ours is left.
fn assert_tidy(folder: &Folder) {
    folder.tell(&format!("! find {} -name '.portolan-*' | grep .", folder.path));
}

#[tokio::test]
async fn folder_with_hostile_names_survives_both_ways() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "mkdir -p tree/sub/empty 'tree/it'\"'\"'s $(id)'; echo 1 >tree/a; echo secret >tree/key; chmod 600 tree/key
         head -c 3000000 /dev/urandom >tree/sub/large; : >tree/nothing; touch -d @1600000000 tree/a; chmod 755 tree/sub/large
         (cd tree/sub && for n in $(seq 300); do echo $n >small-$n; done)
         touch $'tree/bad\\xff\\nname' -- tree/-rf; echo 2 >$'tree/bad\\xff\\nname'
         touch tree/$(printf 'n%.0s' $(seq 255)); ln -s /etc/passwd tree/out; ln -s a tree/in",
    );
    let form = [("path", folder.path.as_str()), ("name", "tree")];
    let question = alice.post("/files/key/compress", &form).await;
    assert!(question.status == 200 && question.text().contains("Compress tree"), "{}", question.select_text("main"));
    assert_eq!(question.attribute("input[name=archive]", "value"), "tree");
    for format in ["tar.gz", "zip", "tar"] {
        compress(&alice, &folder.path, &["tree"], "packed", format).await;
        let done = wait_until_over(&portal, &alice).await;
        assert_eq!(done.state, TransferState::Done, "{format}: {}", done.message);
        assert!(done.message.starts_with(&format!("Saved as packed.{format} (")), "{}", done.message);
        if format == "zip" {
            assert!(done.message.contains("tree/out"), "a link that leads out isn't in it: {}", done.message);
        }
        extract(&alice, &folder.path, &format!("packed.{format}")).await;
        let done = wait_until_over(&portal, &alice).await;
        assert_eq!(done.state, TransferState::Done, "{format}: {}", done.message);
        assert!(done.message.starts_with("The files are in packed. Left out: "), "{}", done.message);
        assert!(done.files_done > 300 && done.bytes_done > 3_000_000, "{done:?}");
        folder.tell(&format!(
            "set -e
             cd {}
             rm -f packed/'NOT INCLUDED.txt'
             test ! -L packed/tree/out && test ! -L packed/tree/in
             diff -r --no-dereference tree packed/tree | grep -v '^Only in tree: \\(in\\|out\\)$' | (! grep .)
             test \"$(stat -c %a packed/tree/key packed/tree/sub/large | xargs)\" = '600 755'
             test \"$(stat -c %Y packed/tree/a)\" = 1600000000
             test \"$(stat -c %a packed.{format})\" = 600
             rm -r packed packed.{format}",
            folder.path
        ));
        assert_tidy(&folder);
    }
}

#[tokio::test]
async fn names_that_are_taken_get_a_number_and_other_programs_read_it() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir a data; echo 1 >a/x; echo old >data/kept; echo old >data.tar.gz");
    compress(&alice, &folder.path, &["a"], "data.tar.gz", "tar.gz").await;
    let done = wait_until_over(&portal, &alice).await;
    assert!(done.message.starts_with("Saved as data (2).tar.gz"), "{}", done.message);
    folder.tell(&format!(
        "cd {} && test \"$(cat data.tar.gz)\" = old && mv 'data (2).tar.gz' data.tar.gz && gzip -t data.tar.gz
         test \"$(tar -xzOf data.tar.gz a/x)\" = 1",
        folder.path
    ));
    extract(&alice, &folder.path, "data.tar.gz").await;
    let done = wait_until_over(&portal, &alice).await;
    assert_eq!(done.message, "The files are in data (2).");
    folder.tell(&format!("cd {} && test \"$(cat data/kept) $(cat 'data (2)/a/x')\" = 'old 1'", folder.path));
    // What Python and tar write.
    folder.tell(&format!(
        "cd {} && python3 -c \"
import zipfile
with zipfile.ZipFile('py.zip', 'w', zipfile.ZIP_DEFLATED) as z:
    z.writestr('deep/er/file.txt', 'x' * 500000)
\" && tar -cf gnu.tar -C a . && tar --format=posix -czf posix.tgz a",
        folder.path
    ));
    for (archive, file) in [("py.zip", "py/deep/er/file.txt"), ("gnu.tar", "gnu/x"), ("posix.tgz", "posix/a/x")] {
        extract(&alice, &folder.path, archive).await;
        let done = wait_until_over(&portal, &alice).await;
        assert_eq!(done.state, TransferState::Done, "{archive}: {}", done.message);
        folder.tell(&format!("test -s {}/{file}", folder.path));
    }
    assert_tidy(&folder);
    let page = alice.get(&format!("/files/key/view?path={}/py.zip", folder.path)).await;
    assert_eq!(page.attribute("form[action='/files/key/extract'] input[name=name]", "value"), "py.zip");
}

#[tokio::test]
async fn hostile_archives_leave_nothing() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "python3 -c \"
import io, struct, tarfile, zipfile
def write(name, entries):
    with zipfile.ZipFile(name, 'w', zipfile.ZIP_DEFLATED) as z:
        for entry, content in entries: z.writestr(entry, content)
write('slip.zip', [('good', '1'), ('../evil', 'x')])
write('absolute.zip', [('good', '1'), ('/tmp/evil', 'x')])
write('bomb.zip', [('good', '1'), ('bomb', b'0' * 5000000)])
data = bytearray(open('bomb.zip', 'rb').read())
at = data.rindex(b'PK\\\\x01\\\\x02')
data[at + 24:at + 28] = struct.pack('<I', 100)
open('bomb.zip', 'wb').write(data)
data[at + 24:at + 28] = struct.pack('<I', 4000000000)
open('huge.zip', 'wb').write(data)
write('cut.zip', [('a', 'x' * 1000)])
open('short.zip', 'wb').write(open('cut.zip', 'rb').read()[:-30])
data = bytearray(open('cut.zip', 'rb').read())
data[data.rindex(b'PK\\\\x01\\\\x02') + 8] |= 1
open('secret.zip', 'wb').write(data)
with tarfile.open('slip.tar.gz', 'w:gz') as t:
    for name in ['good', '../evil']:
        info = tarfile.TarInfo(name); info.size = 1
        t.addfile(info, io.BytesIO(b'x'))
\"; head -c 2000 /dev/urandom >noise.zip; echo text >notes.txt; mkdir folder",
    );
    for (archive, words) in [
        ("slip.zip", "leads out of the folder"),
        ("absolute.zip", "leads out of the folder"),
        ("slip.tar.gz", "leads out of the folder"),
        ("bomb.zip", "zip bomb"),
        ("huge.zip", "zip bomb"),
        ("short.zip", "is incomplete"),
        ("secret.zip", "password"),
        ("noise.zip", "can't extract this file"),
        ("missing.zip", "doesn't exist"),
    ] {
        extract(&alice, &folder.path, archive).await;
        let failed = wait_until_over(&portal, &alice).await;
        assert_eq!(failed.state, TransferState::Failed, "{archive}");
        assert!(failed.message.contains(words), "{archive}: {}", failed.message);
        assert_tidy(&folder);
    }
    folder
        .tell(&format!("cd {0} && test ! -e evil && test ! -e ../evil && test \"$(ls -d */)\" = folder/", folder.path));
    folder.tell("test ! -e /tmp/evil");
    let none = alice.post("/files/key/extract", &[("path", folder.path.as_str())]).await;
    assert!(none.status == 422 && none.text().contains("select one archive"), "{}", none.select_text("main"));
    for name in ["notes.txt", "folder"] {
        let page = alice.post("/files/key/extract", &[("path", folder.path.as_str()), ("name", name)]).await;
        let words = format!("“{name}” isn't an archive.");
        let said = page.select_text("main");
        assert!(page.status == 422 && said.contains(&words), "{said}");
    }
    let two = [("path", folder.path.as_str()), ("name", "a"), ("name", "b")];
    assert_eq!(alice.post("/files/key/extract", &two).await.status, 422);
    let form = [("path", folder.path.as_str()), ("name", "folder"), ("archive", "a/b"), ("step", "confirm")];
    let bad = alice.post("/files/key/compress", &form).await;
    assert!(bad.status == 422 && bad.text().contains("Leave out slashes"), "{}", bad.select_text("main"));
    assert!(transfers(&portal).await.is_empty());
}

#[tokio::test]
async fn cancelled_and_paused_archives_leave_nothing_twice() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "mkdir many; cd many; for folder in $(seq 60); do mkdir $folder; (cd $folder; seq 500 | xargs touch); done
         cd ..; tar -czf many.tar.gz many",
    );
    let person = PersonId(portal.person_id("alice").await);
    let wait_for_files = async || {
        let look = async || portal.app.transfers.list(person).await.unwrap().remove(0);
        let begun =
            wait_for_value("some are there", look, |(row, now)| now.files_done > 0 || row.state.is_over()).await;
        assert!(!begun.0.state.is_over(), "30,000 files take longer than that: {:?}", begun.0);
        begun.0.id
    };
    extract(&alice, &folder.path, "many.tar.gz").await;
    let id = wait_for_files().await;
    alice.post(&format!("/transfers/{id}/cancel"), &[]).await;
    // What was written goes a moment after the answer.
    let names = async || {
        let found = crate::support::cluster::Cluster::get().script(&["exec", "ls", "-A", &folder.path]);
        String::from_utf8(found.stdout).unwrap()
    };
    wait_for_value("nothing is left", names, |names| names == "many\nmany.tar.gz\n").await;
    assert_eq!(wait_until_over(&portal, &alice).await.state, TransferState::Cancelled);

    extract(&alice, &folder.path, "many.tar.gz").await;
    let id = wait_for_files().await;
    alice.post(&format!("/transfers/{id}/pause"), &[]).await;
    alice.post(&format!("/transfers/{id}/resume"), &[]).await;
    let done = wait_until_over(&portal, &alice).await;
    assert_eq!((done.state, done.message.as_str()), (TransferState::Done, "The files are in many (2)."));
    folder.tell(&format!("cd {} && diff -r many 'many (2)/many' && test \"$(ls -A | wc -l)\" = 3", folder.path));
}

#[tokio::test]
async fn portal_that_stops_in_the_middle_begins_anew() {
    let (mut portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "mkdir many; cd many; for folder in $(seq 40); do mkdir $folder; (cd $folder; seq 500 | xargs touch); done",
    );
    compress(&alice, &folder.path, &["many"], "many", "tar").await;
    let done = wait_until_over(&portal, &alice).await;
    assert_eq!(done.state, TransferState::Done, "{}", done.message);
    extract(&alice, &folder.path, "many.tar").await;
    let person = PersonId(portal.person_id("alice").await);
    let look = async || portal.app.transfers.list(person).await.unwrap().remove(0);
    wait_for_value("some are there", look, |(row, now)| now.files_done > 0 || row.state.is_over()).await;
    portal.restart_with(|_| {}).await;
    alice.wait_until_connected("key").await;
    let done = wait_until_over(&portal, &alice).await;
    assert_eq!((done.state, done.message.as_str()), (TransferState::Done, "The files are in many (2)."));
    folder.tell(&format!("cd {} && diff -r many 'many (2)/many' && test \"$(ls -A | wc -l)\" = 3", folder.path));
}

/// What fails at once isn't announced as a success.
#[tokio::test]
async fn failed_extraction_is_told_in_its_folder() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "echo 'no archive' >broken.zip");
    let answer = alice.post("/files/key/extract", &[("path", folder.path.as_str()), ("name", "broken.zip")]).await;
    let is_over = |all: &Vec<Transfer>| matches!(all.as_slice(), [one] if one.state.is_over());
    let over = wait_for_value("over", async || transfers(&portal).await, is_over).await.remove(0);
    assert_eq!(over.state, TransferState::Failed, "{over:?}");
    let page = alice.get(answer.location()).await;
    assert!(
        page.select_text("#folder-transfers").contains("Couldn't extract broken.zip"),
        "{}",
        page.select_text("main")
    );
    assert!(page.select_all(".alert.is-ok").is_empty(), "{}", page.select_text("main"));
}
