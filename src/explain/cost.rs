//! Estimates what a job costs before it is submitted, in the centre's own unit: what drives the price, and what would
//! be cheaper. Says what is unknown about a site and never guesses.

mod cheaper;
mod price;
#[cfg(test)]
mod tests;

pub use self::price::reference_units;
use self::price::{JobHourlyCost, hourly_price, to_f64};
use super::job_types;
use crate::format;
use crate::recipes::context::ComposeCluster;
use crate::recipes::request::{JobRequest, RequestField};
use crate::sites::{SiteAllocationPeriod, SiteFamily};

#[derive(Debug, Clone, PartialEq)]
pub struct JobCostEstimate {
    /// The unit as shown: `billing hours`, `RGU hours`.
    pub unit: String,
    /// The cost of one task per hour.
    pub per_hour: f64,
    /// Tasks, each charged separately: 1 outside an array.
    pub tasks: u64,
    /// The cost if all tasks run up to their time limit; none without a time limit.
    pub total: Option<f64>,
    /// What each part of the request costs per hour.
    pub parts: Vec<CostPart>,
    /// The part that sets the price.
    pub driver: CostDriver,
    /// One sentence, for a heading.
    pub headline: String,
    /// Further sentences: what sets the price, how much of the group's remaining quota it takes.
    pub sentences: Vec<String>,
    /// What is unknown, one sentence each.
    pub notes: Vec<String>,
    /// Cheaper requests, cheapest first.
    pub cheaper: Vec<CheaperRequest>,
    /// The total as a fraction of the group's remaining quota, if known: 0.03 is three percent.
    pub of_left: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CostPart {
    pub what: CostDriver,
    /// The requested amount: `40 GB`.
    pub words: String,
    /// Units per hour.
    pub counts: f64,
}

/// A part of a request that can set the price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CostDriver {
    Cores,
    Memory,
    Gpus,
    Nodes,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CheaperRequest {
    pub sentence: String,
    /// What to change, as typed into the form.
    pub changes: Vec<(RequestField, String)>,
    /// The new cost per hour.
    pub per_hour: f64,
}

/// The remaining quota that the site's tool reports for an account; none if it reports none.
pub fn remaining_quota(report: &crate::sites::cost::AllocationBalanceReport, account: &str) -> Option<f64> {
    report.accounts.iter().find(|known| known.account == account)?.available()
}

/// Estimates the cost of a request. `left` is the group's remaining quota, in the quota's unit.
pub fn estimate_cost(request: &JobRequest, cluster: &ComposeCluster, left: Option<f64>) -> JobCostEstimate {
    let price = hourly_price(request, cluster);
    let per_hour = price.per_hour();
    let tasks = request.array.as_ref().and_then(job_types::task_count).unwrap_or(1).max(1);
    let hours = request.minutes.map(|minutes| f64::from(minutes) / 60.0);
    let total = hours.map(|hours| per_hour * hours * to_f64(tasks));
    let left = left.filter(|left| left.is_finite() && price.is_sites_unit);
    let mut cost = JobCostEstimate {
        per_hour,
        tasks,
        total,
        driver: price.driver().map_or(CostDriver::Cores, |part| part.what),
        headline: headline(&price, hours, tasks),
        sentences: explain_driver(&price).into_iter().collect(),
        cheaper: cheaper::find_cheaper(request, cluster, &price),
        of_left: None,
        unit: price.unit,
        parts: price.parts,
        notes: price.notes,
    };
    cost.sentences.extend(explain_years(&cost, cluster));
    if let (Some(total), Some(left)) = (total, left) {
        cost.of_left = (left > 0.0).then(|| total / left);
        cost.sentences.push(explain_share_of_left(total, left, &cost.unit, cluster.site.family));
    }
    cost
}

fn headline(price: &JobHourlyCost, hours: Option<f64>, tasks: u64) -> String {
    let over = |hours: f64| {
        let charged = format_with_unit(price.per_hour() * hours, &price.unit);
        match price.separate_gpus {
            0 => charged,
            gpus => format!("{charged} and {}", format_with_unit(to_f64(gpus) * hours, "GPU hours")),
        }
    };
    let Some(hours) = hours else {
        return format!("{} for each hour the job runs.", over(1.0));
    };
    if tasks > 1 {
        let each = if price.separate_gpus == 0 { format::fine_amount(price.per_hour() * hours) } else { over(hours) };
        let count = format::count(tasks, "task");
        return format!("At most {} with this time limit: {count} with {each} each.", over(hours * to_f64(tasks)));
    }
    format!("{} for each hour the job runs: at most {} with this time limit.", over(1.0), over(hours))
}

/// An amount with its unit: one billing hour, two billing hours.
fn format_with_unit(number: f64, unit: &str) -> String {
    let words = format::fine_amount(number);
    let unit = if words == "1" { unit.strip_suffix('s').unwrap_or(unit) } else { unit };
    format!("{words} {unit}")
}

/// Explains what sets the price, if there is more than one candidate.
fn explain_driver(price: &JobHourlyCost) -> Option<String> {
    let driver = price.driver()?;
    let others: Vec<&CostPart> = price.parts.iter().filter(|part| part.what != driver.what).collect();
    let paid = format::fine_amount(driver.counts);
    match driver.what {
        CostDriver::Nodes => {
            Some(format!("This cluster allocates whole nodes, so you're charged for {}.", driver.words))
        }
        CostDriver::Cores | CostDriver::Gpus if others.is_empty() => None,
        CostDriver::Cores if !others.iter().any(|part| part.what == CostDriver::Gpus) => {
            Some("You're charged for the cores; the memory you request is included.".to_owned())
        }
        CostDriver::Gpus => {
            Some("You're charged for the GPUs; the cores and memory you request are included.".to_owned())
        }
        CostDriver::Memory if price.unit == "core hours" => {
            let cores = others.iter().find(|part| part.what == CostDriver::Cores)?;
            Some(format!(
                "You're charged for {paid} cores because of the memory you request: {} counts as much as {paid} cores, and \
                 you request {}.",
                driver.words, cores.words
            ))
        }
        _ => {
            let others: Vec<String> =
                others.iter().map(|part| format!("{} {}", part.words, format::fine_amount(part.counts))).collect();
            let what = driver.what.noun();
            Some(format!(
                "You're charged for the {what}: per hour, {} cost {paid}, {}.",
                driver.words,
                others.join(", ")
            ))
        }
    }
}

/// For sites that state allocations in years.
fn explain_years(cost: &JobCostEstimate, cluster: &ComposeCluster) -> Option<String> {
    let total = cost.total?;
    let years = total / (365.0 * 24.0);
    let unit = cost.unit.strip_suffix(" hours")?;
    let is_in_years = cluster.site.units.period == SiteAllocationPeriod::AprilMarch && unit != "node" && years >= 0.001;
    is_in_years
        .then(|| format!("Allocations are granted in years: this is {} {unit} years.", format::fine_amount(years)))
}

fn explain_share_of_left(total: f64, left: f64, unit: &str, family: SiteFamily) -> String {
    let has = format::fine_amount(left.max(0.0));
    if total > left {
        let aside = if family == SiteFamily::Nris { "reserves" } else { "may use" };
        return format!(
            "Your group has {has} {unit} left, and this job {aside} {}. It would be rejected, or wait until there's more.",
            format::fine_amount(total)
        );
    }
    let percent = format::percent(total / left);
    format!("That's {percent} of the {has} {unit} your group has left.")
}

impl CostDriver {
    /// The display name.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Cores => "cores",
            Self::Memory => "memory",
            Self::Gpus => "GPUs",
            Self::Nodes => "nodes",
        }
    }
}
