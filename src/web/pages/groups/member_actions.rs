//! Changing a member's role and removing someone from a group. The members page asks first.

use serde::Deserialize;

use crate::auth::{AuthError, Permission};
use crate::domain::{GroupId, GroupRole, PersonId};
use crate::error::AppError;
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::FormErrors;
use crate::web::pages::groups::{GroupPageForms, members_path, render_group, successor_scope};

#[derive(Deserialize)]
pub struct MemberRoleForm {
    role: String,
    /// Who becomes a PI, if the group would have none; empty if nobody was chosen.
    #[serde(default)]
    successor: String,
}

#[derive(Deserialize)]
pub struct RemoveMemberForm {
    /// Who becomes a PI, if the group would have none; empty if nobody was chosen.
    #[serde(default)]
    successor: String,
}

pub async fn set_role(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((group, person)): PathParams<(GroupId, PersonId)>,
    FormBody(form): FormBody<MemberRoleForm>,
) -> HandlerResult {
    me.may(Permission::ManageGroup(group))?;
    let role = form.role.parse::<GroupRole>().map_err(|error| AppError::BadRequest(error.to_string()))?;
    let successor = parse_successor(&form.successor)?;
    match context.app.auth.set_role(&me.actor(&context), group, person, role, successor).await {
        Err(AuthError::LastPi) => render_missing_successor(&context, &me, group, person, "role").await,
        done => {
            done?;
            Ok(flash::redirect(context, &members_path(group), FlashMessage::RoleChanged))
        }
    }
}

/// An administrator removes anyone; a PI removes members who are no PIs.
pub async fn remove(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((group, person)): PathParams<(GroupId, PersonId)>,
    FormBody(form): FormBody<RemoveMemberForm>,
) -> HandlerResult {
    me.may(Permission::RemoveFromGroup(group, GroupRole::Member))?;
    let successor = parse_successor(&form.successor)?;
    match context.app.auth.remove_member(&me.actor(&context), group, person, successor).await {
        Err(AuthError::LastPi) => render_missing_successor(&context, &me, group, person, "remove").await,
        done => {
            done?;
            Ok(flash::redirect(context, &members_path(group), FlashMessage::MemberRemoved))
        }
    }
}

fn parse_successor(text: &str) -> Result<Option<PersonId>, AppError> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(|id| Some(PersonId(id))).map_err(|_| AppError::NotFound)
}

/// The members page, which asks who becomes a PI. Refused if there is nobody to choose.
async fn render_missing_successor(
    context: &RequestContext,
    me: &CurrentPerson,
    group: GroupId,
    leaver: PersonId,
    action: &str,
) -> HandlerResult {
    let members = store::groups::list_members(&mut *context.app.store.read().await?, group).await?;
    if !members.iter().any(|member| member.person_id != leaver && !member.is_disabled) {
        return Err(AppError::LastPi);
    }
    let state = GroupPageForms {
        successor_scope: successor_scope(action, leaver),
        successor_problems: FormErrors::single("successor", "Choose who becomes the new PI."),
        ..GroupPageForms::default()
    };
    render_group(context, me, group, state).await
}
