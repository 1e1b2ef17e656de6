//! Links that show guests one frozen report: creating, opening, counting and revoking them, and who may view the
//! report by one. The terms and limits are those of all guest links (`auth/guest_links.rs`).

use secrecy::SecretString;

use super::frozen_reports;
use super::report::UsageReport;
use super::service::UsageService;
use crate::auth::activity::{ActivityDetails, ActivityEvent, Actor, record};
use crate::auth::guest_links::{
    CreateGuestLinkError, GuestLinkId, GuestLinkRequest, GuestViewingSession, MAX_OPEN_LINKS, OpenGuestLinkError,
};
use crate::auth::token::{self, SecretToken};
use crate::auth::{AuthError, Permission, RequestClient};
use crate::domain::{GroupId, ReportId, ReportLinkId};
pub use crate::store::reports::guest_links::ReportGuestLink;
use crate::store::reports::guest_links::{self, NewReportGuestLink, ReportGuestAccess};
use crate::store::{self, DbConnection, StoreError};

/// A browser that may view a report now.
#[derive(Debug, Clone)]
pub struct CheckedReportAccess {
    pub link: ReportGuestLink,
    /// The key in its URL.
    pub access_key: String,
}

/// Why a browser may not view a report.
#[derive(Debug, thiserror::Error)]
pub enum ReportAccessError {
    /// There is no such access, it belongs to another browser, or it has ended. Strangers learn no more.
    #[error("no entry")]
    Closed,
    /// The passphrase is still missing.
    #[error("a passphrase is asked")]
    Locked(Box<CheckedReportAccess>),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl UsageService {
    /// Creates a link to a group's report. Its secret part is shown once and never again.
    pub async fn create_report_link(
        &self,
        actor: &Actor,
        group: GroupId,
        id: ReportId,
        invitation: &GuestLinkRequest,
    ) -> Result<SecretToken, CreateGuestLinkError> {
        let core = &self.0.core;
        let terms = core.auth.prepare_guest_link(invitation).await?;
        let now = core.clock.now();
        let mut tx = core.store.write().await?;
        core.auth.authorise(&mut tx, actor, Permission::ManageUsage(group)).await?;
        let report = store::reports::get(&mut tx, group, id, now).await?;
        let report = report.ok_or(AuthError::NotFound)?;
        if guest_links::count_open(&mut tx, id, now).await? >= MAX_OPEN_LINKS {
            return Err(CreateGuestLinkError::TooMany);
        }
        let new = NewReportGuestLink {
            report: id,
            maker: actor.id.ok_or(AuthError::Denied)?,
            token_hash: terms.token.hash_token(),
            label: terms.label.as_str(),
            passphrase: &terms.passphrase,
            expires_at: terms.expires_at,
        };
        guest_links::add(&mut tx, &new, now).await?;
        let about = ActivityDetails { person: None, subject: &report.title, detail: terms.label.as_str() };
        record(&mut tx, actor, ActivityEvent::ReportLinkCreated, about, now).await?;
        store::commit(tx).await?;
        Ok(terms.token)
    }

    /// The links of a report, newest first.
    pub async fn list_report_links(&self, id: ReportId) -> Result<Vec<ReportGuestLink>, AuthError> {
        let mut db = self.0.core.store.read().await?;
        Ok(guest_links::list_for_report(&mut db, id, self.0.core.clock.now()).await?)
    }

    /// Revokes a link. Guests who came by it lose access.
    pub async fn revoke_report_link(
        &self,
        actor: &Actor,
        group: GroupId,
        report: ReportId,
        id: ReportLinkId,
    ) -> Result<(), AuthError> {
        let core = &self.0.core;
        let now = core.clock.now();
        let mut tx = core.store.write().await?;
        core.auth.authorise(&mut tx, actor, Permission::ManageUsage(group)).await?;
        let link = guest_links::get(&mut tx, id).await?;
        let link = link.filter(|link| (link.group_id, link.report_id) == (group, report));
        let link = link.ok_or(AuthError::NotFound)?;
        if guest_links::revoke(&mut tx, id, now).await? {
            let about = ActivityDetails { person: None, subject: &link.report_title, detail: &link.terms.label };
            record(&mut tx, actor, ActivityEvent::ReportLinkRevoked, about, now).await?;
        }
        store::commit(tx).await?;
        Ok(())
    }

    /// Opens a link: the browser gets its own access, locked if there is a passphrase.
    pub async fn open_report_link(
        &self,
        token: &str,
        visitor: &RequestClient,
    ) -> Result<GuestViewingSession, OpenGuestLinkError> {
        let core = &self.0.core;
        let now = core.clock.now();
        let found = guest_links::find(&mut *core.store.read().await?, &token::hash(token)).await?;
        let Some(link) = found.filter(|link| !link.is_owner_off) else {
            core.auth.limit_link_guess(visitor)?;
            return Err(OpenGuestLinkError::Unknown);
        };
        if link.terms.revoked_at().is_some() {
            return Err(OpenGuestLinkError::Revoked);
        }
        if !link.terms.is_open(now) {
            return Err(OpenGuestLinkError::Expired(link.terms.expires_at));
        }
        core.auth.limit_link_opening(GuestLinkId::Report(link.id), visitor)?;
        let make = || SecretToken::generate().map_err(AuthError::from);
        let (word, cookie) = (make()?, make()?);
        let access = ReportGuestAccess {
            cookie_hash: cookie.hash_token().to_vec(),
            link_id: link.id,
            is_locked: link.terms.asks_passphrase(),
            expires_at: link.terms.expires_at,
        };
        let mut tx = core.store.write().await?;
        guest_links::add_access(&mut tx, word.as_str(), &access, now).await?;
        if !access.is_locked {
            self.record_report_visit(&mut tx, &link, visitor).await?;
        }
        store::commit(tx).await?;
        let word = word.as_str().to_owned();
        Ok(GuestViewingSession { path_token: word, cookie, lifetime_secs: link.terms.expires_at.since(now) })
    }

    /// Counts and records a guest's visit.
    async fn record_report_visit(
        &self,
        tx: &mut DbConnection,
        link: &ReportGuestLink,
        visitor: &RequestClient,
    ) -> Result<(), StoreError> {
        let now = self.0.core.clock.now();
        guest_links::count_opening(tx, link.id, now).await?;
        let about = ActivityDetails { person: link.person_id, subject: &link.report_title, detail: &link.terms.label };
        record(tx, &Actor::anonymous("guest", visitor), ActivityEvent::ReportLinkOpened, about, now).await
    }

    /// Whether a browser with this key and cookie may view the report now: checked on every request.
    pub async fn check_report_access(
        &self,
        word: &str,
        cookie: Option<&str>,
    ) -> Result<CheckedReportAccess, ReportAccessError> {
        let cookie = cookie.ok_or(ReportAccessError::Closed)?;
        let hash = token::hash(cookie);
        let now = self.0.core.clock.now();
        let mut db = self.0.core.store.read().await?;
        let access = guest_links::find_access(&mut db, word).await?;
        // These are hashes of random tokens: comparison time reveals nothing.
        let access = access.filter(|one| one.cookie_hash == hash && now < one.expires_at);
        let access = access.ok_or(ReportAccessError::Closed)?;
        let link = guest_links::get(&mut db, access.link_id).await?;
        let link = link.filter(|link| link.is_usable(now));
        let pass = CheckedReportAccess { link: link.ok_or(ReportAccessError::Closed)?, access_key: word.to_owned() };
        if access.is_locked { Err(ReportAccessError::Locked(Box::new(pass))) } else { Ok(pass) }
    }

    /// Unlocks an access with its passphrase. False if the passphrase was wrong.
    pub async fn unlock_report(
        &self,
        pass: &CheckedReportAccess,
        passphrase: &SecretString,
        visitor: &RequestClient,
    ) -> Result<bool, AuthError> {
        let core = &self.0.core;
        let link = GuestLinkId::Report(pass.link.id);
        let hash = &pass.link.terms.passphrase;
        let is_right = core.auth.verify_passphrase(link, hash, passphrase, visitor).await?;
        if is_right {
            let mut tx = core.store.write().await?;
            guest_links::unlock(&mut tx, &pass.access_key).await?;
            self.record_report_visit(&mut tx, &pass.link, visitor).await?;
            store::commit(tx).await?;
        }
        Ok(is_right)
    }

    /// The report that a guest with access sees.
    pub async fn load_shared_report(&self, pass: &CheckedReportAccess) -> Result<UsageReport, AuthError> {
        let mut db = self.0.core.store.read().await?;
        let now = self.0.core.clock.now();
        let (group, id) = (pass.link.group_id, pass.link.report_id);
        let found = store::reports::get(&mut db, group, id, now).await?;
        frozen_reports::parse_report(&found.ok_or(AuthError::NotFound)?)
    }
}
