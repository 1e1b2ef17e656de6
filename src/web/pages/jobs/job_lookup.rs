//! Finds the job that a URL names: the person's own, or a job of their group that their own connection shows.
//! Everything else is missing, in the same way whether it belongs to others or doesn't exist.

use std::sync::Arc;

use crate::error::AppError;
use crate::jobs::JobRecord;
use crate::jobs::job_list::{self, JobListItem, record_stage};
use crate::jobs::output::OutputWriterPhase;
use crate::slurm::job::{JobId, JobStage};
use crate::store;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::pages::jobs::cluster_queues::{ClusterQueue, list_cluster_queues};

/// A job that ended longer ago than this writes nothing more.
const OUTPUT_GRACE_SECONDS: i64 = 120;

pub struct FoundJob {
    pub queue: ClusterQueue,
    pub id: JobId,
    pub job_or_array: JobOrArray,
    pub is_own: bool,
}

pub enum JobOrArray {
    /// A job, or a task of an array.
    Job(Arc<JobRecord>),
    Array(Box<JobListItem>),
}

impl FoundJob {
    /// The job; an array has its own page.
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

/// Whether the job is ongoing, just ended (its output may still grow) or ended.
pub fn life_stage(context: &RequestContext, record: &JobRecord) -> OutputWriterPhase {
    match record_stage(record) {
        JobStage::Ended => {
            let ended = record.job.end.map_or(i64::MAX, |end| context.app.clock.now().since(end));
            if ended > OUTPUT_GRACE_SECONDS { OutputWriterPhase::Ended } else { OutputWriterPhase::JustEnded }
        }
        JobStage::Pending | JobStage::Running => OutputWriterPhase::Ongoing,
    }
}

/// Finds it. Doesn't contact any cluster.
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

async fn find_own(context: &RequestContext, place: &ClusterQueue, id: JobId) -> Result<Option<JobOrArray>, AppError> {
    let key = place.account.id;
    if let Some(record) = place.snapshot.records.get(&id).filter(|one| one.job.tasks.is_none()) {
        return Ok(Some(JobOrArray::Job(record.clone())));
    }
    // Jobs that ended over a day ago are only in the database; for recent changes, the snapshot is newer.
    let mut db = context.app.store.read().await?;
    let number = i64::try_from(id.number).unwrap_or(-1);
    let rows = match id.task {
        Some(task) => {
            let row = store::jobs::find(&mut db, key.person, key.cluster, number, task.into()).await?;
            row.into_iter().collect()
        }
        None => store::jobs::list_array_tasks(&mut db, key.person, key.cluster, number).await?,
    };
    drop(db);
    let mut records: Vec<Arc<JobRecord>> = place.snapshot.records_of_number(id.number).cloned().collect();
    for record in rows.into_iter().map(JobRecord::from_row) {
        if !records.iter().any(|known| known.job.id == record.job.id) {
            // Pending tasks that have since started are no longer in the database as one row; a row that the snapshot
            // lacks is out of date.
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

/// Picks the requested job or array among all records of one number.
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
    // One of the tasks that are still pending together.
    let rest = records.iter().find(|one| one.job.tasks.as_ref().is_some_and(|tasks| tasks.contains(task)))?;
    let mut record = JobRecord::clone(rest);
    record.job.id = id;
    record.job.tasks = None;
    Some(JobOrArray::Job(Arc::new(record)))
}
