//! Keys that people bring along: every accepted format through the page, refusals in words, and connections with them.

use std::path::PathBuf;

use reqwest::Method;

use crate::support::client::send_too_large;
use crate::support::cluster::root;
use crate::support::server::Server;
use crate::support::{Client, Page, TestApp};

const PASSPHRASE: &str = "harbour light";

/// The files of a folder of keys, without public halves: name and text.
fn keys(folder: &str) -> Vec<(String, String)> {
    let folder: PathBuf = root().join("tests/fixtures/keys").join(folder);
    let mut keys = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.contains('.') {
            keys.push((name, std::fs::read_to_string(path).unwrap()));
        }
    }
    keys.sort();
    keys
}

/// The public half of an accepted key: its kind and body, without the comment.
fn public_half(name: &str) -> String {
    let path = root().join("tests/fixtures/keys/accepted").join(format!("{name}.pub"));
    let line = std::fs::read_to_string(path).unwrap();
    line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

async fn import(person: &Client, key: &str, passphrase: &str) -> Page {
    person.post("/account/key/import", &[("key", key), ("passphrase", passphrase)]).await
}

async fn delete_key(person: &Client) {
    let page = person.get("/account/key").await;
    let deleted = person.post(&page.attribute("form[action$=delete]", "action"), &[]).await;
    assert_eq!(deleted.status, 303);
}

#[tokio::test]
async fn every_accepted_format_is_imported_through_the_page() {
    let (_portal, _, alice) = TestApp::with_member("alice").await;
    for (name, text) in keys("accepted") {
        let is_locked = name.ends_with("_locked");
        // Every try takes its time, on purpose; one of each kind of file will do.
        if ["openssh_ed25519_locked", "pkcs8_p256_locked"].contains(&name.as_str()) {
            for wrong in ["", "harbour lights"] {
                let refused = import(&alice, &text, wrong).await;
                assert_eq!(refused.status, 422, "{name}");
                let words =
                    if wrong.is_empty() { "protected by a passphrase" } else { "Wrong passphrase for this key" };
                assert!(refused.text().contains(words), "{name}: {}", refused.text());
                assert!(!refused.text().contains(wrong) || wrong.is_empty(), "{name}: not repeated");
            }
        }
        let imported = import(&alice, &text, if is_locked { PASSPHRASE } else { "" }).await;
        assert_eq!(imported.status, 303, "{name}: {}", imported.text());
        let page = alice.get("/account/key").await;
        let shown = page.select_text("figure.code code");
        assert!(shown.starts_with(&public_half(&name)), "{name}: {shown}");
        assert!(page.text().contains(", imported"), "{name}");
        delete_key(&alice).await;
    }
}

#[tokio::test]
async fn unusable_private_keys_are_refused_and_never_echoed() {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    for (name, text) in keys("refused") {
        let words = match name.split('_').next().unwrap() {
            "certificate" => "This is a certificate, not a private key",
            "dsa" => "DSA is no longer secure",
            "encryption" => "uses encryption that the portal",
            "garbage" => "a private SSH key. A key file starts with",
            "kind" => "Use an Ed25519, RSA or ECDSA",
            "legacy" => "uses old, weak encryption",
            "public" => "This is a public key",
            "putty" => "Open it in PuTTYgen",
            "rsa" => "This RSA key has 2048 bits, but needs at least 3072",
            "security" => "is stored on a security key",
            "several" => "more than one private key",
            other => panic!("no reason is called {other}"),
        };
        let refused = import(&alice, &text, PASSPHRASE).await;
        assert_eq!(refused.status, 422, "{name}");
        assert!(refused.text().contains(words), "{name}: {words} in {}", refused.text());
        let longest = text.split_whitespace().max_by_key(|word| word.len()).unwrap();
        assert!(!refused.text().contains(longest) && !refused.text().contains(PASSPHRASE), "{name}");
    }
    let long = import(&alice, &"A".repeat(60_000), "").await;
    assert_eq!(long.status, 422);
    assert!(long.text().contains("too long to be a private key"), "{}", long.text());
    let megabyte = [("key", "A".repeat(1_000_000)), ("passphrase", String::new())];
    let megabyte = alice.request(Method::POST, "/account/key/import").header("origin", &portal.url).form(&megabyte);
    if let Some(refused) = send_too_large(megabyte).await {
        assert_eq!((refused.status, refused.select_text("h1").as_str()), (413, "Too much text"));
    }
    assert!(alice.get("/account/key").await.text().contains("Create your key"), "still none");
}

#[tokio::test]
async fn imported_rsa_and_ecdsa_keys_open_real_connections() {
    let server = Server::start();
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_server("own", &server).await;
    alice.name_user("own", "alice").await;
    for (name, kind) in [("openssh_rsa_3072_locked", "RSA"), ("pem_p256", "ECDSA"), ("pkcs8_p521", "ECDSA")] {
        let (_, text) = keys("accepted").into_iter().find(|(known, _)| known == name).unwrap();
        assert_eq!(import(&alice, &text, PASSPHRASE).await.status, 303, "{name}");
        server.allow("alice", &public_half(name));
        alice.connect("own").await;
        let accepted = server.log().lines().rfind(|line| line.contains("Accepted publickey")).unwrap().to_owned();
        assert!(accepted.contains(&format!(": {kind} SHA256:")), "{name}: {accepted}");
        alice.post("/clusters/own/disconnect", &[]).await;
        delete_key(&alice).await;
    }
}
