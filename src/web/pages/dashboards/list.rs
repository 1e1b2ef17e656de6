//! All dashboards that someone can see: their own, and those of their groups.

use askama::Template;

use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::dashboards::DashboardStatus;
use crate::domain::DashboardId;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::compose::compose_target::{self, ComposeTarget};
use crate::web::pages::dashboards::guest_links::oversight_action;
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
    mine: Vec<DashboardListRow>,
    groups: Vec<DashboardListRow>,
}

struct DashboardListRow {
    id: DashboardId,
    href: String,
    title: String,
    kind: &'static str,
    cluster: String,
    /// Empty for the viewer's own.
    owner: String,
    /// The group that can see it.
    group: String,
    /// Its first folder, and how many more there are.
    shows: String,
    more: usize,
    badge: DashboardBadge,
    ends_at: Option<UnixTime>,
    cost: String,
    can_open: bool,
    can_start: bool,
}

pub async fn get(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let spots = compose_target::list_targets(&context, &me).await?;
    let all = context.app.dashboards.list(&me.0.viewer).await?;
    let (mine, groups): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|standing| standing.dashboard.person_id == me.0.person.id);
    let rows =
        |all: Vec<DashboardStatus>, is_mine| all.into_iter().map(|one| build_row(one, is_mine, &spots)).collect();
    let shelves = DashboardLists { mine: rows(mine, true), groups: rows(groups, false) };
    if context.is_fragment {
        return respond(&DashboardListFragment { lists: shelves });
    }
    let page = PageFrame::for_person(&context, &me.0, "Dashboards", NavSection::Dashboards);
    respond(&DashboardListPage { page, lists: shelves, oversees: me.may(oversight_action(&me)).is_ok() })
}

fn build_row(standing: DashboardStatus, is_mine: bool, spots: &[ComposeTarget]) -> DashboardListRow {
    let is_open = standing.is_open();
    let glance = badge(&standing);
    let DashboardStatus { dashboard: board, run, is_live, .. } = standing;
    // The cost comes from the viewer's own cluster account; the owner may pay other prices.
    let spot = spots.iter().find(|spot| is_mine && spot.cluster().id == board.cluster_id);
    let places = board.places();
    DashboardListRow {
        id: board.id,
        href: dashboard_path(board.id),
        kind: kind_title(&board),
        cost: spot.and_then(|spot| cost::dashboard_cost_text(&board, &spot.compose_context)).unwrap_or_default(),
        more: places.len().saturating_sub(1),
        shows: places.into_iter().next().unwrap_or_default(),
        ends_at: run.filter(|_| is_open).and_then(|run| run.ends_at()),
        can_open: is_live,
        can_start: is_mine && !is_open,
        owner: if is_mine { String::new() } else { board.owner_name },
        group: board.group_name.unwrap_or_default(),
        title: board.title,
        cluster: board.cluster,
        badge: glance,
    }
}
