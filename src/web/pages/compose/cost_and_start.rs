//! What a job costs and whether it can ever start, from what is already known, before it is submitted.

use crate::explain::can_start::{RequestProblemSeverity, find_problems};
use crate::explain::cost::{JobCostEstimate, estimate_cost, remaining_quota};
use crate::recipes::request::{JobRequest, RequestField};
use crate::sites::cost::AllocationBalanceReport;
use crate::web::pages::compose::job_draft::JobDraft;
use crate::web::pages::compose::recipe_lookup::ChosenRecipe;

pub struct CostAndBlockers {
    pub cost: JobCostEstimate,
    /// Cheaper alternatives: a sentence, and the answers to apply.
    pub cheaper: Vec<(String, String)>,
    /// What is certain to keep it from starting: a sentence, and the question it is about.
    pub blockers: Vec<(String, String)>,
    /// What may keep it from starting.
    pub warnings: Vec<(String, String)>,
}

/// Assesses a request on a cluster. `reported` is what the site said about the hours that accounts have left.
pub fn assess_cost_and_start(
    draft: &JobDraft,
    request: &JobRequest,
    reported: Option<&AllocationBalanceReport>,
) -> CostAndBlockers {
    let (chosen, cluster) = (&draft.chosen, &draft.target.compose_context);
    let left = reported.zip(request.account.as_deref()).and_then(|(cost, account)| remaining_quota(cost, account));
    let cost = estimate_cost(request, cluster, left);
    let cheaper = cost.cheaper.iter();
    let cheaper =
        cheaper.filter_map(|way| Some((way.sentence.clone(), encode_changes(chosen, &way.changes)?))).collect();
    let (mut blockers, mut warnings) = (Vec::new(), Vec::new());
    for problem in find_problems(request, cluster) {
        let key = question_key(chosen, problem.sets);
        let list = if problem.severity == RequestProblemSeverity::Refused { &mut blockers } else { &mut warnings };
        list.push((problem.sentence, key));
    }
    CostAndBlockers { cost, cheaper, blockers, warnings }
}

/// The key of the question that sets this part of the request; empty if there is none.
pub fn question_key(chosen: &ChosenRecipe, sets: RequestField) -> String {
    let shown = chosen.form.find_setting(sets).filter(|question| !chosen.form.hidden.contains(&question.key));
    shown.map(|question| question.key.clone()).unwrap_or_default()
}

/// Answers to apply, encoded for a button; `None` if the form can't express one of them.
pub fn encode_changes(chosen: &ChosenRecipe, changes: &[(RequestField, String)]) -> Option<String> {
    let mut text = form_urlencoded::Serializer::new(String::new());
    for (sets, value) in changes {
        let question = chosen.form.find_setting(*sets)?;
        if chosen.form.locked.contains(&question.key) || chosen.form.hidden.contains(&question.key) {
            return None;
        }
        text.append_pair(&question.key, value);
    }
    (!changes.is_empty()).then(|| text.finish())
}
