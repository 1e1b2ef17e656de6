//! Finds the job that a URL names: the person's own, or a job of their group that their own connection shows. Of a job
//! of their own that left the queue before the portal saw it, the group's usage figures tell something.
//! Everything else is missing, in the same way whether it belongs to others or doesn't exist.

use std::sync::Arc;

use axum::extract::FromRequestParts;

use crate::auth::Permission;
use crate::error::AppError;
use crate::jobs::JobRecord;
use crate::jobs::job_list::{self, JobListItem, record_stage};
use crate::jobs::output::JobWritingState;
use crate::slurm::job::{JobId, JobStage};
use crate::store;
use crate::usage::UsageJobRecord;
use crate::web::http::extractors::{CurrentPerson, PathParams, RequestContext};
use crate::web::pages::jobs::cluster_queues::{PersonClusterQueue, list_cluster_queues};
use crate::web::portal_state::PortalState;

/// A job that ended longer ago than this writes nothing more.
const OUTPUT_GRACE_SECONDS: i64 = 120;

/// A request about one job.
#[derive(FromRequestParts)]
#[from_request(state(PortalState), rejection(AppError))]
pub struct JobPageRequest {
    pub context: RequestContext,
    pub me: CurrentPerson,
    /// The cluster's short name, and the job's id.
    #[from_request(via(PathParams))]
    pub path: (String, String),
}

impl JobPageRequest {
    /// Checks that the person may use clusters, and finds the job.
    pub async fn find_job(&self) -> Result<JobOfPage, AppError> {
        self.me.may(Permission::UseClusters)?;
        find_job(&self.context, &self.me, &self.path.0, &self.path.1).await
    }
}

pub struct JobOfPage {
    pub queue: PersonClusterQueue,
    pub id: JobId,
    pub job_or_array: JobOrArray,
    pub is_own: bool,
    /// Set if only the group's usage figures know the job.
    pub from_usage: Option<Box<UsageJobRecord>>,
}

pub enum JobOrArray {
    /// A job, or a task of an array.
    Job(Arc<JobRecord>),
    Array(Box<JobListItem>),
}

impl JobOfPage {
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
pub fn life_stage(context: &RequestContext, record: &JobRecord) -> JobWritingState {
    match record_stage(record) {
        JobStage::Ended => {
            let ended = record.job.end.map_or(i64::MAX, |end| context.app.clock.now().since(end));
            if ended > OUTPUT_GRACE_SECONDS { JobWritingState::Ended } else { JobWritingState::JustEnded }
        }
        JobStage::Pending | JobStage::Running => JobWritingState::Ongoing,
    }
}

/// Finds it. Doesn't contact any cluster.
pub async fn find_job(
    context: &RequestContext,
    me: &CurrentPerson,
    slug: &str,
    id: &str,
) -> Result<JobOfPage, AppError> {
    let id: JobId = id.parse().map_err(|_| AppError::NotFound)?;
    let queues = list_cluster_queues(context, me).await?;
    let mut queue = queues.into_iter().find(|queue| queue.cluster().slug == slug).ok_or(AppError::NotFound)?;
    queue.snapshot = context.app.queue_monitor.view(queue.account.id, false).await?;
    let own = find_own(context, &queue, id).await?;
    let is_own = own.is_some();
    if let Some(job_or_array) = own.or_else(|| find_in_group(&queue, id)) {
        return Ok(JobOfPage { queue, id, job_or_array, is_own, from_usage: None });
    }
    let older = context.app.usage.find_own_job(&me.0.viewer, queue.cluster().id, id).await?;
    let older = older.ok_or(AppError::NotFound)?;
    let job_or_array = JobOrArray::Job(Arc::new(older.to_record()));
    Ok(JobOfPage { queue, id, job_or_array, is_own: true, from_usage: Some(Box::new(older)) })
}

async fn find_own(
    context: &RequestContext,
    queue: &PersonClusterQueue,
    id: JobId,
) -> Result<Option<JobOrArray>, AppError> {
    let key = queue.account.id;
    if let Some(record) = queue.snapshot.records.get(&id).filter(|record| record.job.tasks.is_none()) {
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
    let mut records: Vec<Arc<JobRecord>> = queue.snapshot.records_of_number(id.number).cloned().collect();
    for record in rows.into_iter().map(JobRecord::from_row) {
        let is_listed = records.iter().any(|listed| listed.job.id == record.job.id);
        // Pending tasks that have since started are no longer in the database as one row; a row that the snapshot
        // lacks is out of date.
        let is_old_rest = record.job.tasks.is_some() && !records.is_empty();
        if !is_listed && !is_old_rest {
            records.push(Arc::new(record));
        }
    }
    Ok(pick_job_or_array(records, id))
}

fn find_in_group(queue: &PersonClusterQueue, id: JobId) -> Option<JobOrArray> {
    let group = queue.snapshot.group.as_ref()?;
    let seen = group.seen.or(queue.snapshot.seen)?;
    let jobs = group.jobs.iter().filter(|job| job.id.number == id.number);
    pick_job_or_array(jobs.map(|job| Arc::new(JobRecord::new(job.clone(), seen))).collect(), id)
}

/// Picks the requested job or array among all records of one number.
fn pick_job_or_array(records: Vec<Arc<JobRecord>>, id: JobId) -> Option<JobOrArray> {
    let Some(task) = id.task else {
        let is_single = |record: &&Arc<JobRecord>| record.job.id.task.is_none() && record.job.tasks.is_none();
        return match records.iter().find(is_single) {
            Some(record) => Some(JobOrArray::Job(record.clone())),
            None if records.is_empty() => None,
            None => Some(JobOrArray::Array(Box::new(job_list::array_item(records)))),
        };
    };
    if let Some(record) = records.iter().find(|record| record.job.id == id) {
        return Some(JobOrArray::Job(record.clone()));
    }
    // One of the tasks that are still pending together.
    let is_among = |record: &&Arc<JobRecord>| record.job.tasks.as_ref().is_some_and(|tasks| tasks.contains(task));
    let rest = records.iter().find(is_among)?;
    let mut record = JobRecord::clone(rest);
    record.job.id = id;
    record.job.tasks = None;
    Some(JobOrArray::Job(Arc::new(record)))
}
