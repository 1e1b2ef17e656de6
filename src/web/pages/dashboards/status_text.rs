//! The status of a dashboard, and how it ended, in words. Pure functions.

use crate::dashboards::DashboardWithRuns;
use crate::dashboards::job_report::DashboardStage;
use crate::explain::sbatch;
use crate::format;
use crate::store::dashboards::runs::{DashboardRun, DashboardRunState};

/// How far a dashboard has come, as its page shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DashboardPhase {
    NotStarted,
    /// Its job is being submitted.
    Requested,
    Waiting,
    /// Its job prepares its environment.
    Preparing,
    /// Its job starts the program.
    Starting,
    /// It runs, and the portal is connecting to it.
    Connecting,
    Ready,
    /// It was asked to stop.
    Stopping,
    Ended,
}

/// The status in a word or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DashboardBadge {
    pub kind: &'static str,
    pub label: &'static str,
}

/// The message at the top of the page.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DashboardStatusText {
    /// ok, info, warning or danger.
    pub tone: &'static str,
    pub title: String,
    /// What it means, and what to do.
    pub text: String,
    /// What a program printed, verbatim.
    pub printed: String,
    /// Whether that program was Slurm.
    pub is_slurm: bool,
}

fn notice(tone: &'static str, title: &str, text: impl Into<String>) -> DashboardStatusText {
    DashboardStatusText { tone, title: title.to_owned(), text: text.into(), ..DashboardStatusText::default() }
}

/// A step until a dashboard is ready.
#[derive(Debug, PartialEq, Eq)]
pub struct DashboardStep {
    /// done, next or later.
    pub state: &'static str,
    pub title: &'static str,
    pub text: String,
}

/// Who views the page, and what else is known.
#[derive(Debug, Clone, Copy)]
pub struct DashboardViewerFacts<'a> {
    /// Whether the viewer owns the dashboard.
    pub is_owner: bool,
    /// Whether its owner's connection is closed.
    pub is_disconnected: bool,
    /// A dashboard that nobody views is stopped after this many minutes.
    pub idle_minutes: u32,
    /// Why its job is pending, if that is known.
    pub waiting_reason: &'a str,
}

pub fn phase(status: &DashboardWithRuns) -> DashboardPhase {
    let Some(run) = &status.run else { return DashboardPhase::NotStarted };
    match run.state {
        DashboardRunState::Over => DashboardPhase::Ended,
        _ if !run.stop.is_empty() => DashboardPhase::Stopping,
        _ if status.is_live => DashboardPhase::Ready,
        DashboardRunState::Asked => DashboardPhase::Requested,
        DashboardRunState::Waiting => DashboardPhase::Waiting,
        // The job reports this last before it is ready.
        DashboardRunState::Starting if run.stage == DashboardStage::Starting.code() => DashboardPhase::Starting,
        DashboardRunState::Starting => DashboardPhase::Preparing,
        DashboardRunState::Ready => DashboardPhase::Connecting,
    }
}

pub fn badge(status: &DashboardWithRuns, is_disconnected: bool) -> DashboardBadge {
    let (kind, label) = match phase(status) {
        DashboardPhase::Connecting if is_disconnected => ("warning", "Not connected"),
        DashboardPhase::NotStarted => ("neutral", "Not started"),
        DashboardPhase::Requested => ("waiting", "Requested"),
        DashboardPhase::Waiting => ("waiting", "Pending"),
        DashboardPhase::Preparing => ("running", "Preparing"),
        DashboardPhase::Starting => ("running", "Starting"),
        DashboardPhase::Connecting => ("warning", "Connecting"),
        DashboardPhase::Ready => ("ok", "Ready"),
        DashboardPhase::Stopping => ("neutral", "Stopping"),
        DashboardPhase::Ended => match status.run.as_ref().map_or("", |run| run.end.as_str()) {
            "failed" | "refused" | "not-sent" | "memory" | "node" => ("failed", "Failed"),
            _ => ("neutral", "Not running"),
        },
    };
    DashboardBadge { kind, label }
}

/// The message at the top of its page. Only its owner sees what programs printed.
pub fn status_text(status: &DashboardWithRuns, context: DashboardViewerFacts<'_>) -> DashboardStatusText {
    let text = full_status_text(status, context);
    if context.is_owner { text } else { DashboardStatusText { printed: String::new(), ..text } }
}

fn full_status_text(status: &DashboardWithRuns, context: DashboardViewerFacts<'_>) -> DashboardStatusText {
    let cluster = &status.dashboard.cluster;
    let message = status.run.as_ref().map_or("", |run| run.message.as_str());
    let phase = phase(status);
    if context.is_disconnected && !matches!(phase, DashboardPhase::NotStarted | DashboardPhase::Ended) {
        let title = if phase == DashboardPhase::Requested {
            "Waiting for the cluster connection"
        } else {
            "Not connected to the cluster"
        };
        return notice("warning", title, disconnected_text(status, phase, context.is_owner));
    }
    match phase {
        DashboardPhase::NotStarted => notice("info", "Not started yet", "Start the dashboard to view it."),
        DashboardPhase::Requested if message.is_empty() => {
            notice("info", "Requested", format!("Submitting the job to {cluster}."))
        }
        DashboardPhase::Requested => DashboardStatusText {
            printed: message.to_owned(),
            ..notice("warning", "The job couldn't be submitted yet", "The portal keeps trying for ten minutes.")
        },
        DashboardPhase::Waiting if !context.waiting_reason.is_empty() => {
            notice("info", "Waiting in the queue", context.waiting_reason)
        }
        DashboardPhase::Waiting => notice(
            "info",
            "Waiting in the queue",
            format!(
                "{cluster} starts the job as soon as resources are free. It's a small job, so this rarely takes long."
            ),
        ),
        DashboardPhase::Preparing => notice(
            "info",
            "Preparing the environment",
            "The job is running and setting up its environment. This takes a minute or two the first time on a cluster and a few seconds after that.",
        ),
        DashboardPhase::Starting => notice("info", "Starting", "The dashboard will be ready in a moment."),
        DashboardPhase::Connecting => DashboardStatusText {
            printed: message.to_owned(),
            ..notice(
                "warning",
                "Connecting to the dashboard",
                "The dashboard is running. Connecting usually takes a few seconds. If it takes longer, stop the dashboard and start it again.",
            )
        },
        DashboardPhase::Ready => notice("ok", "The dashboard is ready", ready_text(status)),
        DashboardPhase::Stopping => notice("info", "Stopping", "Cancelling the job. This takes a few seconds."),
        DashboardPhase::Ended => match &status.run {
            Some(run) => ended_text(status, run, context),
            None => DashboardStatusText::default(),
        },
    }
}

fn ready_text(status: &DashboardWithRuns) -> &'static str {
    if status.next.is_some() {
        "Open it in a new tab. It has been extended: a follow-up job takes over before this one ends."
    } else {
        "Open it in a new tab. You can close that tab and this page at any time without losing anything."
    }
}

/// The message while the cluster can't be reached.
fn disconnected_text(status: &DashboardWithRuns, phase: DashboardPhase, is_owner: bool) -> String {
    let cluster = &status.dashboard.cluster;
    match (phase, is_owner) {
        (DashboardPhase::Requested, true) => format!(
            "You're not connected to {cluster}. Connect within ten minutes and the dashboard starts automatically. After that, start it again yourself."
        ),
        (_, true) => {
            format!("The dashboard keeps running on {cluster}. It reappears here automatically when you connect.")
        }
        (_, false) => format!(
            "The dashboard runs as {}, who isn't connected to {cluster}. It reappears automatically when they connect.",
            status.dashboard.owner_name
        ),
    }
}

/// How it ended, and what to do.
fn ended_text(
    status: &DashboardWithRuns,
    run: &DashboardRun,
    context: DashboardViewerFacts<'_>,
) -> DashboardStatusText {
    let dashboard = &status.dashboard;
    let was_ready = run.ready_at.is_some();
    let minutes = format::minutes(u32::try_from(run.minutes).unwrap_or(0));
    let idle = format::minutes(context.idle_minutes);
    let text = match run.end.as_str() {
        "time" => notice(
            "info",
            "Time limit reached",
            format!(
                "The dashboard ran for the requested {minutes}. The files it shows aren't affected. \
                 Start it to view it again."
            ),
        ),
        "stopped" if context.is_owner => notice(
            "info",
            "You stopped the dashboard",
            "The files it shows aren't affected. Start it to view it again.",
        ),
        "stopped" => notice("info", "The dashboard was stopped", format!("{} stopped it.", dashboard.owner_name)),
        "idle" => notice(
            "info",
            "Stopped because nobody was viewing it",
            format!(
                "To save resources, a dashboard is stopped automatically when nobody has viewed it for {idle}. Start it again whenever you need it."
            ),
        ),
        "replaced" => notice(
            "info",
            "Replaced by a follow-up job",
            "The follow-up job has ended too. Start the dashboard again to view it.",
        ),
        "cancelled" => notice(
            "warning",
            "The job was cancelled on the cluster",
            "The job was cancelled on the Jobs page, in a terminal, or by the cluster's administrators. Start the dashboard again to view it.",
        ),
        "node" => notice(
            "warning",
            "The node failed",
            "The node that the dashboard ran on failed. Start it again to run it on another node.",
        ),
        "memory" => notice(
            "danger",
            "Out of memory",
            "The data is too large for the memory a dashboard gets. Create a new dashboard with fewer folders, or with the folder of a single run.",
        ),
        "refused" => notice("danger", "Slurm rejected the job", sbatch::explain_sbatch(&run.message).sentence),
        "not-sent" => notice(
            "danger",
            "The job wasn't submitted",
            format!(
                "The job didn't reach {}. Check your connection, then start the dashboard again.",
                dashboard.cluster
            ),
        ),
        "gone" => notice(
            "warning",
            "The job can't be found",
            format!(
                "{} no longer has a record of it, so it's unclear how it ended. Start the dashboard again to view it.",
                dashboard.cluster
            ),
        ),
        "failed" if was_ready => notice(
            "danger",
            "The dashboard crashed",
            "It ended with an error while running. The end of its output usually says why. Start it again. If it keeps crashing, show the output to someone who knows the cluster.",
        ),
        "failed" => notice(
            "danger",
            "The dashboard couldn't be started",
            match run.message.trim() {
                "" => "The job ended before the dashboard was ready. Its output usually says why.",
                message => message,
            },
        ),
        _ => notice("info", "The dashboard has ended", "Start it again to view it."),
    };
    let is_message_shown = matches!(run.end.as_str(), "refused" | "not-sent" | "failed");
    let printed = if is_message_shown { run.message.clone() } else { String::new() };
    DashboardStatusText { printed, is_slurm: run.end == "refused", ..text }
}

/// The steps until it is ready, while it starts.
pub fn steps(status: &DashboardWithRuns) -> Vec<DashboardStep> {
    let phase = phase(status);
    let current = match phase {
        DashboardPhase::Requested => 0,
        DashboardPhase::Waiting => 1,
        DashboardPhase::Preparing => 2,
        DashboardPhase::Starting => 3,
        DashboardPhase::Connecting => 4,
        DashboardPhase::NotStarted | DashboardPhase::Ready | DashboardPhase::Stopping | DashboardPhase::Ended => {
            return Vec::new();
        }
    };
    let message = status.run.as_ref().map_or("", |run| run.message.as_str());
    let titles = ["Requested", "Waiting in the queue", "Preparing the environment", "Starting", "Ready to open"];
    let step = |(number, title): (usize, &'static str)| DashboardStep {
        state: match number.cmp(&current) {
            std::cmp::Ordering::Less => "done",
            std::cmp::Ordering::Equal => "next",
            std::cmp::Ordering::Greater => "later",
        },
        title,
        text: if number == current && matches!(phase, DashboardPhase::Preparing | DashboardPhase::Starting) {
            message.to_owned()
        } else {
            String::new()
        },
    };
    titles.into_iter().enumerate().map(step).collect()
}
