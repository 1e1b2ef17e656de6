//! Links that work once: the first administrator's set-up, invitations, password resets.
//! What a link gives is made in one transaction with using it up: all of it or nothing.

use secrecy::SecretString;

use super::activity::{About, Actor, Event, record};
use super::limits::{Bucket, network};
use super::sessions::SignedIn;
use super::sign_in::SignedInBrowser;
use super::token::{self, Token};
use super::{Action, Auth, AuthError, Ended, Result, Visitor, password};
use crate::clock::UnixTime;
use crate::domain::{GroupId, Label, LinkId, PersonId, Role, SignInName};
use crate::store::links::{Link, NewLink, Purpose};
use crate::store::{self, StoreError};

/// Seconds a set-up link works. The next start of the portal makes a new one.
const SETUP_FOR: i64 = 24 * 3600;
/// Days an invitation works unless another number is chosen.
pub const INVITATION_DAYS: i64 = 7;
/// Most days an invitation may work.
pub const INVITATION_DAYS_MOST: i64 = 30;
/// Seconds a reset link works.
const RESET_FOR: i64 = 24 * 3600;

/// Why a link does not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkProblem {
    /// No such link: mistyped, cut off, or made up.
    Unknown,
    /// It was used.
    Used,
    /// It was taken back.
    Revoked,
    /// Its time is over.
    Expired,
}

/// What a new person tells of themselves.
pub struct NewPerson {
    /// What they sign in with.
    pub name: SignInName,
    /// What others read.
    pub display_name: Label,
    /// Their password.
    pub password: SecretString,
}

impl Auth {
    /// Makes the set-up link if nobody can administer the portal yet; earlier ones stop working.
    pub async fn setup_link(&self) -> Result<Option<Token>> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        if store::people::count(&mut tx).await? > 0 {
            return Ok(None);
        }
        store::links::revoke_setup(&mut tx, now).await?;
        let token = Token::generate()?;
        let link = NewLink {
            purpose: Purpose::Setup,
            token_hash: token.hash(),
            label: "",
            place: None,
            person: None,
            created_by: None,
            expires_at: now.plus(SETUP_FOR),
        };
        store::links::add(&mut tx, &link, now).await?;
        store::commit(tx).await?;
        Ok(Some(token))
    }

    /// Makes an invitation into a group.
    pub async fn invite(
        &self,
        actor: &Actor,
        (group, role): (GroupId, Role),
        label: &str,
        days: i64,
    ) -> Result<Token> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Action::Invite(group, role)).await?;
        let place = store::groups::get(&mut tx, group).await?.ok_or(AuthError::NotFound)?;
        let token = Token::generate()?;
        let link = NewLink {
            purpose: Purpose::Join,
            token_hash: token.hash(),
            label,
            place: Some((group, role)),
            person: None,
            created_by: actor.id,
            expires_at: now.plus(days.clamp(1, INVITATION_DAYS_MOST) * 86_400),
        };
        store::links::add(&mut tx, &link, now).await?;
        let about =
            About { subject: &place.name, detail: &for_whom(label, role), ..About::default() };
        record(&mut tx, actor, Event::Invited, about, now).await?;
        store::commit(tx).await?;
        Ok(token)
    }

    /// Takes an invitation into this group back.
    pub async fn revoke_invitation(&self, actor: &Actor, group: GroupId, id: LinkId) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Action::SeeInvitations(group)).await?;
        let link = store::links::get(&mut tx, id).await?.ok_or(AuthError::NotFound)?;
        let Some((_, role)) = link.place().filter(|(into, _)| *into == group) else {
            return Err(AuthError::NotFound);
        };
        if !store::links::revoke(&mut tx, id, now).await? {
            return Err(AuthError::Link(problem(&link, now)));
        }
        let subject = link.group_name.as_deref().unwrap_or_default();
        let about = About { subject, detail: &for_whom(&link.label, role), ..About::default() };
        record(&mut tx, actor, Event::InvitationRevoked, about, now).await?;
        Ok(store::commit(tx).await?)
    }

    /// Makes a link with which a person chooses a new password; earlier ones stop working.
    pub async fn reset_link(&self, actor: &Actor, person: PersonId) -> Result<Token> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Action::ManagePeople).await?;
        let whose = store::people::get(&mut tx, person).await?.ok_or(AuthError::NotFound)?;
        store::links::revoke_resets(&mut tx, person, now).await?;
        let token = Token::generate()?;
        let link = NewLink {
            purpose: Purpose::Reset,
            token_hash: token.hash(),
            label: "",
            place: None,
            person: Some(person),
            created_by: actor.id,
            expires_at: now.plus(RESET_FOR),
        };
        store::links::add(&mut tx, &link, now).await?;
        let about = About { person: Some(person), subject: &whose.name, ..About::default() };
        record(&mut tx, actor, Event::ResetLinkMade, about, now).await?;
        store::commit(tx).await?;
        Ok(token)
    }

    /// The link behind a token, if it still works.
    pub async fn open_link(
        &self,
        purpose: Purpose,
        token: &str,
        visitor: &Visitor,
    ) -> Result<Link> {
        let now = self.clock.now();
        let found =
            store::links::find(&mut *self.store.read().await?, purpose, &token::hash(token))
                .await?;
        let Some(link) = found else {
            // Guessing is hopeless, but it need not be free.
            self.limits
                .take(&[Bucket::Address(network(visitor.address))], now)
                .map_err(AuthError::TooManyTries)?;
            return Err(AuthError::Link(LinkProblem::Unknown));
        };
        if link.is_open(now) { Ok(link) } else { Err(AuthError::Link(problem(&link, now))) }
    }

    /// Uses the set-up link: makes the first administrator and signs them in.
    pub async fn set_up(
        &self,
        token: &str,
        new: &NewPerson,
        visitor: &Visitor,
    ) -> Result<SignedInBrowser> {
        let link = self.open_link(Purpose::Setup, token, visitor).await?;
        password::check(&new.password, &new.name)?;
        let hash = self.hash_password(&new.password).await?;
        let ready = self.ready_new_password(&new.password).await?;
        let mut tx = self.store.write().await?;
        if store::people::count(&mut tx).await? > 0 {
            return Err(AuthError::Link(LinkProblem::Used));
        }
        let person = self.add_person(&mut tx, new, &hash, true).await?;
        self.use_link(&mut tx, &link, person).await?;
        let actor = Actor { id: Some(person), ..Actor::stranger(new.name.as_str(), visitor) };
        record(&mut tx, &actor, Event::SetUp, About::default(), self.clock.now()).await?;
        let browser = self.first_session(&mut tx, person, &ready, visitor).await?;
        store::commit(tx).await?;
        Ok(browser)
    }

    /// Uses an invitation: makes the account, puts it into the group and signs it in.
    pub async fn join(
        &self,
        token: &str,
        new: &NewPerson,
        visitor: &Visitor,
    ) -> Result<SignedInBrowser> {
        let link = self.open_link(Purpose::Join, token, visitor).await?;
        password::check(&new.password, &new.name)?;
        let hash = self.hash_password(&new.password).await?;
        let ready = self.ready_new_password(&new.password).await?;
        let mut tx = self.store.write().await?;
        let person = self.add_person(&mut tx, new, &hash, false).await?;
        let actor = Actor { id: Some(person), ..Actor::stranger(new.name.as_str(), visitor) };
        self.enter_group(&mut tx, &link, person, &actor).await?;
        let browser = self.first_session(&mut tx, person, &ready, visitor).await?;
        store::commit(tx).await?;
        Ok(browser)
    }

    /// Uses an invitation with the account one is signed in with. Who belongs to the group already stays what
    /// they are, and the invitation stays open for the one it was meant for.
    /// False if nothing changed.
    pub async fn join_as(&self, token: &str, who: &SignedIn, visitor: &Visitor) -> Result<bool> {
        let link = self.open_link(Purpose::Join, token, visitor).await?;
        let mut tx = self.store.write().await?;
        let groups = store::groups::of_person(&mut tx, who.person.id).await?;
        if link.place().is_some_and(|(group, _)| groups.iter().any(|mine| mine.group_id == group)) {
            return Ok(false);
        }
        let actor = Actor::person(&who.person, visitor);
        self.enter_group(&mut tx, &link, who.person.id, &actor).await?;
        store::commit(tx).await?;
        Ok(true)
    }

    /// Uses a reset link: sets the new password and ends every session. The person's SSH keys are lost: only the
    /// old password opened them, and that is what makes them safe from whoever makes such links.
    /// How many keys were lost.
    pub async fn reset_password(
        &self,
        token: &str,
        new: &SecretString,
        visitor: &Visitor,
    ) -> Result<u64> {
        let link = self.open_link(Purpose::Reset, token, visitor).await?;
        let person = link.person().ok_or(AuthError::NotFound)?;
        let whose = store::people::get(&mut *self.store.read().await?, person)
            .await?
            .ok_or(AuthError::NotFound)?;
        let name: SignInName = whose.name.parse().map_err(|_| AuthError::NotFound)?;
        password::check(new, &name)?;
        let sealed = self.seal_password(person, new).await?;
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.use_link(&mut tx, &link, person).await?;
        store::people::set_password(&mut tx, person, &sealed, now).await?;
        store::sessions::end_all(&mut tx, person, None).await?;
        let lost = self.lose_keys(&mut tx, person).await?;
        let about = About { person: Some(person), ..About::default() };
        let actor = Actor::person(&whose, visitor);
        record(&mut tx, &actor, Event::PasswordReset, about, now).await?;
        if lost > 0 {
            let about = About { person: Some(person), ..About::default() };
            record(&mut tx, &actor, Event::KeysLost, about, now).await?;
        }
        store::commit(tx).await?;
        self.announce(Ended::Person(person, None));
        Ok(lost)
    }

    pub(super) async fn add_person(
        &self,
        db: &mut store::Connection,
        new: &NewPerson,
        hash: &str,
        is_admin: bool,
    ) -> Result<PersonId> {
        let now = self.clock.now();
        let added = store::people::add(db, &new.name, &new.display_name, is_admin, now).await;
        let person = match added {
            Err(StoreError::Taken) => return Err(AuthError::NameTaken),
            other => other?,
        };
        store::people::set_password(db, person, &self.seal_hash(person, hash)?, now).await?;
        Ok(person)
    }

    async fn enter_group(
        &self,
        db: &mut store::Connection,
        link: &Link,
        person: PersonId,
        actor: &Actor,
    ) -> Result<()> {
        let (group, role) = link.place().ok_or(AuthError::NotFound)?;
        self.use_link(db, link, person).await?;
        store::groups::put(db, group, person, role, self.clock.now()).await?;
        let subject = link.group_name.as_deref().unwrap_or_default();
        let about = About { person: Some(person), subject, detail: role.title() };
        Ok(record(db, actor, Event::Joined, about, self.clock.now()).await?)
    }

    async fn use_link(&self, db: &mut store::Connection, link: &Link, by: PersonId) -> Result<()> {
        if store::links::use_up(db, link.id, by, self.clock.now()).await? {
            return Ok(());
        }
        Err(AuthError::Link(LinkProblem::Used))
    }
}

fn problem(link: &Link, now: UnixTime) -> LinkProblem {
    if link.used_at.is_some() {
        LinkProblem::Used
    } else if link.revoked_at.is_some() {
        LinkProblem::Revoked
    } else if now >= link.expires_at {
        LinkProblem::Expired
    } else {
        LinkProblem::Unknown
    }
}

fn for_whom(label: &str, role: Role) -> String {
    if label.is_empty() { role.title().to_owned() } else { format!("{label} ({})", role.title()) }
}
