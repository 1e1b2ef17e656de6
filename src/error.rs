//! What can go wrong while serving a request. `web::http::errors` decides how it looks.

use crate::auth::{AccessDeniedError, AuthError};
use crate::store::StoreError;

/// Every way a request can fail; each doc line starts with the HTTP status.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// 303 to the sign-in page: nobody is signed in. Holds the page that they wanted.
    #[error("not signed in")]
    NotSignedIn(String),
    /// 403: signed in, but not allowed.
    #[error("not allowed")]
    Denied,
    /// 404: no such page, or none that this person may know about.
    #[error("not found")]
    NotFound,
    /// 405: the URL exists, but not for this method.
    #[error("method not allowed")]
    MethodNotAllowed,
    /// 400: the request makes no sense (a missing field, an invalid number).
    #[error("bad request: {0}")]
    BadRequest(String),
    /// 403: sent by a page of another site.
    #[error("cross-origin request")]
    CrossOrigin,
    /// 413: more than anyone types.
    #[error("request too large")]
    TooLarge,
    /// 429: rate limit reached; holds the seconds to wait.
    #[error("too many attempts")]
    TooManyTries(i64),
    /// 410: a link that no longer works.
    #[error("link no longer works")]
    OneTimeLink(crate::auth::one_time_links::OneTimeLinkError),
    /// 409: it would leave the portal without an administrator.
    #[error("this is the last administrator")]
    LastAdmin,
    /// 409: it would leave a group with members but without a PI.
    #[error("this is the last PI of a group")]
    LastPi,
    /// 409: a saved recipe no longer works; holds the reason as a sentence.
    #[error("a saved recipe can't be read")]
    BrokenRecipe(String),
    /// 409: the person's keychain is locked; signing in again unlocks it.
    #[error("keychain locked")]
    KeychainLocked,
    /// 503: another program holds the database, or too many people are signing in at once.
    #[error("database busy")]
    Busy,
    /// 507: the disk is full; nothing was changed.
    #[error("disk full")]
    DiskFull,
    /// 500: a bug. The text goes to the log, never to the page.
    #[error("{0}")]
    Internal(String),
}

impl From<AccessDeniedError> for AppError {
    fn from(AccessDeniedError: AccessDeniedError) -> Self {
        Self::Denied
    }
}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy => Self::Busy,
            StoreError::DiskFull => Self::DiskFull,
            other => Self::Internal(other.to_string()),
        }
    }
}

impl From<AuthError> for AppError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Store(error) => error.into(),
            AuthError::TooManyTries(wait) => Self::TooManyTries(wait),
            AuthError::Overloaded => Self::Busy,
            AuthError::Link(problem) => Self::OneTimeLink(problem),
            AuthError::NotFound => Self::NotFound,
            AuthError::Denied => Self::Denied,
            AuthError::LastAdmin => Self::LastAdmin,
            AuthError::LastPi => Self::LastPi,
            AuthError::SignInExpired => Self::NotSignedIn("/".into()),
            AuthError::KeychainLocked => Self::KeychainLocked,
            // Forms show these next to the field; reaching this point is a bug.
            other => Self::Internal(other.to_string()),
        }
    }
}
