//! Uploading in a real browser: files and folders, a name that is taken, and a network that breaks half-way.

use std::path::Path;

use crate::accessibility::audit;
use crate::folders::{Folder, with_alice};
use crate::support::TestApp;
use crate::support::browser::Browser;
use crate::support::relay::Relay;
use crate::support::server::{Server, site_at};

/// Whether a line of the panel is as far as this.
pub fn line_is(name: &str, state: &str) -> String {
    format!(
        "return [...document.querySelectorAll('[data-upload-list] > li')].some((line) => \
         line.dataset.state === '{state}' && line.querySelector('[data-line-name]').textContent === '{name}')"
    )
}

/// Chooses a file or a folder of this machine.
async fn choose(browser: &Browser, kind: &str, path: &Path) {
    let ready = "return document.querySelector('[data-upload-buttons]')?.hidden === false";
    browser.wait_until_true("uploading is ready", ready).await;
    let input = browser.find(&format!("[data-upload-input={kind}]")).await;
    input.send_keys(path.to_str().unwrap()).await.unwrap();
}

/// Presses a button of the line with this name.
async fn press_in_line(browser: &Browser, name: &str, action: &str) {
    let script = format!(
        "[...document.querySelectorAll('[data-upload-list] > li')].find((line) => \
         line.querySelector('[data-line-name]').textContent === '{name}').querySelector('[data-line={action}]').click()"
    );
    browser.run(&script).await;
}

/// What a drop of two files does, without a mouse.
const DROP: &str = "const transfer = new DataTransfer();
    for (const [name, text] of [['dropped 1.txt', 'one'], ['<b>dropped 2', 'two']])
      transfer.items.add(new File([text], name));
    for (const kind of ['dragenter', 'dragover', 'drop'])
      document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }))";

async fn upload(width: u32) {
    let (portal, _, _alice) = with_alice().await;
    let folder = Folder::new("alice", "printf old >taken.txt");
    let local = tempfile::tempdir().unwrap();
    let set = local.path().join("set");
    std::fs::create_dir_all(set.join("a/b")).unwrap();
    for number in 0..40 {
        std::fs::write(set.join(format!("a/b/{number}.txt")), format!("number {number}")).unwrap();
    }
    std::fs::write(set.join("large.bin"), vec![7; 3_000_000]).unwrap();
    std::fs::write(local.path().join("taken.txt"), "new").unwrap();

    let browser = Browser::open(&portal.url, width).await;
    browser.sign_in("alice").await;
    browser.go(&format!("/files/key?path={}", folder.path)).await;
    choose(&browser, "folder", &set).await;
    browser.wait_until_true("the folder is there", &line_is("set", "done")).await;
    folder.tell(&format!(
        "cd {} && test $(find set -type f | wc -l) = 41 && test \"$(cat set/a/b/7.txt)\" = 'number 7'",
        folder.path
    ));
    folder.tell(&format!("test $(stat -c %s {}/set/large.bin) = 3000000", folder.path));
    browser.run(DROP).await;
    for name in ["dropped 1.txt", "<b>dropped 2"] {
        browser.wait_until_true(name, &line_is(name, "done")).await;
    }
    folder.tell(&format!("cd {} && test \"$(cat 'dropped 1.txt' '<b>dropped 2')\" = onetwo", folder.path));

    choose(&browser, "files", &local.path().join("taken.txt")).await;
    browser.wait_until_true("it asks", &line_is("taken.txt", "taken")).await;
    audit(&browser, "a name that is taken").await;
    press_in_line(&browser, "taken.txt", "keep-both").await;
    browser.wait_until_true("both are there", &line_is("taken.txt", "done")).await;
    folder.tell(&format!("cd {} && test \"$(cat taken.txt 'taken (2).txt')\" = oldnew", folder.path));
    folder.tell(&format!("test -z \"$(find {} -name '.portolan-upload-*')\"", folder.path));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_folders_are_uploaded_on_a_desk() {
    upload(1280).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_folders_are_uploaded_on_a_phone() {
    upload(390).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn upload_goes_on_by_itself_when_the_connection_is_back() {
    let server = Server::start();
    let relay = Relay::to(server.port).await;
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_pinned(&site_at("own", relay.port), &server.pins()).await;
    alice.prepare_on(&server, "own", "alice").await;
    alice.connect("own").await;
    let folder = Folder::new("alice", "true");
    let local = tempfile::tempdir().unwrap();
    let file = local.path().join("large.bin");
    std::fs::write(&file, vec![9; 24 * 1024 * 1024]).unwrap();

    let browser = Browser::open(&portal.url, 1280).await;
    browser.sign_in("alice").await;
    browser.go(&format!("/files/own?path={}", folder.path)).await;
    let waits =
        "return /not connected|connection|lost|in time/i.test(document.querySelector('[data-line-text]')?.textContent)";
    tokio::join!(relay.cut_after(10 * 1024 * 1024), choose(&browser, "files", &file));
    browser.wait_until_true("it waits", waits).await;
    audit(&browser, "an upload that waits").await;
    relay.mend();
    alice.connect("own").await;
    browser.wait_until_true("it is there", &line_is("large.bin", "done")).await;
    folder.tell(&format!("test $(stat -c %s {}/large.bin) = {}", folder.path, 24 * 1024 * 1024));
    folder.tell(&format!("cmp -n {} {}/large.bin <(tr '\\0' '\\011' </dev/zero)", 24 * 1024 * 1024, folder.path));
    browser.close().await;
}
