//! The part of a cluster's page that changes by itself: not connected, being connected, connected.

use askama::Template;

use crate::cluster::{
    ClusterProfile, ConnectAttempt, ConnectProgress, ConnectPurpose, ConnectionStatus,
    OpenConnection,
};
use crate::sites::AuthFactor;
use crate::sites::prompts::LoginPrompt;
use crate::web::HandlerResult;
use crate::web::http::page_frame::respond;
use crate::web::pages::clusters::connect_steps::{ClusterSetupState, NextConnectStep};

/// The panel, alone or inside its page.
#[derive(Template)]
#[template(path = "clusters/panel.html")]
pub struct ConnectPanel {
    /// The cluster's short name.
    pub slug: String,
    pub title: String,
    /// Its number, in event names.
    pub cluster: i64,
    /// Which arrangement of the page it belongs into.
    pub next: NextConnectStep,
    /// Changes whenever what it shows does; figures do not count.
    pub mark: String,
    /// Whether it changes without anyone doing anything.
    pub is_moving: bool,
    /// Whether the connection stands, whatever the panel shows.
    pub is_connected: bool,
    /// What the panel shows.
    pub state: PanelState,
}

/// The figures of a connection, for a panel that shows it already.
#[derive(Template)]
#[template(path = "clusters/panel_figures.html")]
struct PanelFigures<'a> {
    connection: &'a OpenConnection,
}

/// What a panel shows.
pub enum PanelState {
    /// Nothing can be done here before something else.
    NotReady(&'static str),
    Down {
        /// What happened last, in a sentence; empty if nothing did.
        problem: String,
        /// What the server said then.
        said: String,
        /// Whether it was connected before.
        again: bool,
        /// What to have at hand; empty if nothing.
        needs: &'static str,
    },
    Opening(Box<PanelAttempt>),
    Up {
        user: String,
        connection: OpenConnection,
    },
    /// The host key is in doubt.
    Alarm,
}

/// A connection on its way.
pub struct PanelAttempt {
    /// `connect` or `test`.
    pub purpose: &'static str,
    pub step: PanelAttemptStep,
}

/// A step of it.
pub enum PanelAttemptStep {
    /// Something goes on; what, in words.
    Busy(&'static str, &'static str),
    Asked {
        number: u32,
        prompt: LoginPrompt,
        /// What the server said besides.
        notices: String,
        /// The last answer was not accepted.
        again: bool,
        /// Who asks: the cluster, or the host on the way to it.
        asker: String,
    },
}

impl ConnectPanel {
    /// The panel of someone's way to a cluster.
    pub fn new(known: &ClusterProfile, way: &ClusterSetupState) -> Self {
        let next = way.next_step(known);
        let state = match &way.test {
            Some(test) => PanelState::Opening(Box::new(panel_attempt(test, known))),
            None => panel_state(known, way),
        };
        Self {
            slug: known.row.slug.clone(),
            title: known.row.title.clone(),
            cluster: known.row.id.0,
            mark: format!("{}.{}", next.as_str(), state_mark(&state)),
            next,
            is_moving: matches!(state, PanelState::Opening(_)),
            is_connected: matches!(way.status, ConnectionStatus::Up(_)),
            state,
        }
    }

    /// Whether a page that was made for this mark is arranged as it should be now.
    pub fn is_layout_current(&self, seen: &str) -> bool {
        seen.split_once('.').is_some_and(|(next, _)| next == self.next.as_str())
    }

    /// As an answer to a page that shows it already: nothing, or only new figures, if nothing has changed since.
    /// So nothing is wiped that someone types, opens or reads.
    pub fn respond(&self, seen: Option<&str>) -> HandlerResult {
        use axum::response::IntoResponse as _;
        if seen != Some(self.mark.as_str()) {
            return respond(self);
        }
        let PanelState::Up { connection, .. } = &self.state else {
            return Ok(axum::http::StatusCode::NO_CONTENT.into_response());
        };
        let place = [("hx-retarget", "#panel-figures"), ("hx-reswap", "outerHTML")];
        Ok((place, respond(&PanelFigures { connection })?).into_response())
    }
}

fn panel_state(known: &ClusterProfile, way: &ClusterSetupState) -> PanelState {
    if known.row.alarm_at().is_some() {
        return PanelState::Alarm;
    }
    let line = way.connection.as_ref();
    match (&way.status, line) {
        (ConnectionStatus::Connecting(attempt), _) => {
            PanelState::Opening(Box::new(panel_attempt(attempt, known)))
        }
        (ConnectionStatus::Up(connection), _) => PanelState::Up {
            user: line.map(|line| line.remote_user.clone()).unwrap_or_default(),
            connection: connection.clone(),
        },
        (ConnectionStatus::Down, _) if known.row.retired_at().is_some() => {
            PanelState::NotReady("Nobody can connect to it.")
        }
        (ConnectionStatus::Down, None) => PanelState::NotReady("First enter your user name above."),
        (ConnectionStatus::Down, Some(_)) if !way.has_needed_key(known) => {
            PanelState::NotReady("First create or import your key above.")
        }
        (ConnectionStatus::Down, Some(line)) => {
            let (problem, said) = line.problem.split_once("\n\n").unwrap_or((&line.problem, ""));
            PanelState::Down {
                problem: problem.to_owned(),
                said: said.to_owned(),
                again: line.connected_at().is_some(),
                needs: what_to_have_ready(known.site.login.preferred_factors()),
            }
        }
    }
}

/// What to have at hand before one begins.
fn what_to_have_ready(way: &[AuthFactor]) -> &'static str {
    let has = |proof| way.contains(&proof);
    match (has(AuthFactor::Duo), has(AuthFactor::Code), has(AuthFactor::Password)) {
        (true, ..) => "Have your phone at hand: the cluster asks you to confirm with Duo.",
        (_, true, true) => {
            "Have your one-time code and your password for the cluster at hand: it asks for both, and waits only a minute or two."
        }
        (_, true, _) => "Have the app with your one-time codes at hand: the cluster asks for one.",
        (_, _, true) => "Have your password for the cluster at hand: it asks for it.",
        _ => "",
    }
}

fn panel_attempt(attempt: &ConnectAttempt, known: &ClusterProfile) -> PanelAttempt {
    let step = match attempt.progress() {
        ConnectProgress::Queued => PanelAttemptStep::Busy(
            "Waiting for your turn",
            "Others are signing in at the same host right now.",
        ),
        ConnectProgress::Connecting => {
            PanelAttemptStep::Busy("Reaching the cluster", "This takes a few seconds.")
        }
        ConnectProgress::CheckingAnswer { push: true } => PanelAttemptStep::Busy(
            "Check your phone",
            "The cluster has sent a request to your phone. Approve it there; this page goes on by itself.",
        ),
        ConnectProgress::CheckingAnswer { push: false } => {
            PanelAttemptStep::Busy("The cluster checks your answer", "This takes a few seconds.")
        }
        ConnectProgress::Discovering => PanelAttemptStep::Busy(
            "Connected. Looking around",
            "The portal asks which accounts, folders and machines you have there.",
        ),
        ConnectProgress::Finished => {
            PanelAttemptStep::Busy("One moment", "This page goes on by itself.")
        }
        ConnectProgress::Prompted { number, prompt, notices, again } => {
            let asker = prompt_asker(&prompt, known);
            PanelAttemptStep::Asked { number, prompt, notices, again, asker }
        }
    };
    let purpose = if attempt.purpose == ConnectPurpose::Connect { "connect" } else { "test" };
    PanelAttempt { purpose, step }
}

/// Two hosts may ask on a way through another one; people should know whose code or password is wanted.
fn prompt_asker(prompt: &LoginPrompt, known: &ClusterProfile) -> String {
    let jump = known.site.login.jump.as_ref().map(|jump| jump.host.as_str());
    match (jump, &prompt.hop) {
        (Some(jump), Some(hop)) if hop.contains(jump) => {
            format!("{jump}, the host on the way to {},", known.row.title)
        }
        _ => known.row.title.clone(),
    }
}

/// Equal for equal panels.
fn state_mark(state: &PanelState) -> String {
    match state {
        PanelState::NotReady(_) => "not-ready".into(),
        PanelState::Alarm => "alarm".into(),
        PanelState::Down { problem, .. } => format!("down-{}", problem.len()),
        PanelState::Opening(opening) => match &opening.step {
            PanelAttemptStep::Busy(title, _) => {
                format!("{}-{}", opening.purpose, title.replace(' ', "-"))
            }
            PanelAttemptStep::Asked { number, .. } => format!("{}-asked-{number}", opening.purpose),
        },
        PanelState::Up { connection, .. } => format!("up-{}", connection.since.0),
    }
}

pub fn format_idle(seconds: u64) -> String {
    match seconds {
        0..60 => "less than a minute".into(),
        60..120 => "1 minute".into(),
        120..7200 => format!("{} minutes", seconds / 60),
        _ => format!("{} hours", seconds / 3600),
    }
}
