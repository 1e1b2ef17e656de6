//! Links by which people without an account see one dashboard, report, file or folder, or upload: creating, listing and revoking them, opening
//! them, and who may look by one. Guesses are counted, passphrases are hashed, and only hashes are stored.

mod content;
mod shared_paths;

use secrecy::{ExposeSecret as _, SecretString};

use self::content::{GuestLinkContent, link_events, load_content};
use super::activity::{ActivityDetails, Actor, record};
use super::rate_limits::{RateLimitKey, client_network};
use super::token::{self, SecretToken};
use super::{AuthError, AuthService, Permission, RequestClient, Viewer};
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::domain::{DisplayName, GuestLinkId, NameError};
use crate::store::guest_links::{self, NewGuestLink};
pub use crate::store::guest_links::{GuestBrowserAccess, GuestLink, GuestLinkTarget, GuestLinkTargetKind};
use crate::store::{self, DbConnection, StoreError};

pub const DEFAULT_LINK_DAYS: u32 = 7;
pub const MAX_LINK_DAYS: u32 = 90;
/// Valid guest links to one dashboard or report, or to one person's files, at the same time.
pub const MAX_OPEN_LINKS: i64 = 50;
const LABEL_MISSING: &str = "Add a note so that you can recognise the link later.";
pub const MIN_PASSPHRASE_CHARS: usize = 8;
const MAX_PASSPHRASE_BYTES: usize = 200;

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

impl GuestLinkRequest {
    /// Checks the terms; returns the label.
    fn check(&self) -> Result<DisplayName, CreateGuestLinkError> {
        if self.label.trim().is_empty() {
            return Err(CreateGuestLinkError::Label(NameError(LABEL_MISSING)));
        }
        let label = self.label.parse().map_err(CreateGuestLinkError::Label)?;
        if !(1..=MAX_LINK_DAYS).contains(&self.days) {
            return Err(CreateGuestLinkError::Days);
        }
        let passphrase = self.passphrase.expose_secret();
        let is_long_enough = passphrase.is_empty() || passphrase.chars().count() >= MIN_PASSPHRASE_CHARS;
        if !is_long_enough || passphrase.len() > MAX_PASSPHRASE_BYTES {
            return Err(CreateGuestLinkError::Passphrase);
        }
        Ok(label)
    }
}

/// What someone asked for, ready to be stored.
struct CheckedLinkTerms {
    label: DisplayName,
    /// The hash of the passphrase; empty if there is none.
    passphrase: String,
    days: u32,
}

/// Why a guest link can't be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateGuestLinkError {
    /// The label is not valid.
    #[error("{0}")]
    Label(NameError),
    #[error("Enter a number of days from 1 to {MAX_LINK_DAYS}.")]
    Days,
    /// The passphrase is too short or too long.
    #[error("Use a passphrase of at least {MIN_PASSPHRASE_CHARS} characters, or leave the field empty.")]
    Passphrase,
    #[error("There are already {MAX_OPEN_LINKS} active guest links. Revoke some first.")]
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
    #[error("This link doesn't exist.")]
    Unknown,
    #[error("This link has expired.")]
    Expired(UnixTime),
    #[error("This link was revoked.")]
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

/// A browser that was let in, by a guest link or a ticket.
#[derive(Debug)]
pub struct NewViewerAccess {
    /// The access key in its URL.
    pub access_key: String,
    pub cookie: SecretToken,
    pub lifetime_secs: i64,
}

impl NewViewerAccess {
    pub fn generate(lifetime_secs: i64) -> Result<Self, AuthError> {
        let access_key = SecretToken::generate()?.as_str().to_owned();
        Ok(Self { access_key, cookie: SecretToken::generate()?, lifetime_secs })
    }
}

/// Why a browser may not view something now.
#[derive(Debug, thiserror::Error)]
pub enum GuestAccessError {
    /// There is no such access, it belongs to another browser, or it has ended. Strangers learn no more.
    #[error("access denied")]
    Closed,
    /// The passphrase is still missing.
    #[error("a passphrase is required")]
    Locked(Box<GuestBrowserAccess>),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AuthService {
    /// Creates a link. Its secret part is shown once and never again.
    pub async fn create_guest_link(
        &self,
        actor: &Actor,
        target: GuestLinkTarget,
        request: &GuestLinkRequest,
    ) -> Result<SecretToken, CreateGuestLinkError> {
        let terms = self.check_terms(request).await?;
        let mut tx = self.store.write().await?;
        let token = self.add_link(&mut tx, actor, target, &terms).await?;
        store::commit(tx).await?;
        Ok(token)
    }

    /// Checks what someone asks for. The passphrase is hashed before the database is locked: that takes a while.
    async fn check_terms(&self, request: &GuestLinkRequest) -> Result<CheckedLinkTerms, CreateGuestLinkError> {
        let label = request.check()?;
        let has_passphrase = !request.passphrase.expose_secret().is_empty();
        let passphrase = if has_passphrase { self.hash_password(&request.passphrase).await? } else { String::new() };
        Ok(CheckedLinkTerms { label, passphrase, days: request.days })
    }

    async fn add_link(
        &self,
        db: &mut DbConnection,
        actor: &Actor,
        target: GuestLinkTarget,
        terms: &CheckedLinkTerms,
    ) -> Result<SecretToken, CreateGuestLinkError> {
        let token = SecretToken::generate().map_err(AuthError::from)?;
        let now = self.clock.now();
        let content = load_content(db, target, now).await?;
        self.authorise(db, actor, content.permission).await?;
        if guest_links::count_open(db, target, now).await? >= MAX_OPEN_LINKS {
            return Err(CreateGuestLinkError::TooMany);
        }
        let new = NewGuestLink {
            target,
            created_by: content.owner.or(actor.id).ok_or(AuthError::Denied)?,
            token_hash: token.hash_token(),
            label: terms.label.as_str(),
            passphrase: &terms.passphrase,
            expires_at: now.plus(i64::from(terms.days) * SECONDS_PER_DAY),
        };
        guest_links::add(db, &new, now).await?;
        let [created, ..] = link_events(target.kind());
        let about = ActivityDetails { person: content.owner, subject: &content.title, detail: terms.label.as_str() };
        record(db, actor, created, about, now).await?;
        Ok(token)
    }

    /// The links to something, for someone who may create them. Newest first; those that still work before the others.
    pub async fn list_guest_links(
        &self,
        viewer: &Viewer,
        target: GuestLinkTarget,
    ) -> Result<Vec<GuestLink>, AuthError> {
        let now = self.clock.now();
        let mut db = self.store.read().await?;
        let content = load_content(&mut db, target, now).await?;
        viewer.may(content.permission).map_err(|_| AuthError::Denied)?;
        Ok(guest_links::list(&mut db, target, now).await?)
    }

    /// The links to dashboards and files that a person oversees: those of people in groups of which they are a PI, or everyone's.
    pub async fn list_overseen_links(&self, viewer: &Viewer) -> Result<Vec<GuestLink>, StoreError> {
        let mut db = self.store.read().await?;
        guest_links::list_overseen(&mut db, viewer.id, viewer.is_admin, self.clock.now()).await
    }

    /// Revokes a link, if it leads to what is expected. Guests who came by it lose access.
    pub async fn revoke_guest_link(
        &self,
        actor: &Actor,
        id: GuestLinkId,
        is_expected: impl FnOnce(GuestLinkTarget) -> bool + Send,
    ) -> Result<GuestLinkTarget, AuthError> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        let link = guest_links::get(&mut tx, id).await?.filter(|link| is_expected(link.target));
        let link = link.ok_or(AuthError::NotFound)?;
        let content = load_content(&mut tx, link.target, now).await?;
        let permission = self.revoke_permission(&mut tx, actor, &content).await?;
        self.authorise(&mut tx, actor, permission).await?;
        if guest_links::revoke(&mut tx, id, now).await? {
            let [_, revoked, _] = link_events(link.target.kind());
            let about = ActivityDetails { person: content.owner, subject: &content.title, detail: &link.label };
            record(&mut tx, actor, revoked, about, now).await?;
        }
        store::commit(tx).await?;
        Ok(link.target)
    }

    /// What someone needs to revoke a link: links to other people's dashboards and files are overseen by the PIs of their
    /// groups and by administrators.
    async fn revoke_permission(
        &self,
        db: &mut DbConnection,
        actor: &Actor,
        content: &GuestLinkContent,
    ) -> Result<Permission, AuthError> {
        let Some(owner) = content.owner.filter(|owner| actor.id != Some(*owner)) else {
            return Ok(content.permission);
        };
        for group in store::groups::list_for_person(db, owner).await? {
            let permission = Permission::OverseeDashboardLinks(group.group_id);
            if self.authorise(db, actor, permission).await.is_ok() {
                return Ok(permission);
            }
        }
        // Only administrators oversee people without a group.
        Ok(Permission::ManagePeople)
    }

    /// Opens a link of a kind: the browser gets its own access, locked if there is a passphrase.
    pub async fn open_guest_link(
        &self,
        kind: GuestLinkTargetKind,
        token: &str,
        client: &RequestClient,
    ) -> Result<(GuestLinkTarget, NewViewerAccess), OpenGuestLinkError> {
        let now = self.clock.now();
        let link = guest_links::find(&mut *self.store.read().await?, &token::hash(token)).await?;
        let Some(link) = link.filter(|link| link.target.kind() == kind && !link.is_paused) else {
            self.limit_link_guess(client)?;
            return Err(OpenGuestLinkError::Unknown);
        };
        if link.revoked_at.is_some() {
            return Err(OpenGuestLinkError::Revoked);
        }
        if !link.is_open(now) {
            return Err(OpenGuestLinkError::Expired(link.expires_at));
        }
        // Each opening adds an entry to the activity log.
        self.limit_tries(&[RateLimitKey::GuestLinkOpening(link.id, client_network(client.address))])?;
        let session = NewViewerAccess::generate(link.expires_at.since(now))?;
        let mut tx = self.store.write().await?;
        guest_links::add_access(&mut tx, &session.access_key, session.cookie.hash_token(), &link, now).await?;
        if !link.asks_passphrase() {
            self.record_guest_visit(&mut tx, &link, client).await?;
        }
        store::commit(tx).await?;
        Ok((link.target, session))
    }

    /// Counts and records a guest's visit.
    async fn record_guest_visit(
        &self,
        db: &mut DbConnection,
        link: &GuestLink,
        client: &RequestClient,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        guest_links::count_opening(db, link.id, now).await?;
        let [.., opened] = link_events(link.target.kind());
        let about = ActivityDetails { person: link.created_by, subject: &link.title, detail: &link.label };
        record(db, &Actor::anonymous("guest", client), opened, about, now).await
    }

    /// Whether a guest's browser with this key and cookie may view something of this kind now: checked on every
    /// request.
    pub async fn check_guest_access(
        &self,
        kind: GuestLinkTargetKind,
        access_key: &str,
        cookie: &str,
    ) -> Result<GuestBrowserAccess, GuestAccessError> {
        let access = guest_links::find_access(&mut *self.store.read().await?, access_key).await?;
        // These are hashes of random tokens: comparison time reveals nothing.
        let access = access.filter(|access| {
            access.cookie_hash == token::hash(cookie)
                && access.link.target.kind() == kind
                && access.link.is_usable(self.clock.now())
        });
        match access {
            None => Err(GuestAccessError::Closed),
            Some(access) if access.is_locked => Err(GuestAccessError::Locked(Box::new(access))),
            Some(access) => Ok(access),
        }
    }

    /// Unlocks an access with its passphrase. False if the passphrase was wrong. Wrong ones are counted, per link and
    /// per address.
    pub async fn unlock_guest_access(
        &self,
        access: &GuestBrowserAccess,
        passphrase: &SecretString,
        client: &RequestClient,
    ) -> Result<bool, AuthError> {
        let link = &access.link;
        let keys = [
            RateLimitKey::GuestPassphraseFrom(link.id, client_network(client.address)),
            RateLimitKey::GuestPassphrase(link.id),
        ];
        self.limit_tries(&keys)?;
        if !self.verify_hash(Some(link.passphrase.as_bytes().to_vec()), passphrase).await? {
            return Ok(false);
        }
        self.rate_limiter.refund(&keys, self.clock.now());
        let mut tx = self.store.write().await?;
        guest_links::unlock_access(&mut tx, &access.access_key).await?;
        self.record_guest_visit(&mut tx, link, client).await?;
        store::commit(tx).await?;
        Ok(true)
    }

    /// Counts a wrong guess at a link or ticket. Guessing is hopeless, but it need not be free.
    pub fn limit_link_guess(&self, client: &RequestClient) -> Result<(), AuthError> {
        self.limit_tries(&[RateLimitKey::GuestLinkGuess(client_network(client.address))])
    }

    fn limit_tries(&self, keys: &[RateLimitKey]) -> Result<(), AuthError> {
        self.rate_limiter.take(keys, self.clock.now()).map_err(AuthError::TooManyTries)
    }
}

#[cfg(test)]
mod tests;
