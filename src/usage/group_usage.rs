//! What one person may see of one group's usage: its accounts, and what has been read of each. Usage is read once for
//! the group; a PI sees it by name, other members see their own and one sum for everyone else.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::account_usage::AccountUsage;
use super::forecast::{AllocationForecast, LOOKBACK_WEEKS, forecast_allocation};
use super::schedule;
use super::service::UsageService;
use super::units::{AllocationUnit, SiteUnit, UsageMeasure};
use super::user_names::UserNames;
use crate::auth::{Permission, Viewer};
use crate::clock::{Day, UnixTime};
use crate::cluster::{ClusterAccount, ClusterAccountCache, ClusterAccountId, ClusterProfile, DiscoveredFacts};
use crate::core::lock;
use crate::domain::{ClusterId, GroupId, PersonId};
use crate::sites::Site;
use crate::slurm::text::is_user_or_account;
use crate::store::allocations::Allocation;
use crate::store::usage::{UsageSource, UsageSourceOwner};
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
    /// The names that PIs gave to other user names.
    pub user_names: Arc<UserNames>,
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
    /// Whether somebody's connection can read it now.
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

    /// Whether anything was read of the days between two days.
    pub fn has_read(&self, from: Day, until: Day) -> bool {
        self.usage.iter().any(|usage| usage.days_between(from, until).next().is_some())
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
    /// Whether the figures are only what the viewer's own connection shows, which is not the whole account.
    pub is_narrow: bool,
    /// The usage sources that are shown, by Slurm's names.
    pub sources: Vec<UsageSource>,
    /// These, and those that are not shown.
    pub all_sources: Vec<UsageSource>,
}

impl GroupAccountContext {
    pub fn site_unit(&self) -> Option<SiteUnit> {
        SiteUnit::from_site(&self.site)
    }
}

/// What is read from the database for a view.
pub struct GroupUsageAccounts {
    pub(super) accounts: Vec<Arc<GroupAccountContext>>,
    pub(super) people: Arc<HashMap<(ClusterId, String), GroupMemberName>>,
    pub(super) user_names: Arc<UserNames>,
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
        let is_leader = viewer.may(Permission::SeePeoplesUsage(group)).is_ok();
        let mut accounts = Vec::new();
        // Whoever may not see the group's usage gets none, whatever the caller asked before.
        let visible = if viewer.may(Permission::SeeUsage(group)).is_ok() { &*records.accounts } else { &[] };
        for details in visible {
            let mut usage = Vec::new();
            for source in &details.sources {
                usage.push(if is_leader {
                    self.account_usage(source.id).await?
                } else {
                    self.restricted_account_usage(source.id, details.own_user.as_deref()).await?
                });
            }
            let today = self.today(details.cluster, now);
            let viewer = ClusterAccountId { person: viewer.id, cluster: details.cluster };
            let least = usage.iter().map(|usage| schedule::progress(usage, depth, today)).min();
            let problem = |source: &UsageSource| (source.problem.clone(), source.problem_output.clone());
            let (problem, problem_output) = details.sources.iter().map(problem).max().unwrap_or_default();
            let read_at = |usage: &Arc<AccountUsage>| usage.days.values().map(|day_usage| day_usage.read_at).max();
            let is_served = {
                let served = lock(&self.0.served_sources);
                details.sources.iter().any(|source| served.contains(&source.id))
            };
            accounts.push(GroupAccountUsage {
                is_connected: is_served || self.0.connections.connection(viewer.connection_key()).is_ok(),
                today,
                progress: least.unwrap_or((0, depth)),
                problem,
                problem_output,
                read_at: usage.iter().filter_map(read_at).max(),
                details: details.clone(),
                usage,
            });
        }
        let (people, user_names) = (records.people.clone(), records.user_names.clone());
        Ok(GroupUsage { group, is_leader, viewer: viewer.id, accounts, people, user_names })
    }

    /// Records that someone views the usage. True if that was saved.
    async fn record_view(
        &self,
        viewer: &Viewer,
        group: GroupId,
        records: &GroupUsageAccounts,
    ) -> Result<bool, StoreError> {
        if viewer.may(Permission::SeeUsage(group)).is_err() {
            return Ok(false);
        }
        let key = (viewer.id, group);
        let mut wanted = Vec::new();
        for details in &records.accounts {
            let id = ClusterAccountId { person: viewer.id, cluster: details.cluster };
            for account in &details.slurm_names {
                wanted.push((UsageSourceOwner::Group(group), details, account));
                if self.sees_only_a_part(id, &details.discovered, account) {
                    wanted.push((UsageSourceOwner::Person(viewer.id), details, account));
                }
            }
        }
        let is_open = |(owner, details, account): &(UsageSourceOwner, &Arc<GroupAccountContext>, &String)| {
            let is_it = |source: &UsageSource| source.owner() == Some(*owner) && source.account == **account;
            details.all_sources.iter().any(is_it)
        };
        let all_open = wanted.iter().all(is_open);
        let was_recorded = lock(&self.0.views_recorded_at).get(&key).is_some_and(|at| at.elapsed() < RECORD_VIEW_EVERY);
        if was_recorded && all_open {
            return Ok(false);
        }
        lock(&self.0.views_recorded_at).insert(key, Instant::now());
        let now = self.0.core.clock.now();
        let mut tx = self.0.core.store.write().await?;
        for (owner, details, account) in &wanted {
            store::usage::open_source(&mut tx, *owner, details.cluster, account, now).await?;
        }
        store::commit(tx).await?;
        for details in &records.accounts {
            self.request_read(details.cluster);
        }
        Ok(true)
    }
}

async fn read_context(
    db: &mut DbConnection,
    accounts: &ClusterAccountCache,
    viewer: PersonId,
    group: GroupId,
) -> Result<GroupUsageAccounts, StoreError> {
    let members = list_member_accounts(db, accounts, group).await?;
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
        let slurm_names = slurm_names(&members, cluster, &group_account.account);
        let mut all_sources = store::usage::list_sources(db, UsageSourceOwner::Group(group), cluster).await?;
        all_sources.extend(store::usage::list_sources(db, UsageSourceOwner::Person(viewer), cluster).await?);
        all_sources.retain(|source| slurm_names.contains(&source.account));
        let (sources, is_narrow) = choose_sources(db, &all_sources).await?;
        all_details.push(Arc::new(GroupAccountContext {
            cluster,
            slug: profile.row.slug.clone(),
            title: profile.row.title.clone(),
            sources,
            all_sources,
            is_narrow,
            account: group_account.account,
            slurm_names,
            site: profile.site.clone(),
            own_user: own.filter(|_| discovered.user.is_some()).map(|account| account.remote_user.clone()),
            discovered,
        }));
    }
    all_details.sort_by(|a, b| (&a.title, &a.account).cmp(&(&b.title, &b.account)));
    let mut people = people_by_user(&members, &clusters);
    let mut named = store::usage_user_names::list(db, group).await?;
    // A user name that has since been linked to a member is that member's.
    named.retain(|one| !people.contains_key(&(one.cluster_id, one.user_name.clone())));
    let members_named: Vec<_> = named
        .iter()
        .filter_map(|one| {
            let member = people.values().find(|person| person.name == one.name)?;
            Some(((one.cluster_id, one.user_name.clone()), member.clone()))
        })
        .collect();
    // A PI gave it the name of a member: in figures, it is that member's, too.
    people.extend(members_named);
    let (people, user_names) = (Arc::new(people), Arc::new(UserNames::new(named)));
    Ok(GroupUsageAccounts { accounts: all_details, people, user_names })
}

/// The sources to show: the group's, or, as long as nothing was read for the group, what the viewer's own connection
/// shows. The two are never mixed. True for the latter.
async fn choose_sources(db: &mut DbConnection, all: &[UsageSource]) -> Result<(Vec<UsageSource>, bool), StoreError> {
    let is_group = |source: &&UsageSource| matches!(source.owner(), Some(UsageSourceOwner::Group(_)));
    let (of_group, own): (Vec<&UsageSource>, Vec<&UsageSource>) = all.iter().partition(is_group);
    for source in &of_group {
        if store::usage::has_days(db, source.id).await? {
            return Ok((of_group.into_iter().cloned().collect(), false));
        }
    }
    for source in &own {
        if store::usage::has_days(db, source.id).await? {
            return Ok((own.into_iter().cloned().collect(), true));
        }
    }
    if own.iter().any(|source| !source.problem.is_empty()) {
        return Ok((own.into_iter().cloned().collect(), true));
    }
    Ok((of_group.into_iter().cloned().collect(), false))
}

/// Slurm's names for a group's account: all that any member's connection has shown, because members may have
/// different ones. An account that none of them can use keeps its own name.
fn slurm_names(members: &[(GroupMemberName, Arc<ClusterAccount>)], cluster: ClusterId, account: &str) -> Vec<String> {
    let here = members.iter().filter(|(_, theirs)| theirs.id.cluster == cluster);
    let known = here.flat_map(|(_, theirs)| theirs.discovered.accounts.iter().filter(|known| known.name == account));
    // What a cluster reports to a member must not lead to another account.
    let is_its =
        |name: &&String| name.strip_prefix(account).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
    let names: BTreeSet<String> = known.flat_map(|known| known.slurm_names.iter().filter(is_its).cloned()).collect();
    let names = if names.is_empty() { BTreeSet::from([account.to_owned()]) } else { names };
    names.into_iter().filter(|name| is_user_or_account(name)).collect()
}

/// The members' accounts on clusters. A user name counts once its owner has connected with it: anyone can type any
/// name, and the output of a shell over there is under its owner's control.
async fn list_member_accounts(
    db: &mut DbConnection,
    accounts: &ClusterAccountCache,
    group: GroupId,
) -> Result<Vec<(GroupMemberName, Arc<ClusterAccount>)>, StoreError> {
    let mut found = Vec::new();
    for member in store::groups::list_members(db, group).await? {
        for account in accounts.list_with(db, member.person_id).await? {
            if account.discovered.user.is_some() {
                let person = GroupMemberName { id: member.person_id, name: member.display_name.clone() };
                found.push((person, account));
            }
        }
    }
    Ok(found)
}

/// Maps user names on clusters to people.
fn people_by_user(
    members: &[(GroupMemberName, Arc<ClusterAccount>)],
    clusters: &HashMap<ClusterId, Arc<ClusterProfile>>,
) -> HashMap<(ClusterId, String), GroupMemberName> {
    let here = members.iter().filter(|(_, account)| clusters.contains_key(&account.id.cluster));
    here.map(|(person, account)| ((account.id.cluster, account.remote_user.clone()), person.clone())).collect()
}
