//! All clusters, with the viewer's connections.

use std::sync::Arc;

use askama::Template;

use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::cluster::{ClusterAccount, ConnectionStatus};
use crate::domain::ConnectionRole;
use crate::error::AppError;
use crate::store;
use crate::store::clusters::Cluster;
use crate::store::connections::ConnectionKey;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::clusters::own_list::sort_active;
use crate::web::pages::clusters::panel::format_idle;

#[derive(Template)]
#[template(path = "clusters/list.html")]
struct ClustersPage {
    page: PageFrame,
    rows: Vec<ClusterListRow>,
    /// The clusters that the viewer has hidden.
    hidden: Vec<Cluster>,
    retired: Vec<Cluster>,
    is_admin: bool,
}

/// The list alone, for an open page.
#[derive(Template)]
#[template(path = "clusters/list_rows.html")]
struct ClusterRowsFragment {
    rows: Vec<ClusterListRow>,
}

/// A cluster and the viewer's connection to it.
struct ClusterListRow {
    cluster: Cluster,
    kind: &'static str,
    label: &'static str,
    user: String,
    since: Option<UnixTime>,
    figures: Option<crate::ssh::ConnectionStats>,
    idle: String,
    /// Why it is not connected, or the last problem.
    problem: String,
    action: ClusterListAction,
    /// The state of the connection to the automation host.
    automation: Option<&'static str>,
    /// Whether the viewer has entered a user name there.
    has_account: bool,
}

/// The clusters of the portal, as one person sees them.
struct PersonClusterList {
    rows: Vec<ClusterListRow>,
    hidden: Vec<Cluster>,
    retired: Vec<Cluster>,
}

/// The action that the list offers for a connection.
enum ClusterListAction {
    Disconnect,
    Reconnect,
    /// Open its page; the button's label, and whether it is the primary action.
    Go(&'static str, bool),
}

pub async fn get(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let PersonClusterList { rows, hidden, retired } = load_list(&context, &me).await?;
    if context.is_fragment {
        return respond(&ClusterRowsFragment { rows });
    }
    let page = PageFrame::for_person(&context, &me.0, "Clusters", NavSection::Clusters);
    respond(&ClustersPage { page, rows, hidden, retired, is_admin: me.may(Permission::ManageClusters).is_ok() })
}

/// Loads all clusters with the viewer's connections, in the viewer's order.
async fn load_list(context: &RequestContext, me: &CurrentPerson) -> Result<PersonClusterList, AppError> {
    let person = me.0.person.id;
    let accounts = context.app.cluster_accounts.list(person).await?;
    let preferences = context.app.cluster_accounts.preferences(person).await?;
    let mut db = context.app.store.read().await?;
    let all = store::clusters::list(&mut db).await?;
    let retired = all.iter().filter(|cluster| cluster.retired_at().is_some()).cloned().collect();
    let (hidden, shown): (Vec<_>, Vec<_>) =
        sort_active(all, &preferences).into_iter().partition(|cluster| preferences.is_hidden(cluster.id));
    let rows = shown
        .into_iter()
        .map(|cluster| {
            let key = |role| ConnectionKey { person, cluster: cluster.id, role };
            let account = accounts.iter().find(|account| account.id.cluster == cluster.id);
            let automation = match context.app.connections.status(key(ConnectionRole::Automation)) {
                ConnectionStatus::Up(_) => Some("Automation host connected"),
                _ => None,
            };
            let status = context.app.connections.status(key(ConnectionRole::Login));
            ClusterListRow { automation, ..build_row(status, account, cluster) }
        })
        .collect();
    Ok(PersonClusterList { rows, hidden, retired })
}

fn build_row(status: ConnectionStatus, account: Option<&Arc<ClusterAccount>>, cluster: Cluster) -> ClusterListRow {
    let problem =
        account.map(|account| account.problem.words.lines().next().unwrap_or_default().to_owned()).unwrap_or_default();
    let empty = ClusterListRow {
        user: account.map(|account| account.remote_user.clone()).unwrap_or_default(),
        kind: "neutral",
        label: "Not set up",
        since: None,
        figures: None,
        idle: String::new(),
        problem,
        action: ClusterListAction::Go("Set up connection", false),
        automation: None,
        has_account: account.is_some(),
        cluster,
    };
    if empty.cluster.alarm_at().is_some() {
        let problem =
            "Its host key has changed. The portal sends nothing to it until an administrator has reviewed it.".into();
        let action = ClusterListAction::Go("View details", false);
        return ClusterListRow { kind: "failed", label: "Blocked", problem, action, ..empty };
    }
    match (status, account) {
        (ConnectionStatus::Up(connection), _) => {
            let figures = connection.stats();
            ClusterListRow {
                kind: "ok",
                label: "Connected",
                since: Some(connection.since),
                idle: format_idle(figures.idle.as_secs()),
                problem: figures.problem.clone().unwrap_or_default(),
                figures: Some(figures),
                action: ClusterListAction::Disconnect,
                ..empty
            }
        }
        (ConnectionStatus::Connecting(_), _) => ClusterListRow {
            kind: "waiting",
            label: "Connecting",
            problem: String::new(),
            action: ClusterListAction::Go("Continue", true),
            ..empty
        },
        (ConnectionStatus::Down, None) => empty,
        (ConnectionStatus::Down, Some(account)) if account.connected_at.is_some() => {
            ClusterListRow { label: "Not connected", action: ClusterListAction::Reconnect, ..empty }
        }
        (ConnectionStatus::Down, Some(_)) => {
            ClusterListRow { label: "Not connected", action: ClusterListAction::Go("Continue", true), ..empty }
        }
    }
}
