//! Submissions and what befalls them: the connection cut and the portal killed at every step, a controller that hangs.
//! Each ends as exactly one job, whatever happened on the way.

use std::time::Duration;

use portolan::app::AppState;
use portolan::auth::activity::Actor;
use portolan::config::Config;
use portolan::domain::{PersonId, SubmissionId};
use portolan::jobs::submissions::{Submission, SubmissionState, SubmitRequest};
use portolan::store::{self, Store};

use crate::submissions::{HELD, actor, one_job_each};
use crate::support::app::hurry;
use crate::support::program::{Installation, signal_pid};
use crate::support::relay::Relay;
use crate::support::server::{Server, site_at};
use crate::support::wait::{wait_for_value, wait_until};
use crate::support::{Client, PASSWORD, TestApp};

/// Runs what was asked for, with the `sbatch` beside it.
const AS_ASKED: &str = r##"#!/bin/sh
exec /bin/bash -c "$(printf %s "$SSH_ORIGINAL_COMMAND" | sed 's#sbatch "\$@"#@DIR@/sbatch "$@"#')"
"##;

/// An `sbatch` that says how far it is, and can be held up before and after it has asked Slurm.
const SBATCH: &str = r#"#!/bin/sh
cd @DIR@/box
cat >script.$$
touch called
while [ -e hold-before ]; do sleep 0.02; done
/usr/bin/sbatch "$@" <script.$$
code=$?
touch answered
while [ -e hold-after ]; do sleep 0.02; done
exit $code
"#;

/// A server whose people have that `sbatch`.
struct Desk {
    server: Server,
}

impl Desk {
    fn open() -> Self {
        let server = Server::with("ForceCommand @DIR@/as-asked");
        for (name, text) in [("as-asked", AS_ASKED), ("sbatch", SBATCH)] {
            server.write(name, &text.replace("@DIR@", &server.inside()));
        }
        server.tell("chmod 755 as-asked sbatch; mkdir -m 777 box");
        Self { server }
    }

    fn hold(&self, at: &str) {
        self.server.tell(&format!("rm -f box/*; touch box/{at}"));
    }

    fn let_go(&self) {
        self.server.tell("rm -f box/hold-*");
    }

    async fn wait_for(&self, step: &str) {
        wait_until(step, async || self.server.tell(&format!("[ -e box/{step} ] && echo yes || :")).contains("yes"))
            .await;
    }
}

/// A portal in a hurry with bob, who is connected to a port.
async fn with_bob(server: &Server, port: u16) -> (TestApp, Client) {
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    let bob = portal.member(&admin, "bob").await;
    portal.add_pinned(&site_at("own", port), &server.pins()).await;
    bob.prepare_on(server, "own", "bob").await;
    bob.connect("own").await;
    (portal, bob)
}

/// Loses bob's connection without a word to anyone.
async fn lose(portal: &TestApp) {
    let key = portal.connection_key("bob", "own").await;
    if let Ok(line) = portal.app.connections.connection(key) {
        signal_pid(line.master().pid().try_into().unwrap(), "KILL");
    }
    wait_until("it is lost", async || portal.app.connections.connection(key).is_err()).await;
}

/// What had passed is delivered, the rest is lost: half a script is no job, and the whole one is one.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cut_while_the_script_is_on_its_way_gives_one_job() {
    let server = Server::start();
    let relay = Relay::to(server.port).await;
    let (portal, bob) = with_bob(&server, relay.port).await;
    let script = format!("{HELD}{}", "# a line of a long comment\n".repeat(9_000));
    let mut all = Vec::new();
    for round in 0..10 {
        let order = portal.order("bob", "own", &script).await;
        // From before the first byte of the command to shortly before the end of the script.
        let cut = relay.cut_after(1 + round * script.len() / 10);
        let (id, ()) = tokio::join!(portal.submit(&order), cut);
        lose(&portal).await;
        let waits = portal.submission(id).await;
        assert!(!waits.state.is_settled(), "{round}: {waits:?}");
        relay.mend();
        bob.connect("own").await;
        all.push(portal.settled(id).await);
    }
    one_job_each("bob", &all);
}

/// The answer is lost: it was a job already, and it is found.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cut_before_the_answer_gives_one_job() {
    let desk = Desk::open();
    let (portal, bob) = with_bob(&desk.server, desk.server.port).await;
    let mut all = Vec::new();
    for round in 0..8 {
        desk.hold("hold-after");
        let id = portal.submit(&portal.order("bob", "own", HELD).await).await;
        desk.wait_for("answered").await;
        if round % 2 == 0 {
            lose(&portal).await;
        } else {
            desk.server.drop_connections();
        }
        wait_for_value(
            "it is in doubt",
            async || portal.submission(id).await.state,
            |seen| *seen == SubmissionState::Checking,
        )
        .await;
        let page = bob.get(&format!("/submissions/{id}")).await;
        assert!(page.text().contains("Checking whether the job was submitted"), "{}", page.text());
        assert!(!page.text().contains("Cancel submission"), "not while it may be a job");
        let person = PersonId(portal.person_id("bob").await);
        assert!(!portal.app.submissions.give_up(person, id).await.unwrap());
        bob.connect("own").await;
        let one = portal.settled(id).await;
        assert_eq!(one.tries, 1);
        all.push(one);
        desk.let_go();
    }
    one_job_each("bob", &all);
}

/// Nobody knows how far it got: it goes on without us, or it is ended before it has asked Slurm.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cut_while_sbatch_runs_gives_one_job() {
    let desk = Desk::open();
    let (portal, bob) = with_bob(&desk.server, desk.server.port).await;
    for goes_on in [true, false] {
        desk.hold("hold-before");
        let id = portal.submit(&portal.order("bob", "own", HELD).await).await;
        desk.wait_for("called").await;
        desk.server.drop_connections();
        wait_for_value(
            "it is in doubt",
            async || portal.submission(id).await.state,
            |seen| *seen == SubmissionState::Checking,
        )
        .await;
        bob.connect("own").await;
        let missed = async || portal.submission(id).await.checked_at.is_some();
        wait_until("it was looked for in vain", missed).await;
        if goes_on {
            desk.let_go();
        } else {
            wait_for_value("it is sent again", async || portal.submission(id).await.tries, |seen| *seen == 2).await;
            desk.let_go();
        }
        one_job_each("bob", &[portal.settled(id).await]);
    }
}

/// A controller that hangs in the middle of a request works through it later.
#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_hangs_gives_one_job() {
    let server = Server::with("SetEnv SLURM_CONF=@DIR@/slurm.conf");
    let port = server.tell("sed -n 's/^SlurmctldPort=//p' /etc/slurm/slurm.conf");
    let relay = Relay::to(port.trim().parse().unwrap()).await;
    server.tell(&format!(
        "sed 's/^SlurmctldPort=.*/SlurmctldPort={}/' /etc/slurm/slurm.conf >slurm.conf; chmod 644 slurm.conf",
        relay.port
    ));
    let (portal, bob) = with_bob(&server, server.port).await;
    relay.cut();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(portal.submit(&portal.order("bob", "own", HELD).await).await);
    }
    for id in &ids {
        wait_for_value(
            "it is in doubt",
            async || portal.submission(*id).await.state,
            |seen| *seen == SubmissionState::Checking,
        )
        .await;
    }
    let page = bob.get(&format!("/submissions/{}", ids[0])).await;
    assert!(page.text().contains("Checking whether the job was submitted"), "{}", page.text());
    relay.mend();
    let mut all = Vec::new();
    for id in ids {
        all.push(portal.settled(id).await);
    }
    one_job_each("bob", &all);
}

/// The data of an installation whose program does not run, in a hurry.
async fn open(installation: &Installation) -> AppState {
    let mut config =
        Config { data_dir: installation.data(), program: crate::support::program::PROGRAM.into(), ..Config::default() };
    hurry(&mut config);
    portolan::app::App::open(config, portolan::clock::Clock::system()).await.unwrap()
}

/// Hands orders over while nothing is connected, so that they wait for the next start.
async fn hand_over(installation: &Installation, forms: &[String]) -> Vec<SubmissionId> {
    let app = open(installation).await;
    let mut db = app.store.read().await.unwrap();
    let cluster = portolan::store::clusters::find_by_slug(&mut db, "own").await.unwrap().unwrap().id;
    drop(db);
    let person = app.auth.find_person(&"ada".parse().unwrap()).await.unwrap().id;
    let mut ids = Vec::new();
    for form in forms {
        let order = SubmitRequest {
            person,
            cluster,
            form_token: form.clone(),
            script: HELD.to_owned(),
            job_name: "killed".to_owned(),
            folders: Vec::new(),
            recipe: String::new(),
            recipe_version: None,
            recipe_id: None,
            answers: String::new(),
            sweep: String::new(),
        };
        ids.push(app.submissions.submit(&actor(&order), order).await.unwrap());
    }
    close(app).await;
    ids
}

async fn close(app: AppState) {
    app.stop.cancel();
    app.tasks.close();
    app.tasks.wait().await;
    app.store.close().await;
}

/// Goes on after a kill until the fate of each order is known.
async fn recover(installation: &Installation, ids: &[SubmissionId]) -> Vec<Submission> {
    let app = open(installation).await;
    app.connections.adopt_masters().await.unwrap();
    app.tasks.spawn(app.submissions.clone().run());
    let mut all = Vec::new();
    for id in ids {
        all.push(app.submissions.wait(*id, Duration::from_mins(1)).await.unwrap().unwrap());
    }
    close(app).await;
    all
}

/// An installation with someone who is connected; the program does not run.
async fn with_ada(server: &Server) -> Installation {
    let installation = Installation::new();
    let add = ["user", "add", "ada", "--admin", "--password-stdin"];
    assert!(installation.run_with_input(&add, PASSWORD).status.success());
    let app = open(&installation).await;
    let mut site = server.site("own");
    site.limits.submit_spacing_s = 0;
    app.connections.add_cluster(&Actor::command_line(), &site, &server.pins()).await.unwrap();
    close(app).await;
    let program = installation.serve().await;
    let ada = Client::new(&installation.url());
    ada.sign_in("ada", PASSWORD).await;
    server.allow("bob", &ada.make_key().await);
    ada.name_user("own", "bob").await;
    ada.connect("own").await;
    program.stop("KILL");
    installation
}

/// Each start finds what the kills before have left in doubt, and gets one more order.
#[tokio::test(flavor = "multi_thread")]
async fn portal_killed_repeatedly_gives_one_job_per_submission() {
    let server = Server::start();
    let installation = with_ada(&server).await;
    let mut ids = Vec::new();
    for round in 0..20_u64 {
        let new = hand_over(&installation, &[format!("{round}")]).await;
        let program = installation.serve().await;
        let database = Store::open(&installation.data().join("portolan.db")).await.unwrap();
        wait_until("it is on its way", async || {
            let mut db = database.read().await.unwrap();
            let one = store::submissions::get(&mut db, new[0]).await.unwrap().unwrap();
            one.state != SubmissionState::Ready
        })
        .await;
        database.close().await;
        // The moment differs from round to round; whatever it hits must hold.
        tokio::time::sleep(Duration::from_millis(round * 15)).await;
        program.stop("KILL");
        ids.extend(new);
    }
    one_job_each("bob", &recover(&installation, &ids).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_portal_killed_while_sbatch_runs_or_has_answered_gives_one_job() {
    let desk = Desk::open();
    let installation = with_ada(&desk.server).await;
    let mut ids = Vec::new();
    let steps = [("hold-before", "called"), ("hold-after", "answered")];
    for (round, (hold, step)) in steps.into_iter().cycle().take(8).enumerate() {
        desk.hold(hold);
        let new = hand_over(&installation, &[format!("{round}")]).await;
        let program = installation.serve().await;
        desk.wait_for(step).await;
        program.stop("KILL");
        // What runs on the cluster goes on.
        desk.let_go();
        ids.extend(new);
    }
    one_job_each("bob", &recover(&installation, &ids).await);
}

/// Told to stop in the middle, it neither forgets nor repeats.
#[tokio::test(flavor = "multi_thread")]
async fn a_portal_that_stops_in_the_middle_gives_one_job() {
    let desk = Desk::open();
    let (mut portal, _bob) = with_bob(&desk.server, desk.server.port).await;
    desk.hold("hold-before");
    let order = portal.order("bob", "own", HELD).await;
    let id = portal.submit(&order).await;
    desk.wait_for("called").await;
    portal.stop().await;
    desk.let_go();
    portal.start_again().await;
    let one = portal.settled(id).await;
    assert_eq!(portal.submit(&order).await, id, "the form is remembered");
    one_job_each("bob", &[one]);
}
