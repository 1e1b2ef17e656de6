//! A person's own account: display name and password.

pub(in crate::web) mod devices;
pub(in crate::web) mod notification_settings;
pub(in crate::web) mod second_factor;
pub(in crate::web) mod ssh_keys;
pub(in crate::web) mod theme;

use askama::Template;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use crate::auth::password::PasswordError;
use crate::auth::{AuthError, Permission};
use crate::domain::DisplayName;
use crate::error::AppError;
use crate::web::HandlerResult;
use crate::web::http::errors::too_many_tries_message;
use crate::web::http::extractors::{CurrentPerson, FormBody, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::{FormErrors, echo_input};
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond, respond_with};
use crate::web::pages::sign_in;
use crate::web::pages::sign_in::setup::form_errors_from;

#[derive(Deserialize)]
pub struct DisplayNameForm {
    display_name: String,
}

/// The current password, and the new one twice.
#[derive(Deserialize)]
pub struct ChangePasswordForm {
    current: SecretString,
    password: SecretString,
    again: SecretString,
}

#[derive(Template)]
#[template(path = "account/profile.html")]
struct AccountPage {
    page: PageFrame,
    name: String,
    display_name: String,
    has_totp: bool,
    name_problems: FormErrors,
    password_problems: FormErrors,
}

impl AccountPage {
    fn new(context: &RequestContext, me: &CurrentPerson) -> Self {
        let person = &me.0.person;
        Self {
            page: PageFrame::for_person(context, &me.0, "Your account", NavSection::Account),
            name: person.name.clone(),
            display_name: person.display_name.clone(),
            has_totp: person.has_totp,
            name_problems: FormErrors::default(),
            password_problems: FormErrors::default(),
        }
    }
}

pub async fn get(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    respond(&AccountPage::new(&context, &me))
}

pub async fn change_display_name(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<DisplayNameForm>,
) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let mut problems = FormErrors::default();
    let Some(name) = problems.parse::<DisplayName>("display_name", &form.display_name) else {
        let display_name = echo_input(&form.display_name);
        let page = AccountPage { display_name, name_problems: problems, ..AccountPage::new(&context, &me) };
        return respond_with(FORM_ERROR_STATUS, &page);
    };
    context.app.auth.change_display_name(&me.0, &name, &context.visitor).await?;
    Ok(flash::redirect(context, "/account", FlashMessage::NameChanged))
}

/// Changes the password and signs out other devices.
pub async fn change_password(
    mut context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<ChangePasswordForm>,
) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let problems = if form.password.expose_secret() == form.again.expose_secret() {
        match context.app.auth.change_password(&me.0, &form.current, &form.password, &context.visitor).await {
            Ok(()) => {
                sign_in::renew_known_browser(&mut context, &me.0).await?;
                return Ok(flash::redirect(context, "/account", FlashMessage::PasswordChanged));
            }
            Err(error) => password_confirmation_errors(error, "current")?,
        }
    } else {
        FormErrors::single("again", PasswordError::Differ)
    };
    let page = AccountPage { password_problems: problems, ..AccountPage::new(&context, &me) };
    respond_with(FORM_ERROR_STATUS, &page)
}

/// The messages for a form that asks for the current password in the given field.
pub fn password_confirmation_errors(error: AuthError, field: &'static str) -> Result<FormErrors, AppError> {
    match error {
        AuthError::WrongPassword => Ok(FormErrors::single(field, "Wrong password.")),
        AuthError::TooManyTries(wait) => Ok(FormErrors::single(field, too_many_tries_message(wait))),
        other => form_errors_from(other),
    }
}
