//! One SFTP session: requests go out as they come, replies find their request by its number. Many requests can be under
//! way at once; that is what makes transfers fast over a long distance.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::packet::{
    self, MalformedSftpPacketError, NamedSftpAttrs, SetAttrs, SftpAttrs, SftpOpenMode, SftpReply, SftpRequest,
    SftpStatus,
};

/// How long the server may take for one reply, once a session is open.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest packet that we accept: OpenSSH sends at most 256 KiB.
const MAX_PACKET_BYTES: usize = 260 * 1024;
/// Every server takes and returns this much at once.
const SMALL_CHUNK: u32 = 32 * 1024;
/// What we ask for at once if the server says that it can.
const LARGE_CHUNK: u32 = 255 * 1024;
const LIMITS: &str = "limits@openssh.com";

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SftpFault {
    #[error("the session has ended")]
    Closed,
    #[error("no reply in time")]
    TimedOut,
    #[error("a reply that doesn't fit its request")]
    Unexpected,
    #[error("status {}: {}", .0.code, .0.message)]
    Status(SftpStatus),
}

impl From<MalformedSftpPacketError> for SftpFault {
    fn from(_: MalformedSftpPacketError) -> Self {
        Self::Unexpected
    }
}

impl SftpFault {
    pub(super) fn is_status(&self, code: u32) -> bool {
        matches!(self, Self::Status(status) if status.code == code)
    }
}

type Writer = Box<dyn AsyncWrite + Send + Unpin>;
type PendingSftpReplies = HashMap<u32, oneshot::Sender<SftpReply>>;

/// An open SFTP session.
pub(super) struct SftpSession {
    /// `None` once the session was closed.
    writer: tokio::sync::Mutex<Option<Writer>>,
    /// `None` once no reply can come any more.
    pending: Arc<Mutex<Option<PendingSftpReplies>>>,
    next_id: AtomicU32,
    closed: CancellationToken,
    used_at: Mutex<Instant>,
    /// When the server last replied to anything.
    replied_at: Arc<Mutex<Instant>>,
    /// Counts what may have changed in a folder, for all sessions of the connection.
    folder_changes: Arc<AtomicU64>,
    extensions: Vec<String>,
    read_chunk: u32,
    write_chunk: u32,
}

/// A request whose reply is still to come.
pub(super) struct PendingSftpReply {
    reply: oneshot::Receiver<SftpReply>,
    folder_changes: Option<Arc<AtomicU64>>,
}

impl PendingSftpReply {
    pub(super) async fn wait(self) -> Result<SftpReply, SftpFault> {
        let reply = tokio::time::timeout(REPLY_TIMEOUT, self.reply).await;
        // Even without a reply: it may have been done.
        if let Some(changes) = self.folder_changes {
            changes.fetch_add(1, Ordering::Relaxed);
        }
        match reply {
            Ok(Ok(SftpReply::Failed(status))) => Err(SftpFault::Status(status)),
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(_)) => Err(SftpFault::Closed),
            Err(_) => Err(SftpFault::TimedOut),
        }
    }
}

impl SftpSession {
    /// Greets the server and starts reading its replies.
    pub(super) async fn start(
        reader: impl AsyncRead + Send + Unpin + 'static,
        mut writer: impl AsyncWrite + Send + Unpin + 'static,
        folder_changes: Arc<AtomicU64>,
    ) -> Result<Self, SftpFault> {
        let mut reader = BufReader::new(reader);
        let broken = |_| SftpFault::Closed;
        writer.write_all(&packet::encode_init()).await.map_err(broken)?;
        writer.flush().await.map_err(broken)?;
        let extensions = packet::decode_version(read_packet(&mut reader).await?)?;
        let mut session = Self {
            writer: tokio::sync::Mutex::new(Some(Box::new(writer))),
            pending: Arc::new(Mutex::new(Some(HashMap::new()))),
            next_id: AtomicU32::new(1),
            closed: CancellationToken::new(),
            used_at: Mutex::new(Instant::now()),
            replied_at: Arc::new(Mutex::new(Instant::now())),
            folder_changes,
            extensions,
            read_chunk: SMALL_CHUNK,
            write_chunk: SMALL_CHUNK,
        };
        let told = (session.pending.clone(), session.replied_at.clone());
        tokio::spawn(dispatch_replies(reader, told, session.closed.clone()));
        if session.has_extension(LIMITS)
            && let SftpReply::Extended(reply) =
                session.request(SftpRequest::Extended { name: LIMITS, argument: None }).await?
        {
            let [_packet, read, write, _handles] = packet::decode_numbers(reply)?;
            // Zero means that the server names no limit.
            let limit = |told: u64| u32::try_from(told).unwrap_or(u32::MAX).clamp(1, LARGE_CHUNK);
            session.read_chunk = if read == 0 { SMALL_CHUNK } else { limit(read) };
            session.write_chunk = if write == 0 { SMALL_CHUNK } else { limit(write) };
        }
        Ok(session)
    }

    pub(super) fn has_extension(&self, name: &str) -> bool {
        self.extensions.iter().any(|known| known == name)
    }

    /// How much one read may ask for.
    pub(super) const fn read_chunk(&self) -> u32 {
        self.read_chunk
    }

    /// How much one write may carry.
    pub(super) const fn write_chunk(&self) -> u32 {
        self.write_chunk
    }

    /// Marks the session as unusable; requests under way fail.
    pub(super) fn invalidate(&self) {
        self.closed.cancel();
    }

    pub(super) const fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Notes that it is in use.
    pub(super) fn touch(&self) {
        *lock(&self.used_at) = Instant::now();
    }

    pub(super) fn used_at(&self) -> Instant {
        *lock(&self.used_at)
    }

    /// Ends the session: the server's process sees the end of its input.
    pub(super) async fn close(&self) {
        self.closed.cancel();
        *self.writer.lock().await = None;
    }

    /// Sends a request and waits until the server's end has taken it, not for its reply.
    pub(super) async fn send(&self, request: SftpRequest<'_>) -> Result<PendingSftpReply, SftpFault> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (tell, reply) = oneshot::channel();
        match lock(&self.pending).as_mut() {
            Some(pending) => pending.insert(id, tell),
            None => return Err(SftpFault::Closed),
        };
        let folder_changes = changes_folder(&request).then(|| self.folder_changes.clone());
        let head = request.encode(id);
        let data = if let SftpRequest::Write { data, .. } = request { data } else { &[] };
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(SftpFault::Closed),
            () = self.silent_too_long() => Err(SftpFault::TimedOut),
            written = self.write(&head, data) => written.map(|()| PendingSftpReply { reply, folder_changes }),
        }
    }

    /// Resolves when the server has replied to nothing for too long: on a silent network a write waits until ssh gives
    /// up, which takes a minute.
    async fn silent_too_long(&self) {
        let asked_at = Instant::now();
        loop {
            let until = asked_at.max(*lock(&self.replied_at)) + REPLY_TIMEOUT;
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    async fn write(&self, head: &[u8], data: &[u8]) -> Result<(), SftpFault> {
        let mut writer = self.writer.lock().await;
        let writer = writer.as_mut().ok_or(SftpFault::Closed)?;
        // Half a packet would garble all that follow it, so a caller who stops waiting here ends the session.
        let half_written = CloseSessionUnlessDone(Some(&self.closed));
        writer.write_all(head).await.map_err(|_| SftpFault::Closed)?;
        writer.write_all(data).await.map_err(|_| SftpFault::Closed)?;
        half_written.done();
        Ok(())
    }

    /// Sends a request and waits for its reply.
    pub(super) async fn request(&self, request: SftpRequest<'_>) -> Result<SftpReply, SftpFault> {
        self.send(request).await?.wait().await
    }

    /// A request that only succeeds or fails.
    pub(super) async fn run(&self, request: SftpRequest<'_>) -> Result<(), SftpFault> {
        match self.request(request).await? {
            SftpReply::Done => Ok(()),
            _ => Err(SftpFault::Unexpected),
        }
    }

    pub(super) async fn attrs(&self, request: SftpRequest<'_>) -> Result<SftpAttrs, SftpFault> {
        match self.request(request).await? {
            SftpReply::Attrs(attrs) => Ok(attrs),
            _ => Err(SftpFault::Unexpected),
        }
    }

    pub(super) async fn names(&self, request: SftpRequest<'_>) -> Result<Vec<NamedSftpAttrs>, SftpFault> {
        match self.request(request).await? {
            SftpReply::Names(names) => Ok(names),
            _ => Err(SftpFault::Unexpected),
        }
    }

    pub(super) async fn open_file(&self, path: &[u8], mode: SftpOpenMode, attrs: SetAttrs) -> Result<Bytes, SftpFault> {
        self.handle(SftpRequest::Open { path, mode, attrs }).await
    }

    pub(super) async fn open_dir(&self, path: &[u8]) -> Result<Bytes, SftpFault> {
        self.handle(SftpRequest::OpenDir { path }).await
    }

    async fn handle(&self, request: SftpRequest<'_>) -> Result<Bytes, SftpFault> {
        match self.request(request).await? {
            SftpReply::Handle(handle) => Ok(handle),
            _ => Err(SftpFault::Unexpected),
        }
    }

    /// Whether or not what came before succeeded, the server has it open. Also reports what only closing brings to
    /// light, such as a full quota on a network file system.
    pub(super) async fn close_handle(&self, handle: &[u8]) -> Result<(), SftpFault> {
        self.run(SftpRequest::Close { handle }).await
    }
}

/// Whether a folder may list something else after this request.
const fn changes_folder(request: &SftpRequest<'_>) -> bool {
    match request {
        SftpRequest::Open { mode, .. } => !matches!(mode, SftpOpenMode::Read),
        SftpRequest::SetStat { .. }
        | SftpRequest::SetHandleStat { .. }
        | SftpRequest::Remove { .. }
        | SftpRequest::MakeDir { .. }
        | SftpRequest::RemoveDir { .. }
        | SftpRequest::Rename { .. }
        | SftpRequest::MakeLink { .. }
        | SftpRequest::ExtendedPair { .. } => true,
        _ => false,
    }
}

/// Cancels the token when dropped, unless it is done.
struct CloseSessionUnlessDone<'a>(Option<&'a CancellationToken>);

impl CloseSessionUnlessDone<'_> {
    fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for CloseSessionUnlessDone<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.0 {
            token.cancel();
        }
    }
}

/// Hands each reply to whoever waits for it, until the session ends.
async fn dispatch_replies(
    mut reader: impl AsyncRead + Unpin,
    (pending, replied_at): (Arc<Mutex<Option<PendingSftpReplies>>>, Arc<Mutex<Instant>>),
    closed: CancellationToken,
) {
    loop {
        let read = tokio::select! {
            () = closed.cancelled() => break,
            read = read_packet(&mut reader) => read,
        };
        let Ok(Ok((id, reply))) = read.map(packet::decode_reply) else { break };
        *lock(&replied_at) = Instant::now();
        let waiting = lock(&pending).as_mut().and_then(|pending| pending.remove(&id));
        // Nobody asked: from here on, nothing can be trusted.
        let Some(waiting) = waiting else { break };
        let _ = waiting.send(reply);
    }
    closed.cancel();
    *lock(&pending) = None;
}

async fn read_packet(reader: &mut (impl AsyncRead + Unpin)) -> Result<Bytes, SftpFault> {
    let broken = |_| SftpFault::Closed;
    let len = usize::try_from(reader.read_u32().await.map_err(broken)?).unwrap_or(usize::MAX);
    // A login shell's chatter reads as a huge number.
    if len > MAX_PACKET_BYTES {
        return Err(SftpFault::Unexpected);
    }
    let mut packet = BytesMut::zeroed(len);
    reader.read_exact(&mut packet).await.map_err(broken)?;
    Ok(packet.freeze())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
