//! An invitation: a new person makes their account, or someone who has one joins another group.

use askama::Template;

use super::extract::{Context, Form, MaybeMe, Me, Path};
use super::flash::{self, Flash};
use super::form::Problems;
use super::page::{PROBLEMS, Page, Section, show, show_with};
use super::setup::{NewPersonForm, problems_of};
use super::{Answer, sign_in};
use crate::auth::Permission;
use crate::auth::sessions::SignedInPerson;
use crate::domain::GroupRole;
use crate::error::AppError;
use crate::store::one_time_links::{OneTimeLink, OneTimeLinkPurpose};

#[derive(Template)]
#[template(path = "join.html")]
struct JoinPage {
    page: Page,
    invitation: Invitation,
    token: String,
    new: NewPersonForm,
    problems: Problems,
}

#[derive(Template)]
#[template(path = "join_as_me.html")]
struct JoinAsMePage {
    page: Page,
    invitation: Invitation,
    token: String,
    me: String,
    is_member: bool,
}

/// What an invitation says.
struct Invitation {
    group: String,
    role: GroupRole,
    from: String,
}

impl Invitation {
    fn new(link: &OneTimeLink) -> Result<Self, AppError> {
        let (_, role) = link.group_role().ok_or(AppError::NotFound)?;
        Ok(Self {
            group: link.group_name.clone().unwrap_or_default(),
            role,
            from: link.created_by_name.clone().unwrap_or_default(),
        })
    }
}

/// The invitation, if it still works.
pub async fn get(context: Context, MaybeMe(me): MaybeMe, Path(token): Path<String>) -> Answer {
    let link = context
        .app
        .auth
        .find_valid_link(OneTimeLinkPurpose::Join, &token, &context.visitor)
        .await?;
    match me {
        Some(me) => as_me(&context, &me, &link, token),
        None => show(&new_person(
            &context,
            &link,
            token,
            &NewPersonForm::default(),
            Problems::default(),
        )?),
    }
}

fn new_person(
    context: &Context,
    link: &OneTimeLink,
    token: String,
    form: &NewPersonForm,
    problems: Problems,
) -> Result<JoinPage, AppError> {
    let page = Page::for_visitor(context, "Join");
    Ok(JoinPage {
        page,
        invitation: Invitation::new(link)?,
        token,
        new: form.without_secrets(),
        problems,
    })
}

fn as_me(context: &Context, me: &SignedInPerson, link: &OneTimeLink, token: String) -> Answer {
    let (group, _) = link.group_role().ok_or(AppError::NotFound)?;
    show(&JoinAsMePage {
        page: Page::for_person(context, me, "Join a group", Section::Groups),
        invitation: Invitation::new(link)?,
        token,
        me: me.person.display_name.clone(),
        is_member: me.viewer.role_in(group).is_some(),
    })
}

/// Makes the account, puts it into the group and signs it in.
pub async fn post(
    context: Context,
    MaybeMe(me): MaybeMe,
    Path(token): Path<String>,
    Form(form): Form<NewPersonForm>,
) -> Answer {
    let problems = match form.read() {
        Err(problems) => problems,
        Ok(new) => {
            match context.app.auth.join_with_new_account(&token, &new, &context.visitor).await {
                Ok(browser) => return sign_in::welcome(context, me.as_deref(), &browser).await,
                Err(error) => problems_of(error)?,
            }
        }
    };
    let link = context
        .app
        .auth
        .find_valid_link(OneTimeLinkPurpose::Join, &token, &context.visitor)
        .await?;
    show_with(PROBLEMS, &new_person(&context, &link, token, &form, problems)?)
}

/// Joins with the account one is signed in with.
pub async fn post_as_me(context: Context, me: Me, Path(token): Path<String>) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    let is_new = context.app.auth.join_with_own_account(&token, &me.0, &context.visitor).await?;
    let flash = if is_new { Flash::Joined } else { Flash::JoinedBefore };
    Ok(flash::redirect(context, "/", flash))
}
