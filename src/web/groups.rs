//! Groups: who belongs to them, roles, and the administrators' tools for them.

use askama::Template;
use axum::http::StatusCode;
use serde::Deserialize;

use super::Answer;
use super::extract::{Context, Form, Me, Path};
use super::flash::{self, Flash, see_other};
use super::form::{Problems, shown_again};
use super::once::{self, Shown};
use super::page::{PROBLEMS, Page, Section, show_with};
use crate::auth::one_time_links::DEFAULT_INVITATION_DAYS;
use crate::auth::{AuthError, Permission};
use crate::clock::UnixTime;
use crate::domain::{DisplayName, GroupId, GroupRole, OneTimeLinkId, PersonId};
use crate::error::AppError;
use crate::store::groups::{Group, GroupMember};
use crate::store::{self, one_time_links};

/// A group's name.
#[derive(Deserialize)]
pub struct NameForm {
    name: String,
}

/// A new group.
#[derive(Deserialize)]
pub struct NewGroupForm {
    name: String,
    /// Whether the one who makes it leads it.
    #[serde(default)]
    lead: bool,
}

/// A role.
#[derive(Deserialize)]
pub struct RoleForm {
    role: String,
}

#[derive(Template)]
#[template(path = "groups/list.html")]
struct ListPage {
    page: Page,
    groups: Vec<Group>,
    may_manage: bool,
    typed_name: String,
    problems: Problems,
}

#[derive(Template)]
#[template(path = "groups/group.html")]
struct GroupPage {
    page: Page,
    group: Group,
    members: Vec<GroupMember>,
    invitations: Vec<Invitation>,
    me: PersonId,
    rights: Rights,
    state: State,
}

/// What the viewer may do on a group's page.
#[expect(clippy::struct_excessive_bools, reason = "each is a right of its own")]
struct Rights {
    invite: bool,
    invite_pi: bool,
    manage: bool,
    /// Seeing what the group used.
    see_usage: bool,
    manage_usage: bool,
}

/// What a form on a group's page left behind.
pub struct State {
    /// A link that was just made.
    pub shown: Shown,
    /// The invitation's fields as typed, if something was wrong with them.
    pub typed_label: String,
    /// The role that was chosen.
    pub role: String,
    /// The days that were typed.
    pub days: String,
    /// What was wrong with the invitation.
    pub invite_problems: Problems,
    /// What was wrong with the group's new name.
    pub name_problems: Problems,
    /// The name as typed.
    pub name: Option<String>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            shown: Shown::default(),
            typed_label: String::new(),
            role: "member".into(),
            days: DEFAULT_INVITATION_DAYS.to_string(),
            invite_problems: Problems::default(),
            name_problems: Problems::default(),
            name: None,
        }
    }
}

impl State {
    fn is_wrong(&self) -> bool {
        !self.invite_problems.is_empty() || !self.name_problems.is_empty()
    }
}

struct Invitation {
    id: OneTimeLinkId,
    label: String,
    role: &'static str,
    by: String,
    until: UnixTime,
    badge: (&'static str, String),
    is_open: bool,
}

impl Invitation {
    fn new(link: one_time_links::OneTimeLink, now: UnixTime) -> Self {
        let is_open = link.is_open(now);
        let badge = if let Some(by) = &link.used_by_name {
            ("ok", format!("Used by {by}"))
        } else if link.revoked_at.is_some() {
            ("neutral", "Taken back".into())
        } else if is_open {
            ("waiting", "Open".into())
        } else {
            ("neutral", "Too old".into())
        };
        Self {
            id: link.id,
            role: link.group_role().map_or("", |(_, role)| role.title()),
            by: link.created_by_name.clone().unwrap_or_else(|| "the command line".into()),
            until: link.expires_at,
            label: link.label,
            badge,
            is_open,
        }
    }
}

/// My groups; all groups for administrators. Someone with one group goes straight there.
pub async fn list(context: Context, me: Me) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    let may_manage = me.may(Permission::ManageGroups).is_ok();
    if let ([only], false) = (me.0.memberships.as_slice(), may_manage) {
        return Ok(see_other(&address(only.group_id)));
    }
    list_page(&context, &me, String::new(), Problems::default()).await
}

async fn list_page(context: &Context, me: &Me, typed_name: String, problems: Problems) -> Answer {
    let mut groups = store::groups::list(&mut *context.app.store.read().await?).await?;
    groups.retain(|group| me.may(Permission::SeeGroup(group.id)).is_ok());
    let status = if problems.is_empty() { StatusCode::OK } else { PROBLEMS };
    let page = ListPage {
        page: Page::for_person(context, &me.0, "Groups", Section::Groups),
        groups,
        may_manage: me.may(Permission::ManageGroups).is_ok(),
        typed_name,
        problems,
    };
    show_with(status, &page)
}

/// Makes a group.
pub async fn add(context: Context, me: Me, Form(form): Form<NewGroupForm>) -> Answer {
    me.may(Permission::ManageGroups)?;
    let mut problems = Problems::default();
    let leader = form.lead.then_some(me.0.person.id);
    if let Some(name) = problems.parse::<DisplayName>("name", &form.name) {
        match context.app.auth.add_group(&me.actor(&context), &name, leader).await {
            Ok(group) => return Ok(flash::redirect(context, &address(group), Flash::GroupMade)),
            Err(error) => problems = name_taken(error)?,
        }
    }
    list_page(&context, &me, shown_again(&form.name), problems).await
}

/// A group's page.
pub async fn get(context: Context, me: Me, Path(group): Path<GroupId>) -> Answer {
    me.may(Permission::SeeGroup(group))?;
    let Some(shown) = once::waiting(&context, &me, &address(group)) else {
        return group_page(&context, &me, group, State::default()).await;
    };
    let page = group_page(&context, &me, group, State { shown, ..State::default() }).await?;
    Ok(once::spend(&context, page))
}

/// A group's page, with what a form left behind.
pub async fn group_page(context: &Context, me: &Me, group: GroupId, state: State) -> Answer {
    let rights = Rights {
        invite: me.may(Permission::Invite(group, GroupRole::Member)).is_ok(),
        invite_pi: me.may(Permission::Invite(group, GroupRole::Pi)).is_ok(),
        manage: me.may(Permission::ManageGroup(group)).is_ok(),
        see_usage: me.may(Permission::SeeUsage(group)).is_ok(),
        manage_usage: me.may(Permission::ManageUsage(group)).is_ok(),
    };
    let now = context.app.clock.now();
    let mut db = context.app.store.read().await?;
    let found = store::groups::get(&mut db, group).await?.ok_or(AppError::NotFound)?;
    let members = store::groups::list_members(&mut db, group).await?;
    let invitations = if me.may(Permission::SeeInvitations(group)).is_ok() {
        let links = one_time_links::list_invitations(&mut db, group).await?;
        links.into_iter().map(|link| Invitation::new(link, now)).collect()
    } else {
        Vec::new()
    };
    let status = if state.is_wrong() { PROBLEMS } else { StatusCode::OK };
    let page = GroupPage {
        page: Page::for_person(context, &me.0, &found.name, Section::Groups),
        group: found,
        members,
        invitations,
        me: me.0.person.id,
        rights,
        state,
    };
    show_with(status, &page)
}

/// Gives a group another name.
pub async fn rename(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Form(form): Form<NameForm>,
) -> Answer {
    me.may(Permission::ManageGroup(group))?;
    let mut problems = Problems::default();
    if let Some(name) = problems.parse::<DisplayName>("name", &form.name) {
        match context.app.auth.rename_group(&me.actor(&context), group, &name).await {
            Ok(()) => {
                return Ok(flash::redirect(context, &address(group), Flash::GroupRenamed));
            }
            Err(error) => problems = name_taken(error)?,
        }
    }
    let state =
        State { name_problems: problems, name: Some(shown_again(&form.name)), ..State::default() };
    group_page(&context, &me, group, state).await
}

/// Changes what a member is.
pub async fn set_role(
    context: Context,
    me: Me,
    Path((group, person)): Path<(GroupId, PersonId)>,
    Form(form): Form<RoleForm>,
) -> Answer {
    me.may(Permission::ManageGroup(group))?;
    let role =
        form.role.parse::<GroupRole>().map_err(|error| AppError::BadRequest(error.to_string()))?;
    context.app.auth.set_role(&me.actor(&context), group, person, role).await?;
    Ok(flash::redirect(context, &address(group), Flash::RoleChanged))
}

/// Takes someone out of a group.
pub async fn remove(
    context: Context,
    me: Me,
    Path((group, person)): Path<(GroupId, PersonId)>,
) -> Answer {
    me.may(Permission::ManageGroup(group))?;
    context.app.auth.remove_member(&me.actor(&context), group, person).await?;
    Ok(flash::redirect(context, &address(group), Flash::MemberRemoved))
}

/// A group's address.
pub fn address(group: GroupId) -> String {
    format!("/groups/{group}")
}

fn name_taken(error: AuthError) -> Result<Problems, AppError> {
    match error {
        AuthError::NameTaken => Ok(Problems::one("name", "There is a group of this name already.")),
        other => Err(other.into()),
    }
}
