//! Folders that a new dashboard could show. The cluster is asked once the form is open.

use std::time::Duration;

use askama::Template;

use crate::auth::Permission;
use crate::cluster::dashboard_folders::{DashboardFolderKind, FoundDashboardFolders};
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

/// Nobody waits longer for suggestions.
const SUGGESTIONS_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Template)]
#[template(path = "dashboards/folder_suggestions.html")]
struct FoundFoldersFragment {
    kind: DashboardKind,
    found: FoundDashboardFolders,
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
    let (mut found, trouble) = match result {
        Ok(found) => (FoundDashboardFolders::clone(&found), String::new()),
        Err(error) => (FoundDashboardFolders::default(), error.to_string()),
    };
    // Folders that are already on the form aren't offered again.
    let typed: Vec<String> = all("place");
    let mut on_form: Vec<String> = typed.iter().filter_map(|place| names.expand(place)).collect();
    on_form.extend(choose_cluster::recent_folders(&context, &target, kind).await?);
    found.folders.retain(|folder| !on_form.contains(&folder.path));
    respond(&FoundFoldersFragment { kind, found, trouble })
}
