//! What PIs decide for a group: its accounts and its allocations. Each change is authorised, made and recorded in one
//! transaction. Also records that someone viewed people's figures.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::alerts::allocation_alert_keys;
use super::service::UsageService;
use super::units::{AllocationUnit, SiteUnit, UsageMeasure};
use crate::auth::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use crate::auth::{AuthError, Permission};
use crate::clock::Day;
use crate::cluster::{ClusterAccountCache, ClusterProfile};
use crate::core::lock;
use crate::domain::{AllocationId, ClusterId, GroupId, PersonId};
use crate::format;
use crate::slurm::text::is_name;
use crate::store::allocations::{self, Allocation, NewAllocation};
use crate::store::groups::Group;
use crate::store::{self, DbConnection, StoreError, Transaction};

/// At most this many allocations are kept per group.
const MAX_ALLOCATIONS: usize = 100;
/// A larger amount must be a mistake.
const MAX_AMOUNT: f64 = 1e12;
const MIN_AMOUNT: f64 = 0.001;
/// Longest period, in days.
const MAX_PERIOD_DAYS: i64 = 5 * 366;

/// The viewer, the group, and whose figures were viewed.
pub(super) type UsageViewingKey = (PersonId, GroupId, String);

/// A cluster, and the accounts on it that a group could have.
#[derive(Debug, Clone)]
pub struct GroupAccountChoices {
    pub profile: Arc<ClusterProfile>,
    /// Account names, and whether each belongs to the group.
    pub accounts: Vec<(String, bool)>,
}

/// An allocation as it was entered.
#[derive(Debug, Clone, PartialEq)]
pub struct AllocationInput {
    pub cluster: ClusterId,
    /// The group's account.
    pub account: String,
    pub unit: AllocationUnit,
    /// The amount for the whole period.
    pub amount: f64,
    pub begins: Day,
    pub ends: Day,
}

#[derive(Debug, thiserror::Error)]
pub enum UsageSettingsError {
    /// The account does not belong to the group, or the person may not use it.
    #[error("Choose one of the listed accounts.")]
    NoSuchAccount,
    /// The site does not use this unit.
    #[error("This cluster has no unit of its own. Choose core hours or GPU hours.")]
    NoSuchUnit,
    #[error("Enter an amount from 0.001 to 1,000,000,000,000.")]
    InvalidAmount,
    #[error("The last day must be on or after the first day, and the period at most five years.")]
    InvalidPeriod,
    /// Both would be charged for the same usage.
    #[error(
        "This account already has an allocation in this unit for the same days. Edit that one instead, because both would count the same usage."
    )]
    Duplicate,
    #[error("The group has reached the maximum number of allocations. Remove old ones first.")]
    TooMany,
    /// Not allowed, gone, or an internal error.
    #[error(transparent)]
    Auth(#[from] AuthError),
}

impl From<StoreError> for UsageSettingsError {
    fn from(error: StoreError) -> Self {
        Self::Auth(error.into())
    }
}

impl UsageService {
    /// The accounts that a person may choose for a group: their own, and those chosen already.
    pub async fn list_account_options(
        &self,
        person: PersonId,
        group: GroupId,
    ) -> Result<Vec<GroupAccountChoices>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        read_account_options(&mut db, self.0.connections.accounts(), person, group).await
    }

    /// Adds accounts to a group and removes others. What another PI chose in the meantime stays.
    pub async fn change_accounts(
        &self,
        actor: &Actor,
        group: GroupId,
        added: &[(ClusterId, String)],
        removed: &[(ClusterId, String)],
    ) -> Result<(), UsageSettingsError> {
        let (mut tx, group_row) = self.begin_change(actor, group).await?;
        let person = actor.id.ok_or(AuthError::Denied)?;
        let choices = read_account_options(&mut tx, self.0.connections.accounts(), person, group).await?;
        let is_offered = |(cluster, account): &(ClusterId, String)| {
            let of = |choice: &&GroupAccountChoices| choice.profile.row.id == *cluster;
            let has = |choice: &GroupAccountChoices| choice.accounts.iter().any(|(name, _)| name == account);
            is_name(account) && choices.iter().find(of).is_some_and(has)
        };
        if !added.iter().all(is_offered) {
            return Err(UsageSettingsError::NoSuchAccount);
        }
        let was = |(cluster, account): &(ClusterId, String), is_chosen: bool| {
            let here = choices.iter().filter(|choice| choice.profile.row.id == *cluster);
            here.flat_map(|choice| &choice.accounts).any(|chosen| *chosen == (account.clone(), is_chosen))
        };
        if !added.iter().any(|account| was(account, false)) && !removed.iter().any(|account| was(account, true)) {
            return Ok(());
        }
        let mut descriptions = Vec::new();
        for choice in &choices {
            let is_theirs = |(name, was_chosen): &&(String, bool)| {
                let is_in = |list: &[(ClusterId, String)]| {
                    list.iter().any(|(cluster, account)| *cluster == choice.profile.row.id && account == name)
                };
                is_in(added) || (*was_chosen && !is_in(removed))
            };
            let theirs = choice.accounts.iter().filter(is_theirs);
            let names: Vec<String> = theirs.map(|(name, _)| name.clone()).collect();
            allocations::set_accounts(&mut tx, group, choice.profile.row.id, &names).await?;
            descriptions.extend(names.iter().map(|name| format!("{name} on {}", choice.profile.row.title)));
        }
        let detail = if descriptions.is_empty() { "none".to_owned() } else { descriptions.join(", ") };
        Ok(self.commit_change(tx, actor, ActivityEventKind::UsageAccountsSet, &group_row, &detail).await?)
    }

    /// Adds an allocation for one of the group's accounts, or replaces one.
    pub async fn set_allocation(
        &self,
        actor: &Actor,
        group: GroupId,
        old: Option<AllocationId>,
        input: &AllocationInput,
    ) -> Result<(), UsageSettingsError> {
        let now = self.0.core.clock.now();
        validate_allocation(input)?;
        let (mut tx, group_row) = self.begin_change(actor, group).await?;
        let accounts = allocations::list_accounts(&mut tx, group).await?;
        let is_theirs = |account: &allocations::GroupAccount| {
            account.cluster_id == input.cluster && account.account == input.account
        };
        if !accounts.iter().any(is_theirs) {
            return Err(UsageSettingsError::NoSuchAccount);
        }
        let row = store::clusters::get(&mut tx, input.cluster).await?;
        let row = row.ok_or(UsageSettingsError::NoSuchAccount)?;
        let profile = self.0.connections.accounts().profile(&mut tx, row).await?;
        if input.unit.measure == UsageMeasure::Site && SiteUnit::from_site(&profile.site).is_none() {
            return Err(UsageSettingsError::NoSuchUnit);
        }
        let all = allocations::list_for_group(&mut tx, group).await?;
        let before = match old {
            Some(id) => Some(all.iter().find(|allocation| allocation.id == id).ok_or(AuthError::NotFound)?),
            None if all.len() >= MAX_ALLOCATIONS => return Err(UsageSettingsError::TooMany),
            None => None,
        };
        let new = NewAllocation {
            group,
            cluster: input.cluster,
            account: input.account.clone(),
            unit: input.unit.as_str(),
            amount: input.amount,
            begins: input.begins,
            ends: input.ends,
        };
        if all
            .iter()
            .any(|allocation| before.is_none_or(|old| old.id != allocation.id) && new.covers_same_period(allocation))
        {
            return Err(UsageSettingsError::Duplicate);
        }
        let unit = input.unit.words(SiteUnit::from_site(&profile.site));
        let granted = format_allocation(&new.account, new.amount, &unit, new.begins, new.ends);
        let (event, detail) = if let Some(before) = before {
            if new.is_same(before) {
                return Ok(());
            }
            allocations::update(&mut tx, before.id, &new, now).await?;
            // Little of the new amount may be used: once most of it is, that deserves a new alert.
            for key in allocation_alert_keys(before.id) {
                store::usage_alerts::clear_notified(&mut tx, group, &key).await?;
            }
            let before = self.describe_allocation(&mut tx, before).await?;
            (ActivityEventKind::AllocationChanged, format!("{before} changed to {granted}"))
        } else {
            allocations::add(&mut tx, &new, now).await?;
            (ActivityEventKind::AllocationSet, granted)
        };
        Ok(self.commit_change(tx, actor, event, &group_row, &detail).await?)
    }

    /// Removes a group's allocation. Its usage stays.
    pub async fn remove_allocation(&self, actor: &Actor, group: GroupId, id: AllocationId) -> Result<(), AuthError> {
        let (mut tx, group_row) = self.begin_change(actor, group).await?;
        let all = allocations::list_for_group(&mut tx, group).await?;
        let old = all.into_iter().find(|allocation| allocation.id == id).ok_or(AuthError::NotFound)?;
        allocations::remove(&mut tx, group, id).await?;
        let detail = self.describe_allocation(&mut tx, &old).await?;
        Ok(self.commit_change(tx, actor, ActivityEventKind::AllocationRemoved, &group_row, &detail).await?)
    }

    /// An allocation in words, for the activity log.
    async fn describe_allocation(&self, db: &mut DbConnection, allocation: &Allocation) -> Result<String, StoreError> {
        let site_unit = match store::clusters::get(db, allocation.cluster_id).await? {
            Some(row) => SiteUnit::from_site(&self.0.connections.accounts().profile(db, row).await?.site),
            None => None,
        };
        let unit = AllocationUnit::parse(&allocation.unit);
        let unit = unit.map_or_else(|| allocation.unit.clone(), |unit| unit.words(site_unit));
        let (begins, ends) = (allocation.begins(), allocation.ends());
        Ok(format_allocation(&allocation.account, allocation.amount, &unit, begins, ends))
    }

    /// Begins a change of a group's settings, if the actor may make it.
    pub(super) async fn begin_change(&self, actor: &Actor, group: GroupId) -> Result<(Transaction, Group), AuthError> {
        let core = &self.0.core;
        let mut tx = core.store.write().await?;
        core.auth.authorise(&mut tx, actor, Permission::ManageUsage(group)).await?;
        let row = store::groups::get(&mut tx, group).await?.ok_or(AuthError::NotFound)?;
        Ok((tx, row))
    }

    /// Records the change in the same transaction.
    pub(super) async fn commit_change(
        &self,
        mut tx: Transaction,
        actor: &Actor,
        event: ActivityEventKind,
        group: &Group,
        detail: &str,
    ) -> Result<(), StoreError> {
        let about = ActivityDetails { subject: &group.name, detail, ..ActivityDetails::default() };
        record(&mut tx, actor, event, about, self.0.core.clock.now()).await?;
        store::commit(tx).await
    }

    /// Records that someone viewed figures with names: of all members of a group, or of one. Once a day.
    pub async fn record_named_view(
        &self,
        actor: &Actor,
        group: GroupId,
        whose: Option<(Option<PersonId>, &str)>,
    ) -> Result<(), StoreError> {
        let detail = whose.map(|(_, name)| format!("jobs of {name}")).unwrap_or_default();
        let person = whose.and_then(|(person, _)| person);
        self.record_view_of(actor, group, person, ActivityEventKind::UsageViewed, detail).await
    }

    /// Records that a PI opened someone's job, and whether its script and output were shown. Once a day.
    pub async fn record_job_view(
        &self,
        actor: &Actor,
        group: GroupId,
        (person, name): (Option<PersonId>, &str),
        job: &str,
        has_files: bool,
    ) -> Result<(), StoreError> {
        let files = if has_files { ", with script and output" } else { "" };
        let detail = format!("job {job} of {name}{files}");
        self.record_view_of(actor, group, person, ActivityEventKind::MemberJobViewed, detail).await
    }

    async fn record_view_of(
        &self,
        actor: &Actor,
        group: GroupId,
        person: Option<PersonId>,
        event: ActivityEventKind,
        detail: String,
    ) -> Result<(), StoreError> {
        let Some(viewer) = actor.id else { return Ok(()) };
        let core = &self.0.core;
        let now = core.clock.now();
        let today = Day::from_time(now);
        let key = (viewer, group, detail.clone());
        if lock(&self.0.recorded_views).get(&key) == Some(&today) {
            return Ok(());
        }
        let mut tx = core.store.write().await?;
        if let Some(group) = store::groups::get(&mut tx, group).await? {
            let what = (group.name.as_str(), detail.as_str());
            let word = event.as_str();
            if !store::activity::was_recorded(&mut tx, viewer, word, what, today.start()).await? {
                let about = ActivityDetails { person, subject: &group.name, detail: &detail };
                record(&mut tx, actor, event, about, now).await?;
            }
        }
        store::commit(tx).await?;
        let mut recorded = lock(&self.0.recorded_views);
        recorded.retain(|_, day| *day == today);
        recorded.insert(key, today);
        Ok(())
    }
}

fn validate_allocation(input: &AllocationInput) -> Result<(), UsageSettingsError> {
    if !(MIN_AMOUNT..=MAX_AMOUNT).contains(&input.amount) {
        return Err(UsageSettingsError::InvalidAmount);
    }
    let length = input.ends.0.saturating_sub(input.begins.0);
    if (0..MAX_PERIOD_DAYS).contains(&length) { Ok(()) } else { Err(UsageSettingsError::InvalidPeriod) }
}

fn format_allocation(account: &str, amount: f64, unit: &str, begins: Day, ends: Day) -> String {
    format!("{account}: {} {unit}, {} to {}", format::fine_amount(amount), begins.words(), ends.words())
}

async fn read_account_options(
    db: &mut DbConnection,
    accounts: &ClusterAccountCache,
    person: PersonId,
    group: GroupId,
) -> Result<Vec<GroupAccountChoices>, StoreError> {
    let mut found: BTreeMap<ClusterId, BTreeMap<String, bool>> = BTreeMap::new();
    for own in accounts.list_with(db, person).await? {
        let names = own.discovered.accounts.iter().map(|account| account.name.clone());
        let names = names.filter(|name| is_name(name)).map(|name| (name, false));
        found.entry(own.id.cluster).or_default().extend(names);
    }
    for account in allocations::list_accounts(db, group).await? {
        found.entry(account.cluster_id).or_default().insert(account.account, true);
    }
    let mut choices = Vec::new();
    for (cluster, names) in found {
        let Some(row) = store::clusters::get(db, cluster).await? else { continue };
        let profile = accounts.profile(db, row).await?;
        choices.push(GroupAccountChoices { profile, accounts: names.into_iter().collect() });
    }
    let order = |choice: &GroupAccountChoices| (choice.profile.row.title.clone(), choice.profile.row.slug.clone());
    choices.sort_by_cached_key(order);
    Ok(choices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_recorded_in_words() {
        let unit = AllocationUnit { measure: UsageMeasure::Cores, in_years: false };
        let days = ["2026-01-01", "2026-12-31"].map(|day| Day::parse(day).unwrap());
        assert_eq!(
            format_allocation("def-smith", 1000.0, &unit.words(None), days[0], days[1]),
            "def-smith: 1,000 core hours, 1 Jan 2026 to 31 Dec 2026"
        );
    }
}
