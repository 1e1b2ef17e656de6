//! Table `cluster_preferences`: which clusters a person hides, and in which order they want the others.

use std::collections::HashMap;

use super::{DbConnection, Result};
use crate::domain::{ClusterId, PersonId};

/// How one person wants to see the portal's clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterPreferences(HashMap<ClusterId, (bool, Option<i64>)>);

impl ClusterPreferences {
    pub fn is_hidden(&self, cluster: ClusterId) -> bool {
        self.0.get(&cluster).is_some_and(|(is_hidden, _)| *is_hidden)
    }

    /// Sorts clusters into the person's order. Clusters without a place in it rank equally, behind the others.
    pub fn rank(&self, cluster: ClusterId) -> i64 {
        self.0.get(&cluster).and_then(|(_, position)| *position).unwrap_or(i64::MAX)
    }
}

pub async fn list(db: &mut DbConnection, person: PersonId) -> Result<ClusterPreferences> {
    let rows: Vec<(ClusterId, bool, Option<i64>)> = fetch_all!(
        db,
        "SELECT cluster_id, is_hidden, position FROM cluster_preferences WHERE person_id = $1",
        [person]
    )?;
    let preferences = rows.into_iter().map(|(cluster, is_hidden, position)| (cluster, (is_hidden, position)));
    Ok(ClusterPreferences(preferences.collect()))
}

pub async fn set_hidden(db: &mut DbConnection, person: PersonId, cluster: ClusterId, is_hidden: bool) -> Result<()> {
    execute!(
        db,
        "INSERT INTO cluster_preferences (person_id, cluster_id, is_hidden) VALUES ($1, $2, $3)
         ON CONFLICT (person_id, cluster_id) DO UPDATE SET is_hidden = $3",
        [person, cluster, is_hidden]
    )
}

/// Saves a person's order of clusters, the first one first.
pub async fn save_order(db: &mut DbConnection, person: PersonId, clusters: &[ClusterId]) -> Result<()> {
    for (position, cluster) in (0_i64..).zip(clusters) {
        execute!(
            db,
            "INSERT INTO cluster_preferences (person_id, cluster_id, position) VALUES ($1, $2, $3)
             ON CONFLICT (person_id, cluster_id) DO UPDATE SET position = $3",
            [person, *cluster, position]
        )?;
    }
    Ok(())
}
