//! Which job an address means: one of one's own, or one of the group's that this person's own connection shows.
//! Everything else is not there, in the same way for what belongs to others and for what does not exist.

use std::sync::Arc;

use crate::error::AppError;
use crate::jobs::JobRecord;
use crate::jobs::job_list::{self, JobListItem, record_stage};
use crate::jobs::output::JobPhase;
use crate::slurm::job::{JobId, JobStage};
use crate::store;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::pages::jobs::cluster_queues::{ClusterQueue, list_cluster_queues};

/// A job that ended longer ago than this writes nothing more.
const OUTPUT_GRACE_SECONDS: i64 = 120;

pub struct FoundJob {
    pub queue: ClusterQueue,
    pub id: JobId,
    /// A job or task, or an array.
    pub job_or_array: JobOrArray,
    /// Whether it is one's own.
    pub is_own: bool,
}

/// A job or an array.
pub enum JobOrArray {
    /// A job, or a task of an array.
    Job(Arc<JobRecord>),
    Array(Box<JobListItem>),
}

impl FoundJob {
    /// The job; an array is another page.
    pub fn require_job(&self) -> Result<&Arc<JobRecord>, AppError> {
        match &self.job_or_array {
            JobOrArray::Job(record) => Ok(record),
            JobOrArray::Array(_) => Err(AppError::NotFound),
        }
    }

    pub fn href(&self) -> String {
        format!("/jobs/{}/{}", self.queue.cluster().slug, self.id)
    }
}

/// How much of a job's life is over.
pub fn life_stage(context: &RequestContext, record: &JobRecord) -> JobPhase {
    match record_stage(record) {
        JobStage::Ended => {
            let ended = record.job.end.map_or(i64::MAX, |end| context.app.clock.now().since(end));
            if ended > OUTPUT_GRACE_SECONDS { JobPhase::Ended } else { JobPhase::JustEnded }
        }
        JobStage::Pending | JobStage::Running => JobPhase::Ongoing,
    }
}

/// Finds it. No cluster is asked.
pub async fn find_job(
    context: &RequestContext,
    me: &CurrentPerson,
    slug: &str,
    id: &str,
) -> Result<FoundJob, AppError> {
    let id: JobId = id.parse().map_err(|_| AppError::NotFound)?;
    let places = list_cluster_queues(context, me).await?;
    let place = places.into_iter().find(|place| place.cluster().slug == slug);
    let mut place = place.ok_or(AppError::NotFound)?;
    place.snapshot = context.app.queue_monitor.view(place.account.id, false).await?;
    let own = find_own(context, &place, id).await?;
    let is_own = own.is_some();
    let what = own.or_else(|| find_in_group(&place, id)).ok_or(AppError::NotFound)?;
    Ok(FoundJob { queue: place, id, job_or_array: what, is_own })
}

async fn find_own(
    context: &RequestContext,
    place: &ClusterQueue,
    id: JobId,
) -> Result<Option<JobOrArray>, AppError> {
    let key = place.account.id;
    if let Some(record) = place.snapshot.records.get(&id).filter(|one| one.job.tasks.is_none()) {
        return Ok(Some(JobOrArray::Job(record.clone())));
    }
    // What ended more than a day ago is only in the database; what changed a moment ago is newer in the picture.
    let mut db = context.app.store.read().await?;
    let number = i64::try_from(id.number).unwrap_or(-1);
    let rows = match id.task {
        Some(task) => {
            let row =
                store::jobs::find(&mut db, key.person, key.cluster, number, task.into()).await?;
            row.into_iter().collect()
        }
        None => store::jobs::list_array_tasks(&mut db, key.person, key.cluster, number).await?,
    };
    drop(db);
    let mut records: Vec<Arc<JobRecord>> =
        place.snapshot.records_of_number(id.number).cloned().collect();
    for record in rows.into_iter().map(JobRecord::from_row) {
        if !records.iter().any(|known| known.job.id == record.job.id) {
            // A rest that has begun since is in the database no more; one that the picture lacks is old.
            let is_old_rest = record.job.tasks.is_some() && !records.is_empty();
            if !is_old_rest {
                records.push(Arc::new(record));
            }
        }
    }
    Ok(pick_job_or_array(records, id))
}

fn find_in_group(place: &ClusterQueue, id: JobId) -> Option<JobOrArray> {
    let group = place.snapshot.group.as_ref()?;
    let seen = group.seen.or(place.snapshot.seen)?;
    let jobs = group.jobs.iter().filter(|job| job.id.number == id.number);
    pick_job_or_array(jobs.map(|job| Arc::new(JobRecord::new(job.clone(), seen))).collect(), id)
}

/// The one that is meant among all of one number.
fn pick_job_or_array(records: Vec<Arc<JobRecord>>, id: JobId) -> Option<JobOrArray> {
    let Some(task) = id.task else {
        let is_array = |one: &Arc<JobRecord>| one.job.id.task.is_some() || one.job.tasks.is_some();
        return match records.iter().find(|one| !is_array(one)) {
            Some(record) => Some(JobOrArray::Job(record.clone())),
            None if records.is_empty() => None,
            None => Some(JobOrArray::Array(Box::new(job_list::array_item(records)))),
        };
    };
    if let Some(record) = records.iter().find(|one| one.job.id == id) {
        return Some(JobOrArray::Job(record.clone()));
    }
    // One of those that still wait together.
    let rest = records
        .iter()
        .find(|one| one.job.tasks.as_ref().is_some_and(|tasks| tasks.contains(task)))?;
    let mut record = JobRecord::clone(rest);
    record.job.id = id;
    record.job.tasks = None;
    Some(JobOrArray::Job(Arc::new(record)))
}
