//! Whether PIs can read the scripts and the output of members' jobs: the group's setting and each member's own choice.

use askama::Template;
use serde::Deserialize;

use crate::auth::Permission;
use crate::error::AppError;
use crate::store::groups::Group;
use crate::store::job_sharing::JobSharingRow;
use crate::web::HandlerResult;
use crate::web::http::extractors::FormBody;
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::groups::GroupRequest;

#[derive(Template)]
#[template(path = "groups/sharing/page.html")]
struct JobSharingPage {
    page: PageFrame,
    group: Group,
    may_manage: bool,
    sharing: JobSharingRow,
}

/// A member's own choice.
#[derive(Deserialize)]
pub struct OwnJobSharingForm {
    choice: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct GroupJobSharingForm {
    is_shared: bool,
}

pub async fn get(request: GroupRequest) -> HandlerResult {
    request.me.may(Permission::SeeUsage(request.group))?;
    let group = request.load_group().await?;
    let GroupRequest { context, me, .. } = request;
    let sharing = context.app.usage.job_sharing(group.id, me.0.person.id).await?.ok_or(AppError::NotFound)?;
    respond(&JobSharingPage {
        page: PageFrame::for_person(&context, &me.0, "Job sharing", NavSection::Groups),
        may_manage: me.may(Permission::ManageUsage(group.id)).is_ok(),
        group,
        sharing,
    })
}

pub async fn save_own(request: GroupRequest, FormBody(form): FormBody<OwnJobSharingForm>) -> HandlerResult {
    let GroupRequest { context, me, group } = request;
    me.may(Permission::SeeUsage(group))?;
    let choice = match form.choice.as_str() {
        "share" => Some(true),
        "keep" => Some(false),
        "group" => None,
        _ => return Err(AppError::BadRequest("Choose one of the listed options.".to_owned())),
    };
    context.app.usage.set_own_job_sharing(&me.actor(&context), group, choice).await?;
    Ok(flash::redirect(context, &format!("/groups/{group}/sharing"), FlashMessage::JobSharingSet))
}

pub async fn save_group(request: GroupRequest, FormBody(form): FormBody<GroupJobSharingForm>) -> HandlerResult {
    let GroupRequest { context, me, group } = request;
    me.may(Permission::ManageUsage(group))?;
    context.app.usage.set_group_job_sharing(&me.actor(&context), group, form.is_shared).await?;
    Ok(flash::redirect(context, &format!("/groups/{group}/sharing"), FlashMessage::JobSharingSet))
}
