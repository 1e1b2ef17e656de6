//! One refresh: decides what to read, reads it with one command, and saves what changed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::queue_diff::{self, JobChange, JobRecordMap as KnownJobs};
use super::queue_monitor::{QueueMonitor, is_recent};
use super::queue_snapshot::{GroupQueue, PersonQueueSnapshot, QueueReadError};
use super::save::QueueChangeSet;
use super::{JobRecord, change_notifications};
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::cluster::queue::{self, QueueReadOptions, QueueReadReply};
use crate::cluster::{ClusterAccount, ClusterAccountId};
use crate::core::lock;
use crate::domain::GroupRole;
use crate::sites::QuotaTool;
use crate::slurm::job::{JobId, JobStage};
use crate::ssh::{CallUrgency, RunCommandError};
use crate::store::{self, StoreError};

/// Priorities change with every job on the cluster, so they are read less often.
const RANKS_EVERY: Duration = Duration::from_mins(2);
/// Fair share, storage and quota change slowly.
const RESOURCES_EVERY: Duration = Duration::from_mins(15);
/// How often accounting is read; ends that the queue still shows do not need it.
const HISTORY_EVERY: Duration = Duration::from_mins(10);
/// How far back the first read goes.
const FIRST_HISTORY: i64 = 14 * SECONDS_PER_DAY;
/// How much further back each request for older jobs goes.
const MONTH: i64 = 30 * SECONDS_PER_DAY;
/// The longest period that one accounting read covers.
const MAX_HISTORY_RANGE: i64 = 14 * SECONDS_PER_DAY;
/// How late ends may appear in accounting.
const ACCOUNTING_LAG: i64 = 3600;
/// How often to ask accounting about vanished tasks; it may lag a little.
const MAX_TRIES: u8 = 2;
/// How many vanished jobs are asked about at a time.
const MAX_ENDED: usize = 200;
/// Jobs that ended before this leave the snapshot; the history has them.
const RECENT: i64 = 24 * 3600;

impl QueueMonitor {
    /// Refreshes once. Returns whether the queue was read.
    pub(super) async fn refresh_once(&self, key: ClusterAccountId) -> bool {
        match self.try_refresh(key).await {
            Ok(()) => true,
            Err(trouble) => {
                if let Some(queue) = lock(&self.0.watched).get_mut(&key)
                    && queue.snapshot.resources_wanted.is_some()
                {
                    queue.resources_asked = None;
                }
                self.update_snapshot(key, |snapshot| snapshot.trouble = Some(trouble));
                false
            }
        }
    }

    async fn try_refresh(&self, key: ClusterAccountId) -> Result<(), QueueReadError> {
        let connection = self.0.connections.connection(key.connection_key())?;
        let account = self.0.connections.accounts().get(key).await?.ok_or(QueueReadError::NotConnected)?;
        let every = Duration::from_secs(account.site().limits.queue_every_s.into());
        let every = self.0.core.config.queue_pace.clamp_interval(every);
        if let Some(queue) = lock(&self.0.watched).get_mut(&key) {
            queue.every = every;
        }
        let allowed = self.0.core.auth.can_act_for(key.person).await;
        if !allowed.map_err(|error| QueueReadError::Other(error.to_string()))? {
            return Err(QueueReadError::OwnerAway);
        }
        let before = self.snapshot(key).await?;
        let request = self.plan_query(&account, &before).await?;
        let is_viewed = lock(&self.0.watched).get(&key).is_some_and(|queue| queue.is_viewed(Instant::now()));
        if is_viewed {
            connection.call_budget().record_use(Instant::now());
        }
        let (user, asked_at) = (&account.remote_user, self.0.core.clock.now());
        let reply = queue::load_queue(&connection, user, &request, asked_at, CallUrgency::Background).await?;
        self.apply_reply(key, &before, reply, &request, asked_at).await
    }

    /// Decides what to read besides the queue itself.
    async fn plan_query(
        &self,
        account: &ClusterAccount,
        before: &PersonQueueSnapshot,
    ) -> Result<QueueReadOptions, StoreError> {
        let key = account.id;
        let mut db = self.0.core.store.read().await?;
        let read_until = store::queues::get(&mut db, key.person, key.cluster).await?.history();
        let memberships = store::groups::list_for_person(&mut db, key.person).await?;
        drop(db);
        let now = self.0.core.clock.now();
        let at = Instant::now();
        let has_pending = before.records.values().any(|record| record.job.state.stage() == JobStage::Pending);
        let mut queues = lock(&self.0.watched);
        let Some(queue) = queues.get_mut(&key) else { return Ok(QueueReadOptions::default()) };
        let is_viewed = queue.is_viewed(at);
        let arrays: HashSet<JobId> = queue.vanished.keys().map(|task| JobId::without_task(task.number)).collect();
        let ended = queue.missing_since.keys().copied().chain(arrays).take(MAX_ENDED).collect();
        let mut request = QueueReadOptions { ended_jobs: ended, ..QueueReadOptions::default() };
        if let Some((from, _)) = read_until.filter(|_| std::mem::take(&mut queue.wants_history)) {
            request.history = Some((from.plus(-MONTH), from));
        } else if !is_recent(queue.history_asked, at, HISTORY_EVERY) {
            request.history = Some(next_history_range(read_until, now));
        }
        let accounts = account.slurm_accounts();
        if queue.is_group_viewed(at) {
            request.group_accounts.clone_from(&accounts);
        }
        if is_viewed && has_pending && !is_recent(queue.ranks_asked, at, RANKS_EVERY) {
            queue.ranks_asked = Some(at);
            request.ranks = true;
        }
        if is_viewed && !is_recent(queue.resources_asked, at, RESOURCES_EVERY) {
            queue.resources_asked = Some(at);
            // Only PIs see other members' fair share and what they store.
            let is_pi = memberships.iter().any(|membership| membership.role() == GroupRole::Pi);
            if account.uses_fair_share() {
                request.fair_share = accounts;
                request.fair_share_per_user = is_pi;
            }
            let has = |tool: &str| account.discovered.tools.iter().any(|installed| installed == tool);
            let tool = match account.site().storage.quota_tool {
                QuotaTool::None if has("lfs") => QuotaTool::LfsQuota,
                QuotaTool::None if has("quota") => QuotaTool::Quota,
                tool => tool,
            };
            let program = tool.command().and_then(|command| command.split(' ').next());
            if program.is_some_and(has) {
                request.quota = tool;
                request.quota_folders = account.discovered.own_folders();
                request.storage_per_user = is_pi;
            }
            if has("cost") {
                request.cost = account.site().units.cost_tool;
            }
        }
        Ok(request)
    }

    async fn apply_reply(
        &self,
        key: ClusterAccountId,
        before: &Arc<PersonQueueSnapshot>,
        mut reply: QueueReadReply,
        request: &QueueReadOptions,
        asked_at: UnixTime,
    ) -> Result<(), QueueReadError> {
        let now = self.0.core.clock.now();
        let answer = match reply.queue.take() {
            Some(Ok(answer)) => answer,
            Some(Err(message)) => return Err(QueueReadError::Controller(message)),
            None => return Err(QueueReadError::Controller(String::new())),
        };
        let notified_until = before.seen;
        let diff = queue_diff::diff_queue(&before.records, answer.jobs, notified_until, now);
        let mut changes = diff.changes;
        let mut accounting_trouble = None;
        let mut asked_all = true;
        for rows in [reply.ended_jobs.take(), reply.history.take()].into_iter().flatten() {
            match rows {
                Ok(rows) => {
                    let records = apply_changes(&before.records, &changes);
                    let until = notified_until.filter(|_| before.history_from.is_some());
                    changes.extend(queue_diff::diff_accounting(&records, rows, until, now));
                }
                Err(message) => {
                    asked_all = false;
                    accounting_trouble = Some(QueueReadError::Accounting(message));
                }
            }
        }
        let mut gone = diff.gone;
        let missed = self.note_missed(key, &diff.missing, now);
        let asked = if asked_all { request.ended_jobs.as_slice() } else { &[] };
        let given_up = self.note_vanished(key, diff.vanished, asked, &changes);
        changes.extend(given_up.iter().map(|(id, rest)| queue_diff::cancelled_before_start(*id, rest, now)));
        if asked_all && !request.ended_jobs.is_empty() {
            gone.extend(started_rests(&diff.missing, &changes));
            let left: Vec<Arc<JobRecord>> =
                diff.missing.iter().filter(|record| !gone.iter().any(|other| other.id == record.id)).cloned().collect();
            changes.extend(queue_diff::lost_jobs(&left, &changes, &missed, now));
        }
        let history = request.history.filter(|_| asked_all);
        let change_set = QueueChangeSet { changes, gone, history, notified_until };
        let (changes, gone) = self.save_update(key, before, change_set, now).await?;
        self.after_save(key, &changes, history.is_some());
        let resources = self.save_resources(key, &before.resources, &mut reply, now).await;
        // None if someone asked again after this read was planned.
        let are_resources_read = lock(&self.0.watched).get(&key).is_some_and(|queue| queue.resources_asked.is_some());
        self.update_snapshot(key, |snapshot| {
            for record in &gone {
                snapshot.records.remove(&record.job.id);
            }
            for change in changes {
                snapshot.records.insert(change.record.job.id, Arc::new(change.record));
            }
            snapshot.records.retain(|_, record| record.ended_at().is_none_or(|ended| now.since(ended) < RECENT));
            // What a slow cluster says is as old as the question.
            snapshot.seen = Some(asked_at);
            snapshot.trouble = None;
            snapshot.is_cut = answer.is_cut;
            if accounting_trouble.is_some() || !request.ended_jobs.is_empty() || request.history.is_some() {
                snapshot.accounting_trouble = accounting_trouble;
            }
            if let Some((from, _)) = history {
                snapshot.history_from = Some(snapshot.history_from.map_or(from, |earlier| earlier.min(from)));
            }
            if let Some(Ok(group)) = reply.group_jobs {
                snapshot.group = Some(Arc::new(GroupQueue::new(group.jobs, now, group.is_cut)));
            }
            if request.ranks {
                snapshot.ahead = reply.pending_counts;
                snapshot.factors = reply
                    .priority_factors
                    .unwrap_or_default()
                    .into_iter()
                    .map(|factors| (factors.raw_id, factors))
                    .collect();
            }
            if are_resources_read {
                snapshot.resources_wanted = None;
            }
            if let Some(resources) = resources {
                snapshot.resources = Arc::new(resources);
            }
        });
        Ok(())
    }

    /// Notes since when jobs have been missing, and forgets those that came back.
    fn note_missed(
        &self,
        key: ClusterAccountId,
        missing: &[Arc<JobRecord>],
        now: UnixTime,
    ) -> HashMap<JobId, UnixTime> {
        let mut queues = lock(&self.0.watched);
        let Some(queue) = queues.get_mut(&key) else { return HashMap::new() };
        // Ask soon how new ones ended, not at the next regular time.
        queue.is_urgent |= missing.iter().any(|record| !queue.missing_since.contains_key(&record.job.id));
        let since = |id: JobId| *queue.missing_since.get(&id).unwrap_or(&now);
        queue.missing_since = missing.iter().map(|record| (record.job.id, since(record.job.id))).collect();
        queue.missing_since.clone()
    }

    /// Notes tasks that left the queue without starting. Returns those that accounting does not know either, after
    /// more than one try.
    fn note_vanished(
        &self,
        key: ClusterAccountId,
        vanished: Vec<(JobId, Arc<JobRecord>)>,
        asked: &[JobId],
        changes: &[JobChange],
    ) -> Vec<(JobId, Arc<JobRecord>)> {
        let mut queues = lock(&self.0.watched);
        let Some(queue) = queues.get_mut(&key) else { return Vec::new() };
        let reported: HashSet<JobId> = changes.iter().map(|change| change.record.job.id).collect();
        queue.vanished.retain(|id, _| !reported.contains(id));
        let mut given_up = Vec::new();
        for (id, (tries, rest)) in &mut queue.vanished {
            *tries += u8::from(asked.contains(&JobId::without_task(id.number)));
            if *tries >= MAX_TRIES {
                given_up.push((*id, rest.clone()));
            }
        }
        queue.vanished.retain(|_, (tries, _)| *tries < MAX_TRIES);
        queue.is_urgent |= !vanished.is_empty() || !queue.vanished.is_empty();
        queue.vanished.extend(vanished.into_iter().map(|(id, rest)| (id, (0, rest))));
        given_up
    }

    /// After saving: ended jobs are no longer missing, and people are notified.
    fn after_save(&self, key: ClusterAccountId, changes: &[JobChange], history_read: bool) {
        let mut queues = lock(&self.0.watched);
        if let Some(queue) = queues.get_mut(&key) {
            for change in changes.iter().filter(|change| change.record.is_over) {
                queue.missing_since.remove(&change.record.job.id);
            }
            if history_read {
                queue.history_asked = Some(Instant::now());
            }
        }
        drop(queues);
        if changes.iter().any(change_notifications::is_notable) {
            self.0.notifications.notify(key.person);
        }
    }

    pub(super) fn update_snapshot(&self, key: ClusterAccountId, change: impl FnOnce(&mut PersonQueueSnapshot)) {
        let mut queues = lock(&self.0.watched);
        let Some(queue) = queues.get_mut(&key) else { return };
        let mut snapshot = PersonQueueSnapshot::clone(&queue.snapshot);
        change(&mut snapshot);
        snapshot.version += 1;
        snapshot.items = std::sync::OnceLock::new();
        queue.snapshot = Arc::new(snapshot);
        drop(queues);
        self.notify(key);
    }
}

/// The next accounting period to read: starts a little before the last one ended, and has a maximum length.
fn next_history_range(read: Option<(UnixTime, UnixTime)>, now: UnixTime) -> (UnixTime, UnixTime) {
    let from = read.map_or(now.plus(-FIRST_HISTORY), |(_, until)| until.plus(-ACCOUNTING_LAG));
    (from, now.min(from.plus(MAX_HISTORY_RANGE)))
}

/// The known jobs with the changes applied.
fn apply_changes(records: &KnownJobs, changes: &[JobChange]) -> KnownJobs {
    let mut records = records.clone();
    for change in changes {
        records.insert(change.record.job.id, Arc::new(change.record.clone()));
    }
    records
}

/// Pending remainders of arrays that vanished because their tasks started: accounting knows the tasks, not the
/// remainder.
fn started_rests(missing: &[Arc<JobRecord>], changes: &[JobChange]) -> Vec<Arc<JobRecord>> {
    let has_tasks = |number: u64| {
        changes.iter().any(|change| change.record.job.id.number == number && change.record.job.id.task.is_some())
    };
    let answered = |id: JobId| changes.iter().any(|change| change.record.job.id == id);
    missing
        .iter()
        .filter(|record| record.job.tasks.is_some())
        .filter(|record| !answered(record.job.id) && has_tasks(record.job.id.number))
        .cloned()
        .collect()
}

impl From<RunCommandError> for QueueReadError {
    fn from(error: RunCommandError) -> Self {
        match error {
            RunCommandError::NotConnected | RunCommandError::ConnectionLost => Self::NotConnected,
            RunCommandError::HostKeyInDoubt => Self::HostKeyInDoubt,
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<StoreError> for QueueReadError {
    fn from(error: StoreError) -> Self {
        Self::Other(error.to_string())
    }
}
