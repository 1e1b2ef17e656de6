//! Changes to accounts: by their owners, by administrators and on the command line.

use secrecy::SecretString;

use super::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use super::keychains::StretchedPassword;
use super::one_time_links::SignUpDetails;
use super::sessions::SignedInPerson;
use super::{AuthError, AuthService, Permission, RequestClient, Result, SessionsEndedSignal, password};
use crate::domain::{DisplayName, GroupId, GroupRole, PersonId, SignInName};
use crate::store;
use crate::store::groups::Group;
use crate::store::people::{Person, PersonBelongings};

/// Whether an account can sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortalAccountState {
    Active,
    /// Can't sign in; all sessions have ended.
    Disabled,
}

/// What deleting an account means, for whoever decides on it.
#[derive(Debug)]
pub struct AccountDeletionPreview {
    pub person: Person,
    pub belongings: PersonBelongings,
    /// Refused: the portal would be left without an administrator.
    pub is_last_admin: bool,
    /// Refused if not empty: groups with other members that would have no PI without this person.
    pub led_alone: Vec<Group>,
}

impl AuthService {
    /// Creates an account on the command line.
    pub async fn add_account(
        &self,
        actor: &Actor,
        new: &SignUpDetails,
        is_admin: bool,
        membership: Option<(GroupId, GroupRole)>,
    ) -> Result<PersonId> {
        password::check_rules(&new.password, &new.name)?;
        let hash = self.hash_password(&new.password).await?;
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        let person = self.add_person(&mut tx, new, &hash, is_admin).await?;
        if let Some((group, role)) = membership {
            store::groups::set_member(&mut tx, group, person, role, now).await?;
        }
        store::one_time_links::revoke_setup(&mut tx, now).await?;
        let about = ActivityDetails { person: Some(person), subject: new.name.as_str(), ..ActivityDetails::default() };
        record(&mut tx, actor, ActivityEventKind::PersonAdded, about, now).await?;
        store::commit(tx).await?;
        Ok(person)
    }

    /// The owner changes their password; every other browser is signed out.
    pub async fn change_password(
        &self,
        who: &SignedInPerson,
        current: &SecretString,
        new: &SecretString,
        client: &RequestClient,
    ) -> Result<()> {
        let name: SignInName = who.person.name.parse().map_err(|_| AuthError::NotFound)?;
        password::check_rules(new, &name)?;
        self.confirm_password(who.person.id, current).await?;
        let old = self.stretch_password(Some(who.person.id), current).await?;
        let keychain = self.stretch_new_password(new).await?;
        let actor = Actor::from_person(&who.person, client);
        self.replace_password(&who.person, new, Some((who, old, keychain)), &actor).await
    }

    /// Sets a password on the command line; every browser is signed out. The person's SSH keys are lost, because only
    /// the old password opened them.
    pub async fn set_password(&self, actor: &Actor, name: &SignInName, new: &SecretString) -> Result<()> {
        let person = self.find_person(name).await?;
        password::check_rules(new, name)?;
        self.replace_password(&person, new, None, actor).await
    }

    async fn replace_password(
        &self,
        person: &Person,
        new: &SecretString,
        keep: Option<(&SignedInPerson, StretchedPassword, StretchedPassword)>,
        actor: &Actor,
    ) -> Result<()> {
        let sealed = self.seal_password(person.id, new).await?;
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        let keep = if let Some((who, old, new)) = keep {
            if let Some(keychain) = self.open_or_create_keychain(&mut tx, person.id, &old).await? {
                self.save_keychain(&mut tx, person.id, &new, &keychain).await?;
            }
            Some(who.session)
        } else {
            self.delete_keychain_and_keys(&mut tx, person.id).await?;
            None
        };
        store::people::set_password(&mut tx, person.id, &sealed, now).await?;
        store::sessions::end_all(&mut tx, person.id, keep).await?;
        store::one_time_links::revoke_resets(&mut tx, person.id, now).await?;
        let about = ActivityDetails { person: Some(person.id), subject: &person.name, ..ActivityDetails::default() };
        record(&mut tx, actor, ActivityEventKind::PasswordChanged, about, now).await?;
        store::commit(tx).await?;
        self.publish_sessions_ended(SessionsEndedSignal::Person(person.id, keep));
        Ok(())
    }

    /// The owner changes their display name.
    pub async fn change_display_name(
        &self,
        who: &SignedInPerson,
        name: &DisplayName,
        client: &RequestClient,
    ) -> Result<()> {
        let mut tx = self.store.write().await?;
        store::people::set_display_name(&mut tx, who.person.id, name).await?;
        let actor = Actor::from_person(&who.person, client);
        let about = ActivityDetails { subject: name.as_str(), ..ActivityDetails::default() };
        record(&mut tx, &actor, ActivityEventKind::NameChanged, about, self.clock.now()).await?;
        Ok(store::commit(tx).await?)
    }

    /// Disables an account, ending every session at once, or enables it again.
    pub async fn set_account_state(&self, actor: &Actor, person: PersonId, state: PortalAccountState) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Permission::ManagePeople).await?;
        let account = store::people::get(&mut tx, person).await?.ok_or(AuthError::NotFound)?;
        let event = match state {
            PortalAccountState::Active => {
                store::people::set_disabled(&mut tx, person, None).await?;
                ActivityEventKind::PersonEnabled
            }
            PortalAccountState::Disabled => {
                refuse_last_admin(&mut tx, &account).await?;
                store::people::set_disabled(&mut tx, person, Some(now)).await?;
                store::sessions::end_all(&mut tx, person, None).await?;
                store::connections::clear_wanted(&mut tx, person).await?;
                store::one_time_links::revoke_for_person(&mut tx, person, now).await?;
                ActivityEventKind::PersonDisabled
            }
        };
        let about = ActivityDetails { person: Some(person), subject: &account.name, ..ActivityDetails::default() };
        record(&mut tx, actor, event, about, now).await?;
        store::commit(tx).await?;
        if state == PortalAccountState::Disabled {
            self.keychains.remove(person);
            self.publish_sessions_ended(SessionsEndedSignal::Person(person, None));
        }
        Ok(())
    }

    pub async fn preview_deletion(&self, person: PersonId) -> Result<AccountDeletionPreview> {
        let mut db = self.store.read().await?;
        let account = store::people::get(&mut db, person).await?.ok_or(AuthError::NotFound)?;
        Ok(AccountDeletionPreview {
            belongings: store::people::count_belongings(&mut db, person, self.clock.now()).await?,
            is_last_admin: is_last_admin(&mut db, &account).await?,
            led_alone: store::groups::list_led_alone(&mut db, person).await?,
            person: account,
        })
    }

    /// Deletes an account with everything that is theirs alone; the activity log and what belongs to groups stay.
    /// Refused for the last administrator and for the last PI of a group that others are in.
    pub async fn delete_account(&self, actor: &Actor, person: PersonId) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Permission::ManagePeople).await?;
        let account = store::people::get(&mut tx, person).await?.ok_or(AuthError::NotFound)?;
        refuse_last_admin(&mut tx, &account).await?;
        if !store::groups::list_led_alone(&mut tx, person).await?.is_empty() {
            return Err(AuthError::LastPi);
        }
        store::one_time_links::revoke_for_person(&mut tx, person, now).await?;
        store::people::delete(&mut tx, person, now).await?;
        store::recipes::delete_ownerless(&mut tx).await?;
        let about = ActivityDetails { person: Some(person), subject: &account.name, detail: &account.display_name };
        record(&mut tx, actor, ActivityEventKind::PersonDeleted, about, now).await?;
        store::commit(tx).await?;
        self.keychains.remove(person);
        self.publish_sessions_ended(SessionsEndedSignal::Person(person, None));
        // Their keys must not be found in the write-ahead log.
        Ok(self.store.truncate_wal().await?)
    }

    /// Grants or revokes administrator rights.
    pub async fn set_admin(&self, actor: &Actor, person: PersonId, is_admin: bool) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Permission::ManagePeople).await?;
        let account = store::people::get(&mut tx, person).await?.ok_or(AuthError::NotFound)?;
        if !is_admin {
            refuse_last_admin(&mut tx, &account).await?;
            // Links created with rights that they no longer have must not restore those rights.
            store::one_time_links::revoke_for_person(&mut tx, person, now).await?;
        }
        store::people::set_admin(&mut tx, person, is_admin).await?;
        let event = if is_admin { ActivityEventKind::AdminGranted } else { ActivityEventKind::AdminRevoked };
        let about = ActivityDetails { person: Some(person), subject: &account.name, ..ActivityDetails::default() };
        record(&mut tx, actor, event, about, now).await?;
        Ok(store::commit(tx).await?)
    }

    pub async fn find_person(&self, name: &SignInName) -> Result<Person> {
        let found = store::people::find_by_name(&mut *self.store.read().await?, name).await?;
        Ok(found.ok_or(AuthError::NotFound)?.person)
    }
}

/// Keeps at least one administrator: without one, only the command line could help.
async fn refuse_last_admin(db: &mut store::DbConnection, person: &Person) -> Result<()> {
    if is_last_admin(db, person).await? { Err(AuthError::LastAdmin) } else { Ok(()) }
}

/// Whether nobody else is an administrator who can sign in.
pub async fn is_last_admin(db: &mut store::DbConnection, person: &Person) -> Result<bool> {
    let counts = person.is_admin && !person.is_disabled;
    Ok(counts && store::people::count_active_admins(db).await? <= 1)
}
