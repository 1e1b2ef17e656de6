//! Retiring, restoring and removing clusters, for administrators.

use crate::auth::Permission;
use crate::error::AppError;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, PathParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::pages::clusters::admin::to_app_error;
use crate::web::pages::clusters::{cluster_path, find_cluster};

pub async fn retire(context: RequestContext, me: CurrentPerson, PathParams(slug): PathParams<String>) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    context.app.connections.set_retired(&me.actor(&context), &known, true).await.map_err(to_app_error)?;
    Ok(flash::redirect(context, &format!("{}/settings", cluster_path(&slug)), FlashMessage::ClusterRetired))
}

pub async fn restore(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    context.app.connections.set_retired(&me.actor(&context), &known, false).await.map_err(to_app_error)?;
    Ok(flash::redirect(context, &cluster_path(&slug), FlashMessage::ClusterRestored))
}

/// Removes a retired cluster.
pub async fn remove(context: RequestContext, me: CurrentPerson, PathParams(slug): PathParams<String>) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    if known.row.retired_at().is_none() {
        return Err(AppError::NotFound);
    }
    context.app.connections.remove_cluster(&me.actor(&context), &known).await.map_err(to_app_error)?;
    Ok(flash::redirect(context, "/clusters", FlashMessage::ClusterRemoved))
}
