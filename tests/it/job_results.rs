//! What a real job left behind, on its page.

use portolan::domain::{ClusterId, PersonId};
use portolan::ssh::{CallUrgency, RemoteCommand};
use portolan::store::transfers::{self, NewTransfer, TransferKind};
use reqwest::Method;

use crate::folders::Folder;
use crate::support::cluster::remote_path;
use crate::support::wait::wait_for;
use crate::support::{Client, Page, TestApp};

/// Opens an address again and again until it says something.
async fn until(client: &Client, path: &str, what: &str, holds: impl Fn(&Page) -> bool) -> Page {
    wait_for(&format!("{path}: {what}"), async || {
        let page = client.get(path).await;
        if holds(&page) { Ok(page) } else { Err(format!("{} {}", page.status, page.text())) }
    })
    .await
}

/// A portal that looks often, with a member who is connected.
async fn connected(user: &str) -> (TestApp, Client) {
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    let member = portal.member(&admin, "max").await;
    portal.add_cluster("key").await;
    member.prepare("key", user).await;
    member.connect("key").await;
    (portal, member)
}

/// Submits a script that runs in this folder.
async fn submit(portal: &TestApp, folder: &str, options: &[&str], script: &str) -> String {
    let line = portal.connection("max", "key").await;
    let command = RemoteCommand::new("sbatch")
        .args(["--parsable", "-t", "5", "-D", folder])
        .args(options.iter().copied())
        .input(format!("#!/bin/bash\n{script}\n").into_bytes());
    let done = line.run(command, CallUrgency::Interactive).await.unwrap();
    assert_eq!(done.code, 0, "{}", done.stderr_text());
    done.stdout_text().trim().to_owned()
}

fn shown_names(page: &Page) -> Vec<String> {
    let mut names = page.select_all(".results-name");
    names.sort();
    names
}

#[tokio::test]
async fn results_are_what_changed_while_the_job_ran() {
    let (portal, max) = connected("bob").await;
    let folder = Folder::new("bob", "seq 3 >before; touch -d '1 hour ago' before");
    let script = "mkdir -p out .cache __pycache__; seq 5 >out/table.csv; echo '<b>' >'<b>it'\"'\"'s'
        touch .cache/x __pycache__/x.pyc; echo ready
        while [ ! -e go ]; do sleep 0.2; done
        echo late >late.txt";
    let id = submit(&portal, &folder.path, &["-o", "job.out"], script).await;
    let path = format!("/jobs/key/{id}");
    let page = until(&max, &path, "there", |page| page.status == 200).await;
    assert_eq!(page.attribute("#job-results", "hx-get"), format!("{path}/results"));
    until(&max, &format!("{path}/output"), "it runs", |page| page.text().contains("ready")).await;
    let results = format!("{path}/results");
    let page = until(&max, &results, "files", |page| page.text().contains("table.csv")).await;
    assert_eq!(shown_names(&page), ["<b>it's", "job.out", "out/table.csv"]);
    assert_eq!(page.attribute("#job-results", "hx-trigger"), "sse:jobs, every 60s", "more may come");
    assert!(page.attribute("#job-results .card-link", "href").starts_with("/files/key?path="));

    folder.tell(&format!("touch {}/go", folder.path));
    until(&max, &format!("{path}/fragment"), "over", |page| page.text().contains(">Completed<")).await;
    let page = until(&max, &results, "the last file", |page| page.text().contains("late.txt")).await;
    let expected = ["<b>it's", "go", "job.out", "late.txt", "out/table.csv"];
    assert_eq!(shown_names(&page), expected);
    assert!(page.attributes("#job-results", "hx-trigger").is_empty(), "nothing more comes");
    let order = page.select_all(".results-name");
    let place = |name: &str| order.iter().position(|shown| shown == name).unwrap();
    assert!(place("late.txt") < place("out/table.csv"), "the newest first: {order:?}");
    assert!(page.text().contains("5 files"), "{}", page.text());
    let fragment = max.request(Method::GET, &results).header("hx-request", "true").send().await.unwrap();
    assert!(fragment.text().await.unwrap().trim_start().starts_with("<section"));

    // One file, and all of them.
    let links = page.attributes("#job-results a[href*='/download?']", "href");
    assert_eq!(links.len(), expected.len());
    let late = links.iter().find(|link| link.ends_with("late.txt")).unwrap();
    assert_eq!(max.get(late).await.text(), "late\n");
    let all = max.request(Method::GET, &format!("{results}/archive?format=tar")).send().await.unwrap();
    assert_eq!(all.headers()["content-disposition"], format!("attachment; filename=\"results-{id}.tar\""));
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("all.tar"), all.bytes().await.unwrap()).unwrap();
    let listed = std::process::Command::new("tar").args(["-tf", "all.tar"]).current_dir(here.path()).output().unwrap();
    let mut names: Vec<String> = String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect();
    names.sort();
    assert_eq!(names, expected, "exactly those");

    // What was renamed in the portal has its new name at once.
    let form = [("path", folder.path.as_str()), ("name", "late.txt"), ("to", "last.txt")];
    assert_eq!(max.post("/files/key/rename", &form).await.status, 303);
    assert!(shown_names(&max.get(&results).await).contains(&"last.txt".to_owned()));

    // Deleted by the centre, as far as anyone can tell.
    folder.tell(&format!("rm -r {}", folder.path));
    until(&max, &results, "gone", |page| page.text().contains("or never created")).await;
}

#[tokio::test]
async fn jobs_in_one_folder_have_their_own_results() {
    let (portal, max) = connected("bob").await;
    let folder = Folder::new("bob", "true");
    let first = submit(&portal, &folder.path, &[], "echo 1 >first.csv").await;
    until(&max, &format!("/jobs/key/{first}/fragment"), "over", |page| page.text().contains(">Completed<")).await;
    // The clocks of files count seconds.
    folder.tell(&format!("cd {}; until [ $(date +%s) -gt $(stat -c %Y first.csv) ]; do sleep 0.1; done", folder.path));
    let second = submit(&portal, &folder.path, &[], "echo 2 >second.csv; echo 3 >packed.zip").await;
    until(&max, &format!("/jobs/key/{second}/fragment"), "over", |page| page.text().contains(">Completed<")).await;
    // As if it had been packed in the portal while the second one ran.
    let mut tx = portal.app.store.write().await.unwrap();
    let cluster = ClusterId(1);
    let new = NewTransfer {
        person: PersonId(portal.person_id("max").await),
        kind: TransferKind::Compress,
        cluster,
        folder: remote_path(&folder.path),
        names: Vec::new(),
        url: String::new(),
        target: Some((cluster, remote_path(&format!("{}/packed.zip", folder.path)))),
    };
    transfers::add(&mut tx, &new, "token", portal.clock.now()).await.unwrap();
    portolan::store::commit(tx).await.unwrap();

    for (id, name) in [(&first, "first.csv"), (&second, "second.csv")] {
        let results = format!("/jobs/key/{id}/results");
        let page = until(&max, &results, "its files", |page| shown_names(page).len() > 1).await;
        assert_eq!(shown_names(&page), [name.to_owned(), format!("slurm-{id}.out")]);
    }
}

#[tokio::test]
async fn results_of_an_array_are_grouped_by_task() {
    let (portal, max) = connected("alice").await;
    let folder = Folder::new("alice", "true");
    let script =
        "mkdir -p task-$SLURM_ARRAY_TASK_ID both; echo done >task-$SLURM_ARRAY_TASK_ID/result; echo x >>both/all
        echo written";
    let options = ["--array=1-2"];
    let id = submit(&portal, &folder.path, &options, script).await;
    let results = format!("/jobs/key/{id}/results");
    until(&max, &format!("/jobs/key/{id}"), "there", |page| page.status == 200).await;
    let log = |task: u32| format!("slurm-{id}_{task}.out");
    let has_all = |page: &Page| shown_names(page).len() == 5;
    let page = until(&max, &results, "the files of both", has_all).await;
    let mut groups = page.select_all(".results-group");
    groups.sort();
    assert_eq!(groups, ["Task 1", "Task 2", "both"]);
    let mut links = page.attributes(".results-group a", "href");
    links.sort();
    assert_eq!(links, [1, 2].map(|task| format!("/jobs/key/{id}_{task}")));
    assert_eq!(shown_names(&page), ["both/all", &log(1), &log(2), "task-1/result", "task-2/result"]);

    // The page of a task leaves out what carries another task's number, and so does its archive.
    let results = format!("/jobs/key/{id}_1/results");
    let page = until(&max, &results, "its own", |page| shown_names(page).contains(&log(1))).await;
    assert!(!shown_names(&page).contains(&log(2)), "{:?}", shown_names(&page));
    let all = max.request(Method::GET, &format!("{results}/archive?format=tar")).send().await.unwrap();
    let bytes = all.bytes().await.unwrap();
    let has = |name: &str| bytes.windows(name.len()).any(|part| part == name.as_bytes());
    assert!(has(&log(1)) && !has(&log(2)));
}

#[tokio::test]
async fn pictures_are_shown_small_and_tables_have_a_preview() {
    let (portal, max) = connected("bob").await;
    let folder = Folder::new("bob", "true");
    let script = "printf '\\x89PNG\\r\\n\\x1a\\n0123' >'plot <1>.png'; printf '\\x89PNG\\r\\n\\x1a\\n' >large.png
        truncate -s 3M large.png; echo 'a,b' >table.csv; printf 'a\\0b' >model.bin";
    let id = submit(&portal, &folder.path, &["-o", "/dev/null"], script).await;
    let results = format!("/jobs/key/{id}/results");
    let page = until(&max, &results, "all files", |page| shown_names(page).len() == 4).await;
    let pictures = page.attributes(".results-pictures img", "src");
    assert_eq!(pictures.len(), 1, "{pictures:?}");
    assert_eq!(page.attribute(".results-pictures img", "loading"), "lazy");
    assert_eq!(page.attribute(".results-pictures img", "alt"), "plot <1>.png");
    let picture = max.get(&pictures[0]).await;
    assert_eq!((picture.status, picture.header("content-type")), (200, "image/png"));
    let previews = page.select_all(".results-preview a[href*='/view?']");
    for name in ["plot <1>.png", "large.png", "table.csv"] {
        assert!(previews.contains(&format!("Preview of {name}")), "{name}: {previews:?}");
    }
    assert!(!previews.iter().any(|words| words.contains("model.bin")), "{previews:?}");
    let table = page.attributes(".results-name a", "href");
    let table = table.iter().find(|href| href.ends_with("table.csv")).unwrap();
    assert_eq!(max.get(&format!("{table}&wait=1")).await.select_all("table[data-sortable] th"), ["a", "b"]);
}

#[tokio::test]
async fn job_that_never_started_has_no_results() {
    let (portal, max) = connected("alice").await;
    let folder = Folder::new("alice", "echo old >old");
    let id = submit(&portal, &folder.path, &["--hold"], "true").await;
    let results = format!("/jobs/key/{id}/results");
    until(&max, &results, "pending", |page| page.text().contains("hasn't started yet")).await;
    let line = portal.connection("max", "key").await;
    crate::support::connections::run(&line, "scancel", &[&id]).await.unwrap();
    until(&max, &results, "cancelled", |page| page.text().contains("never started")).await;
    assert_eq!(max.get(&format!("{results}/archive")).await.location(), results);
}
