//! Before a job is submitted, on the real cluster: when it and its alternatives would start, and what earlier runs used.

use std::time::{Duration, Instant};

use portolan::cluster::ClusterAccountId;
use portolan::cluster::estimate::estimate_starts;
use portolan::cluster::past_runs::load_past_runs;
use portolan::jobs::PastRunsCache;
use portolan::slurm::job::JobState;
use portolan::slurm::test_only::TestOnlyAnswer;

use crate::queue::{cancel, connected, submit};
use crate::support::cluster::Cluster;
use crate::support::connections::run;
use crate::support::wait::wait_for;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The numbers of someone's jobs, all that there ever were.
fn jobs_of(user: &str) -> String {
    let done = Cluster::get().script(&["exec", "sacct", "-nPX", "-u", user, "-S", "now-1hours", "-o", "JobID"]);
    String::from_utf8(done.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn job_and_alternatives_are_estimated_in_one_round_trip() {
    let (portal, _, _carol) = connected("carol").await;
    let line = portal.connection("carol", "key").await;
    let before = jobs_of("carol");
    // A script that would leave a trace if it ever ran.
    let script = "#!/bin/bash\n#SBATCH --time=00:05:00\n#SBATCH --output=/dev/null\n#SBATCH --job-name=\"it's\"\n\
                  touch \"$HOME/estimate-ran\"\n";
    let variants = [
        words(&[]),
        words(&["--cpus-per-task=4", "--job-name=a b; touch $HOME/x `id`"]),
        words(&["--partition=gpu", "--gpus-per-node=v100:1"]),
        words(&["--time=30-00:00:00"]),
        words(&["--account=def-nobody"]),
    ];
    let calls = || line.call_budget().stats(Instant::now()).commands;
    let sent = Instant::now();
    let counted = calls();
    let answers = estimate_starts(&line, script, &variants).await.unwrap();
    // The portal may look at the queue in between: its own calls come through the same tally, but not so many.
    assert!(calls() - counted <= 2, "one call for {} questions", variants.len());
    assert!(sent.elapsed() < Duration::from_secs(10));
    assert_eq!(answers.len(), variants.len());
    let TestOnlyAnswer::Starts(first) = &answers[0] else { panic!("{answers:?}") };
    assert_eq!((first.processors, first.partition.as_str()), (1, "cpu"));
    let now = run(&line, "date", &["+%s"]).await.unwrap().stdout_text().trim().parse::<i64>().unwrap();
    assert!((first.at.0 - now).abs() < 3600 * 24 * 7, "{first:?} at {now}");
    assert!(matches!(&answers[1], TestOnlyAnswer::Starts(start) if start.processors == 4), "{answers:?}");
    assert!(matches!(&answers[2], TestOnlyAnswer::Starts(start) if start.partition == "gpu"), "{answers:?}");
    assert!(matches!(&answers[3], TestOnlyAnswer::Refused(said) if said.contains("time limit")), "{answers:?}");
    assert!(matches!(&answers[4], TestOnlyAnswer::Refused(said) if said.contains("Invalid account")), "{answers:?}");
    // Nothing was submitted, and nothing ran.
    assert_eq!(jobs_of("carol"), before);
    let trace = run(&line, "ls", &["/home/carol"]).await.unwrap();
    assert!(!trace.stdout_text().contains("estimate-ran"), "{}", trace.stdout_text());
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_of_a_past_run_is_read() {
    let (portal, _, _tessa) = connected("tessa").await;
    let line = portal.connection("tessa", "key").await;
    let held = "python3 -c \"import time; x = bytearray(60000000); time.sleep(3)\"";
    let job = submit("tessa", held, &["-o", "/dev/null", "-t", "30", "--mem=500M", "-c", "2"]);
    let number: u64 = job.parse().unwrap();
    let found = wait_for("the accounting knows of it", async || {
        let found = load_past_runs(&line, &[number, 99_999_999]).await.unwrap();
        let is_known = found
            .iter()
            .any(|run| run.state == JobState::Completed && run.usage.max_rss_mb.is_some() && run.minutes.is_some());
        if is_known { Ok(found) } else { Err(format!("{found:?}")) }
    })
    .await;
    cancel("tessa", &job);
    let [run] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((run.number, run.state), (number, JobState::Completed));
    assert_eq!((run.minutes, run.memory_mb, run.cores, run.nodes), (Some(30), Some(500), 2, 1));
    assert!((50..300).contains(&run.usage.max_rss_mb.unwrap()) && run.usage.elapsed_s >= 2, "{run:?}");
    // The room of jobs gives the same, and asks once however often it is asked.
    let past = PastRunsCache::new(portal.app.core.clone(), portal.app.connections.clone());
    let key = portal.connection_key("tessa", "key").await;
    let key = ClusterAccountId { person: key.person, cluster: key.cluster };
    // As long as the portal believes that the job goes on, it is none of the past.
    let first = wait_for("the past has it", async || {
        let first = past.load_runs(key, &[number]).await.unwrap();
        if first.is_empty() { Err("nothing") } else { Ok(first) }
    })
    .await;
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!(first[0].usage.max_rss_mb, run.usage.max_rss_mb);
    let counted = line.call_budget().stats(Instant::now()).commands;
    for _ in 0..20 {
        assert_eq!(past.load_runs(key, &[number]).await.unwrap(), first);
    }
    assert!(line.call_budget().stats(Instant::now()).commands - counted <= 2, "told once");
}
