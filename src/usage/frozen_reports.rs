//! Builds, freezes, loads and deletes reports. Permissions are checked inside each transaction.

use super::report::{ReportInputs, ReportPeriod, UsageReport};
use super::service::UsageService;
use super::units::UsageMeasure;
use crate::auth::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use crate::auth::{AuthError, Permission, Viewer};
use crate::domain::{GroupId, ReportId};
use crate::store;
pub use crate::store::reports::FrozenReport;

/// A group keeps at most this many reports.
pub const MAX_REPORTS: i64 = 240;

impl UsageService {
    /// A period of a group as the viewer sees it now, in cores or in GPUs.
    pub async fn build_report(
        &self,
        viewer: &Viewer,
        group: GroupId,
        period: ReportPeriod,
        measure: UsageMeasure,
    ) -> Result<UsageReport, AuthError> {
        let view = self.load_group_usage(viewer, group).await?;
        self.read_first(view.accounts.iter(), period.from, period.until);
        let mut db = self.0.core.store.read().await?;
        let named = store::groups::get(&mut db, group).await?.ok_or(AuthError::NotFound)?;
        let allocations = store::allocations::list_for_group(&mut db, group).await?;
        drop(db);
        let now = self.0.core.clock.now();
        let subject = ReportInputs { group: &named.name, period, measure, allocations: &allocations, now };
        Ok(UsageReport::build(&view, subject))
    }

    /// Freezes a period as it is now. None if the group has too many reports.
    pub async fn freeze_report(
        &self,
        actor: &Actor,
        viewer: &Viewer,
        group: GroupId,
        period: ReportPeriod,
        measure: UsageMeasure,
    ) -> Result<Option<ReportId>, AuthError> {
        let report = self.build_report(viewer, group, period, measure).await?;
        let body = serde_json::to_string(&report).map_err(std::io::Error::other)?;
        let now = self.0.core.clock.now();
        let mut tx = self.0.core.store.write().await?;
        self.0.core.auth.authorise(&mut tx, actor, Permission::ManageUsage(group)).await?;
        if store::reports::count(&mut tx, group).await? >= MAX_REPORTS {
            return Ok(None);
        }
        let id = store::reports::add(&mut tx, group, viewer.id, &report.title, &body, now).await?;
        let about = ActivityDetails { subject: &report.title, ..ActivityDetails::default() };
        record(&mut tx, actor, ActivityEventKind::ReportFrozen, about, now).await?;
        store::commit(tx).await?;
        Ok(Some(id))
    }

    /// A group's frozen reports, newest first.
    pub async fn list_reports(&self, group: GroupId) -> Result<Vec<FrozenReport>, AuthError> {
        let mut db = self.0.core.store.read().await?;
        Ok(store::reports::list_for_group(&mut db, group, self.0.core.clock.now()).await?)
    }

    /// A frozen report and its content.
    pub async fn load_frozen_report(
        &self,
        group: GroupId,
        id: ReportId,
    ) -> Result<(FrozenReport, UsageReport), AuthError> {
        let mut db = self.0.core.store.read().await?;
        let now = self.0.core.clock.now();
        let frozen = store::reports::get(&mut db, group, id, now).await?.ok_or(AuthError::NotFound)?;
        let report = serde_json::from_str(&frozen.body).map_err(std::io::Error::other)?;
        Ok((frozen, report))
    }

    /// Deletes a report. Guests who came by a link lose access.
    pub async fn remove_report(&self, actor: &Actor, group: GroupId, id: ReportId) -> Result<(), AuthError> {
        let now = self.0.core.clock.now();
        let mut tx = self.0.core.store.write().await?;
        self.0.core.auth.authorise(&mut tx, actor, Permission::ManageUsage(group)).await?;
        let frozen = store::reports::get(&mut tx, group, id, now).await?.ok_or(AuthError::NotFound)?;
        store::reports::remove(&mut tx, group, id, now).await?;
        let about = ActivityDetails { subject: &frozen.title, ..ActivityDetails::default() };
        record(&mut tx, actor, ActivityEventKind::ReportRemoved, about, now).await?;
        Ok(store::commit(tx).await?)
    }
}
