//! What a job left behind, on its page: files that appeared or changed in its folder while it ran, and their download as
//! one archive. Only for its owner, over their own connection.

use std::sync::Arc;

use askama::Template;
use axum::http::Method;
use serde::Deserialize;

use crate::domain::RemotePath;
use crate::error::AppError;
use crate::files::archive::{ArchiveFormat, ArchiveSelection, ArchiveStream};
use crate::files::downloads::ConnectionSource;
use crate::files::results::{
    GRACE_SECONDS, JobResults, JobResultsError, JobResultsQuery, MAX_ENTRIES, leave_out_others,
};
use crate::format;
use crate::jobs::JobRecord;
use crate::jobs::job_list::has_begun;
use crate::ssh::RunCommandError;
use crate::ssh::sftp::SftpError;
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::{QueryParams, RequestContext};
use crate::web::http::flash::see_other;
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::files::archive::{parse_format, respond_with_archive};
use crate::web::pages::files::files_url;
use crate::web::pages::jobs::array::{find_sweep, sweep_point_label};
use crate::web::pages::jobs::job_lookup::{JobOfPage, JobOrArray, JobPageRequest};
use crate::web::pages::jobs::program_folder;
use crate::web::pages::jobs::result_groups::{ArrayTaskPoints, GroupedJobResults, group_results};

#[derive(Template)]
#[template(path = "jobs/results_page.html")]
struct JobResultsPage {
    page: PageFrame,
    results: JobResultsView,
}

#[derive(Template)]
#[template(path = "jobs/results_fragment.html")]
struct JobResultsFragment {
    results: JobResultsView,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct JobResultsArchiveQuery {
    format: String,
}

struct JobResultsView {
    href: String,
    cluster_href: String,
    /// The folder that the job ran in; empty if it isn't known.
    folder: String,
    folder_href: String,
    /// Whether more may come.
    is_ongoing: bool,
    state: JobResultsState,
}

enum JobResultsState {
    NotStarted,
    NeverStarted,
    NoFolder,
    NotConnected,
    Gone,
    Failed(String),
    Known(KnownJobResults),
}

struct KnownJobResults {
    shown: GroupedJobResults,
    found: Arc<JobResults>,
}

/// When and where a job, or all tasks of an array together, ran.
enum JobRun {
    NotStarted,
    NeverStarted,
    NoFolder,
    /// The flag says whether it has ended.
    Ran(JobResultsQuery, bool),
}

/// The section of the job's page; a page of its own without JavaScript.
pub async fn get(request: JobPageRequest) -> HandlerResult {
    let found = find_own_job(&request).await?;
    let results = load_view(&request.context, &found).await?;
    if request.context.is_fragment {
        return respond(&JobResultsFragment { results });
    }
    let page = PageFrame::for_person(&request.context, &request.me.0, "Results", NavSection::Jobs);
    respond(&JobResultsPage { page, results })
}

/// All results as one archive.
pub async fn get_archive(
    request: JobPageRequest,
    method: Method,
    QueryParams(query): QueryParams<JobResultsArchiveQuery>,
) -> HandlerResult {
    let found = find_own_job(&request).await?;
    let context = &request.context;
    let back = format!("{}/results", found.href());
    // The page says what is wrong.
    let JobRun::Ran(run, _) = load_run(context, &found).await? else { return Ok(see_other(&back)) };
    let base = run.base();
    let results = match read_results(context, &found, run).await? {
        Ok(results) if !results.files.is_empty() => results,
        _ => return Ok(see_other(&back)),
    };
    let permit = context.pages.downloads.acquire(request.me.0.person.id).ok_or(AppError::Busy)?;
    let paths = results.files.iter().map(|file| file.path.clone()).collect();
    let format = parse_format(&query.format).unwrap_or(ArchiveFormat::Zip);
    let name = format!("results-{}", found.id).into_bytes();
    let selection = ArchiveSelection::Inside(base, paths);
    let (source, now) = (connection_source(context, &found), context.app.clock.now());
    Ok(respond_with_archive(&method, format, &name, || (ArchiveStream::start(source, format, selection, now), permit)))
}

async fn find_own_job(request: &JobPageRequest) -> Result<JobOfPage, AppError> {
    let found = request.find_job().await?;
    if found.is_own { Ok(found) } else { Err(AppError::NotFound) }
}

fn connection_source(context: &RequestContext, found: &JobOfPage) -> ConnectionSource {
    let app = &context.app;
    ConnectionSource::new(app.connections.clone(), found.queue.account.id.connection_key(), app.stop.clone())
}

/// The results, which are kept for a short time. A task of an array has only its own.
async fn read_results(
    context: &RequestContext,
    found: &JobOfPage,
    query: JobResultsQuery,
) -> Result<Result<Arc<JobResults>, JobResultsError>, AppError> {
    let (account, number) = (found.queue.account.id, found.id.number);
    let source = connection_source(context, found);
    let key = (account, found.id.to_string());
    let results = match context.pages.job_results.get(key, &source, query, context.app.clock.now()).await {
        Ok(results) => leave_out_others(&context.app.store, account, number, results).await?,
        Err(error) => return Ok(Err(error)),
    };
    Ok(Ok(match found.id.task {
        Some(task) => results.without_other_tasks(number, task),
        None => results,
    }))
}

/// The tasks that have started, with their sweep points; `None` if it isn't an array.
async fn load_task_points(context: &RequestContext, found: &JobOfPage) -> Result<Option<ArrayTaskPoints>, AppError> {
    let JobOrArray::Array(array) = &found.job_or_array else { return Ok(None) };
    let sweep = find_sweep(context, found).await?;
    let point = |task: &JobRecord| sweep.as_ref().map(|sweep| sweep_point_label(task, sweep)).unwrap_or_default();
    let points = array.tasks.iter().filter_map(|task| Some((task.job.id.task?, point(task)))).collect();
    Ok(Some(ArrayTaskPoints { array: found.id.number, points }))
}

async fn load_run(context: &RequestContext, found: &JobOfPage) -> Result<JobRun, AppError> {
    let (head, records) = match &found.job_or_array {
        JobOrArray::Job(record) => (record, std::slice::from_ref(record)),
        JobOrArray::Array(array) => (&array.head, array.tasks.as_slice()),
    };
    let details = context.app.job_details.get_cached(found.queue.account.id, head).await?.details;
    let submission = program_folder::find_submission(context, found).await?;
    let program_folder = program_folder::find_program_folder(found, head, submission.as_ref());
    let mut run = find_run(head, records, [&details.stdout, &details.stderr], program_folder.as_deref());
    if let JobRun::Ran(query, _) = &mut run
        && let Some(ended) = query.ended
    {
        let account = found.queue.account.id;
        let folder = (head.job.work_dir.as_str(), found.id.number);
        let mut db = context.app.store.read().await?;
        let next = store::jobs::find_next_start(&mut db, account.person, account.cluster, folder, ended).await?;
        // Later ones make no difference, and the results are read again when this changes.
        query.next_began = next.filter(|next| next.since(ended) <= GRACE_SECONDS);
    }
    Ok(run)
}

fn find_run(head: &JobRecord, records: &[Arc<JobRecord>], outputs: [&str; 2], program_folder: Option<&str>) -> JobRun {
    let started = records.iter().filter(|record| has_begun(record));
    let Some(began) = started.filter_map(|record| record.job.start).min() else {
        let is_over = records.iter().all(|record| record.is_over);
        return if is_over { JobRun::NeverStarted } else { JobRun::NotStarted };
    };
    let Ok(slurm_folder) = RemotePath::parse(head.job.work_dir.as_bytes()) else { return JobRun::NoFolder };
    let is_over = records.iter().all(|record| record.is_over);
    let mut output_folders: Vec<RemotePath> = outputs
        .iter()
        .filter_map(|path| RemotePath::parse(path.as_bytes()).ok()?.parent())
        .filter(|folder| folder.as_bytes() != b"/dev")
        .collect();
    // A script that runs in its own folder leaves its files there.
    let work_folder = match program_folder.and_then(|path| RemotePath::parse(path.as_bytes()).ok()) {
        Some(program_folder) => {
            output_folders.push(slurm_folder);
            program_folder
        }
        None => slurm_folder,
    };
    output_folders.dedup();
    let ended = if is_over { records.iter().filter_map(|record| record.job.end).max() } else { None };
    JobRun::Ran(JobResultsQuery { work_folder, output_folders, began, ended, next_began: None }, is_over)
}

async fn load_view(context: &RequestContext, found: &JobOfPage) -> Result<JobResultsView, AppError> {
    let slug = &found.queue.cluster().slug;
    let run = load_run(context, found).await?;
    let mut view = JobResultsView {
        href: found.href(),
        cluster_href: format!("/clusters/{slug}"),
        folder: String::new(),
        folder_href: String::new(),
        is_ongoing: false,
        state: JobResultsState::NoFolder,
    };
    let (query, is_over) = match run {
        JobRun::Ran(query, is_over) => (query, is_over),
        JobRun::NotStarted => {
            return Ok(JobResultsView { is_ongoing: true, state: JobResultsState::NotStarted, ..view });
        }
        JobRun::NeverStarted => return Ok(JobResultsView { state: JobResultsState::NeverStarted, ..view }),
        JobRun::NoFolder => return Ok(view),
    };
    let folder = query.work_folder.clone();
    view.folder = folder.to_string();
    view.folder_href = files_url(slug, &folder);
    view.is_ongoing = !is_over;
    let array = load_task_points(context, found).await?;
    view.state = match read_results(context, found, query).await? {
        Ok(results) => JobResultsState::Known(KnownJobResults {
            shown: group_results(slug, &folder, &results, array.as_ref()),
            found: results,
        }),
        Err(JobResultsError::Sftp(SftpError::Run(RunCommandError::NotConnected))) => JobResultsState::NotConnected,
        Err(JobResultsError::FolderGone) => JobResultsState::Gone,
        Err(error) => JobResultsState::Failed(error.to_string()),
    };
    Ok(view)
}

impl KnownJobResults {
    fn count(&self) -> String {
        format::count(to_u64(self.found.files.len()), "file")
    }

    fn size(&self) -> String {
        format::bytes(self.found.total_bytes())
    }

    fn is_empty(&self) -> bool {
        self.found.files.is_empty()
    }

    /// How many files aren't shown; empty if all are.
    fn more(&self) -> String {
        match self.shown.left_out {
            0 => String::new(),
            more => format::count(to_u64(more), "more file"),
        }
    }

    /// How many files changed after the job's end; empty if none did.
    fn later(&self) -> String {
        match self.found.changed_later {
            0 => String::new(),
            later => format::count(to_u64(later), "file"),
        }
    }

    fn limit() -> String {
        format::number(to_u64(MAX_ENTRIES))
    }
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::UnixTime;
    use crate::slurm::job::{JobStage, JobState, SlurmJob};

    fn record(state: JobState, start: Option<i64>, end: Option<i64>) -> Arc<JobRecord> {
        let job = SlurmJob {
            state,
            start: start.map(UnixTime),
            end: end.map(UnixTime),
            work_dir: "/home/a/run".into(),
            ..SlurmJob::default()
        };
        let mut record = JobRecord::new(job, UnixTime(1));
        record.is_over = state.stage() == JobStage::Ended;
        Arc::new(record)
    }

    #[test]
    fn run_reaches_from_the_first_start_to_the_last_end() {
        let running = record(JobState::Running, Some(100), None);
        let done = record(JobState::Completed, Some(50), Some(80));
        let pending = record(JobState::Pending, Some(9000), None);
        let run = |records: &[Arc<JobRecord>]| {
            find_run(&records[0], records, ["/logs/1.out", "/logs/1.err"], Some("/home/a/code"))
        };
        let JobRun::Ran(query, is_over) = run(&[pending.clone(), running, done.clone()]) else { panic!("it ran") };
        assert_eq!((query.began, query.ended, is_over), (UnixTime(50), None, false));
        assert_eq!(query.work_folder.as_bytes(), b"/home/a/code");
        assert_eq!(
            query.output_folders,
            [b"/logs".as_slice(), b"/home/a/run"].map(|path| RemotePath::parse(path).unwrap())
        );
        let JobRun::Ran(query, is_over) = run(std::slice::from_ref(&done)) else { panic!("it ran") };
        assert_eq!((query.ended, is_over), (Some(UnixTime(80)), true));
        assert!(matches!(run(&[pending]), JobRun::NotStarted));
        assert!(matches!(run(&[record(JobState::Cancelled, None, Some(5))]), JobRun::NeverStarted));
    }
}
