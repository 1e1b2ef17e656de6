//! What a dashboard costs while it runs, in one line.

use crate::dashboards::{DashboardKind, job};
use crate::explain::cost::estimate_cost;
use crate::format;
use crate::recipes::context::ComposeCluster;
use crate::store::dashboards::Dashboard;

/// `about 1 core hour for 1 h`.
pub fn cost_text(kind: DashboardKind, minutes: u32, account: &str, place: &ComposeCluster) -> String {
    let account = Some(account).filter(|account| !account.is_empty());
    let request = job::build_request(kind, minutes, account, None, &place.site);
    let cost = estimate_cost(&request, place, None);
    let total = cost.total.unwrap_or(cost.per_hour);
    let number = format::amount(total);
    let one = cost.unit.strip_suffix('s').unwrap_or(&cost.unit);
    let unit = if number == "1" { one } else { &cost.unit };
    format!("about {number} {unit} for {}", format::minutes(minutes))
}

/// Like `cost_text`, for an existing dashboard.
pub fn dashboard_cost_text(board: &Dashboard, place: &ComposeCluster) -> Option<String> {
    let kind = board.kind.parse().ok()?;
    let minutes = u32::try_from(board.minutes).ok()?;
    Some(cost_text(kind, minutes, &board.account, place))
}
