//! Changing a member's role and removing someone from a group. The members page asks first.

use serde::Deserialize;

use crate::auth::Permission;
use crate::domain::{GroupId, GroupRole, PersonId};
use crate::error::AppError;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::pages::groups::members_path;

#[derive(Deserialize)]
pub struct MemberRoleForm {
    role: String,
    /// Who becomes a PI, if the group would have none.
    #[serde(default)]
    successor: Option<PersonId>,
}

#[derive(Deserialize)]
pub struct RemoveMemberForm {
    /// Who becomes a PI, if the group would have none.
    #[serde(default)]
    successor: Option<PersonId>,
}

pub async fn set_role(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((group, person)): PathParams<(GroupId, PersonId)>,
    FormBody(form): FormBody<MemberRoleForm>,
) -> HandlerResult {
    me.may(Permission::ManageGroup(group))?;
    let role = form.role.parse::<GroupRole>().map_err(|error| AppError::BadRequest(error.to_string()))?;
    context.app.auth.set_role(&me.actor(&context), group, person, role, form.successor).await?;
    Ok(flash::redirect(context, &members_path(group), FlashMessage::RoleChanged))
}

/// An administrator removes anyone; a PI removes members who are no PIs.
pub async fn remove(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((group, person)): PathParams<(GroupId, PersonId)>,
    FormBody(form): FormBody<RemoveMemberForm>,
) -> HandlerResult {
    me.may(Permission::RemoveFromGroup(group, GroupRole::Member))?;
    context.app.auth.remove_member(&me.actor(&context), group, person, form.successor).await?;
    Ok(flash::redirect(context, &members_path(group), FlashMessage::MemberRemoved))
}
