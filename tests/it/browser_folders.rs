//! Choosing a file in a real browser: with the mouse, with the keyboard, on a desk and on a phone.

use crate::accessibility::audit;
use crate::folders::{Folder, with_alice};
use crate::support::Client;
use crate::support::browser::Browser;

/// The rows of the dialog that are seen.
const ROWS: &str = "[...document.querySelectorAll('#folders [data-name]')].filter((row) => !row.hidden)";
/// The field that is filled.
const FIELD: &str = "document.getElementById('sg-data')";
/// The dialog is closed, and one is back where one came from.
const BACK: &str = "!document.querySelector('dialog[open]') && document.activeElement.matches('[data-pick]')";

/// Names that break careless layouts, and some that people have.
fn scene() -> Folder {
    let long = "a-very-long-name-without-any-place-to-break_".repeat(5);
    let script = format!(
        "mkdir data results 'runs of 2026'; touch .bashrc .cache {long}.csv
         printf hello >set.tar; truncate -s 3G weights.pt; printf x >notes.txt
         touch $'bad\\xffname' $'line\\nbreak' '<b id=evil>'; mkfifo pipe; touch data/part-1
         mkdir data/dots; touch data/dots/.one"
    );
    Folder::new("alice", &script)
}

/// Someone at the page with the dialog, and the folder they look at, as the dialog writes it.
struct Desk {
    browser: Browser,
    short: String,
}

impl Desk {
    async fn is_so(&self, what: &str, script: &str) {
        let script = format!("return Boolean({script})");
        self.browser.wait_until_true(what, &script).await;
        self.browser.settled().await;
    }

    async fn is_in(&self, folder: &str) {
        let script = format!("document.querySelector('.folders-path')?.innerText === '{folder}'");
        self.is_so(folder, &script).await;
        self.is_so("it is in focus", "document.activeElement.matches('[data-keep-focus]')").await;
    }

    /// Opens the dialog with this in the field.
    async fn open(&self, value: &str) {
        let script = format!("{FIELD}.value = '{value}'; {FIELD}.scrollIntoView({{ block: 'center' }})");
        self.browser.run(&script).await;
        self.browser.press("Choose…").await;
    }

    async fn rows(&self) -> i64 {
        self.browser.run(&format!("return {ROWS}.length")).await.as_i64().unwrap()
    }

    async fn click_row(&self, name: &str) {
        let row = format!("{ROWS}.find((row) => row.innerText.includes('{name}'))");
        self.browser.run(&format!("{row}.firstElementChild.click()")).await;
    }

    async fn filter(&self, words: &str) {
        let script = "const box = document.querySelector('[data-folders-filter]'); box.value = 'WORDS';
                      box.dispatchEvent(new Event('input', { bubbles: true }))";
        self.browser.run(&script.replace("WORDS", words)).await;
    }

    async fn new_folder(&self, name: &str) {
        let script = "document.querySelector('.folders-new').open = true;
                      document.querySelector('#f-folders-name').value = 'NAME';
                      document.querySelector('.folders-new form').requestSubmit()";
        self.browser.run(&script.replace("NAME", name)).await;
    }

    async fn press_key(&self, key: &str) {
        self.browser.window.active_element().await.unwrap().send_keys(key).await.unwrap();
    }
}

/// Finding one's way: what is shown of a folder, and what is not.
async fn look_around(desk: &Desk) {
    desk.open(&format!("{}/set.tar", desk.short)).await;
    desk.is_in(&desk.short).await;
    assert_eq!(desk.rows().await, 11, "without those that begin with a dot");
    audit(&desk.browser, "the dialog").await;
    desk.filter("WEIGHTS").await;
    assert_eq!(desk.rows().await, 1);
    desk.filter("zzz").await;
    desk.browser.wait_for_text("No matches.").await;
    desk.filter("").await;
    for count in [13, 11] {
        desk.browser.run("document.querySelector('[data-folders-hidden]').click()").await;
        assert_eq!(desk.rows().await, count);
    }
    desk.click_row("data").await;
    desk.is_in(&format!("{}/data", desk.short)).await;
    desk.click_row("dots").await;
    desk.browser.wait_for_text("This folder contains only hidden files.").await;
}

/// Making a folder where one is, and choosing it.
async fn make_and_use(desk: &Desk) {
    desk.new_folder("a/b").await;
    desk.browser.wait_for_text("Leave out slashes").await;
    desk.is_so("the field is in focus", "document.activeElement.id === 'f-folders-name'").await;
    audit(&desk.browser, "a folder that was not made").await;
    desk.new_folder("new one").await;
    desk.browser.wait_for_text("This folder is empty.").await;
    audit(&desk.browser, "an empty folder").await;
    let heard = "window.heard = []; for (const kind of ['input', 'change']) FIELD.addEventListener(kind, () => heard.push(kind))";
    desk.browser.run(&heard.replace("FIELD", FIELD)).await;
    desk.browser.run("document.querySelector('#folders .btn-primary').click()").await;
    let value = format!("{}/data/dots/new one", desk.short);
    let script = format!("{FIELD}.value === '{value}' && heard.join() === 'input,change'");
    desk.is_so("it is in the field, as if typed", &script).await;
    desk.is_so("back at the button", BACK).await;
}

/// With the keyboard alone. Escape leaves all as it was.
async fn use_keys(desk: &Desk) {
    const DOWN: &str = "\u{E015}";
    const ESCAPE: &str = "\u{E00C}";
    const ENTER: &str = "\u{E007}";
    for last in [ESCAPE, ENTER] {
        desk.open(&desk.short).await;
        desk.is_in(&desk.short).await;
        desk.browser.run("document.querySelector('[data-folders-filter]').focus()").await;
        desk.press_key("set.t").await;
        for _ in 0..2 {
            desk.press_key(DOWN).await;
        }
        desk.is_so("the file", "document.activeElement.innerText.includes('set.tar')").await;
        desk.press_key(last).await;
        desk.is_so("back at the button", BACK).await;
        let end = if last == ENTER { "/set.tar" } else { "" };
        let value = desk.browser.run(&format!("return {FIELD}.value")).await;
        assert_eq!(value, format!("{}{end}", desk.short));
    }
}

/// What cannot be shown, and the page that the old address leads to.
async fn go_wrong(desk: &Desk, alice: &Client, folder: &Folder) {
    let plain = format!("/clusters/key/folders?path={}", folder.path);
    desk.browser.go(&plain).await;
    desk.browser.wait_for_text("weights.pt").await;
    audit(&desk.browser, "a folder's own page").await;
    alice.post("/clusters/key/disconnect", &[]).await;
    desk.browser.go(&plain).await;
    desk.browser.wait_for_text("Not connected").await;
    audit(&desk.browser, "a folder's own page without connection").await;
    desk.browser.go("/styleguide").await;
    desk.open("").await;
    desk.browser.wait_for_text("Connect to see its files").await;
    audit(&desk.browser, "no connection").await;
    desk.browser.run("document.querySelector('dialog[open]').close(); document.querySelector('[data-pick]').dataset.pickCluster = 'nowhere'").await;
    desk.open("").await;
    desk.browser.wait_for_text("Couldn't load this folder").await;
    audit(&desk.browser, "no such cluster").await;
}

async fn choose(width: u32) {
    let (portal, _, alice) = with_alice().await;
    let folder = scene();
    let short = folder.path.replace("/scratch/alice", "$SCRATCH");
    let desk = Desk { browser: Browser::open(&portal.url, width).await, short };
    desk.browser.sign_in("alice").await;
    desk.browser.go("/styleguide").await;
    look_around(&desk).await;
    make_and_use(&desk).await;
    use_keys(&desk).await;
    go_wrong(&desk, &alice, &folder).await;
    desk.browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_chosen_on_a_desk() {
    choose(1280).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_chosen_on_a_phone() {
    choose(390).await;
}
