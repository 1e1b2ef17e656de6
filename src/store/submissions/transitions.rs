//! Each step that a submission can take. A step is written only from a state that allows it, so that two who act at once
//! do not undo each other.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{PersonId, SubmissionId};

/// Notes that it is about to be sent. False if it is no longer to be.
pub async fn mark_sent(db: &mut DbConnection, id: SubmissionId, now: UnixTime) -> Result<bool> {
    let done = sqlx::query(
        "UPDATE submissions SET state = 'sent', sent_at = $2, tries = tries + 1, problem = '', refusal = ''
         WHERE id = $1 AND state = 'ready'",
    )
    .bind(id)
    .bind(now)
    .execute(db)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Notes that nothing was sent after all: it is still to be sent.
pub async fn mark_unsent(db: &mut DbConnection, id: SubmissionId, problem: &str) -> Result<()> {
    sqlx::query(
        "UPDATE submissions SET state = 'ready', tries = max(tries - 1, 0), problem = $2,
                                sent_at = iif(tries > 1, sent_at, NULL)
         WHERE id = $1 AND state = 'sent'",
    )
    .bind(id)
    .bind(problem)
    .execute(db)
    .await?;
    Ok(())
}

/// Notes why it waits; whether that is new.
pub async fn set_problem(db: &mut DbConnection, id: SubmissionId, problem: &str) -> Result<bool> {
    let done = sqlx::query(
        "UPDATE submissions SET problem = $2 WHERE id = $1 AND settled_at IS NULL AND problem <> $2",
    )
    .bind(id)
    .bind(problem)
    .execute(db)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Notes that it may have arrived. `refusal` is what was said, if it would explain why it did not.
pub async fn mark_checking(
    db: &mut DbConnection,
    id: SubmissionId,
    problem: &str,
    refusal: &str,
) -> Result<()> {
    sqlx::query(
        "UPDATE submissions SET state = 'checking', problem = $2, refusal = $3 WHERE id = $1 AND state = 'sent'",
    )
    .bind(id)
    .bind(problem)
    .bind(refusal)
    .execute(db)
    .await?;
    Ok(())
}

/// Notes that the cluster has answered whether it is there.
pub async fn mark_checked(db: &mut DbConnection, id: SubmissionId, now: UnixTime) -> Result<()> {
    sqlx::query("UPDATE submissions SET checked_at = $2 WHERE id = $1")
        .bind(id)
        .bind(now)
        .execute(db)
        .await?;
    Ok(())
}

/// Notes that it is a job. Nothing else can happen to it afterwards.
pub async fn mark_accepted(
    db: &mut DbConnection,
    id: SubmissionId,
    number: i64,
    now: UnixTime,
) -> Result<()> {
    sqlx::query(
        "UPDATE submissions SET state = 'accepted', number = $2, problem = '', refusal = '', settled_at = $3
         WHERE id = $1 AND state <> 'accepted'",
    )
    .bind(id)
    .bind(number)
    .bind(now)
    .execute(db)
    .await?;
    Ok(())
}

/// Notes that Slurm said no. Nothing is said where it was said before.
pub async fn mark_refused(
    db: &mut DbConnection,
    id: SubmissionId,
    refusal: &str,
    now: UnixTime,
) -> Result<()> {
    sqlx::query(
        "UPDATE submissions SET state = 'refused', refusal = $2, problem = '', settled_at = $3
         WHERE id = $1 AND state IN ('sent', 'checking')",
    )
    .bind(id)
    .bind(refusal)
    .bind(now)
    .execute(db)
    .await?;
    Ok(())
}

/// Notes that it did not arrive and is to be sent again.
pub async fn mark_for_resend(
    db: &mut DbConnection,
    id: SubmissionId,
    problem: &str,
    now: UnixTime,
) -> Result<()> {
    sqlx::query(
        "UPDATE submissions SET state = 'ready', problem = $2, ready_at = $3
         WHERE id = $1 AND state IN ('sent', 'checking')",
    )
    .bind(id)
    .bind(problem)
    .bind(now)
    .execute(db)
    .await?;
    Ok(())
}

/// Notes that it could not be sent and is not tried any more.
pub async fn mark_not_sent(
    db: &mut DbConnection,
    id: SubmissionId,
    problem: &str,
    now: UnixTime,
) -> Result<()> {
    sqlx::query(
        "UPDATE submissions SET state = 'not_sent', problem = $2, settled_at = $3
         WHERE id = $1 AND settled_at IS NULL",
    )
    .bind(id)
    .bind(problem)
    .bind(now)
    .execute(db)
    .await?;
    Ok(())
}

/// Its owner wants one that could not be sent to be tried again. False if there is no such.
pub async fn retry(
    db: &mut DbConnection,
    id: SubmissionId,
    person: PersonId,
    now: UnixTime,
) -> Result<bool> {
    let done = sqlx::query(
        "UPDATE submissions SET state = 'ready', problem = '', tries = 0, ready_at = $3, settled_at = NULL
         WHERE id = $1 AND person_id = $2 AND state = 'not_sent'",
    )
    .bind(id)
    .bind(person)
    .bind(now)
    .execute(db)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Its owner wants it no more. False if it may be a job already.
pub async fn give_up(
    db: &mut DbConnection,
    id: SubmissionId,
    person: PersonId,
    now: UnixTime,
) -> Result<bool> {
    let done = sqlx::query(
        "UPDATE submissions SET state = 'given_up', settled_at = $3
         WHERE id = $1 AND person_id = $2 AND state IN ('ready', 'not_sent')",
    )
    .bind(id)
    .bind(person)
    .bind(now)
    .execute(db)
    .await?;
    Ok(done.rows_affected() == 1)
}
