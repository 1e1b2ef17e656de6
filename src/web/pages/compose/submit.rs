//! Submitting the form: one press, one job, however often the request arrives.

use std::time::Duration;

use axum::response::{IntoResponse as _, Redirect};
use sha2::{Digest as _, Sha256};

use crate::auth::Permission;
use crate::error::AppError;
use crate::jobs::submissions::{SubmissionState, SubmitError, SubmitRequest};
use crate::recipes::compose::ComposedJob;
use crate::recipes::script_import::read_request;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, RequestContext};
use crate::web::pages::compose::compose_target::{self, ComposeTarget};
use crate::web::pages::compose::form::{ComposeNotice, ComposePageExtras, show_with_problems};
use crate::web::pages::compose::form_values::{FormFields, JobFormValues, required_folders};
use crate::web::pages::compose::recipe_lookup::{self, ChosenRecipe};

/// How long the browser waits for the cluster; after that, a page shows the progress.
const SUBMIT_WAIT: Duration = Duration::from_secs(6);

pub async fn post(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((slug, address)): PathParams<(String, String)>,
    FormBody(fields): FormBody<FormFields>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let spot = compose_target::find_target(&context, &me, &slug).await?;
    let chosen = recipe_lookup::find_recipe(&context, &me, &address).await?;
    let filled = JobFormValues::parse(fields);
    if filled.nonce.trim().is_empty() {
        return Err(AppError::BadRequest("a form without its mark".to_owned()));
    }
    let job = filled.compose(&chosen.form, &spot.compose_context, &[]);
    if !job.problems.is_empty() {
        return show_with_problems(&context, &me, &spot, &chosen, &filled, ComposePageExtras::default()).await;
    }
    let actor = me.actor(&context);
    let order = build_submit_request(&me, &spot, &chosen, &filled, &job)?;
    let id = match context.app.submissions.submit(&actor, order).await {
        Ok(id) => id,
        Err(SubmitError::Store(error)) => return Err(error.into()),
        Err(SubmitError::Auth(error)) => return Err(error.into()),
        Err(problem @ (SubmitError::Invalid(_) | SubmitError::NotConnected | SubmitError::TooMany)) => {
            let notice = ComposeNotice {
                kind: "danger",
                title: "It was not submitted".to_owned(),
                text: problem.to_string(),
                said: String::new(),
                accounts: Vec::new(),
            };
            let shown = ComposePageExtras { notice: Some(notice), ..ComposePageExtras::default() };
            return show_with_problems(&context, &me, &spot, &chosen, &filled, shown).await;
        }
    };
    let now = context.app.submissions.wait(id, SUBMIT_WAIT).await?;
    let refused = now.is_some_and(|one| one.state == SubmissionState::Refused);
    // Show a refusal where it can be fixed.
    let to = if refused { format!("/compose/again/{}", id.0) } else { format!("/submissions/{}", id.0) };
    Ok(Redirect::to(&to).into_response())
}

fn build_submit_request(
    me: &CurrentPerson,
    spot: &ComposeTarget,
    chosen: &ChosenRecipe,
    filled: &JobFormValues,
    job: &ComposedJob,
) -> Result<SubmitRequest, AppError> {
    let script = job.final_script();
    let json = |error: serde_json::Error| AppError::Internal(error.to_string());
    // Someone who goes back, changes something and submits again wants another job.
    let hash = Sha256::digest(script.as_bytes());
    let hash = hash[..8].iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    Ok(SubmitRequest {
        person: me.0.person.id,
        cluster: spot.cluster().id,
        form_token: format!("{}:{hash}", filled.nonce.chars().take(64).collect::<String>()),
        job_name: read_request(&script).name.unwrap_or_else(|| "job".to_owned()),
        folders: required_folders(&script),
        recipe: chosen.address.clone(),
        recipe_version: chosen.version,
        recipe_id: chosen.id,
        answers: serde_json::to_string(filled).map_err(json)?,
        sweep: match &job.sweep {
            Some(sweep) => serde_json::to_string(sweep).map_err(json)?,
            None => String::new(),
        },
        script,
    })
}
