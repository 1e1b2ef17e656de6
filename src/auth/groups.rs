//! Changes to groups: creating and renaming them, roles, removing people.

use super::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use super::{AuthError, AuthService, Permission, Result};
use crate::domain::{DisplayName, GroupId, GroupRole, PersonId};
use crate::store::groups::{Group, GroupMember};
use crate::store::{self, StoreError};

impl AuthService {
    /// Creates a group, with a PI if one is named.
    pub async fn add_group(&self, actor: &Actor, name: &DisplayName, leader: Option<PersonId>) -> Result<GroupId> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Permission::ManageGroups).await?;
        let group = map_name_taken(store::groups::add(&mut tx, name, now).await)?;
        if let Some(leader) = leader {
            store::groups::set_member(&mut tx, group, leader, GroupRole::Pi, now).await?;
        }
        let about = ActivityDetails { subject: name.as_str(), ..ActivityDetails::default() };
        record(&mut tx, actor, ActivityEventKind::GroupMade, about, now).await?;
        store::commit(tx).await?;
        Ok(group)
    }

    pub async fn rename_group(&self, actor: &Actor, group: GroupId, name: &DisplayName) -> Result<()> {
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Permission::ManageGroup(group)).await?;
        let old = store::groups::get(&mut tx, group).await?.ok_or(AuthError::NotFound)?;
        map_name_taken(store::groups::rename(&mut tx, group, name).await)?;
        let about = ActivityDetails {
            subject: name.as_str(),
            detail: &format!("previously {}", old.name),
            ..ActivityDetails::default()
        };
        record(&mut tx, actor, ActivityEventKind::GroupRenamed, about, self.clock.now()).await?;
        Ok(store::commit(tx).await?)
    }

    /// Changes a member's role in a group. If they are its last PI, `successor` must name another.
    pub async fn set_role(
        &self,
        actor: &Actor,
        group: GroupId,
        person: PersonId,
        role: GroupRole,
        successor: Option<PersonId>,
    ) -> Result<()> {
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Permission::ManageGroup(group)).await?;
        let group = store::groups::get(&mut tx, group).await?.ok_or(AuthError::NotFound)?;
        let members = store::groups::list_members(&mut tx, group.id).await?;
        let member = find_member(&members, person)?;
        if role == GroupRole::Member {
            // A former PI stays in the group, so that it has at least one member.
            self.keep_pi(&mut tx, actor, &group, &members, member, successor).await?;
            self.revoke_invitations_by(&mut tx, group.id, person).await?;
        }
        self.save_role(&mut tx, actor, &group, member, role).await?;
        Ok(store::commit(tx).await?)
    }

    async fn save_role(
        &self,
        db: &mut store::DbConnection,
        actor: &Actor,
        group: &Group,
        member: &GroupMember,
        role: GroupRole,
    ) -> Result<()> {
        let now = self.clock.now();
        store::groups::set_member(db, group.id, member.person_id, role, now).await?;
        let detail = format!("{} is now a {}", member.name, role.noun());
        let about = ActivityDetails { person: Some(member.person_id), subject: &group.name, detail: &detail };
        Ok(record(db, actor, ActivityEventKind::RoleChanged, about, now).await?)
    }

    /// Before someone stops being a PI: makes `successor` a PI, or refuses if nobody else is one who can sign in.
    async fn keep_pi(
        &self,
        db: &mut store::DbConnection,
        actor: &Actor,
        group: &Group,
        members: &[GroupMember],
        leaver: &GroupMember,
        successor: Option<PersonId>,
    ) -> Result<()> {
        if leaver.role() != GroupRole::Pi {
            return Ok(());
        }
        let mut others = members.iter().filter(|member| member.person_id != leaver.person_id);
        if let Some(successor) = successor {
            let successor = others.find(|member| member.person_id == successor && !member.is_disabled);
            let successor = successor.ok_or(AuthError::NotFound)?;
            self.authorise(db, actor, Permission::ManageGroup(group.id)).await?;
            return self.save_role(db, actor, group, successor, GroupRole::Pi).await;
        }
        if others.any(GroupMember::is_active_pi) { Ok(()) } else { Err(AuthError::LastPi) }
    }

    /// Revokes the open invitations of someone who may no longer invite; an administrator's stay valid.
    async fn revoke_invitations_by(
        &self,
        db: &mut store::DbConnection,
        group: GroupId,
        person: PersonId,
    ) -> Result<()> {
        let is_admin = store::people::get(db, person).await?.is_some_and(|person| person.is_admin);
        if !is_admin {
            store::one_time_links::revoke_invitations_by(db, group, person, self.clock.now()).await?;
        }
        Ok(())
    }

    /// Removes someone from a group; their account stays. If they are its last PI and others stay, `successor` must
    /// name another.
    pub async fn remove_member(
        &self,
        actor: &Actor,
        group: GroupId,
        person: PersonId,
        successor: Option<PersonId>,
    ) -> Result<()> {
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Permission::RemoveFromGroup(group, GroupRole::Member)).await?;
        let group = store::groups::get(&mut tx, group).await?.ok_or(AuthError::NotFound)?;
        let members = store::groups::list_members(&mut tx, group.id).await?;
        let member = find_member(&members, person)?;
        self.authorise(&mut tx, actor, Permission::RemoveFromGroup(group.id, member.role())).await?;
        if members.len() > 1 {
            self.keep_pi(&mut tx, actor, &group, &members, member, successor).await?;
        }
        store::groups::remove_member(&mut tx, group.id, person).await?;
        self.revoke_invitations_by(&mut tx, group.id, person).await?;
        store::dashboards::hide_from_group(&mut tx, person, group.id).await?;
        let about = ActivityDetails { person: Some(person), subject: &group.name, detail: &member.name };
        record(&mut tx, actor, ActivityEventKind::RemovedFromGroup, about, self.clock.now()).await?;
        Ok(store::commit(tx).await?)
    }
}

fn find_member(members: &[GroupMember], person: PersonId) -> Result<&GroupMember> {
    members.iter().find(|member| member.person_id == person).ok_or(AuthError::NotFound)
}

fn map_name_taken<T>(result: store::Result<T>) -> Result<T> {
    match result {
        Err(StoreError::AlreadyExists) => Err(AuthError::NameTaken),
        other => Ok(other?),
    }
}
