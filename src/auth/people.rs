//! What is done to accounts: by their owners, by administrators and on the command line.

use secrecy::SecretString;

use super::activity::{About, Actor, Event, record};
use super::keyring::ReadyPassword;
use super::links::NewPerson;
use super::sessions::SignedIn;
use super::{Action, Auth, AuthError, Ended, Result, Visitor, password};
use crate::domain::{GroupId, Label, PersonId, Role, SignInName};
use crate::store::{self, people::Person};

/// Whether an account is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountState {
    /// Can sign in.
    Active,
    /// Cannot; every session was ended.
    Disabled,
}

impl Auth {
    /// Makes an account on the command line.
    pub async fn add_account(
        &self,
        actor: &Actor,
        new: &NewPerson,
        is_admin: bool,
        place: Option<(GroupId, Role)>,
    ) -> Result<PersonId> {
        password::check(&new.password, &new.name)?;
        let hash = self.hash_password(&new.password).await?;
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        let person = self.add_person(&mut tx, new, &hash, is_admin).await?;
        if let Some((group, role)) = place {
            store::groups::put(&mut tx, group, person, role, now).await?;
        }
        store::links::revoke_setup(&mut tx, now).await?;
        let about = About { person: Some(person), subject: new.name.as_str(), ..About::default() };
        record(&mut tx, actor, Event::PersonAdded, about, now).await?;
        store::commit(tx).await?;
        Ok(person)
    }

    /// The owner changes their password; every other browser is signed out.
    pub async fn change_password(
        &self,
        who: &SignedIn,
        current: &SecretString,
        new: &SecretString,
        visitor: &Visitor,
    ) -> Result<()> {
        let name: SignInName = who.person.name.parse().map_err(|_| AuthError::NotFound)?;
        password::check(new, &name)?;
        self.confirm_password(who.person.id, current).await?;
        let old = self.ready_password(Some(who.person.id), current).await?;
        let chain = self.ready_new_password(new).await?;
        let actor = Actor::person(&who.person, visitor);
        self.replace_password(&who.person, new, Some((who, old, chain)), &actor).await
    }

    /// Whoever may run commands on the machine sets a password; every browser is signed out. The person's SSH keys
    /// are lost: only the old password opened them.
    pub async fn set_password(
        &self,
        actor: &Actor,
        name: &SignInName,
        new: &SecretString,
    ) -> Result<()> {
        let person = self.person_named(name).await?;
        password::check(new, name)?;
        self.replace_password(&person, new, None, actor).await
    }

    async fn replace_password(
        &self,
        person: &Person,
        new: &SecretString,
        keep: Option<(&SignedIn, ReadyPassword, ReadyPassword)>,
        actor: &Actor,
    ) -> Result<()> {
        let sealed = self.seal_password(person.id, new).await?;
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        let keep = if let Some((who, old, new)) = keep {
            if let Some(chain) = self.open_chain(&mut tx, person.id, &old).await? {
                self.store_chain(&mut tx, person.id, &new, &chain).await?;
            }
            Some(who.session)
        } else {
            self.lose_keys(&mut tx, person.id).await?;
            None
        };
        store::people::set_password(&mut tx, person.id, &sealed, now).await?;
        store::sessions::end_all(&mut tx, person.id, keep).await?;
        store::links::revoke_resets(&mut tx, person.id, now).await?;
        let about = About { person: Some(person.id), subject: &person.name, ..About::default() };
        record(&mut tx, actor, Event::PasswordChanged, about, now).await?;
        store::commit(tx).await?;
        self.announce(Ended::Person(person.id, keep));
        Ok(())
    }

    /// The owner changes how their name reads.
    pub async fn change_display_name(
        &self,
        who: &SignedIn,
        name: &Label,
        visitor: &Visitor,
    ) -> Result<()> {
        let mut tx = self.store.write().await?;
        store::people::set_display_name(&mut tx, who.person.id, name).await?;
        let actor = Actor::person(&who.person, visitor);
        let about = About { subject: name.as_str(), ..About::default() };
        record(&mut tx, &actor, Event::NameChanged, about, self.clock.now()).await?;
        Ok(store::commit(tx).await?)
    }

    /// Switches an account off (ending every session at once) or on again.
    pub async fn set_state(
        &self,
        actor: &Actor,
        person: PersonId,
        state: AccountState,
    ) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Action::ManagePeople).await?;
        let whose = store::people::get(&mut tx, person).await?.ok_or(AuthError::NotFound)?;
        let event = match state {
            AccountState::Active => {
                store::people::set_disabled(&mut tx, person, None).await?;
                Event::PersonEnabled
            }
            AccountState::Disabled => {
                refuse_last_admin(&mut tx, &whose).await?;
                store::people::set_disabled(&mut tx, person, Some(now)).await?;
                store::sessions::end_all(&mut tx, person, None).await?;
                store::lines::want_none(&mut tx, person).await?;
                store::links::revoke_of_person(&mut tx, person, now).await?;
                Event::PersonDisabled
            }
        };
        let about = About { person: Some(person), subject: &whose.name, ..About::default() };
        record(&mut tx, actor, event, about, now).await?;
        store::commit(tx).await?;
        if state == AccountState::Disabled {
            self.keyring.forget(person);
            self.announce(Ended::Person(person, None));
        }
        Ok(())
    }

    /// Makes someone an administrator, or no longer one.
    pub async fn set_admin(&self, actor: &Actor, person: PersonId, is_admin: bool) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Action::ManagePeople).await?;
        let whose = store::people::get(&mut tx, person).await?.ok_or(AuthError::NotFound)?;
        if !is_admin {
            refuse_last_admin(&mut tx, &whose).await?;
            // What they made with rights that they no longer have must not bring these back.
            store::links::revoke_of_person(&mut tx, person, now).await?;
        }
        store::people::set_admin(&mut tx, person, is_admin).await?;
        let event = if is_admin { Event::AdminGranted } else { Event::AdminRevoked };
        let about = About { person: Some(person), subject: &whose.name, ..About::default() };
        record(&mut tx, actor, event, about, now).await?;
        Ok(store::commit(tx).await?)
    }

    /// The person with this sign-in name.
    pub async fn person_named(&self, name: &SignInName) -> Result<Person> {
        let found = store::people::by_name(&mut *self.store.read().await?, name).await?;
        Ok(found.ok_or(AuthError::NotFound)?.person)
    }
}

/// Nobody may take the last administrator away: then only the command line could help.
async fn refuse_last_admin(db: &mut store::Connection, person: &Person) -> Result<()> {
    let counts = person.is_admin && !person.is_disabled;
    if counts && store::people::count_active_admins(db).await? <= 1 {
        return Err(AuthError::LastAdmin);
    }
    Ok(())
}
