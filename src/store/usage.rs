//! Tables `usage_sources`, `usage_days`, `usage_names`: what has been read of accounts, for whom, and how far.

pub mod daily;
pub mod jobs;

use std::collections::HashMap;

use super::{DbConnection, Result};
use crate::clock::{Day, UnixTime};
use crate::domain::{ClusterId, GroupId, PersonId, UsageSourceId};

/// Whose figures these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UsageSourceOwner {
    /// A group's, read with a view of the whole account; other people's names are kept.
    Group(GroupId),
    /// One person's, whose view may cover only a part of the account.
    Person(PersonId),
}

/// What has been read of one account on one cluster.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct UsageSource {
    pub id: UsageSourceId,
    group_id: Option<GroupId>,
    person_id: Option<PersonId>,
    pub cluster_id: ClusterId,
    /// The account, as Slurm names it.
    pub account: String,
    /// When someone last viewed it.
    pub viewed_at: UnixTime,
    /// Why the last read failed; empty if it did not.
    pub problem: String,
    /// What the command printed then; may be empty.
    pub problem_output: String,
}

impl UsageSource {
    /// Whose it is; none never happens, because the table checks it.
    pub fn owner(&self) -> Option<UsageSourceOwner> {
        self.group_id.map(UsageSourceOwner::Group).or(self.person_id.map(UsageSourceOwner::Person))
    }
}

/// Someone over whose connection a group's usage may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct UsageReaderCandidate {
    pub group_id: GroupId,
    pub person_id: PersonId,
    pub is_pi: bool,
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

/// How much is stored of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, sqlx::FromRow)]
pub struct StoredUsageDay {
    /// Rows of `usage_daily`.
    pub sums: i64,
    /// Jobs that ended on this day.
    pub ended_jobs: i64,
    /// Jobs listed by name, and those of them whose CPU time was measured.
    pub runs: i64,
    pub measured_runs: i64,
    /// Whether it was settled, but read by a version that counted less.
    pub is_outdated: bool,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, group_id, person_id, cluster_id, account, viewed_at, problem, problem_output
             FROM usage_sources ",
            $rest
        )
    };
}

/// The sources of a group or a person on a cluster.
pub async fn list_sources(
    db: &mut DbConnection,
    owner: UsageSourceOwner,
    cluster: ClusterId,
) -> Result<Vec<UsageSource>> {
    match owner {
        UsageSourceOwner::Group(group) => {
            fetch_all!(db, select!("WHERE group_id = $1 AND cluster_id = $2 ORDER BY account"), [group, cluster])
        }
        UsageSourceOwner::Person(person) => {
            fetch_all!(db, select!("WHERE person_id = $1 AND cluster_id = $2 ORDER BY account"), [person, cluster])
        }
    }
}

/// The sources to keep reading: those viewed since a given time, and those of groups for which a PI has usage alerts.
pub async fn list_wanted(db: &mut DbConnection, since: UnixTime) -> Result<Vec<UsageSource>> {
    fetch_all!(
        db,
        select!(
            "WHERE viewed_at >= $1 OR EXISTS (
                SELECT 1 FROM usage_alerts u
                JOIN memberships m ON m.group_id = u.group_id AND m.person_id = u.person_id AND m.role = 'pi'
                JOIN group_accounts a ON a.group_id = u.group_id AND a.cluster_id = usage_sources.cluster_id
                WHERE u.group_id = usage_sources.group_id OR u.person_id = usage_sources.person_id)
             ORDER BY cluster_id, id"
        ),
        [since]
    )
}

/// Everyone over whose connection a group's usage may be read: the members of all groups that have sources.
pub async fn list_reader_candidates(db: &mut DbConnection) -> Result<Vec<UsageReaderCandidate>> {
    fetch_all!(
        db,
        "SELECT m.group_id, m.person_id, m.role = 'pi' AS is_pi FROM memberships m
         JOIN people p ON p.id = m.person_id AND p.disabled_at IS NULL
         WHERE m.group_id IN (SELECT group_id FROM usage_sources WHERE group_id IS NOT NULL)
         ORDER BY m.group_id, m.person_id"
    )
}

/// Opens a source, or records that it was viewed.
pub async fn open_source(
    db: &mut DbConnection,
    owner: UsageSourceOwner,
    cluster: ClusterId,
    account: &str,
    now: UnixTime,
) -> Result<UsageSourceId> {
    match owner {
        UsageSourceOwner::Group(group) => scalar_one!(
            db,
            "INSERT INTO usage_sources (group_id, cluster_id, account, viewed_at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (group_id, cluster_id, account) DO UPDATE SET viewed_at = $4 RETURNING id",
            [group, cluster, account, now]
        ),
        UsageSourceOwner::Person(person) => scalar_one!(
            db,
            "INSERT INTO usage_sources (person_id, cluster_id, account, viewed_at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (person_id, cluster_id, account) DO UPDATE SET viewed_at = $4 RETURNING id",
            [person, cluster, account, now]
        ),
    }
}

/// Deletes sources that nobody has viewed for long, and those of accounts that no longer belong to the group, or to a
/// group of the person. Slurm's names for an account begin with the account's name.
pub async fn delete_unwanted(db: &mut DbConnection, before: UnixTime) -> Result<u64> {
    affected_rows!(
        db,
        "DELETE FROM usage_sources WHERE viewed_at < $1 OR NOT EXISTS (
           SELECT 1 FROM group_accounts a
           WHERE a.cluster_id = usage_sources.cluster_id
             AND (a.account = usage_sources.account
                  OR substr(usage_sources.account, 1, length(a.account) + 1) = a.account || '_')
             AND (a.group_id = usage_sources.group_id OR EXISTS (
                 SELECT 1 FROM memberships m
                 WHERE m.group_id = a.group_id AND m.person_id = usage_sources.person_id)))",
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

/// How much is stored of a day; nothing, if it was never read.
pub async fn get_stored_day(db: &mut DbConnection, source: UsageSourceId, day: Day) -> Result<StoredUsageDay> {
    fetch_one!(
        db,
        "SELECT (SELECT count(*) FROM usage_daily WHERE source_id = $1 AND day = $2) AS sums,
                (SELECT coalesce(sum(jobs), 0) FROM usage_daily WHERE source_id = $1 AND day = $2) AS ended_jobs,
                (SELECT count(*) FROM usage_jobs WHERE source_id = $1 AND day = $2) AS runs,
                (SELECT count(*) FROM usage_jobs WHERE source_id = $1 AND day = $2 AND cpu_s >= 0) AS measured_runs,
                EXISTS (SELECT 1 FROM usage_days
                        WHERE source_id = $1 AND day = $2 AND is_outdated = 1) AS is_outdated",
        [source, day]
    )
}

/// Records that a day was read again, and that what is stored of it stays.
pub async fn keep_day(db: &mut DbConnection, source: UsageSourceId, read: UsageDayReadRow) -> Result<()> {
    execute!(
        db,
        "UPDATE usage_days SET read_at = $3, is_final = $4, is_outdated = 0 WHERE source_id = $1 AND day = $2",
        [source, read.day, read.read_at, read.is_final]
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
         ON CONFLICT (source_id, day) DO UPDATE SET read_at = $3, is_final = $4, is_cut = $5, is_outdated = 0",
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

pub async fn get_name(db: &mut DbConnection, id: i64) -> Result<Option<String>> {
    scalar_optional!(db, "SELECT name FROM usage_names WHERE id = $1", [id])
}

pub async fn exists(db: &mut DbConnection, source: UsageSourceId) -> Result<bool> {
    scalar_one!(db, "SELECT EXISTS (SELECT 1 FROM usage_sources WHERE id = $1)", [source])
}

/// Whether anything was ever read for a source.
pub async fn has_days(db: &mut DbConnection, source: UsageSourceId) -> Result<bool> {
    scalar_one!(db, "SELECT EXISTS (SELECT 1 FROM usage_days WHERE source_id = $1)", [source])
}

/// Whether someone's own figures of an account include other people's jobs, which have no names there. `user` is their
/// user name on the cluster.
pub async fn has_seen_others(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    account: &str,
    user: &str,
) -> Result<bool> {
    scalar_one!(
        db,
        "SELECT EXISTS (
           SELECT 1 FROM usage_sources s
           JOIN usage_daily d ON d.source_id = s.id
           LEFT JOIN usage_names n ON n.id = d.user_id
           WHERE s.person_id = $1 AND s.cluster_id = $2 AND s.account = $3 AND coalesce(n.name, '') <> $4)",
        [person, cluster, account, user]
    )
}
