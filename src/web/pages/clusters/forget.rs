//! Forgetting a cluster: the page that says what is deleted and what stays, and the deletion.

use std::sync::Arc;

use askama::Template;

use crate::auth::Permission;
use crate::cluster::{ClusterProfile, ConnectionStatus};
use crate::error::AppError;
use crate::files::forget::end_file_work;
use crate::web::HandlerResult;
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::clusters::UncheckedClusterRequest;

#[derive(Template)]
#[template(path = "clusters/forget.html")]
struct ForgetClusterPage {
    page: PageFrame,
    profile: Arc<ClusterProfile>,
    heading: String,
    user: String,
    is_connected: bool,
}

pub async fn get(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    let app = &request.context.app;
    let account = app.cluster_accounts.get(request.account_id()).await?.ok_or(AppError::NotFound)?;
    let heading = format!("Forget {}", request.cluster.row.title);
    respond(&ForgetClusterPage {
        page: PageFrame::for_person(&request.context, &request.me.0, &heading, NavSection::Clusters),
        heading,
        user: account.remote_user.clone(),
        is_connected: matches!(account.status(&app.connections), ConnectionStatus::Up(_)),
        profile: request.cluster,
    })
}

pub async fn post(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    let (app, id) = (&request.context.app, request.account_id());
    app.cluster_accounts.get(id).await?.ok_or(AppError::NotFound)?;
    // While there is a connection: what they left half-way is removed over it.
    end_file_work(&app.transfers, &app.uploads, id).await?;
    let title = &request.cluster.row.title;
    if !app.connections.forget_account(id, &request.actor(), title).await? {
        return Err(AppError::NotFound);
    }
    app.notifications.notify(request.me.0.person.id);
    Ok(flash::redirect(request.context, "/clusters", FlashMessage::ClusterForgotten))
}
