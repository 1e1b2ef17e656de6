//! Composing jobs in a real browser: a newcomer's first training, a sweep, a job that is mended, a recipe of the PI's.

use crate::compose::{ended, on_cluster};
use crate::queue::{connected, wait_for_list};
use crate::support::TestApp;
use crate::support::browser::Browser;
use crate::support::wait::{wait_for, wait_until};

/// Types into the field of a question.
pub async fn answer(browser: &Browser, key: &str, text: &str) {
    let field = browser.find(&format!("[name='a.{key}']")).await;
    field.clear().await.unwrap();
    field.send_keys(text).await.unwrap();
}

/// Chooses in the list of a question.
async fn choose(browser: &Browser, key: &str, value: &str) {
    browser
        .run(&format!(
            "const list = document.querySelector(\"[name='a.{key}']\"); list.value = '{value}'; \
             list.dispatchEvent(new Event('change', {{ bubbles: true }}));"
        ))
        .await;
}

/// Waits until the script beside the form holds something.
async fn wait_for_script(browser: &Browser, words: &str) {
    let script = "const all = document.querySelector('.script'); return all ? all.innerText : ''";
    wait_until(&format!("the script has {words}"), async || {
        browser.run(script).await.as_str().unwrap_or_default().contains(words)
    })
    .await;
}

/// Submits the form and gives the number of the job whose page comes of it.
pub async fn submit(browser: &Browser) -> String {
    browser.press("Submit job").await;
    wait_for("the page of a job", async || {
        let path = browser.path().await;
        // Not `/jobs/key/12/again`, where the form may be that is being sent.
        let number = path.strip_prefix("/jobs/key/").filter(|number| !number.contains('/'));
        match number {
            Some(number) => Ok(number.to_owned()),
            None => Err(format!("{path}: {}", browser.text().await)),
        }
    })
    .await
}

/// From *New job* to a finished training: a Python environment from wheels, data from an archive, results copied back.
#[tokio::test(flavor = "multi_thread")]
async fn new_user_runs_a_first_training_job() {
    let (portal, _, _tessa) = connected("tessa").await;
    let browser = Browser::open(&portal.url, 1280).await;
    browser.sign_in("tessa").await;
    browser.press("New job").await;
    browser.wait_for_text("Choose what you want to do").await;
    browser.press("Run a Python script").await;
    browser.wait_for_text("Resources").await;

    answer(&browser, "script", "$HOME/examples/learn.py").await;
    answer(&browser, "arguments", "--epochs 12").await;
    answer(&browser, "job_name", "first").await;
    answer(&browser, "time", "10 minutes").await;
    answer(&browser, "memory", "300 MB").await;
    choose(&browser, "environment", "wheels").await;
    wait_for_script(&browser, "make_environment").await;
    answer(&browser, "packages", "halfmoons").await;
    answer(&browser, "wheels", "/project/examples/wheels").await;
    open_part(&browser, "data").await;
    answer(&browser, "data", "/project/examples/moons.tar.gz").await;
    open_part(&browser, "keep").await;
    browser.run("document.querySelector(\"[name='a.keep']\").click()").await;
    wait_for_script(&browser, "moons.tar.gz").await;
    wait_for_script(&browser, "--find-links").await;
    // A line leads to the question that made it.
    browser
        .run("[...document.querySelectorAll('.script a')].find((a) => a.innerText.includes('--time=')).click()")
        .await;
    assert_eq!(browser.run("return document.activeElement.name").await, "a.time");

    let job = submit(&browser).await;
    assert_eq!(ended("tessa", &job).await, "COMPLETED");
    let output = on_cluster("tessa", &format!("cat $SCRATCH/portolan/first-{job}.out"));
    assert!(output.contains("learned: accuracy"), "{output}");
    let results = on_cluster("tessa", &format!("find $SCRATCH/portolan -name metrics.csv -path '*{job}*'"));
    assert!(!results.trim().is_empty(), "the results were copied back: {output}");
    browser.wait_for_text("Completed").await;
    browser.close().await;
}

/// Opens the folded part that a question is in.
pub async fn open_part(browser: &Browser, key: &str) {
    browser
        .run(&format!(
            "for (let fold = document.querySelector(\"[name='a.{key}']\").closest('details'); fold; \
             fold = fold.parentElement.closest('details')) fold.open = true;"
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_of_twelve_points_is_one_array() {
    let (portal, _, tessa) = connected("tessa").await;
    let browser = Browser::open(&portal.url, 1280).await;
    browser.sign_in("tessa").await;
    browser.go("/compose/key/sweep").await;
    answer(&browser, "parameters", "lr = 0.1, 0.01, 0.001\nbatch = 16, 32, 64, 128").await;
    answer(&browser, "command", "echo \"got $lr and $batch\"").await;
    answer(&browser, "job_name", "twelve").await;
    answer(&browser, "time", "5m").await;
    answer(&browser, "memory", "50 MB").await;
    browser.wait_for_text("12 tasks").await;
    wait_for_script(&browser, "#SBATCH --array=0-11").await;
    let job = submit(&browser).await;
    assert_eq!(ended("tessa", &job).await, "COMPLETED");
    // The accounting tells of tasks only once they have begun.
    wait_until("every point ran", async || {
        let count = format!("cat $SCRATCH/portolan/twelve-{job}_*.out | grep ^got | sort -u | wc -l");
        on_cluster("tessa", &count).trim() == "12"
    })
    .await;
    wait_for_list(&tessa, &format!("/jobs/key/{job}"), "all points are told", |page| {
        let words = page.select_text("main");
        words.contains("lr=0.1 batch=16") && words.contains("lr=0.001 batch=128")
    })
    .await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn job_out_of_memory_is_resubmitted_with_the_proposed_memory() {
    let (portal, _, tessa) = connected("tessa").await;
    // Needs more than it is given at first, and less than is proposed then.
    on_cluster(
        "tessa",
        "printf '%s\\n' 'import time' 'hoard = bytearray(150 * 2**20)' 'time.sleep(4)' 'print(\"enough\")' >\"$SCRATCH/large.py\"",
    );
    let browser = Browser::open(&portal.url, 390).await;
    browser.sign_in("tessa").await;
    browser.go("/compose/key/python-script").await;
    answer(&browser, "script", "$SCRATCH/large.py").await;
    answer(&browser, "job_name", "large").await;
    answer(&browser, "time", "5m").await;
    answer(&browser, "memory", "100 MB").await;
    wait_for_script(&browser, "--mem=100M").await;
    let job = submit(&browser).await;
    assert_eq!(ended("tessa", &job).await, "OUT_OF_MEMORY");
    wait_for_list(&tessa, &format!("/jobs/key/{job}"), "it ran out of memory", |page| {
        page.select_text("main").contains("Resubmit with these options")
    })
    .await;
    browser.go(&format!("/jobs/key/{job}")).await;
    browser.press("Resubmit with these options").await;
    browser.wait_for_text("Suggestion applied").await;
    let again = submit(&browser).await;
    assert_ne!(again, job);
    assert_eq!(ended("tessa", &again).await, "COMPLETED");
    let output = on_cluster("tessa", &format!("cat $SCRATCH/portolan/large-{again}.out"));
    assert!(output.contains("enough"), "{output}");
    browser.close().await;
}

/// A PI publishes a recipe with a fixed answer, and a member uses it.
#[tokio::test(flavor = "multi_thread")]
async fn member_uses_a_recipe_published_by_the_pi() {
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    let lab = portal.group(&admin, "Smith Lab").await;
    let pi = portal.join(&portal.invite(&admin, lab, "pi").await, "asmith").await;
    let member = portal.join(&portal.invite(&admin, lab, "member").await, "tessa").await;
    portal.add_cluster("key").await;
    for (client, name) in [(&pi, "asmith"), (&member, "tessa")] {
        client.prepare("key", name).await;
        client.connect("key").await;
    }
    on_cluster("tessa", "echo 'print(\"by recipe\")' >\"$SCRATCH/count.py\"");
    let desk = Browser::open(&portal.url, 1280).await;
    desk.sign_in("asmith").await;
    desk.go("/compose/key/python-script").await;
    answer(&desk, "script", "$SCRATCH/count.py").await;
    answer(&desk, "time", "7m").await;
    answer(&desk, "memory", "60 MB").await;
    wait_for_script(&desk, "--mem=60M").await;
    desk.press("Save as recipe…").await;
    desk.fill("title", "Count our cells").await;
    desk.run("document.querySelector('[name=\"l.time\"]').click()").await;
    desk.run(&format!("document.querySelector('[name=who][value=\"{lab}\"]').click()")).await;
    desk.press("Save recipe").await;
    desk.wait_for_text("Count our cells").await;
    desk.close().await;

    let phone = Browser::open(&portal.url, 390).await;
    phone.sign_in("tessa").await;
    phone.go("/compose").await;
    phone.press("Count our cells").await;
    phone.wait_for_text("Set by the recipe").await;
    assert_eq!(phone.run("return document.querySelector(\"[name='a.time']\").readOnly").await, true);
    let job = submit(&phone).await;
    assert_eq!(ended("tessa", &job).await, "COMPLETED");
    let limit = on_cluster("tessa", &format!("scontrol show job {job} -o | grep -o 'TimeLimit=[^ ]*'"));
    assert_eq!(limit.trim(), "TimeLimit=00:07:00");
    phone.close().await;
}

/// What the cluster doesn't have is said at the field, and the button stays in reach on every screen.
#[tokio::test(flavor = "multi_thread")]
async fn missing_file_is_told_at_its_field_while_submit_stays_in_reach() {
    let (portal, _, _tessa) = connected("tessa").await;
    on_cluster("tessa", "echo 'print(1)' >\"$SCRATCH/here.py\"");
    for width in [1280, 390] {
        let browser = Browser::open(&portal.url, width).await;
        browser.sign_in("tessa").await;
        browser.go("/compose/key/python-script").await;
        answer(&browser, "script", "$SCRATCH/gone.py").await;
        let told = "const line = document.getElementById('f-a.script-warning'); \
            return !line.hidden && line.innerText.includes(\"gone.py doesn't exist\")";
        browser.wait_until_true("the field says that the file is missing", told).await;
        answer(&browser, "script", "$SCRATCH/here.py").await;
        let fine = "return document.getElementById('f-a.script-warning').hidden \
            && document.getElementById('checks').innerText.includes('no problems found')";
        browser.wait_until_true("the file is found", fine).await;
        for place in ["0", "document.body.scrollHeight / 2", "document.body.scrollHeight"] {
            let seen = format!(
                "window.scrollTo(0, {place}); \
                 const box = document.querySelector('.compose-submit .btn').getBoundingClientRect(); \
                 return box.top >= 0 && box.bottom <= window.innerHeight"
            );
            assert_eq!(browser.run(&seen).await, true, "{width} px, scrolled to {place}");
        }
        browser.close().await;
    }
}
