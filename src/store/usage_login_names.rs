//! Table `usage_login_names`: who is behind user names on clusters that belong to nobody in the portal.

use super::{DbConnection, Result};
use crate::domain::{ClusterId, GroupId};

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct StoredLoginName {
    pub cluster_id: ClusterId,
    /// The user name on the cluster.
    pub login: String,
    /// The person's name.
    pub name: String,
}

pub async fn list(db: &mut DbConnection, group: GroupId) -> Result<Vec<StoredLoginName>> {
    fetch_all!(
        db,
        "SELECT cluster_id, login, name FROM usage_login_names WHERE group_id = $1 ORDER BY cluster_id, login",
        [group]
    )
}

pub async fn set(db: &mut DbConnection, group: GroupId, cluster: ClusterId, login: &str, name: &str) -> Result<()> {
    execute!(
        db,
        "INSERT INTO usage_login_names (group_id, cluster_id, login, name) VALUES ($1, $2, $3, $4)
         ON CONFLICT (group_id, cluster_id, login) DO UPDATE SET name = $4",
        [group, cluster, login, name]
    )
}

pub async fn remove(db: &mut DbConnection, group: GroupId, cluster: ClusterId, login: &str) -> Result<()> {
    execute!(
        db,
        "DELETE FROM usage_login_names WHERE group_id = $1 AND cluster_id = $2 AND login = $3",
        [group, cluster, login]
    )
}
