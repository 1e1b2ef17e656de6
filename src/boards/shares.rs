//! Links by which guests see one dashboard: made, opened, counted, taken back.

use super::desk::{Boards, whose};
use super::wishes::{NotDone, found};
use crate::auth::activity::{About, Actor, Event, record};
use crate::auth::shares::{Entered, GuestLink, MOST_OPEN};
pub use crate::auth::shares::{Invitation, NotShared, Shut, USUAL_DAYS};
use crate::auth::token::{self, Token};
use crate::auth::{Action, AuthError, Viewer, Visitor};
use crate::domain::{BoardId, ShareId};
use crate::store::boards::accesses::By;
pub use crate::store::boards::shares::Share;
use crate::store::boards::shares::{self, NewShare};
use crate::store::{self, StoreError};

impl Boards {
    /// Makes a link. Its secret part is told once and never again.
    pub async fn share(
        &self,
        actor: &Actor,
        id: BoardId,
        invitation: &Invitation,
    ) -> Result<Token, NotShared> {
        let parts = &self.0.parts;
        let terms = parts.auth.terms(invitation).await?;
        let label = terms.label.as_str();
        let now = parts.clock.now();
        let mut tx = parts.store.write().await?;
        let board = self.managed(&mut tx, actor, id).await.map_err(AuthError::from)?;
        if shares::count_open(&mut tx, id, now).await? >= MOST_OPEN {
            return Err(NotShared::TooMany);
        }
        let new = NewShare {
            board: id,
            token_hash: terms.token.hash(),
            label,
            passphrase: &terms.passphrase,
            expires_at: terms.expires_at,
        };
        shares::add(&mut tx, &new, now).await?;
        let about = About { person: Some(board.person_id), subject: &board.title, detail: label };
        record(&mut tx, actor, Event::BoardShared, about, now).await?;
        store::commit(tx).await?;
        self.tell(id);
        Ok(terms.token)
    }

    /// The links of a dashboard, for its owner.
    pub async fn shares(&self, viewer: &Viewer, id: BoardId) -> Result<Vec<Share>, NotDone> {
        let mut db = self.0.parts.store.read().await?;
        let board = found(&mut db, id).await?;
        viewer.may(Action::ManageBoard(whose(&board))).map_err(|_| AuthError::Denied)?;
        Ok(shares::of_board(&mut db, id, self.0.parts.clock.now()).await?)
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
                detail: &share.terms.label,
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
        if share.terms.revoked_at().is_some() {
            return Err(Shut::Revoked);
        }
        if !share.terms.is_open(now) {
            return Err(Shut::Expired(share.terms.expires_at));
        }
        parts.auth.count_opening(GuestLink::Board(share.id), visitor)?;
        let is_locked = share.terms.asks_passphrase();
        let entered = self
            .let_in(share.board_id, By::Share(share.id), is_locked, share.terms.expires_at, visitor)
            .await?;
        Ok(entered)
    }
}

impl From<NotDone> for AuthError {
    /// Where only rights or the database can be in the way.
    fn from(error: NotDone) -> Self {
        match error {
            NotDone::Auth(error) => error,
            NotDone::Store(error) => error.into(),
            _ => Self::Denied,
        }
    }
}
