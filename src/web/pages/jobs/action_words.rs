//! Job actions in words: what is asked before one runs, and what is said afterwards.

use crate::format;
use crate::jobs::actions::JobAction;

/// What is asked before an action runs.
pub struct JobActionPrompt {
    pub title: String,
    pub button: String,
    pub effect: &'static str,
    pub kind: &'static str,
}

/// The selected jobs, as a question and its button name them.
pub struct SelectionName {
    pub title: String,
    pub button: String,
    pub stages: SelectionStages,
}

/// What is known about the stages of the selected jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectionStages {
    OnePending,
    AllPending,
    OneRunning,
    AllRunning,
    /// Both, or not known of all of them.
    Mixed,
}

pub fn confirmation_prompt(verb: JobAction, name: &SelectionName) -> JobActionPrompt {
    let SelectionName { title: jobs, button: what, .. } = name;
    match verb {
        JobAction::Cancel => JobActionPrompt {
            title: format!("Cancel {jobs}?"),
            button: format!("Cancel {what}"),
            effect: cancel_effect(name.stages),
            kind: "danger",
        },
        JobAction::Hold => JobActionPrompt {
            title: format!("Hold {jobs}?"),
            button: format!("Hold {what}"),
            effect: "Pending jobs stay in the queue but won't start until you release them. Running jobs aren't affected.",
            kind: "primary",
        },
        JobAction::Release => JobActionPrompt {
            title: format!("Release {jobs}?"),
            button: format!("Release {what}"),
            effect: "Held jobs can start again when it's their turn.",
            kind: "primary",
        },
        JobAction::Requeue => JobActionPrompt {
            title: format!("Requeue {jobs}?"),
            button: format!("Requeue {what}"),
            effect: if name.stages == SelectionStages::OneRunning {
                "The job stops, goes back into the queue with the same job ID, and later starts again from the beginning. Any progress the program hasn't saved is lost."
            } else {
                "Running jobs stop, go back into the queue with the same job ID, and later start again from the beginning. Any progress a program hasn't saved is lost."
            },
            kind: "danger",
        },
        JobAction::Top => JobActionPrompt {
            title: format!("Move {jobs} to the top of your jobs?"),
            button: "Move to top".to_owned(),
            effect: "Your other pending jobs move down and may start later. Other people's jobs aren't affected. Some centres don't allow this.",
            kind: "primary",
        },
    }
}

const fn cancel_effect(stages: SelectionStages) -> &'static str {
    match stages {
        SelectionStages::OnePending => "The job leaves the queue. You can't undo this, but you can resubmit it.",
        SelectionStages::AllPending => "The jobs leave the queue. You can't undo this, but you can resubmit them.",
        SelectionStages::OneRunning => {
            "The job stops immediately. Files that it has already written are kept. You can't undo this, but you can resubmit the job."
        }
        SelectionStages::AllRunning => {
            "The jobs stop immediately. Files that they have already written are kept. You can't undo this, but you can resubmit them."
        }
        SelectionStages::Mixed => {
            "Running jobs stop immediately and pending jobs leave the queue. Files that they have already written are kept. You can't undo this, but you can resubmit a cancelled job."
        }
    }
}

pub fn result_heading(verb: JobAction, good: usize, all: usize) -> String {
    let jobs = format::count(u64::try_from(good).unwrap_or(0), "job");
    let done = match verb {
        JobAction::Cancel => format!("Cancelling {jobs}"),
        JobAction::Hold => format!("{jobs} held"),
        JobAction::Release => format!("{jobs} released"),
        JobAction::Requeue => format!("{jobs} requeued"),
        JobAction::Top => format!("{jobs} moved to the top"),
    };
    match good {
        0 => "Nothing was changed".to_owned(),
        _ if good < all => format!("{done}, {} rejected", all - good),
        _ => done,
    }
}
