//! When a job would start, and what would start sooner. Asked of the cluster when a person presses for it, with one
//! command; other clusters that they are connected to are asked with one each.

use askama::Template;
use futures_util::future::join_all;

use super::super::Answer;
use super::super::extract::{Context, Form, Me, Path};
use super::super::page::show;
use super::chosen::{self, Chosen};
use super::filled::{Fields, Filled, Job};
use super::meaning::taken;
use super::place::{self, Spot};
use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::cluster::estimate::estimate_starts;
use crate::explain::alternatives::{alternatives, compare, start_words};
use crate::explain::sbatch;
use crate::jobs::QueueKey;
use crate::recipes::compose::compose;
use crate::recipes::fits::why_not;
use crate::recipes::request::Sets;
use crate::slurm::test_only;

/// So many other clusters are asked at most.
const MOST_OTHERS: usize = 3;

#[derive(Template)]
#[template(path = "compose/estimate.html")]
struct Estimate {
    base: String,
    cluster: String,
    /// What must be mended before anything can be asked.
    unfinished: bool,
    /// Why there is no answer.
    problem: String,
    /// When it would start, as it is.
    start: Option<(String, UnixTime)>,
    /// Why the cluster would not take it.
    refused: Option<sbatch::Refused>,
    sooner: Vec<Sooner>,
    elsewhere: Vec<Elsewhere>,
    asked: UnixTime,
}

struct Sooner {
    sentence: String,
    at: UnixTime,
    take: Option<String>,
}

struct Elsewhere {
    title: String,
    href: String,
    sentence: String,
}

/// Asks.
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
    let job = Job::of(&chosen.form, &filled, &spot.place, &[]);
    let now = context.app.clock.now();
    let mut answer = Estimate {
        base: format!("/compose/{slug}/{address}"),
        cluster: spot.cluster.title.clone(),
        unfinished: !job.composed.problems.is_empty(),
        problem: String::new(),
        start: None,
        refused: None,
        sooner: Vec::new(),
        elsewhere: Vec::new(),
        asked: now,
    };
    if answer.unfinished {
        return show(&answer);
    }
    let others = elsewhere(&context, &me, &chosen, &filled, &spot, now);
    let ((), others) = tokio::join!(here(&context, &me, &chosen, &spot, &job, &mut answer), others);
    answer.elsewhere = others;
    show(&answer)
}

async fn here(
    context: &Context,
    me: &Me,
    chosen: &Chosen,
    spot: &Spot,
    job: &Job,
    answer: &mut Estimate,
) {
    let request = job.request();
    let tried = alternatives(&request, &spot.place);
    let mut variants = vec![Vec::new()];
    variants.extend(tried.iter().map(|one| one.args.clone()));
    let mut answers = match ask(context, me, spot, &job.script(), &variants).await {
        Ok(answers) => answers.into_iter(),
        Err(problem) => {
            answer.problem = problem;
            return;
        }
    };
    let now = answer.asked;
    let Some(asked) = answers.next() else { return };
    match &asked {
        test_only::TestOnlyAnswer::Starts(start) => {
            answer.start = start_words(now, &asked).map(|words| (words, start.at));
        }
        test_only::TestOnlyAnswer::Refused(said) => answer.refused = Some(sbatch::read(said)),
        test_only::TestOnlyAnswer::Unclear => {
            "The scheduler gave no estimate. It may be busy; submitting still works."
                .clone_into(&mut answer.problem);
        }
    }
    let tried: Vec<_> = tried.into_iter().zip(answers).collect();
    for row in compare(now, &asked, &tried) {
        let take = taken(chosen, &row.changes);
        answer.sooner.push(Sooner { sentence: row.sentence, at: row.at, take });
    }
}

async fn ask(
    context: &Context,
    me: &Me,
    spot: &Spot,
    script: &str,
    variants: &[Vec<String>],
) -> Result<Vec<test_only::TestOnlyAnswer>, String> {
    let key = QueueKey { person: me.0.person.id, cluster: spot.cluster.id };
    let line = context.app.connections.connection(key.line()).map_err(|error| error.to_string())?;
    estimate_starts(&line, script, variants).await.map_err(|error| error.to_string())
}

/// The same on other clusters: what differs there by nature is chosen anew.
async fn elsewhere(
    context: &Context,
    me: &Me,
    chosen: &Chosen,
    filled: &Filled,
    here: &Spot,
    now: UnixTime,
) -> Vec<Elsewhere> {
    let Ok(spots) = place::all(context, me).await else { return Vec::new() };
    let others = spots
        .into_iter()
        .filter(|spot| spot.is_up && spot.cluster.id != here.cluster.id)
        .filter(|spot| why_not(&chosen.recipe, &spot.place).is_none())
        .take(MOST_OTHERS);
    let asked = others.map(async |spot| {
        let mut answers = filled.answers.clone();
        let defaults = chosen.form.defaults(&spot.place);
        for sets in [Sets::Account, Sets::GpuModel, Sets::Partition, Sets::Folder] {
            if let Some(question) = chosen.form.that_sets(sets) {
                let first = defaults.get(&question.key).cloned().unwrap_or_default();
                answers.insert(question.key.clone(), first);
            }
        }
        let job = compose(&chosen.form, &answers, &spot.place);
        if !job.problems.is_empty() {
            return None;
        }
        let answer = ask(context, me, &spot, &job.script(), &[Vec::new()]).await.ok()?;
        let sentence = start_words(now, answer.first()?)?;
        Some(Elsewhere {
            title: spot.cluster.title.clone(),
            href: format!("/compose/{}/{}", spot.cluster.slug, chosen.address),
            sentence,
        })
    });
    join_all(asked).await.into_iter().flatten().collect()
}
