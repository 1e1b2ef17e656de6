//! What a real job left behind, on its page.

use portolan::ssh::{CallUrgency, RemoteCommand};
use reqwest::Method;

use crate::folders::Folder;
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

    // Deleted by the centre, as far as anyone can tell.
    folder.tell(&format!("rm -r {}", folder.path));
    until(&max, &results, "gone", |page| page.text().contains("no longer exists")).await;
}

#[tokio::test]
async fn results_of_an_array_are_grouped_by_the_tasks_folders() {
    let (portal, max) = connected("alice").await;
    let folder = Folder::new("alice", "true");
    let script = "mkdir task-$SLURM_ARRAY_TASK_ID; echo done >task-$SLURM_ARRAY_TASK_ID/result";
    let options = ["--array=1-2", "-o", "/dev/null"];
    let id = submit(&portal, &folder.path, &options, script).await;
    let results = format!("/jobs/key/{id}/results");
    until(&max, &format!("/jobs/key/{id}"), "there", |page| page.status == 200).await;
    let has_both = |page: &Page| page.select_all(".results-group").len() == 2;
    let page = until(&max, &results, "both", has_both).await;
    let mut groups = page.select_all(".results-group");
    groups.sort();
    assert_eq!(groups, ["task-1", "task-2"]);
    assert_eq!(shown_names(&page), ["task-1/result", "task-2/result"]);
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
