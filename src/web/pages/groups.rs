//! Groups: members, roles, and the administrators' tools for them.

pub(in crate::web) mod fair_share;
mod group_tables;
pub(in crate::web) mod invitations;
pub(in crate::web) mod member_actions;
pub(in crate::web) mod reports;
pub(in crate::web) mod sharing;
pub(in crate::web) mod stacked_bar_chart;
pub(in crate::web) mod table_sort;
pub(in crate::web) mod usage;
pub(in crate::web) mod usage_alerts;
pub(in crate::web) mod user_names;

use askama::Template;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use serde::Deserialize;

use crate::auth::one_time_links::DEFAULT_INVITATION_DAYS;
use crate::auth::{AuthError, Permission};
use crate::clock::UnixTime;
use crate::domain::{DisplayName, GroupId, GroupRole, PersonId};
use crate::error::AppError;
use crate::store;
use crate::store::groups::{Group, GroupMember};
use crate::store::one_time_links::{self, OneTimeLink};
use crate::usage::GroupUsage;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, QueryParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage, see_other};
use crate::web::http::form_errors::{FormErrors, echo_input};
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond_with};
use crate::web::http::reveal_once::{self, SecretLinkShownOnce};
use crate::web::pages::groups::table_sort::SortHeading;
use crate::web::portal_state::PortalState;

/// A request about a group.
#[derive(FromRequestParts)]
#[from_request(state(PortalState), rejection(AppError))]
pub struct GroupRequest {
    context: RequestContext,
    me: CurrentPerson,
    #[from_request(via(PathParams))]
    group: GroupId,
}

impl GroupRequest {
    /// The group's usage, if the viewer may see it.
    async fn load_usage(&self) -> Result<GroupUsage, AppError> {
        self.me.may(Permission::SeeUsage(self.group))?;
        Ok(self.context.app.usage.load_group_usage(&self.me.0.viewer, self.group).await?)
    }

    async fn load_group(&self) -> Result<Group, AppError> {
        store::groups::get(&mut *self.context.app.store.read().await?, self.group).await?.ok_or(AppError::NotFound)
    }
}

#[derive(Deserialize)]
pub struct RenameGroupForm {
    name: String,
}

#[derive(Deserialize)]
pub struct NewGroupForm {
    name: String,
    /// Whether the creator becomes a PI.
    #[serde(default)]
    lead: bool,
}

#[derive(Template)]
#[template(path = "groups/list.html")]
struct GroupListPage {
    page: PageFrame,
    groups: Vec<Group>,
    headings: Vec<SortHeading>,
    may_manage: bool,
    typed_name: String,
    problems: FormErrors,
}

#[derive(Template)]
#[template(path = "groups/group.html")]
struct GroupPage {
    page: PageFrame,
    group: Group,
    members: Vec<GroupMember>,
    member_headings: Vec<SortHeading>,
    invitations: Vec<InvitationRow>,
    invitation_headings: Vec<SortHeading>,
    me: PersonId,
    rights: GroupRights,
    state: GroupPageForms,
}

/// What the viewer may do on a group's page.
#[expect(clippy::struct_excessive_bools, reason = "each is a right of its own")]
struct GroupRights {
    invite: bool,
    invite_pi: bool,
    manage: bool,
    /// Removing members who are no PIs; `manage` covers PIs as well.
    remove: bool,
    /// Seeing the group's usage.
    see_usage: bool,
    manage_usage: bool,
}

/// What a submitted form leaves to show on a group's page.
pub struct GroupPageForms {
    /// A link that was just created.
    pub shown: SecretLinkShownOnce,
    /// The invitation's note as typed, if the form had problems.
    pub typed_label: String,
    /// The chosen role.
    pub role: String,
    /// The days as typed.
    pub days: String,
    /// What was wrong with the invitation.
    pub invite_problems: FormErrors,
    /// What was wrong with the group's new name.
    pub name_problems: FormErrors,
    /// The group's new name as typed.
    pub name: Option<String>,
    /// The form in which nobody was chosen as the new PI, as [`successor_scope`] names it, and what was wrong there.
    pub successor_scope: String,
    pub successor_problems: FormErrors,
    /// The order of the tables, as the query string names it.
    pub sort: String,
}

/// How the tables of groups and members are sorted.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct GroupTablesQuery {
    sort: String,
}

impl Default for GroupPageForms {
    fn default() -> Self {
        Self {
            shown: SecretLinkShownOnce::default(),
            typed_label: String::new(),
            role: "member".into(),
            days: DEFAULT_INVITATION_DAYS.to_string(),
            invite_problems: FormErrors::default(),
            name_problems: FormErrors::default(),
            name: None,
            successor_scope: String::new(),
            successor_problems: FormErrors::default(),
            sort: String::new(),
        }
    }
}

impl GroupPageForms {
    fn has_errors(&self) -> bool {
        [&self.invite_problems, &self.name_problems, &self.successor_problems].iter().any(|one| !one.is_empty())
    }
}

impl GroupPage {
    /// Those that still work, and those that were used, revoked or have expired.
    fn invitations_by_state(&self) -> (Vec<&InvitationRow>, Vec<&InvitationRow>) {
        self.invitations.iter().partition(|invitation| invitation.is_open)
    }

    fn is_sorting_invitations(&self) -> bool {
        group_tables::is_sorting_invitations(&self.state.sort)
    }

    fn may_remove(&self, member: &GroupMember) -> bool {
        self.rights.manage || (self.rights.remove && member.role() == GroupRole::Member)
    }

    /// Whether nobody else is a PI who can sign in.
    fn is_last_pi(&self, member: &GroupMember) -> bool {
        let is_other = |other: &&GroupMember| other.person_id != member.person_id;
        member.role() == GroupRole::Pi && !self.members.iter().filter(is_other).any(GroupMember::is_active_pi)
    }

    /// Who can become a PI in someone's place.
    fn successors(&self, member: &GroupMember) -> Vec<&GroupMember> {
        self.members.iter().filter(|other| other.person_id != member.person_id && !other.is_disabled).collect()
    }

    /// What is wrong with the choice of a new PI in one form of a member.
    fn successor_error(&self, action: &str, member: &GroupMember) -> &str {
        let is_here = self.state.successor_scope == successor_scope(action, member.person_id);
        if is_here { self.state.successor_problems.of("successor") } else { "" }
    }

    fn lacks_pi(&self) -> bool {
        !self.members.is_empty() && !self.members.iter().any(GroupMember::is_active_pi)
    }
}

struct InvitationRow {
    link: OneTimeLink,
    role: &'static str,
    badge: (&'static str, String),
    is_open: bool,
}

impl InvitationRow {
    fn new(link: OneTimeLink, now: UnixTime) -> Self {
        let is_open = link.is_open(now);
        let badge = if let Some(by) = &link.used_by_name {
            ("ok", format!("Used by {by}"))
        } else if link.revoked_at.is_some() {
            ("neutral", "Revoked".into())
        } else if is_open {
            ("waiting", "Open".into())
        } else {
            ("neutral", "Expired".into())
        };
        Self { role: link.group_role().map_or("", |(_, role)| role.title()), link, badge, is_open }
    }
}

/// The viewer's groups; all groups for administrators. Someone with one group goes straight to it.
pub async fn list(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(query): QueryParams<GroupTablesQuery>,
) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let may_manage = me.may(Permission::ManageGroups).is_ok();
    if let ([only], false) = (me.0.memberships.as_slice(), may_manage) {
        return Ok(see_other(&group_path(only.group_id)));
    }
    render_list(&context, &me, String::new(), FormErrors::default(), &query.sort).await
}

async fn render_list(
    context: &RequestContext,
    me: &CurrentPerson,
    typed_name: String,
    problems: FormErrors,
    sort: &str,
) -> HandlerResult {
    let mut groups = store::groups::list(&mut *context.app.store.read().await?).await?;
    groups.retain(|group| me.may(Permission::SeeGroup(group.id)).is_ok());
    let status = if problems.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS };
    let page = GroupListPage {
        page: PageFrame::for_person(context, &me.0, "Groups", NavSection::Groups),
        headings: group_tables::sort_groups(sort, &mut groups),
        groups,
        may_manage: me.may(Permission::ManageGroups).is_ok(),
        typed_name,
        problems,
    };
    respond_with(status, &page)
}

pub async fn add(context: RequestContext, me: CurrentPerson, FormBody(form): FormBody<NewGroupForm>) -> HandlerResult {
    me.may(Permission::ManageGroups)?;
    let mut problems = FormErrors::default();
    let leader = form.lead.then_some(me.0.person.id);
    if let Some(name) = problems.parse::<DisplayName>("name", &form.name) {
        match context.app.auth.add_group(&me.actor(&context), &name, leader).await {
            Ok(group) => {
                return Ok(flash::redirect(context, &members_path(group), FlashMessage::GroupMade));
            }
            Err(error) => problems = name_taken_error(error)?,
        }
    }
    render_list(&context, &me, echo_input(&form.name), problems, "").await
}

/// Opens a group: PIs come for its usage, everyone else sees its members.
pub async fn open(request: GroupRequest) -> HandlerResult {
    request.me.may(Permission::SeeGroup(request.group))?;
    if request.me.may(Permission::SeePeoplesUsage(request.group)).is_ok() {
        return Ok(see_other(&usage::usage_path(request.group)));
    }
    members(request, QueryParams(GroupTablesQuery::default())).await
}

/// The group's members and invitations.
pub async fn members(request: GroupRequest, QueryParams(query): QueryParams<GroupTablesQuery>) -> HandlerResult {
    let GroupRequest { context, me, group } = request;
    me.may(Permission::SeeGroup(group))?;
    let state = GroupPageForms { sort: query.sort, ..GroupPageForms::default() };
    let Some(shown) = reveal_once::take_pending(&context, &me, &members_path(group)) else {
        return render_group(&context, &me, group, state).await;
    };
    let page = render_group(&context, &me, group, GroupPageForms { shown, ..state }).await?;
    Ok(reveal_once::clear_cookie(&context, page))
}

/// A group's page, with what a form left to show.
pub async fn render_group(
    context: &RequestContext,
    me: &CurrentPerson,
    group: GroupId,
    state: GroupPageForms,
) -> HandlerResult {
    let rights = GroupRights {
        invite: me.may(Permission::Invite(group, GroupRole::Member)).is_ok(),
        invite_pi: me.may(Permission::Invite(group, GroupRole::Pi)).is_ok(),
        manage: me.may(Permission::ManageGroup(group)).is_ok(),
        remove: me.may(Permission::RemoveFromGroup(group, GroupRole::Member)).is_ok(),
        see_usage: me.may(Permission::SeeUsage(group)).is_ok(),
        manage_usage: me.may(Permission::ManageUsage(group)).is_ok(),
    };
    let now = context.app.clock.now();
    let mut db = context.app.store.read().await?;
    let found = store::groups::get(&mut db, group).await?.ok_or(AppError::NotFound)?;
    let mut members = store::groups::list_members(&mut db, group).await?;
    let mut invitations: Vec<InvitationRow> = if me.may(Permission::SeeInvitations(group)).is_ok() {
        let links = one_time_links::list_invitations(&mut db, group).await?;
        links.into_iter().map(|link| InvitationRow::new(link, now)).collect()
    } else {
        Vec::new()
    };
    let status = if state.has_errors() { FORM_ERROR_STATUS } else { StatusCode::OK };
    let page = GroupPage {
        page: PageFrame::for_person(context, &me.0, &found.name, NavSection::Groups),
        group: found,
        member_headings: group_tables::sort_members(&state.sort, &members_path(group), &mut members),
        members,
        invitation_headings: group_tables::sort_invitations(&state.sort, &members_path(group), &mut invitations),
        invitations,
        me: me.0.person.id,
        rights,
        state,
    };
    respond_with(status, &page)
}

pub async fn rename(request: GroupRequest, FormBody(form): FormBody<RenameGroupForm>) -> HandlerResult {
    let GroupRequest { context, me, group } = request;
    me.may(Permission::ManageGroup(group))?;
    let mut problems = FormErrors::default();
    if let Some(name) = problems.parse::<DisplayName>("name", &form.name) {
        match context.app.auth.rename_group(&me.actor(&context), group, &name).await {
            Ok(()) => {
                return Ok(flash::redirect(context, &members_path(group), FlashMessage::GroupRenamed));
            }
            Err(error) => problems = name_taken_error(error)?,
        }
    }
    let state =
        GroupPageForms { name_problems: problems, name: Some(echo_input(&form.name)), ..GroupPageForms::default() };
    render_group(&context, &me, group, state).await
}

fn group_path(group: GroupId) -> String {
    format!("/groups/{group}")
}

/// The page of a group's members and invitations.
pub fn members_path(group: GroupId) -> String {
    format!("/groups/{group}/members")
}

/// What the ids of the fields begin with in a form that asks who becomes a PI in someone's place.
pub fn successor_scope(action: &str, leaver: PersonId) -> String {
    format!("{action}-{leaver}-")
}

/// The form to invite someone to a group.
pub fn invite_path(group: GroupId) -> String {
    format!("{}#invite", members_path(group))
}

/// Where a PI selects the accounts of a group.
pub fn accounts_path(group: GroupId) -> String {
    format!("/groups/{group}/accounts")
}

fn name_taken_error(error: AuthError) -> Result<FormErrors, AppError> {
    match error {
        AuthError::NameTaken => Ok(FormErrors::single("name", "A group with this name already exists.")),
        other => Err(other.into()),
    }
}
