//! Jobs opened from a group's usage: one's own that left the queue long ago, and a member's by a PI.

use portolan::cluster::ClusterAccountId;
use portolan::domain::PersonId;
use portolan::jobs::{JobDetails, JobRecord};
use portolan::slurm::job::{ExitStatus, JobId, JobState, SlurmJob};
use portolan::store;

use super::{EVIL, TODAY, World, world};
use crate::support::app::START;

/// The number of a job in the figures: see `sheet`.
fn number(back: i64, place: i64) -> i64 {
    TODAY.plus(-back).0 * 100 + place
}

impl World {
    fn member_job(&self, number: i64) -> String {
        self.url(&format!("usage/jobs/key/{number}"))
    }

    /// The portal's own record of one of max's jobs, with its script and the end of its output.
    async fn put_record(&self, number: i64) {
        let portal = &self.portal;
        let owner = PersonId(portal.person_id("max").await);
        let key = ClusterAccountId { person: owner, cluster: portal.cluster_id("key").await };
        let id = u64::try_from(number).unwrap();
        let job = SlurmJob {
            id: JobId::without_task(id),
            raw_id: id,
            user: "max".into(),
            name: format!("fit {EVIL}"),
            state: JobState::Failed,
            account: "def-one".into(),
            exit: Some(ExitStatus { code: 3, signal: 0 }),
            cpus: 4,
            ..SlurmJob::default()
        };
        let details = JobDetails {
            script: format!("#!/bin/sh\necho quiet-script {EVIL}"),
            log_end: vec![format!("quiet-output {EVIL}")],
            ..JobDetails::default()
        };
        let row = JobRecord::new(job, START).to_row(key.person, key.cluster);
        let mut tx = portal.app.store.write().await.unwrap();
        let id = store::jobs::save(&mut tx, &row).await.unwrap();
        let json = serde_json::to_string(&details).unwrap();
        store::queues::save_job_details(&mut tx, id, &json, START).await.unwrap();
        store::commit(tx).await.unwrap();
    }
}

/// Every job in the list of one's own opens, though the portal never saw it in the queue.
#[tokio::test]
async fn own_jobs_that_left_the_queue_open() {
    let world = world().await;
    world.fill().await;
    let list = world.member.get(&world.url("usage/jobs?period=90d")).await;
    let links = list.attributes("tbody a[href^='/jobs/key/']", "href");
    assert_eq!(links.len(), 50);
    for link in &links {
        let page = world.member.get(link).await;
        assert_eq!(page.status, 200, "{link}: {}", page.text());
        let said = page.select_text("main");
        assert!(said.contains("The portal didn't record this job"), "{said}");
        for words in ["timeline are missing", "exit code", "4 cores", "def-one", "Requested and used"] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(page.select_all("#evil").is_empty());
        let part = world.member.get(&format!("{link}/fragment?mark=0")).await;
        assert_eq!(part.status, 200, "{}", part.text());
    }
    // Nobody else's opens there: not a colleague's, not by a PI, not by a stranger.
    let (of_pia, of_max) = (number(3, 0), number(3, 1));
    for (who, job) in [(&world.member, of_pia), (&world.pi, of_max), (&world.other, of_max), (&world.admin, of_max)] {
        assert_eq!(who.get(&format!("/jobs/key/{job}")).await.status, 404);
    }
}

#[tokio::test]
async fn pis_open_members_jobs_and_nobody_else_does() {
    let world = world().await;
    world.fill().await;
    let job = number(3, 2);
    let path = world.member_job(job);
    let list = world.pi.get(&world.url("usage/jobs?outcome=failed")).await;
    assert!(list.attributes("tbody a", "href").contains(&path), "{}", list.text());
    let page = world.pi.get(&path).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let said = page.select_text("main");
    for words in ["Failed", "max", "def-one", "4 cores", "Requested and used", "aren't shared", "exit code"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(said.contains("Not measured (") && !said.contains("Not measured of"), "{said}");
    assert!(page.select_all("#evil").is_empty());
    let part = world.pi.get(&format!("{path}/accounting")).await;
    assert!(part.status == 200 && part.text().contains("not connected"), "{}", part.text());
    // The look is recorded once, and its subject can read it.
    world.pi.get(&path).await;
    let log = world.member.get("/account/activity").await;
    let line = format!("job {job} of max");
    assert_eq!(log.text().matches(&line).count(), 1, "{}", log.text());
    // A colleague, a PI of another group, an administrator: as if there were no such job.
    for who in [&world.member, &world.other, &world.admin] {
        for path in [path.clone(), format!("{path}/accounting"), world.member_job(1)] {
            assert_eq!(who.get(&path).await.status, 404, "{path}");
        }
    }
    for odd in ["usage/jobs/key/1", "usage/jobs/key/x", "usage/jobs/nowhere/1", "usage/jobs/key/-1_2"] {
        assert_eq!(world.pi.get(&world.url(odd)).await.status, 404, "{odd}");
    }
    // A job of someone without an account here opens as well.
    let gone = world.pi.get(&world.member_job(number(3, 4))).await;
    assert!(gone.status == 200 && gone.select_text("main").contains("isn't a member of the group"), "{}", gone.text());
}

#[tokio::test]
async fn script_and_output_are_shown_only_if_shared() {
    let world = world().await;
    world.fill().await;
    let job = number(3, 2);
    world.put_record(job).await;
    let path = world.member_job(job);
    let is_shown = async || {
        let page = world.pi.get(&path).await;
        assert_eq!(page.status, 200, "{}", page.text());
        let said = page.select_text("main");
        assert!(said.contains("Exit code") && said.contains("FAILED"), "{said}");
        assert!(page.select_all("#evil").is_empty(), "markup of scripts and names is not markup of the page");
        let found = ["quiet-script", "quiet-output"].map(|words| said.contains(words));
        assert_eq!(found[0], found[1]);
        found[0]
    };
    let set = async |who: &crate::support::Client, what: &str, form: &[(&str, &str)]| {
        who.post(&world.url(&format!("sharing/{what}")), form).await.status
    };
    assert!(!is_shown().await, "not shared until someone says so");
    assert_eq!(set(&world.member, "own", &[("choice", "share")]).await, 303);
    assert!(is_shown().await, "the member shares it");
    assert_eq!(set(&world.member, "own", &[("choice", "group")]).await, 303);
    assert!(!is_shown().await);
    assert_eq!(set(&world.pi, "group", &[("is_shared", "true")]).await, 303);
    assert!(is_shown().await, "the group shares it");
    assert_eq!(set(&world.member, "own", &[("choice", "keep")]).await, 303);
    assert!(!is_shown().await, "the member's word counts more");
    // Only PIs decide for the group, and only members for themselves.
    assert_eq!(set(&world.member, "group", &[]).await, 403);
    for who in [&world.other, &world.admin] {
        assert!([403, 404].contains(&set(who, "own", &[("choice", "share")]).await));
        assert!([403, 404].contains(&set(who, "group", &[("is_shared", "true")]).await));
        assert!([403, 404].contains(&who.get(&world.url("sharing")).await.status));
    }
    assert_eq!(set(&world.member, "own", &[("choice", "<b>")]).await, 400);
    let page = world.member.get(&world.url("sharing")).await;
    assert_eq!(page.attribute("option[selected]", "value"), "keep");
    let log = world.admin.get("/activity").await;
    assert!(log.text().contains("Changed the sharing of job scripts and output"), "{}", log.text());
}
