//! A group's fair share now and over time, its queued demand and its storage; for each member, what makes up the
//! priority of their own jobs. Uses only what was read before: no request waits for a cluster.

mod cards;
pub mod csv;
mod priority;
pub mod refresh;
mod storage;

use std::collections::BTreeMap;

use askama::Template;

use self::cards::{AccountDemandCard, GroupFairShareCard};
pub use self::priority::{find_priority_path, get as priority};
use self::refresh::FairShareRefresh;
use self::storage::ProjectStorageByPerson;
use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::cluster::ClusterAccountId;
use crate::domain::{ClusterId, GroupId};
use crate::error::AppError;
use crate::sites::cost::AccountBalance;
use crate::store;
use crate::store::groups::Group;
use crate::usage::{GroupAccountContext, GroupAccountUsage, GroupUsage};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::groups::GroupRequest;
use crate::web::pages::groups::usage::record_names_seen;
use crate::web::pages::home::resource_bars::{FolderQuotaBars, GrantedHoursBar, granted_hours_bar};
use crate::web::pages::jobs::cluster_queues::{self, PersonClusterQueue};

/// Figures in the line of a folded cluster.
const MAX_SUMMARY_PARTS: usize = 3;

#[derive(Template)]
#[template(path = "groups/fair_share/page.html")]
struct GroupFairSharePage {
    page: PageFrame,
    group: Group,
    may_manage: bool,
    fragment: GroupFairShareFragment,
}

/// The fragment alone: to refresh an open page, and for the group's usage page.
#[derive(Template)]
#[template(path = "groups/fair_share/fragment.html")]
pub struct GroupFairShareFragment {
    group: GroupId,
    clusters: Vec<GroupClusterCards>,
    /// Whether the clusters are unfolded: on the page that shows nothing else. A refresh keeps what is open.
    is_open: bool,
}

/// The template escapes its own output.
impl askama::filters::HtmlSafe for GroupFairShareFragment {}

/// A group's fair share, demand and storage on one cluster.
#[derive(Default)]
pub struct GroupClusterCards {
    title: String,
    slug: String,
    /// Why there is no data; empty if there is some.
    empty_reason: &'static str,
    /// Why the data may be out of date; empty if it is not.
    stale: String,
    /// One card per account; none where the cluster does not use fair share.
    fair_shares: Vec<GroupFairShareCard>,
    uses_fair_share: bool,
    fair_shares_at: Option<UnixTime>,
    refresh: FairShareRefresh,
    /// What the cluster itself reports as granted to the accounts.
    costs: Vec<GrantedHoursBar>,
    /// The period of the grant; empty if unknown.
    period: String,
    costs_at: Option<UnixTime>,
    demand: Vec<AccountDemandCard>,
    queue_at: Option<UnixTime>,
    /// Why the queue may be incomplete; empty if it is not.
    partial: &'static str,
    folders: Vec<FolderQuotaBars>,
    folders_at: Option<UnixTime>,
    people: Vec<ProjectStorageByPerson>,
    people_at: Option<UnixTime>,
}

impl GroupClusterCards {
    /// The most important figures in words, for when the cluster is folded.
    fn summary(&self) -> String {
        if !self.empty_reason.is_empty() {
            return self.empty_reason.to_owned();
        }
        let known = self.fair_shares.iter().filter(|share| share.position.is_some());
        let lowest = known.min_by_key(|share| share.position);
        let share = lowest.map(|share| format!("{}: {}", share.account, share.headline.to_lowercase()));
        let over = self.costs.iter().filter(|cost| !cost.level.is_empty());
        let over = over.map(|cost| format!("{}: {}", cost.account, cost.text));
        let full = self.folders.iter().filter(|folder| !folder.advice.is_empty());
        let full = full.map(|folder| format!("{} is nearly full", folder.label));
        share.into_iter().chain(over).chain(full).take(MAX_SUMMARY_PARTS).collect::<Vec<_>>().join(" · ")
    }
}

/// The page or its fragment.
pub async fn get(request: GroupRequest) -> HandlerResult {
    let view = request.load_usage().await?;
    record_names_seen(&request.context, &request.me, &view).await?;
    let mut fragment = build_fragment(&request.context, &request.me, &view).await?;
    fragment.is_open = !request.context.is_fragment;
    if request.context.is_fragment {
        return respond(&fragment);
    }
    let group = request.load_group().await?;
    let GroupRequest { context, me, .. } = request;
    respond(&GroupFairSharePage {
        page: PageFrame::for_person(&context, &me.0, "Fair share and storage", NavSection::Groups),
        may_manage: me.may(Permission::ManageUsage(group.id)).is_ok(),
        group,
        fragment,
    })
}

/// Builds the fragment from what was read before.
pub async fn build_fragment(
    context: &RequestContext,
    me: &CurrentPerson,
    view: &GroupUsage,
) -> Result<GroupFairShareFragment, AppError> {
    let mut clusters = Vec::new();
    for (queue, accounts) in load_accounts_by_cluster(context, me, view).await? {
        clusters.push(build_cluster_summary(context, view, queue.as_ref(), &accounts).await?);
    }
    Ok(GroupFairShareFragment { group: view.group, clusters, is_open: false })
}

/// The group's accounts by cluster, with the viewer's queue snapshot there. Starts keeping that snapshot fresh.
async fn load_accounts_by_cluster<'a>(
    context: &RequestContext,
    me: &CurrentPerson,
    view: &'a GroupUsage,
) -> Result<Vec<(Option<PersonClusterQueue>, Vec<&'a GroupAccountUsage>)>, AppError> {
    let mut by_cluster: BTreeMap<(&str, ClusterId), Vec<&GroupAccountUsage>> = BTreeMap::new();
    for account in &view.accounts {
        by_cluster.entry((&account.details.title, account.details.cluster)).or_default().push(account);
    }
    let mut queues = cluster_queues::list_cluster_queues(context, me).await?;
    let mut found = Vec::new();
    for ((_, cluster), accounts) in by_cluster {
        let at = queues.iter().position(|queue| queue.cluster().id == cluster);
        let mut queue = at.map(|at| queues.swap_remove(at));
        if let Some(queue) = &mut queue {
            let key = ClusterAccountId { person: me.0.person.id, cluster };
            queue.snapshot = context.app.queue_monitor.view(key, true).await?;
        }
        found.push((queue, accounts));
    }
    Ok(found)
}

async fn build_cluster_summary(
    context: &RequestContext,
    view: &GroupUsage,
    queue: Option<&PersonClusterQueue>,
    accounts: &[&GroupAccountUsage],
) -> Result<GroupClusterCards, AppError> {
    let facts: Vec<&GroupAccountContext> = accounts.iter().map(|account| &*account.details).collect();
    let (title, slug) = cluster_names(&facts);
    let mut cards = GroupClusterCards { title, slug, ..GroupClusterCards::default() };
    let queue = match require_snapshot(queue) {
        Ok(queue) => queue,
        Err(empty_reason) => return Ok(GroupClusterCards { empty_reason, ..cards }),
    };
    let resources = &queue.snapshot.resources;
    let now = context.app.clock.now();
    cards.stale = queue.stale().map(|stale| stale.sentence).unwrap_or_default();
    cards.uses_fair_share = queue.account.uses_fair_share();
    if queue.account.uses_fair_share() {
        cards.fair_shares = load_fair_share_cards(context, view, queue, &facts, now).await?;
        cards.refresh = FairShareRefresh::new(queue);
        cards.fair_shares_at = resources.shares_at.map(UnixTime);
    }
    if let Some(cost) = &resources.cost {
        let is_theirs = |account: &&AccountBalance| {
            facts.iter().any(|group_account| {
                group_account.account == account.account || group_account.slurm_names.contains(&account.account)
            })
        };
        let theirs = cost.accounts.iter().filter(is_theirs);
        cards.costs = theirs.filter_map(|account| granted_hours_bar(account, &cost.unit)).collect();
        cards.period.clone_from(&cost.period);
        cards.costs_at = resources.cost_at.map(UnixTime);
    }
    if let Some(group) = &queue.snapshot.group {
        cards.demand = cards::build_demand_cards(&group.jobs, &facts, now);
        cards.queue_at = group.seen;
        cards.partial = match (queue.hides_jobs(), group.is_cut) {
            (true, _) => "This cluster hides other people's jobs, so theirs aren't included.",
            (false, true) => "The queue is too long to read in full, so some jobs aren't included.",
            (false, false) => "",
        };
    }
    cards.folders = storage::project_folders(&resources.places, &facts);
    cards.folders_at = resources.places_at.map(UnixTime);
    if view.is_leader {
        cards.people = storage::storage_by_person(&resources.per_user, &facts, view);
        cards.people_at = resources.per_user_at.map(UnixTime);
    }
    Ok(cards)
}

/// The title and the short name of the accounts' cluster.
fn cluster_names(accounts: &[&GroupAccountContext]) -> (String, String) {
    accounts.first().map(|facts| (facts.title.clone(), facts.slug.clone())).unwrap_or_default()
}

/// The queue, if a snapshot of it was taken; otherwise why there is none.
fn require_snapshot(queue: Option<&PersonClusterQueue>) -> Result<&PersonClusterQueue, &'static str> {
    match queue {
        Some(queue) if queue.snapshot.seen.is_some() => Ok(queue),
        Some(queue) if queue.is_connected => Err("Loading data from the cluster. This takes a moment."),
        _ => Err("No data yet. Connect to this cluster to load it."),
    }
}

/// Each account's fair share with its history.
async fn load_fair_share_cards(
    context: &RequestContext,
    view: &GroupUsage,
    queue: &PersonClusterQueue,
    accounts: &[&GroupAccountContext],
    now: UnixTime,
) -> Result<Vec<GroupFairShareCard>, AppError> {
    let mut found = Vec::new();
    let mut db = context.app.store.read().await?;
    for account in accounts {
        for name in &account.slurm_names {
            let rows = &queue.snapshot.resources.shares;
            let Some(share) = rows.iter().find(|share| share.user.is_none() && share.account == *name) else {
                continue;
            };
            let from = now.plus(-cards::HISTORY_SECONDS);
            let cluster = account.cluster;
            let points = store::fair_share_history::list_since(&mut db, view.group, cluster, name, from).await?;
            let half_life = account.discovered.half_life_hours;
            let mut card = GroupFairShareCard::new(share, &points, half_life, now);
            if view.is_leader {
                card.add_members(rows, cluster, view);
            }
            found.push(card);
        }
    }
    Ok(found)
}
