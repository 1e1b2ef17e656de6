//! The form of an allocation: what stands in it, what it offers, and what is read of it.

use serde::Deserialize;

use super::super::form::{Problems, shown_again};
use super::ask::Option3;
use super::words::unit;
use crate::clock::Day;
use crate::domain::ClusterId;
use crate::store::allocations::Allocation;
use crate::store::clusters::Cluster;
use crate::usage::{Grant, Measure, NotSet, Offer, SiteUnit, Unit};

/// What was granted, as typed.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct GrantForm {
    /// The cluster and the account.
    pub account: String,
    /// In what.
    pub unit: String,
    /// How much.
    pub amount: String,
    /// The first day.
    pub begins: String,
    /// The last day.
    pub ends: String,
}

impl GrantForm {
    /// No longer than it is shown again.
    pub fn shown_again(&self) -> Self {
        Self {
            account: shown_again(&self.account),
            unit: shown_again(&self.unit),
            amount: shown_again(&self.amount),
            begins: shown_again(&self.begins),
            ends: shown_again(&self.ends),
        }
    }
}

/// An allocation as someone would type it.
pub fn as_typed(one: &Allocation, clusters: &[Cluster]) -> GrantForm {
    let slug = clusters.iter().find(|known| known.id == one.cluster_id).map(|known| &known.slug);
    // Digits that could be thousands get one more, so that they are not asked about.
    let mut amount = one.amount.to_string();
    if is_ambiguous(&amount) {
        amount.push('0');
    }
    GrantForm {
        account: slug.map(|slug| format!("{slug}/{}", one.account)).unwrap_or_default(),
        unit: one.unit.clone(),
        amount,
        begins: one.begins().to_string(),
        ends: one.ends().to_string(),
    }
}

/// The accounts of the group.
pub fn account_options(offers: &[Offer], form: &GrantForm) -> Vec<Option3> {
    let of = |offer: &Offer| {
        let theirs = offer.accounts.iter().filter(|(_, is_chosen)| *is_chosen);
        let option = |(name, _): &(String, bool)| {
            let value = format!("{}/{name}", offer.slug);
            let is_typed = value == form.account;
            (value, format!("{name} on {}", offer.title), is_typed)
        };
        theirs.map(option).collect::<Vec<_>>()
    };
    with_empty(offers.iter().flat_map(of).collect(), &form.account, "Choose an account")
}

/// What was granted before may be among the choices no longer: then nothing is chosen for anyone by chance.
fn with_empty(mut options: Vec<Option3>, chosen: &str, words: &str) -> Vec<Option3> {
    if !chosen.is_empty() && options.iter().all(|(.., is_chosen)| !is_chosen) {
        options.insert(0, (String::new(), words.to_owned(), true));
    }
    options
}

/// Cores and GPUs everywhere; the sites' own units where there are any.
pub fn unit_options(offers: &[Offer], form: &GrantForm) -> Vec<Option3> {
    let mut titles: Vec<&str> = offers
        .iter()
        .filter(|offer| offer.accounts.iter().any(|(_, is_chosen)| *is_chosen))
        .filter_map(|offer| SiteUnit::of(&offer.site).map(SiteUnit::title))
        .collect();
    titles.sort_unstable();
    titles.dedup();
    let fitting =
        Unit::ALL.into_iter().filter(|one| one.measure != Measure::Site || !titles.is_empty());
    let words = |one: Unit| match one.measure {
        Measure::Site => {
            format!("{} {}", titles.join(" or "), if one.in_years { "years" } else { "hours" })
        }
        _ => unit(one, None),
    };
    let option = |one: Unit| (one.word().to_owned(), words(one), one.word() == form.unit);
    with_empty(fitting.map(option).collect(), &form.unit, "Choose a unit")
}

/// The account behind `slug/account`.
pub fn offered(offers: &[Offer], value: &str) -> Option<(ClusterId, String)> {
    let (slug, name) = value.split_once('/')?;
    let offer = offers.iter().find(|offer| offer.slug == slug)?;
    offer.accounts.iter().any(|(known, _)| known == name).then(|| (offer.cluster, name.to_owned()))
}

/// The part of the form that a problem is about.
pub const fn field(error: &NotSet) -> &'static str {
    match error {
        NotSet::NoSuchUnit => "unit",
        NotSet::Amount | NotSet::Twice => "amount",
        NotSet::Period => "ends",
        NotSet::NoSuchAccount | NotSet::TooMany | NotSet::Auth(_) => "account",
    }
}

/// What is asked for; none if something is wrong with it.
pub fn read(form: &GrantForm, offers: &[Offer], problems: &mut Problems) -> Option<Grant> {
    let account = offered(offers, &form.account);
    if account.is_none() {
        problems.add("account", NotSet::NoSuchAccount);
    }
    let unit = Unit::from_word(&form.unit);
    if unit.is_none() {
        problems.add("unit", "Choose in what it was granted.");
    }
    // Blanks between thousands are taken, and commas where they can be nothing else.
    let digits: String = form.amount.chars().filter(|c| !c.is_whitespace()).collect();
    let digits = if has_thousands(&digits) { digits.replace(',', "") } else { digits };
    let plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let amount = digits.parse::<f64>().ok().filter(|amount| plain && *amount > 0.0);
    let amount = amount.filter(|_| !is_ambiguous(&digits));
    if amount.is_none() {
        problems.add(
            "amount",
            if is_ambiguous(&digits) {
                "This can be read in two ways. Write 12000 for twelve thousand, or 12.0 for twelve."
            } else {
                "Enter an amount above 0 in digits, for example 12000 or 0.5."
            },
        );
    }
    let begins = day(&form.begins, "begins", problems);
    let ends = day(&form.ends, "ends", problems);
    let (cluster, account) = account?;
    Some(Grant { cluster, account, unit: unit?, amount: amount?, begins: begins?, ends: ends? })
}

/// Whether commas stand before each three digits, as in `12,000` and `1,250.5`; not as in `1.250,50`.
fn has_thousands(text: &str) -> bool {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    (1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3) && !part.contains(',')
}

/// Whether a dot before three digits may stand for thousands, as in `12.000`.
fn is_ambiguous(text: &str) -> bool {
    let is_whole = |part: &str, most: usize| {
        (1..=most).contains(&part.len()) && part.chars().all(|c| c.is_ascii_digit())
    };
    let mut groups = text.split('.');
    let first = groups.next().unwrap_or_default();
    let mut rest = groups.peekable();
    rest.peek().is_some()
        && is_whole(first, 3)
        && !first.starts_with('0')
        && rest.all(|group| group.len() == 3 && is_whole(group, 3))
}

fn day(text: &str, field: &'static str, problems: &mut Problems) -> Option<Day> {
    let years = Day::parse("2000-01-01")?..=Day::parse("2100-12-31")?;
    let day = Day::parse(text).filter(|day| years.contains(day));
    if day.is_none() {
        problems.add(field, "Enter a day like 2026-04-01.");
    }
    day
}
