//! Clusters as people see them: the list with one's connections, the way in, connecting, and what was learnt.

use crate::app::AppState;
use crate::cluster::Known;
use crate::domain::{LineRole, PersonId};
use crate::error::AppError;
use crate::store::lines::LineKey;

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
pub(super) async fn find(app: &AppState, slug: &str) -> Result<Known, AppError> {
    let mut db = app.store.read().await?;
    Known::by_slug(&mut db, slug).await?.ok_or(AppError::NotFound)
}

/// A person's line to a cluster.
pub(super) const fn key(person: PersonId, known: &Known, role: LineRole) -> LineKey {
    LineKey { person, cluster: known.row.id, role }
}

/// The address of a cluster's page.
fn address(slug: &str) -> String {
    format!("/clusters/{slug}")
}
