//! A first morning with files, in a real browser: a folder is brought to the cluster, its script is mended and run, and
//! the results are seen, taken home and shown to someone; something comes back by a drop-box.

use std::path::Path;

use crate::browser_compose::{answer, open_part, submit};
use crate::browser_uploads::line_is;
use crate::compose::ended;
use crate::folders::Folder;
use crate::queue::connected;
use crate::support::TestApp;
use crate::support::browser::Browser;

/// Writes a table and a picture of one pixel beside itself.
const SCRIPT: &str = "import base64, os
here = os.path.dirname(os.path.abspath(__file__))
rows = open(os.path.join(here, 'data', 'points.csv')).read().splitlines()
with open(os.path.join(here, 'squares.csv'), 'w') as out:
    out.write('x,square\\n')
    out.writelines('%d,%d\\n' % (int(x), int(x) ** 2) for x in rows)
picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
open(os.path.join(here, 'plot.png'), 'wb').write(base64.b64decode(picture))
";

/// The folder that someone has at home; its script is not finished.
fn write_project(at: &Path) {
    std::fs::create_dir_all(at.join("data")).unwrap();
    std::fs::write(at.join("data/points.csv"), "2\n3\n5\n").unwrap();
    std::fs::write(at.join("squares.py"), "raise SystemExit('not finished')\n").unwrap();
}

/// Opens the script by its folder's rows, writes it anew and saves it.
async fn edit_script(browser: &Browser) {
    browser.press("project").await;
    browser.wait_for_text("squares.py").await;
    browser.press("squares.py").await;
    browser.wait_for_text("not finished").await;
    browser.press("Edit").await;
    browser.find(".editor-area.is-armed").await;
    let text = serde_json::to_string(SCRIPT).unwrap();
    let write = format!(
        "const text = document.getElementById('editor-text'); text.value = {text};
         text.dispatchEvent(new Event('input', {{ bubbles: true }}))"
    );
    browser.run(&write).await;
    browser.wait_for_text("Unsaved changes").await;
    browser.press("Save").await;
    let saved = "return document.querySelector('#editor-status[data-saved]') !== null";
    browser.wait_until_true("it is saved", saved).await;
}

/// Chooses the script in the form of a job, runs it, and gives the job's number.
async fn run_script(browser: &Browser, project: &str) -> String {
    browser.go("/compose/key/python-script").await;
    answer(browser, "script", &format!("{project}/squares.py")).await;
    browser.run("document.querySelector(\"[data-pick='f-a.script']\").click()").await;
    let row =
        "[...document.querySelectorAll('#folders [data-picked]')].find((row) => row.innerText.includes('squares.py'))";
    browser.wait_until_true("the script is listed", &format!("return Boolean({row})")).await;
    browser.settled().await;
    browser.run("document.querySelector(\"[name='a.script']\").value = ''").await;
    browser.run(&format!("{row}.click()")).await;
    let chosen = "return document.querySelector(\"[name='a.script']\").value.endsWith('/project/squares.py')";
    browser.wait_until_true("it is chosen", chosen).await;
    answer(browser, "time", "5 minutes").await;
    answer(browser, "memory", "50 MB").await;
    open_part(browser, "folder").await;
    answer(browser, "folder", project).await;
    submit(browser).await
}

/// The table and the picture on the job's page, and everything as an archive.
async fn see_results(browser: &Browser) {
    let has = |selector: &str| format!("return document.querySelector(\"{selector}\") !== null");
    let drawn = "return document.querySelector('.results-pictures img')?.naturalWidth === 1";
    browser.wait_until_true("the picture is drawn", drawn).await;
    browser.wait_until_true("it is over", &has("#job-results:not([hx-get])")).await;
    let kept = "const href = document.querySelector(\"#job-results a[href*='/archive?format=zip']\").href;
        fetch(href).then((answer) => answer.arrayBuffer()).then((bytes) => {
          const all = new TextDecoder('latin1').decode(bytes);
          window.archive = all.startsWith('PK') && ['squares.csv', 'plot.png'].every((name) => all.includes(name)); })";
    browser.run(kept).await;
    browser.wait_until_true("the archive holds both", "return window.archive ?? 'nothing yet'").await;
    browser.press("squares.csv").await;
    let table = "return [...document.querySelectorAll('#file-content td')].map((cell) => cell.innerText).join() === '2,4,3,9,5,25'";
    browser.wait_until_true("the table is shown", table).await;
    browser.back().await;
    browser.wait_until_true("back on the job's page", &has("#job-results")).await;
}

/// Makes a link to what the page is about and gives its path on the dashboards' origin.
async fn make_link(portal: &TestApp, browser: &Browser) -> String {
    browser.fill("label", "Kim").await;
    browser.press("Create guest link").await;
    browser.find("main > .alert .qr").await;
    let link = browser.run("return document.querySelector('main > .alert code').textContent").await;
    link.as_str().unwrap().strip_prefix(&portal.dashboards_url).expect("the dashboards' origin").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_is_brought_run_taken_home_and_shown() {
    let (portal, _, _tessa) = connected("tessa").await;
    let folder = Folder::new("tessa", "true");
    let local = tempfile::tempdir().unwrap();
    write_project(&local.path().join("project"));
    let browser = Browser::open(&portal.url, 1280).await;
    browser.sign_in("tessa").await;
    browser.go(&format!("/files/key?path={}", folder.path)).await;
    let ready = "return document.querySelector('[data-upload-buttons]')?.hidden === false";
    browser.wait_until_true("uploading is ready", ready).await;
    browser.drop_files(&[&local.path().join("project")]).await;
    browser.wait_until_true("the folder is there", &line_is("project", "done")).await;
    edit_script(&browser).await;
    let project = format!("{}/project", folder.path);
    let job = run_script(&browser, &project).await;
    assert_eq!(ended("tessa", &job).await, "COMPLETED");
    see_results(&browser).await;

    // A colleague without an account looks at the picture on a phone.
    browser.press("plot.png").await;
    browser.press("Share").await;
    let link = make_link(&portal, &browser).await;
    let phone = Browser::open(&portal.dashboards_url, 390).await;
    phone.go(&link).await;
    let drawn = "return document.querySelector('.guest-picture')?.naturalWidth === 1";
    phone.wait_until_true("the guest sees the picture", drawn).await;
    phone.find("#guest-files a[download]").await;

    // And sends something back without seeing what is there.
    browser.go(&format!("/files/key/share?path={project}")).await;
    browser.run("document.querySelector('[name=kind][value=drop-box]').click()").await;
    let link = make_link(&portal, &browser).await;
    phone.go(&link).await;
    let file = local.path().join("comments.txt");
    std::fs::write(&file, "Looks right.").unwrap();
    phone.find("[data-drop-target]:not([hidden])").await;
    phone.find("[data-drop-input]").await.send_keys(file.to_str().unwrap()).await.unwrap();
    let sent = "return document.querySelector('[data-drop-list] [data-line-text]')?.textContent === 'Uploaded'";
    phone.wait_until_true("it is sent", sent).await;
    assert!(!phone.text().await.contains("squares"), "guests see nothing of the folder");
    phone.close().await;
    browser.go(&format!("/files/key?path={project}")).await;
    browser.wait_for_text("comments.txt").await;
    folder.tell(&format!("test \"$(cat {project}/comments.txt)\" = 'Looks right.'"));
    browser.close().await;
}
