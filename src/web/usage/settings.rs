//! What those who lead a group decide about its use: which accounts are the group's, and what was granted to them.

use std::collections::BTreeSet;

use askama::Template;
use axum::http::StatusCode;
use serde::Deserialize;

use super::super::Answer;
use super::super::extract::{Context, Form, Me, Path, Query};
use super::super::flash::{self, Flash};
use super::super::form::{Problems, shown_again};
use super::super::page::{PROBLEMS, Page, Section, show_with};
use super::Pairs;
use super::ask::Option3;
use super::words::{amount, unit};
use crate::auth::Action;
use crate::clock::Day;
use crate::domain::{AllocationId, ClusterId, GroupId};
use crate::error::AppError;
use crate::sites::Period;
use crate::store;
use crate::store::allocations::Allocation;
use crate::store::clusters::Cluster;
use crate::usage::{Grant, Measure, NotSet, Offer, SiteUnit, Unit, period_of};

#[derive(Template)]
#[template(path = "usage/settings.html")]
struct SettingsPage {
    page: Page,
    group: GroupId,
    name: String,
    clusters: Vec<Choices>,
    has_accounts: bool,
    granted: Vec<Granted>,
    /// Which of them the form changes; none: it adds one.
    changed: Option<AllocationId>,
    form: GrantForm,
    accounts: Vec<Option3>,
    units: Vec<Option3>,
    account_problems: Problems,
    problems: Problems,
}

/// The accounts of a cluster to choose from.
struct Choices {
    title: String,
    /// Value, name, whether it is the group's.
    accounts: Vec<Option3>,
}

/// An allocation in the list.
struct Granted {
    id: AllocationId,
    account: String,
    cluster: String,
    amount: String,
    period: String,
    is_over: bool,
}

/// What was granted, as typed.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct GrantForm {
    account: String,
    unit: String,
    amount: String,
    begins: String,
    ends: String,
}

/// What the address asks for.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Asked {
    /// Which allocation is to be changed.
    change: Option<AllocationId>,
}

/// What a form left behind.
#[derive(Default)]
struct State {
    changed: Option<AllocationId>,
    form: Option<GrantForm>,
    account_problems: Problems,
    problems: Problems,
}

/// The page.
pub async fn get(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Query(asked): Query<Asked>,
) -> Answer {
    me.may(Action::ManageUsage(group))?;
    page(&context, &me, group, State { changed: asked.change, ..State::default() }).await
}

/// Says which accounts are the group's.
pub async fn set_accounts(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Form(pairs): Form<Pairs>,
) -> Answer {
    me.may(Action::ManageUsage(group))?;
    let offers = context.app.usage.offers(me.0.person.id, group).await?;
    let values = |wanted: &str| -> BTreeSet<&str> {
        pairs.iter().filter(|(key, _)| key == wanted).map(|(_, value)| value.as_str()).collect()
    };
    // What was ticked when the form was made: another leader may have changed something since.
    let (chosen, was) = (values("account"), values("was"));
    let added: Option<Vec<(ClusterId, String)>> =
        chosen.difference(&was).map(|value| offered(&offers, value)).collect();
    let removed: Vec<(ClusterId, String)> =
        was.difference(&chosen).filter_map(|value| offered(&offers, value)).collect();
    let done = match added {
        Some(added) => {
            context.app.usage.change_accounts(&me.actor(&context), group, &added, &removed).await
        }
        None => Err(NotSet::NoSuchAccount),
    };
    match done {
        Ok(()) => Ok(flash::redirect(context, &address(group), Flash::UsageAccountsSet)),
        Err(NotSet::Auth(error)) => Err(error.into()),
        Err(error) => {
            let account_problems = Problems::one("accounts", error);
            page(&context, &me, group, State { account_problems, ..State::default() }).await
        }
    }
}

/// Adds what was granted.
pub async fn add(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Form(form): Form<GrantForm>,
) -> Answer {
    set(context, me, group, None, form).await
}

/// Says anew what was granted.
pub async fn change(
    context: Context,
    me: Me,
    Path((group, allocation)): Path<(GroupId, AllocationId)>,
    Form(form): Form<GrantForm>,
) -> Answer {
    set(context, me, group, Some(allocation), form).await
}

async fn set(
    context: Context,
    me: Me,
    group: GroupId,
    changed: Option<AllocationId>,
    form: GrantForm,
) -> Answer {
    me.may(Action::ManageUsage(group))?;
    let offers = context.app.usage.offers(me.0.person.id, group).await?;
    let mut problems = Problems::default();
    if let Some(grant) = read(&form, &offers, &mut problems) {
        let done =
            if changed.is_some() { Flash::AllocationChanged } else { Flash::AllocationAdded };
        match context.app.usage.set_allocation(&me.actor(&context), group, changed, &grant).await {
            Ok(()) => return Ok(flash::redirect(context, &address(group), done)),
            Err(NotSet::Auth(error)) => return Err(error.into()),
            Err(error) => problems.add(field(&error), error),
        }
    }
    let form = GrantForm {
        account: shown_again(&form.account),
        unit: shown_again(&form.unit),
        amount: shown_again(&form.amount),
        begins: shown_again(&form.begins),
        ends: shown_again(&form.ends),
    };
    let state = State { changed, form: Some(form), problems, ..State::default() };
    page(&context, &me, group, state).await
}

/// Takes an allocation away.
pub async fn remove(
    context: Context,
    me: Me,
    Path((group, allocation)): Path<(GroupId, AllocationId)>,
) -> Answer {
    me.may(Action::ManageUsage(group))?;
    context.app.usage.remove_allocation(&me.actor(&context), group, allocation).await?;
    Ok(flash::redirect(context, &address(group), Flash::AllocationRemoved))
}

fn address(group: GroupId) -> String {
    format!("/groups/{group}/accounts")
}

/// The account behind `slug/account`.
fn offered(offers: &[Offer], value: &str) -> Option<(ClusterId, String)> {
    let (slug, name) = value.split_once('/')?;
    let offer = offers.iter().find(|offer| offer.slug == slug)?;
    offer.accounts.iter().any(|(known, _)| known == name).then(|| (offer.cluster, name.to_owned()))
}

/// The part of the form that a problem is about.
const fn field(error: &NotSet) -> &'static str {
    match error {
        NotSet::NoSuchUnit => "unit",
        NotSet::Amount | NotSet::Twice => "amount",
        NotSet::Period => "ends",
        NotSet::NoSuchAccount | NotSet::TooMany | NotSet::Auth(_) => "account",
    }
}

fn read(form: &GrantForm, offers: &[Offer], problems: &mut Problems) -> Option<Grant> {
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
    let years = Day::read("2000-01-01")?..=Day::read("2100-12-31")?;
    let day = Day::read(text).filter(|day| years.contains(day));
    if day.is_none() {
        problems.add(field, "Enter a day like 2026-04-01.");
    }
    day
}

async fn page(context: &Context, me: &Me, group: GroupId, state: State) -> Answer {
    let offers = context.app.usage.offers(me.0.person.id, group).await?;
    let mut db = context.app.store.read().await?;
    let found = store::groups::get(&mut db, group).await?.ok_or(AppError::NotFound)?;
    let allocations = store::allocations::of_group(&mut db, group).await?;
    let clusters = store::clusters::list(&mut db).await?;
    drop(db);
    let today = Day::of(context.app.clock.now());
    let site_unit = |id: ClusterId| {
        offers.iter().find(|offer| offer.cluster == id).and_then(|offer| SiteUnit::of(&offer.site))
    };
    let granted = allocations.iter().map(|one| {
        let counted = Unit::from_word(&one.unit).unwrap_or(Unit::ALL[0]);
        let title = clusters.iter().find(|known| known.id == one.cluster_id);
        Granted {
            id: one.id,
            account: one.account.clone(),
            cluster: title.map(|known| known.title.clone()).unwrap_or_default(),
            amount: format!("{} {}", amount(one.amount), unit(counted, site_unit(one.cluster_id))),
            period: format!("{} to {}", one.begins().words(), one.ends().words()),
            is_over: one.ends() < today,
        }
    });
    let chosen = |offer: &Offer| offer.accounts.iter().any(|(_, is_chosen)| *is_chosen);
    let changed = match state.changed {
        Some(id) => Some(allocations.iter().find(|one| one.id == id).ok_or(AppError::NotFound)?),
        None => None,
    };
    let form = state.form.or_else(|| changed.map(|one| as_typed(one, &clusters)));
    let form = form.unwrap_or_else(|| {
        let first = offers.iter().find(|offer| chosen(offer));
        let period = first.map_or(Period::None, |offer| offer.site.units.period);
        let (begins, ends) = period_of(period, today);
        let site = first.and_then(|offer| SiteUnit::of(&offer.site));
        let usual = if site.is_some() { "site-hours" } else { "core-hours" };
        GrantForm {
            unit: usual.to_owned(),
            begins: begins.to_string(),
            ends: ends.to_string(),
            ..GrantForm::default()
        }
    });
    let status = if state.problems.is_empty() && state.account_problems.is_empty() {
        StatusCode::OK
    } else {
        PROBLEMS
    };
    let title = format!("{}: accounts", found.name);
    show_with(
        status,
        &SettingsPage {
            page: Page::for_person(context, &me.0, &title, Section::Groups),
            group,
            name: found.name,
            has_accounts: offers.iter().any(chosen),
            granted: granted.collect(),
            changed: changed.map(|one| one.id),
            accounts: account_options(&offers, &form),
            units: unit_options(&offers, &form),
            clusters: offers.iter().map(choices).collect(),
            form,
            account_problems: state.account_problems,
            problems: state.problems,
        },
    )
}

/// An allocation as someone would type it.
fn as_typed(one: &Allocation, clusters: &[Cluster]) -> GrantForm {
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

fn choices(offer: &Offer) -> Choices {
    let accounts = offer.accounts.iter();
    let accounts = accounts
        .map(|(name, is_chosen)| (format!("{}/{name}", offer.slug), name.clone(), *is_chosen));
    Choices { title: offer.title.clone(), accounts: accounts.collect() }
}

fn account_options(offers: &[Offer], form: &GrantForm) -> Vec<Option3> {
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
fn unit_options(offers: &[Offer], form: &GrantForm) -> Vec<Option3> {
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
