//! Who may look at a dashboard, on its own origin: a word in the address and a cookie, both needed, for one dashboard
//! and one browser. People of the portal come with a one-time ticket, guests by a link. Whether they still may is
//! decided anew for every request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use secrecy::SecretString;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::desk::{Boards, Standing, Stream, lock, whose};
use crate::auth::activity::{ActivityDetails, ActivityEvent, Actor, record};
use crate::auth::guest_links::{GuestLinkId, ViewingSession};
use crate::auth::token::{self, SecretToken};
use crate::auth::{AuthError, Permission, Viewer, Visitor};
use crate::clock::UnixTime;
use crate::domain::{DashboardId, PersonId, SessionId};
use crate::store::dashboards::accesses::{
    self, DashboardAccess, DashboardAccessGrant, NewDashboardAccess,
};
use crate::store::dashboards::guest_links::{self, DashboardGuestLink};
use crate::store::dashboards::{self, Dashboard};
use crate::store::{self, StoreError};

/// A ticket is used within this many seconds, or not at all.
const TICKET_FOR: i64 = 60;
const MOST_TICKETS: usize = 10_000;
/// So many requests of one reader are under way at a time.
const AT_ONCE: usize = 16;
/// Someone of the portal looks for this long; then they come again by a ticket.
const PERSON_FOR: i64 = 12 * 3600;

/// One-time entries, in memory: after a restart one clicks again.
#[derive(Default)]
pub(super) struct Tickets(Mutex<HashMap<[u8; 32], Ticket>>);

struct Ticket {
    board: DashboardId,
    session: SessionId,
    until: UnixTime,
}

/// Who looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// Whose it is: all of it.
    Owner,
    /// A colleague: reading only.
    Member(PersonId),
    /// Someone with a link: reading only.
    Guest(Box<DashboardGuestLink>),
}

/// What was found of an access, before it is decided.
#[derive(Debug, Clone)]
pub(super) struct Looked {
    access: DashboardAccess,
    board: Dashboard,
    share: Option<DashboardGuestLink>,
    viewer: Option<Viewer>,
}

/// A browser that may look now.
#[derive(Debug, Clone)]
pub struct Pass {
    /// At which dashboard.
    pub board: Dashboard,
    /// Who it is.
    pub who: Who,
    /// The word in its address.
    pub word: String,
    /// Until when at the latest.
    pub until: UnixTime,
}

/// Why a browser may not look.
#[derive(Debug, thiserror::Error)]
pub enum NoEntry {
    /// There is no such place, or not for this browser; or it has ended. Strangers are told no more.
    #[error("no entry")]
    Closed,
    /// The passphrase is still to come.
    #[error("a passphrase is asked")]
    Locked(Box<Pass>),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Boards {
    /// A one-time ticket for someone who may see it.
    pub fn ticket(&self, board: DashboardId, session: SessionId) -> Result<SecretToken, AuthError> {
        let token = SecretToken::generate()?;
        let now = self.0.parts.clock.now();
        let mut tickets = lock(&self.0.tickets.0);
        tickets.retain(|_, ticket| now < ticket.until);
        if tickets.len() >= MOST_TICKETS {
            return Err(AuthError::Overloaded);
        }
        tickets.insert(token.hash_token(), Ticket { board, session, until: now.plus(TICKET_FOR) });
        Ok(token)
    }

    /// Uses a ticket up. None if there is no such, or no longer.
    pub async fn enter(
        &self,
        ticket: &str,
        visitor: &Visitor,
    ) -> Result<Option<ViewingSession>, AuthError> {
        let now = self.0.parts.clock.now();
        let found = lock(&self.0.tickets.0).remove(&token::hash(ticket));
        let Some(ticket) = found.filter(|ticket| now < ticket.until) else {
            self.0.parts.auth.limit_link_guess(visitor)?;
            return Ok(None);
        };
        let mut db = self.0.parts.store.read().await?;
        let is_signed_in = store::sessions::exists(&mut db, ticket.session).await?;
        drop(db);
        if !is_signed_in {
            return Ok(None);
        }
        let by = DashboardAccessGrant::Session(ticket.session);
        let until = now.plus(PERSON_FOR);
        self.let_in(ticket.board, by, false, until, visitor).await.map(Some)
    }

    pub(super) async fn let_in(
        &self,
        board: DashboardId,
        by: DashboardAccessGrant,
        is_locked: bool,
        until: UnixTime,
        visitor: &Visitor,
    ) -> Result<ViewingSession, AuthError> {
        let parts = &self.0.parts;
        let now = parts.clock.now();
        let (word, cookie) = (SecretToken::generate()?, SecretToken::generate()?);
        let new = NewDashboardAccess {
            access_key: word.as_str(),
            cookie_hash: cookie.hash_token(),
            dashboard: board,
            grant: by,
            is_locked,
            expires_at: until,
        };
        let mut tx = parts.store.write().await?;
        accesses::add(&mut tx, &new, now).await?;
        if !is_locked {
            self.count_visit(&mut tx, board, by, visitor).await?;
        }
        store::commit(tx).await?;
        self.tell(board);
        Ok(ViewingSession {
            path_token: word.as_str().to_owned(),
            cookie,
            lifetime_secs: until.since(now),
        })
    }

    /// A guest is counted, and their coming is recorded.
    async fn count_visit(
        &self,
        tx: &mut store::DbConnection,
        board: DashboardId,
        by: DashboardAccessGrant,
        visitor: &Visitor,
    ) -> Result<(), AuthError> {
        let DashboardAccessGrant::GuestLink(id) = by else { return Ok(()) };
        let now = self.0.parts.clock.now();
        guest_links::count_opening(tx, id, now).await?;
        let share = guest_links::get(tx, id).await?;
        if let Some(share) = share.filter(|share| share.board_id == board) {
            let about = ActivityDetails {
                person: Some(share.person_id),
                subject: &share.board_title,
                detail: &share.terms.label,
            };
            let guest = Actor::anonymous("guest", visitor);
            record(tx, &guest, ActivityEvent::DashboardLinkOpened, about, now).await?;
        }
        Ok(())
    }

    /// Whether a browser with this word and cookie may look, now.
    pub async fn check(&self, word: &str, cookie: Option<&str>) -> Result<Pass, NoEntry> {
        let cookie = cookie.ok_or(NoEntry::Closed)?;
        let hash = token::hash(cookie);
        // Hashes of random words: how long it takes to compare them tells nothing.
        self.decide(word, |access| access.cookie_hash == hash).await
    }

    async fn decide(
        &self,
        word: &str,
        is_theirs: impl FnOnce(&DashboardAccess) -> bool,
    ) -> Result<Pass, NoEntry> {
        let parts = &self.0.parts;
        let read = async || self.look_up(word).await;
        let looked = self.0.looked.get_or_load(&parts.store, &word.to_owned(), read).await?;
        let looked = looked.as_ref().as_ref().ok_or(NoEntry::Closed)?;
        let (access, board) = (&looked.access, &looked.board);
        let now = parts.clock.now();
        if !is_theirs(access)
            || now >= access.expires_at
            || board.is_removed()
            || board.is_owner_off
        {
            return Err(NoEntry::Closed);
        }
        let holds = |(seen, ends)| parts.auth.is_session_valid(seen, ends);
        let who = match (&looked.share, &looked.viewer) {
            (Some(share), _) if share.terms.is_open(now) => Who::Guest(Box::new(share.clone())),
            // A session that has ended by its time lets nobody look, whether or not its row is gone.
            (None, Some(_)) if !access.session_times().is_some_and(holds) => {
                return Err(NoEntry::Closed);
            }
            (None, Some(viewer)) if viewer.id == board.person_id => Who::Owner,
            (None, Some(viewer)) if viewer.may(Permission::SeeDashboard(whose(board))).is_ok() => {
                Who::Member(viewer.id)
            }
            _ => return Err(NoEntry::Closed),
        };
        let pass =
            Pass { board: board.clone(), who, word: access.word.clone(), until: access.expires_at };
        if access.is_locked { Err(NoEntry::Locked(Box::new(pass))) } else { Ok(pass) }
    }

    async fn look_up(&self, word: &str) -> Result<Option<Looked>, StoreError> {
        let mut db = self.0.parts.store.read().await?;
        let Some(access) = accesses::find(&mut db, word).await? else { return Ok(None) };
        let Some(board) = dashboards::get(&mut db, access.board_id).await? else { return Ok(None) };
        let share = match access.grant() {
            Some(DashboardAccessGrant::GuestLink(id)) => guest_links::get(&mut db, id).await?,
            _ => None,
        };
        let viewer = match access.person() {
            Some(person) => self.0.parts.auth.viewer(&mut db, person).await?,
            None => None,
        };
        Ok(Some(Looked { access, board, share, viewer }))
    }

    /// Opens a place that waits for its passphrase. False if it was not the right one.
    pub async fn unlock(
        &self,
        pass: &Pass,
        passphrase: &SecretString,
        visitor: &Visitor,
    ) -> Result<bool, AuthError> {
        let Who::Guest(share) = &pass.who else { return Ok(false) };
        let parts = &self.0.parts;
        let link = GuestLinkId::Dashboard(share.id);
        let is_right = parts
            .auth
            .verify_passphrase(link, &share.terms.passphrase, passphrase, visitor)
            .await?;
        if is_right {
            let mut tx = parts.store.write().await?;
            accesses::unlock(&mut tx, &pass.word).await?;
            self.count_visit(
                &mut tx,
                pass.board.id,
                DashboardAccessGrant::GuestLink(share.id),
                visitor,
            )
            .await?;
            store::commit(tx).await?;
        }
        Ok(is_right)
    }

    /// What a browser that was let in sees of the dashboard.
    pub async fn seen_by(&self, pass: &Pass) -> Result<Standing, StoreError> {
        self.standing_of(pass.board.clone()).await
    }

    /// Is cancelled when the access ends: streams that it let through are cut.
    pub fn stream(&self, pass: &Pass) -> StreamGuard {
        let mut streams = lock(&self.0.streams);
        let new = || Stream {
            cut: CancellationToken::new(),
            open: 0,
            places: Arc::new(Semaphore::new(AT_ONCE)),
        };
        let stream = streams.entry(pass.word.clone()).or_insert_with(new);
        stream.open += 1;
        let (cut, places) = (stream.cut.clone(), stream.places.clone());
        StreamGuard { boards: self.clone(), word: pass.word.clone(), cut, places }
    }

    /// Cuts the streams of every access that has ended.
    pub(super) async fn cut_streams(&self) {
        let words: Vec<String> = lock(&self.0.streams).keys().cloned().collect();
        for word in words {
            if matches!(
                self.decide(&word, |_| true).await,
                Err(NoEntry::Closed | NoEntry::Locked(_))
            ) && let Some(stream) = lock(&self.0.streams).remove(&word)
            {
                stream.cut.cancel();
            }
        }
    }
}

/// Held by a stream for as long as it is open.
pub struct StreamGuard {
    boards: Boards,
    word: String,
    cut: CancellationToken,
    places: Arc<Semaphore>,
}

impl StreamGuard {
    /// Requests of this browser that may be under way at a time.
    pub fn places(&self) -> Arc<Semaphore> {
        self.places.clone()
    }

    /// Is cancelled when the stream must end.
    pub const fn cut(&self) -> &CancellationToken {
        &self.cut
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        let mut streams = lock(&self.boards.0.streams);
        if let Some(stream) = streams.get_mut(&self.word) {
            stream.open = stream.open.saturating_sub(1);
            if stream.open == 0 {
                streams.remove(&self.word);
            }
        }
    }
}
