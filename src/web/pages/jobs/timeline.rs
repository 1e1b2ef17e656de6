//! The timeline of a job: what happened when, as far as Slurm reported it or the portal saw it.

use crate::clock::UnixTime;
use crate::explain::exit;
use crate::explain::waiting::can_never_start;
use crate::format;
use crate::jobs::JobRecord;
use crate::jobs::job_list::record_stage;
use crate::slurm::job::{JobStage, JobState};
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
const EXPECTED_TITLES: [&str; 3] = ["Earliest start", "Estimated start", "Time limit"];

pub fn build_timeline(record: &JobRecord, job_events: &[JobEvent], now: UnixTime) -> Vec<TimelineEntry> {
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
            ("Eligible to start", "Its start time or dependencies were met.")
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
            "Slurm's estimate, which changes.".to_owned(),
        );
    } else {
        let started = job
            .start
            .filter(|start| start.0 > 0 && job.end.is_none_or(|end| end != *start || !job.node_list.is_empty()));
        let on = if job.node_list.is_empty() { String::new() } else { format!("On {}", job.node_list) };
        let again = if job.restarts > 0 { "Restarted" } else { "Started" };
        add(started, "running", again, on);
    }
    match stage {
        JobStage::Running => add(job.end, "neutral", "Time limit", "Slurm stops the job at this time.".to_owned()),
        JobStage::Ended => {
            let (kind, title) =
                if record.is_lost() { ("unknown", "Ended, outcome unknown") } else { state_label(job.state) };
            // A job that never started has no exit code.
            let exit = job.exit.filter(|_| job.end > job.start && job.start.is_some());
            let mut detail = exit.and_then(exit::explain_exit).map(|exit| exit.name).unwrap_or_default();
            if let (Some(start), Some(end)) = (job.start, job.end)
                && end > start
            {
                let lasted = format::duration(u64::try_from(end.since(start)).unwrap_or(0));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slurm::job::{ExitStatus, SlurmJob};

    fn titles(record: &JobRecord, job_events: &[JobEvent]) -> Vec<&'static str> {
        build_timeline(record, job_events, UnixTime(1000)).into_iter().map(|event| event.title).collect()
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
        let events = build_timeline(&record, &job_events, UnixTime(1000));
        assert_eq!(events.last().unwrap().title, "Failed");
        assert_eq!(events.last().unwrap().detail, "After 5 min, exit code 3");
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
        let events = build_timeline(&record, &[], UnixTime(1000));
        assert_eq!((events[1].title, events[1].detail.as_str()), ("Earliest start", "The start time you requested."));
        record.job.state = JobState::Cancelled;
        record.job.end = Some(UnixTime(500));
        record.is_over = true;
        assert_eq!(titles(&record, &[]), ["Submitted", "Cancelled"]);
        let later = build_timeline(&record, &[], UnixTime(3000));
        assert_eq!(later.len(), 2, "it never became eligible");
    }
}
