//! The allocation form: its values, its options, and how it is parsed.

use serde::Deserialize;

use crate::clock::Day;
use crate::domain::ClusterId;
use crate::store::allocations::Allocation;
use crate::store::clusters::Cluster;
use crate::usage::{AllocationInput, AllocationUnit, GroupAccountChoices, SiteUnit, UsageMeasure, UsageSettingsError};
use crate::web::http::form_errors::{FormErrors, echo_input};
use crate::web::pages::groups::usage::query::UsageSelectOption;

/// An allocation, as typed.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct AllocationForm {
    /// Cluster and account, as `slug/account`.
    pub account: String,
    pub unit: String,
    pub amount: String,
    pub begins: String,
    pub ends: String,
}

impl AllocationForm {
    /// Caps the length of what is shown again.
    pub fn truncate_for_redisplay(&self) -> Self {
        Self {
            account: echo_input(&self.account),
            unit: echo_input(&self.unit),
            amount: echo_input(&self.amount),
            begins: echo_input(&self.begins),
            ends: echo_input(&self.ends),
        }
    }
}

/// An allocation as someone would type it.
pub fn form_from_allocation(allocation: &Allocation, clusters: &[Cluster]) -> AllocationForm {
    let slug = clusters.iter().find(|cluster| cluster.id == allocation.cluster_id).map(|cluster| &cluster.slug);
    // Add a digit where the amount could be read as thousands, so that the form does not ask about it.
    let mut amount = allocation.amount.to_string();
    if is_ambiguous(&amount) {
        amount.push('0');
    }
    AllocationForm {
        account: slug.map(|slug| format!("{slug}/{}", allocation.account)).unwrap_or_default(),
        unit: allocation.unit.clone(),
        amount,
        begins: allocation.begins().to_string(),
        ends: allocation.ends().to_string(),
    }
}

pub fn account_options(offers: &[GroupAccountChoices], form: &AllocationForm) -> Vec<UsageSelectOption> {
    let of = |offer: &GroupAccountChoices| {
        let theirs = offer.accounts.iter().filter(|(_, is_chosen)| *is_chosen);
        let option = |(name, _): &(String, bool)| {
            let value = format!("{}/{name}", offer.profile.row.slug);
            let is_typed = value == form.account;
            (value, format!("{name} on {}", offer.profile.row.title), is_typed)
        };
        theirs.map(option).collect::<Vec<_>>()
    };
    with_placeholder(offers.iter().flat_map(of).collect(), &form.account, "Choose an account")
}

/// An allocation's old account or unit may no longer be on offer: then nothing is preselected.
fn with_placeholder(mut options: Vec<UsageSelectOption>, chosen: &str, placeholder: &str) -> Vec<UsageSelectOption> {
    if !chosen.is_empty() && options.iter().all(|(.., is_chosen)| !is_chosen) {
        options.insert(0, (String::new(), placeholder.to_owned(), true));
    }
    options
}

/// Core hours and GPU hours everywhere; site units where a site has one.
pub fn unit_options(offers: &[GroupAccountChoices], form: &AllocationForm) -> Vec<UsageSelectOption> {
    let mut titles: Vec<&str> = offers
        .iter()
        .filter(|offer| offer.accounts.iter().any(|(_, is_chosen)| *is_chosen))
        .filter_map(|offer| SiteUnit::from_site(&offer.profile.site).map(SiteUnit::title))
        .collect();
    titles.sort_unstable();
    titles.dedup();
    let fitting =
        AllocationUnit::ALL.into_iter().filter(|unit| unit.measure != UsageMeasure::Site || !titles.is_empty());
    let label = |unit: AllocationUnit| match unit.measure {
        UsageMeasure::Site => {
            format!("{} {}", titles.join(" or "), if unit.in_years { "years" } else { "hours" })
        }
        _ => unit.words(None),
    };
    let option = |unit: AllocationUnit| (unit.as_str().to_owned(), label(unit), unit.as_str() == form.unit);
    with_placeholder(fitting.map(option).collect(), &form.unit, "Choose a unit")
}

/// Finds the account for `slug/account`.
pub fn find_offered_account(offers: &[GroupAccountChoices], value: &str) -> Option<(ClusterId, String)> {
    let (slug, name) = value.split_once('/')?;
    let offer = offers.iter().find(|offer| offer.profile.row.slug == slug)?;
    offer.accounts.iter().any(|(account, _)| account == name).then(|| (offer.profile.row.id, name.to_owned()))
}

/// The field that an error belongs to.
pub const fn field_of_error(error: &UsageSettingsError) -> &'static str {
    match error {
        UsageSettingsError::NoSuchUnit => "unit",
        UsageSettingsError::InvalidAmount | UsageSettingsError::Duplicate => "amount",
        UsageSettingsError::InvalidPeriod => "ends",
        UsageSettingsError::NoSuchAccount | UsageSettingsError::TooMany | UsageSettingsError::Auth(_) => "account",
    }
}

/// The parsed allocation; `None` if something is wrong with it.
pub fn parse_form(
    form: &AllocationForm,
    offers: &[GroupAccountChoices],
    problems: &mut FormErrors,
) -> Option<AllocationInput> {
    let account = find_offered_account(offers, &form.account);
    if account.is_none() {
        problems.add("account", UsageSettingsError::NoSuchAccount);
    }
    let unit = AllocationUnit::parse(&form.unit);
    if unit.is_none() {
        problems.add("unit", "Choose a unit.");
    }
    // Accept spaces between thousands, and commas where they can't mean anything else.
    let digits: String = form.amount.chars().filter(|c| !c.is_whitespace()).collect();
    let digits = if has_thousands(&digits) { digits.replace(',', "") } else { digits };
    let plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let amount = digits.parse::<f64>().ok().filter(|amount| plain && *amount > 0.0);
    let amount = amount.filter(|_| !is_ambiguous(&digits));
    if amount.is_none() {
        problems.add(
            "amount",
            if is_ambiguous(&digits) {
                "This amount is ambiguous. Write 12000 for twelve thousand, or 12.0 for twelve."
            } else {
                "Enter an amount greater than 0, for example 12000 or 0.5."
            },
        );
    }
    let begins = parse_day(&form.begins, "begins", problems);
    let ends = parse_day(&form.ends, "ends", problems);
    let (cluster, account) = account?;
    Some(AllocationInput { cluster, account, unit: unit?, amount: amount?, begins: begins?, ends: ends? })
}

/// Whether commas group the digits by three, as in `12,000` and `1,250.5`, but not `1.250,50`.
fn has_thousands(text: &str) -> bool {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    (1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3) && !part.contains(',')
}

/// Whether a dot before three digits may separate thousands, as in `12.000`.
fn is_ambiguous(text: &str) -> bool {
    let is_whole =
        |part: &str, most: usize| (1..=most).contains(&part.len()) && part.chars().all(|c| c.is_ascii_digit());
    let mut groups = text.split('.');
    let first = groups.next().unwrap_or_default();
    let mut rest = groups.peekable();
    rest.peek().is_some()
        && is_whole(first, 3)
        && !first.starts_with('0')
        && rest.all(|group| group.len() == 3 && is_whole(group, 3))
}

fn parse_day(text: &str, field: &'static str, problems: &mut FormErrors) -> Option<Day> {
    let years = Day::parse("2000-01-01")?..=Day::parse("2100-12-31")?;
    let day = Day::parse(text).filter(|day| years.contains(day));
    if day.is_none() {
        problems.add(field, "Enter a date like 2026-04-01.");
    }
    day
}
