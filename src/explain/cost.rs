//! What a job costs before it is submitted, in the site's own unit: what in it sets the price, and what would be
//! cheaper. What is not known of a site is said, and never made up.

mod cheaper;
mod price;
#[cfg(test)]
mod tests;

pub use self::price::reference_units;
use self::price::{HourlyPrice, hourly_price, to_f64};
use super::job_types;
use crate::format;
use crate::recipes::context::ComposeContext;
use crate::recipes::request::{JobRequest, RequestField};
use crate::sites::{SiteAllocationPeriod, SiteFamily};

/// What a job costs.
#[derive(Debug, Clone, PartialEq)]
pub struct JobCost {
    /// The unit, for people: `billing hours`, `RGU hours`.
    pub unit: String,
    /// What is paid for each hour that one task runs.
    pub per_hour: f64,
    /// Tasks, each of which pays: 1 if it is no array.
    pub tasks: u64,
    /// What it pays if all its tasks take the whole time asked for; none if it asks for no time.
    pub total: Option<f64>,
    /// What each part of the request counts in an hour.
    pub parts: Vec<CostPart>,
    /// Which of them is paid for.
    pub driver: CostDriver,
    /// In a sentence, for a heading.
    pub headline: String,
    /// What else to know, a sentence each: what sets the price, how much of the group's rest it is.
    pub sentences: Vec<String>,
    /// What is not known, a sentence each.
    pub notes: Vec<String>,
    /// What would be cheaper, the cheapest first.
    pub cheaper: Vec<CheaperRequest>,
    /// The total as part of what the group has left, where that is known: 0.03 is three percent.
    pub of_left: Option<f64>,
}

/// What a part of a request counts.
#[derive(Debug, Clone, PartialEq)]
pub struct CostPart {
    pub what: CostDriver,
    /// How much is asked for: `40 GB`.
    pub words: String,
    /// Units in an hour.
    pub counts: f64,
}

/// A part of a request that may set the price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CostDriver {
    Cores,
    Memory,
    Gpus,
    Nodes,
}

/// Something that would be cheaper.
#[derive(Debug, Clone, PartialEq)]
pub struct CheaperRequest {
    pub sentence: String,
    /// What to change, as one would type it into the form.
    pub changes: Vec<(RequestField, String)>,
    /// What is paid for each hour then.
    pub per_hour: f64,
}

/// What the tool of the site says is left for an account; nothing if it does not say.
pub fn remaining_quota(told: &crate::sites::cost::CostReport, account: &str) -> Option<f64> {
    told.accounts.iter().find(|one| one.account == account)?.available()
}

/// What a request costs. `left`: what the group still has, in the unit of its quota.
pub fn estimate_cost(request: &JobRequest, place: &ComposeContext, left: Option<f64>) -> JobCost {
    let price = hourly_price(request, place);
    let per_hour = price.per_hour();
    let tasks = request.array.as_ref().and_then(job_types::task_count).unwrap_or(1).max(1);
    let hours = request.minutes.map(|minutes| f64::from(minutes) / 60.0);
    let each = hours.map(|hours| per_hour * hours);
    let total = each.map(|each| each * to_f64(tasks));
    let left = left.filter(|left| left.is_finite() && price.is_sites_unit);
    let mut cost = JobCost {
        per_hour,
        tasks,
        total,
        driver: price.driver().map_or(CostDriver::Cores, |part| part.what),
        headline: headline(request, &price, each, tasks),
        sentences: explain_driver(&price).into_iter().collect(),
        cheaper: cheaper::find_cheaper(request, place, &price),
        of_left: None,
        unit: price.unit,
        parts: price.parts,
        notes: price.notes,
    };
    cost.sentences.extend(explain_years(&cost, place));
    if let (Some(total), Some(left)) = (total, left) {
        cost.of_left = (left > 0.0).then(|| total / left);
        cost.sentences.push(explain_share_of_left(total, left, &cost.unit, place.site.family));
    }
    cost
}

fn headline(request: &JobRequest, price: &HourlyPrice, each: Option<f64>, tasks: u64) -> String {
    let per_hour = format_with_unit(price.per_hour(), &price.unit);
    let Some((each, minutes)) = each.zip(request.minutes) else {
        return format!("It costs {per_hour} for each hour that it runs.");
    };
    let time = format::minutes(minutes);
    if tasks > 1 {
        let all = format_with_unit(each * to_f64(tasks), &price.unit);
        return format!(
            "It costs up to {all}: each of its {} pays for itself, {} for the {time} that it asks for.",
            format::count(tasks, "task"),
            format::amount(each),
        );
    }
    format!(
        "It costs {per_hour} for each hour, {} if it takes the whole {time} that it asks for.",
        format::amount(each)
    )
}

/// An amount with its unit: one billing hour, two billing hours.
fn format_with_unit(number: f64, unit: &str) -> String {
    let words = format::amount(number);
    let unit = if words == "1" { unit.strip_suffix('s').unwrap_or(unit) } else { unit };
    format!("{words} {unit}")
}

/// What sets the price, where more than one thing might have.
fn explain_driver(price: &HourlyPrice) -> Option<String> {
    let driver = price.driver()?;
    let others: Vec<&CostPart> =
        price.parts.iter().filter(|part| part.what != driver.what).collect();
    let paid = format::amount(driver.counts);
    match driver.what {
        CostDriver::Nodes => {
            Some(format!("Jobs get whole nodes here, so it pays for {}.", driver.words))
        }
        CostDriver::Cores | CostDriver::Gpus if others.is_empty() => None,
        CostDriver::Cores if !others.iter().any(|part| part.what == CostDriver::Gpus) => {
            Some("You pay for the cores: the memory you ask for comes with them.".to_owned())
        }
        CostDriver::Gpus => Some(
            "You pay for the GPUs: the cores and the memory you ask for come with them.".to_owned(),
        ),
        CostDriver::Memory if price.unit == "core hours" => {
            let cores = others.iter().find(|part| part.what == CostDriver::Cores)?;
            Some(format!(
                "You pay for {paid} cores because of the memory you ask for: {} count as much as {paid} cores, and \
                 you ask for {}.",
                driver.words, cores.words
            ))
        }
        _ => {
            let others: Vec<String> = others
                .iter()
                .map(|part| format!("{} {}", part.words, format::amount(part.counts)))
                .collect();
            let what = driver.what.noun();
            Some(format!(
                "You pay for the {what}: {} count {paid} in an hour, {}.",
                driver.words,
                others.join(", ")
            ))
        }
    }
}

/// Where shares are told in years.
fn explain_years(cost: &JobCost, place: &ComposeContext) -> Option<String> {
    let total = cost.total?;
    let years = total / (365.0 * 24.0);
    let unit = cost.unit.strip_suffix(" hours")?;
    let told = place.site.units.period == SiteAllocationPeriod::AprilMarch
        && unit != "node"
        && years >= 0.001;
    told.then(|| {
        format!("Shares are given in years: this is {} {unit} years.", format::amount(years))
    })
}

fn explain_share_of_left(total: f64, left: f64, unit: &str, family: SiteFamily) -> String {
    let has = format::amount(left.max(0.0));
    if total > left {
        let aside = if family == SiteFamily::Nris { "sets aside" } else { "may use" };
        return format!(
            "Your group has {has} {unit} left, and this {aside} {}. It would be refused, or wait until there is more.",
            format::amount(total)
        );
    }
    let percent = format::percent(total / left);
    format!("That is {percent} of the {has} {unit} that your group has left.")
}

impl CostDriver {
    /// As people name it.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Cores => "cores",
            Self::Memory => "memory",
            Self::Gpus => "GPUs",
            Self::Nodes => "nodes",
        }
    }
}
