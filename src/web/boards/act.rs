//! What one does with a dashboard: start, wake, prolong, stop, change, delete.

use serde::Deserialize;

use super::super::Answer;
use super::super::extract::{Context, Form, Me, Path};
use super::super::flash::{self, Flash, see_other};
use super::super::form::{Problems, shown_again};
use super::board::{Forms, SettingsState, wrong};
use super::{address, fault, find, own, told};
use crate::auth::Permission;
use crate::boards::wishes::MOST_WAKES;
use crate::boards::{LONGEST, NotDone, SHORTEST, whose};
use crate::domain::{DashboardId, DisplayName, GroupId};
use crate::error::AppError;
use crate::store::dashboards::DashboardSettings;

/// Its name, and what its owner's group may do.
#[derive(Deserialize)]
pub struct SettingsForm {
    title: String,
    /// A group's number; empty: nobody.
    #[serde(default)]
    group: String,
    #[serde(default)]
    wakes: String,
    #[serde(default)]
    wake_minutes: String,
}

/// Starts one's own again.
pub async fn start(context: Context, me: Me, Path(id): Path<DashboardId>) -> Answer {
    me.may(Permission::UseClusters)?;
    own(&context, &me, id).await?;
    let done = context.app.dashboards.start(&me.actor(&context), id).await;
    answer(context, id, done, None)
}

/// Starts a colleague's, as they allow.
pub async fn wake(context: Context, me: Me, Path(id): Path<DashboardId>) -> Answer {
    me.may(Permission::UseClusters)?;
    let standing = find(&context, &me, id).await?;
    me.may(Permission::StartSharedDashboard(whose(&standing.board)))?;
    let done = context.app.dashboards.wake(&me.actor(&context), id).await;
    answer(context, id, done, None)
}

/// Lets a follow-up take over before the time is up.
pub async fn extend(context: Context, me: Me, Path(id): Path<DashboardId>) -> Answer {
    me.may(Permission::UseClusters)?;
    own(&context, &me, id).await?;
    let done = context.app.dashboards.extend(&me.actor(&context), id).await;
    answer(context, id, done, Some(Flash::BoardExtended))
}

/// Stops it.
pub async fn stop(context: Context, me: Me, Path(id): Path<DashboardId>) -> Answer {
    me.may(Permission::UseClusters)?;
    own(&context, &me, id).await?;
    let done = context.app.dashboards.stop(&me.actor(&context), id).await;
    answer(context, id, done, None)
}

/// Deletes it.
pub async fn remove(context: Context, me: Me, Path(id): Path<DashboardId>) -> Answer {
    me.may(Permission::UseClusters)?;
    own(&context, &me, id).await?;
    context.app.dashboards.remove(&me.actor(&context), id).await.map_err(fault)?;
    Ok(flash::redirect(context, "/boards", Flash::BoardRemoved))
}

/// Changes its name and what its owner's group may do.
pub async fn settings(
    context: Context,
    me: Me,
    Path(id): Path<DashboardId>,
    Form(form): Form<SettingsForm>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let standing = own(&context, &me, id).await?;
    let mut problems = Problems::default();
    problems.parse::<DisplayName>("title", &form.title);
    let wakes = read(&form.wakes, 0, MOST_WAKES);
    if wakes.is_none() {
        problems.add("wakes", format!("Choose between 0 and {MOST_WAKES}."));
    }
    let wake_minutes = read(&form.wake_minutes, SHORTEST.into(), LONGEST.into());
    if wake_minutes.is_none() {
        problems.add("wake_minutes", "Choose one of the times offered.");
    }
    let (Some(wakes), Some(wake_minutes), true) = (wakes, wake_minutes, problems.is_empty()) else {
        let typed = Some((shown_again(&form.title), shown_again(&form.wakes)));
        let forms = Forms { settings: SettingsState { problems, typed }, ..Forms::default() };
        return wrong(&context, &me, standing, forms).await;
    };
    let settings = DashboardSettings {
        title: &form.title,
        group: group(&form.group)?,
        wakes_per_day: wakes,
        wake_minutes,
    };
    context.app.dashboards.change(&me.actor(&context), id, settings).await.map_err(fault)?;
    Ok(flash::redirect(context, &address(id), Flash::BoardChanged))
}

/// A number within limits; what was left out is the least.
fn read(text: &str, least: i64, most: i64) -> Option<i64> {
    let text = text.trim();
    let number = if text.is_empty() { Some(least) } else { text.parse().ok() };
    number.filter(|number| (least..=most).contains(number))
}

fn group(text: &str) -> Result<Option<GroupId>, AppError> {
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse().map_err(|_| AppError::BadRequest("no such group".to_owned()))?;
    Ok(Some(GroupId(number)))
}

fn answer(
    context: Context,
    id: DashboardId,
    done: Result<(), NotDone>,
    message: Option<Flash>,
) -> Answer {
    let to = address(id);
    match (done, message) {
        (Ok(()), Some(message)) => Ok(flash::redirect(context, &to, message)),
        (Ok(()), None) => Ok(see_other(&to)),
        (Err(error), _) => told(context, &to, error),
    }
}
