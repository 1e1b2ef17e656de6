//! Inviting people into a group.

use serde::Deserialize;

use super::Answer;
use super::extract::{Context, Form, Me, Path};
use super::flash::{self, Flash};
use super::form::{Problems, shown_again};
use super::groups::{State, address, group_page};
use super::once::{self, Shown};
use crate::auth::Permission;
use crate::auth::one_time_links::MAX_INVITATION_DAYS;
use crate::domain::{DisplayName, GroupId, GroupRole, OneTimeLinkId};
use crate::error::AppError;

/// Who is invited, as what, for how long.
#[derive(Deserialize)]
pub struct InviteForm {
    #[serde(default)]
    label: String,
    role: String,
    days: String,
}

/// Makes an invitation and shows its link, once.
pub async fn add(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Form(form): Form<InviteForm>,
) -> Answer {
    me.may(Permission::SeeInvitations(group))?;
    let role =
        form.role.parse::<GroupRole>().map_err(|error| AppError::BadRequest(error.to_string()))?;
    me.may(Permission::Invite(group, role))?;
    let mut problems = Problems::default();
    let days = form
        .days
        .trim()
        .parse::<i64>()
        .ok()
        .filter(|days| (1..=MAX_INVITATION_DAYS).contains(days));
    if days.is_none() {
        problems.add("days", "Choose between 1 and 30 days.");
    }
    let label = form.label.trim();
    if !label.is_empty() {
        problems.parse::<DisplayName>("label", label);
    }
    let (Some(days), true) = (days, problems.is_empty()) else {
        let state = State {
            invite_problems: problems,
            typed_label: shown_again(label),
            role: role.to_string(),
            days: shown_again(&form.days),
            ..State::default()
        };
        return group_page(&context, &me, group, state).await;
    };
    let token =
        context.app.auth.create_invitation(&me.actor(&context), (group, role), label, days).await?;
    let link = context.app.config.portal.public_url.join(&format!("/join/{}", token.as_str()));
    once::redirect(context, &me, &address(group), &Shown { link, label: label.to_owned() })
}

/// Takes an invitation back.
pub async fn revoke(
    context: Context,
    me: Me,
    Path((group, link)): Path<(GroupId, OneTimeLinkId)>,
) -> Answer {
    me.may(Permission::SeeInvitations(group))?;
    context.app.auth.revoke_invitation(&me.actor(&context), group, link).await?;
    Ok(flash::redirect(context, &address(group), Flash::InvitationRevoked))
}
