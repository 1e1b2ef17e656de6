//! One-time links: the first administrator's set-up, invitations, password resets. Using a link and creating what it
//! grants happen in one transaction: all of it or nothing.

use secrecy::SecretString;

use super::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use super::keychains::StretchedPassword;
use super::rate_limits::{RateLimitKey, client_network};
use super::sessions::SignedInPerson;
use super::sign_in::SignInCookies;
use super::token::{self, SecretToken};
use super::{AuthError, AuthService, Permission, RequestClient, Result, SessionsEndedSignal, password};
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::domain::{DisplayName, GroupId, GroupRole, OneTimeLinkId, PersonId, SignInName};
use crate::store::one_time_links::{NewOneTimeLink, OneTimeLink, OneTimeLinkPurpose};
use crate::store::{self, StoreError};

/// The portal creates a new one at its next start.
const SETUP_LINK_SECS: i64 = 24 * 3600;
pub const DEFAULT_INVITATION_DAYS: i64 = 7;
pub const MAX_INVITATION_DAYS: i64 = 30;
const RESET_LINK_SECS: i64 = 24 * 3600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OneTimeLinkError {
    /// No such link: mistyped, cut off, or made up.
    Unknown,
    Used,
    Revoked,
    Expired,
}

/// What a new person enters about themselves.
pub struct SignUpDetails {
    pub name: SignInName,
    pub display_name: DisplayName,
    pub password: SecretString,
}

impl AuthService {
    /// Creates the set-up link if the portal has no administrator yet; earlier ones stop working.
    pub async fn create_setup_link(&self) -> Result<Option<SecretToken>> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        if store::people::count(&mut tx).await? > 0 {
            return Ok(None);
        }
        store::one_time_links::revoke_setup(&mut tx, now).await?;
        let token = SecretToken::generate()?;
        let link = NewOneTimeLink::new(OneTimeLinkPurpose::Setup, token.hash_token(), now.plus(SETUP_LINK_SECS));
        store::one_time_links::add(&mut tx, &link, now).await?;
        store::commit(tx).await?;
        Ok(Some(token))
    }

    /// Creates an invitation to a group.
    pub async fn create_invitation(
        &self,
        actor: &Actor,
        (group, role): (GroupId, GroupRole),
        label: &str,
        days: i64,
    ) -> Result<SecretToken> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Permission::Invite(group, role)).await?;
        let group_row = store::groups::get(&mut tx, group).await?.ok_or(AuthError::NotFound)?;
        let token = SecretToken::generate()?;
        let expires_at = now.plus(days.clamp(1, MAX_INVITATION_DAYS) * SECONDS_PER_DAY);
        let link = NewOneTimeLink {
            label,
            group_role: Some((group, role)),
            created_by: actor.id,
            ..NewOneTimeLink::new(OneTimeLinkPurpose::Join, token.hash_token(), expires_at)
        };
        store::one_time_links::add(&mut tx, &link, now).await?;
        let about = ActivityDetails {
            subject: &group_row.name,
            detail: &describe_invitee(label, role),
            ..ActivityDetails::default()
        };
        record(&mut tx, actor, ActivityEventKind::Invited, about, now).await?;
        store::commit(tx).await?;
        Ok(token)
    }

    /// Revokes an invitation to this group.
    pub async fn revoke_invitation(&self, actor: &Actor, group: GroupId, id: OneTimeLinkId) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Permission::SeeInvitations(group)).await?;
        let link = store::one_time_links::get(&mut tx, id).await?.ok_or(AuthError::NotFound)?;
        let Some((_, role)) = link.group_role().filter(|(into, _)| *into == group) else {
            return Err(AuthError::NotFound);
        };
        if !store::one_time_links::revoke(&mut tx, id, now).await? {
            return Err(AuthError::Link(link_error(&link, now)));
        }
        let subject = link.group_name.as_deref().unwrap_or_default();
        let about =
            ActivityDetails { subject, detail: &describe_invitee(&link.label, role), ..ActivityDetails::default() };
        record(&mut tx, actor, ActivityEventKind::InvitationRevoked, about, now).await?;
        Ok(store::commit(tx).await?)
    }

    /// Creates a link for choosing a new password; earlier ones stop working.
    pub async fn create_reset_link(&self, actor: &Actor, person: PersonId) -> Result<SecretToken> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Permission::ManagePeople).await?;
        let account = store::people::get(&mut tx, person).await?.ok_or(AuthError::NotFound)?;
        store::one_time_links::revoke_resets(&mut tx, person, now).await?;
        let token = SecretToken::generate()?;
        let link = NewOneTimeLink {
            person: Some(person),
            created_by: actor.id,
            ..NewOneTimeLink::new(OneTimeLinkPurpose::Reset, token.hash_token(), now.plus(RESET_LINK_SECS))
        };
        store::one_time_links::add(&mut tx, &link, now).await?;
        let about = ActivityDetails { person: Some(person), subject: &account.name, ..ActivityDetails::default() };
        record(&mut tx, actor, ActivityEventKind::ResetLinkMade, about, now).await?;
        store::commit(tx).await?;
        Ok(token)
    }

    /// The link for a token, if it is still valid.
    pub async fn find_valid_link(
        &self,
        purpose: OneTimeLinkPurpose,
        token: &str,
        client: &RequestClient,
    ) -> Result<OneTimeLink> {
        let now = self.clock.now();
        let found = store::one_time_links::find(&mut *self.store.read().await?, purpose, &token::hash(token)).await?;
        let Some(link) = found else {
            // Guessing is hopeless, but it need not be free.
            self.count_try(&[RateLimitKey::Address(client_network(client.address))])?;
            return Err(AuthError::Link(OneTimeLinkError::Unknown));
        };
        if link.is_open(now) { Ok(link) } else { Err(AuthError::Link(link_error(&link, now))) }
    }

    /// Uses the set-up link: creates the first administrator and signs them in.
    pub async fn set_up_portal(
        &self,
        token: &str,
        new: &SignUpDetails,
        client: &RequestClient,
    ) -> Result<SignInCookies> {
        let link = self.find_valid_link(OneTimeLinkPurpose::Setup, token, client).await?;
        let (hash, ready) = self.prepare_password(new).await?;
        let mut tx = self.store.write().await?;
        if store::people::count(&mut tx).await? > 0 {
            return Err(AuthError::Link(OneTimeLinkError::Used));
        }
        let person = self.add_person(&mut tx, new, &hash, true).await?;
        self.consume_link(&mut tx, &link, person).await?;
        let actor = Actor { id: Some(person), ..Actor::anonymous(new.name.as_str(), client) };
        record(&mut tx, &actor, ActivityEventKind::SetUp, ActivityDetails::default(), self.clock.now()).await?;
        let browser = self.create_first_session(&mut tx, person, &ready, client).await?;
        store::commit(tx).await?;
        Ok(browser)
    }

    /// Uses an invitation: creates the account, adds it to the group and signs the person in.
    pub async fn join_with_new_account(
        &self,
        token: &str,
        new: &SignUpDetails,
        client: &RequestClient,
    ) -> Result<SignInCookies> {
        let link = self.find_valid_link(OneTimeLinkPurpose::Join, token, client).await?;
        let (hash, ready) = self.prepare_password(new).await?;
        let mut tx = self.store.write().await?;
        let person = self.add_person(&mut tx, new, &hash, false).await?;
        let actor = Actor { id: Some(person), ..Actor::anonymous(new.name.as_str(), client) };
        self.add_to_group(&mut tx, &link, person, &actor).await?;
        let browser = self.create_first_session(&mut tx, person, &ready, client).await?;
        store::commit(tx).await?;
        Ok(browser)
    }

    /// Uses an invitation with the account that is signed in. Someone who already belongs to the group keeps their
    /// role, and the invitation stays open for the person it was meant for. Returns false if nothing changed.
    pub async fn join_with_own_account(
        &self,
        token: &str,
        who: &SignedInPerson,
        client: &RequestClient,
    ) -> Result<bool> {
        let link = self.find_valid_link(OneTimeLinkPurpose::Join, token, client).await?;
        let mut tx = self.store.write().await?;
        let groups = store::groups::list_for_person(&mut tx, who.person.id).await?;
        if link.group_role().is_some_and(|(group, _)| groups.iter().any(|mine| mine.group_id == group)) {
            return Ok(false);
        }
        let actor = Actor::from_person(&who.person, client);
        self.add_to_group(&mut tx, &link, who.person.id, &actor).await?;
        store::commit(tx).await?;
        Ok(true)
    }

    /// Uses a reset link: sets the new password and ends every session. The person's SSH keys are lost: only the old
    /// password opened them, which is what protects them from whoever creates reset links. Returns how many keys were
    /// lost.
    pub async fn reset_password(&self, token: &str, new: &SecretString, client: &RequestClient) -> Result<u64> {
        let link = self.find_valid_link(OneTimeLinkPurpose::Reset, token, client).await?;
        let person = link.person_id.ok_or(AuthError::NotFound)?;
        let account = store::people::get(&mut *self.store.read().await?, person).await?.ok_or(AuthError::NotFound)?;
        let name: SignInName = account.name.parse().map_err(|_| AuthError::NotFound)?;
        password::check_rules(new, &name)?;
        let sealed = self.seal_password(person, new).await?;
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.consume_link(&mut tx, &link, person).await?;
        store::people::set_password(&mut tx, person, &sealed, now).await?;
        store::sessions::end_all(&mut tx, person, None).await?;
        let lost = self.delete_keychain_and_keys(&mut tx, person).await?;
        let about = ActivityDetails { person: Some(person), ..ActivityDetails::default() };
        let actor = Actor::from_person(&account, client);
        record(&mut tx, &actor, ActivityEventKind::PasswordReset, about, now).await?;
        if lost > 0 {
            let about = ActivityDetails { person: Some(person), ..ActivityDetails::default() };
            record(&mut tx, &actor, ActivityEventKind::KeysLost, about, now).await?;
        }
        store::commit(tx).await?;
        self.publish_sessions_ended(SessionsEndedSignal::Person(person, None));
        Ok(lost)
    }

    /// Checks a new password, hashes it for signing in and stretches it for the keychain.
    async fn prepare_password(&self, new: &SignUpDetails) -> Result<(String, StretchedPassword)> {
        password::check_rules(&new.password, &new.name)?;
        Ok((self.hash_password(&new.password).await?, self.stretch_new_password(&new.password).await?))
    }

    pub(super) async fn add_person(
        &self,
        db: &mut store::DbConnection,
        new: &SignUpDetails,
        hash: &str,
        is_admin: bool,
    ) -> Result<PersonId> {
        let now = self.clock.now();
        let added = store::people::add(db, &new.name, &new.display_name, is_admin, now).await;
        let person = match added {
            Err(StoreError::AlreadyExists) => return Err(AuthError::NameTaken),
            other => other?,
        };
        store::people::set_password(db, person, &self.seal_hash(person, hash)?, now).await?;
        Ok(person)
    }

    async fn add_to_group(
        &self,
        db: &mut store::DbConnection,
        link: &OneTimeLink,
        person: PersonId,
        actor: &Actor,
    ) -> Result<()> {
        let (group, role) = link.group_role().ok_or(AuthError::NotFound)?;
        self.consume_link(db, link, person).await?;
        store::groups::set_member(db, group, person, role, self.clock.now()).await?;
        let subject = link.group_name.as_deref().unwrap_or_default();
        let about = ActivityDetails { person: Some(person), subject, detail: role.title() };
        Ok(record(db, actor, ActivityEventKind::Joined, about, self.clock.now()).await?)
    }

    async fn consume_link(&self, db: &mut store::DbConnection, link: &OneTimeLink, by: PersonId) -> Result<()> {
        if store::one_time_links::use_up(db, link.id, by, self.clock.now()).await? {
            return Ok(());
        }
        Err(AuthError::Link(OneTimeLinkError::Used))
    }
}

fn link_error(link: &OneTimeLink, now: UnixTime) -> OneTimeLinkError {
    if link.used_at.is_some() {
        OneTimeLinkError::Used
    } else if link.revoked_at.is_some() {
        OneTimeLinkError::Revoked
    } else if now >= link.expires_at {
        OneTimeLinkError::Expired
    } else {
        OneTimeLinkError::Unknown
    }
}

fn describe_invitee(label: &str, role: GroupRole) -> String {
    if label.is_empty() { role.title().to_owned() } else { format!("{label} ({})", role.title()) }
}
