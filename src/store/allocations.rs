//! Tables `group_accounts` and `allocations`: the accounts of a group, and what was granted to them.

use super::{DbConnection, Result};
use crate::clock::{Day, UnixTime};
use crate::domain::{AllocationId, ClusterId, GroupId, PersonId};

#[derive(Debug, Clone, PartialEq, Eq, Hash, sqlx::FromRow)]
pub struct GroupAccount {
    pub group_id: GroupId,
    pub cluster_id: ClusterId,
    /// The account name that people submit with.
    pub account: String,
}

#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Allocation {
    pub id: AllocationId,
    pub group_id: GroupId,
    pub cluster_id: ClusterId,
    pub account: String,
    /// A code of `usage::Unit`.
    pub unit: String,
    /// The amount for the whole period.
    pub amount: f64,
    begins_on: Day,
    ends_on: Day,
}

impl Allocation {
    /// The first day of the period.
    pub const fn begins(&self) -> Day {
        self.begins_on
    }

    /// The last day of the period.
    pub const fn ends(&self) -> Day {
        self.ends_on
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewAllocation {
    pub group: GroupId,
    pub cluster: ClusterId,
    pub account: String,
    pub unit: &'static str,
    pub amount: f64,
    /// First day of the period.
    pub begins: Day,
    /// Last day of the period, included.
    pub ends: Day,
}

impl NewAllocation {
    /// Whether an allocation is for the same account, unit and days.
    pub fn covers_same_period(&self, other: &Allocation) -> bool {
        (self.cluster, &self.account, self.unit) == (other.cluster_id, &other.account, &*other.unit)
            && (self.begins, self.ends) == (other.begins(), other.ends())
    }

    /// Whether an allocation is identical.
    pub fn is_same(&self, other: &Allocation) -> bool {
        self.covers_same_period(other) && self.amount.to_bits() == other.amount.to_bits()
    }
}

pub async fn list_accounts(db: &mut DbConnection, group: GroupId) -> Result<Vec<GroupAccount>> {
    fetch_all!(
        db,
        "SELECT group_id, cluster_id, account FROM group_accounts WHERE group_id = $1 ORDER BY cluster_id, account",
        [group]
    )
}

/// The accounts of all groups that a person belongs to, and whether they are a PI there.
pub async fn list_accounts_for_person(db: &mut DbConnection, person: PersonId) -> Result<Vec<(GroupAccount, bool)>> {
    let rows: Vec<(GroupId, ClusterId, String, bool)> = fetch_all!(
        db,
        "SELECT a.group_id, a.cluster_id, a.account, m.role = 'pi' FROM group_accounts a
         JOIN memberships m ON m.group_id = a.group_id WHERE m.person_id = $1 ORDER BY a.cluster_id, a.account",
        [person]
    )?;
    let account = |(group_id, cluster_id, account, leads)| (GroupAccount { group_id, cluster_id, account }, leads);
    Ok(rows.into_iter().map(account).collect())
}

/// Replaces the accounts of a group on one cluster.
pub async fn set_accounts(
    db: &mut DbConnection,
    group: GroupId,
    cluster: ClusterId,
    accounts: &[String],
) -> Result<()> {
    execute!(db, "DELETE FROM group_accounts WHERE group_id = $1 AND cluster_id = $2", [group, cluster])?;
    for account in accounts {
        execute!(
            db,
            "INSERT INTO group_accounts (group_id, cluster_id, account) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
            [group, cluster, account]
        )?;
    }
    Ok(())
}

/// The allocations of a group, latest period first.
pub async fn list_for_group(db: &mut DbConnection, group: GroupId) -> Result<Vec<Allocation>> {
    fetch_all!(
        db,
        "SELECT id, group_id, cluster_id, account, unit, amount, begins_on, ends_on FROM allocations
         WHERE group_id = $1 ORDER BY begins_on DESC, id",
        [group]
    )
}

pub async fn add(db: &mut DbConnection, new: &NewAllocation, now: UnixTime) -> Result<AllocationId> {
    scalar_one!(
        db,
        "INSERT INTO allocations (group_id, cluster_id, account, unit, amount, begins_on, ends_on, set_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id",
        [new.group, new.cluster, &new.account, new.unit, new.amount, new.begins, new.ends, now]
    )
}

/// Changes one of a group's allocations.
pub async fn update(db: &mut DbConnection, id: AllocationId, new: &NewAllocation, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "UPDATE allocations SET cluster_id = $3, account = $4, unit = $5, amount = $6, begins_on = $7, ends_on = $8,
                                set_at = $9 WHERE id = $1 AND group_id = $2",
        [id, new.group, new.cluster, &new.account, new.unit, new.amount, new.begins, new.ends, now]
    )
}

/// Removes an allocation. False if the group has none with this id.
pub async fn remove(db: &mut DbConnection, group: GroupId, id: AllocationId) -> Result<bool> {
    affects_row!(db, "DELETE FROM allocations WHERE id = $1 AND group_id = $2", [id, group])
}
