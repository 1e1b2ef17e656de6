//! What a job means before it is submitted: what it costs, and whether it can ever start. From what is known already.

use super::chosen::Chosen;
use super::place::Spot;
use crate::explain::can_start::{Severity, problems};
use crate::explain::cost::{Cost, cost, left};
use crate::recipes::request::{Request, Sets};
use crate::sites;

/// What it means.
pub struct Meaning {
    /// What it costs.
    pub cost: Cost,
    /// What would be cheaper: a sentence, and the answers to take over.
    pub cheaper: Vec<(String, String)>,
    /// What stands in its way for certain: a sentence, and the question it is about.
    pub never: Vec<(String, String)>,
    /// What may stand in its way.
    pub perhaps: Vec<(String, String)>,
}

/// Says what a request means at a place. `told`: what the site says that projects have left.
pub fn meaning(
    chosen: &Chosen,
    request: &Request,
    spot: &Spot,
    told: Option<&sites::cost::CostReport>,
) -> Meaning {
    let left = told.zip(request.account.as_deref()).and_then(|(told, one)| left(told, one));
    let cost = cost(request, &spot.place, left);
    let cheaper = cost
        .cheaper
        .iter()
        .filter_map(|one| Some((one.sentence.clone(), taken(chosen, &one.changes)?)))
        .collect();
    let (mut never, mut perhaps) = (Vec::new(), Vec::new());
    for problem in problems(request, &spot.place) {
        let key = question(chosen, problem.sets);
        let list = if problem.severity == Severity::Refused { &mut never } else { &mut perhaps };
        list.push((problem.sentence, key));
    }
    Meaning { cost, cheaper, never, perhaps }
}

/// The key of the question that sets a part of the request; empty if there is none.
pub fn question(chosen: &Chosen, sets: Sets) -> String {
    chosen.form.that_sets(sets).map(|question| question.key.clone()).unwrap_or_default()
}

/// Answers to take over, as a button carries them. Nothing if the form cannot say one of them.
pub fn taken(chosen: &Chosen, changes: &[(Sets, String)]) -> Option<String> {
    let mut text = form_urlencoded::Serializer::new(String::new());
    for (sets, value) in changes {
        let question = chosen.form.that_sets(*sets)?;
        if chosen.form.locked.contains(&question.key) {
            return None;
        }
        text.append_pair(&question.key, value);
    }
    (!changes.is_empty()).then(|| text.finish())
}
