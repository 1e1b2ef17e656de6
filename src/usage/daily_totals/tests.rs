use proptest::prelude::*;

use super::*;
use crate::slurm::accounting::account_runs;
use crate::slurm::gres::GpuCount;
use crate::slurm::job::JobState;

const DAY: OneDayWindow = OneDayWindow { from: UnixTime(1_794_268_800), until: UnixTime(1_794_355_200) };
/// Recorded together from Slurm 22.05: what `sacct` and `sreport` say about the same day.
const SACCT: &str = include_str!("../../../tests/fixtures/slurm/sacct-spent-22.05.txt");
const SREPORT: &str = include_str!("../../../tests/fixtures/slurm/sreport-day-22.05.txt");

fn demo() -> Site {
    crate::sites::presets().iter().find(|site| site.name.as_str() == "demo").unwrap().clone()
}

fn run(start: i64, end: i64) -> AccountedRun {
    AccountedRun {
        raw_id: 1,
        number: 1,
        user: "bob".into(),
        name: "fit-1".into(),
        state: JobState::Completed,
        eligible: Some(UnixTime(start - 30)),
        start: Some(UnixTime(start)),
        end: Some(UnixTime(end)),
        cores: 4,
        memory_mb: 8192,
        billing: 4,
        ..AccountedRun::default()
    }
}

fn all(runs: &[AccountedRun], window: OneDayWindow) -> UsageTotals {
    let runs: Vec<&AccountedRun> = runs.iter().collect();
    let mut sums = UsageTotals::default();
    count_day(&runs, window, &UserNameVisibility::All, &demo()).rows.iter().for_each(|(_, _, one)| sums.add(one));
    sums
}

/// What `sreport` says about an account (or a person in it) and a resource, in seconds.
fn reported(account: &str, user: &str, resource: &str) -> u64 {
    let fits = |line: &&str| {
        let cells: Vec<&str> = line.split('|').collect();
        cells.len() == 6 && cells[1] == account && cells[2] == user && cells[4] == resource
    };
    SREPORT.lines().find(fits).map_or(0, |line| line.rsplit('|').next().unwrap().parse().unwrap())
}

#[test]
fn a_day_equals_what_sreport_says() {
    let mut saga = demo();
    saga.units.name = Some("billing hours".into());
    let (runs, cut) = account_runs::parse_account_runs(&account_runs::recorded_answer(SACCT, "k3j9x0ab"), "k3j9x0ab");
    assert!(!cut && runs.len() > 10);
    for account in ["def-smith", "rrg-smith"] {
        let mine: Vec<&AccountedRun> = runs.iter().filter(|run| run.account == account).collect();
        let totals = count_day(&mine, DAY, &UserNameVisibility::All, &saga);
        let mut whole = UsageTotals::default();
        let mut people: HashMap<&str, UsageTotals> = HashMap::new();
        for (user, _, sums) in &totals.rows {
            whole.add(sums);
            people.entry(user).or_default().add(sums);
        }
        assert!(whole.core_s > 0);
        for (user, sums) in people.into_iter().chain([("", whole)]) {
            assert_eq!(sums.core_s, reported(account, user, "cpu"), "{account} {user}");
            assert_eq!(sums.gpu_s, reported(account, user, "gres/gpu"), "{account} {user}");
            let by_partition: u64 = sums.partitions.sums().iter().map(|one| one.core_s).sum();
            assert_eq!(by_partition, sums.core_s, "every job has a partition");
            assert_eq!(sums.site_ms, 1000 * reported(account, user, "billing"), "{account} {user}");
            for model in ["t4", "v100"] {
                let counted = sums.gpus.iter().find(|(name, _)| name == model).map_or(0, |one| one.1);
                let told = reported(account, user, &format!("gres/gpu:{model}"));
                assert_eq!(counted, told, "{account} {user} {model}");
            }
        }
    }
}

#[test]
fn a_job_over_midnight_is_paid_on_both_days_and_ends_on_one() {
    let next = OneDayWindow { from: DAY.until, until: DAY.until.plus(86_400) };
    let runs = [run(DAY.until.0 - 3600, DAY.until.0 + 1800)];
    let (first, second) = (all(&runs, DAY), all(&runs, next));
    assert_eq!((first.core_s, first.jobs), (4 * 3600, 0));
    assert_eq!((second.core_s, second.jobs, second.done), (4 * 1800, 1, 1));
    let at_midnight = [run(DAY.until.0 - 60, DAY.until.0)];
    assert_eq!((all(&at_midnight, DAY).jobs, all(&at_midnight, next).jobs), (0, 1), "exactly once");
    let ends = |window: OneDayWindow| {
        let run = run(DAY.until.0 - 3600, DAY.until.0 + 7200);
        count_day(&[&run], window, &UserNameVisibility::All, &demo()).jobs[0].outcome
    };
    let next = OneDayWindow { from: DAY.until, until: DAY.until.plus(86_400) };
    assert_eq!([ends(DAY), ends(next)], [UsageJobOutcome::Running, UsageJobOutcome::Done], "likewise in the list");
}

#[test]
fn a_day_of_25_hours_has_25_hours() {
    let long = OneDayWindow { from: DAY.from, until: DAY.from.plus(25 * 3600) };
    assert_eq!(all(&[run(DAY.from.0 - 5000, long.until.0 + 5000)], long).core_s, 4 * 25 * 3600);
}

#[test]
fn running_waiting_and_still_jobs() {
    let mut running = run(DAY.from.0 + 100, 0);
    (running.end, running.state) = (None, JobState::Running);
    let so_far = OneDayWindow { until: DAY.from.plus(1100), ..DAY };
    let sums = all(&[running], so_far);
    assert_eq!((sums.core_s, sums.jobs), (4000, 0));
    let mut waiting = run(0, 0);
    (waiting.start, waiting.end, waiting.state) = (None, None, JobState::Pending);
    assert!(all(&[waiting.clone()], DAY).is_empty());
    // Cancelled before it started.
    (waiting.end, waiting.state) = (Some(DAY.from.plus(5)), JobState::Cancelled);
    let sums = all(&[waiting], DAY);
    assert_eq!((sums.jobs, sums.cancelled, sums.core_s, sums.waits.median()), (1, 1, 0, None));
    let mut still = run(DAY.from.0, DAY.from.0 + 1000);
    still.suspended_s = 400;
    assert_eq!(all(&[still], DAY).core_s, 4 * 600);
}

#[test]
fn waste_and_what_would_have_been_enough() {
    let mut one = run(DAY.from.0, DAY.from.0 + 3600);
    one.usage = JobUsage { cpu_s: Some(3600), max_rss_mb: Some(2048), tasks: 1, ..JobUsage::default() };
    let sums = all(&[one.clone()], DAY);
    assert_eq!((sums.held_core_s, sums.used_core_s), (4 * 3600, 3600));
    assert_eq!(sums.spare_core_s, 2 * 3600, "one core was busy, and a fifth more are two");
    assert_eq!(sums.spare_mb_s, (8192 - 2048 - 409) * 3600);
    assert_eq!(sums.core_use(), Some(0.25));
    let mut failed = one.clone();
    failed.state = JobState::OutOfMemory;
    let sums = all(&[failed], DAY);
    assert_eq!((sums.lost_core_s, sums.memory_out, sums.spare_core_s), (4 * 3600, 1, 0));
    let mut gpu = one.clone();
    gpu.gpus = vec![GpuCount { model: Some("t4".into()), count: 2 }];
    gpu.usage.gpu_percent = Some(150);
    let sums = all(&[gpu], DAY);
    assert_eq!((sums.held_gpu_s, sums.used_gpu_s, sums.spare_core_s), (7200, 5400, 0));
    assert_eq!(sums.spare_gpu_s, 0, "one and a half GPUs were busy");
    assert_eq!((spare_gpu_s(4, 10, 150), spare_gpu_s(4, 10, 0), spare_gpu_s(1, 10, 1)), (20, 30, 0));
    let mut whole = demo();
    whole.jobs.whole_node = true;
    let totals = count_day(&[&one], DAY, &UserNameVisibility::All, &whole);
    assert_eq!((totals.rows[0].2.spare_core_s, totals.rows[0].2.spare_mb_s), (0, 0));
}

#[test]
fn node_failures_and_missed_deadlines_are_counted_apart() {
    let ended = |state: JobState| AccountedRun {
        state,
        partition: "gpu".into(),
        qos: "long".into(),
        ..run(DAY.from.0, DAY.from.0 + 3600)
    };
    let states = [JobState::Failed, JobState::NodeFail, JobState::BootFail, JobState::Preempted, JobState::Deadline];
    let sums = all(&states.map(ended), DAY);
    assert_eq!((sums.jobs, sums.failed, sums.timed_out), (5, 1, 0), "failures of the program");
    assert_eq!((sums.node_failed, sums.interrupted, sums.missed_deadline), (2, 1, 1));
    assert_eq!(sums.lost_core_s, 5 * 4 * 3600, "all of it is wasted");
    assert_eq!((sums.partitions.to_string(), sums.qos.to_string()), ("gpu:72000:0:5".into(), "long:72000:0:5".into()));
}

#[test]
fn without_names_others_are_one_sum() {
    let mine = run(DAY.from.0, DAY.from.0 + 100);
    let theirs = |user: &str, raw: u64| AccountedRun { user: user.into(), raw_id: raw, ..mine.clone() };
    let runs = [mine.clone(), theirs("carol", 2), theirs("eve", 3)];
    let runs: Vec<&AccountedRun> = runs.iter().collect();
    let totals = count_day(&runs, DAY, &UserNameVisibility::Only("bob".into()), &demo());
    let who: Vec<_> = totals.rows.iter().map(|(user, kind, sums)| (&**user, &**kind, sums.jobs)).collect();
    assert_eq!(who, [("", "", 2), ("bob", "fit-#", 1)]);
    assert!(totals.jobs.iter().all(|job| job.user == "bob"), "nothing of others is kept");
}

#[test]
fn sorts_of_jobs() {
    for (name, kind) in [
        ("fold-1", "fold-#"),
        ("fold-12", "fold-#"),
        ("2026run07b", "#run#b"),
        ("", "without a name"),
        (" train ", "train"),
    ] {
        assert_eq!(job_kind(name), kind, "{name}");
    }
    assert_eq!(job_kind(&"é".repeat(500)).chars().count(), MAX_KIND_LEN);
    let names = (0..MAX_KINDS_PER_USER + 50).map(|n| {
        let letters: String = n.to_string().bytes().map(|b| char::from(b + 49)).collect();
        let raw = u64::try_from(n).unwrap();
        AccountedRun { name: letters, raw_id: raw, ..run(DAY.from.0, DAY.from.0 + 10) }
    });
    let runs: Vec<AccountedRun> = names.collect();
    let runs: Vec<&AccountedRun> = runs.iter().collect();
    let totals = count_day(&runs, DAY, &UserNameVisibility::All, &demo());
    assert_eq!(totals.rows.len(), MAX_KINDS_PER_USER + 1);
    assert_eq!(totals.jobs.len(), runs.len());
}

proptest! {
    /// However a span of time is cut into windows, the seconds add up and each end is counted once.
    #[test]
    fn windows_add_up(start in 0_i64..5000, length in 0_i64..9000, cuts in proptest::collection::vec(0_i64..12_000, 0..6)) {
        let from = DAY.from;
        let runs = [run(from.0 + start, from.0 + start + length)];
        let mut edges = cuts;
        edges.extend([0, 20_000]);
        edges.sort_unstable();
        let (mut seconds, mut ends) = (0, 0);
        for pair in edges.windows(2) {
            let window = OneDayWindow { from: from.plus(pair[0]), until: from.plus(pair[1]) };
            let sums = all(&runs, window);
            seconds += sums.core_s;
            ends += sums.jobs;
        }
        prop_assert_eq!((seconds, ends), (u64::try_from(length).unwrap() * 4, 1));
    }
}
