//! A dashboard's own page: how far it is, opening it, and for its owner who else sees it.

use askama::Template;
use serde::Deserialize;

use super::super::extract::{Context, Me, Path, Query};
use super::super::flash::{self, Flash, see_other};
use super::super::form::Problems;
use super::super::once::{self, Shown};
use super::super::page::{PROBLEMS, Page, Section, show, show_with};
use super::super::{Answer, assets};
use super::live::{Live, live};
use super::{address, fault, find, minute_choices};
use crate::auth::Permission;
use crate::boards::shares::{DEFAULT_LINK_DAYS, DashboardGuestLink};
use crate::boards::wishes::MOST_WAKES;
use crate::boards::{LONGEST, SHORTEST, Standing, whose};
use crate::domain::DashboardId;
use crate::error::AppError;

#[derive(Template)]
#[template(path = "boards/board.html")]
struct BoardPage {
    page: Page,
    boards_js: &'static str,
    live: Live,
    /// What only its owner sees.
    desk: Option<Desk>,
    /// The part that the page was asked to open.
    wanted: &'static str,
}

#[derive(Template)]
#[template(path = "boards/part.html")]
struct Part {
    live: Live,
}

/// What its owner can decide.
struct Desk {
    /// A link that was just made.
    shown: Shown,
    share: ShareState,
    /// Links that work, and those that no longer do.
    open: Vec<DashboardGuestLink>,
    ended: Vec<DashboardGuestLink>,
    settings: SettingsState,
    /// The owner's groups: number, name, whether they see it.
    groups: Vec<(String, String, bool)>,
    wake_minutes: Vec<(String, String, bool)>,
}

/// The form of a new link, as it is shown.
#[derive(Default)]
pub struct ShareState {
    /// What is wrong with it.
    pub problems: Problems,
    /// Whom the link is for.
    pub label: String,
    /// For how many days.
    pub days: String,
}

/// The form of the settings, as it is shown.
#[derive(Default)]
pub struct SettingsState {
    /// What is wrong with it.
    pub problems: Problems,
    /// What was typed: the name and how often others may start it. None: as it is.
    pub typed: Option<(String, String)>,
}

/// What the page is asked to open: the bar of an open dashboard leads here.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Ask {
    #[serde(rename = "do")]
    deed: String,
}

impl Ask {
    fn wanted(&self) -> &'static str {
        ["extend", "stop", "share"].into_iter().find(|known| *known == self.deed).unwrap_or("")
    }
}

/// The page.
pub async fn get(
    context: Context,
    me: Me,
    Path(id): Path<DashboardId>,
    Query(ask): Query<Ask>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let standing = find(&context, &me, id).await?;
    let shown = once::waiting(&context, &me, &address(id));
    let has_shown = shown.is_some();
    let forms = Forms { shown: shown.unwrap_or_default(), ..Forms::default() };
    let page = show(&page(&context, &me, standing, forms, ask.wanted()).await?)?;
    Ok(if has_shown { once::spend(&context, page) } else { page })
}

/// The part that renews itself.
pub async fn part(
    context: Context,
    me: Me,
    Path(id): Path<DashboardId>,
    Query(ask): Query<Ask>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let standing = find(&context, &me, id).await?;
    let mut live = live(&context, &me, &standing).await?;
    live.wanted = ask.wanted();
    show(&Part { live })
}

/// Goes to the dashboard itself, on its own origin, with a ticket that works once.
pub async fn open(context: Context, me: Me, Path(id): Path<DashboardId>) -> Answer {
    me.may(Permission::UseClusters)?;
    let standing = find(&context, &me, id).await?;
    if !standing.is_live {
        return Ok(flash::redirect(context, &address(id), Flash::BoardNotReady));
    }
    let ticket = context.app.dashboards.ticket(id, me.0.session)?;
    let to = format!("/enter/{}", ticket.as_str());
    Ok(see_other(&context.app.config.boards.public_url.join(&to)))
}

/// Forms as they are shown.
#[derive(Default)]
pub struct Forms {
    /// A link that was just made.
    pub shown: Shown,
    /// The form of a new link.
    pub share: ShareState,
    /// The form of the settings.
    pub settings: SettingsState,
}

/// The page again, with what must be mended.
pub async fn wrong(context: &Context, me: &Me, standing: Standing, forms: Forms) -> Answer {
    let wanted = if forms.share.problems.is_empty() { "" } else { "share" };
    show_with(PROBLEMS, &page(context, me, standing, forms, wanted).await?)
}

async fn page(
    context: &Context,
    me: &Me,
    standing: Standing,
    forms: Forms,
    wanted: &'static str,
) -> Result<BoardPage, AppError> {
    let mut live = live(context, me, &standing).await?;
    live.wanted = wanted;
    let is_mine = me.may(Permission::ManageDashboard(whose(&standing.board))).is_ok();
    let desk = if is_mine { Some(desk(context, me, &standing, forms).await?) } else { None };
    Ok(BoardPage {
        page: Page::for_person(context, &me.0, &standing.board.title, Section::Boards),
        boards_js: assets::address("boards.js"),
        live,
        desk,
        wanted,
    })
}

async fn desk(
    context: &Context,
    me: &Me,
    standing: &Standing,
    mut forms: Forms,
) -> Result<Desk, AppError> {
    let board = &standing.board;
    let now = context.app.clock.now();
    let shares = context.app.dashboards.shares(&me.0.viewer, board.id).await.map_err(fault)?;
    let (open, ended) = shares.into_iter().partition(|share| share.terms.is_open(now));
    if forms.share.days.is_empty() {
        forms.share.days = DEFAULT_LINK_DAYS.to_string();
    }
    let groups = me.0.memberships.iter().map(|one| {
        let is_chosen = board.group() == Some(one.group_id);
        (one.group_id.to_string(), one.group_name.clone(), is_chosen)
    });
    let wake = u32::try_from(board.wake_minutes).unwrap_or(SHORTEST);
    Ok(Desk {
        shown: forms.shown,
        share: forms.share,
        open,
        ended,
        settings: forms.settings,
        groups: groups.collect(),
        wake_minutes: minute_choices(LONGEST, SHORTEST, wake),
    })
}

impl BoardPage {
    /// What stands in the field of the name.
    fn title<'a>(&'a self, desk: &'a Desk) -> &'a str {
        desk.settings.typed.as_ref().map_or(&self.live.title, |(title, _)| title)
    }

    /// How often others may start it in a day.
    fn wakes(&self, desk: &Desk) -> String {
        match &desk.settings.typed {
            Some((_, wakes)) => wakes.clone(),
            None => self.live.wakes_per_day.to_string(),
        }
    }

    /// What is said of the number of starts.
    fn wakes_hint() -> String {
        format!("0: nobody but you. At most {MOST_WAKES} a day.")
    }
}
