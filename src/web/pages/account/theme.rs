//! Light, dark, or the device's setting: stored in a cookie so that the first paint is right.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse as _;
use serde::Deserialize;

use crate::clock::SECONDS_PER_DAY;
use crate::web::HandlerResult;
use crate::web::http::cookies::{self, CookieKind};
use crate::web::http::extractors::{FormBody, RequestContext};
use crate::web::http::flash::{safe_local_path, see_other};

const THEME_COOKIE_SECS: i64 = 365 * SECONDS_PER_DAY;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// Follow the device.
    #[default]
    Auto,
    Light,
    Dark,
}

impl Theme {
    /// Unknown values mean automatic.
    pub fn parse(text: &str) -> Self {
        match text {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::Auto,
        }
    }

    /// The value in the page and in the cookie.
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

/// Saves the choice and returns to the page where it was made.
pub async fn post(context: RequestContext, headers: HeaderMap, FormBody(form): FormBody<ThemeForm>) -> HandlerResult {
    let theme = Theme::parse(&form.theme);
    let jar = cookies::set(context.jar, &context.app, CookieKind::Theme, theme.as_str(), THEME_COOKIE_SECS);
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
