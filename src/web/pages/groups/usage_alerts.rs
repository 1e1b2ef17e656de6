//! The usage alerts that a PI wants to receive, and from which percentage.

use askama::Template;
use serde::Deserialize;

use crate::auth::Permission;
use crate::store::groups::Group;
use crate::usage::alerts::{UsageAlertChoice, UsageAlertKind};
use crate::web::HandlerResult;
use crate::web::http::extractors::FormBody;
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::{FormErrors, echo_input};
use crate::web::http::page_frame::{NavSection, PageFrame, respond_with};
use crate::web::pages::groups::GroupRequest;

#[derive(Template)]
#[template(path = "groups/usage_alerts/page.html")]
struct UsageAlertsPage {
    page: PageFrame,
    group: Group,
    alerts: UsageAlertsForm,
    problems: FormErrors,
}

/// The form: which alerts are on, and their percentages as they were entered. Empty means the default.
#[derive(Deserialize, Default)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "one for each alert")]
pub struct UsageAlertsForm {
    quota: bool,
    quota_percent: String,
    runs_out: bool,
    storage: bool,
    storage_percent: String,
    failing: bool,
    failing_percent: String,
}

impl UsageAlertsForm {
    fn from_choices(choices: &[UsageAlertChoice]) -> Self {
        let find = |kind| choices.iter().find(|choice| choice.kind == kind);
        let is_on = |kind| find(kind).is_some();
        let percent = |kind: UsageAlertKind| {
            let percent = find(kind).map(|choice| choice.percent).or(kind.default_percent());
            percent.map(|percent| percent.to_string()).unwrap_or_default()
        };
        Self {
            quota: is_on(UsageAlertKind::Quota),
            quota_percent: percent(UsageAlertKind::Quota),
            runs_out: is_on(UsageAlertKind::RunsOut),
            storage: is_on(UsageAlertKind::Storage),
            storage_percent: percent(UsageAlertKind::Storage),
            failing: is_on(UsageAlertKind::Failing),
            failing_percent: percent(UsageAlertKind::Failing),
        }
    }

    /// The alerts that are on, or what is wrong with a percentage. Those of alerts that are off don't matter.
    fn choices(&self) -> Result<Vec<UsageAlertChoice>, FormErrors> {
        let fields = [
            (self.quota, UsageAlertKind::Quota, "quota_percent", self.quota_percent.as_str()),
            (self.runs_out, UsageAlertKind::RunsOut, "", ""),
            (self.storage, UsageAlertKind::Storage, "storage_percent", &self.storage_percent),
            (self.failing, UsageAlertKind::Failing, "failing_percent", &self.failing_percent),
        ];
        let mut problems = FormErrors::default();
        let mut choices = Vec::new();
        for (_, kind, field, text) in fields.into_iter().filter(|(is_on, ..)| *is_on) {
            let text = text.trim().trim_end_matches('%').trim_end();
            let entered = text.parse().ok().filter(|percent| (1..=100).contains(percent));
            let percent = if text.is_empty() { Some(kind.default_percent().unwrap_or(0)) } else { entered };
            match percent {
                Some(percent) => choices.push(UsageAlertChoice { kind, percent }),
                None => problems.add(field, "Enter a whole number from 1 to 100."),
            }
        }
        if problems.is_empty() { Ok(choices) } else { Err(problems) }
    }

    /// As it is shown again next to an error.
    fn echo(self) -> Self {
        Self {
            quota_percent: echo_input(&self.quota_percent),
            storage_percent: echo_input(&self.storage_percent),
            failing_percent: echo_input(&self.failing_percent),
            ..self
        }
    }
}

pub async fn get(request: GroupRequest) -> HandlerResult {
    request.me.may(Permission::ManageUsage(request.group))?;
    let choices = request.context.app.usage.alerts(request.me.0.person.id, request.group).await?;
    show(request, UsageAlertsForm::from_choices(&choices), FormErrors::default()).await
}

async fn show(request: GroupRequest, alerts: UsageAlertsForm, problems: FormErrors) -> HandlerResult {
    let group = request.load_group().await?;
    let page = PageFrame::for_person(&request.context, &request.me.0, "Alerts", NavSection::Groups);
    respond_with(problems.status(), &UsageAlertsPage { page, group, alerts, problems })
}

pub async fn save(request: GroupRequest, FormBody(form): FormBody<UsageAlertsForm>) -> HandlerResult {
    request.me.may(Permission::ManageUsage(request.group))?;
    let alerts = match form.choices() {
        Ok(alerts) => alerts,
        Err(problems) => return show(request, form.echo(), problems).await,
    };
    let GroupRequest { context, me, group } = request;
    let usage = &context.app.usage;
    usage.set_alerts(&me.actor(&context), me.0.person.id, group, &alerts).await?;
    if !alerts.is_empty() {
        // Alerts need data: loading the usage starts reading it, as opening the page does.
        usage.load_group_usage(&me.0.viewer, group).await?;
    }
    Ok(flash::redirect(context, &format!("/groups/{group}/alerts"), FlashMessage::AlertsSet))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_checked_where_they_matter() {
        let form = |quota: bool, percent: &str| UsageAlertsForm {
            quota,
            quota_percent: percent.into(),
            ..UsageAlertsForm::default()
        };
        let percent = |text: &str| form(true, text).choices().ok().map(|choices| choices[0].percent);
        assert_eq!([percent("65"), percent(" 65 % "), percent("")], [Some(65), Some(65), Some(80)]);
        for bad in ["0", "101", "-5", "many", "1e2"] {
            assert_eq!(percent(bad), None, "{bad}");
        }
        assert!(form(false, "many").choices().is_ok_and(|choices| choices.is_empty()), "it is off");
    }
}
