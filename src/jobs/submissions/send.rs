//! Sends a submission, and finds out whether it arrived.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::unconfirmed::UnconfirmedSubmission;
use super::worker::SubmissionWorkerState;
use super::{Submission, SubmissionState, SubmissionWorker};
use crate::clock::UnixTime;
use crate::cluster::submit::{self, SbatchOutcome, SbatchTimeouts, SubmissionSearchOutput, SubmissionSearchResult};
use crate::cluster::{ClusterAccount, ClusterAccountId};
use crate::slurm;
use crate::slurm::submit::{SbatchAnswer, SubmitTokenCarrier};
use crate::ssh::{ClusterConnection, RunCommandError};
use crate::store::{self, StoreError, submissions};

/// How often a submission is sent automatically.
const MAX_SENDS: i64 = 3;

/// Shown while the owner is signed out.
const OWNER_AWAY_MESSAGE: &str = "You are not signed in, and your key may not be used while you are away.";
/// Shown after searches that found nothing.
const NOT_ARRIVED_MESSAGE: &str = "It did not reach Slurm.";

/// What every step needs.
struct SubmissionSendContext {
    account: Arc<ClusterAccount>,
    connection: Arc<ClusterConnection>,
}

impl SubmissionWorker {
    /// Sends one submission. Returns how long to wait if that is not possible now, or nothing if the next one can
    /// follow.
    pub(super) async fn send(
        &self,
        key: ClusterAccountId,
        one: &Submission,
        memory: &mut SubmissionWorkerState,
    ) -> Result<Option<Duration>, StoreError> {
        let core = &self.0.core;
        if core.clock.now().since(one.ready_at) > core.config.submit_pace.give_up_after_secs {
            self.save_step(one, async |db, now| submissions::mark_not_sent(db, one.id, &one.problem, now).await)
                .await?;
            return Ok(None);
        }
        let ground = match self.load_context(key).await? {
            Ok(ground) => ground,
            Err(problem) => return self.postpone(one, &problem).await.map(Some),
        };
        // Search once more for anything that was sent before, even if it seemed certain that it did not arrive.
        if one.sent_at().is_some() && memory.known_absent != Some(one.id) {
            match self.search_cluster(&ground, one.created_at).await {
                Ok(look) => match look.find(&one.token) {
                    SubmissionSearchResult::Found(number) => {
                        return self.mark_accepted(one, number).await.map(|()| None);
                    }
                    SubmissionSearchResult::Absent => memory.known_absent = Some(one.id),
                    SubmissionSearchResult::Unknown => {
                        return self.postpone(one, &look.error_text()).await.map(Some);
                    }
                },
                Err(error) => return self.postpone(one, &error.to_string()).await.map(Some),
            }
        }
        self.wait_for_spacing(&ground.account, memory).await?;
        let mut tx = core.store.write().await?;
        let is_wanted = submissions::mark_sent(&mut tx, one.id, core.clock.now()).await?;
        store::commit(tx).await?;
        if !is_wanted {
            return Ok(None);
        }
        self.notify(one.person_id, one.id);
        memory.known_absent = None;
        let carrier = SubmitTokenCarrier::from_stored(&one.carrier);
        let outcome = submit::submit(
            &ground.connection,
            &one.script,
            &one.folders(),
            slurm::submit::args(carrier, &one.token, &one.job_name),
            SbatchTimeouts { go: core.config.submit_pace.go_timeout, sbatch: core.config.submit_pace.sbatch_timeout },
        )
        .await;
        memory.last_sent_at = Some(Instant::now());
        self.apply_outcome(one, outcome).await
    }

    /// Saves the outcome of sending.
    async fn apply_outcome(&self, one: &Submission, outcome: SbatchOutcome) -> Result<Option<Duration>, StoreError> {
        match outcome {
            SbatchOutcome::Answered(SbatchAnswer::Accepted(number)) => self.mark_accepted(one, number).await?,
            SbatchOutcome::Answered(SbatchAnswer::Refused(words)) => {
                self.save_step(one, async |db, now| submissions::mark_refused(db, one.id, &words, now).await).await?;
            }
            SbatchOutcome::RetryLater(why) | SbatchOutcome::Answered(SbatchAnswer::RetryLater(why)) => {
                self.save_step(one, async |db, _| submissions::mark_unsent(db, one.id, &why).await).await?;
                return Ok(Some(self.0.core.config.submit_pace.retry_pause));
            }
            SbatchOutcome::Impossible(why) => {
                self.save_step(one, async |db, now| {
                    submissions::mark_unsent(db, one.id, &why).await?;
                    submissions::mark_not_sent(db, one.id, &why, now).await
                })
                .await?;
            }
            SbatchOutcome::Unconfirmed(why) | SbatchOutcome::Answered(SbatchAnswer::Unconfirmed(why)) => {
                tracing::warn!(submission = one.id.0, why, "A submission may have arrived");
                self.save_step(one, async |db, _| submissions::mark_checking(db, one.id, &why, "").await).await?;
            }
            SbatchOutcome::Answered(SbatchAnswer::Unclear(words)) => {
                self.save_step(one, async |db, _| submissions::mark_checking(db, one.id, &words, &words).await).await?;
            }
        }
        Ok(None)
    }

    /// Searches for all due submissions that may have arrived, with one command. Returns how long to wait.
    pub(super) async fn find_unconfirmed(
        &self,
        key: ClusterAccountId,
        all: &[Submission],
        memory: &mut SubmissionWorkerState,
    ) -> Result<Duration, StoreError> {
        let pace = &self.0.core.config.submit_pace;
        let now = Instant::now();
        for one in all {
            memory.unconfirmed.entry(one.id).or_insert_with(|| UnconfirmedSubmission::new(pace, now));
        }
        let is_due = |one: &&Submission| memory.unconfirmed.get(&one.id).is_some_and(|d| d.due_at <= now);
        let due: Vec<&Submission> = all.iter().filter(is_due).collect();
        if let Some(since) = due.iter().map(|one| one.created_at).min() {
            let look = match self.load_context(key).await? {
                Ok(ground) => self.search_cluster(&ground, since).await.map_err(|error| error.to_string()),
                Err(problem) => Err(problem),
            };
            for one in due {
                self.apply_search(one, &look, now, memory).await?;
            }
        }
        let next = memory.unconfirmed.values().map(|doubt| doubt.due_at).min();
        Ok(next.map_or(Duration::ZERO, |next| next.saturating_duration_since(Instant::now())))
    }

    async fn search_cluster(
        &self,
        ground: &SubmissionSendContext,
        since: UnixTime,
    ) -> Result<SubmissionSearchOutput, RunCommandError> {
        submit::search_submissions(
            &ground.connection,
            &ground.account.remote_user,
            since,
            self.0.core.config.submit_pace.lookup_timeout,
        )
        .await
    }

    /// Applies a search result to one submission.
    async fn apply_search(
        &self,
        one: &Submission,
        look: &Result<SubmissionSearchOutput, String>,
        asked: Instant,
        memory: &mut SubmissionWorkerState,
    ) -> Result<(), StoreError> {
        let pace = &self.0.core.config.submit_pace;
        let Some(doubt) = memory.unconfirmed.get_mut(&one.id) else { return Ok(()) };
        let now = Instant::now();
        let (seen, complaint) = match look {
            Ok(look) => (look.find(&one.token), look.error_text()),
            Err(problem) => (SubmissionSearchResult::Unknown, problem.clone()),
        };
        match seen {
            SubmissionSearchResult::Found(number) => {
                memory.unconfirmed.remove(&one.id);
                self.mark_accepted(one, number).await
            }
            SubmissionSearchResult::Unknown => {
                doubt.note_unanswered(pace, now);
                self.save_problem(one, &complaint).await
            }
            SubmissionSearchResult::Absent if doubt.note_absent(pace, asked, now) => {
                memory.unconfirmed.remove(&one.id);
                self.mark_not_arrived(one).await
            }
            SubmissionSearchResult::Absent => {
                self.save_step(one, async |db, now| submissions::mark_checked(db, one.id, now).await).await
            }
        }
    }

    /// There is certainly no job: sends it again, or gives up.
    async fn mark_not_arrived(&self, one: &Submission) -> Result<(), StoreError> {
        tracing::info!(submission = one.id.0, tries = one.tries, "A submission did not arrive");
        self.save_step(one, async |db, now| {
            if !one.refusal.is_empty() {
                return submissions::mark_refused(db, one.id, &one.refusal, now).await;
            }
            let why = if one.problem.is_empty() { NOT_ARRIVED_MESSAGE } else { &one.problem };
            if one.tries < MAX_SENDS {
                submissions::mark_for_resend(db, one.id, why, now).await
            } else {
                submissions::mark_not_sent(db, one.id, why, now).await
            }
        })
        .await
    }

    async fn mark_accepted(&self, one: &Submission, number: u64) -> Result<(), StoreError> {
        let number = i64::try_from(number).map_err(|_| StoreError::Malformed("submissions.number"))?;
        self.save_step(one, async |db, now| submissions::mark_accepted(db, one.id, number, now).await).await?;
        tracing::info!(submission = one.id.0, job.id = number, "A job was submitted");
        self.0.queues.refresh_after_action(ClusterAccountId { person: one.person_id, cluster: one.cluster_id });
        Ok(())
    }

    /// Keeps it waiting; its page shows why.
    async fn postpone(&self, one: &Submission, problem: &str) -> Result<Duration, StoreError> {
        self.save_problem(one, problem).await?;
        Ok(self.0.core.config.submit_pace.retry_pause)
    }

    async fn save_problem(&self, one: &Submission, problem: &str) -> Result<(), StoreError> {
        if one.problem == problem || (one.state == SubmissionState::Checking && problem.is_empty()) {
            return Ok(());
        }
        self.save_step(one, async |db, _| submissions::set_problem(db, one.id, problem).await.map(|_| ())).await
    }

    /// Saves a step and notifies open pages.
    async fn save_step(
        &self,
        one: &Submission,
        write: impl AsyncFnOnce(&mut store::DbConnection, UnixTime) -> store::Result<()>,
    ) -> Result<(), StoreError> {
        let core = &self.0.core;
        let mut tx = core.store.write().await?;
        write(&mut tx, core.clock.now()).await?;
        store::commit(tx).await?;
        self.notify(one.person_id, one.id);
        Ok(())
    }

    /// Waits as long as the site asks for between submissions.
    async fn wait_for_spacing(
        &self,
        account: &ClusterAccount,
        memory: &mut SubmissionWorkerState,
    ) -> Result<(), StoreError> {
        let (key, limits) = (account.id, &account.site().limits);
        let spacing = Duration::from_secs(limits.submit_spacing_s.into());
        if memory.last_sent_at.is_none() {
            let core = &self.0.core;
            let mut db = core.store.read().await?;
            let last = submissions::last_sent_at(&mut db, key.person, key.cluster).await?;
            let seconds = last.map_or(i64::MAX, |last| core.clock.now().since(last));
            if u64::try_from(seconds).is_ok_and(|seconds| seconds <= spacing.as_secs()) {
                memory.last_sent_at = Some(Instant::now());
            }
        }
        if let Some(sent) = memory.last_sent_at {
            tokio::time::sleep_until((sent + spacing).into()).await;
        }
        Ok(())
    }

    /// The connection and the remote user, or why nothing can be done now.
    async fn load_context(&self, key: ClusterAccountId) -> Result<Result<SubmissionSendContext, String>, StoreError> {
        let core = &self.0.core;
        let connection = match self.0.connections.connection(key.connection_key()) {
            Ok(line) => line,
            Err(error) => return Ok(Err(error.to_string())),
        };
        if !core.auth.can_act_for(key.person).await.unwrap_or(false) {
            return Ok(Err(OWNER_AWAY_MESSAGE.to_owned()));
        }
        let account = self.0.connections.accounts().get(key).await?;
        Ok(match account {
            Some(account) => Ok(SubmissionSendContext { account, connection }),
            None => Err(RunCommandError::NotConnected.to_string()),
        })
    }
}
