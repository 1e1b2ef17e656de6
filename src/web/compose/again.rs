//! Running something again: a submission as it was filled in, or any job of the history from its script.

use std::time::Duration;

use serde::Deserialize;

use super::super::extract::{Context, Me, Path, Query};
use super::super::flash::Flash;
use super::super::jobs::found::{What, find};
use super::super::page::show;
use super::super::{Answer, flash};
use super::chosen::{self, Chosen};
use super::filled::Filled;
use super::form::{Notice, Shown, begin, nonce, page};
use super::meaning::question;
use super::place::{self, Spot};
use crate::auth::Permission;
use crate::domain::SubmissionId;
use crate::error::AppError;
use crate::explain::sbatch;
use crate::jobs::submissions::{Submission, SubmissionState};
use crate::jobs::{QueueKey, Record};
use crate::recipes::compose::Problem;
use crate::recipes::question::Kind;
use crate::recipes::read_back;
use crate::recipes::request::Sets;
use crate::store;

/// The recipe that takes any script.
const ANY_SCRIPT: &str = "own-script";
/// How often, and with which pause, a script is asked for that is not there yet.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_secs(1);

/// The form of a submission, as it was filled in; with what Slurm said, if it was refused.
pub async fn submission(context: Context, me: Me, Path(id): Path<i64>) -> Answer {
    me.may(Permission::UseClusters)?;
    let one = context.app.submissions.get(me.0.person.id, SubmissionId(id)).await?;
    let one = one.ok_or(AppError::NotFound)?;
    let mut db = context.app.store.read().await?;
    let cluster = store::clusters::get(&mut db, one.cluster_id).await?.ok_or(AppError::NotFound)?;
    drop(db);
    let spot = place::one(&context, &me, &cluster.slug).await?;
    let (chosen, filled) = refilled(&context, &me, &one, &spot).await?;
    let mut shown =
        Shown { repeats: one.number.map(|number| number.to_string()), ..Shown::default() };
    if one.state == SubmissionState::Refused {
        refused(&one, &chosen, &mut shown);
    }
    show(&page(&context, &me, &spot, &chosen, &filled, shown).await?)
}

/// What to do with a job's earlier request.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Ask {
    /// Options to change, as the verdict on the job proposes them: `--mem=24G`.
    option: String,
}

/// The form of a job that was run before, from the portal or from anywhere.
pub async fn job(
    context: Context,
    me: Me,
    Path((slug, id)): Path<(String, String)>,
    Query(ask): Query<Ask>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let found = find(&context, &me, &slug, &id).await?;
    let key = found.key(&me);
    let spot = place::one(&context, &me, &slug).await?;
    let number = i64::try_from(found.id.number).map_err(|_| AppError::NotFound)?;
    let mut db = context.app.store.read().await?;
    let known = store::submissions::find_by_job(&mut db, key.person, key.cluster, number).await?;
    drop(db);
    let known = known.filter(|_| found.is_own);
    let (chosen, mut filled) = if let Some(one) = known {
        refilled(&context, &me, &one, &spot).await?
    } else {
        let record = match &found.what {
            What::Job(record) => record,
            What::Array(entry) => &entry.head,
        };
        let script = script_of(&context, key, record).await?;
        if script.trim().is_empty() {
            return Ok(flash::redirect(context, &found.href(), Flash::NoScript));
        }
        from_script(&context, &me, &script, &spot).await?
    };
    let options: Vec<read_back::SbatchOption> =
        ask.option.split(' ').filter_map(read_back::option).collect();
    let mut shown = Shown { repeats: Some(found.id.number.to_string()), ..Shown::default() };
    if !options.is_empty() {
        // A script by hand would hold the old request.
        filled.own = None;
        let rest = read_back::take(&chosen.form, &mut filled.answers, &options, &spot.place);
        if rest.is_empty() {
            shown.notice = Some(Notice {
                kind: "info",
                title: "The request was changed as proposed".to_owned(),
                text: format!("{} is in the form now. Look at it, and submit.", ask.option),
                said: String::new(),
                accounts: Vec::new(),
            });
        }
    }
    show(&page(&context, &me, &spot, &chosen, &filled, shown).await?)
}

/// The script of a job. Mostly the job's page has read it already; otherwise the cluster is asked, as the person wants
/// just this. The accounting tells of a job a moment after its end.
async fn script_of(context: &Context, key: QueueKey, record: &Record) -> Result<String, AppError> {
    let mut paper = context.app.job_details.known(key, record).await?.paper;
    for _ in 0..TRIES {
        if !paper.script.trim().is_empty() {
            break;
        }
        let sheet = context.app.job_details.look(key, record).await?;
        if sheet.trouble.is_some() {
            break;
        }
        paper = sheet.paper;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(paper.script.clone())
}

/// The form as it was; the recipe may be gone, the script is not.
async fn refilled(
    context: &Context,
    me: &Me,
    one: &Submission,
    spot: &Spot,
) -> Result<(Chosen, Filled), AppError> {
    let filled: Filled = serde_json::from_str(&one.answers).unwrap_or_default();
    match chosen::of_submission(context, me, one).await? {
        Some(chosen) if !filled.answers.is_empty() => {
            let mut new = begin(&chosen, spot)?;
            new.answers.extend(filled.answers);
            new.own = filled.own;
            Ok((chosen, new))
        }
        _ => from_script(context, me, &one.script, spot).await,
    }
}

/// A form around a script of anyone's.
async fn from_script(
    context: &Context,
    me: &Me,
    script: &str,
    spot: &Spot,
) -> Result<(Chosen, Filled), AppError> {
    let chosen = chosen::find(context, me, ANY_SCRIPT).await?;
    let mut filled = begin(&chosen, spot)?;
    let options = read_back::directives(script);
    let rest = read_back::take(&chosen.form, &mut filled.answers, &options, &spot.place);
    if let Some(question) = chosen.form.questions().find(|one| one.kind == Kind::Script) {
        filled.answers.insert(question.key.clone(), read_back::without_directives(script));
    }
    if let Some(other) = chosen.form.that_sets(Sets::Other) {
        let lines: Vec<String> = rest.iter().map(read_back::written).collect();
        filled.answers.insert(other.key.clone(), lines.join("\n"));
    }
    filled.nonce = nonce()?;
    Ok((chosen, filled))
}

fn refused(one: &Submission, chosen: &Chosen, shown: &mut Shown) {
    let said = sbatch::read(&one.refusal);
    for sets in &said.fields {
        let key = question(chosen, *sets);
        if !key.is_empty() {
            shown.problems.push(Problem { key, sentence: said.sentence.clone() });
        }
    }
    shown.notice = Some(Notice {
        kind: "danger",
        title: "The cluster did not take it".to_owned(),
        text: said.sentence,
        said: said.slurm,
        accounts: said.accounts,
    });
}
