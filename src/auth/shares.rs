//! What links for guests need, whatever they lead to: their terms, passwords and limits. Guessing is counted,
//! passphrases are hashed, and only hashes are kept.

use secrecy::{ExposeSecret as _, SecretString};

use super::limits::{Bucket, network};
use super::token::Token;
use super::{Auth, AuthError, Result, Visitor};
use crate::clock::UnixTime;
use crate::domain::{Label, NameError, ReportLinkId, ShareId};
use crate::store::StoreError;

/// How long a link works if nobody says, in days.
pub const USUAL_DAYS: u32 = 7;
/// The longest, in days.
pub const MOST_DAYS: u32 = 90;
/// So many links to one thing may work at a time.
pub const MOST_OPEN: i64 = 50;
/// Said where nobody is named.
const WHOM: &str = "Say whom it is for, so that you know the link again.";
/// Fewest characters of a passphrase.
pub const SHORTEST_PASSPHRASE: usize = 8;
/// Most bytes of one.
const LONGEST_PASSPHRASE: usize = 200;
const DAY: i64 = 86_400;

/// A link for guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GuestLink {
    /// To a dashboard.
    Board(ShareId),
    /// To a report.
    Report(ReportLinkId),
}

/// A link to be made.
#[derive(Debug, Clone)]
pub struct Invitation {
    /// Whom it is for.
    pub label: String,
    /// For how many days it works.
    pub days: u32,
    /// What guests must know besides; empty: nothing.
    pub passphrase: SecretString,
}

/// An invitation that was checked, with its secret part.
#[derive(Debug)]
pub struct Terms {
    /// Whom it is for.
    pub label: Label,
    /// The hash of the passphrase; empty: none is asked.
    pub passphrase: String,
    /// When it stops working.
    pub expires_at: UnixTime,
    /// The secret part: told once, and only its hash is kept.
    pub token: Token,
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum NotShared {
    /// Whom it is for.
    #[error("{0}")]
    Label(NameError),
    /// For how long.
    #[error("Choose between 1 and {MOST_DAYS} days.")]
    Days,
    /// What guests must know besides.
    #[error("Use a passphrase of at least {SHORTEST_PASSPHRASE} characters, or leave it empty.")]
    Passphrase,
    /// There are enough.
    #[error("{MOST_OPEN} links to it work already. Take some back first.")]
    TooMany,
    /// Anything else.
    #[error(transparent)]
    Auth(#[from] AuthError),
}

impl From<StoreError> for NotShared {
    fn from(error: StoreError) -> Self {
        Self::Auth(error.into())
    }
}

/// Why a link does not open.
#[derive(Debug, thiserror::Error)]
pub enum Shut {
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

impl From<StoreError> for Shut {
    fn from(error: StoreError) -> Self {
        Self::Auth(error.into())
    }
}

/// A browser that was let in.
#[derive(Debug)]
pub struct Entered {
    /// The word in its address.
    pub word: String,
    /// Its cookie.
    pub cookie: Token,
    /// For how many seconds.
    pub seconds: i64,
}

impl Auth {
    /// Checks an invitation and makes its secret part.
    pub async fn terms(&self, invitation: &Invitation) -> std::result::Result<Terms, NotShared> {
        if invitation.label.trim().is_empty() {
            return Err(NotShared::Label(NameError(WHOM)));
        }
        let label: Label = invitation.label.parse().map_err(NotShared::Label)?;
        if !(1..=MOST_DAYS).contains(&invitation.days) {
            return Err(NotShared::Days);
        }
        let text = invitation.passphrase.expose_secret();
        let is_right =
            text.chars().count() >= SHORTEST_PASSPHRASE && text.len() <= LONGEST_PASSPHRASE;
        if !text.is_empty() && !is_right {
            return Err(NotShared::Passphrase);
        }
        let passphrase = if text.is_empty() {
            String::new()
        } else {
            self.hash_password(&invitation.passphrase).await?
        };
        let token = Token::generate().map_err(AuthError::from)?;
        let expires_at = self.clock.now().plus(i64::from(invitation.days) * DAY);
        Ok(Terms { label, passphrase, expires_at, token })
    }

    /// Counts a wrong guess at a link. Guessing is hopeless, but it need not be free.
    pub fn count_wrong_link(&self, visitor: &Visitor) -> Result<()> {
        let bucket = [Bucket::Link(network(visitor.address))];
        self.limits.take(&bucket, self.clock.now()).map_err(AuthError::TooManyTries)
    }

    /// Counts an opening of a link that exists: each leaves a line in the activity log.
    pub fn count_opening(&self, link: GuestLink, visitor: &Visitor) -> Result<()> {
        let bucket = [Bucket::Opening(link, network(visitor.address))];
        self.limits.take(&bucket, self.clock.now()).map_err(AuthError::TooManyTries)
    }

    /// Whether a passphrase is the one behind a link's hash. Wrong ones are counted, by link and by address.
    pub async fn check_passphrase(
        &self,
        link: GuestLink,
        hash: &str,
        passphrase: &SecretString,
        visitor: &Visitor,
    ) -> Result<bool> {
        let buckets =
            [Bucket::PassphraseFrom(link, network(visitor.address)), Bucket::Passphrase(link)];
        self.limits.take(&buckets, self.clock.now()).map_err(AuthError::TooManyTries)?;
        let is_right = self.verify_hash(Some(hash.as_bytes().to_vec()), passphrase).await?;
        if is_right {
            self.limits.give_back(&buckets, self.clock.now());
        }
        Ok(is_right)
    }
}
