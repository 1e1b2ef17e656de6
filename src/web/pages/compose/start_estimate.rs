//! When a job would start, and what would start sooner. Asks the cluster when a person presses the button, with one
//! command; each other connected cluster is asked with one command too.

use askama::Template;
use futures_util::future::join_all;

use crate::clock::UnixTime;
use crate::cluster::estimate::estimate_starts;
use crate::explain::alternatives::{alternatives, compare_starts, start_words};
use crate::explain::sbatch;
use crate::recipes::compose::{ComposedJob, compose};
use crate::recipes::request::RequestField;
use crate::recipes::requirements::unmet_requirement;
use crate::slurm::test_only;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::page_frame::respond;
use crate::web::pages::compose::compose_target::{self, ComposeTarget};
use crate::web::pages::compose::cost_and_start::encode_changes;
use crate::web::pages::compose::job_draft::{ComposeRequest, JobDraft};

/// How many other clusters are asked at most.
const MAX_OTHER_CLUSTERS: usize = 3;

#[derive(Template)]
#[template(path = "compose/start_estimate_fragment.html")]
struct StartEstimateFragment {
    base: String,
    cluster: String,
    /// Whether something must be fixed before a cluster can be asked.
    unfinished: bool,
    /// Why there is no answer.
    problem: String,
    /// When it would start as it is.
    start: Option<(String, UnixTime)>,
    /// Why the cluster would refuse it.
    refused: Option<sbatch::SbatchRefusal>,
    sooner: Vec<SoonerStartRow>,
    elsewhere: Vec<OtherClusterStartRow>,
    asked: UnixTime,
}

struct SoonerStartRow {
    sentence: String,
    at: UnixTime,
    take: Option<String>,
}

struct OtherClusterStartRow {
    title: String,
    href: String,
    sentence: String,
}

pub async fn post(request: ComposeRequest) -> HandlerResult {
    let (context, me, draft) = request.into_draft().await?;
    let job = draft.compose();
    let now = context.app.clock.now();
    let mut answer = StartEstimateFragment {
        base: draft.path(),
        cluster: draft.target.cluster().title.clone(),
        unfinished: !job.problems.is_empty(),
        problem: String::new(),
        start: None,
        refused: None,
        sooner: Vec::new(),
        elsewhere: Vec::new(),
        asked: now,
    };
    if answer.unfinished {
        return respond(&answer);
    }
    let others = estimate_elsewhere(&context, &me, &draft, now);
    let ((), others) = tokio::join!(estimate_here(&context, &draft, &job, &mut answer), others);
    answer.elsewhere = others;
    respond(&answer)
}

async fn estimate_here(
    context: &RequestContext,
    draft: &JobDraft,
    job: &ComposedJob,
    answer: &mut StartEstimateFragment,
) {
    let tried = alternatives(&job.final_request(), &draft.target.compose_context);
    let mut variants = vec![Vec::new()];
    variants.extend(tried.iter().map(|alternative| alternative.args.clone()));
    let mut answers = match ask_cluster(context, &draft.target, &job.final_script(), &variants).await {
        Ok(answers) => answers.into_iter(),
        Err(problem) => {
            answer.problem = problem;
            return;
        }
    };
    let now = answer.asked;
    let Some(as_is) = answers.next() else { return };
    match &as_is {
        test_only::TestOnlyAnswer::Starts(start) => {
            answer.start = start_words(now, &as_is).map(|words| (words, start.at));
        }
        test_only::TestOnlyAnswer::Refused(said) => {
            answer.refused = Some(sbatch::explain_sbatch(said));
        }
        test_only::TestOnlyAnswer::Unclear => {
            "The cluster gave no estimate and may be busy. You can still submit the job."
                .clone_into(&mut answer.problem);
        }
    }
    let tried: Vec<_> = tried.into_iter().zip(answers).collect();
    for row in compare_starts(now, &as_is, &tried) {
        let take = encode_changes(&draft.chosen, &row.changes);
        answer.sooner.push(SoonerStartRow { sentence: row.sentence, at: row.at, take });
    }
}

async fn ask_cluster(
    context: &RequestContext,
    target: &ComposeTarget,
    script: &str,
    variants: &[Vec<String>],
) -> Result<Vec<test_only::TestOnlyAnswer>, String> {
    let connection = target.account.connection(&context.app.connections).map_err(|error| error.to_string())?;
    estimate_starts(&connection, script, variants).await.map_err(|error| error.to_string())
}

/// The same on other clusters: whatever differs between clusters is chosen again.
async fn estimate_elsewhere(
    context: &RequestContext,
    me: &CurrentPerson,
    draft: &JobDraft,
    now: UnixTime,
) -> Vec<OtherClusterStartRow> {
    let chosen = &draft.chosen;
    let Ok(targets) = compose_target::list_choices(context, me, "").await else { return Vec::new() };
    let others = targets
        .into_iter()
        .filter(|target| target.is_connected && target.cluster().id != draft.target.cluster().id)
        .filter(|target| unmet_requirement(&chosen.recipe, &target.compose_context).is_none())
        .take(MAX_OTHER_CLUSTERS);
    let asked = others.map(async |target| {
        let mut answers = draft.values.answers.clone();
        let defaults = chosen.form.defaults(&target.compose_context);
        for sets in [RequestField::Account, RequestField::GpuModel, RequestField::Partition, RequestField::Folder] {
            if let Some(question) = chosen.form.find_setting(sets) {
                let first = defaults.get(&question.key).cloned().unwrap_or_default();
                answers.insert(question.key.clone(), first);
            }
        }
        let job = compose(&chosen.form, &answers, &target.compose_context);
        if !job.problems.is_empty() {
            return None;
        }
        let answer = ask_cluster(context, &target, &job.build_script(), &[Vec::new()]).await.ok()?;
        let sentence = start_words(now, answer.first()?)?;
        Some(OtherClusterStartRow {
            title: target.cluster().title.clone(),
            href: format!("/compose/{}/{}", target.cluster().slug, chosen.address),
            sentence,
        })
    });
    join_all(asked).await.into_iter().flatten().collect()
}
