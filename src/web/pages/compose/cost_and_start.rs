//! What a job costs and whether it can ever start, from what is already known, before it is submitted.

use crate::explain::can_start::{ProblemSeverity, find_problems};
use crate::explain::cost::{JobCostEstimate, estimate_cost, remaining_quota};
use crate::recipes::request::{JobRequest, RequestField};
use crate::sites;
use crate::web::pages::compose::compose_target::ComposeTarget;
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

/// Assesses a request on a cluster. `told` is what the site reported about the hours that accounts have left.
pub fn assess_cost_and_start(
    chosen: &ChosenRecipe,
    request: &JobRequest,
    spot: &ComposeTarget,
    told: Option<&sites::cost::CostReport>,
) -> CostAndBlockers {
    let left = told.zip(request.account.as_deref()).and_then(|(told, one)| remaining_quota(told, one));
    let cost = estimate_cost(request, &spot.compose_context, left);
    let cheaper = cost
        .cheaper
        .iter()
        .filter_map(|one| Some((one.sentence.clone(), encode_changes(chosen, &one.changes)?)))
        .collect();
    let (mut never, mut perhaps) = (Vec::new(), Vec::new());
    for problem in find_problems(request, &spot.compose_context) {
        let key = question_key(chosen, problem.sets);
        let list = if problem.severity == ProblemSeverity::Refused { &mut never } else { &mut perhaps };
        list.push((problem.sentence, key));
    }
    CostAndBlockers { cost, cheaper, blockers: never, warnings: perhaps }
}

/// The key of the question that sets this part of the request; empty if there is none.
pub fn question_key(chosen: &ChosenRecipe, sets: RequestField) -> String {
    chosen.form.find_setting(sets).map(|question| question.key.clone()).unwrap_or_default()
}

/// Answers to apply, encoded for a button; `None` if the form can't express one of them.
pub fn encode_changes(chosen: &ChosenRecipe, changes: &[(RequestField, String)]) -> Option<String> {
    let mut text = form_urlencoded::Serializer::new(String::new());
    for (sets, value) in changes {
        let question = chosen.form.find_setting(*sets)?;
        if chosen.form.locked.contains(&question.key) {
            return None;
        }
        text.append_pair(&question.key, value);
    }
    (!changes.is_empty()).then(|| text.finish())
}
