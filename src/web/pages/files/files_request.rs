//! A request about files on one cluster: who asks, where, and over which connection.

use std::sync::Arc;

use axum::extract::FromRequestParts;

use crate::auth::Permission;
use crate::auth::activity::{ActivityDetails, ActivityEventKind, record};
use crate::cluster::DiscoveredFacts;
use crate::cluster::folders::FolderVariables;
use crate::domain::{RemotePath, RemotePathError};
use crate::error::AppError;
use crate::ssh::{ClusterConnection, RunCommandError};
use crate::store;
use crate::web::pages::clusters::{ClusterRequest, UncheckedClusterRequest};
use crate::web::portal_state::PortalState;

/// A request by a signed-in person whose path names a cluster.
#[derive(FromRequestParts)]
#[from_request(state(PortalState), rejection(AppError))]
pub(in crate::web) struct UncheckedFilesRequest(UncheckedClusterRequest);

impl UncheckedFilesRequest {
    /// Checks that this person may use clusters, then finds the cluster and their connection to it.
    pub async fn authorize(self) -> Result<FilesRequest, AppError> {
        let request = self.0.authorize(Permission::UseClusters).await?;
        let (app, id) = (&request.context.app, request.account_id());
        let account = app.cluster_accounts.get(id).await?;
        let discovered = account.map(|account| account.discovered.clone()).unwrap_or_default();
        Ok(FilesRequest {
            variables: FolderVariables::from_facts(&discovered),
            connection: app.connections.connection(id.connection_key()),
            discovered,
            request,
        })
    }
}

/// A request about files by someone who may make it.
pub(in crate::web) struct FilesRequest {
    pub request: ClusterRequest,
    /// What was found out about their account when they connected.
    pub discovered: Arc<DiscoveredFacts>,
    pub variables: FolderVariables,
    /// Their open connection to the login node, or why there is none.
    pub connection: Result<Arc<ClusterConnection>, RunCommandError>,
}

impl FilesRequest {
    /// The cluster's short name.
    pub fn slug(&self) -> &str {
        &self.request.cluster.row.slug
    }

    /// Where browsing starts if no folder is given.
    pub fn start_path(&self) -> RemotePath {
        let first = self.discovered.folders.first().map(|folder| folder.path.as_str());
        let start = first.or(self.discovered.home.as_deref());
        start.and_then(|path| RemotePath::parse(path.as_bytes()).ok()).unwrap_or_else(RemotePath::root)
    }

    /// Records a change in the activity log; `detail` says what was changed.
    pub async fn record(&self, event: ActivityEventKind, detail: &str) -> Result<(), AppError> {
        let cluster = &self.request;
        let app = &cluster.context.app;
        let about =
            ActivityDetails { person: Some(cluster.me.0.person.id), subject: &cluster.cluster.row.title, detail };
        let mut tx = app.store.write().await?;
        record(&mut tx, &cluster.me.actor(&cluster.context), event, about, app.clock.now()).await?;
        Ok(store::commit(tx).await?)
    }

    /// A path that someone typed: it may begin with `~` or a variable such as `$SCRATCH`.
    pub fn typed_path(&self, typed: &str) -> Result<RemotePath, RemotePathError> {
        let full = self.variables.expand(typed).ok_or(RemotePathError::NotAbsolute)?;
        RemotePath::parse(full.as_bytes())
    }
}

/// The address of a folder's page.
pub(in crate::web) fn files_url(slug: &str, path: &RemotePath) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("path", &path.to_encoded()).finish();
    format!("/files/{slug}?{query}")
}

/// The form for a new TensorBoard that shows a folder. `None` if the folder's name isn't text, which the form needs.
pub(in crate::web) fn tensorboard_url(slug: &str, folder: &RemotePath) -> Option<String> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("kind", "tensorboard").append_pair("cluster", slug).append_pair("place", folder.as_text()?);
    Some(format!("/dashboards/new?{}", query.finish()))
}

/// The address of a picture, audio or video itself.
pub(in crate::web) fn raw_url(slug: &str, path: &RemotePath) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("path", &path.to_encoded()).finish();
    format!("/files/{slug}/raw?{query}")
}

/// The address of a file's page.
pub(in crate::web) fn view_url(slug: &str, path: &RemotePath) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("path", &path.to_encoded()).finish();
    format!("/files/{slug}/view?{query}")
}
