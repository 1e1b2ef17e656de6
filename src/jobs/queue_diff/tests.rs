use super::*;
use crate::domain::JobRowId;

const NOW: UnixTime = UnixTime(10_000);

fn job(number: u64, state: JobState) -> SlurmJob {
    let started = state.stage() != JobStage::Pending;
    SlurmJob {
        id: JobId::without_task(number),
        raw_id: number,
        state,
        submitted: Some(UnixTime(9_000)),
        start: started.then_some(UnixTime(9_500)),
        end: state.is_over().then_some(UnixTime(9_900)),
        ..SlurmJob::default()
    }
}

fn known(jobs: Vec<SlurmJob>) -> JobRecordMap {
    let record =
        |job: SlurmJob| (job.id, Arc::new(JobRecord { id: JobRowId(1), ..JobRecord::new(job, UnixTime(9_000)) }));
    jobs.into_iter().map(record).collect()
}

#[test]
fn nothing_new_is_no_change() {
    let jobs = vec![job(1, JobState::Running), job(2, JobState::Pending), job(3, JobState::Failed)];
    let merged = diff_queue(&known(jobs.clone()), jobs, Some(UnixTime(9_990)), NOW);
    assert!(merged.changes.is_empty() && merged.missing.is_empty() && merged.gone.is_empty());
}

#[test]
fn starts_and_ends_are_news_once() {
    let before = known(vec![job(1, JobState::Pending), job(2, JobState::Running), job(3, JobState::Pending)]);
    let told = vec![job(1, JobState::Running), job(2, JobState::Timeout), job(3, JobState::Cancelled)];
    let merged = diff_queue(&before, told.clone(), Some(UnixTime(9_000)), NOW);
    let news: Vec<_> = merged.changes.iter().map(|change| change.transition).collect();
    assert_eq!(
        news,
        [Some(NotifiedTransition::Started), Some(NotifiedTransition::Ended), Some(NotifiedTransition::Ended)]
    );
    assert!(merged.changes.iter().all(|change| change.is_new_state && change.is_worth_saving));
    let after = known(told.clone());
    assert!(diff_queue(&after, told, Some(UnixTime(9_000)), NOW).changes.is_empty());
}

#[test]
fn ranks_and_estimates_are_not_worth_writing_down() {
    let before = known(vec![job(1, JobState::Pending)]);
    let told = SlurmJob { priority: 5, start: Some(UnixTime(20_000)), ..job(1, JobState::Pending) };
    let merged = diff_queue(&before, vec![told], None, NOW);
    assert!(!merged.changes[0].is_worth_saving && !merged.changes[0].is_new_state);
    let told = SlurmJob { reason: "Resources".into(), ..job(1, JobState::Pending) };
    assert!(diff_queue(&before, vec![told], None, NOW).changes[0].is_worth_saving);
}

#[test]
fn what_was_there_before_the_first_look_is_no_news() {
    let told = vec![job(1, JobState::Running), job(2, JobState::Failed)];
    let first = diff_queue(&JobRecordMap::new(), told.clone(), None, NOW);
    assert!(first.changes.iter().all(|change| change.transition.is_none() && change.is_new));
    // Both started and ended while the portal was down.
    let later = diff_queue(&JobRecordMap::new(), told, Some(UnixTime(9_400)), NOW);
    let news: Vec<_> = later.changes.iter().map(|change| change.transition).collect();
    assert_eq!(news, [Some(NotifiedTransition::Started), Some(NotifiedTransition::Ended)]);
}

#[test]
fn an_end_stays_an_end_until_the_job_lives_again() {
    let before = known(vec![job(1, JobState::Failed)]);
    let late = job(1, JobState::Completing);
    assert!(diff_queue(&before, vec![late], None, NOW).changes.is_empty(), "an older picture");
    let again = SlurmJob { submitted: Some(UnixTime(9_950)), restarts: 1, ..job(1, JobState::Pending) };
    let merged = diff_queue(&before, vec![again], None, NOW);
    assert!(!merged.changes[0].record.is_over && merged.changes[0].is_new_state);
}

#[test]
fn a_rest_whose_tasks_all_began_is_gone_and_a_vanished_job_is_missing() {
    let rest = SlurmJob { tasks: ArrayTaskSet::parse("1-3"), ..job(7, JobState::Pending) };
    let before = known(vec![rest, job(8, JobState::Running)]);
    let task = SlurmJob { id: JobId { number: 7, task: Some(1) }, ..job(7, JobState::Running) };
    let merged = diff_queue(&before, vec![task], None, NOW);
    assert_eq!(merged.gone.len(), 1);
    assert_eq!(merged.missing[0].job.id, JobId::without_task(8));
}

#[test]
fn tasks_that_were_cancelled_before_they_began_do_not_hide_those_that_wait() {
    let rest = SlurmJob { tasks: ArrayTaskSet::parse("4-9"), ..job(7, JobState::Pending) };
    let cancelled = SlurmJob { tasks: ArrayTaskSet::parse("1-3"), ..job(7, JobState::Cancelled) };
    let merged = diff_queue(&JobRecordMap::new(), vec![rest.clone(), cancelled.clone()], None, NOW);
    let ids: Vec<String> = merged.changes.iter().map(|one| one.record.job.id.to_string()).collect();
    assert_eq!(ids, ["7", "7_1", "7_2", "7_3"]);
    assert!(merged.vanished.is_empty());
    let before: JobRecordMap =
        merged.changes.into_iter().map(|one| (one.record.job.id, Arc::new(one.record))).collect();
    assert!(diff_queue(&before, vec![rest, cancelled.clone()], Some(NOW), NOW).changes.is_empty());
    let all = SlurmJob { tasks: ArrayTaskSet::parse("1-9"), ..cancelled };
    let merged = diff_queue(&before, vec![all], Some(NOW), NOW);
    assert_eq!((merged.changes.len(), merged.gone.len()), (6, 1), "nothing waits any more");
    // Some Slurm versions forget such tasks at once.
    let fewer = SlurmJob { tasks: ArrayTaskSet::parse("6-9"), ..job(7, JobState::Pending) };
    let begun = SlurmJob { id: JobId { number: 7, task: Some(4) }, ..job(7, JobState::Running) };
    let merged = diff_queue(&before, vec![fewer.clone(), begun.clone()], Some(NOW), NOW);
    let (id, rest) = &merged.vanished[0];
    assert_eq!((id.to_string().as_str(), merged.vanished.len()), ("7_5", 1), "neither waits nor began");
    let inferred = cancelled_before_start(*id, rest, NOW);
    assert_eq!(inferred.record.job.state, JobState::Cancelled);
    assert!(inferred.record.is_over && inferred.record.job.start.is_none());
    let fifth = SlurmJob { id: JobId { number: 7, task: Some(5) }, ..job(7, JobState::Running) };
    let merged = diff_queue(&before, vec![fewer, begun, fifth], Some(NOW), NOW);
    assert!(merged.vanished.is_empty());
}

#[test]
fn the_accounting_confirms_ends_and_adds_what_was_never_seen() {
    let before = known(vec![job(1, JobState::Running), job(2, JobState::Running)]);
    let extra = AccountingExtra { submit_line: "sbatch x".into(), cancelled_by: Some("0".into()) };
    let told = vec![
        (job(1, JobState::OutOfMemory), extra.clone()),
        (job(2, JobState::Running), AccountingExtra::default()),
        (job(3, JobState::Completed), AccountingExtra::default()),
    ];
    let changes = diff_accounting(&before, told.clone(), Some(UnixTime(9_800)), NOW);
    assert_eq!(changes.len(), 2, "what runs is the queue's matter");
    assert_eq!(changes[0].transition, Some(NotifiedTransition::Ended));
    assert_eq!((changes[0].record.submit_line.as_str(), changes[0].record.cancelled_by.as_str()), ("sbatch x", "0"));
    assert!(changes.iter().all(|change| change.record.is_settled));
    assert_eq!(changes[1].transition, Some(NotifiedTransition::Ended), "it ended after the last look");
    let after: JobRecordMap = changes.iter().map(|one| (one.record.job.id, Arc::new(one.record.clone()))).collect();
    assert!(diff_accounting(&after, told, None, NOW).is_empty(), "told and settled");
}

#[test]
fn an_older_life_in_the_accounting_does_not_end_the_present_one() {
    let again = SlurmJob { submitted: Some(UnixTime(9_950)), ..job(1, JobState::Pending) };
    let told = vec![(job(1, JobState::Failed), AccountingExtra::default())];
    assert!(diff_accounting(&known(vec![again]), told, None, NOW).is_empty());
}

#[test]
fn what_nobody_knows_any_more_is_over_in_an_unknown_way() {
    let missing: Vec<_> = known(vec![job(1, JobState::Running)]).into_values().collect();
    let since = |at: i64| HashMap::from([(JobId::without_task(1), UnixTime(at))]);
    assert!(lost_jobs(&missing, &[], &since(9_900), NOW).is_empty(), "the accounting may be late");
    let lost = lost_jobs(&missing, &[], &since(9_000), NOW);
    assert!(lost[0].record.is_lost() && lost[0].record.is_over);
    assert_eq!(lost[0].transition, Some(NotifiedTransition::Ended));
}

#[test]
fn fifty_thousand_jobs_are_compared_and_listed() {
    let one = |number: u64| {
        let state = if number.is_multiple_of(2) { JobState::Running } else { JobState::Pending };
        let is_task = number < 20_000;
        let id = JobId {
            number: if is_task { number / 100 } else { number },
            task: is_task.then(|| u32::try_from(number % 100).unwrap_or(0)),
        };
        SlurmJob { id, ..job(number, state) }
    };
    let told: Vec<SlurmJob> = (0..50_000).map(one).collect();
    let first = diff_queue(&JobRecordMap::new(), told.clone(), None, NOW);
    assert_eq!(first.changes.len(), 50_000);
    let before: JobRecordMap = first.changes.into_iter().map(|one| (one.record.job.id, Arc::new(one.record))).collect();
    let again = diff_queue(&before, told, Some(NOW), NOW);
    assert!(again.changes.is_empty() && again.missing.is_empty());
    let gone = diff_queue(&before, Vec::new(), Some(NOW), NOW);
    assert_eq!(gone.missing.len(), 50_000, "all of them are asked about");
    let listed = crate::jobs::job_list::list_items(before.values());
    assert_eq!(listed.len(), 200 + 30_000, "arrays are one each");
    assert!(listed.windows(2).all(|pair| pair[0].sort_key() <= pair[1].sort_key()));
}

#[test]
fn what_only_the_queue_knows_outlives_the_end() {
    let running = SlurmJob { restarts: 2, suspended_s: 60, ..job(1, JobState::Running) };
    let told = vec![(job(1, JobState::Completed), AccountingExtra::default())];
    let changes = diff_accounting(&known(vec![running]), told, None, NOW);
    let ended = &changes[0].record.job;
    assert_eq!((ended.state, ended.restarts, ended.suspended_s), (JobState::Completed, 2, 60));
}

#[test]
fn suspended_time_grows_only_while_a_job_is_suspended() {
    let at = |state, suspended_s| SlurmJob { suspended_s, ..job(1, state) };
    let change = |before: SlurmJob, after: SlurmJob| {
        diff_queue(&known(vec![before]), vec![after], None, NOW).changes.into_iter().next()
    };
    assert!(change(at(JobState::Running, 60), at(JobState::Running, 63)).is_none(), "clocks differ a little");
    let grown = change(at(JobState::Suspended, 60), at(JobState::Suspended, 90)).unwrap();
    assert!(grown.record.job.suspended_s == 90 && !grown.is_worth_saving);
    let resumed = change(at(JobState::Suspended, 60), at(JobState::Running, 120)).unwrap();
    assert!(resumed.record.job.suspended_s == 120 && resumed.is_worth_saving && resumed.is_new_state);
}
