//! Looks after all runs: hands them over, follows them through the queue, reaches them when they are ready, lets them
//! end. Everything it knows is written down or can be asked again, so a portal that was killed goes on where it was.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;

use super::desk::{Boards, lock, queue_of};
use super::reach::Reached;
use super::state::Stage;
use crate::auth::activity::Actor;
use crate::clock::UnixTime;
use crate::cluster::job_actions::{JobAction, JobActionTarget};
use crate::domain::{DashboardId, DashboardRunId};
use crate::jobs::Record;
use crate::jobs::submissions::{Submission, SubmissionState as Sent};
use crate::slurm::job::{JobId, JobStage, JobState};
use crate::store::dashboards::runs::{self, DashboardRun, DashboardRunState};
use crate::store::dashboards::{self, Dashboard};
use crate::store::{self, StoreError};

/// How often it is looked what is due.
const TICK: Duration = Duration::from_secs(1);
/// A run that is about to be ready is asked this often; later less.
const SOON: Duration = Duration::from_secs(3);
const LATER: Duration = Duration::from_secs(10);
/// After so many tries without news, or in the queue for longer, it is asked less often.
const SOON_TRIES: u32 = 20;
/// A wish to cancel a job is repeated after this long, should it not have been heard.
const CANCEL_AGAIN: Duration = Duration::from_secs(20);
/// That someone looked is written down at most this often, in seconds.
const WRITE_USED: i64 = 60;
/// A job that the queue does not know after this many seconds is gone.
const GONE_AFTER: i64 = 180;

/// Clocks of portal and cluster may differ by this many seconds.
const SKEW: i64 = 300;

/// When a run is tried next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Try {
    reach: Option<(Instant, u32)>,
    cancel: Option<Instant>,
}

impl Boards {
    /// Looks after runs until the portal stops.
    pub async fn keep(self) {
        let parts = &self.0.parts;
        let (mut queues, mut submissions, mut lines) =
            (parts.queues.watch(), parts.submissions.watch(), parts.lines.subscribe());
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = parts.stop.cancelled() => break,
                _ = ticks.tick() => {}
                () = self.0.wake.notified() => {}
                // Falling behind loses nothing: all runs are looked at each time.
                _ = queues.recv() => {}
                _ = submissions.recv() => {}
                _ = lines.recv() => {}
            }
            self.cut_streams().await;
            if let Err(error) = self.round().await {
                tracing::warn!(%error, "Dashboards could not be looked after; it is tried again");
                tokio::time::sleep(TICK).await;
            }
        }
        for stream in lock(&self.0.streams).values() {
            stream.cut.cancel();
        }
    }

    /// Looks at every run that is not over.
    async fn round(&self) -> Result<(), StoreError> {
        let mut db = self.0.parts.store.read().await?;
        let open = runs::list_open(&mut db).await?;
        let mut due = Vec::new();
        for run in open {
            if let Some(board) = dashboards::get(&mut db, run.board_id).await? {
                due.push((board, run));
            }
        }
        drop(db);
        let shown: Vec<DashboardId> = lock(&self.0.live).keys().copied().collect();
        for id in shown.into_iter().filter(|id| !due.iter().any(|(board, _)| board.id == *id)) {
            self.set_live(id, None).await;
        }
        lock(&self.0.tries).retain(|id, _| due.iter().any(|(_, run)| run.id == *id));
        for (board, run) in due {
            if !lock(&self.0.busy).insert(run.id) {
                continue;
            }
            let this = self.clone();
            self.0.parts.tasks.spawn(async move {
                let id = run.id;
                tokio::select! {
                    result = this.advance(&board, run) => {
                        if let Err(error) = result {
                            tracing::warn!(%error, run = id.0, "A dashboard could not be looked after");
                        }
                    }
                    () = this.0.parts.stop.cancelled() => {}
                }
                lock(&this.0.busy).remove(&id);
            });
        }
        Ok(())
    }

    /// Takes a run as far as it goes now.
    async fn advance(&self, board: &Dashboard, run: DashboardRun) -> Result<(), StoreError> {
        let Some(submission) = run.submission() else {
            return if run.stop.is_empty() {
                self.hand_over(board, &run).await
            } else {
                self.end(board, &run, "stopped", "").await
            };
        };
        if run.state == DashboardRunState::Asked {
            let sent = self.0.parts.submissions.get(board.person_id, submission).await?;
            return match sent {
                Some(sent) => self.follow_submission(board, &run, &sent).await,
                None => self.end(board, &run, "failed", "Its job is no longer known here.").await,
            };
        }
        let Some(number) = run.job.and_then(|number| u64::try_from(number).ok()) else {
            return self.end(board, &run, "failed", "Its job is no longer known here.").await;
        };
        self.follow_job(board, &run, number).await
    }

    async fn follow_submission(
        &self,
        board: &Dashboard,
        run: &DashboardRun,
        sent: &Submission,
    ) -> Result<(), StoreError> {
        match sent.state {
            Sent::Accepted => {
                self.say(run, DashboardRunState::Waiting, "").await?;
                self.0.parts.queues.stir(queue_of(board));
                Ok(())
            }
            Sent::Refused => self.end(board, run, "refused", &sent.refusal).await,
            Sent::NotSent => self.end(board, run, "not-sent", &sent.problem).await,
            Sent::GivenUp => self.end(board, run, "stopped", "").await,
            Sent::Ready | Sent::Sent | Sent::Checking => {
                if !run.stop.is_empty() {
                    // One that may have arrived cannot be given up: it is cancelled once it is found.
                    self.0.parts.submissions.give_up(board.person_id, sent.id).await?;
                } else if run.message != sent.problem {
                    self.say(run, DashboardRunState::Asked, &sent.problem).await?;
                }
                Ok(())
            }
        }
    }

    async fn follow_job(
        &self,
        board: &Dashboard,
        run: &DashboardRun,
        number: u64,
    ) -> Result<(), StoreError> {
        let parts = &self.0.parts;
        let key = queue_of(board);
        let picture = parts.queues.picture(key).await?;
        let record = picture.records.get(&JobId::without_task(number)).cloned();
        // A cluster that was set up anew counts its jobs from the beginning: an older job had this number.
        let is_this =
            |record: &Arc<Record>| record.ended().is_none_or(|at| at >= run.asked_at.plus(-SKEW));
        let Some(record) = record.filter(is_this) else {
            let is_gone = picture.seen.is_some_and(|seen| seen.since(run.asked_at) > GONE_AFTER)
                && picture.trouble.is_none();
            if is_gone {
                return self.end(board, run, "gone", "").await;
            }
            parts.queues.refresh_soon(key).await?;
            return Ok(());
        };
        if record.is_over {
            return self.end_with(board, run, &record).await;
        }
        if !run.stop.is_empty() {
            self.cancel(board, run, number).await;
            return Ok(());
        }
        let stage = record.job.state.stage();
        if stage == JobStage::Running
            && let Some(start) = record.job.start
            && run.started_at() != Some(start)
        {
            let mut tx = parts.store.write().await?;
            runs::set_started(&mut tx, run.id, start).await?;
            if run.state == DashboardRunState::Waiting {
                runs::set_state(&mut tx, run.id, DashboardRunState::Starting, "").await?;
            }
            store::commit(tx).await?;
            self.tell(board.id);
        }
        let live = self.live(board.id);
        match live {
            Some(live) if live.run == run.id && self.is_sound(board, &live) => {
                self.mind_use(board, run).await
            }
            // What shows it now is followed by this one, unless it is older.
            Some(live) if live.run > run.id => self.stop_run(board, run, "replaced").await,
            _ => self.try_to_reach(board, run, &record).await,
        }
    }

    /// Asks the run's job how far it is, at a decent pace, and connects once it is ready.
    async fn try_to_reach(
        &self,
        board: &Dashboard,
        run: &DashboardRun,
        record: &Record,
    ) -> Result<(), StoreError> {
        let is_running = record.job.state == JobState::Running;
        let is_early = run.begin_at().is_some_and(|at| self.0.parts.clock.now() < at);
        if (is_early && !is_running) || !self.is_turn(run.id) {
            return Ok(());
        }
        // A dashboard has one node, and Slurm tells which.
        let node =
            Some(record.job.node_list.as_str()).filter(|node| is_running && !node.is_empty());
        match self.reach(board, run, node).await {
            Reached::Yes(live) => {
                self.set_live(board.id, Some(live)).await;
                let now = self.0.parts.clock.now();
                let mut tx = self.0.parts.store.write().await?;
                runs::mark_ready(&mut tx, run.id, now).await?;
                store::commit(tx).await?;
                lock(&self.0.tries).remove(&run.id);
                self.changed(board.id);
                Ok(())
            }
            Reached::NotYet(report) => {
                let Some(report) = report else { return Ok(()) };
                if !is_running {
                    // The job has begun, and the queue does not know it yet.
                    self.0.parts.queues.refresh_soon(queue_of(board)).await?;
                }
                let message = match report.stage {
                    Stage::Ready(_) => String::new(),
                    _ => report.message,
                };
                if run.state != DashboardRunState::Ready && message != run.message {
                    self.say(run, DashboardRunState::Starting, &message).await?;
                }
                Ok(())
            }
            Reached::Later(problem) | Reached::Unreachable(problem) => {
                self.set_unreachable(board, run).await;
                if problem != run.message && run.state != DashboardRunState::Waiting {
                    self.say(run, run.state, &problem).await?;
                }
                Ok(())
            }
        }
    }

    /// What led through a connection that is gone leads nowhere.
    async fn set_unreachable(&self, board: &Dashboard, run: &DashboardRun) {
        if self.live(board.id).is_some_and(|live| live.run == run.id) {
            self.set_live(board.id, None).await;
            self.tell(board.id);
        }
    }

    fn is_turn(&self, run: DashboardRunId) -> bool {
        let now = Instant::now();
        let mut tries = lock(&self.0.tries);
        let entry = tries.entry(run).or_insert(Try { reach: None, cancel: None });
        let (due, count) = entry.reach.unwrap_or((now, 0));
        if due > now {
            return false;
        }
        let pause = if count < SOON_TRIES { SOON } else { LATER };
        entry.reach = Some((now + pause, count.saturating_add(1)));
        true
    }

    /// Someone looks at a run.
    pub fn touch(&self, run: DashboardRunId) {
        lock(&self.0.used).insert(run, self.0.parts.clock.now());
    }

    /// Writes down that it was used; one that nobody looks at for long is stopped, and its owner told.
    async fn mind_use(&self, board: &Dashboard, run: &DashboardRun) -> Result<(), StoreError> {
        let parts = &self.0.parts;
        let now = parts.clock.now();
        let seen = lock(&self.0.used).get(&run.id).copied();
        let used = seen.max(run.used_at()).or(run.ready_at()).unwrap_or(now);
        if seen.is_some_and(|at| at.since(run.used_at().unwrap_or(UnixTime(0))) >= WRITE_USED) {
            let mut tx = parts.store.write().await?;
            runs::mark_used(&mut tx, run.id, used).await?;
            store::commit(tx).await?;
        }
        let idle = i64::try_from(parts.idle.as_secs()).unwrap_or(i64::MAX);
        if now.since(used) < idle {
            return Ok(());
        }
        let mut tx = parts.store.write().await?;
        if runs::request_stop(&mut tx, run.id, "idle").await? {
            store::notifications::add_dashboard_idle(&mut tx, board.person_id, board.id, now)
                .await?;
            store::commit(tx).await?;
            parts.bell.ring(board.person_id);
            self.changed(board.id);
        }
        Ok(())
    }

    async fn stop_run(
        &self,
        board: &Dashboard,
        run: &DashboardRun,
        why: &str,
    ) -> Result<(), StoreError> {
        let mut tx = self.0.parts.store.write().await?;
        runs::request_stop(&mut tx, run.id, why).await?;
        store::commit(tx).await?;
        self.changed(board.id);
        Ok(())
    }

    /// Asks Slurm to cancel the job of a run that is to end; again if nothing came of it.
    async fn cancel(&self, board: &Dashboard, run: &DashboardRun, number: u64) {
        let now = Instant::now();
        {
            let mut tries = lock(&self.0.tries);
            let entry = tries.entry(run.id).or_insert(Try { reach: None, cancel: None });
            if entry.cancel.is_some_and(|at| now.saturating_duration_since(at) < CANCEL_AGAIN) {
                return;
            }
            entry.cancel = Some(now);
        }
        self.set_unreachable(board, run).await;
        let actor = Actor::portal();
        let target = vec![JobActionTarget { id: JobId::without_task(number), tasks: None }];
        let queues = &self.0.parts.queues;
        let asked =
            queues.act(queue_of(board), &actor, JobAction::Cancel, target, &board.cluster).await;
        if let Err(error) = asked {
            tracing::info!(%error, run = run.id.0, "A dashboard's job could not be cancelled yet");
        }
    }

    async fn say(
        &self,
        run: &DashboardRun,
        state: DashboardRunState,
        message: &str,
    ) -> Result<(), StoreError> {
        let mut tx = self.0.parts.store.write().await?;
        runs::set_state(&mut tx, run.id, state, message).await?;
        store::commit(tx).await?;
        self.changed(run.board_id);
        Ok(())
    }

    /// Its job is over: why?
    async fn end_with(
        &self,
        board: &Dashboard,
        run: &DashboardRun,
        record: &Record,
    ) -> Result<(), StoreError> {
        let job = record.job.state;
        let was_ready = run.ready_at().is_some();
        let end = match (run.stop.as_str(), job) {
            ("idle", _) => "idle",
            ("replaced", _) => "replaced",
            ("person" | "removed", _) => "stopped",
            (_, JobState::Timeout) => "time",
            (_, JobState::Cancelled) => "cancelled",
            (_, JobState::NodeFail | JobState::BootFail) => "node",
            (_, JobState::OutOfMemory) => "memory",
            (_, JobState::Completed) if was_ready => "time",
            _ => "failed",
        };
        self.end(board, run, end, &run.message).await
    }

    /// It has ended, or never began.
    pub(super) async fn end(
        &self,
        board: &Dashboard,
        run: &DashboardRun,
        end: &str,
        message: &str,
    ) -> Result<(), StoreError> {
        let mut tx = self.0.parts.store.write().await?;
        runs::mark_over(&mut tx, run.id, end, message, self.0.parts.clock.now()).await?;
        store::commit(tx).await?;
        self.set_unreachable(board, run).await;
        lock(&self.0.used).remove(&run.id);
        self.changed(board.id);
        Ok(())
    }
}
