//! The page of a group's use, and the part of it that renews itself.

use askama::Template;

use super::super::Answer;
use super::super::extract::{Context, Me, Path, Query};
use super::super::page::{Page, Section, show};
use super::super::standing::{self, StandingPart};
use super::ask::Option3;
use super::burn::{Burn, burns};
use super::chart::Chart;
use super::notes::{Note, notes};
use super::rows::{self, Cells, Table};
use super::{Pairs, Sight, note_names, sight, words};
use crate::auth::Action;
use crate::domain::GroupId;
use crate::usage::Measure;

#[derive(Template)]
#[template(path = "usage/page.html")]
struct UsePage {
    page: Page,
    group: GroupId,
    name: String,
    may_manage: bool,
    has_accounts: bool,
    filters: Filters,
    part: Part,
    standing: StandingPart,
}

impl UsePage {
    /// Where accounts are chosen.
    fn settings(&self) -> String {
        format!("/groups/{}/accounts", self.group)
    }
}

/// The form above the figures.
struct Filters {
    periods: Vec<Option3>,
    steps: Vec<Option3>,
    measures: Vec<Option3>,
    accounts: Vec<Option3>,
}

/// Everything that changes when something was read.
#[derive(Template)]
#[template(path = "usage/part.html")]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, for the template")]
struct Part {
    /// The address of the page.
    base: String,
    /// What is looked at, as a part of an address.
    query: String,
    leads: bool,
    notes: Vec<Note>,
    when: String,
    days: String,
    facts: Vec<Fact>,
    chart: Chart,
    burns: Vec<Burn>,
    members: Table,
    kinds: Table,
    totals: Cells,
    site_unit: Option<String>,
    has_gpus: bool,
    is_empty: bool,
    /// Whether days are missing in all this.
    is_partly_read: bool,
}

/// It escapes what it shows by itself.
impl askama::filters::HtmlSafe for Part {}

/// A key figure.
struct Fact {
    label: String,
    value: String,
    /// The same exactly, for programs and tests; empty where words say all.
    exact: String,
    hint: String,
    /// The jobs behind it; empty for none.
    href: String,
}

/// The page.
pub async fn get(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Query(pairs): Query<Pairs>,
) -> Answer {
    me.may(Action::SeeUsage(group))?;
    let (sight, _) = sight(&context, &me, group, pairs).await?;
    note_names(&context, &me, &sight.view).await?;
    let looked = &sight.looked;
    let title = format!("{}: use", sight.group.name);
    show(&UsePage {
        page: Page::for_person(&context, &me.0, &title, Section::Groups),
        group,
        name: sight.group.name.clone(),
        may_manage: me.may(Action::ManageUsage(group)).is_ok(),
        has_accounts: !sight.view.accounts.is_empty(),
        filters: Filters {
            periods: looked.periods(),
            steps: looked.steps(),
            measures: looked.measures(),
            accounts: looked.accounts(&sight.view),
        },
        part: part_of(&sight),
        standing: standing::part(&context, &me, &sight.view).await?,
    })
}

/// The part that renews itself.
pub async fn part(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Query(pairs): Query<Pairs>,
) -> Answer {
    me.may(Action::SeeUsage(group))?;
    let (sight, _) = sight(&context, &me, group, pairs).await?;
    note_names(&context, &me, &sight.view).await?;
    show(&part_of(&sight))
}

fn part_of(sight: &Sight) -> Part {
    let looked = &sight.looked;
    let figures = sight.figures();
    let group = sight.group.id;
    let totals = Cells::of(&figures.totals);
    let site_unit = looked.unit.map(|_| words::measure(Measure::Site, looked.unit));
    let has_gpus = figures.totals.gpu_s > 0;
    Part {
        base: super::address(group),
        query: looked.query(&[]),
        leads: sight.view.leads,
        notes: notes(&sight.view, &figures, looked),
        when: looked.period.words(),
        days: looked.days(),
        facts: facts(sight, &totals, site_unit.as_deref(), &figures.totals),
        chart: Chart::of(&figures, looked.choice.measure, looked.unit, looked.choice.step),
        burns: burns(&sight.view, &sight.allocations, looked.today),
        members: rows::members(&figures, group, looked),
        kinds: rows::kinds(&figures, group, looked),
        is_empty: figures.totals.is_empty(),
        is_partly_read: figures.missing > 0,
        totals,
        site_unit,
        has_gpus,
    }
}

fn facts(
    sight: &Sight,
    totals: &Cells,
    site_unit: Option<&str>,
    sums: &crate::usage::Sums,
) -> Vec<Fact> {
    let behind =
        |outcome: &str| rows::jobs_href(sight.group.id, &sight.looked, &[("outcome", outcome)]);
    let fact = |label: &str, value: &str, exact: f64, hint: String, href: String| Fact {
        label: label.to_owned(),
        value: value.to_owned(),
        exact: words::exact(exact),
        hint,
        href,
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
        all.push(fact("GPU hours", &totals.gpus, used, totals.models.clone(), behind("")));
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
    let lost = totals.lost_note.clone();
    let words_only = |label: &str, value: &str, hint: String, href: String| Fact {
        exact: String::new(),
        ..fact(label, value, 0.0, hint, href)
    };
    let lost_href = if lost.is_empty() { String::new() } else { behind("lost") };
    all.push(words_only("Ended well", &totals.success, lost, lost_href));
    let half = "half of the jobs waited less".to_owned();
    all.push(words_only("Median wait", &totals.wait, half, String::new()));
    all
}
