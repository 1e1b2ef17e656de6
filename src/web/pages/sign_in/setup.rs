//! The setup link: its first visitor becomes the administrator. Also the form for a new person, shared with
//! invitations.

use askama::Template;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use crate::auth::AuthError;
use crate::auth::one_time_links::SignUpDetails;
use crate::auth::password::PasswordError;
use crate::error::AppError;
use crate::store::one_time_links::OneTimeLinkPurpose;
use crate::web::HandlerResult;
use crate::web::http::extractors::{FormBody, MaybeCurrentPerson, PathParams, RequestContext};
use crate::web::http::form_errors::{FormErrors, echo_input};
use crate::web::http::page_frame::{PageFrame, respond_with};
use crate::web::pages::sign_in;

#[derive(Default, Deserialize)]
pub struct NewAccountForm {
    pub display_name: String,
    /// The sign-in name.
    pub name: String,
    password: SecretString,
    again: SecretString,
}

impl NewAccountForm {
    /// The new person, or what is wrong with the form.
    pub fn parse(&self) -> Result<SignUpDetails, FormErrors> {
        let mut problems = FormErrors::default();
        let display_name = problems.parse("display_name", &self.display_name);
        let name = problems.parse("name", &self.name);
        if self.password.expose_secret() != self.again.expose_secret() {
            problems.add("again", PasswordError::Differ);
        }
        match (display_name, name) {
            (Some(display_name), Some(name)) if problems.is_empty() => {
                Ok(SignUpDetails { name, display_name, password: self.password.clone() })
            }
            _ => Err(problems),
        }
    }

    /// A copy without the passwords, to show again.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        Self { display_name: echo_input(&self.display_name), name: echo_input(&self.name), ..Self::default() }
    }
}

/// The messages for errors that the form can show; others are passed on.
pub fn form_errors_from(error: AuthError) -> Result<FormErrors, AppError> {
    match error {
        AuthError::Password(problem) => Ok(FormErrors::single("password", problem)),
        AuthError::NameTaken => Ok(FormErrors::single("name", "This user name is taken. Choose another one.")),
        other => Err(other.into()),
    }
}

#[derive(Template)]
#[template(path = "sign_in/setup.html")]
struct SetupPage {
    page: PageFrame,
    new: NewAccountForm,
    problems: FormErrors,
}

fn render_page(context: &RequestContext, form: &NewAccountForm, problems: FormErrors) -> HandlerResult {
    let page = PageFrame::for_visitor(context, "Set up this portal");
    respond_with(problems.status(), &SetupPage { page, new: form.without_secrets(), problems })
}

/// The form, if the link is valid.
pub async fn get(context: RequestContext, PathParams(token): PathParams<String>) -> HandlerResult {
    context.app.auth.find_valid_link(OneTimeLinkPurpose::Setup, &token, &context.visitor).await?;
    render_page(&context, &NewAccountForm::default(), FormErrors::default())
}

/// Creates the first administrator and signs them in.
pub async fn post(
    context: RequestContext,
    MaybeCurrentPerson(me): MaybeCurrentPerson,
    PathParams(token): PathParams<String>,
    FormBody(form): FormBody<NewAccountForm>,
) -> HandlerResult {
    let problems = match form.parse() {
        Err(problems) => problems,
        Ok(new) => match context.app.auth.set_up_portal(&token, &new, &context.visitor).await {
            Ok(cookies) => return sign_in::redirect_home_welcome(context, me.as_deref(), &cookies).await,
            Err(error) => form_errors_from(error)?,
        },
    };
    context.app.auth.find_valid_link(OneTimeLinkPurpose::Setup, &token, &context.visitor).await?;
    render_page(&context, &form, problems)
}
