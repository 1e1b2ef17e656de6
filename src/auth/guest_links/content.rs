//! What guest links lead to: whose it is, and what the activity log calls it.

use super::{GuestLinkTarget, GuestLinkTargetKind};
use crate::auth::activity::ActivityEventKind;
use crate::auth::{AuthError, Permission, SharedItemOwnership};
use crate::clock::UnixTime;
use crate::domain::PersonId;
use crate::store::{self, DbConnection};

/// What a link leads to, as far as permissions and the activity log are concerned.
pub(super) struct GuestLinkContent {
    pub title: String,
    /// Whose it is; none if it belongs to a group.
    pub owner: Option<PersonId>,
    /// What someone needs to create links to it and to list them.
    pub permission: Permission,
}

/// Something that was not deleted.
pub(super) async fn load_content(
    db: &mut DbConnection,
    target: GuestLinkTarget,
    now: UnixTime,
) -> Result<GuestLinkContent, AuthError> {
    match target {
        GuestLinkTarget::Dashboard(id) => {
            let dashboard = store::dashboards::get(db, id).await?.filter(|dashboard| !dashboard.is_removed());
            let dashboard = dashboard.ok_or(AuthError::NotFound)?;
            let owner = Some(dashboard.person_id);
            let permission = Permission::ManageDashboard(SharedItemOwnership { owner, group: dashboard.group() });
            Ok(GuestLinkContent { title: dashboard.title, owner, permission })
        }
        GuestLinkTarget::Report(group, id) => {
            let report = store::reports::get(db, group, id, now).await?.ok_or(AuthError::NotFound)?;
            Ok(GuestLinkContent { title: report.title, owner: None, permission: Permission::ManageUsage(group) })
        }
        GuestLinkTarget::Files(id) | GuestLinkTarget::DropBox(id) => {
            let shared = store::shared_paths::get(db, id).await?.ok_or(AuthError::NotFound)?;
            let permission = Permission::ManageFileLinks(shared.person_id);
            Ok(GuestLinkContent { title: shared.title, owner: Some(shared.person_id), permission })
        }
    }
}

/// What the activity log calls the creation, the revocation and the opening of a link.
pub(super) const fn link_events(kind: GuestLinkTargetKind) -> [ActivityEventKind; 3] {
    use ActivityEventKind::{
        DashboardLinkCreated, DashboardLinkOpened, DashboardLinkRevoked, DropBoxCreated, DropBoxOpened, DropBoxRevoked,
        FileLinkCreated, FileLinkOpened, FileLinkRevoked, ReportLinkCreated, ReportLinkOpened, ReportLinkRevoked,
    };
    match kind {
        GuestLinkTargetKind::Dashboard => [DashboardLinkCreated, DashboardLinkRevoked, DashboardLinkOpened],
        GuestLinkTargetKind::Report => [ReportLinkCreated, ReportLinkRevoked, ReportLinkOpened],
        GuestLinkTargetKind::Files => [FileLinkCreated, FileLinkRevoked, FileLinkOpened],
        GuestLinkTargetKind::DropBox => [DropBoxCreated, DropBoxRevoked, DropBoxOpened],
    }
}
