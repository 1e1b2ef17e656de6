//! What is done to groups: making and renaming them, roles in them, taking people out.

use super::activity::{About, Actor, Event, record};
use super::{Action, Auth, AuthError, Result};
use crate::domain::{GroupId, Label, PersonId, Role};
use crate::store::{self, StoreError};

impl Auth {
    /// Makes a group, with its leader if one is named.
    pub async fn add_group(
        &self,
        actor: &Actor,
        name: &Label,
        leader: Option<PersonId>,
    ) -> Result<GroupId> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Action::ManageGroups).await?;
        let group = taken(store::groups::add(&mut tx, name, now).await)?;
        if let Some(leader) = leader {
            store::groups::put(&mut tx, group, leader, Role::Pi, now).await?;
        }
        let about = About { subject: name.as_str(), ..About::default() };
        record(&mut tx, actor, Event::GroupMade, about, now).await?;
        store::commit(tx).await?;
        Ok(group)
    }

    /// Gives a group another name.
    pub async fn rename_group(&self, actor: &Actor, group: GroupId, name: &Label) -> Result<()> {
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Action::ManageGroup(group)).await?;
        let old = store::groups::get(&mut tx, group).await?.ok_or(AuthError::NotFound)?;
        taken(store::groups::rename(&mut tx, group, name).await)?;
        let about = About {
            subject: name.as_str(),
            detail: &format!("was {}", old.name),
            ..About::default()
        };
        record(&mut tx, actor, Event::GroupRenamed, about, self.clock.now()).await?;
        Ok(store::commit(tx).await?)
    }

    /// Changes what a member of a group is there.
    pub async fn set_role(
        &self,
        actor: &Actor,
        group: GroupId,
        person: PersonId,
        role: Role,
    ) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Action::ManageGroup(group)).await?;
        let place = store::groups::get(&mut tx, group).await?.ok_or(AuthError::NotFound)?;
        let members = store::groups::members(&mut tx, group).await?;
        let member =
            members.iter().find(|member| member.person_id == person).ok_or(AuthError::NotFound)?;
        store::groups::put(&mut tx, group, person, role, now).await?;
        if role == Role::Member {
            self.forget_invitations(&mut tx, group, person).await?;
        }
        let detail = format!("{} is now {}", member.name, role.title());
        let about = About { person: Some(person), subject: &place.name, detail: &detail };
        record(&mut tx, actor, Event::RoleChanged, about, now).await?;
        Ok(store::commit(tx).await?)
    }

    /// Whoever may no longer invite leaves no open invitation behind; an administrator's stay, as they still may.
    async fn forget_invitations(
        &self,
        db: &mut store::Connection,
        group: GroupId,
        person: PersonId,
    ) -> Result<()> {
        let is_admin = store::people::get(db, person).await?.is_some_and(|person| person.is_admin);
        if !is_admin {
            store::links::revoke_invitations_by(db, group, person, self.clock.now()).await?;
        }
        Ok(())
    }

    /// Takes someone out of a group; their account stays.
    pub async fn remove_member(
        &self,
        actor: &Actor,
        group: GroupId,
        person: PersonId,
    ) -> Result<()> {
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Action::ManageGroup(group)).await?;
        let place = store::groups::get(&mut tx, group).await?.ok_or(AuthError::NotFound)?;
        let whose = store::people::get(&mut tx, person).await?.ok_or(AuthError::NotFound)?;
        if !store::groups::remove(&mut tx, group, person).await? {
            return Err(AuthError::NotFound);
        }
        self.forget_invitations(&mut tx, group, person).await?;
        store::boards::hide_from_group(&mut tx, person, group).await?;
        let about = About { person: Some(person), subject: &place.name, detail: &whose.name };
        record(&mut tx, actor, Event::RemovedFromGroup, about, self.clock.now()).await?;
        Ok(store::commit(tx).await?)
    }
}

fn taken<T>(result: store::Result<T>) -> Result<T> {
    match result {
        Err(StoreError::Taken) => Err(AuthError::NameTaken),
        other => Ok(other?),
    }
}
