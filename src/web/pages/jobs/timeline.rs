//! The timeline of a job: what happened when, as far as Slurm reported it or the portal saw it.

use crate::clock::UnixTime;
use crate::explain::exit;
use crate::explain::waiting::can_never_start;
use crate::format;
use crate::jobs::JobRecord;
use crate::jobs::job_list::record_stage;
use crate::slurm::job::{JobStage, JobState, SlurmJob};
use crate::store::jobs::JobEvent;
use crate::web::pages::jobs::list_row::state_label;

/// One thing that happened, or is expected to.
pub struct TimelineEntry {
    pub at: UnixTime,
    pub kind: &'static str,
    pub title: &'static str,
    /// More about it; may be empty.
    pub detail: String,
    /// Whether it is still to come.
    pub is_ahead: bool,
}

/// Titles of entries that are expected rather than reported.
const EXPECTED_TITLES: [&str; 4] = ["Earliest start", "Estimated start", "Time limit", "Deadline"];

/// `deadline` is when it must have finished, if its owner set that.
pub fn build_timeline(
    record: &JobRecord,
    job_events: &[JobEvent],
    deadline: Option<UnixTime>,
    now: UnixTime,
) -> Vec<TimelineEntry> {
    let job = &record.job;
    let stage = record_stage(record);
    let is_held = job.reason.contains("Held") || can_never_start(&job.reason);
    let mut events = Vec::new();
    let mut add = |at: Option<UnixTime>, kind, title, detail: String| {
        if let Some(at) = at {
            events.push(TimelineEntry {
                at,
                kind,
                title,
                detail,
                is_ahead: EXPECTED_TITLES.contains(&title) && at > now,
            });
        }
    };
    let to = if job.partition.is_empty() { String::new() } else { format!("Partition: {}", job.partition) };
    add(job.submitted, "neutral", "Submitted", to);
    let waited = job.eligible.filter(|at| job.submitted.is_some_and(|submitted| at.since(submitted) > 1));
    // A job that ended before its requested start time was never eligible.
    let waited = waited.filter(|at| stage != JobStage::Ended || *at <= job.end.unwrap_or(now).min(now));
    if job.start.is_none_or(|start| waited.is_none_or(|at| at <= start)) || stage == JobStage::Pending {
        let (title, detail) = if waited.is_some_and(|at| at > now) {
            ("Earliest start", "The start time you requested.")
        } else {
            ("Eligible to start", "Its start time was reached, or its dependencies were met.")
        };
        add(waited, "waiting", title, detail.to_owned());
    }
    for event in job_events {
        let is_reported = [job.start, job.end, job.submitted].contains(&Some(event.at));
        let then = JobState::parse(&event.state);
        let shown = match then {
            JobState::Pending => Some(("waiting", "Requeued")),
            JobState::Suspended => Some(("warning", "Suspended")),
            JobState::Running if !is_reported => Some(("running", "Running")),
            ended if ended.is_over() && !is_reported && ended != job.state => Some(state_label(ended)),
            _ => None,
        };
        if let Some((kind, title)) = shown {
            let detail = if then == JobState::Running && !event.detail.is_empty() {
                format!("On {}", event.detail)
            } else {
                String::new()
            };
            add(Some(event.at), kind, title, detail);
        }
    }
    if stage == JobStage::Pending {
        add(
            job.start.filter(|at| *at > now && !is_held && Some(*at) != waited),
            "waiting",
            "Estimated start",
            "Slurm's estimate, which may change.".to_owned(),
        );
    } else {
        let started = job.start.filter(|_| has_started(job));
        let on = if job.node_list.is_empty() { String::new() } else { format!("On {}", job.node_list) };
        let again = if job.restarts > 0 { "Restarted" } else { "Started" };
        add(started, "running", again, on);
    }
    if stage != JobStage::Ended {
        let detail = "Slurm cancels the job if it can't finish by then.";
        add(deadline, "neutral", "Deadline", detail.to_owned());
    }
    match stage {
        JobStage::Running => add(job.end, "neutral", "Time limit", "Slurm stops the job at this time.".to_owned()),
        JobStage::Ended => {
            let (kind, title) =
                if record.is_lost() { ("unknown", "Ended, outcome unknown") } else { state_label(job.state) };
            // A job that never started has no exit code.
            let exit = job.exit.filter(|_| has_started(job));
            let mut detail = exit.and_then(exit::explain_exit).map(|exit| exit.name).unwrap_or_default();
            if let (Some(start), Some(end)) = (job.start, job.end)
                && end > start
            {
                let lasted = format::duration(job.running_s(end));
                let join = if detail.is_empty() { "" } else { ", " };
                detail = format!("After {lasted}{join}{detail}");
            }
            add(job.end, kind, title, detail);
        }
        JobStage::Pending => {}
    }
    events.sort_by_key(|event| event.at);
    events
}

/// Whether it ever ran. One that ended in the second of its start did if it had a node.
fn has_started(job: &SlurmJob) -> bool {
    job.start.is_some_and(|start| start.0 > 0 && (job.end.is_none_or(|end| end != start) || !job.node_list.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slurm::job::ExitStatus;

    fn titles(record: &JobRecord, job_events: &[JobEvent]) -> Vec<&'static str> {
        build_timeline(record, job_events, None, UnixTime(1000)).into_iter().map(|event| event.title).collect()
    }

    #[test]
    fn stories() {
        let job = SlurmJob {
            state: JobState::Pending,
            submitted: Some(UnixTime(10)),
            eligible: Some(UnixTime(90)),
            start: Some(UnixTime(2000)),
            ..SlurmJob::default()
        };
        let mut record = JobRecord::new(job, UnixTime(10));
        assert_eq!(titles(&record, &[]), ["Submitted", "Eligible to start", "Estimated start"]);
        record.job.state = JobState::Running;
        record.job.start = Some(UnixTime(100));
        record.job.node_list = "c1".into();
        let event = |at, state: &str| JobEvent { at: UnixTime(at), state: state.into(), detail: String::new() };
        let job_events = [event(100, "RUNNING"), event(200, "SUSPENDED"), event(300, "RUNNING")];
        assert_eq!(titles(&record, &job_events), ["Submitted", "Eligible to start", "Started", "Suspended", "Running"]);
        record.job.state = JobState::Failed;
        record.job.end = Some(UnixTime(400));
        record.job.exit = Some(ExitStatus { code: 3, signal: 0 });
        record.is_over = true;
        let events = build_timeline(&record, &job_events, None, UnixTime(1000));
        assert_eq!(events.last().unwrap().title, "Failed");
        assert_eq!(events.last().unwrap().detail, "After 5 min, exit code 3");
        record.job.suspended_s = 100;
        let events = build_timeline(&record, &job_events, None, UnixTime(1000));
        assert_eq!(events.last().unwrap().detail, "After 3 min 20 s, exit code 3", "without the time it was suspended");
        record.job.suspended_s = 0;
        record.job.start = record.job.end;
        let events = build_timeline(&record, &[], None, UnixTime(1000));
        assert_eq!(events.last().unwrap().detail, "exit code 3", "it ran for less than a second");
    }

    #[test]
    fn requeues_are_there_while_it_runs_and_after_it_ended() {
        let mut job = SlurmJob {
            state: JobState::Running,
            submitted: Some(UnixTime(10)),
            start: Some(UnixTime(300)),
            node_list: "c1".into(),
            restarts: 1,
            ..SlurmJob::default()
        };
        let event = JobEvent { at: UnixTime(200), state: "PENDING".into(), detail: String::new() };
        let record = JobRecord::new(job.clone(), UnixTime(10));
        let story = titles(&record, std::slice::from_ref(&event));
        assert_eq!(story, ["Submitted", "Requeued", "Restarted"]);
        (job.state, job.end) = (JobState::Completed, Some(UnixTime(400)));
        let story = titles(&JobRecord::new(job, UnixTime(10)), &[event]);
        assert_eq!(story, ["Submitted", "Requeued", "Restarted", "Completed"]);
    }

    #[test]
    fn a_deadline_is_ahead_until_the_job_has_ended() {
        let job = SlurmJob { state: JobState::Pending, submitted: Some(UnixTime(10)), ..SlurmJob::default() };
        let mut record = JobRecord::new(job, UnixTime(10));
        let events = build_timeline(&record, &[], Some(UnixTime(5000)), UnixTime(1000));
        let last = events.last().unwrap();
        assert_eq!((last.title, last.at, last.is_ahead), ("Deadline", UnixTime(5000), true));
        (record.job.state, record.job.end, record.is_over) = (JobState::Deadline, Some(UnixTime(900)), true);
        let events = build_timeline(&record, &[], Some(UnixTime(5000)), UnixTime(1000));
        assert_eq!(events.last().unwrap().title, "Missed deadline");
    }

    #[test]
    fn a_requested_start_time_is_left_out_once_the_job_has_ended() {
        let job = SlurmJob {
            state: JobState::Pending,
            submitted: Some(UnixTime(10)),
            eligible: Some(UnixTime(2000)),
            ..SlurmJob::default()
        };
        let mut record = JobRecord::new(job, UnixTime(10));
        let events = build_timeline(&record, &[], None, UnixTime(1000));
        assert_eq!((events[1].title, events[1].detail.as_str()), ("Earliest start", "The start time you requested."));
        record.job.state = JobState::Cancelled;
        record.job.end = Some(UnixTime(500));
        record.is_over = true;
        assert_eq!(titles(&record, &[]), ["Submitted", "Cancelled"]);
        let later = build_timeline(&record, &[], None, UnixTime(3000));
        assert_eq!(later.len(), 2, "it never became eligible");
    }
}
