//! Who may view a dashboard on its own origin: a key in the URL and a cookie, both required, for one dashboard and
//! one browser. People with an account come with a one-time ticket, guests by a link. Access is checked again on
//! every request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::service::{AccessStreams, DashboardWithRuns, Dashboards, lock, owner_of};
use crate::auth::guest_links::{GuestAccessError, GuestBrowserAccess, GuestLinkTarget, NewViewerAccess};
use crate::auth::token::{self, SecretToken};
use crate::auth::{AuthError, Permission, RequestClient, Viewer};
use crate::clock::UnixTime;
use crate::domain::{DashboardId, PersonId, SessionId};
use crate::store::dashboards::accesses::{self, DashboardPersonAccess, NewDashboardSession};
use crate::store::dashboards::{self, Dashboard};
use crate::store::{self, StoreError, guest_links};

/// A ticket expires after this many seconds.
const TICKET_LIFETIME_S: i64 = 60;
const MAX_TICKETS: usize = 10_000;
/// Concurrent requests per access.
const MAX_REQUESTS_PER_ACCESS: usize = 16;
/// How long a signed-in person's access lasts; after that they need a new ticket.
const MEMBER_ACCESS_S: i64 = 12 * 3600;

/// One-time tickets, in memory: after a restart people click again.
#[derive(Default)]
pub(super) struct DashboardTickets(Mutex<HashMap<[u8; 32], DashboardTicket>>);

struct DashboardTicket {
    dashboard: DashboardId,
    session: SessionId,
    until: UnixTime,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DashboardViewer {
    /// The owner: full access.
    Owner,
    /// A member of the owner's group: read-only.
    Member(PersonId),
    /// A guest with a link: read-only.
    Guest,
}

/// What the database has about an access, before it is checked.
#[derive(Debug, Clone)]
pub(super) struct DashboardAccessLookup {
    dashboard: Dashboard,
    grant: DashboardAccessGrant,
}

/// What gives a browser access.
#[derive(Debug, Clone)]
enum DashboardAccessGrant {
    /// It followed a guest link.
    GuestLink(Box<GuestBrowserAccess>),
    /// The person is signed in to the portal.
    Session(DashboardPersonAccess, Viewer),
}

impl DashboardAccessGrant {
    fn cookie_hash(&self) -> &[u8] {
        match self {
            Self::GuestLink(access) => &access.cookie_hash,
            Self::Session(access, _) => &access.cookie_hash,
        }
    }
}

/// A browser that may view the dashboard now.
#[derive(Debug, Clone)]
pub struct CheckedDashboardAccess {
    pub dashboard: Dashboard,
    pub viewer: DashboardViewer,
    /// The key in its URL.
    pub access_key: String,
    /// The access ends then at the latest.
    pub until: UnixTime,
}

impl Dashboards {
    /// Issues a one-time ticket to someone who may see the dashboard.
    pub fn issue_ticket(&self, dashboard: DashboardId, session: SessionId) -> Result<SecretToken, AuthError> {
        let token = SecretToken::generate()?;
        let now = self.0.core.clock.now();
        let mut tickets = lock(&self.0.tickets.0);
        tickets.retain(|_, ticket| now < ticket.until);
        if tickets.len() >= MAX_TICKETS {
            return Err(AuthError::Overloaded);
        }
        let ticket = DashboardTicket { dashboard, session, until: now.plus(TICKET_LIFETIME_S) };
        tickets.insert(token.hash_token(), ticket);
        Ok(token)
    }

    /// Uses up a ticket. None if it does not exist or has expired.
    pub async fn redeem_ticket(
        &self,
        ticket: &str,
        client: &RequestClient,
    ) -> Result<Option<NewViewerAccess>, AuthError> {
        let core = &self.0.core;
        let now = core.clock.now();
        let ticket = lock(&self.0.tickets.0).remove(&token::hash(ticket));
        let Some(ticket) = ticket.filter(|ticket| now < ticket.until) else {
            core.auth.limit_link_guess(client)?;
            return Ok(None);
        };
        let mut tx = core.store.write().await?;
        if !store::sessions::exists(&mut tx, ticket.session).await? {
            return Ok(None);
        }
        let session = NewViewerAccess::generate(MEMBER_ACCESS_S)?;
        let new = NewDashboardSession {
            access_key: &session.access_key,
            cookie_hash: session.cookie.hash_token(),
            dashboard: ticket.dashboard,
            session: ticket.session,
            expires_at: now.plus(MEMBER_ACCESS_S),
        };
        accesses::add(&mut tx, &new, now).await?;
        store::commit(tx).await?;
        self.notify_watchers(ticket.dashboard);
        Ok(Some(session))
    }

    /// Whether a browser with this key and cookie may view the dashboard now.
    pub async fn check_access(
        &self,
        access_key: &str,
        cookie: &str,
    ) -> Result<CheckedDashboardAccess, GuestAccessError> {
        let hash = token::hash(cookie);
        // These are hashes of random tokens: comparison time reveals nothing.
        self.authorise_access(access_key, |cookie_hash| cookie_hash == hash).await
    }

    async fn authorise_access(
        &self,
        access_key: &str,
        is_theirs: impl FnOnce(&[u8]) -> bool,
    ) -> Result<CheckedDashboardAccess, GuestAccessError> {
        let core = &self.0.core;
        let load = async || self.load_access(access_key).await;
        let lookup = self.0.access_cache.get_or_load(&core.store, &access_key.to_owned(), load).await?;
        let DashboardAccessLookup { dashboard, grant } = lookup.as_ref().as_ref().ok_or(GuestAccessError::Closed)?;
        if !is_theirs(grant.cookie_hash()) || dashboard.is_removed() || dashboard.is_owner_off {
            return Err(GuestAccessError::Closed);
        }
        let now = core.clock.now();
        let (viewer, until) = match grant {
            DashboardAccessGrant::GuestLink(access) if !access.link.is_usable(now) => {
                return Err(GuestAccessError::Closed);
            }
            DashboardAccessGrant::GuestLink(access) if access.is_locked => {
                return Err(GuestAccessError::Locked(access.clone()));
            }
            DashboardAccessGrant::GuestLink(access) => (DashboardViewer::Guest, access.link.expires_at),
            DashboardAccessGrant::Session(access, person) => {
                // An expired session gives no access, whether or not its row is gone.
                let is_signed_in = core.auth.is_session_valid(access.session_seen_at, access.session_expires_at);
                let may_see = person.may(Permission::SeeDashboard(owner_of(dashboard))).is_ok();
                if now >= access.expires_at || !is_signed_in || !may_see {
                    return Err(GuestAccessError::Closed);
                }
                let is_owner = person.id == dashboard.person_id;
                let viewer = if is_owner { DashboardViewer::Owner } else { DashboardViewer::Member(person.id) };
                (viewer, access.expires_at)
            }
        };
        let access_key = access_key.to_owned();
        Ok(CheckedDashboardAccess { dashboard: dashboard.clone(), viewer, access_key, until })
    }

    async fn load_access(&self, access_key: &str) -> Result<Option<DashboardAccessLookup>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let (id, grant) = if let Some(access) = guest_links::find_access(&mut db, access_key).await? {
            let GuestLinkTarget::Dashboard(id) = access.link.target else { return Ok(None) };
            (id, DashboardAccessGrant::GuestLink(Box::new(access)))
        } else {
            let Some(access) = accesses::find(&mut db, access_key).await? else { return Ok(None) };
            let Some(viewer) = self.0.core.auth.viewer(&mut db, access.person_id).await? else { return Ok(None) };
            (access.dashboard_id, DashboardAccessGrant::Session(access, viewer))
        };
        let dashboard = dashboards::get(&mut db, id).await?;
        Ok(dashboard.map(|dashboard| DashboardAccessLookup { dashboard, grant }))
    }

    /// The dashboard's status, as a browser with access sees it.
    pub async fn status_for(&self, access: &CheckedDashboardAccess) -> Result<DashboardWithRuns, StoreError> {
        self.load_status(access.dashboard.clone()).await
    }

    /// Registers a stream. The guard's token is cancelled when the access ends, which cuts the stream.
    pub fn open_stream(&self, access: &CheckedDashboardAccess) -> DashboardStreamGuard {
        let mut streams = lock(&self.0.streams);
        let new = || AccessStreams {
            cancel: CancellationToken::new(),
            open_count: 0,
            request_slots: Arc::new(Semaphore::new(MAX_REQUESTS_PER_ACCESS)),
        };
        let stream = streams.entry(access.access_key.clone()).or_insert_with(new);
        stream.open_count += 1;
        DashboardStreamGuard {
            dashboards: self.clone(),
            access_key: access.access_key.clone(),
            cancel: stream.cancel.clone(),
            request_slots: stream.request_slots.clone(),
        }
    }

    /// Cuts the streams of every access that has ended.
    pub(super) async fn close_ended_streams(&self) {
        let access_keys: Vec<String> = lock(&self.0.streams).keys().cloned().collect();
        for access_key in access_keys {
            if matches!(
                self.authorise_access(&access_key, |_| true).await,
                Err(GuestAccessError::Closed | GuestAccessError::Locked(_))
            ) && let Some(stream) = lock(&self.0.streams).remove(&access_key)
            {
                stream.cancel.cancel();
            }
        }
    }
}

/// Held by a stream while it is open.
pub struct DashboardStreamGuard {
    dashboards: Dashboards,
    access_key: String,
    cancel: CancellationToken,
    request_slots: Arc<Semaphore>,
}

impl DashboardStreamGuard {
    /// Limits this browser's concurrent requests.
    pub fn request_slots(&self) -> Arc<Semaphore> {
        self.request_slots.clone()
    }

    /// Cancelled when the stream must end.
    pub const fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }
}

impl Drop for DashboardStreamGuard {
    fn drop(&mut self) {
        let mut streams = lock(&self.dashboards.0.streams);
        if let Some(stream) = streams.get_mut(&self.access_key) {
            stream.open_count = stream.open_count.saturating_sub(1);
            if stream.open_count == 0 {
                streams.remove(&self.access_key);
            }
        }
    }
}
