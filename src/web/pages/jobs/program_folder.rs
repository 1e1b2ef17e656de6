//! The folder that a job's program ran in: Slurm's working folder, unless the script goes to another one.

use crate::error::AppError;
use crate::jobs::JobRecord;
use crate::recipes::working_folder::{ScriptWorkingFolder, find_working_folder};
use crate::store::{self, submissions::Submission};
use crate::web::http::extractors::RequestContext;
use crate::web::pages::compose::compose_target::path_variables;
use crate::web::pages::jobs::job_lookup::JobOfPage;

/// The submission of the viewer's own job; none if it wasn't submitted with this portal.
pub async fn find_submission(context: &RequestContext, found: &JobOfPage) -> Result<Option<Submission>, AppError> {
    if !found.is_own {
        return Ok(None);
    }
    let (key, number) = (found.queue.account.id, i64::try_from(found.id.number).unwrap_or(-1));
    let mut db = context.app.store.read().await?;
    Ok(store::submissions::find_by_job(&mut db, key.person, key.cluster, number).await?)
}

/// Absolute. None if only the job knew.
pub fn find_program_folder(found: &JobOfPage, record: &JobRecord, submission: Option<&Submission>) -> Option<String> {
    let variables = path_variables(&found.queue.account.discovered);
    let script = submission.map_or("", |submission| submission.script.as_str());
    match find_working_folder(script, &variables) {
        ScriptWorkingFolder::ChangedTo(folder) => Some(folder),
        ScriptWorkingFolder::Unchanged => Some(record.job.work_dir.clone()).filter(|folder| folder.starts_with('/')),
        ScriptWorkingFolder::Unknown => None,
    }
}
