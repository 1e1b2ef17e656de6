//! Cluster pages: the list with the viewer's connections, connecting, and what was discovered.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::response::Response;

use crate::auth::Permission;
use crate::auth::activity::Actor;
use crate::cluster::{ClusterAccountId, ClusterProfile};
use crate::domain::ConnectionRole;
use crate::error::AppError;
use crate::store;
use crate::store::connections::ConnectionKey;
use crate::web::http::extractors::{CurrentPerson, PathParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::portal_state::PortalState;

pub mod admin;
pub mod automation;
pub mod cluster_page;
pub mod connect;
mod connect_return;
mod connect_steps;
pub mod forget;
pub mod host_keys;
pub mod list;
pub mod own_list;
mod panel;
pub mod retirement;
mod settings_form;

/// A request by a signed-in person whose path names a cluster. Handlers learn of the cluster only through `authorize`.
#[derive(FromRequestParts)]
#[from_request(state(PortalState), rejection(AppError))]
pub(in crate::web) struct UncheckedClusterRequest {
    context: RequestContext,
    me: CurrentPerson,
    #[from_request(via(PathParams))]
    slug: String,
}

impl UncheckedClusterRequest {
    /// Checks a permission, then finds the cluster.
    pub async fn authorize(self, permission: Permission) -> Result<ClusterRequest, AppError> {
        self.me.may(permission)?;
        let app = &self.context.app;
        let mut db = app.store.read().await?;
        let row = store::clusters::find_by_slug(&mut db, &self.slug).await?.ok_or(AppError::NotFound)?;
        let cluster = app.cluster_accounts.profile(&mut db, row).await?;
        drop(db);
        Ok(ClusterRequest { context: self.context, me: self.me, cluster })
    }
}

/// A request about a cluster by someone who may make it.
pub(in crate::web) struct ClusterRequest {
    pub context: RequestContext,
    pub me: CurrentPerson,
    pub cluster: Arc<ClusterProfile>,
}

impl ClusterRequest {
    /// The person on this cluster.
    pub fn account_id(&self) -> ClusterAccountId {
        ClusterAccountId { person: self.me.0.person.id, cluster: self.cluster.row.id }
    }

    /// Their connection to the login node.
    fn login_key(&self) -> ConnectionKey {
        self.account_id().connection_key()
    }

    /// Their connection to the automation host.
    fn automation_key(&self) -> ConnectionKey {
        ConnectionKey { role: ConnectionRole::Automation, ..self.login_key() }
    }

    fn actor(&self) -> Actor {
        self.me.actor(&self.context)
    }

    /// The path of the cluster's page, or of one below it.
    fn path(&self, below: &str) -> String {
        cluster_path(&self.cluster.row.slug, below)
    }

    fn redirect(self, below: &str, message: FlashMessage) -> Response {
        let path = self.path(below);
        flash::redirect(self.context, &path, message)
    }
}

fn cluster_path(slug: &str, below: &str) -> String {
    format!("/clusters/{slug}{below}")
}
