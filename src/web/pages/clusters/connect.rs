//! Connecting: the user name, the attempt, its login prompts and answers, and disconnecting.

use axum::response::IntoResponse as _;
use secrecy::SecretString;
use serde::Deserialize;

use crate::auth::Permission;
use crate::auth::activity::{ActivityDetails, ActivityEventKind, record};
use crate::cluster::{ConnectPurpose, ConnectStartError};
use crate::domain::RemoteUser;
use crate::ssh::login::LoginAttendance;
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::{FormBody, QueryParams};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::pages::clusters::{ClusterRequest, UncheckedClusterRequest, cluster_page, connect_return};

#[derive(Deserialize)]
pub struct ClusterUserForm {
    user: String,
}

/// An answer to a login prompt.
#[derive(Deserialize)]
pub struct PromptAnswerForm {
    number: u32,
    answer: SecretString,
    #[serde(default)]
    purpose: String,
    seen: Option<String>,
}

/// Which attempt the request is about, and what the open page already shows.
#[derive(Deserialize)]
pub struct ConnectPanelParams {
    #[serde(default)]
    purpose: String,
    seen: Option<String>,
    /// The page about files to come back to.
    back: Option<String>,
}

/// The panel alone, for an open page.
pub async fn show_panel(
    unchecked: UncheckedClusterRequest,
    QueryParams(query): QueryParams<ConnectPanelParams>,
) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    cluster_page::render_changes(&request, query.seen.as_deref()).await
}

/// Saves the user name. A different name needs a new connection, so the old one is closed.
pub async fn save_user(unchecked: UncheckedClusterRequest, FormBody(form): FormBody<ClusterUserForm>) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    let user: RemoteUser = match form.user.parse() {
        Ok(user) => user,
        Err(problem) => return cluster_page::show_with_problem(&request, &form.user, problem.0).await,
    };
    let app = &request.context.app;
    let mut tx = app.store.write().await?;
    let mut renamed = Vec::new();
    for key in [request.login_key(), request.automation_key()] {
        let before = store::connections::get(&mut tx, key).await?;
        store::connections::save_user(&mut tx, key, &user, app.clock.now()).await?;
        if before.is_some_and(|before| before.remote_user != user.as_str()) {
            renamed.push(key);
        }
    }
    let subject = &request.cluster.row.title;
    let about = ActivityDetails { subject, detail: user.as_str(), ..ActivityDetails::default() };
    record(&mut tx, &request.actor(), ActivityEventKind::UserNamed, about, app.clock.now()).await?;
    store::commit(tx).await?;
    // After the commit: an attempt that starts now reads the new name.
    for key in renamed {
        app.connections.close_connection(key).await;
    }
    Ok(flash::see_other(&request.path("")))
}

pub async fn connect(
    unchecked: UncheckedClusterRequest,
    FormBody(form): FormBody<ConnectPanelParams>,
) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    let connections = &request.context.app.connections;
    let started = connections.connect(request.login_key(), request.actor(), LoginAttendance::Attended).await;
    let jar = connect_return::remember(&request.context, &request.cluster.row.slug, form.back.as_deref());
    Ok((jar, respond_after_start(request, started, form.seen).await?).into_response())
}

/// Starts a test of the new key.
pub async fn test_key(
    unchecked: UncheckedClusterRequest,
    FormBody(form): FormBody<ConnectPanelParams>,
) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    let started = request.context.app.connections.test_new_key(request.login_key(), request.actor()).await;
    respond_after_start(request, started, form.seen).await
}

/// Passes an answer on to the server.
pub async fn answer_prompt(
    unchecked: UncheckedClusterRequest,
    FormBody(form): FormBody<PromptAnswerForm>,
) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    let purpose = parse_purpose(&form.purpose);
    request.context.app.connections.answer_prompt(request.login_key(), purpose, form.number, form.answer);
    panel_or_page(&request, form.seen).await
}

pub async fn cancel_attempt(
    unchecked: UncheckedClusterRequest,
    FormBody(form): FormBody<ConnectPanelParams>,
) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    let purpose = parse_purpose(&form.purpose);
    request.context.app.connections.cancel_attempt(request.login_key(), purpose).await;
    // A cancelled test says nothing about the key.
    let seen = form.seen.filter(|_| purpose == ConnectPurpose::Connect);
    panel_or_page(&request, seen).await
}

pub async fn disconnect(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    let connections = &request.context.app.connections;
    connections.disconnect(request.login_key(), &request.actor(), &request.cluster.row.title).await?;
    Ok(request.redirect("", FlashMessage::Disconnected))
}

fn parse_purpose(word: &str) -> ConnectPurpose {
    if word == "test" { ConnectPurpose::TestNewKey } else { ConnectPurpose::Connect }
}

/// The panel or page if the attempt has started, otherwise why it has not.
async fn respond_after_start(
    request: ClusterRequest,
    started: Result<(), ConnectStartError>,
    seen: Option<String>,
) -> HandlerResult {
    match started {
        Ok(()) => panel_or_page(&request, seen).await,
        Err(error) => redirect_with_refusal(request, "", error),
    }
}

/// Redirects to a page of the cluster with the reason why no attempt was started.
pub(super) fn redirect_with_refusal(request: ClusterRequest, below: &str, error: ConnectStartError) -> HandlerResult {
    let message = match error {
        ConnectStartError::NoRemoteUser => FlashMessage::NoUserName,
        ConnectStartError::NoKey => FlashMessage::NoKey,
        ConnectStartError::ClusterClosed => FlashMessage::ClusterClosed,
        ConnectStartError::TooManyAttempts => FlashMessage::TooManyConnects,
        ConnectStartError::Auth(error) => return Err(error.into()),
        ConnectStartError::Store(error) => return Err(error.into()),
    };
    Ok(request.redirect(below, message))
}

async fn panel_or_page(request: &ClusterRequest, seen: Option<String>) -> HandlerResult {
    if request.context.is_fragment {
        return cluster_page::render_changes(request, seen.as_deref()).await;
    }
    Ok(flash::see_other(&request.path("")))
}
