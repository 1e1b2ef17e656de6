//! The portal's cookies: their names, how they are read, set and taken back.

use axum::http::{HeaderMap, HeaderValue, header};
use axum_extra::extract::cookie::{Cookie, CookieJar, SameSite};

use crate::app::App;

/// What a cookie is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookieKind {
    Session,
    /// A sign-in that waits for its one-time code.
    PendingSignIn,
    /// This browser has signed in before.
    KnownBrowser,
    /// Light, dark or automatic.
    Theme,
    /// A message for the next page.
    FlashMessage,
    /// A new link for the next page, sealed.
    RevealOnce,
}

impl CookieKind {
    /// The name in the browser. Over TLS the prefix makes browsers refuse it from anywhere else.
    fn name(self, app: &App) -> &'static str {
        let (plain, prefixed) = match self {
            Self::Session => ("portolan_session", "__Host-portolan_session"),
            Self::PendingSignIn => ("portolan_waiting", "__Host-portolan_waiting"),
            Self::KnownBrowser => ("portolan_browser", "__Host-portolan_browser"),
            Self::Theme => ("portolan_theme", "__Host-portolan_theme"),
            Self::FlashMessage => ("portolan_flash", "__Host-portolan_flash"),
            Self::RevealOnce => ("portolan_once", "__Host-portolan_once"),
        };
        if app.config.portal.public_url.is_https() { prefixed } else { plain }
    }
}

/// The cookies a browser sent, as they came.
#[derive(Debug, Clone, Default)]
pub struct RequestCookies(Vec<HeaderValue>);

impl RequestCookies {
    /// Those of a request.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        Self(headers.get_all(header::COOKIE).iter().cloned().collect())
    }

    /// The value of a cookie, if the browser sent it. Ours are plain words: nothing to decode.
    pub fn get(&self, app: &App, kind: CookieKind) -> Option<&str> {
        self.get_by_name(kind.name(app))
    }

    /// The same by the cookie's name.
    pub fn get_by_name(&self, name: &str) -> Option<&str> {
        let pairs = self.0.iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
        // A neighbour's cookie may hold anything; only ours must be text.
        pairs
            .filter_map(|pair| std::str::from_utf8(pair).ok()?.trim().split_once('='))
            .find_map(|(found, value)| (found == name).then_some(value))
    }
}

/// Sets a cookie for so many seconds.
pub fn set(jar: CookieJar, app: &App, kind: CookieKind, value: &str, seconds: i64) -> CookieJar {
    jar.add(build_cookie(app, kind, value.to_owned(), seconds))
}

/// Takes a cookie back.
pub fn clear(jar: CookieJar, app: &App, kind: CookieKind) -> CookieJar {
    jar.add(build_cookie(app, kind, String::new(), 0))
}

fn build_cookie(app: &App, kind: CookieKind, value: String, seconds: i64) -> Cookie<'static> {
    Cookie::build((kind.name(app), value))
        .path("/")
        .http_only(true)
        .secure(app.config.portal.public_url.is_https())
        .same_site(SameSite::Lax)
        .max_age(time::Duration::seconds(seconds))
        .build()
}
