//! Actions on a dashboard: start, wake, extend, stop, change, delete.

use serde::Deserialize;

use crate::auth::Permission;
use crate::dashboards::actions::MAX_WAKES_PER_DAY;
use crate::dashboards::{DashboardError, MAX_RUN_MINUTES, MIN_RUN_MINUTES, owner_of};
use crate::domain::{DashboardId, DisplayName, GroupId};
use crate::error::AppError;
use crate::store::dashboards::DashboardOwnerSettings;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage, see_other};
use crate::web::http::form_errors::{FormErrors, echo_input};
use crate::web::pages::dashboards::dashboard::{DashboardFormStates, DashboardSettingsState, show_with_problems};
use crate::web::pages::dashboards::{dashboard_path, find_dashboard, find_managed, redirect_with_error, to_app_error};

/// Its name, and what its owner's group may do.
#[derive(Deserialize)]
pub struct DashboardSettingsForm {
    title: String,
    /// A group's id; empty for nobody.
    #[serde(default)]
    group: String,
    #[serde(default)]
    wakes: String,
    #[serde(default)]
    wake_minutes: String,
}

/// Starts the person's own dashboard again.
pub async fn start(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<DashboardId>,
) -> HandlerResult {
    find_managed(&context, &me, id).await?;
    let result = context.app.dashboards.start(&me.actor(&context), id).await;
    redirect_after(context, id, result, None)
}

/// Starts a colleague's dashboard, if its settings allow it.
pub async fn wake(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<DashboardId>,
) -> HandlerResult {
    let status = find_dashboard(&context, &me, id).await?;
    me.may(Permission::StartSharedDashboard(owner_of(&status.dashboard)))?;
    let result = context.app.dashboards.wake(&me.actor(&context), id).await;
    redirect_after(context, id, result, None)
}

/// Lets a follow-up run take over before the time is up.
pub async fn extend(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<DashboardId>,
) -> HandlerResult {
    find_managed(&context, &me, id).await?;
    let result = context.app.dashboards.extend(&me.actor(&context), id).await;
    redirect_after(context, id, result, Some(FlashMessage::DashboardExtended))
}

pub async fn stop(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<DashboardId>,
) -> HandlerResult {
    find_managed(&context, &me, id).await?;
    let result = context.app.dashboards.stop(&me.actor(&context), id).await;
    redirect_after(context, id, result, None)
}

pub async fn delete(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<DashboardId>,
) -> HandlerResult {
    find_managed(&context, &me, id).await?;
    context.app.dashboards.remove(&me.actor(&context), id).await.map_err(to_app_error)?;
    Ok(flash::redirect(context, "/dashboards", FlashMessage::DashboardDeleted))
}

/// Changes its name and what its owner's group may do.
pub async fn update_settings(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<DashboardId>,
    FormBody(form): FormBody<DashboardSettingsForm>,
) -> HandlerResult {
    let status = find_managed(&context, &me, id).await?;
    let mut problems = FormErrors::default();
    problems.parse::<DisplayName>("title", &form.title);
    let wakes = parse_in_range(&form.wakes, 0, MAX_WAKES_PER_DAY);
    if wakes.is_none() {
        problems.add("wakes", format!("Enter a number between 0 and {MAX_WAKES_PER_DAY}."));
    }
    let wake_minutes = parse_in_range(&form.wake_minutes, MIN_RUN_MINUTES.into(), MAX_RUN_MINUTES.into());
    if wake_minutes.is_none() {
        problems.add("wake_minutes", "Choose one of the listed times.");
    }
    let (Some(wakes), Some(wake_minutes), true) = (wakes, wake_minutes, problems.is_empty()) else {
        let typed = Some((echo_input(&form.title), echo_input(&form.wakes)));
        let forms = DashboardFormStates {
            settings: DashboardSettingsState { problems, typed },
            ..DashboardFormStates::default()
        };
        return show_with_problems(&context, &me, status, forms).await;
    };
    let settings = DashboardOwnerSettings {
        title: &form.title,
        group: parse_group(&form.group)?,
        wakes_per_day: wakes,
        wake_minutes,
    };
    context.app.dashboards.update_settings(&me.actor(&context), id, settings).await.map_err(to_app_error)?;
    Ok(flash::redirect(context, &dashboard_path(id), FlashMessage::DashboardChanged))
}

/// A number within limits; a missing one counts as the minimum.
fn parse_in_range(text: &str, least: i64, most: i64) -> Option<i64> {
    let text = text.trim();
    let number = if text.is_empty() { Some(least) } else { text.parse().ok() };
    number.filter(|number| (least..=most).contains(number))
}

fn parse_group(text: &str) -> Result<Option<GroupId>, AppError> {
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse().map_err(|_| AppError::BadRequest("no such group".to_owned()))?;
    Ok(Some(GroupId(number)))
}

fn redirect_after(
    context: RequestContext,
    id: DashboardId,
    result: Result<(), DashboardError>,
    message: Option<FlashMessage>,
) -> HandlerResult {
    let to = dashboard_path(id);
    match (result, message) {
        (Ok(()), Some(message)) => Ok(flash::redirect(context, &to, message)),
        (Ok(()), None) => Ok(see_other(&to)),
        (Err(error), _) => redirect_with_error(context, &to, error),
    }
}
