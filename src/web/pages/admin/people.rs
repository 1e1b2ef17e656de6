//! People, for administrators: the list, disabling, enabling and deleting accounts, roles, reset links.

use askama::Template;
use serde::Deserialize;

use crate::auth::Permission;
use crate::auth::people::{AccountDeletionPreview, PortalAccountState, is_last_admin};
use crate::domain::PersonId;
use crate::error::AppError;
use crate::store;
use crate::store::groups::{Group, Membership};
use crate::store::people::{Person, PersonBelongings, PersonListItem};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::http::reveal_once::{self, SecretLinkShownOnce};
use crate::web::pages::groups::invite_path;
use crate::web::pages::sign_in;

/// Groups in the menu to invite someone; the page of all groups has the rest.
const MAX_INVITE_LINKS: usize = 20;

#[derive(Deserialize)]
pub struct SetAdminForm {
    admin: bool,
}

#[derive(Template)]
#[template(path = "admin/people/list.html")]
struct PeopleListPage {
    page: PageFrame,
    people: Vec<PersonListItem>,
    me: PersonId,
    /// Where to invite someone: the link, and the group's name.
    groups: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "admin/people/person.html")]
struct PersonPage {
    page: PageFrame,
    person: Person,
    memberships: Vec<Membership>,
    devices: usize,
    is_me: bool,
    link: String,
    /// Rights can't be removed, and the account neither disabled nor deleted: the portal needs an administrator.
    is_last_admin: bool,
    /// Groups with other members that would have no PI without this person.
    led_alone: Vec<Group>,
}

#[derive(Template)]
#[template(path = "admin/people/delete.html")]
struct DeletePersonPage {
    page: PageFrame,
    person: Person,
    heading: String,
    is_me: bool,
    belongings: PersonBelongings,
    is_last_admin: bool,
    /// Groups with other members that would have no PI without this person.
    led_alone: Vec<Group>,
}

impl DeletePersonPage {
    fn may_delete(&self) -> bool {
        !self.is_last_admin && self.led_alone.is_empty()
    }
}

pub async fn list(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::ManagePeople)?;
    let mut db = context.app.store.read().await?;
    let people = store::people::list(&mut db).await?;
    let groups = list_invite_links(store::groups::list(&mut db).await?);
    drop(db);
    let page = PageFrame::for_person(&context, &me.0, "People", NavSection::People);
    respond(&PeopleListPage { page, people, me: me.0.person.id, groups })
}

/// Links to the forms that invite someone. Without a group, the link leads to where one is created.
fn list_invite_links(groups: Vec<Group>) -> Vec<(String, String)> {
    if groups.is_empty() {
        return vec![("/groups".to_owned(), String::new())];
    }
    let more = groups.len() > MAX_INVITE_LINKS;
    let link = |group: Group| (invite_path(group.id), group.name);
    let mut links: Vec<(String, String)> = groups.into_iter().take(MAX_INVITE_LINKS).map(link).collect();
    if more {
        links.push(("/groups".to_owned(), "another group".to_owned()));
    }
    links
}

pub async fn get(context: RequestContext, me: CurrentPerson, PathParams(id): PathParams<PersonId>) -> HandlerResult {
    me.may(Permission::ManagePeople)?;
    let Some(pending) = reveal_once::take_pending(&context, &me, &person_path(id)) else {
        return render_person(&context, &me, id, String::new()).await;
    };
    Ok(reveal_once::clear_cookie(&context, render_person(&context, &me, id, pending.link).await?))
}

async fn render_person(context: &RequestContext, me: &CurrentPerson, id: PersonId, link: String) -> HandlerResult {
    let mut db = context.app.store.read().await?;
    let person = store::people::get(&mut db, id).await?.ok_or(AppError::NotFound)?;
    let memberships = store::groups::list_for_person(&mut db, id).await?;
    let devices = store::sessions::list_for_person(&mut db, id).await?.len();
    let led_alone = store::groups::list_led_alone(&mut db, id).await?;
    let is_last_admin = is_last_admin(&mut db, &person).await?;
    let page = PageFrame::for_person(context, &me.0, &person.display_name, NavSection::People);
    let is_me = me.0.person.id == id;
    respond(&PersonPage { page, person, memberships, devices, is_me, link, is_last_admin, led_alone })
}

/// Disables an account and ends all its sessions at once.
pub async fn disable(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<PersonId>,
) -> HandlerResult {
    me.may(Permission::ManagePeople)?;
    context.app.auth.set_account_state(&me.actor(&context), id, PortalAccountState::Disabled).await?;
    Ok(flash::redirect(context, &person_path(id), FlashMessage::PersonDisabled))
}

pub async fn enable(context: RequestContext, me: CurrentPerson, PathParams(id): PathParams<PersonId>) -> HandlerResult {
    me.may(Permission::ManagePeople)?;
    context.app.auth.set_account_state(&me.actor(&context), id, PortalAccountState::Active).await?;
    Ok(flash::redirect(context, &person_path(id), FlashMessage::PersonEnabled))
}

/// Says what deleting an account deletes and what stays, and asks.
pub async fn confirm_delete(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<PersonId>,
) -> HandlerResult {
    me.may(Permission::ManagePeople)?;
    let AccountDeletionPreview { person, belongings, is_last_admin, led_alone } =
        context.app.auth.preview_deletion(id).await?;
    let heading = format!("Delete {}'s account", person.display_name);
    let page = PageFrame::for_person(&context, &me.0, &heading, NavSection::People);
    let is_me = me.0.person.id == id;
    respond(&DeletePersonPage { page, person, heading, is_me, belongings, is_last_admin, led_alone })
}

/// Deletes an account. Its connections close, and its dashboards and guest links end.
pub async fn delete(context: RequestContext, me: CurrentPerson, PathParams(id): PathParams<PersonId>) -> HandlerResult {
    me.may(Permission::ManagePeople)?;
    context.app.auth.delete_account(&me.actor(&context), id).await?;
    context.app.dashboards.wake_reconciler();
    if id == me.0.person.id {
        return Ok(sign_in::redirect_signed_out(context, FlashMessage::PersonDeleted));
    }
    Ok(flash::redirect(context, "/people", FlashMessage::PersonDeleted))
}

/// Grants or removes the administrator role.
pub async fn set_admin(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<PersonId>,
    FormBody(form): FormBody<SetAdminForm>,
) -> HandlerResult {
    me.may(Permission::ManagePeople)?;
    context.app.auth.set_admin(&me.actor(&context), id, form.admin).await?;
    // Administrators who removed their own role can't open that page any more.
    let to = if id == me.0.person.id { "/".to_owned() } else { person_path(id) };
    Ok(flash::redirect(context, &to, FlashMessage::AdminChanged))
}

pub async fn remove_second_factor(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<PersonId>,
) -> HandlerResult {
    me.may(Permission::ManagePeople)?;
    context.app.auth.remove_second_factor(&me.actor(&context), id).await?;
    Ok(flash::redirect(context, &person_path(id), FlashMessage::SecondFactorRemoved))
}

/// Creates a reset link and shows it once.
pub async fn create_reset_link(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<PersonId>,
) -> HandlerResult {
    me.may(Permission::ManagePeople)?;
    let token = context.app.auth.create_reset_link(&me.actor(&context), id).await?;
    let link = context.app.config.portal.public_url.join(&format!("/reset/{}", token.as_str()));
    reveal_once::redirect(
        context,
        &me,
        &person_path(id),
        &SecretLinkShownOnce { link, ..SecretLinkShownOnce::default() },
    )
}

fn person_path(id: PersonId) -> String {
    format!("/people/{id}")
}
