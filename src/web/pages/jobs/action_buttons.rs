//! Job actions, as buttons of the job's page.

use crate::explain::waiting::{can_never_start, can_release};
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
        JobStage::Pending if can_release(&record.job.reason) => {
            vec![button("release", "Release job", "primary"), button("cancel", "Cancel job", "secondary")]
        }
        // Held by the centre: neither holding nor releasing it is up to its owner.
        JobStage::Pending if record.job.reason.contains("Held") => vec![button("cancel", "Cancel job", "secondary")],
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::UnixTime;
    use crate::slurm::job::{JobState, SlurmJob};

    fn verbs(reason: &str) -> Vec<&'static str> {
        let job = SlurmJob { state: JobState::Pending, reason: reason.to_owned(), ..SlurmJob::default() };
        let buttons = available_actions(&JobRecord::new(job, UnixTime(1)), false);
        buttons.into_iter().map(|button| button.verb).collect()
    }

    #[test]
    fn only_what_the_owner_may_release_is_offered_for_release() {
        assert_eq!(verbs("JobHeldUser"), ["release", "cancel"]);
        assert_eq!(verbs("launch failed requeued held"), ["release", "cancel"]);
        assert_eq!(verbs("JobHeldAdmin"), ["cancel"]);
        assert_eq!(verbs("JobHeldUser,JobHeldAdmin"), ["cancel"]);
        assert_eq!(verbs("Priority"), ["hold", "cancel"]);
        assert_eq!(verbs("PartitionTimeLimit"), ["cancel"]);
    }
}
