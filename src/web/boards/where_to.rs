//! The clusters on which someone can have a dashboard, and why not on the others.

use super::super::compose::place::{self, Spot};
use super::super::extract::{Context, Me};
use crate::boards::{Kind, LONGEST, SHORTEST, USUAL};
use crate::cluster::DiscoveredFacts;
use crate::cluster::folders::PathVariables;
use crate::domain::ConnectionRole;
use crate::error::AppError;
use crate::jobs::QueueKey;
use crate::store;
use crate::store::connections::ConnectionKey;

/// So many folders of earlier dashboards are offered.
const MOST_RECENT: usize = 6;

/// A cluster that cannot be chosen.
pub struct NotHere {
    /// Its short name.
    pub slug: String,
    /// What it is called.
    pub title: String,
    /// Why not.
    pub why: &'static str,
}

/// What can be chosen, connected clusters first, and what cannot.
pub async fn clusters(context: &Context, me: &Me) -> Result<(Vec<Spot>, Vec<NotHere>), AppError> {
    let spots = place::all(context, me).await?;
    let mut db = context.app.store.read().await?;
    let lines = store::connections::list_for_person(&mut db, me.0.person.id).await?;
    let mut others = Vec::new();
    for cluster in store::clusters::list(&mut db).await? {
        let is_known = spots.iter().any(|spot| spot.cluster.id == cluster.id);
        if is_known || cluster.retired_at().is_some() {
            continue;
        }
        let is_robot = |key: ConnectionKey| {
            key.cluster == cluster.id && key.role == ConnectionRole::Automation
        };
        let why = if lines.iter().any(|line| is_robot(line.key())) {
            "You use only its automation host. That one lets no dashboard through (it allows no port forwarding); set up the ordinary connection first."
        } else {
            "You have no way in there yet."
        };
        others.push(NotHere { slug: cluster.slug, title: cluster.title, why });
    }
    Ok((spots, others))
}

/// Someone's place on a cluster, as far as dashboards need it.
pub struct Ground {
    /// Which line leads there.
    pub key: ConnectionKey,
    /// What was learnt there.
    pub learnt: DiscoveredFacts,
    /// The names of their folders.
    pub names: PathVariables,
}

impl Ground {
    /// Reads it; nothing is asked of the cluster.
    pub async fn of(context: &Context, me: &Me, spot: &Spot) -> Result<Self, AppError> {
        let key = QueueKey { person: me.0.person.id, cluster: spot.cluster.id }.line();
        let line = store::connections::get(&mut *context.app.store.read().await?, key).await?;
        let learnt: DiscoveredFacts =
            line.and_then(|line| serde_json::from_str(&line.learnt).ok()).unwrap_or_default();
        Ok(Self { key, names: PathVariables::from_facts(&learnt), learnt })
    }
}

/// What earlier dashboards there showed, the latest first.
pub async fn recent(
    context: &Context,
    me: &Me,
    spot: &Spot,
    kind: Kind,
) -> Result<Vec<String>, AppError> {
    let mut db = context.app.store.read().await?;
    let (person, cluster) = (me.0.person.id, spot.cluster.id);
    let all =
        store::dashboards::list_recent_places(&mut db, person, cluster, kind.as_str()).await?;
    let mut found: Vec<String> = Vec::new();
    for path in all.into_iter().flatten() {
        if found.len() < MOST_RECENT && !found.contains(&path) {
            found.push(path);
        }
    }
    Ok(found)
}

/// The project that the person's last job was charged to, if they have several.
pub async fn usual_account(context: &Context, me: &Me, spot: &Spot) -> Result<String, AppError> {
    let key = QueueKey { person: me.0.person.id, cluster: spot.cluster.id };
    let picture = context.app.queue_monitor.picture(key).await?;
    let last = picture.records.values().max_by_key(|record| record.job.submitted);
    let accounts = &spot.place.accounts;
    let used = last.and_then(|record| {
        let behind = &record.job.account;
        accounts.iter().find(|one| one.name == *behind || one.slurm_names.contains(behind))
    });
    Ok(used.map(|account| account.name.clone()).unwrap_or_default())
}

/// The shortest, the longest and the usual time there, in minutes.
pub fn times(spot: &Spot) -> (u32, u32, u32) {
    let jobs = &spot.place.site.jobs;
    let most = jobs.max_hours.map_or(LONGEST, |hours| hours.saturating_mul(60)).min(LONGEST);
    let least = jobs.min_minutes.unwrap_or(SHORTEST).max(SHORTEST).min(most);
    (least, most, USUAL.clamp(least, most.max(least)))
}
