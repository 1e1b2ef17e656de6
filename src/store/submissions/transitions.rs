//! Every transition of a submission. Each is written only from a state that allows it, so that two concurrent actions
//! do not undo each other.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{PersonId, SubmissionId};

/// Marks it as about to be sent. False if it should no longer be sent.
pub async fn mark_sent(db: &mut DbConnection, id: SubmissionId, now: UnixTime) -> Result<bool> {
    affects_row!(
        db,
        "UPDATE submissions SET state = 'sent', sent_at = $2, tries = tries + 1, problem = '', refusal = ''
         WHERE id = $1 AND state = 'ready'",
        [id, now]
    )
}

/// Records that nothing was sent after all: it is ready again.
pub async fn mark_unsent(db: &mut DbConnection, id: SubmissionId, problem: &str) -> Result<()> {
    execute!(
        db,
        "UPDATE submissions SET state = 'ready', tries = max(tries - 1, 0), problem = $2,
                                sent_at = iif(tries > 1, sent_at, NULL)
         WHERE id = $1 AND state = 'sent'",
        [id, problem]
    )
}

/// Records why it waits. True if the reason is new.
pub async fn set_problem(db: &mut DbConnection, id: SubmissionId, problem: &str) -> Result<bool> {
    affects_row!(
        db,
        "UPDATE submissions SET problem = $2 WHERE id = $1 AND settled_at IS NULL AND problem <> $2",
        [id, problem]
    )
}

/// Records that it may have arrived. `refusal` is what Slurm said, if that would explain why it did not.
pub async fn mark_checking(db: &mut DbConnection, id: SubmissionId, problem: &str, refusal: &str) -> Result<()> {
    execute!(
        db,
        "UPDATE submissions SET state = 'checking', problem = $2, refusal = $3 WHERE id = $1 AND state = 'sent'",
        [id, problem, refusal]
    )
}

/// Records that the cluster answered whether the job exists.
pub async fn mark_checked(db: &mut DbConnection, id: SubmissionId, now: UnixTime) -> Result<()> {
    execute!(db, "UPDATE submissions SET checked_at = $2 WHERE id = $1", [id, now])
}

/// Records that it is a job. This is final.
pub async fn mark_accepted(db: &mut DbConnection, id: SubmissionId, number: i64, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "UPDATE submissions SET state = 'accepted', number = $2, problem = '', refusal = '', settled_at = $3
         WHERE id = $1 AND state <> 'accepted'",
        [id, number, now]
    )
}

/// Records that Slurm refused it. Does nothing unless it was sent and the outcome is still open.
pub async fn mark_refused(db: &mut DbConnection, id: SubmissionId, refusal: &str, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "UPDATE submissions SET state = 'refused', refusal = $2, problem = '', settled_at = $3
         WHERE id = $1 AND state IN ('sent', 'checking')",
        [id, refusal, now]
    )
}

/// Records that it did not arrive and should be sent again.
pub async fn mark_for_resend(db: &mut DbConnection, id: SubmissionId, problem: &str, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "UPDATE submissions SET state = 'ready', problem = $2, ready_at = $3
         WHERE id = $1 AND state IN ('sent', 'checking')",
        [id, problem, now]
    )
}

/// Records that it could not be sent and will not be tried again.
pub async fn mark_not_sent(db: &mut DbConnection, id: SubmissionId, problem: &str, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "UPDATE submissions SET state = 'not_sent', problem = $2, settled_at = $3
         WHERE id = $1 AND settled_at IS NULL",
        [id, problem, now]
    )
}

/// Tries a submission again that could not be sent, because its owner asks for it. False if there is none.
pub async fn retry(db: &mut DbConnection, id: SubmissionId, person: PersonId, now: UnixTime) -> Result<bool> {
    affects_row!(
        db,
        "UPDATE submissions SET state = 'ready', problem = '', tries = 0, ready_at = $3, settled_at = NULL
         WHERE id = $1 AND person_id = $2 AND state = 'not_sent'",
        [id, person, now]
    )
}

/// Cancels it, because its owner asks for it. False if it may be a job already.
pub async fn give_up(db: &mut DbConnection, id: SubmissionId, person: PersonId, now: UnixTime) -> Result<bool> {
    affects_row!(
        db,
        "UPDATE submissions SET state = 'given_up', settled_at = $3
         WHERE id = $1 AND person_id = $2 AND state IN ('ready', 'not_sent')",
        [id, person, now]
    )
}
