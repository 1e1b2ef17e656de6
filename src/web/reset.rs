//! A reset link: choose a new password.

use askama::Template;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::extract::{Context, Form, MaybeMe, Path};
use super::flash::Flash;
use super::form::Problems;
use super::page::{PROBLEMS, Page, show, show_with};
use super::setup::problems_of;
use super::{Answer, sign_in};
use crate::auth::password::PasswordError;
use crate::store::one_time_links::OneTimeLinkPurpose;

/// The new password, twice.
#[derive(Deserialize)]
pub struct ResetForm {
    password: SecretString,
    again: SecretString,
}

#[derive(Template)]
#[template(path = "reset.html")]
struct ResetPage {
    page: Page,
    problems: Problems,
}

/// The form, if the link works.
pub async fn get(context: Context, Path(token): Path<String>) -> Answer {
    context.app.auth.find_valid_link(OneTimeLinkPurpose::Reset, &token, &context.visitor).await?;
    let page = Page::for_visitor(&context, "Choose a new password");
    show(&ResetPage { page, problems: Problems::default() })
}

/// Sets the new password; every device is signed out.
pub async fn post(
    context: Context,
    MaybeMe(me): MaybeMe,
    Path(token): Path<String>,
    Form(form): Form<ResetForm>,
) -> Answer {
    let problems = if form.password.expose_secret() == form.again.expose_secret() {
        match context.app.auth.reset_password(&token, &form.password, &context.visitor).await {
            Ok(lost) => {
                sign_in::end_older(&context, me.as_deref()).await?;
                let flash =
                    if lost > 0 { Flash::PasswordResetKeysLost } else { Flash::PasswordReset };
                return Ok(sign_in::leave(context, flash));
            }
            Err(error) => problems_of(error)?,
        }
    } else {
        Problems::one("again", PasswordError::Differ)
    };
    let page = Page::for_visitor(&context, "Choose a new password");
    show_with(PROBLEMS, &ResetPage { page, problems })
}
