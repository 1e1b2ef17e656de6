use std::process::{Output, Stdio};

use tokio::process::Command;

use super::*;
use crate::ssh::key_import::import;
use crate::ssh::keys::tests::verifies;
use crate::ssh::keys::{RSA_SHA2_256, RSA_SHA2_512};
use crate::ssh::process::is_self_or_descendant;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/keys/accepted");

fn key(name: &str) -> PrivateKey {
    import(&std::fs::read_to_string(format!("{FIXTURES}/{name}")).unwrap(), None).unwrap()
}

fn request(blob: &[u8], data: &[u8], flags: u32) -> Vec<u8> {
    let mut request = vec![SIGN_REQUEST];
    put_string(&mut request, blob);
    put_string(&mut request, data);
    request.extend_from_slice(&flags.to_be_bytes());
    request
}

#[test]
fn keys_are_listed_with_their_comments() {
    let keys = [PrivateKey::generate("one").unwrap(), PrivateKey::generate("").unwrap()];
    let mut expected = vec![IDENTITIES_ANSWER, 0, 0, 0, 2];
    for key in &keys {
        put_string(&mut expected, key.public().blob());
        put_string(&mut expected, key.public().comment().as_bytes());
    }
    assert_eq!(answer_request(&[REQUEST_IDENTITIES], &keys), (expected, AgentReplyKind::Listed));
    assert_eq!(answer_request(&[REQUEST_IDENTITIES], &[]).0, [IDENTITIES_ANSWER, 0, 0, 0, 0]);
}

#[test]
fn the_key_that_was_asked_signs() {
    let keys = [PrivateKey::generate("one").unwrap(), key("openssh_rsa_3072")];
    for (index, flags) in [(0, 0), (0, RSA_SHA2_512), (1, RSA_SHA2_256), (1, RSA_SHA2_512)] {
        let public = keys[index].public();
        let (reply, asked) = answer_request(&request(public.blob(), b"data", flags), &keys);
        assert_eq!(asked, AgentReplyKind::Signed(index));
        let mut reader = WireReader::new(&reply);
        assert_eq!(reader.byte(), Some(SIGN_RESPONSE));
        let signature = reader.string().unwrap();
        assert!(reader.rest().is_empty());
        assert!(verifies(public, b"data", signature));
        let algorithm = WireReader::new(signature).text().unwrap();
        assert_eq!(
            algorithm,
            match (index, flags) {
                (0, _) => "ssh-ed25519",
                (_, RSA_SHA2_256) => "rsa-sha2-256",
                _ => "rsa-sha2-512",
            }
        );
    }
}

#[test]
fn everything_else_is_refused() {
    let keys = [key("openssh_rsa_3072")];
    let blob = keys[0].public().blob();
    let good = request(blob, b"data", RSA_SHA2_256);
    let mut refused = vec![
        request(blob, b"data", 0),
        request(blob, b"data", 1),
        request(PrivateKey::generate("").unwrap().public().blob(), b"data", RSA_SHA2_256),
        [&good[..], &[0]].concat(),
        vec![REQUEST_IDENTITIES, 0],
    ];
    refused.extend((0..good.len()).map(|end| good[..end].to_vec()));
    // Adding and removing keys, locking, extensions: everything else that an agent can be asked for.
    refused.extend((0..=u8::MAX).filter(|kind| *kind != REQUEST_IDENTITIES).map(|kind| vec![kind]));
    for request in refused {
        assert_eq!(answer_request(&request, &keys), (vec![FAILURE], AgentReplyKind::Refused), "{request:?}");
    }
}

fn our_own() -> impl Fn(i32) -> bool + Send + Sync + 'static {
    let me = i32::try_from(std::process::id()).unwrap();
    move |pid| is_self_or_descendant(pid, me)
}

/// A folder as the portal creates it for an agent, and a path in it.
fn socket() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let path = folder.path().join("a");
    (folder, path)
}

async fn run(program: &str, args: &[&str], agent: &Path, input: &str) -> Output {
    let mut child = Command::new(program)
        .args(args)
        .env("SSH_AUTH_SOCK", agent)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the OpenSSH client is installed");
    child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    child.wait_with_output().await.unwrap()
}

#[tokio::test]
async fn ssh_add_lists_the_keys() {
    let (_folder, path) = socket();
    let keys = vec![PrivateKey::generate("my key").unwrap(), key("openssh_rsa_4096")];
    let prints: Vec<String> = keys.iter().map(|key| key.public().fingerprint()).collect();
    let agent = SshAgent::start(&path, keys, our_own()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!((agent.list_count(), agent.signing_key_index()), (0, None));

    let listed = run("ssh-add", &["-l"], &path, "").await;
    let expected = format!("256 {} my key (ED25519)\n4096 {} test key (RSA)\n", prints[0], prints[1]);
    assert_eq!(String::from_utf8_lossy(&listed.stdout), expected, "{listed:?}");
    assert_eq!((agent.list_count(), agent.signing_key_index()), (1, None));

    let removal = run("ssh-add", &["-D"], &path, "").await;
    assert!(!removal.status.success(), "keys cannot be taken out");
}

/// OpenSSH verifies signatures of every key type made through the agent.
#[tokio::test]
async fn openssh_accepts_the_signatures() {
    let (folder, path) = socket();
    let names = [
        "openssh_ed25519",
        "openssh_p256_short",
        "openssh_p384",
        "openssh_p521_short",
        "openssh_rsa_3072",
        "openssh_rsa_4096",
    ];
    let agent = SshAgent::start(&path, names.map(key).into(), our_own()).unwrap();
    for (index, name) in names.iter().enumerate() {
        let public = format!("{FIXTURES}/{name}.pub");
        let sign = ["-Y", "sign", "-U", "-n", "test", "-f", &public];
        let signed = run("ssh-keygen", &sign, &path, "data").await;
        assert!(signed.status.success(), "{name}: {signed:?}");
        assert_eq!(agent.signing_key_index(), Some(index), "{name}");

        let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (allowed, signature) = (file("allowed"), file("signature"));
        let line = std::fs::read_to_string(&public).unwrap();
        std::fs::write(&allowed, format!("me {line}")).unwrap();
        std::fs::write(&signature, signed.stdout).unwrap();
        let verify = ["-Y", "verify", "-n", "test", "-I", "me", "-f", &allowed, "-s", &signature];
        let checked = run("ssh-keygen", &verify, &path, "data").await;
        assert!(checked.status.success(), "{name}: {checked:?}");
        let checked = run("ssh-keygen", &verify, &path, "date").await;
        assert!(!checked.status.success(), "{name}: other data");
    }
}

#[tokio::test]
async fn a_stranger_gets_no_answer() {
    let (_folder, path) = socket();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let refuse = move |pid| {
        seen.lock().unwrap().push(pid);
        false
    };
    let agent = SshAgent::start(&path, vec![PrivateKey::generate("").unwrap()], refuse).unwrap();
    let listed = run("ssh-add", &["-l"], &path, "").await;
    assert!(!listed.status.success() && listed.stdout.is_empty(), "{listed:?}");

    let mut stream = UnixStream::connect(&path).await.unwrap();
    let mut reply = Vec::new();
    // The agent hangs up, whether or not it read what was sent.
    let _ = stream.write_all(&[0, 0, 0, 1, REQUEST_IDENTITIES]).await;
    let _ = stream.read_to_end(&mut reply).await;
    assert!(reply.is_empty());
    assert_eq!((agent.list_count(), agent.signing_key_index()), (0, None));
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1], i32::try_from(std::process::id()).unwrap());
}

#[tokio::test]
async fn messages_without_measure_end_the_connection() {
    let (_folder, path) = socket();
    let _agent = SshAgent::start(&path, vec![PrivateKey::generate("").unwrap()], our_own()).unwrap();
    for length in [0, u32::try_from(MAX_MESSAGE_BYTES).unwrap() + 1, u32::MAX] {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        stream.write_all(&length.to_be_bytes()).await.unwrap();
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "{length}");
    }
}

#[tokio::test]
async fn one_connection_too_many_waits_for_its_turn() {
    let (_folder, path) = socket();
    let _agent = SshAgent::start(&path, vec![PrivateKey::generate("").unwrap()], our_own()).unwrap();
    let mut idle = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        idle.push(UnixStream::connect(&path).await.unwrap());
    }
    let mut last = UnixStream::connect(&path).await.unwrap();
    last.write_all(&[0, 0, 0, 1, REQUEST_IDENTITIES]).await.unwrap();
    idle.pop();
    assert!(last.read_u32().await.unwrap() > 5);
    assert_eq!(last.read_u8().await.unwrap(), IDENTITIES_ANSWER);
}

#[tokio::test]
async fn dropping_the_agent_ends_everything() {
    let (folder, path) = socket();
    let keys = vec![PrivateKey::generate("").unwrap()];
    let agent = SshAgent::start(&path, keys, our_own()).unwrap();
    let kept = Arc::downgrade(agent.shared.keys.lock().unwrap().as_ref().unwrap());
    let mut stream = UnixStream::connect(&path).await.unwrap();
    stream.write_all(&[0, 0, 0, 1, REQUEST_IDENTITIES]).await.unwrap();
    assert!(stream.read_u32().await.unwrap() > 5);
    assert!(!format!("{agent:?}").contains("seed"));

    drop(agent);
    assert!(kept.upgrade().is_none(), "the keys are gone at once");
    assert!(!path.exists());
    assert!(UnixStream::connect(&path).await.is_err());
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    let again = SshAgent::start(&path, Vec::new(), our_own()).unwrap();
    folder.close().unwrap();
    drop(again);
}

#[tokio::test]
async fn the_folder_must_be_private() {
    let (folder, path) = socket();
    for mode in [0o755, 0o701, 0o770] {
        let open = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.path(), open).unwrap();
        let error = SshAgent::start(&path, Vec::new(), our_own()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{mode:o}");
        assert!(!path.exists());
    }
    let bare = SshAgent::start(Path::new("a"), Vec::new(), our_own()).unwrap_err();
    assert_eq!(bare.kind(), io::ErrorKind::PermissionDenied);
}
