//! How a group stands: fair share now and over time, what it has asked for and not had yet, and its storage; and for
//! each member what the ranks of their own jobs are made of. From what is known: no cluster is asked on the way.

mod cards;
pub mod csv;
mod priority;
mod storage;

use std::collections::BTreeMap;

use askama::Template;

use self::cards::{DemandCard, ShareCard};
pub use self::priority::{get as priority, priority_page};
use self::storage::{ProjectFolder, ProjectPeople};
use super::Answer;
use super::extract::{Context, Me, Path};
use super::home::standing::{CostBar, cost_bar};
use super::jobs::queues::{self, Place};
use super::page::{Page, Section, show};
use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::domain::{ClusterId, GroupId};
use crate::error::AppError;
use crate::jobs::QueueKey;
use crate::sites::cost::AccountCost;
use crate::store;
use crate::usage::{AccountView, Facts, View};

#[derive(Template)]
#[template(path = "standing/page.html")]
struct StandingPage {
    page: Page,
    group: GroupId,
    group_name: String,
    may_manage: bool,
    part: StandingPart,
}

/// The part alone: for a page that is open, and on the page of the group's use.
#[derive(Template)]
#[template(path = "standing/part.html")]
pub struct StandingPart {
    group: GroupId,
    clusters: Vec<ClusterCards>,
}

/// It escapes what it shows by itself.
impl askama::filters::HtmlSafe for StandingPart {}

/// How a group stands on one cluster.
pub struct ClusterCards {
    title: String,
    slug: String,
    /// Why nothing is known, in words; empty if something is.
    nothing: &'static str,
    /// Why it may be old, in words; empty if it is not.
    stale: String,
    /// Fair share of each account; none where the cluster does not rank by it.
    shares: Vec<ShareCard>,
    ranks_by_share: bool,
    shares_at: Option<UnixTime>,
    /// What the cluster itself says was granted to the accounts.
    costs: Vec<CostBar>,
    /// For which period; empty if it is not said.
    period: String,
    costs_at: Option<UnixTime>,
    demand: Vec<DemandCard>,
    queue_at: Option<UnixTime>,
    /// Why the queue may be told in part, in words; empty if it is not.
    partial: &'static str,
    folders: Vec<ProjectFolder>,
    folders_at: Option<UnixTime>,
    people: Vec<ProjectPeople>,
    people_at: Option<UnixTime>,
}

/// The page, and its part.
pub async fn get(context: Context, me: Me, Path(group): Path<GroupId>) -> Answer {
    me.may(Permission::SeeUsage(group))?;
    let view = context.app.usage.look(&me.0.viewer, group).await?;
    super::usage::note_names(&context, &me, &view).await?;
    let part = part(&context, &me, &view).await?;
    if context.is_fragment {
        return show(&part);
    }
    show(&StandingPage {
        page: Page::for_person(&context, &me.0, "Fair share and storage", Section::Groups),
        group,
        group_name: name(&context, group).await?,
        may_manage: me.may(Permission::ManageUsage(group)).is_ok(),
        part,
    })
}

/// How the group of a view stands, from what is known.
pub async fn part(context: &Context, me: &Me, view: &View) -> Result<StandingPart, AppError> {
    let mut clusters = Vec::new();
    for (place, accounts) in on_clusters(context, me, view).await? {
        clusters.push(cards(context, me, view, place.as_ref(), &accounts).await?);
    }
    Ok(StandingPart { group: view.group, clusters })
}

/// What a group is called.
async fn name(context: &Context, group: GroupId) -> Result<String, AppError> {
    let mut db = context.app.store.read().await?;
    Ok(store::groups::get(&mut db, group).await?.ok_or(AppError::NotFound)?.name)
}

/// The group's accounts by cluster, each with what is known of the viewer's queue there. From here on it is kept fresh.
async fn on_clusters<'a>(
    context: &Context,
    me: &Me,
    view: &'a View,
) -> Result<Vec<(Option<Place>, Vec<&'a AccountView>)>, AppError> {
    let mut by_cluster: BTreeMap<(&str, ClusterId), Vec<&AccountView>> = BTreeMap::new();
    for one in &view.accounts {
        by_cluster.entry((&one.facts.title, one.facts.cluster)).or_default().push(one);
    }
    let mut places = queues::places(context, me).await?;
    let mut found = Vec::new();
    for ((_, cluster), accounts) in by_cluster {
        let at = places.iter().position(|place| place.cluster.id == cluster);
        let mut place = at.map(|at| places.swap_remove(at));
        if let Some(place) = &mut place {
            let key = QueueKey { person: me.0.person.id, cluster };
            place.picture = context.app.queue_monitor.look(key, true).await?;
        }
        found.push((place, accounts));
    }
    Ok(found)
}

async fn cards(
    context: &Context,
    me: &Me,
    view: &View,
    place: Option<&Place>,
    accounts: &[&AccountView],
) -> Result<ClusterCards, AppError> {
    let first = accounts.first().map(|one| one.facts.clone());
    let mut cards = ClusterCards {
        title: first.as_ref().map(|facts| facts.title.clone()).unwrap_or_default(),
        slug: first.as_ref().map(|facts| facts.slug.clone()).unwrap_or_default(),
        nothing: "",
        stale: String::new(),
        shares: Vec::new(),
        ranks_by_share: false,
        shares_at: None,
        costs: Vec::new(),
        period: String::new(),
        costs_at: None,
        demand: Vec::new(),
        queue_at: None,
        partial: "",
        folders: Vec::new(),
        folders_at: None,
        people: Vec::new(),
        people_at: None,
    };
    let Some(place) = place.filter(|place| place.picture.seen.is_some()) else {
        let is_up = place.is_some_and(|place| place.is_up);
        cards.nothing = if is_up {
            "The cluster is being asked. This takes a moment."
        } else {
            "Nothing is known yet. It is read over your own connection once you are connected."
        };
        return Ok(cards);
    };
    let standing = &place.picture.standing;
    let facts: Vec<&Facts> = accounts.iter().map(|one| &*one.facts).collect();
    let now = context.app.clock.now();
    cards.stale = place.stale().map(|stale| stale.sentence).unwrap_or_default();
    cards.ranks_by_share = place.fair_share;
    if place.fair_share {
        cards.shares = share_cards(context, me, place, &facts, now).await?;
        cards.shares_at = standing.shares_at.map(UnixTime);
    }
    if let Some(cost) = &standing.cost {
        let is_theirs = |account: &&AccountCost| {
            facts.iter().any(|one| {
                one.account == account.account || one.slurm_names.contains(&account.account)
            })
        };
        let theirs = cost.accounts.iter().filter(is_theirs);
        cards.costs = theirs.filter_map(|account| cost_bar(account, &cost.unit)).collect();
        cards.period.clone_from(&cost.period);
        cards.costs_at = standing.cost_at.map(UnixTime);
    }
    if let Some(queue) = &place.picture.group {
        cards.demand = cards::demand(&queue.jobs, &facts, now);
        cards.queue_at = queue.seen;
        cards.partial = match (place.hides_jobs, queue.is_cut) {
            (true, _) => {
                "This cluster shows people only their own jobs, so those of others are missing here."
            }
            (false, true) => "The queue is longer than is read, so some jobs are missing here.",
            (false, false) => "",
        };
    }
    cards.folders = storage::folders(&standing.places, &facts);
    cards.folders_at = standing.places_at.map(UnixTime);
    if view.leads {
        cards.people = storage::people(&standing.per_user, &facts, view);
        cards.people_at = standing.per_user_at.map(UnixTime);
    }
    Ok(cards)
}

/// Fair share of each account, with how it came about.
async fn share_cards(
    context: &Context,
    me: &Me,
    place: &Place,
    facts: &[&Facts],
    now: UnixTime,
) -> Result<Vec<ShareCard>, AppError> {
    let mut found = Vec::new();
    let mut db = context.app.store.read().await?;
    for one in facts {
        for name in &one.slurm_names {
            let mut shares = place.picture.standing.shares.iter();
            let Some(share) = shares.find(|share| share.user.is_none() && share.account == *name)
            else {
                continue;
            };
            let from = now.plus(-cards::HISTORY);
            let (person, cluster) = (me.0.person.id, one.cluster);
            let points =
                store::fair_share_history::list_since(&mut db, person, cluster, name, from).await?;
            let half_life = one.learnt.half_life_hours;
            found.push(ShareCard::of(share, &points, half_life, now));
        }
    }
    Ok(found)
}
