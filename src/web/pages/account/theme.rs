//! Light, dark, or as the device has it: kept in a cookie so that the first paint is right.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse as _;
use serde::Deserialize;

use crate::clock::SECONDS_PER_DAY;
use crate::web::HandlerResult;
use crate::web::http::cookies::{self, CookieKind};
use crate::web::http::extractors::{FormBody, RequestContext};
use crate::web::http::flash::{safe_local_path, see_other};

/// A year, in seconds.
const THEME_COOKIE_SECS: i64 = 365 * SECONDS_PER_DAY;

/// How pages are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// As the device has it.
    #[default]
    Auto,
    Light,
    Dark,
}

impl Theme {
    /// Anything unknown means automatic.
    pub fn parse(text: &str) -> Self {
        match text {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::Auto,
        }
    }

    /// As in the page and in the cookie.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

#[derive(Deserialize)]
pub struct ThemeForm {
    theme: String,
}

/// Keeps the choice and goes back to where it was made.
pub async fn post(
    context: RequestContext,
    headers: HeaderMap,
    FormBody(form): FormBody<ThemeForm>,
) -> HandlerResult {
    let theme = Theme::parse(&form.theme);
    let jar = cookies::set(
        context.jar,
        &context.app,
        CookieKind::Theme,
        theme.as_str(),
        THEME_COOKIE_SECS,
    );
    if headers.contains_key("x-requested-with") || headers.contains_key("hx-request") {
        return Ok((jar, StatusCode::NO_CONTENT).into_response());
    }
    let origin = context.app.config.portal.public_url.to_string();
    let back = headers
        .get(header::REFERER)
        .and_then(|value| value.to_str().ok()?.strip_prefix(&origin))
        .map_or("/", safe_local_path);
    Ok((jar, see_other(back)).into_response())
}
