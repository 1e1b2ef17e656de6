//! Creating, renaming, moving, sharing and editing files on the real cluster: whatever their names, and whoever else
//! changes them meanwhile.

use portolan::domain::{RemoteName, RemotePath};
use portolan::ssh::ClusterConnection;
use portolan::ssh::sftp::{self, RemoteFileKind, SftpError};
use reqwest::Method;

use crate::folders::{Folder, with_alice};
use crate::support::client::send;
use crate::support::cluster::{Cluster, remote_path};
use crate::support::{Client, Page};

type Connection = std::sync::Arc<ClusterConnection>;

/// Sends a form about a folder, as its page without script does.
async fn change(who: &Client, verb: &str, folder: &str, fields: &[(&str, &str)]) -> Page {
    let form: Vec<(&str, &str)> = [("path", folder)].into_iter().chain(fields.iter().copied()).collect();
    who.post(&format!("/files/key/{verb}"), &form).await
}

/// The same by htmx.
async fn change_in_place(who: &Client, verb: &str, folder: &str, fields: &[(&str, &str)]) -> Page {
    let form: Vec<(&str, &str)> = [("path", folder)].into_iter().chain(fields.iter().copied()).collect();
    let request = who.request(Method::POST, &format!("/files/key/{verb}"));
    send(request.header("origin", origin(who)).header("hx-request", "true").form(&form)).await
}

fn origin(who: &Client) -> String {
    let request = who.request(Method::GET, "").build().unwrap();
    request.url().origin().ascii_serialization()
}

/// What the editor gets for a file.
async fn open_editor(who: &Client, path: &str) -> Page {
    let request = who.request(Method::GET, "/files/key/edit").query(&[("path", path)]);
    send(request.header("hx-request", "true")).await
}

/// Saves a text as the editor does.
async fn save(who: &Client, path: &str, opened: &Page, text: &str, more: &[(&str, &str)]) -> Page {
    let version = opened.attribute("[name=version]", "value");
    let endings = opened.attributes("[name=endings]", "value").into_iter().next().unwrap_or_default();
    let mut form = vec![("text", text), ("version", version.as_str()), ("endings", endings.as_str())];
    form.extend(more);
    change_in_place(who, "edit", path, &form).await
}

async fn names_in(line: &Connection, folder: &str) -> Vec<RemoteName> {
    let listing = sftp::list(line, &remote_path(folder), 100).await.unwrap();
    let mut names: Vec<RemoteName> = listing.entries.into_iter().map(|entry| entry.name).collect();
    names.sort();
    names
}

async fn content(line: &Connection, path: &str) -> Vec<u8> {
    sftp::read(line, &remote_path(path), 2_000_000).await.unwrap()
}

async fn mode(line: &Connection, path: &str) -> u32 {
    sftp::stat(line, &remote_path(path)).await.unwrap().mode.unwrap()
}

fn name(bytes: &[u8]) -> RemoteName {
    RemoteName::parse(bytes).unwrap()
}

#[tokio::test]
async fn folders_and_files_are_created_unless_their_name_is_taken() {
    let (portal, _, alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let folder = Folder::new("alice", "echo old >train.py; touch train-2.py; mkdir closed; chmod 500 closed");
    let here = folder.path.as_str();
    let made = change(&alice, "new-folder", here, &[("new_name", "it's <b>new $(id)")]).await;
    assert_eq!(made.status, 303, "{}", made.text());
    assert!(made.location().starts_with("/files/key?path="), "{}", made.location());
    let told = alice.get(made.location()).await.select_text("main > .alert");
    assert!(told.contains("Created the folder it's <b>new $(id)."), "{told}");
    let made = change(&alice, "new-file", here, &[("new_name", "-rf.sh")]).await;
    assert!(made.location().starts_with("/files/key/edit?path="), "{}", made.location());
    assert_eq!(content(&line, &format!("{here}/-rf.sh")).await, b"");
    assert!(names_in(&line, here).await.contains(&name(b"it's <b>new $(id)")));
    for verb in ["new-folder", "new-file"] {
        for (typed, words) in [
            ("train.py", "“train.py” already exists here. You could use “train-3.py” instead."),
            ("", "Enter a name."),
            ("a/b", "Leave out slashes"),
            ("..", "Choose another name"),
            ("a\nb", "Remove line breaks"),
        ] {
            let page = change(&alice, verb, here, &[("new_name", typed)]).await;
            assert_eq!(page.status, 422, "{verb} {typed:?}");
            assert!(page.select_text(".error").contains(words), "{verb} {typed:?}: {}", page.text());
        }
        let closed = format!("{here}/closed");
        let page = change(&alice, verb, &closed, &[("new_name", "x")]).await;
        let words = format!("You don't have permission to create anything in {closed}");
        assert!(page.select_text(".error").contains(&words), "{}", page.text());
        let page = change(&alice, verb, &format!("{here}/gone"), &[("new_name", "x")]).await;
        assert!(page.select_text(".error").contains("doesn't exist"), "{}", page.text());
    }
    assert_eq!(content(&line, &format!("{here}/train.py")).await, b"old\n");
    assert_eq!(names_in(&line, here).await.len(), 5);
}

#[tokio::test]
async fn entries_of_any_name_are_renamed_and_moved() {
    let (portal, _, alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let folder = Folder::new("alice", "mkdir sub");
    let here = remote_path(&folder.path);
    let mut long = vec![b'x'; 250];
    long.extend(b"\xff\xfe\n\"'");
    let hostile: [&[u8]; 6] = [b"a\nb", b"it's \"q\"", b"-rf", b"bad\xff", b"<img src=x onerror=alert(1)>", &long];
    for bytes in hostile {
        sftp::write_new(&line, &here.join(&name(bytes)), bytes.to_vec(), None).await.unwrap();
    }
    // All at once into another folder, and each keeps its name.
    let encoded: Vec<String> = hostile.iter().map(|bytes| name(bytes).to_encoded()).collect();
    let mut fields: Vec<(&str, &str)> = encoded.iter().map(|one| ("name", one.as_str())).collect();
    let asked = change(&alice, "move", &folder.path, &fields).await;
    assert_eq!((asked.status, asked.attributes("form [name=name]", "value")), (200, encoded.clone()));
    assert!(asked.text().contains("Move <span dir=\"auto\">6 items</span>"), "{}", asked.text());
    let short = folder.path.replace("/scratch/alice", "$SCRATCH");
    let target = format!("{short}/sub");
    fields.push(("to", &target));
    let moved = change(&alice, "move", &folder.path, &fields).await;
    assert_eq!(moved.status, 303, "{}", moved.text());
    let sub = format!("{}/sub", folder.path);
    let mut expected: Vec<RemoteName> = hostile.iter().map(|bytes| name(bytes)).collect();
    expected.sort();
    assert_eq!(names_in(&line, &sub).await, expected);
    // One by one, to a name that can be typed.
    for (number, one) in encoded.iter().enumerate() {
        let to = format!("plain {number}");
        let asked = change_in_place(&alice, "rename", &sub, &[("name", one)]).await;
        assert_eq!((asked.status, asked.attribute("form [name=name]", "value")), (200, one.clone()));
        assert!(RemoteName::from_typed(&asked.attribute("[name=to]", "value")).is_ok(), "it can be sent back as it is");
        let renamed = change_in_place(&alice, "rename", &sub, &[("name", one), ("to", &to)]).await;
        assert_eq!(renamed.status, 204, "{}", renamed.text());
        assert!(renamed.header("hx-redirect").starts_with("/files/key?path="));
        assert_eq!(content(&line, &format!("{sub}/{to}")).await, hostile[number]);
    }
    assert_eq!(names_in(&line, &sub).await.len(), 6);
}

#[tokio::test]
async fn nothing_is_overwritten_by_renaming_or_moving() {
    let (portal, _, alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let script = "echo a >a; echo b >b; ln -s nowhere broken; mkdir in out; echo c >in/a; echo d >in/d; mkdir in/a-dir
                  mkdir a-dir out/a-dir";
    let folder = Folder::new("alice", script);
    let here = folder.path.as_str();
    let at = |below: &str| format!("{here}/{below}");
    for taken in ["b", "broken", "a-dir"] {
        let page = change(&alice, "rename", here, &[("name", "a"), ("to", taken)]).await;
        assert_eq!(page.status, 422);
        let words = format!("“{taken}” already exists here. You could use “{taken}-2” instead.");
        assert!(page.select_text(".error").contains(&words), "{}", page.text());
        assert_eq!(page.attribute("[name=to]", "value"), taken, "what was typed is still there");
    }
    assert_eq!(sftp::read_link(&line, &remote_path(&at("broken"))).await.unwrap(), b"nowhere");
    // Of several, those that can be moved are; the page says which aren't, and why.
    let fields = [("name", "a"), ("name", "d"), ("name", "a-dir"), ("name", "gone"), ("to", here)];
    let page = change(&alice, "move", &at("in"), &fields).await;
    assert_eq!((page.status, page.select_text(".alert-title").as_str()), (422, "Couldn't move 3 items"));
    assert!(page.text().contains("Moved 1 item."), "{}", page.text());
    let said = page.select_all(".change-failures li");
    assert!(said[0].contains("“a” already exists here.") && said[1].contains("“a-dir” already exists"), "{said:?}");
    assert!(said[2].contains("“gone” no longer exists"), "{said:?}");
    for (path, text) in [("a", "a\n"), ("b", "b\n"), ("in/a", "c\n"), ("d", "d\n")] {
        assert_eq!(content(&line, &at(path)).await, text.as_bytes(), "{path}");
    }
    // A target that is none.
    for (to, words) in [
        (at("a-dir"), "“a-dir” can't be moved into itself"),
        (here.to_owned(), "is already in this folder"),
        (at("b"), "is a file, not a folder"),
        (at("nowhere"), "doesn't exist"),
        ("out".into(), "Enter a full path"),
        (at("../x"), "Enter a full path"),
    ] {
        let page = change(&alice, "move", here, &[("name", "a-dir"), ("to", &to)]).await;
        assert!(page.status == 422 && page.select_text(".error").contains(words), "{to}: {}", page.text());
    }
}

#[tokio::test]
async fn renaming_and_moving_need_permission_and_one_disk() {
    let (portal, _, alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let folder =
        Folder::new("alice", "mkdir closed; echo x >closed/file; chmod 500 closed; echo y >mine; ln -s mine link");
    let here = folder.path.as_str();
    let closed = format!("{here}/closed");
    let page = change(&alice, "rename", &closed, &[("name", "file"), ("to", "other")]).await;
    assert!(page.select_text(".error").contains("You don't have permission to rename “file”"), "{}", page.text());
    let page = change(&alice, "move", here, &[("name", "mine"), ("to", &closed)]).await;
    assert!(page.select_text(".error").contains("You don't have permission to move “mine”"), "{}", page.text());
    let page = change(&alice, "move", here, &[("name", "mine"), ("to", "/home/bob/x")]).await;
    assert!(page.select_text(".error").contains("permission"), "{}", page.text());
    // The cluster's /tmp is a file system of its own.
    let page = change(&alice, "move", here, &[("name", "mine"), ("to", "/tmp")]).await;
    assert!(page.select_text(".error").contains("use Copy, then delete"), "{}", page.text());
    assert_eq!(content(&line, &format!("{here}/mine")).await, b"y\n");
    // A link is renamed as a link.
    let renamed = change(&alice, "rename", here, &[("name", "link"), ("to", "renamed")]).await;
    assert_eq!(renamed.status, 303, "{}", renamed.text());
    let told = alice.get(renamed.location()).await.select_text("main > .alert");
    assert!(told.contains("Renamed link to renamed."), "{told}");
    assert!(!alice.get(renamed.location()).await.text().contains("Renamed link"), "it is told once");
    assert_eq!(sftp::read_link(&line, &remote_path(&format!("{here}/renamed"))).await.unwrap(), b"mine");
    // Nothing selected, too many for one name, and forms that no page of ours has.
    let page = change(&alice, "rename", here, &[]).await;
    assert!(page.status == 422 && page.text().contains("Select the item to rename"), "{}", page.text());
    let page = change(&alice, "move", here, &[("to", "/tmp")]).await;
    assert!(page.status == 422 && page.text().contains("Nothing selected"), "{}", page.text());
    for fields in [[("name", "../mine"), ("to", "x")], [("name", ".."), ("to", "x")], [("name", "%2Fetc"), ("to", "x")]]
    {
        assert_eq!(change(&alice, "rename", here, &fields).await.status, 400, "{fields:?}");
    }
}

#[tokio::test]
async fn permissions_are_shown_and_changed_in_words() {
    let (portal, _, alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let script = "touch file run.sh; chmod 640 file; chmod 700 run.sh; mkdir -p tree/deep; touch tree/a tree/deep/b
                  chmod 600 tree/a tree/deep/b; chmod 2700 tree; chmod 700 tree/deep; touch outside; chmod 600 outside
                  ln -s ../outside tree/link; ln -s outside link";
    let folder = Folder::new("alice", script);
    let here = folder.path.as_str();
    let at = |below: &str| format!("{here}/{below}");
    // The present state, and what around it keeps the group out.
    let page = change_in_place(&alice, "permissions", here, &[("name", "file")]).await;
    let access = "Only you: others can't open a parent folder";
    assert_eq!((page.status, page.select_text(".dl dd").as_str()), (200, access));
    let seen = alice.get(&format!("/files/key/view/content?path={here}/file")).await;
    assert!(seen.select_text(".log-facts").contains(&format!("Access: {access}")), "{}", seen.text());
    assert_eq!(page.attribute("[name=access][checked]", "value"), "group-reads");
    assert!(
        page.select_text(".alert").contains("The folder /scratch/alice is closed to your group"),
        "{}",
        page.text()
    );
    // A page of its own doesn't ask the cluster before it is told to.
    let page = change(&alice, "permissions", here, &[("name", "file")]).await;
    assert!(page.select_all(".dl dd").is_empty() && page.text().contains("Show current permissions"));
    let page = change(&alice, "permissions", here, &[("name", "file"), ("wait", "1")]).await;
    assert_eq!(page.select_text(".dl dd"), access);
    let page = change(&alice, "permissions", here, &[("name", "file"), ("set", "1")]).await;
    assert!(page.status == 422 && page.select_text(".error").contains("Choose who can use it."));
    // For oneself: nothing more to say.
    let set = [("name", "file"), ("access", "only-you"), ("set", "1")];
    assert_eq!(change(&alice, "permissions", here, &set).await.status, 303);
    assert_eq!(mode(&line, &at("file")).await, 0o600);
    // A script can be run by those who read it; the folder above is closed to them.
    let set = [("name", "run.sh"), ("access", "group-reads"), ("set", "1")];
    let page = change(&alice, "permissions", here, &set).await;
    assert!(page.text().contains("Changed 1 item.") && page.text().contains("is closed to your group"));
    assert_eq!(mode(&line, &at("run.sh")).await, 0o750);
    // A folder alone, then with everything inside; links are not followed.
    let set = [("name", "tree"), ("access", "everyone-reads"), ("set", "1")];
    change(&alice, "permissions", here, &set).await;
    assert_eq!((mode(&line, &at("tree")).await, mode(&line, &at("tree/a")).await), (0o2755, 0o600));
    let set = [("name", "tree"), ("access", "group-changes"), ("set", "1"), ("inside", "true")];
    let page = change(&alice, "permissions", here, &set).await;
    assert!(page.text().contains("Changed 4 items."), "{}", page.text());
    for (path, expected) in [("tree", 0o2770), ("tree/a", 0o660), ("tree/deep", 0o770), ("tree/deep/b", 0o660)] {
        assert_eq!(mode(&line, &at(path)).await, expected, "{path}");
    }
    assert_eq!(mode(&line, &at("outside")).await, 0o600);
    let again = change(&alice, "permissions", here, &set).await;
    assert!(again.text().contains("Changed 0 items. Already set that way: 4 items."), "{}", again.text());
    let set = [("name", "link"), ("name", "gone"), ("access", "everyone-reads"), ("set", "1")];
    let page = change(&alice, "permissions", here, &set).await;
    assert_eq!((page.status, page.select_all(".change-failures li").len()), (422, 2), "{}", page.text());
    assert_eq!(mode(&line, &at("outside")).await, 0o600);
    // Others' files stay as they are, and home is named.
    let page = change(&alice, "permissions", "/", &[("name", "etc"), ("access", "only-you"), ("set", "1")]).await;
    assert!(page.text().contains("Only its owner can change its permissions"), "{}", page.text());
    let page = change_in_place(&alice, "permissions", "/home/alice", &[("name", ".bashrc")]).await;
    assert!(page.select_text(".alert").contains("Your home folder is closed to your group"), "{}", page.text());
}

#[tokio::test]
async fn very_large_folder_keeps_its_permissions() {
    let (portal, _, alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let folder = Folder::new("alice", "mkdir big; chmod 700 big; cd big; seq -f 'part-%05g' 5001 | xargs touch");
    let set = [("name", "big"), ("access", "group-reads"), ("set", "1"), ("inside", "true")];
    let page = change(&alice, "permissions", &folder.path, &set).await;
    assert!(page.select_text(".error").contains("Nothing was changed"), "{}", page.text());
    assert_eq!(mode(&line, &format!("{}/big", folder.path)).await, 0o700);
}

#[tokio::test]
async fn saving_keeps_permissions_line_endings_and_links() {
    let (portal, _, alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let script =
        "printf '#!/bin/bash\\r\\necho hi\\r\\n' >run.sh; chmod 750 run.sh; mkdir far; ln -s ../run.sh far/link
                  printf 'no newline' >bare; printf 'a\\r\\nb\\n' >mixed; printf '\\n<b>&amp;</textarea>\\n' >markup";
    let folder = Folder::new("alice", script);
    let at = |below: &str| format!("{}/{below}", folder.path);
    // The page itself is there before the cluster is asked.
    let page = alice.get(&format!("/files/key/edit?path={}", at("run.sh"))).await;
    assert!(page.status == 200 && !page.text().contains("echo hi") && page.text().contains("hx-trigger=\"load\""));
    let page = alice.get(&format!("/files/key/edit?path={}&wait=1", at("run.sh"))).await;
    assert!(page.select_text("#editor-text").contains("echo hi"), "{}", page.text());
    // Through the link, as a browser sends it.
    let opened = open_editor(&alice, &at("far/link")).await;
    assert_eq!(opened.attribute("[name=endings]", "value"), "windows");
    let text = "#!/bin/bash\r\necho 'ünï'\r\n";
    let saved = save(&alice, &at("far/link"), &opened, text, &[]).await;
    assert!(saved.status == 200 && saved.select_text(".editor-saved").starts_with("Saved"), "{}", saved.text());
    assert_eq!(content(&line, &at("run.sh")).await, text.as_bytes());
    assert_eq!(mode(&line, &at("run.sh")).await, 0o750);
    let through = sftp::lstat(&line, &remote_path(&at("far/link"))).await.unwrap();
    assert_eq!(through.kind, RemoteFileKind::Link);
    assert_eq!(names_in(&line, &folder.path).await.len(), 5, "nothing is left beside it");
    // What was saved is what the next saving goes by.
    let again = save(&alice, &at("run.sh"), &saved, "#!/bin/bash\r\n", &[]).await;
    assert_eq!(again.status, 200, "{}", again.text());
    for (file, text, expected) in [("bare", "still none", "still none"), ("mixed", "a\r\nb\r\nc\r\n", "a\nb\nc\n")] {
        let opened = open_editor(&alice, &at(file)).await;
        assert_eq!(opened.text().contains("Mixed line endings"), file == "mixed");
        assert_eq!(save(&alice, &at(file), &opened, text, &[]).await.status, 200);
        assert_eq!(content(&line, &at(file)).await, expected.as_bytes());
    }
    let opened = open_editor(&alice, &at("markup")).await;
    assert_eq!(opened.select_text("#editor-text"), "<b>&amp;</textarea>");
    // Without script: back to the editor, with a message.
    let version = opened.attribute("[name=version]", "value");
    let form = [("text", "plain\r\n"), ("version", &version), ("endings", "unix")];
    let saved = change(&alice, "edit", &at("markup"), &form).await;
    assert!(saved.status == 303 && saved.location().ends_with("&wait=1"), "{}", saved.location());
    assert!(alice.get(saved.location()).await.text().contains("Saved markup."));
    assert_eq!(content(&line, &at("markup")).await, b"plain\n");
}

/// A folder that alice and bob share; goes with the test.
struct SharedFolder(String);

impl SharedFolder {
    fn new(name: &str, script: &str) -> Self {
        let path = format!("/project/def-smith/alice/{name}-{}", std::process::id());
        let script = format!("umask 007; mkdir -p {path} && cd {path} && {{ {script}\n}}");
        let done = Cluster::get().script(&["exec", "--as", "alice", "bash", "-c", &script]);
        assert!(done.status.success(), "{done:?}");
        Self(path)
    }
}

impl Drop for SharedFolder {
    fn drop(&mut self) {
        let _ = Cluster::get().script(&["exec", "rm", "-rf", &self.0]);
    }
}

#[tokio::test]
async fn two_people_who_edit_one_file_notice_each_other() {
    let (portal, admin, alice) = with_alice().await;
    let bob = portal.member(&admin, "bob").await;
    bob.prepare("key", "bob").await;
    bob.connect("key").await;
    let line = portal.connection("alice", "key").await;
    let shared = SharedFolder::new("edit", "echo first >plan.txt; chmod 660 plan.txt");
    let path = format!("{}/plan.txt", shared.0);
    let (hers, his) = (open_editor(&alice, &path).await, open_editor(&bob, &path).await);
    let group = sftp::stat(&line, &remote_path(&path)).await.unwrap().owner.unwrap().1;
    assert_eq!(save(&bob, &path, &his, "from bob\n", &[]).await.status, 200);
    let attrs = sftp::stat(&line, &remote_path(&path)).await.unwrap();
    assert_eq!((attrs.owner.unwrap().1, attrs.mode), (group, Some(0o660)), "both can still change it");
    // Hers is not saved: she sees both.
    let refused = save(&alice, &path, &hers, "from alice\n", &[]).await;
    assert_eq!(refused.status, 409);
    assert!(refused.text().contains("Not saved: the file has changed"), "{}", refused.text());
    assert_eq!(refused.select_text(".editor-theirs"), "from bob");
    assert_eq!(content(&line, &path).await, b"from bob\n");
    // The same without script: her own text is still in the form.
    let version = hers.attribute("[name=version]", "value");
    let form = [("text", "from alice\r\n"), ("version", version.as_str())];
    let page = change(&alice, "edit", &path, &form).await;
    assert_eq!((page.status, page.select_text("#editor-text").as_str()), (409, "from alice"));
    // Under another name, then over his.
    let other = save(&alice, &path, &hers, "from alice\n", &[("save_as", "hers.txt")]).await;
    assert!(other.header("hx-redirect").contains("hers.txt"), "{}", other.text());
    assert_eq!(content(&line, &format!("{}/hers.txt", shared.0)).await, b"from alice\n");
    let seen = refused.attribute("[name=overwrite]", "value");
    assert_eq!(save(&alice, &path, &hers, "from alice\n", &[("overwrite", &seen)]).await.status, 200);
    assert_eq!(content(&line, &path).await, b"from alice\n");
    // What she hasn't seen isn't overwritten either.
    assert_eq!(save(&bob, &path, &open_editor(&bob, &path).await, "bob again\n", &[]).await.status, 200);
    assert_eq!(save(&alice, &path, &hers, "alice again\n", &[("overwrite", &seen)]).await.status, 409);
    assert_eq!(content(&line, &path).await, b"bob again\n");
}

#[tokio::test]
async fn what_cannot_be_saved_or_edited_is_explained() {
    let (portal, _, alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let script = "echo kept >read-only; chmod 444 read-only; mkdir closed; echo kept >closed/file; chmod 555 closed
                  printf 'bad\\xff' >binary; printf 'a\\0b' >nul; head -c 1048577 /dev/zero | tr '\\0' a >large
                  mkfifo pipe; echo x >doomed; echo y >taken; head -c 1048576 /dev/zero | tr '\\0' '\\n' >lines";
    let folder = Folder::new("alice", script);
    let at = |below: &str| format!("{}/{below}", folder.path);
    for (file, words) in [
        ("binary", "This isn't a text file"),
        ("nul", "This isn't a text file"),
        ("large", "Only files up to 1"),
        ("pipe", "Only regular files"),
        ("closed", "This is a folder"),
        ("missing", "doesn't exist"),
    ] {
        let page = open_editor(&alice, &at(file)).await;
        assert!(page.select_text(".alert").contains(words), "{file}: {}", page.text());
        assert!(page.select_all("textarea").is_empty(), "{file}");
    }
    // Said before anything is typed; saving leaves it as it was.
    let opened = open_editor(&alice, &at("read-only")).await;
    assert!(opened.text().contains("This file is read-only") && opened.select_all("[data-editor-save]").is_empty());
    let page = save(&alice, &at("read-only"), &opened, "new\n", &[]).await;
    assert!(page.status == 422 && page.select_text(".alert").contains("read-only"), "{}", page.text());
    let opened = open_editor(&alice, &at("closed/file")).await;
    let page = save(&alice, &at("closed/file"), &opened, "new\n", &[]).await;
    assert!(page.select_text(".alert").contains("can't be replaced safely"), "{}", page.text());
    for file in ["read-only", "closed/file"] {
        assert_eq!(content(&line, &at(file)).await, b"kept\n", "{file}");
    }
    // A file of the largest size fits into a form, and not more.
    let opened = open_editor(&alice, &at("lines")).await;
    let most = "\r\n".repeat(1_048_576);
    assert_eq!(save(&alice, &at("lines"), &opened, &most, &[]).await.status, 200);
    let page = save(&alice, &at("lines"), &opened, &format!("{most}\r\n"), &[]).await;
    assert!(page.status == 422 && page.select_text(".alert").contains("too long"), "{}", page.status);
    // Deleted meanwhile: the text can be kept under the same name.
    let opened = open_editor(&alice, &at("doomed")).await;
    folder.tell(&format!("rm {}", at("doomed")));
    let page = save(&alice, &at("doomed"), &opened, "mine\n", &[]).await;
    assert!(page.select_text(".alert").contains("deleted or moved"), "{}", page.text());
    assert_eq!(page.attribute("[name=save_as]", "value"), "doomed");
    let page = save(&alice, &at("doomed"), &opened, "mine\n", &[("save_as", "taken")]).await;
    assert!(page.select_text(".error").contains("You could use “taken-2” instead"), "{}", page.text());
    let page = save(&alice, &at("doomed"), &opened, "mine\n", &[("save_as", "doomed")]).await;
    assert!(page.status == 204, "{}", page.text());
    assert_eq!(
        (content(&line, &at("doomed")).await, content(&line, &at("taken")).await),
        (b"mine\n".to_vec(), b"y\n".to_vec())
    );
    let left = names_in(&line, &folder.path).await;
    assert!(!left.iter().any(RemoteName::is_dot_name), "{left:?}");
}

#[tokio::test]
async fn only_the_owner_of_a_connection_changes_files_over_it() {
    let (portal, admin, alice) = with_alice().await;
    let bob = portal.member(&admin, "bob").await;
    bob.name_user("key", "alice").await;
    let line = portal.connection("alice", "key").await;
    let folder = Folder::new("alice", "echo kept >file");
    let path = format!("{}/file", folder.path);
    for other in [&bob, &admin] {
        let page = open_editor(other, &path).await;
        assert!(page.select_text(".alert").contains("Not connected"), "{}", page.text());
        let page = change(other, "rename", &folder.path, &[("name", "file"), ("to", "x")]).await;
        assert!(page.select_text(".error").contains("not connected"), "{}", page.text());
        let page = change(other, "new-file", &folder.path, &[("new_name", "x")]).await;
        assert!(page.status == 422 && page.text().contains("not connected"));
        let form = [("text", "theirs"), ("version", "x")];
        let page = change_in_place(other, "edit", &path, &form).await;
        assert!(page.status == 422 && page.select_text(".alert").contains("not connected"), "{}", page.text());
    }
    assert_eq!(open_editor(&portal.visitor(), &path).await.header("hx-refresh"), "true");
    // A page of another site can't send these forms.
    for verb in ["new-folder", "new-file", "rename", "move", "permissions", "edit"] {
        let request =
            alice.request(Method::POST, &format!("/files/key/{verb}")).header("origin", "https://evil.example");
        let form = [("path", folder.path.as_str()), ("name", "file"), ("to", "x"), ("new_name", "x")];
        assert_eq!(send(request.form(&form)).await.status, 403, "{verb}");
    }
    assert_eq!(names_in(&line, &folder.path).await, [name(b"file")]);
    assert_eq!(content(&line, &path).await, b"kept\n");
    let gone = RemotePath::parse(format!("{}/x", folder.path).as_bytes()).unwrap();
    assert_eq!(sftp::lstat(&line, &gone).await, Err(SftpError::NotFound));
    assert_eq!(alice.get("/files/key/edit?path=etc").await.status, 400);
    assert_eq!(alice.get("/files/nowhere/edit?path=/etc/hosts").await.status, 404);
}

/// Each change is one entry, however many files it is about.
#[tokio::test]
async fn changes_are_in_the_activity_log() {
    let (portal, admin, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir a to; touch a/x one two; tar -cf set.tar one");
    let path = folder.path.as_str();
    let post = async |to: &str, more: &[(&str, &str)]| {
        let form: Vec<(&str, &str)> = [("path", path)].into_iter().chain(more.iter().copied()).collect();
        let answer = alice.post(&format!("/files/key/{to}"), &form).await;
        assert!([200, 303].contains(&answer.status), "{to}: {}", answer.select_text("main"));
    };
    post("rename", &[("name", "one"), ("to", "first")]).await;
    post("move", &[("name", "first"), ("name", "two"), ("to", &format!("{path}/to"))]).await;
    post("permissions", &[("name", "a"), ("access", "only-you"), ("set", "yes")]).await;
    post("copy", &[("name", "a"), ("cluster", "key"), ("target", path), ("step", "confirm")]).await;
    post("extract", &[("name", "set.tar")]).await;
    post("compress", &[("name", "a"), ("archive", "packed"), ("format", "zip"), ("step", "confirm")]).await;
    post("new-folder", &[("new_name", "fresh")]).await;
    post("new-file", &[("new_name", "notes.txt")]).await;
    // Asking for a form changes nothing.
    post("move", &[("name", "a")]).await;
    let mut body = Vec::new();
    for name in ["up/1", "up/2"] {
        body.extend_from_slice(&[0, 0, 0, 4]);
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1, b'x']);
    }
    let request = alice.request(reqwest::Method::POST, "/files/key/upload-batch").header("origin", &portal.url);
    assert_eq!(send(request.query(&[("path", path)]).body(body)).await.status, 200);
    for (action, details) in [
        ("files.moved", vec![format!("2 items in {path} to {path}/to"), format!("one to first in {path}")]),
        ("files.permissions", vec![format!("“a” in {path}: Only you")]),
        ("files.copied", vec![format!("a in {path}, to {path} on Harbour key")]),
        ("files.extracted", vec![format!("set.tar in {path}")]),
        ("files.uploaded", vec![format!("2 files to {path}")]),
        ("files.compressed", vec![format!("a in {path}, to packed.zip")]),
        ("files.folder-created", vec![format!("{path}/fresh")]),
        ("files.created", vec![format!("{path}/notes.txt")]),
    ] {
        let rows = admin.get(&format!("/activity?action={action}")).await.select_all("tbody tr");
        assert_eq!(rows.len(), details.len(), "{action}: {rows:?}");
        for (row, detail) in rows.iter().zip(details) {
            assert!(row.contains(&detail), "{action}: {row} has no {detail}");
        }
    }
}
