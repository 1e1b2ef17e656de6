//! Signing in and out.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum_extra::extract::CookieJar;
use secrecy::SecretString;
use serde::Deserialize;

use super::cookies::{self, Kind};
use super::errors::{retry_after, too_many};
use super::extract::{Context, Form, MaybeMe, Query};
use super::flash::{self, Flash, local_path, see_other};
use super::form::{Problems, shown_again};
use super::page::{PROBLEMS, Page, show, show_with};
use super::{Answer, home};
use crate::auth::AuthError;
use crate::auth::sessions::SignedInPerson;
use crate::auth::sign_in::{CODE_TIMEOUT_SECS, SignInCookies, SignInProgress};
use crate::error::AppError;

/// Days a browser is remembered as one that has signed in before.
const KNOWN_FOR: i64 = 365 * 86_400;

/// Where to go after signing in.
#[derive(Default, Deserialize)]
pub struct Wanted {
    #[serde(default)]
    next: String,
}

/// Name and password.
#[derive(Deserialize)]
pub struct SignInForm {
    name: String,
    password: SecretString,
    #[serde(default)]
    next: String,
}

/// A one-time or recovery code.
#[derive(Deserialize)]
pub struct CodeForm {
    code: String,
    #[serde(default)]
    next: String,
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    page: Page,
    typed_name: String,
    next: String,
    problem: String,
    is_set_up: bool,
}

#[derive(Template)]
#[template(path = "sign_in_code.html")]
struct CodePage {
    page: Page,
    next: String,
    problems: Problems,
}

/// The form.
pub async fn get(context: Context, MaybeMe(me): MaybeMe, Query(wanted): Query<Wanted>) -> Answer {
    let next = local_path(&wanted.next);
    if me.is_some() {
        return Ok(see_other(next));
    }
    let page = Page::for_visitor(&context, "Sign in");
    let is_set_up = home::known(&context.app).await?.is_set_up;
    show(&SignInPage {
        page,
        typed_name: String::new(),
        next: next.into(),
        problem: String::new(),
        is_set_up,
    })
}

/// Name and password.
pub async fn post(context: Context, MaybeMe(me): MaybeMe, Form(form): Form<SignInForm>) -> Answer {
    let next = local_path(&form.next);
    let mark = context.cookie(Kind::KnownBrowser);
    let auth = &context.app.auth;
    let problem = match auth.sign_in(&form.name, &form.password, mark, &context.visitor).await {
        Ok(progress) => {
            end_older(&context, me.as_deref()).await?;
            return Ok(go_on(&context, progress, next));
        }
        Err(error) => Refusal::new(error)?,
    };
    let page = Page::for_visitor(&context, "Sign in");
    let typed_name = shown_again(&form.name);
    problem.show(&SignInPage {
        page,
        typed_name,
        next: next.into(),
        problem: problem.words.clone(),
        is_set_up: true,
    })
}

fn go_on(context: &Context, progress: SignInProgress, next: &str) -> Response {
    match progress {
        SignInProgress::Done(browser) => {
            (signed_in(context, &browser), see_other(next)).into_response()
        }
        SignInProgress::NeedsCode(waiting) => {
            let jar = cookies::set(
                context.jar.clone(),
                &context.app,
                Kind::Waiting,
                waiting.as_str(),
                CODE_TIMEOUT_SECS,
            );
            (jar, see_other(&with_next("/sign-in/code", next))).into_response()
        }
    }
}

/// The form for the one-time code.
pub async fn get_code(context: Context, Query(wanted): Query<Wanted>) -> Answer {
    let waiting = context.cookie(Kind::Waiting).unwrap_or_default();
    if !context.app.auth.is_waiting_for_code(waiting).await? {
        return Ok(flash::redirect(context, "/sign-in", Flash::SignInRanOut));
    }
    let page = Page::for_visitor(&context, "One-time code");
    show(&CodePage { page, next: local_path(&wanted.next).into(), problems: Problems::default() })
}

/// The one-time code.
pub async fn post_code(context: Context, Form(form): Form<CodeForm>) -> Answer {
    let next = local_path(&form.next);
    let waiting = context.cookie(Kind::Waiting).unwrap_or_default();
    let mark = context.cookie(Kind::KnownBrowser);
    let auth = &context.app.auth;
    let problem = match auth.sign_in_with_code(waiting, &form.code, mark, &context.visitor).await {
        Ok(progress) => return Ok(go_on(&context, progress, next)),
        Err(AuthError::SignInExpired) => {
            return Ok(flash::redirect(context, "/sign-in", Flash::SignInRanOut));
        }
        Err(error) => Refusal::new(error)?,
    };
    let page = Page::for_visitor(&context, "One-time code");
    let problems = Problems::one("code", &problem.words);
    problem.show(&CodePage { page, next: next.into(), problems })
}

/// Why a step of the sign-in was refused.
struct Refusal {
    words: String,
    /// Seconds to wait before the next try.
    wait: Option<i64>,
}

impl Refusal {
    fn new(error: AuthError) -> Result<Self, AppError> {
        let words = match error {
            AuthError::TooManyTries(wait) => {
                return Ok(Self { words: too_many(wait), wait: Some(wait) });
            }
            AuthError::WrongPassword => {
                "The name and the password do not go together. Check both; capital letters matter in the password."
            }
            AuthError::WrongCode => {
                "This code is not right. Take the newest one from your app, or a recovery code that you have not used. If new codes are refused again and again, check that your phone's clock is right."
            }
            AuthError::CodeAlreadyUsed => {
                "This code was used before. Wait for the next one, at most 30 seconds."
            }
            AuthError::ClockBehind => {
                "The portal's clock is behind, so one-time codes do not work right now. A recovery code does. Please tell the person who runs this portal."
            }
            other => return Err(other.into()),
        };
        Ok(Self { words: words.to_owned(), wait: None })
    }

    fn show(&self, template: &impl Template) -> Answer {
        match self.wait {
            None => show_with(PROBLEMS, template),
            Some(wait) => {
                let mut answer = show_with(StatusCode::TOO_MANY_REQUESTS, template)?;
                retry_after(&mut answer, wait);
                Ok(answer)
            }
        }
    }
}

/// Signs this browser out.
pub async fn sign_out(context: Context, MaybeMe(me): MaybeMe) -> Answer {
    end_older(&context, me.as_deref()).await?;
    Ok(leave(context, Flash::SignedOut))
}

/// To the sign-in page, with the session's cookie taken back.
pub fn leave(mut context: Context, flash: Flash) -> Response {
    context.jar = cookies::clear(context.jar, &context.app, Kind::Session);
    flash::redirect(context, "/sign-in", flash)
}

/// A sign-in never continues an older session of the same browser, and never leaves one behind.
pub async fn end_older(context: &Context, me: Option<&SignedInPerson>) -> Result<(), AppError> {
    if let Some(me) = me {
        context.app.auth.sign_out(me, &context.visitor).await?;
    }
    Ok(())
}

/// Home, for someone who has just made their account.
pub async fn welcome(
    mut context: Context,
    before: Option<&SignedInPerson>,
    browser: &SignInCookies,
) -> Answer {
    end_older(&context, before).await?;
    context.jar = signed_in(&context, browser);
    Ok(flash::redirect(context, "/", Flash::Welcome))
}

/// Keeps a browser known in which its owner has just changed the password or the second factor.
pub async fn stay_known(context: &mut Context, me: &SignedInPerson) -> Result<(), AppError> {
    let mark = context.app.auth.renew_browser_mark(me.person.id).await?;
    context.jar =
        cookies::set(context.jar.clone(), &context.app, Kind::KnownBrowser, &mark, KNOWN_FOR);
    Ok(())
}

/// The cookies of a browser that has just signed in.
fn signed_in(context: &Context, browser: &SignInCookies) -> CookieJar {
    let app = &context.app;
    let seconds = i64::from(app.config.sessions.absolute_days) * 86_400;
    let jar =
        cookies::set(context.jar.clone(), app, Kind::Session, browser.session.as_str(), seconds);
    let jar = cookies::set(jar, app, Kind::KnownBrowser, &browser.browser_mark, KNOWN_FOR);
    cookies::clear(jar, app, Kind::Waiting)
}

/// To the sign-in page, to come back afterwards.
pub fn redirect(wanted: &str) -> Response {
    see_other(&with_next("/sign-in", local_path(wanted)))
}

fn with_next(path: &str, next: &str) -> String {
    if next == "/" {
        return path.to_owned();
    }
    let mut query = form_urlencoded::Serializer::new(String::new());
    format!("{path}?{}", query.append_pair("next", next).finish())
}

#[cfg(test)]
mod tests {
    use super::{local_path, with_next};

    #[test]
    fn nobody_is_sent_to_another_site() {
        for bad in [
            "https://evil.org",
            "//evil.org",
            "/\\evil.org",
            "evil",
            "",
            "/\nx",
            "/\t/evil.org",
            "/sign-in",
        ] {
            assert_eq!(local_path(bad), "/", "{bad:?}");
        }
        assert_eq!(local_path("/groups/1?a=b"), "/groups/1?a=b");
        assert_eq!(with_next("/sign-in", "/groups?a=b&c"), "/sign-in?next=%2Fgroups%3Fa%3Db%26c");
        assert_eq!(with_next("/sign-in", "/"), "/sign-in");
    }
}
