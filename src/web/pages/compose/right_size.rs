//! What earlier runs of the same job used, and what that means for this request. Loaded after the page.

use askama::Template;
use serde::Deserialize;

use crate::auth::Permission;
use crate::cluster::ClusterAccountId;
use crate::error::AppError;
use crate::explain::right_size::{RequestFieldProposal, right_size};
use crate::recipes::compose::compose;
use crate::recipes::form::FormAnswers;
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, PathParams, QueryParams, RequestContext};
use crate::web::http::page_frame::respond;
use crate::web::pages::compose::compose_target::{self, ComposeTarget};
use crate::web::pages::compose::cost_and_start::encode_changes;
use crate::web::pages::compose::form_values::JobFormValues;
use crate::web::pages::compose::recipe_lookup::{self, ChosenRecipe};

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

/// The job that is run again, if there is one.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct RightSizeQuery {
    job: Option<u64>,
}

pub async fn get(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((slug, address)): PathParams<(String, String)>,
    QueryParams(query): QueryParams<RightSizeQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let target = compose_target::find_target(&context, &me, &slug).await?;
    let chosen = recipe_lookup::find_recipe(&context, &me, &address).await?;
    let key = target.account.id;
    let (answers, mut numbers) = find_earlier_runs(&context, &target, &chosen, query.job).await?;
    numbers.truncate(MAX_RUNS);
    let runs = if numbers.is_empty() { Vec::new() } else { context.app.past_runs.load_runs(key, &numbers).await? };
    let request = compose(&chosen.form, &answers, &target.compose_context).request;
    let found = right_size(&runs, &request, target.compose_context.site.jobs.whole_node);
    let mut changes = Vec::new();
    let mut proposals = Vec::new();
    for proposal in found {
        let change = (proposal.sets, proposal.value.clone());
        let take = encode_changes(&chosen, std::slice::from_ref(&change));
        if take.is_some() {
            changes.push(change);
        }
        proposals.push((proposal, take));
    }
    let all = if changes.len() > 1 { encode_changes(&chosen, &changes) } else { None };
    respond(&RightSizeFragment { base: format!("/compose/{slug}/{address}"), proposals, all })
}

/// Earlier jobs that ran the same thing, newest first, and what the newest requested.
async fn find_earlier_runs(
    context: &RequestContext,
    target: &ComposeTarget,
    chosen: &ChosenRecipe,
    job: Option<u64>,
) -> Result<(FormAnswers, Vec<u64>), AppError> {
    let ClusterAccountId { person, cluster } = target.account.id;
    let mut db = context.app.store.read().await?;
    let all = store::submissions::list_by_recipe(&mut db, person, cluster, &chosen.address, MAX_SUBMISSIONS).await?;
    let repeated = match job.and_then(|job| i64::try_from(job).ok()) {
        Some(number) => store::submissions::find_by_job(&mut db, person, cluster, number).await?,
        None => None,
    };
    drop(db);
    let mut answers = chosen.form.defaults(&target.compose_context);
    let parse_answers = |text: &str| serde_json::from_str::<JobFormValues>(text).unwrap_or_default().answers;
    if let Some(repeated) = &repeated {
        answers.extend(parse_answers(&repeated.answers));
    }
    let mut numbers: Vec<u64> = job.into_iter().collect();
    // A recipe is about its first own required question: the script or the command.
    let about = chosen.form.sections.first().and_then(|own| own.questions.iter().find(|question| question.required));
    let wanted = about.and_then(|question| answers.get(&question.key)).filter(|text| !text.is_empty()).cloned();
    for earlier in &all {
        let theirs = parse_answers(&earlier.answers);
        let same = match (&about, &wanted) {
            (Some(question), Some(wanted)) => theirs.get(&question.key) == Some(wanted),
            // Nothing is chosen yet: the last runs of this recipe are the best guess.
            _ => true,
        };
        let number = earlier.number.and_then(|number| u64::try_from(number).ok()).filter(|_| same);
        numbers.extend(number.filter(|number| !numbers.contains(number)));
    }
    Ok((answers, numbers))
}
