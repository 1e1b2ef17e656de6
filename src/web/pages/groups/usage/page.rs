//! A group's usage page, and the fragment of it that refreshes itself.

use askama::Template;

use crate::auth::Permission;
use crate::error::AppError;
use crate::web::HandlerResult;
use crate::web::http::extractors::RequestContext;
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::groups::fair_share::{self, GroupFairShareFragment};
use crate::web::pages::groups::usage::notes::{UsageNote, collect_notes};
use crate::web::pages::groups::usage::summary::RenderedUsageHtml;
use crate::web::pages::groups::usage::{GroupUsageRequest, UsagePageData, usage_path};

#[derive(Template)]
#[template(path = "groups/usage/page.html")]
struct GroupUsagePage {
    page: PageFrame,
    data: UsagePageData,
    may_manage: bool,
    fragment: UsageFragment,
    fair_share: GroupFairShareFragment,
}

/// Everything that changes when new usage has been read.
#[derive(Template)]
#[template(path = "groups/usage/fragment.html")]
struct UsageFragment {
    /// The page's path.
    base: String,
    /// The filter as a query string.
    query: String,
    notes: Vec<UsageNote>,
    summary: RenderedUsageHtml,
}

/// The template escapes its own output.
impl askama::filters::HtmlSafe for UsageFragment {}

pub async fn get(request: GroupUsageRequest) -> HandlerResult {
    let data = request.load_with_names().await?;
    let GroupUsageRequest { context, me, group, .. } = request;
    let title = format!("{}: usage", data.group.name);
    respond(&GroupUsagePage {
        page: PageFrame::for_person(&context, &me.0, &title, NavSection::Groups),
        may_manage: me.may(Permission::ManageUsage(group)).is_ok(),
        fragment: build_fragment(&context, &data)?,
        fair_share: fair_share::build_fragment(&context, &me, &data.view).await?,
        data,
    })
}

/// The fragment that refreshes itself.
pub async fn show_fragment(request: GroupUsageRequest) -> HandlerResult {
    let data = request.load_with_names().await?;
    respond(&build_fragment(&request.context, &data)?)
}

fn build_fragment(context: &RequestContext, data: &UsagePageData) -> Result<UsageFragment, AppError> {
    Ok(UsageFragment {
        base: usage_path(data.group.id),
        query: data.filter.to_query_string(&[]),
        notes: collect_notes(&data.view, &data.figures, &data.filter),
        summary: context.pages.usage_summaries.get_or_render(data)?,
    })
}
