//! A group's usage: the page with its chart and tables, the jobs behind a figure, CSV files, and the PIs' settings.
//! All totals come from `crate::usage`.

pub(super) mod allocation_card;
mod allocation_form;
mod breakdown_tables;
mod chart;
pub mod csv;
mod formatting;
mod job_search;
pub mod jobs_page;
pub mod member_job;
mod notes;
pub mod page;
mod query;
pub mod settings;
mod summary;
mod table_cells;
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
use crate::usage::figures::{UsageFigures, is_selected};
use crate::web::http::extractors::{CurrentPerson, PathParams, QueryParams, RequestContext};
use crate::web::portal_state::PortalState;
use axum::extract::FromRequestParts;

/// The query string's pairs, in any order and with repeats.
pub type UsageQueryPairs = Vec<(String, String)>;

/// A request for a page or a file of a group's usage.
#[derive(FromRequestParts)]
#[from_request(state(PortalState), rejection(AppError))]
pub struct GroupUsageRequest {
    context: RequestContext,
    me: CurrentPerson,
    #[from_request(via(PathParams))]
    group: GroupId,
    #[from_request(via(QueryParams))]
    pairs: UsageQueryPairs,
}

/// The group's usage, and the filter to show it with.
pub struct UsagePageData {
    group: Group,
    view: GroupUsage,
    allocations: Vec<Allocation>,
    query: UsageQuery,
    filter: UsageFilter,
    figures: Arc<UsageFigures>,
}

pub fn usage_path(group: GroupId) -> String {
    format!("/groups/{group}/usage")
}

impl GroupUsageRequest {
    /// Checks that the viewer may see the group's usage, loads it, and resolves the filter.
    async fn load(&self) -> Result<UsagePageData, AppError> {
        self.me.may(Permission::SeeUsage(self.group))?;
        let app = &self.context.app;
        let mut db = app.store.read().await?;
        let group = store::groups::get(&mut db, self.group).await?.ok_or(AppError::NotFound)?;
        let allocations = store::allocations::list_for_group(&mut db, self.group).await?;
        drop(db);
        let view = app.usage.load_group_usage(&self.me.0.viewer, self.group).await?;
        let query = UsageQuery::from_pairs(&self.pairs);
        let filter = UsageFilter::resolve(&query, &view, &allocations, app.clock.now());
        let chosen = view.accounts.iter().filter(|account| is_selected(account, &filter.choice));
        app.usage.read_first(chosen, filter.choice.from, filter.choice.until);
        let figures = app.usage.figures(&view, &filter.choice);
        Ok(UsagePageData { group, view, allocations, query, filter, figures })
    }

    /// Like [`Self::load`], for what shows names: records that they were seen.
    async fn load_with_names(&self) -> Result<UsagePageData, AppError> {
        let data = self.load().await?;
        record_names_seen(&self.context, &self.me, &data.view).await?;
        Ok(data)
    }
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
