//! Short messages for the next page. The cookie holds only a word from this list, so nobody can put text there.

use axum::http::HeaderValue;
use axum::response::{IntoResponse as _, Redirect, Response};

use super::cookies::{self, Kind};
use super::extract::Context;

macro_rules! flashes {
    ($($variant:ident = $word:literal, $kind:literal, $text:literal;)*) => {
        /// A message for the next page.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Flash { $(#[doc = $text] $variant,)* }

        impl Flash {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The word in the cookie.
            const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// How it is drawn: ok, info, warning or danger.
            pub const fn kind(self) -> &'static str {
                match self { $(Self::$variant => $kind,)* }
            }

            /// What it says.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

flashes! {
    SignedOut = "signed-out", "ok", "You are signed out.";
    SignedOutEverywhere = "signed-out-everywhere", "ok", "You are signed out on every device.";
    SignInRanOut = "ran-out", "warning", "That took too long or too many codes were wrong. Please begin again with your password.";
    PasswordChanged = "password-changed", "ok", "Your password is changed. Every other device was signed out.";
    PasswordReset = "password-reset", "ok", "Your new password is set. Sign in with it.";
    NameChanged = "name-changed", "ok", "Your name is changed.";
    DeviceEnded = "device-ended", "ok", "That device is signed out.";
    SecondFactorOff = "second-factor-off", "warning", "The second factor is off. Your password alone now opens your account.";
    SecondFactorRemoved = "second-factor-removed", "ok", "Their second factor is off. Ask them to set it up again.";
    JoinedBefore = "joined-before", "info", "You belong to this group already. The invitation is still open for someone else.";
    Joined = "joined", "ok", "You have joined the group.";
    GroupMade = "group-made", "ok", "The group is there. Now invite its people.";
    GroupRenamed = "group-renamed", "ok", "The group has its new name.";
    InvitationRevoked = "invitation-revoked", "ok", "The invitation no longer works.";
    RoleChanged = "role-changed", "ok", "The role is changed.";
    MemberRemoved = "member-removed", "ok", "They no longer belong to the group. Their account stays.";
    PersonDisabled = "person-disabled", "ok", "The account is switched off and every session of it was ended.";
    PersonEnabled = "person-enabled", "ok", "The account can sign in again.";
    AdminChanged = "admin-changed", "ok", "The administrator rights are changed.";
    Welcome = "welcome", "ok", "Your account is ready. Welcome aboard.";
}

/// Seconds the message waits for its page.
const KEPT_FOR: i64 = 60;

impl Flash {
    /// The message behind a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|flash| flash.word() == word)
    }
}

/// Goes to another page, with a message for it.
pub fn redirect(context: Context, to: &str, flash: Flash) -> Response {
    let jar = cookies::set(context.jar, &context.app, Kind::Flash, flash.word(), KEPT_FOR);
    (jar, see_other(to)).into_response()
}

/// Goes to another page of the portal.
pub fn see_other(to: &str) -> Response {
    // Header values take no control characters; an address that has some is none of ours.
    let to = if HeaderValue::from_str(to).is_ok() { to } else { "/" };
    Redirect::to(to).into_response()
}

/// Only paths of this portal: never another site, however it is written.
pub fn local_path(text: &str) -> &str {
    let local = text.starts_with('/')
        && !text.starts_with("//")
        && !text.contains('\\')
        && !text.chars().any(char::is_control)
        && text.len() < 1000
        && !text.starts_with("/sign-in");
    if local { text } else { "/" }
}
