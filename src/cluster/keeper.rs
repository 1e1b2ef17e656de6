//! Keeping connections: taken over after a restart, opened again where nobody is needed, closed when they should be.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::known::Known;
use super::learnt::Learnt;
use super::lines::{Lines, State, Up, is_of_ours, key_of_folder};
use super::look;
use crate::auth::Ended;
use crate::auth::activity::Actor;
use crate::domain::LineRole;
use crate::entropy;
use crate::ssh::login::LoginAttendance;
use crate::ssh::route::ConnectionFolder;
use crate::ssh::{CommandDialect, ControlMaster, LoginError, control_master};
use crate::store::lines::LineKey;
use crate::store::{self, StoreError};

/// How often it is checked whether what stands should stand.
const SWEEP_EVERY: Duration = Duration::from_secs(15);
/// Seconds before the second try of an unattended connection; three times as long each time, up to half an hour.
const FIRST_PAUSE: i64 = 20;
const LONGEST_PAUSE: i64 = 1800;

impl Lines {
    /// Takes over the masters of the run before and clears what is left of dead ones.
    pub async fn adopt(&self) -> Result<usize, StoreError> {
        let mut db = self.0.store.read().await?;
        for row in store::clusters::list(&mut db).await? {
            self.set_alarm(row.id, row.alarmed().is_some());
        }
        drop(db);
        let mut work = tokio::task::JoinSet::new();
        let folders = std::fs::read_dir(&self.0.run).into_iter().flatten().flatten();
        for name in folders.filter_map(|entry| entry.file_name().into_string().ok()) {
            let this = self.clone();
            work.spawn(async move { this.adopt_one(&name).await });
        }
        let adopted = work.join_all().await.into_iter().filter(|adopted| *adopted).count();
        if adopted > 0 {
            tracing::info!(connections = adopted, "Took over the connections of the run before");
        }
        Ok(adopted)
    }

    async fn adopt_one(&self, name: &str) -> bool {
        if !is_of_ours(name) {
            tracing::warn!(name, "Something in the run folder is none of ours and was left alone");
            return false;
        }
        let folder = ConnectionFolder::new(&self.0.run, name);
        let known = match key_of_folder(name) {
            Some(key) => self.wanted_line(key).await.ok().flatten().map(|found| (key, found)),
            None => None,
        };
        if let Some((key, (line, cluster))) = known
            && let Some(master) = ControlMaster::find(&folder).await
        {
            let learnt: Learnt = serde_json::from_str(&line.learnt).unwrap_or_default();
            let dialect = if key.role == LineRole::Robot {
                CommandDialect::Automation
            } else {
                look::dialect_of(&learnt)
            };
            let up = cluster.line_on(master, dialect);
            let since = line.connected_at().unwrap_or_else(|| self.0.clock.now());
            let state = State::Up(Up { line: up.clone(), since, notices: String::new() });
            self.spots().entry(key).or_default().state = state;
            self.watch_end(key, up);
            self.tell(key);
            return true;
        }
        control_master::close_stale_master(&folder).await;
        false
    }

    /// A line that is to be kept, of someone whose account is on, to a cluster that is in use.
    async fn wanted_line(
        &self,
        key: LineKey,
    ) -> Result<Option<(store::lines::Line, Known)>, StoreError> {
        let mut db = self.0.store.read().await?;
        let lines = store::lines::wanted(&mut db).await?;
        let Some(line) = lines.into_iter().find(|line| line.key() == key) else { return Ok(None) };
        let Some(row) = store::clusters::get(&mut db, key.cluster).await? else { return Ok(None) };
        Ok(Some((line, Known::of(&mut db, row).await?)))
    }

    /// Keeps connections until the portal stops.
    pub async fn keep(self) {
        let mut ended = self.0.auth.watch_ended();
        let mut ticks = tokio::time::interval(SWEEP_EVERY);
        loop {
            tokio::select! {
                () = self.0.stop.cancelled() => return,
                _ = ticks.tick() => {}
                told = ended.recv() => match told {
                    // A single browser that signs out closes nothing.
                    Ok(Ended::Session(_) | Ended::Person(_, Some(_))) => continue,
                    // Tries that are on their way end too, and no row tells of them.
                    Ok(Ended::Person(person, None)) => self.close_person(person).await,
                    // Too many to remember: what the database says counts.
                    Err(_) => {}
                },
            }
            if let Err(error) = self.sweep().await {
                tracing::warn!(%error, "Connections could not be checked; it is tried again");
            }
        }
    }

    /// Closes what should not stand, and opens again what should and can without a person.
    pub async fn sweep(&self) -> Result<(), StoreError> {
        if let Err(error) = self.0.auth.close_keychains().await {
            tracing::warn!(%error, "Keychains of people who left could not be checked");
        }
        let mut db = self.0.store.read().await?;
        let wanted = store::lines::wanted(&mut db).await?;
        let keys: HashSet<LineKey> = wanted.iter().map(store::lines::Line::key).collect();
        let mut clusters = Vec::new();
        for row in store::clusters::list(&mut db).await? {
            clusters.push(Known::of(&mut db, row).await?);
        }
        drop(db);
        for key in self.keys_where(|key| !keys.contains(key)) {
            // Asked once more: it may have been opened after the list was read.
            if self.is_up(key) && self.wanted_line(key).await?.is_none() {
                self.close(key).await;
            }
        }
        for line in wanted {
            let Some(known) = clusters.iter().find(|known| known.row.id == line.cluster_id) else {
                continue;
            };
            self.mind(&line, known).await?;
        }
        Ok(())
    }

    async fn mind(&self, line: &store::lines::Line, known: &Known) -> Result<(), StoreError> {
        let key = line.key();
        if let Some(idle) = self.idle(key) {
            let minutes = u64::from(known.site.limits.idle_minutes);
            if idle >= Duration::from_secs(minutes * 60) {
                self.note_problem(
                    key,
                    &format!(
                        "Closed after {minutes} minutes without use, to be polite to the cluster."
                    ),
                    false,
                )
                .await?;
                self.close(key).await;
            }
            return Ok(());
        }
        if line.asks || !known.is_open() || !self.may_try(key) {
            return Ok(());
        }
        if let Err(error) = self.connect(key, portal(), LoginAttendance::Unattended).await {
            tracing::debug!(%error, "A connection cannot be opened again by itself");
        }
        Ok(())
    }

    fn is_up(&self, key: LineKey) -> bool {
        matches!(self.spots().get(&key).map(|spot| &spot.state), Some(State::Up(_)))
    }

    /// How long a connection that stands has not been used.
    fn idle(&self, key: LineKey) -> Option<Duration> {
        match self.spots().get(&key).map(|spot| &spot.state) {
            Some(State::Up(up)) => {
                up.line.raise_session_limit();
                Some(up.line.call_budget().stats(Instant::now()).idle)
            }
            _ => None,
        }
    }

    fn may_try(&self, key: LineKey) -> bool {
        let now = self.0.clock.now();
        self.spots().get(&key).is_none_or(|spot| {
            matches!(spot.state, State::Down)
                && spot.patience.not_before.is_none_or(|until| now >= until)
        })
    }

    /// After a failure the next unattended try waits, longer each time, and never all at the same moment.
    pub(super) fn be_patient(&self, key: LineKey, failure: &LoginError) {
        let now = self.0.clock.now();
        let mut spots = self.spots();
        let patience = &mut spots.entry(key).or_default().patience;
        patience.failures = patience.failures.saturating_add(1);
        let pause = FIRST_PAUSE
            .saturating_mul(3_i64.saturating_pow(patience.failures.min(10) - 1))
            .min(LONGEST_PAUSE);
        let jitter = entropy::bytes::<1>().map_or(0, |[byte]| i64::from(byte) * pause / 1024);
        let pause = if failure.is_transient() { pause + jitter } else { LONGEST_PAUSE };
        patience.not_before = Some(now.plus(pause));
    }
}

/// The portal itself, in the records.
fn portal() -> Actor {
    Actor { id: None, name: "portal".into(), address: String::new() }
}
