//! The set-up link: its first visitor becomes the administrator. And the form of a new person, shared with
//! invitations.

use askama::Template;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::extract::{Context, Form, MaybeMe, Path};
use super::form::{Problems, shown_again};
use super::page::{PROBLEMS, Page, show, show_with};
use super::{Answer, sign_in};
use crate::auth::AuthError;
use crate::auth::one_time_links::NewPerson;
use crate::auth::password::PasswordError;
use crate::error::AppError;
use crate::store::one_time_links::OneTimeLinkPurpose;

/// What a new person fills in.
#[derive(Default, Deserialize)]
pub struct NewPersonForm {
    /// What others read.
    pub display_name: String,
    /// What they sign in with.
    pub name: String,
    password: SecretString,
    again: SecretString,
}

impl NewPersonForm {
    /// The new person, or what is wrong with the form.
    pub fn read(&self) -> Result<NewPerson, Problems> {
        let mut problems = Problems::default();
        let display_name = problems.parse("display_name", &self.display_name);
        let name = problems.parse("name", &self.name);
        if self.password.expose_secret() != self.again.expose_secret() {
            problems.add("again", PasswordError::Differ);
        }
        match (display_name, name) {
            (Some(display_name), Some(name)) if problems.is_empty() => {
                Ok(NewPerson { name, display_name, password: self.password.clone() })
            }
            _ => Err(problems),
        }
    }

    /// The same without the passwords, to be shown again.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        Self {
            display_name: shown_again(&self.display_name),
            name: shown_again(&self.name),
            ..Self::default()
        }
    }
}

/// What is wrong, if it is something that the form can show.
pub fn problems_of(error: AuthError) -> Result<Problems, AppError> {
    match error {
        AuthError::Password(problem) => Ok(Problems::one("password", problem)),
        AuthError::NameTaken => {
            Ok(Problems::one("name", "Someone has this name already. Choose another."))
        }
        other => Err(other.into()),
    }
}

#[derive(Template)]
#[template(path = "setup.html")]
struct SetupPage {
    page: Page,
    new: NewPersonForm,
    problems: Problems,
}

impl SetupPage {
    fn new(context: &Context, form: &NewPersonForm, problems: Problems) -> Self {
        let page = Page::for_visitor(context, "Set up this portal");
        Self { page, new: form.without_secrets(), problems }
    }
}

/// The form, if the link works.
pub async fn get(context: Context, Path(token): Path<String>) -> Answer {
    context.app.auth.find_valid_link(OneTimeLinkPurpose::Setup, &token, &context.visitor).await?;
    show(&SetupPage::new(&context, &NewPersonForm::default(), Problems::default()))
}

/// Makes the first administrator and signs them in.
pub async fn post(
    context: Context,
    MaybeMe(me): MaybeMe,
    Path(token): Path<String>,
    Form(form): Form<NewPersonForm>,
) -> Answer {
    let problems = match form.read() {
        Err(problems) => problems,
        Ok(new) => match context.app.auth.set_up_portal(&token, &new, &context.visitor).await {
            Ok(browser) => return sign_in::welcome(context, me.as_deref(), &browser).await,
            Err(error) => problems_of(error)?,
        },
    };
    context.app.auth.find_valid_link(OneTimeLinkPurpose::Setup, &token, &context.visitor).await?;
    show_with(PROBLEMS, &SetupPage::new(&context, &form, problems))
}
