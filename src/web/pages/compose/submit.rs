//! Submitting the form: one press, one job, however often the request arrives.

use std::time::Duration;

use axum::response::{IntoResponse as _, Redirect};
use sha2::{Digest as _, Sha256};

use crate::error::AppError;
use crate::jobs::submissions::{SubmissionState, SubmitError, SubmitRequest};
use crate::recipes::compose::ComposedJob;
use crate::recipes::script_import::read_request;
use crate::web::HandlerResult;
use crate::web::http::extractors::CurrentPerson;
use crate::web::pages::compose::form::{ComposeNotice, ComposePageExtras, show_with_problems};
use crate::web::pages::compose::form_values::required_folders;
use crate::web::pages::compose::job_draft::{ComposeRequest, JobDraft};

/// How long the browser waits for the cluster; after that, a page shows the progress.
const SUBMIT_WAIT: Duration = Duration::from_secs(6);

pub async fn post(request: ComposeRequest) -> HandlerResult {
    let (context, me, draft) = request.into_draft().await?;
    if draft.values.nonce.trim().is_empty() {
        return Err(AppError::BadRequest("the form is incomplete; reload the page and try again".to_owned()));
    }
    let job = draft.compose();
    if !job.problems.is_empty() {
        return show_with_problems(&context, &me, &draft, ComposePageExtras::default()).await;
    }
    let request = build_submit_request(&me, &draft, &job)?;
    let id = match context.app.submissions.submit(&me.actor(&context), request).await {
        Ok(id) => id,
        Err(SubmitError::Store(error)) => return Err(error.into()),
        Err(SubmitError::Auth(error)) => return Err(error.into()),
        Err(problem @ (SubmitError::Invalid(_) | SubmitError::NotConnected | SubmitError::TooMany)) => {
            let notice = ComposeNotice::new("danger", "The job wasn't submitted", problem.to_string());
            let extras = ComposePageExtras { notice: Some(notice), ..ComposePageExtras::default() };
            return show_with_problems(&context, &me, &draft, extras).await;
        }
    };
    let submission = context.app.submissions.wait(id, SUBMIT_WAIT).await?;
    let is_refused = submission.is_some_and(|submission| submission.state == SubmissionState::Refused);
    // Show a refusal where it can be fixed.
    let to = if is_refused { format!("/compose/again/{}", id.0) } else { format!("/submissions/{}", id.0) };
    Ok(Redirect::to(&to).into_response())
}

fn build_submit_request(me: &CurrentPerson, draft: &JobDraft, job: &ComposedJob) -> Result<SubmitRequest, AppError> {
    let JobDraft { target, chosen, values } = draft;
    let script = job.final_script();
    let json = |error: serde_json::Error| AppError::Internal(error.to_string());
    // Someone who goes back, changes something and submits again wants another job.
    let hash = Sha256::digest(script.as_bytes());
    let hash = hash[..8].iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    Ok(SubmitRequest {
        person: me.0.person.id,
        cluster: target.cluster().id,
        form_token: format!("{}:{hash}", values.nonce.chars().take(64).collect::<String>()),
        job_name: read_request(&script).name.unwrap_or_else(|| "job".to_owned()),
        folders: required_folders(&script),
        recipe: chosen.address.clone(),
        recipe_version: chosen.version,
        recipe_id: chosen.id,
        answers: serde_json::to_string(values).map_err(json)?,
        sweep: match &job.sweep {
            Some(sweep) => serde_json::to_string(sweep).map_err(json)?,
            None => String::new(),
        },
        script,
    })
}
