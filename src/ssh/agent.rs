//! An ssh-agent inside the portal. It signs for the ssh processes that the portal starts, so that no private key is
//! ever written to a file. It supports only the two requests they need: listing keys and signing.
//!
//! It answers only processes that run as the portal's own user and that the caller allows, and only while the
//! [`SshAgent`] lives.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{AbortHandle, JoinSet};

use super::keys::PrivateKey;
use super::process::is_allowed_peer;
use super::wire::{WireReader, put_string};

/// The limit of OpenSSH's own agent.
const MAX_MESSAGE_BYTES: usize = 256 * 1024;
/// ssh needs one connection, and a second one for a jump host.
const MAX_CONNECTIONS: usize = 16;

/// Pause after a failed accept, which happens when too many files are open.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);

const FAILURE: u8 = 5;
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentReplyKind {
    Listed,
    /// The index of the key that signed.
    Signed(usize),
    Refused,
}

/// Answers one request. Neither message includes its length prefix.
pub fn answer_request(request: &[u8], keys: &[PrivateKey]) -> (Vec<u8>, AgentReplyKind) {
    let mut reader = WireReader::new(request);
    let answered = match reader.byte() {
        Some(REQUEST_IDENTITIES) if reader.rest().is_empty() => list_keys(keys),
        Some(SIGN_REQUEST) => sign_request(reader, keys),
        _ => None,
    };
    answered.unwrap_or_else(|| (vec![FAILURE], AgentReplyKind::Refused))
}

fn list_keys(keys: &[PrivateKey]) -> Option<(Vec<u8>, AgentReplyKind)> {
    let mut reply = vec![IDENTITIES_ANSWER];
    reply.extend_from_slice(&u32::try_from(keys.len()).ok()?.to_be_bytes());
    for key in keys {
        put_string(&mut reply, key.public().blob());
        put_string(&mut reply, key.public().comment().as_bytes());
    }
    Some((reply, AgentReplyKind::Listed))
}

fn sign_request(mut reader: WireReader<'_>, keys: &[PrivateKey]) -> Option<(Vec<u8>, AgentReplyKind)> {
    let (blob, data, flags) = (reader.string()?, reader.string()?, reader.number()?);
    if !reader.rest().is_empty() {
        return None;
    }
    let index = keys.iter().position(|key| key.public().blob() == blob)?;
    match keys[index].sign(data, flags) {
        Ok(signature) => {
            let mut reply = vec![SIGN_RESPONSE];
            put_string(&mut reply, &signature);
            Some((reply, AgentReplyKind::Signed(index)))
        }
        Err(error) => {
            tracing::warn!("An SSH key failed to sign: {error}.");
            None
        }
    }
}

/// A running agent. Dropping it closes all connections, removes the socket and forgets the keys.
#[derive(Debug)]
pub struct SshAgent {
    path: PathBuf,
    shared: Arc<SshAgentState>,
    task: AbortHandle,
}

#[derive(Debug)]
struct SshAgentState {
    /// Emptied when the agent is dropped. A signature in progress keeps its own reference.
    keys: Mutex<Option<Arc<Vec<PrivateKey>>>>,
    list_count: AtomicUsize,
    signing_key_index: Mutex<Option<usize>>,
}

impl SshAgent {
    /// Starts an agent on a new socket. Its folder must exist and be accessible only to our own user. `allowed`
    /// checks the process behind each new connection. Call it inside the runtime.
    pub fn start(
        path: &Path,
        keys: Vec<PrivateKey>,
        allowed: impl Fn(i32) -> bool + Send + Sync + 'static,
    ) -> io::Result<Self> {
        check_folder(path)?;
        let listener = UnixListener::bind(path)?;
        let shared = Arc::new(SshAgentState {
            keys: Mutex::new(Some(Arc::new(keys))),
            list_count: AtomicUsize::new(0),
            signing_key_index: Mutex::new(None),
        });
        let task = tokio::spawn(accept_connections(listener, shared.clone(), allowed)).abort_handle();
        let agent = Self { path: path.to_owned(), shared, task };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(agent)
    }

    /// How often the keys have been listed.
    pub fn list_count(&self) -> usize {
        self.shared.list_count.load(Ordering::Relaxed)
    }

    /// The index of the key that signed last, if any.
    pub fn signing_key_index(&self) -> Option<usize> {
        *self.shared.signing_key_index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SshAgent {
    fn drop(&mut self) {
        self.task.abort();
        // The socket may already be gone together with its folder.
        let _ = std::fs::remove_file(&self.path);
        self.shared.keys.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// The socket gets its mode only shortly after it appears; until then the folder keeps others out.
fn check_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.ok_or_else(|| permission_denied("the agent's socket needs a folder of its own"))?;
    let metadata = std::fs::symlink_metadata(folder)?;
    let private =
        metadata.is_dir() && metadata.mode() & 0o777 == 0o700 && metadata.uid() == rustix::process::geteuid().as_raw();
    if private {
        Ok(())
    } else {
        Err(permission_denied("the folder of the agent's socket must be open to its own user only (0700)"))
    }
}

fn permission_denied(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

async fn accept_connections(
    listener: UnixListener,
    shared: Arc<SshAgentState>,
    allowed: impl Fn(i32) -> bool + Send + Sync + 'static,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) if is_allowed_peer(&stream, &allowed) => {
                    connections.spawn(serve(stream, shared.clone()));
                }
                Ok(_) => tracing::warn!("Ignored a request to the SSH agent from an unknown process."),
                Err(error) => {
                    tracing::warn!("The SSH agent could not accept a connection: {error}.");
                    tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Answers requests until the client hangs up or breaks the protocol.
async fn serve(mut stream: UnixStream, shared: Arc<SshAgentState>) -> io::Result<()> {
    loop {
        let length = usize::try_from(stream.read_u32().await?).unwrap_or(usize::MAX);
        if length == 0 || length > MAX_MESSAGE_BYTES {
            return Ok(());
        }
        let mut request = vec![0; length];
        stream.read_exact(&mut request).await?;
        let keys = shared.keys.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(keys) = keys else { return Ok(()) };
        // An RSA signature takes long enough to block other work.
        let (reply, asked) = tokio::task::spawn_blocking(move || answer_request(&request, &keys)).await?;
        match asked {
            AgentReplyKind::Listed => {
                shared.list_count.fetch_add(1, Ordering::Relaxed);
            }
            AgentReplyKind::Signed(index) => {
                *shared.signing_key_index.lock().unwrap_or_else(PoisonError::into_inner) = Some(index);
            }
            AgentReplyKind::Refused => {}
        }
        let mut message = Vec::with_capacity(reply.len() + 4);
        put_string(&mut message, &reply);
        stream.write_all(&message).await?;
    }
}

#[cfg(test)]
mod tests;
