//! What one person may see of one group's usage: its accounts, and what this person has read of each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::account_usage::AccountUsage;
use super::forecast::{AllocationForecast, LOOKBACK_WEEKS, forecast_allocation};
use super::schedule;
use super::service::UsageService;
use super::units::{AllocationUnit, SiteUnit, UsageMeasure};
use crate::auth::{Permission, Viewer};
use crate::clock::{Day, UnixTime};
use crate::cluster::{ClusterAccountCache, ClusterAccountId, ClusterProfile, DiscoveredFacts};
use crate::core::lock;
use crate::domain::{ClusterId, GroupId, PersonId};
use crate::sites::Site;
use crate::slurm::text::is_user_or_account;
use crate::store::allocations::Allocation;
use crate::store::usage::UsageSource;
use crate::store::{self, DbConnection, StoreError};

/// A view is recorded at most this often.
const RECORD_VIEW_EVERY: Duration = Duration::from_mins(5);

/// A group's usage, as one person sees it.
#[derive(Debug, Clone)]
pub struct GroupUsage {
    pub group: GroupId,
    /// Whether the viewer may see other people's names.
    pub is_leader: bool,
    pub viewer: PersonId,
    /// Its accounts, by cluster and name.
    pub accounts: Vec<GroupAccountUsage>,
    /// Members by their user names on clusters, as those clusters reported them.
    pub people: Arc<HashMap<(ClusterId, String), GroupMemberName>>,
}

impl GroupUsage {
    /// The account of an allocation; none if it no longer belongs to the group.
    pub fn account_of(&self, allocation: &Allocation) -> Option<&GroupAccountUsage> {
        self.accounts.iter().find(|account| {
            account.details.cluster == allocation.cluster_id && account.details.account == allocation.account
        })
    }
}

/// A member of the group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMemberName {
    pub id: PersonId,
    /// Display name.
    pub name: String,
}

#[derive(Debug, Clone)]
pub struct GroupAccountUsage {
    /// What does not change from day to day.
    pub details: Arc<GroupAccountContext>,
    /// What was read, for each of Slurm's names for the account.
    pub usage: Vec<Arc<AccountUsage>>,
    /// Whether the viewer is connected now.
    pub is_connected: bool,
    /// The current day on the cluster.
    pub today: Day,
    /// Days that were read, and days that are wanted.
    pub progress: (i64, i64),
    /// Why the last read failed, in words; empty if it went well.
    pub problem: String,
    /// What the command printed then; may be empty.
    pub problem_output: String,
    /// When something was last read.
    pub read_at: Option<UnixTime>,
}

impl GroupAccountUsage {
    /// Usage per day between two days, in hours, as far as it was read.
    pub fn usage_by_day(&self, measure: UsageMeasure, from: Day, until: Day) -> Vec<(Day, f64)> {
        let mut days: BTreeMap<Day, f64> = BTreeMap::new();
        for (day, day_usage) in self.usage.iter().flat_map(|usage| usage.days_between(from, until)) {
            *days.entry(day).or_default() += measure.hours(&day_usage.total);
        }
        days.into_iter().collect()
    }

    /// How many days between two days, up to today, were not read yet.
    pub fn unread_days(&self, from: Day, until: Day) -> usize {
        let is_missing =
            |day: &Day| self.usage.is_empty() || self.usage.iter().any(|usage| !usage.days.contains_key(day));
        (from.0..=until.min(self.today).0).map(Day).filter(is_missing).count()
    }

    /// Where an allocation of the account is heading, as of a day. Weeks that were not read give no forecast.
    pub fn forecast(&self, allocation: &Allocation, unit: AllocationUnit, today: Day) -> AllocationForecast {
        let (begins, ends) = (allocation.begins(), allocation.ends());
        let hours = self.usage_by_day(unit.measure, begins.min(today.plus(-LOOKBACK_WEEKS * 7)), today);
        let mut forecast = forecast_allocation(&hours, unit.to_hours(allocation.amount), begins, ends, today);
        if self.unread_days(today.plus(-LOOKBACK_WEEKS * 7), today.plus(-1)) > 0 {
            forecast.at_end = None;
            forecast.runs_out = (None, None);
        }
        forecast
    }
}

/// What is known about an account.
#[derive(Debug, Clone)]
pub struct GroupAccountContext {
    pub cluster: ClusterId,
    pub slug: String,
    pub title: String,
    /// The account name that people submit with.
    pub account: String,
    /// Slurm's own names for it.
    pub slurm_names: Vec<String>,
    pub site: Arc<Site>,
    /// The facts that the viewer's connection discovered there.
    pub discovered: Arc<DiscoveredFacts>,
    /// The viewer's user name there; none if they never connected.
    pub own_user: Option<String>,
    /// Whether the viewer is a PI of any group with this account: then names are kept for them.
    pub wants_names: bool,
    /// The usage sources, by Slurm's names.
    pub sources: Vec<UsageSource>,
}

impl GroupAccountContext {
    pub fn site_unit(&self) -> Option<SiteUnit> {
        SiteUnit::from_site(&self.site)
    }
}

/// What is read from the database for a view.
pub struct GroupUsageAccounts {
    accounts: Vec<Arc<GroupAccountContext>>,
    people: Arc<HashMap<(ClusterId, String), GroupMemberName>>,
}

impl UsageService {
    /// A group's usage for someone who views it now: from here on it is kept fresh. This runs no command on a
    /// cluster.
    pub async fn load_group_usage(&self, viewer: &Viewer, group: GroupId) -> Result<GroupUsage, StoreError> {
        let records = self.load_context(viewer, group).await?;
        let records = if self.record_view(viewer, group, &records).await? {
            // Usage sources may have been opened.
            self.load_context(viewer, group).await?
        } else {
            records
        };
        self.build_group_usage(viewer, group, &records).await
    }

    pub(super) async fn load_context(
        &self,
        viewer: &Viewer,
        group: GroupId,
    ) -> Result<Arc<GroupUsageAccounts>, StoreError> {
        let store = &self.0.core.store;
        let key = (viewer.id, group);
        self.0
            .contexts
            .get_or_load(store, &key, async || {
                let accounts = self.0.connections.accounts();
                read_context(&mut *store.read().await?, accounts, viewer.id, group).await
            })
            .await
    }

    pub(super) async fn build_group_usage(
        &self,
        viewer: &Viewer,
        group: GroupId,
        records: &GroupUsageAccounts,
    ) -> Result<GroupUsage, StoreError> {
        let (now, depth) = (self.0.core.clock.now(), self.0.core.config.usage_pace.history_days);
        let mut accounts = Vec::new();
        for details in &records.accounts {
            let mut usage = Vec::new();
            for source in &details.sources {
                usage.push(self.account_usage(source.id).await?);
            }
            let today = self.today(details.cluster, now);
            let reader = ClusterAccountId { person: viewer.id, cluster: details.cluster };
            let least = usage.iter().map(|usage| schedule::progress(usage, depth, today)).min();
            let problem = |source: &UsageSource| (source.problem.clone(), source.problem_output.clone());
            let (problem, problem_output) = details.sources.iter().map(problem).max().unwrap_or_default();
            let read_at = |usage: &Arc<AccountUsage>| usage.days.values().map(|day_usage| day_usage.read_at).max();
            accounts.push(GroupAccountUsage {
                is_connected: self.0.connections.connection(reader.connection_key()).is_ok(),
                today,
                progress: least.unwrap_or((0, depth)),
                problem,
                problem_output,
                read_at: usage.iter().filter_map(read_at).max(),
                details: details.clone(),
                usage,
            });
        }
        Ok(GroupUsage {
            group,
            is_leader: viewer.may(Permission::SeePeoplesUsage(group)).is_ok(),
            viewer: viewer.id,
            accounts,
            people: records.people.clone(),
        })
    }

    /// Records that someone views the usage. True if that was saved.
    async fn record_view(
        &self,
        viewer: &Viewer,
        group: GroupId,
        records: &GroupUsageAccounts,
    ) -> Result<bool, StoreError> {
        let key = (viewer.id, group);
        let is_open = |details: &Arc<GroupAccountContext>| {
            details.own_user.is_none()
                || (details.sources.len() == details.slurm_names.len()
                    && details.sources.iter().all(|source| source.has_names == details.wants_names))
        };
        let all_open = records.accounts.iter().all(is_open);
        let was_recorded = lock(&self.0.views_recorded_at).get(&key).is_some_and(|at| at.elapsed() < RECORD_VIEW_EVERY);
        if was_recorded && all_open {
            return Ok(false);
        }
        lock(&self.0.views_recorded_at).insert(key, Instant::now());
        let now = self.0.core.clock.now();
        let mut tx = self.0.core.store.write().await?;
        for details in records.accounts.iter().filter(|details| details.own_user.is_some()) {
            let (cluster, names) = (details.cluster, details.wants_names);
            for account in &details.slurm_names {
                store::usage::open_source(&mut tx, viewer.id, cluster, account, names, now).await?;
            }
        }
        store::commit(tx).await?;
        for details in &records.accounts {
            self.request_read(ClusterAccountId { person: viewer.id, cluster: details.cluster });
        }
        Ok(true)
    }
}

/// The accounts of groups of which a person is a PI.
async fn list_led_accounts(db: &mut DbConnection, person: PersonId) -> Result<Vec<(ClusterId, String)>, StoreError> {
    let all = store::allocations::list_accounts_for_person(db, person).await?;
    let led = all.into_iter().filter(|(_, leads)| *leads);
    Ok(led.map(|(account, _)| (account.cluster_id, account.account)).collect())
}

async fn read_context(
    db: &mut DbConnection,
    accounts: &ClusterAccountCache,
    viewer: PersonId,
    group: GroupId,
) -> Result<GroupUsageAccounts, StoreError> {
    let led = list_led_accounts(db, viewer).await?;
    let own = accounts.list_with(db, viewer).await?;
    let mut all_details = Vec::new();
    let mut clusters: HashMap<ClusterId, Arc<ClusterProfile>> = HashMap::new();
    for group_account in store::allocations::list_accounts(db, group).await? {
        let cluster = group_account.cluster_id;
        if let std::collections::hash_map::Entry::Vacant(vacant) = clusters.entry(cluster) {
            let Some(row) = store::clusters::get(db, cluster).await? else { continue };
            vacant.insert(accounts.profile(db, row).await?);
        }
        let Some(profile) = clusters.get(&cluster) else { continue };
        let own = own.iter().find(|account| account.id.cluster == cluster);
        let discovered = own.map(|account| account.discovered.clone()).unwrap_or_default();
        let slurm_names = slurm_names(&discovered, &group_account.account);
        let all_sources = store::usage::list_sources(db, viewer, cluster).await?;
        all_details.push(Arc::new(GroupAccountContext {
            cluster,
            slug: profile.row.slug.clone(),
            title: profile.row.title.clone(),
            sources: all_sources.into_iter().filter(|source| slurm_names.contains(&source.account)).collect(),
            wants_names: led.contains(&(cluster, group_account.account.clone())),
            account: group_account.account,
            slurm_names,
            site: profile.site.clone(),
            own_user: own.filter(|_| discovered.user.is_some()).map(|account| account.remote_user.clone()),
            discovered,
        }));
    }
    all_details.sort_by(|a, b| (&a.title, &a.account).cmp(&(&b.title, &b.account)));
    let people = Arc::new(list_people(db, accounts, group, &clusters).await?);
    Ok(GroupUsageAccounts { accounts: all_details, people })
}

/// Slurm's names for an account. One that the viewer cannot use themselves keeps its own name.
fn slurm_names(discovered: &DiscoveredFacts, account: &str) -> Vec<String> {
    let known = discovered.accounts.iter().find(|known| known.name == account);
    let names = known.map(|known| known.slurm_names.clone()).filter(|names| !names.is_empty());
    let names = names.unwrap_or_else(|| vec![account.to_owned()]);
    names.into_iter().filter(|name| is_user_or_account(name)).collect()
}

/// Maps user names on clusters to people. A name counts once its owner has connected with it: anyone can type any
/// name, and the output of a shell over there is under its owner's control.
async fn list_people(
    db: &mut DbConnection,
    accounts: &ClusterAccountCache,
    group: GroupId,
    clusters: &HashMap<ClusterId, Arc<ClusterProfile>>,
) -> Result<HashMap<(ClusterId, String), GroupMemberName>, StoreError> {
    let mut people = HashMap::new();
    for member in store::groups::list_members(db, group).await? {
        for connection in store::connections::list_for_person(db, member.person_id).await? {
            if !clusters.contains_key(&connection.cluster_id) {
                continue;
            }
            if accounts.discovered(&connection).is_none_or(|discovered| discovered.user.is_none()) {
                continue;
            }
            let user = connection.remote_user;
            let person = GroupMemberName { id: member.person_id, name: member.display_name.clone() };
            people.insert((connection.cluster_id, user), person);
        }
    }
    Ok(people)
}
