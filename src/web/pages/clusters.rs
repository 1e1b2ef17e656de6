//! Cluster pages: the list with the viewer's connections, connecting, and what was discovered.

use std::sync::Arc;

use crate::app::AppState;
use crate::cluster::ClusterProfile;
use crate::domain::{ConnectionRole, PersonId};
use crate::error::AppError;
use crate::store;
use crate::store::connections::ConnectionKey;

pub mod admin;
pub mod automation;
pub mod cluster_page;
pub mod connect;
mod connect_steps;
pub mod host_keys;
pub mod list;
mod panel;
pub mod retirement;
mod settings_form;

/// Finds a cluster by its short name.
pub(in crate::web) async fn find_cluster(app: &AppState, slug: &str) -> Result<Arc<ClusterProfile>, AppError> {
    let mut db = app.store.read().await?;
    let row = store::clusters::find_by_slug(&mut db, slug).await?.ok_or(AppError::NotFound)?;
    Ok(app.cluster_accounts.profile(&mut db, row).await?)
}

pub(in crate::web) const fn connection_key(
    person: PersonId,
    known: &ClusterProfile,
    role: ConnectionRole,
) -> ConnectionKey {
    ConnectionKey { person, cluster: known.row.id, role }
}

fn cluster_path(slug: &str) -> String {
    format!("/clusters/{slug}")
}
