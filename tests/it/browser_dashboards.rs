//! Dashboards in a real browser, with a real TensorBoard and a real MLflow: from the training to the curve, to a link
//! for someone without an account, to the moment the link is taken back.

use fantoccini::Locator;
use portolan::domain::DashboardId;

use crate::dashboard_access::{OWNER, stopped};
use crate::queue::connected;
use crate::support::browser::{Browser, CountedClicks};
use crate::support::cluster::Cluster;
use crate::support::wait::{PATIENCE, wait_for, wait_until};
use crate::support::{Client, PASSWORD, TestApp};

/// Runs the training script that the cluster ships, as a job, and waits for its end.
fn train() {
    let script = "cd ~/examples && sbatch --wait --time=5 train.sh --epochs 10";
    let done = Cluster::get().script(&["exec", "--as", OWNER, "bash", "-lc", script]);
    assert!(done.status.success(), "{done:?}");
}

/// Asks for a dashboard of a folder through the pages, and waits on its page until it is ready.
async fn open_board(browser: &Browser, kind: &str, place: &str) -> DashboardId {
    browser.go(&format!("/dashboards/new?kind={kind}")).await;
    let field = browser.find("#f-place").await;
    field.clear().await.unwrap();
    field.send_keys(place).await.unwrap();
    browser.press("Create dashboard").await;
    wait_until_ready(browser).await
}

/// Waits on a dashboard's page until it can be opened.
async fn wait_until_ready(browser: &Browser) -> DashboardId {
    // The first one makes the environment.
    let ready = Locator::Css("[data-dashboard-ready]");
    let waited = browser.window.wait().at_most(PATIENCE).for_element(ready).await;
    assert!(waited.is_ok(), "{}", browser.text().await);
    let path = browser.path().await;
    DashboardId(path.strip_prefix("/dashboards/").unwrap().parse().unwrap())
}

/// Waits until the dashboard inside the frame says something, with the curves that a script finds.
async fn wait_in_frame(browser: &Browser, what: &str, script: &str) {
    browser.find("iframe.dashboard-frame").await;
    let inside_script = inside(script);
    let text = inside("return frame.contentWindow.location.href + '\\n' + page.body.innerText");
    wait_for(what, async || match browser.run(&inside_script).await.as_bool() {
        Some(true) => Ok(()),
        _ => Err(browser.run(&text).await),
    })
    .await;
}

/// A script that looks at the page within the frame.
fn inside(script: &str) -> String {
    format!(
        "const frame = document.querySelector('iframe.dashboard-frame'); \
         const page = frame && frame.contentDocument; if (!page || !page.body) return false; {script}"
    )
}

/// A line that was really drawn: its path or its pixels are there.
const CURVE: &str = "const card = [...page.querySelectorAll('scalar-card')].find(card => card.innerText.includes('accuracy')); \
    if (!card) { page.querySelector('app-header-reload button')?.click(); return false; } \
    const drawn = card.querySelector('line-chart svg path[d]'); \
    if (drawn && drawn.getAttribute('d').length > 20) return true; \
    const canvas = card.querySelector('line-chart canvas'); \
    return Boolean(canvas) && canvas.width > 0 && card.innerText.includes('0.9');";
/// MLflow's drawing of a figure over the steps of a run.
const MLFLOW_CURVE: &str = "const lines = page.querySelectorAll('.js-plotly-plot .scatterlayer path.js-line'); \
    return [...lines].some(line => (line.getAttribute('d') || '').length > 20) && page.body.innerText.includes('accuracy');";

/// Makes a link on the dashboard's page and gives it.
async fn share(browser: &Browser, id: DashboardId, label: &str) -> String {
    browser.go(&format!("/dashboards/{id}?do=share")).await;
    browser.fill("label", label).await;
    browser.press("Create guest link").await;
    browser.wait_for_text("Guest link created").await;
    let link = browser.run("return document.querySelector('.alert code').innerText").await;
    link.as_str().unwrap().trim().to_owned()
}

/// Someone without an account opens a link, sees the same, and nothing else; then the link is taken back.
async fn guest_sees(portal: &TestApp, owner: &Browser, id: DashboardId, home: &str, script: &str) {
    let link = share(owner, id, "Prof. Example").await;
    assert!(link.starts_with(&format!("{}/s/", portal.dashboards_url)), "{link}");
    let guest = Browser::open(&portal.dashboards_url, 1280).await;
    guest.window.goto(&link).await.unwrap();
    let place = guest.path().await;
    assert!(place.starts_with("/b/"), "the secret has left the address: {place}");
    if !home.is_empty() {
        // Given while the first page may still be on its way.
        guest.go(&format!("{place}{home}")).await;
    }
    wait_in_frame(&guest, "the guest sees the same", script).await;
    if !home.is_empty() {
        guest.window.refresh().await.unwrap();
        wait_in_frame(&guest, "a reload leads to the same place", script).await;
        assert!(guest.run("return location.hash").await.as_str().unwrap().contains(home));
    }
    let text = guest.text().await;
    assert!(text.contains("Shared by") && text.contains("read-only"), "{text}");
    assert!(!text.contains("Extend"), "{text}");
    // Neither the portal nor another dashboard.
    guest.window.goto(&portal.url).await.unwrap();
    assert_eq!(guest.path().await, "/sign-in");
    let another = place.replace("/b/", "/b/x");
    guest.go(&another).await;
    guest.wait_for_text("have access to this dashboard").await;
    guest.go(&place).await;
    guest.find("iframe.dashboard-frame").await;
    // Taken back: shut out, also by the page that is open.
    owner.go(&format!("/dashboards/{id}")).await;
    owner.press("Revoke…").await;
    owner.press("Revoke link").await;
    owner.wait_for_text("None. Nobody outside the portal").await;
    wait_until("the open page is shut out", async || {
        guest.run("document.dispatchEvent(new Event('visibilitychange'))").await;
        guest.text().await.contains("have access to this dashboard")
    })
    .await;
    guest.window.goto(&link).await.unwrap();
    guest.wait_for_text("This link was revoked").await;
    guest.close().await;
}

async fn owner_of(portal: &TestApp, _signed_in: &Client) -> Browser {
    let browser = Browser::open(&portal.url, 1280).await;
    browser.sign_in(OWNER).await;
    browser
}

/// TensorBoard, from the training script that everyone has to a link for a professor.
#[tokio::test(flavor = "multi_thread")]
async fn tensorboard_curves_are_shared_by_link_until_it_is_revoked() {
    train();
    let (portal, _, owner) = connected(OWNER).await;
    let browser = owner_of(&portal, &owner).await;
    let id = open_board(&browser, "tensorboard", "$SCRATCH/runs").await;
    browser.go(&format!("/dashboards/{id}/open")).await;
    wait_in_frame(&browser, "a curve is drawn", CURVE).await;
    let bar = browser.text().await;
    for words in ["TensorBoard", "Runs until", "Extend", "Share", "Stop"] {
        assert!(bar.contains(words), "the bar says {words}: {bar}");
    }
    guest_sees(&portal, &browser, id, "", CURVE).await;
    let link = share(&browser, id, "On a phone").await;
    let phone = Browser::open(&portal.dashboards_url, 390).await;
    phone.window.goto(&link).await.unwrap();
    let closed = "if (!page.querySelector('.expand-collapsed-sidebar')) return false;";
    wait_in_frame(&phone, "a curve beside a closed panel", &format!("{closed} {CURVE}")).await;
    phone.close().await;
    browser.close().await;
    stopped(&portal, id).await;
}

/// The same with MLflow.
#[tokio::test(flavor = "multi_thread")]
async fn mlflow_runs_are_shared_by_link_until_it_is_revoked() {
    train();
    let (portal, _, owner) = connected(OWNER).await;
    let browser = owner_of(&portal, &owner).await;
    let id = open_board(&browser, "mlflow", "$SCRATCH/mlruns").await;
    browser.go(&format!("/dashboards/{id}/open")).await;
    let follow = |link: &str| {
        format!(
            "const link = [...page.querySelectorAll('a')].find(link => /{link}/.test(link.getAttribute('href') || '')); \
             if (!link) return false; link.click(); return true;"
        )
    };
    let runs = "return /^#.experiments.[0-9]+.runs/.test(frame.contentWindow.location.hash) && \
        page.body.innerText.includes('moons');";
    wait_in_frame(&browser, "the experiment's runs, without a click", runs).await;
    wait_in_frame(&browser, "its run", &follow("runs[/][0-9a-f]{32}")).await;
    wait_in_frame(&browser, "its figures", &follow("model-metrics")).await;
    wait_in_frame(&browser, "a curve of MLflow is drawn", MLFLOW_CURVE).await;
    let mut hash = String::new();
    wait_until("the place inside is kept in the address", async || {
        let now = browser.run("return location.hash").await;
        now.as_str().unwrap_or_default().clone_into(&mut hash);
        hash.contains("model-metrics")
    })
    .await;
    guest_sees(&portal, &browser, id, &hash, MLFLOW_CURVE).await;
    browser.close().await;
    stopped(&portal, id).await;
}

/// A newcomer's first morning: from the first sign-in by the example to curves, in at most twelve clicks.
#[tokio::test(flavor = "multi_thread")]
async fn newcomer_reaches_the_examples_curves_in_twelve_clicks() {
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    portal.member(&admin, OWNER).await;
    portal.add_cluster("key").await;
    let mut member = CountedClicks::new(Browser::open(&portal.url, 1280).await);
    member.browser.go("/sign-in").await;
    member.browser.fill("name", OWNER).await;
    member.browser.fill("password", PASSWORD).await;
    member.press("Sign in").await;
    member.press("Connect").await;
    member.browser.fill("user", OWNER).await;
    member.press("Save").await;
    member.press("Create my key").await;
    member.browser.wait_for_text("SSH key created").await;
    let public_line = member.browser.find("figure.code code").await.text().await.unwrap();
    // What a person does on the centre's own page.
    let registered = Cluster::get().script(&["user", "key", OWNER, &public_line]);
    assert!(registered.status.success(), "{registered:?}");
    member.press("Connect").await;
    member.browser.wait_for_text("About this cluster").await;
    member.press("New job").await;
    member.press("Try an example").await;
    member.browser.wait_for_text("Learning rate").await;
    // Nobody watches the curves grow here.
    member.browser.run("document.querySelector(\"[name='a.pause']\").value = '0'").await;
    member.press("Submit job").await;
    member.browser.wait_for_text("Completed").await;
    member.press("Open TensorBoard").await;
    let ticked = "return document.querySelectorAll('#dashboard-found input:checked').length === 1";
    member.browser.wait_until_true("the job's folder is selected", ticked).await;
    member.press("Create dashboard").await;
    let id = wait_until_ready(&member.browser).await;
    // The button opens a new tab, which is looked at here instead.
    member.clicks += 1;
    member.browser.go(&format!("/dashboards/{id}/open")).await;
    wait_in_frame(&member.browser, "a curve is drawn", CURVE).await;
    assert!(member.clicks <= 12, "{} clicks", member.clicks);
    member.browser.close().await;
    stopped(&portal, id).await;
}
