//! All dashboards that someone sees: their own, and those of their groups.

use askama::Template;

use super::super::Answer;
use super::super::compose::place::{self, Spot};
use super::super::extract::{Context, Me};
use super::super::page::{Page, Section, show};
use super::links::overseeing;
use super::state::{Glance, glance};
use super::{address, cost, kind_title};
use crate::auth::Permission;
use crate::boards::Standing;
use crate::clock::UnixTime;
use crate::domain::DashboardId;

#[derive(Template)]
#[template(path = "boards/list.html")]
struct ListPage {
    page: Page,
    shelves: Shelves,
    /// Whether there are links of others to look after.
    oversees: bool,
}

/// The list alone, for a page that is open.
#[derive(Template)]
#[template(path = "boards/shelves.html")]
struct Part {
    shelves: Shelves,
}

struct Shelves {
    mine: Vec<Row>,
    groups: Vec<Row>,
}

/// A dashboard in the list.
struct Row {
    id: DashboardId,
    href: String,
    title: String,
    kind: &'static str,
    cluster: String,
    /// Whose; empty for one's own.
    owner: String,
    /// The group that sees it.
    group: String,
    /// The first of what it shows, and how many more there are.
    shows: String,
    more: usize,
    glance: Glance,
    ends_at: Option<UnixTime>,
    cost: String,
    can_open: bool,
    can_start: bool,
}

/// The page.
pub async fn get(context: Context, me: Me) -> Answer {
    me.may(Permission::UseClusters)?;
    let spots = place::all(&context, &me).await?;
    let all = context.app.dashboards.list(&me.0.viewer).await?;
    let (mine, groups): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|standing| standing.board.person_id == me.0.person.id);
    let rows = |all: Vec<Standing>, is_mine| {
        all.into_iter().map(|one| row(one, is_mine, &spots)).collect()
    };
    let shelves = Shelves { mine: rows(mine, true), groups: rows(groups, false) };
    if context.is_fragment {
        return show(&Part { shelves });
    }
    let page = Page::for_person(&context, &me.0, "Dashboards", Section::Boards);
    show(&ListPage { page, shelves, oversees: me.may(overseeing(&me)).is_ok() })
}

fn row(standing: Standing, is_mine: bool, spots: &[Spot]) -> Row {
    let is_open = standing.is_open();
    let glance = glance(&standing);
    let Standing { board, run, is_live, .. } = standing;
    // What it costs is known from one's own place there; the owner's may have other prices.
    let spot = spots.iter().find(|spot| is_mine && spot.cluster.id == board.cluster_id);
    let places = board.places();
    Row {
        id: board.id,
        href: address(board.id),
        kind: kind_title(&board),
        cost: spot.and_then(|spot| cost::of(&board, &spot.place)).unwrap_or_default(),
        more: places.len().saturating_sub(1),
        shows: places.into_iter().next().unwrap_or_default(),
        ends_at: run.filter(|_| is_open).and_then(|run| run.ends_at()),
        can_open: is_live,
        can_start: is_mine && !is_open,
        owner: if is_mine { String::new() } else { board.owner_name },
        group: board.group_name.unwrap_or_default(),
        title: board.title,
        cluster: board.cluster,
        glance,
    }
}
