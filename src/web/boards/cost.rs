//! What a dashboard costs while it runs, in one line.

use crate::boards::{Kind, job};
use crate::explain::cost::{amount, cost};
use crate::explain::sizes;
use crate::recipes::place::Place;
use crate::store::dashboards::Dashboard;

/// `about 1 core hour for 1 h`.
pub fn words(kind: Kind, minutes: u32, account: &str, place: &Place) -> String {
    let account = Some(account).filter(|account| !account.is_empty());
    let request = job::request(kind, minutes, account, None, &place.site);
    let cost = cost(&request, place, None);
    let total = cost.total.unwrap_or(cost.per_hour);
    let number = amount(total);
    let one = cost.unit.strip_suffix('s').unwrap_or(&cost.unit);
    let unit = if number == "1" { one } else { &cost.unit };
    format!("about {number} {unit} for {}", sizes::minutes(minutes))
}

/// The same of a dashboard that there is.
pub fn of(board: &Dashboard, place: &Place) -> Option<String> {
    let kind = board.kind.parse().ok()?;
    let minutes = u32::try_from(board.minutes).ok()?;
    Some(words(kind, minutes, &board.account, place))
}
