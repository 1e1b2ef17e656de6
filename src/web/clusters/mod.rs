//! Clusters as people see them: the list with one's connections, the way in, connecting, and what was learnt.

use crate::app::AppState;
use crate::cluster::ClusterProfile;
use crate::domain::{ConnectionRole, PersonId};
use crate::error::AppError;
use crate::store::connections::ConnectionKey;

pub mod admin;
pub mod automation;
pub mod connect;
mod description;
pub mod host_keys;
pub mod list;
mod panel;
mod way;
pub mod way_in;

/// The cluster with this short name.
pub(super) async fn find(app: &AppState, slug: &str) -> Result<ClusterProfile, AppError> {
    let mut db = app.store.read().await?;
    ClusterProfile::find_by_slug(&mut db, slug).await?.ok_or(AppError::NotFound)
}

/// A person's line to a cluster.
pub(super) const fn key(
    person: PersonId,
    known: &ClusterProfile,
    role: ConnectionRole,
) -> ConnectionKey {
    ConnectionKey { person, cluster: known.row.id, role }
}

/// The address of a cluster's page.
fn address(slug: &str) -> String {
    format!("/clusters/{slug}")
}
