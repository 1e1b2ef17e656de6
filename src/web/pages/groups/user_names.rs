//! The user names on clusters that belong to nobody in the portal: a PI names the people behind them.

use askama::Template;
use axum::http::StatusCode;
use serde::Deserialize;

use crate::auth::Permission;
use crate::domain::DisplayName;
use crate::format;
use crate::store::groups::Group;
use crate::usage::{SetUserNameError, UnlinkedUserName};
use crate::web::HandlerResult;
use crate::web::http::extractors::FormBody;
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::{FormErrors, echo_input};
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond_with};
use crate::web::pages::groups::GroupRequest;

/// Rows on the page: those with the highest usage.
const MAX_ROWS: usize = 200;

#[derive(Template)]
#[template(path = "groups/user_names/page.html")]
struct GroupUserNamesPage {
    page: PageFrame,
    group: Group,
    user_names: Vec<UnlinkedUserName>,
    /// How many more there are.
    more: usize,
    problems: FormErrors,
    /// The form that had problems: slug, user name, and the name as typed.
    typed: (String, String, String),
}

#[derive(Deserialize)]
pub struct UserNameForm {
    cluster: String,
    user_name: String,
    #[serde(default)]
    name: String,
}

impl GroupUserNamesPage {
    /// What a row's field shows.
    fn value<'a>(&'a self, user_name: &'a UnlinkedUserName) -> &'a str {
        if self.has_problem(user_name) { &self.typed.2 } else { &user_name.name }
    }

    fn has_problem(&self, user_name: &UnlinkedUserName) -> bool {
        !self.problems.is_empty() && self.typed.0 == user_name.slug && self.typed.1 == user_name.user_name
    }

    fn hours(user_name: &UnlinkedUserName) -> String {
        format::amount(user_name.core_hours)
    }
}

pub async fn get(request: GroupRequest) -> HandlerResult {
    render(request, FormErrors::default(), (String::new(), String::new(), String::new())).await
}

/// Names the person behind a user name; an empty name clears it.
pub async fn save(request: GroupRequest, FormBody(form): FormBody<UserNameForm>) -> HandlerResult {
    let group = request.group;
    request.me.may(Permission::ManageUsage(group))?;
    let mut problems = FormErrors::default();
    let is_cleared = form.name.trim().is_empty();
    let name = if is_cleared { None } else { problems.parse::<DisplayName>("name", &form.name) };
    if problems.is_empty() {
        let usage = &request.context.app.usage;
        let (actor, viewer) = (request.me.actor(&request.context), &request.me.0.viewer);
        match usage.set_user_name(&actor, viewer, group, (&form.cluster, &form.user_name), name.as_ref()).await {
            Ok(()) => {
                let to = format!("/groups/{group}/user-names");
                return Ok(flash::redirect(request.context, &to, FlashMessage::UserNameSet));
            }
            Err(SetUserNameError::Auth(error)) => return Err(error.into()),
            Err(error) => problems.add("name", error),
        }
    }
    let typed = (form.cluster, form.user_name, echo_input(&form.name));
    render(request, problems, typed).await
}

async fn render(request: GroupRequest, problems: FormErrors, typed: (String, String, String)) -> HandlerResult {
    request.me.may(Permission::ManageUsage(request.group))?;
    let group = request.load_group().await?;
    let view = request.load_usage().await?;
    let GroupRequest { context, me, .. } = request;
    context.app.usage.record_named_view(&me.actor(&context), group.id, None).await?;
    let mut user_names = view.unlinked_user_names();
    let more = user_names.len().saturating_sub(MAX_ROWS);
    user_names.truncate(MAX_ROWS);
    let status = if problems.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS };
    let page = PageFrame::for_person(&context, &me.0, "User names", NavSection::Groups);
    respond_with(status, &GroupUserNamesPage { page, group, user_names, more, problems, typed })
}
