//! Guest links: the form for a new one, whatever it leads to; creating and revoking links to a dashboard; the overview of
//! other people's links.

use askama::Template;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use crate::auth::Permission;
use crate::auth::guest_links::{
    CreateGuestLinkError, GuestLink, GuestLinkRequest, GuestLinkTarget, GuestLinkTargetKind,
};
use crate::auth::token::SecretToken;
use crate::domain::{DashboardId, GroupRole, GuestLinkId};
use crate::error::AppError;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, QueryParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::{FormErrors, echo_input};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::http::reveal_once::{self, SecretLinkShownOnce};
use crate::web::pages::dashboards::dashboard::{DashboardFormStates, GuestLinkFormState, show_with_problems};
use crate::web::pages::dashboards::{dashboard_path, find_managed, to_hidden_error};

/// The overview of guest links.
pub(in crate::web) const GUEST_LINKS_PATH: &str = "/dashboards/guest-links";

#[derive(Template)]
#[template(path = "dashboards/guest_links.html")]
struct AllDashboardLinksPage {
    page: PageFrame,
    links: Vec<GuestLink>,
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
    /// Creates a link; if that fails because of what was typed, returns the form to show again, with the error.
    pub async fn create_link(
        &self,
        context: &RequestContext,
        me: &CurrentPerson,
        target: GuestLinkTarget,
    ) -> Result<Result<SecretLinkShownOnce, GuestLinkFormState>, AppError> {
        let (actor, request) = (me.actor(context), self.to_request());
        let created = match target {
            GuestLinkTarget::Dashboard(id) => context.app.dashboards.create_guest_link(&actor, id, &request).await,
            target => context.app.auth.create_guest_link(&actor, target, &request).await,
        };
        self.show_created(context, target.kind(), created)
    }

    pub fn to_request(&self) -> GuestLinkRequest {
        GuestLinkRequest {
            label: self.label.clone(),
            // What isn't a number is out of every range.
            days: self.days.trim().parse().unwrap_or(0),
            passphrase: self.passphrase.clone(),
        }
    }

    /// The link to show, or the form with what is wrong.
    pub fn show_created(
        &self,
        context: &RequestContext,
        kind: GuestLinkTargetKind,
        created: Result<SecretToken, CreateGuestLinkError>,
    ) -> Result<Result<SecretLinkShownOnce, GuestLinkFormState>, AppError> {
        match created {
            Ok(token) => {
                let path = format!("{}/{}", kind.link_prefix(), token.as_str());
                let link = context.app.config.dashboards.public_url.join(&path);
                Ok(Ok(SecretLinkShownOnce { link, label: self.label.trim().to_owned() }))
            }
            Err(CreateGuestLinkError::Auth(error)) => Err(error.into()),
            Err(problem) => Ok(Err(self.form_state(&problem))),
        }
    }

    /// The form as it was filled in.
    pub fn echo(&self, problems: FormErrors) -> GuestLinkFormState {
        GuestLinkFormState { problems, label: echo_input(&self.label), days: echo_input(&self.days) }
    }

    fn form_state(&self, problem: &CreateGuestLinkError) -> GuestLinkFormState {
        let field = match problem {
            CreateGuestLinkError::Days => "days",
            CreateGuestLinkError::Passphrase => "passphrase",
            _ => "label",
        };
        let mut problems = FormErrors::single(field, problem);
        // The passphrase isn't sent back to the page, so ask for it again instead of losing it silently.
        if field != "passphrase" && !self.passphrase.expose_secret().is_empty() {
            problems.add("passphrase", "Enter the passphrase again, or leave it empty.");
        }
        self.echo(problems)
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
    let links = context.app.auth.list_overseen_links(&me.0.viewer).await?;
    let page = PageFrame::for_person(&context, &me.0, "All guest links", NavSection::Dashboards);
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
    let status = find_managed(&context, &me, id).await?;
    match form.create_link(&context, &me, GuestLinkTarget::Dashboard(id)).await? {
        Ok(shown) => reveal_once::redirect(context, &me, &dashboard_path(id), &shown),
        Err(link_form) => {
            let forms = DashboardFormStates { link_form, ..DashboardFormStates::default() };
            show_with_problems(&context, &me, status, forms).await
        }
    }
}

/// Revokes a link. One that they may not revoke is treated as missing.
pub async fn revoke(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(link): PathParams<GuestLinkId>,
    QueryParams(query): QueryParams<RevokeLinkQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let revoked = context.app.dashboards.revoke_guest_link(&me.actor(&context), link).await;
    let id = revoked.map_err(|error| to_hidden_error(error.into()))?;
    let status = context.app.dashboards.get(&me.0.viewer, id).await?;
    let is_mine = status.is_some_and(|status| status.dashboard.person_id == me.0.person.id);
    let to = if is_mine && query.from != "links" { dashboard_path(id) } else { GUEST_LINKS_PATH.to_owned() };
    Ok(flash::redirect(context, &to, FlashMessage::DashboardLinkRevoked))
}
