//! The portal and the real test cluster: adding it, pinning its host key, noticing a change.

use portolan::sites::{self, Site, SiteAutomationHosts, SiteJumpHost};
use portolan::store::clusters::ClusterSettings;
use portolan::store::{self, Store};

use crate::support::cluster::Cluster;
use crate::support::program::{Installation, stderr, stdout};
use crate::support::{Client, PASSWORD};

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
    assert!(stdout(&installation.run(&["cluster", "list"])).contains("There are no clusters yet"));

    let output = installation.run(&[&add[..], &["--host-key", cluster.fingerprint()]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&installation.run(&["cluster", "list"])).contains(cluster.fingerprint()));
    assert!(
        stderr(&installation.run(&[&add[..], &["--host-key", cluster.fingerprint()]].concat())).contains("already")
    );
    let doctor = stdout(&installation.run(&["doctor"]));
    assert!(doctor.contains("reachable with its pinned host key"), "{doctor}");
}

#[test]
fn invalid_hosts_and_names_are_refused() {
    let installation = with_admin();
    for host in ["-oProxyCommand=touch /tmp/x", "a b", "a\nb", "$(id)", ""] {
        let output = installation.run(&["cluster", "add", "x", &format!("--host={host}")]);
        assert!(!output.status.success(), "{host:?}");
        assert!(stderr(&output).contains("Enter a host name"), "{}", stderr(&output));
    }
    let closed = installation.ports[0].to_string();
    let output = installation.run(&["cluster", "add", "x", "--host", "127.0.0.1", "--port", &closed]);
    assert!(stderr(&output).contains("no SSH server responds"), "{}", stderr(&output));
    assert!(!installation.run(&["cluster", "add", "Bad Name", "--host", "a"]).status.success());
}

/// A description of the test cluster with all its hosts, as a file.
fn description(installation: &Installation, change: impl FnOnce(&mut Site)) -> String {
    let cluster = Cluster::get();
    let mut site = sites::presets().iter().find(|site| site.name.as_str() == "demo").unwrap().clone();
    site.title = "Harbour".into();
    site.login.port = cluster.port("key");
    site.login.fingerprints = vec![cluster.fingerprint().parse().unwrap()];
    change(&mut site);
    let path = installation.dir.path().join("site.toml");
    std::fs::write(&path, site.to_toml().unwrap()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn robot(fingerprints: &[&str]) -> SiteAutomationHosts {
    let fingerprints = fingerprints.iter().map(|print| print.parse().unwrap()).collect();
    let hosts = vec!["127.0.0.1".parse().unwrap()];
    SiteAutomationHosts { hosts, port: Cluster::get().port("robot"), fingerprints, ..SiteAutomationHosts::default() }
}

#[test]
fn published_host_keys_are_pinned_and_an_export_can_be_imported() {
    let (cluster, installation) = (Cluster::get(), with_admin());
    let file = description(&installation, |site| site.automation = Some(robot(&[])));
    let added = installation.run(&["cluster", "add", "harbour", "--file", &file]);
    assert!(added.status.success(), "{}", stderr(&added));
    let said = stdout(&added);
    assert!(said.contains(&format!("{}, as published", cluster.fingerprint())), "{said}");
    assert!(said.contains("No host key is pinned for the automation host"), "{said}");
    let list = stdout(&installation.run(&["cluster", "list"]));
    assert!(list.contains("automation host 127.0.0.1") && list.contains("no host key"), "{list}");
    let doctor = stdout(&installation.run(&["doctor"]));
    assert!(doctor.contains("Harbour, automation host: no host key is pinned"), "{doctor}");

    let exported = stdout(&installation.run(&["cluster", "export", "harbour"]));
    let copy = installation.dir.path().join("copy.toml");
    std::fs::write(&copy, &exported).unwrap();
    let add = ["cluster", "add", "other", "--title", "Another", "--file", copy.to_str().unwrap()];
    let added = installation.run(&[&add[..], &["--host-key", cluster.fingerprint()]].concat());
    assert!(added.status.success(), "{}", stderr(&added));
    let again = stdout(&installation.run(&["cluster", "export", "other"]));
    let expected = exported
        .replace("name = \"harbour\"", "name = \"other\"")
        .replace("title = \"Harbour\"", "title = \"Another\"");
    assert_eq!(again, expected);
    let doctor = stdout(&installation.run(&["doctor"]));
    assert!(doctor.contains("Another, automation host: reachable with its pinned"), "{doctor}");
}

#[test]
fn host_keys_that_differ_from_published_ones_must_be_named() {
    let (cluster, installation) = (Cluster::get(), with_admin());
    let other = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let file = description(&installation, |site| {
        site.login.fingerprints = vec![other.parse().unwrap()];
    });
    let add = ["cluster", "add", "harbour", "--file", &file];
    for more in [&[][..], &["--trust-shown"]] {
        let output = installation.run(&[&add[..], more].concat());
        assert!(!output.status.success(), "{more:?}");
        assert!(stderr(&output).contains("Someone may be intercepting the connection"), "{}", stderr(&output));
        assert!(stdout(&output).contains("publishes different fingerprints"), "{}", stdout(&output));
    }
    // The list in the file may be old: an administrator who knows better says so by name.
    let added = installation.run(&[&add[..], &["--host-key", cluster.fingerprint()]].concat());
    assert!(added.status.success(), "{}", stderr(&added));
    let doctor = stdout(&installation.run(&["doctor"]));
    assert!(doctor.contains("list this key as published by the centre"), "{doctor}");

    let file = description(&installation, |site| {
        site.login.fingerprints.clear();
        site.automation = Some(robot(&[other]));
    });
    let add = ["cluster", "add", "second", "--file", &file, "--trust-shown"];
    let added = installation.run(&add);
    assert!(added.status.success(), "{}", stderr(&added));
    assert!(stdout(&added).contains("No host key is pinned for the automation host"), "{}", stdout(&added));
}

#[test]
fn presets_are_built_in_or_read_from_the_data_folder() {
    let (cluster, installation) = (Cluster::get(), with_admin());
    let add = |args: &[&str]| installation.run(&[&["cluster", "add", "here"], args].concat());
    for (preset, words) in [
        ("cedar", "It was replaced by Fir"),
        ("cedar.computecanada.ca", "Presets to use instead: fir"),
        ("narvall", "Did you mean narval?"),
        ("zzz", "Available presets: "),
        ("generic", "--host HOST"),
    ] {
        let output = add(&["--preset", preset]);
        assert!(stderr(&output).contains(words), "{preset}: {}", stderr(&output));
    }
    assert!(stderr(&add(&[])).contains("--host HOST"));
    assert!(stderr(&add(&["--file", "/no/such/file"])).contains("couldn't be read"));

    let folder = installation.data().join("sites");
    std::fs::create_dir(&folder).unwrap();
    let port = cluster.port("key");
    let own = format!("name = \"mine\"\ntitle = \"Our own\"\n[login]\nhost = \"127.0.0.1\"\nport = {port}\n");
    std::fs::write(folder.join("mine.toml"), own).unwrap();
    std::fs::write(folder.join("broken.toml"), "name = \"broken\"\ntitel = \"x\"\n").unwrap();
    let output = add(&["--preset", "broken"]);
    assert!(stderr(&output).contains("titel"), "{}", stderr(&output));
    let output = add(&["--preset", "mine", "--host-key", "login ssh-ed25519 %%%"]);
    assert!(stderr(&output).contains("Enter a fingerprint"), "{}", stderr(&output));
    let output = add(&["--preset", "mine", "--trust-shown"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&installation.run(&["cluster", "list"])).contains("Our own"));
    let own = stdout(&installation.run(&["cluster", "export", "here"]));
    assert!(own.contains("name = \"here\"") && own.contains("Our own"), "{own}");
}

/// A host behind a jump host cannot be asked from here: its key is given whole.
#[tokio::test]
async fn host_behind_a_jump_host_needs_its_whole_key() {
    let (cluster, installation) = (Cluster::get(), with_admin());
    let closed = installation.ports[0];
    let file = description(&installation, |site| {
        site.login.port = closed;
        let host = "127.0.0.1".parse().unwrap();
        site.login.jump = Some(SiteJumpHost { host, port: cluster.port("key") });
    });
    let add = ["cluster", "add", "far", "--file", &file, "--host-key", cluster.fingerprint()];
    let output = installation.run(&add);
    assert!(stderr(&output).contains("behind a jump host"), "{}", stderr(&output));
    let key = format!("login {}", cluster.host_keys()[0]);
    let output = installation.run(&[&add[..], &["--host-key", &key]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let doctor = stdout(&installation.run(&["doctor"]));
    for words in ["Harbour, jump host: reachable with its pinned", "behind a jump host"] {
        assert!(doctor.contains(words), "{doctor}");
    }
}

#[tokio::test]
async fn changing_a_cluster_keeps_user_names_and_closes_stale_connections() {
    let (cluster, installation) = (Cluster::get(), with_admin());
    let file = description(&installation, |_| ());
    assert!(installation.run(&["cluster", "add", "harbour", "--file", &file]).status.success());
    let server = installation.serve().await;
    let ada = Client::new(&installation.url());
    ada.sign_in("ada", PASSWORD).await;
    ada.prepare("harbour", "bob").await;
    ada.connect("harbour").await;

    let change = |args: &[&str]| installation.run(&[&["cluster", "change", "harbour"], args].concat());
    assert!(stdout(&change(&["--file", &file])).contains("already has these settings"));
    let title = change(&["--title", "Harbour of the North"]);
    assert!(title.status.success(), "{}", stderr(&title));
    assert!(ada.get("/clusters").await.text().contains("Harbour of the North"));
    let port = cluster.port("mfa").to_string();
    let output = change(&["--port", &port]);
    assert!(stderr(&output).contains("Another portal is already using"), "{}", stderr(&output));

    assert!(server.stop("TERM").success());
    assert!(stdout(&installation.run(&["doctor"])).contains("1 open connection."));
    let output = change(&["--port", &port]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&installation.run(&["doctor"])).contains("No open connections."));
    let server = installation.serve().await;
    let page = ada.get("/clusters/harbour").await;
    assert!(page.text().contains("<strong>bob</strong>"), "{}", page.text());
    drop(server);
}

#[tokio::test]
async fn connections_outlive_the_portal_until_disconnected() {
    let installation = with_admin();
    let file = description(&installation, |_| ());
    assert!(installation.run(&["cluster", "add", "harbour", "--file", &file]).status.success());
    assert!(stdout(&installation.run(&["hang-up"])).contains("There were no open connections"));
    let server = installation.serve().await;
    let ada = Client::new(&installation.url());
    ada.sign_in("ada", PASSWORD).await;
    ada.prepare("harbour", "carol").await;
    ada.connect("harbour").await;
    let output = installation.run(&["disconnect-all"]);
    assert!(stderr(&output).contains("Another portal is already using"), "{}", stderr(&output));

    assert!(server.stop("TERM").success());
    let server = installation.serve().await;
    let panel = ada.get("/clusters/harbour/panel").await;
    assert!(panel.text().contains("panel-up"), "still there: {}", panel.text());
    assert!(server.stop("KILL").code().is_none());
    assert!(stdout(&installation.run(&["doctor"])).contains("1 open connection."));
    let bystander = installation.data().join("run/photos");
    std::fs::create_dir_all(&bystander).unwrap();
    let output = installation.run(&["disconnect-all"]);
    assert!(stdout(&output).contains("Closed 1 connection."), "{}", stdout(&output));
    assert!(stdout(&installation.run(&["doctor"])).contains("No open connections."));
    assert!(bystander.exists(), "what is not a connection's is left alone");
}

#[tokio::test]
async fn doctor_reports_a_changed_host_key() {
    let (cluster, installation) = (Cluster::get(), with_admin());
    let other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl".to_owned();
    let store = Store::open(&installation.data().join("portolan.db")).await.unwrap();
    let mut tx = store.write().await.unwrap();
    let (slug, title, host) = ("harbour".parse().unwrap(), "Harbour".parse().unwrap(), "127.0.0.1".parse().unwrap());
    let what = ClusterSettings { title: &title, host: &host, port: cluster.port("mfa"), site: "" };
    let now = crate::support::app::START;
    let id = store::clusters::add(&mut tx, &slug, &what, now).await.unwrap();
    store::clusters::replace_host_keys(&mut tx, id, &[("login".into(), other)], now).await.unwrap();
    store::commit(tx).await.unwrap();

    let output = installation.run(&["doctor"]);
    assert!(!output.status.success());
    let said = stdout(&output);
    assert!(said.contains("the host key has CHANGED") && said.contains(cluster.fingerprint()), "{said}");

    let alarm = async |alarm, retired| {
        let mut tx = store.write().await.unwrap();
        store::clusters::set_alarm(&mut tx, id, alarm).await.unwrap();
        store::clusters::set_retired(&mut tx, id, retired).await.unwrap();
        store::commit(tx).await.unwrap();
    };
    alarm(Some((now, "127.0.0.1 presented SHA256:x")), None).await;
    let doctor = stdout(&installation.run(&["doctor"]));
    assert!(doctor.contains("BLOCKED since") && doctor.contains("presented SHA256:x"), "{doctor}");
    let list = stdout(&installation.run(&["cluster", "list"]));
    assert!(list.contains("BLOCKED since") && list.contains("presented SHA256:x"), "{list}");
    alarm(None, Some(now)).await;
    let doctor = stdout(&installation.run(&["doctor"]));
    assert!(doctor.contains("retired, so it wasn't checked"), "{doctor}");
    assert!(stdout(&installation.run(&["cluster", "list"])).contains("RETIRED since"));
    store.close().await;
}

#[test]
fn test_cluster_answers_slurm_commands_on_both_ports() {
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
