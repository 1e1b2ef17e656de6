//! Folders that a new dashboard could show. The cluster is asked once the form is open.

use std::time::Duration;

use askama::Template;

use crate::auth::Permission;
use crate::cluster::dashboard_folders::{DashboardFolderKind, FoundDashboardFolder, FoundDashboardFolders};
use crate::cluster::folders::FolderVariables;
use crate::dashboards::DashboardKind;
use crate::error::AppError;
use crate::ssh::RunCommandError;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, QueryParams, RequestContext};
use crate::web::http::page_frame::respond;
use crate::web::pages::compose::compose_target;
use crate::web::pages::compose::form_values::FormFields;
use crate::web::pages::dashboards::choose_cluster;
use crate::web::pages::dashboards::job_folders::DashboardJob;

/// Nobody waits longer for suggestions.
const SUGGESTIONS_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Template)]
#[template(path = "dashboards/folder_suggestions.html")]
struct FoundFoldersFragment {
    kind: DashboardKind,
    /// Folders to offer, each with whether it is selected.
    folders: Vec<(FoundDashboardFolder, bool)>,
    /// Whether the search was stopped early.
    is_cut: bool,
    /// Whether the search found folders that the form already shows.
    is_any_on_form: bool,
    /// The folder of the job that the dashboard is for, if nothing of the job's was found. Empty otherwise.
    empty_job_folder: String,
    /// Why there are no suggestions.
    trouble: String,
}

pub async fn get(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(fields): QueryParams<FormFields>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let all = |name: &str| fields.iter().filter(|(field, _)| field == name).map(|(_, value)| value.clone()).collect();
    let first = |name: &str| Vec::into_iter(all(name)).next().unwrap_or_default();
    let kind: DashboardKind = first("kind").parse().map_err(|_| AppError::NotFound)?;
    let target = compose_target::find_target(&context, &me, &first("cluster")).await?;
    let (account, names) = (&target.account, FolderVariables::from_facts(&target.account.discovered));
    let folder_kind = match kind {
        DashboardKind::TensorBoard => DashboardFolderKind::EventFiles,
        DashboardKind::Mlflow => DashboardFolderKind::MlflowRuns,
    };
    let app = &context.app;
    let search = async {
        let connection = account.connection(&app.connections)?;
        let key = account.id.connection_key();
        app.dashboard_folders.find(&connection, key, &account.discovered, folder_kind).await
    };
    let result = tokio::time::timeout(SUGGESTIONS_TIMEOUT, search).await.unwrap_or(Err(RunCommandError::TimedOut));
    let (found, trouble) = match result {
        Ok(found) => (FoundDashboardFolders::clone(&found), String::new()),
        Err(error) => (FoundDashboardFolders::default(), error.to_string()),
    };
    let job = DashboardJob::find(&context, &me, &first("cluster"), &first("job")).await?;
    let mut written = job.as_ref().map(|job| job.select_written(&found.folders)).unwrap_or_default();
    if kind == DashboardKind::Mlflow {
        // It shows one at a time.
        written.truncate(1);
    }
    let typed: Vec<String> = all("place");
    let selected: Vec<String> = typed.iter().filter_map(|place| names.expand(place)).collect();
    let recent = choose_cluster::recent_folders(&context, &target, kind).await?;
    // Folders that are already on the form aren't offered again, unless they are the job's and nobody selected them.
    let is_offered = |path: &str| {
        let is_selected = selected.iter().any(|one| one == path);
        !is_selected && (written.contains(&path) || !recent.iter().any(|one| one == path))
    };
    let folders: Vec<(FoundDashboardFolder, bool)> = found
        .folders
        .iter()
        .filter(|folder| is_offered(&folder.path))
        .map(|folder| (folder.clone(), written.contains(&folder.path.as_str())))
        .collect();
    let has_none = written.is_empty() && trouble.is_empty();
    let empty_job_folder = job.as_ref().filter(|job| has_none && !selected.iter().any(|one| job.contains(one)));
    respond(&FoundFoldersFragment {
        kind,
        is_cut: found.is_cut,
        is_any_on_form: !found.folders.is_empty(),
        empty_job_folder: empty_job_folder.map(|job| job.folder.clone()).unwrap_or_default(),
        folders,
        trouble,
    })
}
