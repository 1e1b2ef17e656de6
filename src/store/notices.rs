//! Tables `notices` and `webhooks`: what people are told about their jobs, and where else it is sent.

use super::{Connection, Result};
use crate::clock::UnixTime;
use crate::domain::{JobRowId, NoticeId, PersonId};

/// Something a person is told.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Notice {
    /// Which.
    #[sqlx(try_from = "i64")]
    pub id: NoticeId,
    /// `started`, `ended` or `never`.
    pub kind: String,
    /// When.
    #[sqlx(try_from = "i64")]
    pub at: UnixTime,
    /// Whether it was seen in the portal.
    pub is_read: bool,
    /// The job's number.
    pub number: i64,
    /// Which task of it; -1 for none.
    pub task: i64,
    /// The job's name.
    pub name: String,
    /// Slurm's word for what it does.
    pub state: String,
    /// Slurm's word for why it waits.
    pub reason: String,
    /// The cluster's short name.
    pub slug: String,
    /// The cluster's name.
    pub cluster: String,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT n.id, n.kind, n.at, n.read_at IS NOT NULL AS is_read, j.number, j.task, j.name, j.state, j.reason,
                    c.slug, c.title AS cluster
             FROM notices n JOIN jobs j ON j.id = n.job_id JOIN clusters c ON c.id = j.cluster_id ",
            $rest
        )
    };
}

/// Adds a notice; false if the person was told before.
pub async fn add(
    db: &mut Connection,
    person: PersonId,
    job: JobRowId,
    kind: &str,
    restarts: i64,
    now: UnixTime,
) -> Result<bool> {
    let done = sqlx::query(
        "INSERT INTO notices (person_id, job_id, kind, restarts, at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING",
    )
    .bind(person.0)
    .bind(job.0)
    .bind(kind)
    .bind(restarts)
    .bind(now.0)
    .execute(db)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// The latest notices of a person.
pub async fn latest(db: &mut Connection, person: PersonId, most: i64) -> Result<Vec<Notice>> {
    Ok(sqlx::query_as(select!("WHERE n.person_id = $1 ORDER BY n.id DESC LIMIT $2"))
        .bind(person.0)
        .bind(most)
        .fetch_all(db)
        .await?)
}

/// Notices after one that a page has shown already.
pub async fn after(
    db: &mut Connection,
    person: PersonId,
    last: NoticeId,
    most: i64,
) -> Result<Vec<Notice>> {
    Ok(sqlx::query_as(select!("WHERE n.person_id = $1 AND n.id > $2 ORDER BY n.id LIMIT $3"))
        .bind(person.0)
        .bind(last.0)
        .bind(most)
        .fetch_all(db)
        .await?)
}

/// How many a person has not seen, and the last one there is.
pub async fn unread(db: &mut Connection, person: PersonId) -> Result<(i64, NoticeId)> {
    let (count, last): (i64, Option<i64>) = sqlx::query_as(
        "SELECT count(*) FILTER (WHERE read_at IS NULL), max(id) FROM notices WHERE person_id = $1",
    )
    .bind(person.0)
    .fetch_one(db)
    .await?;
    Ok((count, NoticeId(last.unwrap_or(0))))
}

/// Notes that a person has seen all up to one.
pub async fn mark_read(
    db: &mut Connection,
    person: PersonId,
    up_to: NoticeId,
    now: UnixTime,
) -> Result<()> {
    sqlx::query(
        "UPDATE notices SET read_at = $3 WHERE person_id = $1 AND id <= $2 AND read_at IS NULL",
    )
    .bind(person.0)
    .bind(up_to.0)
    .bind(now.0)
    .execute(db)
    .await?;
    Ok(())
}

/// Notices that still have to be sent to the person's address, the oldest first.
pub async fn unsent(db: &mut Connection, person: PersonId, most: i64) -> Result<Vec<Notice>> {
    Ok(sqlx::query_as(select!(
        "WHERE n.person_id = $1 AND n.sent_at IS NULL ORDER BY n.id LIMIT $2"
    ))
    .bind(person.0)
    .bind(most)
    .fetch_all(db)
    .await?)
}

/// Notes that notices up to one were sent, or need not be.
pub async fn mark_sent(
    db: &mut Connection,
    person: PersonId,
    up_to: NoticeId,
    now: UnixTime,
) -> Result<()> {
    sqlx::query(
        "UPDATE notices SET sent_at = $3 WHERE person_id = $1 AND id <= $2 AND sent_at IS NULL",
    )
    .bind(person.0)
    .bind(up_to.0)
    .bind(now.0)
    .execute(db)
    .await?;
    Ok(())
}

/// Forgets old notices.
pub async fn forget(db: &mut Connection, before: UnixTime) -> Result<u64> {
    let done = sqlx::query("DELETE FROM notices WHERE at < $1").bind(before.0).execute(db).await?;
    Ok(done.rows_affected())
}

/// Where a person's notices are sent besides.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Webhook {
    /// Whose.
    #[sqlx(try_from = "i64")]
    pub person_id: PersonId,
    /// The address, sealed.
    pub url: Vec<u8>,
    /// What messages are signed with, sealed.
    pub secret: Vec<u8>,
    /// `started,ended,never`.
    pub kinds: String,
    /// Failures since the last success.
    pub failures: i64,
    /// Not before.
    #[sqlx(try_from = "i64")]
    pub next_at: UnixTime,
    /// What went wrong last, in words.
    pub problem: String,
    sent_at: Option<i64>,
}

impl Webhook {
    /// When something was last sent.
    pub fn sent(&self) -> Option<UnixTime> {
        self.sent_at.map(UnixTime)
    }
}

/// A person's webhook.
pub async fn webhook(db: &mut Connection, person: PersonId) -> Result<Option<Webhook>> {
    Ok(sqlx::query_as(
        "SELECT person_id, url, secret, kinds, failures, next_at, problem, sent_at FROM webhooks WHERE person_id = $1",
    )
    .bind(person.0)
    .fetch_optional(db)
    .await?)
}

/// Webhooks of people whose account is on, that have something to send and may be tried now.
pub async fn webhooks_due(db: &mut Connection, now: UnixTime) -> Result<Vec<Webhook>> {
    Ok(sqlx::query_as(
        "SELECT person_id, url, secret, kinds, failures, next_at, problem, sent_at FROM webhooks
         WHERE next_at <= $1
           AND person_id IN (SELECT person_id FROM notices WHERE sent_at IS NULL)
           AND person_id IN (SELECT id FROM people WHERE disabled_at IS NULL)",
    )
    .bind(now.0)
    .fetch_all(db)
    .await?)
}

/// Sets a person's webhook.
pub async fn put_webhook(
    db: &mut Connection,
    person: PersonId,
    url: &[u8],
    secret: &[u8],
    kinds: &str,
    now: UnixTime,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO webhooks (person_id, url, secret, kinds, created_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (person_id) DO UPDATE
         SET url = $2, secret = $3, kinds = $4, failures = 0, next_at = 0, problem = ''",
    )
    .bind(person.0)
    .bind(url)
    .bind(secret)
    .bind(kinds)
    .bind(now.0)
    .execute(db)
    .await?;
    Ok(())
}

/// Notes how sending went.
pub async fn note_webhook(
    db: &mut Connection,
    person: PersonId,
    problem: Option<(&str, UnixTime)>,
    now: UnixTime,
) -> Result<()> {
    let query = match problem {
        None => sqlx::query(
            "UPDATE webhooks SET failures = 0, next_at = 0, problem = '', sent_at = $2 WHERE person_id = $1",
        )
        .bind(person.0)
        .bind(now.0),
        Some((problem, next)) => sqlx::query(
            "UPDATE webhooks SET failures = failures + 1, next_at = $2, problem = $3 WHERE person_id = $1",
        )
        .bind(person.0)
        .bind(next.0)
        .bind(problem),
    };
    query.execute(db).await?;
    Ok(())
}

/// Removes a person's webhook.
pub async fn remove_webhook(db: &mut Connection, person: PersonId) -> Result<()> {
    sqlx::query("DELETE FROM webhooks WHERE person_id = $1").bind(person.0).execute(db).await?;
    Ok(())
}
