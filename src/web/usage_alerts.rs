//! What a group's leader wants to be told of its use.

use askama::Template;
use serde::Deserialize;

use super::Answer;
use super::extract::{Context, Form, Me, Path};
use super::flash::{self, Flash};
use super::page::{Page, Section, show};
use crate::auth::{AuthError, Permission};
use crate::domain::GroupId;
use crate::store;
use crate::usage::alerts::Alert;

#[derive(Template)]
#[template(path = "usage_alerts/page.html")]
struct AlertsPage {
    page: Page,
    name: String,
    alerts: AlertsForm,
}

/// The form, also for other pages: `usage_alerts/form.html`.
pub struct AlertsForm {
    /// Of which group.
    pub group: GroupId,
    /// 80 % of an allocation.
    pub quota: bool,
    /// 90 % of a place for files.
    pub storage: bool,
    /// Jobs that fail in numbers.
    pub failing: bool,
}

impl AlertsForm {
    /// As someone has chosen.
    pub async fn of(context: &Context, me: &Me, group: GroupId) -> store::Result<Self> {
        let chosen = context.app.usage.alerts(me.0.person.id, group).await?;
        Ok(Self {
            group,
            quota: chosen.contains(&Alert::Quota),
            storage: chosen.contains(&Alert::Storage),
            failing: chosen.contains(&Alert::Failing),
        })
    }
}

/// What was chosen.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Chosen {
    quota: bool,
    storage: bool,
    failing: bool,
}

/// The page.
pub async fn get(context: Context, me: Me, Path(group): Path<GroupId>) -> Answer {
    me.may(Permission::ManageUsage(group))?;
    let found = store::groups::get(&mut *context.app.store.read().await?, group).await?;
    let name = found.ok_or(AuthError::NotFound)?.name;
    let alerts = AlertsForm::of(&context, &me, group).await?;
    show(&AlertsPage {
        page: Page::for_person(&context, &me.0, "Alerts", Section::Groups),
        name,
        alerts,
    })
}

/// Saves the choice.
pub async fn set(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Form(form): Form<Chosen>,
) -> Answer {
    me.may(Permission::ManageUsage(group))?;
    let chosen = [
        (form.quota, Alert::Quota),
        (form.storage, Alert::Storage),
        (form.failing, Alert::Failing),
    ];
    let alerts: Vec<Alert> =
        chosen.into_iter().filter(|(is_on, _)| *is_on).map(|(_, alert)| alert).collect();
    let usage = &context.app.usage;
    usage.set_alerts(&me.actor(&context), me.0.person.id, group, &alerts).await?;
    if !alerts.is_empty() {
        // What is to be told must be read: this opens the books, as looking at the page does.
        usage.look(&me.0.viewer, group).await?;
    }
    Ok(flash::redirect(context, &format!("/groups/{group}/alerts"), Flash::AlertsSet))
}
