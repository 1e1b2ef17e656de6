//! A cluster's page: guided steps to connect and, once connected, what was discovered.

use std::sync::Arc;

use askama::Template;
use axum::response::IntoResponse as _;

use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::cluster::{ClusterProfile, ConnectPurpose, ConnectState, ConnectionStatus, DiscoveredFacts};
use crate::error::AppError;
use crate::store;
use crate::store::connections::SshKeyUse;
use crate::web::HandlerResult;
use crate::web::http::flash;
use crate::web::http::form_errors::echo_input;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond, respond_with};
use crate::web::pages::clusters::connect_return;
use crate::web::pages::clusters::connect_steps::{ClusterSetupState, ConnectSetupStep, UserNameSuggestion};
use crate::web::pages::clusters::panel::{ConnectPanel, ConnectPanelContent};
use crate::web::pages::clusters::{ClusterRequest, UncheckedClusterRequest};

/// How many items of a long list are shown at first.
const MOST_AT_FIRST: usize = 12;

#[derive(Template)]
#[template(path = "clusters/cluster.html", blocks = ["place"])]
struct ClusterPage {
    page: PageFrame,
    profile: Arc<ClusterProfile>,
    panel: ConnectPanel,
    user: String,
    /// What the field for the user name shows.
    user_input: String,
    user_problem: String,
    /// A user name from another cluster, until the person has entered one here.
    suggestion: Option<UserNameSuggestion>,
    setup: ClusterSetupState,
    /// Where the new key has opened a connection.
    next_uses: Vec<SshKeyUse>,
    /// What has just ended on this open page: a test of the new key, or connecting, which succeeded.
    just_ended: Option<ConnectPurpose>,
    /// Whether the person has hidden the cluster.
    is_hidden: bool,
    /// Whether people may open terminals here.
    has_terminals: bool,
    is_admin: bool,
}

impl ClusterPage {
    /// What was discovered, and when.
    fn discovered(&self) -> Option<(&DiscoveredFacts, UnixTime)> {
        let account = self.setup.account.as_ref()?;
        Some((&account.discovered, account.discovered_at?))
    }

    fn is_tested(&self) -> bool {
        self.just_ended == Some(ConnectPurpose::TestNewKey)
    }

    fn is_just_connected(&self) -> bool {
        self.just_ended == Some(ConnectPurpose::Connect)
    }

    /// What to know about the field for the user name.
    fn user_hint(&self) -> String {
        match &self.suggestion {
            Some(found) if found.is_same_centre => format!(
                "This is your user name on {}, which belongs to the same centre. Change it if yours is different here.",
                found.cluster
            ),
            _ => "The user name you use to sign in to the cluster. It's usually not your e-mail address.".to_owned(),
        }
    }

    /// A name to choose with one click, because it is less likely to be right.
    fn offered_user(&self) -> Option<&UserNameSuggestion> {
        self.suggestion.as_ref().filter(|found| !found.is_same_centre)
    }

    /// Whether the new key has opened a connection to this cluster.
    fn is_next_proven_here(&self) -> bool {
        self.next_uses.iter().any(|key_use| key_use.cluster == self.profile.row.title)
    }
}

pub async fn get(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    let setup = ClusterSetupState::load(&request).await?;
    if let Some(back) = find_return(&request, &setup) {
        return Ok((connect_return::forget(&request.context), flash::see_other(&back)).into_response());
    }
    respond(&build_page(&request, setup).await?)
}

/// Renders what has changed since the open page saw this mark: nothing, the panel, or everything below the title
/// if the layout changes.
pub(super) async fn render_changes(request: &ClusterRequest, seen: Option<&str>) -> HandlerResult {
    let setup = ClusterSetupState::load(request).await?;
    let panel = ConnectPanel::new(&request.cluster, &setup);
    // A test leaves no trace in the panel; its result is shown beside the key.
    let is_tested = setup.test.is_none() && seen.is_some_and(|mark| mark.contains(".test-"));
    match seen {
        Some(mark) if is_tested || !panel.is_layout_current(mark) => {
            // After connecting, scroll up to the start of the new content.
            let was_connecting = mark.starts_with("connect.connect-");
            let swap = match panel.next {
                ConnectSetupStep::Connected | ConnectSetupStep::Closed if was_connecting => "outerHTML show:window:top",
                _ => "outerHTML",
            };
            let mut page = build_page(request, setup).await?;
            let is_just_connected = was_connecting && page.panel.next == ConnectSetupStep::Connected;
            if is_just_connected && let Some(back) = find_return(request, &page.setup) {
                let headers = [("hx-redirect", back)];
                return Ok((connect_return::forget(&request.context), headers).into_response());
            }
            page.just_ended = match (is_tested, is_just_connected) {
                (true, _) => Some(ConnectPurpose::TestNewKey),
                (false, true) => Some(ConnectPurpose::Connect),
                (false, false) => None,
            };
            let headers = [("hx-retarget", "#place"), ("hx-reswap", swap)];
            Ok((headers, respond(&page.as_place())?).into_response())
        }
        _ => panel.respond(seen),
    }
}

/// The page about files that someone came from to connect, once they are connected.
fn find_return(request: &ClusterRequest, setup: &ClusterSetupState) -> Option<String> {
    let is_connected = matches!(setup.status, ConnectionStatus::Up(_));
    connect_return::find(&request.context, &request.cluster.row.slug).filter(|_| is_connected)
}

/// Renders the page again with what is wrong with the user name.
pub(super) async fn show_with_problem(request: &ClusterRequest, user: &str, problem: &str) -> HandlerResult {
    let setup = ClusterSetupState::load(request).await?;
    let mut page = build_page(request, setup).await?;
    page.user = echo_input(user);
    page.user_input.clone_from(&page.user);
    problem.clone_into(&mut page.user_problem);
    respond_with(FORM_ERROR_STATUS, &page)
}

async fn build_page(request: &ClusterRequest, setup: ClusterSetupState) -> Result<ClusterPage, AppError> {
    let ClusterRequest { context, me, cluster } = request;
    let next_uses = match &setup.next_key {
        Some(next) => {
            let mut db = context.app.store.read().await?;
            store::connections::list_key_uses(&mut db, next.id).await?
        }
        None => Vec::new(),
    };
    let accounts = &context.app.cluster_accounts;
    let suggestion = match &setup.account {
        Some(_) => None,
        None => UserNameSuggestion::find(cluster, &accounts.list(me.0.person.id).await?),
    };
    let user = setup.account.as_ref().map(|account| account.remote_user.clone()).unwrap_or_default();
    let user_input = match &suggestion {
        Some(found) if found.is_same_centre => found.user.clone(),
        _ => user.clone(),
    };
    Ok(ClusterPage {
        page: PageFrame::for_person(context, &me.0, &cluster.row.title, NavSection::Clusters),
        panel: ConnectPanel::new(cluster, &setup),
        user,
        user_input,
        user_problem: String::new(),
        suggestion,
        setup,
        next_uses,
        just_ended: None,
        has_terminals: context.app.terminals.is_enabled() && cluster.site.terminals.0,
        is_hidden: accounts.preferences(me.0.person.id).await?.is_hidden(cluster.row.id),
        is_admin: me.may(Permission::ManageClusters).is_ok(),
        profile: cluster.clone(),
    })
}

fn format_time_limit(minutes: Option<u32>) -> String {
    match minutes {
        None => "No known limit".into(),
        Some(1440) => "1 day".into(),
        Some(minutes) if minutes > 1440 && minutes % 1440 == 0 => format!("{} days", minutes / 1440),
        Some(60) => "1 hour".into(),
        Some(minutes) if minutes > 60 && minutes % 60 == 0 => format!("{} hours", minutes / 60),
        Some(minutes) if minutes > 60 => format!("{} h {} min", minutes / 60, minutes % 60),
        Some(minutes) => format!("{minutes} minutes"),
    }
}
