//! What one can ask of the list itself: other columns, a fresh look, older jobs.

use axum::response::IntoResponse as _;
use serde::Deserialize;

use super::super::Answer;
use super::super::extract::{Context, Form, Me};
use super::super::flash::{self, Flash, see_other};
use super::list::COLUMNS_CHOSEN;
use super::queues::places;
use super::view::columns;
use crate::auth::Permission;
use crate::error::AppError;
use crate::jobs::QueueKey;
use crate::store;

/// Which columns to show.
#[derive(Deserialize)]
pub struct Chosen {
    #[serde(default)]
    back: String,
}

/// Remembers the columns.
pub async fn choose_columns(
    context: Context,
    me: Me,
    Form(fields): Form<Vec<(String, String)>>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let words: Vec<&str> = fields
        .iter()
        .filter(|(name, _)| name == "column")
        .map(|(_, value)| value.as_str())
        .collect();
    let chosen = columns(&words.join(",")).join(",");
    let mut tx = context.app.store.write().await?;
    store::queues::set_preference(&mut tx, me.0.person.id, COLUMNS_CHOSEN, &chosen).await?;
    store::commit(tx).await?;
    let back = fields.iter().find(|(name, _)| name == "back").map_or("/jobs", |(_, value)| value);
    Ok(see_other(own_address(back)).into_response())
}

/// Asks the clusters now, as far as that is polite.
pub async fn refresh(context: Context, me: Me, Form(form): Form<Chosen>) -> Answer {
    me.may(Permission::UseClusters)?;
    for place in places(&context, &me).await? {
        let key = QueueKey { person: me.0.person.id, cluster: place.cluster.id };
        context.app.queue_monitor.refresh_soon(key).await?;
    }
    Ok(see_other(own_address(&form.back)).into_response())
}

/// Which cluster's history.
#[derive(Deserialize)]
pub struct Older {
    cluster: String,
}

/// Asks a cluster for the month before what is known of one's history there.
pub async fn older(context: Context, me: Me, Form(form): Form<Older>) -> Answer {
    me.may(Permission::UseClusters)?;
    let places = places(&context, &me).await?;
    let place = places.iter().find(|place| place.cluster.slug == form.cluster);
    let cluster = place.ok_or(AppError::NotFound)?.cluster.id;
    context.app.queue_monitor.look_back(QueueKey { person: me.0.person.id, cluster });
    Ok(flash::redirect(context, "/jobs?view=history", Flash::OlderJobsAsked))
}

/// Where a form may lead back to: the list and nothing else.
pub fn own_address(back: &str) -> &str {
    let is_list = back == "/jobs" || back.starts_with("/jobs?");
    if is_list && back.len() < 1000 { back } else { "/jobs" }
}
