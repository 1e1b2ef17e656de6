//! Signing in: name and password, then the one-time code if the second factor is on.

use secrecy::SecretString;

use super::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use super::keychains::{ArcKeychainKey, StretchedPassword};
use super::rate_limits::{RateLimitKey, client_network};
use super::token::{self, SecretToken};
use super::{AuthError, AuthService, RequestClient, Result};
use crate::domain::{PersonId, SignInName};
use crate::store::{self, people::PersonCredentials};

/// Seconds to enter the one-time code after the password.
pub const CODE_TIMEOUT_SECS: i64 = 600;
/// Wrong codes until one must start again with the password.
const MAX_CODE_TRIES: i64 = 5;

/// The cookies that a browser keeps after a sign-in.
#[derive(Debug)]
pub struct SignInCookies {
    pub session: SecretToken,
    /// The known-browser mark.
    pub browser_mark: String,
}

#[derive(Debug)]
pub enum SignInProgress {
    Done(SignInCookies),
    /// A one-time code is needed next; holds the value of the waiting cookie.
    NeedsCode(SecretToken),
}

impl AuthService {
    /// First step: name and password. `mark` is what the browser kept from an earlier sign-in.
    pub async fn sign_in(
        &self,
        name: &str,
        password: &SecretString,
        mark: Option<&str>,
        client: &RequestClient,
    ) -> Result<SignInProgress> {
        let Ok(name) = name.parse::<SignInName>() else {
            // Not a valid name: the same answer as for a wrong one, and it counts as a try.
            self.count_try(&[RateLimitKey::Address(client_network(client.address))])?;
            return Err(AuthError::WrongPassword);
        };
        let credentials = store::people::find_by_name(&mut *self.store.read().await?, &name).await?;
        let buckets = self.sign_in_buckets(&name, credentials.as_ref(), mark, client);
        self.count_try(&buckets)?;
        let stored =
            credentials.as_ref().map(|credentials| (credentials.person.id, credentials.password_sealed.as_slice()));
        let right = self.verify_password(stored, password).await?;
        match credentials {
            Some(credentials) if right && !credentials.person.is_disabled => {
                self.rate_limiter.refund(&buckets, self.clock.now());
                let ready = self.stretch_password(Some(credentials.person.id), password).await?;
                self.complete_password_step(&credentials, &ready, client).await
            }
            // Only someone who knows the password learns that the account is disabled.
            Some(credentials) if right => {
                let person = Some(credentials.person.id);
                self.record_refused_sign_in(ActivityEventKind::SignInDisabled, &name, person, client).await?;
                Err(AuthError::AccountDisabled)
            }
            credentials => {
                let person = credentials.map(|credentials| credentials.person.id);
                self.record_refused_sign_in(ActivityEventKind::SignInFailed, &name, person, client).await?;
                Err(AuthError::WrongPassword)
            }
        }
    }

    /// The password was right a moment ago. Meanwhile it may have been changed, the account disabled or a second
    /// factor enabled, so check again under the write lock.
    async fn complete_password_step(
        &self,
        checked: &PersonCredentials,
        ready: &StretchedPassword,
        client: &RequestClient,
    ) -> Result<SignInProgress> {
        let mut tx = self.store.write().await?;
        let now = store::people::load_credentials(&mut tx, checked.person.id).await?;
        let unchanged =
            |now: &PersonCredentials| !now.person.is_disabled && now.password_sealed == checked.password_sealed;
        let credentials = now.filter(unchanged).ok_or(AuthError::WrongPassword)?;
        let keychain = self.open_or_create_keychain(&mut tx, credentials.person.id, ready).await?;
        if credentials.person.has_totp {
            let token = SecretToken::generate()?;
            let sealed =
                keychain.map(|keychain| self.seal_keychain_for_token(token.as_str(), &keychain)).transpose()?;
            let until = self.clock.now().plus(CODE_TIMEOUT_SECS);
            store::sessions::add_pending(&mut tx, &token.hash_token(), credentials.person.id, sealed.as_deref(), until)
                .await?;
            store::commit(tx).await?;
            return Ok(SignInProgress::NeedsCode(token));
        }
        let browser = self.complete_sign_in(&mut tx, &credentials, keychain, "", client).await?;
        store::commit(tx).await?;
        Ok(SignInProgress::Done(browser))
    }

    /// Second step: a one-time code or a recovery code.
    pub async fn sign_in_with_code(
        &self,
        waiting: &str,
        code: &str,
        mark: Option<&str>,
        client: &RequestClient,
    ) -> Result<SignInProgress> {
        let hash = token::hash(waiting);
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        let pending = store::sessions::find_pending(&mut tx, &hash, now).await?.ok_or(AuthError::SignInExpired)?;
        let credentials = store::people::load_credentials(&mut tx, pending.person_id).await?;
        let Some(credentials) = credentials.filter(|credentials| !credentials.person.is_disabled) else {
            return Err(AuthError::SignInExpired);
        };
        let buckets = [self.code_bucket(&credentials, mark)];
        self.count_try(&buckets)?;
        match self.consume_code(&mut tx, &credentials, code, client).await {
            Ok(how) => {
                self.rate_limiter.refund(&buckets, now);
                store::sessions::end_pending(&mut tx, &hash).await?;
                let keychain =
                    pending.keychain.as_deref().and_then(|sealed| self.open_keychain_with_token(waiting, sealed));
                let browser = self.complete_sign_in(&mut tx, &credentials, keychain, how, client).await?;
                store::commit(tx).await?;
                Ok(SignInProgress::Done(browser))
            }
            Err(problem @ (AuthError::WrongCode | AuthError::CodeAlreadyUsed | AuthError::ClockBehind)) => {
                let actor = Actor::anonymous(&credentials.person.name, client);
                let about = ActivityDetails { person: Some(credentials.person.id), ..ActivityDetails::default() };
                record(&mut tx, &actor, ActivityEventKind::CodeFailed, about, now).await?;
                store::sessions::count_wrong_code(&mut tx, &hash).await?;
                let given_up = pending.tries + 1 >= MAX_CODE_TRIES;
                if given_up {
                    store::sessions::end_pending(&mut tx, &hash).await?;
                }
                store::commit(tx).await?;
                Err(if given_up { AuthError::SignInExpired } else { problem })
            }
            Err(other) => Err(other),
        }
    }

    /// Whether a waiting cookie is still valid.
    pub async fn is_waiting_for_code(&self, waiting: &str) -> Result<bool> {
        let mut db = self.store.read().await?;
        let pending = store::sessions::find_pending(&mut db, &token::hash(waiting), self.clock.now()).await?;
        Ok(pending.is_some())
    }

    async fn complete_sign_in(
        &self,
        db: &mut store::DbConnection,
        credentials: &PersonCredentials,
        keychain: Option<ArcKeychainKey>,
        how: &str,
        client: &RequestClient,
    ) -> Result<SignInCookies> {
        let person = &credentials.person;
        let session = self.create_session(db, person.id, keychain, client).await?;
        let about = ActivityDetails { person: Some(person.id), detail: how, ..ActivityDetails::default() };
        record(db, &Actor::from_person(person, client), ActivityEventKind::SignedIn, about, self.clock.now()).await?;
        Ok(SignInCookies { session, browser_mark: self.issue_browser_mark(credentials)? })
    }

    /// Starts the first session for an account created in this transaction.
    pub(super) async fn create_first_session(
        &self,
        db: &mut store::DbConnection,
        person: PersonId,
        ready: &StretchedPassword,
        client: &RequestClient,
    ) -> Result<SignInCookies> {
        let keychain = self.open_or_create_keychain(db, person, ready).await?;
        let session = self.create_session(db, person, keychain, client).await?;
        let made = store::people::load_credentials(db, person).await?.ok_or(AuthError::NotFound)?;
        Ok(SignInCookies { session, browser_mark: self.issue_browser_mark(&made)? })
    }

    async fn record_refused_sign_in(
        &self,
        event: ActivityEventKind,
        name: &SignInName,
        person: Option<PersonId>,
        client: &RequestClient,
    ) -> Result<()> {
        let mut tx = self.store.write().await?;
        let about = ActivityDetails { person, ..ActivityDetails::default() };
        let actor = Actor::anonymous(name.as_str(), client);
        record(&mut tx, &actor, event, about, self.clock.now()).await?;
        Ok(store::commit(tx).await?)
    }

    fn sign_in_buckets(
        &self,
        name: &SignInName,
        credentials: Option<&PersonCredentials>,
        mark: Option<&str>,
        client: &RequestClient,
    ) -> Vec<RateLimitKey> {
        let address = client_network(client.address);
        let account = name.as_str().to_owned();
        match credentials.and_then(|credentials| self.verify_browser_mark(credentials, mark)) {
            Some(browser) => vec![RateLimitKey::AccountBrowser(account, browser.to_owned())],
            None => vec![
                RateLimitKey::Address(address),
                RateLimitKey::AccountFrom(account.clone(), address),
                RateLimitKey::Account(account),
            ],
        }
    }

    fn code_bucket(&self, credentials: &PersonCredentials, mark: Option<&str>) -> RateLimitKey {
        let account = credentials.person.name.clone();
        match self.verify_browser_mark(credentials, mark) {
            Some(browser) => RateLimitKey::CodeBrowser(account, browser.to_owned()),
            None => RateLimitKey::Code(account),
        }
    }

    /// Asks a signed-in person for their password again before a sensitive change.
    pub(super) async fn confirm_password(&self, person: PersonId, password: &SecretString) -> Result<()> {
        let bucket = [RateLimitKey::Confirmation(person.0)];
        self.count_try(&bucket)?;
        let credentials = store::people::load_credentials(&mut *self.store.read().await?, person)
            .await?
            .ok_or(AuthError::NotFound)?;
        if !self.verify_password(Some((person, &credentials.password_sealed)), password).await? {
            return Err(AuthError::WrongPassword);
        }
        self.rate_limiter.refund(&bucket, self.clock.now());
        Ok(())
    }
}
