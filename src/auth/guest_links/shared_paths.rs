//! Guest links to files on clusters, and drop-boxes: sharing a path, listing what someone shares, and what a guest's
//! browser may reach.

use super::{
    CreateGuestLinkError, GuestAccessError, GuestBrowserAccess, GuestLink, GuestLinkRequest, GuestLinkTarget,
    GuestLinkTargetKind, MAX_OPEN_LINKS,
};
use crate::auth::activity::Actor;
use crate::auth::rate_limits::RateLimitKey;
use crate::auth::token::SecretToken;
use crate::auth::{AuthError, AuthService, Permission, Viewer};
use crate::domain::GuestLinkId;
use crate::store::shared_paths::{self, NewSharedPath, SharedPath, SharedPathKind};
use crate::store::{self, StoreError, guest_links};

impl AuthService {
    /// Shares a path by a new link. Its secret part is shown once and never again.
    pub async fn share_path(
        &self,
        actor: &Actor,
        new: &NewSharedPath<'_>,
        request: &GuestLinkRequest,
    ) -> Result<SecretToken, CreateGuestLinkError> {
        let terms = self.check_terms(request).await?;
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        if guest_links::count_open_to_files(&mut tx, new.person, now).await? >= MAX_OPEN_LINKS {
            return Err(CreateGuestLinkError::TooMany);
        }
        let id = shared_paths::add(&mut tx, new, now).await?;
        let target = match new.kind {
            SharedPathKind::File | SharedPathKind::Folder => GuestLinkTarget::Files(id),
            SharedPathKind::DropBox => GuestLinkTarget::DropBox(id),
        };
        let token = self.add_link(&mut tx, actor, target, &terms).await?;
        store::commit(tx).await?;
        Ok(token)
    }

    /// Someone's own links to files and their drop-boxes. Newest first; those that still work before the others.
    pub async fn list_file_links(&self, viewer: &Viewer) -> Result<Vec<(GuestLink, SharedPath)>, AuthError> {
        viewer.may(Permission::ManageFileLinks(viewer.id)).map_err(|_| AuthError::Denied)?;
        let mut db = self.store.read().await?;
        let links = guest_links::list_to_files(&mut db, viewer.id, self.clock.now()).await?;
        let paths = shared_paths::list(&mut db, viewer.id).await?;
        let with_path = |link: GuestLink| {
            let (GuestLinkTarget::Files(id) | GuestLinkTarget::DropBox(id)) = link.target else { return None };
            let path = paths.iter().find(|path| path.id == id)?;
            Some((link, path.clone()))
        };
        Ok(links.into_iter().filter_map(with_path).collect())
    }

    /// What a guest's browser with this key and cookie may reach now: checked on every request.
    pub async fn check_shared_path(
        &self,
        kind: GuestLinkTargetKind,
        access_key: &str,
        cookie: &str,
    ) -> Result<(GuestBrowserAccess, SharedPath), GuestAccessError> {
        let access = self.check_guest_access(kind, access_key, cookie).await?;
        let (GuestLinkTarget::Files(id) | GuestLinkTarget::DropBox(id)) = access.link.target else {
            return Err(GuestAccessError::Closed);
        };
        let shared = shared_paths::get(&mut *self.store.read().await?, id).await?;
        shared.map(|shared| (access, shared)).ok_or(GuestAccessError::Closed)
    }

    /// Whether a link still lets people in: long downloads ask now and then.
    pub async fn is_link_usable(&self, id: GuestLinkId) -> Result<bool, StoreError> {
        let link = guest_links::get(&mut *self.store.read().await?, id).await?;
        Ok(link.is_some_and(|link| link.is_usable(self.clock.now())))
    }

    /// Counts a guest's request that needs the cluster, or tells how many seconds to wait.
    pub fn limit_guest_requests(&self, id: GuestLinkId) -> Result<(), i64> {
        self.rate_limiter.take(&[RateLimitKey::GuestFileRequest(id)], self.clock.now())
    }

    /// The same for requests about an upload that was begun.
    pub fn limit_guest_upload_requests(&self, id: GuestLinkId) -> Result<(), i64> {
        self.rate_limiter.take(&[RateLimitKey::GuestUploadRequest(id)], self.clock.now())
    }
}
