//! A dashboard's page: its status, opening it, and, for its owner, who else can see it.

use askama::Template;
use serde::Deserialize;

use crate::auth::Permission;
use crate::auth::guest_links::{DEFAULT_LINK_DAYS, GuestLink, GuestLinkTarget};
use crate::clock::UnixTime;
use crate::dashboards::actions::MAX_WAKES_PER_DAY;
use crate::dashboards::{DashboardWithRuns, MAX_RUN_MINUTES, MIN_RUN_MINUTES, owner_of};
use crate::domain::DashboardId;
use crate::error::AppError;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, PathParams, QueryParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage, see_other};
use crate::web::http::form_errors::FormErrors;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond, respond_with};
use crate::web::http::reveal_once::{self, SecretLinkShownOnce};
use crate::web::pages::dashboards::guest_view::describe_guest_view;
use crate::web::pages::dashboards::live_view::{DashboardLiveView, build_live_view};
use crate::web::pages::dashboards::{dashboard_path, find_dashboard, minute_choices};

#[derive(Template)]
#[template(path = "dashboards/dashboard.html")]
struct DashboardPage {
    page: PageFrame,
    live: DashboardLiveView,
    /// What only its owner sees.
    owner_panel: Option<DashboardOwnerPanel>,
    /// The section that the page should open.
    wanted: &'static str,
}

#[derive(Template)]
#[template(path = "dashboards/dashboard_fragment.html")]
struct DashboardFragment {
    live: DashboardLiveView,
    /// As in [`DashboardOwnerPanel`]; `None` for others.
    guests_see: Option<String>,
}

/// The settings and guest links of its owner.
struct DashboardOwnerPanel {
    forms: DashboardFormStates,
    /// Guest links that work, and those that no longer do.
    open: Vec<GuestLink>,
    /// What guests see when a link works longer than the dashboard; empty if none does.
    guests_see: String,
    ended: Vec<GuestLink>,
    /// The owner's groups: id, name, whether they see it.
    groups: Vec<(String, String, bool)>,
    wake_minutes: Vec<(String, String, bool)>,
}

/// The form for a new guest link, as it is shown.
#[derive(Default)]
pub struct GuestLinkFormState {
    pub problems: FormErrors,
    /// Whom the link is for.
    pub label: String,
    /// How many days it works.
    pub days: String,
}

/// The settings form, as it is shown.
#[derive(Default)]
pub struct DashboardSettingsState {
    pub problems: FormErrors,
    /// The name and daily starts as typed; `None` shows the saved ones.
    pub typed: Option<(String, String)>,
}

/// The section to open: the bar of an open dashboard links here.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct DashboardPageQuery {
    #[serde(rename = "do")]
    action: String,
}

impl DashboardPageQuery {
    fn wanted_section(&self) -> &'static str {
        ["extend", "stop", "share"].into_iter().find(|section| *section == self.action).unwrap_or("")
    }
}

pub async fn get(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<DashboardId>,
    QueryParams(query): QueryParams<DashboardPageQuery>,
) -> HandlerResult {
    let status = find_dashboard(&context, &me, id).await?;
    let new_link = reveal_once::take_pending(&context, &me, &dashboard_path(id));
    let has_new_link = new_link.is_some();
    let forms = DashboardFormStates { new_link: new_link.unwrap_or_default(), ..DashboardFormStates::default() };
    let page = respond(&build_page(&context, &me, status, forms, query.wanted_section()).await?)?;
    Ok(if has_new_link { reveal_once::clear_cookie(&context, page) } else { page })
}

/// The fragment that refreshes itself.
pub async fn get_fragment(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<DashboardId>,
    QueryParams(query): QueryParams<DashboardPageQuery>,
) -> HandlerResult {
    let status = find_dashboard(&context, &me, id).await?;
    let mut live = build_live_view(&context, &me, &status).await?;
    live.wanted = query.wanted_section();
    let guests_see = if is_owner(&me, &status) {
        let (open, _) = list_links(&context, &me, &status).await?;
        Some(describe_guest_view(&status, last_expiry(&open)))
    } else {
        None
    };
    respond(&DashboardFragment { live, guests_see })
}

/// Redirects to the dashboard itself, on its own origin, with a ticket that works once.
pub async fn open(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<DashboardId>,
) -> HandlerResult {
    let status = find_dashboard(&context, &me, id).await?;
    if !status.is_live {
        return Ok(flash::redirect(context, &dashboard_path(id), FlashMessage::DashboardNotReady));
    }
    let ticket = context.app.dashboards.issue_ticket(id, me.0.session)?;
    let to = format!("/enter/{}", ticket.as_str());
    Ok(see_other(&context.app.config.dashboards.public_url.join(&to)))
}

/// Forms as they are shown.
#[derive(Default)]
pub struct DashboardFormStates {
    /// A guest link that was just created.
    pub new_link: SecretLinkShownOnce,
    pub link_form: GuestLinkFormState,
    pub settings: DashboardSettingsState,
}

/// Shows the page again, with the problems to fix.
pub async fn show_with_problems(
    context: &RequestContext,
    me: &CurrentPerson,
    status: DashboardWithRuns,
    forms: DashboardFormStates,
) -> HandlerResult {
    let wanted = if forms.link_form.problems.is_empty() { "" } else { "share" };
    respond_with(FORM_ERROR_STATUS, &build_page(context, me, status, forms, wanted).await?)
}

async fn build_page(
    context: &RequestContext,
    me: &CurrentPerson,
    status: DashboardWithRuns,
    forms: DashboardFormStates,
    wanted: &'static str,
) -> Result<DashboardPage, AppError> {
    let mut live = build_live_view(context, me, &status).await?;
    live.wanted = wanted;
    let owner_panel =
        if is_owner(me, &status) { Some(build_owner_panel(context, me, &status, forms).await?) } else { None };
    Ok(DashboardPage {
        page: PageFrame::for_person(context, &me.0, &status.dashboard.title, NavSection::Dashboards),
        live,
        owner_panel,
        wanted,
    })
}

fn is_owner(me: &CurrentPerson, status: &DashboardWithRuns) -> bool {
    me.may(Permission::ManageDashboard(owner_of(&status.dashboard))).is_ok()
}

/// Its guest links: those that work, and those that no longer do.
async fn list_links(
    context: &RequestContext,
    me: &CurrentPerson,
    status: &DashboardWithRuns,
) -> Result<(Vec<GuestLink>, Vec<GuestLink>), AppError> {
    let target = GuestLinkTarget::Dashboard(status.dashboard.id);
    let links = context.app.auth.list_guest_links(&me.0.viewer, target).await?;
    let now = context.app.clock.now();
    Ok(links.into_iter().partition(|link| link.is_open(now)))
}

fn last_expiry(open: &[GuestLink]) -> Option<UnixTime> {
    open.iter().map(|link| link.expires_at).max()
}

async fn build_owner_panel(
    context: &RequestContext,
    me: &CurrentPerson,
    status: &DashboardWithRuns,
    mut forms: DashboardFormStates,
) -> Result<DashboardOwnerPanel, AppError> {
    let dashboard = &status.dashboard;
    let (open, ended) = list_links(context, me, status).await?;
    if forms.link_form.days.is_empty() {
        forms.link_form.days = DEFAULT_LINK_DAYS.to_string();
    }
    let groups = me.0.memberships.iter().map(|membership| {
        let is_chosen = dashboard.group() == Some(membership.group_id);
        (membership.group_id.to_string(), membership.group_name.clone(), is_chosen)
    });
    let wake_minutes = u32::try_from(dashboard.wake_minutes).unwrap_or(MIN_RUN_MINUTES);
    Ok(DashboardOwnerPanel {
        guests_see: describe_guest_view(status, last_expiry(&open)),
        forms,
        open,
        ended,
        groups: groups.collect(),
        wake_minutes: minute_choices(MAX_RUN_MINUTES, MIN_RUN_MINUTES, wake_minutes),
    })
}

impl DashboardPage {
    /// The value of the name field.
    fn title<'a>(&'a self, owner_panel: &'a DashboardOwnerPanel) -> &'a str {
        owner_panel.forms.settings.typed.as_ref().map_or(&self.live.dashboard.title, |(title, _)| title)
    }

    /// How many times a day others may start it.
    fn wakes(&self, owner_panel: &DashboardOwnerPanel) -> String {
        match &owner_panel.forms.settings.typed {
            Some((_, wakes)) => wakes.clone(),
            None => self.live.dashboard.wakes_per_day.to_string(),
        }
    }

    fn wakes_hint() -> String {
        format!("Enter 0 if only you may start it. At most {MAX_WAKES_PER_DAY}.")
    }
}
