//! The portal's cookies: their names, and how each is set and taken back.

use axum_extra::extract::cookie::{Cookie, CookieJar, SameSite};

use crate::app::App;

/// What a cookie is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A signed-in browser.
    Session,
    /// A sign-in that waits for its one-time code.
    Waiting,
    /// This browser has signed in before.
    KnownBrowser,
    /// Light, dark or automatic.
    Theme,
    /// A message for the next page.
    Flash,
}

impl Kind {
    const fn plain_name(self) -> &'static str {
        match self {
            Self::Session => "portolan_session",
            Self::Waiting => "portolan_waiting",
            Self::KnownBrowser => "portolan_browser",
            Self::Theme => "portolan_theme",
            Self::Flash => "portolan_flash",
        }
    }

    /// The name in the browser. Over TLS the prefix makes browsers refuse it from anywhere else.
    fn name(self, app: &App) -> String {
        let prefix = if app.config.portal.public_url.is_https() { "__Host-" } else { "" };
        format!("{prefix}{}", self.plain_name())
    }
}

/// The value of a cookie, if the browser sent it.
pub fn get(jar: &CookieJar, app: &App, kind: Kind) -> Option<String> {
    jar.get(&kind.name(app)).map(|cookie| cookie.value().to_owned())
}

/// Sets a cookie for so many seconds.
pub fn set(jar: CookieJar, app: &App, kind: Kind, value: &str, seconds: i64) -> CookieJar {
    jar.add(build(app, kind, value.to_owned(), seconds))
}

/// Takes a cookie back.
pub fn clear(jar: CookieJar, app: &App, kind: Kind) -> CookieJar {
    jar.add(build(app, kind, String::new(), 0))
}

fn build(app: &App, kind: Kind, value: String, seconds: i64) -> Cookie<'static> {
    Cookie::build((kind.name(app), value))
        .path("/")
        .http_only(true)
        .secure(app.config.portal.public_url.is_https())
        .same_site(SameSite::Lax)
        .max_age(time::Duration::seconds(seconds))
        .build()
}
