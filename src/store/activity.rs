//! Table `activity`: who did what, to what, when and from where.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::PersonId;

/// An entry to write.
#[derive(Debug)]
pub struct NewActivityEntry<'a> {
    /// The person who did it, if someone was signed in.
    pub actor: Option<PersonId>,
    /// Their name at the time.
    pub actor_name: &'a str,
    /// The action, as a stable code.
    pub action: &'static str,
    /// The person it was done to.
    pub person: Option<PersonId>,
    /// The name of what it was done to.
    pub subject: &'a str,
    pub detail: &'a str,
    pub address: &'a str,
}

#[derive(Debug, Clone, sqlx::FromRow)]
pub struct ActivityEntry {
    /// Grows with time.
    pub id: i64,
    pub at: UnixTime,
    pub actor_name: String,
    /// True if nobody was signed in: the name is what someone typed, or the command line.
    pub is_stranger: bool,
    /// The action, as a stable code.
    pub action: String,
    /// The name of what it was done to.
    pub subject: String,
    pub detail: String,
    pub address: String,
}

impl ActivityEntry {
    /// Whether someone with a guest link did it.
    pub fn is_guest(&self) -> bool {
        self.is_stranger && (self.action.ends_with(".visited") || self.action == "drop-box.uploaded")
    }
}

#[derive(Debug, Default)]
pub struct ActivityFilter {
    /// Only what this person did, or what was done to them.
    pub about: Option<PersonId>,
    pub action: Option<String>,
    /// Only entries in which a name, the detail or the address contains this.
    pub text: Option<String>,
    /// Only entries from then on.
    pub since: Option<UnixTime>,
    /// Only entries before then.
    pub until: Option<UnixTime>,
    /// Only entries with a smaller number (for paging).
    pub before: Option<i64>,
    /// At most this many.
    pub limit: i64,
}

pub async fn add(db: &mut DbConnection, entry: &NewActivityEntry<'_>, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "INSERT INTO activity (at, actor_id, actor_name, action, person_id, subject, detail, address)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        [now, entry.actor, entry.actor_name, entry.action, entry.person, entry.subject, entry.detail, entry.address]
    )
}

/// Lists entries, newest first.
pub async fn list(db: &mut DbConnection, filter: &ActivityFilter) -> Result<Vec<ActivityEntry>> {
    fetch_all!(
        db,
        "SELECT id, at, actor_name, actor_id IS NULL AS is_stranger, action, subject, detail, address FROM activity
         WHERE ($1 IS NULL OR actor_id = $1 OR person_id = $1)
           AND ($2 IS NULL OR action = $2)
           AND ($3 IS NULL OR instr(lower(actor_name || ' ' || subject || ' ' || detail || ' ' || address), lower($3)) > 0)
           AND ($4 IS NULL OR id < $4)
           AND ($5 IS NULL OR at >= $5)
           AND ($6 IS NULL OR at < $6)
         ORDER BY id DESC LIMIT $7",
        [
            filter.about,
            filter.action.as_deref(),
            filter.text.as_deref(),
            filter.before,
            filter.since,
            filter.until,
            filter.limit
        ]
    )
}

/// Whether this actor did this to this subject since a given time.
pub async fn was_recorded(
    db: &mut DbConnection,
    actor: PersonId,
    action: &str,
    (subject, detail): (&str, &str),
    since: UnixTime,
) -> Result<bool> {
    scalar_one!(
        db,
        "SELECT EXISTS (SELECT 1 FROM activity
         WHERE actor_id = $1 AND action = $2 AND subject = $3 AND detail = $4 AND at >= $5)",
        [actor, action, subject, detail, since]
    )
}

/// When the newest entry was written: a clock that shows an earlier time is wrong.
pub async fn newest_at(db: &mut DbConnection) -> Result<Option<UnixTime>> {
    scalar_one!(db, "SELECT max(at) FROM activity")
}

/// Deletes entries older than `until`.
pub async fn sweep(db: &mut DbConnection, until: UnixTime) -> Result<u64> {
    affected_rows!(db, "DELETE FROM activity WHERE at < $1", [until])
}
