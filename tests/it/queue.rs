//! The list of jobs, on the real cluster: what it says, what it costs, what one can do.

use crate::support::cluster::Cluster;
use crate::support::server::Server;
use crate::support::wait::wait_for;
use crate::support::{Client, Page, TestApp};

/// A portal in a hurry with one member who is connected.
pub async fn connected(name: &str) -> (TestApp, Client, Client) {
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    let member = portal.member(&admin, name).await;
    portal.add_cluster("key").await;
    member.prepare("key", name).await;
    member.connect("key").await;
    (portal, admin, member)
}

/// Brings jobs of someone into states, all at the same time, and gives their numbers.
pub fn states<const N: usize>(user: &str, names: [&str; N]) -> [String; N] {
    let make = |name: &str| {
        let done = Cluster::get().script(&["state", name, "--as", user]);
        assert!(done.status.success(), "{name}: {done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    std::thread::scope(|scope| {
        let all = names.map(|name| scope.spawn(move || make(name)));
        all.map(|one| one.join().unwrap())
    })
}

/// Submits a job with a script on stdin, as a person does in a terminal, and gives its number.
pub fn submit(user: &str, script: &str, options: &[&str]) -> String {
    let command = format!("cd; printf '%s\\n' '#!/bin/bash' '{script}' | sbatch --parsable \"$@\"");
    let mut args = vec!["exec", "--as", user, "sh", "-c", &command, "sh"];
    args.extend(options);
    let done = Cluster::get().script(&args);
    assert!(done.status.success(), "{done:?}");
    // Some people's shells greet first.
    let said = String::from_utf8(done.stdout).unwrap();
    said.lines().next_back().unwrap_or_default().trim().to_owned()
}

/// Cancels a job as its owner, or several with blanks between them.
pub fn cancel(user: &str, jobs: &str) {
    let args = ["exec", "--as", user, "scancel"].into_iter().chain(jobs.split(' '));
    Cluster::get().script(&args.collect::<Vec<_>>());
}

/// Waits until the list satisfies a condition.
pub async fn wait_for_list(who: &Client, path: &str, what: &str, holds: impl Fn(&Page) -> bool) -> Page {
    wait_for(what, async || {
        let list = who.get(path).await;
        if list.status == 200 && holds(&list) { Ok(list) } else { Err(list.select_text("main")) }
    })
    .await
}

/// The words of one job's row; nothing if it is not in the list.
pub fn row(list: &Page, job: &str) -> String {
    list.select_all(&format!("#job-key-{job}")).into_iter().next().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_job_state_is_shown_in_words() {
    let (_portal, _, dave) = connected("dave").await;
    let words = [
        ("completed", "Completed"),
        ("failed", "Failed"),
        ("oom", "Out of memory"),
        ("cancelled", "Cancelled"),
        ("running", "Running"),
        ("held", "Held"),
        ("begin", "Pending"),
        ("dependency_never", "Can't start"),
        ("assoc_limit", "Pending"),
    ];
    let jobs = states("dave", words.map(|(name, _)| name));
    for (job, (name, word)) in jobs.iter().zip(words) {
        let list = wait_for_list(&dave, "/jobs", name, |list| row(list, job).contains(word)).await;
        assert!(row(&list, job).contains(name), "{}", row(&list, job));
    }
    let list = dave.get("/jobs?state=problem").await;
    assert!(!row(&list, &jobs[7]).is_empty(), "one that can never start is a problem");
    assert!(row(&list, &jobs[4]).is_empty(), "one that runs is none");
    for job in &jobs {
        cancel("dave", job);
    }
}

/// Commands that a server was asked to run for someone.
fn commands(server: &Server, user: &str) -> usize {
    server.log().matches(&format!("Starting session: command for {user}")).count()
}

/// A portal in a hurry with one member who is connected to a server of the test's own.
pub async fn connected_to(server: &Server, name: &str) -> (TestApp, Client) {
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    let member = portal.member(&admin, name).await;
    portal.add_server("key", server).await;
    member.prepare_on(server, "key", name).await;
    member.connect("key").await;
    (portal, member)
}

/// The cluster hangs, and the page is there all the same, with what was known.
#[tokio::test(flavor = "multi_thread")]
async fn no_page_waits_for_the_cluster() {
    let server = Server::start();
    let (_portal, bob) = connected_to(&server, "bob").await;
    let job = submit("bob", "sleep 200", &["-o", "/dev/null", "-t", "5", "--hold"]);
    wait_for_list(&bob, "/jobs", "held", |list| row(list, &job).contains("Held")).await;
    server.signal_connections("STOP");
    let before = commands(&server, "bob");
    for path in ["/jobs", "/jobs/rows", "/jobs?view=group", "/jobs?view=history", "/"] {
        assert_eq!(bob.get(path).await.status, 200, "{path}");
    }
    assert!(row(&bob.get("/jobs").await, &job).contains("Held"));
    assert_eq!(commands(&server, "bob"), before);
    server.signal_connections("CONT");
    cancel("bob", &job);
}

/// A hundred tabs cost the cluster what one costs: one command for each look.
#[tokio::test(flavor = "multi_thread")]
async fn more_viewers_cause_no_more_slurm_calls() {
    let server = Server::start();
    let (portal, fin) = connected_to(&server, "bob").await;
    wait_for_list(&fin, "/jobs", "a picture", |list| list.text().contains("fresh-dot")).await;
    let (begun, before) = (std::time::Instant::now(), commands(&server, "bob"));
    let cookies = fin.cookies();
    let tabs = (0..100).map(|_| {
        let tab = portal.visitor();
        let cookies = cookies.clone();
        async move {
            for _ in 0..10 {
                let request = tab.request(reqwest::Method::GET, "/jobs/rows").header("cookie", &cookies);
                assert_eq!(crate::support::client::send(request).await.status, 200);
            }
        }
    });
    futures_util::future::join_all(tabs).await;
    for _ in 0..5 {
        fin.post("/jobs/refresh", &[("back", "/jobs")]).await;
    }
    let asked = commands(&server, "bob") - before;
    // One look a second, and one that was under way.
    let looks = usize::try_from(begun.elapsed().as_secs()).unwrap() + 2;
    assert!(asked <= looks, "{asked} commands in {looks} looks");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_held_released_and_cancelled_after_confirmation() {
    let (_portal, _, carol) = connected("carol").await;
    let job = submit("carol", "sleep 200", &["-o", "/dev/null", "-t", "5", "--begin=now+1hour", "-J", "to <hold>"]);
    wait_for_list(&carol, "/jobs", "waiting", |list| row(list, &job).contains("Pending")).await;
    let pick = format!("key/{job}");
    let form = |verb: &'static str| [("job", pick.clone()), ("verb", verb.to_owned()), ("back", "/jobs".to_owned())];
    let ask = async |verb: &'static str| {
        let form = form(verb);
        carol.post("/jobs/act", &form.each_ref().map(|(name, value)| (*name, value.as_str()))).await
    };
    let sure = async |verb: &'static str| {
        let form = form(verb);
        let mut fields = form.each_ref().map(|(name, value)| (*name, value.as_str())).to_vec();
        fields.push(("sure", "yes"));
        carol.post("/jobs/act", &fields).await
    };
    let asked = ask("cancel").await;
    assert!(asked.text().contains("Cancel to &#60;hold&#62;?"), "{}", asked.text());
    assert!(row(&carol.get("/jobs").await, &job).contains("Pending"), "asking changes nothing");
    let held = sure("hold").await;
    assert!(held.text().contains("1 job held") && held.text().contains("Undo hold"), "{}", held.select_text("main"));
    wait_for_list(&carol, "/jobs", "held", |list| row(list, &job).contains("Held")).await;
    assert!(sure("release").await.text().contains("1 job released"));
    wait_for_list(&carol, "/jobs", "released", |list| row(list, &job).contains("Pending")).await;
    assert!(sure("cancel").await.text().contains("Cancelling 1 job"));
    wait_for_list(&carol, "/jobs", "cancelled", |list| row(list, &job).contains("Cancelled")).await;
    let again = sure("cancel").await;
    assert!(again.text().contains("just ended"), "{}", again.select_text("main"));
    let activity = carol.get("/account/activity").await;
    assert!(activity.text().contains("Cancelled jobs") && activity.text().contains(&job));
    let top = sure("top").await;
    assert!(top.text().contains("Nothing was changed"), "{}", top.select_text("main"));
}

/// Other people's jobs, jobs that never were, and forms that nobody made.
#[tokio::test(flavor = "multi_thread")]
async fn unknown_jobs_and_jobs_of_others_cannot_be_acted_on() {
    let (_portal, _, bob) = connected("bob").await;
    let theirs = submit("mjones", "sleep 200", &["-o", "/dev/null", "-t", "5", "--hold"]);
    wait_for_list(&bob, "/jobs", "a picture", |list| list.text().contains("fresh-dot")).await;
    let act = async |job: &str| {
        let form = [("job", job), ("verb", "cancel"), ("sure", "yes")];
        bob.post("/jobs/act", &form).await
    };
    let never = act("key/999999999").await;
    assert_eq!(never.status, 404);
    for job in [&*format!("key/{theirs}"), "other/1", "key/1_[1-3]", "key/-1", "key", "key/1;id", ""] {
        let answer = act(job).await;
        assert_eq!((answer.status, answer.text()), (404, never.text()), "{job}");
    }
    let unknown = bob.post("/jobs/act", &[("verb", "explode")]).await;
    assert_eq!(unknown.status, 400);
    let nothing = bob.post("/jobs/act", &[("verb", "cancel"), ("sure", "yes")]).await;
    assert!(nothing.text().contains("No jobs are selected"));
    assert!(
        String::from_utf8(Cluster::get().script(&["exec", "squeue", "-h", "-j", &theirs, "-o", "%T"]).stdout)
            .unwrap()
            .contains("PENDING")
    );
    cancel("mjones", &theirs);
    let stranger = act("key/1").await;
    assert_eq!(stranger.status, 404);
    for (back, to) in
        [("https://evil.example/", "/jobs"), ("//evil.example", "/jobs"), ("/jobs?view=history", "/jobs?view=history")]
    {
        let answer = bob.post("/jobs/refresh", &[("back", back)]).await;
        assert_eq!((answer.status, answer.location()), (303, to));
    }
}

/// A colleague's job is shown in the group's list, and Slurm's refusal to cancel it becomes a sentence.
#[tokio::test(flavor = "multi_thread")]
async fn group_jobs_are_visible_but_read_only() {
    let (_portal, _, bob) = connected("bob").await;
    let theirs = submit("carol", "sleep 200", &["-o", "/dev/null", "-t", "5", "--hold", "-J", "carols"]);
    let list = wait_for_list(&bob, "/jobs?view=group", "carol's", |list| !row(list, &theirs).is_empty()).await;
    assert!(row(&list, &theirs).contains("carol") && row(&list, &theirs).contains("Held"));
    assert!(row(&bob.get("/jobs").await, &theirs).is_empty(), "it is not among one's own");
    let pick = format!("key/{theirs}");
    let form = [("job", pick.as_str()), ("verb", "cancel"), ("sure", "yes")];
    let refused = bob.post("/jobs/act", &form).await;
    assert!(refused.text().contains("belongs to someone else"), "{}", refused.select_text("main"));
    cancel("carol", &theirs);
}

/// An array is one row with counts that opens into its tasks; a range of tasks can be cancelled.
#[tokio::test(flavor = "multi_thread")]
async fn an_array_is_one_row() {
    let (_portal, _, tessa) = connected("tessa").await;
    let job = submit("tessa", "sleep 200", &["-o", "/dev/null", "-t", "5", "--array=1-500%2", "-J", "sweep"]);
    let running = |list: &Page| row(list, &job).contains("500 tasks, 2 running, 498 pending");
    wait_for_list(&tessa, "/jobs", "two of 500 running", running).await;
    let open = tessa.get(&format!("/jobs?open=key-{job}")).await;
    assert!(row(&open, &format!("{job}_1")).contains("Running"));
    let pick = format!("key/{job}");
    let form = [("job", pick.as_str()), ("verb", "cancel"), ("sure", "yes"), ("tasks", "401-500")];
    let done = tessa.post("/jobs/act", &form).await;
    assert!(done.text().contains("Cancelling 1 job"), "{}", done.select_text("main"));
    let counted = |list: &Page| row(list, &job).contains("398 pending, 100 cancelled");
    wait_for_list(&tessa, "/jobs", "a hundred fewer, and counted", counted).await;
    let bad = tessa.post("/jobs/act", &[("job", &pick), ("verb", "cancel"), ("sure", "yes"), ("tasks", "1;id")]).await;
    assert!(bad.text().contains("The task numbers"), "{}", bad.select_text("main"));
    // A list that is too long is refused, never cut in the middle of a number.
    let long = format!("101-400{}", ",9".repeat(2000));
    let form = [("job", pick.as_str()), ("verb", "cancel"), ("sure", "yes"), ("tasks", long.as_str())];
    let bad = tessa.post("/jobs/act", &form).await;
    assert!(bad.text().contains("The task numbers"), "{}", bad.select_text("main"));
    let path = format!("/jobs/key/{job}");
    assert_eq!(tessa.get(&path).await.select_all("#array-act form").len(), 1);
    assert!(tessa.get(&format!("{path}/fragment")).await.select_all("#array-act").is_empty(), "what is typed stays");
    cancel("tessa", &job);

    // Once it has ended, nothing offers to cancel it; a page that is still open takes its offer back.
    let ended = |list: &Page| row(list, &job).contains("500 cancelled");
    let list = wait_for_list(&tessa, "/jobs", "all of it cancelled", ended).await;
    assert!(list.select_all(&format!("input[name=job][value='{pick}']")).is_empty());
    assert!(tessa.get(&path).await.select_all("#array-act form").is_empty());
    let part = tessa.get(&format!("{path}/fragment")).await;
    assert_eq!(part.attribute("#array-act", "hx-swap-oob"), "true");
    let history = format!("/jobs?view=history&q={job}");
    let list = wait_for_list(&tessa, &history, "one row in the history as well", ended).await;
    assert_eq!(list.select_all("#queue tbody tr").len(), 1, "{}", list.select_text("#queue"));
    let open = tessa.get(&format!("{history}&open=key-{job}")).await;
    assert!(row(&open, &format!("{job}_1")).contains("Cancelled"), "{}", open.select_text("#queue"));
    let late = tessa.post("/jobs/act", &[("job", &pick), ("verb", "cancel")]).await;
    assert!(late.text().contains("nothing left to cancel"), "{}", late.select_text("main"));
}

/// With JavaScript, the question and the outcome come as parts of the page where the action was chosen.
#[tokio::test(flavor = "multi_thread")]
async fn actions_are_asked_about_in_place() {
    let (portal, _, carol) = connected("carol").await;
    let job = submit("carol", "sleep 200", &["-o", "/dev/null", "-t", "5", "--begin=now+1hour", "-J", "in <place>"]);
    let list = wait_for_list(&carol, "/jobs", "waiting", |list| row(list, &job).contains("Pending")).await;
    assert_eq!(list.attribute("#jobs-form", "hx-target"), "#job-action");
    let pick = format!("key/{job}");
    let send = async |sure: &[(&str, &str)]| {
        let form: Vec<(&str, &str)> =
            [("job", pick.as_str()), ("verb", "cancel"), ("back", "/jobs")].into_iter().chain(sure.to_vec()).collect();
        let request = carol.request(reqwest::Method::POST, "/jobs/act").form(&form);
        let request = request.header("origin", &portal.url).header("hx-request", "true");
        crate::support::client::send(request).await
    };
    let asked = send(&[]).await;
    assert!(asked.status == 200 && !asked.text().contains("<main"), "{}", asked.text());
    assert_eq!(asked.select_text("h2"), "Cancel in <place>?");
    assert!(
        asked.text().contains("The job leaves the queue.") && !asked.text().contains("Running jobs"),
        "it's pending"
    );
    assert_eq!(asked.select_text("button[type=submit]"), "Cancel job");
    assert_eq!(asked.attribute("form", "hx-target"), "#job-action");
    let done = send(&[("sure", "yes")]).await;
    assert!(done.select_text("h2").contains("Cancelling 1 job"), "{}", done.text());
    assert!(!done.text().contains("<main"));
    wait_for_list(&carol, "/jobs", "cancelled", |list| row(list, &job).contains("Cancelled")).await;
}

/// A hint that fits several jobs is given once, and new counts come with new rows.
#[tokio::test(flavor = "multi_thread")]
async fn list_gives_each_hint_once() {
    let (_portal, _, dave) = connected("dave").await;
    let options = ["-o", "/dev/null", "-t", "5", "--hold", "-J", "same hint"];
    let jobs: Vec<String> = (0..3).map(|_| submit("dave", "sleep 200", &options)).collect();
    let all_held = |list: &Page| jobs.iter().all(|job| row(list, job).contains("Held"));
    let list = wait_for_list(&dave, "/jobs?q=same+hint", "all held", all_held).await;
    let hints = list.select_all(".job-why");
    let mut once = hints.clone();
    once.sort();
    once.dedup();
    assert!(!hints.is_empty() && hints.len() == once.len(), "{hints:?}");
    assert!(list.select_text("#jobs-filters summary").contains("same hint"));
    assert!(list.attributes("#jobs-chips", "hx-swap-oob").is_empty());
    let rows = dave.get("/jobs/rows?q=same+hint").await;
    assert_eq!(rows.attribute("#jobs-chips", "hx-swap-oob"), "true");
    assert!(rows.select_text("#jobs-fresh").contains("Updated"));
    cancel("dave", &jobs.join(" "));
}

/// An array is one row: in the counts above the list as in the sum below it.
#[tokio::test(flavor = "multi_thread")]
async fn counts_above_and_below_the_list_agree() {
    let (_portal, _, dave) = connected("dave").await;
    let options = ["-o", "/dev/null", "-t", "5", "--hold", "-J", "counted rows"];
    let array: Vec<&str> = options.into_iter().chain(["--array=0-4"]).collect();
    let jobs = [submit("dave", "sleep 200", &options), submit("dave", "sleep 200", &array)];
    let all_listed = |list: &Page| jobs.iter().all(|job| !row(list, job).is_empty());
    let list = wait_for_list(&dave, "/jobs?q=counted+rows", "all listed", all_listed).await;
    let counts = list.select_all("#jobs-chips .chip-count");
    assert_eq!(counts[..4], ["2", "0", "2", "0"], "all, running, pending, ended");
    assert!(list.select_text(".jobs-sum").starts_with("2 jobs"), "{}", list.select_text(".jobs-sum"));
    cancel("dave", &jobs.join(" "));
}

/// Names that try everything: the list shows them as text, and no row is forged.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_job_names_are_shown_as_text() {
    let (_portal, _, bella) = connected("bella").await;
    let long = "x".repeat(900);
    let names = [
        "<script>alert(1)</script>",
        "a|b\tc\u{1f}d",
        "line\n999999\tbella\tR\tNone",
        "\u{202e}gnp.exe",
        "it's $(id) `id` \"q\"",
        &long,
    ];
    let jobs = names.map(|name| submit("bella", "sleep 200", &["-o", "/dev/null", "-t", "5", "--hold", "-J", name]));
    for (job, name) in jobs.iter().zip(names) {
        let list = wait_for_list(&bella, "/jobs", name, |list| row(list, job).contains("Held")).await;
        assert!(!list.text().contains("<script>alert"), "{name}");
        assert!(!list.text().contains('\u{202e}'));
        assert!(row(&list, "999999").is_empty(), "no row out of a name");
    }
    let list = bella.get("/jobs").await;
    assert!(row(&list, &jobs[0]).contains("<script>alert(1)</script>"), "as text");
    for job in &jobs {
        cancel("bella", job);
    }
}
