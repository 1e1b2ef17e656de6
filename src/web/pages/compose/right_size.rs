//! What earlier runs of the same job used, and what that means for what the form requests now. Loaded after the page,
//! and after changes.

use askama::Template;

use crate::cluster::ClusterAccountId;
use crate::error::AppError;
use crate::explain::right_size::{RequestFieldProposal, right_size};
use crate::slurm::job::JobId;
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::RequestContext;
use crate::web::http::page_frame::respond;
use crate::web::pages::compose::cost_and_start::encode_changes;
use crate::web::pages::compose::form_values::JobFormValues;
use crate::web::pages::compose::job_draft::{ComposeRequest, JobDraft};

/// How many earlier runs are compared.
const MAX_RUNS: usize = 10;
/// How many submissions are searched for them.
const MAX_SUBMISSIONS: i64 = 50;

#[derive(Template)]
#[template(path = "compose/right_size_fragment.html")]
struct RightSizeFragment {
    base: String,
    /// What is proposed, each with the answers that a button applies.
    proposals: Vec<(RequestFieldProposal, Option<String>)>,
    /// Applies all suggestions at once.
    all: Option<String>,
}

pub async fn post(request: ComposeRequest) -> HandlerResult {
    let (context, _, draft) = request.into_draft().await?;
    let mut numbers = find_earlier_runs(&context, &draft).await?;
    numbers.truncate(MAX_RUNS);
    let JobDraft { target, chosen, .. } = &draft;
    let key = target.account.id;
    let runs = if numbers.is_empty() { Vec::new() } else { context.app.past_runs.load_runs(key, &numbers).await? };
    let found = right_size(&runs, &draft.compose().final_request(), target.compose_context.site.jobs.whole_node);
    let mut changes = Vec::new();
    let mut proposals = Vec::new();
    for proposal in found {
        let change = (proposal.sets, proposal.value.clone());
        let take = encode_changes(chosen, std::slice::from_ref(&change));
        if take.is_some() {
            changes.push(change);
        }
        proposals.push((proposal, take));
    }
    let all = if changes.len() > 1 { encode_changes(chosen, &changes) } else { None };
    respond(&RightSizeFragment { base: draft.path(), proposals, all })
}

/// Earlier jobs that ran what the form is about, newest first; the job that it repeats comes before all others.
async fn find_earlier_runs(
    context: &RequestContext,
    JobDraft { target, chosen, values }: &JobDraft,
) -> Result<Vec<u64>, AppError> {
    let ClusterAccountId { person, cluster } = target.account.id;
    let mut db = context.app.store.read().await?;
    let all = store::submissions::list_by_recipe(&mut db, person, cluster, &chosen.address, MAX_SUBMISSIONS).await?;
    drop(db);
    let parse_answers = |text: &str| serde_json::from_str::<JobFormValues>(text).unwrap_or_default().answers;
    let mut numbers: Vec<u64> = values.repeats.parse::<JobId>().map(|id| id.number).into_iter().collect();
    // A recipe is about its first own required question: the script or the command.
    let about = chosen.form.sections.first().and_then(|own| own.questions.iter().find(|question| question.required));
    let wanted = about.and_then(|question| values.answers.get(&question.key)).filter(|text| !text.is_empty());
    for earlier in &all {
        let theirs = parse_answers(&earlier.answers);
        let same = match (about, wanted) {
            (Some(question), Some(wanted)) => theirs.get(&question.key) == Some(wanted),
            // Nothing is chosen yet: the last runs of this recipe are the best guess.
            _ => true,
        };
        let number = earlier.number.and_then(|number| u64::try_from(number).ok()).filter(|_| same);
        numbers.extend(number.filter(|number| !numbers.contains(number)));
    }
    Ok(numbers)
}
