//! The page of a job on the real cluster: its verdict, its script, its live output, and who may see it.

use std::time::Duration;

use portolan::clock::Clock;
use portolan::cluster::ClusterAccountId;
use portolan::slurm::version::creates_output_folders;
use portolan::ssh::{CallUrgency, RemoteCommand};

use crate::support::app::hurry;
use crate::support::browser::Browser;
use crate::support::cluster::Cluster;
use crate::support::connections::run;
use crate::support::wait::{wait_for, wait_until};
use crate::support::{Client, PASSWORD, Page, TestApp};

/// A portal with a member whose connection to the test cluster stands, that looks often.
async fn harbour(user: &str) -> (TestApp, Client) {
    harbour_on(TestApp::live().await, user).await
}

async fn harbour_on(portal: TestApp, user: &str) -> (TestApp, Client) {
    let admin = portal.set_up("ada").await;
    let member = portal.member(&admin, "max").await;
    portal.add_cluster("key").await;
    member.prepare("key", user).await;
    member.connect("key").await;
    (portal, member)
}

/// Brings a job into a state.
async fn state(name: &'static str, user: &'static str) -> String {
    let made = tokio::task::spawn_blocking(move || Cluster::get().script(&["state", name, "--as", user]));
    let made = made.await.unwrap();
    assert!(made.status.success(), "{name}: {made:?}");
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

/// Submits a script with options, in a folder of its own.
async fn submit(portal: &TestApp, options: &[&str], script: &str) -> String {
    let line = portal.connection("max", "key").await;
    let text = "mkdir -p page && cd page && exec sbatch --parsable -t 5 \"$@\"";
    let command = RemoteCommand::new("/bin/sh")
        .args(["-c", text, "sh"])
        .args(options.iter().copied())
        .input(format!("#!/bin/bash\n{script}\n").into_bytes());
    let done = line.run(command, CallUrgency::Interactive).await.unwrap();
    assert_eq!(done.code, 0, "{}", done.stderr_text());
    done.stdout_text().trim().to_owned()
}

/// Opens an address again and again until it says something.
async fn until(client: &Client, path: &str, what: &str, holds: impl Fn(&Page) -> bool) -> Page {
    wait_for(&format!("{path}: {what}"), async || {
        let page = client.get(path).await;
        if holds(&page) { Ok(page) } else { Err(format!("{} {}", page.status, page.text())) }
    })
    .await
}

async fn until_says(client: &Client, path: &str, words: &str) -> Page {
    until(client, path, words, |page| page.status == 200 && page.text().contains(words)).await
}

#[tokio::test]
async fn job_page_explains_how_the_job_ended() {
    let (_portal, max) = harbour("alice").await;
    let (oom, failed, timeout) =
        tokio::join!(state("oom", "alice"), state("failed", "alice"), state("timeout", "alice"));
    for (id, title, parts) in [
        (oom, "Out of memory", &["100 MB", "Resubmit with", "--mem="][..]),
        (failed, "Failed with an error", &["exit code 3", "cannot open data.csv"]),
        (timeout, "Timed out", &["finish within its time limit of", "--time="]),
    ] {
        // The accounting and the end of the output come a little after the news that it has ended.
        let part = until(&max, &format!("/jobs/key/{id}/fragment"), title, |page| {
            let said = page.text();
            said.contains(title) && parts.iter().all(|words| said.contains(words))
        })
        .await;
        assert!(part.text().contains("Requested and used"), "{title}");
        let script = until_says(&max, &format!("/jobs/key/{id}/script"), "sbatch --parsable").await;
        assert!(script.text().contains("without quotation marks"), "it was submitted in a terminal");
        assert!(!part.text().contains("name=\"verb\""), "nothing can be done to it any more");
        // From now on the page says it without asking anyone.
        until_says(&max, &format!("/jobs/key/{id}/script"), "sbatch").await;
        let page = max.get(&format!("/jobs/key/{id}")).await;
        assert!(page.text().contains(title) && page.text().contains("sbatch"), "{}", page.text());
        // The list says why, unless the state does.
        let list = max.get("/jobs").await;
        let row = list.select_text(&format!("#job-key-{id}"));
        let hint = if title == "Failed with an error" { "Exit code 3" } else { title };
        assert!(row.contains(hint), "{row}");
    }
}

/// The portal's own command has nothing that would need quotation marks.
#[tokio::test(flavor = "multi_thread")]
async fn script_that_the_portal_submitted_is_there_from_the_start() {
    let (portal, _, bob) = crate::queue::connected("bob").await;
    let order = portal.order("bob", "key", crate::submissions::HELD).await;
    let sent = portal.settled(portal.submit(&order).await).await;
    let number = sent.number.unwrap().to_string();
    let path = format!("/jobs/key/{number}");
    let page = until(&bob, &path, "there", |page| page.status == 200).await;
    assert!(page.select_text("#job-script").contains("#SBATCH"), "{}", page.select_text("#job-script"));
    let read = |page: &Page| page.attributes("#job-script", "hx-get").is_empty();
    let script = until(&bob, &format!("{path}/script"), "Slurm's answer", read).await;
    assert!(!script.text().contains("--parsable"), "nobody can use that: {}", script.text());
    crate::queue::cancel("bob", &number);
}

#[tokio::test]
async fn output_of_a_running_job_is_followed() {
    let (portal, max) = harbour("bob").await;
    let script = r#"printf '\033[1;31mred <script>alert(1)</script>\033[0m\n'
for step in 1 2 3; do printf 'step %s\r' $step; done; echo
while [ ! -e "go-$SLURM_JOB_ID" ]; do sleep 0.2; done
printf 'and more\n\377\376 no text \033]0;title\007\033[2J\n'
while [ ! -e "end-$SLURM_JOB_ID" ]; do sleep 0.2; done
echo "the last <b>words</b>""#;
    let id = submit(&portal, &["-J", "<script>x</script>|\"'\u{202e}"], script).await;
    let path = format!("/jobs/key/{id}");
    until(&max, &path, "there", |page| page.status == 200).await;
    let part = until_says(&max, &format!("{path}/fragment"), ">Running<").await;
    assert!(part.text().contains("value=\"requeue\"") && part.text().contains("value=\"cancel\""));
    assert_eq!(part.select_text("h1"), "<script>x</script>|\"'");
    let has_figure = |page: &Page| !page.select_all(".job-figure [data-elapsed]").is_empty();
    let part = until(&max, &format!("{path}/fragment"), "what it used so far", has_figure).await;
    let times = part.attributes("[data-elapsed]", "data-elapsed");
    assert!(times.len() == 2 && times[0] == times[1], "one time, above and among the figures: {times:?}");
    let log = until_says(&max, &format!("{path}/output"), "step 3").await;
    assert_eq!(log.select_text(".log .fg-red"), "red <script>alert(1)</script>");
    assert!(!log.text().contains("step 1") && !log.text().contains("<script>alert"));
    // What is new comes by itself, and nothing comes while there is nothing.
    let more = log.attribute("#log-live", "hx-get");
    assert_eq!(max.get(&more).await.status, 204);
    let line = portal.connection("max", "key").await;
    run(&line, "touch", &[&format!("page/go-{id}")]).await.unwrap();
    let news = until(&max, &more, "news", |page| page.status == 200).await;
    let lines = news.select_all("#log-live > div");
    assert_eq!(lines, ["red <script>alert(1)</script>", "step 3", "and more", "\u{fffd}\u{fffd} no text"]);
    run(&line, "touch", &[&format!("page/end-{id}")]).await.unwrap();
    let more = news.attribute("#log-live", "hx-get");
    let news = until_says(&max, &more, "the last &#60;b&#62;words").await;
    // Once the job is over and all of it is there, nobody asks again.
    let more = news.attribute("#log-live", "hx-get");
    until(&max, &format!("{path}/fragment"), "over", |page| page.text().contains(">Completed<")).await;
    until(&max, &more, "final", |page| page.status == 200 && !page.text().contains("hx-get")).await;
    assert_eq!(max.get(&format!("{path}/output")).await.status, 200);
    let page = until_says(&max, &format!("{path}/script"), "while [ ! -e").await;
    assert!(page.text().contains("sbatch --parsable"), "the exact words");
    let whole = max.request(reqwest::Method::GET, &format!("{path}/output/download")).send().await.unwrap();
    assert_eq!(whole.headers()["content-disposition"], format!("attachment; filename=\"slurm-{id}.out\""));
    assert_eq!(whole.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(whole.headers()["x-content-type-options"], "nosniff");
    let bytes = whole.bytes().await.unwrap();
    let there = run(&line, "cat", &[&format!("page/slurm-{id}.out")]).await.unwrap().stdout;
    assert_eq!(bytes, there);
}

#[tokio::test]
async fn jobs_of_strangers_are_not_found() {
    let (portal, max) = harbour("bob").await;
    let own = state("completed", "bob").await;
    let strange = state("running", "alice").await;
    until(&max, &format!("/jobs/key/{own}"), "there", |page| page.status == 200).await;
    let line = portal.connection("max", "key").await;
    for end in [
        "",
        "/fragment",
        "/script",
        "/output",
        "/output/more",
        "/output/before",
        "/output/download",
        "/results",
        "/results/archive",
    ] {
        let theirs = max.get(&format!("/jobs/key/{strange}{end}")).await;
        let nobodys = max.get(&format!("/jobs/key/99999999{end}")).await;
        assert_eq!((theirs.status, nobodys.status), (404, 404), "{end}");
        assert_eq!(theirs.text(), nobodys.text(), "{end}");
    }
    for odd in ["/jobs/key/1_", "/jobs/key/-1", "/jobs/key/1.batch", "/jobs/other/1", "/jobs/key/..%2f1"] {
        assert_eq!(max.get(odd).await.status, 404, "{odd}");
    }
    let there = run(&line, "squeue", &["-h", "-j", &strange, "-o", "%T"]).await.unwrap();
    assert_eq!(there.stdout_text().trim(), "RUNNING", "it does exist");
    Cluster::get().script(&["exec", "scancel", &strange]);
}

#[tokio::test]
async fn missing_output_is_explained() {
    let (portal, max) = harbour("alice").await;
    let nowhere = submit(&portal, &["-o", "no-such-folder/x.out"], "true").await;
    let away = submit(&portal, &["-o", "/dev/null"], "true").await;
    let split = submit(&portal, &["-e", "%j.err"], "echo fine; echo 'error: oh no' >&2").await;
    let waits = submit(&portal, &["--hold"], "true").await;
    // Newer versions of Slurm create the folder: then there is just nothing in it.
    let is_created = creates_output_folders(&Cluster::get().slurm_version()).unwrap();
    for (id, words) in [
        (&nowhere, if is_created { "without printing anything" } else { "create output folders" }),
        (&away, "Output discarded"),
        (&waits, "Its output will appear here automatically"),
    ] {
        until_says(&max, &format!("/jobs/key/{id}/output"), words).await;
    }
    let log = until_says(&max, &format!("/jobs/key/{split}/output?stream=err"), "error: oh no").await;
    assert!(log.text().contains("Jump to first error") && !log.text().contains("fine"));
    let page = until_says(&max, &format!("/jobs/key/{waits}/fragment"), "JobHeldUser").await;
    assert!(page.text().contains("value=\"release\"") && !page.text().contains("value=\"hold\""));
    let (portal_line, id) = (portal.connection("max", "key").await, waits.as_str());
    run(&portal_line, "scancel", &[id]).await.unwrap();
}

/// What Slurm prints about a job for one of `squeue`'s formats.
fn ask_queue(id: &str, format: &str) -> String {
    let told = Cluster::get().script(&["exec", "squeue", "-h", "-j", id, "-o", format]);
    String::from_utf8(told.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn suspended_time_does_not_count() {
    let (_portal, max) = harbour("alice").await;
    let id = state("suspended", "alice").await;
    // It stands still there: `0:02`.
    let used = ask_queue(&id, "%M");
    let (minutes, seconds) = used.split_once(':').unwrap();
    let used = minutes.parse::<u64>().unwrap() * 60 + seconds.parse::<u64>().unwrap();
    let began: u64 = {
        let told =
            Cluster::get().script(&["exec", "env", "SLURM_TIME_FORMAT=%s", "squeue", "-h", "-j", &id, "-o", "%S"]);
        String::from_utf8(told.stdout).unwrap().trim().parse().unwrap()
    };
    wait_for("more time has passed than it ran", async || {
        let now = String::from_utf8(Cluster::get().script(&["exec", "date", "+%s"]).stdout).unwrap();
        let now: u64 = now.trim().parse().unwrap();
        if now > began + used + 3 { Ok(()) } else { Err(format!("{now} {began} {used}")) }
    })
    .await;
    let words = format!("{} of", portolan::format::duration(used));
    until(&max, &format!("/jobs/key/{id}/fragment"), &words, |page| page.select_text(".job-clock").contains(&words))
        .await;
    Cluster::get().script(&["exec", "scancel", &id]);
}

#[tokio::test]
async fn hold_of_an_administrator_offers_no_release() {
    let (portal, max) = harbour("alice").await;
    let id = submit(&portal, &["--begin=now+2hours", "--deadline=now+3hours"], "true").await;
    let path = format!("/jobs/key/{id}/fragment");
    let page = until_says(&max, &path, "Must finish by").await;
    assert!(page.select_text(".timeline").contains("Deadline"), "{}", page.text());
    assert!(page.text().contains("value=\"hold\""));
    assert!(Cluster::get().script(&["exec", "scontrol", "hold", &id]).status.success());
    let page = until_says(&max, &path, "The centre put it on hold").await;
    let buttons = page.attributes(".job-head button[name=verb]", "value");
    assert_eq!(buttons, ["cancel"], "{}", page.text());
    Cluster::get().script(&["exec", "scancel", &id]);
}

#[tokio::test]
async fn an_array_has_a_page_of_its_tasks() {
    let (_portal, max) = harbour("alice").await;
    let id = state("array", "alice").await;
    let path = format!("/jobs/key/{id}");
    let page =
        until(&max, &path, "four tasks", |page| page.status == 200 && page.select_all("tbody tr").len() == 4).await;
    assert!(page.text().contains("Some tasks failed"));
    let facts = page.select_all(".fact-label");
    assert_eq!(facts[..2], ["Tasks", "Failed"], "what needs attention comes first");
    assert!(!facts.contains(&"Pending".to_owned()), "nothing is said of states without tasks: {facts:?}");
    let page = max.get(&format!("{path}?state=problem")).await;
    assert_eq!(page.select_all("tbody tr .cell-title"), [format!("{id}_2")]);
    let task = until_says(&max, &format!("{path}_2/fragment"), "Failed with an error").await;
    assert!(task.text().contains("exit code 1"));
    let log = until_says(&max, &format!("{path}_2/output"), "task 2").await;
    assert!(log.text().contains(&format!("array-{id}_2.out")));
    assert_eq!(max.get(&format!("{path}_9")).await.status, 404);
}

/// Ten gigabytes, of which only the end is read; and a hundred megabytes without any line end.
#[tokio::test]
async fn huge_logs_are_read_from_their_end() {
    let (portal, max) = harbour("alice").await;
    let id = submit(&portal, &[], "echo begin").await;
    let path = format!("/jobs/key/{id}");
    until_says(&max, &format!("{path}/fragment"), ">Completed<").await;
    let line = portal.connection("max", "key").await;
    let file = format!("page/slurm-{id}.out");
    let longer = "truncate -s 10G \"$1\"; printf '\\nthe very end\\n' >> \"$1\"";
    let done = run(&line, "sh", &["-c", longer, "sh", &file]).await.unwrap();
    assert_eq!(done.code, 0, "{}", done.stderr_text());
    portal.app.job_outputs.clear();
    let log = until_says(&max, &format!("{path}/output"), "the very end").await;
    assert!(log.text().contains("Over 2 GB") && log.text().len() < 200_000);
    let refused = max.get(&format!("{path}/output/download")).await;
    assert_eq!((refused.status, refused.location()), (303, format!("{path}/output").as_str()));
    let before = log.attribute("#log-before a", "hx-get");
    let earlier = max.get(&before).await;
    assert_eq!(earlier.status, 200);
    assert!(earlier.text().contains("Load earlier lines"), "there is more still");
    let most = u64::MAX;
    let nonsense = max.get(&format!("{path}/output/before?end={most}&back={most}")).await;
    assert!(nonsense.text().contains("no longer exists"), "{}", nonsense.text());
    // Shorter than before: it is read anew.
    let other = "head -c 100000000 /dev/zero | tr '\\0' x > \"$1\"";
    run(&line, "sh", &["-c", other, "sh", &file]).await.unwrap();
    portal.app.job_outputs.clear();
    let log = until_says(&max, &format!("{path}/output"), "xxxxxxxx").await;
    assert!(log.text().len() < 400_000, "{}", log.text().len());
    run(&line, "rm", &[&file]).await.unwrap();
    portal.app.job_outputs.clear();
    until_says(&max, &format!("{path}/output"), "File not found").await;
}

#[tokio::test]
async fn a_colleagues_job_is_shown_without_buttons() {
    let (_portal, max) = harbour("alice").await;
    let theirs = state("held", "bob").await;
    assert_eq!(max.get(&format!("/jobs/key/{theirs}")).await.status, 404, "nobody asked for the group's jobs");
    max.get("/jobs?view=group").await;
    let path = format!("/jobs/key/{theirs}");
    let page = until(&max, &path, "the group's", |page| page.status == 200).await;
    assert!(page.text().contains("submitted by bob") && !page.text().contains("action=\"/jobs/act\""));
    let script = max.get(&format!("{path}/script")).await;
    assert!(script.text().contains("only to its owner"), "{}", script.text());
    Cluster::get().script(&["exec", "scancel", &theirs]);
}

/// A script that tells whether the viewer shows something. The page has the same words in the job's script.
fn log_says(words: &str) -> String {
    format!("return (document.querySelector('[data-log-view]')?.innerText ?? '').includes('{words}')")
}

async fn until_log_says(browser: &Browser, words: &str) {
    let script = log_says(words);
    browser.wait_until_true(words, &script).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn browser_shows_new_output_lines_by_itself() {
    let (portal, max) = harbour("bob").await;
    let script = r#"for line in $(seq 200); do echo "line $line"; done; echo "Error: first of them"
while [ ! -e "go-$SLURM_JOB_ID" ]; do sleep 0.2; done
printf 'step 1\rstep 2\n'
while [ ! -e "end-$SLURM_JOB_ID" ]; do sleep 0.2; done
echo "not seen while paused""#;
    let id = submit(&portal, &["-J", "follow"], script).await;
    let path = format!("/jobs/key/{id}");
    until_says(&max, &format!("{path}/output"), "first of them").await;
    let browser = Browser::open(&portal.url, 1280).await;
    browser.go("/sign-in").await;
    browser.fill("name", "max").await;
    browser.fill("password", PASSWORD).await;
    browser.press("Sign in").await;
    browser.find(".menu-person").await;
    browser.go(&path).await;
    until_log_says(&browser, "first of them").await;
    let at_end = "const box = document.querySelector('[data-log-view]'); return box.scrollHeight - box.scrollTop - box.clientHeight < 30";
    assert_eq!(browser.run(at_end).await, true, "it opens at the end");
    let line = portal.connection("max", "key").await;
    run(&line, "touch", &[&format!("page/go-{id}")]).await.unwrap();
    until_log_says(&browser, "step 2").await;
    assert_eq!(browser.run(at_end).await, true, "it stays at the end");
    let lines = browser.run("return document.querySelectorAll('[data-log-lines] div[id^=n]').length").await;
    assert_eq!(lines, 202, "no line is doubled or lost");
    let field = browser.find("[data-log-find]").await;
    field.send_keys("LINE 19").await.unwrap();
    browser.wait_for_text("11 of 11").await;
    browser.press("Jump to first error").await;
    let found = browser.run("return document.querySelector('.is-found').textContent.trim()").await;
    assert_eq!(found, "Error: first of them");
    browser.press("Follow output").await;
    browser.find("[data-log-follow][aria-pressed=false]").await;
    run(&line, "touch", &[&format!("page/end-{id}")]).await.unwrap();
    until_says(&max, &format!("{path}/output"), "not seen while paused").await;
    // The head of the page renews itself all the same; what was paused stays so.
    browser.wait_for_text("Completed").await;
    assert_eq!(browser.run(&log_says("not seen")).await, false);
    browser.press("Follow output").await;
    until_log_says(&browser, "not seen while paused").await;
    browser.close().await;
}

/// The queue is read rarely here, so that only the output can tell that the job may have ended.
#[tokio::test(flavor = "multi_thread")]
async fn end_of_a_short_job_follows_the_end_of_its_output() {
    let rarely = Duration::from_hours(1);
    let portal = TestApp::start_at(Clock::system(), |config| {
        hurry(config);
        (config.queue_pace.min_interval, config.queue_pace.max_interval) = (rarely, rarely);
    })
    .await;
    let (portal, max) = harbour_on(portal, "bob").await;
    let go = format!("go-{}", std::process::id());
    let script = format!("until [ -e {go} ]; do sleep 0.1; done; rm {go}; echo that is all");
    let job = submit(&portal, &["-J", "short"], &script).await;
    let path = format!("/jobs/key/{job}");
    let refresh = async || assert_eq!(max.post("/jobs/refresh", &[]).await.status, 303);
    wait_for("it runs", async || {
        refresh().await;
        let page = max.get(&path).await;
        if page.text().contains("Running") { Ok(()) } else { Err(page.select_text("main")) }
    })
    .await;
    // What the last press of the button asked for is read before the job ends.
    let connection = portal.connection_key("max", "key").await;
    let key = ClusterAccountId { person: connection.person, cluster: connection.cluster };
    let version = async || portal.app.queue_monitor.snapshot(key).await.unwrap().version;
    let before = version().await;
    refresh().await;
    wait_until("the queue is read once more", async || version().await > before).await;
    let line = portal.connection("max", "key").await;
    let ended = line.run(RemoteCommand::new("touch").arg(format!("page/{go}")), CallUrgency::Interactive).await;
    assert_eq!(ended.unwrap().code, 0);
    wait_for("its output, and then its end", async || {
        let output = max.get(&format!("{path}/output")).await;
        let page = max.get(&path).await;
        let is_over = output.text().contains("that is all") && page.text().contains("Completed");
        if is_over { Ok(()) } else { Err(page.select_text("main")) }
    })
    .await;
}
