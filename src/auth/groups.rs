//! Changes to groups: creating and renaming them, roles, removing people.

use super::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use super::{AuthError, AuthService, Permission, Result};
use crate::domain::{DisplayName, GroupId, GroupRole, PersonId};
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

    /// Changes a member's role in a group.
    pub async fn set_role(&self, actor: &Actor, group: GroupId, person: PersonId, role: GroupRole) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Permission::ManageGroup(group)).await?;
        let group_row = store::groups::get(&mut tx, group).await?.ok_or(AuthError::NotFound)?;
        let members = store::groups::list_members(&mut tx, group).await?;
        let member = members.iter().find(|member| member.person_id == person).ok_or(AuthError::NotFound)?;
        store::groups::set_member(&mut tx, group, person, role, now).await?;
        if role == GroupRole::Member {
            self.revoke_invitations_by(&mut tx, group, person).await?;
        }
        let detail = format!("{} is now a {}", member.name, role.noun());
        let about = ActivityDetails { person: Some(person), subject: &group_row.name, detail: &detail };
        record(&mut tx, actor, ActivityEventKind::RoleChanged, about, now).await?;
        Ok(store::commit(tx).await?)
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

    /// Removes someone from a group; their account stays.
    pub async fn remove_member(&self, actor: &Actor, group: GroupId, person: PersonId) -> Result<()> {
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Permission::ManageGroup(group)).await?;
        let group_row = store::groups::get(&mut tx, group).await?.ok_or(AuthError::NotFound)?;
        let account = store::people::get(&mut tx, person).await?.ok_or(AuthError::NotFound)?;
        if !store::groups::remove_member(&mut tx, group, person).await? {
            return Err(AuthError::NotFound);
        }
        self.revoke_invitations_by(&mut tx, group, person).await?;
        store::dashboards::hide_from_group(&mut tx, person, group).await?;
        let about = ActivityDetails { person: Some(person), subject: &group_row.name, detail: &account.name };
        record(&mut tx, actor, ActivityEventKind::RemovedFromGroup, about, self.clock.now()).await?;
        Ok(store::commit(tx).await?)
    }
}

fn map_name_taken<T>(result: store::Result<T>) -> Result<T> {
    match result {
        Err(StoreError::AlreadyExists) => Err(AuthError::NameTaken),
        other => Ok(other?),
    }
}
