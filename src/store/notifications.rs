//! Table `notifications`: what people are told about their jobs.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{DashboardId, GroupId, JobRowId, NotificationId, PersonId};

/// Something a person is told.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Notification {
    pub id: NotificationId,
    /// `started`, `ended`, `never`; `webhook-off`, `dashboard-idle` and `group` are about no job.
    pub kind: String,
    pub at: UnixTime,
    /// Whether it was seen in the portal.
    pub is_read: bool,
    pub number: i64,
    /// Which task of it; -1 for none.
    pub task: i64,
    /// The name of the job or dashboard.
    pub name: String,
    /// Slurm's word for the job when this was noticed.
    pub state: String,
    /// The cluster's short name.
    pub slug: String,
    pub cluster: String,
    /// The dashboard it is about.
    pub dashboard_id: Option<DashboardId>,
    /// The group it is about.
    pub group_id: Option<GroupId>,
    /// About a group: the sentence.
    pub text: String,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT n.id, n.kind, n.at, n.read_at IS NOT NULL AS is_read, n.state, coalesce(j.number, 0) AS number,
                    coalesce(j.task, -1) AS task, coalesce(j.name, b.title, '') AS name, coalesce(c.slug, '') AS slug,
                    coalesce(c.title, '') AS cluster, n.dashboard_id, n.group_id, n.text
             FROM notifications n LEFT JOIN jobs j ON j.id = n.job_id LEFT JOIN dashboards b ON b.id = n.dashboard_id
                  LEFT JOIN clusters c ON c.id = coalesce(j.cluster_id, b.cluster_id) ",
            $rest
        )
    };
}

/// Something new about a job.
#[derive(Debug, Clone, Copy)]
pub struct NewJobNotification<'a> {
    pub person: PersonId,
    pub job: JobRowId,
    /// `started`, `ended` or `never`.
    pub kind: &'a str,
    /// Slurm's word for the job now.
    pub state: &'a str,
    /// How often the job was put back.
    pub restarts: i64,
    /// Only kept for the list: neither counted as new nor sent.
    pub is_quiet: bool,
}

/// Adds a notice. A person is told once: a second one only corrects how the job ended. It waits to be sent only if
/// the person has an address for that.
pub async fn add(db: &mut DbConnection, new: &NewJobNotification<'_>, now: UnixTime) -> Result<()> {
    sqlx::query(
        "INSERT INTO notifications (person_id, job_id, kind, state, restarts, at, read_at, sent_at)
         VALUES ($1, $2, $3, $4, $5, $6, iif($7, $6, NULL),
                 iif($7 OR NOT EXISTS (SELECT 1 FROM webhooks WHERE person_id = $1 AND stopped_at IS NULL), $6, NULL))
         ON CONFLICT (job_id, kind, restarts) DO UPDATE SET state = $4",
    )
    .bind(new.person)
    .bind(new.job)
    .bind(new.kind)
    .bind(new.state)
    .bind(new.restarts)
    .bind(now)
    .bind(new.is_quiet)
    .execute(db)
    .await?;
    Ok(())
}

/// Tells a person that nothing is sent to their address any more.
pub async fn add_webhook_off(db: &mut DbConnection, person: PersonId, now: UnixTime) -> Result<()> {
    sqlx::query(
        "INSERT INTO notifications (person_id, kind, at, sent_at) VALUES ($1, 'webhook-off', $2, $2)",
    )
    .bind(person)
    .bind(now)
    .execute(db)
    .await?;
    Ok(())
}

/// Tells a person that a dashboard of theirs was stopped because nobody looked at it.
pub async fn add_dashboard_idle(
    db: &mut DbConnection,
    person: PersonId,
    dashboard: DashboardId,
    now: UnixTime,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO notifications (person_id, dashboard_id, kind, at, sent_at) VALUES ($1, $2, 'dashboard-idle', $3, $3)",
    )
    .bind(person)
    .bind(dashboard)
    .bind(now)
    .execute(db)
    .await?;
    Ok(())
}

/// Tells a person something about a group that they lead. Only in the portal: others' names are in it.
pub async fn add_group(
    db: &mut DbConnection,
    person: PersonId,
    group: GroupId,
    text: &str,
    now: UnixTime,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO notifications (person_id, group_id, kind, text, at, sent_at) VALUES ($1, $2, 'group', $3, $4, $4)",
    )
    .bind(person)
    .bind(group)
    .bind(text)
    .bind(now)
    .execute(db)
    .await?;
    Ok(())
}

/// The latest notices of a person.
pub async fn list_latest(
    db: &mut DbConnection,
    person: PersonId,
    most: i64,
) -> Result<Vec<Notification>> {
    Ok(sqlx::query_as(select!("WHERE n.person_id = $1 ORDER BY n.id DESC LIMIT $2"))
        .bind(person)
        .bind(most)
        .fetch_all(db)
        .await?)
}

/// Notices after one that a page has shown already.
pub async fn list_after(
    db: &mut DbConnection,
    person: PersonId,
    last: NotificationId,
    most: i64,
) -> Result<Vec<Notification>> {
    Ok(sqlx::query_as(select!("WHERE n.person_id = $1 AND n.id > $2 ORDER BY n.id LIMIT $3"))
        .bind(person)
        .bind(last)
        .bind(most)
        .fetch_all(db)
        .await?)
}

/// How many a person has not seen, and the last one there is.
pub async fn count_unread(
    db: &mut DbConnection,
    person: PersonId,
) -> Result<(i64, NotificationId)> {
    Ok(sqlx::query_as(
        "SELECT (SELECT count(*) FROM notifications WHERE person_id = $1 AND read_at IS NULL),
                (SELECT coalesce(max(id), 0) FROM notifications WHERE person_id = $1)",
    )
    .bind(person)
    .fetch_one(db)
    .await?)
}

/// Notes that a person has seen all up to one.
pub async fn mark_read(
    db: &mut DbConnection,
    person: PersonId,
    up_to: NotificationId,
    now: UnixTime,
) -> Result<()> {
    sqlx::query(
        "UPDATE notifications SET read_at = $3 WHERE person_id = $1 AND id <= $2 AND read_at IS NULL",
    )
    .bind(person)
    .bind(up_to)
    .bind(now)
    .execute(db)
    .await?;
    Ok(())
}

/// Notices that still have to be sent to the person's address, the oldest first.
pub async fn list_unsent(
    db: &mut DbConnection,
    person: PersonId,
    most: i64,
) -> Result<Vec<Notification>> {
    Ok(sqlx::query_as(select!(
        "WHERE n.person_id = $1 AND n.sent_at IS NULL ORDER BY n.id LIMIT $2"
    ))
    .bind(person)
    .bind(most)
    .fetch_all(db)
    .await?)
}

/// Notes that notices up to one were sent, or need not be any more.
pub async fn mark_sent(
    db: &mut DbConnection,
    person: PersonId,
    up_to: NotificationId,
    now: UnixTime,
) -> Result<()> {
    sqlx::query(
        "UPDATE notifications SET sent_at = $3 WHERE person_id = $1 AND id <= $2 AND sent_at IS NULL",
    )
    .bind(person)
    .bind(up_to)
    .bind(now)
    .execute(db)
    .await?;
    Ok(())
}

pub async fn delete_before(db: &mut DbConnection, before: UnixTime) -> Result<u64> {
    let done =
        sqlx::query("DELETE FROM notifications WHERE at < $1").bind(before).execute(db).await?;
    Ok(done.rows_affected())
}
