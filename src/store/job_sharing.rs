//! Columns `shares_job_files` of `groups` and `memberships`: whether PIs can read scripts and output of members' jobs.

use super::{DbConnection, Result};
use crate::domain::{GroupId, PersonId};

/// What a group and one of its members have chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct JobSharingRow {
    pub is_group_shared: bool,
    /// The member's own choice; none if they leave it to the group.
    pub member_choice: Option<bool>,
}

/// None if the person is not in the group.
pub async fn get(db: &mut DbConnection, group: GroupId, person: PersonId) -> Result<Option<JobSharingRow>> {
    fetch_optional!(
        db,
        "SELECT g.shares_job_files AS is_group_shared, m.shares_job_files AS member_choice
         FROM memberships m JOIN groups g ON g.id = m.group_id WHERE m.group_id = $1 AND m.person_id = $2",
        [group, person]
    )
}

pub async fn set_for_group(db: &mut DbConnection, group: GroupId, is_shared: bool) -> Result<()> {
    execute!(db, "UPDATE groups SET shares_job_files = $2 WHERE id = $1", [group, is_shared])
}

pub async fn set_for_member(
    db: &mut DbConnection,
    group: GroupId,
    person: PersonId,
    choice: Option<bool>,
) -> Result<()> {
    execute!(
        db,
        "UPDATE memberships SET shares_job_files = $3 WHERE group_id = $1 AND person_id = $2",
        [group, person, choice]
    )
}
