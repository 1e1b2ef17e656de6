//! Who may view a dashboard on its own origin: a key in the URL and a cookie, both required, for one dashboard and
//! one browser. People with an account come with a one-time ticket, guests by a link. Access is checked again on
//! every request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use secrecy::SecretString;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::service::{AccessStreams, DashboardStatus, Dashboards, lock, owner_of};
use crate::auth::activity::{ActivityDetails, ActivityEvent, Actor, record};
use crate::auth::guest_links::{GuestLinkId, GuestViewingSession};
use crate::auth::token::{self, SecretToken};
use crate::auth::{AuthError, Permission, RequestClient, Viewer};
use crate::clock::UnixTime;
use crate::domain::{DashboardId, PersonId, SessionId};
use crate::store::dashboards::accesses::{self, DashboardAccessGrant, DashboardBrowserAccess, NewDashboardAccess};
use crate::store::dashboards::guest_links::{self, DashboardGuestLink};
use crate::store::dashboards::{self, Dashboard};
use crate::store::{self, StoreError};

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
    Guest(Box<DashboardGuestLink>),
}

/// What the database has about an access, before it is checked.
#[derive(Debug, Clone)]
pub(super) struct DashboardAccessLookup {
    access: DashboardBrowserAccess,
    dashboard: Dashboard,
    link: Option<DashboardGuestLink>,
    viewer: Option<Viewer>,
}

/// A browser that may view the dashboard now.
#[derive(Debug, Clone)]
pub struct CheckedDashboardAccess {
    pub dashboard: Dashboard,
    pub viewer: DashboardViewer,
    /// The key in its URL.
    pub word: String,
    /// The access ends then at the latest.
    pub until: UnixTime,
}

/// Why a browser may not view the dashboard.
#[derive(Debug, thiserror::Error)]
pub enum DashboardAccessError {
    /// There is no such access, it belongs to another browser, or it has ended. Strangers learn no more.
    #[error("no entry")]
    Closed,
    /// The passphrase is still missing.
    #[error("a passphrase is asked")]
    Locked(Box<CheckedDashboardAccess>),
    #[error(transparent)]
    Store(#[from] StoreError),
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
        tickets.insert(token.hash_token(), DashboardTicket { dashboard, session, until: now.plus(TICKET_LIFETIME_S) });
        Ok(token)
    }

    /// Uses up a ticket. None if it does not exist or has expired.
    pub async fn redeem_ticket(
        &self,
        ticket: &str,
        client: &RequestClient,
    ) -> Result<Option<GuestViewingSession>, AuthError> {
        let now = self.0.core.clock.now();
        let found = lock(&self.0.tickets.0).remove(&token::hash(ticket));
        let Some(ticket) = found.filter(|ticket| now < ticket.until) else {
            self.0.core.auth.limit_link_guess(client)?;
            return Ok(None);
        };
        let mut db = self.0.core.store.read().await?;
        let is_signed_in = store::sessions::exists(&mut db, ticket.session).await?;
        drop(db);
        if !is_signed_in {
            return Ok(None);
        }
        let by = DashboardAccessGrant::Session(ticket.session);
        let until = now.plus(MEMBER_ACCESS_S);
        self.grant_access(ticket.dashboard, by, false, until, client).await.map(Some)
    }

    pub(super) async fn grant_access(
        &self,
        dashboard: DashboardId,
        by: DashboardAccessGrant,
        is_locked: bool,
        until: UnixTime,
        client: &RequestClient,
    ) -> Result<GuestViewingSession, AuthError> {
        let core = &self.0.core;
        let now = core.clock.now();
        let (word, cookie) = (SecretToken::generate()?, SecretToken::generate()?);
        let new = NewDashboardAccess {
            access_key: word.as_str(),
            cookie_hash: cookie.hash_token(),
            dashboard,
            grant: by,
            is_locked,
            expires_at: until,
        };
        let mut tx = core.store.write().await?;
        accesses::add(&mut tx, &new, now).await?;
        if !is_locked {
            self.record_visit(&mut tx, dashboard, by, client).await?;
        }
        store::commit(tx).await?;
        self.notify_watchers(dashboard);
        Ok(GuestViewingSession { path_token: word.as_str().to_owned(), cookie, lifetime_secs: until.since(now) })
    }

    /// Counts and records a guest's visit.
    async fn record_visit(
        &self,
        tx: &mut store::DbConnection,
        dashboard: DashboardId,
        by: DashboardAccessGrant,
        client: &RequestClient,
    ) -> Result<(), AuthError> {
        let DashboardAccessGrant::GuestLink(id) = by else { return Ok(()) };
        let now = self.0.core.clock.now();
        guest_links::count_opening(tx, id, now).await?;
        let link = guest_links::get(tx, id).await?;
        if let Some(link) = link.filter(|link| link.dashboard_id == dashboard) {
            let about = ActivityDetails {
                person: Some(link.person_id),
                subject: &link.dashboard_title,
                detail: &link.terms.label,
            };
            let guest = Actor::anonymous("guest", client);
            record(tx, &guest, ActivityEvent::DashboardLinkOpened, about, now).await?;
        }
        Ok(())
    }

    /// Whether a browser with this key and cookie may view the dashboard now.
    pub async fn check_access(
        &self,
        word: &str,
        cookie: Option<&str>,
    ) -> Result<CheckedDashboardAccess, DashboardAccessError> {
        let cookie = cookie.ok_or(DashboardAccessError::Closed)?;
        let hash = token::hash(cookie);
        // These are hashes of random tokens: comparison time reveals nothing.
        self.authorise_access(word, |access| access.cookie_hash == hash).await
    }

    async fn authorise_access(
        &self,
        word: &str,
        is_theirs: impl FnOnce(&DashboardBrowserAccess) -> bool,
    ) -> Result<CheckedDashboardAccess, DashboardAccessError> {
        let core = &self.0.core;
        let read = async || self.load_access(word).await;
        let lookup = self.0.access_cache.get_or_load(&core.store, &word.to_owned(), read).await?;
        let lookup = lookup.as_ref().as_ref().ok_or(DashboardAccessError::Closed)?;
        let (access, dashboard) = (&lookup.access, &lookup.dashboard);
        let now = core.clock.now();
        if !is_theirs(access) || now >= access.expires_at || dashboard.is_removed() || dashboard.is_owner_off {
            return Err(DashboardAccessError::Closed);
        }
        let holds = |(seen, ends)| core.auth.is_session_valid(seen, ends);
        let who = match (&lookup.link, &lookup.viewer) {
            (Some(link), _) if link.terms.is_open(now) => DashboardViewer::Guest(Box::new(link.clone())),
            // An expired session gives no access, whether or not its row is gone.
            (None, Some(_)) if !access.session_times().is_some_and(holds) => {
                return Err(DashboardAccessError::Closed);
            }
            (None, Some(viewer)) if viewer.id == dashboard.person_id => DashboardViewer::Owner,
            (None, Some(viewer)) if viewer.may(Permission::SeeDashboard(owner_of(dashboard))).is_ok() => {
                DashboardViewer::Member(viewer.id)
            }
            _ => return Err(DashboardAccessError::Closed),
        };
        let checked = CheckedDashboardAccess {
            dashboard: dashboard.clone(),
            viewer: who,
            word: access.access_key.clone(),
            until: access.expires_at,
        };
        if access.is_locked { Err(DashboardAccessError::Locked(Box::new(checked))) } else { Ok(checked) }
    }

    async fn load_access(&self, word: &str) -> Result<Option<DashboardAccessLookup>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let Some(access) = accesses::find(&mut db, word).await? else { return Ok(None) };
        let Some(dashboard) = dashboards::get(&mut db, access.dashboard_id).await? else {
            return Ok(None);
        };
        let link = match access.grant() {
            Some(DashboardAccessGrant::GuestLink(id)) => guest_links::get(&mut db, id).await?,
            _ => None,
        };
        let viewer = match access.person() {
            Some(person) => self.0.core.auth.viewer(&mut db, person).await?,
            None => None,
        };
        Ok(Some(DashboardAccessLookup { access, dashboard, link, viewer }))
    }

    /// Unlocks an access with its passphrase. False if the passphrase was wrong.
    pub async fn unlock(
        &self,
        checked: &CheckedDashboardAccess,
        passphrase: &SecretString,
        client: &RequestClient,
    ) -> Result<bool, AuthError> {
        let DashboardViewer::Guest(link) = &checked.viewer else { return Ok(false) };
        let core = &self.0.core;
        let is_right = core
            .auth
            .verify_passphrase(GuestLinkId::Dashboard(link.id), &link.terms.passphrase, passphrase, client)
            .await?;
        if is_right {
            let mut tx = core.store.write().await?;
            accesses::unlock(&mut tx, &checked.word).await?;
            self.record_visit(&mut tx, checked.dashboard.id, DashboardAccessGrant::GuestLink(link.id), client).await?;
            store::commit(tx).await?;
        }
        Ok(is_right)
    }

    /// The dashboard's status, as a browser with access sees it.
    pub async fn status_for(&self, checked: &CheckedDashboardAccess) -> Result<DashboardStatus, StoreError> {
        self.load_status(checked.dashboard.clone()).await
    }

    /// Registers a stream. The guard's token is cancelled when the access ends, which cuts the stream.
    pub fn open_stream(&self, checked: &CheckedDashboardAccess) -> DashboardStreamGuard {
        let mut streams = lock(&self.0.streams);
        let new = || AccessStreams {
            cancel: CancellationToken::new(),
            open_count: 0,
            request_slots: Arc::new(Semaphore::new(MAX_REQUESTS_PER_ACCESS)),
        };
        let stream = streams.entry(checked.word.clone()).or_insert_with(new);
        stream.open_count += 1;
        let (cancel, request_slots) = (stream.cancel.clone(), stream.request_slots.clone());
        DashboardStreamGuard { dashboards: self.clone(), word: checked.word.clone(), cancel, request_slots }
    }

    /// Cuts the streams of every access that has ended.
    pub(super) async fn close_ended_streams(&self) {
        let words: Vec<String> = lock(&self.0.streams).keys().cloned().collect();
        for word in words {
            if matches!(
                self.authorise_access(&word, |_| true).await,
                Err(DashboardAccessError::Closed | DashboardAccessError::Locked(_))
            ) && let Some(stream) = lock(&self.0.streams).remove(&word)
            {
                stream.cancel.cancel();
            }
        }
    }
}

/// Held by a stream while it is open.
pub struct DashboardStreamGuard {
    dashboards: Dashboards,
    word: String,
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
        if let Some(stream) = streams.get_mut(&self.word) {
            stream.open_count = stream.open_count.saturating_sub(1);
            if stream.open_count == 0 {
                streams.remove(&self.word);
            }
        }
    }
}
