//! What links for guests have in common, whatever they lead to. Only a hash of the secret part is kept.

use crate::clock::UnixTime;

/// Whom a link is for, for how long, and how it was used.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct GuestLinkRow {
    /// Whom it is for, in its maker's words.
    pub label: String,
    /// The hash of the passphrase; empty if none is asked.
    pub passphrase: String,
    /// When it was made.
    pub created_at: UnixTime,
    /// When it stops working.
    pub expires_at: UnixTime,
    revoked_at: Option<UnixTime>,
    /// How often it was opened.
    pub opened: i64,
    opened_at: Option<UnixTime>,
}

impl GuestLinkRow {
    /// When it was taken back.
    pub fn revoked_at(&self) -> Option<UnixTime> {
        self.revoked_at
    }

    /// When it was last opened.
    pub fn opened_at(&self) -> Option<UnixTime> {
        self.opened_at
    }

    /// Whether it still works.
    pub fn is_open(&self, now: UnixTime) -> bool {
        self.revoked_at.is_none() && now < self.expires_at
    }

    /// Whether a passphrase is asked.
    pub const fn asks_passphrase(&self) -> bool {
        !self.passphrase.is_empty()
    }
}
