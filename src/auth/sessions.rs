//! Signed-in browsers: identified by their cookie, limited in time, and ended at once when needed.

use std::sync::Arc;

use super::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use super::keychains::ArcKeychainKey;
use super::token::{self, SecretToken};
use super::{AuthError, AuthService, RequestClient, Result, SessionsEndedSignal, Viewer};
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::domain::{PersonId, SessionId};
use crate::store::{self, people::Person, sessions::NewSession};

/// Limits how often the last use is written, so that a page view doesn't cost a disk write.
const LAST_USE_INTERVAL_SECS: i64 = 60;

/// A signed-in person, with what pages need to know about them.
#[derive(Debug, Clone)]
pub struct SignedInPerson {
    pub session: SessionId,
    /// Last use of the session, to the minute.
    pub last_seen_at: UnixTime,
    /// When the session ends regardless of use.
    pub expires_at: UnixTime,
    pub person: Person,
    pub memberships: Vec<store::groups::Membership>,
    pub viewer: Viewer,
    /// The keychain key, sealed for this browser's cookie.
    sealed_chain_key: Option<Vec<u8>>,
}

impl AuthService {
    /// The person that a session cookie belongs to; none if it is unknown, expired or no longer valid.
    pub async fn find_session(&self, cookie: &str) -> Result<Option<Arc<SignedInPerson>>> {
        let found = self.peek_session(cookie).await?;
        if let Some(who) = &found
            && self.clock.now().since(who.last_seen_at) >= LAST_USE_INTERVAL_SECS
        {
            self.record_last_use(who.session, self.clock.now()).await;
        }
        Ok(found)
    }

    /// Whether a session with this last use and this end is still valid.
    pub fn is_session_valid(&self, seen: UnixTime, ends: UnixTime) -> bool {
        let now = self.clock.now();
        now < ends && now.since(seen) < i64::from(self.session_settings.idle_hours) * 3600
    }

    /// The same, but doesn't count as use: an open page doesn't mean that someone is there.
    pub async fn peek_session(&self, cookie: &str) -> Result<Option<Arc<SignedInPerson>>> {
        let hash = token::hash(cookie);
        let found = self.session_cache.get_or_load(&self.store, &hash, async || self.load_session(&hash).await).await?;
        // A cached session can expire without any change in the database.
        let holds = found
            .as_ref()
            .clone()
            .filter(|who| !who.person.is_disabled && self.is_session_valid(who.last_seen_at, who.expires_at));
        if let Some(who) = &holds {
            self.reopen_keychain(who, cookie);
        }
        Ok(holds)
    }

    /// After a restart of the portal, the browser's cookie unlocks the keychain again.
    fn reopen_keychain(&self, who: &SignedInPerson, cookie: &str) {
        if let Some(sealed) = &who.sealed_chain_key
            && self.keychains.get(who.person.id).is_none()
            && let Some(keychain) = self.open_keychain_with_token(cookie, sealed)
        {
            self.keychains.insert(who.person.id, keychain);
        }
    }

    async fn load_session(&self, hash: &[u8; 32]) -> Result<Option<Arc<SignedInPerson>>> {
        let mut db = self.store.read().await?;
        let Some(session) = store::sessions::find(&mut db, hash).await? else { return Ok(None) };
        let memberships = store::groups::list_for_person(&mut db, session.person.id).await?;
        let viewer = Viewer {
            id: session.person.id,
            is_admin: session.person.is_admin,
            groups: memberships.iter().map(|m| (m.group_id, m.role())).collect(),
        };
        Ok(Some(Arc::new(SignedInPerson {
            session: session.id,
            last_seen_at: session.last_seen_at,
            expires_at: session.expires_at,
            person: session.person,
            memberships,
            viewer,
            sealed_chain_key: session.keychain,
        })))
    }

    /// Only warns on failure: reading must keep working when writing can't (full disk, lock).
    async fn record_last_use(&self, session: SessionId, now: UnixTime) {
        let write = async {
            let mut tx = self.store.write().await?;
            store::sessions::touch(&mut tx, session, now).await?;
            store::commit(tx).await
        };
        if let Err(error) = write.await {
            tracing::warn!(%error, "Could not record when a session was last used");
        }
    }

    /// Starts a session inside a transaction. Every sign-in gets a new token, never a reused one.
    pub(super) async fn create_session(
        &self,
        db: &mut store::DbConnection,
        person: PersonId,
        keychain: Option<ArcKeychainKey>,
        client: &RequestClient,
    ) -> Result<SecretToken> {
        let now = self.clock.now();
        let token = SecretToken::generate()?;
        let sealed =
            keychain.as_deref().map(|keychain| self.seal_keychain_for_token(token.as_str(), keychain)).transpose()?;
        let session = NewSession {
            token_hash: token.hash_token(),
            person,
            expires_at: now.plus(i64::from(self.session_settings.absolute_days) * SECONDS_PER_DAY),
            address: &client.address.to_string(),
            user_agent: &client.user_agent,
            keychain: sealed.as_deref(),
        };
        store::sessions::add(db, &session, now).await?;
        if let Some(keychain) = keychain {
            self.keychains.insert(person, keychain);
        }
        Ok(token)
    }

    /// Signs this browser out.
    pub async fn sign_out(&self, who: &SignedInPerson, client: &RequestClient) -> Result<()> {
        let mut tx = self.store.write().await?;
        if store::sessions::end(&mut tx, who.person.id, who.session).await? {
            self.record_own(&mut tx, who, ActivityEventKind::SignedOut, client).await?;
        }
        store::commit(tx).await?;
        self.close_keychain_if_signed_out(who.person.id).await?;
        self.publish_sessions_ended(SessionsEndedSignal::Session(who.session));
        Ok(())
    }

    /// Signs out another browser of the same person.
    pub async fn sign_out_device(&self, who: &SignedInPerson, device: SessionId, client: &RequestClient) -> Result<()> {
        let mut tx = self.store.write().await?;
        if !store::sessions::end(&mut tx, who.person.id, device).await? {
            return Err(AuthError::NotFound);
        }
        self.record_own(&mut tx, who, ActivityEventKind::DeviceEnded, client).await?;
        store::commit(tx).await?;
        self.close_keychain_if_signed_out(who.person.id).await?;
        self.publish_sessions_ended(SessionsEndedSignal::Session(device));
        Ok(())
    }

    /// Signs out every browser of the person, including this one, and closes their connections to clusters.
    pub async fn sign_out_everywhere(&self, who: &SignedInPerson, client: &RequestClient) -> Result<()> {
        let mut tx = self.store.write().await?;
        store::sessions::end_all(&mut tx, who.person.id, None).await?;
        store::connections::clear_wanted(&mut tx, who.person.id).await?;
        self.record_own(&mut tx, who, ActivityEventKind::SignedOutEverywhere, client).await?;
        store::commit(tx).await?;
        self.keychains.remove(who.person.id);
        self.publish_sessions_ended(SessionsEndedSignal::Person(who.person.id, None));
        Ok(())
    }

    /// Records what a signed-in person did to their own account.
    pub(super) async fn record_own(
        &self,
        db: &mut store::DbConnection,
        who: &SignedInPerson,
        event: ActivityEventKind,
        client: &RequestClient,
    ) -> store::Result<()> {
        let actor = Actor::from_person(&who.person, client);
        record(db, &actor, event, ActivityDetails::default(), self.clock.now()).await
    }

    /// Deletes expired sessions and half-finished sign-ins.
    pub async fn sweep_sessions(&self) -> Result<u64> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        let idle_since = now.plus(-i64::from(self.session_settings.idle_hours) * 3600);
        let gone = store::sessions::sweep(&mut tx, idle_since, now).await?;
        store::commit(tx).await?;
        Ok(gone)
    }
}
