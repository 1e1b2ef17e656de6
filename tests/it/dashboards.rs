//! Dashboards in the portal: their pages in every state, the form of a new one, who sees and does what, links.

mod browser;
mod forms;
mod links;
mod rights;
mod states;

use portolan::cluster::DiscoveredFacts;
use portolan::cluster::discovered_facts::{DiscoveredUserFolder, FolderKind, SubmitAccount};
use portolan::store;

use crate::support::app::START;
use crate::support::server::site_at;
use crate::support::{Client, Page, TestApp};

/// A host key, so that there can be a cluster; nobody connects to it.
const HOST_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINfWrr1i597zvwGC8fHEx8KXa4aGkFm6BJk/3bOELP8w";
/// Markup in everything that people can name.
const EVIL: &str = "/<b id=evil>\"'&</b>";

/// A run of a dashboard, as it is put into the database. `number`: of its job.
#[derive(Default, Clone, Copy)]
struct Run<'a> {
    state: &'a str,
    stop: &'a str,
    end: &'a str,
    stage: &'a str,
    message: &'a str,
    folder: &'a str,
    number: Option<i64>,
    begin_at: Option<i64>,
    started_at: Option<i64>,
    ready_at: Option<i64>,
    woken_by: Option<i64>,
}

impl TestApp {
    /// A cluster that is never reached, and what someone's place there is like.
    pub async fn give_cluster_account(&self, who: &Client, name: &str) {
        let mut db = self.app.store.read().await.unwrap();
        let is_there = store::clusters::find_by_slug(&mut db, "key").await.unwrap().is_some();
        drop(db);
        if !is_there {
            self.add_pinned(&site_at("key", 9), &[("login".to_owned(), HOST_KEY.to_owned())]).await;
        }
        who.name_user("key", name).await;
        let path = format!("/scratch/{name}");
        let folder = DiscoveredUserFolder { label: FolderKind::Scratch, path, writable: true, group: None };
        let account = |name: &str| SubmitAccount { name: name.to_owned(), ..SubmitAccount::default() };
        let learnt = DiscoveredFacts {
            user: Some(name.to_owned()),
            home: Some(format!("/home/{name}")),
            folders: vec![folder],
            accounts: vec![account("def-one"), account("def-two")],
            ..DiscoveredFacts::default()
        };
        let learnt = serde_json::to_string(&learnt).unwrap();
        let key = self.connection_key(name, "key").await;
        let mut tx = self.app.store.write().await.unwrap();
        store::connections::save_discovered(&mut tx, key, &learnt, self.clock.now()).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    /// A dashboard of someone, without a run.
    async fn put_board(&self, name: &str, title: &str, places: &[&str]) -> i64 {
        let person = self.person_id(name).await;
        let cluster = self.cluster_id("key").await.0;
        let places = serde_json::to_string(places).unwrap();
        let mut tx = self.app.store.write().await.unwrap();
        let id = sqlx::query_scalar(
            "INSERT INTO dashboards (person_id, cluster_id, kind, title, places, minutes, form, created_at)
             VALUES ($1, $2, 'tensorboard', $3, $4, 60, hex(randomblob(8)), $5) RETURNING id",
        )
        .bind(person)
        .bind(cluster)
        .bind(title)
        .bind(places)
        .bind(START.0)
        .fetch_one(&mut *tx)
        .await
        .unwrap();
        store::commit(tx).await.unwrap();
        id
    }

    /// Runs SQL on a dashboard, `$1`.
    async fn on_dashboard(&self, board: i64, sql: &'static str) {
        let mut tx = self.app.store.write().await.unwrap();
        sqlx::query(sql).bind(board).execute(&mut *tx).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    /// Replaces the runs of a dashboard by this one. A job that is known keeps it as it is: the queue is not looked at.
    async fn put_run(&self, board: i64, run: Run<'_>) {
        let now = self.clock.now().0;
        let mut tx = self.app.store.write().await.unwrap();
        let submission: i64 = sqlx::query_scalar(
            "INSERT INTO submissions (person_id, cluster_id, token, form, state, script, job_name, folders, carrier,
                                      number, created_at, ready_at, settled_at)
             SELECT person_id, cluster_id, hex(randomblob(8)), hex(randomblob(8)), 'accepted', '', 'board', '[]',
                    'comment', $2, $3, $3, $3 FROM dashboards WHERE id = $1 RETURNING id",
        )
        .bind(board)
        .bind(run.number.unwrap_or(4711))
        .bind(now)
        .fetch_one(&mut *tx)
        .await
        .unwrap();
        sqlx::query("DELETE FROM dashboard_runs WHERE dashboard_id = $1").bind(board).execute(&mut *tx).await.unwrap();
        let over_at = Some(now).filter(|_| run.state == "over");
        sqlx::query(
            "INSERT INTO dashboard_runs (dashboard_id, name, folder, submission_id, woken_by, state, stop, end, message,
                                     minutes, begin_at, asked_at, started_at, ready_at, over_at, stage)
             VALUES ($1, hex(randomblob(8)), $13, $2, $3, $4, $5, $6, $7, 60, $8, $9, $10, $11, $12, $14)",
        )
        .bind(board)
        .bind(submission)
        .bind(run.woken_by)
        .bind(run.state)
        .bind(run.stop)
        .bind(run.end)
        .bind(run.message)
        .bind(run.begin_at)
        .bind(now)
        .bind(run.started_at)
        .bind(run.ready_at)
        .bind(over_at)
        .bind(run.folder)
        .bind(run.stage)
        .execute(&mut *tx)
        .await
        .unwrap();
        store::commit(tx).await.unwrap();
    }

    /// Everything the database says of dashboards and links, to be compared.
    async fn dashboards_as_stored(&self) -> String {
        type Board = (i64, String, Option<i64>, i64, Option<i64>);
        let mut db = self.app.store.read().await.unwrap();
        let boards: Vec<Board> =
            sqlx::query_as("SELECT id, title, group_id, wakes_per_day, removed_at FROM dashboards ORDER BY id")
                .fetch_all(&mut *db)
                .await
                .unwrap();
        let runs: Vec<(i64, i64, String)> =
            sqlx::query_as("SELECT id, dashboard_id, stop FROM dashboard_runs ORDER BY id")
                .fetch_all(&mut *db)
                .await
                .unwrap();
        let links: Vec<(i64, String, Option<i64>)> =
            sqlx::query_as("SELECT id, label, revoked_at FROM guest_links ORDER BY id")
                .fetch_all(&mut *db)
                .await
                .unwrap();
        format!("{boards:?}\n{runs:?}\n{links:?}")
    }
}

/// A form of a new dashboard that is right.
fn form_with<'a>(changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut form = vec![
        ("form", "0123456789abcdef"),
        ("kind", "tensorboard"),
        ("cluster", "key"),
        ("place", "/scratch/max/runs"),
        ("minutes", "60"),
    ];
    for (name, value) in changes {
        form.retain(|(known, _)| known != name);
        form.push((name, value));
    }
    form
}

/// What the page says first.
fn says(page: &Page) -> String {
    assert_eq!(page.status, 200, "{}", page.text());
    page.select_text("#dashboard-live .alert").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words of the buttons in the part that renews itself.
fn buttons(page: &Page) -> Vec<String> {
    let all = page.select_all(
        ".dashboard-actions > a, .dashboard-actions > form > button, .dashboard-actions > details > summary",
    );
    all.into_iter().map(|one| one.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}
