//! One's own account: name and password.

use askama::Template;
use axum::http::StatusCode;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::Answer;
use super::errors::too_many;
use super::extract::{Context, Form, Me};
use super::flash::{self, Flash};
use super::form::{Problems, shown_again};
use super::page::{PROBLEMS, Page, Section, show_with};
use super::setup::problems_of;
use super::sign_in;
use crate::auth::password::PasswordError;
use crate::auth::{AuthError, Permission};
use crate::domain::DisplayName;

/// How the name reads.
#[derive(Deserialize)]
pub struct NameForm {
    display_name: String,
}

/// The current password and the new one, twice.
#[derive(Deserialize)]
pub struct PasswordForm {
    current: SecretString,
    password: SecretString,
    again: SecretString,
}

#[derive(Template)]
#[template(path = "account/profile.html")]
struct AccountPage {
    page: Page,
    name: String,
    display_name: String,
    has_totp: bool,
    name_problems: Problems,
    password_problems: Problems,
}

#[derive(Default)]
struct State {
    display_name: Option<String>,
    name_problems: Problems,
    password_problems: Problems,
}

fn account(context: &Context, me: &Me, state: State) -> Answer {
    let wrong = !state.name_problems.is_empty() || !state.password_problems.is_empty();
    let person = &me.0.person;
    let page = AccountPage {
        page: Page::for_person(context, &me.0, "Account", Section::Account),
        name: person.name.clone(),
        display_name: state.display_name.unwrap_or_else(|| person.display_name.clone()),
        has_totp: person.has_totp,
        name_problems: state.name_problems,
        password_problems: state.password_problems,
    };
    show_with(if wrong { PROBLEMS } else { StatusCode::OK }, &page)
}

/// The page.
pub async fn get(context: Context, me: Me) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    account(&context, &me, State::default())
}

/// Changes how the name reads.
pub async fn post_name(context: Context, me: Me, Form(form): Form<NameForm>) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    let mut problems = Problems::default();
    let Some(name) = problems.parse::<DisplayName>("display_name", &form.display_name) else {
        let display_name = Some(shown_again(&form.display_name));
        return account(
            &context,
            &me,
            State { display_name, name_problems: problems, ..State::default() },
        );
    };
    context.app.auth.change_display_name(&me.0, &name, &context.visitor).await?;
    Ok(flash::redirect(context, "/account", Flash::NameChanged))
}

/// Changes the password; other devices are signed out.
pub async fn post_password(mut context: Context, me: Me, Form(form): Form<PasswordForm>) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    let problems = if form.password.expose_secret() == form.again.expose_secret() {
        match context
            .app
            .auth
            .change_password(&me.0, &form.current, &form.password, &context.visitor)
            .await
        {
            Ok(()) => {
                sign_in::stay_known(&mut context, &me.0).await?;
                return Ok(flash::redirect(context, "/account", Flash::PasswordChanged));
            }
            Err(error) => confirmation_problems(error, "current")?,
        }
    } else {
        Problems::one("again", PasswordError::Differ)
    };
    account(&context, &me, State { password_problems: problems, ..State::default() })
}

/// What is wrong with a form that asks for the current password in the given field.
pub fn confirmation_problems(
    error: AuthError,
    field: &'static str,
) -> Result<Problems, crate::error::AppError> {
    match error {
        AuthError::WrongPassword => Ok(Problems::one(field, "This is not your current password.")),
        AuthError::TooManyTries(wait) => Ok(Problems::one(field, too_many(wait))),
        other => problems_of(other),
    }
}
