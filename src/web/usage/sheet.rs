//! The figures of a choice as a page shows them: facts, chart, allocations, tables. What was drawn is kept while all that
//! it was drawn from stays the same: people come back to a page far more often than anything is read.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use askama::Template;

use super::super::page::render;
use super::burn::{Burn, burns};
use super::chart::Chart;
use super::rows::{self, Cells, Table};
use super::search::GPUS;
use super::{Sight, words};
use crate::clock::Day;
use crate::domain::{GroupId, PersonId};
use crate::error::AppError;
use crate::store::allocations::Allocation;
use crate::usage::figures::Figures;
use crate::usage::{Measure, SiteUnit, Sums};

/// So many are kept at most.
const MOST: usize = 64;

/// Whose sheet of which group, and what is looked at in it.
type Key = (PersonId, GroupId, String);

/// Sheets that were drawn.
#[derive(Default)]
pub struct Sheets(Mutex<HashMap<Key, Kept>>);

/// A drawn sheet, and all that it was drawn from.
struct Kept {
    /// The same place in memory means the same figures, made of the same days of the same accounts for the same viewer.
    figures: Weak<Figures>,
    units: Vec<Option<SiteUnit>>,
    allocations: Vec<Allocation>,
    today: Day,
    html: Html,
}

/// What a template made; it escaped what it shows.
#[derive(Clone)]
pub struct Html(Arc<str>);

impl fmt::Display for Html {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Html {}

impl Sheets {
    /// The sheet of what is looked at.
    pub fn get(&self, sight: &Sight) -> Result<Html, AppError> {
        let key = (sight.view.me, sight.group.id, sight.looked.query(&[]));
        let units: Vec<_> = sight.view.accounts.iter().map(|one| one.facts.unit()).collect();
        let is_same = |kept: &&Kept| {
            kept.figures.as_ptr() == Arc::as_ptr(&sight.figures)
                && kept.units == units
                && kept.allocations == sight.allocations
                && kept.today == sight.looked.today
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = all.get(&key).filter(is_same) {
            return Ok(kept.html.clone());
        }
        drop(all);
        let html = Html(render(&Sheet::of(sight, &key.2))?.into());
        let kept = Kept {
            figures: Arc::downgrade(&sight.figures),
            units,
            allocations: sight.allocations.clone(),
            today: sight.looked.today,
            html: html.clone(),
        };
        all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(key, kept);
        Ok(html)
    }
}

#[derive(Template)]
#[template(path = "usage/sheet.html")]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, for the template")]
struct Sheet<'a> {
    /// The address of the page.
    base: String,
    /// What is looked at, as a part of an address.
    query: &'a str,
    leads: bool,
    when: String,
    days: String,
    facts: Vec<Fact>,
    chart: Chart,
    burns: Vec<Burn>,
    /// By account; no rows if there is one only.
    accounts: Table,
    members: Table,
    kinds: Table,
    totals: Cells,
    site_unit: Option<String>,
    has_gpus: bool,
    is_empty: bool,
    /// Whether days are missing in all this.
    is_partly_read: bool,
}

/// A key figure.
struct Fact {
    label: String,
    value: String,
    /// The same exactly, for programs and tests; empty where words say all.
    exact: String,
    hint: String,
    /// The jobs behind it; empty for none.
    href: String,
    /// The words of that link, for those who lead and for others.
    link: (&'static str, &'static str),
}

impl<'a> Sheet<'a> {
    fn of(sight: &Sight, query: &'a str) -> Self {
        let (looked, figures, group) = (&sight.looked, &*sight.figures, sight.group.id);
        let totals = Cells::of(&figures.totals);
        let site_unit = looked.unit.map(|_| words::measure(Measure::Site, looked.unit));
        Self {
            base: super::address(group),
            query,
            leads: sight.view.leads,
            when: looked.period.words(),
            days: looked.days(),
            facts: facts(sight, &totals, site_unit.as_deref(), &figures.totals),
            chart: Chart::of(figures, group, looked),
            burns: burns(&sight.view, &sight.allocations, looked.today),
            accounts: rows::accounts(figures, group, looked, sight.view.leads),
            members: rows::members(figures, group, looked),
            kinds: rows::kinds(figures, group, looked),
            is_empty: figures.totals.is_empty(),
            is_partly_read: figures.missing > 0,
            has_gpus: figures.totals.gpu_s > 0,
            totals,
            site_unit,
        }
    }
}

fn facts(sight: &Sight, totals: &Cells, site_unit: Option<&str>, sums: &Sums) -> Vec<Fact> {
    let behind =
        |outcome: &str| rows::jobs_href(sight.group.id, &sight.looked, &[("outcome", outcome)]);
    let fact = |label: &str, value: &str, exact: f64, hint: String, href: String| Fact {
        label: label.to_owned(),
        value: value.to_owned(),
        exact: words::exact(exact),
        hint,
        href,
        link: ("The jobs", "Your jobs"),
    };
    let mut all = vec![fact(
        "Core hours",
        &totals.cores,
        Measure::Cores.hours(sums),
        String::new(),
        behind(""),
    )];
    if sums.gpu_s > 0 {
        let used = Measure::Gpus.hours(sums);
        let with_gpus = rows::jobs_href(sight.group.id, &sight.looked, &[("with", GPUS)]);
        all.push(fact("GPU hours", &totals.gpus, used, totals.models.clone(), with_gpus));
    }
    if let Some(unit) = site_unit {
        let used = Measure::Site.hours(sums);
        all.push(fact(unit, &totals.site, used, "the site's own unit".to_owned(), String::new()));
    }
    let ended = "that ended in this time".to_owned();
    all.push(Fact {
        exact: sums.jobs.to_string(),
        ..fact("Jobs", &totals.jobs, 0.0, ended, behind("ended"))
    });
    let lost = totals.lost_words();
    let words_only = |label: &str, value: &str, hint: String, href: String| Fact {
        exact: String::new(),
        ..fact(label, value, 0.0, hint, href)
    };
    let lost_href = if lost.is_empty() { String::new() } else { behind("lost") };
    all.push(Fact {
        link: ("Those that did not", "Yours that did not"),
        ..words_only("Ended well", &totals.success, lost, lost_href)
    });
    let half = "half of the jobs waited less".to_owned();
    all.push(words_only("Median wait", &totals.wait, half, String::new()));
    all
}
