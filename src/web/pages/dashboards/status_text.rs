//! The status of a dashboard, and how it ended, in words. Pure functions.

use crate::dashboards::DashboardStatus;
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
    pub said: String,
    /// Whether that program was Slurm.
    pub is_slurm: bool,
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
pub struct DashboardStatusContext<'a> {
    /// Whether the viewer owns the dashboard.
    pub is_owner: bool,
    /// Whether its owner's connection is closed.
    pub is_disconnected: bool,
    /// A dashboard that nobody views is stopped after this many minutes.
    pub idle_minutes: u32,
    /// Why its job is pending, if that is known.
    pub waiting_reason: &'a str,
}

pub fn phase(standing: &DashboardStatus) -> DashboardPhase {
    let Some(run) = &standing.run else { return DashboardPhase::NotStarted };
    match run.state {
        DashboardRunState::Over => DashboardPhase::Ended,
        _ if !run.stop.is_empty() => DashboardPhase::Stopping,
        _ if standing.is_live => DashboardPhase::Ready,
        DashboardRunState::Asked => DashboardPhase::Requested,
        DashboardRunState::Waiting => DashboardPhase::Waiting,
        // The job reports this last before it is ready.
        DashboardRunState::Starting if run.stage == DashboardStage::Starting.code() => DashboardPhase::Starting,
        DashboardRunState::Starting => DashboardPhase::Preparing,
        DashboardRunState::Ready => DashboardPhase::Connecting,
    }
}

pub fn badge(standing: &DashboardStatus) -> DashboardBadge {
    let (kind, label) = match phase(standing) {
        DashboardPhase::NotStarted => ("neutral", "Not started"),
        DashboardPhase::Requested => ("waiting", "Asked for"),
        DashboardPhase::Waiting => ("waiting", "Waiting"),
        DashboardPhase::Preparing => ("running", "Preparing"),
        DashboardPhase::Starting => ("running", "Starting"),
        DashboardPhase::Connecting => ("warning", "Not reached"),
        DashboardPhase::Ready => ("ok", "Ready"),
        DashboardPhase::Stopping => ("neutral", "Stopping"),
        DashboardPhase::Ended => match standing.run.as_ref().map_or("", |run| run.end.as_str()) {
            "failed" | "refused" | "not-sent" | "memory" | "node" => ("failed", "Failed"),
            _ => ("neutral", "Not running"),
        },
    };
    DashboardBadge { kind, label }
}

/// The message at the top of its page. Only its owner sees what programs printed.
pub fn status_text(standing: &DashboardStatus, look: DashboardStatusContext<'_>) -> DashboardStatusText {
    let words = full_status_text(standing, look);
    if look.is_owner { words } else { DashboardStatusText { said: String::new(), ..words } }
}

fn full_status_text(standing: &DashboardStatus, look: DashboardStatusContext<'_>) -> DashboardStatusText {
    let cluster = &standing.dashboard.cluster;
    let message = standing.run.as_ref().map_or("", |run| run.message.as_str());
    let say = |tone, title: &str, text: String| DashboardStatusText {
        tone,
        title: title.to_owned(),
        text,
        ..DashboardStatusText::default()
    };
    let phase = phase(standing);
    if look.is_disconnected && !matches!(phase, DashboardPhase::NotStarted | DashboardPhase::Ended) {
        let title = if phase == DashboardPhase::Requested {
            "Waiting for the connection"
        } else {
            "The connection to the cluster is closed"
        };
        return say("warning", title, disconnected_text(standing, phase, look.is_owner));
    }
    match phase {
        DashboardPhase::NotStarted => say("info", "It was never started", "Start it to see it.".to_owned()),
        DashboardPhase::Requested if message.is_empty() => {
            say("info", "Asked for", format!("The job is being handed over to {cluster}."))
        }
        DashboardPhase::Requested => DashboardStatusText {
            said: message.to_owned(),
            ..say(
                "warning",
                "The job could not be handed over yet",
                "The portal tries again by itself for ten minutes.".to_owned(),
            )
        },
        DashboardPhase::Waiting if !look.waiting_reason.is_empty() => {
            say("info", "Waiting in the queue", look.waiting_reason.to_owned())
        }
        DashboardPhase::Waiting => say(
            "info",
            "Waiting in the queue",
            format!("{cluster} starts it as soon as there is room. It is a small job, so this rarely takes long."),
        ),
        DashboardPhase::Preparing => say(
            "info",
            "Preparing the environment",
            "Its job runs and makes what it needs. The first time on a cluster takes a minute or two; later it is a matter of seconds.".to_owned(),
        ),
        DashboardPhase::Starting => say("info", "Starting", "It is ready in a moment.".to_owned()),
        DashboardPhase::Connecting => DashboardStatusText {
            said: message.to_owned(),
            ..say(
                "warning",
                "It runs, and the portal is connecting to it",
                "This takes a few seconds as a rule. If it stays like this, stop it and start it again.".to_owned(),
            )
        },
        DashboardPhase::Ready => say("ok", "It is ready", ready_text(standing)),
        DashboardPhase::Stopping => say(
            "info",
            "Stopping",
            "Its job is being ended. This takes a few seconds.".to_owned(),
        ),
        DashboardPhase::Ended => match &standing.run {
            Some(run) => ended_text(standing, run, look),
            None => DashboardStatusText::default(),
        },
    }
}

fn ready_text(standing: &DashboardStatus) -> String {
    if standing.next.is_some() {
        "Open it in a new tab. A follow-up is on its way and takes over before the time is up."
    } else {
        "Open it in a new tab. You can close that tab and this page at any time; nothing is lost."
    }
    .to_owned()
}

/// The message while the cluster can't be reached.
fn disconnected_text(standing: &DashboardStatus, phase: DashboardPhase, is_owner: bool) -> String {
    let cluster = &standing.dashboard.cluster;
    match (phase, is_owner) {
        (DashboardPhase::Requested, true) => format!(
            "You are not connected to {cluster}. Connect, and the dashboard is asked for by itself. If that takes longer than ten minutes, you start it again."
        ),
        (_, true) => format!("The dashboard goes on at {cluster}. It comes back here by itself when you connect."),
        (_, false) => format!(
            "It runs as {}, whose connection to {cluster} is closed. It comes back by itself when they connect.",
            standing.dashboard.owner_name
        ),
    }
}

/// How it ended, and what to do.
fn ended_text(standing: &DashboardStatus, run: &DashboardRun, look: DashboardStatusContext<'_>) -> DashboardStatusText {
    let board = &standing.dashboard;
    let was_ready = run.ready_at.is_some();
    let minutes = format::minutes(u32::try_from(run.minutes).unwrap_or(0));
    let idle = format::minutes(look.idle_minutes);
    let (tone, title, text) = match run.end.as_str() {
        "time" => (
            "info",
            "Its time was up",
            format!("It ran for the {minutes} that were asked for. What it shows is still there: start it again to see it."),
        ),
        "stopped" if look.is_owner => {
            ("info", "You stopped it", "What it shows is still there: start it again to see it.".to_owned())
        }
        "stopped" => ("info", "It was stopped", format!("{} stopped it.", board.owner_name)),
        "idle" => (
            "info",
            "It was stopped because nobody looked at it",
            format!("A dashboard that nobody has open for {idle} is ended by itself, so that it does not cost anything for nothing. Start it again whenever you want to look."),
        ),
        "replaced" => (
            "info",
            "A follow-up took its place",
            "That one has ended too. Start it again to see it.".to_owned(),
        ),
        "cancelled" => (
            "warning",
            "Its job was cancelled on the cluster",
            "Someone ended the job elsewhere: among the jobs, in a terminal, or the people who run the cluster did. Start it again to see it.".to_owned(),
        ),
        "node" => (
            "warning",
            "The machine that it ran on failed",
            "This has nothing to do with what it shows. Start it again; it gets another machine.".to_owned(),
        ),
        "memory" => (
            "danger",
            "It ran out of memory",
            "What it shows is too large for the memory that a dashboard gets. Make a new one that shows fewer folders, or the folder of one run.".to_owned(),
        ),
        "refused" => {
            ("danger", "Slurm did not take its job", sbatch::explain_sbatch(&run.message).sentence)
        }
        "not-sent" => (
            "danger",
            "Its job was not handed over",
            format!("There is no such job on {}. See that the connection stands, then start it again.", board.cluster),
        ),
        "gone" => (
            "warning",
            "Its job is not known any more",
            format!("{} has forgotten it, so nobody can tell how it ended. Start it again to see it.", board.cluster),
        ),
        "failed" if was_ready => (
            "danger",
            "It broke off",
            "It ran and then ended with an error. The end of its output mostly says why. Start it again; if it ends like this once more, show the output to someone who knows the cluster.".to_owned(),
        ),
        "failed" => (
            "danger",
            "It could not be started",
            match run.message.trim() {
                "" => "Its job ended before there was anything to see. Its output mostly tells why.".to_owned(),
                said => said.to_owned(),
            },
        ),
        _ => ("info", "It has ended", "Start it again to see it.".to_owned()),
    };
    let is_told = matches!(run.end.as_str(), "refused" | "not-sent" | "failed");
    let said = if is_told { run.message.clone() } else { String::new() };
    DashboardStatusText { tone, title: title.to_owned(), text, said, is_slurm: run.end == "refused" }
}

/// The steps until it is ready, while it starts.
pub fn steps(standing: &DashboardStatus) -> Vec<DashboardStep> {
    let phase = phase(standing);
    let at = match phase {
        DashboardPhase::Requested => 0,
        DashboardPhase::Waiting => 1,
        DashboardPhase::Preparing => 2,
        DashboardPhase::Starting => 3,
        DashboardPhase::Connecting => 4,
        DashboardPhase::NotStarted | DashboardPhase::Ready | DashboardPhase::Stopping | DashboardPhase::Ended => {
            return Vec::new();
        }
    };
    let message = standing.run.as_ref().map_or("", |run| run.message.as_str());
    let titles = ["Asked for", "Waiting in the queue", "Preparing the environment", "Starting", "Ready to open"];
    let step = |(number, title): (usize, &'static str)| DashboardStep {
        state: match number.cmp(&at) {
            std::cmp::Ordering::Less => "done",
            std::cmp::Ordering::Equal => "next",
            std::cmp::Ordering::Greater => "later",
        },
        title,
        text: if number == at && matches!(phase, DashboardPhase::Preparing | DashboardPhase::Starting) {
            message.to_owned()
        } else {
            String::new()
        },
    };
    titles.into_iter().enumerate().map(step).collect()
}
