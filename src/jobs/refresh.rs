//! One refresh: decides what to ask, asks it with one command, and writes down what has changed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::keep::Keeping;
use super::merge::{self, Change, Known as KnownJobs};
use super::picture::{GroupQueue, Picture, Trouble};
use super::watch::{QueueKey, Queues, recent};
use super::{Record, news};
use crate::clock::UnixTime;
use crate::cluster::queue::{self, QueueQuery, QueueReply};
use crate::cluster::{ClusterProfile, DiscoveredFacts};
use crate::domain::GroupRole;
use crate::sites::Site;
use crate::slurm::job::{JobId, JobStage};
use crate::ssh::{CallUrgency, RunCommandError};
use crate::store::connections::ConnectionRow;
use crate::store::{self, StoreError};

/// Ranks change with every job of everybody's; who waits can wait for them.
const RANKS_EVERY: Duration = Duration::from_mins(2);
/// Fair-share, storage and quota change slowly.
const STANDING_EVERY: Duration = Duration::from_mins(15);
/// The accounting is read this often; ends that the queue still knows need it not.
const HISTORY_EVERY: Duration = Duration::from_mins(10);
/// The first look goes back this far.
const FIRST_HISTORY: i64 = 14 * 86_400;
/// One look further back.
const MONTH: i64 = 30 * 86_400;
/// No look at the accounting spans more.
const LONGEST_STRETCH: i64 = 14 * 86_400;
/// Ends may be written into the accounting this late.
const LAG: i64 = 3600;
/// The accounting is asked this often about tasks that vanished; it may be a little late.
const MOST_TRIES: u8 = 2;
/// Jobs that vanished are asked about so many at a time.
const MOST_ENDED: usize = 200;
/// Jobs that ended earlier than this leave the picture; the history has them.
const RECENT: i64 = 24 * 3600;

/// What has to be known before one can ask.
struct Ground {
    line: ConnectionRow,
    site: Site,
    learnt: DiscoveredFacts,
}

impl Queues {
    /// Looks once. Says whether the queue was seen.
    pub(super) async fn look_once(&self, key: QueueKey) -> bool {
        match self.try_look(key).await {
            Ok(()) => true,
            Err(trouble) => {
                self.change_picture(key, |picture| picture.trouble = Some(trouble));
                false
            }
        }
    }

    async fn try_look(&self, key: QueueKey) -> Result<(), Trouble> {
        let other = |error: StoreError| Trouble::Other(error.to_string());
        let connection = self.0.lines.connection(key.line()).map_err(|error| trouble(&error))?;
        let Some(ground) = self.ground(key).await.map_err(other)? else {
            return Err(Trouble::NotConnected);
        };
        let allowed = self.0.auth.can_act_for(key.person).await;
        if !allowed.map_err(|error| Trouble::Other(error.to_string()))? {
            return Err(Trouble::Away);
        }
        let before = self.picture(key).await.map_err(other)?;
        let wishes = self.wishes(key, &ground, &before).await.map_err(other)?;
        let is_looked_at =
            self.spots().get(&key).is_some_and(|spot| spot.is_looked_at(Instant::now()));
        if is_looked_at {
            connection.call_budget().record_use(Instant::now());
        }
        let told = queue::load_queue(
            &connection,
            &ground.line.remote_user,
            &wishes,
            CallUrgency::Background,
        )
        .await
        .map_err(|error| trouble(&error))?;
        self.take(key, &before, told, &wishes).await
    }

    async fn ground(&self, key: QueueKey) -> Result<Option<Ground>, StoreError> {
        let mut db = self.0.store.read().await?;
        let Some(line) = store::connections::get(&mut db, key.line()).await? else {
            return Ok(None);
        };
        let Some(row) = store::clusters::get(&mut db, key.cluster).await? else { return Ok(None) };
        let known = ClusterProfile::load(&mut db, row).await?;
        let learnt = serde_json::from_str(&line.learnt).unwrap_or_default();
        let every =
            self.0.pace.clamp_interval(Duration::from_secs(known.site.limits.queue_every_s.into()));
        if let Some(spot) = self.spots().get_mut(&key) {
            spot.every = every;
        }
        Ok(Some(Ground { line, site: known.site, learnt }))
    }

    /// What to ask besides the queue itself.
    async fn wishes(
        &self,
        key: QueueKey,
        ground: &Ground,
        before: &Picture,
    ) -> Result<QueueQuery, StoreError> {
        let mut db = self.0.store.read().await?;
        let read_until = store::queues::get(&mut db, key.person, key.cluster).await?.history();
        let memberships = store::groups::list_for_person(&mut db, key.person).await?;
        drop(db);
        let now = self.0.clock.now();
        let at = Instant::now();
        let waits = before.records.values().any(|one| one.job.state.stage() == JobStage::Pending);
        let mut spots = self.spots();
        let Some(spot) = spots.get_mut(&key) else { return Ok(QueueQuery::default()) };
        let looked = spot.is_looked_at(at);
        let arrays: HashSet<JobId> =
            spot.vanished.keys().map(|task| JobId::without_task(task.number)).collect();
        let ended = spot.missed.keys().copied().chain(arrays).take(MOST_ENDED).collect();
        let mut wishes = QueueQuery { ended_jobs: ended, ..QueueQuery::default() };
        if let Some((from, _)) = read_until.filter(|_| std::mem::take(&mut spot.looks_back)) {
            wishes.history = Some((from.plus(-MONTH), from));
        } else if !recent(spot.history_asked, at, HISTORY_EVERY) {
            wishes.history = Some(stretch(read_until, now));
        }
        let accounts: Vec<String> =
            ground.learnt.accounts.iter().flat_map(|one| one.slurm_names.clone()).collect();
        if spot.is_group_looked_at(at) {
            wishes.group_accounts.clone_from(&accounts);
        }
        if looked && waits && !recent(spot.ranks_asked, at, RANKS_EVERY) {
            spot.ranks_asked = Some(at);
            wishes.ranks = true;
        }
        if looked && !recent(spot.standing_asked, at, STANDING_EVERY) {
            spot.standing_asked = Some(at);
            if ground.site.units.fair_share || ground.learnt.uses_fair_share {
                wishes.fair_share = accounts;
            }
            let has = |tool: &str| ground.learnt.tools.iter().any(|known| known == tool);
            let tool = ground.site.storage.quota_tool;
            let program = tool.command().and_then(|command| command.split(' ').next());
            if program.is_some_and(has) {
                wishes.quota = tool;
                // Only a group's leader is shown what others have stored.
                wishes.storage_per_user = memberships.iter().any(|one| one.role() == GroupRole::Pi);
            }
            if has("cost") {
                wishes.cost = ground.site.units.cost_tool;
            }
        }
        Ok(wishes)
    }

    async fn take(
        &self,
        key: QueueKey,
        before: &Arc<Picture>,
        mut told: QueueReply,
        wishes: &QueueQuery,
    ) -> Result<(), Trouble> {
        let now = self.0.clock.now();
        let answer = match told.queue.take() {
            Some(Ok(answer)) => answer,
            Some(Err(said)) => return Err(Trouble::Controller(said)),
            None => return Err(Trouble::Controller(String::new())),
        };
        let told_until = before.seen;
        let merged = merge::with_queue(&before.records, answer.jobs, told_until, now);
        let mut changes = merged.changes;
        let mut accounting_trouble = None;
        let mut asked_all = true;
        for rows in [told.ended_jobs.take(), told.history.take()].into_iter().flatten() {
            match rows {
                Ok(rows) => {
                    let known = with(&before.records, &changes);
                    let until = told_until.filter(|_| before.history_from.is_some());
                    changes.extend(merge::with_accounting(&known, rows, until, now));
                }
                Err(said) => {
                    asked_all = false;
                    accounting_trouble = Some(Trouble::Accounting(said));
                }
            }
        }
        let mut gone = merged.gone;
        let missed = self.note_missed(key, &merged.missing, now);
        let asked = if asked_all { wishes.ended_jobs.as_slice() } else { &[] };
        let given_up = self.note_vanished(key, merged.vanished, asked, &changes);
        changes.extend(given_up.iter().map(|(id, rest)| merge::cancelled_unseen(*id, rest, now)));
        if asked_all && !wishes.ended_jobs.is_empty() {
            gone.extend(rests_that_began(&merged.missing, &changes));
            let left: Vec<Arc<Record>> = merged
                .missing
                .iter()
                .filter(|record| !gone.iter().any(|one| one.id == record.id))
                .cloned()
                .collect();
            changes.extend(merge::forgotten(&left, &changes, &missed, now));
        }
        let history = wishes.history.filter(|_| asked_all);
        let keeping = Keeping { changes, gone, history, told_until };
        let kept = self.write_down(key, before, keeping, now).await;
        let (changes, gone) = kept.map_err(|error| Trouble::Other(error.to_string()))?;
        self.after(key, &changes, history.is_some());
        let standing = self.new_standing(key, &before.standing, &mut told, now).await;
        self.change_picture(key, |picture| {
            for record in &gone {
                picture.records.remove(&record.job.id);
            }
            for change in changes {
                picture.records.insert(change.record.job.id, Arc::new(change.record));
            }
            picture
                .records
                .retain(|_, record| record.ended().is_none_or(|ended| now.since(ended) < RECENT));
            picture.seen = Some(now);
            picture.trouble = None;
            picture.is_cut = answer.is_cut;
            if accounting_trouble.is_some()
                || !wishes.ended_jobs.is_empty()
                || wishes.history.is_some()
            {
                picture.accounting_trouble = accounting_trouble;
            }
            if let Some((from, _)) = history {
                picture.history_from =
                    Some(picture.history_from.map_or(from, |known| known.min(from)));
            }
            if let Some(Ok(group)) = told.group_jobs {
                picture.group = Some(Arc::new(GroupQueue::new(group.jobs, now, group.is_cut)));
            }
            if wishes.ranks {
                picture.ahead = told.pending_counts;
                picture.factors = told
                    .priority_factors
                    .unwrap_or_default()
                    .into_iter()
                    .map(|one| (one.raw_id, one))
                    .collect();
            }
            if let Some(standing) = standing {
                picture.standing = Arc::new(standing);
            }
        });
        Ok(())
    }

    /// Notes since when jobs are missing; those that came back are forgotten.
    fn note_missed(
        &self,
        key: QueueKey,
        missing: &[Arc<Record>],
        now: UnixTime,
    ) -> std::collections::HashMap<JobId, UnixTime> {
        let mut spots = self.spots();
        let Some(spot) = spots.get_mut(&key) else { return std::collections::HashMap::new() };
        let is_new = missing.iter().any(|record| !spot.missed.contains_key(&record.job.id));
        let since = |id: JobId| *spot.missed.get(&id).unwrap_or(&now);
        let missed = missing.iter().map(|record| (record.job.id, since(record.job.id))).collect();
        spot.missed = missed;
        if is_new {
            // How they ended is asked soon, not at the next usual time.
            spot.hurry = true;
        }
        spot.missed.clone()
    }

    /// Notes tasks that vanished from the queue without having begun. Gives those of which the accounting knows nothing
    /// either, although it was asked more than once.
    fn note_vanished(
        &self,
        key: QueueKey,
        vanished: Vec<(JobId, Arc<Record>)>,
        asked: &[JobId],
        changes: &[Change],
    ) -> Vec<(JobId, Arc<Record>)> {
        let mut spots = self.spots();
        let Some(spot) = spots.get_mut(&key) else { return Vec::new() };
        let told: HashSet<JobId> = changes.iter().map(|change| change.record.job.id).collect();
        spot.vanished.retain(|id, _| !told.contains(id));
        let mut given_up = Vec::new();
        for (id, (tries, rest)) in &mut spot.vanished {
            *tries += u8::from(asked.contains(&JobId::without_task(id.number)));
            if *tries >= MOST_TRIES {
                given_up.push((*id, rest.clone()));
            }
        }
        spot.vanished.retain(|_, (tries, _)| *tries < MOST_TRIES);
        spot.hurry |= !vanished.is_empty() || !spot.vanished.is_empty();
        spot.vanished.extend(vanished.into_iter().map(|(id, rest)| (id, (0, rest))));
        given_up
    }

    /// After it is written: those who ended are no longer missing, and people are told.
    fn after(&self, key: QueueKey, changes: &[Change], history_read: bool) {
        let mut spots = self.spots();
        if let Some(spot) = spots.get_mut(&key) {
            for change in changes.iter().filter(|change| change.record.is_over) {
                spot.missed.remove(&change.record.job.id);
            }
            if history_read {
                spot.history_asked = Some(Instant::now());
            }
        }
        drop(spots);
        if changes.iter().any(news::is_news) {
            self.0.bell.ring(key.person);
        }
    }

    pub(super) fn change_picture(&self, key: QueueKey, change: impl FnOnce(&mut Picture)) {
        let mut spots = self.spots();
        let Some(spot) = spots.get_mut(&key) else { return };
        let mut picture = Picture::clone(&spot.picture);
        change(&mut picture);
        picture.version += 1;
        picture.entries = std::sync::OnceLock::new();
        spot.picture = Arc::new(picture);
        drop(spots);
        self.tell(key);
    }
}

/// The next stretch of the accounting to read: from a little before where we were, never too long.
fn stretch(read: Option<(UnixTime, UnixTime)>, now: UnixTime) -> (UnixTime, UnixTime) {
    let from = read.map_or(now.plus(-FIRST_HISTORY), |(_, until)| until.plus(-LAG));
    (from, now.min(from.plus(LONGEST_STRETCH)))
}

/// What is known once changes are taken in.
fn with(known: &KnownJobs, changes: &[Change]) -> KnownJobs {
    let mut known = known.clone();
    for change in changes {
        known.insert(change.record.job.id, Arc::new(change.record.clone()));
    }
    known
}

/// Waiting rests of arrays that vanished because their tasks began: the accounting knows the tasks, not the rest.
fn rests_that_began(missing: &[Arc<Record>], changes: &[Change]) -> Vec<Arc<Record>> {
    let has_tasks = |number: u64| {
        changes
            .iter()
            .any(|one| one.record.job.id.number == number && one.record.job.id.task.is_some())
    };
    let answered = |id: JobId| changes.iter().any(|one| one.record.job.id == id);
    missing
        .iter()
        .filter(|record| record.job.tasks.is_some())
        .filter(|record| !answered(record.job.id) && has_tasks(record.job.id.number))
        .cloned()
        .collect()
}

fn trouble(error: &RunCommandError) -> Trouble {
    match error {
        RunCommandError::NotConnected | RunCommandError::ConnectionLost => Trouble::NotConnected,
        RunCommandError::HostKeyInDoubt => Trouble::Stopped,
        other => Trouble::Other(other.to_string()),
    }
}
