//! One person on one cluster: the starting point of everything the portal does for them there. Loaded here, and
//! nowhere else.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use super::cluster_profile::ClusterProfile;
use super::connection_pool::{ConnectionPool, ConnectionStatus};
use super::discovered_facts::DiscoveredFacts;
use crate::clock::UnixTime;
use crate::domain::{ClusterId, ConnectionRole, PersonId};
use crate::sites::Site;
use crate::ssh::{ClusterConnection, RunCommandError};
use crate::store::cluster_preferences::ClusterPreferences;
use crate::store::clusters::{Cluster, PinnedHostKey};
use crate::store::connections::{ConnectionKey, ConnectionProblem, StoredConnection};
use crate::store::{self, DbConnection, Store, StoreCache};

/// How many people's accounts are cached.
const MAX_PEOPLE: usize = 1000;
/// How many parsed texts are cached.
const MAX_PARSED: usize = 3000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterAccountId {
    pub person: PersonId,
    pub cluster: ClusterId,
}

impl ClusterAccountId {
    /// The connection to the login node, which everything uses.
    pub const fn connection_key(self) -> ConnectionKey {
        ConnectionKey { person: self.person, cluster: self.cluster, role: ConnectionRole::Login }
    }
}

/// One person on one cluster. It exists as soon as the person has entered their user name there.
#[derive(Debug, Clone)]
pub struct ClusterAccount {
    pub id: ClusterAccountId,
    pub profile: Arc<ClusterProfile>,
    pub remote_user: String,
    /// Empty until the first connection with this user name.
    pub discovered: Arc<DiscoveredFacts>,
    pub discovered_at: Option<UnixTime>,
    /// When the connection was last opened.
    pub connected_at: Option<UnixTime>,
    /// Why the connection is not up.
    pub problem: ConnectionProblem,
    /// Whether the person has hidden the cluster.
    pub is_hidden: bool,
    /// The cluster's rank in the person's order.
    pub rank: i64,
}

impl ClusterAccount {
    pub fn cluster(&self) -> &Cluster {
        &self.profile.row
    }

    pub fn site(&self) -> &Arc<Site> {
        &self.profile.site
    }

    pub fn status(&self, pool: &ConnectionPool) -> ConnectionStatus {
        pool.status(self.id.connection_key())
    }

    pub fn connection(&self, pool: &ConnectionPool) -> Result<Arc<ClusterConnection>, RunCommandError> {
        pool.connection(self.id.connection_key())
    }

    /// The Slurm accounts that jobs can be charged to.
    pub fn slurm_accounts(&self) -> Vec<String> {
        self.discovered.accounts.iter().flat_map(|one| one.slurm_names.clone()).collect()
    }

    /// Which Slurm user this is: equal if two of the portal's clusters lead to the same Slurm cluster. `None` if it is
    /// not known.
    pub fn slurm_identity(&self) -> Option<(&str, &str, &str)> {
        let facts = &self.discovered;
        Some((facts.slurm_cluster.as_deref()?, facts.slurm_controller.as_deref()?, &self.remote_user))
    }

    /// Whether fair share affects the priority of jobs there.
    pub fn uses_fair_share(&self) -> bool {
        self.profile.site.units.fair_share || self.discovered.uses_fair_share
    }
}

/// Everybody's cluster accounts. Rows are read again after any write; their texts are parsed again only if they have
/// changed.
#[derive(Clone)]
pub struct ClusterAccountCache(Arc<ClusterAccountCacheInner>);

struct ClusterAccountCacheInner {
    store: Store,
    by_person: StoreCache<PersonId, Vec<Arc<ClusterAccount>>>,
    preferences: StoreCache<PersonId, ClusterPreferences>,
    profiles: ParsedCache<ClusterId, (Cluster, Vec<PinnedHostKey>), Arc<ClusterProfile>>,
    /// `None` if the text cannot be parsed.
    discovered: ParsedCache<ConnectionKey, String, Option<Arc<DiscoveredFacts>>>,
}

impl ClusterAccountCache {
    pub fn new(store: Store) -> Self {
        Self(Arc::new(ClusterAccountCacheInner {
            store,
            by_person: StoreCache::new(MAX_PEOPLE),
            preferences: StoreCache::new(MAX_PEOPLE),
            profiles: ParsedCache::default(),
            discovered: ParsedCache::default(),
        }))
    }

    /// All cluster accounts of a person, hidden clusters included: in the person's order, or else in the order in which
    /// the clusters were added.
    pub async fn list(&self, person: PersonId) -> store::Result<Arc<Vec<Arc<ClusterAccount>>>> {
        let store = &self.0.store;
        self.0
            .by_person
            .get_or_load(store, &person, async || self.list_with(&mut *store.read().await?, person).await)
            .await
    }

    /// Which clusters a person hides, and their order: also for clusters where they have no account.
    pub async fn preferences(&self, person: PersonId) -> store::Result<Arc<ClusterPreferences>> {
        let store = &self.0.store;
        let load = async || store::cluster_preferences::list(&mut *store.read().await?, person).await;
        self.0.preferences.get_or_load(store, &person, load).await
    }

    pub async fn get(&self, id: ClusterAccountId) -> store::Result<Option<Arc<ClusterAccount>>> {
        let all = self.list(id.person).await?;
        Ok(all.iter().find(|account| account.id == id).cloned())
    }

    /// The same as [`Self::list`], for callers that already hold a database connection or a transaction.
    pub async fn list_with(&self, db: &mut DbConnection, person: PersonId) -> store::Result<Vec<Arc<ClusterAccount>>> {
        let preferences = store::cluster_preferences::list(db, person).await?;
        let mut found = Vec::new();
        for row in store::connections::list_for_person(db, person).await? {
            if row.key().role == ConnectionRole::Login {
                found.extend(self.read_account(db, row, &preferences).await?);
            }
        }
        found.sort_by_key(|account| account.rank);
        Ok(found)
    }

    /// The same as [`Self::get`], for callers that already hold a database connection or a transaction.
    pub async fn get_with(
        &self,
        db: &mut DbConnection,
        id: ClusterAccountId,
    ) -> store::Result<Option<Arc<ClusterAccount>>> {
        match store::connections::get(db, id.connection_key()).await? {
            Some(row) => {
                let preferences = store::cluster_preferences::list(db, id.person).await?;
                self.read_account(db, row, &preferences).await
            }
            None => Ok(None),
        }
    }

    /// A cluster with its description, independent of any person.
    pub async fn profile(&self, db: &mut DbConnection, row: Cluster) -> store::Result<Arc<ClusterProfile>> {
        let pins = store::clusters::list_host_keys(db, row.id).await?;
        self.0
            .profiles
            .get_or_parse(row.id, &(row, pins), |(row, pins)| ClusterProfile::parse(row.clone(), pins).map(Arc::new))
    }

    /// What was discovered over a connection; `None` if discovery never ran.
    pub fn discovered(&self, row: &StoredConnection) -> Option<Arc<DiscoveredFacts>> {
        let parse = |text: &String| Ok(serde_json::from_str(text).ok().map(Arc::new));
        self.0.discovered.get_or_parse(row.key(), &row.discovered, parse).ok().flatten()
    }

    async fn read_account(
        &self,
        db: &mut DbConnection,
        row: StoredConnection,
        preferences: &ClusterPreferences,
    ) -> store::Result<Option<Arc<ClusterAccount>>> {
        let id = ClusterAccountId { person: row.person_id, cluster: row.cluster_id };
        let Some(cluster) = store::clusters::get(db, id.cluster).await? else { return Ok(None) };
        let profile = self.profile(db, cluster).await?;
        let discovered = self.discovered(&row);
        Ok(Some(Arc::new(ClusterAccount {
            id,
            profile,
            discovered_at: row.discovered_at.filter(|_| discovered.is_some()),
            discovered: discovered.unwrap_or_default(),
            connected_at: row.connected_at,
            remote_user: row.remote_user,
            problem: row.problem,
            is_hidden: preferences.is_hidden(id.cluster),
            rank: preferences.rank(id.cluster),
        })))
    }
}

/// The parsed form of a text, valid as long as the text stays the same.
struct ParsedCache<K, S, V>(Mutex<HashMap<K, (S, V)>>);

impl<K, S, V> Default for ParsedCache<K, S, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, S: PartialEq + Clone, V: Clone> ParsedCache<K, S, V> {
    fn get_or_parse(&self, key: K, source: &S, parse: impl FnOnce(&S) -> store::Result<V>) -> store::Result<V> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, value)) = entries.get(&key).filter(|(known, _)| known == source) {
            return Ok(value.clone());
        }
        let value = parse(source)?;
        if entries.len() >= MAX_PARSED {
            entries.clear();
        }
        entries.insert(key, (source.clone(), value.clone()));
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{DisplayName, HostName};
    use crate::store::clusters::ClusterSettings;
    use crate::store::connections::{save_discovered, save_user};

    const AT: UnixTime = UnixTime(1_700_000_000);

    /// A person with a user name on a cluster.
    async fn add_account(store: &Store) -> ClusterAccountId {
        let mut tx = store.write().await.unwrap();
        let (name, title): (_, DisplayName) = ("alice".parse().unwrap(), "Own".parse().unwrap());
        let person = store::people::add(&mut tx, &name, &title, false, AT).await.unwrap();
        let host: HostName = "login.example.org".parse().unwrap();
        let what = ClusterSettings { title: &title, host: &host, port: 22, site: "" };
        let slug = "own".parse().unwrap();
        let cluster = store::clusters::add(&mut tx, &slug, &what, AT).await.unwrap();
        let id = ClusterAccountId { person, cluster };
        let user = "alice1".parse().unwrap();
        save_user(&mut tx, id.connection_key(), &user, AT).await.unwrap();
        store::commit(tx).await.unwrap();
        id
    }

    async fn write_facts(store: &Store, id: ClusterAccountId, text: &str) {
        let mut tx = store.write().await.unwrap();
        save_discovered(&mut tx, id.connection_key(), text, AT).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    #[tokio::test]
    async fn texts_are_parsed_again_only_where_they_have_changed() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("p.db")).await.unwrap();
        let accounts = ClusterAccountCache::new(store.clone());
        let id = add_account(&store).await;
        let get = async || accounts.get(id).await.unwrap().unwrap();
        let first = get().await;
        assert_eq!((first.remote_user.as_str(), first.discovered_at), ("alice1", None));
        assert!(Arc::ptr_eq(&first, &get().await), "not read again");
        write_facts(&store, id, r#"{"user":"alice1"}"#).await;
        let second = get().await;
        assert_eq!(second.discovered.user.as_deref(), Some("alice1"));
        assert_eq!(second.discovered_at, Some(AT));
        assert!(Arc::ptr_eq(&first.profile, &second.profile), "the cluster is as it was");
        write_facts(&store, id, r#"{"user":"alice1"}"#).await;
        let third = get().await;
        assert!(!Arc::ptr_eq(&second, &third) && Arc::ptr_eq(&second.discovered, &third.discovered));
        write_facts(&store, id, "no json").await;
        assert_eq!(get().await.discovered_at, None, "what cannot be read was not found");
    }

    #[tokio::test]
    async fn hiding_and_order_are_read_with_the_accounts() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("p.db")).await.unwrap();
        let accounts = ClusterAccountCache::new(store.clone());
        let first = add_account(&store).await;
        let mut tx = store.write().await.unwrap();
        let (title, host): (DisplayName, HostName) = ("B".parse().unwrap(), "b.example.org".parse().unwrap());
        let what = ClusterSettings { title: &title, host: &host, port: 22, site: "" };
        let cluster = store::clusters::add(&mut tx, &"b".parse().unwrap(), &what, AT).await.unwrap();
        let second = ClusterAccountId { cluster, ..first };
        save_user(&mut tx, second.connection_key(), &"alice2".parse().unwrap(), AT).await.unwrap();
        store::cluster_preferences::save_order(&mut tx, first.person, &[cluster, first.cluster]).await.unwrap();
        store::cluster_preferences::set_hidden(&mut tx, first.person, first.cluster, true).await.unwrap();
        store::commit(tx).await.unwrap();
        let list = accounts.list(first.person).await.unwrap();
        let seen: Vec<_> = list.iter().map(|account| (account.id, account.is_hidden)).collect();
        assert_eq!(seen, [(second, false), (first, true)]);
        let other = PersonId(first.person.0 + 1);
        assert!(!accounts.preferences(other).await.unwrap().is_hidden(first.cluster), "only for one person");
    }

    #[tokio::test]
    async fn a_transaction_sees_what_it_has_written() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("p.db")).await.unwrap();
        let accounts = ClusterAccountCache::new(store.clone());
        let id = add_account(&store).await;
        let mut tx = store.write().await.unwrap();
        save_user(&mut tx, id.connection_key(), &"alice2".parse().unwrap(), AT).await.unwrap();
        let inside = accounts.get_with(&mut tx, id).await.unwrap().unwrap();
        assert_eq!(inside.remote_user, "alice2");
        drop(tx);
        assert_eq!(accounts.get(id).await.unwrap().unwrap().remote_user, "alice1");
    }
}
