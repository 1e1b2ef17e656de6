//! The usage alerts that a PI wants to receive.

use askama::Template;
use serde::Deserialize;

use crate::auth::{AuthError, Permission};
use crate::domain::GroupId;
use crate::store;
use crate::usage::alerts::UsageAlertKind;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};

#[derive(Template)]
#[template(path = "groups/usage_alerts/page.html")]
struct UsageAlertsPage {
    page: PageFrame,
    name: String,
    alerts: UsageAlertChoices,
}

/// The form; other pages include it through `usage_alerts/form.html`.
pub struct UsageAlertChoices {
    pub group: GroupId,
    /// 80 % of an allocation is used.
    pub quota: bool,
    /// A storage quota is 90 % full.
    pub storage: bool,
    /// Many jobs fail.
    pub failing: bool,
}

impl UsageAlertChoices {
    pub async fn load(context: &RequestContext, me: &CurrentPerson, group: GroupId) -> store::Result<Self> {
        let chosen = context.app.usage.alerts(me.0.person.id, group).await?;
        Ok(Self {
            group,
            quota: chosen.contains(&UsageAlertKind::Quota),
            storage: chosen.contains(&UsageAlertKind::Storage),
            failing: chosen.contains(&UsageAlertKind::Failing),
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct UsageAlertChoicesForm {
    quota: bool,
    storage: bool,
    failing: bool,
}

pub async fn get(context: RequestContext, me: CurrentPerson, PathParams(group): PathParams<GroupId>) -> HandlerResult {
    me.may(Permission::ManageUsage(group))?;
    let found = store::groups::get(&mut *context.app.store.read().await?, group).await?;
    let name = found.ok_or(AuthError::NotFound)?.name;
    let alerts = UsageAlertChoices::load(&context, &me, group).await?;
    respond(&UsageAlertsPage {
        page: PageFrame::for_person(&context, &me.0, "Alerts", NavSection::Groups),
        name,
        alerts,
    })
}

pub async fn save(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(group): PathParams<GroupId>,
    FormBody(form): FormBody<UsageAlertChoicesForm>,
) -> HandlerResult {
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
