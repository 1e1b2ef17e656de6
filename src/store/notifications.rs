//! Table `notifications`: what people are notified about.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, DashboardId, GroupId, JobRowId, NotificationId, PersonId};

/// A notification for a person.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Notification {
    pub id: NotificationId,
    /// `started`, `ended`, `never`; `webhook-off`, `dashboard-idle`, `group` and `transfer` are not about a job.
    pub kind: String,
    pub at: UnixTime,
    pub is_read: bool,
    pub number: i64,
    /// The array task's index; -1 for none.
    pub task: i64,
    /// The name of the job or dashboard.
    pub name: String,
    /// Slurm's state of the job at the time.
    pub state: String,
    pub slug: String,
    pub cluster: String,
    pub dashboard_id: Option<DashboardId>,
    pub group_id: Option<GroupId>,
    /// The sentence, if it is about a group or a transfer.
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

/// A notification to add about a job.
#[derive(Debug, Clone, Copy)]
pub struct NewJobNotification<'a> {
    pub person: PersonId,
    pub job: JobRowId,
    /// `started`, `ended` or `never`.
    pub kind: &'a str,
    /// Slurm's state of the job now.
    pub state: &'a str,
    /// How often the job was requeued.
    pub restarts: i64,
    /// For the list only: neither counted as unread nor sent.
    pub is_quiet: bool,
}

/// Adds a notification. A person is notified once: a second one only corrects how the job ended. It is queued for
/// sending only if the person has a webhook.
pub async fn add(db: &mut DbConnection, new: &NewJobNotification<'_>, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "INSERT INTO notifications (person_id, job_id, kind, state, restarts, at, read_at, sent_at)
         VALUES ($1, $2, $3, $4, $5, $6, iif($7, $6, NULL),
                 iif($7 OR NOT EXISTS (SELECT 1 FROM webhooks WHERE person_id = $1 AND stopped_at IS NULL), $6, NULL))
         ON CONFLICT (job_id, kind, restarts) DO UPDATE SET state = $4",
        [new.person, new.job, new.kind, new.state, new.restarts, now, new.is_quiet]
    )
}

/// Notifies a person that their webhook is off.
pub async fn add_webhook_off(db: &mut DbConnection, person: PersonId, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "INSERT INTO notifications (person_id, kind, at, sent_at) VALUES ($1, 'webhook-off', $2, $2)",
        [person, now]
    )
}

/// Notifies a person that a dashboard of theirs was stopped because nobody viewed it.
pub async fn add_dashboard_idle(
    db: &mut DbConnection,
    person: PersonId,
    dashboard: DashboardId,
    now: UnixTime,
) -> Result<()> {
    execute!(
        db,
        "INSERT INTO notifications (person_id, dashboard_id, kind, at, sent_at) VALUES ($1, $2, 'dashboard-idle', $3, $3)",
        [person, dashboard, now]
    )
}

/// Notifies a PI about their group. It is queued for sending only if the person has a webhook; whether that gets
/// notifications about groups, which may contain other people's names, is the person's choice.
pub async fn add_group(
    db: &mut DbConnection,
    person: PersonId,
    group: GroupId,
    text: &str,
    now: UnixTime,
) -> Result<()> {
    execute!(
        db,
        "INSERT INTO notifications (person_id, group_id, kind, text, at, sent_at) 
         VALUES ($1, $2, 'group', $3, $4,
                 iif(EXISTS (SELECT 1 FROM webhooks WHERE person_id = $1 AND stopped_at IS NULL), NULL, $4))",
        [person, group, text, now]
    )
}

/// Notifies a person that a transfer of theirs ended.
pub async fn add_transfer(
    db: &mut DbConnection,
    person: PersonId,
    state: &str,
    text: &str,
    now: UnixTime,
) -> Result<()> {
    execute!(
        db,
        "INSERT INTO notifications (person_id, kind, state, text, at, sent_at) VALUES ($1, 'transfer', $2, $3, $4, $4)",
        [person, state, text, now]
    )
}

/// Notifies a person that a guest uploaded something, unless they have yet to read the same about this drop-box: however
/// many files arrive, there is one notification.
pub async fn add_drop_box(
    db: &mut DbConnection,
    person: PersonId,
    state: &str,
    text: &str,
    now: UnixTime,
) -> Result<bool> {
    affects_row!(
        db,
        "INSERT INTO notifications (person_id, kind, state, text, at, sent_at)
         SELECT $1, 'transfer', $2, $3, $4, $4
         WHERE NOT EXISTS (SELECT 1 FROM notifications WHERE person_id = $1 AND read_at IS NULL AND kind = 'transfer'
                                                             AND state = $2 AND text = $3)",
        [person, state, text, now]
    )
}

/// A person's latest notifications.
pub async fn list_latest(db: &mut DbConnection, person: PersonId, most: i64) -> Result<Vec<Notification>> {
    fetch_all!(db, select!("WHERE n.person_id = $1 ORDER BY n.id DESC LIMIT $2"), [person, most])
}

/// The notifications after one that a page already shows.
pub async fn list_after(
    db: &mut DbConnection,
    person: PersonId,
    last: NotificationId,
    most: i64,
) -> Result<Vec<Notification>> {
    fetch_all!(db, select!("WHERE n.person_id = $1 AND n.id > $2 ORDER BY n.id LIMIT $3"), [person, last, most])
}

/// A person's latest unread notifications.
pub async fn list_unread(db: &mut DbConnection, person: PersonId, most: i64) -> Result<Vec<Notification>> {
    fetch_all!(db, select!("WHERE n.person_id = $1 AND n.read_at IS NULL ORDER BY n.id DESC LIMIT $2"), [person, most])
}

/// The id of a person's last notification; 0 if they have none.
pub async fn last_id(db: &mut DbConnection, person: PersonId) -> Result<NotificationId> {
    scalar_one!(db, "SELECT coalesce(max(id), 0) FROM notifications WHERE person_id = $1", [person])
}

/// Marks all notifications up to one as read.
pub async fn mark_read(db: &mut DbConnection, person: PersonId, up_to: NotificationId, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "UPDATE notifications SET read_at = $3 WHERE person_id = $1 AND id <= $2 AND read_at IS NULL",
        [person, up_to, now]
    )
}

/// Notifications that still have to be sent to the person's webhook, oldest first.
pub async fn list_unsent(db: &mut DbConnection, person: PersonId, most: i64) -> Result<Vec<Notification>> {
    fetch_all!(db, select!("WHERE n.person_id = $1 AND n.sent_at IS NULL ORDER BY n.id LIMIT $2"), [person, most])
}

/// Marks notifications up to one as sent, or as no longer worth sending.
pub async fn mark_sent(db: &mut DbConnection, person: PersonId, up_to: NotificationId, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "UPDATE notifications SET sent_at = $3 WHERE person_id = $1 AND id <= $2 AND sent_at IS NULL",
        [person, up_to, now]
    )
}

pub async fn delete_before(db: &mut DbConnection, before: UnixTime) -> Result<u64> {
    affected_rows!(db, "DELETE FROM notifications WHERE at < $1", [before])
}

/// Deletes a person's notifications about jobs on a cluster.
pub async fn remove_for_cluster(db: &mut DbConnection, person: PersonId, cluster: ClusterId) -> Result<()> {
    execute!(
        db,
        "DELETE FROM notifications WHERE person_id = $1
           AND job_id IN (SELECT id FROM jobs WHERE person_id = $1 AND cluster_id = $2)",
        [person, cluster]
    )
}
