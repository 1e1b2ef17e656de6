//! Choosing a file or folder on a cluster, and creating a folder: the inside of a dialog, or a plain page. The
//! listing comes over the person's own connection, after the dialog has opened; no page waits for it.

mod folder_view;

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use serde::Deserialize;

use self::folder_view::{FolderView, OpenedFolder, PickMode};
use crate::auth::Permission;
use crate::cluster::folders::{self, FolderError, FolderListing, FolderVariables};
use crate::cluster::{ClusterAccountId, ClusterProfile, DiscoveredFacts};
use crate::error::AppError;
use crate::ssh::{ClusterConnection, RunCommandError};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, QueryParams, RequestContext};
use crate::web::http::flash;
use crate::web::http::form_errors::echo_input;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond_with};
use crate::web::pages::clusters::find_cluster;

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

pub async fn get(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
    QueryParams(wish): QueryParams<FolderQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let there = FolderBrowser::load(&context, &me, &slug).await?;
    let shown = there.open_folder(&wish.path, wish.near).await;
    let view = there.build_view(&context, &wish.pick, &wish.field, shown);
    render(&context, &me, StatusCode::OK, view)
}

/// Creates a folder and shows it.
pub async fn create(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
    FormBody(form): FormBody<NewRemoteFolderForm>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let there = FolderBrowser::load(&context, &me, &slug).await?;
    let made = match &there.connection {
        Ok(line) => folders::create(line, &form.path, &form.name).await,
        Err(error) => Err(error.clone().into()),
    };
    let (path, problem) = match &made {
        Ok(path) => (path, None),
        Err(problem) => (&form.path, Some(problem.to_string())),
    };
    if problem.is_none() && !context.is_fragment {
        let href = folder_view::folder_url(&slug, path, PickMode::parse(&form.pick), &form.field);
        return Ok(flash::see_other(&href));
    }
    let shown = there.open_folder(path, false).await;
    let mut view = there.build_view(&context, &form.pick, &form.field, shown);
    let status = if problem.is_some() { FORM_ERROR_STATUS } else { StatusCode::OK };
    view.new_name = problem.as_ref().map(|_| echo_input(&form.name)).unwrap_or_default();
    view.problem = problem.unwrap_or_default();
    render(&context, &me, status, view)
}

fn render(context: &RequestContext, me: &CurrentPerson, status: StatusCode, view: FolderView) -> HandlerResult {
    if context.is_fragment {
        return respond_with(status, &FolderDialogFragment { view });
    }
    let title = format!("Files on {}", view.title);
    let page = PageFrame::for_person(context, &me.0, &title, NavSection::Clusters);
    respond_with(status, &FolderPage { page, view })
}

/// Browses folders as one person on one cluster.
struct FolderBrowser {
    profile: Arc<ClusterProfile>,
    discovered: Arc<DiscoveredFacts>,
    folder_names: FolderVariables,
    connection: Result<Arc<ClusterConnection>, RunCommandError>,
}

impl FolderBrowser {
    async fn load(context: &RequestContext, me: &CurrentPerson, slug: &str) -> Result<Self, AppError> {
        let known = find_cluster(&context.app, slug).await?;
        let id = ClusterAccountId { person: me.0.person.id, cluster: known.row.id };
        let account = context.app.cluster_accounts.get(id).await?;
        let discovered = account.map(|account| account.discovered.clone()).unwrap_or_default();
        Ok(Self {
            profile: known,
            folder_names: FolderVariables::from_facts(&discovered),
            discovered,
            connection: context.app.connections.connection(id.connection_key()),
        })
    }

    /// Where browsing starts if no folder is given.
    fn start_path(&self) -> String {
        let first = self.discovered.folders.first().map(|folder| folder.path.clone());
        first.or_else(|| self.discovered.home.clone()).unwrap_or_else(|| "/".to_owned())
    }

    /// Lists a folder, and says which one it is.
    async fn open_folder(&self, typed: &str, near: bool) -> OpenedFolder {
        let is_vague = near || typed.trim().is_empty();
        let wanted = match self.folder_names.expand(typed) {
            Some(full) => full,
            None if is_vague => self.start_path(),
            None => return OpenedFolder::from_problem(typed, FolderError::NotAPath),
        };
        let first = self.list(&wanted).await;
        let is_elsewhere = |problem: &FolderError| {
            use FolderError::{NotAFolder, NotAPath, NotFound, PermissionDenied};
            matches!(problem, NotAFolder | NotAPath | PermissionDenied | NotFound)
        };
        match first {
            Err(problem) if near && is_elsewhere(&problem) => {
                if let Some(around) = folders::parent_path(&wanted)
                    && let Ok(listing) = self.list(&around).await
                {
                    return OpenedFolder::from_listing(listing);
                }
                let start = self.start_path();
                self.list(&start)
                    .await
                    .map_or_else(|problem| OpenedFolder::from_problem(&start, problem), OpenedFolder::from_listing)
            }
            Err(problem) => OpenedFolder::from_problem(&wanted, problem),
            Ok(listing) => OpenedFolder::from_listing(listing),
        }
    }

    async fn list(&self, path: &str) -> Result<FolderListing, FolderError> {
        folders::list(self.connection.as_ref().map_err(Clone::clone)?, path).await
    }

    fn build_view(&self, context: &RequestContext, pick: &str, field: &str, shown: OpenedFolder) -> FolderView {
        let pick = PickMode::parse(pick);
        FolderView::new(
            &self.profile.row,
            pick,
            field,
            context.is_fragment,
            &self.discovered,
            &self.folder_names,
            shown,
        )
    }
}
