//! Who may see and do what. The one place that decides; what is not named here is not allowed.

use crate::domain::{GroupId, GroupRole, PersonId};
use crate::store;

/// Someone who is signed in, as far as rights are concerned.
#[derive(Debug, Clone)]
pub struct Viewer {
    pub id: PersonId,
    /// Whether they administer the portal.
    pub is_admin: bool,
    /// Their groups and what they are there.
    pub groups: Vec<(GroupId, GroupRole)>,
}

/// Whose something is that can be shown to a group: a recipe, a dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ownership {
    /// Who made it; none if they are gone.
    pub owner: Option<PersonId>,
    /// The group it is published or shown to.
    pub group: Option<GroupId>,
}

/// Something a person wants to see or do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// One's own home page, account, devices and activity.
    UseOwnAccount,
    /// Clusters, one's own connections to them and one's own keys.
    UseClusters,
    /// Adding, changing and retiring clusters; deciding about host keys.
    ManageClusters,
    /// The list of all people, and switching accounts on and off.
    ManagePeople,
    /// Everybody's activity, and its export.
    SeeAllActivity,
    /// The list of all groups, and making one.
    ManageGroups,
    /// A group's page: who belongs to it.
    SeeGroup(GroupId),
    /// A group's invitations; inviting someone as that role.
    Invite(GroupId, GroupRole),
    /// A group's open invitations, and taking them back.
    SeeInvitations(GroupId),
    /// Renaming a group, changing roles in it, taking people out of it.
    ManageGroup(GroupId),
    /// Seeing a recipe that someone keeps, and making jobs with it.
    UseRecipe(Ownership),
    /// Saving a new version of it, taking it back from its group, deleting it.
    ChangeRecipe(Ownership),
    /// Publishing it to a group.
    PublishRecipe(Ownership, GroupId),
    /// What is wrong with recipe files in the data folder.
    SeeRecipeFiles,
    /// Looking at a dashboard.
    SeeDashboard(Ownership),
    /// Starting, stopping and deleting it; its settings and links.
    ManageDashboard(Ownership),
    /// Starting someone else's as them, within the limits that they set.
    StartSharedDashboard(Ownership),
    /// Showing it to a group.
    ShowDashboard(Ownership, GroupId),
    /// The links to dashboards of a group's people, and taking them back.
    OverseeDashboardLinks(GroupId),
    /// What a group used in all, and what one used oneself.
    SeeUsage(GroupId),
    /// What each person of a group used.
    SeePeoplesUsage(GroupId),
    /// Saying which accounts are a group's, and what was granted to them; reports.
    ManageUsage(GroupId),
}

/// The answer was no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not allowed")]
pub struct AccessDeniedError;

impl Viewer {
    pub fn may(&self, action: Permission) -> Result<(), AccessDeniedError> {
        let allowed = match action {
            Permission::UseOwnAccount | Permission::UseClusters => true,
            Permission::SeeGroup(group) => self.is_admin || self.role_in(group).is_some(),
            // A PI brings members in; who else leads the group is the administrators' decision.
            Permission::Invite(group, GroupRole::Member)
            | Permission::SeeInvitations(group)
            | Permission::OverseeDashboardLinks(group) => {
                self.is_admin || self.role_in(group) == Some(GroupRole::Pi)
            }
            Permission::UseRecipe(whose) => {
                self.is_owner(whose)
                    || whose
                        .group
                        .is_some_and(|group| self.is_admin || self.role_in(group).is_some())
            }
            // What a group uses is not changed by someone who has left it, even if they made it.
            Permission::ChangeRecipe(whose) => match whose.group {
                None => self.is_owner(whose),
                Some(group) => {
                    self.is_admin
                        || self.role_in(group) == Some(GroupRole::Pi)
                        || (self.is_owner(whose) && self.role_in(group).is_some())
                }
            },
            Permission::PublishRecipe(whose, group) => {
                self.is_owner(whose) && self.role_in(group).is_some()
            }
            // Whoever administers the portal sees nobody's results by that.
            Permission::SeeDashboard(whose) => {
                self.is_owner(whose) || whose.group.is_some_and(|group| self.is_in(group))
            }
            Permission::ManageDashboard(whose) => self.is_owner(whose),
            Permission::StartSharedDashboard(whose) => {
                !self.is_owner(whose) && whose.group.is_some_and(|group| self.is_in(group))
            }
            Permission::ShowDashboard(whose, group) => self.is_owner(whose) && self.is_in(group),
            // Whoever administers the portal sees nobody's work by that.
            Permission::SeeUsage(group) => self.is_in(group),
            Permission::SeePeoplesUsage(group) | Permission::ManageUsage(group) => {
                self.role_in(group) == Some(GroupRole::Pi)
            }
            Permission::SeeRecipeFiles
            | Permission::ManagePeople
            | Permission::ManageClusters
            | Permission::SeeAllActivity
            | Permission::ManageGroups
            | Permission::Invite(_, GroupRole::Pi)
            | Permission::ManageGroup(_) => self.is_admin,
        };
        if allowed { Ok(()) } else { Err(AccessDeniedError) }
    }

    fn is_owner(&self, whose: Ownership) -> bool {
        whose.owner == Some(self.id)
    }

    fn is_in(&self, group: GroupId) -> bool {
        self.role_in(group).is_some()
    }

    /// What they are in a group, if anything.
    pub fn role_in(&self, group: GroupId) -> Option<GroupRole> {
        self.groups.iter().find(|(id, _)| *id == group).map(|(_, role)| *role)
    }
}

impl super::AuthService {
    /// Decides once more, inside the transaction that will act: between a page's first look and the write lock,
    /// rights may have ended. Whoever runs commands on the portal's machine may do everything.
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

    /// Someone's rights as they are now; none if their account is switched off.
    pub async fn viewer(
        &self,
        db: &mut store::DbConnection,
        id: PersonId,
    ) -> store::Result<Option<Viewer>> {
        let person = store::people::get(db, id).await?.filter(|person| !person.is_disabled);
        let Some(person) = person else { return Ok(None) };
        let groups = store::groups::list_for_person(db, id).await?;
        let groups = groups.iter().map(|mine| (mine.group_id, mine.role())).collect();
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

    /// The whole table, so that a change of any right shows in a diff.
    #[test]
    fn the_table_of_rights() {
        use Permission::{
            Invite, ManageClusters, ManageGroup, ManageGroups, ManagePeople, SeeAllActivity,
            SeeGroup, SeeInvitations, SeeRecipeFiles, UseClusters, UseOwnAccount,
        };
        let people = [
            viewer(true, &[]),
            viewer(false, &[(LAB, GroupRole::Pi)]),
            viewer(false, &[(LAB, GroupRole::Member)]),
            viewer(false, &[(OTHER, GroupRole::Pi)]),
            viewer(false, &[]),
        ];
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
            (SeeRecipeFiles, /*            */ [true, false, false, false, false]),
            (Permission::OverseeDashboardLinks(LAB), /**/ [true, true, false, false, false]),
            (Permission::SeeUsage(LAB), /*     */ [false, true, true, false, false]),
            (Permission::SeePeoplesUsage(LAB), [false, true, false, false, false]),
            (Permission::ManageUsage(LAB), /*  */ [false, true, false, false, false]),
        ];
        for (action, expected) in table {
            let decided: Vec<bool> =
                people.iter().map(|viewer| viewer.may(action).is_ok()).collect();
            assert_eq!(decided, expected, "{action:?}");
        }
    }

    /// Recipes: the lab's, made by someone else; one's own; another's.
    #[test]
    fn the_table_of_recipes() {
        use Permission::{ChangeRecipe, PublishRecipe, UseRecipe};
        let people = [
            viewer(true, &[]),
            viewer(false, &[(LAB, GroupRole::Pi)]),
            viewer(false, &[(LAB, GroupRole::Member)]),
            viewer(false, &[(OTHER, GroupRole::Pi)]),
            viewer(false, &[]),
        ];
        let of = |owner: i64, group| Ownership { owner: Some(PersonId(owner)), group };
        let (labs, own, own_labs, anothers) =
            (of(2, Some(LAB)), of(1, None), of(1, Some(LAB)), of(2, None));
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
            let decided: Vec<bool> =
                people.iter().map(|viewer| viewer.may(action).is_ok()).collect();
            assert_eq!(decided, expected, "{action:?}");
        }
        let gone = Ownership { owner: None, group: None };
        assert!(people.iter().all(|viewer| viewer.may(UseRecipe(gone)).is_err()));
    }

    /// Dashboards: one's own; one that is shown to the lab; another's.
    #[test]
    fn the_table_of_boards() {
        use Permission::{ManageDashboard, SeeDashboard, ShowDashboard, StartSharedDashboard};
        let people = [
            viewer(true, &[]),
            viewer(false, &[(LAB, GroupRole::Pi)]),
            viewer(false, &[(LAB, GroupRole::Member)]),
            viewer(false, &[(OTHER, GroupRole::Pi)]),
            viewer(false, &[]),
        ];
        let of = |owner: i64, group| Ownership { owner: Some(PersonId(owner)), group };
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
            (SeeDashboard(anothers), /* */ [false, false, false, false, false]),
            (StartSharedDashboard(anothers), /**/ [false, false, false, false, false]),
        ];
        for (action, expected) in table {
            let decided: Vec<bool> =
                people.iter().map(|viewer| viewer.may(action).is_ok()).collect();
            assert_eq!(decided, expected, "{action:?}");
        }
    }
}
