//! What links for guests need, whatever they lead to: their terms, passwords and limits. Guessing is counted,
//! passphrases are hashed, and only hashes are kept.

use secrecy::{ExposeSecret as _, SecretString};

use super::rate_limits::{RateLimitBucket, client_network};
use super::token::SecretToken;
use super::{AuthError, AuthService, Result, Visitor};
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::domain::{DashboardLinkId, DisplayName, NameError, ReportLinkId};
use crate::store::StoreError;

/// How long a link works if nobody says, in days.
pub const DEFAULT_LINK_DAYS: u32 = 7;
/// The longest, in days.
pub const MAX_LINK_DAYS: u32 = 90;
/// So many links to one thing may work at a time.
pub const MAX_OPEN_LINKS: i64 = 50;
/// Said where nobody is named.
const LABEL_MISSING: &str = "Say whom it is for, so that you know the link again.";
/// Fewest characters of a passphrase.
pub const MIN_PASSPHRASE_CHARS: usize = 8;
/// Most bytes of one.
const MAX_PASSPHRASE_BYTES: usize = 200;

/// A link for guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GuestLinkId {
    Dashboard(DashboardLinkId),
    Report(ReportLinkId),
}

/// A link to be made.
#[derive(Debug, Clone)]
pub struct GuestLinkRequest {
    /// Whom it is for.
    pub label: String,
    /// For how many days it works.
    pub days: u32,
    /// What guests must know besides; empty: nothing.
    pub passphrase: SecretString,
}

/// An invitation that was checked, with its secret part.
#[derive(Debug)]
pub struct GuestLinkTerms {
    /// Whom it is for.
    pub label: DisplayName,
    /// The hash of the passphrase; empty: none is asked.
    pub passphrase: String,
    /// When it stops working.
    pub expires_at: UnixTime,
    /// The secret part: told once, and only its hash is kept.
    pub token: SecretToken,
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum CreateGuestLinkError {
    /// Whom it is for.
    #[error("{0}")]
    Label(NameError),
    #[error("Choose between 1 and {MAX_LINK_DAYS} days.")]
    Days,
    /// What guests must know besides.
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

/// Why a link does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenGuestLinkError {
    /// There is none, or no longer: strangers are told no more.
    #[error("There is no such link.")]
    Unknown,
    /// Its time is up.
    #[error("This link has ended.")]
    Expired(UnixTime),
    /// It was taken back.
    #[error("This link was taken back.")]
    Revoked,
    /// Too many tries, or the database.
    #[error(transparent)]
    Auth(#[from] AuthError),
}

impl From<StoreError> for OpenGuestLinkError {
    fn from(error: StoreError) -> Self {
        Self::Auth(error.into())
    }
}

/// A browser that was let in.
#[derive(Debug)]
pub struct ViewingSession {
    /// The word in its address.
    pub path_token: String,
    pub cookie: SecretToken,
    /// For how many seconds.
    pub lifetime_secs: i64,
}

impl AuthService {
    /// Checks an invitation and makes its secret part.
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
        let is_right =
            text.chars().count() >= MIN_PASSPHRASE_CHARS && text.len() <= MAX_PASSPHRASE_BYTES;
        if !text.is_empty() && !is_right {
            return Err(CreateGuestLinkError::Passphrase);
        }
        let passphrase = if text.is_empty() {
            String::new()
        } else {
            self.hash_password(&invitation.passphrase).await?
        };
        let token = SecretToken::generate().map_err(AuthError::from)?;
        let expires_at = self.clock.now().plus(i64::from(invitation.days) * SECONDS_PER_DAY);
        Ok(GuestLinkTerms { label, passphrase, expires_at, token })
    }

    /// Counts a wrong guess at a link. Guessing is hopeless, but it need not be free.
    pub fn limit_link_guess(&self, visitor: &Visitor) -> Result<()> {
        let bucket = [RateLimitBucket::GuestLinkGuess(client_network(visitor.address))];
        self.rate_limiter.take(&bucket, self.clock.now()).map_err(AuthError::TooManyTries)
    }

    /// Counts an opening of a link that exists: each leaves a line in the activity log.
    pub fn limit_link_opening(&self, link: GuestLinkId, visitor: &Visitor) -> Result<()> {
        let bucket = [RateLimitBucket::GuestLinkOpening(link, client_network(visitor.address))];
        self.rate_limiter.take(&bucket, self.clock.now()).map_err(AuthError::TooManyTries)
    }

    /// Whether a passphrase is the one behind a link's hash. Wrong ones are counted, by link and by address.
    pub async fn verify_passphrase(
        &self,
        link: GuestLinkId,
        hash: &str,
        passphrase: &SecretString,
        visitor: &Visitor,
    ) -> Result<bool> {
        let buckets = [
            RateLimitBucket::GuestPassphraseFrom(link, client_network(visitor.address)),
            RateLimitBucket::GuestPassphrase(link),
        ];
        self.rate_limiter.take(&buckets, self.clock.now()).map_err(AuthError::TooManyTries)?;
        let is_right = self.verify_hash(Some(hash.as_bytes().to_vec()), passphrase).await?;
        if is_right {
            self.rate_limiter.refund(&buckets, self.clock.now());
        }
        Ok(is_right)
    }
}
