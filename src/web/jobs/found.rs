//! Which job an address means: one of one's own, or one of the group's that this person's own connection shows.
//! Everything else is not there, in the same way for what belongs to others and for what does not exist.

use std::sync::Arc;

use super::super::extract::{Context, Me};
use super::queues::{Place, places};
use crate::error::AppError;
use crate::jobs::entry::{self, Entry, stage};
use crate::jobs::output::Life;
use crate::jobs::{QueueKey, Record};
use crate::slurm::job::{JobId, JobStage};
use crate::store;

/// A job that ended longer ago than this writes nothing more.
const LAST_WORDS_S: i64 = 120;

/// What was found.
pub struct Found {
    /// Where.
    pub place: Place,
    /// Which.
    pub id: JobId,
    /// A job or task, or an array.
    pub what: What,
    /// Whether it is one's own.
    pub is_own: bool,
}

/// A job or an array.
pub enum What {
    /// A job, or a task of an array.
    Job(Arc<Record>),
    /// An array.
    Array(Box<Entry>),
}

impl Found {
    /// Whose queue.
    pub fn key(&self, me: &Me) -> QueueKey {
        QueueKey { person: me.0.person.id, cluster: self.place.cluster.id }
    }

    /// The job; an array is another page.
    pub fn job(&self) -> Result<&Arc<Record>, AppError> {
        match &self.what {
            What::Job(record) => Ok(record),
            What::Array(_) => Err(AppError::NotFound),
        }
    }

    /// Its address.
    pub fn href(&self) -> String {
        format!("/jobs/{}/{}", self.place.cluster.slug, self.id)
    }
}

/// How much of a job's life is over.
pub fn life(context: &Context, record: &Record) -> Life {
    match stage(record) {
        JobStage::Ended => {
            let ended = record.job.end.map_or(i64::MAX, |end| context.app.clock.now().since(end));
            if ended > LAST_WORDS_S { Life::Over } else { Life::JustEnded }
        }
        JobStage::Pending | JobStage::Running => Life::GoesOn,
    }
}

/// Finds it. No cluster is asked.
pub async fn find(context: &Context, me: &Me, slug: &str, id: &str) -> Result<Found, AppError> {
    let id: JobId = id.parse().map_err(|_| AppError::NotFound)?;
    let places = places(context, me).await?;
    let place = places.into_iter().find(|place| place.cluster.slug == slug);
    let mut place = place.ok_or(AppError::NotFound)?;
    let key = QueueKey { person: me.0.person.id, cluster: place.cluster.id };
    place.picture = context.app.queue_monitor.look(key, false).await?;
    let own = own(context, key, &place, id).await?;
    let is_own = own.is_some();
    let what = own.or_else(|| of_group(&place, id)).ok_or(AppError::NotFound)?;
    Ok(Found { place, id, what, is_own })
}

async fn own(
    context: &Context,
    key: QueueKey,
    place: &Place,
    id: JobId,
) -> Result<Option<What>, AppError> {
    if let Some(record) = place.picture.records.get(&id).filter(|one| one.job.tasks.is_none()) {
        return Ok(Some(What::Job(record.clone())));
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
    let mut records: Vec<Arc<Record>> = place.picture.of_number(id.number).cloned().collect();
    for record in rows.into_iter().map(Record::of) {
        if !records.iter().any(|known| known.job.id == record.job.id) {
            // A rest that has begun since is in the database no more; one that the picture lacks is old.
            let is_old_rest = record.job.tasks.is_some() && !records.is_empty();
            if !is_old_rest {
                records.push(Arc::new(record));
            }
        }
    }
    Ok(pick(records, id))
}

fn of_group(place: &Place, id: JobId) -> Option<What> {
    let group = place.picture.group.as_ref()?;
    let seen = group.seen.or(place.picture.seen)?;
    let jobs = group.jobs.iter().filter(|job| job.id.number == id.number);
    pick(jobs.map(|job| Arc::new(Record::new(job.clone(), seen))).collect(), id)
}

/// The one that is meant among all of one number.
fn pick(records: Vec<Arc<Record>>, id: JobId) -> Option<What> {
    let Some(task) = id.task else {
        let is_array = |one: &Arc<Record>| one.job.id.task.is_some() || one.job.tasks.is_some();
        return match records.iter().find(|one| !is_array(one)) {
            Some(record) => Some(What::Job(record.clone())),
            None if records.is_empty() => None,
            None => Some(What::Array(Box::new(entry::array(records)))),
        };
    };
    if let Some(record) = records.iter().find(|one| one.job.id == id) {
        return Some(What::Job(record.clone()));
    }
    // One of those that still wait together.
    let rest = records
        .iter()
        .find(|one| one.job.tasks.as_ref().is_some_and(|tasks| tasks.contains(task)))?;
    let mut record = Record::clone(rest);
    record.job.id = id;
    record.job.tasks = None;
    Some(What::Job(Arc::new(record)))
}
