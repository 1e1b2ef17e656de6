//! Finds the jobs behind a figure. Anyone who is not a PI finds only their own jobs, whatever they ask for.

use crate::clock::Day;
use crate::error::AppError;
use crate::store;
use crate::store::usage::jobs::{UsageGpuTotal, UsageJobColumn, UsageJobFilter, UsageJobOrder};
use crate::usage::figures::{UsageMember, is_selected};
use crate::usage::{GroupAccountUsage, UsageJobOutcome, UsageMeasure};
use crate::web::pages::groups::usage::breakdown_tables::UNKNOWN_MODEL;
use crate::web::pages::groups::usage::tables::{OUTCOME_OVERSIZED, parse_member};
use crate::web::pages::groups::usage::usage_job::{UsageJobView, count_gpus, whole};
use crate::web::pages::groups::usage::{GroupUsageRequest, UsagePageData, record_names_seen};

/// Jobs in a file, or checked for one page.
pub const MAX_JOBS: usize = 50_000;
/// Filter value: jobs that ended without success.
pub const OUTCOME_LOST: &str = "lost";
/// Filter value: jobs that ended, with any outcome.
pub const OUTCOME_ENDED: &str = "ended";
/// Filter value: jobs that held a GPU.
pub const WITH_GPUS: &str = "gpus";
/// The name of the list in the query string.
pub const JOB_TABLE: &str = "jobs";
/// The column of over-requested hours, which only their own list has.
pub const SORT_OVERSIZED: &str = "over-requested";

pub struct UsageJobSearchResults {
    /// The jobs shown, of all that match; largest first.
    pub jobs: Vec<UsageJobView>,
    pub totals: UsageJobTotals,
    /// The only owner, if the filter names one.
    pub member: Option<UsageMember>,
    /// First day.
    pub from: Day,
    /// Last day.
    pub until: Day,
    /// The outcome filter in words before and after "jobs"; both empty for all.
    pub outcome_words: (&'static str, &'static str),
    /// The job type filter; empty for all.
    pub kind: String,
    /// Whether only jobs that held a GPU are shown.
    pub with_gpus: bool,
    /// The column that they are sorted by, and whether the smallest comes first.
    pub order: (&'static str, bool),
}

/// What the list is sorted by: what the query string says, or the hours of which the figure consists.
fn resolve_order(data: &UsagePageData, is_spare: bool, in_gpus: bool) -> (&'static str, bool) {
    let of_column = |code: &str| match UsageJobColumn::parse(code) {
        Some(column) => Some(column.as_str()),
        None => (code == SORT_OVERSIZED && is_spare).then_some(SORT_OVERSIZED),
    };
    let chosen = data.filter.sort.of_table(JOB_TABLE);
    let chosen = chosen.and_then(|(code, is_ascending)| Some((of_column(code)?, is_ascending)));
    let usual = match (is_spare, in_gpus) {
        (true, _) => SORT_OVERSIZED,
        (false, true) => UsageJobColumn::GpuHours.as_str(),
        (false, false) => UsageJobColumn::CoreHours.as_str(),
    };
    chosen.unwrap_or((usual, false))
}

/// Totals over all matching jobs.
#[derive(Default)]
pub struct UsageJobTotals {
    pub count: u64,
    /// Core seconds within the period.
    pub core_s: u64,
    /// Core seconds since each job began, including days outside the period.
    pub run_core_s: u64,
    /// GPU seconds within the period.
    pub gpu_s: u64,
    /// Over-requested core seconds; counted only if the filter asks for them.
    pub spare_s: u64,
}

impl UsageJobTotals {
    fn add(&mut self, total: &UsageGpuTotal) {
        self.count += whole(total.jobs);
        self.core_s += whole(total.core_s);
        self.run_core_s += whole(total.run_core_s);
        self.gpu_s += whole(total.seconds).saturating_mul(count_gpus(&total.gpus));
    }
}

/// Keeps the jobs that requested more cores than they needed.
fn keep_oversized(jobs: &mut Vec<UsageJobView>) -> UsageJobTotals {
    jobs.retain(|job| job.spare_s > 0);
    let mut all = UsageJobTotals { count: u64::try_from(jobs.len()).unwrap_or(u64::MAX), ..UsageJobTotals::default() };
    for job in jobs {
        all.core_s += job.core_s;
        all.run_core_s += job.run_core_s();
        all.spare_s += job.spare_s;
    }
    all
}

/// The range of matching jobs to show.
#[derive(Clone, Copy)]
pub struct UsageJobRange {
    pub skip: usize,
    pub limit: usize,
}

/// Finds the matching jobs among those that the viewer may see. Records it in the activity log when the viewer
/// sees someone else's jobs.
pub async fn find_jobs(
    request: &GroupUsageRequest,
    data: &UsagePageData,
    paging: UsageJobRange,
) -> Result<UsageJobSearchResults, AppError> {
    let app = &request.context.app;
    let (query, choice) = (&data.query, &data.filter.choice);
    let day = |text: &str, otherwise: Day| Day::parse(text).unwrap_or(otherwise);
    let (mut from, mut until) = (day(&query.from, choice.from), day(&query.until, choice.until));
    if from > until {
        (from, until) = (choice.from, choice.until);
    }
    let owner = if data.view.is_leader {
        resolve_member(data, &query.member)
    } else {
        Some(UsageMember::Person(request.me.0.person.id))
    };
    let is_spare = query.outcome == OUTCOME_OVERSIZED;
    let named = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let gpu_model = named(&query.gpu).map(|model| if model == UNKNOWN_MODEL { String::new() } else { model });
    let with_gpus = query.with == WITH_GPUS;
    let in_gpus = with_gpus || gpu_model.is_some() || choice.measure == UsageMeasure::Gpus;
    let order = resolve_order(data, is_spare, in_gpus);
    let filter = UsageJobFilter {
        from,
        until,
        user: None,
        kind: named(&query.kind),
        partition: named(&query.partition),
        qos: named(&query.qos),
        gpu_model,
        order: UsageJobOrder { column: UsageJobColumn::parse(order.0).unwrap_or_default(), is_ascending: order.1 },
        states: outcome_states(&query.outcome),
        with_gpus,
        // Over-requested hours are not stored, so every job has to be checked.
        limit: i64::try_from(if is_spare { MAX_JOBS } else { paging.skip + paging.limit }).unwrap_or(i64::MAX),
    };
    let mut jobs = Vec::new();
    let mut all = UsageJobTotals::default();
    let _turn = app.usage.acquire_search_permit().await;
    let mut db = app.store.read().await?;
    for account in data.view.accounts.iter().filter(|account| is_selected(account, choice)) {
        for user in cluster_users(data, account, owner.as_ref()) {
            for source in &account.details.sources {
                let filter = UsageJobFilter { user: user.clone(), ..filter.clone() };
                let rows = store::usage::jobs::find(&mut db, source.id, &filter).await?;
                if rows.is_empty() {
                    continue;
                }
                if !is_spare {
                    for total in store::usage::jobs::sum_by_gpus(&mut db, source.id, &filter).await? {
                        all.add(&total);
                    }
                }
                let by_id = store::usage::list_names(&mut db, source.id).await?;
                jobs.extend(rows.into_iter().map(|row| UsageJobView::from_row(data, account, row, &by_id)));
            }
        }
    }
    drop(db);
    if !jobs.is_empty() {
        record_jobs_seen(request, data, owner.as_ref()).await?;
    }
    if is_spare {
        all = keep_oversized(&mut jobs);
    }
    jobs.sort_by(|a, b| {
        let by_column = a.compare(b, order.0);
        let by_column = if order.1 { by_column } else { by_column.reverse() };
        by_column.then(a.row.raw.cmp(&b.row.raw))
    });
    jobs.drain(..paging.skip.min(jobs.len()));
    jobs.truncate(paging.limit);
    let outcome_words = describe_outcome(&query.outcome);
    let kind = query.kind.clone();
    Ok(UsageJobSearchResults { jobs, totals: all, member: owner, from, until, outcome_words, kind, with_gpus, order })
}

/// An outcome filter in words: those before "jobs" and those after.
fn describe_outcome(word: &str) -> (&'static str, &'static str) {
    match UsageJobOutcome::parse(word) {
        Some(UsageJobOutcome::Running) => ("", "that were still running"),
        Some(UsageJobOutcome::Done) => ("completed", ""),
        Some(UsageJobOutcome::Failed) => ("failed", ""),
        Some(UsageJobOutcome::TimedOut) => ("", "that timed out"),
        Some(UsageJobOutcome::OutOfMemory) => ("", "that ran out of memory"),
        Some(UsageJobOutcome::Cancelled) => ("cancelled", ""),
        Some(UsageJobOutcome::Interrupted) => ("", "that the cluster interrupted"),
        Some(UsageJobOutcome::NodeFailed) => ("", "that ended because a node failed"),
        Some(UsageJobOutcome::MissedDeadline) => ("", "that missed their deadline"),
        None => match word {
            OUTCOME_ENDED => ("", "that ended"),
            OUTCOME_LOST => ("unsuccessful", ""),
            OUTCOME_OVERSIZED => ("completed", "that over-requested cores"),
            _ => ("", ""),
        },
    }
}

/// Finds the owner that a query value names: a remote user that a member connected as means that member.
fn resolve_member(data: &UsagePageData, word: &str) -> Option<UsageMember> {
    let who = parse_member(word)?;
    let UsageMember::User(cluster, user) = &who else { return Some(who) };
    let mut accounts = data.view.accounts.iter();
    if accounts.any(|account| account.details.cluster == *cluster && account.details.own_user.as_ref() == Some(user)) {
        return Some(UsageMember::Person(data.view.viewer));
    }
    let user_name = (*cluster, user.clone());
    if let Some(person) = data.view.people.get(&user_name) {
        return Some(UsageMember::Person(person.id));
    }
    let (cluster, user) = data.view.user_names.representative(user_name);
    Some(UsageMember::User(cluster, user))
}

/// Records whose jobs were viewed. A name without any jobs belongs to nobody and is not recorded.
async fn record_jobs_seen(
    GroupUsageRequest { context, me, .. }: &GroupUsageRequest,
    data: &UsagePageData,
    owner: Option<&UsageMember>,
) -> Result<(), AppError> {
    let Some(who) = owner else { return record_names_seen(context, me, &data.view).await };
    let person = match who {
        UsageMember::Person(id) if *id == me.0.person.id => return Ok(()),
        UsageMember::Person(id) => Some(*id),
        UsageMember::User(..) | UsageMember::Others => None,
    };
    let name = member_name(data, who);
    let usage = &context.app.usage;
    Ok(usage.record_named_view(&me.actor(context), data.group.id, Some((person, &name))).await?)
}

/// The remote users on an account's cluster to search for; a single `None` means everyone.
fn cluster_users(
    data: &UsagePageData,
    account: &GroupAccountUsage,
    owner: Option<&UsageMember>,
) -> Vec<Option<String>> {
    let facts = &account.details;
    match owner {
        None => vec![None],
        Some(UsageMember::Person(id)) if *id == data.view.viewer => {
            facts.own_user.iter().map(|user| Some(user.clone())).collect()
        }
        Some(UsageMember::Person(id)) => {
            let theirs = data.view.people.iter();
            let theirs = theirs.filter(|((cluster, user), person)| {
                *cluster == facts.cluster
                    && person.id == *id
                    // The viewer's own remote user is theirs, whoever used it before.
                    && facts.own_user.as_ref() != Some(user)
            });
            theirs.map(|((_, user), _)| Some(user.clone())).collect()
        }
        Some(UsageMember::User(cluster, user)) => {
            let all = data.view.user_names.same_person(&(*cluster, user.clone())).into_iter();
            all.filter(|user_name| user_name.0 == facts.cluster).map(|(_, user)| Some(user)).collect()
        }
        Some(UsageMember::Others) => Vec::new(),
    }
}

/// Display name; `you` for the viewer.
pub fn member_name(data: &UsagePageData, who: &UsageMember) -> String {
    match who {
        UsageMember::Person(id) if *id == data.view.viewer => "you".to_owned(),
        UsageMember::Person(id) => {
            let person = data.view.people.values().find(|person| person.id == *id);
            person.map(|person| person.name.clone()).unwrap_or_default()
        }
        UsageMember::User(cluster, user) => {
            data.view.user_names.name(&(*cluster, user.clone())).unwrap_or(user).to_owned()
        }
        UsageMember::Others => String::new(),
    }
}

/// The outcome filter's canonical value; empty if it is not a known one.
pub fn canonical_outcome(word: &str) -> &'static str {
    match word {
        OUTCOME_ENDED => OUTCOME_ENDED,
        OUTCOME_LOST => OUTCOME_LOST,
        OUTCOME_OVERSIZED => OUTCOME_OVERSIZED,
        other => UsageJobOutcome::parse(other).map_or("", UsageJobOutcome::as_str),
    }
}

/// The stored numbers of the matching outcomes; empty for all.
fn outcome_states(word: &str) -> Vec<i64> {
    let all = UsageJobOutcome::ALL.into_iter();
    let wanted: Vec<UsageJobOutcome> = match word {
        OUTCOME_ENDED => all.filter(|outcome| *outcome != UsageJobOutcome::Running).collect(),
        OUTCOME_LOST => all.filter(|outcome| outcome.is_lost()).collect(),
        OUTCOME_OVERSIZED => vec![UsageJobOutcome::Done],
        other => UsageJobOutcome::parse(other).into_iter().collect(),
    };
    wanted.into_iter().map(UsageJobOutcome::number).collect()
}
