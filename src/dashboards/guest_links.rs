//! Guest links to dashboards: those of `auth`, and what a dashboard's pages and streams must learn of them.

use super::service::Dashboards;
use crate::auth::activity::Actor;
use crate::auth::guest_links::{
    CreateGuestLinkError, GuestLinkRequest, GuestLinkTarget, GuestLinkTargetKind, NewViewerAccess, OpenGuestLinkError,
};
use crate::auth::token::SecretToken;
use crate::auth::{AuthError, RequestClient};
use crate::domain::{DashboardId, GuestLinkId};

impl Dashboards {
    /// Creates a link. Its secret part is shown once and never again.
    pub async fn create_guest_link(
        &self,
        actor: &Actor,
        id: DashboardId,
        request: &GuestLinkRequest,
    ) -> Result<SecretToken, CreateGuestLinkError> {
        let token = self.0.core.auth.create_guest_link(actor, GuestLinkTarget::Dashboard(id), request).await?;
        self.notify_watchers(id);
        Ok(token)
    }

    /// Revokes a link to a dashboard, by its owner, by a PI of one of the owner's groups, or by an administrator.
    pub async fn revoke_guest_link(&self, actor: &Actor, id: GuestLinkId) -> Result<DashboardId, AuthError> {
        let is_expected = |target: GuestLinkTarget| target.kind() == GuestLinkTargetKind::Dashboard;
        match self.0.core.auth.revoke_guest_link(actor, id, is_expected).await? {
            GuestLinkTarget::Dashboard(dashboard) => {
                self.notify_changed(dashboard);
                Ok(dashboard)
            }
            GuestLinkTarget::Report(..) | GuestLinkTarget::Files(_) | GuestLinkTarget::DropBox(_) => {
                Err(AuthError::NotFound)
            }
        }
    }

    /// Opens a link to a dashboard.
    pub async fn open_guest_link(
        &self,
        token: &str,
        visitor: &RequestClient,
    ) -> Result<NewViewerAccess, OpenGuestLinkError> {
        let (target, session) =
            self.0.core.auth.open_guest_link(GuestLinkTargetKind::Dashboard, token, visitor).await?;
        if let GuestLinkTarget::Dashboard(id) = target {
            self.notify_watchers(id);
        }
        Ok(session)
    }
}
