//! The clusters that someone can run a dashboard on, and why the others aren't available.

use crate::cluster::ClusterAccountId;
use crate::dashboards::{DEFAULT_RUN_MINUTES, DashboardKind, MAX_RUN_MINUTES, MIN_RUN_MINUTES};
use crate::domain::ConnectionRole;
use crate::error::AppError;
use crate::store;
use crate::store::connections::ConnectionKey;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::pages::compose::compose_target::{self, ComposeTarget};

/// How many folders of earlier dashboards are offered.
const MAX_RECENT_FOLDERS: usize = 6;

const AUTOMATION_ONLY: &str =
    "You're set up only for the automation host, which doesn't support dashboards. Set up a regular connection first.";
const NOT_SET_UP: &str = "You haven't set up these clusters yet. Set up a connection to run dashboards there.";

/// Clusters that aren't available for the same reason.
pub struct UnavailableClusters {
    pub why: &'static str,
    /// The short name and the title of each.
    pub clusters: Vec<(String, String)>,
}

/// Clusters to choose from, and those that aren't available. Hidden ones are left out, except the one that is named.
pub async fn list_clusters(
    context: &RequestContext,
    me: &CurrentPerson,
    named: &str,
) -> Result<(Vec<ComposeTarget>, Vec<UnavailableClusters>), AppError> {
    let targets = compose_target::list_choices(context, me, named).await?;
    let preferences = context.app.cluster_accounts.preferences(me.0.person.id).await?;
    let mut db = context.app.store.read().await?;
    let connections = store::connections::list_for_person(&mut db, me.0.person.id).await?;
    let mut others = [AUTOMATION_ONLY, NOT_SET_UP].map(|why| UnavailableClusters { why, clusters: Vec::new() });
    for cluster in store::clusters::list(&mut db).await? {
        let is_target = targets.iter().any(|target| target.account.id.cluster == cluster.id);
        if is_target || cluster.retired_at().is_some() || preferences.is_hidden(cluster.id) {
            continue;
        }
        let is_automation = |key: ConnectionKey| key.cluster == cluster.id && key.role == ConnectionRole::Automation;
        let place = usize::from(!connections.iter().any(|connection| is_automation(connection.key())));
        others[place].clusters.push((cluster.slug, cluster.title));
    }
    Ok((targets, others.into_iter().filter(|others| !others.clusters.is_empty()).collect()))
}

/// Folders that earlier dashboards there showed, latest first.
pub async fn recent_folders(
    context: &RequestContext,
    target: &ComposeTarget,
    kind: DashboardKind,
) -> Result<Vec<String>, AppError> {
    let mut db = context.app.store.read().await?;
    let ClusterAccountId { person, cluster } = target.account.id;
    let all = store::dashboards::list_recent_places(&mut db, person, cluster, kind.as_str()).await?;
    let mut folders: Vec<String> = Vec::new();
    for path in all.into_iter().flatten() {
        if folders.len() < MAX_RECENT_FOLDERS && !folders.contains(&path) {
            folders.push(path);
        }
    }
    Ok(folders)
}

/// The account that the person's last job was charged to, if they have several.
pub async fn last_used_account(context: &RequestContext, target: &ComposeTarget) -> Result<String, AppError> {
    let snapshot = context.app.queue_monitor.snapshot(target.account.id).await?;
    let last = snapshot.records.values().max_by_key(|record| record.job.submitted);
    let accounts = &target.compose_context.accounts;
    let used = last.and_then(|record| {
        let charged = &record.job.account;
        accounts.iter().find(|account| account.name == *charged || account.slurm_names.contains(charged))
    });
    Ok(used.map(|account| account.name.clone()).unwrap_or_default())
}

/// The shortest, longest and default run time there, in minutes.
pub fn time_limits(target: &ComposeTarget) -> (u32, u32, u32) {
    let jobs = &target.compose_context.site.jobs;
    let most = jobs.max_hours.map_or(MAX_RUN_MINUTES, |hours| hours.saturating_mul(60)).min(MAX_RUN_MINUTES);
    let least = jobs.min_minutes.unwrap_or(MIN_RUN_MINUTES).max(MIN_RUN_MINUTES).min(most);
    (least, most, DEFAULT_RUN_MINUTES.clamp(least, most.max(least)))
}
