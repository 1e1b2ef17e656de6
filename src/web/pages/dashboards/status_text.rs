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

pub fn badge(status: &DashboardWithRuns) -> DashboardBadge {
    let (kind, label) = match phase(status) {
        DashboardPhase::NotStarted => ("neutral", "Not started"),
        DashboardPhase::Requested => ("waiting", "Asked for"),
        DashboardPhase::Waiting => ("waiting", "Waiting"),
        DashboardPhase::Preparing => ("running", "Preparing"),
        DashboardPhase::Starting => ("running", "Starting"),
        DashboardPhase::Connecting => ("warning", "Not reached"),
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
            "Waiting for the connection"
        } else {
            "The connection to the cluster is closed"
        };
        return notice("warning", title, disconnected_text(status, phase, context.is_owner));
    }
    match phase {
        DashboardPhase::NotStarted => notice("info", "It was never started", "Start it to see it."),
        DashboardPhase::Requested if message.is_empty() => {
            notice("info", "Asked for", format!("The job is being handed over to {cluster}."))
        }
        DashboardPhase::Requested => DashboardStatusText {
            printed: message.to_owned(),
            ..notice(
                "warning",
                "The job could not be handed over yet",
                "The portal tries again by itself for ten minutes.",
            )
        },
        DashboardPhase::Waiting if !context.waiting_reason.is_empty() => {
            notice("info", "Waiting in the queue", context.waiting_reason)
        }
        DashboardPhase::Waiting => notice(
            "info",
            "Waiting in the queue",
            format!("{cluster} starts it as soon as there is room. It is a small job, so this rarely takes long."),
        ),
        DashboardPhase::Preparing => notice(
            "info",
            "Preparing the environment",
            "Its job runs and makes what it needs. The first time on a cluster takes a minute or two; later it is a matter of seconds.",
        ),
        DashboardPhase::Starting => notice("info", "Starting", "It is ready in a moment."),
        DashboardPhase::Connecting => DashboardStatusText {
            printed: message.to_owned(),
            ..notice(
                "warning",
                "It runs, and the portal is connecting to it",
                "This takes a few seconds as a rule. If it stays like this, stop it and start it again.",
            )
        },
        DashboardPhase::Ready => notice("ok", "It is ready", ready_text(status)),
        DashboardPhase::Stopping => notice("info", "Stopping", "Its job is being ended. This takes a few seconds."),
        DashboardPhase::Ended => match &status.run {
            Some(run) => ended_text(status, run, context),
            None => DashboardStatusText::default(),
        },
    }
}

fn ready_text(status: &DashboardWithRuns) -> &'static str {
    if status.next.is_some() {
        "Open it in a new tab. A follow-up is on its way and takes over before the time is up."
    } else {
        "Open it in a new tab. You can close that tab and this page at any time; nothing is lost."
    }
}

/// The message while the cluster can't be reached.
fn disconnected_text(status: &DashboardWithRuns, phase: DashboardPhase, is_owner: bool) -> String {
    let cluster = &status.dashboard.cluster;
    match (phase, is_owner) {
        (DashboardPhase::Requested, true) => format!(
            "You are not connected to {cluster}. Connect, and the dashboard is asked for by itself. If that takes longer than ten minutes, you start it again."
        ),
        (_, true) => format!("The dashboard goes on at {cluster}. It comes back here by itself when you connect."),
        (_, false) => format!(
            "It runs as {}, whose connection to {cluster} is closed. It comes back by itself when they connect.",
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
            "Its time was up",
            format!(
                "It ran for the {minutes} that were asked for. What it shows is still there: start it again to see it."
            ),
        ),
        "stopped" if context.is_owner => {
            notice("info", "You stopped it", "What it shows is still there: start it again to see it.")
        }
        "stopped" => notice("info", "It was stopped", format!("{} stopped it.", dashboard.owner_name)),
        "idle" => notice(
            "info",
            "It was stopped because nobody looked at it",
            format!(
                "A dashboard that nobody has open for {idle} is ended by itself, so that it does not cost anything for nothing. Start it again whenever you want to look."
            ),
        ),
        "replaced" => notice("info", "A follow-up took its place", "That one has ended too. Start it again to see it."),
        "cancelled" => notice(
            "warning",
            "Its job was cancelled on the cluster",
            "Someone ended the job elsewhere: among the jobs, in a terminal, or the people who run the cluster did. Start it again to see it.",
        ),
        "node" => notice(
            "warning",
            "The machine that it ran on failed",
            "This has nothing to do with what it shows. Start it again; it gets another machine.",
        ),
        "memory" => notice(
            "danger",
            "It ran out of memory",
            "What it shows is too large for the memory that a dashboard gets. Make a new one that shows fewer folders, or the folder of one run.",
        ),
        "refused" => notice("danger", "Slurm did not take its job", sbatch::explain_sbatch(&run.message).sentence),
        "not-sent" => notice(
            "danger",
            "Its job was not handed over",
            format!(
                "There is no such job on {}. See that the connection stands, then start it again.",
                dashboard.cluster
            ),
        ),
        "gone" => notice(
            "warning",
            "Its job is not known any more",
            format!(
                "{} has forgotten it, so nobody can tell how it ended. Start it again to see it.",
                dashboard.cluster
            ),
        ),
        "failed" if was_ready => notice(
            "danger",
            "It broke off",
            "It ran and then ended with an error. The end of its output mostly says why. Start it again; if it ends like this once more, show the output to someone who knows the cluster.",
        ),
        "failed" => notice(
            "danger",
            "It could not be started",
            match run.message.trim() {
                "" => "Its job ended before there was anything to see. Its output mostly tells why.",
                message => message,
            },
        ),
        _ => notice("info", "It has ended", "Start it again to see it."),
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
    let titles = ["Asked for", "Waiting in the queue", "Preparing the environment", "Starting", "Ready to open"];
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
