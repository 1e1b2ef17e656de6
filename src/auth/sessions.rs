//! Signed-in browsers: found by their cookie, limited in time, ended at once when they should be.

use std::sync::Arc;

use super::activity::{About, Actor, Event, record};
use super::token::{self, Token};
use super::{Auth, AuthError, Ended, Result, Viewer, Visitor};
use crate::clock::UnixTime;
use crate::domain::{PersonId, SessionId};
use crate::store::{self, people::Person, sessions::NewSession};
use crate::vault::KeychainKey;

/// A session's last use is written at most this often, in seconds: a page view should not be a disk write.
const TOUCH_EVERY: i64 = 60;

/// Someone who is signed in, with what a page needs to know of them.
#[derive(Debug, Clone)]
pub struct SignedIn {
    /// Which browser.
    pub session: SessionId,
    /// Its last use, to the minute.
    pub last_seen_at: UnixTime,
    /// Its end in any case.
    pub expires_at: UnixTime,
    /// Who.
    pub person: Person,
    /// Their groups.
    pub memberships: Vec<store::groups::Membership>,
    /// Their rights.
    pub viewer: Viewer,
    /// The key of their keychain, sealed for this browser's cookie.
    chain: Option<Vec<u8>>,
}

impl Auth {
    /// The person behind a session cookie; nobody if it is unknown, worn out, or theirs no more.
    pub async fn whose(&self, cookie: &str) -> Result<Option<Arc<SignedIn>>> {
        let found = self.peek(cookie).await?;
        if let Some(who) = &found
            && self.clock.now().since(who.last_seen_at) >= TOUCH_EVERY
        {
            self.touch(who.session, self.clock.now()).await;
        }
        Ok(found)
    }

    /// Whether a session that was last used then and ends then still holds.
    pub fn session_holds(&self, seen: UnixTime, ends: UnixTime) -> bool {
        let now = self.clock.now();
        now < ends && now.since(seen) < i64::from(self.lifetimes.idle_hours) * 3600
    }

    /// The same without counting as a use: an open page is not a person.
    pub async fn peek(&self, cookie: &str) -> Result<Option<Arc<SignedIn>>> {
        let hash = token::hash(cookie);
        let found =
            self.signed_in.get(&self.store, &hash, async || self.read_session(&hash).await).await?;
        // The time goes on while the database stays as it is.
        let holds = found.as_ref().clone().filter(|who| {
            !who.person.is_disabled && self.session_holds(who.last_seen_at, who.expires_at)
        });
        if let Some(who) = &holds {
            self.reopen_keychain(who, cookie);
        }
        Ok(holds)
    }

    /// The portal was restarted since this browser signed in: its cookie opens the keychain again.
    fn reopen_keychain(&self, who: &SignedIn, cookie: &str) {
        if let Some(sealed) = &who.chain
            && self.keyring.get(who.person.id).is_none()
            && let Some(chain) = self.chain_from_token(cookie, sealed)
        {
            self.keyring.hold(who.person.id, chain);
        }
    }

    async fn read_session(&self, hash: &[u8; 32]) -> Result<Option<Arc<SignedIn>>> {
        let mut db = self.store.read().await?;
        let Some(session) = store::sessions::find(&mut db, hash).await? else { return Ok(None) };
        let memberships = store::groups::of_person(&mut db, session.person.id).await?;
        let viewer = Viewer {
            id: session.person.id,
            is_admin: session.person.is_admin,
            groups: memberships.iter().map(|m| (m.group_id, m.role())).collect(),
        };
        Ok(Some(Arc::new(SignedIn {
            session: session.id,
            last_seen_at: session.last_seen_at,
            expires_at: session.expires_at,
            person: session.person,
            memberships,
            viewer,
            chain: session.chain,
        })))
    }

    /// Reading must go on when writing cannot (a full disk, a lock), so this only warns.
    async fn touch(&self, session: SessionId, now: UnixTime) {
        let write = async {
            let mut tx = self.store.write().await?;
            store::sessions::touch(&mut tx, session, now).await?;
            store::commit(tx).await
        };
        if let Err(error) = write.await {
            tracing::warn!(%error, "The last use of a session could not be noted");
        }
    }

    /// Begins a session inside a transaction. The token is fresh at each sign-in, never taken over.
    pub(super) async fn begin_session(
        &self,
        db: &mut store::Connection,
        person: PersonId,
        chain: Option<&KeychainKey>,
        visitor: &Visitor,
    ) -> Result<Token> {
        let now = self.clock.now();
        let token = Token::generate()?;
        let sealed = chain.map(|chain| self.chain_for_token(token.as_str(), chain)).transpose()?;
        let session = NewSession {
            token_hash: token.hash(),
            person,
            expires_at: now.plus(i64::from(self.lifetimes.absolute_days) * 86_400),
            address: &visitor.address.to_string(),
            user_agent: &visitor.user_agent,
            chain: sealed.as_deref(),
        };
        store::sessions::add(db, &session, now).await?;
        Ok(token)
    }

    /// Signs this browser out.
    pub async fn sign_out(&self, who: &SignedIn, visitor: &Visitor) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        if store::sessions::end(&mut tx, who.person.id, who.session).await? {
            record(
                &mut tx,
                &Actor::person(&who.person, visitor),
                Event::SignedOut,
                About::default(),
                now,
            )
            .await?;
        }
        store::commit(tx).await?;
        self.close_keychain_if_gone(who.person.id).await?;
        self.announce(Ended::Session(who.session));
        Ok(())
    }

    /// Signs another browser of the same person out.
    pub async fn end_device(
        &self,
        who: &SignedIn,
        device: SessionId,
        visitor: &Visitor,
    ) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        if !store::sessions::end(&mut tx, who.person.id, device).await? {
            return Err(AuthError::NotFound);
        }
        record(
            &mut tx,
            &Actor::person(&who.person, visitor),
            Event::DeviceEnded,
            About::default(),
            now,
        )
        .await?;
        store::commit(tx).await?;
        self.close_keychain_if_gone(who.person.id).await?;
        self.announce(Ended::Session(device));
        Ok(())
    }

    /// Signs every browser of the person out, this one included, and closes their connections to clusters.
    pub async fn sign_out_everywhere(&self, who: &SignedIn, visitor: &Visitor) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        store::sessions::end_all(&mut tx, who.person.id, None).await?;
        store::lines::want_none(&mut tx, who.person.id).await?;
        record(
            &mut tx,
            &Actor::person(&who.person, visitor),
            Event::SignedOutEverywhere,
            About::default(),
            now,
        )
        .await?;
        store::commit(tx).await?;
        self.keyring.forget(who.person.id);
        self.announce(Ended::Person(who.person.id, None));
        Ok(())
    }

    /// Deletes sessions and half-finished sign-ins that have run out.
    pub async fn sweep_sessions(&self) -> Result<u64> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        let idle_since = now.plus(-i64::from(self.lifetimes.idle_hours) * 3600);
        let gone = store::sessions::sweep(&mut tx, idle_since, now).await?;
        store::commit(tx).await?;
        Ok(gone)
    }
}
