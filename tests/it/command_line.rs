//! The program as an administrator runs it: starting, accounts, invitations, backups, the doctor.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::app::new_person;
use crate::support::program::{Installation, mode, stderr, stdout};
use crate::support::{Client, PASSWORD};

mod doctor;
mod rotation;

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// An installation with the administrator `ada`.
fn with_admin() -> Installation {
    let installation = Installation::new();
    let add = ["user", "add", "ada", "--admin", "--display-name", "Ada Smith", "--password-stdin"];
    let added = installation.run_with_input(&add, PASSWORD);
    assert!(added.status.success(), "{}", stderr(&added));
    installation
}

/// Runs a command that must fail, and gives its words.
fn refused(installation: &Installation, args: &[&str]) -> String {
    let output = installation.run(args);
    assert!(!output.status.success(), "{args:?} should fail but said: {}", stdout(&output));
    stderr(&output)
}

#[tokio::test]
async fn first_start_without_configuration_creates_its_files() {
    let installation = Installation::new();
    let server = installation.serve().await;
    let data = installation.data();
    assert_eq!(mode(&data), 0o700);
    for file in ["master.key", "portolan.db", "portolan.lock"] {
        assert_eq!(mode(&data.join(file)), 0o600, "{file}");
    }
    for line in server.log().lines() {
        let entry: serde_json::Value = serde_json::from_str(line).expect("JSON where there is no terminal");
        assert!(entry["message"].is_string() && entry["level"].is_string());
    }
    let key = std::fs::read_to_string(data.join("master.key")).unwrap();
    assert!(!server.log().contains(key.trim()), "the key is never printed");

    let first_link = server.setup_path();
    assert!(server.stop("TERM").success());
    let server = installation.serve().await;
    let admin = Client::new(&installation.url());
    assert_eq!(admin.get(&first_link).await.status, 410, "a new start makes a new link");
    assert_eq!(admin.post(&server.setup_path(), &new_person("ada")).await.status, 303);
    let links = server.log().matches("/setup/").count();
    assert!(server.stop("TERM").success());
    let server = installation.serve().await;
    assert_eq!(server.log().matches("/setup/").count(), links, "no further link once someone is there");
}

#[test]
fn weak_or_exposed_master_keys_are_refused_and_never_printed() {
    let installation = with_admin();
    let key = installation.data().join("master.key");
    let good = std::fs::read_to_string(&key).unwrap();
    chmod(&key, 0o644);
    assert!(refused(&installation, &["serve"]).contains("chmod 600"));
    chmod(&key, 0o600);
    let short = "abcdef0123456789";
    let repeated = "00".repeat(32);
    for (text, words) in
        [("", "empty"), (short, "64 hexadecimal digits"), (repeated.as_str(), "the master key repeats itself")]
    {
        std::fs::write(&key, text).unwrap();
        let said = refused(&installation, &["serve"]);
        assert!(said.contains(words), "{said}");
        assert!(text.is_empty() || !said.contains(text), "{said}");
    }
    let other = "0123456789abcdef0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778";
    std::fs::write(&key, other).unwrap();
    assert!(refused(&installation, &["serve"]).contains("belong to this database"));
    std::fs::remove_file(&key).unwrap();
    assert!(refused(&installation, &["serve"]).contains("no master key"), "a lost key is not replaced silently");
    std::fs::write(&key, good).unwrap();
    chmod(&key, 0o600);
    chmod(&installation.data(), 0o755);
    assert!(refused(&installation, &["serve"]).contains("chmod 700"));
}

#[test]
fn master_key_may_come_from_the_environment_or_a_credential() {
    let installation = with_admin();
    let file = installation.data().join("master.key");
    let key = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let list = |name: &str, value: &str| installation.command(&["user", "list"]).env(name, value).output().unwrap();
    assert!(list("PORTOLAN_MASTER_KEY", &key).status.success());
    assert!(!list("PORTOLAN_MASTER_KEY", "").status.success());

    let credentials = tempfile::tempdir().unwrap();
    let credential = credentials.path().join("portolan-master-key");
    std::fs::write(&credential, &key).unwrap();
    let place = credentials.path().to_str().unwrap();
    for (rights, works) in [(0o400, true), (0o440, true), (0o444, false)] {
        chmod(&credential, rights);
        assert_eq!(list("CREDENTIALS_DIRECTORY", place).status.success(), works, "{rights:o}");
    }
}

#[test]
fn a_misspelt_setting_stops_the_start() {
    let installation = Installation::new();
    let output = installation.command(&["serve"]).env("PORTOLAN_PORTAL_LISTN", "x").output().unwrap();
    assert!(!output.status.success());
    assert!(stderr(&output).contains("Did you mean 'PORTOLAN_PORTAL_LISTEN'?"), "{}", stderr(&output));
    let said = refused(&installation, &["--config", "/no/such/file", "serve"]);
    assert_eq!(said.matches("No such file").count(), 1, "{said}");
    assert!(refused(&installation, &["user", "list"]).contains("There is no portal"), "nothing is made by the way");
    assert!(!installation.data().exists());
}

#[tokio::test]
async fn accounts_are_managed_while_the_portal_runs() {
    let installation = with_admin();
    let server = installation.serve().await;
    let add = ["user", "add", "bob", "--group", "Smith Lab", "--role", "pi", "--password-stdin"];
    assert!(installation.run_with_input(&add, PASSWORD).status.success());
    assert!(stderr(&installation.run_with_input(&add, PASSWORD)).contains("already"));
    let weak = installation.run_with_input(&["user", "add", "eve", "--password-stdin"], "short");
    assert!(stderr(&weak).contains("at least 10 characters"));
    assert!(stderr(&installation.run(&["user", "add", "eve"])).contains("--password-stdin"), "no terminal to ask on");

    let bob = Client::new(&installation.url());
    assert_eq!(bob.sign_in("bob", PASSWORD).await.status, 303);
    assert!(bob.is_signed_in().await);
    assert!(installation.run(&["user", "disable", "bob"]).status.success());
    assert!(!bob.is_signed_in().await, "every session ends at once");
    assert_eq!(bob.sign_in("bob", PASSWORD).await.status, 422);
    assert!(installation.run(&["user", "enable", "bob"]).status.success());
    assert!(
        installation
            .run_with_input(&["user", "passwd", "bob", "--password-stdin"], "another calm morning")
            .status
            .success()
    );
    assert_eq!(bob.sign_in("bob", PASSWORD).await.status, 422);
    assert_eq!(bob.sign_in("bob", "another calm morning").await.status, 303);

    assert!(refused(&installation, &["user", "disable", "ada"]).contains("last administrator"));
    assert!(refused(&installation, &["user", "disable", "nobody"]).contains("no account called nobody"));
    let list = stdout(&installation.run(&["user", "list"]));
    assert!(list.contains("ada") && list.contains("administrator") && list.contains("Smith Lab (PI)"), "{list}");
    drop(server);
}

#[tokio::test]
async fn an_account_is_deleted_after_saying_what_goes() {
    let installation = with_admin();
    let server = installation.serve().await;
    for (name, role) in [("bob", "pi"), ("eve", "member")] {
        let add = ["user", "add", name, "--group", "Smith Lab", "--role", role, "--password-stdin"];
        assert!(installation.run_with_input(&add, PASSWORD).status.success());
    }
    assert!(refused(&installation, &["user", "delete", "ada", "--yes"]).contains("last administrator"));
    assert!(refused(&installation, &["user", "delete", "bob", "--yes"]).contains("only PI of Smith Lab"));
    assert!(refused(&installation, &["user", "delete", "nobody", "--yes"]).contains("no account called nobody"));

    let eve = Client::new(&installation.url());
    assert_eq!(eve.sign_in("eve", PASSWORD).await.status, 303);
    let asked = installation.run(&["user", "delete", "eve"]);
    assert!(!asked.status.success() && stderr(&asked).contains("--yes"), "{}", stderr(&asked));
    assert!(stdout(&asked).contains("activity log") && !stdout(&asked).contains("- 0"), "{}", stdout(&asked));
    assert!(eve.is_signed_in().await, "nothing was changed");

    let deleted = installation.run(&["user", "delete", "eve", "--yes"]);
    assert!(deleted.status.success(), "{}", stderr(&deleted));
    assert!(!eve.is_signed_in().await, "every session ends at once");
    let list = stdout(&installation.run(&["user", "list"]));
    assert!(!list.contains("eve") && list.contains("bob"), "{list}");
    // Nobody else is in the group now.
    assert!(installation.run(&["user", "delete", "bob", "--yes"]).status.success());
    drop(server);
}

#[tokio::test]
async fn an_invitation_from_the_command_line_works_once() {
    let installation = with_admin();
    let server = installation.serve().await;
    let output = installation.run(&["invite", "--group", "Smith Lab", "--role", "pi", "--for", "Prof. Smith"]);
    let link = stdout(&output);
    let path = link.trim().strip_prefix(&installation.url()).unwrap();
    let visitor = Client::new(&installation.url());
    assert_eq!(visitor.post(path, &new_person("smith")).await.status, 303);
    assert!(visitor.get("/groups/1/members").await.text().contains("New invitation"), "they lead the group");
    assert_eq!(Client::new(&installation.url()).get(path).await.status, 410);
    assert!(!installation.run(&["invite", "--group", "Smith Lab", "--days", "99"]).status.success());
    drop(server);
}

#[tokio::test]
async fn backup_taken_while_running_can_be_restored() {
    let installation = with_admin();
    let server = installation.serve().await;
    let ada = Client::new(&installation.url());
    ada.sign_in("ada", PASSWORD).await;
    let file = installation.dir.path().join("backup.db");
    let path = file.to_str().unwrap();
    let said = stdout(&installation.run(&["backup", path]));
    assert!(said.contains("include the master key"), "{said}");
    assert_eq!(mode(&file), 0o600);
    let key = std::fs::read(installation.data().join("master.key")).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    assert!(!bytes.windows(64).any(|window| window == &key[..64]), "the key is not in the backup");
    assert!(refused(&installation, &["backup", path]).contains("already exists"));

    assert_eq!(ada.post("/groups", &[("name", "Made later")]).await.status, 303);
    assert!(refused(&installation, &["restore", path, "--replace"]).contains("Another portal is already using"));
    assert!(server.stop("TERM").success());
    assert!(refused(&installation, &["restore", path]).contains("--replace"));
    let restored = installation.run(&["restore", path, "--replace"]);
    assert!(restored.status.success(), "{}", stderr(&restored));
    assert_eq!(mode(&installation.data().join("portolan.db")), 0o600);

    let server = installation.serve().await;
    assert!(!ada.is_signed_in().await, "sessions of the copied day are not revived");
    ada.sign_in("ada", PASSWORD).await;
    assert!(!ada.get("/groups").await.text().contains("Made later"));
    drop(server);
}

#[test]
fn invalid_or_foreign_backup_changes_nothing() {
    let installation = with_admin();
    let before = std::fs::read(installation.data().join("portolan.db")).unwrap();
    let junk = installation.dir.path().join("junk");
    std::fs::write(&junk, "not a database").unwrap();
    assert!(
        refused(&installation, &["restore", junk.to_str().unwrap(), "--replace"])
            .contains("couldn't be read as a backup")
    );

    let other = with_admin();
    let foreign = other.dir.path().join("other.db");
    assert!(other.run(&["backup", foreign.to_str().unwrap()]).status.success());
    let said = refused(&installation, &["restore", foreign.to_str().unwrap(), "--replace"]);
    assert!(said.contains("belong to this backup"), "{said}");

    let mut damaged = std::fs::read(&foreign).unwrap();
    damaged.truncate(damaged.len() / 2);
    std::fs::write(&foreign, damaged).unwrap();
    refused(&installation, &["restore", foreign.to_str().unwrap(), "--replace"]);
    assert_eq!(before, std::fs::read(installation.data().join("portolan.db")).unwrap());
}

#[tokio::test]
async fn doctor_says_what_is_wrong_and_how_to_fix_it() {
    let installation = with_admin();
    let idle = stdout(&installation.run(&["doctor"]));
    assert!(idle.contains("running, so its public address wasn't checked"), "{idle}");
    let server = installation.serve().await;
    let output = installation.run(&["doctor"]);
    let well = stdout(&output);
    assert!(output.status.success(), "{well}");
    for words in [
        "A strong key",
        "has 1 account",
        "OpenSSH",
        "running and healthy",
        "The portal is reachable at",
        "consistent with the activity log",
    ] {
        assert!(well.contains(words), "'{words}' is missing in {well}");
    }
    let json: serde_json::Value = serde_json::from_slice(&installation.run(&["doctor", "--json"]).stdout).unwrap();
    assert!(json.as_array().unwrap().iter().all(|finding| finding["verdict"] != "bad"));

    let behind_other_name = installation
        .command(&["doctor"])
        .env("PORTOLAN_PORTAL_PUBLIC_URL", format!("http://127.0.0.2:{}", installation.ports[1]))
        .output()
        .unwrap();
    assert!(!behind_other_name.status.success());

    chmod(&installation.data().join("master.key"), 0o644);
    let output = installation.run(&["doctor"]);
    assert!(!output.status.success());
    assert!(stdout(&output).contains("chmod 600"), "{}", stdout(&output));
    drop(server);
}
