//! The page of one job: what it does, why it is pending, how it ended, and everything else that is known. The page
//! shows what is already known; its fragments ask the cluster.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use askama::Template;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::Deserialize;

use crate::clock::UnixTime;
use crate::dashboards;
use crate::error::AppError;
use crate::explain::efficiency::{
    EfficiencyFigure, JobEfficiency, MeasuredJob, TIME_LABEL, UsageJudgement, efficiency,
};
use crate::explain::verdict::{EndedJobFacts, JobVerdict, SuggestedSbatchOption, VerdictTone, verdict};
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
use crate::web::pages::jobs::action_buttons::{JobActionButton, available_actions};
use crate::web::pages::jobs::array;
use crate::web::pages::jobs::can_resubmit::can_resubmit;
use crate::web::pages::jobs::cluster_queues::PersonClusterQueue;
use crate::web::pages::jobs::facts::{JobFact, build_job_facts};
use crate::web::pages::jobs::job_lookup::{JobOfPage, JobOrArray, JobPageRequest, life_stage};
use crate::web::pages::jobs::list::row_builder;
use crate::web::pages::jobs::list_row::{JobListRow, JobTimeCell};
use crate::web::pages::jobs::older_job::{self, OlderJobNote};
use crate::web::pages::jobs::priority_parts::{PriorityPart, priority_parts};
use crate::web::pages::jobs::submissions;
use crate::web::pages::jobs::timeline::{TimelineEntry, build_timeline};

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

#[expect(clippy::struct_excessive_bools, reason = "each decides what one part of the page shows")]
pub struct JobLiveView {
    queue: PersonClusterQueue,
    href: String,
    row: JobListRow,
    stage: JobStage,
    is_own: bool,
    /// Whether it can be resubmitted, as far as is known.
    can_resubmit: bool,
    actions: Vec<JobActionButton>,
    pick: String,
    verdict: Option<JobVerdict>,
    /// The error found in the output, quoted.
    finding: Option<LogFinding>,
    last_lines: Vec<String>,
    timeline: Vec<TimelineEntry>,
    priority_parts: Vec<PriorityPart>,
    used: Option<JobEfficiency>,
    /// The URL of the viewer's priority page; empty if no group of theirs has the account.
    priority: String,
    facts: Vec<JobFact>,
    array: String,
    /// Whether it ended without having started.
    never_started: bool,
    /// Whether it serves a dashboard. Such a job is started from the dashboard's page, not from here.
    is_dashboard: bool,
    /// The URL of the dashboard that it serves; empty if there is none any more.
    dashboard: String,
    details: LoadedJobDetails,
    /// Whether this portal submitted it, with a command of its own that needs no quotation marks.
    is_from_portal: bool,
    /// Where the figures come from and what is not known, if the portal has no record of the job.
    older: Option<OlderJobNote>,
    /// Whether this was built without asking the cluster, so that the fragment must load at once.
    is_first: bool,
    mark: u64,
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
    let is_from_portal = found.is_own && is_submitted_here(context, &found).await?;
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
    let verdict = judge_ended_job(&found.queue, record, details, &findings);
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
    let mut live = JobLiveView {
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

/// Whether the viewer submitted the job with this portal.
async fn is_submitted_here(context: &RequestContext, found: &JobOfPage) -> Result<bool, AppError> {
    let (key, number) = (found.queue.account.id, i64::try_from(found.id.number).unwrap_or(-1));
    let mut db = context.app.store.read().await?;
    Ok(store::submissions::find_by_job(&mut db, key.person, key.cluster, number).await?.is_some())
}

/// How a job ended; none if it hasn't, or if the cluster forgot it before anyone could know.
pub fn judge_ended_job(
    queue: &PersonClusterQueue,
    record: &JobRecord,
    details: &JobDetails,
    findings: &[LogFinding],
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

impl JobLiveView {
    /// The style of the verdict.
    fn tone(&self) -> &'static str {
        match self.verdict.as_ref().map(|verdict| verdict.tone) {
            Some(VerdictTone::Ok) => "ok",
            Some(VerdictTone::Warning) => "warning",
            Some(VerdictTone::Danger) => "danger",
            Some(VerdictTone::Neutral) | None => "info",
        }
    }

    /// The changed options as one line.
    fn options(suggested: &[SuggestedSbatchOption]) -> String {
        suggested.iter().map(|suggested| suggested.option.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Whether the job can have written anything.
    fn has_output(&self) -> bool {
        self.stage != JobStage::Pending
    }

    /// Whether it runs and has a time limit.
    const fn has_time_bar(&self) -> bool {
        matches!(self.row.time, JobTimeCell::Running { max, .. } if max > 0)
    }

    /// The largest number of points, for scaling bars.
    fn most_points(&self) -> i64 {
        self.priority_parts.iter().map(|part| part.points).max().unwrap_or(1)
    }

    /// Whether its position in the queue means anything.
    fn is_in_line(&self) -> bool {
        let kind = self.row.why.as_ref().map(|why| why.kind);
        matches!(kind, Some(WaitKind::Normal | WaitKind::Soon | WaitKind::Site))
    }

    /// The time by which it must finish, if its owner set one.
    fn deadline(&self) -> Option<UnixTime> {
        self.details.details.deadline.map(UnixTime)
    }

    /// The style of a figure.
    const fn level(figure: &EfficiencyFigure) -> &'static str {
        match figure.judgement {
            UsageJudgement::Good | UsageJudgement::Unknown => "",
            UsageJudgement::Low => "warning",
            UsageJudgement::High => "danger",
        }
    }

    /// As far as a bar can go.
    fn capped(figure: &EfficiencyFigure) -> u32 {
        figure.percent.unwrap_or(0).min(100)
    }

    /// Whether it may have written something for a dashboard. A dashboard's own job shows other folders.
    fn can_open_dashboard(&self) -> bool {
        self.is_own && self.folder().starts_with('/') && !self.is_dashboard && !self.never_started
    }

    /// The job's ID, without its cluster.
    fn job_id(&self) -> &str {
        self.pick.rsplit('/').next().unwrap_or_default()
    }

    fn folder(&self) -> &str {
        &self.row.folder
    }
}
