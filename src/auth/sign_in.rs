//! The way in: name and password, then the one-time code where a second factor is on.

use secrecy::SecretString;

use super::activity::{About, Actor, Event, record};
use super::keyring::{Chain, ReadyPassword};
use super::limits::{Bucket, network};
use super::token::{self, Token};
use super::{Auth, AuthError, Result, Visitor};
use crate::domain::{PersonId, SignInName};
use crate::store::{self, people::Credentials};

/// Seconds in which the one-time code must follow the password.
pub const CODE_WITHIN: i64 = 600;
/// Wrong codes after which one must begin again with the password.
const MOST_CODE_TRIES: i64 = 5;

/// What a browser keeps after a sign-in.
#[derive(Debug)]
pub struct SignedInBrowser {
    /// The session cookie's value.
    pub session: Token,
    /// The mark of a known browser.
    pub mark: String,
}

/// How far a sign-in got.
#[derive(Debug)]
pub enum Progress {
    /// Signed in.
    Done(SignedInBrowser),
    /// The one-time code is asked next: the value of the waiting cookie.
    NeedsCode(Token),
}

impl Auth {
    /// First step: name and password. `mark` is what the browser kept from an earlier sign-in.
    pub async fn sign_in(
        &self,
        name: &str,
        password: &SecretString,
        mark: Option<&str>,
        visitor: &Visitor,
    ) -> Result<Progress> {
        let Ok(name) = name.parse::<SignInName>() else {
            // Not a possible name: the same answer as for a wrong one, and it counts.
            self.limits
                .take(&[Bucket::Address(network(visitor.address))], self.clock.now())
                .map_err(AuthError::TooManyTries)?;
            return Err(AuthError::WrongPassword);
        };
        let found = store::people::by_name(&mut *self.store.read().await?, &name).await?;
        let buckets = self.buckets(&name, found.as_ref(), mark, visitor);
        self.limits.take(&buckets, self.clock.now()).map_err(AuthError::TooManyTries)?;
        let stored =
            found.as_ref().map(|found| (found.person.id, found.password_sealed.as_slice()));
        let right = self.verify_password(stored, password).await?;
        match found {
            Some(found) if right && !found.person.is_disabled => {
                self.limits.give_back(&buckets, self.clock.now());
                let ready = self.ready_password(Some(found.person.id), password).await?;
                self.after_password(&found, &ready, visitor).await
            }
            found => {
                self.note_failure(&name, found.map(|found| found.person.id), visitor).await?;
                Err(AuthError::WrongPassword)
            }
        }
    }

    /// The password was right a moment ago. While it was checked, it may have been changed, the account switched off
    /// or a second factor turned on: what counts is how things are under the write lock.
    async fn after_password(
        &self,
        checked: &Credentials,
        ready: &ReadyPassword,
        visitor: &Visitor,
    ) -> Result<Progress> {
        let mut tx = self.store.write().await?;
        let now = store::people::credentials(&mut tx, checked.person.id).await?;
        let unchanged = |now: &Credentials| {
            !now.person.is_disabled && now.password_sealed == checked.password_sealed
        };
        let found = now.filter(unchanged).ok_or(AuthError::WrongPassword)?;
        let chain = self.open_chain(&mut tx, found.person.id, ready).await?;
        if found.person.has_totp {
            let token = Token::generate()?;
            let sealed =
                chain.map(|chain| self.chain_for_token(token.as_str(), &chain)).transpose()?;
            let until = self.clock.now().plus(CODE_WITHIN);
            store::sessions::add_pending(
                &mut tx,
                &token.hash(),
                found.person.id,
                sealed.as_deref(),
                until,
            )
            .await?;
            store::commit(tx).await?;
            return Ok(Progress::NeedsCode(token));
        }
        let browser = self.finish(&mut tx, &found, chain, "", visitor).await?;
        store::commit(tx).await?;
        Ok(Progress::Done(browser))
    }

    /// Second step: a code of the app, or a recovery code.
    pub async fn sign_in_with_code(
        &self,
        waiting: &str,
        code: &str,
        mark: Option<&str>,
        visitor: &Visitor,
    ) -> Result<Progress> {
        let hash = token::hash(waiting);
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        let pending = store::sessions::find_pending(&mut tx, &hash, now)
            .await?
            .ok_or(AuthError::SignInRanOut)?;
        let found = store::people::credentials(&mut tx, pending.person_id).await?;
        let Some(found) = found.filter(|found| !found.person.is_disabled) else {
            return Err(AuthError::SignInRanOut);
        };
        let buckets = [self.code_bucket(&found, mark)];
        self.limits.take(&buckets, now).map_err(AuthError::TooManyTries)?;
        match self.use_code(&mut tx, &found, code, visitor).await {
            Ok(how) => {
                self.limits.give_back(&buckets, now);
                store::sessions::end_pending(&mut tx, &hash).await?;
                let chain = pending
                    .chain
                    .as_deref()
                    .and_then(|sealed| self.chain_from_token(waiting, sealed));
                let browser = self.finish(&mut tx, &found, chain, how, visitor).await?;
                store::commit(tx).await?;
                Ok(Progress::Done(browser))
            }
            Err(
                problem @ (AuthError::WrongCode | AuthError::UsedCode | AuthError::ClockBehind),
            ) => {
                let actor = Actor::stranger(&found.person.name, visitor);
                let about = About { person: Some(found.person.id), ..About::default() };
                record(&mut tx, &actor, Event::CodeFailed, about, now).await?;
                store::sessions::count_try(&mut tx, &hash).await?;
                let given_up = pending.tries + 1 >= MOST_CODE_TRIES;
                if given_up {
                    store::sessions::end_pending(&mut tx, &hash).await?;
                }
                store::commit(tx).await?;
                Err(if given_up { AuthError::SignInRanOut } else { problem })
            }
            Err(other) => Err(other),
        }
    }

    /// Whether a waiting cookie still waits.
    pub async fn waits_for_code(&self, waiting: &str) -> Result<bool> {
        let mut db = self.store.read().await?;
        let pending =
            store::sessions::find_pending(&mut db, &token::hash(waiting), self.clock.now()).await?;
        Ok(pending.is_some())
    }

    async fn finish(
        &self,
        db: &mut store::Connection,
        found: &Credentials,
        chain: Option<Chain>,
        how: &str,
        visitor: &Visitor,
    ) -> Result<SignedInBrowser> {
        let person = &found.person;
        let session = self.begin_session(db, person.id, chain.as_deref(), visitor).await?;
        if let Some(chain) = chain {
            self.keyring.hold(person.id, chain);
        }
        let about = About { person: Some(person.id), detail: how, ..About::default() };
        record(db, &Actor::person(person, visitor), Event::SignedIn, about, self.clock.now())
            .await?;
        Ok(SignedInBrowser { session, mark: self.mark_browser(found)? })
    }

    /// Begins the first session of someone whose account was made in this transaction.
    pub(super) async fn first_session(
        &self,
        db: &mut store::Connection,
        person: PersonId,
        ready: &ReadyPassword,
        visitor: &Visitor,
    ) -> Result<SignedInBrowser> {
        let chain = self.open_chain(db, person, ready).await?;
        let session = self.begin_session(db, person, chain.as_deref(), visitor).await?;
        if let Some(chain) = chain {
            self.keyring.hold(person, chain);
        }
        let made = store::people::credentials(db, person).await?.ok_or(AuthError::NotFound)?;
        Ok(SignedInBrowser { session, mark: self.mark_browser(&made)? })
    }

    async fn note_failure(
        &self,
        name: &SignInName,
        person: Option<PersonId>,
        visitor: &Visitor,
    ) -> Result<()> {
        let mut tx = self.store.write().await?;
        let about = About { person, ..About::default() };
        let actor = Actor::stranger(name.as_str(), visitor);
        record(&mut tx, &actor, Event::SignInFailed, about, self.clock.now()).await?;
        Ok(store::commit(tx).await?)
    }

    fn buckets(
        &self,
        name: &SignInName,
        found: Option<&Credentials>,
        mark: Option<&str>,
        visitor: &Visitor,
    ) -> Vec<Bucket> {
        let address = network(visitor.address);
        let account = name.as_str().to_owned();
        match found.and_then(|found| self.known_browser(found, mark)) {
            Some(browser) => vec![Bucket::AccountBrowser(account, browser.to_owned())],
            None => vec![
                Bucket::Address(address),
                Bucket::AccountFrom(account.clone(), address),
                Bucket::Account(account),
            ],
        }
    }

    fn code_bucket(&self, found: &Credentials, mark: Option<&str>) -> Bucket {
        let account = found.person.name.clone();
        match self.known_browser(found, mark) {
            Some(browser) => Bucket::CodeBrowser(account, browser.to_owned()),
            None => Bucket::Code(account),
        }
    }

    /// Asks a signed-in person for their password once more before something weighty.
    pub(super) async fn confirm_password(
        &self,
        person: PersonId,
        password: &SecretString,
    ) -> Result<()> {
        let bucket = [Bucket::Confirmation(person.0)];
        self.limits.take(&bucket, self.clock.now()).map_err(AuthError::TooManyTries)?;
        let found = store::people::credentials(&mut *self.store.read().await?, person)
            .await?
            .ok_or(AuthError::NotFound)?;
        if !self.verify_password(Some((person, &found.password_sealed)), password).await? {
            return Err(AuthError::WrongPassword);
        }
        self.limits.give_back(&bucket, self.clock.now());
        Ok(())
    }
}
