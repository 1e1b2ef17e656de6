//! What a page shows of a view: sums for a stretch of time, by person, by sort of job, by day, week or month. Pure.

mod kept;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(super) use self::kept::Kept;
use super::sums::Sums;
use super::units::Measure;
use super::view::{AccountView, View};
use crate::clock::Day;
use crate::domain::{ClusterId, PersonId};

/// People who have a colour of their own in charts; the others share one.
pub const COLOURS: usize = 8;
/// More bars than this are not drawn.
pub const MOST_BARS: usize = 92;

/// How long a bar of a chart is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Step {
    /// A day.
    #[default]
    Day,
    /// Monday to Sunday.
    Week,
    /// A month.
    Month,
}

impl Step {
    /// All.
    pub const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    /// The word in addresses.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The one behind a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }

    /// The first day of the bar in which a day lies.
    pub fn first(self, day: Day) -> Day {
        match self {
            Self::Day => day,
            Self::Week => day.monday(),
            Self::Month => day.month().first(),
        }
    }

    /// The last day of the bar that begins on a day.
    pub fn last(self, first: Day) -> Day {
        match self {
            Self::Day => first,
            Self::Week => first.plus(6),
            Self::Month => first.month().last(),
        }
    }
}

/// What is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Choice {
    /// From this day …
    pub from: Day,
    /// … to this one.
    pub until: Day,
    /// How long a bar is.
    pub step: Step,
    /// What is drawn.
    pub measure: Measure,
    /// One account only: its cluster's short name, and its name.
    pub account: Option<(String, String)>,
}

/// Whose figures a row shows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// Someone of the group.
    Person(PersonId),
    /// Someone on a cluster who has no account here, or is not in the group: they may have left.
    User(ClusterId, String),
    /// Everybody else, without names.
    Others,
}

/// One person's figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Whose.
    pub who: Who,
    /// As people read it.
    pub name: String,
    /// Whether they are in the group on this portal.
    pub is_in_group: bool,
    /// The colour, from 0; none for those who share one.
    pub colour: Option<usize>,
    /// The figures.
    pub sums: Sums,
}

/// Figures of a sort of job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Its name; empty for jobs of others, of which no name is told.
    pub name: String,
    /// The figures.
    pub sums: Sums,
}

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Its first day that is looked at.
    pub from: Day,
    /// Its last one.
    pub until: Day,
    /// Hours of each of [`Figures::members`], in their order.
    pub parts: Vec<f64>,
    /// All of them together.
    pub total: f64,
    /// Days in it that were not read yet, of any account.
    pub missing: u64,
}

/// Figures of an account.
#[derive(Debug, Clone, PartialEq)]
pub struct OfAccount {
    /// The cluster's short name.
    pub slug: String,
    /// The cluster's name.
    pub cluster: String,
    /// The account.
    pub account: String,
    /// The figures.
    pub sums: Sums,
}

/// Everything of a choice.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures {
    /// All together.
    pub totals: Sums,
    /// By person, those who used most of what is drawn first.
    pub members: Vec<Member>,
    /// By sort of job, likewise.
    pub kinds: Vec<Kind>,
    /// By account.
    pub accounts: Vec<OfAccount>,
    /// Bars from the first day to the last; some are empty.
    pub bars: Vec<Bar>,
    /// Days that were not read yet, of any account.
    pub missing: u64,
    /// Whether a day had more jobs than could be read.
    pub is_cut: bool,
}

/// Whether an account is part of a choice.
pub fn is_chosen(account: &AccountView, choice: &Choice) -> bool {
    choice
        .account
        .as_ref()
        .is_none_or(|(slug, name)| *slug == account.facts.slug && *name == account.facts.account)
}

/// Adds it all up.
pub fn figures(view: &View, choice: &Choice) -> Figures {
    let mut all = Figures::default();
    let mut people: HashMap<Who, Sums> = HashMap::new();
    let mut kinds: HashMap<&str, Sums> = HashMap::new();
    let mut bars: BTreeMap<Day, HashMap<Who, f64>> = BTreeMap::new();
    let mut unread: BTreeSet<Day> = BTreeSet::new();
    let mut first = choice.step.first(choice.from);
    while first <= choice.until && choice.from <= choice.until && bars.len() < MOST_BARS {
        bars.insert(first, HashMap::new());
        first = choice.step.last(first).plus(1);
    }
    for account in view.accounts.iter().filter(|account| is_chosen(account, choice)) {
        let mut of_account = Sums::default();
        for ledger in &account.ledgers {
            for (day, roll) in ledger.between(choice.from, choice.until) {
                let who = who(view, account, &roll.user);
                of_account.add(&roll.sums);
                let kind = if who == Who::Others { "" } else { &roll.kind };
                kinds.entry(kind).or_default().add(&roll.sums);
                if let Some(parts) = bars.get_mut(&choice.step.first(day)) {
                    *parts.entry(who.clone()).or_default() += choice.measure.hours(&roll.sums);
                }
                people.entry(who).or_default().add(&roll.sums);
            }
            let until = choice.until.min(account.today);
            for day in (choice.from.0..=until.0).map(Day) {
                match ledger.pages.get(&day) {
                    Some(page) => all.is_cut |= page.is_cut,
                    None => _ = unread.insert(day),
                }
            }
        }
        all.totals.add(&of_account);
        all.accounts.push(OfAccount {
            slug: account.facts.slug.clone(),
            cluster: account.facts.title.clone(),
            account: account.facts.account.clone(),
            sums: of_account,
        });
    }
    let colours = colours(view);
    all.members = members(view, people, &colours, choice.measure);
    let mut kinds: Vec<Kind> =
        kinds.into_iter().map(|(name, sums)| Kind { name: name.to_owned(), sums }).collect();
    kinds.sort_by(|a, b| {
        let by = |one: &Kind| choice.measure.hours(&one.sums);
        by(b).total_cmp(&by(a)).then_with(|| a.name.cmp(&b.name))
    });
    all.kinds = kinds;
    let count = |days: usize| u64::try_from(days).unwrap_or(u64::MAX);
    let bar = |(first, parts): (Day, HashMap<Who, f64>)| {
        let of = |member: &Member| parts.get(&member.who).copied().unwrap_or(0.0);
        let parts: Vec<f64> = all.members.iter().map(of).collect();
        let total = parts.iter().sum();
        // A week or a month may reach beyond what is looked at.
        let (from, until) = (first.max(choice.from), choice.step.last(first).min(choice.until));
        Bar { from, until, parts, total, missing: count(unread.range(from..=until).count()) }
    };
    all.bars = bars.into_iter().map(bar).collect();
    all.missing = count(unread.len());
    all
}

/// Whose a roll is, as the viewer may know it.
fn who(view: &View, account: &AccountView, user: &str) -> Who {
    let cluster = account.facts.cluster;
    let is_own = account.facts.own_user.as_deref() == Some(user) && !user.is_empty();
    if is_own {
        return Who::Person(view.me);
    }
    if user.is_empty() || !view.leads {
        return Who::Others;
    }
    match view.people.get(&(cluster, user.to_owned())) {
        Some(person) => Who::Person(person.id),
        None => Who::User(cluster, user.to_owned()),
    }
}

/// The same person has the same colour whatever is looked at: those who used most in all that is known come first.
fn colours(view: &View) -> HashMap<Who, usize> {
    let mut hours: HashMap<Who, f64> = HashMap::new();
    for account in &view.accounts {
        for ledger in &account.ledgers {
            for page in ledger.pages.values() {
                for roll in page.rolls.iter() {
                    // Cores, whatever is drawn, so that the order stays.
                    let used = Measure::Cores.hours(&roll.sums);
                    *hours.entry(who(view, account, &roll.user)).or_default() += used;
                }
            }
        }
    }
    let mut order: Vec<(Who, f64)> =
        hours.into_iter().filter(|(who, _)| *who != Who::Others).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    order.into_iter().take(COLOURS).enumerate().map(|(place, (who, _))| (who, place)).collect()
}

fn members(
    view: &View,
    people: HashMap<Who, Sums>,
    colours: &HashMap<Who, usize>,
    measure: Measure,
) -> Vec<Member> {
    let name_of = |id: PersonId| {
        view.people.values().find(|person| person.id == id).map(|person| person.name.clone())
    };
    let member = |(who, sums): (Who, Sums)| {
        let (name, is_in_group) = match &who {
            Who::Person(id) if *id == view.me && !view.leads => ("You".to_owned(), true),
            Who::Person(id) => {
                (name_of(*id).unwrap_or_else(|| "You".to_owned()), name_of(*id).is_some())
            }
            Who::User(_, user) => (user.clone(), false),
            Who::Others => ("Everybody else".to_owned(), true),
        };
        let colour = colours.get(&who).copied();
        Member { who, name, is_in_group, colour, sums }
    };
    let mut members: Vec<Member> = people.into_iter().map(member).collect();
    members.sort_by(|a, b| {
        let by = |one: &Member| measure.hours(&one.sums);
        by(b).total_cmp(&by(a)).then_with(|| a.who.cmp(&b.who))
    });
    members
}

#[cfg(test)]
mod tests;
