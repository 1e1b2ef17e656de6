//! Options of the list itself: other columns, refreshing, older jobs.

use axum::response::IntoResponse as _;
use serde::Deserialize;

use crate::auth::Permission;
use crate::error::AppError;
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, RequestContext};
use crate::web::http::flash::{self, FlashMessage, see_other};
use crate::web::pages::jobs::cluster_queues::list_cluster_queues;
use crate::web::pages::jobs::list::COLUMNS_PREFERENCE;
use crate::web::pages::jobs::list_query::parse_columns;

#[derive(Deserialize)]
pub struct RefreshJobsForm {
    #[serde(default)]
    back: String,
}

pub async fn choose_columns(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(fields): FormBody<Vec<(String, String)>>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let names: Vec<&str> =
        fields.iter().filter(|(name, _)| name == "column").map(|(_, value)| value.as_str()).collect();
    let chosen = parse_columns(&names.join(",")).join(",");
    let mut tx = context.app.store.write().await?;
    store::queues::set_preference(&mut tx, me.0.person.id, COLUMNS_PREFERENCE, &chosen).await?;
    store::commit(tx).await?;
    let back = fields.iter().find(|(name, _)| name == "back").map_or("/jobs", |(_, value)| value);
    Ok(see_other(safe_list_path(back)).into_response())
}

/// Refreshes all queues soon, at most once every few seconds.
pub async fn refresh(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<RefreshJobsForm>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    for queue in list_cluster_queues(&context, &me).await? {
        context.app.queue_monitor.refresh_soon(queue.account.id).await?;
    }
    Ok(see_other(safe_list_path(&form.back)).into_response())
}

#[derive(Deserialize)]
pub struct OlderJobsForm {
    cluster: String,
}

/// Asks a cluster for the month before the known history.
pub async fn load_older(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<OlderJobsForm>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let queues = list_cluster_queues(&context, &me).await?;
    let queue = queues.iter().find(|queue| queue.cluster().slug == form.cluster);
    context.app.queue_monitor.request_history(queue.ok_or(AppError::NotFound)?.account.id);
    Ok(flash::redirect(context, "/jobs?view=history", FlashMessage::OlderJobsAsked))
}

/// Where a form may return to: the list and nothing else.
pub fn safe_list_path(back: &str) -> &str {
    let is_list = back == "/jobs" || back.starts_with("/jobs?");
    if is_list && back.len() < 1000 { back } else { "/jobs" }
}
