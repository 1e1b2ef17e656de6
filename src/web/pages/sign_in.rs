//! Signing in and out.

pub(in crate::web) mod join;
pub(in crate::web) mod password_reset;
pub(in crate::web) mod setup;

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum_extra::extract::CookieJar;
use secrecy::SecretString;
use serde::Deserialize;

use crate::auth::AuthError;
use crate::auth::sessions::SignedInPerson;
use crate::auth::sign_in::{CODE_TIMEOUT_SECS, SignInCookies, SignInProgress};
use crate::clock::SECONDS_PER_DAY;
use crate::error::AppError;
use crate::web::HandlerResult;
use crate::web::http::cookies::{self, CookieKind};
use crate::web::http::errors::{set_retry_after, too_many_tries_message};
use crate::web::http::extractors::{FormBody, MaybeCurrentPerson, QueryParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage, safe_local_path, see_other};
use crate::web::http::form_errors::{FormErrors, echo_input};
use crate::web::http::page_frame::{FORM_ERROR_STATUS, PageFrame, respond, respond_with};
use crate::web::pages::home;

/// How long a browser is remembered as one that has signed in before.
const KNOWN_BROWSER_SECS: i64 = 365 * SECONDS_PER_DAY;

/// The page to open after signing in.
#[derive(Default, Deserialize)]
pub struct NextPageQuery {
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
pub struct SignInForm {
    name: String,
    password: SecretString,
    #[serde(default)]
    next: String,
}

/// A one-time code or a recovery code.
#[derive(Deserialize)]
pub struct SignInCodeForm {
    code: String,
    #[serde(default)]
    next: String,
}

#[derive(Template)]
#[template(path = "sign_in/sign_in.html")]
struct SignInPage {
    page: PageFrame,
    typed_name: String,
    next: String,
    problem: String,
    is_set_up: bool,
}

#[derive(Template)]
#[template(path = "sign_in/code.html")]
struct SignInCodePage {
    page: PageFrame,
    next: String,
    problems: FormErrors,
}

pub async fn get(
    context: RequestContext,
    MaybeCurrentPerson(me): MaybeCurrentPerson,
    QueryParams(query): QueryParams<NextPageQuery>,
) -> HandlerResult {
    let next = safe_local_path(&query.next);
    if me.is_some() {
        return Ok(see_other(next));
    }
    let page = PageFrame::for_visitor(&context, "Sign in");
    let is_set_up = home::load_overview(&context).await?.is_set_up;
    respond(&SignInPage { page, typed_name: String::new(), next: next.into(), problem: String::new(), is_set_up })
}

pub async fn post(
    context: RequestContext,
    MaybeCurrentPerson(me): MaybeCurrentPerson,
    FormBody(form): FormBody<SignInForm>,
) -> HandlerResult {
    let next = safe_local_path(&form.next);
    let browser_mark = context.cookie(CookieKind::KnownBrowser);
    let auth = &context.app.auth;
    match auth.sign_in(&form.name, &form.password, browser_mark, &context.visitor).await {
        Ok(progress) => {
            end_previous_session(&context, me.as_deref()).await?;
            Ok(respond_to_progress(&context, progress, next))
        }
        Err(error) => refuse(error, |problem| SignInPage {
            page: PageFrame::for_visitor(&context, "Sign in"),
            typed_name: echo_input(&form.name),
            next: next.into(),
            problem,
            is_set_up: true,
        }),
    }
}

fn respond_to_progress(context: &RequestContext, progress: SignInProgress, next: &str) -> Response {
    match progress {
        SignInProgress::Done(cookies) => (sign_in_cookies(context, &cookies), see_other(next)).into_response(),
        SignInProgress::NeedsCode(token) => {
            let (jar, app) = (context.jar.clone(), &context.app);
            let jar = cookies::set(jar, app, CookieKind::SignInAwaitingCode, token.as_str(), CODE_TIMEOUT_SECS);
            (jar, see_other(&with_next("/sign-in/code", next))).into_response()
        }
    }
}

pub async fn get_code(context: RequestContext, QueryParams(query): QueryParams<NextPageQuery>) -> HandlerResult {
    let pending = context.cookie(CookieKind::SignInAwaitingCode).unwrap_or_default();
    if !context.app.auth.is_waiting_for_code(pending).await? {
        return Ok(flash::redirect(context, "/sign-in", FlashMessage::SignInExpired));
    }
    let page = PageFrame::for_visitor(&context, "One-time code");
    respond(&SignInCodePage { page, next: safe_local_path(&query.next).into(), problems: FormErrors::default() })
}

pub async fn post_code(context: RequestContext, FormBody(form): FormBody<SignInCodeForm>) -> HandlerResult {
    let next = safe_local_path(&form.next);
    let pending = context.cookie(CookieKind::SignInAwaitingCode).unwrap_or_default();
    let browser_mark = context.cookie(CookieKind::KnownBrowser);
    let auth = &context.app.auth;
    match auth.sign_in_with_code(pending, &form.code, browser_mark, &context.visitor).await {
        Ok(progress) => Ok(respond_to_progress(&context, progress, next)),
        Err(AuthError::SignInExpired) => Ok(flash::redirect(context, "/sign-in", FlashMessage::SignInExpired)),
        Err(error) => refuse(error, |problem| SignInCodePage {
            page: PageFrame::for_visitor(&context, "One-time code"),
            next: next.into(),
            problems: FormErrors::single("code", problem),
        }),
    }
}

/// Shows the page again with the reason why a sign-in step was refused.
fn refuse<T: Template>(error: AuthError, page: impl FnOnce(String) -> T) -> HandlerResult {
    let message = match error {
        AuthError::TooManyTries(wait) => {
            let page = page(too_many_tries_message(wait));
            let mut response = respond_with(StatusCode::TOO_MANY_REQUESTS, &page)?;
            set_retry_after(&mut response, wait);
            return Ok(response);
        }
        AuthError::WrongPassword => "Wrong user name or password. Passwords are case-sensitive.",
        AuthError::AccountDisabled => "This account is disabled. Ask your portal administrator to enable it.",
        AuthError::WrongCode => {
            "Wrong code. Enter the code your app shows now, or an unused recovery code. If new codes keep being rejected, check that your phone's clock is correct."
        }
        AuthError::CodeAlreadyUsed => "This code was already used. Wait up to 30 seconds for the next one.",
        AuthError::ClockBehind => {
            "One-time codes don't work right now because the portal's clock is wrong. Use a recovery code, and tell your portal administrator."
        }
        other => return Err(other.into()),
    };
    respond_with(FORM_ERROR_STATUS, &page(message.to_owned()))
}

pub async fn sign_out(context: RequestContext, MaybeCurrentPerson(me): MaybeCurrentPerson) -> HandlerResult {
    end_previous_session(&context, me.as_deref()).await?;
    Ok(redirect_signed_out(context, FlashMessage::SignedOut))
}

/// Redirects to the sign-in page and clears the session cookie.
pub fn redirect_signed_out(mut context: RequestContext, message: FlashMessage) -> Response {
    context.jar = cookies::clear(context.jar, &context.app, CookieKind::Session);
    flash::redirect(context, "/sign-in", message)
}

/// Ends the browser's old session: a sign-in never continues one and never leaves one behind.
pub async fn end_previous_session(context: &RequestContext, me: Option<&SignedInPerson>) -> Result<(), AppError> {
    if let Some(me) = me {
        context.app.auth.sign_out(me, &context.visitor).await?;
    }
    Ok(())
}

/// Redirects someone who has just created their account to the home page.
pub async fn redirect_home_welcome(
    mut context: RequestContext,
    previous: Option<&SignedInPerson>,
    cookies: &SignInCookies,
) -> HandlerResult {
    end_previous_session(&context, previous).await?;
    context.jar = sign_in_cookies(&context, cookies);
    Ok(flash::redirect(context, "/", FlashMessage::Welcome))
}

/// Keeps the browser known after its owner changed the password or the second factor.
pub async fn renew_known_browser(context: &mut RequestContext, me: &SignedInPerson) -> Result<(), AppError> {
    let mark = context.app.auth.renew_browser_mark(me.person.id).await?;
    context.jar = cookies::set(context.jar.clone(), &context.app, CookieKind::KnownBrowser, &mark, KNOWN_BROWSER_SECS);
    Ok(())
}

/// The cookies for a browser that has just signed in.
fn sign_in_cookies(context: &RequestContext, new: &SignInCookies) -> CookieJar {
    let app = &context.app;
    let seconds = i64::from(app.config.sessions.absolute_days) * SECONDS_PER_DAY;
    let jar = cookies::set(context.jar.clone(), app, CookieKind::Session, new.session.as_str(), seconds);
    let jar = cookies::set(jar, app, CookieKind::KnownBrowser, &new.browser_mark, KNOWN_BROWSER_SECS);
    cookies::clear(jar, app, CookieKind::SignInAwaitingCode)
}

/// Redirects to the sign-in page, which returns to the wanted page afterwards.
pub fn redirect_to_sign_in(wanted: &str) -> Response {
    see_other(&with_next("/sign-in", safe_local_path(wanted)))
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
    use crate::web::pages::sign_in::{safe_local_path, with_next};

    #[test]
    fn nobody_is_sent_to_another_site() {
        for bad in ["https://evil.org", "//evil.org", "/\\evil.org", "evil", "", "/\nx", "/\t/evil.org", "/sign-in"] {
            assert_eq!(safe_local_path(bad), "/", "{bad:?}");
        }
        assert_eq!(safe_local_path("/groups/1?a=b"), "/groups/1?a=b");
        assert_eq!(with_next("/sign-in", "/groups?a=b&c"), "/sign-in?next=%2Fgroups%3Fa%3Db%26c");
        assert_eq!(with_next("/sign-in", "/"), "/sign-in");
    }
}
