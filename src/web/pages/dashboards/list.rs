//! All dashboards that someone can see: their own, and those of their groups.

use askama::Template;
use serde::Deserialize;

use crate::app::App;
use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::dashboards::DashboardWithRuns;
use crate::store::dashboards::Dashboard;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, QueryParams, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::compose::compose_target::{self, ComposeTarget};
use crate::web::pages::dashboards::guest_links::oversight_action;
use crate::web::pages::dashboards::live_view::is_disconnected;
use crate::web::pages::dashboards::status_text::{DashboardBadge, badge};
use crate::web::pages::dashboards::{cost, dashboard_path, kind_title};

#[derive(Template)]
#[template(path = "dashboards/list.html")]
struct DashboardListPage {
    page: PageFrame,
    lists: DashboardLists,
    /// Whether they oversee other people's guest links.
    oversees: bool,
}

/// The list alone, for a page that is open.
#[derive(Template)]
#[template(path = "dashboards/list_fragment.html")]
struct DashboardListFragment {
    lists: DashboardLists,
}

struct DashboardLists {
    /// The cluster that they are limited to: short name and title.
    cluster: Option<(String, String)>,
    mine: Vec<DashboardListRow>,
    groups: Vec<DashboardListRow>,
}

struct DashboardListRow {
    dashboard: Dashboard,
    href: String,
    kind: &'static str,
    is_mine: bool,
    places: Vec<String>,
    badge: DashboardBadge,
    ends_at: Option<UnixTime>,
    cost: String,
    can_open: bool,
    can_start: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct DashboardListQuery {
    /// The short name of a cluster, to see only its dashboards.
    cluster: String,
}

pub async fn get(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(query): QueryParams<DashboardListQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let targets = compose_target::list_targets(&context, &me).await?;
    let mut all = context.app.dashboards.list(&me.0.viewer).await?;
    let cluster = targets.iter().map(ComposeTarget::cluster).find(|cluster| cluster.slug == query.cluster);
    all.retain(|status| cluster.is_none_or(|cluster| status.dashboard.cluster_id == cluster.id));
    let (mine, groups): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|status| status.dashboard.person_id == me.0.person.id);
    let rows = |all: Vec<DashboardWithRuns>, is_mine| {
        all.into_iter().map(|status| build_row(status, is_mine, (&context.app, &targets))).collect()
    };
    let cluster = cluster.map(|cluster| (cluster.slug.clone(), cluster.title.clone()));
    let lists = DashboardLists { cluster, mine: rows(mine, true), groups: rows(groups, false) };
    if context.is_fragment {
        return respond(&DashboardListFragment { lists });
    }
    let page = PageFrame::for_person(&context, &me.0, "Dashboards", NavSection::Dashboards);
    respond(&DashboardListPage { page, lists, oversees: me.may(oversight_action(&me)).is_ok() })
}

impl DashboardLists {
    /// Where this list is loaded again.
    fn href(&self) -> String {
        self.cluster
            .as_ref()
            .map_or_else(|| "/dashboards".to_owned(), |(slug, _)| format!("/dashboards?cluster={slug}"))
    }
}

fn build_row(status: DashboardWithRuns, is_mine: bool, (app, targets): (&App, &[ComposeTarget])) -> DashboardListRow {
    let (is_open, ends_at, badge) = (status.is_open(), status.ends_at(), badge(&status, is_disconnected(app, &status)));
    let DashboardWithRuns { dashboard, is_live, .. } = status;
    // The cost comes from the viewer's own cluster account; the owner may pay other prices.
    let target = targets.iter().find(|target| is_mine && target.cluster().id == dashboard.cluster_id);
    let cost = target.and_then(|target| cost::dashboard_cost_text(&dashboard, &target.compose_context));
    DashboardListRow {
        href: dashboard_path(dashboard.id),
        kind: kind_title(&dashboard),
        is_mine,
        places: dashboard.places(),
        badge,
        ends_at,
        cost: cost.unwrap_or_default(),
        can_open: is_live,
        can_start: is_mine && !is_open,
        dashboard,
    }
}
