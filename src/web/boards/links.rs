//! Links by which guests see a dashboard: making one, taking it back, and those that someone oversees.

use askama::Template;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::super::Answer;
use super::super::extract::{Context, Form, Me, Path, Query};
use super::super::flash::{self, Flash};
use super::super::form::{Problems, shown_again};
use super::super::once::{self, Shown};
use super::super::page::{Page, Section, show};
use super::board::{Forms, ShareState, wrong};
use super::{address, fault, hidden, own};
use crate::auth::Permission;
use crate::boards::shares::{CreateGuestLinkError, DashboardGuestLink, GuestLinkRequest};
use crate::domain::{DashboardId, DashboardLinkId, GroupRole};

/// Where links are overseen.
const OVERSEEN: &str = "/boards/links";

#[derive(Template)]
#[template(path = "boards/links.html")]
struct LinksPage {
    page: Page,
    links: Vec<DashboardGuestLink>,
    is_admin: bool,
}

/// A link to be made.
#[derive(Deserialize)]
pub struct LinkForm {
    label: String,
    days: String,
    #[serde(default)]
    passphrase: SecretString,
}

impl LinkForm {
    /// What it asks for.
    pub fn invitation(&self) -> GuestLinkRequest {
        GuestLinkRequest {
            label: self.label.clone(),
            // What is no number is out of every range.
            days: self.days.trim().parse().unwrap_or(0),
            passphrase: self.passphrase.clone(),
        }
    }

    /// Whom it is for.
    pub fn label(&self) -> String {
        self.label.trim().to_owned()
    }

    /// The form again, with what was wrong.
    pub fn again(&self, problem: &CreateGuestLinkError) -> ShareState {
        let field = match problem {
            CreateGuestLinkError::Days => "days",
            CreateGuestLinkError::Passphrase => "passphrase",
            _ => "label",
        };
        let mut problems = Problems::one(field, problem);
        // It is not sent back to the page, and must not get lost without a word.
        if field != "passphrase" && !self.passphrase.expose_secret().is_empty() {
            problems.add("passphrase", "Enter the passphrase again, or leave it empty for none.");
        }
        ShareState { problems, label: shown_again(&self.label), days: shown_again(&self.days) }
    }
}

/// Where one came from.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Back {
    from: String,
}

/// The right by which someone sees links of others: a group that they lead, else everything.
pub fn overseeing(me: &Me) -> Permission {
    let led = me.0.viewer.groups.iter().find(|(_, role)| *role == GroupRole::Pi);
    led.map_or(Permission::ManagePeople, |(group, _)| Permission::OverseeDashboardLinks(*group))
}

/// Links that work, of the people in groups that one leads; of everyone for administrators.
pub async fn list(context: Context, me: Me) -> Answer {
    me.may(overseeing(&me))?;
    let links = context.app.dashboards.overseen(&me.0.viewer).await?;
    let page = Page::for_person(&context, &me.0, "Links that work", Section::Boards);
    show(&LinksPage { page, links, is_admin: me.0.viewer.is_admin })
}

/// Makes a link and shows it, once.
pub async fn add(
    context: Context,
    me: Me,
    Path(id): Path<DashboardId>,
    Form(form): Form<LinkForm>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let standing = own(&context, &me, id).await?;
    let invitation = form.invitation();
    let problem = match context.app.dashboards.share(&me.actor(&context), id, &invitation).await {
        Ok(token) => {
            let path = format!("/s/{}", token.as_str());
            let link = context.app.config.boards.public_url.join(&path);
            let label = form.label();
            return once::redirect(context, &me, &address(id), &Shown { link, label });
        }
        Err(CreateGuestLinkError::Auth(error)) => return Err(fault(error.into())),
        Err(error) => error,
    };
    let share = form.again(&problem);
    wrong(&context, &me, standing, Forms { share, ..Forms::default() }).await
}

/// Takes a link back. One that is not theirs to take back is not there.
pub async fn revoke(
    context: Context,
    me: Me,
    Path(id): Path<DashboardLinkId>,
    Query(back): Query<Back>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let board = context.app.dashboards.unshare(&me.actor(&context), id).await.map_err(hidden)?;
    let standing = context.app.dashboards.get(&me.0.viewer, board).await?;
    let is_mine = standing.is_some_and(|one| one.board.person_id == me.0.person.id);
    let to = if is_mine && back.from != "links" { address(board) } else { OVERSEEN.to_owned() };
    Ok(flash::redirect(context, &to, Flash::BoardUnshared))
}
