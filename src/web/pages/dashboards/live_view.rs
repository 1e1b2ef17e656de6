//! The fragment of a dashboard's page that refreshes itself: its status, and the actions available now.

use crate::app::App;
use crate::auth::Permission;
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::cluster::{ClusterAccountId, ConnectionStatus};
use crate::dashboards::{DashboardWithRuns, owner_of};
use crate::error::AppError;
use crate::format;
use crate::store;
use crate::store::dashboards::Dashboard;
use crate::store::dashboards::runs::DashboardRun;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::pages::compose::compose_target;
use crate::web::pages::dashboards::status_text::{
    DashboardBadge, DashboardPhase, DashboardStatusText, DashboardStep, DashboardViewerFacts, badge, phase,
    status_text, steps,
};
use crate::web::pages::dashboards::{cost, dashboard_path, kind_title};
use crate::web::pages::jobs::job_lookup::{self, JobOrArray};
use crate::web::pages::jobs::list::row_builder;
use crate::web::pages::jobs::list_row::JobTimeCell;

pub struct DashboardLiveView {
    pub dashboard: Dashboard,
    pub href: String,
    /// `TensorBoard` or `MLflow`.
    pub kind: &'static str,
    /// Whether the viewer owns it.
    pub is_mine: bool,
    /// Its status in a word or two.
    pub badge: DashboardBadge,
    /// Its status in sentences.
    pub message: DashboardStatusText,
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
    pub wake_text: String,
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

/// Whether its owner has no connection over which it could be reached.
pub fn is_disconnected(app: &App, status: &DashboardWithRuns) -> bool {
    let owner = ClusterAccountId { person: status.dashboard.person_id, cluster: status.dashboard.cluster_id };
    matches!(app.connections.status(owner.connection_key()), ConnectionStatus::Down) && !status.is_live
}

/// Builds the view. Doesn't contact any cluster.
pub async fn build_live_view(
    context: &RequestContext,
    me: &CurrentPerson,
    status: &DashboardWithRuns,
) -> Result<DashboardLiveView, AppError> {
    let app = &context.app;
    let DashboardWithRuns { dashboard, run, next, is_live } = status;
    let is_mine = me.may(Permission::ManageDashboard(owner_of(dashboard))).is_ok();
    let is_down = is_disconnected(app, status);
    let phase = phase(status);
    let mut queue = DashboardWaitDetails::default();
    if let Some(run) = run.as_ref().filter(|_| is_mine && phase == DashboardPhase::Waiting) {
        queue = DashboardWaitDetails::load(context, me, dashboard, run).await?;
    }
    let status_context = DashboardViewerFacts {
        is_owner: is_mine,
        is_disconnected: is_down,
        idle_minutes: app.config.dashboards.idle_minutes,
        waiting_reason: &queue.why,
    };
    let targets = if is_mine { compose_target::list_targets(context, me).await? } else { Vec::new() };
    let target = targets.iter().find(|target| target.cluster().id == dashboard.cluster_id);
    let is_open = status.is_open();
    let wake = DashboardWakeOffer::load(context, me, status, is_down).await?;
    let has_stop = run.as_ref().is_some_and(|run| !run.stop.is_empty());
    let ends_at = status.ends_at();
    let is_on = is_open && !has_stop;
    Ok(DashboardLiveView {
        href: dashboard_path(dashboard.id),
        kind: kind_title(dashboard),
        is_mine,
        badge: badge(status, is_down),
        message: status_text(status, status_context),
        steps: if is_down { Vec::new() } else { steps(status) },
        start: queue.start,
        queue_position: queue.position,
        next_at: next.as_ref().and_then(|run| run.begin_at),
        woken_by: run.as_ref().and_then(|run| run.woken_by_name.clone()).unwrap_or_default(),
        cost: target
            .and_then(|target| cost::dashboard_cost_text(dashboard, &target.compose_context))
            .unwrap_or_default(),
        job: job_path(dashboard, run.as_ref().filter(|_| is_mine)),
        another: duplicate_path(dashboard),
        buttons: DashboardButtons {
            open: *is_live,
            connect: is_mine && is_down && is_open,
            extend: is_mine && is_on && ends_at.is_some() && next.is_none(),
            stop: is_mine && is_on,
            start: is_mine && !is_open,
            wake: wake.is_possible,
        },
        ends_at,
        wake_text: wake.text,
        is_moving: is_open && !is_live && !is_down,
        wanted: "",
        dashboard: dashboard.clone(),
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
        dashboard: &Dashboard,
        run: &DashboardRun,
    ) -> Result<Self, AppError> {
        let Some(job) = run.job else { return Ok(Self::default()) };
        let found = match job_lookup::find_job(context, me, &dashboard.slug, &job.to_string()).await {
            Ok(found) => found,
            Err(AppError::NotFound) => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let JobOrArray::Job(record) = &found.job_or_array else { return Ok(Self::default()) };
        let row = row_builder(&found.queue, context.app.clock.now(), "").record_row(record, true);
        let (start, position) = match row.time {
            JobTimeCell::Waiting { start, place, .. } => (start, place),
            JobTimeCell::Running { .. } | JobTimeCell::Ended { .. } => (None, String::new()),
        };
        Ok(Self { why: row.why.map(|why| why.sentence).unwrap_or_default(), start, position })
    }
}

/// What a colleague may do.
#[derive(Default)]
struct DashboardWakeOffer {
    is_possible: bool,
    text: String,
}

impl DashboardWakeOffer {
    async fn load(
        context: &RequestContext,
        me: &CurrentPerson,
        status: &DashboardWithRuns,
        is_down: bool,
    ) -> Result<Self, AppError> {
        let dashboard = &status.dashboard;
        if me.may(Permission::StartSharedDashboard(owner_of(dashboard))).is_err() || status.is_open() {
            return Ok(Self::default());
        }
        let owner = &dashboard.owner_name;
        let no = |text: String| Ok(Self { is_possible: false, text });
        if dashboard.wakes_per_day == 0 {
            return no(format!("Only {owner} can start this dashboard. Ask them if you want to see it."));
        }
        let since = context.app.clock.now().plus(-SECONDS_PER_DAY);
        let mut db = context.app.store.read().await?;
        let used = store::dashboards::runs::count_wakes(&mut db, dashboard.id, since).await?;
        let time = format::minutes(u32::try_from(dashboard.wake_minutes).unwrap_or(0));
        let left = dashboard.wakes_per_day - used;
        if left <= 0 {
            return no(format!(
                "{owner} allows their group {} a day, and none are left. Ask {owner} to start it, or try again tomorrow.",
                format_starts(dashboard.wakes_per_day)
            ));
        }
        if is_down {
            return no(format!(
                "You can't start this dashboard because it runs as {owner}, who isn't connected to {}. Ask them to connect.",
                dashboard.cluster
            ));
        }
        let text = format!(
            "You can start this dashboard for {time}. It runs as {owner} and is charged to their account. {owner} allows their group {} a day; {} left.",
            format_starts(dashboard.wakes_per_day),
            if left == 1 { "1 is".to_owned() } else { format!("{left} are") },
        );
        Ok(Self { is_possible: true, text })
    }
}

fn format_starts(count: i64) -> String {
    if count == 1 { "1 start".to_owned() } else { format!("{count} starts") }
}

/// The page of its job.
fn job_path(dashboard: &Dashboard, run: Option<&DashboardRun>) -> String {
    let number = run.and_then(|run| run.job);
    number.map(|number| format!("/jobs/{}/{number}", dashboard.slug)).unwrap_or_default()
}

/// The form for another dashboard like this one.
fn duplicate_path(dashboard: &Dashboard) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("cluster", &dashboard.slug).append_pair("kind", &dashboard.kind);
    for place in dashboard.places() {
        query.append_pair("place", &place);
    }
    query.append_pair("minutes", &dashboard.minutes.to_string());
    format!("/dashboards/new?{}", query.finish())
}
