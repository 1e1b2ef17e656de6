//! Table `usage_user_names`: who is behind user names on clusters that belong to nobody in the portal.

use super::{DbConnection, Result};
use crate::domain::{ClusterId, GroupId};

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct StoredUserName {
    pub cluster_id: ClusterId,
    /// The user name on the cluster.
    pub user_name: String,
    /// The person's name.
    pub name: String,
}

pub async fn list(db: &mut DbConnection, group: GroupId) -> Result<Vec<StoredUserName>> {
    fetch_all!(
        db,
        "SELECT cluster_id, user_name, name FROM usage_user_names WHERE group_id = $1 ORDER BY cluster_id, user_name",
        [group]
    )
}

pub async fn set(db: &mut DbConnection, group: GroupId, cluster: ClusterId, user_name: &str, name: &str) -> Result<()> {
    execute!(
        db,
        "INSERT INTO usage_user_names (group_id, cluster_id, user_name, name) VALUES ($1, $2, $3, $4)
         ON CONFLICT (group_id, cluster_id, user_name) DO UPDATE SET name = $4",
        [group, cluster, user_name, name]
    )
}

pub async fn remove(db: &mut DbConnection, group: GroupId, cluster: ClusterId, user_name: &str) -> Result<()> {
    execute!(
        db,
        "DELETE FROM usage_user_names WHERE group_id = $1 AND cluster_id = $2 AND user_name = $3",
        [group, cluster, user_name]
    )
}
