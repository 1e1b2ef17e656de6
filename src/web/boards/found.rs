//! Folders that a new dashboard could show, asked of the cluster once the form is open.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;

use super::super::Answer;
use super::super::compose::filled::Fields;
use super::super::compose::place;
use super::super::extract::{Context, Me, Query};
use super::super::page::show;
use super::where_to::{self, Ground};
use crate::auth::Permission;
use crate::boards::Kind;
use crate::cluster::dashboard_folders::{DashboardFolderKind, DashboardFolders};
use crate::error::AppError;
use crate::ssh::RunCommandError;

/// Nobody waits longer for suggestions.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Template)]
#[template(path = "boards/found.html")]
struct Part {
    kind: Kind,
    found: Arc<DashboardFolders>,
    /// Why nothing is known.
    trouble: String,
}

/// The part of the form.
pub async fn get(context: Context, me: Me, Query(fields): Query<Fields>) -> Answer {
    me.may(Permission::UseClusters)?;
    let all = |name: &str| {
        fields.iter().filter(|(known, _)| known == name).map(|(_, value)| value.clone()).collect()
    };
    let first = |name: &str| Vec::into_iter(all(name)).next().unwrap_or_default();
    let kind: Kind = first("kind").parse().map_err(|_| AppError::NotFound)?;
    let spot = place::one(&context, &me, &first("cluster")).await?;
    let ground = Ground::of(&context, &me, &spot).await?;
    let sort = match kind {
        Kind::TensorBoard => DashboardFolderKind::EventFiles,
        Kind::Mlflow => DashboardFolderKind::MlflowRuns,
    };
    let app = &context.app;
    let looking = async {
        let line = app.connections.connection(ground.key)?;
        app.dashboard_folders.find(&line, ground.key, &ground.learnt, sort).await
    };
    let looked =
        tokio::time::timeout(PATIENCE, looking).await.unwrap_or(Err(RunCommandError::TimedOut));
    let (found, trouble) = match looked {
        Ok(found) => (found, String::new()),
        Err(error) => (Arc::default(), error.to_string()),
    };
    // What stands on the form already is not offered again.
    let mut known: Vec<String> = all("place");
    known = known.iter().filter_map(|place| ground.names.expand(place)).collect();
    known.extend(where_to::recent(&context, &me, &spot, kind).await?);
    let mut found = DashboardFolders::clone(&found);
    found.folders.retain(|place| !known.contains(&place.path));
    show(&Part { kind, found: Arc::new(found), trouble })
}
