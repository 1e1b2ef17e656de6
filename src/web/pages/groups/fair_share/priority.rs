//! Explains a person's priority: the group's fair share and usage, the person's own part of that usage, and the
//! factors behind the priority of their pending jobs.

use askama::Template;

use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::domain::{ClusterId, GroupId};
use crate::error::AppError;
use crate::format;
use crate::jobs::job_list::record_stage;
use crate::slurm::fair_share::SshareRow;
use crate::slurm::job::JobStage;
use crate::slurm::priority_factors::SprioFactors;
use crate::store;
use crate::store::groups::Group;
use crate::usage::GroupAccountContext;
use crate::usage::fair_share::{self, NEAR_SHARE_RATIO};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::groups::GroupRequest;
use crate::web::pages::groups::fair_share::refresh::FairShareRefresh;
use crate::web::pages::groups::fair_share::{cluster_names, load_accounts_by_cluster, require_snapshot};
use crate::web::pages::jobs::cluster_queues::PersonClusterQueue;

/// Pending jobs drawn.
const MAX_JOBS: usize = 5;

#[derive(Template)]
#[template(path = "groups/fair_share/priority.html")]
struct GroupPriorityPage {
    page: PageFrame,
    group: Group,
    may_manage: bool,
    title: &'static str,
    clusters: Vec<ClusterPriorityCards>,
}

#[derive(Template)]
#[template(path = "groups/fair_share/priority_fragment.html")]
struct GroupPriorityFragment {
    group: GroupId,
    title: &'static str,
    clusters: Vec<ClusterPriorityCards>,
}

#[derive(Default)]
struct ClusterPriorityCards {
    title: String,
    slug: String,
    /// Why there is no data; empty if there is some.
    empty_reason: &'static str,
    stale: String,
    uses_fair_share: bool,
    accounts: Vec<AccountPriorityCard>,
    fair_shares_at: Option<UnixTime>,
    refresh: FairShareRefresh,
    jobs: Vec<JobPriorityCard>,
    /// The person's own pending jobs, with or without a priority.
    waiting: usize,
    /// Pending jobs that are not drawn.
    more: usize,
    seen: Option<UnixTime>,
}

/// An account's fair share, and the person's own part of its usage.
struct AccountPriorityCard {
    account: String,
    sentence: String,
    /// Usage as a multiple of the share; `None` if Slurm doesn't report it.
    ratio: Option<f64>,
    share: ClusterFractionBar,
    used: ClusterFractionBar,
    /// The person's part of the usage, like the others as a fraction of the cluster's; `None` if Slurm doesn't report it.
    own: Option<ClusterFractionBar>,
    /// The same as a part of the account's usage, in words.
    own_words: String,
    own_sentence: &'static str,
    /// Where all bars of the page end, as text; empty if at 100%.
    scale: String,
}

/// A fraction of the cluster.
struct ClusterFractionBar {
    fraction: f64,
    text: String,
    /// Its length, in thousandths of the page's scale.
    width: u64,
}

impl ClusterFractionBar {
    fn new(fraction: f64) -> Self {
        Self { fraction, text: format::percent(fraction), width: thousandths(fraction, 1.0) }
    }
}

impl AccountPriorityCard {
    fn used_class(&self) -> &'static str {
        if self.ratio.is_some_and(|ratio| ratio > 1.0) { "rank-over" } else { "rank-used" }
    }

    fn bars_mut(&mut self) -> impl Iterator<Item = &mut ClusterFractionBar> {
        [&mut self.share, &mut self.used].into_iter().chain(&mut self.own)
    }
}

/// The factors behind a pending job's priority.
struct JobPriorityCard {
    href: String,
    label: String,
    points: String,
    /// Each factor's label, CSS class, points, and its start and width in thousandths.
    parts: Vec<PriorityFactorBar>,
    /// Points given up through `nice`; empty if none.
    given_up: String,
    /// The part of the bar that `nice` cuts off: start and width, in thousandths.
    nice_cut: Option<(u64, u64)>,
}

struct PriorityFactorBar {
    what: &'static str,
    class: &'static str,
    words: String,
    at: u64,
    width: u64,
}

/// The page or its fragment.
pub async fn get(request: GroupRequest) -> HandlerResult {
    let view = request.load_usage().await?;
    let now = request.context.app.clock.now();
    let mut clusters = Vec::new();
    for (queue, accounts) in load_accounts_by_cluster(&request.context, &request.me, &view).await? {
        let facts: Vec<&GroupAccountContext> = accounts.iter().map(|account| &*account.details).collect();
        clusters.push(build_cluster_priority(queue.as_ref(), &facts, now));
    }
    share_one_scale(&mut clusters);
    let title = priority_title(clusters.iter().flat_map(|cluster| &cluster.accounts).map(|account| account.ratio));
    if request.context.is_fragment {
        return respond(&GroupPriorityFragment { group: request.group, title, clusters });
    }
    let group = request.load_group().await?;
    let GroupRequest { context, me, .. } = request;
    respond(&GroupPriorityPage {
        page: PageFrame::for_person(&context, &me.0, title, NavSection::Groups),
        may_manage: me.may(Permission::ManageUsage(group.id)).is_ok(),
        group,
        title,
        clusters,
    })
}

/// A title that fits what the page says of the accounts, given their usage as a multiple of their share. Nothing is
/// claimed if they differ, or if Slurm doesn't report it.
fn priority_title(mut ratios: impl Iterator<Item = Option<f64>>) -> &'static str {
    let title = |ratio: Option<f64>| match ratio {
        Some(ratio) if ratio > NEAR_SHARE_RATIO => "Your priority is low",
        Some(ratio) if ratio * NEAR_SHARE_RATIO < 1.0 => "Your priority is high",
        Some(_) => "Your priority is average",
        None => "Your priority",
    };
    let first = title(ratios.next().flatten());
    if ratios.all(|ratio| title(ratio) == first) { first } else { "Your priority" }
}

/// Lets all bars of the page end at the same value, so that a longer bar always means more.
fn share_one_scale(clusters: &mut [ClusterPriorityCards]) {
    let accounts = clusters.iter().flat_map(|cluster| &cluster.accounts);
    let most = accounts.map(|account| account.share.fraction.max(account.used.fraction)).fold(0.0, f64::max);
    let scale = bar_scale(most);
    for account in clusters.iter_mut().flat_map(|cluster| &mut cluster.accounts) {
        account.scale = if scale < 1.0 { format::percent(scale) } else { String::new() };
        for bar in account.bars_mut() {
            bar.width = thousandths(bar.fraction, scale);
        }
    }
}

/// The path of this page for a person whose job is charged to an account; empty if none of their groups has it.
pub async fn find_priority_path(
    context: &RequestContext,
    me: &CurrentPerson,
    cluster: ClusterId,
    account: &str,
) -> Result<String, AppError> {
    let mut db = context.app.store.read().await?;
    let accounts = store::allocations::list_accounts_for_person(&mut db, me.0.person.id).await?;
    // Sites append `_cpu` and `_gpu` to the account names that people submit with.
    let is_same = |name: &str| {
        let rest = account.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let mut accounts = accounts.into_iter().map(|(account, _)| account);
    let found = accounts.find(|account| account.cluster_id == cluster && is_same(&account.account));
    Ok(found.map(|account| format!("/groups/{}/priority", account.group_id)).unwrap_or_default())
}

fn build_cluster_priority(
    queue: Option<&PersonClusterQueue>,
    facts: &[&GroupAccountContext],
    now: UnixTime,
) -> ClusterPriorityCards {
    let (title, slug) = cluster_names(facts);
    let mut cards = ClusterPriorityCards { title, slug, ..ClusterPriorityCards::default() };
    let queue = match require_snapshot(queue) {
        Ok(queue) => queue,
        Err(empty_reason) => return ClusterPriorityCards { empty_reason, ..cards },
    };
    cards.stale = queue.stale().map(|stale| stale.sentence).unwrap_or_default();
    cards.uses_fair_share = queue.account.uses_fair_share();
    cards.seen = queue.snapshot.seen;
    if queue.account.uses_fair_share() {
        let resources = &queue.snapshot.resources;
        cards.fair_shares_at = resources.shares_at.map(UnixTime);
        cards.refresh = FairShareRefresh::new(queue);
        for account in facts {
            for name in &account.slurm_names {
                let rows: Vec<&SshareRow> = resources.shares.iter().filter(|share| share.account == *name).collect();
                cards.accounts.extend(build_account_priority(&rows, account, now));
            }
        }
    }
    let is_ours = |account: &str| facts.iter().any(|facts| facts.slurm_names.iter().any(|n| n == account));
    let items = queue.snapshot.items().iter();
    // In a job array, tasks may run while others are pending; the pending ones have a priority.
    let records = items.filter_map(|item| {
        let all = std::iter::once(&item.head).chain(&item.tasks);
        all.into_iter().find(|record| record_stage(record) == JobStage::Pending)
    });
    let records: Vec<_> = records.filter(|record| is_ours(&record.job.account)).collect();
    cards.waiting = records.len();
    let waiting: Vec<_> = records
        .into_iter()
        .filter_map(|record| Some((record, queue.snapshot.factors.get(&record.job.raw_id)?)))
        .collect();
    let most = waiting.iter().map(|(_, factors)| total_points(factors)).max().unwrap_or(0);
    cards.more = waiting.len().saturating_sub(MAX_JOBS);
    let slug = &queue.cluster().slug;
    let drawn = waiting.iter().take(MAX_JOBS).map(|(record, factors)| {
        let job = &record.job;
        let label = format!("{} {}", job.id, job.name).trim_end().to_owned();
        build_job_priority(format!("/jobs/{slug}/{}", job.id), label, factors, most)
    });
    cards.jobs = drawn.collect();
    cards
}

fn build_account_priority(
    rows: &[&SshareRow],
    facts: &GroupAccountContext,
    now: UnixTime,
) -> Option<AccountPriorityCard> {
    let group = rows.iter().find(|share| share.user.is_none())?;
    let ratio = fair_share::usage_ratio(group);
    let words = fair_share::describe_fair_share(ratio, facts.discovered.half_life_hours, now);
    let (entitled, used) = (group.norm_shares.unwrap_or(0.0), group.effective_usage.unwrap_or(0.0));
    let own_row = rows.iter().find(|share| share.user.is_some() && share.user == facts.own_user);
    let own = own_row.and_then(|share| share.effective_usage).filter(|_| used > 0.0);
    Some(AccountPriorityCard {
        account: group.account.clone(),
        sentence: words.sentence,
        ratio,
        share: ClusterFractionBar::new(entitled),
        used: ClusterFractionBar::new(used),
        own: own.map(|own| ClusterFractionBar::new(own * used)),
        own_words: own.map(format::percent).unwrap_or_default(),
        own_sentence: match own {
            Some(own) if own >= 0.5 => "Other members' jobs usually start before yours.",
            Some(own) if own > 0.0 => "Other members' usage affects your priority too.",
            Some(_) => "Other members' usage affects your priority all the same.",
            None => "",
        },
        scale: String::new(),
    })
}

/// Where the bars' scale ends; small shares get a shorter scale so that they stay visible.
fn bar_scale(most: f64) -> f64 {
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].into_iter().find(|end| most <= *end).unwrap_or(1.0)
}

/// Label, CSS class and points of each factor, in drawing order.
fn priority_factors(factors: &SprioFactors) -> [(&'static str, &'static str, u64); 7] {
    [
        ("Fair share", "rank-fair", factors.fair_share),
        ("Age", "rank-age", factors.age),
        ("Job size", "rank-size", factors.size),
        ("Partition", "rank-place", factors.partition_points),
        ("QOS", "rank-qos", factors.qos),
        ("Account", "rank-payer", factors.association),
        ("Site factor", "rank-site", u64::try_from(factors.site).unwrap_or(0)),
    ]
}

fn total_points(factors: &SprioFactors) -> u64 {
    priority_factors(factors).iter().fold(0, |sum, (_, _, points)| sum.saturating_add(*points))
}

fn build_job_priority(href: String, label: String, factors: &SprioFactors, most: u64) -> JobPriorityCard {
    let share_of = |points: u64| u64::try_from(u128::from(points) * 1000 / u128::from(most.max(1))).unwrap_or(1000);
    let mut before = 0_u64;
    let mut pieces = Vec::new();
    for (what, class, points) in priority_factors(factors).into_iter().filter(|(_, _, points)| *points > 0) {
        let at = share_of(before);
        before = before.saturating_add(points);
        // Keep small factors visible.
        let width = (share_of(before) - at).max(2);
        pieces.push(PriorityFactorBar { what, class, words: format::count(points, "point"), at, width });
    }
    let given_up = u64::try_from(factors.nice).ok().filter(|nice| *nice > 0);
    let cut = given_up.map(|nice| {
        let from = share_of(before.saturating_sub(nice));
        (from, share_of(before) - from)
    });
    JobPriorityCard {
        href,
        label,
        points: format::count(factors.priority, "point"),
        parts: pieces,
        nice_cut: cut,
        given_up: given_up.map(|nice| format::count(nice, "point")).unwrap_or_default(),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 1000")]
fn thousandths(part: f64, whole: f64) -> u64 {
    if whole > 0.0 { (part / whole * 1000.0).clamp(0.0, 1000.0).round() as u64 } else { 0 }
}

#[cfg(test)]
mod tests;
