//! What all guest links have in common, whatever they show. Only a hash of the secret part is kept.

use crate::clock::UnixTime;

/// The terms of a guest link, and how often it was used.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct StoredGuestLinkTerms {
    /// Who it is for, in its maker's words.
    pub label: String,
    /// The hash of the passphrase; empty if there is none.
    pub passphrase: String,
    pub created_at: UnixTime,
    pub expires_at: UnixTime,
    revoked_at: Option<UnixTime>,
    /// How often it was opened.
    pub opened: i64,
    opened_at: Option<UnixTime>,
}

impl StoredGuestLinkTerms {
    pub fn revoked_at(&self) -> Option<UnixTime> {
        self.revoked_at
    }

    pub fn opened_at(&self) -> Option<UnixTime> {
        self.opened_at
    }

    /// Whether it still works.
    pub fn is_open(&self, now: UnixTime) -> bool {
        self.revoked_at.is_none() && now < self.expires_at
    }

    /// Whether it asks for a passphrase.
    pub const fn asks_passphrase(&self) -> bool {
        !self.passphrase.is_empty()
    }
}
