//! People with keys and clusters to connect to.

use std::sync::Arc;

use portolan::app::{App, AppState};
use portolan::auth::activity::Actor;
use portolan::clock::Clock;
use portolan::config::Config;
use portolan::domain::{ClusterId, ConnectionRole, PersonId};
use portolan::sites::Site;
use portolan::ssh::{CallUrgency, ClusterConnection, CommandOutput, RemoteCommand, RunCommandError};
use portolan::store;
use portolan::store::connections::ConnectionKey;

use super::app::TestApp;
use super::cluster::Cluster;
use super::program::{Installation, PROGRAM};
use super::server::{Server, site_at};
use super::wait::wait_for;
use super::{Client, Page};

impl TestApp {
    /// Adds the test cluster's port of this kind under its own name, with its host keys pinned.
    pub async fn add_cluster(&self, kind: &str) {
        self.add_site(&site_at(kind, Cluster::get().port(kind))).await;
    }

    /// Adds a site, with the test cluster's host keys for all its hosts.
    pub async fn add_site(&self, site: &Site) {
        let mut pins = Vec::new();
        for line in Cluster::get().host_keys() {
            for hop in ["login", "jump", "robot"] {
                pins.push((hop.to_owned(), line.clone()));
            }
        }
        self.add_pinned(site, &pins).await;
    }

    /// Adds a test's own server as a cluster.
    pub async fn add_server(&self, slug: &str, server: &Server) {
        self.add_pinned(&server.site(slug), &server.pins()).await;
    }

    /// Adds a site with these host keys.
    pub async fn add_pinned(&self, site: &Site, pins: &[(String, String)]) {
        self.app.connections.add_cluster(&Actor::command_line(), site, pins).await.unwrap();
    }

    /// Which line is meant: someone's to the login host of a cluster.
    pub async fn connection_key(&self, name: &str, slug: &str) -> ConnectionKey {
        let person = PersonId(self.person_id(name).await);
        ConnectionKey { person, cluster: self.cluster_id(slug).await, role: ConnectionRole::Login }
    }

    /// The number of a cluster.
    pub async fn cluster_id(&self, slug: &str) -> ClusterId {
        let mut db = self.app.store.read().await.unwrap();
        store::clusters::find_by_slug(&mut db, slug).await.unwrap().unwrap().id
    }

    /// Someone's connection that stands.
    pub async fn connection(&self, name: &str, slug: &str) -> Arc<ClusterConnection> {
        self.app.connections.connection(self.connection_key(name, slug).await).unwrap()
    }

    /// What the database knows of someone's line.
    pub async fn stored_connection(&self, name: &str, slug: &str) -> store::connections::StoredConnection {
        let key = self.connection_key(name, slug).await;
        let mut db = self.app.store.read().await.unwrap();
        store::connections::get(&mut db, key).await.unwrap().unwrap()
    }

    /// How often someone's portal has tried to connect to a cluster.
    pub async fn tries(&self, name: &str, slug: &str) -> i64 {
        let key = self.connection_key(name, slug).await;
        let mut db = self.app.store.read().await.unwrap();
        store::connections::count_attempts(&mut db, key, super::app::START.plus(-1)).await.unwrap().0
    }

    /// The folders that connections have, or have left behind.
    pub fn run_folders(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.app.config.run_dir()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Installation {
    /// Its data, opened by this process while the program does not run.
    pub async fn open(&self) -> AppState {
        let config = Config { data_dir: self.data(), program: PROGRAM.into(), ..Config::default() };
        App::open(config, Clock::system()).await.unwrap()
    }

    /// Adds a test's own server as a cluster, under one name or more.
    pub async fn add_clusters(&self, server: &Server, slugs: &[&str]) {
        let app = self.open().await;
        for slug in slugs {
            let (site, pins) = (server.site(slug), server.pins());
            app.connections.add_cluster(&Actor::command_line(), &site, &pins).await.unwrap();
        }
        app.store.close().await;
    }
}

/// Runs a command on someone's connection.
pub async fn run(
    line: &Arc<ClusterConnection>,
    program: &'static str,
    args: &[&str],
) -> Result<CommandOutput, RunCommandError> {
    line.run(RemoteCommand::new(program).args(args.iter().copied()), CallUrgency::Interactive).await
}

impl Client {
    /// Makes a key and gives its public half.
    pub async fn make_key(&self) -> String {
        let made = self.post("/account/key", &[]).await;
        assert_eq!(made.status, 303, "{}", made.text());
        self.get("/account/key").await.select_text("figure.code code")
    }

    /// Makes a key, has it installed on the cluster for `user`, and names that user on a cluster of the portal.
    pub async fn prepare(&self, slug: &str, user: &str) {
        let line = self.make_key().await;
        Cluster::get().install_key(user, &line);
        self.name_user(slug, user).await;
    }

    /// The same on a test's own server.
    pub async fn prepare_on(&self, server: &Server, slug: &str, user: &str) {
        server.allow(user, &self.make_key().await);
        self.name_user(slug, user).await;
    }

    /// Names the user on a cluster of the portal.
    pub async fn name_user(&self, slug: &str, user: &str) {
        let named = self.post(&format!("/clusters/{slug}/user"), &[("user", user)]).await;
        assert_eq!(named.status, 303, "{}", named.text());
    }

    /// Waits until the panel of a cluster satisfies a condition.
    pub async fn wait_for_panel(&self, slug: &str, what: &str, holds: impl Fn(&Page) -> bool) -> Page {
        wait_for(&format!("{slug}: {what}"), async || {
            let panel = self.get(&format!("/clusters/{slug}/panel")).await;
            if holds(&panel) { Ok(panel) } else { Err(panel.text().to_owned()) }
        })
        .await
    }

    /// Connects where nothing is asked.
    pub async fn connect(&self, slug: &str) {
        let begun = self.post(&format!("/clusters/{slug}/connect"), &[]).await;
        assert_eq!(begun.status, 303, "{}", begun.text());
        self.wait_until_connected(slug).await;
    }

    /// Waits until a connection stands.
    pub async fn wait_until_connected(&self, slug: &str) -> Page {
        self.wait_for_panel(slug, "connected", |panel| panel.text().contains("panel-up")).await
    }

    /// Waits until the server asks.
    pub async fn wait_until_asked(&self, slug: &str, words: &str) -> Page {
        self.wait_for_panel(slug, words, |panel| panel.text().contains(words)).await
    }

    /// Answers the question that the panel shows.
    pub async fn answer(&self, slug: &str, panel: &Page, answer: &str) {
        let number = panel.attribute("input[name=number]", "value");
        let form = [("number", number.as_str()), ("answer", answer), ("purpose", "connect")];
        let answered = self.post(&format!("/clusters/{slug}/answer"), &form).await;
        assert_eq!(answered.status, 303, "{}", answered.text());
    }
}
