//! The home page: current jobs, what ended since the last visit, a line for each cluster with its worst figure, groups,
//! and the first steps for newcomers. Doesn't contact any cluster: everything shown is in memory, or was read since the
//! last write.

use std::sync::Arc;

use askama::Template;

use crate::auth::Permission;
use crate::cluster::ClusterAccount;
use crate::domain::{GroupId, PersonId};
use crate::store::clusters::Cluster;
use crate::store::groups::Membership;
use crate::store::{self, StoreError};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::jobs::cluster_queues;
use crate::web::pages::jobs::list_row::JobTimeCell;

mod cluster_lines;
mod getting_started;
mod job_summary;
pub(in crate::web) mod resource_bars;
mod visits;

use cluster_lines::HomeClusters;
use getting_started::{
    EXAMPLE_PATH, GettingStartedStep, MemberProgress, admin_steps, find_next_step, mark_next_step, member_steps,
};
use job_summary::HomeJobSummary;
pub use visits::LastVisits;

/// How many groups are shown; the rest are on the page of all groups.
const MAX_GROUPS: usize = 5;

#[derive(Template)]
#[template(path = "home/home.html")]
struct HomePage {
    page: PageFrame,
    greeting: String,
    steps: Vec<GettingStartedStep>,
    /// The title of the next step; empty if there is none.
    next_step: String,
    /// Whether the next step is the example.
    is_example_next: bool,
    now: HomeJobSummary,
    clusters: HomeClusters,
    groups: Vec<HomeGroup>,
    /// How many groups aren't shown.
    more_groups: usize,
    /// Where someone who never had a job can try an example; empty for everyone else.
    example: String,
    is_admin: bool,
}

/// A group of the person's.
struct HomeGroup {
    membership: Membership,
    /// Whether the person can select the group's accounts and nobody has yet.
    needs_accounts: bool,
    /// That an allocation is used up, as a sentence for PIs; empty if none is.
    used_up: String,
}

/// The figures that are the same for everyone.
pub struct PortalSetupFacts {
    clusters: Vec<Cluster>,
    /// The first group by name, if there is one.
    first_group: Option<GroupId>,
    has_people: bool,
    /// Whether anyone has an account.
    pub is_set_up: bool,
}

/// What the home page knows about a person.
pub struct HomePersonFacts {
    /// Whether they have had jobs on any of their clusters.
    has_jobs: bool,
    /// Their groups that have accounts.
    groups_with_accounts: Vec<GroupId>,
    /// The groups they lead of which an allocation is used up, as a sentence.
    used_up: Vec<(GroupId, String)>,
}

pub type HomePersonFactsCache = store::StoreCache<PersonId, HomePersonFacts>;

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
                first_group: store::groups::list(&mut db).await?.first().map(|group| group.id),
                has_people: people > 1,
                is_set_up: people > 0,
            })
        })
        .await
}

async fn load_person_facts(
    context: &RequestContext,
    me: &CurrentPerson,
    accounts: &[Arc<ClusterAccount>],
) -> Result<Arc<HomePersonFacts>, StoreError> {
    let app = &context.app;
    let person = me.0.person.id;
    let load = async || {
        let mut db = app.store.read().await?;
        let mut has_jobs = false;
        for account in accounts {
            has_jobs = has_jobs || store::jobs::has_any(&mut db, person, account.id.cluster).await?;
        }
        let chosen = store::allocations::list_accounts_for_person(&mut db, person).await?;
        let groups_with_accounts: Vec<GroupId> = chosen.into_iter().map(|(account, _)| account.group_id).collect();
        drop(db);
        let mut used_up = Vec::new();
        let led = me.0.memberships.iter().map(|membership| membership.group_id);
        for group in led.filter(|group| me.may(Permission::ManageUsage(*group)).is_ok()).take(MAX_GROUPS) {
            let accounts = app.usage.used_up_accounts(&me.0.viewer, group).await?;
            used_up.push((group, used_up_sentence(&accounts)));
        }
        Ok(HomePersonFacts { has_jobs, groups_with_accounts, used_up })
    };
    context.pages.home_people.get_or_load(&app.store, &person, load).await
}

pub async fn get(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let app = &context.app;
    let overview = load_overview(&context).await?;
    let accounts = app.cluster_accounts.list(me.0.person.id).await?;
    let facts = load_person_facts(&context, &me, &accounts).await?;
    let is_admin = me.may(Permission::ManageGroups).is_ok();
    let first_name = me.0.person.display_name.split_whitespace().next().unwrap_or_default();
    let preferences = app.cluster_accounts.preferences(me.0.person.id).await?;
    let mut queues = cluster_queues::list_shown_queues(&context, &me, "").await?;
    for queue in &mut queues {
        queue.snapshot = app.queue_monitor.view(queue.account.id, false).await?;
    }
    let clusters = HomeClusters::list(app, &overview, &preferences, &accounts, &queues);
    let groups = list_groups(&me, &overview, &facts);
    let without_accounts: Vec<&Membership> =
        groups.iter().filter(|group| group.needs_accounts).map(|group| &group.membership).collect();
    let was_connected = accounts.iter().any(|account| account.connected_at.is_some());
    let steps = if is_admin {
        admin_steps(&overview, &without_accounts, was_connected, me.0.person.has_totp)
    } else {
        let done = MemberProgress {
            has_group: !groups.is_empty(),
            was_connected,
            has_run: facts.has_jobs,
            has_totp: me.0.person.has_totp,
        };
        member_steps(&overview, &without_accounts, done)
    };
    let since = if queues.is_empty() {
        None
    } else {
        context.pages.visits.previous_visit_end(&app.store, me.0.person.id, app.clock.now()).await?
    };
    let steps = mark_next_step(steps);
    respond(&HomePage {
        page: PageFrame::for_person(&context, &me.0, "Home", NavSection::Home),
        greeting: format!("Hello {first_name}"),
        next_step: find_next_step(&steps).map(|step| step.title.clone()).unwrap_or_default(),
        is_example_next: find_next_step(&steps).is_some_and(|step| step.href == EXAMPLE_PATH),
        steps,
        now: HomeJobSummary::new(&queues, since, app.clock.now()),
        example: if facts.has_jobs { String::new() } else { example_path(&clusters) },
        clusters,
        more_groups: groups.len().saturating_sub(MAX_GROUPS),
        groups: groups.into_iter().take(MAX_GROUPS).collect(),
        is_admin,
    })
}

/// The person's groups, those that need something from them first.
fn list_groups(me: &CurrentPerson, overview: &PortalSetupFacts, facts: &HomePersonFacts) -> Vec<HomeGroup> {
    let group = |membership: &Membership| {
        let id = membership.group_id;
        // Accounts are found on clusters.
        let can_select = !overview.clusters.is_empty() && me.may(Permission::ManageUsage(id)).is_ok();
        let needs_accounts = can_select && !facts.groups_with_accounts.contains(&id);
        let used_up = facts.used_up.iter().find(|(group, _)| *group == id).map(|(_, sentence)| sentence.clone());
        HomeGroup { membership: membership.clone(), needs_accounts, used_up: used_up.unwrap_or_default() }
    };
    let mut groups: Vec<HomeGroup> = me.0.memberships.iter().map(group).collect();
    groups.sort_by_key(|group| !group.needs_accounts && group.used_up.is_empty());
    groups
}

/// Empty if no account's allocation is used up.
fn used_up_sentence(accounts: &[String]) -> String {
    match accounts {
        [] => String::new(),
        [account] => format!("The allocation of {account} is used up"),
        several => format!("{} allocations are used up", several.len()),
    }
}

/// The example on a cluster that is connected, if there is one; empty if the person has set up none, because there is no
/// form without one.
fn example_path(clusters: &HomeClusters) -> String {
    match clusters.connected_slug() {
        "" if clusters.in_use.is_empty() && clusters.away.is_empty() => String::new(),
        "" => EXAMPLE_PATH.to_owned(),
        slug => format!("{EXAMPLE_PATH}?cluster={slug}"),
    }
}
