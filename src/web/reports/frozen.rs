//! A frozen report: its page, its links for guests, deleting it.

use askama::Template;
use axum::http::StatusCode;

use super::super::boards::board::ShareState;
use super::super::boards::links::LinkForm;
use super::super::extract::{Context, Form, Me, Path};
use super::super::flash::{self, Flash};
use super::super::once::{self, Shown};
use super::super::page::{PROBLEMS, Page, Section, show_with};
use super::super::{Answer, assets};
use super::chart::Chart;
use super::{address, sheet};
use crate::auth::Permission;
use crate::auth::guest_links::{CreateGuestLinkError, DEFAULT_LINK_DAYS};
use crate::domain::{GroupId, ReportId, ReportLinkId};
use crate::error::AppError;
use crate::usage::frozen::FrozenReport;
use crate::usage::report::Report;
use crate::usage::report_links::ReportGuestLink;

#[derive(Template)]
#[template(path = "reports/frozen.html")]
struct FrozenPage {
    page: Page,
    report_css: &'static str,
    href: String,
    links_href: String,
    frozen: FrozenReport,
    report: Report,
    chart: Chart,
    share: ShareState,
    shown: Shown,
    open: Vec<ReportGuestLink>,
    ended: Vec<ReportGuestLink>,
}

/// Its page.
pub async fn get(context: Context, me: Me, Path((group, id)): Path<(GroupId, ReportId)>) -> Answer {
    me.may(Permission::ManageUsage(group))?;
    let share = ShareState { days: DEFAULT_LINK_DAYS.to_string(), ..ShareState::default() };
    let waiting = once::waiting(&context, &me, &address(group, id));
    let is_waiting = waiting.is_some();
    let page = page(&context, &me, (group, id), share, waiting.unwrap_or_default()).await?;
    Ok(if is_waiting { once::spend(&context, page) } else { page })
}

async fn page(
    context: &Context,
    me: &Me,
    (group, id): (GroupId, ReportId),
    share: ShareState,
    shown: Shown,
) -> Answer {
    let (frozen, report) = context.app.usage.frozen(group, id).await?;
    let now = context.app.clock.now();
    let links = context.app.usage.report_links(id).await?;
    let (open, ended) = links.into_iter().partition(|link| link.terms.is_open(now));
    let status = if share.problems.is_empty() { StatusCode::OK } else { PROBLEMS };
    let page = FrozenPage {
        page: Page::for_person(context, &me.0, &frozen.title, Section::Groups),
        report_css: assets::address("report.css"),
        href: address(group, id),
        links_href: format!("{}/links", address(group, id)),
        frozen,
        chart: Chart::of(&report),
        report,
        share,
        shown,
        open,
        ended,
    };
    show_with(status, &page)
}

/// Deletes it.
pub async fn remove(
    context: Context,
    me: Me,
    Path((group, id)): Path<(GroupId, ReportId)>,
) -> Answer {
    me.may(Permission::ManageUsage(group))?;
    context.app.usage.remove_report(&me.actor(&context), group, id).await?;
    let to = format!("/groups/{group}/report");
    Ok(flash::redirect(context, &to, Flash::ReportRemoved))
}

/// Makes a link and shows it, once.
pub async fn share(
    context: Context,
    me: Me,
    Path((group, id)): Path<(GroupId, ReportId)>,
    Form(form): Form<LinkForm>,
) -> Answer {
    me.may(Permission::ManageUsage(group))?;
    let usage = &context.app.usage;
    match usage.share_report(&me.actor(&context), group, id, &form.invitation()).await {
        Ok(token) => {
            let path = format!("/r/{}", token.as_str());
            let link = context.app.config.boards.public_url.join(&path);
            let shown = Shown { link, label: form.label() };
            once::redirect(context, &me, &address(group, id), &shown)
        }
        Err(CreateGuestLinkError::Auth(error)) => Err(AppError::from(error)),
        Err(problem) => {
            page(&context, &me, (group, id), form.again(&problem), Shown::default()).await
        }
    }
}

/// Takes a link back.
pub async fn revoke(
    context: Context,
    me: Me,
    Path((group, id, link)): Path<(GroupId, ReportId, ReportLinkId)>,
) -> Answer {
    me.may(Permission::ManageUsage(group))?;
    context.app.usage.unshare_report(&me.actor(&context), group, id, link).await?;
    Ok(flash::redirect(context, &address(group, id), Flash::ReportUnshared))
}
