//! What a group's leader can be told: an allocation nearly used, a place nearly full, jobs that fail in numbers. What
//! is worth telling is decided by pure functions; each thing is told once for its period.

mod telling;

use std::collections::{BTreeMap, BTreeSet};

use super::report::{amount, clean, percent, unit_words};
use super::sums::Sums;
use super::units::Unit;
use super::view::{AccountView, View};
use crate::clock::Day;
use crate::domain::AllocationId;
use crate::sites::quota::StorageQuota;
use crate::store::allocations::Allocation;

/// The part of an allocation that is worth telling.
const QUOTA: f64 = 0.8;
/// The part of a place that is worth telling: nine tenths.
const FULL: (u64, u64) = (9, 10);
/// So many jobs must have ended within a day.
const LEAST_JOBS: u64 = 10;

/// What one can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alert {
    /// An allocation is nearly used.
    Quota,
    /// A place for files is nearly full.
    Storage,
    /// A member's jobs fail in numbers.
    Failing,
}

impl Alert {
    /// All.
    pub const ALL: [Self; 3] = [Self::Quota, Self::Storage, Self::Failing];

    /// The word in the database and in forms.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Storage => "storage",
            Self::Failing => "failing",
        }
    }

    /// The one behind a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }
}

/// Something to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// What it is about, and in which period: told once.
    pub about: String,
    /// The sentence.
    pub text: String,
}

/// The mark of news that most of an allocation is used.
pub(super) fn about_quota(allocation: AllocationId) -> String {
    format!("quota:{allocation}:80")
}

/// An allocation of which most is used.
pub fn quota(account: &AccountView, allocation: &Allocation) -> Option<News> {
    let (begins, ends) = (allocation.begins(), allocation.ends());
    if !(begins..=ends).contains(&account.today) {
        return None;
    }
    let unit = Unit::from_word(&allocation.unit)?;
    let hours: f64 = account.used(unit.measure, begins, ends).iter().map(|one| one.1).sum();
    let part = unit.from_hours(hours) / allocation.amount;
    (part >= QUOTA).then(|| News {
        about: about_quota(allocation.id),
        text: format!(
            "{} of the {} {} granted to {} on {} are used; the period ends on {}.",
            percent(part),
            amount(allocation.amount),
            unit_words(unit, account.facts.unit()),
            clean(&account.facts.account),
            clean(&account.facts.title),
            ends.words()
        ),
    })
}

/// A place of the group that is nearly full. Once a month.
pub fn storage(place: &StorageQuota, cluster: &str, slug: &str, today: Day) -> Option<News> {
    let is_full = |used: u64, limit: u64| {
        limit > 0 && u128::from(used) * u128::from(FULL.1) >= u128::from(limit) * u128::from(FULL.0)
    };
    let space = place.limit_bytes.filter(|limit| is_full(place.used_bytes, *limit));
    let files = place.files.zip(place.files_limit).filter(|(used, limit)| is_full(*used, *limit));
    let what = match (space, files) {
        (Some(limit), _) => format!("{} of its space is used", share(place.used_bytes, limit)),
        (None, Some((used, limit))) => format!("{} of its files are used", share(used, limit)),
        (None, None) => return None,
    };
    let label = clean(&place.label);
    Some(News {
        about: format!("storage:{slug}:{label}:{}", today.month()),
        text: format!("{label} on {} is nearly full: {what}.", clean(cluster)),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a part for people")]
fn share(used: u64, limit: u64) -> String {
    percent(used as f64 / limit as f64)
}

/// Whether a place is the group's, and not one person's own.
pub fn is_of_group(place: &StorageQuota, accounts: &BTreeSet<&str>) -> bool {
    let label = place.label.to_lowercase();
    let is_own = label.contains("(user ") || label.contains("home");
    let names = |account: &&str| {
        let is_edge = |c: char| !(c.is_alphanumeric() || c == '-' || c == '_');
        label.split(is_edge).any(|word| word == account.to_lowercase())
    };
    !is_own && (label.contains("project") || accounts.iter().any(names))
}

/// Someone's jobs of one day on one cluster, if most of many went wrong.
pub fn failing(
    name: &str,
    user: &str,
    cluster: &str,
    slug: &str,
    day: Day,
    sums: &Sums,
) -> Option<News> {
    let bad = sums.failed + sums.timed_out + sums.memory_out;
    (sums.jobs >= LEAST_JOBS && 2 * bad > sums.jobs).then(|| News {
        about: format!("failing:{slug}:{}:{}", clean(user), day.0),
        text: format!(
            "{} of {} jobs of {} that ended on {} on {} did not end well. They may be glad of a hand.",
            amount_of(bad),
            amount_of(sums.jobs),
            clean(name),
            clean(cluster),
            day.words()
        ),
    })
}

fn amount_of(jobs: u64) -> String {
    crate::explain::sizes::number(jobs)
}

/// Members whose jobs fail in numbers, today or yesterday.
fn all_failing(view: &View, slug: &str) -> Vec<News> {
    let mut days: BTreeMap<(Day, &str), (Sums, &AccountView)> = BTreeMap::new();
    for account in view.accounts.iter().filter(|account| account.facts.slug == slug) {
        for ledger in &account.ledgers {
            for (day, roll) in ledger.between(account.today.plus(-1), account.today) {
                if !roll.user.is_empty() {
                    let place = days.entry((day, &roll.user));
                    place.or_insert_with(|| (Sums::default(), account)).0.add(&roll.sums);
                }
            }
        }
    }
    let one = |((day, user), (sums, account)): ((Day, &str), (Sums, &AccountView))| {
        let facts = &account.facts;
        let person = view.people.get(&(facts.cluster, user.to_owned()));
        let name = person.map_or(user, |person| &person.name);
        failing(name, user, &facts.title, &facts.slug, day, &sums)
    };
    days.into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests;
