//! Sends a submission, and finds out whether it arrived.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::submitted_job::submitted_job;
use super::unconfirmed::UnconfirmedSubmission;
use super::worker::SubmissionWorkerState;
use super::{Submission, SubmissionState, SubmissionWorker};
use crate::clock::UnixTime;
use crate::cluster::submit::{self, SbatchOutcome, SbatchTimeouts, SubmissionSearchOutput, SubmissionSearchResult};
use crate::cluster::{ClusterAccount, ClusterAccountId};
use crate::domain::SubmissionId;
use crate::slurm;
use crate::slurm::job::SlurmJob;
use crate::slurm::submit::{SbatchAnswer, SubmitTokenField};
use crate::ssh::{ClusterConnection, RunCommandError};
use crate::store::{self, StoreError, submissions};

/// How often a submission is sent automatically.
const MAX_SENDS: i64 = 3;

/// Shown while the owner is signed out.
const OWNER_AWAY_MESSAGE: &str =
    "You're signed out, and you haven't allowed the portal to use your SSH key while you're away.";
/// Shown after searches that found nothing.
const NOT_ARRIVED_MESSAGE: &str = "The job didn't reach Slurm.";

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
        submission: &Submission,
        state: &mut SubmissionWorkerState,
    ) -> Result<Option<Duration>, StoreError> {
        let core = &self.0.core;
        if core.clock.now().since(submission.ready_at) > core.config.submit_pace.give_up_after_secs {
            self.save_step(submission, async |db, id, now| {
                submissions::mark_not_sent(db, id, &submission.problem, now).await
            })
            .await?;
            return Ok(None);
        }
        let context = match self.load_context(key).await? {
            Ok(context) => context,
            Err(problem) => return self.postpone(submission, &problem).await.map(Some),
        };
        // Search once more for anything that was sent before, even if it seemed certain that it did not arrive.
        if submission.sent_at.is_some() && state.known_absent != Some(submission.id) {
            match self.search_cluster(&context, submission.created_at).await {
                Ok(search) => match search.find(&submission.token) {
                    SubmissionSearchResult::Found(number) => {
                        return self.mark_accepted(submission, number).await.map(|()| None);
                    }
                    SubmissionSearchResult::Absent => state.known_absent = Some(submission.id),
                    SubmissionSearchResult::Unknown => {
                        return self.postpone(submission, &search.error_text()).await.map(Some);
                    }
                },
                Err(error) => return self.postpone(submission, &error.to_string()).await.map(Some),
            }
        }
        self.wait_for_spacing(&context.account, state).await?;
        let mut tx = core.store.write().await?;
        let is_wanted = submissions::mark_sent(&mut tx, submission.id, core.clock.now()).await?;
        store::commit(tx).await?;
        if !is_wanted {
            return Ok(None);
        }
        self.notify(submission.person_id, submission.id);
        state.known_absent = None;
        let carrier = SubmitTokenField::from_stored(&submission.carrier);
        let outcome = submit::submit(
            &context.connection,
            &submission.script,
            &submission.folders(),
            slurm::submit::args(carrier, &submission.token, &submission.job_name),
            SbatchTimeouts { go: core.config.submit_pace.go_timeout, sbatch: core.config.submit_pace.sbatch_timeout },
        )
        .await;
        state.last_sent_at = Some(Instant::now());
        if let SbatchOutcome::Answered(SbatchAnswer::Accepted(number)) = outcome {
            self.list_job(&context, submission, number).await;
        }
        self.apply_outcome(submission, outcome).await
    }

    /// Lists the new job before its submission is marked as accepted, so that nobody waits for the next read of the queue
    /// to see it.
    async fn list_job(&self, context: &SubmissionSendContext, submission: &Submission, number: u64) {
        let now = self.0.core.clock.now();
        let Some(job) = submitted_job(&submission.script, &submission.job_name, number, now) else { return };
        let work_dir = submission.folders().into_iter().next().unwrap_or_default();
        let job = SlurmJob { user: context.account.remote_user.clone(), work_dir, ..job };
        if let Err(error) = self.0.queues.add_submitted(context.account.id, job).await {
            // The queue will list it.
            tracing::warn!(%error, submission = submission.id.0, "Could not list a new job at once");
        }
    }

    /// Saves the outcome of sending.
    async fn apply_outcome(
        &self,
        submission: &Submission,
        outcome: SbatchOutcome,
    ) -> Result<Option<Duration>, StoreError> {
        match outcome {
            SbatchOutcome::Answered(SbatchAnswer::Accepted(number)) => self.mark_accepted(submission, number).await?,
            SbatchOutcome::Answered(SbatchAnswer::Refused(words)) => {
                self.save_step(submission, async |db, id, now| submissions::mark_refused(db, id, &words, now).await)
                    .await?;
            }
            SbatchOutcome::RetryLater(why) | SbatchOutcome::Answered(SbatchAnswer::RetryLater(why)) => {
                self.save_step(submission, async |db, id, _| submissions::mark_unsent(db, id, &why).await).await?;
                return Ok(Some(self.0.core.config.submit_pace.retry_pause));
            }
            SbatchOutcome::Impossible(why) => {
                self.save_step(submission, async |db, id, now| {
                    submissions::mark_unsent(db, id, &why).await?;
                    submissions::mark_not_sent(db, id, &why, now).await
                })
                .await?;
            }
            SbatchOutcome::Unconfirmed(why) | SbatchOutcome::Answered(SbatchAnswer::Unconfirmed(why)) => {
                tracing::warn!(submission = submission.id.0, why, "Submission unconfirmed");
                self.save_step(submission, async |db, id, _| submissions::mark_checking(db, id, &why, "").await)
                    .await?;
            }
            SbatchOutcome::Answered(SbatchAnswer::Unclear(words)) => {
                self.save_step(submission, async |db, id, _| submissions::mark_checking(db, id, &words, &words).await)
                    .await?;
            }
        }
        Ok(None)
    }

    /// Searches for all due submissions that may have arrived, with one command. Returns how long to wait.
    pub(super) async fn find_unconfirmed(
        &self,
        key: ClusterAccountId,
        all: &[Submission],
        state: &mut SubmissionWorkerState,
    ) -> Result<Duration, StoreError> {
        let pace = &self.0.core.config.submit_pace;
        let now = Instant::now();
        for submission in all {
            state.unconfirmed.entry(submission.id).or_insert_with(|| UnconfirmedSubmission::new(pace, now));
        }
        let is_due = |submission: &&Submission| state.unconfirmed.get(&submission.id).is_some_and(|d| d.due_at <= now);
        let due: Vec<&Submission> = all.iter().filter(is_due).collect();
        if let Some(since) = due.iter().map(|submission| submission.created_at).min() {
            let search = match self.load_context(key).await? {
                Ok(context) => self.search_cluster(&context, since).await.map_err(|error| error.to_string()),
                Err(problem) => Err(problem),
            };
            for submission in due {
                self.apply_search(submission, &search, now, state).await?;
            }
        }
        let next = state.unconfirmed.values().map(|unconfirmed| unconfirmed.due_at).min();
        Ok(next.map_or(Duration::ZERO, |next| next.saturating_duration_since(Instant::now())))
    }

    async fn search_cluster(
        &self,
        context: &SubmissionSendContext,
        since: UnixTime,
    ) -> Result<SubmissionSearchOutput, RunCommandError> {
        submit::search_submissions(
            &context.connection,
            &context.account.remote_user,
            since,
            self.0.core.config.submit_pace.lookup_timeout,
        )
        .await
    }

    /// Applies a search result to one submission.
    async fn apply_search(
        &self,
        submission: &Submission,
        search: &Result<SubmissionSearchOutput, String>,
        asked: Instant,
        state: &mut SubmissionWorkerState,
    ) -> Result<(), StoreError> {
        let pace = &self.0.core.config.submit_pace;
        let Some(unconfirmed) = state.unconfirmed.get_mut(&submission.id) else { return Ok(()) };
        let now = Instant::now();
        let (result, problem) = match search {
            Ok(search) => (search.find(&submission.token), search.error_text()),
            Err(problem) => (SubmissionSearchResult::Unknown, problem.clone()),
        };
        match result {
            SubmissionSearchResult::Found(number) => {
                state.unconfirmed.remove(&submission.id);
                self.mark_accepted(submission, number).await
            }
            SubmissionSearchResult::Unknown => {
                unconfirmed.note_unanswered(pace, now);
                self.save_problem(submission, &problem).await
            }
            SubmissionSearchResult::Absent if unconfirmed.note_absent(pace, asked, now) => {
                state.unconfirmed.remove(&submission.id);
                self.mark_not_arrived(submission).await
            }
            SubmissionSearchResult::Absent => {
                self.save_step(submission, async |db, id, now| submissions::mark_checked(db, id, now).await).await
            }
        }
    }

    /// There is certainly no job: sends it again, or gives up.
    async fn mark_not_arrived(&self, submission: &Submission) -> Result<(), StoreError> {
        tracing::info!(submission = submission.id.0, tries = submission.tries, "Submission did not reach Slurm");
        self.save_step(submission, async |db, id, now| {
            if !submission.refusal.is_empty() {
                return submissions::mark_refused(db, id, &submission.refusal, now).await;
            }
            let why = if submission.problem.is_empty() { NOT_ARRIVED_MESSAGE } else { &submission.problem };
            if submission.tries < MAX_SENDS {
                submissions::mark_for_resend(db, id, why, now).await
            } else {
                submissions::mark_not_sent(db, id, why, now).await
            }
        })
        .await
    }

    async fn mark_accepted(&self, submission: &Submission, number: u64) -> Result<(), StoreError> {
        let number = i64::try_from(number).map_err(|_| StoreError::Malformed("submissions.number"))?;
        self.save_step(submission, async |db, id, now| submissions::mark_accepted(db, id, number, now).await).await?;
        tracing::info!(submission = submission.id.0, job.id = number, "Job submitted");
        self.0
            .queues
            .refresh_after_action(ClusterAccountId { person: submission.person_id, cluster: submission.cluster_id });
        Ok(())
    }

    /// Keeps it waiting; its page shows why.
    async fn postpone(&self, submission: &Submission, problem: &str) -> Result<Duration, StoreError> {
        self.save_problem(submission, problem).await?;
        Ok(self.0.core.config.submit_pace.retry_pause)
    }

    async fn save_problem(&self, submission: &Submission, problem: &str) -> Result<(), StoreError> {
        if submission.problem == problem || (submission.state == SubmissionState::Checking && problem.is_empty()) {
            return Ok(());
        }
        self.save_step(submission, async |db, id, _| submissions::set_problem(db, id, problem).await.map(|_| ())).await
    }

    /// Saves a step and notifies open pages.
    async fn save_step(
        &self,
        submission: &Submission,
        write: impl AsyncFnOnce(&mut store::DbConnection, SubmissionId, UnixTime) -> store::Result<()>,
    ) -> Result<(), StoreError> {
        let core = &self.0.core;
        let mut tx = core.store.write().await?;
        write(&mut tx, submission.id, core.clock.now()).await?;
        store::commit(tx).await?;
        self.notify(submission.person_id, submission.id);
        Ok(())
    }

    /// Waits as long as the site asks for between submissions.
    async fn wait_for_spacing(
        &self,
        account: &ClusterAccount,
        state: &mut SubmissionWorkerState,
    ) -> Result<(), StoreError> {
        let (key, limits) = (account.id, &account.site().limits);
        let spacing = Duration::from_secs(limits.submit_spacing_s.into());
        if state.last_sent_at.is_none() {
            let core = &self.0.core;
            let mut db = core.store.read().await?;
            let last = submissions::last_sent_at(&mut db, key.person, key.cluster).await?;
            let seconds = last.map_or(i64::MAX, |last| core.clock.now().since(last));
            if let Ok(seconds) = u64::try_from(seconds)
                && seconds <= spacing.as_secs()
            {
                // Times are stored in whole seconds, so up to one of these has not passed yet.
                let passed = Duration::from_secs(seconds.saturating_sub(1));
                state.last_sent_at = Instant::now().checked_sub(passed);
            }
        }
        if let Some(sent) = state.last_sent_at {
            tokio::time::sleep_until((sent + spacing).into()).await;
        }
        Ok(())
    }

    /// The connection and the remote user, or why nothing can be done now.
    async fn load_context(&self, key: ClusterAccountId) -> Result<Result<SubmissionSendContext, String>, StoreError> {
        let core = &self.0.core;
        let connection = match self.0.connections.connection(key.connection_key()) {
            Ok(connection) => connection,
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
