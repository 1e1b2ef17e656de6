//! From a form to a job on the real cluster: what is typed arrives as typed, a form is one job, and nothing that a page
//! shows asks the cluster.

use crate::queue::{cancel, connected, connected_to, wait_for_list};
use crate::support::cluster::Cluster;
use crate::support::server::Server;
use crate::support::wait::{wait_for_value, wait_until};
use crate::support::{Client, Page};

/// Runs something on the cluster as a person and gives what it printed.
pub fn on_cluster(user: &str, command: &str) -> String {
    let done = Cluster::get().script(&["exec", "--as", user, "bash", "-c", command]);
    assert!(done.status.success(), "{command}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// The fields of the form on a page, with some of them changed.
pub fn filled(page: &Page, changes: &[(&str, &str)]) -> Vec<(String, String)> {
    let html = scraper::Html::parse_document(page.text());
    let fields =
        scraper::Selector::parse("#compose input, #compose select, #compose textarea, [form=compose]").unwrap();
    let chosen = scraper::Selector::parse("option[selected]").unwrap();
    let mut found: Vec<(String, String)> = Vec::new();
    for field in html.select(&fields) {
        let value = field.value();
        let (Some(name), false) = (value.attr("name"), value.name() == "button") else { continue };
        let is_off = matches!(value.attr("type"), Some("checkbox" | "radio")) && value.attr("checked").is_none();
        if is_off || value.attr("disabled").is_some() {
            continue;
        }
        let text = match value.name() {
            "select" => field.select(&chosen).next().and_then(|one| one.attr("value")).unwrap_or_default().to_owned(),
            "textarea" => field.text().collect::<String>().trim_start_matches('\n').to_owned(),
            _ => value.attr("value").unwrap_or_default().to_owned(),
        };
        found.push((name.to_owned(), text));
    }
    for (name, text) in changes {
        found.retain(|(known, _)| known != name);
        found.push(((*name).to_owned(), (*text).to_owned()));
    }
    found
}

pub async fn send(who: &Client, path: &str, fields: &[(String, String)]) -> Page {
    let pairs: Vec<(&str, &str)> = fields.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    who.post(path, &pairs).await
}

/// Submits a form and gives the number of the job that came of it.
pub async fn submitted(who: &Client, path: &str, fields: &[(String, String)]) -> String {
    let answer = send(who, path, fields).await;
    assert_eq!(answer.status, 303, "{}", answer.select_text("main"));
    job_of(who, answer.location()).await
}

/// The job that a submission's page leads to.
async fn job_of(who: &Client, submission: &str) -> String {
    let mut job = String::new();
    wait_until("the submission is a job", async || {
        let page = who.get(submission).await;
        let number = page.location().rsplit('/').next().unwrap_or_default().to_owned();
        if page.status == 303 && page.location().starts_with("/jobs/key/") {
            job.clone_from(&number);
        }
        !job.is_empty()
    })
    .await;
    job
}

/// Waits until a job has ended, and gives Slurm's word for how.
pub async fn ended(user: &str, job: &str) -> String {
    let mut state = String::new();
    wait_until("the job ends", async || {
        state = on_cluster(user, &format!("sacct -nXP -j {job} -o State | sort -u | tr '\\n' ' '"));
        !state.trim().is_empty()
            && !["PENDING", "RUNNING", "REQUEUED", "COMPLETING"].iter().any(|word| state.contains(word))
    })
    .await;
    state.trim().to_owned()
}

/// A script that ends well.
pub const OK: &str = "$SCRATCH/ok.py";

/// Makes it.
pub fn make_ok() {
    on_cluster("carol", "echo 'print(1)' >\"$SCRATCH/ok.py\"");
}

const PYTHON: &str = "/compose/key/python-script";

#[tokio::test(flavor = "multi_thread")]
async fn typed_arguments_reach_the_job_unchanged() {
    let (_portal, _, carol) = connected("carol").await;
    on_cluster(
        "carol",
        "mkdir -p \"$SCRATCH/it's here\" && printf '%s\\n' 'import sys, json' 'print(\"GOT\" + json.dumps(sys.argv[1:]))' > \"$SCRATCH/it's here/args \\$(id).py\"",
    );
    let typed = "'; rm -rf ~ #' '$(id)' '`id`' '\\' '%n %j' 'ünïcödé 漢字' \"$HOME\" 'a\"b' '*' '!!' --x=y";
    let form = carol.get(PYTHON).await;
    let fields = filled(
        &form,
        &[
            ("a.script", "$SCRATCH/it's here/args $(id).py"),
            ("a.arguments", typed),
            ("a.job_name", "typed"),
            ("a.memory", "200 MB"),
            ("a.time", "5 minutes"),
        ],
    );
    let job = submitted(&carol, PYTHON, &fields).await;
    assert_eq!(ended("carol", &job).await, "COMPLETED");
    let said = on_cluster("carol", &format!("cat $SCRATCH/portolan/typed-{job}.out"));
    let got = said.lines().find_map(|line| line.strip_prefix("GOT")).expect(&said);
    let got: Vec<String> = serde_json::from_str(got).unwrap();
    let home = on_cluster("carol", "printf %s \"$HOME\"");
    let wanted = ["; rm -rf ~ #", "$(id)", "`id`", "\\", "%n %j", "ünïcödé 漢字", &home, "a\"b", "*", "!!", "--x=y"];
    assert_eq!(got, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn resending_a_form_gives_one_job_and_a_changed_form_another() {
    let (_portal, _, carol) = connected("carol").await;
    make_ok();
    let form = carol.get(PYTHON).await;
    let changes = [("a.script", OK), ("a.job_name", "once"), ("a.time", "5m"), ("a.memory", "100 MB")];
    let fields = filled(&form, &changes);
    let both = tokio::join!(send(&carol, PYTHON, &fields), send(&carol, PYTHON, &fields));
    assert_eq!((both.0.status, both.1.status), (303, 303));
    assert_eq!(both.0.location(), both.1.location(), "a double click is one submission");
    let job = job_of(&carol, both.0.location()).await;
    assert_eq!(submitted(&carol, PYTHON, &fields).await, job, "sent again, it is the same job");
    // Someone goes back, changes something, and sends it again.
    let mut other = fields.clone();
    other.iter_mut().find(|(name, _)| name == "a.time").unwrap().1 = "6m".into();
    assert_ne!(submitted(&carol, PYTHON, &other).await, job);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_shown_at_their_field_and_nothing_is_submitted() {
    let (portal, _, carol) = connected("carol").await;
    let before = portal.snapshot().await;
    let form = carol.get(PYTHON).await;
    let long = "x".repeat(100_000);
    for (name, text, words) in [
        ("a.script", "", "Required"),
        ("a.script", "a\n#SBATCH --account=other", "single line"),
        ("a.script", "$PATH/x", "use $PATH here"),
        ("a.script", "a/../../b", "without “..”"),
        ("a.script", long.as_str(), "too long"),
        ("a.memory", "lots", "Enter an amount"),
        ("a.time", "0", "at least one minute"),
        ("a.cores", "-3", "Must be at least 1"),
        ("a.arguments", "'open", "quotation mark"),
        ("a.folder", "$SLURM_TMPDIR/x", "known before the job starts"),
        ("a.job_name", "two words", "without spaces"),
        ("s.script", "1..1000000", "at most 100000"),
    ] {
        let mut fields = filled(&form, &[("a.script", OK)]);
        fields.retain(|(known, _)| known != name);
        fields.push((name.to_owned(), text.to_owned()));
        let page = send(&carol, PYTHON, &fields).await;
        assert_eq!(page.status, 422, "{name}={text:.40}");
        assert!(page.select_text(".error-summary").contains(words), "{name}: {}", page.select_text(".error-summary"));
    }
    assert_eq!(portal.snapshot().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn preview_sends_no_command_to_the_cluster() {
    let server = Server::start();
    let (_portal, carol) = connected_to(&server, "carol").await;
    let form = carol.get(PYTHON).await;
    let count = || server.log().matches("Starting session: command for carol").count();
    // The first look at the queue comes after all looks around.
    wait_for_list(&carol, "/jobs", "a first look", |list| list.text().contains("fresh-dot")).await;
    let (begun, before) = (std::time::Instant::now(), count());
    for memory in 1..20 {
        let fields = filled(&form, &[("a.script", "x.py"), ("a.memory", &format!("{memory} GB"))]);
        let page = send(&carol, &format!("{PYTHON}/preview"), &fields).await;
        assert!(page.text().contains(&format!("--mem={memory}G")), "{}", page.text());
    }
    // The queue is looked at on its own account meanwhile: once a second, and once more that was under way.
    let (asked, looks) = (count() - before, usize::try_from(begun.elapsed().as_secs()).unwrap() + 2);
    assert!(asked <= looks, "{asked} commands for 19 previews, in the time of {looks} looks");
}

#[tokio::test(flavor = "multi_thread")]
async fn hand_edited_script_is_kept_as_written() {
    let (_portal, _, carol) = connected("carol").await;
    make_ok();
    let rework = format!("{PYTHON}/edit");
    let form = carol.get(PYTHON).await;
    let changes = [("a.script", OK), ("a.job_name", "byhand"), ("a.memory", "100 MB"), ("edit", "yes")];
    let page = send(&carol, &rework, &filled(&form, &changes)).await;
    let script = page.select_text("#own");
    assert!(script.contains("#SBATCH --mem=100M"), "{script}");
    let own = format!("{}\necho by hand\n", script.trim_start().replace("--mem=100M", "--mem=150M"));
    // The time changes in the form, the memory stays by hand.
    let page = send(&carol, &rework, &filled(&page, &[("own", &own), ("a.time", "7m")])).await;
    let merged = page.select_text("#own");
    assert!(merged.contains("--mem=150M") && merged.contains("--time=00:07:00"), "{merged}");
    let words = page.select_text("#composed");
    assert!(words.contains("no longer follow the form") && words.contains("Memory"), "{words}");
    let job = submitted(&carol, PYTHON, &filled(&page, &[])).await;
    assert_eq!(ended("carol", &job).await, "COMPLETED");
    assert!(on_cluster("carol", &format!("cat $SCRATCH/portolan/byhand-{job}.out")).contains("by hand"));
    // Taken back, the form has it again.
    let page = send(&carol, &rework, &filled(&page, &[("back", "0")])).await;
    let taken = page.select_text("#own");
    assert!(taken.contains("--mem=100M") && taken.contains("echo by hand"), "{taken}");
}

#[tokio::test(flavor = "multi_thread")]
async fn slurm_refusal_is_shown_at_the_field_to_change() {
    let (_portal, _, carol) = connected("carol").await;
    let form = carol.get(PYTHON).await;
    let fields = filled(&form, &[("a.script", OK), ("a.account", "def-nobody")]);
    let answer = send(&carol, PYTHON, &fields).await;
    assert!(answer.location().starts_with("/compose/again/"), "{}", answer.location());
    let page = carol.get(answer.location()).await;
    let words = page.select_text("main");
    assert!(words.contains("The cluster rejected this job"), "{words}");
    assert!(page.select_text("[data-question=account] .error").len() > 20, "the field says it, too");
    assert!(page.text().contains("value=\"$SCRATCH/ok.py\""), "what was typed is still there");
    assert!(page.select_text(".said").contains("Invalid account"), "Slurm's words are one click away");
}

#[tokio::test(flavor = "multi_thread")]
async fn job_submitted_elsewhere_can_be_resubmitted_from_its_script() {
    let (_portal, _, carol) = connected("carol").await;
    let job = crate::queue::submit(
        "carol",
        "echo from a terminal",
        &["-o", "/dev/null", "-t", "3", "--mem=120M", "-J", "elsewhere", "--nice=5"],
    );
    assert_eq!(ended("carol", &job).await, "COMPLETED");
    let list =
        crate::queue::wait_for_list(&carol, "/jobs", "it is there", |list| !crate::queue::row(list, &job).is_empty());
    list.await;
    let page = carol.get(&format!("/jobs/key/{job}/again?option=--mem=240M")).await;
    assert_eq!(page.status, 200, "{}", page.select_text("main"));
    let script = page.select_text(".script");
    assert!(script.contains("echo from a terminal") && script.contains("--mem=240M"), "{script}");
    cancel("carol", &job);
}

/// Right-sizing compares with what the form requests now, not with what the earlier job requested.
#[tokio::test(flavor = "multi_thread")]
async fn right_sizing_follows_the_form() {
    let (_portal, _, carol) = connected("carol").await;
    make_ok();
    let form = carol.get(PYTHON).await;
    let fields = |time: &str| filled(&form, &[("a.script", OK), ("a.time", time)]);
    let job = submitted(&carol, PYTHON, &fields("2h")).await;
    assert_eq!(ended("carol", &job).await, "COMPLETED");
    for (time, words) in [("4h", "instead of 4:00:00"), ("3h", "instead of 3:00:00")] {
        let path = format!("{PYTHON}/right-size");
        wait_until(words, async || send(&carol, &path, &fields(time)).await.text().contains(words)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn submissions_of_others_are_not_found() {
    let (portal, admin, carol) = connected("carol").await;
    make_ok();
    let form = carol.get(PYTHON).await;
    let fields = filled(&form, &[("a.script", OK), ("a.time", "5m")]);
    let answer = send(&carol, PYTHON, &fields).await;
    let id = answer.location().rsplit('/').next().unwrap().to_owned();
    let bob = portal.member(&admin, "bob").await;
    for path in [format!("/compose/again/{id}"), format!("/submissions/{id}"), "/compose/key/python-script".into()] {
        assert_eq!(bob.get(&path).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn example_is_filled_in_and_leaves_curves() {
    const EXAMPLE: &str = "/compose/key/training-example";
    let (_portal, _, carol) = connected("carol").await;
    let link = carol.get("/compose").await.attribute("a[href^='/compose/example']", "href");
    assert_eq!(link, "/compose/example?cluster=key");
    for path in ["/compose/example", link.as_str()] {
        assert_eq!(carol.get(path).await.location(), EXAMPLE, "{path}");
    }
    assert_eq!(carol.get("/compose/example?cluster=nowhere").await.status, 404);
    let form = carol.get(EXAMPLE).await;
    assert!(form.select_all("[data-problem]").is_empty(), "{}", form.select_text("#composed"));
    let job = submitted(&carol, EXAMPLE, &filled(&form, &[("a.pause", "0")])).await;
    assert_eq!(ended("carol", &job).await, "COMPLETED");
    let said = on_cluster("carol", &format!("cat $SCRATCH/portolan/training-example-{job}.out"));
    assert!(said.contains("epoch  40") && said.contains("Open TensorBoard"), "{said}");
    let find = format!("find $SCRATCH/portolan/tensorboard/run-{job} -name 'events.out.tfevents.*' -size +1k | wc -l");
    assert_eq!(on_cluster("carol", &find).trim(), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_files_and_jobs_are_told_of_before_submitting() {
    let (_portal, _, carol) = connected("carol").await;
    make_ok();
    let form = carol.get(PYTHON).await;
    let check = format!("{PYTHON}/check");
    let checked = async |changes: &[(&str, &str)]| send(&carol, &check, &filled(&form, changes)).await;
    let fine = checked(&[("a.script", OK)]).await;
    assert!(fine.select_text("section").contains("no problems found"), "{}", fine.text());
    let job = crate::queue::submit("carol", "sleep 300", &["-o", "/dev/null", "-t", "5", "--mem=50M"]);
    let missing = "$SCRATCH/it's \"not\" here.py";
    for (key, text, words) in [
        ("script", missing, "it's \"not\" here.py doesn't exist on"),
        ("script", "$SCRATCH", "is a folder, not a file"),
        ("data", "$HOME\n$SCRATCH/none.tar", "none.tar doesn't exist on"),
        ("after", "60000000", "doesn't know job 60000000"),
    ] {
        let mut changes = vec![("a.script", OK)];
        let name = format!("a.{key}");
        changes.retain(|(known, _)| *known != name);
        changes.push((name.as_str(), text));
        let page = checked(&changes).await;
        let told = page.select_all(&format!("[data-warning={key}]"));
        assert!(told.len() == 1 && told[0].contains(words), "{text}: {}", page.text());
    }
    let known = checked(&[("a.script", OK), ("a.after", job.as_str())]).await;
    assert!(known.select_text("section").contains("no problems found"), "{}", known.text());
    cancel("carol", &job);
    let empty = checked(&[("a.script", "")]).await;
    assert!(empty.select_all("section").is_empty(), "nothing to check: {}", empty.text());
    // Nobody has to wait for an answer, or heed it.
    let fields = filled(&form, &[("a.script", missing), ("a.time", "5m"), ("a.memory", "100 MB")]);
    let job = submitted(&carol, PYTHON, &fields).await;
    assert_eq!(ended("carol", &job).await, "FAILED");
    let again = format!("/jobs/key/{job}/again");
    let page = crate::queue::wait_for_list(&carol, &again, "it says what went wrong", |page| {
        page.select_text(".alert").contains("What went wrong")
    })
    .await;
    assert_eq!(page.attribute(".alert a", "href"), format!("/jobs/key/{job}"));
    // Buttons of the form keep saying so.
    let edited = send(&carol, &format!("{PYTHON}/edit"), &filled(&page, &[("edit", "yes")])).await;
    assert!(edited.select_text(".alert").contains(&format!("job {job}")), "{}", edited.select_text("main"));
    carol.post("/clusters/key/disconnect", &[]).await;
    let page = checked(&[("a.script", "$SCRATCH/another.py")]).await;
    assert!(page.select_text("section").contains("couldn't check 1 path"), "{}", page.text());
}

/// A sweep from the portal, and a job array from a terminal.
#[tokio::test(flavor = "multi_thread")]
async fn failed_tasks_of_an_array_are_rerun_alone() {
    const SWEEP: &str = "/compose/key/sweep";
    let (_portal, _, carol) = connected("carol").await;
    let form = carol.get(SWEEP).await;
    let changes = [
        ("a.parameters", "lr = 1, 2, 3, 4"),
        ("a.command", "[ $((lr % 2)) -eq 1 ]"),
        ("a.time", "5m"),
        ("a.memory", "50 MB"),
    ];
    let sweep = submitted(&carol, SWEEP, &filled(&form, &changes)).await;
    let script = "[ \"$SLURM_ARRAY_TASK_ID\" -ne 2 ]";
    let options = ["-o", "/dev/null", "-t", "3", "--mem=50M", "-J", "terminal", "--array=1-3"];
    let array = crate::queue::submit("carol", script, &options);
    for (job, field, tasks) in [(&sweep, "s.only", "1,3"), (&array, "a.array", "2")] {
        crate::queue::wait_for_list(&carol, &format!("/jobs/key/{job}"), "a failed task is told", |page| {
            !page.select_all(&format!("a[href='/jobs/key/{job}/again?tasks=failed']")).is_empty()
        })
        .await;
        let again = format!("/jobs/key/{job}/again?tasks=failed");
        let page = crate::queue::wait_for_list(&carol, &again, "all failed tasks are known", |page| {
            page.attribute(&format!("[name='{field}']"), "value") == tasks
        })
        .await;
        let script = page.select_text(".script");
        assert!(script.contains(&format!("--array={tasks}")), "{script}");
        let words = page.select_all(".alert").join(" ");
        assert!(words.contains("tasks failed") && words.contains("Only failed tasks"), "{words}");
    }
}

/// A script reads and writes beside itself. Where it runs elsewhere, the job's page says where it looked for the file.
#[tokio::test(flavor = "multi_thread")]
async fn script_finds_the_files_beside_it() {
    let (_portal, _, carol) = connected("carol").await;
    on_cluster(
        "carol",
        "mkdir -p ~/beside && cd ~/beside && rm -f sum.csv && echo 4,5 >data.csv && printf '%s\\n' \
         'a, b = open(\"data.csv\").read().split(\",\")' 'open(\"sum.csv\", \"w\").write(str(int(a) + int(b)))' >sum.py",
    );
    let form = carol.get(PYTHON).await;
    let changes = [("a.script", "~/beside/sum.py"), ("a.time", "5m"), ("a.memory", "100 MB")];
    let job = submitted(&carol, PYTHON, &filled(&form, &changes)).await;
    assert_eq!(ended("carol", &job).await, "COMPLETED");
    assert_eq!(on_cluster("carol", "cat ~/beside/sum.csv"), "9");
    wait_for_list(&carol, &format!("/jobs/key/{job}/results"), "its results are found", |page| {
        page.select_text("main").contains("sum.csv")
    })
    .await;

    let elsewhere = [&changes[..], &[("a.code", "here")]].concat();
    let job = submitted(&carol, PYTHON, &filled(&carol.get(PYTHON).await, &elsewhere)).await;
    assert_eq!(ended("carol", &job).await, "FAILED");
    let scratch = on_cluster("carol", "printf %s \"$SCRATCH\"");
    let words = format!("looked for “data.csv” in the folder it ran in: {scratch}/portolan");
    let part = format!("/jobs/key/{job}/fragment");
    let look = async || carol.get(&part).await.text().to_owned();
    wait_for_value("the page says where it looked", look, |text| text.contains(&words)).await;
}
