//! The output of a job: its end, new lines, earlier lines, and the download. Slurm says which file that is; the URL
//! names only the job.

use askama::Template;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::Deserialize;

use crate::clock::UnixTime;
use crate::error::AppError;
use crate::format;
use crate::jobs::job_list::{has_begun, record_stage};
use crate::jobs::output::{JobWritingState, OutputFileKey, OutputFileState, OutputTail};
use crate::logs::terminal::LogLine;
use crate::slurm::job::{JobStage, JobState};
use crate::slurm::version::creates_output_folders;
use crate::web::HandlerResult;
use crate::web::http::assets;
use crate::web::http::extractors::{QueryParams, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::files::file_link;
use crate::web::pages::jobs::download::MAX_DOWNLOAD_BYTES;
use crate::web::pages::jobs::job_lookup::{JobOfPage, JobPageRequest, life_stage};
use crate::web::pages::jobs::output_words::{describe_silence, describe_wait, explain_missing_folder};

/// The last lines may still change, as progress bars do; those before stay as they are.
const UNSETTLED_LINES: usize = 40;
/// How long a job may take after its start until its details are known.
const OUTPUT_PATH_WAIT_S: u64 = 60;
/// How far back people can read here; beyond that, downloading is better.
const MAX_BYTES_BACK: u64 = 4 * 1024 * 1024;

/// While a job is this young, in seconds, the queue is read again once its output pauses. A short job may have ended,
/// and the page would learn of it only at the queue's next regular time.
const YOUNG_JOB_SECONDS: i64 = 120;

/// Which of the two files, and what the page already shows.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct OutputQuery {
    pub stream: String,
    generation: u64,
    /// The first line that may have changed.
    line: usize,
    /// For earlier lines: read up to here.
    end: u64,
    /// For earlier lines: how far back the reader already is.
    back: u64,
}

#[derive(Template)]
#[template(path = "jobs/output_page.html")]
struct JobOutputPage {
    page: PageFrame,
    log_js: &'static str,
    log: OutputViewer,
    name: String,
}

#[derive(Template)]
#[template(path = "jobs/output_fragment.html")]
struct OutputFragment {
    log: OutputViewer,
}

#[derive(Template)]
#[template(path = "jobs/output_more_fragment.html")]
struct OutputMoreFragment {
    log: OutputViewer,
}

#[derive(Template)]
#[template(path = "jobs/output_before_fragment.html")]
struct OutputBeforeFragment {
    href: String,
    lines: Vec<LogLine>,
    /// A remark between the lines; may be empty.
    note: &'static str,
    /// The URL of the next step back; empty if there is none.
    next: String,
    prefix: u64,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own for the template")]
struct OutputViewer {
    href: String,
    stream: &'static str,
    path: String,
    /// The output file in its folder; empty if its path isn't known.
    path_href: String,
    /// Whether error messages go to a separate file.
    is_split: bool,
    has_reported_paths: bool,
    has_begun: bool,
    is_over: bool,
    /// Whether this cluster's Slurm creates missing output folders, if that is known.
    creates_folders: Option<bool>,
    state: JobState,
    /// For how long it has been running or pending, in seconds.
    in_state_s: Option<u64>,
    shown: OutputTail,
    /// The number of the first line sent.
    first_line: usize,
}

/// The viewer: its own page without JavaScript, a fragment of the job's page with it.
pub async fn get(request: JobPageRequest, QueryParams(query): QueryParams<OutputQuery>) -> HandlerResult {
    let found = request.find_job().await?;
    let JobPageRequest { context, me, .. } = request;
    let name = found.require_job()?.job.name.clone();
    let log = load_viewer(&context, &found, &query).await?;
    if context.is_fragment {
        return respond(&OutputFragment { log });
    }
    respond(&JobOutputPage {
        page: PageFrame::for_person(&context, &me.0, "Output", NavSection::Jobs),
        log_js: assets::asset_url("log.js"),
        log,
        name,
    })
}

/// What is new since the page last asked; empty if nothing is.
pub async fn get_new_lines(request: JobPageRequest, QueryParams(query): QueryParams<OutputQuery>) -> HandlerResult {
    let found = request.find_job().await?;
    let mut log = load_viewer(&request.context, &found, &query).await?;
    let shown = &log.shown;
    if shown.generation != query.generation {
        // Another file, or one that was started over: replace the whole viewer.
        let headers = [("hx-retarget", "#job-output"), ("hx-reswap", "outerHTML")];
        return Ok((headers, respond(&OutputFragment { log })?).into_response());
    }
    // The page says how far its text reaches; the same length means the same text.
    if shown.end == query.end && !shown.is_final {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    log.first_line = query.line;
    respond(&OutputMoreFragment { log })
}

/// The lines before those shown.
pub async fn get_earlier_lines(request: JobPageRequest, QueryParams(query): QueryParams<OutputQuery>) -> HandlerResult {
    let found = request.find_job().await?;
    let (file, _) = find_output_file(&request.context, &found, &query.stream).await?;
    // No file is longer, and the cluster's shell can't count further.
    let end = query.end.min(1 << 60);
    let (lines, note, start) = match request.context.app.job_outputs.read_before(&file, end).await {
        Ok(Some((piece, rendered))) => (rendered.lines, "", piece.start),
        Ok(None) => (Vec::new(), "This part of the file no longer exists.", 0),
        Err(_) => (Vec::new(), "The cluster didn't respond. Reload the page to try again.", 0),
    };
    let href = found.href();
    let back = query.back.saturating_add(end - start.min(end));
    let (note, next) = match (note, start) {
        ("", 0) => ("Beginning of the file", String::new()),
        ("", _) if back >= MAX_BYTES_BACK => ("To see earlier lines, download the file.", String::new()),
        ("", start) => ("", before_href(&href, &query.stream, start, back)),
        (note, _) => (note, String::new()),
    };
    respond(&OutputBeforeFragment { href, lines, note, next, prefix: start })
}

fn before_href(href: &str, stream: &str, end: u64, back: u64) -> String {
    let stream = if stream == "err" { "err" } else { "out" };
    format!("{href}/output/before?stream={stream}&end={end}&back={back}")
}

/// Finds the file from what Slurm reported about the job, never from the URL. Reads the job details if needed.
pub async fn find_output_file(
    context: &RequestContext,
    found: &JobOfPage,
    stream: &str,
) -> Result<(OutputFileKey, (bool, bool)), AppError> {
    let record = found.require_job()?;
    let key = found.queue.account.id;
    let mut details = context.app.job_details.get_cached(key, record).await?.details;
    if details.stdout.is_empty() && record_stage(record) != JobStage::Pending {
        details = context.app.job_details.get_fresh(key, record).await?.details;
    }
    let is_split = !details.stderr.is_empty() && details.stderr != details.stdout;
    let path = if stream == "err" && is_split { &details.stderr } else { &details.stdout };
    // Before Slurm was asked, the path is what the script says.
    let has_reported_paths = details.paths_told || details.read_at == 0;
    Ok((OutputFileKey { queue: key, path: path.clone() }, (is_split, has_reported_paths)))
}

async fn load_viewer(
    context: &RequestContext,
    found: &JobOfPage,
    query: &OutputQuery,
) -> Result<OutputViewer, AppError> {
    let record = found.require_job()?;
    let has_begun = has_begun(record);
    let (file, (is_split, has_reported_paths)) = find_output_file(context, found, &query.stream).await?;
    let phase = life_stage(context, record);
    let now = context.app.clock.now();
    let since = if has_begun { record.job.start } else { record.job.submitted };
    let in_state_s = since.and_then(|since| u64::try_from(now.since(since)).ok());
    let shown = if has_begun && !file.path.is_empty() {
        context.app.job_outputs.follow(&file, phase).await
    } else {
        OutputTail::default()
    };
    let is_young = record.job.start.is_some_and(|start| now.since(start) < YOUNG_JOB_SECONDS);
    if shown.has_paused && is_young && record_stage(record) == JobStage::Running {
        context.app.queue_monitor.refresh_soon(found.queue.account.id).await?;
    }
    Ok(OutputViewer {
        href: found.href(),
        stream: if query.stream == "err" && is_split { "err" } else { "out" },
        path_href: file_link(&found.queue.cluster().slug, &file.path),
        path: file.path,
        is_over: phase != JobWritingState::Ongoing,
        is_split,
        has_reported_paths,
        has_begun,
        creates_folders: found.queue.account.discovered.slurm_version.as_deref().and_then(creates_output_folders),
        state: record.job.state,
        in_state_s,
        shown,
        first_line: 0,
    })
}

impl OutputViewer {
    /// Lines that won't change, from the first one sent.
    fn settled(&self) -> impl Iterator<Item = (usize, &LogLine)> {
        let lines = self.shown.rendered.lines.iter().enumerate();
        lines.take(self.first_unsettled()).skip(self.first_line)
    }

    /// Lines that may still change.
    fn unsettled(&self) -> impl Iterator<Item = (usize, &LogLine)> {
        self.shown.rendered.lines.iter().enumerate().skip(self.first_unsettled())
    }

    fn first_unsettled(&self) -> usize {
        let settled = self.shown.rendered.lines.len().saturating_sub(UNSETTLED_LINES);
        if self.shown.is_final { self.shown.rendered.lines.len() } else { settled.max(self.first_line) }
    }

    fn more_href(&self) -> String {
        let OutputTail { generation, end, .. } = self.shown;
        let (href, stream, line) = (&self.href, self.stream, self.first_unsettled());
        format!("{href}/output/more?stream={stream}&generation={generation}&line={line}&end={end}")
    }

    /// The first step back; empty if everything is shown.
    fn before_href(&self) -> String {
        match self.shown.base {
            0 => String::new(),
            base => before_href(&self.href, self.stream, base, 0),
        }
    }

    fn download_href(&self) -> String {
        format!("{}/output/download?stream={}", self.href, self.stream)
    }

    fn is_too_large(&self) -> bool {
        self.shown.size > MAX_DOWNLOAD_BYTES
    }

    fn has_text(&self) -> bool {
        self.shown.kind == OutputFileState::Text && self.shown.size > 0
    }

    /// The line with the first error, to jump to.
    fn first_error(&self) -> Option<usize> {
        self.shown.findings.first_error_line.filter(|_| self.has_text())
    }

    fn size(&self) -> String {
        format::bytes(self.shown.size)
    }

    /// Why there is nothing to see: a sentence, and what it may mean.
    fn empty_reason(&self) -> Option<(&'static str, String)> {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let (title, text) = match self.shown.kind {
            _ if !self.has_begun && self.is_over => ("No output", "The job never started.".to_owned()),
            _ if !self.has_begun => ("No output yet", describe_wait(self.in_state_s)),
            // Slurm tells it with the first look at the job.
            _ if self.path.is_empty() && self.in_state_s.is_some_and(|seconds| seconds < OUTPUT_PATH_WAIT_S) => {
                ("No output yet", "The portal hasn't loaded the job's details from Slurm yet.".to_owned())
            }
            _ if self.path.is_empty() => (
                "Output location unknown",
                "Slurm didn't report where this job writes its output. Interactive jobs print to the terminal they were started from.".to_owned(),
            ),
            OutputFileState::Unread => ("Couldn't read the output", String::new()),
            OutputFileState::Text if self.shown.size == 0 && self.is_over => ("No output", "The job ended without printing anything.".to_owned()),
            OutputFileState::Text if self.shown.size == 0 => ("No output yet", describe_silence(self.state, self.in_state_s)),
            OutputFileState::Text => return None,
            OutputFileState::Binary => ("Not a text file", "Download the file and open it with a suitable program.".to_owned()),
            OutputFileState::Missing if self.is_over => (
                "File not found",
                "It may have been moved or deleted, or it was on a node's local disk, which the portal can't reach.".to_owned(),
            ),
            OutputFileState::Missing => (
                "No output yet",
                format!(
                    "{} If this doesn't change, the portal may be unable to reach the output folder, or your storage quota may be used up.",
                    describe_silence(self.state, self.in_state_s)
                ),
            ),
            OutputFileState::NoFolder => (
                "Output folder not found",
                explain_missing_folder(folder, self.is_over, self.creates_folders),
            ),
            OutputFileState::Denied => ("You can't read this file", "It belongs to someone else, or its permissions don't allow it. Ask its owner for access.".to_owned()),
            OutputFileState::NotAFile if self.path == "/dev/null" => ("Output discarded", "The job's script or options send its output to /dev/null.".to_owned()),
            OutputFileState::NotAFile => ("Not a file", "The output goes to a device, a pipe or a folder, which can't be shown.".to_owned()),
        };
        Some((title, text))
    }

    fn modified(&self) -> Option<UnixTime> {
        self.shown.modified
    }
}
