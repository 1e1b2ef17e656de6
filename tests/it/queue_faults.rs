//! What goes wrong on the other side: the controller or the accounting does not answer, the connection breaks. What was
//! known stays, stamped, and says what to do.

use crate::queue::{cancel, connected_to, row, submit, wait_for_list};
use crate::support::TestApp;
use crate::support::server::Server;

/// A server whose people use a configuration of Slurm that the test can break.
pub fn with_own_slurm_conf() -> Server {
    let server = Server::with("SetEnv SLURM_CONF=@DIR@/slurm.conf");
    mend(&server);
    server
}

pub fn mend(server: &Server) {
    server.tell(&format!("cp /etc/slurm/slurm.conf {0}/slurm.conf && chmod 644 {0}/slurm.conf", server.inside()));
}

/// Points a port of Slurm's configuration at nothing.
pub fn spoil(server: &Server, setting: &str) {
    server.tell(&format!(
        "sed '/^{setting}=/d' /etc/slurm/slurm.conf > {0}/new && echo {setting}=1 >> {0}/new && mv {0}/new {0}/slurm.conf && chmod 644 {0}/slurm.conf",
        server.inside()
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn last_snapshot_stays_when_the_controller_does_not_answer() {
    let server = with_own_slurm_conf();
    let (_portal, bob) = connected_to(&server, "bob").await;
    let job = submit("bob", "sleep 200", &["-o", "/dev/null", "-t", "5", "--hold"]);
    wait_for_list(&bob, "/jobs", "held", |list| row(list, &job).contains("Held")).await;
    spoil(&server, "SlurmctldPort");
    let told = |list: &crate::support::Page| list.text().contains("and the portal keeps trying");
    let list = wait_for_list(&bob, "/jobs", "the controller is silent", told).await;
    assert!(row(&list, &job).contains("Held"), "what was known stays");
    assert!(list.text().contains("Unable to contact slurm controller"), "its own words are one click away");
    let form = [("job", &*format!("key/{job}")), ("verb", "release"), ("sure", "yes")];
    let refused = bob.post("/jobs/act", &form).await;
    assert!(refused.text().contains("reply was unclear"), "{}", refused.select_text("main"));
    mend(&server);
    bob.post("/jobs/refresh", &[("back", "/jobs")]).await;
    wait_for_list(&bob, "/jobs", "all is well", |list| !told(list)).await;
    cancel("bob", &job);
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_stays_complete_when_accounting_does_not_answer() {
    let server = with_own_slurm_conf();
    spoil(&server, "AccountingStoragePort");
    let (_portal, bob) = connected_to(&server, "bob").await;
    let job = submit("bob", "sleep 200", &["-o", "/dev/null", "-t", "5", "--hold"]);
    let list = wait_for_list(&bob, "/jobs", "held", |list| row(list, &job).contains("Held")).await;
    assert!(list.text().contains("Some ended jobs may be missing"), "{}", list.select_text("main"));
    cancel("bob", &job);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_connection_is_shown_and_recovers() {
    let server = Server::start();
    let (_portal, bob) = connected_to(&server, "bob").await;
    let job = submit("bob", "sleep 200", &["-o", "/dev/null", "-t", "5", "--hold"]);
    wait_for_list(&bob, "/jobs", "held", |list| row(list, &job).contains("Held")).await;
    server.kill();
    let told = |list: &crate::support::Page| list.select_all(".away").concat().contains("Not connected: Harbour key");
    let list = wait_for_list(&bob, "/jobs", "not connected", told).await;
    assert!(list.text().contains("action=\"/clusters/key/connect\""), "one click away");
    assert!(row(&list, &job).contains("Held"));
    let form = [("job", &*format!("key/{job}")), ("verb", "cancel"), ("sure", "yes")];
    let refused = bob.post("/jobs/act", &form).await;
    assert!(refused.text().contains("nothing was sent"), "{}", refused.select_text("main"));
    server.start_again();
    bob.connect("key").await;
    wait_for_list(&bob, "/jobs", "connected again", |list| !told(list)).await;
    cancel("bob", &job);
}

/// The connection breaks while a cancel is on its way: nobody claims to know what came of it.
#[tokio::test(flavor = "multi_thread")]
async fn interrupted_cancel_is_shown_as_uncertain() {
    let server = Server::start();
    let (_portal, bob) = connected_to(&server, "bob").await;
    let job = submit("bob", "sleep 200", &["-o", "/dev/null", "-t", "5", "--hold"]);
    wait_for_list(&bob, "/jobs", "held", |list| row(list, &job).contains("Held")).await;
    server.signal_connections("STOP");
    let act = async {
        let form = [("job", &*format!("key/{job}")), ("verb", "cancel"), ("sure", "yes")];
        bob.post("/jobs/act", &form).await
    };
    let cut = async {
        // The record is written before anything is sent.
        crate::support::wait::wait_until("the cancel to be on its way", async || {
            bob.get("/account/activity").await.text().contains("Cancelled jobs")
        })
        .await;
        server.kill();
    };
    let (answer, ()) = tokio::join!(act, cut);
    let said = answer.select_text("main");
    assert!(said.contains("Unconfirmed") || said.contains("nothing was sent"), "{said}");
    cancel("bob", &job);
}

/// Jobs are remembered over a restart, before the cluster was asked again.
#[tokio::test(flavor = "multi_thread")]
async fn job_list_survives_a_restart() {
    let server = Server::start();
    let (mut portal, bob) = connected_to(&server, "bob").await;
    let job = submit("bob", "sleep 200", &["-o", "/dev/null", "-t", "5", "--hold", "-J", "remembered"]);
    wait_for_list(&bob, "/jobs", "held", |list| row(list, &job).contains("Held")).await;
    portal.stop().await;
    server.signal_connections("STOP");
    portal.start_again().await;
    let list = bob.get("/jobs").await;
    assert!(row(&list, &job).contains("remembered") && row(&list, &job).contains("Held"));
    server.signal_connections("CONT");
    cancel("bob", &job);
    wait_for_list(&bob, "/jobs", "cancelled", |list| row(list, &job).contains("Cancelled")).await;
    drop::<TestApp>(portal);
}
