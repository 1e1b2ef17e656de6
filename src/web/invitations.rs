//! Inviting people into a group.

use serde::Deserialize;

use super::Answer;
use super::extract::{Context, Form, Me, Path};
use super::flash::{self, Flash};
use super::form::{Problems, shown_again};
use super::groups::{State, address, group_page};
use super::once::{self, Shown};
use crate::auth::Action;
use crate::auth::links::INVITATION_DAYS_MOST;
use crate::domain::{GroupId, Label, LinkId, Role};
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
    me.may(Action::SeeInvitations(group))?;
    let role =
        form.role.parse::<Role>().map_err(|error| AppError::BadRequest(error.to_string()))?;
    me.may(Action::Invite(group, role))?;
    let mut problems = Problems::default();
    let days = form
        .days
        .trim()
        .parse::<i64>()
        .ok()
        .filter(|days| (1..=INVITATION_DAYS_MOST).contains(days));
    if days.is_none() {
        problems.add("days", "Choose between 1 and 30 days.");
    }
    let label = form.label.trim();
    if !label.is_empty() {
        problems.parse::<Label>("label", label);
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
    let token = context.app.auth.invite(&me.actor(&context), (group, role), label, days).await?;
    let link = context.app.config.portal.public_url.join(&format!("/join/{}", token.as_str()));
    once::redirect(context, &me, &address(group), &Shown { link, label: label.to_owned() })
}

/// Takes an invitation back.
pub async fn revoke(
    context: Context,
    me: Me,
    Path((group, link)): Path<(GroupId, LinkId)>,
) -> Answer {
    me.may(Action::SeeInvitations(group))?;
    context.app.auth.revoke_invitation(&me.actor(&context), group, link).await?;
    Ok(flash::redirect(context, &address(group), Flash::InvitationRevoked))
}
