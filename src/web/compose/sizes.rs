//! What earlier runs of the same thing used, and what that means for this request. Loaded after the page is there.

use askama::Template;
use serde::Deserialize;

use super::super::Answer;
use super::super::extract::{Context, Me, Path, Query};
use super::super::page::show;
use super::chosen::{self, Chosen};
use super::filled::Filled;
use super::meaning::taken;
use super::place::{self, Spot};
use crate::auth::Permission;
use crate::error::AppError;
use crate::explain::right_size::right_size;
use crate::jobs::QueueKey;
use crate::recipes::compose::compose;
use crate::recipes::form::Answers;
use crate::store;

/// So many earlier runs are looked at.
const MOST_RUNS: usize = 10;
/// Among so many submissions they are looked for.
const LOOKED_AT: i64 = 50;

#[derive(Template)]
#[template(path = "compose/sizes.html")]
struct Sizes {
    base: String,
    proposals: Vec<Proposal>,
    /// All of them at once.
    all: Option<String>,
}

struct Proposal {
    sentence: String,
    value: String,
    was: String,
    take: Option<String>,
}

/// The job that is run again, if one is.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Ask {
    job: Option<u64>,
}

/// What to take over.
pub async fn get(
    context: Context,
    me: Me,
    Path((slug, address)): Path<(String, String)>,
    Query(ask): Query<Ask>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let spot = place::one(&context, &me, &slug).await?;
    let chosen = chosen::find(&context, &me, &address).await?;
    let key = QueueKey { person: me.0.person.id, cluster: spot.cluster.id };
    let (answers, mut numbers) = earlier(&context, key, &chosen, &spot, ask.job).await?;
    numbers.truncate(MOST_RUNS);
    let runs = if numbers.is_empty() {
        Vec::new()
    } else {
        context.app.past_runs.runs(key, &numbers).await?
    };
    let request = compose(&chosen.form, &answers, &spot.place).request;
    let found = right_size(&runs, &request, spot.place.site.jobs.whole_node);
    let mut changes = Vec::new();
    let mut proposals = Vec::new();
    for one in found {
        let change = (one.sets, one.value.clone());
        let take = taken(&chosen, std::slice::from_ref(&change));
        if take.is_some() {
            changes.push(change);
        }
        proposals.push(Proposal { sentence: one.sentence, value: one.value, was: one.was, take });
    }
    let all = if changes.len() > 1 { taken(&chosen, &changes) } else { None };
    show(&Sizes { base: format!("/compose/{slug}/{address}"), proposals, all })
}

/// The jobs that ran the same before, the newest first, and what was asked for in the newest.
async fn earlier(
    context: &Context,
    key: QueueKey,
    chosen: &Chosen,
    spot: &Spot,
    job: Option<u64>,
) -> Result<(Answers, Vec<u64>), AppError> {
    let mut db = context.app.store.read().await?;
    let all = store::submissions::list_by_recipe(
        &mut db,
        key.person,
        key.cluster,
        &chosen.address,
        LOOKED_AT,
    )
    .await?;
    let repeated = match job.and_then(|job| i64::try_from(job).ok()) {
        Some(number) => {
            store::submissions::find_by_job(&mut db, key.person, key.cluster, number).await?
        }
        None => None,
    };
    drop(db);
    let mut answers = chosen.form.defaults(&spot.place);
    let filled = |text: &str| serde_json::from_str::<Filled>(text).unwrap_or_default().answers;
    if let Some(repeated) = &repeated {
        answers.extend(filled(&repeated.answers));
    }
    let mut numbers: Vec<u64> = job.into_iter().collect();
    // What a recipe is about is its own first question that must be answered: the script, the command.
    let about =
        chosen.form.sections.first().and_then(|own| own.questions.iter().find(|one| one.required));
    let wanted = about
        .and_then(|question| answers.get(&question.key))
        .filter(|text| !text.is_empty())
        .cloned();
    for one in &all {
        let theirs = filled(&one.answers);
        let same = match (&about, &wanted) {
            (Some(question), Some(wanted)) => theirs.get(&question.key) == Some(wanted),
            // Nothing is chosen yet: the last runs of this recipe are the best guess.
            _ => true,
        };
        let number = one.number.and_then(|number| u64::try_from(number).ok()).filter(|_| same);
        numbers.extend(number.filter(|number| !numbers.contains(number)));
    }
    Ok((answers, numbers))
}
