//! Sending the form: one press, one job, however often it arrives.

use std::time::Duration;

use axum::response::{IntoResponse as _, Redirect};
use sha2::{Digest as _, Sha256};

use super::super::Answer;
use super::super::extract::{Context, Form, Me, Path};
use super::chosen::{self, Chosen};
use super::filled::{Fields, Filled, Job, folders};
use super::form::{Notice, Shown, wrong};
use super::place::{self, Spot};
use crate::auth::Permission;
use crate::error::AppError;
use crate::jobs::submissions::{NotTaken, Order, SubmissionState};
use crate::recipes::read_back;

/// So long the browser waits for the cluster; then a page tells how far it got.
const PATIENCE: Duration = Duration::from_secs(6);

/// Submits the job.
pub async fn post(
    context: Context,
    me: Me,
    Path((slug, address)): Path<(String, String)>,
    Form(fields): Form<Fields>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let spot = place::one(&context, &me, &slug).await?;
    let chosen = chosen::find(&context, &me, &address).await?;
    let filled = Filled::read(fields);
    if filled.nonce.trim().is_empty() {
        return Err(AppError::BadRequest("a form without its mark".to_owned()));
    }
    let job = Job::of(&chosen.form, &filled, &spot.place, &[]);
    if !job.composed.problems.is_empty() {
        return wrong(&context, &me, &spot, &chosen, &filled, Shown::default()).await;
    }
    let actor = me.actor(&context);
    let order = order(&me, &spot, &chosen, &filled, &job)?;
    let id = match context.app.submissions.submit(&actor, order).await {
        Ok(id) => id,
        Err(NotTaken::Store(error)) => return Err(error.into()),
        Err(NotTaken::Auth(error)) => return Err(error.into()),
        Err(problem @ (NotTaken::Unfit(_) | NotTaken::NoWay | NotTaken::TooMany)) => {
            let notice = Notice {
                kind: "danger",
                title: "It was not submitted".to_owned(),
                text: problem.to_string(),
                said: String::new(),
                accounts: Vec::new(),
            };
            let shown = Shown { notice: Some(notice), ..Shown::default() };
            return wrong(&context, &me, &spot, &chosen, &filled, shown).await;
        }
    };
    let now = context.app.submissions.wait(id, PATIENCE).await?;
    let refused = now.is_some_and(|one| one.state == SubmissionState::Refused);
    // A refusal is shown where it can be mended.
    let to =
        if refused { format!("/compose/again/{}", id.0) } else { format!("/submissions/{}", id.0) };
    Ok(Redirect::to(&to).into_response())
}

fn order(
    me: &Me,
    spot: &Spot,
    chosen: &Chosen,
    filled: &Filled,
    job: &Job,
) -> Result<Order, AppError> {
    let script = job.script();
    let name =
        read_back::directives(&script).into_iter().rev().find(|(option, _)| option == "--job-name");
    let json = |error: serde_json::Error| AppError::Internal(error.to_string());
    // Someone who goes back, changes something and sends it again wants another job.
    let hash = Sha256::digest(script.as_bytes());
    let hash = hash[..8].iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    Ok(Order {
        person: me.0.person.id,
        cluster: spot.cluster.id,
        form: format!("{}:{hash}", filled.nonce.chars().take(64).collect::<String>()),
        job_name: name.and_then(|(_, name)| name).unwrap_or_else(|| "job".to_owned()),
        folders: folders(&script),
        recipe: chosen.address.clone(),
        recipe_version: chosen.version,
        recipe_id: chosen.id,
        answers: serde_json::to_string(filled).map_err(json)?,
        sweep: match &job.composed.sweep {
            Some(sweep) => serde_json::to_string(sweep).map_err(json)?,
            None => String::new(),
        },
        script,
    })
}
