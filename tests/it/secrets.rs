//! After everybody has left, no key, password, code or passphrase is in a file, a log, a process or the memory.

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::support::Client;
use crate::support::cluster::Cluster;
use crate::support::program::Installation;
use crate::support::secret_scan::{Needle, in_files, in_memory, in_processes};
use crate::support::server::{Server, connections_held_by_server};
use crate::support::wait::wait_for_value;

const PASSWORD: &str = "lanterns over wet cobblestones";
const PASSPHRASE: &str = "gulls above the fish market";
/// A code on paper, as apps for one-time codes give them for the day the phone is lost.
const CODE: &str = "38917465";

/// An Ed25519 key that is known in full: its secret 32 bytes, and its file under the passphrase.
struct KnownKey {
    seed: Vec<u8>,
    plain: String,
    locked: String,
    public: String,
}

fn known_key() -> KnownKey {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    let keygen = |args: &[&str]| {
        assert!(Command::new("ssh-keygen").args(args).arg("-f").arg(&path).output().unwrap().status.success());
    };
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    keygen(&["-q", "-t", "ed25519", "-N", ""]);
    let public = read(&path.with_extension("pub"));
    let plain = read(&path);
    keygen(&["-q", "-p", "-P", "", "-N", PASSPHRASE, "-a", "4"]);
    let half = STANDARD.decode(public.split_whitespace().nth(1).unwrap()).unwrap();
    let half = &half[half.len() - 32..];
    let body: String = plain.lines().filter(|line| !line.starts_with("--")).collect();
    let body = STANDARD.decode(&body).unwrap();
    let at = body.windows(32).rposition(|window| window == half).unwrap();
    KnownKey { seed: body[at - 32..at].to_vec(), plain: plain.clone(), locked: read(&path), public }
}

/// The key of ada's keychain, worked out from everything that is stored and her password.
async fn chain_key(installation: &Installation) -> Vec<u8> {
    use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
    use portolan::vault::VaultPurpose;
    let app = installation.open().await;
    let mut db = app.store.read().await.unwrap();
    let person = portolan::domain::PersonId(1);
    let chain = portolan::store::keys::find_keychain(&mut db, person).await.unwrap().unwrap();
    let inner = app.vault.open(VaultPurpose::ChainByPassword, "person:1", &chain.by_password).unwrap();
    drop(db);
    app.store.close().await;
    let mut stretched = [0; 32];
    let cost = argon2::Params::new(19 * 1024, 2, 1, Some(32)).unwrap();
    argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, cost)
        .hash_password_into(PASSWORD.as_bytes(), &chain.salt, &mut stretched)
        .unwrap();
    let mut key = [0; 32];
    hkdf::Hkdf::<sha2::Sha256>::new(None, &stretched).expand(b"portolan/1/layer/password", &mut key).unwrap();
    let (version, rest) = inner.split_first().unwrap();
    let (nonce, body) = rest.split_at(24);
    let aad = [&[*version][..], b"person:1"].concat();
    let nonce: [u8; 24] = nonce.try_into().unwrap();
    chacha20poly1305::XChaCha20Poly1305::new(&key.into())
        .decrypt(&nonce.into(), Payload { msg: body, aad: &aad })
        .unwrap()
}

fn needles(key: &KnownKey, cluster_password: &str) -> Vec<Needle> {
    let mut needles = vec![
        Needle::new("the key's secret bytes", key.seed.clone()),
        Needle::new("the portal's password", PASSWORD),
        Needle::new("the portal's password, as sent", PASSWORD.replace(' ', "+")),
        Needle::new("the passphrase", PASSPHRASE),
        Needle::new("the passphrase, as sent", PASSPHRASE.replace(' ', "+")),
        Needle::new("the code", CODE),
        Needle::new("the cluster's password", cluster_password),
    ];
    for (what, text) in [("the open key's file", &key.plain), ("the key's file", &key.locked)] {
        // Not the first lines, which hold the public half too.
        let line = text.lines().nth_back(2).unwrap();
        needles.push(Needle::new(what, line));
        needles.push(Needle::new(what, line.replace('+', "%2B").replace('/', "%2F")));
        if let Ok(bytes) = STANDARD.decode(&line[..line.len() / 4 * 4]) {
            needles.push(Needle::new(what, bytes));
        }
    }
    needles
}

#[tokio::test]
async fn no_secret_stays_anywhere_after_everyone_has_signed_out() {
    let key = known_key();
    let cluster_password = Cluster::get().person("alice")["password"].as_str().unwrap().to_owned();
    let totp = format!("{}\n\" TOTP_AUTH\n{CODE}\n", "A".repeat(26));
    let pam = "auth requisite pam_google_authenticator.so secret=@DIR@/totp user=root\n\
               auth required pam_unix.so nodelay\n";
    let server = Server::asking_beside(&[("totp", &totp)], pam, "");
    server.tell("chmod 600 totp");
    server.allow("alice", &key.public);

    let installation = Installation::new();
    let add = ["user", "add", "ada", "--admin", "--password-stdin"];
    assert!(installation.run_with_input(&add, PASSWORD).status.success());
    installation.add_clusters(&server, &["own"]).await;
    let program = installation.serve().await;
    let first = Client::new(&installation.url());
    first.sign_in("ada", PASSWORD).await;
    drop(first);
    program.stop("TERM");
    let mut needles = needles(&key, &cluster_password);
    needles.push(Needle::new("the keychain's key", chain_key(&installation).await));
    let program = installation.serve().await;
    let pid = program.child.id();
    let ada = Client::new(&installation.url());
    ada.sign_in("ada", PASSWORD).await;
    let form = [("key", key.locked.as_str()), ("passphrase", PASSPHRASE)];
    assert_eq!(ada.post("/account/key/import", &form).await.status, 303);
    let page = ada.get("/account/key").await;
    let form = [("allow", "true"), ("password", PASSWORD)];
    ada.post(&page.attribute("form[action$=unattended]", "action"), &form).await;
    ada.name_user("own", "alice").await;
    ada.post("/clusters/own/connect", &[]).await;
    let asked = ada.wait_until_asked("own", "Verification code").await;
    let clean: Vec<String> = Vec::new();
    assert_eq!(in_processes(pid, &needles), clean, "while a question waits");
    ada.answer("own", &asked, CODE).await;
    let asked = ada.wait_until_asked("own", "Password").await;
    ada.answer("own", &asked, &cluster_password).await;
    ada.wait_until_connected("own").await;
    assert_eq!(in_processes(pid, &needles), clean, "while connected");
    assert_eq!(in_files(installation.dir.path(), &needles), clean, "while connected");
    ada.post("/account/devices/end-all", &[]).await;
    wait_for_value("the connection is closed", async || server.connections(), |seen| *seen == 0).await;
    // The browser too: what it sent last lies in the buffer of its own connection as long as that is open.
    drop(ada);
    let held = async || connections_held_by_server(installation.ports[0]);
    wait_for_value("the portal has closed the browser's connection", held, |seen| *seen == 0).await;
    // What belonged to a connection is freed right after it is closed.
    wait_for_value("the memory is clean", async || in_memory(pid, &needles), Vec::is_empty).await;
    assert_eq!(in_processes(pid, &needles), clean);
    assert_eq!(in_files(installation.dir.path(), &needles), clean);
}
