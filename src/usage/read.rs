//! Reading in the background: one command at a time on each cluster, the latest day first, gently, until all is known.

use std::sync::Arc;
use std::time::Instant;

use super::desk::{Reader, Usage, lock};
use super::due::{self, SETTLED_AFTER};
use super::ledger::{Ledger, row_of};
use super::tally::{Names, Sheet, Window, tally};
use crate::clock::{Day, UnixTime};
use crate::cluster::ClusterProfile;
use crate::cluster::accounting_day::{
    AccountedRun, AccountingDay, AccountingDayError, load_accounting_day,
};
use crate::domain::{ClusterId, ConnectionRole};
use crate::sites::Site;
use crate::ssh::RunCommandError;
use crate::store::connections::ConnectionKey;
use crate::store::usage::{UsageDayRow, UsageSource, jobs};
use crate::store::{self, StoreError};

/// What someone wanted to see is read on for this long, in seconds, also while they are away.
const WANTED_FOR: i64 = 2 * 86_400;
/// Someone who looked within this time still looks, in seconds.
const LOOKS_FOR: i64 = 15 * 60;

/// What has to be known before one can ask.
struct Ground {
    books: Vec<(UsageSource, Arc<Ledger>)>,
    site: Site,
    user: String,
}

impl Usage {
    /// Reads until the portal stops.
    pub async fn keep(self) {
        let parts = &self.0.parts;
        if !parts.pace.is_on {
            return;
        }
        let mut ticks = tokio::time::interval(parts.pace.tick);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = parts.stop.cancelled() => return,
                _ = ticks.tick() => {}
                () = self.0.wake.notified() => {}
            }
            if let Err(error) = self.round().await {
                tracing::warn!(%error, "What groups used could not be looked after; it is tried again");
            }
        }
    }

    /// Gives every cluster on which nothing is being read to the reader who has waited longest.
    async fn round(&self) -> Result<(), StoreError> {
        let now = self.0.parts.clock.now();
        let mut db = self.0.parts.store.read().await?;
        let books = store::usage::list_wanted(&mut db, now.plus(-WANTED_FOR)).await?;
        drop(db);
        let mut readers: Vec<Reader> = books
            .iter()
            .map(|book| Reader { person: book.person_id, cluster: book.cluster_id })
            .collect();
        readers.dedup();
        let standing = self.0.parts.lines.connected_keys();
        readers.retain(|reader| standing.contains(&reader.line()));
        let at = Instant::now();
        let mut due: Vec<(ClusterId, Reader)> = Vec::new();
        {
            let turns = lock(&self.0.turns);
            readers.retain(|reader| turns.get(reader).is_none_or(|turn| turn.due <= at));
            readers.sort_by_key(|reader| turns.get(reader).map(|turn| turn.served));
        }
        for reader in readers {
            let is_first = !due.iter().any(|(cluster, _)| *cluster == reader.cluster);
            if is_first && lock(&self.0.busy).insert(reader.cluster) {
                due.push((reader.cluster, reader));
            }
        }
        for (cluster, reader) in due {
            let this = self.clone();
            self.0.parts.tasks.spawn(async move {
                tokio::select! {
                    () = this.serve(reader) => {}
                    () = this.0.parts.stop.cancelled() => {}
                }
                lock(&this.0.busy).remove(&cluster);
            });
        }
        Ok(())
    }

    /// Reads the next day for someone, and says when to come again.
    async fn serve(&self, reader: Reader) {
        let pace = &self.0.parts.pace;
        let before = lock(&self.0.turns).get(&reader).map_or(0, |turn| turn.failures);
        let began = Instant::now();
        let (pause, failures) = match self.advance(reader).await {
            Ok(Some(calls_per_minute)) => (pace.pause_for_rate(calls_per_minute), 0),
            Ok(None) => (pace.idle, 0),
            Err(failure) => {
                if let Failure::Store(error) = &failure {
                    tracing::warn!(%error, "What a group used could not be written down");
                }
                (pace.after_failure * 2_u32.saturating_pow(before.min(5)), before.saturating_add(1))
            }
        };
        if failures == 0 {
            self.look_for_alerts(reader).await;
        }
        let now = Instant::now();
        // Whose commands are slow holds others up: they get as much time in between.
        let pause = pause.max(now.saturating_duration_since(began));
        let turn = super::desk::Turn { served: now, due: now + pause, failures };
        lock(&self.0.turns).insert(reader, turn);
    }

    /// Reads one day, if one is due, and gives the calls that the site allows in a minute. Nothing if none is due.
    async fn advance(&self, reader: Reader) -> Result<Option<u16>, Failure> {
        let parts = &self.0.parts;
        let Ok(line) = parts.lines.connection(reader.line()) else { return Ok(None) };
        if !parts.auth.can_act_for(reader.person).await.map_err(|_| Failure::Told)? {
            return Ok(None);
        }
        let Some(ground) = self.ground(reader).await? else { return Ok(None) };
        let now = parts.clock.now();
        let today = self.today(reader.cluster, now);
        let looks = |book: &UsageSource| now.since(book.looked_at) < LOOKS_FOR;
        let next = |(book, ledger): &(UsageSource, Arc<Ledger>)| {
            due::next_day(ledger, parts.pace.history_days, today, now, looks(book))
        };
        let Some(day) = ground.books.iter().filter_map(next).max() else { return Ok(None) };
        let books: Vec<&(UsageSource, Arc<Ledger>)> = ground
            .books
            .iter()
            .filter(|(book, ledger)| due::is_due(ledger, day, today, now, looks(book)))
            .collect();
        let accounts: Vec<String> = books.iter().map(|(book, _)| book.account.clone()).collect();
        match load_accounting_day(&line, &accounts, day).await {
            Ok(told) => {
                self.note_midnight(reader.cluster, day, told.from);
                if told.from <= now {
                    self.write_down(&books, day, &told, &ground).await?;
                }
                self.tell(reader);
                Ok(Some(ground.site.limits.calls_per_minute))
            }
            Err(AccountingDayError::Run(
                RunCommandError::NotConnected
                | RunCommandError::Busy
                | RunCommandError::OverBudget
                | RunCommandError::HostKeyInDoubt,
            )) => Err(Failure::Told),
            Err(error) => {
                self.note_problem(&books, &words(&error)).await?;
                self.tell(reader);
                Err(Failure::Told)
            }
        }
    }

    async fn ground(&self, reader: Reader) -> Result<Option<Ground>, StoreError> {
        let mut db = self.0.parts.store.read().await?;
        let Some(row) = store::clusters::get(&mut db, reader.cluster).await? else {
            return Ok(None);
        };
        let Some(line) = store::connections::get(&mut db, reader.line()).await? else {
            return Ok(None);
        };
        let site = ClusterProfile::load(&mut db, row).await?.site;
        let since = self.0.parts.clock.now().plus(-WANTED_FOR);
        let mut books = store::usage::list_wanted(&mut db, since).await?;
        books.retain(|book| (book.person_id, book.cluster_id) == (reader.person, reader.cluster));
        drop(db);
        let mut known = Vec::new();
        for book in books {
            let ledger = self.ledger(book.id).await?;
            known.push((book, ledger));
        }
        let user = line.remote_user;
        Ok(Some(Ground { books: known, site, user }))
    }

    /// Everything of a day in one transaction: what was known of it before goes.
    async fn write_down(
        &self,
        books: &[&(UsageSource, Arc<Ledger>)],
        day: Day,
        told: &AccountingDay,
        ground: &Ground,
    ) -> Result<(), StoreError> {
        let now = self.0.parts.clock.now();
        let window = Window { from: told.from, until: told.until.min(now) };
        let is_final = now.since(told.until) >= SETTLED_AFTER;
        let read = UsageDayRow { day, read_at: now, is_final, is_cut: told.is_cut };
        let mut sheets = Vec::new();
        for (book, _) in books {
            let names = if book.has_names { Names::All } else { Names::Only(ground.user.clone()) };
            let runs: Vec<&AccountedRun> =
                told.runs.iter().filter(|run| run.account == book.account).collect();
            sheets.push((book, tally(&runs, window, &names, &ground.site)));
        }
        let mut tx = self.0.parts.store.write().await?;
        for (book, sheet) in &sheets {
            write_sheet(&mut tx, book, read, sheet).await?;
        }
        store::commit(tx).await?;
        let mut ledgers = lock(&self.0.ledgers);
        for (book, sheet) in &sheets {
            if let Some(known) = ledgers.get_mut(&book.id) {
                known.ledger = Arc::new(known.ledger.with(read, sheet));
            }
        }
        Ok(())
    }

    async fn note_problem(
        &self,
        books: &[&(UsageSource, Arc<Ledger>)],
        problem: &str,
    ) -> Result<(), StoreError> {
        let mut tx = self.0.parts.store.write().await?;
        for (book, _) in books {
            store::usage::set_problem(&mut tx, book.id, problem).await?;
        }
        store::commit(tx).await
    }

    /// Which day it is on a cluster, as far as is known.
    pub(super) fn today(&self, cluster: ClusterId, now: UnixTime) -> Day {
        let east = lock(&self.0.east).get(&cluster).copied().unwrap_or(0);
        Day::from_time(now.plus(east))
    }

    /// Learns from when a day begins how far east a cluster's clock is.
    fn note_midnight(&self, cluster: ClusterId, day: Day, from: UnixTime) {
        lock(&self.0.east).insert(cluster, day.start().since(from));
    }
}

/// Writes one account's day. The book may be gone since: then so is its day.
pub async fn write_sheet(
    db: &mut store::DbConnection,
    book: &UsageSource,
    read: UsageDayRow,
    sheet: &Sheet,
) -> Result<(), StoreError> {
    if !store::usage::exists(db, book.id).await? {
        return Ok(());
    }
    store::usage::replace_day(db, book.id, read).await?;
    let words = sheet.rolls.iter().flat_map(|(user, kind, _)| [user.as_str(), kind.as_str()]);
    let numbers = store::usage::intern_names(db, words).await?;
    let number = |word: &str| numbers.get(word).copied().unwrap_or(0);
    for (user, kind, sums) in &sheet.rolls {
        let row = row_of(read.day, number(user), number(kind), sums);
        store::usage::daily::add(db, book.id, &row).await?;
    }
    let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    for job in &sheet.jobs {
        let row = jobs::UsageJobRow {
            day: read.day.0,
            raw: whole(job.raw),
            start_at: job.start.0,
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
            cpu_s: job.cpu_s.map_or(-1, whole),
            rss_mb: job.rss_mb.map_or(-1, whole),
        };
        store::usage::jobs::add(db, book.id, &row).await?;
    }
    store::usage::set_problem(db, book.id, "").await
}

/// Why nothing was read.
enum Failure {
    /// Whoever needs to know was told.
    Told,
    /// The database.
    Store(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn words(error: &AccountingDayError) -> String {
    match error {
        AccountingDayError::Accounting(said) if !said.is_empty() => {
            format!("{error} It said: {said}")
        }
        other => other.to_string(),
    }
}

impl Reader {
    /// The connection that is read over.
    pub const fn line(self) -> ConnectionKey {
        ConnectionKey { person: self.person, cluster: self.cluster, role: ConnectionRole::Login }
    }
}
