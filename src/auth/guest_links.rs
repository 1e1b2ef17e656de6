//! What all guest links need, whatever they lead to: terms, passphrases and rate limits. Guesses are counted,
//! passphrases are hashed, and only hashes are stored.

use secrecy::{ExposeSecret as _, SecretString};

use super::rate_limits::{RateLimitKey, client_network};
use super::token::SecretToken;
use super::{AuthError, AuthService, RequestClient, Result};
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::domain::{DashboardLinkId, DisplayName, NameError, ReportLinkId};
use crate::store::StoreError;

pub const DEFAULT_LINK_DAYS: u32 = 7;
pub const MAX_LINK_DAYS: u32 = 90;
/// Valid guest links to one dashboard or report at the same time.
pub const MAX_OPEN_LINKS: i64 = 50;
const LABEL_MISSING: &str = "Say whom it is for, so that you know the link again.";
pub const MIN_PASSPHRASE_CHARS: usize = 8;
const MAX_PASSPHRASE_BYTES: usize = 200;

/// A guest link, to a dashboard or a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GuestLinkId {
    Dashboard(DashboardLinkId),
    Report(ReportLinkId),
}

/// A guest link to create.
#[derive(Debug, Clone)]
pub struct GuestLinkRequest {
    /// Whom it is for.
    pub label: String,
    /// Days until it expires.
    pub days: u32,
    /// The passphrase that guests must enter; empty if none.
    pub passphrase: SecretString,
}

/// The checked terms of a new guest link, with its token.
#[derive(Debug)]
pub struct GuestLinkTerms {
    /// Whom it is for.
    pub label: DisplayName,
    /// The hash of the passphrase; empty if none is required.
    pub passphrase: String,
    pub expires_at: UnixTime,
    /// Shown once; only its hash is stored.
    pub token: SecretToken,
}

/// Why a guest link can't be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateGuestLinkError {
    /// The label is not valid.
    #[error("{0}")]
    Label(NameError),
    #[error("Choose between 1 and {MAX_LINK_DAYS} days.")]
    Days,
    /// The passphrase is too short or too long.
    #[error("Use a passphrase of at least {MIN_PASSPHRASE_CHARS} characters, or leave it empty.")]
    Passphrase,
    #[error("{MAX_OPEN_LINKS} links to it work already. Take some back first.")]
    TooMany,
    #[error(transparent)]
    Auth(#[from] AuthError),
}

impl From<StoreError> for CreateGuestLinkError {
    fn from(error: StoreError) -> Self {
        Self::Auth(error.into())
    }
}

/// Why a guest link doesn't open.
#[derive(Debug, thiserror::Error)]
pub enum OpenGuestLinkError {
    /// It doesn't exist, or no longer. Strangers learn nothing more.
    #[error("There is no such link.")]
    Unknown,
    #[error("This link has ended.")]
    Expired(UnixTime),
    #[error("This link was taken back.")]
    Revoked,
    /// Rate limit reached, or the database failed.
    #[error(transparent)]
    Auth(#[from] AuthError),
}

impl From<StoreError> for OpenGuestLinkError {
    fn from(error: StoreError) -> Self {
        Self::Auth(error.into())
    }
}

/// A browser that a guest link let in.
#[derive(Debug)]
pub struct GuestViewingSession {
    /// The token in its URL.
    pub path_token: String,
    pub cookie: SecretToken,
    pub lifetime_secs: i64,
}

impl AuthService {
    /// Checks the terms of a guest link and generates its token.
    pub async fn prepare_guest_link(
        &self,
        invitation: &GuestLinkRequest,
    ) -> std::result::Result<GuestLinkTerms, CreateGuestLinkError> {
        if invitation.label.trim().is_empty() {
            return Err(CreateGuestLinkError::Label(NameError(LABEL_MISSING)));
        }
        let label: DisplayName = invitation.label.parse().map_err(CreateGuestLinkError::Label)?;
        if !(1..=MAX_LINK_DAYS).contains(&invitation.days) {
            return Err(CreateGuestLinkError::Days);
        }
        let text = invitation.passphrase.expose_secret();
        let is_right = text.chars().count() >= MIN_PASSPHRASE_CHARS && text.len() <= MAX_PASSPHRASE_BYTES;
        if !text.is_empty() && !is_right {
            return Err(CreateGuestLinkError::Passphrase);
        }
        let passphrase =
            if text.is_empty() { String::new() } else { self.hash_password(&invitation.passphrase).await? };
        let token = SecretToken::generate().map_err(AuthError::from)?;
        let expires_at = self.clock.now().plus(i64::from(invitation.days) * SECONDS_PER_DAY);
        Ok(GuestLinkTerms { label, passphrase, expires_at, token })
    }

    /// Counts a wrong guess at a link. Guessing is hopeless, but it need not be free.
    pub fn limit_link_guess(&self, visitor: &RequestClient) -> Result<()> {
        let bucket = [RateLimitKey::GuestLinkGuess(client_network(visitor.address))];
        self.rate_limiter.take(&bucket, self.clock.now()).map_err(AuthError::TooManyTries)
    }

    /// Counts an opening of an existing link, because each adds an entry to the activity log.
    pub fn limit_link_opening(&self, link: GuestLinkId, visitor: &RequestClient) -> Result<()> {
        let bucket = [RateLimitKey::GuestLinkOpening(link, client_network(visitor.address))];
        self.rate_limiter.take(&bucket, self.clock.now()).map_err(AuthError::TooManyTries)
    }

    /// Whether a passphrase matches a link's hash. Wrong ones are counted, per link and per address.
    pub async fn verify_passphrase(
        &self,
        link: GuestLinkId,
        hash: &str,
        passphrase: &SecretString,
        visitor: &RequestClient,
    ) -> Result<bool> {
        let buckets = [
            RateLimitKey::GuestPassphraseFrom(link, client_network(visitor.address)),
            RateLimitKey::GuestPassphrase(link),
        ];
        self.rate_limiter.take(&buckets, self.clock.now()).map_err(AuthError::TooManyTries)?;
        let is_right = self.verify_hash(Some(hash.as_bytes().to_vec()), passphrase).await?;
        if is_right {
            self.rate_limiter.refund(&buckets, self.clock.now());
        }
        Ok(is_right)
    }
}
