//! The portal's cookies: their names, and how they are read, set and cleared.

use axum::http::{HeaderMap, HeaderValue, header};
use axum_extra::extract::cookie::{Cookie, CookieJar, SameSite};

use crate::app::App;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookieKind {
    Session,
    /// A sign-in that waits for its one-time code.
    SignInAwaitingCode,
    /// Marks a browser that has signed in before.
    KnownBrowser,
    /// Light, dark or automatic.
    Theme,
    FlashMessage,
    /// A new link to show on the next page, sealed.
    RevealOnce,
    /// The page about files that someone comes back to after connecting.
    ReturnAfterConnect,
}

impl CookieKind {
    /// The cookie's name. Over TLS, the prefix makes browsers reject it from any other origin.
    fn name(self, app: &App) -> &'static str {
        let (plain, prefixed) = match self {
            Self::Session => ("portolan_session", "__Host-portolan_session"),
            Self::SignInAwaitingCode => ("portolan_waiting", "__Host-portolan_waiting"),
            Self::KnownBrowser => ("portolan_browser", "__Host-portolan_browser"),
            Self::Theme => ("portolan_theme", "__Host-portolan_theme"),
            Self::FlashMessage => ("portolan_flash", "__Host-portolan_flash"),
            Self::RevealOnce => ("portolan_once", "__Host-portolan_once"),
            Self::ReturnAfterConnect => ("portolan_return", "__Host-portolan_return"),
        };
        if app.config.portal.public_url.is_https() { prefixed } else { plain }
    }
}

/// The cookies that a browser sent, unparsed.
#[derive(Debug, Clone, Default)]
pub struct RawRequestCookies(Vec<HeaderValue>);

impl RawRequestCookies {
    pub fn from_headers(headers: &HeaderMap) -> Self {
        Self(headers.get_all(header::COOKIE).iter().cloned().collect())
    }

    /// The value of a cookie, if the browser sent it. Our values are plain words, so there is nothing to decode.
    pub fn get(&self, app: &App, kind: CookieKind) -> Option<&str> {
        self.get_by_name(kind.name(app))
    }

    /// Like `get`, by the cookie's name.
    pub fn get_by_name(&self, name: &str) -> Option<&str> {
        let pairs = self.0.iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
        // Cookies of other sites on the same host may hold anything; only ours must be text.
        pairs
            .filter_map(|pair| std::str::from_utf8(pair).ok()?.trim().split_once('='))
            .find_map(|(sent, value)| (sent == name).then_some(value))
    }
}

/// Sets a cookie that lasts this many seconds.
pub fn set(jar: CookieJar, app: &App, kind: CookieKind, value: &str, seconds: i64) -> CookieJar {
    jar.add(build_cookie(app, kind, value.to_owned(), seconds))
}

/// Removes a cookie.
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
