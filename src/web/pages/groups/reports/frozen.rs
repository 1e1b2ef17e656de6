//! A frozen report: its page, its guest links, and deleting it.

use askama::Template;
use axum::http::StatusCode;

use crate::auth::Permission;
use crate::auth::guest_links::{DEFAULT_LINK_DAYS, GuestLink, GuestLinkTarget};
use crate::domain::{GroupId, GuestLinkId, ReportId};
use crate::usage::frozen_reports::FrozenReport;
use crate::usage::report::UsageReport;
use crate::web::HandlerResult;
use crate::web::http::assets;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, QueryParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond_with};
use crate::web::http::reveal_once::{self, SecretLinkShownOnce};
use crate::web::pages::dashboards::dashboard::GuestLinkFormState;
use crate::web::pages::dashboards::guest_links::GuestLinkForm;
use crate::web::pages::groups::reports::ReportQuery;
use crate::web::pages::groups::reports::chart::draw_report_chart;
use crate::web::pages::groups::reports::report_tables::ReportTables;
use crate::web::pages::groups::reports::{report_format, report_path};
use crate::web::pages::groups::stacked_bar_chart::StackedBarChart;

#[derive(Template)]
#[template(path = "groups/reports/frozen.html")]
struct FrozenReportPage {
    page: PageFrame,
    report_css: &'static str,
    href: String,
    links_href: String,
    frozen: FrozenReport,
    report: UsageReport,
    chart: StackedBarChart,
    tables: ReportTables,
    link_form: GuestLinkFormState,
    shown: SecretLinkShownOnce,
    open: Vec<GuestLink>,
    ended: Vec<GuestLink>,
}

pub async fn get(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((group, id)): PathParams<(GroupId, ReportId)>,
    QueryParams(query): QueryParams<ReportQuery>,
) -> HandlerResult {
    me.may(Permission::ManageUsage(group))?;
    let link_form = GuestLinkFormState { days: DEFAULT_LINK_DAYS.to_string(), ..GuestLinkFormState::default() };
    let shown = reveal_once::take_pending(&context, &me, &report_path(group, id));
    let has_shown = shown.is_some();
    let page = render_page(&context, &me, (group, id), link_form, shown.unwrap_or_default(), &query.sort).await?;
    Ok(if has_shown { reveal_once::clear_cookie(&context, page) } else { page })
}

async fn render_page(
    context: &RequestContext,
    me: &CurrentPerson,
    (group, id): (GroupId, ReportId),
    link_form: GuestLinkFormState,
    shown: SecretLinkShownOnce,
    sort: &str,
) -> HandlerResult {
    let (frozen, report) = context.app.usage.load_frozen_report(group, id).await?;
    let now = context.app.clock.now();
    let links = context.app.auth.list_guest_links(&me.0.viewer, GuestLinkTarget::Report(group, id)).await?;
    let (open, ended) = links.into_iter().partition(|link| link.is_open(now));
    let status = if link_form.problems.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS };
    let page = FrozenReportPage {
        page: PageFrame::for_person(context, &me.0, &frozen.title, NavSection::Groups),
        report_css: assets::asset_url("report.css"),
        href: report_path(group, id),
        links_href: format!("{}/guest-links", report_path(group, id)),
        frozen,
        chart: draw_report_chart(&report),
        tables: ReportTables::new(&report, "", sort),
        report,
        link_form,
        shown,
        open,
        ended,
    };
    respond_with(status, &page)
}

pub async fn remove(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((group, id)): PathParams<(GroupId, ReportId)>,
) -> HandlerResult {
    me.may(Permission::ManageUsage(group))?;
    context.app.usage.remove_report(&me.actor(&context), group, id).await?;
    let to = format!("/groups/{group}/report");
    Ok(flash::redirect(context, &to, FlashMessage::ReportRemoved))
}

/// Creates a guest link and shows it once.
pub async fn create_link(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((group, id)): PathParams<(GroupId, ReportId)>,
    FormBody(form): FormBody<GuestLinkForm>,
) -> HandlerResult {
    me.may(Permission::ManageUsage(group))?;
    match form.create_link(&context, &me, GuestLinkTarget::Report(group, id)).await? {
        Ok(shown) => reveal_once::redirect(context, &me, &report_path(group, id), &shown),
        Err(link_form) => render_page(&context, &me, (group, id), link_form, SecretLinkShownOnce::default(), "").await,
    }
}

/// Revokes a guest link.
pub async fn revoke_link(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((group, id, link)): PathParams<(GroupId, ReportId, GuestLinkId)>,
) -> HandlerResult {
    me.may(Permission::ManageUsage(group))?;
    let is_expected = |target| target == GuestLinkTarget::Report(group, id);
    context.app.auth.revoke_guest_link(&me.actor(&context), link, is_expected).await?;
    Ok(flash::redirect(context, &report_path(group, id), FlashMessage::ReportLinkRevoked))
}
