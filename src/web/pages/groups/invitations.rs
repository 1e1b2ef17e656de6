//! Inviting people to a group.

use serde::Deserialize;

use crate::auth::Permission;
use crate::auth::one_time_links::MAX_INVITATION_DAYS;
use crate::domain::{DisplayName, GroupId, GroupRole, OneTimeLinkId};
use crate::error::AppError;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::{FormErrors, echo_input};
use crate::web::http::reveal_once::{self, SecretLinkShownOnce};
use crate::web::pages::groups::{GroupPageForms, GroupRequest, members_path, render_group};

#[derive(Deserialize)]
pub struct InviteForm {
    #[serde(default)]
    label: String,
    role: String,
    days: String,
}

/// Creates an invitation and shows its link once.
pub async fn create(request: GroupRequest, FormBody(form): FormBody<InviteForm>) -> HandlerResult {
    let GroupRequest { context, me, group } = request;
    me.may(Permission::SeeInvitations(group))?;
    let role = form.role.parse::<GroupRole>().map_err(|error| AppError::BadRequest(error.to_string()))?;
    me.may(Permission::Invite(group, role))?;
    let mut problems = FormErrors::default();
    let days = form.days.trim().parse::<i64>().ok().filter(|days| (1..=MAX_INVITATION_DAYS).contains(days));
    if days.is_none() {
        problems.add("days", "Enter a number of days from 1 to 30.");
    }
    let label = form.label.trim();
    if !label.is_empty() {
        problems.parse::<DisplayName>("label", label);
    }
    let (Some(days), true) = (days, problems.is_empty()) else {
        let state = GroupPageForms {
            invite_problems: problems,
            typed_label: echo_input(label),
            role: role.to_string(),
            days: echo_input(&form.days),
            ..GroupPageForms::default()
        };
        return render_group(&context, &me, group, state).await;
    };
    let token = context.app.auth.create_invitation(&me.actor(&context), (group, role), label, days).await?;
    let link = context.app.config.portal.public_url.join(&format!("/join/{}", token.as_str()));
    reveal_once::redirect(context, &me, &members_path(group), &SecretLinkShownOnce { link, label: label.to_owned() })
}

/// Revokes an invitation.
pub async fn revoke(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((group, link)): PathParams<(GroupId, OneTimeLinkId)>,
) -> HandlerResult {
    me.may(Permission::SeeInvitations(group))?;
    context.app.auth.revoke_invitation(&me.actor(&context), group, link).await?;
    Ok(flash::redirect(context, &members_path(group), FlashMessage::InvitationRevoked))
}
