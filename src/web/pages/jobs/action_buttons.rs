//! Job actions, as buttons of the job's page.

use crate::explain::waiting::can_never_start;
use crate::jobs::JobRecord;
use crate::jobs::job_list::record_stage;
use crate::slurm::job::JobStage;

pub struct JobActionButton {
    pub verb: &'static str,
    pub label: &'static str,
    pub kind: &'static str,
}

/// The actions that fit its state.
pub fn available_actions(record: &JobRecord, user_top: bool) -> Vec<JobActionButton> {
    let button = |verb, label, kind| JobActionButton { verb, label, kind };
    match record_stage(record) {
        JobStage::Pending if can_never_start(&record.job.reason) => {
            vec![button("cancel", "Cancel job", "secondary")]
        }
        JobStage::Pending if record.job.reason.contains("Held") => {
            vec![button("release", "Release job", "primary"), button("cancel", "Cancel job", "secondary")]
        }
        JobStage::Pending => {
            let top = user_top.then(|| button("top", "Move to top of my jobs", "secondary"));
            let rest = [button("hold", "Hold job", "secondary"), button("cancel", "Cancel job", "secondary")];
            top.into_iter().chain(rest).collect()
        }
        JobStage::Running => {
            vec![
                button("requeue", "Requeue (restarts the job)", "secondary"),
                button("cancel", "Cancel job", "secondary"),
            ]
        }
        JobStage::Ended => Vec::new(),
    }
}
