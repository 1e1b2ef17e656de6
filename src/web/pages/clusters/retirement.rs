//! Retiring, restoring and removing clusters, for administrators.

use crate::auth::Permission;
use crate::error::AppError;
use crate::web::HandlerResult;
use crate::web::http::flash::{self, FlashMessage};
use crate::web::pages::clusters::UncheckedClusterRequest;

pub async fn retire(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let request = unchecked.authorize(Permission::ManageClusters).await?;
    request.context.app.connections.set_retired(&request.actor(), &request.cluster, true).await?;
    Ok(request.redirect("/settings", FlashMessage::ClusterRetired))
}

pub async fn restore(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let request = unchecked.authorize(Permission::ManageClusters).await?;
    request.context.app.connections.set_retired(&request.actor(), &request.cluster, false).await?;
    Ok(request.redirect("", FlashMessage::ClusterRestored))
}

/// Removes a retired cluster.
pub async fn remove(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let request = unchecked.authorize(Permission::ManageClusters).await?;
    if request.cluster.row.retired_at().is_none() {
        return Err(AppError::NotFound);
    }
    request.context.app.connections.remove_cluster(&request.actor(), &request.cluster).await?;
    Ok(flash::redirect(request.context, "/clusters", FlashMessage::ClusterRemoved))
}
