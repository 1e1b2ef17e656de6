//! Sealed keys in a stolen, changed or mixed-up database: none opens, and the portal says so calmly.

use std::path::{Path, PathBuf};

use portolan::app::{App, KEY_CHECK_SETTING, compute_key_check};
use portolan::auth::token::SecretToken;
use portolan::clock::Clock;
use portolan::config::Config;
use portolan::domain::{ConnectionRole, PersonId};
use portolan::store::sealed::SealedColumn;
use portolan::store::{self, Store};
use portolan::vault::{MasterKey, Vault, VaultPurpose};

use crate::support::app::START;
use crate::support::{Client, PASSWORD, TestApp};

/// Copies a data folder that nobody uses.
fn copy(from: &Path) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("data");
    let copied = std::process::Command::new("cp").arg("-a").arg(from).arg(&to).status();
    assert!(copied.unwrap().success());
    (dir, to)
}

async fn start_on(data: &Path) -> TestApp {
    TestApp::start_with(|config| data.clone_into(&mut config.data_dir)).await
}

async fn opens(portal: &TestApp, name: &str) -> bool {
    let person = PersonId(portal.person_id(name).await);
    let open = portal.app.auth.unseal_keys(person, ConnectionRole::Login).await;
    open.is_ok_and(|keys| !keys.is_empty())
}

/// What a person reads who tries to connect.
async fn try_to_connect(person: &Client) -> (u16, String) {
    let answer = person.post("/clusters/key/connect", &[]).await;
    (answer.status, answer.select_all("h1").concat())
}

const MALLORYS: &str = "a quite different harbour";

fn locked() -> (u16, String) {
    (409, "Your SSH key is locked".to_owned())
}

/// A portal with a cluster, and alice with a key and a user name there.
async fn with_alice() -> (TestApp, Client, Client) {
    let (portal, admin, alice) = TestApp::with_member("alice").await;
    portal.add_cluster("key").await;
    alice.make_key().await;
    alice.name_user("key", "alice").await;
    assert!(opens(&portal, "alice").await);
    (portal, admin, alice)
}

#[tokio::test]
async fn stolen_database_opens_nothing_under_another_master_key() {
    let (mut portal, ..) = with_alice().await;
    portal.stop().await;
    let (_dir, data) = copy(&portal.app.config.data_dir);
    let other = "0123456789abcdef".repeat(4);
    std::fs::write(data.join("master.key"), &other).unwrap();
    let config = Config { data_dir: data.clone(), ..Config::default() };
    let refused = App::open(config, Clock::manual(START)).await.err().unwrap().to_string();
    assert!(refused.contains("belong to this database"), "{refused}");

    // Whoever stole it can also write into it that all is well.
    let database = Store::open(&data.join("portolan.db")).await.unwrap();
    let check = compute_key_check(&Vault::new(MasterKey::parse(&other).unwrap()));
    let mut tx = database.write().await.unwrap();
    store::settings::set(&mut tx, KEY_CHECK_SETTING, &check).await.unwrap();
    store::commit(tx).await.unwrap();
    database.close().await;
    let stolen = start_on(&data).await;
    let thief = stolen.visitor();
    let answer = thief.sign_in("alice", PASSWORD).await;
    assert_eq!(answer.status, 500, "this is no mistake of hers: {}", answer.text());
    assert!(!thief.is_signed_in().await && !opens(&stolen, "alice").await);
}

#[tokio::test]
async fn a_stolen_disk_with_the_master_key_opens_nothing_without_the_password() {
    let (mut portal, admin, _) = with_alice().await;
    let mallory = portal.member(&admin, "mallory").await;
    let form = [("current", PASSWORD), ("password", MALLORYS), ("again", MALLORYS)];
    assert_eq!(mallory.post("/account/password", &form).await.status, 303);
    portal.stop().await;
    let (_dir, data) = copy(&portal.app.config.data_dir);
    let stolen = start_on(&data).await;
    let [alice, mallory] = [stolen.person_id("alice").await, stolen.person_id("mallory").await];
    assert!(!opens(&stolen, "alice").await);

    // A session takes no more than a row. It comes without her keychain, or with the one of a session of hers.
    for keychain in ["NULL", "(SELECT keychain FROM sessions WHERE person_id = $2)"] {
        let token = SecretToken::generate().unwrap();
        let sql = format!(
            "INSERT INTO sessions (token_hash, person_id, created_at, last_seen_at, expires_at, address, user_agent, keychain)
             VALUES ($1, $2, $3, $3, $3 + 9999, '', '', {keychain})"
        );
        let mut tx = stolen.app.store.write().await.unwrap();
        let insert = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(&token.hash_token()[..]);
        insert.bind(alice).bind(START.0).execute(&mut *tx).await.unwrap();
        store::commit(tx).await.unwrap();
        let thief = stolen.visitor();
        thief.set_cookie(&format!("portolan_session={}", token.as_str()));
        assert!(thief.is_signed_in().await, "in as alice");
        assert_eq!(try_to_connect(&thief).await, locked());
    }

    // Nor does a password: mallory's becomes alice's.
    let place = |person| format!("person:{person}");
    let vault = &stolen.app.vault;
    let mut tx = stolen.app.store.write().await.unwrap();
    let hashes = store::sealed::list(&mut tx, SealedColumn::PasswordHash).await.unwrap();
    let hash = hashes.into_iter().find(|value| value.person.0 == mallory).unwrap();
    let hash = vault.open(VaultPurpose::PasswordHash, &place(mallory), &hash.value).unwrap();
    let sealed = vault.seal(VaultPurpose::PasswordHash, &place(alice), &hash).unwrap();
    store::sealed::put(&mut tx, SealedColumn::PasswordHash, alice, &sealed).await.unwrap();
    store::commit(tx).await.unwrap();
    let thief = stolen.visitor();
    assert_eq!(thief.sign_in("alice", MALLORYS).await.status, 303, "in as alice");
    assert_eq!(try_to_connect(&thief).await, locked());
    assert!(!opens(&stolen, "alice").await);
}
