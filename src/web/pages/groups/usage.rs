//! A group's usage: the page with its chart and tables, the jobs behind a figure, CSV files, and the PIs' settings.
//! All totals come from `crate::usage`.

mod allocation_card;
mod allocation_form;
mod chart;
pub mod csv;
mod formatting;
mod job_search;
pub mod jobs_page;
mod notes;
pub mod page;
mod query;
pub mod settings;
mod summary;
mod tables;
mod usage_job;

use std::sync::Arc;

pub use formatting::format_exact;
use query::{UsageFilter, UsageQuery};
pub use summary::UsageSummaryCache;

use crate::auth::Permission;
use crate::domain::GroupId;
use crate::error::AppError;
use crate::store;
use crate::store::allocations::Allocation;
use crate::store::groups::Group;
use crate::usage::GroupUsage;
use crate::usage::figures::UsageFigures;
use crate::web::http::extractors::{CurrentPerson, RequestContext};

/// The query string's pairs, in any order and with repeats.
pub type UsageQueryPairs = Vec<(String, String)>;

/// The group's usage, and the filter to show it with.
pub struct UsagePageData {
    group: Group,
    view: GroupUsage,
    allocations: Vec<Allocation>,
    filter: UsageFilter,
    figures: Arc<UsageFigures>,
}

fn usage_path(group: GroupId) -> String {
    format!("/groups/{group}/usage")
}

/// Loads the group's usage and resolves the filter.
async fn load_page_data(
    context: &RequestContext,
    me: &CurrentPerson,
    group: GroupId,
    pairs: UsageQueryPairs,
) -> Result<(UsagePageData, UsageQuery), AppError> {
    let mut db = context.app.store.read().await?;
    let found = store::groups::get(&mut db, group).await?.ok_or(AppError::NotFound)?;
    let allocations = store::allocations::list_for_group(&mut db, group).await?;
    drop(db);
    let view = context.app.usage.load_group_usage(&me.0.viewer, group).await?;
    let ask = UsageQuery::from_pairs(pairs);
    let looked = UsageFilter::resolve(&ask, &view, &allocations, context.app.clock.now());
    let figures = context.app.usage.figures(&view, &looked.choice);
    Ok((UsagePageData { group: found, view, allocations, filter: looked, figures }, ask))
}

/// Records that names were seen, if there are any to see.
pub async fn record_names_seen(
    context: &RequestContext,
    me: &CurrentPerson,
    view: &GroupUsage,
) -> Result<(), AppError> {
    if me.may(Permission::SeePeoplesUsage(view.group)).is_ok() && !view.accounts.is_empty() {
        context.app.usage.record_named_view(&me.actor(context), view.group, None).await?;
    }
    Ok(())
}
