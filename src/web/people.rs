//! People, for administrators: who is here, switching accounts off and on, rights, reset links.

use askama::Template;
use serde::Deserialize;

use super::Answer;
use super::extract::{Context, Form, Me, Path};
use super::flash::{self, Flash};
use super::once::{self, Shown};
use super::page::{Page, Section, show};
use crate::auth::Permission;
use crate::auth::people::PortalAccountState;
use crate::domain::PersonId;
use crate::error::AppError;
use crate::store;
use crate::store::groups::Membership;
use crate::store::people::{Person, PersonListItem};

/// Administrator or not.
#[derive(Deserialize)]
pub struct AdminForm {
    admin: bool,
}

#[derive(Template)]
#[template(path = "people/list.html")]
struct ListPage {
    page: Page,
    people: Vec<PersonListItem>,
    me: PersonId,
}

#[derive(Template)]
#[template(path = "people/person.html")]
struct PersonPage {
    page: Page,
    person: Person,
    memberships: Vec<Membership>,
    devices: usize,
    is_me: bool,
    link: String,
}

/// Everyone.
pub async fn list(context: Context, me: Me) -> Answer {
    me.may(Permission::ManagePeople)?;
    let people = store::people::list(&mut *context.app.store.read().await?).await?;
    let page = Page::for_person(&context, &me.0, "People", Section::People);
    show(&ListPage { page, people, me: me.0.person.id })
}

/// One person.
pub async fn get(context: Context, me: Me, Path(id): Path<PersonId>) -> Answer {
    me.may(Permission::ManagePeople)?;
    let Some(shown) = once::waiting(&context, &me, &address(id)) else {
        return person_page(&context, &me, id, String::new()).await;
    };
    Ok(once::spend(&context, person_page(&context, &me, id, shown.link).await?))
}

async fn person_page(context: &Context, me: &Me, id: PersonId, link: String) -> Answer {
    let mut db = context.app.store.read().await?;
    let person = store::people::get(&mut db, id).await?.ok_or(AppError::NotFound)?;
    let memberships = store::groups::list_for_person(&mut db, id).await?;
    let devices = store::sessions::list_for_person(&mut db, id).await?.len();
    let page = Page::for_person(context, &me.0, &person.display_name, Section::People);
    show(&PersonPage { page, is_me: me.0.person.id == id, person, memberships, devices, link })
}

/// Switches an account off; every session of it ends at once.
pub async fn disable(context: Context, me: Me, Path(id): Path<PersonId>) -> Answer {
    me.may(Permission::ManagePeople)?;
    context
        .app
        .auth
        .set_account_state(&me.actor(&context), id, PortalAccountState::Disabled)
        .await?;
    Ok(flash::redirect(context, &address(id), Flash::PersonDisabled))
}

/// Switches an account on again.
pub async fn enable(context: Context, me: Me, Path(id): Path<PersonId>) -> Answer {
    me.may(Permission::ManagePeople)?;
    context.app.auth.set_account_state(&me.actor(&context), id, PortalAccountState::Active).await?;
    Ok(flash::redirect(context, &address(id), Flash::PersonEnabled))
}

/// Makes someone an administrator, or no longer one.
pub async fn set_admin(
    context: Context,
    me: Me,
    Path(id): Path<PersonId>,
    Form(form): Form<AdminForm>,
) -> Answer {
    me.may(Permission::ManagePeople)?;
    context.app.auth.set_admin(&me.actor(&context), id, form.admin).await?;
    // Whoever gave their own rights away may not see that page any more.
    let to = if id == me.0.person.id { "/".to_owned() } else { address(id) };
    Ok(flash::redirect(context, &to, Flash::AdminChanged))
}

/// Turns someone's second factor off.
pub async fn remove_second_factor(context: Context, me: Me, Path(id): Path<PersonId>) -> Answer {
    me.may(Permission::ManagePeople)?;
    context.app.auth.remove_second_factor(&me.actor(&context), id).await?;
    Ok(flash::redirect(context, &address(id), Flash::SecondFactorRemoved))
}

/// Makes a reset link and shows it, once.
pub async fn reset_link(context: Context, me: Me, Path(id): Path<PersonId>) -> Answer {
    me.may(Permission::ManagePeople)?;
    let token = context.app.auth.create_reset_link(&me.actor(&context), id).await?;
    let link = context.app.config.portal.public_url.join(&format!("/reset/{}", token.as_str()));
    once::redirect(context, &me, &address(id), &Shown { link, ..Shown::default() })
}

fn address(id: PersonId) -> String {
    format!("/people/{id}")
}
