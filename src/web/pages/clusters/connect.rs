//! Connecting: the user name, the attempt, its login prompts and answers, and disconnecting.

use std::sync::Arc;

use axum::response::Response;
use secrecy::SecretString;
use serde::Deserialize;

use crate::auth::Permission;
use crate::auth::activity::{ActivityDetails, ActivityEvent, record};
use crate::cluster::{ClusterProfile, ConnectAttemptKind, ConnectStartError};
use crate::domain::{ConnectionRole, RemoteUser};
use crate::error::AppError;
use crate::ssh::login::LoginAttendance;
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, QueryParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::pages::clusters::{cluster_page, cluster_path, connection_key, find_cluster};

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

/// Which attempt the request is about.
#[derive(Deserialize)]
pub struct ConnectAttemptForm {
    #[serde(default)]
    purpose: String,
    seen: Option<String>,
}

/// What the open page already shows.
#[derive(Deserialize)]
pub struct ConnectPanelQuery {
    seen: Option<String>,
}

/// The panel alone, for an open page.
pub async fn show_panel(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
    QueryParams(seen): QueryParams<ConnectPanelQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    cluster_page::render_changes(&context, &me, &known, seen.seen.as_deref()).await
}

/// Saves the user name. A different name needs a new connection, so the old one is closed.
pub async fn save_user(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
    FormBody(form): FormBody<ClusterUserForm>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    let user: RemoteUser = match form.user.parse() {
        Ok(user) => user,
        Err(problem) => {
            return cluster_page::show_with_problem(&context, &me, &known, &form.user, problem.0).await;
        }
    };
    let app = &context.app;
    let mut tx = app.store.write().await?;
    let mut renamed = Vec::new();
    for role in [ConnectionRole::Login, ConnectionRole::Automation] {
        let key = connection_key(me.0.person.id, &known, role);
        let before = store::connections::get(&mut tx, key).await?;
        store::connections::save_user(&mut tx, key, &user, app.clock.now()).await?;
        if before.is_some_and(|before| before.remote_user != user.as_str()) {
            renamed.push(key);
        }
    }
    let about = ActivityDetails { subject: &known.row.slug, detail: user.as_str(), ..ActivityDetails::default() };
    record(&mut tx, &me.actor(&context), ActivityEvent::UserNamed, about, app.clock.now()).await?;
    store::commit(tx).await?;
    // After the commit: an attempt that starts now reads the new name.
    for key in renamed {
        app.connections.close_connection(key).await;
    }
    Ok(flash::see_other(&cluster_path(&slug)))
}

pub async fn connect(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
    FormBody(seen): FormBody<ConnectPanelQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    let key = connection_key(me.0.person.id, &known, ConnectionRole::Login);
    let begun = context.app.connections.connect(key, me.actor(&context), LoginAttendance::Attended).await;
    respond_after_start(context, &me, &known, begun, seen.seen).await
}

/// Starts a test of the new key.
pub async fn test_key(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
    FormBody(seen): FormBody<ConnectPanelQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    let key = connection_key(me.0.person.id, &known, ConnectionRole::Login);
    let begun = context.app.connections.test_new_key(key, me.actor(&context)).await;
    respond_after_start(context, &me, &known, begun, seen.seen).await
}

/// Passes an answer on to the server.
pub async fn answer_prompt(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
    FormBody(form): FormBody<PromptAnswerForm>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    let key = connection_key(me.0.person.id, &known, ConnectionRole::Login);
    let purpose = parse_purpose(&form.purpose);
    context.app.connections.answer_prompt(key, purpose, form.number, form.answer);
    panel_or_page(&context, &me, &known, form.seen).await
}

pub async fn cancel_attempt(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
    FormBody(form): FormBody<ConnectAttemptForm>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    let key = connection_key(me.0.person.id, &known, ConnectionRole::Login);
    let purpose = parse_purpose(&form.purpose);
    context.app.connections.cancel_attempt(key, purpose).await;
    // A cancelled test says nothing about the key.
    let seen = form.seen.filter(|_| purpose == ConnectAttemptKind::Connect);
    panel_or_page(&context, &me, &known, seen).await
}

pub async fn disconnect(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    let key = connection_key(me.0.person.id, &known, ConnectionRole::Login);
    context.app.connections.disconnect(key, &me.actor(&context), &slug).await?;
    Ok(flash::redirect(context, &cluster_path(&slug), FlashMessage::Disconnected))
}

fn parse_purpose(word: &str) -> ConnectAttemptKind {
    if word == "test" { ConnectAttemptKind::TestNewKey } else { ConnectAttemptKind::Connect }
}

/// The panel or page if the attempt has started, otherwise why it has not.
async fn respond_after_start(
    context: RequestContext,
    me: &CurrentPerson,
    known: &Arc<ClusterProfile>,
    begun: Result<(), ConnectStartError>,
    seen: Option<String>,
) -> HandlerResult {
    match begun {
        Ok(()) => panel_or_page(&context, me, known, seen).await,
        Err(error) => redirect_with_refusal(context, &cluster_path(&known.row.slug), error),
    }
}

/// Redirects to the page with the reason why no attempt was started.
pub(super) fn redirect_with_refusal(
    context: RequestContext,
    page: &str,
    error: ConnectStartError,
) -> Result<Response, AppError> {
    let flash = match error {
        ConnectStartError::NoRemoteUser => FlashMessage::NoUserName,
        ConnectStartError::NoKey => FlashMessage::NoKey,
        ConnectStartError::ClusterClosed => FlashMessage::ClusterClosed,
        ConnectStartError::TooManyAttempts => FlashMessage::TooManyConnects,
        ConnectStartError::Auth(error) => return Err(error.into()),
        ConnectStartError::Store(error) => return Err(error.into()),
    };
    Ok(flash::redirect(context, page, flash))
}

async fn panel_or_page(
    context: &RequestContext,
    me: &CurrentPerson,
    known: &Arc<ClusterProfile>,
    seen: Option<String>,
) -> HandlerResult {
    if context.is_fragment {
        return cluster_page::render_changes(context, me, known, seen.as_deref()).await;
    }
    Ok(flash::see_other(&cluster_path(&known.row.slug)))
}
