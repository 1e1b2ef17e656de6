//! Rows of sealed keys that were changed or put into another's place: none opens, and restored they open again.

use portolan::domain::{ConnectionRole, PersonId};
use portolan::store;

use crate::support::{Client, PASSWORD, Page, TestApp};

/// A value in the database: table, column, and which row.
type Cell = (&'static str, &'static str, i64);

async fn read(portal: &TestApp, (table, column, row): Cell) -> Vec<u8> {
    let sql = format!("SELECT {column} FROM {table} WHERE rowid = $1");
    let mut db = portal.app.store.read().await.unwrap();
    let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(row);
    query.fetch_one(&mut *db).await.unwrap()
}

async fn write(portal: &TestApp, (table, column, row): Cell, value: &[u8]) {
    let sql = format!("UPDATE {table} SET {column} = $2 WHERE rowid = $1");
    let mut tx = portal.app.store.write().await.unwrap();
    let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(row).bind(value);
    assert_eq!(query.execute(&mut *tx).await.unwrap().rows_affected(), 1);
    store::commit(tx).await.unwrap();
}

/// Puts each value into the other's place.
async fn swap(portal: &TestApp, one: Cell, other: Cell) {
    let (first, second) = (read(portal, one).await, read(portal, other).await);
    write(portal, one, &second).await;
    write(portal, other, &first).await;
}

/// How many of someone's keys open now.
async fn count_open(portal: &TestApp, person: i64, role: ConnectionRole) -> usize {
    portal.app.auth.unseal_keys(PersonId(person), role).await.map_or(0, |keys| keys.len())
}

async fn keys_of(portal: &TestApp, person: i64) -> Vec<i64> {
    let mut db = portal.app.store.read().await.unwrap();
    let keys = store::keys::list_for_person(&mut db, PersonId(person)).await.unwrap();
    keys.iter().map(|key| key.id.0).collect()
}

async fn session_of(portal: &TestApp, person: i64) -> i64 {
    let mut db = portal.app.store.read().await.unwrap();
    store::sessions::list_for_person(&mut db, PersonId(person)).await.unwrap()[0].id.0
}

async fn sign_in_again(person: &Client, name: &str) {
    person.post("/sign-out", &[]).await;
    assert_eq!(person.sign_in(name, PASSWORD).await.status, 303, "the account itself is fine");
}

async fn allow_unattended(person: &Client, key: i64) {
    let form = [("allow", "true"), ("password", PASSWORD)];
    let answer = person.post(&format!("/account/key/{key}/unattended"), &form).await;
    assert_eq!(answer.status, 303);
}

#[tokio::test]
async fn changed_key_row_opens_nothing() {
    let (mut portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_cluster("key").await;
    alice.make_key().await;
    alice.name_user("key", "alice").await;
    let id = portal.person_id("alice").await;
    let key = keys_of(&portal, id).await[0];
    let one = async |portal: &TestApp| count_open(portal, id, ConnectionRole::Login).await == 1;
    for cell in [("ssh_keys", "body", key), ("ssh_keys", "own_key", key)] {
        let whole = read(&portal, cell).await;
        for position in [0, 1, whole.len() / 2, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[position] ^= 1;
            write(&portal, cell, &changed).await;
            assert!(!one(&portal).await, "{cell:?} changed at {position}");
        }
        assert_eq!(alice.post("/clusters/key/connect", &[]).await.status, 303);
        let is_told = |panel: &Page| {
            let text = panel.text();
            text.contains("be decrypted") && text.contains("Tell an administrator")
        };
        alice.wait_for_panel("key", "a fault of ours", is_told).await;
        assert_eq!(portal.tries("alice", "key").await, 0, "nothing is tried");
        write(&portal, cell, &whole).await;
        assert!(one(&portal).await);
    }
    for cell in [("keychains", "by_password", id), ("keychains", "salt", id)] {
        let whole = read(&portal, cell).await;
        let mut changed = whole.clone();
        changed[3] ^= 1;
        write(&portal, cell, &changed).await;
        sign_in_again(&alice, "alice").await;
        assert!(!one(&portal).await, "{cell:?}");
        let answer = alice.post("/clusters/key/connect", &[]).await;
        assert_eq!((answer.status, answer.select_text("h1").as_str()), (409, "Your SSH key is locked"));
        write(&portal, cell, &whole).await;
        sign_in_again(&alice, "alice").await;
        assert!(one(&portal).await);
    }
    allow_unattended(&alice, key).await;
    let cells = [("sessions", "keychain", session_of(&portal, id).await), ("ssh_keys", "unattended", key)];
    for cell in cells {
        let whole = read(&portal, cell).await;
        let mut changed = whole.clone();
        changed[30] ^= 1;
        write(&portal, cell, &changed).await;
    }
    portal.restart().await;
    alice.get("/").await;
    assert!(!one(&portal).await, "neither with the cookie nor without anyone");
}

#[tokio::test]
async fn key_row_copied_to_someone_else_opens_nothing() {
    let (mut portal, admin, alice) = TestApp::with_member("alice").await;
    let bob = portal.member(&admin, "bob").await;
    let [a, b] = [portal.person_id("alice").await, portal.person_id("bob").await];
    // Alice has three: the one in use, the one that waits, and the one for automation hosts.
    alice.make_key().await;
    alice.post("/account/key", &[]).await;
    alice.post("/account/key", &[("role", "robot")]).await;
    bob.make_key().await;
    let open = async |portal: &TestApp, person| {
        count_open(portal, person, ConnectionRole::Login).await
            + count_open(portal, person, ConnectionRole::Automation).await
    };
    let [current, next, robot] = keys_of(&portal, a).await[..] else { panic!("three keys") };
    let [theirs] = keys_of(&portal, b).await[..] else { panic!("one key") };
    assert_eq!((open(&portal, a).await, open(&portal, b).await), (3, 1));

    for (one, other, left) in [(current, theirs, (1, 0)), (current, next, (1, 1)), (current, robot, (0, 1))] {
        for columns in [&["body"][..], &["own_key"], &["body", "own_key"]] {
            for column in columns {
                swap(&portal, ("ssh_keys", column, one), ("ssh_keys", column, other)).await;
            }
            let now = (open(&portal, a).await, open(&portal, b).await);
            assert_eq!(now, left, "{columns:?} of {one} and {other}");
            for column in columns {
                swap(&portal, ("ssh_keys", column, one), ("ssh_keys", column, other)).await;
            }
        }
    }
    // The rows themselves change hands.
    let mut tx = portal.app.store.write().await.unwrap();
    let sql = "UPDATE ssh_keys SET person_id = $1, role = 'robot', state = 'next' WHERE id = $2";
    sqlx::query(sql).bind(b).bind(current).execute(&mut *tx).await.unwrap();
    store::commit(tx).await.unwrap();
    assert_eq!(count_open(&portal, b, ConnectionRole::Automation).await, 0);
    let mut tx = portal.app.store.write().await.unwrap();
    let sql = "UPDATE ssh_keys SET person_id = $1, role = 'login', state = 'current' WHERE id = $2";
    sqlx::query(sql).bind(a).bind(current).execute(&mut *tx).await.unwrap();
    store::commit(tx).await.unwrap();
    assert_eq!((open(&portal, a).await, open(&portal, b).await), (3, 1), "all is as before");

    for columns in [&["by_password"][..], &["by_password", "salt"]] {
        for column in columns {
            swap(&portal, ("keychains", column, a), ("keychains", column, b)).await;
        }
        sign_in_again(&alice, "alice").await;
        sign_in_again(&bob, "bob").await;
        assert_eq!((open(&portal, a).await, open(&portal, b).await), (0, 0), "{columns:?}");
        for column in columns {
            swap(&portal, ("keychains", column, a), ("keychains", column, b)).await;
        }
    }
    sign_in_again(&alice, "alice").await;
    sign_in_again(&bob, "bob").await;

    for (person, key) in [(&alice, current), (&alice, next), (&bob, theirs)] {
        allow_unattended(person, key).await;
    }
    let unattended = |key| ("ssh_keys", "unattended", key);
    swap(&portal, unattended(current), unattended(next)).await;
    swap(&portal, unattended(current), unattended(theirs)).await;
    let [mine, yours] = [session_of(&portal, a).await, session_of(&portal, b).await];
    swap(&portal, ("sessions", "keychain", mine), ("sessions", "keychain", yours)).await;
    portal.restart().await;
    alice.get("/").await;
    bob.get("/").await;
    assert_eq!((open(&portal, a).await, open(&portal, b).await), (0, 0), "neither way");
}
