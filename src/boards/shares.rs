//! Links by which guests see one dashboard: made, opened, counted, taken back.

use secrecy::{ExposeSecret as _, SecretString};

use super::desk::{Boards, whose};
use super::entry::Entered;
use super::wishes::{NotDone, found};
use crate::auth::activity::{About, Actor, Event, record};
use crate::auth::token::{self, Token};
use crate::auth::{Action, AuthError, Viewer, Visitor};
use crate::domain::{BoardId, Label, NameError, ShareId};
use crate::store::boards::accesses::By;
pub use crate::store::boards::shares::Share;
use crate::store::boards::shares::{self, NewShare};
use crate::store::{self, StoreError};

/// How long a link works if nobody says, in days.
pub const USUAL_DAYS: u32 = 7;
/// The longest, in days.
pub const MOST_DAYS: u32 = 90;
/// So many links of one dashboard may work at a time.
const MOST_OPEN: i64 = 50;
/// Fewest characters of a passphrase.
pub const SHORTEST_PASSPHRASE: usize = 8;
/// Most bytes of one.
const LONGEST_PASSPHRASE: usize = 200;
const DAY: i64 = 86_400;

/// A link to be made.
#[derive(Debug, Clone)]
pub struct Invitation {
    /// Whom it is for.
    pub label: String,
    /// For how many days it works.
    pub days: u32,
    /// What guests must know besides; empty: nothing.
    pub passphrase: SecretString,
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum NotShared {
    /// Whom it is for.
    #[error("{0}")]
    Label(NameError),
    /// For how long.
    #[error("Choose between 1 and {MOST_DAYS} days.")]
    Days,
    /// What guests must know besides.
    #[error("Use a passphrase of at least {SHORTEST_PASSPHRASE} characters, or leave it empty.")]
    Passphrase,
    /// There are enough.
    #[error("{MOST_OPEN} links to this dashboard work already. Take some back first.")]
    TooMany,
    /// Anything else.
    #[error(transparent)]
    NotDone(#[from] NotDone),
}

impl From<AuthError> for NotShared {
    fn from(error: AuthError) -> Self {
        Self::NotDone(error.into())
    }
}

impl From<StoreError> for NotShared {
    fn from(error: StoreError) -> Self {
        Self::NotDone(error.into())
    }
}

/// Why a link does not open.
#[derive(Debug, thiserror::Error)]
pub enum Shut {
    /// There is none, or no longer: strangers are told no more.
    #[error("There is no such link.")]
    Unknown,
    /// Its time is up.
    #[error("This link has ended.")]
    Expired(crate::clock::UnixTime),
    /// It was taken back.
    #[error("This link was taken back.")]
    Revoked,
    /// Too many tries, or the database.
    #[error(transparent)]
    Auth(#[from] AuthError),
}

impl From<StoreError> for Shut {
    fn from(error: StoreError) -> Self {
        Self::Auth(error.into())
    }
}

impl Boards {
    /// Makes a link. Its secret part is told once and never again.
    pub async fn share(
        &self,
        actor: &Actor,
        id: BoardId,
        invitation: &Invitation,
    ) -> Result<Token, NotShared> {
        let label: Label = invitation.label.parse().map_err(NotShared::Label)?;
        if !(1..=MOST_DAYS).contains(&invitation.days) {
            return Err(NotShared::Days);
        }
        let parts = &self.0.parts;
        let hash = self.passphrase(&invitation.passphrase).await?;
        let token = Token::generate().map_err(AuthError::from)?;
        let now = parts.clock.now();
        let mut tx = parts.store.write().await?;
        let board = self.managed(&mut tx, actor, id).await?;
        if shares::count_open(&mut tx, id, now).await? >= MOST_OPEN {
            return Err(NotShared::TooMany);
        }
        let new = NewShare {
            board: id,
            token_hash: token.hash(),
            label: label.as_str(),
            passphrase: &hash,
            expires_at: now.plus(i64::from(invitation.days) * DAY),
        };
        shares::add(&mut tx, &new, now).await?;
        let about =
            About { person: Some(board.person_id), subject: &board.title, detail: label.as_str() };
        record(&mut tx, actor, Event::BoardShared, about, now).await?;
        store::commit(tx).await?;
        self.tell(id);
        Ok(token)
    }

    async fn passphrase(&self, passphrase: &SecretString) -> Result<String, NotShared> {
        let text = passphrase.expose_secret();
        if text.is_empty() {
            return Ok(String::new());
        }
        if text.chars().count() < SHORTEST_PASSPHRASE || text.len() > LONGEST_PASSPHRASE {
            return Err(NotShared::Passphrase);
        }
        Ok(self.0.parts.auth.hash_passphrase(passphrase).await?)
    }

    /// The links of a dashboard, for its owner.
    pub async fn shares(&self, viewer: &Viewer, id: BoardId) -> Result<Vec<Share>, NotDone> {
        let mut db = self.0.parts.store.read().await?;
        let board = found(&mut db, id).await?;
        viewer.may(Action::ManageBoard(whose(&board))).map_err(|_| AuthError::Denied)?;
        Ok(shares::of_board(&mut db, id).await?)
    }

    /// The links that someone oversees: those of the people in groups that they lead, or of everyone.
    pub async fn overseen(&self, viewer: &Viewer) -> Result<Vec<Share>, StoreError> {
        let mut db = self.0.parts.store.read().await?;
        shares::overseen(&mut db, viewer.id, viewer.is_admin, self.0.parts.clock.now()).await
    }

    /// Takes a link back: by its owner, who leads a group of theirs, or an administrator. Who came by it is shut out.
    pub async fn unshare(&self, actor: &Actor, id: ShareId) -> Result<BoardId, NotDone> {
        let parts = &self.0.parts;
        let mut tx = parts.store.write().await?;
        let share = shares::get(&mut tx, id).await?.ok_or(AuthError::NotFound)?;
        let board = found(&mut tx, share.board_id).await?;
        let mut allowed = Action::ManageBoard(whose(&board));
        if actor.id != Some(board.person_id) {
            let theirs = store::groups::of_person(&mut tx, board.person_id).await?;
            for group in theirs {
                let action = Action::OverseeBoards(group.group_id);
                if parts.auth.authorise(&mut tx, actor, action).await.is_ok() {
                    allowed = action;
                }
            }
            // Whoever belongs to no group is overseen by the administrators alone.
            if allowed == Action::ManageBoard(whose(&board)) {
                allowed = Action::ManagePeople;
            }
        }
        parts.auth.authorise(&mut tx, actor, allowed).await?;
        let now = parts.clock.now();
        if shares::revoke(&mut tx, id, now).await? {
            let about = About {
                person: Some(board.person_id),
                subject: &board.title,
                detail: &share.label,
            };
            record(&mut tx, actor, Event::BoardUnshared, about, now).await?;
        }
        store::commit(tx).await?;
        self.changed(board.id);
        Ok(board.id)
    }

    /// Opens a link: the browser gets a place of its own, behind the passphrase if one is asked.
    pub async fn visit(&self, token: &str, visitor: &Visitor) -> Result<Entered, Shut> {
        let parts = &self.0.parts;
        let now = parts.clock.now();
        let hash = token::hash(token);
        let found = shares::find(&mut *parts.store.read().await?, &hash).await?;
        let Some(share) = found else {
            parts.auth.count_wrong_link(visitor)?;
            return Err(Shut::Unknown);
        };
        if share.revoked_at().is_some() {
            return Err(Shut::Revoked);
        }
        if !share.is_open(now) {
            return Err(Shut::Expired(share.expires_at));
        }
        parts.auth.count_opening(share.id, visitor)?;
        let is_locked = share.asks_passphrase();
        let entered = self
            .let_in(share.board_id, By::Share(share.id), is_locked, share.expires_at, visitor)
            .await?;
        Ok(entered)
    }
}
