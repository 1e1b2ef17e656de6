//! What the page of one job and its fragments show.

use crate::clock::UnixTime;
use crate::explain::GlossaryTerm;
use crate::explain::efficiency::{EfficiencyFigure, JobEfficiency, UsageJudgement};
use crate::explain::verdict::{JobVerdict, SuggestedSbatchOption, VerdictTone};
use crate::explain::waiting::WaitKind;
use crate::jobs::LoadedJobDetails;
use crate::logs::findings::LogFinding;
use crate::slurm::job::JobStage;
use crate::web::pages::files::{file_link, folder_link};
use crate::web::pages::jobs::action_buttons::JobActionButton;
use crate::web::pages::jobs::cluster_queues::PersonClusterQueue;
use crate::web::pages::jobs::facts::JobFact;
use crate::web::pages::jobs::list_row::{JobListRow, JobTimeCell};
use crate::web::pages::jobs::older_job::OlderJobNote;
use crate::web::pages::jobs::priority_parts::PriorityPart;
use crate::web::pages::jobs::timeline::TimelineEntry;

/// One of a job's folders.
pub(super) struct JobFolderLink<'a> {
    pub(super) label: &'static str,
    pub(super) term: Option<GlossaryTerm>,
    pub(super) href: String,
    pub(super) path: &'a str,
}

#[expect(clippy::struct_excessive_bools, reason = "each decides what one part of the page shows")]
pub struct JobLiveView {
    pub(super) queue: PersonClusterQueue,
    pub(super) href: String,
    pub(super) row: JobListRow,
    pub(super) stage: JobStage,
    pub(super) is_own: bool,
    /// Whether it can be resubmitted, as far as is known.
    pub(super) can_resubmit: bool,
    pub(super) actions: Vec<JobActionButton>,
    pub(super) pick: String,
    pub(super) verdict: Option<JobVerdict>,
    /// The error found in the output, quoted.
    pub(super) finding: Option<LogFinding>,
    pub(super) last_lines: Vec<String>,
    pub(super) timeline: Vec<TimelineEntry>,
    pub(super) priority_parts: Vec<PriorityPart>,
    pub(super) used: Option<JobEfficiency>,
    /// The URL of the viewer's priority page; empty if no group of theirs has the account.
    pub(super) priority: String,
    pub(super) facts: Vec<JobFact>,
    pub(super) array: String,
    /// Whether a shell can be opened in it.
    pub(super) can_open_shell: bool,
    /// Whether it ended without having started.
    pub(super) never_started: bool,
    /// Whether it serves a dashboard. Such a job is started from the dashboard's page, not from here.
    pub(super) is_dashboard: bool,
    /// The URL of the dashboard that it serves; empty if there is none any more.
    pub(super) dashboard: String,
    pub(super) details: LoadedJobDetails,
    /// The folder that its script goes to first; empty if it stays in Slurm's working folder, or if nobody knows.
    pub(super) script_folder: String,
    /// Whether this portal submitted it, with a command of its own that needs no quotation marks.
    pub(super) is_from_portal: bool,
    /// Where the figures come from and what is not known, if the portal has no record of the job.
    pub(super) older: Option<OlderJobNote>,
    /// Whether this was built without asking the cluster, so that the fragment must load at once.
    pub(super) is_first: bool,
    pub(super) mark: u64,
}

impl JobLiveView {
    /// The style of the verdict.
    pub(super) fn tone(&self) -> &'static str {
        match self.verdict.as_ref().map(|verdict| verdict.tone) {
            Some(VerdictTone::Ok) => "ok",
            Some(VerdictTone::Warning) => "warning",
            Some(VerdictTone::Danger) => "danger",
            Some(VerdictTone::Neutral) | None => "info",
        }
    }

    /// The changed options as one line.
    pub(super) fn options(suggested: &[SuggestedSbatchOption]) -> String {
        suggested.iter().map(|suggested| suggested.option.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Whether the job can have written anything.
    pub(super) fn has_output(&self) -> bool {
        self.stage != JobStage::Pending
    }

    /// Whether it runs and has a time limit.
    pub(super) const fn has_time_bar(&self) -> bool {
        matches!(self.row.time, JobTimeCell::Running { max, .. } if max > 0)
    }

    /// The largest number of points, for scaling bars.
    pub(super) fn most_points(&self) -> i64 {
        self.priority_parts.iter().map(|part| part.points).max().unwrap_or(1)
    }

    /// Whether its position in the queue means anything.
    pub(super) fn is_in_line(&self) -> bool {
        let kind = self.row.why.as_ref().map(|why| why.kind);
        matches!(kind, Some(WaitKind::Normal | WaitKind::Soon | WaitKind::Site))
    }

    /// The time by which it must finish, if its owner set one.
    pub(super) fn deadline(&self) -> Option<UnixTime> {
        self.details.details.deadline.map(UnixTime)
    }

    /// The style of a figure.
    pub(super) const fn level(figure: &EfficiencyFigure) -> &'static str {
        match figure.judgement {
            UsageJudgement::Good | UsageJudgement::Unknown => "",
            UsageJudgement::Low => "warning",
            UsageJudgement::High => "danger",
        }
    }

    /// As far as a bar can go.
    pub(super) fn capped(figure: &EfficiencyFigure) -> u32 {
        figure.percent.unwrap_or(0).min(100)
    }

    /// Whether it may have written something for a dashboard. A dashboard's own job shows other folders.
    pub(super) fn can_open_dashboard(&self) -> bool {
        self.is_own && self.row.folder.starts_with('/') && !self.is_dashboard && !self.never_started
    }

    /// The job's ID, without its cluster.
    pub(super) fn job_id(&self) -> &str {
        self.pick.rsplit('/').next().unwrap_or_default()
    }

    /// Where it runs and where its output is, as far as is known.
    pub(super) fn folders(&self) -> Vec<JobFolderLink<'_>> {
        let slug = self.pick.split('/').next().unwrap_or_default();
        list_folders(slug, &self.script_folder, &self.row.folder)
    }

    /// The file of its script, in its folder; empty if it isn't known, or has arguments that can't be told from it.
    pub(super) fn script_href(&self) -> String {
        let command =
            Some(self.details.details.command.as_str()).filter(|command| !command.contains(char::is_whitespace));
        file_link(self.pick.split('/').next().unwrap_or_default(), command.unwrap_or_default())
    }
}

/// The folder that a script goes to, and the one that Slurm started it in; either may be empty.
fn list_folders<'a>(slug: &str, script_folder: &'a str, slurm_folder: &'a str) -> Vec<JobFolderLink<'a>> {
    let slurm_label = if script_folder.is_empty() { "Working folder" } else { "Output folder" };
    let folders = [("Working folder", script_folder), (slurm_label, slurm_folder)];
    let known = folders.into_iter().filter(|(_, path)| !path.is_empty());
    known
        .map(|(label, path)| JobFolderLink {
            label,
            term: (label == "Working folder").then_some(GlossaryTerm::WorkingFolder),
            href: folder_link(slug, path),
            path,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_folder_is_the_one_that_the_script_goes_to() {
        let list = |script, slurm| -> Vec<(&str, &str)> {
            list_folders("key", script, slurm).into_iter().map(|folder| (folder.label, folder.path)).collect()
        };
        assert_eq!(list("", "/home/a"), [("Working folder", "/home/a")]);
        assert_eq!(
            list("/home/a/code", "/scratch/a"),
            [("Working folder", "/home/a/code"), ("Output folder", "/scratch/a")]
        );
        assert!(list("", "").is_empty());
    }
}
