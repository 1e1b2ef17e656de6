//! Guest links to a dashboard: creating one, revoking it, and the overview of other people's links.

use askama::Template;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use crate::auth::Permission;
use crate::dashboards::guest_links::{CreateGuestLinkError, DashboardGuestLink, GuestLinkRequest};
use crate::domain::{DashboardId, DashboardLinkId, GroupRole};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, QueryParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::{FormErrors, echo_input};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::http::reveal_once::{self, SecretShownOnce};
use crate::web::pages::dashboards::dashboard::{DashboardForms, GuestLinkFormState, show_with_problems};
use crate::web::pages::dashboards::{dashboard_path, find_managed, to_app_error, to_hidden_error};

/// The overview of guest links.
const GUEST_LINKS_PATH: &str = "/dashboards/guest-links";

#[derive(Template)]
#[template(path = "dashboards/guest_links.html")]
struct AllDashboardLinksPage {
    page: PageFrame,
    links: Vec<DashboardGuestLink>,
    is_admin: bool,
}

#[derive(Deserialize)]
pub struct GuestLinkForm {
    label: String,
    days: String,
    #[serde(default)]
    passphrase: SecretString,
}

impl GuestLinkForm {
    pub fn invitation(&self) -> GuestLinkRequest {
        GuestLinkRequest {
            label: self.label.clone(),
            // What isn't a number is out of every range.
            days: self.days.trim().parse().unwrap_or(0),
            passphrase: self.passphrase.clone(),
        }
    }

    pub fn label(&self) -> String {
        self.label.trim().to_owned()
    }

    /// Shows the form again, with the error.
    pub fn form_state(&self, problem: &CreateGuestLinkError) -> GuestLinkFormState {
        let field = match problem {
            CreateGuestLinkError::Days => "days",
            CreateGuestLinkError::Passphrase => "passphrase",
            _ => "label",
        };
        let mut problems = FormErrors::single(field, problem);
        // The passphrase isn't sent back to the page, so ask for it again instead of losing it silently.
        if field != "passphrase" && !self.passphrase.expose_secret().is_empty() {
            problems.add("passphrase", "Enter the passphrase again, or leave it empty for none.");
        }
        GuestLinkFormState { problems, label: echo_input(&self.label), days: echo_input(&self.days) }
    }
}

/// The page that the person came from.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct RevokeLinkQuery {
    from: String,
}

/// The permission by which someone sees other people's links: for a group that they lead as PI, else for everything.
pub fn oversight_action(me: &CurrentPerson) -> Permission {
    let led = me.0.viewer.groups.iter().find(|(_, role)| *role == GroupRole::Pi);
    led.map_or(Permission::ManagePeople, |(group, _)| Permission::OverseeDashboardLinks(*group))
}

/// Active links of people in the groups that the viewer leads as PI; everyone's for administrators.
pub async fn list(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(oversight_action(&me))?;
    let links = context.app.dashboards.list_overseen_links(&me.0.viewer).await?;
    let page = PageFrame::for_person(&context, &me.0, "Links that work", NavSection::Dashboards);
    respond(&AllDashboardLinksPage { page, links, is_admin: me.0.viewer.is_admin })
}

/// Creates a link and reveals it once.
pub async fn create(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<DashboardId>,
    FormBody(form): FormBody<GuestLinkForm>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let standing = find_managed(&context, &me, id).await?;
    let invitation = form.invitation();
    let problem = match context.app.dashboards.create_guest_link(&me.actor(&context), id, &invitation).await {
        Ok(token) => {
            let path = format!("/s/{}", token.as_str());
            let link = context.app.config.dashboards.public_url.join(&path);
            let label = form.label();
            return reveal_once::redirect(context, &me, &dashboard_path(id), &SecretShownOnce { link, label });
        }
        Err(CreateGuestLinkError::Auth(error)) => return Err(to_app_error(error.into())),
        Err(error) => error,
    };
    let share = form.form_state(&problem);
    show_with_problems(&context, &me, standing, DashboardForms { link_form: share, ..DashboardForms::default() }).await
}

/// Revokes a link. One that they may not revoke is treated as missing.
pub async fn revoke(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<DashboardLinkId>,
    QueryParams(back): QueryParams<RevokeLinkQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let board = context.app.dashboards.revoke_guest_link(&me.actor(&context), id).await.map_err(to_hidden_error)?;
    let standing = context.app.dashboards.get(&me.0.viewer, board).await?;
    let is_mine = standing.is_some_and(|one| one.dashboard.person_id == me.0.person.id);
    let to = if is_mine && back.from != "links" { dashboard_path(board) } else { GUEST_LINKS_PATH.to_owned() };
    Ok(flash::redirect(context, &to, FlashMessage::DashboardLinkRevoked))
}
