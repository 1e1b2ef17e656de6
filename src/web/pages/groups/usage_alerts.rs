//! The usage alerts that a PI wants to receive.

use askama::Template;
use serde::Deserialize;

use crate::auth::Permission;
use crate::store::groups::Group;
use crate::usage::alerts::UsageAlertKind;
use crate::web::HandlerResult;
use crate::web::http::extractors::FormBody;
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::groups::GroupRequest;

#[derive(Template)]
#[template(path = "groups/usage_alerts/page.html")]
struct UsageAlertsPage {
    page: PageFrame,
    group: Group,
    alerts: UsageAlertChoices,
}

/// The form: which alerts are on.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct UsageAlertChoices {
    /// 80% of an allocation is used.
    quota: bool,
    /// A storage quota is 90% full.
    storage: bool,
    /// Many jobs fail.
    failing: bool,
}

pub async fn get(request: GroupRequest) -> HandlerResult {
    request.me.may(Permission::ManageUsage(request.group))?;
    let group = request.load_group().await?;
    let GroupRequest { context, me, .. } = request;
    let chosen = context.app.usage.alerts(me.0.person.id, group.id).await?;
    let alerts = UsageAlertChoices {
        quota: chosen.contains(&UsageAlertKind::Quota),
        storage: chosen.contains(&UsageAlertKind::Storage),
        failing: chosen.contains(&UsageAlertKind::Failing),
    };
    let page = PageFrame::for_person(&context, &me.0, "Alerts", NavSection::Groups);
    respond(&UsageAlertsPage { page, group, alerts })
}

pub async fn save(request: GroupRequest, FormBody(form): FormBody<UsageAlertChoices>) -> HandlerResult {
    let GroupRequest { context, me, group } = request;
    me.may(Permission::ManageUsage(group))?;
    let chosen = [
        (form.quota, UsageAlertKind::Quota),
        (form.storage, UsageAlertKind::Storage),
        (form.failing, UsageAlertKind::Failing),
    ];
    let alerts: Vec<UsageAlertKind> = chosen.into_iter().filter(|(is_on, _)| *is_on).map(|(_, alert)| alert).collect();
    let usage = &context.app.usage;
    usage.set_alerts(&me.actor(&context), me.0.person.id, group, &alerts).await?;
    if !alerts.is_empty() {
        // Alerts need data: loading the usage starts reading it, as opening the page does.
        usage.load_group_usage(&me.0.viewer, group).await?;
    }
    Ok(flash::redirect(context, &format!("/groups/{group}/alerts"), FlashMessage::AlertsSet))
}
