//! The earlier job that a form repeats, and what went wrong with it. Doesn't contact any cluster.

use crate::error::AppError;
use crate::logs::findings;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::pages::jobs::job::judge_ended_job;
use crate::web::pages::jobs::job_lookup::{JobOfPage, JobOrArray, find_job};

pub struct RepeatedJob {
    pub id: String,
    pub name: String,
    pub href: String,
    /// What went wrong; empty if nothing did.
    pub problem: String,
}

/// Loads it. `None` if there is none, or the person can't see it.
pub async fn load(
    context: &RequestContext,
    me: &CurrentPerson,
    slug: &str,
    id: &str,
) -> Result<Option<RepeatedJob>, AppError> {
    if id.is_empty() {
        return Ok(None);
    }
    match find_job(context, me, slug, id).await {
        Ok(found) => Ok(Some(describe(context, &found).await?)),
        Err(AppError::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn describe(context: &RequestContext, found: &JobOfPage) -> Result<RepeatedJob, AppError> {
    let (name, problem) = match &found.job_or_array {
        JobOrArray::Array(array) => {
            let (failed, all) = (array.counts.bad, array.counts.total());
            let problem = if failed > 0 { format!("{failed} of {all} tasks failed") } else { String::new() };
            (array.head.job.name.clone(), problem)
        }
        JobOrArray::Job(record) if record.job.state.is_failure() => {
            let loaded = context.app.job_details.get_cached(found.queue.account.id, record).await?;
            let findings = findings::find_errors(&loaded.details.log_end).list;
            let verdict = judge_ended_job(&found.queue, record, &loaded.details, &findings, None);
            (record.job.name.clone(), verdict.map(|verdict| verdict.title).unwrap_or_default())
        }
        JobOrArray::Job(record) => (record.job.name.clone(), String::new()),
    };
    Ok(RepeatedJob { id: found.id.to_string(), name, href: found.href(), problem })
}
