//! The usage summary: key figures, chart, allocations, tables. The rendered HTML is cached for as long as everything
//! it was rendered from stays the same: people return to the page far more often than new usage is read.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use askama::Template;

use crate::clock::Day;
use crate::domain::{GroupId, PersonId};
use crate::error::AppError;
use crate::explain::GlossaryTerm;
use crate::store::allocations::Allocation;
use crate::usage::figures::{UsageFigures, is_selected};
use crate::usage::{SiteUnit, UsageMeasure, UsageTotals};
use crate::web::http::page_frame::render;
use crate::web::pages::groups::usage::allocation_card::{AllocationCard, build_allocation_cards};
use crate::web::pages::groups::usage::breakdown_tables::{BreakdownTable, breakdown_tables};
use crate::web::pages::groups::usage::chart::UsageChart;
use crate::web::pages::groups::usage::job_search::WITH_GPUS;
use crate::web::pages::groups::usage::table_cells::{UsageTableCells, waste_noun};
use crate::web::pages::groups::usage::tables::{self, UsageTable};
use crate::web::pages::groups::usage::{UsagePageData, formatting, usage_path};

const MAX_CACHED: usize = 64;
/// Instead of a figure of days of which nothing was read: 0 would be wrong.
const NOT_LOADED: &str = "Not loaded yet";

/// The viewer, the group, and the filter.
type UsageSummaryKey = (PersonId, GroupId, String);

#[derive(Default)]
pub struct UsageSummaryCache(Mutex<HashMap<UsageSummaryKey, CachedUsageSummary>>);

/// A rendered summary, and what it was rendered from.
struct CachedUsageSummary {
    /// The same allocation in memory means the same figures: same days, same accounts, same viewer.
    figures: Weak<UsageFigures>,
    units: Vec<Option<SiteUnit>>,
    allocations: Vec<Allocation>,
    today: Day,
    html: RenderedUsageHtml,
}

/// A template's output, already escaped.
#[derive(Clone)]
pub struct RenderedUsageHtml(Arc<str>);

impl fmt::Display for RenderedUsageHtml {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for RenderedUsageHtml {}

impl UsageSummaryCache {
    pub fn get_or_render(&self, data: &UsagePageData) -> Result<RenderedUsageHtml, AppError> {
        let key = (data.view.viewer, data.group.id, data.filter.to_query_string(&[]));
        let units: Vec<_> = data.view.accounts.iter().map(|account| account.details.site_unit()).collect();
        let is_same = |cached: &&CachedUsageSummary| {
            cached.figures.as_ptr() == Arc::as_ptr(&data.figures)
                && cached.units == units
                && cached.allocations == data.allocations
                && cached.today == data.filter.today
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = all.get(&key).filter(is_same) {
            return Ok(cached.html.clone());
        }
        drop(all);
        let html = RenderedUsageHtml(render(&UsageSummaryFragment::new(data, &key.2))?.into());
        let cached = CachedUsageSummary {
            figures: Arc::downgrade(&data.figures),
            units,
            allocations: data.allocations.clone(),
            today: data.filter.today,
            html: html.clone(),
        };
        all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_CACHED {
            all.clear();
        }
        all.insert(key, cached);
        Ok(html)
    }
}

#[derive(Template)]
#[template(path = "groups/usage/summary.html")]
struct UsageSummaryFragment<'a> {
    data: &'a UsagePageData,
    /// The page's path.
    base: String,
    /// The filter as a query string.
    query: &'a str,
    facts: Vec<UsageKeyFigure>,
    chart: UsageChart,
    allocation_cards: Vec<AllocationCard>,
    /// No rows if there is only one account.
    accounts: UsageTable,
    members: UsageTable,
    kinds: UsageTable,
    breakdowns: Vec<BreakdownTable>,
    /// How the period compares with the one before.
    comparison: String,
    waste_noun: &'static str,
    totals: UsageTableCells,
    site_unit: Option<String>,
}

struct UsageKeyFigure {
    label: String,
    /// What the label means, where it needs explaining.
    term: Option<GlossaryTerm>,
    value: String,
    /// The exact value, for programs and tests; empty where the text is exact.
    exact: String,
    hint: String,
    /// The jobs behind the figure; empty for none.
    href: String,
    /// The link's text, for PIs and for other members.
    link: (&'static str, &'static str),
}

impl<'a> UsageSummaryFragment<'a> {
    fn new(data: &'a UsagePageData, query: &'a str) -> Self {
        let (filter, figures, group) = (&data.filter, &*data.figures, data.group.id);
        let totals = UsageTableCells::from_sums(&figures.totals, filter.choice.measure);
        let site_unit = filter.unit.map(|_| formatting::measure_label(UsageMeasure::Site, filter.unit));
        Self {
            data,
            base: usage_path(group),
            query,
            facts: key_figures(data, &totals, site_unit.as_deref(), &figures.totals),
            chart: UsageChart::draw(figures, group, filter),
            allocation_cards: build_allocation_cards(&data.view, &data.allocations, filter.today),
            accounts: tables::account_table(figures, group, filter, data.view.is_leader),
            members: tables::member_table(figures, group, filter),
            kinds: tables::kind_table(figures, group, filter),
            breakdowns: breakdown_tables(figures, group, filter, data.view.is_leader),
            comparison: figures.comparison(),
            waste_noun: waste_noun(filter.choice.measure),
            totals,
            site_unit,
        }
    }
}

const fn unit_term(unit: SiteUnit) -> GlossaryTerm {
    match unit {
        SiteUnit::Billing => GlossaryTerm::BillingHours,
        SiteUnit::ReferenceGpus => GlossaryTerm::RguHours,
    }
}

fn key_figures(
    data: &UsagePageData,
    totals: &UsageTableCells,
    site_unit: Option<&str>,
    sums: &UsageTotals,
) -> Vec<UsageKeyFigure> {
    let behind = |outcome: &str| tables::jobs_href(data.group.id, &data.filter, &[("outcome", outcome)]);
    let fact = |label: &str, value: &str, exact: f64, hint: String, href: String| UsageKeyFigure {
        label: label.to_owned(),
        term: None,
        value: value.to_owned(),
        exact: formatting::format_exact(exact),
        hint,
        href,
        link: ("View jobs", "View your jobs"),
    };
    let core_hours = fact("Core hours", &totals.cores, UsageMeasure::Cores.hours(sums), String::new(), behind(""));
    let mut all = vec![UsageKeyFigure { term: Some(GlossaryTerm::CoreHours), ..core_hours }];
    if sums.gpu_s > 0 {
        let used = UsageMeasure::Gpus.hours(sums);
        let with_gpus = tables::jobs_href(data.group.id, &data.filter, &[("with", WITH_GPUS)]);
        let gpu_hours = fact("GPU hours", &totals.gpus, used, totals.models.clone(), with_gpus);
        all.push(UsageKeyFigure { term: Some(GlossaryTerm::GpuHours), ..gpu_hours });
    }
    if let Some(unit) = site_unit {
        let used = UsageMeasure::Site.hours(sums);
        all.push(UsageKeyFigure {
            term: data.filter.unit.map(unit_term),
            ..fact(unit, &totals.site, used, "the centre's own unit".to_owned(), String::new())
        });
    }
    let ended = "in this period".to_owned();
    all.push(UsageKeyFigure {
        exact: sums.jobs.to_string(),
        ..fact("Jobs ended", &totals.jobs, 0.0, ended, behind("ended"))
    });
    let lost = totals.lost_summary.clone();
    let words_only = |label: &str, value: &str, hint: String, href: String| UsageKeyFigure {
        exact: String::new(),
        ..fact(label, value, 0.0, hint, href)
    };
    let lost_href = if lost.is_empty() { String::new() } else { behind("lost") };
    all.push(UsageKeyFigure {
        term: Some(GlossaryTerm::SuccessRate),
        link: ("View unsuccessful jobs", "View your unsuccessful jobs"),
        ..words_only("Success rate", &totals.success, lost, lost_href)
    });
    let half = "half of the jobs waited less".to_owned();
    all.push(UsageKeyFigure {
        term: Some(GlossaryTerm::MedianWait),
        ..words_only("Median wait", &totals.wait, half, String::new())
    });
    let choice = &data.filter.choice;
    let mut selected = data.view.accounts.iter().filter(|account| is_selected(account, choice));
    if !selected.any(|account| account.has_read(choice.from, choice.until)) {
        for figure in &mut all {
            NOT_LOADED.clone_into(&mut figure.value);
            for text in [&mut figure.exact, &mut figure.hint, &mut figure.href] {
                text.clear();
            }
        }
    }
    all
}
