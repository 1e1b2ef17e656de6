//! Looking into folders of the real cluster: whatever names they hold, whatever befalls the connection.

use std::time::{Duration, Instant};

use portolan::cluster::folders::{self, FolderEntry, FolderEntryKind, FolderError, FolderListing, MAX_ENTRIES};
use portolan::ssh::sftp::{self, SftpError};
use portolan::ssh::{CallUrgency, RemoteCommand, RunCommandError};
use reqwest::Method;
use scraper::{Html, Selector};

use crate::support::client::send;
use crate::support::cluster::{Cluster, remote_path};
use crate::support::connections::run;
use crate::support::relay::{Relay, with_alice_over};
use crate::support::server::{Server, is_alive};
use crate::support::wait::wait_for_value;
use crate::support::{Client, Page, TestApp};

/// A folder on the cluster that goes with the test.
pub struct Folder {
    user: &'static str,
    pub path: String,
}

impl Folder {
    /// A new one in someone's scratch, filled by a script that runs in it.
    pub fn new(user: &'static str, script: &str) -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = format!("/scratch/{user}/folders-{}-{number}", std::process::id());
        let folder = Self { user, path };
        folder.tell(&format!("mkdir -p {0} && cd {0} && {{ {script}\n}}", folder.path));
        folder
    }

    /// Whether a script succeeds as its owner.
    pub fn is_true(&self, script: &str) -> bool {
        Cluster::get().script(&["exec", "--as", self.user, "bash", "-c", script]).status.success()
    }

    /// Runs a script as its owner.
    pub fn tell(&self, script: &str) {
        let done = Cluster::get().script(&["exec", "--as", self.user, "bash", "-c", script]);
        assert!(done.status.success(), "{script}: {done:?}");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = Cluster::get().script(&["exec", "rm", "-rf", &self.path]);
    }
}

/// A portal with alice, who is connected to the test cluster.
pub async fn with_alice() -> (TestApp, Client, Client) {
    let (portal, admin, alice) = TestApp::with_member("alice").await;
    portal.add_cluster("key").await;
    alice.prepare("key", "alice").await;
    alice.connect("key").await;
    (portal, admin, alice)
}

/// The same on a server of the test's own.
pub async fn with_alice_on(server: &Server) -> (TestApp, Client) {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_server("own", server).await;
    alice.prepare_on(server, "own", "alice").await;
    alice.connect("own").await;
    (portal, alice)
}

/// What the dialog gets.
async fn ask(who: &Client, slug: &str, query: &[(&str, &str)]) -> Page {
    let request = who.request(Method::GET, &format!("/clusters/{slug}/folders")).query(query);
    send(request.header("hx-request", "true")).await
}

/// What the dialog gets for a path, and everything in it is text.
async fn open(who: &Client, path: &str, pick: &str) -> Page {
    let page = ask(who, "key", &[("path", path), ("pick", pick), ("field", "f-data")]).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let html = Html::parse_document(page.text());
    let evil = Selector::parse("img, script, #evil, [onerror]").unwrap();
    assert!(html.select(&evil).next().is_none(), "{}", page.text());
    page
}

fn names(page: &Page) -> Vec<String> {
    page.select_all("[data-name] .folders-name")
}

/// What can be chosen: the values that would be put into the form.
fn values(page: &Page) -> Vec<String> {
    let html = Html::parse_document(page.text());
    let picked = Selector::parse("[data-picked]").unwrap();
    html.select(&picked).map(|one| one.attr("data-picked").unwrap().to_owned()).collect()
}

fn entry<'a>(listing: &'a FolderListing, name: &str) -> &'a FolderEntry {
    let found = listing.entries.iter().find(|entry| entry.name == name);
    found.unwrap_or_else(|| panic!("no {name:?} in {listing:#?}"))
}

#[tokio::test]
async fn folders_are_listed_first_and_symlinks_are_followed() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "mkdir b A .git; printf hello >set.tar; touch .hidden; ln -s b to-b; ln -s set.tar to-set
         ln -s nowhere lost; ln -s loop loop; mkfifo pipe",
    );
    let line = portal.connection("alice", "key").await;
    let listing = folders::list(&line, &format!("{}/./", folder.path)).await.unwrap();
    let order: Vec<(&str, FolderEntryKind)> =
        listing.entries.iter().map(|entry| (entry.name.as_str(), entry.kind)).collect();
    assert_eq!(
        order,
        [
            (".git", FolderEntryKind::Folder),
            ("A", FolderEntryKind::Folder),
            ("b", FolderEntryKind::Folder),
            ("to-b", FolderEntryKind::Folder),
            (".hidden", FolderEntryKind::File),
            ("set.tar", FolderEntryKind::File),
            ("to-set", FolderEntryKind::File),
            ("loop", FolderEntryKind::Other),
            ("lost", FolderEntryKind::Other),
            ("pipe", FolderEntryKind::Other),
        ]
    );
    assert_eq!((listing.path.as_str(), listing.is_cut), (folder.path.as_str(), false));
    assert_eq!(listing.parent.as_deref(), Some("/scratch/alice"));
    assert_eq!((entry(&listing, "set.tar").size, entry(&listing, "to-set").size), (5, 5));
    assert!(entry(&listing, "set.tar").modified.is_some() && entry(&listing, ".git").is_hidden);
    assert!(!entry(&listing, "lost").is_choosable && !entry(&listing, "pipe").is_choosable);

    // What goes into the form begins with the variable that forms like.
    let short = folder.path.replace("/scratch/alice", "$SCRATCH");
    let page = open(&alice, &short, "file").await;
    assert_eq!(values(&page), [".hidden", "set.tar", "to-set"].map(|name| format!("{short}/{name}")));
    let page = open(&alice, &folder.path, "folder").await;
    assert_eq!(values(&page), [short.as_str()], "only the folder itself");
    assert_eq!(values(&open(&alice, &folder.path, "any").await).len(), 4);
    assert_eq!(page.select_all(".chip")[..2], ["Home", "Scratch"]);
    assert_eq!(page.select_text(".chip[aria-current]"), "Scratch");
    assert_eq!(page.select_all(".folders-way li")[0], "Scratch");

    // A field that holds a file, or nonsense, opens the dialog near it.
    let near = async |path: &str| {
        let query = [("path", path), ("pick", "any"), ("near", "true")];
        ask(&alice, "key", &query).await.select_text(".folders-path")
    };
    assert_eq!(near(&format!("{short}/set.tar")).await, short);
    assert_eq!(near(&format!("{}/not-yet", folder.path)).await, short);
    for nonsense in ["", "data", "/no/such/place", "/home/bob/x", "../x", "$NOWHERE/x"] {
        assert_eq!(near(nonsense).await, "$HOME", "{nonsense}");
    }
}

#[tokio::test]
async fn unusual_file_names_are_shown_as_text() {
    let (portal, _, alice) = with_alice().await;
    let long = "n".repeat(255);
    let folder = Folder::new(
        "alice",
        &format!(
            "mkdir '<img src=x onerror=alert(1)>' 'it'\"'\"'s $(id) `id`; \"q\" \\ * & #?%'
             touch $'line\\nbreak' $'bad\\xff\\xfename' $'gpj\\u202eexe' {long} ' led by a blank'
             touch -- '{{{{ 7*7 }}}}' -rf '~'",
        ),
    );
    let line = portal.connection("alice", "key").await;
    let listing = folders::list(&line, &folder.path).await.unwrap();
    assert_eq!(listing.entries.len(), 10, "{listing:#?}");
    for bad in ["line\u{FFFD}break", "bad\u{FFFD}\u{FFFD}name", "gpj\u{FFFD}exe", " led by a blank"] {
        assert!(!entry(&listing, bad).is_choosable, "{bad}");
    }
    for good in ["<img src=x onerror=alert(1)>", &long, "{{ 7*7 }}", "-rf", "~"] {
        assert!(entry(&listing, good).is_choosable, "{good}");
    }
    let page = open(&alice, &folder.path, "any").await;
    assert_eq!(names(&page).len(), 10);
    assert!(names(&page).contains(&"<img src=x onerror=alert(1)>".to_owned()));
    assert_eq!(page.select_all(".is-plain .folders-fact"), ["Unusable name"; 4]);
    // One can go into a folder with such a name: nothing on the way reads anything into it.
    for name in ["<img src=x onerror=alert(1)>", "it's $(id) `id`; \"q\" \\ * & #?%"] {
        let inside = open(&alice, &format!("{}/{name}", folder.path), "folder").await;
        assert!(inside.text().contains("This folder is empty"), "{name}");
        assert!(values(&inside)[0].ends_with(name), "{:?}", values(&inside));
        let html = Html::parse_document(page.text());
        let rows = Selector::parse("a.is-folder").unwrap();
        let row = html.select(&rows).find(|row| row.text().any(|text| text == name)).unwrap();
        let request = alice.request(Method::GET, row.attr("href").unwrap()).header("hx-request", "true");
        assert_eq!(send(request).await.select_text(".folders-path").rsplit('/').next(), Some(name));
    }
    // The session that saw all this is as good as new.
    assert_eq!(sftp::stat(&line, &remote_path("/scratch/alice")).await.unwrap().kind, sftp::RemoteFileKind::Folder);
}

#[tokio::test]
async fn very_large_folder_is_truncated() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "seq -f 'part-%05g' 5000 | xargs touch");
    let begun = Instant::now();
    let listing = folders::list(&portal.connection("alice", "key").await, &folder.path).await.unwrap();
    assert_eq!((listing.entries.len(), listing.is_cut), (MAX_ENTRIES, true));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let page = open(&alice, &folder.path, "file").await;
    assert!(page.text().contains("This folder has more than 2000 items"));
    assert_eq!(names(&page).len(), MAX_ENTRIES);
}

#[tokio::test]
async fn unreadable_folders_are_explained() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "touch file; mkdir closed; chmod 0 closed");
    let line = portal.connection("alice", "key").await;
    let inside = |name: &str| format!("{}/{name}", folder.path);
    for (path, problem) in [
        (inside("file"), FolderError::NotAFolder),
        (inside("file/x"), FolderError::NotFound),
        (inside("nowhere"), FolderError::NotFound),
        (inside("closed"), FolderError::PermissionDenied),
        ("/home/bob".into(), FolderError::PermissionDenied),
        (inside("../x"), FolderError::NotAPath),
        ("/scratch/alice/..".into(), FolderError::NotAPath),
        ("scratch/alice".into(), FolderError::NotAPath),
        (".".into(), FolderError::NotAPath),
        ("/scratch\n/alice".into(), FolderError::NotAPath),
        ("/scratch\0".into(), FolderError::NotAPath),
    ] {
        assert_eq!(folders::list(&line, &path).await, Err(problem.clone()), "{path:?}");
        let page = open(&alice, &path, "any").await;
        assert!(page.select_text(".alert").contains(&problem.to_string()), "{path:?}");
        assert!(values(&page).is_empty(), "nothing to choose: {path:?}");
    }
    let root = folders::list(&line, "//").await.unwrap();
    assert_eq!((entry(&root, "scratch").kind, root.parent), (FolderEntryKind::Folder, None));
    assert_eq!(ask(&alice, "nowhere", &[]).await.status, 404);
}

#[tokio::test]
async fn new_folder_is_created_in_the_shown_folder() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir there; mkdir closed; chmod 500 closed");
    let short = folder.path.replace("/scratch/alice", "$SCRATCH");
    let make = async |path: &str, name: &str| {
        let form = [("path", path), ("name", name), ("pick", "folder"), ("field", "f-data")];
        let request = alice.request(Method::POST, "/clusters/key/folders");
        let request = request.header("origin", &portal.url).header("hx-request", "true");
        send(request.form(&form)).await
    };
    for name in ["results", "it's <b>new $(id)", "Ünï"] {
        let page = make(&folder.path, name).await;
        assert_eq!((page.status, values(&page)), (200, vec![format!("{short}/{name}")]), "{name}");
        assert!(page.text().contains("This folder is empty"), "{}", page.text());
    }
    for (path, name, words) in [
        (folder.path.as_str(), "there", "with this name already exists"),
        (&folder.path, "", "Enter a name"),
        (&folder.path, "a/b", "Leave out slashes"),
        (&folder.path, "..", "Choose another name"),
        (&folder.path, "a\nb", "Remove line breaks"),
        (&format!("{}/closed", folder.path), "x", "have permission to do this"),
        ("/home/bob", "x", "have permission to do this"),
    ] {
        let page = make(path, name).await;
        assert_eq!(page.status, 422, "{path} {name:?}");
        assert!(page.text().contains(words), "{path} {name:?}: {}", page.text());
    }
    let line = portal.connection("alice", "key").await;
    let inside = folders::list(&line, &folder.path).await.unwrap();
    assert_eq!(inside.entries.len(), 5, "and nothing else: {inside:#?}");
    // Without the dialog, it leads to the new folder among the files.
    let form = [("path", folder.path.as_str()), ("name", "plain")];
    let page = alice.post_and_follow("/clusters/key/folders", &form).await;
    assert_eq!(page.select_text("h1"), "plain");
    assert_eq!(page.select_text(".files-path"), format!("{}/plain", folder.path));
}

#[tokio::test]
async fn people_see_only_what_their_cluster_account_may_read() {
    let (portal, admin, alice) = with_alice().await;
    let bob = portal.member(&admin, "bob").await;
    let folder = Folder::new("alice", "touch secret");
    assert_eq!(names(&open(&alice, &folder.path, "file").await), ["secret"]);
    // Alice's connection is nobody else's, whatever name they say they have there.
    bob.name_user("key", "alice").await;
    for other in [&bob, &admin] {
        let page = ask(other, "key", &[("path", &folder.path)]).await;
        assert!(page.select_text(".alert").contains("Not connected"), "{}", page.text());
        assert_eq!(page.attribute(".btn-primary", "href"), "/clusters/key");
        assert!(!page.text().contains("secret"));
    }
    alice.post("/clusters/key/disconnect", &[]).await;
    let page = open(&alice, &folder.path, "file").await;
    assert!(page.select_text(".alert").contains("Not connected"));
    let form = [("path", folder.path.as_str()), ("name", "x")];
    let page = alice.post("/clusters/key/folders", &form).await;
    assert!(page.status == 422 && page.text().contains("not connected to"));
}

/// How many file services run for alice on a server of the test's own.
fn services(server: &Server) -> usize {
    let count = "for p in $(pgrep -u alice -x sftp-server); do
                   tr '\\0' '\\n' </proc/$p/environ 2>/dev/null | grep -q \"^SSH_CONNECTION=.* $P$\" && echo $p
                 done | wc -l";
    server.tell(count).trim().parse().unwrap()
}

#[tokio::test]
async fn one_sftp_session_is_reused_and_yields_to_commands() {
    for most in [10, 1] {
        let server = Server::with(&format!("MaxSessions {most}"));
        let (portal, _alice) = with_alice_on(&server).await;
        let line = portal.connection("alice", "own").await;
        for _ in 0..3 {
            folders::list(&line, "/scratch/alice").await.unwrap();
        }
        assert_eq!(services(&server), 1, "one for all three");
        assert_eq!(server.log().matches("subsystem 'sftp'").count(), 1, "{}", server.log());
        // A command finds its place; with one session only, the file service makes room.
        let begun = Instant::now();
        assert_eq!(run(&line, "echo", &["on"]).await.unwrap().stdout_text(), "on\n");
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        assert_eq!(services(&server), usize::from(most > 1));
        // Both at once, again and again.
        let mut asked = tokio::task::JoinSet::new();
        for number in 0..16 {
            let line = line.clone();
            asked.spawn(async move {
                if number % 2 == 0 {
                    folders::list(&line, "/scratch").await.is_ok()
                } else {
                    run(&line, "true", &[]).await.is_ok()
                }
            });
        }
        assert!(asked.join_all().await.iter().all(|fine| *fine), "{most}");
        // It ends with the connection.
        portal.app.connections.close_connection(portal.connection_key("alice", "own").await).await;
        assert_eq!(folders::list(&line, "/scratch").await, Err(FolderError::NotConnected));
        wait_for_value("nothing is left", async || services(&server), |seen| *seen == 0).await;
    }
}

#[tokio::test]
async fn busy_connection_asks_people_to_wait() {
    let server = Server::with("MaxSessions 1");
    let (portal, alice) = with_alice_on(&server).await;
    let line = portal.connection("alice", "own").await;
    let long = {
        let line = line.clone();
        let command = RemoteCommand::new("sleep").arg("4711.04").with_deadline(Duration::from_secs(40));
        tokio::spawn(async move { line.run(command, CallUrgency::Interactive).await })
    };
    wait_for_value("it runs", async || Cluster::get().count_processes("sleep 4711.04"), |seen| *seen == 1).await;
    let begun = Instant::now();
    let page = ask(&alice, "own", &[("path", "/scratch/alice")]).await;
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    let said = page.select_text(".alert");
    let is_told = said.contains("busy with your other requests") || said.contains("in time");
    assert!(is_told, "{said}");
    long.abort();
}

#[tokio::test]
async fn hanging_sftp_session_is_replaced() {
    let server = Server::start();
    let (portal, _alice) = with_alice_on(&server).await;
    let line = portal.connection("alice", "own").await;
    folders::list(&line, "/scratch").await.unwrap();
    let stop = "for p in $(pgrep -u alice -x sftp-server); do
                  tr '\\0' '\\n' </proc/$p/environ | grep -q \"^SSH_CONNECTION=.* $P$\" && kill -STOP $p; done; true";
    server.tell(stop);
    let begun = Instant::now();
    let late = sftp::list(&line, &remote_path("/scratch"), 10).await;
    assert_eq!(late, Err(SftpError::Run(RunCommandError::TimedOut)));
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    folders::list(&line, "/scratch").await.unwrap();
    assert_eq!(run(&line, "echo", &["on"]).await.unwrap().stdout_text(), "on\n");
    server.tell(&stop.replace("STOP", "KILL"));
}

#[tokio::test]
async fn silent_network_is_noticed_and_blocks_nothing() {
    let server = Server::start();
    let relay = Relay::to(server.port).await;
    let (mut portal, alice) = with_alice_over(&relay, &server).await;
    let line = portal.connection("alice", "own").await;
    let master = line.master().pid();
    relay.cut();
    let begun = Instant::now();
    let page = ask(&alice, "own", &[("path", "/scratch/alice")]).await;
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    assert!(page.select_text(".alert").contains("respond in time"), "{}", page.text());
    let calls = || line.call_budget().stats(Instant::now()).commands;
    let before = calls();
    let asked = tokio::spawn(async move { ask(&alice, "own", &[("path", "/scratch")]).await.status });
    wait_for_value("it asks", async || calls(), |seen| *seen > before).await;
    drop(line);
    asked.abort();
    let begun = Instant::now();
    portal.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(14), "{:?}", begun.elapsed());
    assert!(is_alive(master), "the connection outlives the portal");
}

#[tokio::test]
async fn server_without_sftp_is_explained() {
    for options in ["Subsystem sftp /bin/false", "Subsystem sftp /bin/echo Welcome to Harbour, enjoy"] {
        let server = Server::with(options);
        let (portal, _alice) = with_alice_on(&server).await;
        let line = portal.connection("alice", "own").await;
        assert_eq!(sftp::stat(&line, &remote_path("/")).await, Err(SftpError::NoService), "{options}");
        assert_eq!(run(&line, "echo", &["on"]).await.unwrap().stdout_text(), "on\n");
    }
}

#[tokio::test]
#[ignore = "takes a minute"]
async fn idle_sftp_session_is_closed() {
    let server = Server::start();
    let (portal, _alice) = with_alice_on(&server).await;
    let line = portal.connection("alice", "own").await;
    folders::list(&line, "/scratch").await.unwrap();
    assert_eq!(services(&server), 1);
    wait_for_value("it is closed", async || services(&server), |seen| *seen == 0).await;
}
