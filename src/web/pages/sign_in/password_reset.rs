//! Choosing a new password through a reset link.

use askama::Template;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use crate::auth::password::PasswordError;
use crate::store::one_time_links::OneTimeLinkPurpose;
use crate::web::HandlerResult;
use crate::web::http::extractors::{FormBody, MaybeCurrentPerson, PathParams, RequestContext};
use crate::web::http::flash::FlashMessage;
use crate::web::http::form_errors::FormErrors;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, PageFrame, respond, respond_with};
use crate::web::pages::sign_in;
use crate::web::pages::sign_in::setup::form_errors_from;

/// The new password, twice.
#[derive(Deserialize)]
pub struct PasswordResetForm {
    password: SecretString,
    again: SecretString,
}

#[derive(Template)]
#[template(path = "sign_in/password_reset.html")]
struct PasswordResetPage {
    page: PageFrame,
    problems: FormErrors,
}

/// The form, if the link is valid.
pub async fn get(context: RequestContext, PathParams(token): PathParams<String>) -> HandlerResult {
    context.app.auth.find_valid_link(OneTimeLinkPurpose::Reset, &token, &context.visitor).await?;
    let page = PageFrame::for_visitor(&context, "Choose a new password");
    respond(&PasswordResetPage { page, problems: FormErrors::default() })
}

/// Sets the new password and signs out every device.
pub async fn post(
    context: RequestContext,
    MaybeCurrentPerson(me): MaybeCurrentPerson,
    PathParams(token): PathParams<String>,
    FormBody(form): FormBody<PasswordResetForm>,
) -> HandlerResult {
    let problems = if form.password.expose_secret() == form.again.expose_secret() {
        match context.app.auth.reset_password(&token, &form.password, &context.visitor).await {
            Ok(lost_keys) => {
                sign_in::end_previous_session(&context, me.as_deref()).await?;
                let message =
                    if lost_keys > 0 { FlashMessage::PasswordResetKeysLost } else { FlashMessage::PasswordReset };
                return Ok(sign_in::redirect_signed_out(context, message));
            }
            Err(error) => form_errors_from(error)?,
        }
    } else {
        FormErrors::single("again", PasswordError::Differ)
    };
    let page = PageFrame::for_visitor(&context, "Choose a new password");
    respond_with(FORM_ERROR_STATUS, &PasswordResetPage { page, problems })
}
