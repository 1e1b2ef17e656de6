//! Reads in the background: one command at a time per cluster, latest day first unless someone chose other days, at a
//! gentle pace, until everything is known.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::account_usage::{AccountUsage, row_from_totals};
use super::daily_totals::{DayUsageBreakdown, OneDayWindow, UserNameVisibility, count_day};
use super::readers::AssignedUsageReader;
use super::reread::keeps_stored_day;
use super::schedule::{self, DueUsageDay, ReadingOrder, SETTLED_AFTER};
use super::service::UsageService;
use crate::clock::{Day, SECONDS_PER_DAY, UnixTime};
use crate::cluster::accounting_day::{AccountedRun, AccountingDay, AccountingDayError, load_accounting_day};
use crate::cluster::{ClusterAccount, ClusterAccountId};
use crate::core::lock;
use crate::domain::{ClusterId, PersonId};
use crate::ssh::{RunCommandError, SHELL_FAILED};
use crate::store::usage::{UsageDayReadRow, UsageSource, UsageSourceOwner, jobs};
use crate::store::{self, StoreError};

/// Reading goes on for this long after the last view, in seconds, even while nobody views it.
const READ_ON_SECONDS: i64 = 2 * SECONDS_PER_DAY;
/// A source counts as viewed for this long after the last view, in seconds.
const ACTIVE_VIEWER_SECONDS: i64 = 15 * 60;

/// What must be known before reading.
struct UsageReadSources {
    account: Arc<ClusterAccount>,
    sources: Vec<(UsageSource, Arc<AccountUsage>)>,
}

enum UsageReadOutcome {
    /// A day was read; the site allows this many calls per minute.
    Read {
        calls_per_minute: u16,
    },
    NothingDue,
    /// Nothing could be read. The page says why, or the person may not be acted for.
    Failed,
}

impl UsageService {
    /// Runs until the portal stops.
    pub async fn run(self) {
        let core = &self.0.core;
        if !core.config.usage_pace.is_on {
            return;
        }
        let mut ticks = tokio::time::interval(core.config.usage_pace.tick);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = core.stop.cancelled() => return,
                _ = ticks.tick() => {}
                () = self.0.wake.notified() => {}
            }
            if let Err(error) = self.start_due_reads().await {
                tracing::warn!(%error, "Could not update group usage; will retry");
            }
        }
    }

    /// On every idle cluster, gives the turn to the reader who has waited longest.
    async fn start_due_reads(&self) -> Result<(), StoreError> {
        let now = self.0.core.clock.now();
        let mut db = self.0.core.store.read().await?;
        let sources = store::usage::list_wanted(&mut db, now.plus(-READ_ON_SECONDS)).await?;
        drop(db);
        let mut readers = self.assign_readers(sources).await?;
        let at = Instant::now();
        let mut due: Vec<AssignedUsageReader> = Vec::new();
        {
            let turns = lock(&self.0.turns);
            readers.retain(|reader| turns.get(&reader.id).is_none_or(|turn| turn.next_read <= at));
            readers.sort_by_key(|reader| turns.get(&reader.id).map(|turn| turn.last_read));
        }
        for reader in readers {
            let is_first = !due.iter().any(|other| other.id.cluster == reader.id.cluster);
            if is_first && lock(&self.0.busy_clusters).insert(reader.id.cluster) {
                due.push(reader);
            }
        }
        for reader in due {
            let this = self.clone();
            self.0.core.tasks.spawn(async move {
                let cluster = reader.id.cluster;
                tokio::select! {
                    () = this.serve_reader(reader) => {}
                    () = this.0.core.stop.cancelled() => {}
                }
                lock(&this.0.busy_clusters).remove(&cluster);
            });
        }
        Ok(())
    }

    /// Reads the next day over a person's connection and schedules their next turn.
    async fn serve_reader(&self, reader: AssignedUsageReader) {
        let pace = &self.0.core.config.usage_pace;
        let before = lock(&self.0.turns).get(&reader.id).map_or(0, |turn| turn.failures);
        let began = Instant::now();
        let id = reader.id;
        let owners: BTreeSet<UsageSourceOwner> = reader.sources.iter().filter_map(UsageSource::owner).collect();
        let (pause, failures) = match self.read_next_day(reader).await {
            Ok(UsageReadOutcome::Read { calls_per_minute }) => (pace.pause_for_rate(calls_per_minute), 0),
            Ok(UsageReadOutcome::NothingDue) => (pace.idle, 0),
            failed => {
                if let Err(error) = failed {
                    tracing::warn!(%error, "Could not save group usage");
                }
                (pace.after_failure * 2_u32.saturating_pow(before.min(5)), before.saturating_add(1))
            }
        };
        if failures == 0 {
            self.check_alerts_of(id, &owners).await;
        }
        let now = Instant::now();
        // Slow commands hold up others, so they get as much time in between.
        let pause = pause.max(now.saturating_duration_since(began));
        let turn = super::service::UsageReaderSchedule { last_read: now, next_read: now + pause, failures };
        lock(&self.0.turns).insert(id, turn);
    }

    /// Checks the alerts of everyone who wants them for what was read.
    async fn check_alerts_of(&self, reader: ClusterAccountId, owners: &BTreeSet<UsageSourceOwner>) {
        let mut people: BTreeSet<PersonId> = BTreeSet::from([reader.person]);
        for owner in owners {
            let UsageSourceOwner::Group(group) = owner else { continue };
            let Ok(mut db) = self.0.core.store.read().await else { continue };
            people.extend(store::usage_alerts::list_people(&mut db, *group).await.unwrap_or_default());
        }
        for person in people {
            self.check_alerts(ClusterAccountId { person, cluster: reader.cluster }).await;
        }
    }

    /// Reads one day if one is due.
    async fn read_next_day(&self, reader: AssignedUsageReader) -> Result<UsageReadOutcome, StoreError> {
        let core = &self.0.core;
        let id = reader.id;
        let Ok(connection) = self.0.connections.connection(id.connection_key()) else {
            return Ok(UsageReadOutcome::NothingDue);
        };
        let Ok(sources) = self.keep_covered(&connection, reader).await else {
            return Ok(UsageReadOutcome::Failed);
        };
        let Some(context) = self.load_read_context(id, sources).await? else {
            return Ok(UsageReadOutcome::NothingDue);
        };
        let now = core.clock.now();
        let today = self.today(id.cluster, now);
        let depth = core.config.usage_pace.history_days;
        let is_viewed = |source: &UsageSource| now.since(source.viewed_at) < ACTIVE_VIEWER_SECONDS;
        let next = |(source, usage): &(UsageSource, Arc<AccountUsage>)| -> Option<DueUsageDay> {
            let chosen = self.chosen_periods(source.id);
            let is_viewed = is_viewed(source);
            schedule::next_day(usage, ReadingOrder { depth, today, now, is_viewed, chosen: &chosen })
        };
        let Some(DueUsageDay { day, .. }) = context.sources.iter().filter_map(next).max() else {
            return Ok(UsageReadOutcome::NothingDue);
        };
        let sources: Vec<&(UsageSource, Arc<AccountUsage>)> = context
            .sources
            .iter()
            .filter(|(source, usage)| schedule::is_due(usage, day, today, now, is_viewed(source)))
            .collect();
        // Two groups may have the same account.
        let accounts: BTreeSet<String> = sources.iter().map(|(source, _)| source.account.clone()).collect();
        let owners: BTreeSet<UsageSourceOwner> = sources.iter().filter_map(|(source, _)| source.owner()).collect();
        let outcome = match load_accounting_day(&connection, &accounts.into_iter().collect::<Vec<_>>(), day).await {
            Ok(accounting) => {
                self.record_utc_offset(id.cluster, day, accounting.from);
                if accounting.from <= now {
                    self.save_day(&sources, day, &accounting, &context).await?;
                }
                UsageReadOutcome::Read { calls_per_minute: context.account.site().limits.calls_per_minute }
            }
            Err(AccountingDayError::Run(
                RunCommandError::NotConnected
                | RunCommandError::Busy
                | RunCommandError::OverBudget
                | RunCommandError::HostKeyInDoubt,
            )) => return Ok(UsageReadOutcome::Failed),
            Err(error) => {
                self.save_problem(&sources, error).await?;
                UsageReadOutcome::Failed
            }
        };
        for owner in owners {
            self.publish_change(owner);
        }
        Ok(outcome)
    }

    async fn load_read_context(
        &self,
        reader: ClusterAccountId,
        wanted: Vec<UsageSource>,
    ) -> Result<Option<UsageReadSources>, StoreError> {
        let Some(account) = self.0.connections.accounts().get(reader).await? else {
            return Ok(None);
        };
        let mut sources = Vec::new();
        for source in wanted {
            let usage = self.account_usage(source.id).await?;
            sources.push((source, usage));
        }
        Ok(Some(UsageReadSources { account, sources }))
    }

    /// Saves a whole day in one transaction and replaces what was known of it, unless that was more.
    async fn save_day(
        &self,
        sources: &[&(UsageSource, Arc<AccountUsage>)],
        day: Day,
        accounting: &AccountingDay,
        context: &UsageReadSources,
    ) -> Result<(), StoreError> {
        let now = self.0.core.clock.now();
        let window = OneDayWindow { from: accounting.from, until: accounting.until.min(now) };
        let is_final = now.since(accounting.until) >= SETTLED_AFTER;
        let read = UsageDayReadRow { day, read_at: now, is_final, is_cut: accounting.is_cut };
        let mut counted = Vec::new();
        for (source, _) in sources {
            let names = match source.owner() {
                Some(UsageSourceOwner::Group(_)) => UserNameVisibility::All,
                _ => UserNameVisibility::Only(context.account.remote_user.clone()),
            };
            let runs: Vec<&AccountedRun> = accounting.runs.iter().filter(|run| run.account == source.account).collect();
            counted.push((source, count_day(&runs, window, &names, context.account.site())));
        }
        let mut tx = self.0.core.store.write().await?;
        // Whoever left the group in the meantime no longer reads for it.
        let groups = store::groups::list_for_person(&mut tx, context.account.id.person).await?;
        counted.retain(|(source, _)| match source.owner() {
            Some(UsageSourceOwner::Group(group)) => groups.iter().any(|membership| membership.group_id == group),
            _ => true,
        });
        let mut saved = Vec::new();
        for (source, totals) in &counted {
            saved.push(save_daily_totals(&mut tx, source, read, totals).await?);
        }
        store::commit(tx).await?;
        let mut cached = lock(&self.0.account_usage);
        for ((source, totals), saved) in counted.iter().zip(saved) {
            let Some(entry) = cached.get_mut(&source.id) else { continue };
            entry.replace(|usage| match saved {
                SavedUsageDay::Replaced => usage.with_day(read, totals),
                SavedUsageDay::Kept => usage.with_kept_day(read),
            });
        }
        Ok(())
    }

    async fn save_problem(
        &self,
        sources: &[&(UsageSource, Arc<AccountUsage>)],
        error: AccountingDayError,
    ) -> Result<(), StoreError> {
        let problem = match &error {
            AccountingDayError::Run(RunCommandError::ShellFailed(_)) => SHELL_FAILED.to_owned(),
            other => other.to_string(),
        };
        let output = match error {
            AccountingDayError::Accounting(output) | AccountingDayError::Run(RunCommandError::ShellFailed(output)) => {
                output
            }
            _ => String::new(),
        };
        let mut tx = self.0.core.store.write().await?;
        for (source, _) in sources {
            store::usage::set_problem(&mut tx, source.id, &problem, &output).await?;
        }
        store::commit(tx).await
    }

    /// The current day on a cluster, as far as is known.
    pub(super) fn today(&self, cluster: ClusterId, now: UnixTime) -> Day {
        let east = lock(&self.0.utc_offsets).get(&cluster).copied().unwrap_or(0);
        Day::from_time(now.plus(east))
    }

    /// Derives a cluster's offset from UTC from the start of a day.
    fn record_utc_offset(&self, cluster: ClusterId, day: Day, from: UnixTime) {
        lock(&self.0.utc_offsets).insert(cluster, day.start().since(from));
    }
}

/// What became of a day that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SavedUsageDay {
    Replaced,
    /// What was stored stays, because the cluster has deleted a part of it since.
    Kept,
}

/// Saves one account's day. The usage source may be gone by now: then nothing is saved.
pub async fn save_daily_totals(
    db: &mut store::DbConnection,
    source: &UsageSource,
    read: UsageDayReadRow,
    totals: &DayUsageBreakdown,
) -> Result<SavedUsageDay, StoreError> {
    if !store::usage::exists(db, source.id).await? {
        return Ok(SavedUsageDay::Replaced);
    }
    let stored = store::usage::get_stored_day(db, source.id, read.day).await?;
    if keeps_stored_day(stored, totals) {
        store::usage::keep_day(db, source.id, read).await?;
        store::usage::set_problem(db, source.id, "", "").await?;
        return Ok(SavedUsageDay::Kept);
    }
    store::usage::replace_day(db, source.id, read).await?;
    let words = totals.rows.iter().flat_map(|(user, kind, _)| [user.as_str(), kind.as_str()]);
    let numbers = store::usage::intern_names(db, words).await?;
    let number = |word: &str| numbers.get(word).copied().unwrap_or(0);
    for (user, kind, row_totals) in &totals.rows {
        let row = row_from_totals(read.day, number(user), number(kind), row_totals);
        store::usage::daily::add(db, source.id, &row).await?;
    }
    let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    for job in &totals.jobs {
        let row = jobs::StoredUsageJob {
            day: read.day.0,
            raw: whole(job.raw),
            start_at: job.start.0,
            submitted_at: job.submitted.map_or(-1, |at| at.0),
            number: whole(job.number),
            task: job.task.map_or(-1, i64::from),
            user_id: number(&job.user),
            kind_id: number(&job.kind),
            state: job.outcome.number(),
            seconds: whole(job.seconds),
            elapsed_s: whole(job.elapsed_s),
            wait_s: whole(job.wait_s),
            cores: whole(job.cores),
            memory_mb: whole(job.memory_mb),
            gpus: job.gpus.clone(),
            partition: job.partition.clone(),
            qos: job.qos.clone(),
            cpu_s: job.cpu_s.map_or(-1, whole),
            rss_mb: job.rss_mb.map_or(-1, whole),
        };
        store::usage::jobs::add(db, source.id, &row).await?;
    }
    store::usage::set_problem(db, source.id, "", "").await?;
    Ok(SavedUsageDay::Replaced)
}
