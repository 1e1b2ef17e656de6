//! Over whose connection a group's usage is read. Reading needs somebody's connection, and what that person sees in the
//! accounting must cover the whole account: figures of a part are never taken for those of the whole.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::service::UsageService;
use crate::cluster::accounting_visibility::load_accounting_visibility;
use crate::cluster::{ClusterAccount, ClusterAccountId, DiscoveredFacts};
use crate::core::lock;
use crate::domain::PersonId;
use crate::slurm::accounting::visibility::AccountingVisibility;
use crate::ssh::{ClusterConnection, RunCommandError};
use crate::store::usage::{UsageReaderCandidate, UsageSource, UsageSourceOwner};
use crate::store::{self, StoreError};

/// What someone sees in the accounting is asked again after this long: rights change.
const VISIBILITY_MAX_AGE: Duration = Duration::from_hours(1);

/// Someone whose connection is used, and what is read over it.
pub(super) struct AssignedUsageReader {
    pub(super) id: ClusterAccountId,
    pub(super) sources: Vec<UsageSource>,
}

/// A connected person, as far as reading is concerned.
struct ConnectedUsageReader {
    account: Arc<ClusterAccount>,
    /// `None` until it was asked for.
    visibility: Option<AccountingVisibility>,
    has_failed: bool,
}

impl ConnectedUsageReader {
    /// Whether they may read an account for their group. PIs chose the accounts, so their own rights decide; other
    /// members read only accounts that are theirs as well.
    fn can_serve_group(&self, account: &str, is_pi: bool) -> bool {
        let covers = |visibility: &AccountingVisibility| visibility.covers(account);
        let is_theirs = || self.account.slurm_accounts().iter().any(|theirs| theirs == account);
        self.visibility.as_ref().is_none_or(covers) && (is_pi || is_theirs())
    }

    /// Whether their own figures are read for themselves alone, because they see only a part of the account.
    fn sees_only_a_part(&self, account: &str) -> bool {
        self.visibility.as_ref().is_some_and(|visibility| !visibility.covers(account))
    }
}

impl UsageService {
    /// Finds a reader for each source: of several, one whose last read went well, then a PI. Sources without one wait.
    pub(super) async fn assign_readers(
        &self,
        sources: Vec<UsageSource>,
    ) -> Result<Vec<AssignedUsageReader>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let candidates = store::usage::list_reader_candidates(&mut db).await?;
        drop(db);
        let connected = self.list_connected_readers().await?;
        let mut assigned: BTreeMap<ClusterAccountId, Vec<UsageSource>> = BTreeMap::new();
        for source in sources {
            let at = |person: PersonId| ClusterAccountId { person, cluster: source.cluster_id };
            let reader = match source.owner() {
                Some(UsageSourceOwner::Group(group)) => candidates
                    .iter()
                    .filter(|candidate| candidate.group_id == group)
                    .filter_map(|candidate| Some((candidate, connected.get(&at(candidate.person_id))?)))
                    .filter(|(candidate, reader)| reader.can_serve_group(&source.account, candidate.is_pi))
                    .min_by_key(|(candidate, reader)| reader_rank(candidate, reader))
                    .map(|(candidate, _)| at(candidate.person_id)),
                Some(UsageSourceOwner::Person(person)) => {
                    let reader = connected.get(&at(person));
                    reader.filter(|reader| reader.sees_only_a_part(&source.account)).map(|_| at(person))
                }
                None => None,
            };
            if let Some(reader) = reader {
                assigned.entry(reader).or_default().push(source);
            }
        }
        let served = assigned.values().flatten().map(|source| source.id).collect();
        *lock(&self.0.served_sources) = served;
        Ok(assigned.into_iter().map(|(id, sources)| AssignedUsageReader { id, sources }).collect())
    }

    /// Everyone who is connected and for whom the portal may act.
    async fn list_connected_readers(&self) -> Result<HashMap<ClusterAccountId, ConnectedUsageReader>, StoreError> {
        let keys = self.0.connections.connected_keys();
        let mut ids: Vec<ClusterAccountId> =
            keys.iter().map(|key| ClusterAccountId { person: key.person, cluster: key.cluster }).collect();
        ids.retain(|id| keys.contains(&id.connection_key()));
        ids.sort_unstable();
        ids.dedup();
        lock(&self.0.visibilities).retain(|id, (_, known)| ids.contains(id) && known.elapsed() < VISIBILITY_MAX_AGE);
        let mut readers = HashMap::new();
        for id in ids {
            // If that can't be decided now, they wait for the next round.
            if !matches!(self.0.core.auth.can_act_for(id.person).await, Ok(true)) {
                continue;
            }
            let Some(account) = self.0.connections.accounts().get(id).await? else { continue };
            let visibility = lock(&self.0.visibilities).get(&id).map(|(visibility, _)| visibility.clone());
            let has_failed = lock(&self.0.turns).get(&id).is_some_and(|turn| turn.failures > 0);
            readers.insert(id, ConnectedUsageReader { account, visibility, has_failed });
        }
        Ok(readers)
    }

    /// The assigned sources that the reader's view covers, asking the cluster first if that is not known.
    pub(super) async fn keep_covered(
        &self,
        connection: &Arc<ClusterConnection>,
        reader: AssignedUsageReader,
    ) -> Result<Vec<UsageSource>, RunCommandError> {
        let AssignedUsageReader { id, mut sources } = reader;
        let known = lock(&self.0.visibilities).get(&id).map(|(visibility, _)| visibility.clone());
        let visibility = match known {
            Some(visibility) => visibility,
            None => {
                let account = self.0.connections.accounts().get(id).await.ok().flatten();
                let Some(account) = account else { return Ok(Vec::new()) };
                let hides_jobs = may_hide_jobs(&account.discovered);
                match load_accounting_visibility(connection, &account.remote_user, hides_jobs).await {
                    Ok(asked) => {
                        lock(&self.0.visibilities).insert(id, (asked.clone(), Instant::now()));
                        // Someone else may have to read what this person does not see.
                        self.0.wake.notify_one();
                        asked
                    }
                    Err(
                        error @ (RunCommandError::NotConnected
                        | RunCommandError::Busy
                        | RunCommandError::OverBudget
                        | RunCommandError::HostKeyInDoubt),
                    ) => return Err(error),
                    // Reading the accounting will meet the same problem, and the page tells of it.
                    Err(_) => AccountingVisibility::parse("", "", hides_jobs),
                }
            }
        };
        sources.retain(|source| match source.owner() {
            Some(UsageSourceOwner::Group(_)) => visibility.covers(&source.account),
            _ => !visibility.covers(&source.account),
        });
        Ok(sources)
    }

    /// Whether someone sees only a part of an account, as far as is known.
    pub(super) fn sees_only_a_part(&self, id: ClusterAccountId, facts: &DiscoveredFacts, account: &str) -> bool {
        let known = lock(&self.0.visibilities).get(&id).map(|(visibility, _)| visibility.covers(account));
        known.map_or(facts.user.is_some() && may_hide_jobs(facts), |covers| !covers)
    }
}

/// Whether Slurm may show people only their own jobs: so its settings say, or they could not be read.
const fn may_hide_jobs(facts: &DiscoveredFacts) -> bool {
    facts.hides_jobs || (facts.slurm_version.is_none() && facts.slurm_cluster.is_none())
}

/// The lowest comes first.
fn reader_rank(candidate: &UsageReaderCandidate, reader: &ConnectedUsageReader) -> (bool, bool, PersonId) {
    (reader.has_failed, !candidate.is_pi, candidate.person_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_may_be_hidden() {
        let facts = |version: Option<&str>, hides_jobs| DiscoveredFacts {
            slurm_version: version.map(str::to_owned),
            hides_jobs,
            ..DiscoveredFacts::default()
        };
        assert!(!may_hide_jobs(&facts(Some("24.11.5"), false)));
        assert!(may_hide_jobs(&facts(Some("24.11.5"), true)));
        assert!(may_hide_jobs(&facts(None, false)));
    }
}
