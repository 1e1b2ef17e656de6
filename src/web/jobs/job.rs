//! The page of one job: what it does, why, how it ended, and everything that is known of it. The page is made from what
//! is known; its parts ask the cluster.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::Deserialize;

use super::super::Answer;
use super::super::assets;
use super::super::extract::{Context, Me, Path, Query};
use super::super::page::{Page, Section, show};
use super::super::standing;
use super::super::submissions;
use super::array;
use super::facts::facts;
use super::found::{Found, What, find, life};
use super::list::frame;
use super::queues::Place;
use super::row::{Row, Time};
use super::story::{Event, story};
use crate::auth::Permission;
use crate::boards;
use crate::error::AppError;
use crate::explain::efficiency::{Efficiency, Figure, Judgement, Measured, efficiency};
use crate::explain::sizes;
use crate::explain::verdict::{Ended, Mended, Tone, Verdict, verdict};
use crate::explain::waiting::{Kind, can_never_start};
use crate::jobs::entry::stage;
use crate::jobs::output::OutputKey;
use crate::jobs::{Record, Sheet};
use crate::logs::findings::{self, Finding};
use crate::slurm::job::JobStage;
use crate::store;

/// The part of the page waits so long for the cluster; what comes later is on the next one.
const PATIENCE: Duration = Duration::from_secs(12);
/// Lines of the end of the output that are shown with a verdict.
const LAST_LINES: usize = 6;

#[derive(Template)]
#[template(path = "jobs/job.html")]
struct JobPage {
    page: Page,
    log_js: &'static str,
    live: Live,
}

#[derive(Template)]
#[template(path = "jobs/job_part.html")]
struct LivePart {
    live: Live,
}

#[derive(Template)]
#[template(path = "jobs/script_part.html")]
struct ScriptPart {
    live: Live,
}

/// What the part has already.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Having {
    mark: u64,
    /// For arrays.
    pub state: String,
    /// For arrays.
    pub page: usize,
}

/// A button.
pub struct Deed {
    verb: &'static str,
    label: &'static str,
    kind: &'static str,
}

/// Everything that the page says of the job.
pub struct Live {
    place: Place,
    href: String,
    row: Row,
    stage: JobStage,
    is_own: bool,
    deeds: Vec<Deed>,
    pick: String,
    verdict: Option<Verdict>,
    /// What the output says went wrong, lifted out.
    finding: Option<Finding>,
    last_lines: Vec<String>,
    story: Vec<Event>,
    /// What its rank is made of: what for, points, and the points in words.
    ranks: Vec<(&'static str, u64, String)>,
    used: Option<Efficiency>,
    /// Where one reads why one's priority is low; empty if no group of the viewer's has the account.
    priority: String,
    facts: Vec<(&'static str, String)>,
    array: String,
    sheet: Sheet,
    /// Whether this was made without asking the cluster, so that the part must be asked for at once.
    is_first: bool,
    mark: u64,
}

/// The page.
pub async fn get(
    context: Context,
    me: Me,
    Path((slug, id)): Path<(String, String)>,
    Query(having): Query<Having>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let found = match find(&context, &me, &slug, &id).await {
        // Slurm has it, the list does not yet.
        Err(AppError::NotFound) => return submissions::of_job(&context, &me, &slug, &id).await,
        found => found?,
    };
    if let What::Array(entry) = &found.what {
        return array::page(&context, &me, &found, entry, &having).await;
    }
    let record = found.job()?.clone();
    let sheet = context.app.job_details.known(found.key(&me), &record).await?;
    let mut live = live(&context, &me, found, &record, sheet).await?;
    live.is_first = true;
    let title = if live.row.name.is_empty() { live.row.id.clone() } else { live.row.name.clone() };
    show(&JobPage {
        page: Page::for_person(&context, &me.0, &title, Section::Jobs),
        log_js: assets::address("log.js"),
        live,
    })
}

/// The part that renews itself, asked of the cluster if that is due.
pub async fn part(
    context: Context,
    me: Me,
    Path((slug, id)): Path<(String, String)>,
    Query(having): Query<Having>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let found = find(&context, &me, &slug, &id).await?;
    if let What::Array(entry) = &found.what {
        return array::part(&context, &me, &found, entry, &having).await;
    }
    let live = asked(&context, &me, found).await?;
    if live.mark == having.mark {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    show(&LivePart { live })
}

/// The script and the options, once they are known.
pub async fn script(context: Context, me: Me, Path((slug, id)): Path<(String, String)>) -> Answer {
    me.may(Permission::UseClusters)?;
    let found = find(&context, &me, &slug, &id).await?;
    found.job()?;
    show(&ScriptPart { live: asked(&context, &me, found).await? })
}

/// Asks the cluster for what is due: the paper, and once the job is over the end of its output.
async fn asked(context: &Context, me: &Me, found: Found) -> Result<Live, AppError> {
    let key = found.key(me);
    let record = found.job()?.clone();
    let papers = &context.app.job_details;
    let asking = async {
        let sheet = papers.look(key, &record).await?;
        let is_wanted =
            record.is_over && sheet.paper.log_end.is_empty() && !sheet.paper.stderr.is_empty();
        if is_wanted {
            let file = OutputKey { queue: key, path: sheet.paper.stderr.clone() };
            let shown = context.app.job_outputs.follow(&file, life(context, &record)).await;
            papers.keep_log(key, &record, &shown.rendered.texts()).await?;
            return papers.known(key, &record).await;
        }
        Ok(sheet)
    };
    let sheet = if let Ok(sheet) = tokio::time::timeout(PATIENCE, asking).await {
        sheet?
    } else {
        let known = papers.known(key, &record).await?;
        Sheet { trouble: Some("The cluster takes long to answer.".to_owned()), ..known }
    };
    live(context, me, found, &record, sheet).await
}

async fn live(
    context: &Context,
    me: &Me,
    found: Found,
    record: &Arc<Record>,
    sheet: Sheet,
) -> Result<Live, AppError> {
    let now = context.app.clock.now();
    let moments = if record.id.0 == 0 {
        Vec::new()
    } else {
        let mut db = context.app.store.read().await?;
        store::jobs::list_events(&mut db, record.id).await?
    };
    let point = match record.job.id.task {
        Some(_) => array::point_of(context, me, &found, record).await?,
        None => String::new(),
    };
    let job = &record.job;
    let priority = match stage(record) {
        JobStage::Pending if found.is_own => {
            standing::priority_page(context, me, found.place.cluster.id, &job.account).await?
        }
        _ => String::new(),
    };
    let row = frame(&found.place, now, "").record(record, found.is_own);
    let stage = stage(record);
    let paper = &sheet.paper;
    let usage = paper.usage();
    let findings = if record.is_over { findings::find(&paper.log_end).list } else { Vec::new() };
    let verdict = (record.is_over && !record.is_lost()).then(|| {
        let own = !paper.own_number.is_empty() && paper.own_number == record.cancelled_by;
        let by = if own { job.user.as_str() } else { record.cancelled_by.as_str() };
        verdict(&Ended {
            usage: usage.as_ref(),
            cancelled_by: Some(by).filter(|by| !by.is_empty()),
            findings: &findings,
            partition_max_minutes: found.place.longest(&job.partition),
            ..Ended::of(job)
        })
    });
    let used = usage
        .filter(|_| stage != JobStage::Pending)
        .map(|usage| efficiency(&Measured { job, usage: &usage, whole_node: false }));
    let is_bad = verdict
        .as_ref()
        .is_some_and(|verdict| matches!(verdict.tone, Tone::Danger | Tone::Warning));
    // A single line is quoted by the verdict itself; a whole block says more.
    let lifted = findings.into_iter().find(|finding| is_bad && finding.text.contains('\n'));
    let end = paper.log_end.iter().rev().filter(|line| !line.trim().is_empty()).take(LAST_LINES);
    let is_quoted =
        verdict.as_ref().is_some_and(|verdict| verdict.text.starts_with("Its output says"));
    let mut last_lines: Vec<String> =
        if is_bad && !is_quoted { end.cloned().collect() } else { Vec::new() };
    last_lines.reverse();
    let mut live = Live {
        href: found.href(),
        pick: format!("{}/{}", found.place.cluster.slug, job.id),
        array: job
            .id
            .task
            .map(|_| format!("/jobs/{}/{}", found.place.cluster.slug, job.id.number))
            .unwrap_or_default(),
        deeds: if found.is_own { deeds(record, found.place.user_top) } else { Vec::new() },
        story: story(record, &moments, now),
        ranks: ranks(&found.place, record),
        priority,
        finding: lifted,
        facts: facts(record, paper, &found, &point),
        is_own: found.is_own,
        place: found.place,
        is_first: false,
        mark: 0,
        row,
        stage,
        verdict,
        last_lines,
        used,
        sheet,
    };
    live.mark = mark(&live);
    Ok(live)
}

/// What fits its state.
fn deeds(record: &Record, user_top: bool) -> Vec<Deed> {
    let deed = |verb, label, kind| Deed { verb, label, kind };
    match stage(record) {
        JobStage::Pending if can_never_start(&record.job.reason) => {
            vec![deed("cancel", "Cancel", "secondary")]
        }
        JobStage::Pending if record.job.reason.contains("Held") => {
            vec![deed("release", "Release", "primary"), deed("cancel", "Cancel", "secondary")]
        }
        JobStage::Pending => {
            let top = user_top.then(|| deed("top", "Move before my others", "secondary"));
            let rest = [deed("hold", "Hold", "secondary"), deed("cancel", "Cancel", "secondary")];
            top.into_iter().chain(rest).collect()
        }
        JobStage::Running => vec![
            deed("requeue", "Put back into the queue", "secondary"),
            deed("cancel", "Cancel", "secondary"),
        ],
        JobStage::Ended => Vec::new(),
    }
}

/// What the rank of a waiting job is made of, the most first.
fn ranks(place: &Place, record: &Record) -> Vec<(&'static str, u64, String)> {
    let Some(factors) = place.picture.factors.get(&record.job.raw_id) else { return Vec::new() };
    let mut ranks = vec![
        ("Time it has waited", factors.age),
        ("Fair share of the group", factors.fair_share),
        ("Its size", factors.size),
        ("Part of the cluster", factors.partition_points),
        ("Kind of service (QOS)", factors.qos),
        ("Who pays", factors.association),
    ];
    ranks.retain(|(_, points)| *points > 0);
    ranks.sort_by_key(|(_, points)| std::cmp::Reverse(*points));
    ranks.into_iter().map(|(what, points)| (what, points, sizes::count(points, "point"))).collect()
}

/// Changes with what the part says. How old it is says the page by itself.
fn mark(live: &Live) -> u64 {
    let mut hasher = DefaultHasher::new();
    (live.row.mark, live.place.is_up, &live.sheet.trouble, live.sheet.paper.read_at)
        .hash(&mut hasher);
    live.place.seen().hash(&mut hasher);
    live.last_lines.hash(&mut hasher);
    (live.story.len(), &live.facts).hash(&mut hasher);
    if let Some(verdict) = &live.verdict {
        (&verdict.title, &verdict.text, &verdict.advice).hash(&mut hasher);
    }
    // A number that browsers can keep, and never 0.
    (hasher.finish() >> 12) | 1
}

impl Live {
    /// How the verdict looks.
    fn tone(&self) -> &'static str {
        match self.verdict.as_ref().map(|verdict| verdict.tone) {
            Some(Tone::Ok) => "ok",
            Some(Tone::Warning) => "warning",
            Some(Tone::Danger) => "danger",
            Some(Tone::Neutral) | None => "info",
        }
    }

    /// The changed options as one line.
    fn options(mended: &[Mended]) -> String {
        mended.iter().map(|mended| mended.option.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Whether the job can have written anything.
    fn has_output(&self) -> bool {
        self.stage != JobStage::Pending
    }

    /// As much as the most of them, for bars.
    fn most_points(&self) -> u64 {
        self.ranks.iter().map(|(_, points, _)| *points).max().unwrap_or(1)
    }

    /// Whether its place in the queue says anything.
    fn is_in_line(&self) -> bool {
        let kind = self.row.why.as_ref().map(|why| why.kind);
        matches!(kind, Some(Kind::Normal | Kind::Soon | Kind::Limit | Kind::Site))
    }

    fn name(&self) -> &str {
        if self.row.name.is_empty() { "(no name)" } else { &self.row.name }
    }

    /// How a figure looks.
    const fn level(figure: &Figure) -> &'static str {
        match figure.judgement {
            Judgement::Good | Judgement::Unknown => "",
            Judgement::Low => "warning",
            Judgement::High => "danger",
        }
    }

    /// As far as a bar can go.
    fn capped(figure: &Figure) -> u32 {
        figure.percent.unwrap_or(0).min(100)
    }

    /// Whether its folder may hold something for a dashboard. A dashboard's own job shows another's.
    fn can_show(&self) -> bool {
        let is_board = boards::Kind::ALL.iter().any(|kind| kind.job_name() == self.row.name);
        self.is_own && self.folder().starts_with('/') && !is_board
    }

    fn folder(&self) -> &str {
        &self.row.folder
    }
}
