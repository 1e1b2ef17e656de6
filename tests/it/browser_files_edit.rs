//! Writing a script in a real browser: a new file, the editor with its keys, saving, and seeing it in the folder.

use portolan::ssh::sftp;

use crate::accessibility::audit;
use crate::folders::{Folder, with_alice};
use crate::support::browser::Browser;
use crate::support::cluster::remote_path;

const TEXT: &str = "document.getElementById('editor-text')";
const TAB: &str = "\u{E004}";
const ESCAPE: &str = "\u{E00C}";
const CONTROL: &str = "\u{E009}";

async fn is_so(browser: &Browser, what: &str, script: &str) {
    browser.wait_until_true(what, &format!("return Boolean({script})")).await;
    browser.settled().await;
}

async fn press_keys(browser: &Browser, keys: &str) {
    browser.window.active_element().await.unwrap().send_keys(keys).await.unwrap();
}

async fn write_a_script(width: u32) {
    let (portal, _, _alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let folder = Folder::new("alice", "true");
    let browser = Browser::open(&portal.url, width).await;
    browser.sign_in("alice").await;
    browser.go(&format!("/files/key?path={}", folder.path)).await;
    browser.press("New…").await;
    browser.fill("new_name", "hello.sh").await;
    browser.press("Create file").await;
    is_so(&browser, "the editor is open", &format!("{TEXT} && document.querySelector('.editor-area.is-armed')")).await;
    audit(&browser, "an empty editor").await;
    // Tab indents, Escape and Tab leave.
    browser.run(&format!("{TEXT}.focus()")).await;
    press_keys(&browser, "#!/bin/bash\nif true; then\n").await;
    press_keys(&browser, TAB).await;
    press_keys(&browser, "echo hello\nfi\n").await;
    is_so(&browser, "it is indented", &format!("{TEXT}.value.includes('\\n    echo hello\\n')")).await;
    is_so(&browser, "it has colours", "document.querySelector('.editor-colours .is-keyword')").await;
    is_so(&browser, "it has numbers", "document.querySelector('.editor-lines').textContent.startsWith('1\\n2\\n3')")
        .await;
    browser.wait_for_text("Unsaved changes").await;
    press_keys(&browser, ESCAPE).await;
    press_keys(&browser, TAB).await;
    is_so(&browser, "the keyboard is out", &format!("document.activeElement !== {TEXT}")).await;
    browser.run(&format!("{TEXT}.focus()")).await;
    press_keys(&browser, &format!("{CONTROL}s")).await;
    browser.wait_for_text("Saved").await;
    is_so(&browser, "nothing is unsaved", "document.querySelector('[data-editor-dirty]').hidden").await;
    audit(&browser, "a saved script").await;
    let path = remote_path(&format!("{}/hello.sh", folder.path));
    let saved = sftp::read(&line, &path, 1000).await.unwrap();
    assert!(String::from_utf8(saved).unwrap().starts_with("#!/bin/bash\nif true; then\n    echo hello\n"));
    // Someone else changes it: both texts are seen, and nothing is lost.
    folder.tell(&format!("echo theirs >{path}"));
    browser.run(&format!("{TEXT}.focus()")).await;
    press_keys(&browser, "# mine\n").await;
    browser.press("Save").await;
    browser.wait_for_text("Not saved: the file has changed").await;
    is_so(&browser, "theirs is seen", "document.querySelector('.editor-theirs').innerText.includes('theirs')").await;
    audit(&browser, "a conflict").await;
    browser.press("Overwrite").await;
    is_so(&browser, "it is saved", "document.querySelector('#editor-status[data-saved]')").await;
    assert!(String::from_utf8(sftp::read(&line, &path, 1000).await.unwrap()).unwrap().contains("# mine"));
    // Renamed in its folder, without leaving the page.
    browser.press("Close").await;
    browser.wait_for_text("hello.sh").await;
    let tick = "document.querySelector('#files-form [name=name][value=\"hello.sh\"]')";
    is_so(&browser, "the folder is shown", tick).await;
    browser.run(&format!("{tick}.click()")).await;
    browser.press("Rename").await;
    browser.find("#change-panel [name=to]").await;
    audit(&browser, "renaming").await;
    let rename = "const form = document.querySelector('#change-panel form');
                  form.elements.to.value = 'renamed.sh'; form.requestSubmit()";
    browser.run(rename).await;
    browser.wait_for_text("renamed.sh").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_written_on_a_desk() {
    write_a_script(1280).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_written_on_a_phone() {
    write_a_script(390).await;
}
