//! The fragment of a dashboard's page that refreshes itself: its status, and the actions available now.

use crate::auth::Permission;
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::cluster::{ClusterAccountId, ConnectionStatus};
use crate::dashboards::{DashboardStatus, owner_of};
use crate::error::AppError;
use crate::format;
use crate::store;
use crate::store::dashboards::Dashboard;
use crate::store::dashboards::runs::DashboardRun;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::pages::compose::compose_target;
use crate::web::pages::dashboards::status_text::{
    DashboardBadge, DashboardPhase, DashboardStatusContext, DashboardStatusText, DashboardStep, badge, phase,
    status_text, steps,
};
use crate::web::pages::dashboards::{cost, dashboard_path, kind_title};
use crate::web::pages::jobs::job_lookup::{self, JobOrArray};
use crate::web::pages::jobs::list::row_builder;
use crate::web::pages::jobs::list_row::JobTimeCell;

pub struct DashboardLiveView {
    pub href: String,
    pub title: String,
    /// `TensorBoard` or `MLflow`.
    pub kind: &'static str,
    pub cluster: String,
    /// The cluster's short name.
    pub slug: String,
    /// Empty for the viewer's own.
    pub owner: String,
    /// The group that can see it; empty for none.
    pub group: String,
    pub places: Vec<String>,
    /// Its status in a word or two.
    pub badge: DashboardBadge,
    /// Its status in sentences.
    pub words: DashboardStatusText,
    /// The steps until it is ready, while it starts.
    pub steps: Vec<DashboardStep>,
    /// When its job may start.
    pub start: Option<UnixTime>,
    /// Its job's position in the queue.
    pub queue_position: String,
    /// When its time is up.
    pub ends_at: Option<UnixTime>,
    /// When the follow-up run takes over.
    pub next_at: Option<UnixTime>,
    /// Who started it, if not its owner.
    pub woken_by: String,
    /// What it costs, for its owner.
    pub cost: String,
    /// The page of its job, for its owner.
    pub job: String,
    /// The form for another dashboard like this one.
    pub another: String,
    pub buttons: DashboardButtons,
    /// What a colleague may do, as a sentence.
    pub wake_words: String,
    /// How many times a day colleagues may start it.
    pub wakes_per_day: i64,
    /// Whether its status is about to change.
    pub is_moving: bool,
    /// The section that the page should open.
    pub wanted: &'static str,
}

/// The actions available now.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "buttons that are there or not")]
pub struct DashboardButtons {
    pub open: bool,
    /// Connect to its cluster.
    pub connect: bool,
    /// Let a follow-up run take over.
    pub extend: bool,
    pub stop: bool,
    pub start: bool,
    pub wake: bool,
}

/// Builds the view. Doesn't contact any cluster.
pub async fn build_live_view(
    context: &RequestContext,
    me: &CurrentPerson,
    standing: &DashboardStatus,
) -> Result<DashboardLiveView, AppError> {
    let app = &context.app;
    let DashboardStatus { dashboard: board, run, next, is_live } = standing;
    let is_mine = me.may(Permission::ManageDashboard(owner_of(board))).is_ok();
    let key = ClusterAccountId { person: board.person_id, cluster: board.cluster_id };
    let is_down = matches!(app.connections.status(key.connection_key()), ConnectionStatus::Down) && !is_live;
    let phase = phase(standing);
    let mut queue = DashboardWaitDetails::default();
    if let Some(run) = run.as_ref().filter(|_| is_mine && phase == DashboardPhase::Waiting) {
        queue = DashboardWaitDetails::load(context, me, board, run).await?;
    }
    let look = DashboardStatusContext {
        is_owner: is_mine,
        is_disconnected: is_down,
        idle_minutes: app.config.dashboards.idle_minutes,
        waiting_reason: &queue.why,
    };
    let spots = if is_mine { compose_target::list_targets(context, me).await? } else { Vec::new() };
    let spot = spots.iter().find(|spot| spot.cluster().id == board.cluster_id);
    let is_open = standing.is_open();
    let wake = WakePermission::load(context, me, standing, is_down).await?;
    let has_stop = run.as_ref().is_some_and(|run| !run.stop.is_empty());
    let ends_at = run.as_ref().filter(|_| is_open).and_then(DashboardRun::ends_at);
    let is_on = is_open && !has_stop;
    Ok(DashboardLiveView {
        href: dashboard_path(board.id),
        title: board.title.clone(),
        kind: kind_title(board),
        cluster: board.cluster.clone(),
        slug: board.slug.clone(),
        owner: if is_mine { String::new() } else { board.owner_name.clone() },
        group: board.group_name.clone().unwrap_or_default(),
        badge: badge(standing),
        words: status_text(standing, look),
        steps: if is_down { Vec::new() } else { steps(standing) },
        start: queue.start,
        queue_position: queue.position,
        next_at: next.as_ref().and_then(|run| run.begin_at),
        woken_by: run.as_ref().and_then(|run| run.woken_by_name.clone()).unwrap_or_default(),
        cost: spot.and_then(|spot| cost::dashboard_cost_text(board, &spot.compose_context)).unwrap_or_default(),
        job: job_path(board, run.as_ref().filter(|_| is_mine)),
        another: duplicate_path(board),
        places: board.places(),
        buttons: DashboardButtons {
            open: *is_live,
            connect: is_mine && is_down && is_open,
            extend: is_mine && is_on && ends_at.is_some() && next.is_none(),
            stop: is_mine && is_on,
            start: is_mine && !is_open,
            wake: wake.is_possible,
        },
        ends_at,
        wake_words: wake.words,
        wakes_per_day: board.wakes_per_day,
        is_moving: is_open && !is_live && !is_down,
        wanted: "",
    })
}

/// What the queue says about its job.
#[derive(Default)]
struct DashboardWaitDetails {
    why: String,
    start: Option<UnixTime>,
    position: String,
}

impl DashboardWaitDetails {
    async fn load(
        context: &RequestContext,
        me: &CurrentPerson,
        board: &Dashboard,
        run: &DashboardRun,
    ) -> Result<Self, AppError> {
        let Some(number) = run.job else { return Ok(Self::default()) };
        let found = match job_lookup::find_job(context, me, &board.slug, &number.to_string()).await {
            Ok(found) => found,
            Err(AppError::NotFound) => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let JobOrArray::Job(record) = &found.job_or_array else { return Ok(Self::default()) };
        let row = row_builder(&found.queue, context.app.clock.now(), "").record_row(record, true);
        let (start, place) = match row.time {
            JobTimeCell::Waiting { start, place, .. } => (start, place),
            JobTimeCell::Running { .. } | JobTimeCell::Ended { .. } => (None, String::new()),
        };
        Ok(Self { why: row.why.map(|why| why.sentence).unwrap_or_default(), start, position: place })
    }
}

/// What a colleague may do.
#[derive(Default)]
struct WakePermission {
    is_possible: bool,
    words: String,
}

impl WakePermission {
    async fn load(
        context: &RequestContext,
        me: &CurrentPerson,
        standing: &DashboardStatus,
        is_down: bool,
    ) -> Result<Self, AppError> {
        let board = &standing.dashboard;
        if me.may(Permission::StartSharedDashboard(owner_of(board))).is_err() || standing.is_open() {
            return Ok(Self::default());
        }
        let owner = &board.owner_name;
        let no = |words: String| Ok(Self { is_possible: false, words });
        if board.wakes_per_day == 0 {
            return no(format!("Only {owner} can start it. Ask them if you want to see it."));
        }
        let since = context.app.clock.now().plus(-SECONDS_PER_DAY);
        let mut db = context.app.store.read().await?;
        let used = store::dashboards::runs::count_wakes(&mut db, board.id, since).await?;
        let time = format::minutes(u32::try_from(board.wake_minutes).unwrap_or(0));
        let left = board.wakes_per_day - used;
        if left <= 0 {
            return no(format!(
                "{owner} allows their group {} a day, and that was used. Ask {owner} to start it, or come back tomorrow.",
                format_starts(board.wakes_per_day)
            ));
        }
        if is_down {
            return no(format!(
                "It runs as {owner}, whose connection to {} is closed. Ask them to connect; then you can start it.",
                board.cluster
            ));
        }
        let words = format!(
            "You may start it: it runs as {owner}, who pays for it, for {time}. {owner} allows their group {} a day; {} left.",
            format_starts(board.wakes_per_day),
            if left == 1 { "1 is".to_owned() } else { format!("{left} are") },
        );
        Ok(Self { is_possible: true, words })
    }
}

fn format_starts(count: i64) -> String {
    if count == 1 { "1 start".to_owned() } else { format!("{count} starts") }
}

/// The page of its job.
fn job_path(board: &Dashboard, run: Option<&DashboardRun>) -> String {
    let number = run.and_then(|run| run.job);
    number.map(|number| format!("/jobs/{}/{number}", board.slug)).unwrap_or_default()
}

/// The form for another dashboard like this one.
fn duplicate_path(board: &Dashboard) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("cluster", &board.slug).append_pair("kind", &board.kind);
    for place in board.places() {
        query.append_pair("place", &place);
    }
    query.append_pair("minutes", &board.minutes.to_string());
    format!("/dashboards/new?{}", query.finish())
}
