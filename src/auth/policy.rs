//! Who may see and do what. All permissions are decided here; anything not listed is denied.

use crate::domain::{GroupId, GroupRole, PersonId};
use crate::store;

/// A signed-in person, as far as permissions are concerned.
#[derive(Debug, Clone)]
pub struct Viewer {
    pub id: PersonId,
    pub is_admin: bool,
    /// Their groups and their role in each.
    pub groups: Vec<(GroupId, GroupRole)>,
}

/// Who owns something that can be shared with a group: a recipe, a dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedItemOwnership {
    /// Its creator; none if their account is gone.
    pub owner: Option<PersonId>,
    /// The group that it is published to or shared with.
    pub group: Option<GroupId>,
}

/// Whether the script and the output of a group member's job are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberJobSharing {
    /// The group whose account the job was charged to.
    pub group: GroupId,
    /// What the group's PIs decided for everyone.
    pub is_group_shared: bool,
    /// What the job's owner decided; none if they leave it to the group.
    pub member_choice: Option<bool>,
}

/// Something that a person wants to see or do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Their own home page, account, devices and activity.
    UseOwnAccount,
    /// Clusters, their own connections and their own keys.
    UseClusters,
    /// Add, change and retire clusters; decide about host keys.
    ManageClusters,
    /// List all people; disable, enable and delete accounts.
    ManagePeople,
    /// See and export everyone's activity.
    SeeAllActivity,
    /// List all groups and create new ones.
    ManageGroups,
    /// See a group's page and its members.
    SeeGroup(GroupId),
    /// Invite someone to a group in this role.
    Invite(GroupId, GroupRole),
    /// See and revoke a group's open invitations.
    SeeInvitations(GroupId),
    /// Rename a group, change roles.
    ManageGroup(GroupId),
    /// Remove someone who has this role from a group.
    RemoveFromGroup(GroupId, GroupRole),
    /// See a saved recipe and create jobs with it.
    UseRecipe(SharedItemOwnership),
    /// Save a new version of a recipe, withdraw it from its group, delete it.
    ChangeRecipe(SharedItemOwnership),
    /// Publish a recipe to a group.
    PublishRecipe(SharedItemOwnership, GroupId),
    /// See problems with recipe files in the data folder.
    SeeRecipeFiles,
    /// View a dashboard.
    SeeDashboard(SharedItemOwnership),
    /// Start, stop and delete a dashboard; change its settings and guest links.
    ManageDashboard(SharedItemOwnership),
    /// Start someone else's dashboard on their behalf, within the limits that they set.
    StartSharedDashboard(SharedItemOwnership),
    /// Share a dashboard with a group.
    ShowDashboard(SharedItemOwnership, GroupId),
    /// Create, see and revoke guest links to files and drop-boxes of this person.
    ManageFileLinks(PersonId),
    /// See and revoke guest links to dashboards and files of a group's members.
    OverseeDashboardLinks(GroupId),
    /// See a group's total usage, and one's own.
    SeeUsage(GroupId),
    /// See the usage of each member of a group.
    SeePeoplesUsage(GroupId),
    /// Read the script and the output of a member's job. Its state, request and usage are `SeePeoplesUsage`.
    SeeMemberJobFiles(MemberJobSharing),
    /// Choose a group's accounts and set its allocations; reports.
    ManageUsage(GroupId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not allowed")]
pub struct AccessDeniedError;

impl Viewer {
    pub fn may(&self, action: Permission) -> Result<(), AccessDeniedError> {
        let allowed = match action {
            Permission::UseOwnAccount | Permission::UseClusters => true,
            Permission::SeeGroup(group) => self.is_admin || self.role_in(group).is_some(),
            // A PI invites and removes members; only administrators decide who else is a PI.
            Permission::Invite(group, GroupRole::Member)
            | Permission::RemoveFromGroup(group, GroupRole::Member)
            | Permission::SeeInvitations(group)
            | Permission::OverseeDashboardLinks(group) => self.is_admin || self.role_in(group) == Some(GroupRole::Pi),
            Permission::UseRecipe(item) => {
                self.is_owner(item) || item.group.is_some_and(|group| self.is_admin || self.role_in(group).is_some())
            }
            // Someone who has left a group can't change what it uses, even if they created it.
            Permission::ChangeRecipe(item) => match item.group {
                None => self.is_owner(item),
                Some(group) => {
                    self.is_admin
                        || self.role_in(group) == Some(GroupRole::Pi)
                        || (self.is_owner(item) && self.role_in(group).is_some())
                }
            },
            Permission::PublishRecipe(item, group) => self.is_owner(item) && self.role_in(group).is_some(),
            // Administrators have no access to other people's results.
            Permission::SeeDashboard(item) => self.is_owner(item) || item.group.is_some_and(|group| self.is_in(group)),
            Permission::ManageDashboard(item) => self.is_owner(item),
            Permission::ManageFileLinks(owner) => self.id == owner,
            Permission::StartSharedDashboard(item) => {
                !self.is_owner(item) && item.group.is_some_and(|group| self.is_in(group))
            }
            Permission::ShowDashboard(item, group) => self.is_owner(item) && self.is_in(group),
            // Administrators have no access to other people's usage.
            Permission::SeeUsage(group) => self.is_in(group),
            Permission::SeePeoplesUsage(group) | Permission::ManageUsage(group) => {
                self.role_in(group) == Some(GroupRole::Pi)
            }
            // The owner's own word counts more than the group's.
            Permission::SeeMemberJobFiles(sharing) => {
                self.role_in(sharing.group) == Some(GroupRole::Pi)
                    && sharing.member_choice.unwrap_or(sharing.is_group_shared)
            }
            Permission::SeeRecipeFiles
            | Permission::ManagePeople
            | Permission::ManageClusters
            | Permission::SeeAllActivity
            | Permission::ManageGroups
            | Permission::Invite(_, GroupRole::Pi)
            | Permission::RemoveFromGroup(_, GroupRole::Pi)
            | Permission::ManageGroup(_) => self.is_admin,
        };
        if allowed { Ok(()) } else { Err(AccessDeniedError) }
    }

    fn is_owner(&self, item: SharedItemOwnership) -> bool {
        item.owner == Some(self.id)
    }

    fn is_in(&self, group: GroupId) -> bool {
        self.role_in(group).is_some()
    }

    /// Their role in a group, if any.
    pub fn role_in(&self, group: GroupId) -> Option<GroupRole> {
        self.groups.iter().find(|(id, _)| *id == group).map(|(_, role)| *role)
    }
}

impl super::AuthService {
    /// Checks again inside the transaction that will act, because rights may have ended between the page's first
    /// check and the write lock. The command line on the portal's machine may do everything.
    pub async fn authorise(
        &self,
        db: &mut store::DbConnection,
        actor: &super::activity::Actor,
        action: Permission,
    ) -> super::Result<()> {
        let Some(id) = actor.id else { return Ok(()) };
        let viewer = self.viewer(db, id).await?.ok_or(super::AuthError::Denied)?;
        viewer.may(action).map_err(|AccessDeniedError| super::AuthError::Denied)
    }

    /// Someone's current permissions; none if their account is disabled.
    pub async fn viewer(&self, db: &mut store::DbConnection, id: PersonId) -> store::Result<Option<Viewer>> {
        let person = store::people::get(db, id).await?.filter(|person| !person.is_disabled);
        let Some(person) = person else { return Ok(None) };
        let groups = store::groups::list_for_person(db, id).await?;
        let groups = groups.iter().map(|membership| (membership.group_id, membership.role())).collect();
        Ok(Some(Viewer { id, is_admin: person.is_admin, groups }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAB: GroupId = GroupId(1);
    const OTHER: GroupId = GroupId(2);

    fn viewer(is_admin: bool, groups: &[(GroupId, GroupRole)]) -> Viewer {
        Viewer { id: PersonId(1), is_admin, groups: groups.to_vec() }
    }

    /// An administrator, a PI and a member of the lab, a PI of another group, and someone without a group.
    fn all_kinds_of_people() -> [Viewer; 5] {
        [
            viewer(true, &[]),
            viewer(false, &[(LAB, GroupRole::Pi)]),
            viewer(false, &[(LAB, GroupRole::Member)]),
            viewer(false, &[(OTHER, GroupRole::Pi)]),
            viewer(false, &[]),
        ]
    }

    /// The whole table, so that any change of permissions shows up in a diff.
    #[test]
    fn the_table_of_rights() {
        use Permission::{
            Invite, ManageClusters, ManageGroup, ManageGroups, ManagePeople, RemoveFromGroup, SeeAllActivity, SeeGroup,
            SeeInvitations, SeeRecipeFiles, UseClusters, UseOwnAccount,
        };
        let people = all_kinds_of_people();
        let table = [
            //                                admin  pi     member other  nobody
            (UseOwnAccount, /*             */ [true, true, true, true, true]),
            (UseClusters, /*               */ [true, true, true, true, true]),
            (ManageClusters, /*            */ [true, false, false, false, false]),
            (ManagePeople, /*              */ [true, false, false, false, false]),
            (SeeAllActivity, /*            */ [true, false, false, false, false]),
            (ManageGroups, /*              */ [true, false, false, false, false]),
            (SeeGroup(LAB), /*             */ [true, true, true, false, false]),
            (SeeInvitations(LAB), /*       */ [true, true, false, false, false]),
            (Invite(LAB, GroupRole::Member), /* */ [true, true, false, false, false]),
            (Invite(LAB, GroupRole::Pi), /*     */ [true, false, false, false, false]),
            (ManageGroup(LAB), /*          */ [true, false, false, false, false]),
            (RemoveFromGroup(LAB, GroupRole::Member), [true, true, false, false, false]),
            (RemoveFromGroup(LAB, GroupRole::Pi), /**/ [true, false, false, false, false]),
            (SeeRecipeFiles, /*            */ [true, false, false, false, false]),
            (Permission::OverseeDashboardLinks(LAB), /**/ [true, true, false, false, false]),
            (Permission::SeeUsage(LAB), /*     */ [false, true, true, false, false]),
            (Permission::SeePeoplesUsage(LAB), [false, true, false, false, false]),
            (Permission::ManageUsage(LAB), /*  */ [false, true, false, false, false]),
        ];
        for (action, expected) in table {
            let decided: Vec<bool> = people.iter().map(|viewer| viewer.may(action).is_ok()).collect();
            assert_eq!(decided, expected, "{action:?}");
        }
    }

    /// Scripts and output of members' jobs: shared by the member, by the group, or by neither.
    #[test]
    fn the_table_of_job_files() {
        let people = all_kinds_of_people();
        for (is_group_shared, member_choice, is_shown) in [
            (false, None, false),
            (false, Some(true), true),
            (true, None, true),
            (true, Some(false), false),
            (true, Some(true), true),
            (false, Some(false), false),
        ] {
            let sharing = MemberJobSharing { group: LAB, is_group_shared, member_choice };
            let action = Permission::SeeMemberJobFiles(sharing);
            let decided: Vec<bool> = people.iter().map(|viewer| viewer.may(action).is_ok()).collect();
            assert_eq!(decided, [false, is_shown, false, false, false], "{sharing:?}");
        }
    }

    /// Recipes: published to the lab by someone else; one's own; someone else's.
    #[test]
    fn the_table_of_recipes() {
        use Permission::{ChangeRecipe, PublishRecipe, UseRecipe};
        let people = all_kinds_of_people();
        let of = |owner: i64, group| SharedItemOwnership { owner: Some(PersonId(owner)), group };
        let (labs, own, own_labs, anothers) = (of(2, Some(LAB)), of(1, None), of(1, Some(LAB)), of(2, None));
        let table = [
            //                                admin  pi     member other  nobody
            (UseRecipe(labs), /*           */ [true, true, true, false, false]),
            (ChangeRecipe(labs), /*        */ [true, true, false, false, false]),
            (PublishRecipe(labs, LAB), /*  */ [false, false, false, false, false]),
            (UseRecipe(own), /*            */ [true, true, true, true, true]),
            (ChangeRecipe(own), /*         */ [true, true, true, true, true]),
            (PublishRecipe(own, LAB), /*   */ [false, true, true, false, false]),
            (UseRecipe(own_labs), /*       */ [true, true, true, true, true]),
            (ChangeRecipe(own_labs), /*    */ [true, true, true, false, false]),
            (UseRecipe(anothers), /*       */ [false, false, false, false, false]),
            (ChangeRecipe(anothers), /*    */ [false, false, false, false, false]),
        ];
        for (action, expected) in table {
            let decided: Vec<bool> = people.iter().map(|viewer| viewer.may(action).is_ok()).collect();
            assert_eq!(decided, expected, "{action:?}");
        }
        let gone = SharedItemOwnership { owner: None, group: None };
        assert!(people.iter().all(|viewer| viewer.may(UseRecipe(gone)).is_err()));
    }

    /// Dashboards: one's own; shared with the lab; someone else's.
    #[test]
    fn the_table_of_boards() {
        use Permission::{ManageDashboard, SeeDashboard, ShowDashboard, StartSharedDashboard};
        let people = all_kinds_of_people();
        let of = |owner: i64, group| SharedItemOwnership { owner: Some(PersonId(owner)), group };
        let (own, labs, anothers) = (of(1, None), of(2, Some(LAB)), of(2, None));
        let table = [
            //                         admin  pi     member other  nobody
            (SeeDashboard(own), /*      */ [true, true, true, true, true]),
            (ManageDashboard(own), /*   */ [true, true, true, true, true]),
            (StartSharedDashboard(own), /*     */ [false, false, false, false, false]),
            (ShowDashboard(own, LAB), /**/ [false, true, true, false, false]),
            (SeeDashboard(labs), /*     */ [false, true, true, false, false]),
            (ManageDashboard(labs), /*  */ [false, false, false, false, false]),
            (StartSharedDashboard(labs), /*    */ [false, true, true, false, false]),
            (ShowDashboard(labs, LAB), /**/ [false, false, false, false, false]),
            (Permission::ManageFileLinks(PersonId(1)), [true, true, true, true, true]),
            (Permission::ManageFileLinks(PersonId(2)), [false, false, false, false, false]),
            (SeeDashboard(anothers), /* */ [false, false, false, false, false]),
            (StartSharedDashboard(anothers), /**/ [false, false, false, false, false]),
        ];
        for (action, expected) in table {
            let decided: Vec<bool> = people.iter().map(|viewer| viewer.may(action).is_ok()).collect();
            assert_eq!(decided, expected, "{action:?}");
        }
    }
}
