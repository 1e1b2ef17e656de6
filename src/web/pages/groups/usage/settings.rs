//! A PI's settings for a group's usage: which accounts belong to the group, and their allocations.

use std::collections::BTreeSet;

use askama::Template;
use axum::http::StatusCode;
use serde::Deserialize;

use crate::auth::Permission;
use crate::clock::Day;
use crate::domain::{AllocationId, ClusterId, GroupId};
use crate::error::AppError;
use crate::format;
use crate::sites::SiteAllocationPeriod;
use crate::store;
use crate::usage::{AllocationUnit, GroupAccountChoices, SiteUnit, UsageSettingsError, allocation_period};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, QueryParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::FormErrors;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond_with};
use crate::web::pages::groups::table_sort::SortHeading;
use crate::web::pages::groups::usage::UsageQueryPairs;
use crate::web::pages::groups::usage::allocation_form::{
    AllocationForm, account_options, field_of_error, find_offered_account, form_from_allocation, parse_form,
    unit_options,
};
use crate::web::pages::groups::usage::query::UsageSelectOption;
use crate::web::pages::groups::{GroupRequest, accounts_path, group_tables};

#[derive(Template)]
#[template(path = "groups/usage/settings.html")]
struct UsageSettingsPage {
    page: PageFrame,
    group: GroupId,
    name: String,
    offers: Vec<GroupAccountChoices>,
    has_accounts: bool,
    granted: Vec<AllocationListItem>,
    headings: Vec<SortHeading>,
    /// The allocation being edited; `None` when adding one.
    changed: Option<AllocationId>,
    form: AllocationForm,
    accounts: Vec<UsageSelectOption>,
    units: Vec<UsageSelectOption>,
    account_problems: FormErrors,
    problems: FormErrors,
}

struct AllocationListItem {
    id: AllocationId,
    account: String,
    cluster: String,
    amount: String,
    period: String,
    is_over: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct UsageSettingsQuery {
    /// The allocation to edit.
    change: Option<AllocationId>,
    sort: String,
}

/// What a submitted form leaves to show again.
#[derive(Default)]
struct UsageSettingsFormState {
    changed: Option<AllocationId>,
    form: Option<AllocationForm>,
    account_problems: FormErrors,
    problems: FormErrors,
    /// The order of the table, as the query string names it.
    sort: String,
}

pub async fn get(request: GroupRequest, QueryParams(query): QueryParams<UsageSettingsQuery>) -> HandlerResult {
    request.me.may(Permission::ManageUsage(request.group))?;
    let state = UsageSettingsFormState { changed: query.change, sort: query.sort, ..UsageSettingsFormState::default() };
    render_page(request, state).await
}

/// Sets which accounts belong to the group.
pub async fn set_accounts(request: GroupRequest, FormBody(pairs): FormBody<UsageQueryPairs>) -> HandlerResult {
    let GroupRequest { context, me, group } = request;
    me.may(Permission::ManageUsage(group))?;
    let offers = context.app.usage.list_account_options(me.0.person.id, group).await?;
    let values = |wanted: &str| -> BTreeSet<&str> {
        pairs.iter().filter(|(key, _)| key == wanted).map(|(_, value)| value.as_str()).collect()
    };
    // What was ticked when the form was rendered: another PI may have changed something since.
    let (chosen, was) = (values("account"), values("was"));
    let added: Option<Vec<(ClusterId, String)>> =
        chosen.difference(&was).map(|value| find_offered_account(&offers, value)).collect();
    let removed: Vec<(ClusterId, String)> =
        was.difference(&chosen).filter_map(|value| find_offered_account(&offers, value)).collect();
    let done = match added {
        Some(added) => context.app.usage.change_accounts(&me.actor(&context), group, &added, &removed).await,
        None => Err(UsageSettingsError::NoSuchAccount),
    };
    match done {
        Ok(()) => Ok(flash::redirect(context, &accounts_path(group), FlashMessage::UsageAccountsSet)),
        Err(UsageSettingsError::Auth(error)) => Err(error.into()),
        Err(error) => {
            let account_problems = FormErrors::single("accounts", error);
            let state = UsageSettingsFormState { account_problems, ..UsageSettingsFormState::default() };
            render_page(GroupRequest { context, me, group }, state).await
        }
    }
}

pub async fn add_allocation(request: GroupRequest, FormBody(form): FormBody<AllocationForm>) -> HandlerResult {
    save_allocation(request, None, form).await
}

pub async fn update_allocation(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((group, allocation)): PathParams<(GroupId, AllocationId)>,
    FormBody(form): FormBody<AllocationForm>,
) -> HandlerResult {
    save_allocation(GroupRequest { context, me, group }, Some(allocation), form).await
}

async fn save_allocation(
    GroupRequest { context, me, group }: GroupRequest,
    changed: Option<AllocationId>,
    form: AllocationForm,
) -> HandlerResult {
    me.may(Permission::ManageUsage(group))?;
    let offers = context.app.usage.list_account_options(me.0.person.id, group).await?;
    let mut problems = FormErrors::default();
    if let Some(input) = parse_form(&form, &offers, &mut problems) {
        let done = if changed.is_some() { FlashMessage::AllocationChanged } else { FlashMessage::AllocationAdded };
        match context.app.usage.set_allocation(&me.actor(&context), group, changed, &input).await {
            Ok(()) => return Ok(flash::redirect(context, &accounts_path(group), done)),
            Err(UsageSettingsError::Auth(error)) => return Err(error.into()),
            Err(error) => problems.add(field_of_error(&error), error),
        }
    }
    let form = form.truncate_for_redisplay();
    let state = UsageSettingsFormState { changed, form: Some(form), problems, ..UsageSettingsFormState::default() };
    render_page(GroupRequest { context, me, group }, state).await
}

pub async fn remove_allocation(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((group, allocation)): PathParams<(GroupId, AllocationId)>,
) -> HandlerResult {
    me.may(Permission::ManageUsage(group))?;
    context.app.usage.remove_allocation(&me.actor(&context), group, allocation).await?;
    Ok(flash::redirect(context, &accounts_path(group), FlashMessage::AllocationRemoved))
}

async fn render_page(request: GroupRequest, state: UsageSettingsFormState) -> HandlerResult {
    let group_row = request.load_group().await?;
    let GroupRequest { context, me, group } = request;
    let offers = context.app.usage.list_account_options(me.0.person.id, group).await?;
    let mut db = context.app.store.read().await?;
    let mut allocations = store::allocations::list_for_group(&mut db, group).await?;
    let headings = group_tables::sort_allocations(&state.sort, &accounts_path(group), &mut allocations);
    let clusters = store::clusters::list(&mut db).await?;
    drop(db);
    let today = Day::from_time(context.app.clock.now());
    let site_unit = |id: ClusterId| {
        offers
            .iter()
            .find(|offer| offer.profile.row.id == id)
            .and_then(|offer| SiteUnit::from_site(&offer.profile.site))
    };
    let granted = allocations.iter().map(|allocation| {
        let counted = AllocationUnit::parse(&allocation.unit).unwrap_or(AllocationUnit::ALL[0]);
        let cluster = clusters.iter().find(|cluster| cluster.id == allocation.cluster_id);
        AllocationListItem {
            id: allocation.id,
            account: allocation.account.clone(),
            cluster: cluster.map(|cluster| cluster.title.clone()).unwrap_or_default(),
            amount: format!(
                "{} {}",
                format::fine_amount(allocation.amount),
                counted.words(site_unit(allocation.cluster_id))
            ),
            period: format!("{} to {}", allocation.begins().words(), allocation.ends().words()),
            is_over: allocation.ends() < today,
        }
    });
    let chosen = |offer: &GroupAccountChoices| offer.accounts.iter().any(|(_, is_chosen)| *is_chosen);
    let changed = match state.changed {
        Some(id) => Some(allocations.iter().find(|allocation| allocation.id == id).ok_or(AppError::NotFound)?),
        None => None,
    };
    let form = state.form.or_else(|| changed.map(|allocation| form_from_allocation(allocation, &clusters)));
    let form = form.unwrap_or_else(|| {
        let first = offers.iter().find(|offer| chosen(offer));
        let period = first.map_or(SiteAllocationPeriod::None, |offer| offer.profile.site.units.period);
        let (begins, ends) = allocation_period(period, today);
        let site = first.and_then(|offer| SiteUnit::from_site(&offer.profile.site));
        let usual = if site.is_some() { "site-hours" } else { "core-hours" };
        AllocationForm {
            unit: usual.to_owned(),
            begins: begins.to_string(),
            ends: ends.to_string(),
            ..AllocationForm::default()
        }
    });
    let status =
        if state.problems.is_empty() && state.account_problems.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS };
    let title = format!("{}: accounts", group_row.name);
    respond_with(
        status,
        &UsageSettingsPage {
            page: PageFrame::for_person(&context, &me.0, &title, NavSection::Groups),
            group,
            name: group_row.name,
            has_accounts: offers.iter().any(chosen),
            granted: granted.collect(),
            headings,
            changed: changed.map(|allocation| allocation.id),
            accounts: account_options(&offers, &form),
            units: unit_options(&offers, &form),
            offers,
            form,
            account_problems: state.account_problems,
            problems: state.problems,
        },
    )
}
