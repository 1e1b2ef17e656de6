//! The home page: current jobs, what ended since the last visit, fair share and storage, connections and groups, and
//! the first steps for newcomers. Doesn't contact any cluster: everything shown is in memory, or was read since the
//! last write.

use std::sync::Arc;

use askama::Template;

use crate::app::AppState;
use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::cluster::{ClusterAccount, ConnectionStatus};
use crate::domain::PersonId;
use crate::store::clusters::Cluster;
use crate::store::groups::Membership;
use crate::store::{self, StoreError};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::jobs::cluster_queues;
use crate::web::pages::jobs::list_row::JobTimeCell;

mod getting_started;
mod job_summary;
pub(in crate::web) mod resource_bars;
mod visits;

use getting_started::{GettingStartedStep, admin_steps, mark_next_step, member_steps};
use job_summary::HomeJobSummary;
use resource_bars::OwnClusterResources;
pub use visits::LastHomeVisits;

/// How many clusters are shown; the rest are on the page of all clusters.
const MAX_CLUSTERS: usize = 6;

#[derive(Template)]
#[template(path = "home/home.html")]
struct HomePage {
    page: PageFrame,
    greeting: String,
    steps: Vec<GettingStartedStep>,
    now: HomeJobSummary,
    resources: Vec<OwnClusterResources>,
    memberships: Vec<Membership>,
    connections: Vec<HomeConnection>,
    /// How many clusters aren't shown.
    more: usize,
    is_admin: bool,
}

/// A cluster and the person's connection to it.
struct HomeConnection {
    cluster: Cluster,
    kind: &'static str,
    label: &'static str,
    /// The user name there; empty if it isn't known.
    user: String,
    since: Option<UnixTime>,
    /// Whether one click may be enough to reconnect.
    can_reconnect: bool,
}

/// The figures that are the same for everyone.
pub struct PortalSetupFacts {
    clusters: Vec<Cluster>,
    has_group: bool,
    has_people: bool,
    /// Whether anyone has an account.
    pub is_set_up: bool,
}

/// Whether people have had jobs on any of their clusters.
pub type HasJobsCache = store::StoreCache<PersonId, bool>;

/// The figures that are the same for everyone, from memory if nothing was written since.
pub async fn load_overview(context: &RequestContext) -> Result<Arc<PortalSetupFacts>, StoreError> {
    let app = &context.app;
    context
        .pages
        .home_overview
        .get_or_load(&app.store, &(), async || {
            let mut db = app.store.read().await?;
            let people = store::people::count(&mut db).await?;
            let mut clusters = store::clusters::list(&mut db).await?;
            clusters.retain(|cluster| cluster.retired_at().is_none());
            Ok(PortalSetupFacts {
                clusters,
                has_group: !store::groups::list(&mut db).await?.is_empty(),
                has_people: people > 1,
                is_set_up: people > 0,
            })
        })
        .await
}

async fn has_jobs(
    context: &RequestContext,
    person: PersonId,
    accounts: &[Arc<ClusterAccount>],
) -> Result<bool, StoreError> {
    let app = &context.app;
    let load = async || {
        let mut db = app.store.read().await?;
        for account in accounts {
            if store::jobs::has_any(&mut db, person, account.id.cluster).await? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    context.pages.has_jobs.get_or_load(&app.store, &person, load).await.map(|has_jobs| *has_jobs)
}

pub async fn get(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let app = &context.app;
    let overview = load_overview(&context).await?;
    let accounts = app.cluster_accounts.list(me.0.person.id).await?;
    let is_admin = me.may(Permission::ManageGroups).is_ok();
    let first_name = me.0.person.display_name.split_whitespace().next().unwrap_or_default();
    let connections = list_connections(app, &overview, &accounts);
    let mut queues = cluster_queues::list_cluster_queues(&context, &me).await?;
    for queue in &mut queues {
        queue.snapshot = app.queue_monitor.view(queue.account.id, false).await?;
    }
    let steps = if is_admin {
        admin_steps(&overview, me.0.person.has_totp)
    } else {
        let was_connected = accounts.iter().any(|account| account.connected_at.is_some());
        let has_run = has_jobs(&context, me.0.person.id, &accounts).await?;
        let has_group = !me.0.memberships.is_empty();
        member_steps(has_group, &overview, was_connected, has_run, me.0.person.has_totp)
    };
    // A page that refreshes itself doesn't count as a visit.
    let since = if queues.is_empty() {
        None
    } else {
        context.pages.home_visits.previous_visit_end(app, me.0.person.id, !context.is_fragment).await?
    };
    respond(&HomePage {
        page: PageFrame::for_person(&context, &me.0, "Home", NavSection::Home),
        greeting: format!("Hello {first_name}"),
        steps: mark_next_step(steps),
        now: HomeJobSummary::new(&queues, since, app.clock.now()),
        resources: queues.iter().filter_map(OwnClusterResources::from_queue).collect(),
        memberships: me.0.memberships.clone(),
        more: overview.clusters.len() - connections.len(),
        connections,
        is_admin,
    })
}

/// The person's connections, those in use first.
fn list_connections(
    app: &AppState,
    overview: &PortalSetupFacts,
    accounts: &[Arc<ClusterAccount>],
) -> Vec<HomeConnection> {
    let account_on = |cluster: &Cluster| accounts.iter().find(|account| account.id.cluster == cluster.id);
    let mut clusters: Vec<_> = overview.clusters.iter().map(|cluster| (cluster, account_on(cluster))).collect();
    clusters.sort_by_key(|(_, account)| account.is_none());
    clusters.truncate(MAX_CLUSTERS);
    let connection = |(cluster, account): (&Cluster, Option<&Arc<ClusterAccount>>)| {
        let status = account.map_or(ConnectionStatus::Down, |account| account.status(&app.connections));
        let (kind, label) = match (&status, account) {
            _ if cluster.alarm_at().is_some() => ("failed", "Blocked"),
            (ConnectionStatus::Up(_), _) => ("ok", "Connected"),
            (ConnectionStatus::Connecting(_), _) => ("waiting", "Connecting"),
            (ConnectionStatus::Down, Some(_)) => ("neutral", "Not connected"),
            (ConnectionStatus::Down, None) => ("neutral", "Not set up"),
        };
        HomeConnection {
            cluster: cluster.clone(),
            kind,
            label,
            user: account.map(|account| account.remote_user.clone()).unwrap_or_default(),
            since: if let ConnectionStatus::Up(open) = &status { Some(open.since) } else { None },
            can_reconnect: label == "Not connected" && account.is_some_and(|account| account.connected_at.is_some()),
        }
    };
    clusters.into_iter().map(connection).collect()
}
