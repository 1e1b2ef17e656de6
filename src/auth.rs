//! Who someone is and what they may do: passwords, sessions, one-time links, second factor, rate limits, policy.
//! All such decisions are made here; this module knows nothing of HTTP.

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

pub use activity::ActivityEventKind;
pub use policy::{AccessDeniedError, MemberJobSharing, Permission, SharedItemOwnership, Viewer};

/// Each hash takes 19 MiB, which the allocator may keep for a while, and a core for about 30 ms. One at a time: wrong
/// passwords never keep more than one core from pages.
const MAX_CONCURRENT_HASHES: usize = 1;

/// Beyond this, people are asked to try again, so that a flood of sign-ins can't pile up.
const MAX_QUEUED_HASHES: usize = 64;

/// Imported keys opened at the same time; others are asked to try again. Separate from sign-ins, so never in their
/// way.
const MAX_CONCURRENT_IMPORTS: usize = 2;

/// More people than any lab has.
const SESSION_CACHE_SIZE: usize = 4096;

/// The client of a request, as far as rate limits and the activity log are concerned.
#[derive(Debug, Clone)]
pub struct RequestClient {
    /// The client's address, as reported by trusted proxies.
    pub address: IpAddr,
    /// The browser's user agent, cut to a sane length.
    pub user_agent: String,
}

/// Sessions that have just ended, so that their streams close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionsEndedSignal {
    Session(SessionId),
    /// Every session of a person, except one if given.
    Person(PersonId, Option<SessionId>),
}

impl SessionsEndedSignal {
    pub fn applies_to(self, person: PersonId, session: SessionId) -> bool {
        match self {
            Self::Session(ended) => ended == session,
            Self::Person(ended, kept) => ended == person && kept != Some(session),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// Wrong name or password. One answer for both, so that it reveals nothing.
    #[error("wrong user name or password")]
    WrongPassword,
    /// The password was right, but the account is disabled.
    #[error("account disabled")]
    AccountDisabled,
    /// Rate limit reached; holds the seconds to wait.
    #[error("too many attempts; wait {0} s")]
    TooManyTries(i64),
    /// The one-time or recovery code is wrong.
    #[error("wrong code")]
    WrongCode,
    /// The code was right but has been used before.
    #[error("code already used")]
    CodeAlreadyUsed,
    /// The code belongs to a time that has already passed: the portal's clock was set back.
    #[error("the portal's clock is behind")]
    ClockBehind,
    /// The half-finished sign-in expired, or was dropped after too many wrong codes.
    #[error("sign-in expired")]
    SignInExpired,
    /// The link doesn't exist or no longer works.
    #[error("link: {0:?}")]
    Link(one_time_links::OneTimeLinkError),
    #[error("{0}")]
    Password(#[from] password::PasswordError),
    #[error("name already taken")]
    NameTaken,
    /// No such person, group or session, or not theirs.
    #[error("not found")]
    NotFound,
    /// They may not do this, or no longer.
    #[error("not allowed")]
    Denied,
    /// It would leave the portal without an administrator.
    #[error("this is the last administrator")]
    LastAdmin,
    /// It would leave a group with members but without a PI who can sign in.
    #[error("this is the last PI of a group")]
    LastPi,
    /// Their keychain is locked; they must sign in again.
    #[error("keychain locked")]
    KeychainLocked,
    /// A new key is already waiting to be proven.
    #[error("a new key is already waiting to be tested")]
    NewKeyPending,
    /// The new key has not opened a connection yet.
    #[error("the new key hasn't been tested")]
    KeyUnproven,
    /// Too many passwords are waiting to be checked.
    #[error("overloaded")]
    Overloaded,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// Hashing or the operating system failed.
    #[error("{0}")]
    System(String),
}

impl From<std::io::Error> for AuthError {
    fn from(error: std::io::Error) -> Self {
        Self::System(error.to_string())
    }
}

pub type Result<T> = std::result::Result<T, AuthError>;

/// Everything about accounts, shared by all requests.
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
    sessions_ended: broadcast::Sender<SessionsEndedSignal>,
    keychains: Arc<keychains::OpenKeychainCache>,
    /// Sessions by the hash of their cookie; `None` for a cookie that is not valid.
    session_cache: Arc<StoreCache<[u8; 32], Option<Arc<sessions::SignedInPerson>>>>,
}

impl AuthService {
    pub fn new(store: Store, vault: Vault, clock: Clock, lifetimes: config::SessionSettings) -> Self {
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

    /// Receives sessions as they end.
    pub fn subscribe_sessions_ended(&self) -> broadcast::Receiver<SessionsEndedSignal> {
        self.sessions_ended.subscribe()
    }

    /// Counts a try against each of these limits, or refuses it.
    fn count_try(&self, limits: &[rate_limits::RateLimitKey]) -> Result<()> {
        self.rate_limiter.take(limits, self.clock.now()).map_err(AuthError::TooManyTries)
    }

    fn publish_sessions_ended(&self, ended: SessionsEndedSignal) {
        // Without a receiver, no page is open, which is fine.
        let _ = self.sessions_ended.send(ended);
    }
}

/// The context that binds a person's sealed values to them.
pub fn person_seal_context(person: PersonId) -> String {
    format!("person:{person}")
}
