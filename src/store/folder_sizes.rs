//! Table `folder_sizes`: what takes the space in a person's folders on a cluster, as last measured.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, PersonId, RemotePath};

/// How many folders are kept for each person and cluster.
pub const MAX_MEASURED_FOLDERS: i64 = 20;

/// A measured folder, without its report.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct FolderSizesSummaryRow {
    path: String,
    pub measured_at: UnixTime,
    /// Of the file system that it is on.
    pub disk_bytes: Option<i64>,
    pub disk_free_bytes: Option<i64>,
}

impl FolderSizesSummaryRow {
    /// `None` if the row was not written by us.
    pub fn path(&self) -> Option<RemotePath> {
        RemotePath::from_encoded(&self.path).ok()
    }
}

/// A measurement to save.
pub struct NewFolderSizes<'a> {
    pub path: &'a RemotePath,
    pub measured_at: UnixTime,
    pub disk_bytes: Option<i64>,
    pub disk_free_bytes: Option<i64>,
    /// As JSON.
    pub report: &'a str,
}

/// Saves a measurement instead of an earlier one, unless the person has forgotten the cluster meanwhile. If there are too
/// many, the oldest goes.
pub async fn save(db: &mut DbConnection, person: PersonId, cluster: ClusterId, new: &NewFolderSizes<'_>) -> Result<()> {
    execute!(
        db,
        "INSERT INTO folder_sizes (person_id, cluster_id, path, measured_at, disk_bytes, disk_free_bytes, report)
         SELECT $1, $2, $3, $4, $5, $6, $7
         WHERE EXISTS (SELECT 1 FROM connections WHERE person_id = $1 AND cluster_id = $2)
         ON CONFLICT (person_id, cluster_id, path) DO UPDATE
         SET measured_at = $4, disk_bytes = $5, disk_free_bytes = $6, report = $7",
        [person, cluster, new.path.to_encoded(), new.measured_at, new.disk_bytes, new.disk_free_bytes, new.report]
    )?;
    execute!(
        db,
        "DELETE FROM folder_sizes WHERE person_id = $1 AND cluster_id = $2 AND path NOT IN (
             SELECT path FROM folder_sizes WHERE person_id = $1 AND cluster_id = $2
             ORDER BY measured_at DESC, path LIMIT $3)",
        [person, cluster, MAX_MEASURED_FOLDERS]
    )
}

/// The folders of a person on a cluster that were measured.
pub async fn list(db: &mut DbConnection, person: PersonId, cluster: ClusterId) -> Result<Vec<FolderSizesSummaryRow>> {
    fetch_all!(
        db,
        "SELECT path, measured_at, disk_bytes, disk_free_bytes FROM folder_sizes
         WHERE person_id = $1 AND cluster_id = $2",
        [person, cluster]
    )
}

/// The report on a folder, and when it was measured.
pub async fn get_report(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    path: &RemotePath,
) -> Result<Option<(String, UnixTime)>> {
    fetch_optional!(
        db,
        "SELECT report, measured_at FROM folder_sizes WHERE person_id = $1 AND cluster_id = $2 AND path = $3",
        [person, cluster, path.to_encoded()]
    )
}

/// Deletes everything that was measured for a person on a cluster.
pub async fn remove_for_account(db: &mut DbConnection, person: PersonId, cluster: ClusterId) -> Result<()> {
    execute!(db, "DELETE FROM folder_sizes WHERE person_id = $1 AND cluster_id = $2", [person, cluster])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{DisplayName, HostName, RemoteName};
    use crate::store::clusters::ClusterSettings;
    use crate::store::{Store, clusters, commit, connections, people};

    const AT: UnixTime = UnixTime(1_700_000_000);

    async fn save_at(db: &mut DbConnection, id: (PersonId, ClusterId), path: &RemotePath, at: UnixTime) {
        let (disk_bytes, disk_free_bytes) = (Some(10), Some(4));
        let new = NewFolderSizes { path, measured_at: at, disk_bytes, disk_free_bytes, report: "{}" };
        save(db, id.0, id.1, &new).await.unwrap();
    }

    #[tokio::test]
    async fn the_newest_are_kept_until_the_cluster_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("p.db")).await.unwrap();
        let mut tx = store.write().await.unwrap();
        let title: DisplayName = "Own".parse().unwrap();
        let person = people::add(&mut tx, &"alice".parse().unwrap(), &title, false, AT).await.unwrap();
        let other = people::add(&mut tx, &"bob".parse().unwrap(), &title, false, AT).await.unwrap();
        let host: HostName = "login.example.org".parse().unwrap();
        let settings = ClusterSettings { title: &title, host: &host, port: 22, site: "" };
        let cluster = clusters::add(&mut tx, &"own".parse().unwrap(), &settings, AT).await.unwrap();
        let id = (person, cluster);
        let folder = |number: i64| {
            let name = [b"a\xff", number.to_string().as_bytes()].concat();
            RemotePath::root().join(&RemoteName::parse(&name).unwrap())
        };
        save_at(&mut tx, id, &folder(0), AT).await;
        assert!(list(&mut tx, person, cluster).await.unwrap().is_empty(), "no account there");
        let key = connections::ConnectionKey { person, cluster, role: crate::domain::ConnectionRole::Login };
        connections::save_user(&mut tx, key, &"alice1".parse().unwrap(), AT).await.unwrap();
        for number in 0..=MAX_MEASURED_FOLDERS {
            save_at(&mut tx, id, &folder(number), AT.plus(number)).await;
        }
        save_at(&mut tx, id, &folder(5), AT.plus(100)).await;
        commit(tx).await.unwrap();
        let mut db = store.read().await.unwrap();
        let kept = list(&mut db, person, cluster).await.unwrap();
        assert_eq!(i64::try_from(kept.len()).unwrap(), MAX_MEASURED_FOLDERS);
        assert_eq!(get_report(&mut db, person, cluster, &folder(0)).await.unwrap(), None, "the oldest went");
        let report = get_report(&mut db, person, cluster, &folder(5)).await.unwrap();
        assert_eq!(report, Some(("{}".to_owned(), AT.plus(100))));
        assert!(kept.iter().any(|row| row.path() == Some(folder(5)) && row.disk_free_bytes == Some(4)));
        assert_eq!(get_report(&mut db, other, cluster, &folder(5)).await.unwrap(), None, "one person's own");
        drop(db);
        let mut tx = store.write().await.unwrap();
        remove_for_account(&mut tx, person, cluster).await.unwrap();
        assert!(list(&mut tx, person, cluster).await.unwrap().is_empty());
    }
}
