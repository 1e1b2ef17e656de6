//! What the jobs of whole accounts held and used, for a group's figures: each run of each job with the sum of its
//! steps.

use super::steps::{STEP_FIELD_COUNT, StepTotals};
use crate::clock::{Day, UnixTime};
use crate::slurm::fields::{
    clean_field, clean_value, delimiter_option, for_each_record, parse_cpu_seconds, parse_job_id, parse_number,
    parse_time, parse_tres, parse_u32,
};
use crate::slurm::gres::GpuCount;
use crate::slurm::job::{JobId, JobState};
use crate::slurm::job_usage::JobUsage;
use crate::slurm::text::is_user_or_account;

const FIELDS: &str = "JobID,State,ElapsedRaw,TotalCPU,MaxRSS,NTasks,TRESUsageInAve,TRESUsageInMax,JobIDRaw,User,Account,\
                      Partition,QOS,Submit,Eligible,Start,End,Suspended,NNodes,AllocTRES,JobName";
const FIELD_COUNT: usize = STEP_FIELD_COUNT + 13;
/// The most rows, jobs and steps together, read from one output; callers with more must request shorter periods.
pub const MAX_ROWS: usize = 400_000;
/// The most accounts in one request.
const MAX_ACCOUNTS: usize = 200;
const MAX_NAME_LEN: usize = 200;

/// One run of a job. A requeued job has several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountedRun {
    pub number: u64,
    /// The array task index.
    pub task: Option<u32>,
    /// Slurm's raw job ID.
    pub raw_id: u64,
    pub user: String,
    /// The account, as Slurm names it.
    pub account: String,
    pub name: String,
    pub state: JobState,
    pub partition: String,
    pub qos: String,
    pub submitted: Option<UnixTime>,
    /// When it became eligible to run.
    pub eligible: Option<UnixTime>,
    /// When it started; none if it never did.
    pub start: Option<UnixTime>,
    pub end: Option<UnixTime>,
    /// How long it was suspended, in seconds.
    pub suspended_s: u64,
    pub cores: u32,
    pub nodes: u32,
    /// Memory on all its nodes together.
    pub memory_mb: u64,
    pub gpus: Vec<GpuCount>,
    /// What Slurm bills per second.
    pub billing: u64,
    pub usage: JobUsage,
}

/// The arguments for all runs of some accounts' jobs that existed at any time of a day in the cluster's calendar, or
/// of one of several equal parts of that day. None if a name is invalid.
pub fn account_runs_args(nonce: &str, accounts: &[String], from: &str, until: &str) -> Option<Vec<String>> {
    let asked = (1..=MAX_ACCOUNTS).contains(&accounts.len());
    (asked && accounts.iter().all(|account| is_user_or_account(account))).then_some(())?;
    let delimiter = delimiter_option(nonce)?;
    let accounts = accounts.join(",");
    // -D: include runs before a job was requeued. -a: include everybody, as far as the caller may see.
    let words = ["-n", "-p", "-D", "-a", &delimiter, "-A", &accounts, "-S", from, "-E", until, "-o", FIELDS];
    Some(words.map(str::to_owned).to_vec())
}

/// A time of day as `sacct` and `date` read it, in the cluster's time zone.
pub fn clock_time(day: Day, hour: u32) -> String {
    format!("{day}T{hour:02}:00:00")
}

/// Parses the output, and returns whether there was more than is read.
pub fn parse_account_runs(answer: &[u8], nonce: &str) -> (Vec<AccountedRun>, bool) {
    let mut found: Vec<(AccountedRun, StepTotals)> = Vec::new();
    let mut left = MAX_ROWS;
    for_each_record::<FIELD_COUNT>(answer, nonce, |fields| {
        let (of_step, own) = fields.split_at(STEP_FIELD_COUNT);
        let (Ok(of_step), Ok(own)) = (of_step.try_into(), own.try_into()) else { return false };
        add_record(&mut found, of_step, own);
        left -= 1;
        left > 0
    });
    let runs = found.into_iter().map(|(run, totals)| AccountedRun { usage: totals.into_usage(), ..run });
    (runs.collect(), left == 0)
}

fn add_record(
    found: &mut Vec<(AccountedRun, StepTotals)>,
    of_step: &[&str; STEP_FIELD_COUNT],
    own: &[&str; FIELD_COUNT - STEP_FIELD_COUNT],
) {
    let (job, step) = of_step[0].split_once('.').unwrap_or((of_step[0], ""));
    if step.is_empty() {
        let Some(run) = parse_run(job, of_step[1], own) else { return };
        found.push((run, StepTotals::new(job)));
    }
    // Steps follow their job; steps of a skipped job are dropped.
    if let Some((_, totals)) = found.last_mut().filter(|(_, totals)| totals.is_for_job(job)) {
        totals.add(step, of_step);
    }
}

fn parse_run(job: &str, state: &str, own: &[&str; FIELD_COUNT - STEP_FIELD_COUNT]) -> Option<AccountedRun> {
    let [raw, user, account, partition, qos, submitted, eligible, start, end, suspended, nodes, tres, name] = *own;
    let raw = parse_number(raw);
    let (JobId { number: id, task }, None) = parse_job_id(job, raw)? else { return None };
    let resources = parse_tres(tres);
    Some(AccountedRun {
        number: id,
        task,
        raw_id: raw,
        user: clean_value(user, MAX_NAME_LEN),
        account: clean_value(account, MAX_NAME_LEN),
        name: clean_field(name, MAX_NAME_LEN),
        state: JobState::parse(state),
        partition: clean_value(partition, MAX_NAME_LEN),
        qos: clean_value(qos, MAX_NAME_LEN),
        submitted: parse_time(submitted),
        eligible: parse_time(eligible),
        start: parse_time(start),
        end: parse_time(end),
        suspended_s: parse_cpu_seconds(suspended).unwrap_or(0),
        cores: resources.cpus,
        nodes: parse_u32(nodes),
        memory_mb: resources.memory_mb.unwrap_or(0),
        gpus: resources.gpus,
        billing: tres.split(',').find_map(|piece| piece.strip_prefix("billing=")).map_or(0, parse_number),
        usage: JobUsage::default(),
    })
}

/// What `sacct` would have printed: the recording was made before QOS and Submit were asked for, so they are empty.
#[cfg(test)]
pub fn recorded_answer(recorded: &str, nonce: &str) -> Vec<u8> {
    let with_new_fields = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        let (before, after) = cells.split_at(STEP_FIELD_COUNT + 4);
        [before, &["", ""], after].concat().join(&format!("_{nonce}"))
    };
    recorded.lines().map(|line| with_new_fields(line) + "\n").collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NONCE: &str = "k3j9x0ab";
    /// Recorded from Slurm 22.05; see [`recorded_answer`].
    const RECORDED: &str = include_str!("../../../tests/fixtures/slurm/sacct-spent-22.05.txt");

    fn recorded() -> Vec<AccountedRun> {
        parse_account_runs(&recorded_answer(RECORDED, NONCE), NONCE).0
    }

    #[test]
    fn recorded_runs() {
        let runs = recorded();
        let one = runs.iter().find(|run| run.raw_id == 1431).unwrap();
        assert_eq!((one.number, one.task), (1431, Some(0)));
        assert_eq!((one.user.as_str(), one.account.as_str(), one.name.as_str()), ("carol", "def-smith", "sweep"));
        assert_eq!((one.state, one.cores, one.memory_mb, one.billing), (JobState::Completed, 1, 1000, 1));
        assert_eq!(one.end.unwrap().since(one.start.unwrap()), 6470);
        assert_eq!((one.usage.cpu_s, one.usage.max_rss_mb), (Some(6021), Some(273)));
        let gpu = runs.iter().find(|run| !run.gpus.is_empty()).unwrap();
        assert_eq!(gpu.gpus[0].count, 1);
        assert!(gpu.billing > u64::from(gpu.cores), "GPUs are billed here");
        assert!(runs.iter().all(|run| run.raw_id > 0 && !run.user.is_empty()));
    }

    #[test]
    fn the_words() {
        let accounts = ["def-smith".to_owned(), "rrg-smith".to_owned()];
        let day = Day::parse("2026-11-10").unwrap();
        let words = account_runs_args(NONCE, &accounts, &clock_time(day, 0), &clock_time(day.plus(1), 0)).unwrap();
        assert_eq!(
            words[5..11],
            ["-A", "def-smith,rrg-smith", "-S", "2026-11-10T00:00:00", "-E", "2026-11-11T00:00:00"]
        );
        for bad in ["x y", "a,b", "-x", "a;b", "", "é", "a:b"] {
            assert_eq!(account_runs_args(NONCE, &[bad.to_owned()], "x", "y"), None, "{bad}");
        }
        assert_eq!(account_runs_args(NONCE, &[], "x", "y"), None);
    }

    #[test]
    fn a_job_that_was_put_back_is_two_runs() {
        let row = |start: u64, end: &str, state: &str, cpu: &str| {
            let own = format!("7|bob|a|cpu|long|80|90|{start}|{end}|00:00:10|1|billing=2,cpu=2,mem=1G,node=1|x\n|y");
            let job = format!("7|{state}|50|{cpu}|||||{own}|\n");
            let step = format!("7.batch|{state}|50|{cpu}|2048K|1|||7||a||||90|{start}|{end}|00:00:00|1|cpu=2|batch|\n");
            format!("{job}{step}").replace("x\n|y", "x")
        };
        let text = row(100, "150", "NODE_FAIL", "00:10") + &row(200, "Unknown", "RUNNING", "00:00");
        let (runs, cut) = parse_account_runs(text.replace('|', "_k3j9x0ab").as_bytes(), NONCE);
        assert_eq!((runs.len(), cut), (2, false));
        assert_eq!((runs[0].start, runs[0].end), (Some(UnixTime(100)), Some(UnixTime(150))));
        assert_eq!((runs[0].suspended_s, runs[0].usage.max_rss_mb), (10, Some(2)));
        assert_eq!((runs[1].end, runs[1].state), (None, JobState::Running));
        assert_eq!((runs[1].qos.as_str(), runs[1].submitted), ("long", Some(UnixTime(80))));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(any in "((_k3j9x0ab|\n|[0-9.]{1,4}|[a-zé]{1,3}|=|,){0,120})|(?s).{0,80}") {
            let _ = parse_account_runs(any.as_bytes(), NONCE);
        }
    }
}
