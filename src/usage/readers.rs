//! Over whose connection a group's usage is read. Reading needs somebody's connection, and what that person sees in the
//! accounting must cover the whole account: figures of a part are never taken for those of the whole.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::service::UsageService;
use crate::cluster::accounting_visibility::load_accounting_visibility;
use crate::cluster::{ClusterAccount, ClusterAccountId, DiscoveredFacts};
use crate::core::lock;
use crate::domain::{GroupId, PersonId};
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
        let keys = self.0.connections.connected_keys();
        lock(&self.0.visibilities)
            .retain(|id, (_, known)| keys.contains(&id.connection_key()) && known.elapsed() < VISIBILITY_MAX_AGE);
        let mut db = self.0.core.store.read().await?;
        let candidates = store::usage::list_reader_candidates(&mut db).await?;
        drop(db);
        let mut assigned: BTreeMap<ClusterAccountId, Vec<UsageSource>> = BTreeMap::new();
        let mut can_act: HashMap<PersonId, bool> = HashMap::new();
        for source in sources {
            let mut able = Vec::new();
            for candidate in candidates_for(&source, &candidates) {
                let id = ClusterAccountId { person: candidate.person_id, cluster: source.cluster_id };
                if !keys.contains(&id.connection_key()) {
                    continue;
                }
                let Some(reader) = self.connected_reader(id).await? else { continue };
                let is_able = match source.owner() {
                    Some(UsageSourceOwner::Group(_)) => reader.can_serve_group(&source.account, candidate.is_pi),
                    _ => reader.sees_only_a_part(&source.account),
                };
                if is_able {
                    able.push((reader_rank(&candidate, &reader), id));
                }
            }
            able.sort_unstable();
            for (_, id) in able {
                // If that can't be decided now, they wait for the next round.
                let may_act = match can_act.get(&id.person) {
                    Some(may_act) => *may_act,
                    None => matches!(self.0.core.auth.can_act_for(id.person).await, Ok(true)),
                };
                can_act.insert(id.person, may_act);
                if may_act {
                    assigned.entry(id).or_default().push(source);
                    break;
                }
            }
        }
        let served = assigned.values().flatten().map(|source| source.id).collect();
        *lock(&self.0.served_sources) = served;
        Ok(assigned.into_iter().map(|(id, sources)| AssignedUsageReader { id, sources }).collect())
    }

    async fn connected_reader(&self, id: ClusterAccountId) -> Result<Option<ConnectedUsageReader>, StoreError> {
        let Some(account) = self.0.connections.accounts().get(id).await? else { return Ok(None) };
        let visibility = lock(&self.0.visibilities).get(&id).map(|(visibility, _)| visibility.clone());
        let has_failed = lock(&self.0.turns).get(&id).is_some_and(|turn| turn.failures > 0);
        Ok(Some(ConnectedUsageReader { account, visibility, has_failed }))
    }

    /// The assigned sources that the reader's view covers, asking the cluster first if that is not known.
    pub(super) async fn keep_covered(
        &self,
        connection: &Arc<ClusterConnection>,
        reader: AssignedUsageReader,
    ) -> Result<Vec<UsageSource>, RunCommandError> {
        let AssignedUsageReader { id, mut sources } = reader;
        let known = lock(&self.0.visibilities).get(&id).map(|(visibility, _)| visibility.clone());
        let mut visibility = if let Some(visibility) = known {
            visibility
        } else {
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
                // Their own figures are read, which meets the same problem if it lasts, and the page tells of it.
                Err(_) => {
                    let unknown = AccountingVisibility::parse("", "", hides_jobs);
                    lock(&self.0.visibilities).insert(id, (unknown.clone(), Instant::now()));
                    unknown
                }
            }
        };
        if visibility.hides_jobs.is_none() {
            self.add_seen_accounts(id, &sources, &mut visibility).await;
        }
        sources.retain(|source| match source.owner() {
            Some(UsageSourceOwner::Group(_)) => visibility.covers(&source.account),
            _ => !visibility.covers(&source.account),
        });
        Ok(sources)
    }

    /// Where a cluster doesn't say what it hides, other people's jobs in someone's own figures of an account prove that
    /// they see all of it: as coordinator, or because nothing is hidden.
    async fn add_seen_accounts(
        &self,
        id: ClusterAccountId,
        sources: &[UsageSource],
        visibility: &mut AccountingVisibility,
    ) {
        let Ok(Some(reader)) = self.0.connections.accounts().get(id).await else { return };
        let Ok(mut db) = self.0.core.store.read().await else { return };
        for source in sources {
            if visibility.covers(&source.account) {
                continue;
            }
            let seen =
                store::usage::has_seen_others(&mut db, id.person, id.cluster, &source.account, &reader.remote_user)
                    .await;
            if matches!(seen, Ok(true)) {
                visibility.covered_accounts.push(source.account.clone());
                if let Some((known, _)) = lock(&self.0.visibilities).get_mut(&id) {
                    known.covered_accounts.push(source.account.clone());
                }
                self.0.wake.notify_one();
            }
        }
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

/// Who may read a source: the members of its group, or the one person whose it is.
fn candidates_for(source: &UsageSource, members: &[UsageReaderCandidate]) -> Vec<UsageReaderCandidate> {
    match source.owner() {
        Some(UsageSourceOwner::Group(group)) => {
            members.iter().filter(|candidate| candidate.group_id == group).copied().collect()
        }
        Some(UsageSourceOwner::Person(person_id)) => {
            vec![UsageReaderCandidate { group_id: GroupId(0), person_id, is_pi: false }]
        }
        None => Vec::new(),
    }
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
