//! Who decides whether PIs can read the scripts and the output of members' jobs: the group's PIs for everyone who leaves
//! it to them, and each member for their own jobs. Nothing is shared until someone says so.

use super::service::UsageService;
use crate::auth::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use crate::auth::{AuthError, Permission};
use crate::domain::{GroupId, PersonId};
use crate::store;
use crate::store::job_sharing::JobSharingRow;

impl UsageService {
    /// What a group and one of its members have chosen; none if the person is not in the group.
    pub async fn job_sharing(&self, group: GroupId, person: PersonId) -> Result<Option<JobSharingRow>, AuthError> {
        let mut db = self.0.core.store.read().await?;
        Ok(store::job_sharing::get(&mut db, group, person).await?)
    }

    /// Sets the group's choice.
    pub async fn set_group_job_sharing(&self, actor: &Actor, group: GroupId, is_shared: bool) -> Result<(), AuthError> {
        let (mut tx, row) = self.begin_change(actor, group).await?;
        store::job_sharing::set_for_group(&mut tx, group, is_shared).await?;
        let detail = if is_shared { "shared with PIs, unless a member decides otherwise" } else { "not shared" };
        Ok(self.commit_change(tx, actor, ActivityEventKind::JobSharingSet, &row, detail).await?)
    }

    /// Sets a member's own choice; none leaves it to the group.
    pub async fn set_own_job_sharing(
        &self,
        actor: &Actor,
        group: GroupId,
        choice: Option<bool>,
    ) -> Result<(), AuthError> {
        let core = &self.0.core;
        let person = actor.id.ok_or(AuthError::Denied)?;
        let mut tx = core.store.write().await?;
        core.auth.authorise(&mut tx, actor, Permission::SeeUsage(group)).await?;
        let row = store::groups::get(&mut tx, group).await?.ok_or(AuthError::NotFound)?;
        store::job_sharing::set_for_member(&mut tx, group, person, choice).await?;
        let detail = match choice {
            Some(true) => "own jobs: shared with PIs",
            Some(false) => "own jobs: not shared",
            None => "own jobs: as set for the group",
        };
        let about = ActivityDetails { person: Some(person), subject: &row.name, detail };
        record(&mut tx, actor, ActivityEventKind::JobSharingSet, about, core.clock.now()).await?;
        Ok(store::commit(tx).await?)
    }
}
