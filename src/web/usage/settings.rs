//! What those who lead a group decide about its use: which accounts are the group's, and what was granted to them.

use std::collections::BTreeSet;

use askama::Template;
use axum::http::StatusCode;
use serde::Deserialize;

use super::super::Answer;
use super::super::extract::{Context, Form, Me, Path, Query};
use super::super::flash::{self, Flash};
use super::super::form::Problems;
use super::super::page::{PROBLEMS, Page, Section, show_with};
use super::Pairs;
use super::ask::Option3;
use super::grant::{GrantForm, account_options, as_typed, field, offered, read, unit_options};
use super::words::{amount, unit};
use crate::auth::Permission;
use crate::clock::Day;
use crate::domain::{AllocationId, ClusterId, GroupId};
use crate::error::AppError;
use crate::sites::SiteAllocationPeriod;
use crate::store;
use crate::usage::{NotSet, Offer, SiteUnit, Unit, period_of};

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
    me.may(Permission::ManageUsage(group))?;
    page(&context, &me, group, State { changed: asked.change, ..State::default() }).await
}

/// Says which accounts are the group's.
pub async fn set_accounts(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Form(pairs): Form<Pairs>,
) -> Answer {
    me.may(Permission::ManageUsage(group))?;
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
    me.may(Permission::ManageUsage(group))?;
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
    let form = form.shown_again();
    let state = State { changed, form: Some(form), problems, ..State::default() };
    page(&context, &me, group, state).await
}

/// Takes an allocation away.
pub async fn remove(
    context: Context,
    me: Me,
    Path((group, allocation)): Path<(GroupId, AllocationId)>,
) -> Answer {
    me.may(Permission::ManageUsage(group))?;
    context.app.usage.remove_allocation(&me.actor(&context), group, allocation).await?;
    Ok(flash::redirect(context, &address(group), Flash::AllocationRemoved))
}

fn address(group: GroupId) -> String {
    format!("/groups/{group}/accounts")
}

async fn page(context: &Context, me: &Me, group: GroupId, state: State) -> Answer {
    let offers = context.app.usage.offers(me.0.person.id, group).await?;
    let mut db = context.app.store.read().await?;
    let found = store::groups::get(&mut db, group).await?.ok_or(AppError::NotFound)?;
    let allocations = store::allocations::list_for_group(&mut db, group).await?;
    let clusters = store::clusters::list(&mut db).await?;
    drop(db);
    let today = Day::from_time(context.app.clock.now());
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
        let period = first.map_or(SiteAllocationPeriod::None, |offer| offer.site.units.period);
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

fn choices(offer: &Offer) -> Choices {
    let accounts = offer.accounts.iter();
    let accounts = accounts
        .map(|(name, is_chosen)| (format!("{}/{name}", offer.slug), name.clone(), *is_chosen));
    Choices { title: offer.title.clone(), accounts: accounts.collect() }
}
