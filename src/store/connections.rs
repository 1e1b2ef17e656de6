//! Tables `connections` and `connection_attempts`: people's connections to clusters, and every attempt to open one.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, ConnectionRole, PersonId, RemoteUser, SshKeyId};

/// Identifies a connection: the person, the cluster, and which of its hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionKey {
    pub person: PersonId,
    pub cluster: ClusterId,
    /// The login node or the automation host.
    pub role: ConnectionRole,
}

/// A person's connection to a cluster.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct StoredConnection {
    pub person_id: PersonId,
    pub cluster_id: ClusterId,
    role: String,
    pub remote_user: String,
    /// Whether the portal should keep it open.
    pub is_wanted: bool,
    /// Whether the server asked anything at the last login.
    pub has_prompts: bool,
    pub connected_at: Option<UnixTime>,
    #[sqlx(flatten)]
    pub problem: ConnectionProblem,
    /// The discovered facts, as JSON.
    pub discovered: String,
    /// When facts were last discovered.
    pub discovered_at: Option<UnixTime>,
}

/// Why a connection is not open.
#[derive(Debug, Clone, PartialEq, Eq, Default, sqlx::FromRow)]
pub struct ConnectionProblem {
    /// A code of `ssh::SshLoginError`, `lost`, `lost-silent` or `idle`; empty if there is no problem.
    #[sqlx(rename = "problem_code")]
    pub code: String,
    /// The same in words.
    #[sqlx(rename = "problem")]
    pub words: String,
    /// What the server printed.
    #[sqlx(rename = "problem_notices")]
    pub notices: String,
}

impl ConnectionProblem {
    pub fn new(code: &str, words: impl Into<String>) -> Self {
        Self { code: code.to_owned(), words: words.into(), notices: String::new() }
    }

    pub const fn is_none(&self) -> bool {
        self.code.is_empty()
    }
}

impl StoredConnection {
    pub fn key(&self) -> ConnectionKey {
        let role = self.role.parse().unwrap_or(ConnectionRole::Login);
        ConnectionKey { person: self.person_id, cluster: self.cluster_id, role }
    }
}

/// Where and how often a key was used.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct SshKeyUse {
    pub cluster: String,
    /// How often it opened a connection there.
    pub times: i64,
    pub last_at: UnixTime,
}

macro_rules! columns {
    () => {
        "SELECT person_id, cluster_id, role, remote_user, is_wanted, has_prompts, connected_at, problem, problem_code,
                problem_notices, discovered, discovered_at FROM connections "
    };
}

/// Saves a person's user name on a cluster; facts discovered under another name are dropped.
pub async fn save_user(db: &mut DbConnection, key: ConnectionKey, user: &RemoteUser, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "INSERT INTO connections (person_id, cluster_id, role, remote_user, created_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (person_id, cluster_id, role) DO UPDATE
         SET remote_user = $4, is_wanted = 0, has_prompts = 0, problem = '', problem_code = '',
             problem_notices = '', discovered = '', discovered_at = NULL
         WHERE remote_user <> $4",
        [key.person, key.cluster, key.role.as_str(), user.as_str(), now]
    )
}

pub async fn get(db: &mut DbConnection, key: ConnectionKey) -> Result<Option<StoredConnection>> {
    fetch_optional!(
        db,
        concat!(columns!(), "WHERE person_id = $1 AND cluster_id = $2 AND role = $3"),
        [key.person, key.cluster, key.role.as_str()]
    )
}

pub async fn list_for_person(db: &mut DbConnection, person: PersonId) -> Result<Vec<StoredConnection>> {
    fetch_all!(db, concat!(columns!(), "WHERE person_id = $1 ORDER BY cluster_id, role"), [person])
}

/// All connections to keep open: those of people whose account is on, to clusters that may be connected to.
pub async fn list_wanted(db: &mut DbConnection) -> Result<Vec<StoredConnection>> {
    fetch_all!(
        db,
        concat!(
            columns!(),
            "WHERE is_wanted = 1
             AND person_id IN (SELECT id FROM people WHERE disabled_at IS NULL)
             AND cluster_id IN (SELECT id FROM clusters WHERE retired_at IS NULL)"
        )
    )
}

/// Records that a connection is open under this user name, and whether its server asked anything. False if the person
/// has another user name there by now.
pub async fn mark_connected(
    db: &mut DbConnection,
    key: ConnectionKey,
    user: &str,
    has_prompts: bool,
    now: UnixTime,
) -> Result<bool> {
    affects_row!(
        db,
        "UPDATE connections SET is_wanted = 1, has_prompts = $4, connected_at = $5, problem = '', problem_code = '',
                problem_notices = ''
         WHERE person_id = $1 AND cluster_id = $2 AND role = $3 AND remote_user = $6",
        [key.person, key.cluster, key.role.as_str(), has_prompts, now, user]
    )
}

/// Records why a connection is not open.
pub async fn set_problem(
    db: &mut DbConnection,
    key: ConnectionKey,
    problem: &ConnectionProblem,
    is_wanted: bool,
) -> Result<()> {
    execute!(
        db,
        "UPDATE connections SET problem = $4, is_wanted = is_wanted AND $5, problem_code = $6,
                problem_notices = $7
         WHERE person_id = $1 AND cluster_id = $2 AND role = $3",
        [key.person, key.cluster, key.role.as_str(), &problem.words, is_wanted, &problem.code, &problem.notices]
    )
}

/// Records that the server asks for input, so that the person must be there to log in.
pub async fn mark_asks(db: &mut DbConnection, key: ConnectionKey) -> Result<()> {
    execute!(
        db,
        "UPDATE connections SET has_prompts = 1 WHERE person_id = $1 AND cluster_id = $2 AND role = $3",
        [key.person, key.cluster, key.role.as_str()]
    )
}

/// Saves the discovered facts.
pub async fn save_discovered(db: &mut DbConnection, key: ConnectionKey, discovered: &str, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "UPDATE connections SET discovered = $4, discovered_at = $5 WHERE person_id = $1 AND cluster_id = $2 AND role = $3",
        [key.person, key.cluster, key.role.as_str(), discovered, now]
    )
}

/// Keeps none of a person's connections open from now on; the connection pool closes them.
pub async fn clear_wanted(db: &mut DbConnection, person: PersonId) -> Result<()> {
    execute!(db, "UPDATE connections SET is_wanted = 0 WHERE person_id = $1", [person])
}

/// Deletes a person's connections to a cluster: user names, discovered facts and problems. Attempts stay, because the
/// hourly limit counts them. False if there were none.
pub async fn remove_account(db: &mut DbConnection, person: PersonId, cluster: ClusterId) -> Result<bool> {
    let removed =
        affected_rows!(db, "DELETE FROM connections WHERE person_id = $1 AND cluster_id = $2", [person, cluster])?;
    Ok(removed > 0)
}

/// Records the start of a connect attempt.
pub async fn begin_attempt(db: &mut DbConnection, key: ConnectionKey, now: UnixTime) -> Result<i64> {
    scalar_one!(
        db,
        "INSERT INTO connection_attempts (at, person_id, cluster_id, role) VALUES ($1, $2, $3, $4) RETURNING id",
        [now, key.person, key.cluster, key.role.as_str()]
    )
}

/// Records the end of an attempt, and which key was accepted.
pub async fn finish_attempt(db: &mut DbConnection, id: i64, outcome: &str, used: Option<SshKeyId>) -> Result<()> {
    execute!(
        db,
        "UPDATE connection_attempts SET outcome = $2, key_id = (SELECT id FROM ssh_keys WHERE id = $3) WHERE id = $1",
        [id, outcome, used]
    )
}

/// Counts the attempts on a cluster since a given time: by this person, and by everyone.
pub async fn count_attempts(db: &mut DbConnection, key: ConnectionKey, since: UnixTime) -> Result<(i64, i64)> {
    fetch_one!(
        db,
        "SELECT count(*) FILTER (WHERE person_id = $1), count(*) FROM connection_attempts WHERE cluster_id = $2 AND at > $3",
        [key.person, key.cluster, since]
    )
}

pub async fn list_key_uses(db: &mut DbConnection, key: SshKeyId) -> Result<Vec<SshKeyUse>> {
    fetch_all!(
        db,
        "SELECT c.title AS cluster, count(*) AS times, max(u.at) AS last_at FROM connection_attempts u
         JOIN clusters c ON c.id = u.cluster_id
         WHERE u.key_id = $1 AND u.outcome IN ('up', 'tested') GROUP BY c.id ORDER BY last_at DESC",
        [key]
    )
}

/// The clusters where a key has opened a connection, the latest first.
pub async fn list_key_clusters(db: &mut DbConnection, key: SshKeyId) -> Result<Vec<ClusterId>> {
    scalar_all!(
        db,
        "SELECT cluster_id FROM connection_attempts WHERE key_id = $1 AND outcome IN ('up', 'tested')
         GROUP BY cluster_id ORDER BY max(at) DESC",
        [key]
    )
}

/// Whether a key has ever opened a connection.
pub async fn has_connected(db: &mut DbConnection, key: SshKeyId) -> Result<bool> {
    scalar_one!(
        db,
        "SELECT EXISTS (SELECT 1 FROM connection_attempts WHERE key_id = $1 AND outcome IN ('up', 'tested'))",
        [key]
    )
}

/// Deletes attempts older than `until`.
pub async fn sweep_attempts(db: &mut DbConnection, until: UnixTime) -> Result<u64> {
    affected_rows!(db, "DELETE FROM connection_attempts WHERE at < $1", [until])
}

/// A Slurm cluster that someone found behind an entry of the portal.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct SlurmIdentity {
    pub cluster_id: ClusterId,
    /// Slurm's own name of the cluster.
    pub name: String,
    pub controller: String,
}

/// The Slurm clusters that people found when they connected, each once.
pub async fn list_slurm_identities(db: &mut DbConnection) -> Result<Vec<SlurmIdentity>> {
    fetch_all!(
        db,
        "SELECT DISTINCT cluster_id, name, controller FROM (
           SELECT cluster_id, json_extract(facts, '$.slurm_cluster') AS name,
                  json_extract(facts, '$.slurm_controller') AS controller
           FROM (SELECT cluster_id, CASE WHEN json_valid(discovered) THEN discovered END AS facts FROM connections))
         WHERE name IS NOT NULL AND controller IS NOT NULL ORDER BY cluster_id, name, controller"
    )
}
