//! The portal and the real test cluster: adding it, pinning its host key, noticing a change.

use portolan::store::{self, Store};

use crate::support::PASSWORD;
use crate::support::cluster::Cluster;
use crate::support::program::{Installation, stderr, stdout};

fn with_admin() -> Installation {
    let installation = Installation::new();
    let add = ["user", "add", "ada", "--admin", "--password-stdin"];
    assert!(installation.run_with_input(&add, PASSWORD).status.success());
    installation
}

#[test]
fn a_cluster_is_added_only_with_a_fingerprint_that_it_shows() {
    let (cluster, installation) = (Cluster::get(), with_admin());
    let port = cluster.port("key").to_string();
    let add = ["cluster", "add", "harbour", "--host", "127.0.0.1", "--port", &port];
    let output = installation.run(&add);
    assert!(!output.status.success(), "not without comparing");
    assert!(stdout(&output).contains(cluster.fingerprint()), "{}", stdout(&output));

    let wrong = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let output = installation.run(&[&add[..], &["--host-key", wrong]].concat());
    assert!(stderr(&output).contains("None of the host keys"), "{}", stderr(&output));
    assert_eq!(stdout(&installation.run(&["cluster", "list"])), "");

    let output = installation.run(&[&add[..], &["--host-key", cluster.fingerprint()]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&installation.run(&["cluster", "list"])).contains(cluster.fingerprint()));
    assert!(
        stderr(&installation.run(&[&add[..], &["--host-key", cluster.fingerprint()]].concat()))
            .contains("already")
    );
    let doctor = stdout(&installation.run(&["doctor"]));
    assert!(doctor.contains("answers with its pinned host key"), "{doctor}");
}

#[test]
fn hosts_and_names_that_are_none_are_refused() {
    let installation = with_admin();
    for host in ["-oProxyCommand=touch /tmp/x", "a b", "a\nb", "$(id)", ""] {
        let output = installation.run(&["cluster", "add", "x", &format!("--host={host}")]);
        assert!(!output.status.success(), "{host:?}");
        assert!(stderr(&output).contains("Give a host name"), "{}", stderr(&output));
    }
    let closed = installation.ports[0].to_string();
    let output =
        installation.run(&["cluster", "add", "x", "--host", "127.0.0.1", "--port", &closed]);
    assert!(stderr(&output).contains("no SSH server answers"), "{}", stderr(&output));
    assert!(!installation.run(&["cluster", "add", "Bad Name", "--host", "a"]).status.success());
}

#[tokio::test]
async fn the_doctor_raises_the_alarm_when_a_host_key_has_changed() {
    let (cluster, installation) = (Cluster::get(), with_admin());
    let other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
        .to_owned();
    let store = Store::open(&installation.data().join("portolan.db")).await.unwrap();
    let mut tx = store.write().await.unwrap();
    let (slug, title, host) =
        ("harbour".parse().unwrap(), "Harbour".parse().unwrap(), "127.0.0.1".parse().unwrap());
    let place = (&host, cluster.port("mfa"));
    store::clusters::add(&mut tx, &slug, &title, place, &[other], crate::support::app::START)
        .await
        .unwrap();
    store::commit(tx).await.unwrap();
    store.close().await;

    let output = installation.run(&["doctor"]);
    assert!(!output.status.success());
    let said = stdout(&output);
    assert!(
        said.contains("the host key has CHANGED") && said.contains(cluster.fingerprint()),
        "{said}"
    );
}

#[test]
fn the_cluster_answers_as_a_person_would_ask_over_both_ports() {
    let cluster = Cluster::get();
    for port in [&[][..], &["--mfa"][..]] {
        for (command, expected) in [
            ("sinfo -h -o %P", "cpu*"),
            ("sbatch --test-only --account=def-smith --time=10 --wrap=hostname", "to start at"),
            ("sshare -hP -o account,user", "def-smith|alice"),
        ] {
            let output = cluster.script(&[&["ssh", "alice"], port, &[command]].concat());
            let said = format!("{}{}", stdout(&output), stderr(&output));
            assert!(said.contains(expected), "{command} {port:?}: {said}");
        }
    }
}
