//! Table `webhooks`: where else a person's notifications are sent, and whether that works.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::PersonId;

/// Where else a person's notifications are sent.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Webhook {
    pub person_id: PersonId,
    pub url: Vec<u8>,
    /// The secret that signs messages, sealed.
    pub secret: Vec<u8>,
    /// For example `started,ended,never`.
    pub kinds: String,
    /// Failures since the last success.
    pub failures: i64,
    /// Since when deliveries fail.
    pub failing_since: Option<UnixTime>,
    pub next_at: UnixTime,
    /// The last error, in words.
    pub problem: String,
    /// When a message was last delivered.
    pub sent_at: Option<UnixTime>,
    /// When the portal gave up.
    pub stopped_at: Option<UnixTime>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT person_id, url, secret, kinds, failures, failing_since, next_at, problem, sent_at, stopped_at
             FROM webhooks ",
            $rest
        )
    };
}

pub async fn get(db: &mut DbConnection, person: PersonId) -> Result<Option<Webhook>> {
    fetch_optional!(db, select!("WHERE person_id = $1"), [person])
}

/// Webhooks of people with an enabled account that have something to send and may be tried now.
pub async fn list_due(db: &mut DbConnection, now: UnixTime, most: i64) -> Result<Vec<Webhook>> {
    fetch_all!(
        db,
        select!(
            "WHERE next_at <= $1 AND stopped_at IS NULL
               AND EXISTS (SELECT 1 FROM notifications n WHERE n.person_id = webhooks.person_id AND n.sent_at IS NULL)
               AND person_id IN (SELECT id FROM people WHERE disabled_at IS NULL)
             ORDER BY next_at LIMIT $2"
        ),
        [now, most]
    )
}

/// Saves a person's webhook and resets its failures.
pub async fn save(
    db: &mut DbConnection,
    person: PersonId,
    (url, secret): (&[u8], &[u8]),
    kinds: &str,
    now: UnixTime,
) -> Result<()> {
    execute!(
        db,
        "INSERT INTO webhooks (person_id, url, secret, kinds, created_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (person_id) DO UPDATE
         SET url = $2, secret = $3, kinds = $4, failures = 0, failing_since = NULL, next_at = 0, problem = '',
             stopped_at = NULL",
        [person, url, secret, kinds, now]
    )
}

/// Records a delivery, and the earliest time for the next one.
pub async fn mark_sent(db: &mut DbConnection, person: PersonId, next: UnixTime, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "UPDATE webhooks SET failures = 0, failing_since = NULL, next_at = $2, problem = '', sent_at = $3
         WHERE person_id = $1",
        [person, next, now]
    )
}

/// Records a failed delivery and its reason, and the earliest time for the next try.
pub async fn record_failure(
    db: &mut DbConnection,
    person: PersonId,
    problem: &str,
    next: UnixTime,
    now: UnixTime,
) -> Result<()> {
    execute!(
        db,
        "UPDATE webhooks SET failures = failures + 1, failing_since = coalesce(failing_since, $4), next_at = $2,
                             problem = $3
         WHERE person_id = $1",
        [person, next, problem, now]
    )
}

/// Gives up on a webhook.
pub async fn stop(db: &mut DbConnection, person: PersonId, now: UnixTime) -> Result<()> {
    execute!(db, "UPDATE webhooks SET stopped_at = $2 WHERE person_id = $1", [person, now])
}

pub async fn remove(db: &mut DbConnection, person: PersonId) -> Result<()> {
    execute!(db, "DELETE FROM webhooks WHERE person_id = $1", [person])
}
