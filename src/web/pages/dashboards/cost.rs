//! What a dashboard costs while it runs, in one line.

use crate::dashboards::{DashboardKind, job};
use crate::explain::cost::estimate_cost;
use crate::format;
use crate::recipes::context::ComposeCluster;
use crate::store::dashboards::Dashboard;

/// `about 1 core hour if it runs for 1 h`.
pub fn cost_text(kind: DashboardKind, minutes: u32, account: &str, cluster: &ComposeCluster) -> String {
    let account = Some(account).filter(|account| !account.is_empty());
    let request = job::build_request(kind, minutes, account, None, &cluster.site);
    let cost = estimate_cost(&request, cluster, None);
    let total = cost.total.unwrap_or(cost.per_hour);
    let number = format::fine_amount(total);
    let singular = cost.unit.strip_suffix('s').unwrap_or(&cost.unit);
    let unit = if number == "1" { singular } else { &cost.unit };
    format!("about {number} {unit} if it runs for {}", format::minutes(minutes))
}

/// Like `cost_text`, for an existing dashboard.
pub fn dashboard_cost_text(dashboard: &Dashboard, cluster: &ComposeCluster) -> Option<String> {
    let kind = dashboard.kind.parse().ok()?;
    let minutes = u32::try_from(dashboard.minutes).ok()?;
    Some(cost_text(kind, minutes, &dashboard.account, cluster))
}
