//! The home page: one's jobs now, what ended since the last visit, fair-share and storage, one's connections and
//! groups, and what newcomers do first. Nothing here asks a cluster: what is shown is in memory, or was read since the
//! last write.

use std::sync::Arc;

use askama::Template;

use super::Answer;
use super::extract::{Context, Me};
use super::jobs::queues;
use super::jobs::row::Time;
use super::page::{Page, Section, show};
use crate::app::AppState;
use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::cluster::ConnectionStatus;
use crate::domain::{ClusterId, ConnectionRole, PersonId};
use crate::jobs::QueueKey;
use crate::store::clusters::Cluster;
use crate::store::connections::ConnectionKey;
use crate::store::groups::Membership;
use crate::store::{self, StoreError};

mod jobs;
pub(super) mod standing;
mod steps;
mod visits;

use jobs::Now;
use standing::Standing;
use steps::{Step, admin_steps, in_order, member_steps};
pub use visits::Visits;

/// So many clusters are shown; the rest is on the page of all clusters.
const MOST_CLUSTERS: usize = 6;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    page: Page,
    greeting: String,
    steps: Vec<Step>,
    now: Now,
    standings: Vec<Standing>,
    memberships: Vec<Membership>,
    connections: Vec<Connection>,
    /// How many clusters are not shown.
    more: usize,
    is_admin: bool,
}

/// A cluster and one's connection to it.
struct Connection {
    cluster: ClusterId,
    slug: String,
    title: String,
    kind: &'static str,
    label: &'static str,
    /// As whom; empty if nobody has said.
    user: String,
    since: Option<UnixTime>,
    /// Whether one click may bring it back.
    can_reconnect: bool,
}

/// What every home page shows, whoever looks.
pub struct Facts {
    clusters: Vec<Cluster>,
    has_group: bool,
    has_people: bool,
    /// Whether anyone has an account.
    pub is_set_up: bool,
}

/// What is noted of people's connections.
pub type Ways = store::StoreCache<PersonId, Vec<WayTo>>;

/// What is noted of a connection to a cluster's login host.
pub struct WayTo {
    cluster: ClusterId,
    user: String,
    was_connected: bool,
    has_jobs: bool,
}

/// What every home page shows, from memory where nothing was written since.
pub async fn known(app: &AppState) -> Result<Arc<Facts>, StoreError> {
    app.home_overview
        .get_or_load(&app.store, &(), async || {
            let mut db = app.store.read().await?;
            let people = store::people::count(&mut db).await?;
            let mut clusters = store::clusters::list(&mut db).await?;
            clusters.retain(|cluster| cluster.retired_at().is_none());
            Ok(Facts {
                clusters,
                has_group: !store::groups::list(&mut db).await?.is_empty(),
                has_people: people > 1,
                is_set_up: people > 0,
            })
        })
        .await
}

/// Someone's connections, likewise.
async fn ways(app: &AppState, person: PersonId) -> Result<Arc<Vec<WayTo>>, StoreError> {
    app.home_connections
        .get_or_load(&app.store, &person, async || {
            let mut db = app.store.read().await?;
            let lines = store::connections::list_for_person(&mut db, person).await?;
            let mut ways = Vec::new();
            for line in lines.into_iter().filter(|line| line.key().role == ConnectionRole::Login) {
                ways.push(WayTo {
                    cluster: line.cluster_id,
                    was_connected: line.connected_at().is_some(),
                    has_jobs: store::jobs::has_any(&mut db, person, line.cluster_id).await?,
                    user: line.remote_user,
                });
            }
            Ok(ways)
        })
        .await
}

/// The page.
pub async fn get(context: Context, me: Me) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    let app = &context.app;
    let facts = known(app).await?;
    let ways = ways(app, me.0.person.id).await?;
    let is_admin = me.may(Permission::ManageGroups).is_ok();
    let first_name = me.0.person.display_name.split_whitespace().next().unwrap_or_default();
    let connections = connections(app, me.0.person.id, &facts, &ways);
    let mut places = queues::places(&context, &me).await?;
    for place in &mut places {
        let key = QueueKey { person: me.0.person.id, cluster: place.cluster.id };
        place.picture = app.queue_monitor.look(key, false).await?;
    }
    let steps = if is_admin {
        admin_steps(&facts, me.0.person.has_totp)
    } else {
        let was_connected = ways.iter().any(|way| way.was_connected);
        let has_run = ways.iter().any(|way| way.has_jobs);
        let has_group = !me.0.memberships.is_empty();
        member_steps(has_group, &facts, was_connected, has_run, me.0.person.has_totp)
    };
    // A page that renews itself is no visit.
    let since = if places.is_empty() {
        None
    } else {
        app.home_visits.since(app, me.0.person.id, !context.is_fragment).await?
    };
    show(&HomePage {
        page: Page::for_person(&context, &me.0, "Home", Section::Home),
        greeting: format!("Hello {first_name}"),
        steps: in_order(steps),
        now: Now::of(&places, since, app.clock.now()),
        standings: places.iter().filter_map(Standing::of).collect(),
        memberships: me.0.memberships.clone(),
        more: facts.clusters.len() - connections.len(),
        connections,
        is_admin,
    })
}

/// One's connections, those that one uses first.
fn connections(app: &AppState, person: PersonId, facts: &Facts, ways: &[WayTo]) -> Vec<Connection> {
    let way_to = |cluster: &Cluster| ways.iter().find(|way| way.cluster == cluster.id);
    let mut clusters: Vec<_> = facts.clusters.iter().map(|one| (one, way_to(one))).collect();
    clusters.sort_by_key(|(_, way)| way.is_none());
    clusters.truncate(MOST_CLUSTERS);
    let connection = |(cluster, way): (&Cluster, Option<&WayTo>)| {
        let key = ConnectionKey { person, cluster: cluster.id, role: ConnectionRole::Login };
        let status = app.connections.status(key);
        let (kind, label) = match (&status, way) {
            _ if cluster.alarm_at().is_some() => ("failed", "Stopped"),
            (ConnectionStatus::Up(_), _) => ("ok", "Connected"),
            (ConnectionStatus::Connecting(_), _) => ("waiting", "Connecting"),
            (ConnectionStatus::Down, Some(_)) => ("neutral", "Not connected"),
            (ConnectionStatus::Down, None) => ("neutral", "Not set up"),
        };
        Connection {
            cluster: cluster.id,
            slug: cluster.slug.clone(),
            title: cluster.title.clone(),
            kind,
            label,
            user: way.map(|way| way.user.clone()).unwrap_or_default(),
            since: if let ConnectionStatus::Up(up) = &status { Some(up.since) } else { None },
            can_reconnect: label == "Not connected" && way.is_some_and(|way| way.was_connected),
        }
    };
    clusters.into_iter().map(connection).collect()
}
