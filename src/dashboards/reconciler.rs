//! Follows all runs: submits them, follows them through the queue, connects when they are ready, and ends them. All
//! it knows is saved or can be asked again, so a portal that was killed continues where it was.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;

use super::connect::DashboardConnectOutcome;
use super::job_report::DashboardStage;
use super::service::{Dashboards, lock, queue_key};
use crate::clock::UnixTime;
use crate::domain::{DashboardId, DashboardRunId};
use crate::jobs::JobRecord;
use crate::jobs::submissions::{Submission, SubmissionState as Sent};
use crate::slurm::job::{JobId, JobStage, JobState};
use crate::store::dashboards::runs::{self, DashboardRun, DashboardRunState};
use crate::store::dashboards::{self, Dashboard};
use crate::store::{self, StoreError};

/// How often it checks what is due.
const TICK: Duration = Duration::from_secs(1);
/// A run that is about to be ready is checked this often; later less.
const FAST_RETRY: Duration = Duration::from_secs(3);
const SLOW_RETRY: Duration = Duration::from_secs(10);
/// After this many attempts without a change, or a longer time in the queue, it is checked less often.
const FAST_RETRY_COUNT: u32 = 20;
/// Usage of a run is saved at most this often, in seconds.
const USED_SAVE_INTERVAL_S: i64 = 60;
/// A job that is missing from the queue after this many seconds is gone.
const JOB_GONE_AFTER_S: i64 = 180;

/// The clocks of portal and cluster may differ by this many seconds.
const CLOCK_SKEW_S: i64 = 300;

/// When a run is tried next.
#[derive(Debug, Clone, Copy)]
pub(super) struct DashboardRetryTimers {
    pub(super) next_reach: Option<(Instant, u32)>,
    pub(super) last_cancel: Option<Instant>,
}

impl Dashboards {
    /// Follows runs until the portal stops.
    pub async fn run_reconciler(self) {
        let core = &self.0.core;
        let (mut queues, mut submissions, mut connections) =
            (self.0.queues.subscribe(), self.0.submissions.subscribe(), self.0.connections.subscribe());
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = core.stop.cancelled() => break,
                _ = ticks.tick() => {}
                () = self.0.wake.notified() => {}
                // Falling behind loses nothing: every pass checks all runs.
                _ = queues.recv() => {}
                _ = submissions.recv() => {}
                _ = connections.recv() => {}
            }
            self.close_ended_streams().await;
            if let Err(error) = self.reconcile().await {
                tracing::warn!(%error, "Could not check dashboards; will retry");
                tokio::time::sleep(TICK).await;
            }
        }
        for stream in lock(&self.0.streams).values() {
            stream.cancel.cancel();
        }
    }

    /// Checks every run that is not over.
    async fn reconcile(&self) -> Result<(), StoreError> {
        let mut db = self.0.core.store.read().await?;
        let open = runs::list_open(&mut db).await?;
        let mut due = Vec::new();
        for run in open {
            if let Some(dashboard) = dashboards::get(&mut db, run.dashboard_id).await? {
                due.push((dashboard, run));
            }
        }
        drop(db);
        let shown: Vec<DashboardId> = lock(&self.0.live).keys().copied().collect();
        for id in shown.into_iter().filter(|id| !due.iter().any(|(dashboard, _)| dashboard.id == *id)) {
            self.set_live(id, None).await;
        }
        lock(&self.0.retries).retain(|id, _| due.iter().any(|(_, run)| run.id == *id));
        for (dashboard, run) in due {
            if !lock(&self.0.busy).insert(run.id) {
                continue;
            }
            let this = self.clone();
            self.0.core.tasks.spawn(async move {
                let id = run.id;
                tokio::select! {
                    result = this.advance_run(&dashboard, run) => {
                        if let Err(error) = result {
                            tracing::warn!(%error, run = id.0, "Could not check a dashboard");
                        }
                    }
                    () = this.0.core.stop.cancelled() => {}
                }
                lock(&this.0.busy).remove(&id);
            });
        }
        Ok(())
    }

    /// Advances a run as far as possible now.
    async fn advance_run(&self, dashboard: &Dashboard, run: DashboardRun) -> Result<(), StoreError> {
        let Some(submission) = run.submission_id else {
            return if run.stop.is_empty() {
                self.launch(dashboard, &run).await
            } else {
                self.end_run(dashboard, &run, "stopped", "").await
            };
        };
        if run.state == DashboardRunState::Asked {
            let sent = self.0.submissions.get(dashboard.person_id, submission).await?;
            return match sent {
                Some(sent) => self.follow_submission(dashboard, &run, &sent).await,
                None => self.end_run(dashboard, &run, "failed", "The portal no longer has a record of its job.").await,
            };
        }
        let Some(number) = run.job.and_then(|number| u64::try_from(number).ok()) else {
            return self.end_run(dashboard, &run, "failed", "The portal no longer has a record of its job.").await;
        };
        self.follow_job(dashboard, &run, number).await
    }

    async fn follow_submission(
        &self,
        dashboard: &Dashboard,
        run: &DashboardRun,
        sent: &Submission,
    ) -> Result<(), StoreError> {
        match sent.state {
            Sent::Accepted => {
                self.save_run_state(run, DashboardRunState::Waiting, ("", "")).await?;
                self.0.queues.refresh_after_action(queue_key(dashboard));
                Ok(())
            }
            Sent::Refused => self.end_run(dashboard, run, "refused", &sent.refusal).await,
            Sent::NotSent => self.end_run(dashboard, run, "not-sent", &sent.problem).await,
            Sent::GivenUp => self.end_run(dashboard, run, "stopped", "").await,
            Sent::Ready | Sent::Sent | Sent::Checking => {
                if !run.stop.is_empty() {
                    // One that may have arrived cannot be cancelled yet: its job is cancelled once it is found.
                    self.0.submissions.give_up(dashboard.person_id, sent.id).await?;
                } else if run.message != sent.problem {
                    self.save_run_state(run, DashboardRunState::Asked, ("", &sent.problem)).await?;
                }
                Ok(())
            }
        }
    }

    async fn follow_job(&self, dashboard: &Dashboard, run: &DashboardRun, number: u64) -> Result<(), StoreError> {
        let core = &self.0.core;
        let key = queue_key(dashboard);
        let snapshot = self.0.queues.snapshot(key).await?;
        let record = snapshot.records.get(&JobId::without_task(number)).cloned();
        // A reinstalled cluster counts its jobs from the beginning: an older job had this number.
        let is_this =
            |record: &Arc<JobRecord>| record.ended_at().is_none_or(|at| at >= run.asked_at.plus(-CLOCK_SKEW_S));
        let Some(record) = record.filter(is_this) else {
            let is_gone = snapshot.seen.is_some_and(|seen| seen.since(run.asked_at) > JOB_GONE_AFTER_S)
                && snapshot.trouble.is_none();
            if is_gone {
                return self.end_run(dashboard, run, "gone", "").await;
            }
            self.0.queues.refresh_soon(key).await?;
            return Ok(());
        };
        if record.is_over {
            return self.end_by_job_state(dashboard, run, &record).await;
        }
        if !run.stop.is_empty() {
            self.cancel_job(dashboard, run, number).await;
            return Ok(());
        }
        let stage = record.job.state.stage();
        if stage == JobStage::Running
            && let Some(start) = record.job.start
            && run.started_at != Some(start)
        {
            let mut tx = core.store.write().await?;
            runs::set_started(&mut tx, run.id, start).await?;
            if run.state == DashboardRunState::Waiting {
                runs::set_state(&mut tx, run.id, DashboardRunState::Starting, ("", "")).await?;
            }
            store::commit(tx).await?;
            self.notify_watchers(dashboard.id);
        }
        let live = self.live(dashboard.id);
        match live {
            Some(live) if live.run == run.id && self.is_connection_current(dashboard, &live) => {
                self.stop_if_idle(dashboard, run).await
            }
            // This run replaces the live one, unless the live one is newer.
            Some(live) if live.run > run.id => self.stop_run(dashboard, run, "replaced").await,
            _ => self.try_connect(dashboard, run, &record).await,
        }
    }

    /// Asks the run's job how far it is, at a moderate pace, and connects once it is ready.
    async fn try_connect(
        &self,
        dashboard: &Dashboard,
        run: &DashboardRun,
        record: &JobRecord,
    ) -> Result<(), StoreError> {
        let is_running = record.job.state == JobState::Running;
        let is_early = run.begin_at.is_some_and(|at| self.0.core.clock.now() < at);
        if (is_early && !is_running) || !self.is_retry_due(run.id) {
            return Ok(());
        }
        // A dashboard has one node, and Slurm names it.
        let node = Some(record.job.node_list.as_str()).filter(|node| is_running && !node.is_empty());
        match self.connect_run(dashboard, run, node).await {
            DashboardConnectOutcome::Connected(live) => {
                self.set_live(dashboard.id, Some(live)).await;
                let now = self.0.core.clock.now();
                let mut tx = self.0.core.store.write().await?;
                runs::mark_ready(&mut tx, run.id, now).await?;
                store::commit(tx).await?;
                lock(&self.0.retries).remove(&run.id);
                self.notify_changed(dashboard.id);
                Ok(())
            }
            DashboardConnectOutcome::NotReady(report) => {
                let Some(report) = report else { return Ok(()) };
                if !is_running {
                    // The job has started, but the queue does not show it yet.
                    self.0.queues.refresh_soon(queue_key(dashboard)).await?;
                }
                let (stage, message) = match report.stage {
                    DashboardStage::Ready(_) => ("", String::new()),
                    stage => (stage.code(), report.message),
                };
                let reported = (stage, message.as_str());
                let is_new = reported != (run.stage.as_str(), run.message.as_str());
                if run.state != DashboardRunState::Ready && is_new {
                    self.save_run_state(run, DashboardRunState::Starting, reported).await?;
                }
                Ok(())
            }
            DashboardConnectOutcome::RetryLater(problem) | DashboardConnectOutcome::Unreachable(problem) => {
                self.set_unreachable(dashboard, run).await;
                if problem != run.message && run.state != DashboardRunState::Waiting {
                    self.save_run_state(run, run.state, ("", &problem)).await?;
                }
                Ok(())
            }
        }
    }

    /// Drops a live dashboard whose connection or run is gone.
    pub(super) async fn set_unreachable(&self, dashboard: &Dashboard, run: &DashboardRun) {
        if self.live(dashboard.id).is_some_and(|live| live.run == run.id) {
            self.set_live(dashboard.id, None).await;
            self.notify_watchers(dashboard.id);
        }
    }

    fn is_retry_due(&self, run: DashboardRunId) -> bool {
        let now = Instant::now();
        let mut retries = lock(&self.0.retries);
        let entry = retries.entry(run).or_insert(DashboardRetryTimers { next_reach: None, last_cancel: None });
        let (due, count) = entry.next_reach.unwrap_or((now, 0));
        if due > now {
            return false;
        }
        let pause = if count < FAST_RETRY_COUNT { FAST_RETRY } else { SLOW_RETRY };
        entry.next_reach = Some((now + pause, count.saturating_add(1)));
        true
    }

    /// Records that someone views a run.
    pub fn record_use(&self, run: DashboardRunId) {
        lock(&self.0.last_used).insert(run, self.0.core.clock.now());
    }

    /// Saves when it was last used; stops a run that nobody has viewed for long, and notifies its owner.
    async fn stop_if_idle(&self, dashboard: &Dashboard, run: &DashboardRun) -> Result<(), StoreError> {
        let core = &self.0.core;
        let now = core.clock.now();
        let seen = lock(&self.0.last_used).get(&run.id).copied();
        let used = seen.max(run.used_at).or(run.ready_at).unwrap_or(now);
        if seen.is_some_and(|at| at.since(run.used_at.unwrap_or(UnixTime(0))) >= USED_SAVE_INTERVAL_S) {
            let mut tx = core.store.write().await?;
            runs::mark_used(&mut tx, run.id, used).await?;
            store::commit(tx).await?;
        }
        let idle = i64::from(core.config.dashboards.idle_minutes) * 60;
        if now.since(used) < idle {
            return Ok(());
        }
        let mut tx = core.store.write().await?;
        if runs::request_stop(&mut tx, run.id, "idle").await? {
            store::notifications::add_dashboard_idle(&mut tx, dashboard.person_id, dashboard.id, now).await?;
            store::commit(tx).await?;
            self.0.notifications.notify(dashboard.person_id);
            self.notify_changed(dashboard.id);
        }
        Ok(())
    }

    async fn save_run_state(
        &self,
        run: &DashboardRun,
        state: DashboardRunState,
        reported: (&str, &str),
    ) -> Result<(), StoreError> {
        let mut tx = self.0.core.store.write().await?;
        runs::set_state(&mut tx, run.id, state, reported).await?;
        store::commit(tx).await?;
        self.notify_changed(run.dashboard_id);
        Ok(())
    }
}
