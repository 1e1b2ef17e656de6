//! A frozen report: its page, its guest links, and deleting it.

use askama::Template;
use axum::http::StatusCode;

use crate::auth::Permission;
use crate::auth::guest_links::{CreateGuestLinkError, DEFAULT_LINK_DAYS};
use crate::domain::{GroupId, ReportId, ReportLinkId};
use crate::error::AppError;
use crate::usage::frozen_reports::FrozenReport;
use crate::usage::report::UsageReport;
use crate::usage::report_guest_links::ReportGuestLink;
use crate::web::HandlerResult;
use crate::web::http::assets;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond_with};
use crate::web::http::reveal_once::{self, SecretShownOnce};
use crate::web::pages::dashboards::dashboard::GuestLinkFormState;
use crate::web::pages::dashboards::guest_links::GuestLinkForm;
use crate::web::pages::groups::reports::chart::draw_report_chart;
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
    link_form: GuestLinkFormState,
    shown: SecretShownOnce,
    open: Vec<ReportGuestLink>,
    ended: Vec<ReportGuestLink>,
}

pub async fn get(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((group, id)): PathParams<(GroupId, ReportId)>,
) -> HandlerResult {
    me.may(Permission::ManageUsage(group))?;
    let share = GuestLinkFormState { days: DEFAULT_LINK_DAYS.to_string(), ..GuestLinkFormState::default() };
    let waiting = reveal_once::take_pending(&context, &me, &report_path(group, id));
    let is_waiting = waiting.is_some();
    let page = render_page(&context, &me, (group, id), share, waiting.unwrap_or_default()).await?;
    Ok(if is_waiting { reveal_once::clear_cookie(&context, page) } else { page })
}

async fn render_page(
    context: &RequestContext,
    me: &CurrentPerson,
    (group, id): (GroupId, ReportId),
    share: GuestLinkFormState,
    shown: SecretShownOnce,
) -> HandlerResult {
    let (frozen, report) = context.app.usage.load_frozen_report(group, id).await?;
    let now = context.app.clock.now();
    let links = context.app.usage.list_report_links(id).await?;
    let (open, ended) = links.into_iter().partition(|link| link.terms.is_open(now));
    let status = if share.problems.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS };
    let page = FrozenReportPage {
        page: PageFrame::for_person(context, &me.0, &frozen.title, NavSection::Groups),
        report_css: assets::asset_url("report.css"),
        href: report_path(group, id),
        links_href: format!("{}/guest-links", report_path(group, id)),
        frozen,
        chart: draw_report_chart(&report),
        report,
        link_form: share,
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
    let usage = &context.app.usage;
    match usage.create_report_link(&me.actor(&context), group, id, &form.invitation()).await {
        Ok(token) => {
            let path = format!("/r/{}", token.as_str());
            let link = context.app.config.dashboards.public_url.join(&path);
            let shown = SecretShownOnce { link, label: form.label() };
            reveal_once::redirect(context, &me, &report_path(group, id), &shown)
        }
        Err(CreateGuestLinkError::Auth(error)) => Err(AppError::from(error)),
        Err(problem) => {
            render_page(&context, &me, (group, id), form.form_state(&problem), SecretShownOnce::default()).await
        }
    }
}

/// Revokes a guest link.
pub async fn revoke_link(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((group, id, link)): PathParams<(GroupId, ReportId, ReportLinkId)>,
) -> HandlerResult {
    me.may(Permission::ManageUsage(group))?;
    context.app.usage.revoke_report_link(&me.actor(&context), group, id, link).await?;
    Ok(flash::redirect(context, &report_path(group, id), FlashMessage::ReportLinkRevoked))
}
