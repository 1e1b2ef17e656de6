//! Tables `usage_sources`, `usage_days`, `usage_names`: what people have read of accounts, and how far.

pub mod daily;
pub mod jobs;

use std::collections::HashMap;

use super::{DbConnection, Result};
use crate::clock::{Day, UnixTime};
use crate::domain::{ClusterId, PersonId, UsageSourceId};

/// What one person has read of one account.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct UsageSource {
    pub id: UsageSourceId,
    pub person_id: PersonId,
    pub cluster_id: ClusterId,
    /// The account, as Slurm names it.
    pub account: String,
    /// Whether other people's names are kept.
    pub has_names: bool,
    /// When someone last viewed it.
    pub viewed_at: UnixTime,
    /// Why the last read failed; empty if it did not.
    pub problem: String,
    /// What the command printed then; may be empty.
    pub problem_output: String,
}

/// A day that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct UsageDayReadRow {
    pub day: Day,
    pub read_at: UnixTime,
    /// Whether it is never read again.
    pub is_final: bool,
    /// Whether there were more jobs than could be read.
    pub is_cut: bool,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, person_id, cluster_id, account, has_names, viewed_at, problem, problem_output
             FROM usage_sources ",
            $rest
        )
    };
}

/// A person's sources on a cluster.
pub async fn list_sources(db: &mut DbConnection, person: PersonId, cluster: ClusterId) -> Result<Vec<UsageSource>> {
    fetch_all!(db, select!("WHERE person_id = $1 AND cluster_id = $2 ORDER BY account"), [person, cluster])
}

/// The sources to keep reading: those viewed since a given time, and those of PIs with usage alerts for their group.
pub async fn list_wanted(db: &mut DbConnection, since: UnixTime) -> Result<Vec<UsageSource>> {
    fetch_all!(
        db,
        select!(
            "WHERE viewed_at >= $1 OR (has_names AND EXISTS (
                SELECT 1 FROM usage_alerts u JOIN group_accounts a ON a.group_id = u.group_id
                JOIN memberships m ON m.group_id = u.group_id AND m.person_id = u.person_id AND m.role = 'pi'
                WHERE u.person_id = usage_sources.person_id AND a.cluster_id = usage_sources.cluster_id))
             ORDER BY person_id, cluster_id, account"
        ),
        [since]
    )
}

/// Opens a source, or records that it was viewed. If it should keep names and does not, or the reverse, it starts
/// over.
pub async fn open_source(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    account: &str,
    has_names: bool,
    now: UnixTime,
) -> Result<UsageSourceId> {
    execute!(
        db,
        "DELETE FROM usage_sources WHERE person_id = $1 AND cluster_id = $2 AND account = $3 AND has_names <> $4",
        [person, cluster, account, has_names]
    )?;
    scalar_one!(
        db,
        "INSERT INTO usage_sources (person_id, cluster_id, account, has_names, viewed_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (person_id, cluster_id, account) DO UPDATE SET viewed_at = $5 RETURNING id",
        [person, cluster, account, has_names, now]
    )
}

/// Deletes sources that nobody has viewed for long, those of accounts that no longer belong to a group of the reader,
/// and those with names whose reader is no PI of these groups. Slurm's names for an account begin with the account's
/// name.
pub async fn delete_unwanted(db: &mut DbConnection, before: UnixTime) -> Result<u64> {
    affected_rows!(
        db,
        "DELETE FROM usage_sources WHERE viewed_at < $1 OR NOT EXISTS (
           SELECT 1 FROM group_accounts a JOIN memberships m ON m.group_id = a.group_id
           WHERE m.person_id = usage_sources.person_id AND a.cluster_id = usage_sources.cluster_id
             AND (m.role = 'pi' OR NOT usage_sources.has_names)
             AND (a.account = usage_sources.account
                  OR substr(usage_sources.account, 1, length(a.account) + 1) = a.account || '_'))",
        [before]
    )
}

/// Records why a read failed and what the command printed; both empty if it went well.
pub async fn set_problem(db: &mut DbConnection, source: UsageSourceId, problem: &str, output: &str) -> Result<()> {
    execute!(
        db,
        "UPDATE usage_sources SET problem = $2, problem_output = $3
         WHERE id = $1 AND (problem <> $2 OR problem_output <> $3)",
        [source, problem, output]
    )
}

/// The days of a source that were read, from the given day on, in order.
pub async fn list_days(db: &mut DbConnection, source: UsageSourceId, from: Day) -> Result<Vec<UsageDayReadRow>> {
    fetch_all!(
        db,
        "SELECT day, read_at, is_final, is_cut FROM usage_days WHERE source_id = $1 AND day >= $2 ORDER BY day",
        [source, from]
    )
}

/// Records that a day was read and drops what was known of it. The new rows follow in the same transaction.
pub async fn replace_day(db: &mut DbConnection, source: UsageSourceId, read: UsageDayReadRow) -> Result<()> {
    for sql in [
        "DELETE FROM usage_daily WHERE source_id = $1 AND day = $2",
        "DELETE FROM usage_jobs WHERE source_id = $1 AND day = $2",
    ] {
        execute!(db, sql, [source, read.day])?;
    }
    execute!(
        db,
        "INSERT INTO usage_days (source_id, day, read_at, is_final, is_cut) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (source_id, day) DO UPDATE SET read_at = $3, is_final = $4, is_cut = $5",
        [source, read.day, read.read_at, read.is_final, read.is_cut]
    )
}

/// Deletes days before the given one: figures are kept for some years, not for ever.
pub async fn sweep(db: &mut DbConnection, before: Day) -> Result<u64> {
    let mut gone = 0;
    for sql in [
        "DELETE FROM usage_daily WHERE day < $1",
        "DELETE FROM usage_jobs WHERE day < $1",
        "DELETE FROM usage_days WHERE day < $1",
    ] {
        gone += affected_rows!(db, sql, [before])?;
    }
    Ok(gone)
}

/// The ids of names; new names are added. The empty name is 0.
pub async fn intern_names<'a>(
    db: &mut DbConnection,
    names: impl Iterator<Item = &'a str>,
) -> Result<HashMap<&'a str, i64>> {
    let mut ids: HashMap<&str, i64> = HashMap::from([("", 0)]);
    for name in names {
        if ids.contains_key(name) {
            continue;
        }
        let id: i64 = scalar_one!(
            db,
            "INSERT INTO usage_names (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = name RETURNING id",
            [name]
        )?;
        ids.insert(name, id);
    }
    Ok(ids)
}

/// Names by id.
pub async fn list_names(db: &mut DbConnection, source: UsageSourceId) -> Result<HashMap<i64, String>> {
    let rows: Vec<(i64, String)> = fetch_all!(
        db,
        "SELECT id, name FROM usage_names WHERE id IN (SELECT user_id FROM usage_daily WHERE source_id = $1
         UNION SELECT kind_id FROM usage_daily WHERE source_id = $1)",
        [source]
    )?;
    Ok(rows.into_iter().collect())
}

pub async fn exists(db: &mut DbConnection, source: UsageSourceId) -> Result<bool> {
    scalar_one!(db, "SELECT EXISTS (SELECT 1 FROM usage_sources WHERE id = $1)", [source])
}
