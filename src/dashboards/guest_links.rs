//! Links that show guests one dashboard: creating, opening, counting and revoking them.

use super::actions::{DashboardError, load_existing};
use super::service::{Dashboards, owner_of};
use crate::auth::activity::{ActivityDetails, ActivityEvent, Actor, record};
pub use crate::auth::guest_links::{CreateGuestLinkError, DEFAULT_LINK_DAYS, GuestLinkRequest, OpenGuestLinkError};
use crate::auth::guest_links::{GuestLinkId, GuestViewingSession, MAX_OPEN_LINKS};
use crate::auth::token::{self, SecretToken};
use crate::auth::{AuthError, Permission, RequestClient, Viewer};
use crate::domain::{DashboardId, DashboardLinkId};
use crate::store::dashboards::accesses::DashboardAccessGrant;
pub use crate::store::dashboards::guest_links::DashboardGuestLink;
use crate::store::dashboards::guest_links::{self, NewDashboardGuestLink};
use crate::store::{self, StoreError};

impl Dashboards {
    /// Creates a link. Its secret part is shown once and never again.
    pub async fn create_guest_link(
        &self,
        actor: &Actor,
        id: DashboardId,
        invitation: &GuestLinkRequest,
    ) -> Result<SecretToken, CreateGuestLinkError> {
        let core = &self.0.core;
        let terms = core.auth.prepare_guest_link(invitation).await?;
        let label = terms.label.as_str();
        let now = core.clock.now();
        let mut tx = core.store.write().await?;
        let board = self.load_managed(&mut tx, actor, id).await.map_err(AuthError::from)?;
        if guest_links::count_open(&mut tx, id, now).await? >= MAX_OPEN_LINKS {
            return Err(CreateGuestLinkError::TooMany);
        }
        let new = NewDashboardGuestLink {
            dashboard: id,
            token_hash: terms.token.hash_token(),
            label,
            passphrase: &terms.passphrase,
            expires_at: terms.expires_at,
        };
        guest_links::add(&mut tx, &new, now).await?;
        let about = ActivityDetails { person: Some(board.person_id), subject: &board.title, detail: label };
        record(&mut tx, actor, ActivityEvent::DashboardLinkCreated, about, now).await?;
        store::commit(tx).await?;
        self.notify_watchers(id);
        Ok(terms.token)
    }

    /// The links of a dashboard, for its owner.
    pub async fn list_guest_links(
        &self,
        viewer: &Viewer,
        id: DashboardId,
    ) -> Result<Vec<DashboardGuestLink>, DashboardError> {
        let mut db = self.0.core.store.read().await?;
        let board = load_existing(&mut db, id).await?;
        viewer.may(Permission::ManageDashboard(owner_of(&board))).map_err(|_| AuthError::Denied)?;
        Ok(guest_links::list_for_dashboard(&mut db, id, self.0.core.clock.now()).await?)
    }

    /// The links that a person oversees: those of people in groups of which they are a PI, or everyone's.
    pub async fn list_overseen_links(&self, viewer: &Viewer) -> Result<Vec<DashboardGuestLink>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        guest_links::list_overseen(&mut db, viewer.id, viewer.is_admin, self.0.core.clock.now()).await
    }

    /// Revokes a link, by its owner, by a PI of one of the owner's groups, or by an administrator. Guests who came by
    /// it lose access.
    pub async fn revoke_guest_link(&self, actor: &Actor, id: DashboardLinkId) -> Result<DashboardId, DashboardError> {
        let core = &self.0.core;
        let mut tx = core.store.write().await?;
        let share = guest_links::get(&mut tx, id).await?.ok_or(AuthError::NotFound)?;
        let board = load_existing(&mut tx, share.dashboard_id).await?;
        let mut allowed = Permission::ManageDashboard(owner_of(&board));
        if actor.id != Some(board.person_id) {
            let theirs = store::groups::list_for_person(&mut tx, board.person_id).await?;
            for group in theirs {
                let action = Permission::OverseeDashboardLinks(group.group_id);
                if core.auth.authorise(&mut tx, actor, action).await.is_ok() {
                    allowed = action;
                }
            }
            // Only administrators oversee people without a group.
            if allowed == Permission::ManageDashboard(owner_of(&board)) {
                allowed = Permission::ManagePeople;
            }
        }
        core.auth.authorise(&mut tx, actor, allowed).await?;
        let now = core.clock.now();
        if guest_links::revoke(&mut tx, id, now).await? {
            let about =
                ActivityDetails { person: Some(board.person_id), subject: &board.title, detail: &share.terms.label };
            record(&mut tx, actor, ActivityEvent::DashboardLinkRevoked, about, now).await?;
        }
        store::commit(tx).await?;
        self.notify_changed(board.id);
        Ok(board.id)
    }

    /// Opens a link: the browser gets its own access, locked if there is a passphrase.
    pub async fn open_guest_link(
        &self,
        token: &str,
        visitor: &RequestClient,
    ) -> Result<GuestViewingSession, OpenGuestLinkError> {
        let core = &self.0.core;
        let now = core.clock.now();
        let hash = token::hash(token);
        let found = guest_links::find(&mut *core.store.read().await?, &hash).await?;
        let Some(share) = found else {
            core.auth.limit_link_guess(visitor)?;
            return Err(OpenGuestLinkError::Unknown);
        };
        if share.terms.revoked_at().is_some() {
            return Err(OpenGuestLinkError::Revoked);
        }
        if !share.terms.is_open(now) {
            return Err(OpenGuestLinkError::Expired(share.terms.expires_at));
        }
        core.auth.limit_link_opening(GuestLinkId::Dashboard(share.id), visitor)?;
        let is_locked = share.terms.asks_passphrase();
        let entered = self
            .grant_access(
                share.dashboard_id,
                DashboardAccessGrant::GuestLink(share.id),
                is_locked,
                share.terms.expires_at,
                visitor,
            )
            .await?;
        Ok(entered)
    }
}

impl From<DashboardError> for AuthError {
    /// For callers that can only meet permission or database errors.
    fn from(error: DashboardError) -> Self {
        match error {
            DashboardError::Auth(error) => error,
            DashboardError::Store(error) => error.into(),
            _ => Self::Denied,
        }
    }
}
