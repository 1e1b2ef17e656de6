//! Tables `jobs` and `job_events`: jobs as the cluster last reported them, and the changes of state that were seen.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, JobRowId, PersonId};

/// A job as it is stored: plain words and numbers, which the `jobs` module interprets.
#[derive(Debug, Clone, PartialEq, Default, sqlx::FromRow)]
pub struct StoredJobRow {
    /// The row's id; 0 if it is not stored yet.
    pub id: i64,
    pub person_id: i64,
    pub cluster_id: i64,
    /// The job ID; for an array task, that of the array.
    pub number: i64,
    /// The array task's index; -1 for none.
    pub task: i64,
    /// Slurm's raw job ID.
    pub raw: i64,
    /// Array tasks that are pending together.
    pub tasks: String,
    /// The user name on the cluster.
    pub user: String,
    pub name: String,
    /// Slurm's state.
    pub state: String,
    /// Slurm's reason for the state.
    pub reason: String,
    pub account: String,
    pub partition: String,
    pub qos: String,
    pub submitted_at: Option<i64>,
    /// When it became eligible to run.
    pub eligible_at: Option<i64>,
    /// When it started or is expected to.
    pub start_at: Option<i64>,
    /// When it ended or must end.
    pub end_at: Option<i64>,
    /// Time limit; -1 for none.
    pub limit_minutes: Option<i64>,
    pub cpus: i64,
    pub nodes: i64,
    pub memory_mb: Option<i64>,
    /// For example `v100:2,:1`.
    pub gpus: String,
    pub node_list: String,
    pub priority: i64,
    /// Slurm's dependency string.
    pub dependency: String,
    /// How often it was requeued.
    pub restarts: i64,
    /// Seconds in which it was suspended.
    pub suspended_s: i64,
    pub exit_code: Option<i64>,
    pub exit_signal: Option<i64>,
    /// The working directory.
    pub work_dir: String,
    /// The command that submitted it.
    pub submit_line: String,
    /// The numeric ID of the user who cancelled it.
    pub cancelled_by: String,
    pub is_over: bool,
    /// Whether the accounting has confirmed its end.
    pub is_settled: bool,
    /// When the portal first saw it.
    pub first_seen_at: i64,
    /// When the cluster last reported it.
    pub seen_at: i64,
}

/// A change of state that was seen.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct JobEvent {
    pub at: UnixTime,
    /// Slurm's new state.
    pub state: String,
    pub detail: String,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, person_id, cluster_id, number, task, raw, tasks, user, name, state, reason, account, partition,
                    qos, submitted_at, eligible_at, start_at, end_at, limit_minutes, cpus, nodes, memory_mb, gpus,
                    node_list, priority, dependency, restarts, exit_code, exit_signal, work_dir, submit_line,
                    cancelled_by, is_over, is_settled, first_seen_at, seen_at, suspended_s FROM jobs ",
            $rest
        )
    };
}

/// Saves a job, new or changed, and returns its row id.
pub async fn save(db: &mut DbConnection, row: &StoredJobRow) -> Result<JobRowId> {
    scalar_one!(
        db,
        "INSERT INTO jobs (person_id, cluster_id, number, task, raw, tasks, user, name, state, reason, account,
                           partition, qos, submitted_at, eligible_at, start_at, end_at, limit_minutes, cpus, nodes,
                           memory_mb, gpus, node_list, priority, dependency, restarts, exit_code, exit_signal, work_dir,
                           submit_line, cancelled_by, is_over, is_settled, first_seen_at, seen_at,
                           suspended_s)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
                 $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36)
         ON CONFLICT (person_id, cluster_id, number, task) DO UPDATE SET
             raw = $5, tasks = $6, user = $7, name = $8, state = $9, reason = $10, account = $11, partition = $12,
             qos = $13, submitted_at = $14, eligible_at = $15, start_at = $16, end_at = $17, limit_minutes = $18,
             cpus = $19, nodes = $20, memory_mb = $21, gpus = $22, node_list = $23, priority = $24, dependency = $25,
             restarts = $26, exit_code = $27, exit_signal = $28, work_dir = $29, submit_line = $30, cancelled_by = $31,
             is_over = $32, is_settled = $33, seen_at = $35, suspended_s = $36
         RETURNING id",
        row.{
            person_id, cluster_id, number, task, raw, tasks, user, name, state, reason, account, partition, qos,
            submitted_at, eligible_at, start_at, end_at, limit_minutes, cpus, nodes, memory_mb, gpus, node_list,
            priority, dependency, restarts, exit_code, exit_signal, work_dir, submit_line, cancelled_by, is_over,
            is_settled, first_seen_at, seen_at, suspended_s
        }
    )
}

/// Removes a job's row: the pending rest of an array whose tasks have all started.
pub async fn remove(db: &mut DbConnection, id: JobRowId) -> Result<()> {
    execute!(db, "DELETE FROM jobs WHERE id = $1", [id])
}

/// A person's jobs on a cluster that are not over, and those that ended since the given time.
pub async fn list_current(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    ended_since: UnixTime,
    most: i64,
) -> Result<Vec<StoredJobRow>> {
    fetch_all!(
        db,
        select!(
            "WHERE person_id = $1 AND cluster_id = $2 AND (is_over = 0 OR end_at >= $3)
             ORDER BY is_over, end_at DESC LIMIT $4"
        ),
        [person, cluster, ended_since, most]
    )
}

/// One of a person's jobs.
pub async fn find(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    number: i64,
    task: i64,
) -> Result<Option<StoredJobRow>> {
    fetch_optional!(
        db,
        select!("WHERE person_id = $1 AND cluster_id = $2 AND number = $3 AND task = $4"),
        [person, cluster, number, task]
    )
}

/// Whether any job of a person on a cluster is known.
pub async fn has_any(db: &mut DbConnection, person: PersonId, cluster: ClusterId) -> Result<bool> {
    let found: Option<i64> =
        scalar_optional!(db, "SELECT 1 FROM jobs WHERE person_id = $1 AND cluster_id = $2 LIMIT 1", [person, cluster])?;
    Ok(found.is_some())
}

/// Which of these numbers are a person's jobs on a cluster.
pub async fn list_known_numbers(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    numbers: &[u64],
) -> Result<Vec<i64>> {
    scalar_all!(
        db,
        "SELECT DISTINCT number FROM json_each($3) AS wanted
         JOIN jobs ON person_id = $1 AND cluster_id = $2 AND number = wanted.value",
        [person, cluster, numbers_json(numbers)]
    )
}

/// When the next job of a person began in this folder after that time; not one of the job with this number.
pub async fn find_next_start(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    (work_dir, number): (&str, u64),
    after: UnixTime,
) -> Result<Option<UnixTime>> {
    scalar_one!(
        db,
        "SELECT min(start_at) FROM jobs
         WHERE person_id = $1 AND cluster_id = $2 AND number <> $3 AND work_dir = $4 AND start_at >= $5
           AND state <> 'PENDING'",
        [person, cluster, i64::try_from(number).unwrap_or(i64::MAX), work_dir, after]
    )
}

/// The rows of an array, its pending rest first.
pub async fn list_array_tasks(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    number: i64,
) -> Result<Vec<StoredJobRow>> {
    fetch_all!(
        db,
        select!("WHERE person_id = $1 AND cluster_id = $2 AND number = $3 ORDER BY task"),
        [person, cluster, number]
    )
}

/// A cluster whose jobs are in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryCluster {
    pub cluster: ClusterId,
    /// Leaves out jobs that are also stored for this cluster: another entry for the same Slurm cluster.
    pub unless_in: Option<ClusterId>,
}

/// Filter for the job history.
#[derive(Debug, Clone, Default)]
pub struct JobHistorySearch {
    /// Only these clusters.
    pub clusters: Vec<HistoryCluster>,
    /// Only this state; empty for all.
    pub state: String,
    /// Only this account; empty for all.
    pub account: String,
    /// Text in name, job ID or folder; empty for all.
    pub text: String,
}

macro_rules! history_filter {
    () => {
        "WHERE person_id = $1 AND is_over = 1
           AND EXISTS (SELECT 1 FROM json_each($2) AS wanted
                       WHERE wanted.value ->> 0 = jobs.cluster_id
                         AND NOT EXISTS (SELECT 1 FROM jobs AS twin
                                         WHERE twin.person_id = jobs.person_id AND twin.cluster_id = wanted.value ->> 1
                                           AND twin.number = jobs.number AND twin.task = jobs.task))
           AND ($3 = '' OR state = $3) AND ($4 = '' OR account = $4)
           AND ($5 = '' OR name LIKE $5 ESCAPE '\\' OR work_dir LIKE $5 ESCAPE '\\' OR number LIKE $5 ESCAPE '\\') "
    };
}

/// Tasks of an array that are in the same state.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct StoredTaskCount {
    pub cluster_id: i64,
    pub number: i64,
    pub state: String,
    /// Array tasks that were pending together; each such row counts all of them.
    pub tasks: String,
    pub is_over: bool,
    pub row_count: i64,
}

/// A person's finished jobs, latest first, and how many there are. An array is one of them: its task that ended last.
pub async fn search_history(
    db: &mut DbConnection,
    person: PersonId,
    search: &JobHistorySearch,
    offset: i64,
    most: i64,
) -> Result<(Vec<StoredJobRow>, i64)> {
    let pattern = like_pattern(&search.text);
    let clusters = clusters_json(&search.clusters);
    let rows = fetch_all!(
        db,
        concat!(
            select!(""),
            // The other columns of an aggregate with max() come from the row that has the maximum.
            "JOIN (SELECT id AS latest_id, max(end_at) AS latest_end FROM jobs ",
            history_filter!(),
            "GROUP BY cluster_id, number ORDER BY latest_end DESC, latest_id DESC LIMIT $6 OFFSET $7)
             ON latest_id = id ORDER BY latest_end DESC, latest_id DESC"
        ),
        [person, &clusters, &search.state, &search.account, &pattern, most, offset]
    )?;
    let count = scalar_one!(
        db,
        concat!("SELECT count(*) FROM (SELECT 1 FROM jobs ", history_filter!(), "GROUP BY cluster_id, number)"),
        [person, &clusters, &search.state, &search.account, &pattern]
    )?;
    Ok((rows, count))
}

/// Counts the tasks of arrays by state. Each array is given as its cluster and its number.
pub async fn count_array_tasks(
    db: &mut DbConnection,
    person: PersonId,
    arrays: &[(i64, i64)],
) -> Result<Vec<StoredTaskCount>> {
    let pairs: Vec<String> = arrays.iter().map(|(cluster, number)| format!("[{cluster},{number}]")).collect();
    fetch_all!(
        db,
        "SELECT cluster_id, number, state, tasks, is_over, count(*) AS row_count
         FROM json_each($2) AS wanted
         JOIN jobs ON person_id = $1 AND cluster_id = wanted.value ->> 0 AND number = wanted.value ->> 1
         GROUP BY cluster_id, number, state, tasks, is_over",
        [person, format!("[{}]", pairs.join(","))]
    )
}

/// The clusters as a list for `json_each`: `[[3,null],[5,3]]`.
fn clusters_json(clusters: &[HistoryCluster]) -> String {
    let pairs = clusters.iter().map(|one| match one.unless_in {
        Some(first) => format!("[{},{}]", one.cluster, first),
        None => format!("[{},null]", one.cluster),
    });
    format!("[{}]", pairs.collect::<Vec<_>>().join(","))
}

/// Numbers as a list for `json_each`.
fn numbers_json(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    format!("[{}]", numbers.join(","))
}

/// A LIKE pattern that finds the text anywhere; empty for no text.
fn like_pattern(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}

pub async fn add_event(db: &mut DbConnection, id: JobRowId, event: &JobEvent) -> Result<()> {
    execute!(
        db,
        "INSERT INTO job_events (job_id, at, state, detail) VALUES ($1, $2, $3, $4)",
        [id, event.at, &event.state, &event.detail]
    )
}

/// The changes that were seen, in order.
pub async fn list_events(db: &mut DbConnection, id: JobRowId) -> Result<Vec<JobEvent>> {
    fetch_all!(db, "SELECT at, state, detail FROM job_events WHERE job_id = $1 ORDER BY at, rowid LIMIT 200", [id])
}

/// Deletes jobs that ended before then.
pub async fn delete_ended_before(db: &mut DbConnection, ended_before: UnixTime) -> Result<u64> {
    affected_rows!(db, "DELETE FROM jobs WHERE is_over = 1 AND end_at < $1", [ended_before])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{DisplayName, HostName};
    use crate::store::clusters::ClusterSettings;
    use crate::store::{self, Store};

    #[tokio::test]
    async fn history_leaves_out_jobs_that_another_entry_has_too() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("p.db")).await.unwrap();
        let mut tx = store.write().await.unwrap();
        let title: DisplayName = "Own".parse().unwrap();
        let host: HostName = "login.example.org".parse().unwrap();
        let person = store::people::add(&mut tx, &"alice".parse().unwrap(), &title, false, UnixTime(1)).await.unwrap();
        let mut clusters = Vec::new();
        for slug in ["first", "second", "third"] {
            let what = ClusterSettings { title: &title, host: &host, port: 22, site: "" };
            clusters.push(store::clusters::add(&mut tx, &slug.parse().unwrap(), &what, UnixTime(1)).await.unwrap());
        }
        for (cluster, number) in [(0, 10), (1, 10), (1, 11), (2, 12)] {
            let cluster_id = clusters[cluster].0;
            let row =
                StoredJobRow { person_id: person.0, cluster_id, number, task: -1, is_over: true, ..Default::default() };
            save(&mut tx, &row).await.unwrap();
        }
        let wanted = |cluster, unless_in| HistoryCluster { cluster, unless_in };
        let search = JobHistorySearch {
            clusters: vec![wanted(clusters[0], None), wanted(clusters[1], Some(clusters[0]))],
            ..JobHistorySearch::default()
        };
        let (rows, count) = search_history(&mut tx, person, &search, 0, 10).await.unwrap();
        let mut found: Vec<_> = rows.iter().map(|row| (row.cluster_id, row.number)).collect();
        found.sort_unstable();
        assert_eq!((found, count), (vec![(clusters[0].0, 10), (clusters[1].0, 11)], 2));
        let none = search_history(&mut tx, person, &JobHistorySearch::default(), 0, 10).await.unwrap();
        assert_eq!(none, (Vec::new(), 0), "no cluster, no jobs");

        // An array is one entry, by its last task; what still runs is counted, but isn't history.
        let tasks =
            [(0, "COMPLETED", 50, true), (1, "FAILED", 70, true), (2, "COMPLETED", 60, true), (3, "RUNNING", 0, false)];
        for (task, state, end, is_over) in tasks {
            let (state, end_at) = (state.to_owned(), Some(end));
            let (person_id, cluster_id) = (person.0, clusters[2].0);
            let row =
                StoredJobRow { person_id, cluster_id, number: 20, task, state, end_at, is_over, ..Default::default() };
            save(&mut tx, &row).await.unwrap();
        }
        let clusters_of = vec![wanted(clusters[2], None)];
        let search = JobHistorySearch { clusters: clusters_of.clone(), ..JobHistorySearch::default() };
        let (rows, count) = search_history(&mut tx, person, &search, 0, 10).await.unwrap();
        let found: Vec<_> = rows.iter().map(|row| (row.number, row.task)).collect();
        assert_eq!((found, count), (vec![(20, 1), (12, -1)], 2));
        let search =
            JobHistorySearch { clusters: clusters_of, state: "COMPLETED".to_owned(), ..JobHistorySearch::default() };
        let (rows, _) = search_history(&mut tx, person, &search, 0, 10).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.task).collect::<Vec<_>>(), [2]);
        let counted = count_array_tasks(&mut tx, person, &[(clusters[2].0, 20)]).await.unwrap();
        let mut counted: Vec<_> = counted.iter().map(|one| (one.state.as_str(), one.row_count)).collect();
        counted.sort_unstable();
        assert_eq!(counted, [("COMPLETED", 2), ("FAILED", 1), ("RUNNING", 1)]);
    }
}
