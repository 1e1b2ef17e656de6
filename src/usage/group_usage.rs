//! What one person may see of one group's usage: its accounts, and what this person has read of each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::account_usage::AccountUsage;
use super::forecast::{AllocationForecast, LOOKBACK_WEEKS, forecast_allocation};
use super::schedule;
use super::service::{UsageService, lock};
use super::units::{AllocationUnit, SiteUnit, UsageMeasure};
use crate::auth::{Permission, Viewer};
use crate::clock::{Day, UnixTime};
use crate::cluster::{ClusterAccountCache, ClusterAccountId, ClusterProfile, DiscoveredFacts};
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
    pub people: Arc<HashMap<(ClusterId, String), GroupPerson>>,
}

impl GroupUsage {
    /// The account of an allocation; none if it no longer belongs to the group.
    pub fn account_of(&self, allocation: &Allocation) -> Option<&GroupAccountUsage> {
        self.accounts
            .iter()
            .find(|one| one.details.cluster == allocation.cluster_id && one.details.account == allocation.account)
    }
}

/// A member of the group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPerson {
    pub id: PersonId,
    /// Display name.
    pub name: String,
}

#[derive(Debug, Clone)]
pub struct GroupAccountUsage {
    /// What does not change from day to day.
    pub details: Arc<GroupAccountDetails>,
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
        for (day, page) in self.usage.iter().flat_map(|ledger| ledger.days_between(from, until)) {
            *days.entry(day).or_default() += measure.hours(&page.total);
        }
        days.into_iter().collect()
    }

    /// How many days between two days, up to today, were not read yet.
    pub fn unread_days(&self, from: Day, until: Day) -> usize {
        let is_missing =
            |day: &Day| self.usage.is_empty() || self.usage.iter().any(|ledger| !ledger.days.contains_key(day));
        (from.0..=until.min(self.today).0).map(Day).filter(is_missing).count()
    }

    /// Where an allocation of the account is heading, as of a day. Weeks that were not read give no forecast.
    pub fn forecast(&self, allocation: &Allocation, unit: AllocationUnit, today: Day) -> AllocationForecast {
        let (begins, ends) = (allocation.begins(), allocation.ends());
        let hours = self.usage_by_day(unit.measure, begins.min(today.plus(-LOOKBACK_WEEKS * 7)), today);
        let mut found = forecast_allocation(&hours, unit.to_hours(allocation.amount), begins, ends, today);
        if self.unread_days(today.plus(-LOOKBACK_WEEKS * 7), today.plus(-1)) > 0 {
            found.at_end = None;
            found.runs_out = (None, None);
        }
        found
    }
}

/// What is known about an account.
#[derive(Debug, Clone)]
pub struct GroupAccountDetails {
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

impl GroupAccountDetails {
    pub fn site_unit(&self) -> Option<SiteUnit> {
        SiteUnit::from_site(&self.site)
    }
}

/// What is read from the database for a view.
pub struct GroupUsageRecords {
    accounts: Vec<Arc<GroupAccountDetails>>,
    people: Arc<HashMap<(ClusterId, String), GroupPerson>>,
}

impl UsageService {
    /// A group's usage for someone who views it now: from here on it is kept fresh. This runs no command on a
    /// cluster.
    pub async fn load_group_usage(&self, viewer: &Viewer, group: GroupId) -> Result<GroupUsage, StoreError> {
        let ground = self.load_context(viewer, group).await?;
        let ground = if self.record_view(viewer, group, &ground).await? {
            // Usage sources may have been opened.
            self.load_context(viewer, group).await?
        } else {
            ground
        };
        self.build_group_usage(viewer, group, &ground).await
    }

    pub(super) async fn load_context(
        &self,
        viewer: &Viewer,
        group: GroupId,
    ) -> Result<Arc<GroupUsageRecords>, StoreError> {
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
        ground: &GroupUsageRecords,
    ) -> Result<GroupUsage, StoreError> {
        let (now, depth) = (self.0.core.clock.now(), self.0.core.config.usage_pace.history_days);
        let mut accounts = Vec::new();
        for facts in &ground.accounts {
            let mut ledgers = Vec::new();
            for book in &facts.sources {
                ledgers.push(self.account_usage(book.id).await?);
            }
            let today = self.today(facts.cluster, now);
            let reader = ClusterAccountId { person: viewer.id, cluster: facts.cluster };
            let least = ledgers.iter().map(|ledger| schedule::progress(ledger, depth, today)).min();
            let problem = |source: &UsageSource| (source.problem.clone(), source.problem_output.clone());
            let (problem, problem_output) = facts.sources.iter().map(problem).max().unwrap_or_default();
            let read_at = |ledger: &Arc<AccountUsage>| ledger.days.values().map(|page| page.read_at).max();
            accounts.push(GroupAccountUsage {
                is_connected: self.0.connections.connection(reader.connection_key()).is_ok(),
                today,
                progress: least.unwrap_or((0, depth)),
                problem,
                problem_output,
                read_at: ledgers.iter().filter_map(read_at).max(),
                details: facts.clone(),
                usage: ledgers,
            });
        }
        Ok(GroupUsage {
            group,
            is_leader: viewer.may(Permission::SeePeoplesUsage(group)).is_ok(),
            viewer: viewer.id,
            accounts,
            people: ground.people.clone(),
        })
    }

    /// Records that someone views the usage. True if that was saved.
    async fn record_view(
        &self,
        viewer: &Viewer,
        group: GroupId,
        ground: &GroupUsageRecords,
    ) -> Result<bool, StoreError> {
        let key = (viewer.id, group);
        let is_open = |facts: &Arc<GroupAccountDetails>| {
            facts.own_user.is_none()
                || (facts.sources.len() == facts.slurm_names.len()
                    && facts.sources.iter().all(|book| book.has_names == facts.wants_names))
        };
        let all_open = ground.accounts.iter().all(is_open);
        let noted = lock(&self.0.views_recorded_at).get(&key).is_some_and(|at| at.elapsed() < RECORD_VIEW_EVERY);
        if noted && all_open {
            return Ok(false);
        }
        lock(&self.0.views_recorded_at).insert(key, Instant::now());
        let now = self.0.core.clock.now();
        let mut tx = self.0.core.store.write().await?;
        for facts in ground.accounts.iter().filter(|facts| facts.own_user.is_some()) {
            let (cluster, names) = (facts.cluster, facts.wants_names);
            for account in &facts.slurm_names {
                store::usage::open_source(&mut tx, viewer.id, cluster, account, names, now).await?;
            }
        }
        store::commit(tx).await?;
        for facts in &ground.accounts {
            self.request_read(ClusterAccountId { person: viewer.id, cluster: facts.cluster });
        }
        Ok(true)
    }
}

/// The accounts of groups of which a person is a PI.
async fn list_led_accounts(db: &mut DbConnection, person: PersonId) -> Result<Vec<(ClusterId, String)>, StoreError> {
    let all = store::allocations::list_accounts_for_person(db, person).await?;
    let led = all.into_iter().filter(|(_, leads)| *leads);
    Ok(led.map(|(one, _)| (one.cluster_id, one.account)).collect())
}

async fn read_context(
    db: &mut DbConnection,
    accounts: &ClusterAccountCache,
    viewer: PersonId,
    group: GroupId,
) -> Result<GroupUsageRecords, StoreError> {
    let led = list_led_accounts(db, viewer).await?;
    let own = accounts.list_with(db, viewer).await?;
    let mut facts = Vec::new();
    let mut clusters: HashMap<ClusterId, Arc<ClusterProfile>> = HashMap::new();
    for one in store::allocations::list_accounts(db, group).await? {
        let cluster = one.cluster_id;
        if let std::collections::hash_map::Entry::Vacant(place) = clusters.entry(cluster) {
            let Some(row) = store::clusters::get(db, cluster).await? else { continue };
            place.insert(accounts.profile(db, row).await?);
        }
        let Some(known) = clusters.get(&cluster) else { continue };
        let own = own.iter().find(|account| account.id.cluster == cluster);
        let discovered = own.map(|account| account.discovered.clone()).unwrap_or_default();
        let slurm_names = slurm_names(&discovered, &one.account);
        let books = store::usage::list_sources(db, viewer, cluster).await?;
        facts.push(Arc::new(GroupAccountDetails {
            cluster,
            slug: known.row.slug.clone(),
            title: known.row.title.clone(),
            sources: books.into_iter().filter(|book| slurm_names.contains(&book.account)).collect(),
            wants_names: led.contains(&(cluster, one.account.clone())),
            account: one.account,
            slurm_names,
            site: known.site.clone(),
            own_user: own.filter(|_| discovered.user.is_some()).map(|account| account.remote_user.clone()),
            discovered,
        }));
    }
    facts.sort_by(|a, b| (&a.title, &a.account).cmp(&(&b.title, &b.account)));
    let people = Arc::new(list_people(db, accounts, group, &clusters).await?);
    Ok(GroupUsageRecords { accounts: facts, people })
}

/// Slurm's names for an account. One that the viewer cannot use themselves keeps its own name.
fn slurm_names(learnt: &DiscoveredFacts, account: &str) -> Vec<String> {
    let known = learnt.accounts.iter().find(|one| one.name == account);
    let names = known.map(|one| one.slurm_names.clone()).filter(|names| !names.is_empty());
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
) -> Result<HashMap<(ClusterId, String), GroupPerson>, StoreError> {
    let mut people = HashMap::new();
    for member in store::groups::list_members(db, group).await? {
        for line in store::connections::list_for_person(db, member.person_id).await? {
            if !clusters.contains_key(&line.cluster_id) {
                continue;
            }
            if accounts.discovered(&line).is_none_or(|facts| facts.user.is_none()) {
                continue;
            }
            let user = line.remote_user;
            let person = GroupPerson { id: member.person_id, name: member.display_name.clone() };
            people.insert((line.cluster_id, user), person);
        }
    }
    Ok(people)
}
