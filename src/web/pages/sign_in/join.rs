//! Invitations: a new person creates an account, or someone who has one joins another group.

use std::sync::Arc;

use askama::Template;

use crate::auth::Permission;
use crate::auth::sessions::SignedInPerson;
use crate::domain::GroupRole;
use crate::error::AppError;
use crate::store::one_time_links::{OneTimeLink, OneTimeLinkPurpose};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, MaybeCurrentPerson, PathParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::FormErrors;
use crate::web::http::page_frame::{NavSection, PageFrame, respond, respond_with};
use crate::web::pages::sign_in;
use crate::web::pages::sign_in::setup::{NewAccountForm, form_errors_from};

#[derive(Template)]
#[template(path = "sign_in/join.html")]
struct JoinPage {
    page: PageFrame,
    invitation: OneTimeLink,
    role: GroupRole,
    token: String,
    new: NewAccountForm,
    problems: FormErrors,
}

#[derive(Template)]
#[template(path = "sign_in/join_with_own_account.html")]
struct JoinSignedInPage {
    page: PageFrame,
    invitation: OneTimeLink,
    role: GroupRole,
    token: String,
    me: String,
    is_member: bool,
}

/// The invitation, if it is still valid.
pub async fn get(
    context: RequestContext,
    MaybeCurrentPerson(me): MaybeCurrentPerson,
    PathParams(token): PathParams<String>,
) -> HandlerResult {
    let link = context.app.auth.find_valid_link(OneTimeLinkPurpose::Join, &token, &context.visitor).await?;
    match me {
        Some(me) => render_own_account_page(&context, &me, link, token),
        None => render_new_person_page(&context, link, token, &NewAccountForm::default(), FormErrors::default()),
    }
}

fn render_new_person_page(
    context: &RequestContext,
    invitation: OneTimeLink,
    token: String,
    form: &NewAccountForm,
    problems: FormErrors,
) -> HandlerResult {
    let page = PageFrame::for_visitor(context, "Join");
    let (_, role) = invitation.group_role().ok_or(AppError::NotFound)?;
    let status = problems.status();
    respond_with(status, &JoinPage { page, invitation, role, token, new: form.without_secrets(), problems })
}

fn render_own_account_page(
    context: &RequestContext,
    me: &Arc<SignedInPerson>,
    invitation: OneTimeLink,
    token: String,
) -> HandlerResult {
    let (group, role) = invitation.group_role().ok_or(AppError::NotFound)?;
    respond(&JoinSignedInPage {
        page: PageFrame::for_person(context, me, "Join a group", NavSection::Groups),
        invitation,
        role,
        token,
        me: me.person.display_name.clone(),
        is_member: me.viewer.role_in(group).is_some(),
    })
}

/// Creates the account, adds it to the group and signs it in.
pub async fn post(
    context: RequestContext,
    MaybeCurrentPerson(me): MaybeCurrentPerson,
    PathParams(token): PathParams<String>,
    FormBody(form): FormBody<NewAccountForm>,
) -> HandlerResult {
    let problems = match form.parse() {
        Err(problems) => problems,
        Ok(new) => match context.app.auth.join_with_new_account(&token, &new, &context.visitor).await {
            Ok(cookies) => return sign_in::redirect_home_welcome(context, me.as_deref(), &cookies).await,
            Err(error) => form_errors_from(error)?,
        },
    };
    let link = context.app.auth.find_valid_link(OneTimeLinkPurpose::Join, &token, &context.visitor).await?;
    render_new_person_page(&context, link, token, &form, problems)
}

/// Joins with the account that is signed in.
pub async fn join_with_own_account(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(token): PathParams<String>,
) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let is_new = context.app.auth.join_with_own_account(&token, &me.0, &context.visitor).await?;
    let message = if is_new { FlashMessage::Joined } else { FlashMessage::JoinedBefore };
    Ok(flash::redirect(context, "/", message))
}
