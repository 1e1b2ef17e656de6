//! Changing the master key: everything opens as before, and a change that was cut short is finished or explained.

use std::fs;
use std::path::Path;

use portolan::clock::Clock;
use portolan::store::sealed::SealedColumn;
use portolan::store::{self, Store};

use super::{refused, with_admin};
use crate::support::cluster::Cluster;
use crate::support::program::{Installation, mode, stderr, stdout};
use crate::support::totp::code;
use crate::support::{Client, PASSWORD};

const ROTATE: &[&str] = &["rotate-master-key"];

/// Everything in the data folder that a change touches.
const FILES: &[&str] = &["portolan.db", "portolan.db-wal", "portolan.db-shm", "master.key", "master.key.new"];

/// Copies of the files of a data folder, as they are at one moment.
struct Moment(tempfile::TempDir);

impl Moment {
    fn of(installation: &Installation) -> Self {
        let kept = tempfile::tempdir().unwrap();
        copy(&installation.data(), kept.path(), FILES);
        Self(kept)
    }

    /// Puts these files back; those that were not there go.
    fn put(&self, installation: &Installation, files: &[&str]) {
        copy(self.0.path(), &installation.data(), files);
    }

    fn key(&self) -> String {
        fs::read_to_string(self.0.path().join("master.key")).unwrap()
    }
}

fn copy(from: &Path, to: &Path, files: &[&str]) {
    for file in files {
        let _ = fs::remove_file(to.join(file));
        if from.join(file).exists() {
            fs::copy(from.join(file), to.join(file)).unwrap();
        }
    }
}

fn write_next(installation: &Installation, text: &str) {
    let path = installation.data().join("master.key.new");
    fs::write(&path, text).unwrap();
    super::chmod(&path, 0o600);
}

async fn signs_in(installation: &Installation) -> bool {
    let server = installation.serve().await;
    let browser = Client::new(&installation.url());
    let answer = browser.sign_in("ada", PASSWORD).await;
    let opened = browser.is_signed_in().await;
    if !opened {
        eprintln!("{} {}\n{}", answer.status, answer.text(), server.log());
    }
    opened
}

#[tokio::test]
async fn everything_opens_after_a_master_key_rotation() {
    let (cluster, installation) = (Cluster::get(), with_admin());
    let port = cluster.port("key").to_string();
    let add = ["cluster", "add", "harbour", "--host", "127.0.0.1", "--port", &port, "--host-key"];
    let added = installation.run(&[&add[..], &[cluster.fingerprint()]].concat());
    assert!(added.status.success(), "{}", stderr(&added));
    let server = installation.serve().await;
    let ada = Client::new(&installation.url());
    ada.sign_in("ada", PASSWORD).await;
    ada.prepare("harbour", "alice").await;

    let page = ada.get("/account/second-factor").await;
    let key = page.select_text(".code code");
    let sealed = page.attribute("input[name=sealed]", "value");
    let now = Clock::system().now().0;
    let form = [("sealed", sealed.as_str()), ("code", &code(&key, now)), ("password", PASSWORD)];
    let page = ada.post("/account/second-factor", &form).await;
    let recovery: Vec<String> = page.select_text(".code code").lines().map(str::to_owned).collect();

    let hook = [("address", "https://1.1.1.1/hook"), ("kind", "ended")];
    let set = ada.post_and_follow("/account/notifications/webhook", &hook).await;
    assert!(set.text().contains("Sent to"), "{}", set.text());

    assert!(refused(&installation, ROTATE).contains("Another portal is already using"));
    assert!(server.stop("TERM").success());
    let before = fs::read_to_string(installation.data().join("master.key")).unwrap();
    // Twice, since recovery codes are checked with the keys of all times before.
    for _ in 0..2 {
        let rotated = installation.run(ROTATE);
        assert!(rotated.status.success(), "{}", stderr(&rotated));
        let said = stdout(&rotated);
        assert!(said.contains("Changed the master key") && said.contains("to a safe place"), "{said}");
        assert!(!said.contains(before.trim()));
    }
    let after = fs::read_to_string(installation.data().join("master.key")).unwrap();
    assert_ne!(before, after);
    assert_eq!(mode(&installation.data().join("master.key")), 0o600);
    assert!(!installation.data().join("master.key.new").exists());

    let server = installation.serve().await;
    assert!(ada.is_signed_in().await, "who was signed in stays so");
    assert!(ada.get("/account/notifications").await.text().contains("<dd>1.1.1.1 "), "where notices go");
    let renewed = ada.post("/account/notifications/webhook/secret", &[]).await;
    assert_eq!(renewed.status, 303, "{}", renewed.text());
    ada.connect("harbour").await;
    let with_code = Client::new(&installation.url());
    with_code.sign_in("ada", PASSWORD).await;
    // The code of this step was used up when the second factor was turned on.
    let next = code(&key, now + 30);
    with_code.post("/sign-in/code", &[("code", next.as_str()), ("next", "/")]).await;
    assert!(with_code.is_signed_in().await, "the phone's codes");
    let with_recovery = Client::new(&installation.url());
    with_recovery.sign_in("ada", PASSWORD).await;
    let old = [("code", recovery[0].as_str()), ("next", "/")];
    with_recovery.post("/sign-in/code", &old).await;
    assert!(with_recovery.is_signed_in().await, "recovery codes of before");

    assert_eq!(ada.post("/account/devices/end-all", &[]).await.status, 303);
    assert!(!with_recovery.is_signed_in().await, "now only the password opens the keychain");
    with_recovery.sign_in("ada", PASSWORD).await;
    with_recovery.post("/sign-in/code", &[("code", recovery[1].as_str()), ("next", "/")]).await;
    with_recovery.connect("harbour").await;
    let list = with_recovery.get("/activity").await;
    assert!(list.text().contains("Changed the master key"), "{}", list.text());
    drop(server);
    let passwd = ["user", "passwd", "ada", "--password-stdin"];
    let said = stdout(&installation.run_with_input(&passwd, "another calm morning"));
    assert!(said.contains("Deleted their SSH keys"), "{said}");
}

/// A kill between any two steps leaves one of these on disk.
#[tokio::test]
async fn interrupted_rotation_can_be_repeated_at_any_step() {
    let installation = with_admin();
    let before = Moment::of(&installation);
    assert!(installation.run(ROTATE).status.success());
    let after = Moment::of(&installation);
    let next = installation.data().join("master.key.new");
    let half = after.key()[..20].to_owned();

    // The new key was not yet written, in part, or whole: the database is as before.
    for (text, what) in [("", "empty"), (half.as_str(), "half"), (&after.key(), "whole")] {
        before.put(&installation, FILES);
        write_next(&installation, text);
        assert!(signs_in(&installation).await, "{what}");
        let key = fs::read_to_string(installation.data().join("master.key")).unwrap();
        assert_eq!(key, before.key(), "{what}");
        let doctor = stdout(&installation.run(&["doctor"]));
        assert!(doctor.contains("is left over from a master key change"), "{doctor}");
    }
    // The change can be made anew over what was left.
    assert!(installation.run(ROTATE).status.success());
    assert!(!next.exists() && signs_in(&installation).await);

    // The database had changed, the key had not yet taken its place: the start finishes it.
    after.put(&installation, FILES);
    before.put(&installation, &["master.key"]);
    write_next(&installation, &after.key());
    let doctor = stdout(&installation.run(&["doctor"]));
    assert!(doctor.contains("wasn't completed"), "{doctor}");
    assert!(signs_in(&installation).await, "finished");
    assert!(!next.exists(), "moved into its place");
    assert_eq!(mode(&installation.data().join("master.key")), 0o600);
    assert!(signs_in(&installation).await, "and again");

    // What no kill leaves behind: the new key is gone, or is another one.
    for wrong in [None, Some(before.key()), Some("nonsense".to_owned())] {
        after.put(&installation, FILES);
        before.put(&installation, &["master.key"]);
        if let Some(text) = &wrong {
            write_next(&installation, text);
        }
        let said = refused(&installation, &["serve"]);
        assert!(said.contains("belong to this database"), "{wrong:?}: {said}");
        let said = refused(&installation, ROTATE);
        assert!(said.contains("belong to this database"), "{wrong:?}: {said}");
    }
}

/// A value that does not open would be lost by the change, so nothing is changed.
#[tokio::test]
async fn rotation_changes_nothing_when_data_is_damaged() {
    let installation = with_admin();
    let before = Moment::of(&installation);
    let store = Store::open(&installation.data().join("portolan.db")).await.unwrap();
    let mut tx = store.write().await.unwrap();
    store::sealed::put(&mut tx, SealedColumn::PasswordHash, 1, b"damaged").await.unwrap();
    store::commit(tx).await.unwrap();
    store.close().await;
    assert!(refused(&installation, ROTATE).contains("Nothing was changed"));
    let key = fs::read_to_string(installation.data().join("master.key")).unwrap();
    assert_eq!(key, before.key());
    assert!(!installation.data().join("master.key.new").exists());
    assert!(installation.run(&["user", "list"]).status.success());
}

/// Where the key comes from elsewhere, the new one is handed over, and nothing starts before it was put there.
#[test]
fn rotating_an_external_master_key_waits_for_the_administrator() {
    let credentials = tempfile::tempdir().unwrap();
    let credential = credentials.path().join("portolan-master-key");
    let place = credentials.path().to_str().unwrap().to_owned();
    let put = |variable: &str, key: &str| {
        if variable == "PORTOLAN_MASTER_KEY" {
            return key.to_owned();
        }
        let _ = fs::remove_file(&credential);
        fs::write(&credential, key).unwrap();
        super::chmod(&credential, 0o400);
        place.clone()
    };
    for (variable, where_to) in [
        ("PORTOLAN_MASTER_KEY", "where the portal reads its key from"),
        ("CREDENTIALS_DIRECTORY", "portolan-master-key"),
    ] {
        let installation = with_admin();
        let file = installation.data().join("master.key");
        let next = installation.data().join("master.key.new");
        let old = fs::read_to_string(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let run =
            |key: &str, args: &[&str]| installation.command(args).env(variable, put(variable, key)).output().unwrap();
        let said = stdout(&run(&old, ROTATE));
        assert!(said.contains("master.key.new") && said.contains("only with the new key"), "{said}");
        assert_eq!(mode(&next), 0o600);
        let new = fs::read_to_string(&next).unwrap();
        for args in [&["serve"][..], &["user", "list"], ROTATE] {
            let output = run(&old, args);
            assert!(!output.status.success(), "{args:?}");
            let said = stderr(&output);
            assert!(said.contains("master.key.new") && said.contains(where_to), "{said}");
            assert!(!said.contains(new.trim()));
        }
        assert_eq!(fs::read_to_string(&next).unwrap(), new, "the only copy is not lost");
        assert!(run(&new, &["user", "list"]).status.success());
        assert!(stdout(&run(&new, &["doctor"])).contains("is left over"));
        fs::remove_file(&next).unwrap();
        assert!(run(&new, ROTATE).status.success(), "and again");
    }
}
