//! Dashboards as people see them: the list, a new one, one's own page with its state and links, links to oversee.
//! What happens to them is decided in `crate::boards`.

pub mod act;
pub mod board;
mod cost;
pub mod found;
pub mod links;
pub mod list;
mod live;
pub mod new;
mod state;
mod where_to;

use super::extract::{Context, Me};
use super::flash::{self, Flash};
use crate::auth::{AuthError, Permission};
use crate::boards::{Kind, NotDone, Standing, whose};
use crate::domain::DashboardId;
use crate::error::AppError;
use crate::explain::sizes;
use crate::store::dashboards::Dashboard;

/// How long one can ask for, in minutes.
const MINUTES: [u32; 6] = [30, 60, 120, 240, 480, 720];

/// A dashboard's page.
pub fn address(id: DashboardId) -> String {
    format!("/boards/{id}")
}

/// A dashboard that someone may see. Those of others are not there, like those that never were.
async fn find(context: &Context, me: &Me, id: DashboardId) -> Result<Standing, AppError> {
    context.app.dashboards.get(&me.0.viewer, id).await?.ok_or(AppError::NotFound)
}

/// One that they may manage.
async fn own(context: &Context, me: &Me, id: DashboardId) -> Result<Standing, AppError> {
    let standing = find(context, me, id).await?;
    me.may(Permission::ManageDashboard(whose(&standing.board)))?;
    Ok(standing)
}

/// What kind of dashboard it is, as people call it.
fn kind_title(board: &Dashboard) -> &'static str {
    board.kind.parse().map_or("Dashboard", Kind::title)
}

/// The choices of a time, each with whether it is chosen.
fn minute_choices(most: u32, least: u32, chosen: u32) -> Vec<(String, String, bool)> {
    let mut all: Vec<u32> =
        MINUTES.into_iter().filter(|one| (least..=most).contains(one)).collect();
    if all.is_empty() {
        all.push(MINUTES[0]);
    }
    if !all.contains(&chosen) && (least..=most).contains(&chosen) {
        all.push(chosen);
        all.sort_unstable();
    }
    let chosen = if all.contains(&chosen) { chosen } else { all[0] };
    all.into_iter().map(|one| (one.to_string(), sizes::minutes(one), one == chosen)).collect()
}

/// Why nothing came of a wish, as a message on the page one came from; anything else is an error page.
fn told(context: Context, to: &str, error: NotDone) -> super::Answer {
    let flash = match error {
        NotDone::NoWay => Flash::BoardNoWay,
        NotDone::OwnerAway => Flash::BoardOwnerAway,
        NotDone::RunsAlready => Flash::BoardRunsAlready,
        NotDone::NotRunning => Flash::BoardNotRunning,
        NotDone::FollowedAlready => Flash::BoardFollowedAlready,
        NotDone::WokenEnough => Flash::BoardWokenEnough,
        other => return Err(fault(other)),
    };
    Ok(flash::redirect(context, to, flash))
}

/// What is nobody's mistake on a form.
fn fault(error: NotDone) -> AppError {
    match error {
        NotDone::Auth(error) => error.into(),
        NotDone::Store(error) => error.into(),
        NotDone::Form => AppError::BadRequest("the form came without its mark".to_owned()),
        other => AppError::Internal(other.to_string()),
    }
}

/// The same for someone who must not learn whether there is such a thing.
fn hidden(error: NotDone) -> AppError {
    match error {
        NotDone::Auth(AuthError::Denied) => AppError::NotFound,
        other => fault(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_to_the_sites_limits() {
        let words = |most, least, chosen| {
            let all = minute_choices(most, least, chosen);
            let words =
                all.iter().map(|(_, words, is)| format!("{words}{}", if *is { "*" } else { "" }));
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(720, 0, 60), "30 min 1 h* 2 h 4 h 8 h 12 h");
        assert_eq!(words(180, 60, 720), "1 h* 2 h");
        assert_eq!(words(720, 0, 90), "30 min 1 h 1 h 30 min* 2 h 4 h 8 h 12 h");
        assert_eq!(words(10, 0, 60), "30 min*", "something can always be chosen");
    }
}
