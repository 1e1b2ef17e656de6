//! The pages of dashboards in a real browser, wide and on a phone, with a cluster behind them.

use super::{EVIL, Run};
use crate::accessibility::audit;
use crate::folders::{Folder, with_alice};
use crate::queue::{cancel, connected, submit, wait_for_list};
use crate::support::app::START;
use crate::support::browser::Browser;
use crate::support::wait::wait_until;
use crate::support::{Page, TestApp};

/// Looks at the page that is open. A phone makes a page that is too wide smaller, so its width tells.
async fn look(browser: &Browser, place: &str) {
    let too_wide = "return innerWidth - Math.max(screen.width, outerWidth)";
    let too_wide = browser.run(too_wide).await.as_i64().unwrap();
    assert!(too_wide <= 0, "{place} is wider than the screen by {too_wide}");
    audit(browser, place).await;
}

/// A name that breaks careless layouts.
const LONG: &str = "Wolfeschlegelsteinhausenbergerdorffwelchevoralternwarengewissenhaft/schafers";

/// Dashboards in many states, and what the page says of each.
async fn fill(portal: &TestApp) -> Vec<(i64, &'static str)> {
    let run = |state| Run { state, started_at: Some(START.0), ..Run::default() };
    let waiting = Run { state: "waiting", ..Run::default() };
    let preparing = Run {
        stage: "preparing",
        message: "Building the environment: installing tensorboard 2.21.0 with pip.",
        ..run("starting")
    };
    let starting = Run { stage: "starting", message: "Starting the dashboard.", ..run("starting") };
    let reaching = Run { message: "The login node couldn't reach the dashboard on node n1.", ..run("ready") };
    let stopping = Run { stop: "person", ..run("ready") };
    let refused = Run {
        state: "over",
        end: "refused",
        message: "sbatch: error: Invalid account or account/partition combination specified",
        ..Run::default()
    };
    let mut boards = Vec::new();
    let path = format!("/scratch/alice/{}", LONG.repeat(3));
    for (title, run, words) in [
        ("Waiting", waiting, "Waiting in the queue"),
        (LONG, preparing, "Preparing the environment"),
        ("Starting", starting, "The dashboard will be ready in a moment."),
        ("Reaching", reaching, "Connecting to the dashboard"),
        ("Stopping", stopping, "Cancelling the job."),
        (EVIL, refused, "Slurm rejected the job"),
    ] {
        let board = portal.put_board("alice", title, &["/scratch/alice/runs", &path]).await;
        portal.put_run(board, run).await;
        boards.push((board, words));
    }
    boards
}

async fn audit_all(width: u32) {
    let (portal, _admin, alice) = with_alice().await;
    let logs = Folder::new("alice", "mkdir -p runs/a runs/b; touch runs/{a,b}/events.out.tfevents.1.x");
    let page = alice.get(&format!("/files/key?path={}/runs/a&wait=true", logs.path)).await;
    let here = page.attribute("#files-rows a[href^='/dashboards/new']", "href");
    let place = format!("{}/runs/a", logs.path.replace("/scratch/alice", "$SCRATCH"));
    assert_eq!(alice.get(&here).await.attribute("#f-place", "value"), place);
    let boards = fill(&portal).await;
    let last = boards.last().unwrap().0;
    for label in ["Prof. Smith", LONG] {
        let form = [("label", label), ("days", "7"), ("passphrase", "")];
        assert_eq!(alice.post(&format!("/dashboards/{last}/guest-links"), &form).await.status, 303);
    }
    let browser = Browser::open(&portal.url, width).await;
    browser.sign_in("alice").await;
    browser.go("/dashboards").await;
    browser.wait_for_text("Waiting").await;
    look(&browser, "/dashboards").await;
    for (board, words) in &boards {
        browser.go(&format!("/dashboards/{board}")).await;
        browser.wait_for_text(words).await;
        look(&browser, words).await;
    }
    browser.go(&format!("/dashboards/{last}?do=share")).await;
    browser.press("Create guest link").await;
    browser.wait_for_text("There is a problem").await;
    look(&browser, "a link without a label").await;
    browser.fill("label", "A reviewer").await;
    browser.press("Create guest link").await;
    browser.wait_for_text("be shown again").await;
    look(&browser, "a link").await;

    browser.go("/dashboards/new?place=/scratch/alice/other").await;
    browser.wait_for_text(&format!("{}/runs", logs.path)).await;
    look(&browser, "/dashboards/new").await;
    browser.run("[...document.querySelectorAll('#dashboard-found input')].find((one) => one.value.startsWith('/scratch/alice/folders-')).click()").await;
    browser.press("Add another folder").await;
    let script = "return document.activeElement.id";
    wait_until("the new field is in focus", async || browser.run(script).await == "f-place-3").await;
    browser.settled().await;
    browser.run("document.querySelector('#f-kind-mlflow').click()").await;
    let script = "return document.querySelectorAll('[name=add]').length";
    wait_until("the form fits MLflow", async || browser.run(script).await == 0).await;
    // Other tests may have left runs of MLflow there, or not.
    let script = "return Boolean(document.querySelector('#dashboard-found')) && !document.querySelector('#dashboard-found .skeleton')";
    browser.wait_until_true("the search has ended", script).await;
    look(&browser, "/dashboards/new for MLflow").await;
    browser.press("Create dashboard").await;
    browser.wait_for_text("MLflow shows one tracking folder").await;
    look(&browser, "a dashboard that cannot be").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_readable_on_a_desk() {
    audit_all(1280).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_readable_on_a_phone() {
    audit_all(390).await;
}

/// Says that it is being prepared, waits for a word, and then answers as a dashboard does, as far as the first greeting.
const BOARD: &str = r#"
import hashlib, hmac, json, os, secrets, socket, time

def tell(**what):
    with open("state.new", "w") as file:
        json.dump(dict(what, at=int(time.time())), file)
    os.replace("state.new", "state.json")

tell(stage="preparing", message="Building the environment.")
while not os.path.exists("go"):
    time.sleep(0.1)
secret = secrets.token_bytes(32)
door = socket.create_server(("0.0.0.0", 0))
tell(stage="ready", message="", port=door.getsockname()[1], secret=secret.hex())
while True:
    guest, _ = door.accept()
    theirs = guest.makefile("rb").readline().split()[1]
    ours = secrets.token_hex(32).encode()
    proof = hmac.new(secret, b"board" + theirs + ours, hashlib.sha256).hexdigest()
    guest.sendall(ours + b" " + proof.encode() + b"\n")
"#;

#[tokio::test(flavor = "multi_thread")]
async fn open_page_shows_when_the_dashboard_is_ready() {
    let (portal, _admin, dave) = connected("dave").await;
    let folder = Folder::new("dave", &format!("cat >board.py <<'END'\n{BOARD}\nEND"));
    let script = format!("cd {} && exec python3 board.py", folder.path);
    let job = submit("dave", &script, &["-o", "/dev/null", "-t", "5", "-n", "1"]);
    let board = portal.put_board("dave", "Curves", &["/scratch/dave/runs"]).await;
    let number = Some(job.parse().unwrap());
    portal.put_run(board, Run { state: "waiting", number, folder: &folder.path, ..Run::default() }).await;
    let path = format!("/dashboards/{board}");
    let browser = Browser::open(&portal.url, 1280).await;
    browser.sign_in("dave").await;
    browser.go(&path).await;
    browser.wait_for_text("Building the environment.").await;
    assert_eq!(dave.get(&format!("{path}/open")).await.location(), path, "not yet");

    folder.tell(&format!("touch {}/go", folder.path));
    browser.wait_for_text("Open TensorBoard").await;
    // The new part is there a moment before the focus goes to it.
    let focus = "return document.activeElement.innerText.trim()";
    wait_until("the focus is on the button", async || {
        browser.run(focus).await.as_str().unwrap_or_default().starts_with("Open TensorBoard")
    })
    .await;
    let said = "return document.querySelector('#announcer').textContent";
    wait_until("it is said aloud", async || browser.run(said).await == "The dashboard is ready").await;
    look(&browser, "a dashboard that is ready").await;
    let link = browser.find("[data-dashboard-ready]").await;
    assert_eq!(link.attr("rel").await.unwrap().as_deref(), Some("noopener"));
    assert_eq!(link.attr("target").await.unwrap().as_deref(), Some("_blank"));
    let entered = dave.get(&format!("{path}/open")).await;
    assert_eq!(entered.status, 303);
    let ticket = entered.location().strip_prefix(&format!("{}/enter/", portal.dashboards_url));
    assert!(ticket.is_some_and(|ticket| ticket.len() >= 22), "{}", entered.location());
    let again = dave.get(&format!("{path}/open")).await;
    assert_ne!(again.location(), entered.location(), "each time a new ticket");
    let list = dave.get("/dashboards").await;
    assert!(list.select_text(".dashboard-row").contains("Open"), "{}", list.text());

    let page = dave.get(&format!("/jobs/key/{job}")).await;
    let there = page.attribute("#job-live a[href^='/dashboards/new']", "href");
    assert_eq!(there, format!("/dashboards/new?cluster=key&job={job}"), "what it wrote is searched for there");

    // Someone who works elsewhere on the page is left alone; the state is renewed all the same.
    browser.run("document.querySelector('#f-label').focus()").await;
    cancel("dave", &job);
    browser.wait_for_text("The job was cancelled on the cluster").await;
    assert_eq!(browser.run("return document.activeElement.id").await, "f-label");
    browser.close().await;
}

/// *Open TensorBoard* on a job's page leads to a form in which the folder that the job wrote to is selected.
#[tokio::test(flavor = "multi_thread")]
async fn form_opened_from_a_job_selects_its_folder() {
    let (portal, _admin, dave) = connected("dave").await;
    let other = Folder::new("dave", "mkdir -p old; touch -d 2020-01-01 old/events.out.tfevents.1.x");
    let folder = Folder::new("dave", "mkdir -p old; touch -d 2020-01-01 old/events.out.tfevents.1.x");
    let script = "mkdir -p out/run; touch out/run/events.out.tfevents.2.x; touch written; sleep 200";
    let job = submit("dave", script, &["-D", &folder.path, "-o", "/dev/null", "-t", "5", "-n", "1"]);
    let path = format!("/jobs/key/{job}");
    let offers = |page: &Page| page.select_text("main").contains("Running");
    let page = wait_for_list(&dave, &path, "the job runs", offers).await;
    let there = page.attribute("#job-live a[href^='/dashboards/new']", "href");
    // The search is remembered for a while, so it must not begin too early.
    folder.tell(&format!("until [ -e {}/written ]; do sleep 0.1; done", folder.path));

    let browser = Browser::open(&portal.url, 1280).await;
    browser.sign_in("dave").await;
    browser.go(&there).await;
    browser.wait_for_text("Folders found").await;
    let ticked = "return [...document.querySelectorAll('[name=place]:checked')].map((one) => one.value).join()";
    assert_eq!(browser.run(ticked).await, format!("{}/out/run", folder.path), "and none of {}", other.path);
    let left = "return document.querySelectorAll('#dashboard-found input[name=job]').length";
    assert_eq!(browser.run(left).await, 0, "it is selected once: whoever takes it away is not asked again");
    look(&browser, "/dashboards/new for a job").await;
    cancel("dave", &job);
    browser.close().await;
}
