//! The page of one job: what it does, why it is pending, how it ended, and everything else that is known. The page
//! shows what is already known; its fragments ask the cluster.

mod live_view;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use askama::Template;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::Deserialize;

pub use self::live_view::JobLiveView;
use crate::clock::UnixTime;
use crate::dashboards;
use crate::error::AppError;
use crate::explain::efficiency::{MeasuredJob, TIME_LABEL, efficiency};
use crate::explain::verdict::{EndedJobFacts, JobVerdict, VerdictTone, verdict};
use crate::explain::waiting::WaitKind;
use crate::jobs::job_list::{has_begun, record_stage};
use crate::jobs::output::OutputFileKey;
use crate::jobs::{JobDetails, JobRecord, LoadedJobDetails};
use crate::logs::findings::{self, LogFinding};
use crate::slurm::job::JobStage;
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::assets;
use crate::web::http::extractors::{CurrentPerson, QueryParams, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::dashboards::dashboard_path;
use crate::web::pages::groups::fair_share;
use crate::web::pages::jobs::action_buttons::available_actions;
use crate::web::pages::jobs::array;
use crate::web::pages::jobs::can_resubmit::can_resubmit;
use crate::web::pages::jobs::cluster_queues::PersonClusterQueue;
use crate::web::pages::jobs::facts::build_job_facts;
use crate::web::pages::jobs::job_lookup::{JobOfPage, JobOrArray, JobPageRequest, life_stage};
use crate::web::pages::jobs::list::row_builder;
use crate::web::pages::jobs::list_row::JobTimeCell;
use crate::web::pages::jobs::older_job::{self, OlderJobNote};
use crate::web::pages::jobs::priority_parts::priority_parts;
use crate::web::pages::jobs::program_folder;
use crate::web::pages::jobs::submissions;
use crate::web::pages::jobs::timeline::build_timeline;

/// How long a fragment waits for the cluster; what arrives later is shown the next time.
const CLUSTER_TIMEOUT: Duration = Duration::from_secs(12);
/// Lines from the end of the output that are shown with a verdict.
const MAX_LOG_LINES: usize = 6;

#[derive(Template)]
#[template(path = "jobs/job.html")]
struct JobPage {
    page: PageFrame,
    log_js: &'static str,
    live: JobLiveView,
}

#[derive(Template)]
#[template(path = "jobs/job_fragment.html")]
struct JobFragment {
    live: JobLiveView,
}

#[derive(Template)]
#[template(path = "jobs/script_fragment.html")]
struct JobScriptFragment {
    live: JobLiveView,
}

/// What the fragment already shows.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct JobPageQuery {
    mark: u64,
    pub state: String,
    pub page: usize,
}

pub async fn get(request: JobPageRequest, QueryParams(query): QueryParams<JobPageQuery>) -> HandlerResult {
    let found = match request.find_job().await {
        // Slurm has the job, the list doesn't yet.
        Err(AppError::NotFound) => return submissions::redirect_from_job(&request).await,
        found => found?,
    };
    let JobPageRequest { context, me, .. } = request;
    if let JobOrArray::Array(array) = &found.job_or_array {
        return array::show_page(&context, &me, &found, array, &query).await;
    }
    let record = found.require_job()?.clone();
    let details = context.app.job_details.get_cached(found.queue.account.id, &record).await?;
    let mut live = build_live_view(&context, &me, found, &record, details).await?;
    live.is_first = true;
    let title = if live.row.name.is_empty() { live.row.id.clone() } else { live.row.name.clone() };
    respond(&JobPage {
        page: PageFrame::for_person(&context, &me.0, &title, NavSection::Jobs),
        log_js: assets::asset_url("log.js"),
        live,
    })
}

/// The fragment that refreshes itself; asks the cluster if that is due.
pub async fn get_fragment(request: JobPageRequest, QueryParams(query): QueryParams<JobPageQuery>) -> HandlerResult {
    let found = request.find_job().await?;
    if let JobOrArray::Array(array) = &found.job_or_array {
        return array::show_fragment(&request.context, &found, array, &query).await;
    }
    let live = load_fresh_view(&request, found).await?;
    if live.mark == query.mark {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    respond(&JobFragment { live })
}

/// The script and the options, once they are known.
pub async fn get_script(request: JobPageRequest) -> HandlerResult {
    let found = request.find_job().await?;
    respond(&JobScriptFragment { live: load_fresh_view(&request, found).await? })
}

/// Asks the cluster for what is due: the job details and, once the job has ended, the end of its output.
async fn load_fresh_view(request: &JobPageRequest, found: JobOfPage) -> Result<JobLiveView, AppError> {
    let JobPageRequest { context, me, .. } = request;
    let found = older_job::complete(request, found).await?;
    let key = found.queue.account.id;
    let record = found.require_job()?.clone();
    let cache = &context.app.job_details;
    let asking = async {
        let fresh = cache.get_fresh(key, &record).await?;
        let wants_log_end = record.is_over && fresh.details.log_end.is_empty() && !fresh.details.stderr.is_empty();
        if wants_log_end {
            let file = OutputFileKey { queue: key, path: fresh.details.stderr.clone() };
            let shown = context.app.job_outputs.follow(&file, life_stage(context, &record)).await;
            cache.save_log_end(key, &record, &shown.rendered.texts()).await?;
            return cache.get_cached(key, &record).await;
        }
        Ok(fresh)
    };
    let details = if let Ok(fresh) = tokio::time::timeout(CLUSTER_TIMEOUT, asking).await {
        fresh?
    } else {
        let cached = cache.get_cached(key, &record).await?;
        LoadedJobDetails { trouble: Some("The cluster is slow to respond.".to_owned()), ..cached }
    };
    build_live_view(context, me, found, &record, details).await
}

async fn build_live_view(
    context: &RequestContext,
    me: &CurrentPerson,
    found: JobOfPage,
    record: &JobRecord,
    loaded: LoadedJobDetails,
) -> Result<JobLiveView, AppError> {
    let now = context.app.clock.now();
    let events = if record.id.0 == 0 {
        Vec::new()
    } else {
        let mut db = context.app.store.read().await?;
        store::jobs::list_events(&mut db, record.id).await?
    };
    let point = match record.job.id.task {
        Some(_) => array::load_sweep_point_label(context, &found, record).await?,
        None => String::new(),
    };
    let submission = program_folder::find_submission(context, &found).await?;
    let is_from_portal = submission.is_some();
    let folder = program_folder::find_program_folder(&found, record, submission.as_ref());
    let job = &record.job;
    let priority = match record_stage(record) {
        JobStage::Pending if found.is_own => {
            fair_share::find_priority_path(context, me, found.queue.cluster().id, &job.account).await?
        }
        _ => String::new(),
    };
    let can_resubmit = can_resubmit(context, &found, record, &loaded.details).await?;
    let row = row_builder(&found.queue, now, "").record_row(record, found.is_own);
    let stage = record_stage(record);
    let details = &loaded.details;
    let usage = details.usage.or_else(|| found.from_usage.as_ref().and_then(|older| older.usage()));
    let findings = if record.is_over { findings::find_errors(&details.log_end).list } else { Vec::new() };
    let verdict = judge_ended_job(&found.queue, record, details, &findings, folder.as_deref());
    let used = usage
        .filter(|_| stage != JobStage::Pending)
        .map(|usage| efficiency(&MeasuredJob { job, usage: &usage, whole_node: false }));
    let is_bad =
        verdict.as_ref().is_some_and(|verdict| matches!(verdict.tone, VerdictTone::Danger | VerdictTone::Warning));
    // The verdict itself quotes a single line; a whole block says more.
    let finding = findings.into_iter().find(|finding| is_bad && finding.text.contains('\n'));
    let end = details.log_end.iter().rev().filter(|line| !line.trim().is_empty()).take(MAX_LOG_LINES);
    let is_quoted = verdict.as_ref().is_some_and(|verdict| verdict.quotes_output);
    let mut last_lines: Vec<String> = if is_bad && !is_quoted { end.cloned().collect() } else { Vec::new() };
    last_lines.reverse();
    let is_dashboard = dashboards::DashboardKind::ALL.iter().any(|kind| kind.job_name() == job.name);
    let dashboard =
        if is_dashboard { find_dashboard_path(context, me, &found, job.id.number).await? } else { String::new() };
    let mut actions = if found.is_own { available_actions(record, found.queue.can_reorder()) } else { Vec::new() };
    actions.retain(|button| !is_dashboard || button.verb != "requeue");
    let is_reachable = found.is_own && found.queue.is_connected && stage == JobStage::Running;
    let mut live = JobLiveView {
        can_open_shell: is_reachable && context.app.terminals.is_offered(&found.queue.account),
        href: found.href(),
        pick: format!("{}/{}", found.queue.cluster().slug, job.id),
        array: match job.id.task {
            Some(_) => format!("/jobs/{}/{}", found.queue.cluster().slug, job.id.number),
            None => String::new(),
        },
        actions,
        never_started: stage == JobStage::Ended && !has_begun(record),
        is_dashboard,
        dashboard,
        timeline: build_timeline(record, &events, details.deadline.map(UnixTime), now),
        priority_parts: found.queue.snapshot.factors.get(&job.raw_id).map(priority_parts).unwrap_or_default(),
        priority,
        finding,
        facts: build_job_facts(record, details, &found, &point),
        is_own: found.is_own,
        can_resubmit,
        older: OlderJobNote::new(&found),
        queue: found.queue,
        is_first: false,
        mark: 0,
        row,
        stage,
        verdict,
        last_lines,
        used,
        details: loaded,
        script_folder: folder.filter(|folder| *folder != job.work_dir).unwrap_or_default(),
        is_from_portal,
    };
    live.mark = content_hash(&live);
    Ok(live)
}

/// The page of the dashboard that a job of the person serves; empty if it was deleted.
async fn find_dashboard_path(
    context: &RequestContext,
    me: &CurrentPerson,
    found: &JobOfPage,
    number: u64,
) -> Result<String, AppError> {
    let Ok(number) = i64::try_from(number) else { return Ok(String::new()) };
    let mut db = context.app.store.read().await?;
    let cluster = found.queue.cluster().id;
    let dashboard = store::dashboards::find_by_job(&mut db, me.0.person.id, cluster, number).await?;
    Ok(dashboard.map(dashboard_path).unwrap_or_default())
}

/// How a job ended; none if it hasn't, or if the cluster forgot it before anyone could know.
pub fn judge_ended_job(
    queue: &PersonClusterQueue,
    record: &JobRecord,
    details: &JobDetails,
    findings: &[LogFinding],
    folder: Option<&str>,
) -> Option<JobVerdict> {
    if !record.is_over || record.is_lost() {
        return None;
    }
    let job = &record.job;
    let is_self = !details.own_number.is_empty() && details.own_number == record.cancelled_by;
    let by = if is_self { job.user.as_str() } else { record.cancelled_by.as_str() };
    Some(verdict(&EndedJobFacts {
        usage: details.usage.as_ref(),
        cancelled_by: Some(by).filter(|by| !by.is_empty()),
        findings,
        partition_max_minutes: queue.partition_limit(&job.partition),
        folder,
        ..EndedJobFacts::new(job)
    }))
}

/// Changes with the fragment's content. The page itself shows how old it is.
fn content_hash(live: &JobLiveView) -> u64 {
    let mut hasher = DefaultHasher::new();
    (live.row.mark, live.queue.is_connected, &live.details.trouble, live.details.details.read_at).hash(&mut hasher);
    live.queue.seen().hash(&mut hasher);
    live.last_lines.hash(&mut hasher);
    (live.timeline.len(), live.deadline(), &live.facts, &live.older).hash(&mut hasher);
    if let Some(verdict) = &live.verdict {
        (&verdict.title, &verdict.text, &verdict.advice).hash(&mut hasher);
    }
    // A number that JavaScript can represent exactly, and never 0.
    (hasher.finish() >> 12) | 1
}
