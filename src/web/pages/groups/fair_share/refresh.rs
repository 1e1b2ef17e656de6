//! Asks a cluster for newer fair share. The page doesn't wait for the answer: it says since when it has been asked for.

use serde::Deserialize;

use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::error::AppError;
use crate::web::HandlerResult;
use crate::web::http::extractors::FormBody;
use crate::web::http::flash::see_other;
use crate::web::pages::groups::GroupRequest;
use crate::web::pages::jobs::cluster_queues::{PersonClusterQueue, list_cluster_queues};

/// Whether newer figures can be asked for, or have been.
#[derive(Default)]
pub struct FairShareRefresh {
    pub can_ask: bool,
    /// Since when an answer is awaited.
    pub asked_at: Option<UnixTime>,
}

impl FairShareRefresh {
    pub fn new(queue: &PersonClusterQueue) -> Self {
        let asked_at = queue.snapshot.resources_wanted.filter(|_| queue.is_connected);
        Self { can_ask: queue.is_connected && asked_at.is_none(), asked_at }
    }
}

/// The cluster, and the page that the button is on.
#[derive(Deserialize)]
pub struct RefreshFairShareForm {
    cluster: String,
    #[serde(default)]
    page: FairSharePageKind,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum FairSharePageKind {
    #[default]
    Group,
    Priority,
}

/// Reads fair share again soon, but not too often, and shows the page again.
pub async fn post(request: GroupRequest, FormBody(form): FormBody<RefreshFairShareForm>) -> HandlerResult {
    let GroupRequest { context, me, group } = request;
    me.may(Permission::SeeUsage(group))?;
    let queues = list_cluster_queues(&context, &me).await?;
    let queue = queues.iter().find(|queue| queue.cluster().slug == form.cluster).ok_or(AppError::NotFound)?;
    context.app.queue_monitor.refresh_resources_soon(queue.account.id).await?;
    Ok(see_other(&match form.page {
        FairSharePageKind::Group => format!("/groups/{group}/usage/fair-share"),
        FairSharePageKind::Priority => format!("/groups/{group}/priority"),
    }))
}
