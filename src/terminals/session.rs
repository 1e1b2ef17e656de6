//! One terminal: its program, its screen, and the one viewer that it has at a time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::screen::RememberedScreen;
use super::{TerminalCloseReason, TerminalId};
use crate::clock::{Clock, UnixTime};
use crate::cluster::ClusterAccountId;
use crate::core::lock;
use crate::slurm::job::JobId;
use crate::ssh::terminal::{TerminalEnd, TerminalInput, TerminalOutput, TerminalSize};

/// How much is read at once. What waits for a viewer is a few times this.
const CHUNK_BYTES: usize = 16 * 1024;
const WAITING_CHUNKS: usize = 8;
/// A viewer that takes nothing for this long is no longer there.
const STUCK_AFTER: Duration = Duration::from_secs(10);
/// How many pieces of input may wait for the program. A viewer learns when each was taken.
const WAITING_INPUTS: usize = 4;

/// What a viewer receives, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalEvent {
    Output(Bytes),
    /// It has ended; says why, as a sentence.
    Ended(&'static str),
}

/// Why a viewer no longer sees a terminal that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewerDetached {
    /// Another window shows it now.
    Moved,
    /// It took nothing for too long.
    Stuck,
}

/// A terminal that is open.
pub struct TerminalSession {
    pub id: TerminalId,
    pub account: ClusterAccountId,
    /// The cluster's title when it was opened.
    pub cluster: String,
    /// The job in which its shell runs.
    pub job: Option<JobId>,
    pub opened_at: UnixTime,
    clock: Clock,
    state: Mutex<TerminalSessionState>,
    input: mpsc::Sender<TypedInput>,
    window: Arc<TerminalInput>,
    close: CancellationToken,
    close_reason: Mutex<Option<TerminalCloseReason>>,
}

struct TerminalSessionState {
    screen: RememberedScreen,
    viewer: Option<AttachedViewer>,
    viewers_so_far: u64,
    /// Since when nobody looks.
    unseen_since: UnixTime,
}

/// A piece of what someone typed.
struct TypedInput {
    bytes: Bytes,
    /// Who typed it.
    viewer: u64,
}

struct AttachedViewer {
    number: u64,
    /// How many pieces of its input the program's side has taken.
    taken: watch::Sender<u64>,
    events: mpsc::Sender<TerminalEvent>,
    detached: oneshot::Sender<ViewerDetached>,
    /// It began with a program that has the whole screen, and doesn't know what lies below.
    lacks_main_screen: bool,
}

/// A window on a terminal. Dropping it leaves the terminal as it is.
pub struct TerminalViewer {
    session: Arc<TerminalSession>,
    number: u64,
}

/// What a window receives.
pub struct TerminalViewerEvents {
    pub events: mpsc::Receiver<TerminalEvent>,
    /// Resolves when it no longer shows the terminal.
    pub detached: oneshot::Receiver<ViewerDetached>,
    /// How many pieces of the window's input have been passed on.
    pub taken: watch::Receiver<u64>,
}

/// What of a terminal is not shared: moved into the task that runs it.
pub(super) struct TerminalEnds {
    output: TerminalOutput,
    waiting_input: mpsc::Receiver<TypedInput>,
}

/// What a new terminal is.
pub(super) struct NewTerminalSession {
    pub id: TerminalId,
    pub account: ClusterAccountId,
    pub cluster: String,
    pub job: Option<JobId>,
    pub size: TerminalSize,
}

impl TerminalSession {
    pub(super) fn new(
        new: NewTerminalSession,
        clock: Clock,
        (output, input): (TerminalOutput, TerminalInput),
    ) -> (Arc<Self>, TerminalEnds) {
        let (sender, waiting_input) = mpsc::channel(WAITING_INPUTS);
        let session = Self {
            id: new.id,
            account: new.account,
            cluster: new.cluster,
            job: new.job,
            opened_at: clock.now(),
            state: Mutex::new(TerminalSessionState {
                screen: RememberedScreen::new(new.size),
                viewer: None,
                viewers_so_far: 0,
                unseen_since: clock.now(),
            }),
            clock,
            input: sender,
            window: Arc::new(input),
            close: CancellationToken::new(),
            close_reason: Mutex::default(),
        };
        (Arc::new(session), TerminalEnds { output, waiting_input })
    }

    /// Shows the terminal in a window of this size. The window that showed it before is told.
    pub fn attach(self: &Arc<Self>, size: TerminalSize) -> (TerminalViewer, TerminalViewerEvents) {
        let (sender, events) = mpsc::channel(WAITING_CHUNKS);
        let (detached_sender, detached) = oneshot::channel();
        let (taken_sender, taken) = watch::channel(0);
        let mut state = lock(&self.state);
        state.screen.resize(size);
        state.viewers_so_far += 1;
        let number = state.viewers_so_far;
        // The channel is empty, so there is room.
        let _ = sender.try_send(TerminalEvent::Output(state.screen.snapshot().into()));
        let lacks_main_screen = state.screen.is_alternate();
        let viewer = AttachedViewer {
            number,
            taken: taken_sender,
            events: sender,
            detached: detached_sender,
            lacks_main_screen,
        };
        if let Some(previous) = state.viewer.replace(viewer) {
            let _ = previous.detached.send(ViewerDetached::Moved);
        }
        drop(state);
        self.window.resize(size);
        self.window.record_use();
        (TerminalViewer { session: self.clone(), number }, TerminalViewerEvents { events, detached, taken })
    }

    /// Since when nobody looks; none if someone does.
    pub fn unseen_since(&self) -> Option<UnixTime> {
        let state = lock(&self.state);
        state.viewer.is_none().then_some(state.unseen_since)
    }

    /// Counts the connection as used for as long as the terminal is there.
    pub(super) fn record_use(&self) {
        self.window.record_use();
    }

    /// Ends it. The first reason counts.
    pub(super) fn close(&self, reason: TerminalCloseReason) {
        lock(&self.close_reason).get_or_insert(reason);
        self.close.cancel();
    }

    /// Runs it to its end, and returns why it ended.
    pub(super) async fn run(self: Arc<Self>, ends: TerminalEnds, stop: CancellationToken) -> TerminalCloseReason {
        let TerminalEnds { output, waiting_input } = ends;
        let reason = tokio::select! {
            end = self.forward_output(output) => match end {
                TerminalEnd::Exited(_) | TerminalEnd::Closed => TerminalCloseReason::Exited,
                TerminalEnd::Refused => TerminalCloseReason::NoTerminals,
                TerminalEnd::ConnectionLost => TerminalCloseReason::ConnectionLost,
            },
            () = self.forward_input(waiting_input) => TerminalCloseReason::ConnectionLost,
            () = self.close.cancelled() => lock(&self.close_reason).unwrap_or(TerminalCloseReason::Closed),
            () = stop.cancelled() => TerminalCloseReason::PortalStops,
        };
        let viewer = lock(&self.state).viewer.take();
        if let Some(viewer) = viewer {
            // Without room within that time it is not listening anyway.
            let _ = viewer.events.send_timeout(TerminalEvent::Ended(reason.sentence()), STUCK_AFTER / 10).await;
        }
        reason
    }

    async fn forward_output(&self, mut output: TerminalOutput) -> TerminalEnd {
        loop {
            output.readable().await;
            let mut buffer = vec![0; CHUNK_BYTES];
            let count = output.read(&mut buffer).await;
            if count == 0 {
                return output.ended().await;
            }
            let Some((number, events, bytes)) = self.take_output(&buffer[..count]) else { continue };
            drop(buffer);
            // While this waits nothing is read, and the program waits as well.
            match events.send_timeout(TerminalEvent::Output(bytes), STUCK_AFTER).await {
                Ok(()) => {}
                Err(mpsc::error::SendTimeoutError::Timeout(_)) => self.detach(number, Some(ViewerDetached::Stuck)),
                Err(mpsc::error::SendTimeoutError::Closed(_)) => self.detach(number, None),
            }
        }
    }

    /// Puts output on the screen; returns what to send to whom. Who attaches afterwards has it on their screen already.
    fn take_output(&self, bytes: &[u8]) -> Option<(u64, mpsc::Sender<TerminalEvent>, Bytes)> {
        let mut state = lock(&self.state);
        let TerminalSessionState { screen, viewer, .. } = &mut *state;
        screen.process(bytes);
        let viewer = viewer.as_mut()?;
        let bytes = if viewer.lacks_main_screen && !screen.is_alternate() {
            viewer.lacks_main_screen = false;
            screen.snapshot().into()
        } else {
            Bytes::copy_from_slice(bytes)
        };
        Some((viewer.number, viewer.events.clone(), bytes))
    }

    async fn forward_input(&self, mut waiting: mpsc::Receiver<TypedInput>) {
        while let Some(TypedInput { bytes, viewer }) = waiting.recv().await {
            if let Err(error) = self.window.write(&bytes).await {
                tracing::debug!(%error, "A terminal takes no more input");
                // Its output tells how it ended.
                return std::future::pending().await;
            }
            let state = lock(&self.state);
            if let Some(current) = state.viewer.as_ref().filter(|current| current.number == viewer) {
                current.taken.send_modify(|count| *count += 1);
            }
        }
    }

    /// A viewer has left, or is made to.
    fn detach(&self, number: u64, told: Option<ViewerDetached>) {
        let mut state = lock(&self.state);
        if let Some(viewer) = state.viewer.take_if(|viewer| viewer.number == number) {
            state.unseen_since = self.clock.now();
            if let Some(told) = told {
                let _ = viewer.detached.send(told);
            }
        }
    }
}

impl TerminalViewer {
    /// Types these bytes. Waits while the program doesn't read.
    pub async fn write(&self, bytes: Bytes) {
        if self.is_current() {
            self.session.window.record_use();
            // It may have ended, which its events tell.
            let _ = self.session.input.send(TypedInput { bytes, viewer: self.number }).await;
        }
    }

    pub fn resize(&self, size: TerminalSize) {
        if self.is_current() {
            lock(&self.session.state).screen.resize(size);
            self.session.window.resize(size);
        }
    }

    fn is_current(&self) -> bool {
        lock(&self.session.state).viewer.as_ref().is_some_and(|viewer| viewer.number == self.number)
    }
}

impl Drop for TerminalViewer {
    fn drop(&mut self) {
        self.session.detach(self.number, None);
    }
}
