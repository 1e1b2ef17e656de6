//! Choosing a file or folder on a cluster, and creating a folder: the inside of a dialog. To look at folders, people use
//! *Files*. The listing comes over the person's own connection, after the dialog has opened; no page waits for it.

mod folder_view;

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use serde::Deserialize;

use self::folder_view::{FolderView, OpenedFolder, PickMode};
use crate::auth::Permission;
use crate::cluster::DiscoveredFacts;
use crate::cluster::folders::{self, FolderError, FolderListing, FolderVariables};
use crate::error::AppError;
use crate::ssh::{ClusterConnection, RunCommandError};
use crate::web::HandlerResult;
use crate::web::http::extractors::{FormBody, QueryParams};
use crate::web::http::flash;
use crate::web::http::form_errors::echo_input;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond_with};
use crate::web::pages::clusters::{ClusterRequest, UncheckedClusterRequest};
use crate::web::pages::files::folder_link;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct FolderQuery {
    /// The folder; it may begin with a variable such as `$SCRATCH`.
    path: String,
    /// What can be chosen: file, folder or any.
    pick: String,
    /// The field that the choice is for.
    field: String,
    /// Whether the path is the value of a field: a file then means its folder, a bad path the default start.
    near: bool,
}

#[derive(Deserialize)]
pub struct NewRemoteFolderForm {
    path: String,
    name: String,
    #[serde(default)]
    pick: String,
    #[serde(default)]
    field: String,
}

#[derive(Template)]
#[template(path = "folders/part.html")]
struct FolderDialogFragment {
    view: FolderView,
}

#[derive(Template)]
#[template(path = "folders/page.html")]
struct FolderPage {
    page: PageFrame,
    view: FolderView,
}

pub async fn get(unchecked: UncheckedClusterRequest, QueryParams(query): QueryParams<FolderQuery>) -> HandlerResult {
    let browser = FolderBrowser::load(unchecked.authorize(Permission::UseClusters).await?).await?;
    if !browser.request.context.is_fragment {
        return Ok(flash::see_other(&browser.files_page(&query.path)));
    }
    let folder = browser.open_folder(&query.path, query.near).await;
    browser.render(StatusCode::OK, browser.build_view(&query.pick, &query.field, folder))
}

/// Creates a folder and shows it.
pub async fn create(
    unchecked: UncheckedClusterRequest,
    FormBody(form): FormBody<NewRemoteFolderForm>,
) -> HandlerResult {
    let browser = FolderBrowser::load(unchecked.authorize(Permission::UseClusters).await?).await?;
    let created = match &browser.connection {
        Ok(connection) => folders::create(connection, &form.path, &form.name).await,
        Err(error) => Err(error.clone().into()),
    };
    let (path, problem) = match &created {
        Ok(path) => (path, None),
        Err(problem) => (&form.path, Some(problem.to_string())),
    };
    if problem.is_none() && !browser.request.context.is_fragment {
        return Ok(flash::see_other(&browser.files_page(path)));
    }
    let folder = browser.open_folder(path, false).await;
    let mut view = browser.build_view(&form.pick, &form.field, folder);
    let status = if problem.is_some() { FORM_ERROR_STATUS } else { StatusCode::OK };
    view.new_name = problem.as_ref().map(|_| echo_input(&form.name)).unwrap_or_default();
    view.problem = problem.unwrap_or_default();
    browser.render(status, view)
}

/// Browses folders as one person on one cluster.
struct FolderBrowser {
    request: ClusterRequest,
    discovered: Arc<DiscoveredFacts>,
    folder_names: FolderVariables,
    connection: Result<Arc<ClusterConnection>, RunCommandError>,
}

impl FolderBrowser {
    async fn load(request: ClusterRequest) -> Result<Self, AppError> {
        let (app, id) = (&request.context.app, request.account_id());
        let account = app.cluster_accounts.get(id).await?;
        let discovered = account.map(|account| account.discovered.clone()).unwrap_or_default();
        Ok(Self {
            folder_names: FolderVariables::from_facts(&discovered),
            discovered,
            connection: app.connections.connection(id.connection_key()),
            request,
        })
    }

    /// Where browsing starts if no folder is given.
    fn start_path(&self) -> String {
        let first = self.discovered.folders.first().map(|folder| folder.path.clone());
        first.or_else(|| self.discovered.home.clone()).unwrap_or_else(|| "/".to_owned())
    }

    /// Where the folder is shown without the dialog.
    fn files_page(&self, typed: &str) -> String {
        let slug = &self.request.cluster.row.slug;
        let full = self.folder_names.expand(typed).map(|full| folder_link(slug, &full));
        full.filter(|href| !href.is_empty()).unwrap_or_else(|| format!("/files/{slug}"))
    }

    /// Lists a folder, and says which one it is.
    async fn open_folder(&self, typed: &str, near: bool) -> OpenedFolder {
        let is_vague = near || typed.trim().is_empty();
        let wanted = match self.folder_names.expand(typed) {
            Some(full) => full,
            None if is_vague => self.start_path(),
            None => return OpenedFolder::new(typed, Err(FolderError::NotAPath)),
        };
        let is_elsewhere = |problem: &FolderError| {
            use FolderError::{NotAFolder, NotAPath, NotFound, PermissionDenied};
            matches!(problem, NotAFolder | NotAPath | PermissionDenied | NotFound)
        };
        match self.list(&wanted).await {
            Err(problem) if near && is_elsewhere(&problem) => {
                if let Some(parent) = folders::parent_path(&wanted)
                    && let Ok(listing) = self.list(&parent).await
                {
                    return OpenedFolder::new(&parent, Ok(listing));
                }
                let start = self.start_path();
                OpenedFolder::new(&start, self.list(&start).await)
            }
            listed => OpenedFolder::new(&wanted, listed),
        }
    }

    async fn list(&self, path: &str) -> Result<FolderListing, FolderError> {
        folders::list(self.connection.as_ref().map_err(Clone::clone)?, path).await
    }

    fn build_view(&self, pick: &str, field: &str, folder: OpenedFolder) -> FolderView {
        FolderView::new(self, PickMode::parse(pick), field, folder)
    }

    fn render(&self, status: StatusCode, view: FolderView) -> HandlerResult {
        let ClusterRequest { context, me, .. } = &self.request;
        if context.is_fragment {
            return respond_with(status, &FolderDialogFragment { view });
        }
        let title = format!("Files on {}", view.title);
        let page = PageFrame::for_person(context, &me.0, &title, NavSection::Clusters);
        respond_with(status, &FolderPage { page, view })
    }
}
