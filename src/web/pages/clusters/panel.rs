//! The part of a cluster's page that updates itself: not connected, connecting, connected.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;

use crate::cluster::{ClusterProfile, ConnectPurpose, ConnectState, ConnectionStatus, OpenConnection};
use crate::sites::SiteLoginFactor;
use crate::sites::prompts::LoginPrompt;
use crate::store::connections::ConnectionProblem;
use crate::web::HandlerResult;
use crate::web::http::page_frame::respond;
use crate::web::pages::clusters::connect_steps::{ClusterSetupState, ConnectSetupStep};

/// The panel alone; the page includes the same template.
#[derive(Template)]
#[template(path = "clusters/panel.html")]
struct ConnectPanelFragment<'a> {
    panel: &'a ConnectPanel,
}

pub struct ConnectPanel {
    pub cluster: Arc<ClusterProfile>,
    /// The page layout that this panel belongs to.
    pub next: ConnectSetupStep,
    /// Changes whenever the content changes; figures do not count.
    pub mark: String,
    /// Whether the connection is open, whatever the panel shows.
    pub is_connected: bool,
    pub content: ConnectPanelContent,
}

/// The figures of a connection, for a page that already shows the panel.
#[derive(Template)]
#[template(path = "clusters/panel_figures.html")]
struct OpenConnectionFigures<'a> {
    connection: &'a OpenConnection,
}

pub enum ConnectPanelContent {
    /// Something else has to be done first.
    NotReady(&'static str),
    Down {
        /// The last problem.
        problem: ConnectionProblem,
        /// Whether it was connected before.
        was_connected: bool,
        /// What the person needs at hand; empty if nothing.
        needs: &'static str,
    },
    /// An attempt to connect, or a test of a new key beside the open connection.
    Attempt(ConnectPurpose, ConnectState),
    Up {
        user: String,
        connection: OpenConnection,
    },
    /// The host key raised an alarm.
    Alarm,
}

impl ConnectPanel {
    pub fn new(cluster: &Arc<ClusterProfile>, setup: &ClusterSetupState) -> Self {
        let next = setup.next_step(cluster);
        let content = match &setup.test {
            Some(test) => ConnectPanelContent::Attempt(test.purpose, test.state()),
            None => connection_content(cluster, setup),
        };
        Self {
            cluster: cluster.clone(),
            mark: format!("{}.{}", next.as_str(), content_mark(&content)),
            next,
            is_connected: matches!(setup.status, ConnectionStatus::Up(_)),
            content,
        }
    }

    /// Whether it can change without the person doing anything.
    pub const fn is_moving(&self) -> bool {
        matches!(self.content, ConnectPanelContent::Attempt(..))
    }

    /// With a jump host, two hosts may prompt; say which one wants the code or password.
    pub fn asker(&self, prompt: &LoginPrompt) -> String {
        let title = &self.cluster.row.title;
        let jump_host = self.cluster.site.login.jump.as_ref().map(|jump| jump.host.as_str());
        match (jump_host, &prompt.hop) {
            (Some(jump), Some(hop)) if hop.contains(jump) => format!("{jump}, the jump host for {title},"),
            _ => title.clone(),
        }
    }

    /// Whether a page rendered for this mark still has the right layout.
    pub fn is_layout_current(&self, seen: &str) -> bool {
        seen.split_once('.').is_some_and(|(next, _)| next == self.next.as_str())
    }

    /// The response to a page that already shows the panel: nothing, or only new figures, if nothing else changed.
    /// That way it never overwrites what someone is typing, has opened or is reading.
    pub fn respond(&self, seen: Option<&str>) -> HandlerResult {
        if seen != Some(self.mark.as_str()) {
            return respond(&ConnectPanelFragment { panel: self });
        }
        let ConnectPanelContent::Up { connection, .. } = &self.content else {
            return Ok(StatusCode::NO_CONTENT.into_response());
        };
        let headers = [("hx-retarget", "#panel-figures"), ("hx-reswap", "outerHTML")];
        Ok((headers, respond(&OpenConnectionFigures { connection })?).into_response())
    }
}

fn connection_content(cluster: &ClusterProfile, setup: &ClusterSetupState) -> ConnectPanelContent {
    if cluster.row.alarm_at().is_some() {
        return ConnectPanelContent::Alarm;
    }
    let account = setup.account.as_deref();
    match (&setup.status, account) {
        (ConnectionStatus::Connecting(attempt), _) => ConnectPanelContent::Attempt(attempt.purpose, attempt.state()),
        (ConnectionStatus::Up(connection), _) => ConnectPanelContent::Up {
            user: account.map(|account| account.remote_user.clone()).unwrap_or_default(),
            connection: connection.clone(),
        },
        (ConnectionStatus::Down, _) if cluster.row.retired_at().is_some() => {
            ConnectPanelContent::NotReady("Nobody can connect to this cluster.")
        }
        (ConnectionStatus::Down, None) => ConnectPanelContent::NotReady("First enter your user name above."),
        (ConnectionStatus::Down, Some(_)) if !setup.has_needed_key(cluster) => {
            ConnectPanelContent::NotReady("First create or import your key above.")
        }
        (ConnectionStatus::Down, Some(account)) => ConnectPanelContent::Down {
            problem: account.problem.clone(),
            was_connected: account.connected_at.is_some(),
            needs: what_to_have_ready(cluster.site.login.preferred_factors()),
        },
    }
}

fn what_to_have_ready(factors: &[SiteLoginFactor]) -> &'static str {
    let has = |factor| factors.contains(&factor);
    match (has(SiteLoginFactor::Duo), has(SiteLoginFactor::Code), has(SiteLoginFactor::Password)) {
        (true, ..) => "Have your phone ready: the cluster will ask you to confirm with Duo.",
        (_, true, true) => {
            "Have your cluster password and a one-time code ready: the cluster will ask for both and waits only a minute or two."
        }
        (_, true, _) => "Have your authenticator app ready: the cluster will ask for a one-time code.",
        (_, _, true) => "Have your cluster password ready: the cluster will ask for it.",
        _ => "",
    }
}

/// Equal for equal content.
fn content_mark(content: &ConnectPanelContent) -> String {
    match content {
        ConnectPanelContent::NotReady(_) => "not-ready".into(),
        ConnectPanelContent::Alarm => "alarm".into(),
        ConnectPanelContent::Down { problem, .. } => format!("down-{}", problem.words.len()),
        ConnectPanelContent::Attempt(purpose, ConnectState::Prompted { number, .. }) => {
            format!("{}-asked-{number}", purpose.as_str())
        }
        ConnectPanelContent::Attempt(purpose, state) => {
            format!("{}-{}", purpose.as_str(), state.words().0.replace(' ', "-"))
        }
        ConnectPanelContent::Up { connection, .. } => format!("up-{}", connection.since.0),
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
