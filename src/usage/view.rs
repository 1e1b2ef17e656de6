//! What one person may see of one group's use: its accounts, and what they themselves have read of each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::desk::{Reader, Usage, lock};
use super::due;
use super::forecast::{Forecast, WEEKS, forecast};
use super::ledger::Ledger;
use super::units::{Measure, SiteUnit, Unit};
use crate::auth::{Permission, Viewer};
use crate::clock::{Day, UnixTime};
use crate::cluster::{ClusterProfile, DiscoveredFacts};
use crate::domain::{ClusterId, ConnectionRole, GroupId, PersonId};
use crate::sites::Site;
use crate::slurm::accounting::account_runs::is_account_name;
use crate::store::allocations::Allocation;
use crate::store::connections::ConnectionKey;
use crate::store::usage::UsageSource;
use crate::store::{self, DbConnection, StoreError};

/// That someone looks is written down at most this often.
const NOTE_EVERY: Duration = Duration::from_mins(5);

/// A group's use, as one person sees it.
#[derive(Debug, Clone)]
pub struct View {
    /// Whose.
    pub group: GroupId,
    /// Whether names of others may be shown.
    pub leads: bool,
    /// Who looks.
    pub me: PersonId,
    /// Its accounts, by cluster and name.
    pub accounts: Vec<AccountView>,
    /// Who is who: people of the group by their names on clusters, as those clusters told them.
    pub people: Arc<HashMap<(ClusterId, String), Person>>,
}

impl View {
    /// The account that something was granted to; none if it is no longer the group's.
    pub fn account_of(&self, allocation: &Allocation) -> Option<&AccountView> {
        self.accounts.iter().find(|one| {
            one.facts.cluster == allocation.cluster_id && one.facts.account == allocation.account
        })
    }
}

/// Someone of the group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Who.
    pub id: PersonId,
    /// As others read it.
    pub name: String,
}

/// One account of the group.
#[derive(Debug, Clone)]
pub struct AccountView {
    /// What does not change from day to day.
    pub facts: Arc<Facts>,
    /// What was read, for each name that Slurm has behind the account.
    pub ledgers: Vec<Arc<Ledger>>,
    /// Whether there is a connection now.
    pub is_connected: bool,
    /// Which day it is there.
    pub today: Day,
    /// Days that were read, of those that are wanted.
    pub progress: (i64, i64),
    /// Why the last try to read gave nothing, in words; empty if it went well.
    pub problem: String,
    /// When something was last read.
    pub read_at: Option<UnixTime>,
}

impl AccountView {
    /// What it used on each day from one to another, in hours, as far as that was read.
    pub fn used(&self, measure: Measure, from: Day, until: Day) -> Vec<(Day, f64)> {
        let mut days: BTreeMap<Day, f64> = BTreeMap::new();
        for (day, page) in self.ledgers.iter().flat_map(|ledger| ledger.days(from, until)) {
            *days.entry(day).or_default() += measure.hours(&page.total);
        }
        days.into_iter().collect()
    }

    /// How many days from one to another were not read yet, up to today.
    pub fn unread(&self, from: Day, until: Day) -> usize {
        let is_missing = |day: &Day| {
            self.ledgers.is_empty()
                || self.ledgers.iter().any(|ledger| !ledger.pages.contains_key(day))
        };
        (from.0..=until.min(self.today).0).map(Day).filter(is_missing).count()
    }

    /// Where an allocation of the account is heading, as of a day. Nothing is foretold from weeks that were not read.
    pub fn heading(&self, allocation: &Allocation, unit: Unit, today: Day) -> Forecast {
        let (begins, ends) = (allocation.begins(), allocation.ends());
        let hours = self.used(unit.measure, begins.min(today.plus(-WEEKS * 7)), today);
        let mut found = forecast(&hours, unit.in_hours(allocation.amount), begins, ends, today);
        if self.unread(today.plus(-WEEKS * 7), today.plus(-1)) > 0 {
            found.at_end = None;
            found.runs_out = (None, None);
        }
        found
    }
}

/// What is known of an account.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Where.
    pub cluster: ClusterId,
    /// The cluster's short name.
    pub slug: String,
    /// The cluster's name.
    pub title: String,
    /// The name that people submit with.
    pub account: String,
    /// What Slurm has behind it.
    pub slurm_names: Vec<String>,
    /// What the cluster is like.
    pub site: Arc<Site>,
    /// What the viewer's connection learnt there.
    pub learnt: Arc<DiscoveredFacts>,
    /// The name under which the viewer connected there; none if they never did.
    pub own_user: Option<String>,
    /// Whether the viewer leads any of the groups that share the account: then names are kept for them.
    pub wants_names: bool,
    /// The books, by Slurm's names.
    pub books: Vec<UsageSource>,
}

impl Facts {
    /// The site's own unit.
    pub fn unit(&self) -> Option<SiteUnit> {
        SiteUnit::of(&self.site)
    }
}

/// What is read from the database for a view.
pub struct Ground {
    facts: Vec<Arc<Facts>>,
    people: Arc<HashMap<(ClusterId, String), Person>>,
}

impl Usage {
    /// A group's use, for someone who looks at it now: it is kept fresh from here on. Nothing is asked of a cluster
    /// for it.
    pub async fn look(&self, viewer: &Viewer, group: GroupId) -> Result<View, StoreError> {
        let ground = self.ground_of(viewer, group).await?;
        let ground = if self.note_look(viewer, group, &ground).await? {
            // Books may have been opened.
            self.ground_of(viewer, group).await?
        } else {
            ground
        };
        self.view(viewer, group, &ground).await
    }

    pub(super) async fn ground_of(
        &self,
        viewer: &Viewer,
        group: GroupId,
    ) -> Result<Arc<Ground>, StoreError> {
        let store = &self.0.parts.store;
        let key = (viewer.id, group);
        self.0
            .grounds
            .get_or_load(store, &key, async || {
                let mut db = store.read().await?;
                ground(&mut db, viewer.id, group).await
            })
            .await
    }

    pub(super) async fn view(
        &self,
        viewer: &Viewer,
        group: GroupId,
        ground: &Ground,
    ) -> Result<View, StoreError> {
        let (now, depth) = (self.0.parts.clock.now(), self.0.parts.pace.history_days);
        let mut accounts = Vec::new();
        for facts in &ground.facts {
            let mut ledgers = Vec::new();
            for book in &facts.books {
                ledgers.push(self.ledger(book.id).await?);
            }
            let today = self.today(facts.cluster, now);
            let reader = Reader { person: viewer.id, cluster: facts.cluster };
            let least = ledgers.iter().map(|ledger| due::progress(ledger, depth, today)).min();
            let read_at =
                |ledger: &Arc<Ledger>| ledger.pages.values().map(|page| page.read_at).max();
            accounts.push(AccountView {
                is_connected: self.0.parts.lines.connection(reader.line()).is_ok(),
                today,
                progress: least.unwrap_or((0, depth)),
                problem: facts
                    .books
                    .iter()
                    .map(|book| book.problem.clone())
                    .max()
                    .unwrap_or_default(),
                read_at: ledgers.iter().filter_map(read_at).max(),
                facts: facts.clone(),
                ledgers,
            });
        }
        Ok(View {
            group,
            leads: viewer.may(Permission::SeePeoplesUsage(group)).is_ok(),
            me: viewer.id,
            accounts,
            people: ground.people.clone(),
        })
    }

    /// Notes that someone looks. True if that was written down.
    async fn note_look(
        &self,
        viewer: &Viewer,
        group: GroupId,
        ground: &Ground,
    ) -> Result<bool, StoreError> {
        let key = (viewer.id, group);
        let is_open = |facts: &Arc<Facts>| {
            facts.own_user.is_none()
                || (facts.books.len() == facts.slurm_names.len()
                    && facts.books.iter().all(|book| book.has_names == facts.wants_names))
        };
        let all_open = ground.facts.iter().all(is_open);
        let noted = lock(&self.0.looks).get(&key).is_some_and(|at| at.elapsed() < NOTE_EVERY);
        if noted && all_open {
            return Ok(false);
        }
        lock(&self.0.looks).insert(key, Instant::now());
        let now = self.0.parts.clock.now();
        let mut tx = self.0.parts.store.write().await?;
        for facts in ground.facts.iter().filter(|facts| facts.own_user.is_some()) {
            let (cluster, names) = (facts.cluster, facts.wants_names);
            for account in &facts.slurm_names {
                store::usage::open_source(&mut tx, viewer.id, cluster, account, names, now).await?;
            }
        }
        store::commit(tx).await?;
        for facts in &ground.facts {
            self.hurry(Reader { person: viewer.id, cluster: facts.cluster });
        }
        Ok(true)
    }
}

/// The accounts of groups that someone leads.
async fn leads(
    db: &mut DbConnection,
    person: PersonId,
) -> Result<Vec<(ClusterId, String)>, StoreError> {
    let all = store::allocations::list_accounts_for_person(db, person).await?;
    let led = all.into_iter().filter(|(_, leads)| *leads);
    Ok(led.map(|(one, _)| (one.cluster_id, one.account)).collect())
}

async fn ground(
    db: &mut DbConnection,
    viewer: PersonId,
    group: GroupId,
) -> Result<Ground, StoreError> {
    let led = leads(db, viewer).await?;
    let mut facts = Vec::new();
    let mut sites: HashMap<ClusterId, (ClusterProfile, Arc<Site>)> = HashMap::new();
    for one in store::allocations::list_accounts(db, group).await? {
        let cluster = one.cluster_id;
        if let std::collections::hash_map::Entry::Vacant(place) = sites.entry(cluster) {
            let Some(row) = store::clusters::get(db, cluster).await? else { continue };
            let known = ClusterProfile::load(db, row).await?;
            let site = Arc::new(known.site.clone());
            place.insert((known, site));
        }
        let Some((known, site)) = sites.get(&cluster) else { continue };
        let key = ConnectionKey { person: viewer, cluster, role: ConnectionRole::Login };
        let line = store::connections::get(db, key).await?;
        let learnt: DiscoveredFacts = line
            .as_ref()
            .and_then(|line| serde_json::from_str(&line.learnt).ok())
            .unwrap_or_default();
        let slurm_names = slurm_names(&learnt, &one.account);
        let books = store::usage::list_sources(db, viewer, cluster).await?;
        facts.push(Arc::new(Facts {
            cluster,
            slug: known.row.slug.clone(),
            title: known.row.title.clone(),
            books: books.into_iter().filter(|book| slurm_names.contains(&book.account)).collect(),
            wants_names: led.contains(&(cluster, one.account.clone())),
            account: one.account,
            slurm_names,
            site: site.clone(),
            own_user: line.filter(|_| learnt.user.is_some()).map(|line| line.remote_user),
            learnt: Arc::new(learnt),
        }));
    }
    facts.sort_by(|a, b| (&a.title, &a.account).cmp(&(&b.title, &b.account)));
    let people = Arc::new(people(db, group, &sites).await?);
    Ok(Ground { facts, people })
}

/// What Slurm has behind an account. One that the viewer cannot use themselves goes by its own name.
fn slurm_names(learnt: &DiscoveredFacts, account: &str) -> Vec<String> {
    let known = learnt.accounts.iter().find(|one| one.name == account);
    let names = known.map(|one| one.slurm_names.clone()).filter(|names| !names.is_empty());
    let names = names.unwrap_or_else(|| vec![account.to_owned()]);
    names.into_iter().filter(|name| is_account_name(name)).collect()
}

/// Who is who on the clusters. A name counts once its owner has connected under it: anyone can type any name, and what a
/// shell over there says of itself is its owner's to change.
async fn people(
    db: &mut DbConnection,
    group: GroupId,
    clusters: &HashMap<ClusterId, (ClusterProfile, Arc<Site>)>,
) -> Result<HashMap<(ClusterId, String), Person>, StoreError> {
    let mut people = HashMap::new();
    for member in store::groups::list_members(db, group).await? {
        for line in store::connections::list_for_person(db, member.person_id).await? {
            if !clusters.contains_key(&line.cluster_id) {
                continue;
            }
            let learnt: DiscoveredFacts = serde_json::from_str(&line.learnt).unwrap_or_default();
            if learnt.user.is_none() {
                continue;
            }
            let user = line.remote_user;
            let person = Person { id: member.person_id, name: member.display_name.clone() };
            people.insert((line.cluster_id, user), person);
        }
    }
    Ok(people)
}
