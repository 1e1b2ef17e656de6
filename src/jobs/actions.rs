//! What people do to their jobs: written down, carried out once, and answered in words.

use super::watch::{QueueKey, Queues};
use crate::auth::activity::{About, Actor, Event, record};
use crate::cluster::job_actions::carry_out;
pub use crate::cluster::job_actions::{Target, Verb};
use crate::explain::refusals;
use crate::ssh::RunCommandError;
use crate::store::{self, StoreError};

/// More jobs than this are not acted on at once; an array counts as one.
pub const MOST_TARGETS: usize = 100;

/// What came of it.
#[derive(Debug)]
pub struct Done {
    /// What it was done to, and what Slurm said against it, in words.
    pub results: Vec<(Target, Result<(), refusals::Refusal>)>,
}

/// Why nothing can be said of what came of it.
#[derive(Debug, thiserror::Error)]
pub enum Undone {
    /// The connection: nothing was sent, or it is not known whether it arrived.
    #[error(transparent)]
    Run(#[from] RunCommandError),
    /// The database; nothing was sent.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Queues {
    /// Acts on jobs, over the person's own connection. The record comes first: whatever happens afterwards, it says
    /// that it was wanted.
    pub async fn act(
        &self,
        key: QueueKey,
        actor: &Actor,
        verb: Verb,
        targets: Vec<Target>,
        cluster: &str,
    ) -> Result<Done, Undone> {
        let line = self.0.lines.line(key.line())?;
        let words: Vec<String> = targets.iter().map(Target::words).collect();
        let mut tx = self.0.store.write().await?;
        let detail = words.join(", ");
        let about = About { person: Some(key.person), subject: cluster, detail: &detail };
        record(&mut tx, actor, event(verb), about, self.0.clock.now()).await?;
        store::commit(tx).await?;
        let results = carry_out(&line, verb, &targets).await;
        // Whatever came of it, the queue tells.
        self.stir(key);
        let results =
            results?.into_iter().map(|result| result.map_err(|said| refusals::read(&said)));
        Ok(Done { results: targets.into_iter().zip(results).collect() })
    }
}

const fn event(verb: Verb) -> Event {
    match verb {
        Verb::Cancel => Event::JobsCancelled,
        Verb::Hold => Event::JobsHeld,
        Verb::Release => Event::JobsReleased,
        Verb::Requeue => Event::JobsRequeued,
        Verb::Top => Event::JobsMovedUp,
    }
}
