//! What the jobs of whole accounts held and used, for a group's figures: each run of each job with the sum of its steps.

use super::records;
use super::steps::{STEP_FIELD_COUNT, Totals, seconds};
use crate::clock::{Day, UnixTime};
use crate::slurm::fields::{job_id, mark, moment, number, resources, text, word};
use crate::slurm::gres::Gpus;
use crate::slurm::job::{JobId, JobState};
use crate::slurm::text::is_name;
use crate::slurm::usage::Usage;

const FIELDS: &str = "JobID,State,ElapsedRaw,TotalCPU,MaxRSS,NTasks,TRESUsageInAve,TRESUsageInMax,JobIDRaw,User,Account,\
                      Partition,Eligible,Start,End,Suspended,NNodes,AllocTRES,JobName";
const FIELD_COUNT: usize = STEP_FIELD_COUNT + 11;
/// No more rows, jobs and steps together, are read of one answer; whoever has more asks for less time at once.
pub const MOST_ROWS: usize = 400_000;
/// No more accounts than this are asked about at once.
const MOST_ACCOUNTS: usize = 200;
const LONGEST_NAME: usize = 200;

/// One run of a job. A job that was put back into the queue has several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spent {
    /// Its number.
    pub number: u64,
    /// Which task of an array.
    pub task: Option<u32>,
    /// Slurm's own number of this very job.
    pub raw: u64,
    /// Whose.
    pub user: String,
    /// Who pays, as Slurm names it.
    pub account: String,
    /// Its name.
    pub name: String,
    /// What it does, or how it ended.
    pub state: JobState,
    /// Where in the cluster.
    pub partition: String,
    /// From when it might have run.
    pub eligible: Option<UnixTime>,
    /// When it began; none if it never did.
    pub start: Option<UnixTime>,
    /// When it ended.
    pub end: Option<UnixTime>,
    /// How long it stood still, in seconds.
    pub suspended_s: u64,
    /// Cores.
    pub cores: u32,
    /// Nodes.
    pub nodes: u32,
    /// Memory on all its nodes together.
    pub memory_mb: u64,
    /// GPUs by model.
    pub gpus: Vec<Gpus>,
    /// What Slurm bills for a second of it.
    pub billing: u64,
    /// What it used.
    pub usage: Usage,
}

/// The arguments for all runs of some accounts' jobs that were there at some time of a day of the cluster's own
/// calendar, or of one of several equal parts of it. Nothing if a name is none.
pub fn args(nonce: &str, accounts: &[String], from: &str, until: &str) -> Option<Vec<String>> {
    let asked = (1..=MOST_ACCOUNTS).contains(&accounts.len());
    (asked && accounts.iter().all(|account| can_be_asked(account))).then_some(())?;
    let delimiter = format!("--delimiter={}", mark(nonce)?);
    let accounts = accounts.join(",");
    // -D: runs before a job was put back count, too. -a: of everybody, as far as the asker may see.
    let words = [
        "-n", "-p", "-D", "-a", &delimiter, "-A", &accounts, "-S", from, "-E", until, "-o", FIELDS,
    ];
    Some(words.map(str::to_owned).to_vec())
}

/// Whether this can be the name of an account.
pub fn can_be_asked(account: &str) -> bool {
    is_name(account) && !account.contains(':')
}

/// A moment of a day as `sacct` and `date` read it, in the cluster's own time.
pub fn clock_time(day: Day, hour: u32) -> String {
    format!("{day}T{hour:02}:00:00")
}

/// Reads the answer, and says whether there was more than is read.
pub fn read(answer: &[u8], nonce: &str) -> (Vec<Spent>, bool) {
    let mut found: Vec<(Spent, Totals)> = Vec::new();
    let mut left = MOST_ROWS;
    records::<FIELD_COUNT>(answer, nonce, |fields| {
        let (of_step, own) = fields.split_at(STEP_FIELD_COUNT);
        let (Ok(of_step), Ok(own)) = (of_step.try_into(), own.try_into()) else { return false };
        take(&mut found, of_step, own);
        left -= 1;
        left > 0
    });
    let runs = found.into_iter().map(|(run, totals)| Spent { usage: totals.usage(), ..run });
    (runs.collect(), left == 0)
}

fn take(
    found: &mut Vec<(Spent, Totals)>,
    of_step: &[&str; STEP_FIELD_COUNT],
    own: &[&str; FIELD_COUNT - STEP_FIELD_COUNT],
) {
    let (job, step) = of_step[0].split_once('.').unwrap_or((of_step[0], ""));
    if step.is_empty() {
        let Some(run) = run(job, of_step[1], own) else { return };
        found.push((run, Totals::new(job)));
    }
    // Steps follow their job; those of one that was left out belong to nobody.
    if let Some((_, totals)) = found.last_mut().filter(|(_, totals)| totals.is_of(job)) {
        totals.add(step, of_step);
    }
}

fn run(job: &str, state: &str, own: &[&str; FIELD_COUNT - STEP_FIELD_COUNT]) -> Option<Spent> {
    let [raw, user, account, partition, eligible, start, end, suspended, nodes, held, name] = *own;
    let raw = number(raw);
    let (JobId { number: id, task }, None) = job_id(job, raw)? else { return None };
    let resources = resources(held);
    Some(Spent {
        number: id,
        task,
        raw,
        user: word(user, LONGEST_NAME),
        account: word(account, LONGEST_NAME),
        name: text(name, LONGEST_NAME),
        state: JobState::read(state),
        partition: word(partition, LONGEST_NAME),
        eligible: moment(eligible),
        start: moment(start),
        end: moment(end),
        suspended_s: seconds(suspended).unwrap_or(0),
        cores: resources.cpus,
        nodes: u32::try_from(number(nodes)).unwrap_or(0),
        memory_mb: resources.memory_mb.unwrap_or(0),
        gpus: resources.gpus,
        billing: held.split(',').find_map(|piece| piece.strip_prefix("billing=")).map_or(0, number),
        usage: Usage::default(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NONCE: &str = "k3j9x0ab";
    /// Recorded from Slurm 22.05; only the mark was added.
    const RECORDED: &str = include_str!("../../../tests/fixtures/slurm/sacct-spent-22.05.txt");

    fn recorded() -> Vec<Spent> {
        let answer = RECORDED.replace('|', "_k3j9x0ab");
        read(answer.as_bytes(), NONCE).0
    }

    #[test]
    fn recorded_runs() {
        let runs = recorded();
        let one = runs.iter().find(|run| run.raw == 1431).unwrap();
        assert_eq!((one.number, one.task), (1431, Some(0)));
        assert_eq!(
            (one.user.as_str(), one.account.as_str(), one.name.as_str()),
            ("carol", "def-smith", "sweep")
        );
        assert_eq!(
            (one.state, one.cores, one.memory_mb, one.billing),
            (JobState::Completed, 1, 1000, 1)
        );
        assert_eq!(one.end.unwrap().since(one.start.unwrap()), 6470);
        assert_eq!((one.usage.cpu_s, one.usage.max_rss_mb), (Some(6021), Some(273)));
        let gpu = runs.iter().find(|run| !run.gpus.is_empty()).unwrap();
        assert_eq!(gpu.gpus[0].count, 1);
        assert!(gpu.billing > u64::from(gpu.cores), "GPUs are billed here");
        assert!(runs.iter().all(|run| run.raw > 0 && !run.user.is_empty()));
    }

    #[test]
    fn the_words() {
        let accounts = ["def-smith".to_owned(), "rrg-smith".to_owned()];
        let day = Day::read("2026-11-10").unwrap();
        let words =
            args(NONCE, &accounts, &clock_time(day, 0), &clock_time(day.plus(1), 0)).unwrap();
        assert_eq!(
            words[5..11],
            ["-A", "def-smith,rrg-smith", "-S", "2026-11-10T00:00:00", "-E", "2026-11-11T00:00:00"]
        );
        for bad in ["x y", "a,b", "-x", "a;b", "", "é", "a:b"] {
            assert_eq!(args(NONCE, &[bad.to_owned()], "x", "y"), None, "{bad}");
        }
        assert_eq!(args(NONCE, &[], "x", "y"), None);
    }

    #[test]
    fn a_job_that_was_put_back_is_two_runs() {
        let row = |start: u64, end: &str, state: &str, cpu: &str| {
            let own = format!(
                "7|bob|a|cpu|90|{start}|{end}|00:00:10|1|billing=2,cpu=2,mem=1G,node=1|x\n|y"
            );
            let job = format!("7|{state}|50|{cpu}|||||{own}|\n");
            let step = format!(
                "7.batch|{state}|50|{cpu}|2048K|1|||7||a||90|{start}|{end}|00:00:00|1|cpu=2|batch|\n"
            );
            format!("{job}{step}").replace("x\n|y", "x")
        };
        let text = row(100, "150", "NODE_FAIL", "00:10") + &row(200, "Unknown", "RUNNING", "00:00");
        let (runs, cut) = read(text.replace('|', "_k3j9x0ab").as_bytes(), NONCE);
        assert_eq!((runs.len(), cut), (2, false));
        assert_eq!((runs[0].start, runs[0].end), (Some(UnixTime(100)), Some(UnixTime(150))));
        assert_eq!((runs[0].suspended_s, runs[0].usage.max_rss_mb), (10, Some(2)));
        assert_eq!((runs[1].end, runs[1].state), (None, JobState::Running));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(any in "((_k3j9x0ab|\n|[0-9.]{1,4}|[a-zé]{1,3}|=|,){0,120})|(?s).{0,80}") {
            let _ = read(any.as_bytes(), NONCE);
        }
    }
}
