//! Who someone is and what they may do: passwords, sessions, one-time links, second factor, limits, policy.
//! The one place that decides; it knows nothing of HTTP.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{Semaphore, broadcast};

use crate::clock::Clock;
use crate::config;
use crate::domain::{PersonId, SessionId};
use crate::store::{Store, StoreCache, StoreError};
use crate::vault::{Vault, VaultError};

pub mod activity;
pub mod groups;
pub mod guest_links;
mod keychains;
pub mod known_browser;
pub mod one_time_links;
pub mod password;
pub mod people;
pub mod policy;
pub mod rate_limits;
mod reseal;
pub mod second_factor;
pub mod sessions;
pub mod sign_in;
pub mod ssh_keys;
pub mod token;

pub use activity::ActivityEvent;
pub use policy::{AccessDeniedError, Ownership, Permission, Viewer};

/// Passwords hashed at the same time: each takes 19 MiB and a core for some 30 ms.
const MAX_CONCURRENT_HASHES: usize = 2;

/// Passwords that may wait for their turn. Whoever comes later is told to try again: a flood must not pile up.
const MAX_QUEUED_HASHES: usize = 64;

/// Imported keys opened at the same time; whoever comes meanwhile is told to try again. Never in the way of sign-ins.
const MAX_CONCURRENT_IMPORTS: usize = 2;

/// Sessions kept in memory: more people than any lab has.
const SESSION_CACHE_SIZE: usize = 4096;

/// Who knocks: what the limits and the activity log need to know of a request.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// The client's address, as far as trusted proxies tell.
    pub address: IpAddr,
    /// What the browser calls itself, cut to a sane length.
    pub user_agent: String,
}

/// Sessions that were ended just now, for streams that must close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionsEnded {
    Session(SessionId),
    /// Every browser of a person but one.
    Person(PersonId, Option<SessionId>),
}

impl SessionsEnded {
    /// Whether a given session of a given person is meant.
    pub fn applies_to(self, person: PersonId, session: SessionId) -> bool {
        match self {
            Self::Session(ended) => ended == session,
            Self::Person(ended, kept) => ended == person && kept != Some(session),
        }
    }
}

/// Why something about an account was refused.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// Name and password do not go together, or the account is off. Deliberately one answer for all.
    #[error("wrong name or password")]
    WrongPassword,
    /// Too many tries; how many seconds to wait.
    #[error("too many tries, wait {0} s")]
    TooManyTries(i64),
    /// The one-time or recovery code is wrong.
    #[error("wrong code")]
    WrongCode,
    /// The code was right but has been used before.
    #[error("code used before")]
    CodeAlreadyUsed,
    /// The code is right for a time that has passed already: the portal's clock was set back.
    #[error("clock behind")]
    ClockBehind,
    /// The half-finished sign-in ran out or was given up after wrong codes.
    #[error("sign-in ran out")]
    SignInExpired,
    /// The link does not exist, or no longer.
    #[error("link: {0:?}")]
    Link(one_time_links::OneTimeLinkError),
    /// The password breaks a rule.
    #[error("{0}")]
    Password(#[from] password::PasswordError),
    /// Someone has this name.
    #[error("taken")]
    NameTaken,
    /// There is no such person, group or session (or it is not theirs).
    #[error("no such thing")]
    NotFound,
    /// They may not do this (any more).
    #[error("not allowed")]
    Denied,
    /// It would leave the portal without an administrator.
    #[error("last administrator")]
    LastAdmin,
    /// Their keychain is closed: they must sign in again.
    #[error("keychain closed")]
    KeychainLocked,
    /// A new key waits already.
    #[error("a new key waits already")]
    NewKeyPending,
    /// The new key has not opened a connection yet.
    #[error("the new key is not proven")]
    KeyUnproven,
    /// Too many passwords wait to be checked.
    #[error("overloaded")]
    Overloaded,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// Hashing or the operating system.
    #[error("{0}")]
    System(String),
}

impl From<std::io::Error> for AuthError {
    fn from(error: std::io::Error) -> Self {
        Self::System(error.to_string())
    }
}

/// Shorthand of this room.
pub type Result<T> = std::result::Result<T, AuthError>;

/// Everything account-related, shared by all requests.
#[derive(Clone)]
pub struct AuthService {
    store: Store,
    vault: Vault,
    clock: Clock,
    rate_limiter: Arc<rate_limits::RateLimiter>,
    session_settings: config::SessionSettings,
    hash_slots: Arc<Semaphore>,
    hash_queue: Arc<Semaphore>,
    import_slots: Arc<Semaphore>,
    sessions_ended: broadcast::Sender<SessionsEnded>,
    keychains: Arc<keychains::OpenKeychainCache>,
    /// Sessions by the hash of their cookie; `None` for a cookie that opens nothing.
    session_cache: Arc<StoreCache<[u8; 32], Option<Arc<sessions::SignedInPerson>>>>,
}

impl AuthService {
    /// Puts the parts together.
    pub fn new(
        store: Store,
        vault: Vault,
        clock: Clock,
        lifetimes: config::SessionSettings,
    ) -> Self {
        Self {
            store,
            vault,
            clock,
            rate_limiter: Arc::default(),
            session_settings: lifetimes,
            hash_slots: Arc::new(Semaphore::new(MAX_CONCURRENT_HASHES)),
            hash_queue: Arc::new(Semaphore::new(MAX_QUEUED_HASHES)),
            import_slots: Arc::new(Semaphore::new(MAX_CONCURRENT_IMPORTS)),
            sessions_ended: broadcast::channel(64).0,
            keychains: Arc::default(),
            session_cache: Arc::new(StoreCache::new(SESSION_CACHE_SIZE)),
        }
    }

    /// Tells of sessions as they end.
    pub fn subscribe_sessions_ended(&self) -> broadcast::Receiver<SessionsEnded> {
        self.sessions_ended.subscribe()
    }

    fn publish_sessions_ended(&self, ended: SessionsEnded) {
        // No receiver means that no page is open, which is fine.
        let _ = self.sessions_ended.send(ended);
    }
}

/// The place a person's sealed values belong to.
pub fn person_seal_context(person: PersonId) -> String {
    format!("person:{person}")
}
