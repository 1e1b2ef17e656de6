//! Dashboards as people see them: the list, the form for a new one, a dashboard's page with its guest links, and the
//! overview of guest links. `crate::dashboards` decides what happens to them.

pub mod actions;
mod choose_cluster;
mod cost;
pub mod dashboard;
pub mod folder_suggestions;
pub mod guest_links;
mod guest_view;
mod job_folders;
pub mod list;
mod live_view;
pub mod new;
mod status_text;

use crate::auth::{AuthError, Permission};
use crate::dashboards::{DashboardError, DashboardKind, DashboardWithRuns, owner_of};
use crate::domain::DashboardId;
use crate::error::AppError;
use crate::format;
use crate::store::dashboards::Dashboard;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::flash::{self, FlashMessage};

/// The run times to choose from, in minutes.
const TIME_CHOICES_MINUTES: [u32; 6] = [30, 60, 120, 240, 480, 720];

pub fn dashboard_path(id: DashboardId) -> String {
    format!("/dashboards/{id}")
}

/// A dashboard that someone may see, if they may use clusters at all. Other people's are treated as missing.
async fn find_dashboard(
    context: &RequestContext,
    me: &CurrentPerson,
    id: DashboardId,
) -> Result<DashboardWithRuns, AppError> {
    me.may(Permission::UseClusters)?;
    context.app.dashboards.get(&me.0.viewer, id).await?.ok_or(AppError::NotFound)
}

/// A dashboard that they may manage.
async fn find_managed(
    context: &RequestContext,
    me: &CurrentPerson,
    id: DashboardId,
) -> Result<DashboardWithRuns, AppError> {
    let status = find_dashboard(context, me, id).await?;
    me.may(Permission::ManageDashboard(owner_of(&status.dashboard)))?;
    Ok(status)
}

fn kind_title(dashboard: &Dashboard) -> &'static str {
    dashboard.kind.parse().map_or("Dashboard", DashboardKind::title)
}

/// The run times to choose from, each with whether it is selected.
fn minute_choices(most: u32, least: u32, chosen: u32) -> Vec<(String, String, bool)> {
    let mut all: Vec<u32> =
        TIME_CHOICES_MINUTES.into_iter().filter(|minutes| (least..=most).contains(minutes)).collect();
    if all.is_empty() {
        all.push(TIME_CHOICES_MINUTES[0]);
    }
    if !all.contains(&chosen) && (least..=most).contains(&chosen) {
        all.push(chosen);
        all.sort_unstable();
    }
    let chosen = if all.contains(&chosen) { chosen } else { all[0] };
    all.into_iter().map(|minutes| (minutes.to_string(), format::minutes(minutes), minutes == chosen)).collect()
}

/// Shows why a change failed on the page the person came from; anything else becomes an error page.
fn redirect_with_error(context: RequestContext, to: &str, error: DashboardError) -> HandlerResult {
    let message = match error {
        DashboardError::NotConnected => FlashMessage::DashboardNotConnected,
        DashboardError::OwnerNotConnected => FlashMessage::DashboardOwnerAway,
        DashboardError::AlreadyRunning => FlashMessage::DashboardAlreadyRunning,
        DashboardError::NotRunning => FlashMessage::DashboardNotRunning,
        DashboardError::AlreadyExtended => FlashMessage::DashboardAlreadyExtended,
        DashboardError::WakeLimitReached => FlashMessage::DashboardStartLimit,
        other => return Err(to_app_error(other)),
    };
    Ok(flash::redirect(context, to, message))
}

/// For errors that no form field is to blame for.
fn to_app_error(error: DashboardError) -> AppError {
    match error {
        DashboardError::Auth(error) => error.into(),
        DashboardError::Store(error) => error.into(),
        DashboardError::InvalidForm => AppError::BadRequest("the form came without its mark".to_owned()),
        other => AppError::Internal(other.to_string()),
    }
}

/// Like `to_app_error`, for someone who must not learn whether the dashboard exists.
fn to_hidden_error(error: DashboardError) -> AppError {
    match error {
        DashboardError::Auth(AuthError::Denied) => AppError::NotFound,
        other => to_app_error(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_to_the_sites_limits() {
        let words = |most, least, chosen| {
            let all = minute_choices(most, least, chosen);
            let words = all.iter().map(|(_, words, is)| format!("{words}{}", if *is { "*" } else { "" }));
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(720, 0, 60), "30 min 1 h* 2 h 4 h 8 h 12 h");
        assert_eq!(words(180, 60, 720), "1 h* 2 h");
        assert_eq!(words(720, 0, 90), "30 min 1 h 1 h 30 min* 2 h 4 h 8 h 12 h");
        assert_eq!(words(10, 0, 60), "30 min*", "something can always be chosen");
    }
}
