//! The figures of a page: sums for a period, by person, by job type, and by day, week or month. Pure.

mod breakdown;
mod cache;
mod period_before;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub use self::breakdown::{BreakdownKind, FiguresBreakdown};
pub(super) use self::cache::FiguresCache;
pub use self::period_before::PeriodBefore;
use super::group_usage::{GroupAccountUsage, GroupUsage};
use super::totals::UsageTotals;
use super::units::UsageMeasure;
use crate::clock::Day;
use crate::domain::{ClusterId, PersonId, codes};

/// How many people have a colour of their own in charts; the others share one.
pub const COLOUR_COUNT: usize = 8;
/// At most this many bars are drawn.
pub const MAX_BARS: usize = 92;

/// The period that one bar of a chart covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChartStep {
    #[default]
    Day,
    Week,
    Month,
}

codes!(ChartStep { Day = "day", Week = "week", Month = "month" });

impl ChartStep {
    /// The first day of the bar that contains a day.
    pub fn first_day(self, day: Day) -> Day {
        match self {
            Self::Day => day,
            Self::Week => day.monday(),
            Self::Month => day.month().first(),
        }
    }

    /// The last day of the bar that begins on a day.
    pub fn last_day(self, first: Day) -> Day {
        match self {
            Self::Day => first,
            Self::Week => first.plus(6),
            Self::Month => first.month().last(),
        }
    }
}

/// The figures that a page asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FiguresSelection {
    /// First day.
    pub from: Day,
    /// Last day, included.
    pub until: Day,
    pub step: ChartStep,
    pub measure: UsageMeasure,
    /// One account only: its cluster's slug, and its name.
    pub account: Option<(String, String)>,
}

/// Whose figures a row shows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UsageMember {
    /// A member of the group.
    Person(PersonId),
    /// A user on a cluster who has no account here, or is not in the group: they may have left.
    User(ClusterId, String),
    /// Everybody else, without names.
    Others,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MemberFigures {
    pub owner: UsageMember,
    /// Display name.
    pub name: String,
    pub is_in_group: bool,
    /// The colour, from 0; none for those who share one.
    pub colour: Option<usize>,
    pub totals: UsageTotals,
}

/// The figures of a job type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTypeFigures {
    /// Its name; empty for other people's jobs, whose names are not shown.
    pub name: String,
    pub totals: UsageTotals,
}

#[derive(Debug, Clone, PartialEq)]
pub struct UsagePeriodBar {
    /// Its first day within the query.
    pub from: Day,
    pub until: Day,
    /// Hours of each of [`UsageFigures::members`], in their order.
    pub parts: Vec<f64>,
    pub total: f64,
    /// Its days that were not read yet, over all accounts.
    pub missing: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AccountFigures {
    pub slug: String,
    pub cluster: String,
    pub account: String,
    pub totals: UsageTotals,
    /// Whether nothing was read of these days, so that the totals say nothing.
    pub is_unread: bool,
}

/// All figures for one query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsageFigures {
    pub totals: UsageTotals,
    /// By person, highest usage of the chart's measure first.
    pub members: Vec<MemberFigures>,
    /// By job type, likewise.
    pub kinds: Vec<JobTypeFigures>,
    pub accounts: Vec<AccountFigures>,
    /// Bars from the first day to the last; some are empty.
    pub bars: Vec<UsagePeriodBar>,
    /// Days that were not read yet, over all accounts.
    pub missing: u64,
    /// Whether a day had more jobs than could be read.
    pub is_cut: bool,
    /// The period of the same length before it.
    pub before: PeriodBefore,
}

impl UsageFigures {
    /// How the period compares with the one before, in one line.
    pub fn comparison(&self) -> String {
        self.before.comparison(&self.totals, self.missing)
    }
}

/// Whether a query includes an account.
pub fn is_selected(account: &GroupAccountUsage, choice: &FiguresSelection) -> bool {
    choice.account.as_ref().is_none_or(|(slug, name)| *slug == account.details.slug && *name == account.details.account)
}

/// Adds up all figures.
pub fn compute_figures(view: &GroupUsage, choice: &FiguresSelection) -> UsageFigures {
    let mut all = UsageFigures { before: PeriodBefore::compute(view, choice), ..UsageFigures::default() };
    let mut people: HashMap<UsageMember, UsageTotals> = HashMap::new();
    let mut kinds: HashMap<&str, UsageTotals> = HashMap::new();
    let mut bars: BTreeMap<Day, HashMap<UsageMember, f64>> = BTreeMap::new();
    let mut unread: BTreeSet<Day> = BTreeSet::new();
    let mut first = choice.step.first_day(choice.from);
    while first <= choice.until && choice.from <= choice.until && bars.len() < MAX_BARS {
        bars.insert(first, HashMap::new());
        first = choice.step.last_day(first).plus(1);
    }
    for account in view.accounts.iter().filter(|account| is_selected(account, choice)) {
        let mut of_account = UsageTotals::default();
        for usage in &account.usage {
            for (day, row) in usage.rows_between(choice.from, choice.until) {
                let owner = owner_of(view, account, &row.user);
                of_account.add(&row.totals);
                let kind = if owner == UsageMember::Others { "" } else { &row.kind };
                kinds.entry(kind).or_default().add(&row.totals);
                if let Some(parts) = bars.get_mut(&choice.step.first_day(day)) {
                    *parts.entry(owner.clone()).or_default() += choice.measure.hours(&row.totals);
                }
                people.entry(owner).or_default().add(&row.totals);
            }
            let until = choice.until.min(account.today);
            for day in (choice.from.0..=until.0).map(Day) {
                match usage.days.get(&day) {
                    Some(day_usage) => all.is_cut |= day_usage.is_cut,
                    None => _ = unread.insert(day),
                }
            }
        }
        all.totals.add(&of_account);
        all.accounts.push(AccountFigures {
            slug: account.details.slug.clone(),
            cluster: account.details.title.clone(),
            account: account.details.account.clone(),
            totals: of_account,
            is_unread: choice.from <= account.today && !account.has_read(choice.from, choice.until),
        });
    }
    let colours = assign_colours(view);
    all.members = member_figures(view, people, &colours, choice.measure);
    let mut kinds: Vec<JobTypeFigures> =
        kinds.into_iter().map(|(name, totals)| JobTypeFigures { name: name.to_owned(), totals }).collect();
    kinds.sort_by(|a, b| {
        let by = |figures: &JobTypeFigures| choice.measure.hours(&figures.totals);
        by(b).total_cmp(&by(a)).then_with(|| a.name.cmp(&b.name))
    });
    all.kinds = kinds;
    let count = |days: usize| u64::try_from(days).unwrap_or(u64::MAX);
    let bar = |(first, parts): (Day, HashMap<UsageMember, f64>)| {
        let of = |member: &MemberFigures| parts.get(&member.owner).copied().unwrap_or(0.0);
        let parts: Vec<f64> = all.members.iter().map(of).collect();
        let total = parts.iter().sum();
        // A week or a month may reach beyond the queried days.
        let (from, until) = (first.max(choice.from), choice.step.last_day(first).min(choice.until));
        UsagePeriodBar { from, until, parts, total, missing: count(unread.range(from..=until).count()) }
    };
    all.bars = bars.into_iter().map(bar).collect();
    all.missing = count(unread.len());
    all
}

/// Who a row belongs to, as far as the viewer may know.
fn owner_of(view: &GroupUsage, account: &GroupAccountUsage, user: &str) -> UsageMember {
    let cluster = account.details.cluster;
    let is_own = account.details.own_user.as_deref() == Some(user) && !user.is_empty();
    if is_own {
        return UsageMember::Person(view.viewer);
    }
    if user.is_empty() || !view.is_leader {
        return UsageMember::Others;
    }
    let user_name = (cluster, user.to_owned());
    if let Some(person) = view.people.get(&user_name) {
        return UsageMember::Person(person.id);
    }
    let (cluster, user) = view.user_names.representative(user_name);
    UsageMember::User(cluster, user)
}

/// A person keeps the same colour whatever the query: people are ordered by all their known usage.
fn assign_colours(view: &GroupUsage) -> HashMap<UsageMember, usize> {
    let mut hours: HashMap<UsageMember, f64> = HashMap::new();
    for account in &view.accounts {
        for usage in &account.usage {
            for day_usage in usage.days.values() {
                for row in day_usage.rows.iter() {
                    // Always by cores, whatever the chart shows, so that the order stays.
                    let used = UsageMeasure::Cores.hours(&row.totals);
                    *hours.entry(owner_of(view, account, &row.user)).or_default() += used;
                }
            }
        }
    }
    let mut order: Vec<(UsageMember, f64)> =
        hours.into_iter().filter(|(owner, _)| *owner != UsageMember::Others).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    order.into_iter().take(COLOUR_COUNT).enumerate().map(|(colour, (owner, _))| (owner, colour)).collect()
}

fn member_figures(
    view: &GroupUsage,
    people: HashMap<UsageMember, UsageTotals>,
    colours: &HashMap<UsageMember, usize>,
    measure: UsageMeasure,
) -> Vec<MemberFigures> {
    let name_of = |id: PersonId| view.people.values().find(|person| person.id == id).map(|person| person.name.clone());
    let member = |(owner, totals): (UsageMember, UsageTotals)| {
        let (name, is_in_group) = match &owner {
            UsageMember::Person(id) if *id == view.viewer && !view.is_leader => ("You".to_owned(), true),
            UsageMember::Person(id) => (name_of(*id).unwrap_or_else(|| "You".to_owned()), name_of(*id).is_some()),
            UsageMember::User(cluster, user) => {
                let name = view.user_names.name(&(*cluster, user.clone()));
                (name.unwrap_or(user).to_owned(), false)
            }
            UsageMember::Others => ("Everyone else".to_owned(), true),
        };
        let colour = colours.get(&owner).copied();
        MemberFigures { owner, name, is_in_group, colour, totals }
    };
    let mut members: Vec<MemberFigures> = people.into_iter().map(member).collect();
    members.sort_by(|a, b| {
        let by = |figures: &MemberFigures| measure.hours(&figures.totals);
        by(b).total_cmp(&by(a)).then_with(|| a.owner.cmp(&b.owner))
    });
    members
}

#[cfg(test)]
mod tests;
