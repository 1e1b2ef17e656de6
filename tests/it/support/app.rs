//! A portal in this process: its own data folder, its own ports, a clock that the test moves.

use std::sync::Arc;
use std::time::Duration;

use portolan::app::{App, AppState};
use portolan::clock::{Clock, UnixTime};
use portolan::config::{
    Config, DashboardOriginSettings, PublicListenerSettings, QueuePace, ReverseProxySettings, SubmissionTimeouts,
    UsageReadPace,
};
use portolan::web::{PortalListeners, PortalState, serve_portal};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{Client, PASSWORD};

/// When the tests begin: 16 November 2026, 09:12 UTC.
pub const START: UnixTime = UnixTime(1_794_820_320);

/// A running portal. Dropping it stops it; it fails the test if the portal had died before.
pub struct TestApp {
    pub app: AppState,
    pub state: PortalState,
    pub clock: Clock,
    pub url: String,
    pub dashboards_url: String,
    pub metrics_url: String,
    server: JoinHandle<anyhow::Result<()>>,
    /// Kept, so that nobody else takes the ports while the portal is restarted.
    sockets: [std::net::TcpListener; 3],
    _data: Arc<tempfile::TempDir>,
}

impl TestApp {
    /// An empty portal: nobody has an account.
    pub async fn start() -> Self {
        Self::start_with(|_| ()).await
    }

    /// An empty portal with other settings.
    pub async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        Self::start_at(Clock::manual(START), change).await
    }

    /// A portal that looks at queues, and in a hurry. Its clock is the machine's, as the cluster's is.
    pub async fn live() -> Self {
        Self::start_at(Clock::system(), hurry).await
    }

    /// An empty portal with this clock and other settings. It looks at no queues by itself, so that tests of
    /// connections count only their own commands.
    pub async fn start_at(clock: Clock, change: impl FnOnce(&mut Config)) -> Self {
        let data = Arc::new(tempfile::tempdir().unwrap());
        let sockets = [0; 3].map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let [portal, boards, metrics] = sockets.each_ref().map(|socket| socket.local_addr().unwrap().port());
        let mut config = Config {
            data_dir: data.path().join("data"),
            portal: PublicListenerSettings::local("localhost", portal),
            dashboards: DashboardOriginSettings::local("127.0.0.1", boards),
            proxy: ReverseProxySettings::default(),
            queue_pace: QueuePace { is_on: false, ..QueuePace::default() },
            usage_pace: UsageReadPace { is_on: false, ..UsageReadPace::default() },
            // ssh starts the program to ask questions; this process is the test.
            program: super::program::PROGRAM.into(),
            ..Config::default()
        };
        config.metrics.listen.set_port(metrics);
        change(&mut config);
        let app = App::open(config, clock.clone()).await.unwrap();
        let state = PortalState::new(app.clone()).unwrap();
        Self {
            server: tokio::spawn(serve_portal(state.clone(), listen(&sockets))),
            state,
            sockets,
            app,
            clock,
            url: format!("http://localhost:{portal}"),
            dashboards_url: format!("http://127.0.0.1:{boards}"),
            metrics_url: format!("http://127.0.0.1:{metrics}"),
            _data: data,
        }
    }

    /// Stops the portal and starts it again on the same data and ports; connections stay.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.start_again().await;
    }

    /// Stops the portal. [`TestApp::start_again`] goes on with the same data and ports.
    pub async fn stop(&mut self) {
        self.app.stop.cancel();
        (&mut self.server).await.unwrap().unwrap();
    }

    /// Stops the portal and starts it again with other settings.
    pub async fn restart_with(&mut self, change: impl FnOnce(&mut Config)) {
        self.stop().await;
        self.start_again_with(change).await;
    }

    /// Starts a portal that was stopped.
    pub async fn start_again(&mut self) {
        self.start_again_with(|_| ()).await;
    }

    async fn start_again_with(&mut self, change: impl FnOnce(&mut Config)) {
        let mut config = Config::clone(&self.app.config);
        change(&mut config);
        self.app = App::open(config, self.clock.clone()).await.unwrap();
        self.state = PortalState::new(self.app.clone()).unwrap();
        self.server = tokio::spawn(serve_portal(self.state.clone(), listen(&self.sockets)));
        // It answers only once it has taken over what was left to it.
        assert_eq!(self.visitor().get("/healthz").await.status, 200);
    }

    /// A portal with its first administrator, who is signed in.
    pub async fn with_admin() -> (Self, Client) {
        let portal = Self::start().await;
        let admin = portal.set_up("ada").await;
        (portal, admin)
    }

    /// A portal with an administrator, and a member of the group "Smith Lab".
    pub async fn with_member(name: &str) -> (Self, Client, Client) {
        let (portal, admin) = Self::with_admin().await;
        let member = portal.member(&admin, name).await;
        (portal, admin, member)
    }

    /// Someone's browser, not signed in.
    pub fn visitor(&self) -> Client {
        Client::new(&self.url)
    }

    /// Uses the set-up link.
    pub async fn set_up(&self, name: &str) -> Client {
        let token = self.app.auth.create_setup_link().await.unwrap().expect("nobody has an account");
        let admin = self.visitor();
        let page = admin.post(&format!("/setup/{}", token.as_str()), &new_person(name)).await;
        assert_eq!((page.status, page.location()), (303, "/"), "{}", page.text());
        admin
    }

    /// Invites someone into "Smith Lab" (made if it is missing) and lets them join.
    pub async fn member(&self, admin: &Client, name: &str) -> Client {
        let group = self.group(admin, "Smith Lab").await;
        let link = self.invite(admin, group, "member").await;
        self.join(&link, name).await
    }

    /// The number of a group, made if it is missing.
    pub async fn group(&self, admin: &Client, name: &str) -> i64 {
        let label = name.parse().unwrap();
        let find = async || {
            let mut db = self.app.store.read().await.unwrap();
            portolan::store::groups::find_by_name(&mut db, &label).await.unwrap()
        };
        if find().await.is_none() {
            let page = admin.post("/groups", &[("name", name)]).await;
            assert_eq!(page.status, 303, "{}", page.text());
        }
        find().await.unwrap().0
    }

    /// Makes an invitation and gives the path of its link.
    pub async fn invite(&self, by: &Client, group: i64, role: &str) -> String {
        let form = [("label", "someone"), ("role", role), ("days", "7")];
        let page = by.post_and_follow(&format!("/groups/{group}/invitations"), &form).await;
        assert_eq!(page.status, 200, "{}", page.text());
        let link = page.select_text(".alert code");
        link.strip_prefix(&self.url).expect("a link to this portal").to_owned()
    }

    /// Uses an invitation.
    pub async fn join(&self, link: &str, name: &str) -> Client {
        let person = self.visitor();
        let page = person.post(link, &new_person(name)).await;
        assert_eq!((page.status, page.location()), (303, "/"), "{}", page.text());
        person
    }

    /// Everything the database says of people, groups, invitations and activity, to be compared.
    pub async fn snapshot(&self) -> String {
        use portolan::store::{activity, groups, one_time_links, people};
        let mut db = self.app.store.read().await.unwrap();
        let mut parts = vec![format!("{:#?}", people::list(&mut db).await.unwrap())];
        for group in groups::list(&mut db).await.unwrap() {
            let members = groups::list_members(&mut db, group.id).await.unwrap();
            let invitations = one_time_links::list_invitations(&mut db, group.id).await.unwrap();
            parts.push(format!("{group:#?}{members:#?}{invitations:#?}"));
        }
        let all = activity::ActivityFilter { limit: 100_000, ..activity::ActivityFilter::default() };
        parts.push(format!("{:#?}", activity::list(&mut db, &all).await.unwrap()));
        parts.join("\n")
    }

    /// The number of the person who signs in with this name.
    pub async fn person_id(&self, name: &str) -> i64 {
        self.app.auth.find_person(&name.parse().unwrap()).await.unwrap().id.0
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        let died = self.server.is_finished() && !self.app.stop.is_cancelled();
        self.app.stop.cancel();
        super::program::end_masters(&self.app.config.run_dir());
        if !std::thread::panicking() {
            assert!(!died, "the portal died during the test");
        }
    }
}

/// Listeners on sockets that stay ours.
fn listen(sockets: &[std::net::TcpListener; 3]) -> PortalListeners {
    let [portal, boards, metrics] = sockets.each_ref().map(|socket| {
        let socket = socket.try_clone().unwrap();
        socket.set_nonblocking(true).unwrap();
        TcpListener::from_std(socket).unwrap()
    });
    PortalListeners::new(portal, boards, metrics)
}

/// The form of a new person.
pub fn new_person(name: &str) -> [(&str, &str); 4] {
    [("display_name", name), ("name", name), ("password", PASSWORD), ("again", PASSWORD)]
}

/// A pace at which tests need not wait: a look each second, and submissions that are given up on soon.
pub fn hurry(config: &mut Config) {
    config.submit_pace = SubmissionTimeouts {
        go_timeout: Duration::from_secs(1),
        sbatch_timeout: Duration::from_secs(2),
        lookup_timeout: Duration::from_secs(2),
        first_lookup_pause: Duration::from_millis(100),
        max_lookup_pause: Duration::from_millis(400),
        min_lookup_gap: Duration::from_millis(500),
        retry_pause: Duration::from_millis(200),
        ..SubmissionTimeouts::default()
    };
    config.usage_pace = UsageReadPace {
        is_on: true,
        tick: Duration::from_millis(50),
        min_pause: Duration::ZERO,
        call_divisor: 0,
        idle: Duration::from_millis(500),
        after_failure: Duration::from_millis(500),
        history_days: 33,
    };
    config.queue_pace = QueuePace {
        is_on: true,
        min_interval: Duration::from_secs(1),
        max_interval: Duration::from_secs(1),
        unwatched_active: Duration::from_secs(3),
        unwatched_idle: Duration::from_secs(3),
        after_action: Duration::from_millis(300),
        resources_again: Duration::ZERO,
        tick: Duration::from_millis(100),
    };
}
