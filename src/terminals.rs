//! People's terminals on clusters. They live in memory: closing a tab loses nothing, but a restart of the portal or a
//! lost connection ends them. What is typed and printed is written down nowhere.

mod screen;
mod session;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use self::session::NewTerminalSession;
pub use self::session::{TerminalEvent, TerminalSession, TerminalViewer, TerminalViewerEvents, ViewerDetached};
use crate::auth::SessionsEndedSignal;
use crate::auth::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use crate::auth::token::SecretToken;
use crate::cluster::job_shell::{JobShellTarget, job_shell};
use crate::cluster::{ClusterAccount, ConnectionPool};
use crate::core::{Core, lock};
use crate::domain::PersonId;
use crate::ssh::RunCommandError;
use crate::ssh::terminal::{self, OpenTerminalError, TerminalProgram, TerminalSize};
use crate::store::connections::ConnectionKey;
use crate::store::{self, StoreError};

/// How many terminals one person may have, on all clusters together.
pub const MAX_PER_PERSON: usize = 8;
/// How many terminals the portal holds.
const MAX_IN_ALL: usize = 200;
/// How often we look for terminals that should end.
const SWEEP_INTERVAL: Duration = Duration::from_secs(15);
/// Until a window tells its own.
const FIRST_SIZE: (u16, u16) = (80, 24);

/// Names a terminal in its address; it can't be guessed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TerminalId(Arc<str>);

impl fmt::Display for TerminalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why no terminal was opened. Each is a sentence for the person.
#[derive(Debug, thiserror::Error)]
pub enum StartTerminalError {
    #[error("Terminals are switched off on this portal.")]
    SwitchedOff,
    #[error("Terminals are switched off for this cluster.")]
    SwitchedOffHere,
    #[error("You already have {MAX_PER_PERSON} terminals. Close one that you no longer need, then try again.")]
    TooMany,
    #[error("The portal has no room for further terminals. Try again later.")]
    PortalFull,
    #[error(transparent)]
    Open(#[from] OpenTerminalError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a terminal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalCloseReason {
    /// The shell ended.
    Exited,
    /// Its owner closed it.
    Closed,
    ConnectionLost,
    /// The cluster gives no terminals.
    NoTerminals,
    /// Nobody looked for too long.
    Unseen,
    /// Its owner signed out everywhere, or may no longer use the portal.
    SignedOut,
    SwitchedOff,
    /// The cluster's host key is in doubt.
    Blocked,
    PortalStops,
}

impl TerminalCloseReason {
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Exited => "The shell has ended.",
            Self::Closed => "You closed this terminal.",
            Self::ConnectionLost => "The connection to the cluster was lost.",
            Self::NoTerminals => "The cluster doesn't allow terminals for your account.",
            Self::Unseen => "The terminal was closed because no window showed it for a long time.",
            Self::SignedOut => "You're signed out.",
            Self::SwitchedOff => "An administrator has switched terminals off.",
            Self::Blocked => {
                "Connections to this cluster are blocked until an administrator has reviewed its host key."
            }
            Self::PortalStops => "The portal is restarting.",
        }
    }
}

/// Everyone's terminals.
#[derive(Clone)]
pub struct TerminalService(Arc<TerminalServiceInner>);

struct TerminalServiceInner {
    core: Core,
    connections: ConnectionPool,
    registry: Mutex<TerminalRegistry>,
}

#[derive(Default)]
struct TerminalRegistry {
    open: HashMap<TerminalId, Arc<TerminalSession>>,
    /// Whose terminals are being opened.
    opening: Vec<PersonId>,
}

/// A place that is kept for a terminal while it opens.
struct TerminalReservation<'a> {
    service: &'a TerminalServiceInner,
    person: PersonId,
}

impl Drop for TerminalReservation<'_> {
    fn drop(&mut self) {
        let opening = &mut lock(&self.service.registry).opening;
        if let Some(place) = opening.iter().position(|person| *person == self.person) {
            opening.swap_remove(place);
        }
    }
}

impl TerminalService {
    pub fn new(core: Core, connections: ConnectionPool) -> Self {
        Self(Arc::new(TerminalServiceInner { core, connections, registry: Mutex::default() }))
    }

    /// Whether the portal offers terminals at all.
    pub fn is_enabled(&self) -> bool {
        self.0.core.config.terminals.enabled
    }

    /// Whether someone may open a terminal on a cluster.
    pub fn is_offered(&self, account: &ClusterAccount) -> bool {
        self.is_enabled() && account.site().terminals.0
    }

    /// Minutes without a viewer after which a terminal ends.
    pub fn idle_minutes(&self) -> u32 {
        self.0.core.config.terminals.idle_minutes
    }

    /// Opens a terminal on the cluster, or inside a running job of the person there.
    pub async fn open(
        &self,
        account: &ClusterAccount,
        job: Option<JobShellTarget>,
        actor: &Actor,
    ) -> Result<TerminalId, StartTerminalError> {
        if !self.is_enabled() {
            return Err(StartTerminalError::SwitchedOff);
        }
        if !self.is_offered(account) {
            return Err(StartTerminalError::SwitchedOffHere);
        }
        let reservation = self.reserve(account.id.person)?;
        let connection = account.connection(&self.0.connections).map_err(OpenTerminalError::from)?;
        let program = job.map_or(TerminalProgram::LoginShell, job_shell);
        let size = TerminalSize::clamped(FIRST_SIZE.0, FIRST_SIZE.1);
        let parts = terminal::open(&connection, &program, size).await?;
        let token = SecretToken::generate().map_err(|_| StoreError::Busy)?;
        let new = NewTerminalSession {
            id: TerminalId(token.as_str().into()),
            account: account.id,
            cluster: account.cluster().title.clone(),
            job: job.map(|job| job.id),
            size,
        };
        self.write_activity(actor, ActivityEventKind::TerminalOpened, account.id.person, &new.cluster, &about(job))
            .await?;
        let (session, ends) = TerminalSession::new(new, self.0.core.clock.clone(), parts);
        lock(&self.0.registry).open.insert(session.id.clone(), session.clone());
        drop(reservation);
        metrics::gauge!("portolan_terminals").increment(1);
        let (this, actor, id) = (self.clone(), actor.clone(), session.id.clone());
        self.0.core.tasks.spawn(async move {
            let reason = session.clone().run(ends, this.0.core.stop.clone()).await;
            lock(&this.0.registry).open.remove(&session.id);
            metrics::gauge!("portolan_terminals").decrement(1);
            let (person, kind) = (session.account.person, ActivityEventKind::TerminalClosed);
            if let Err(error) = this.write_activity(&actor, kind, person, &session.cluster, reason.sentence()).await {
                tracing::warn!(%error, "Could not record the end of a terminal");
            }
        });
        Ok(id)
    }

    /// The person's own terminal.
    pub fn find(&self, person: PersonId, id: &str) -> Option<Arc<TerminalSession>> {
        let id = TerminalId(id.into());
        lock(&self.0.registry).open.get(&id).filter(|session| session.account.person == person).cloned()
    }

    /// A person's terminals, the oldest first.
    pub fn list(&self, person: PersonId) -> Vec<Arc<TerminalSession>> {
        let mut own = self.filter(|session| session.account.person == person);
        own.sort_by(|a, b| (a.opened_at.0, &a.id.0).cmp(&(b.opened_at.0, &b.id.0)));
        own
    }

    /// Closes the person's own terminal; its programs are told to end.
    pub fn close(&self, person: PersonId, id: &str) {
        if let Some(session) = self.find(person, id) {
            session.close(TerminalCloseReason::Closed);
            // Gone from the list at once, although its end takes a moment.
            lock(&self.0.registry).open.remove(&session.id);
        }
    }

    /// Ends terminals that should not be there, until the portal stops.
    pub async fn run(self) {
        let mut ended = self.0.core.auth.subscribe_sessions_ended();
        let mut connections = self.0.connections.subscribe();
        let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            tokio::select! {
                () = self.0.core.stop.cancelled() => return,
                _ = ticks.tick() => {}
                event = ended.recv() => match event {
                    // Signing out in a single browser ends no terminal, only the windows in it.
                    Ok(SessionsEndedSignal::Session(_) | SessionsEndedSignal::Person(_, Some(_))) => continue,
                    Ok(SessionsEndedSignal::Person(person, None)) => self.close_person(person),
                    // Too many events were missed: the sweep looks at everyone.
                    Err(_) => {}
                },
                changed = connections.recv() => if let Ok(key) = changed {
                    self.close_unconnected(key);
                    continue;
                },
            }
            if let Err(error) = self.sweep().await {
                tracing::warn!(%error, "Could not check terminals; will retry");
            }
        }
    }

    fn close_person(&self, person: PersonId) {
        for session in self.filter(|session| session.account.person == person) {
            session.close(TerminalCloseReason::SignedOut);
        }
    }

    /// Ends the terminals of a connection that may not be used. Those of a connection that is gone end by themselves.
    fn close_unconnected(&self, key: ConnectionKey) {
        if !matches!(self.0.connections.connection(key), Err(RunCommandError::HostKeyInDoubt)) {
            return;
        }
        for session in self.filter(|session| session.account.connection_key() == key) {
            session.close(TerminalCloseReason::Blocked);
        }
    }

    /// Ends terminals that nobody looks at, whose owner may not use the portal, or whose cluster offers none.
    pub async fn sweep(&self) -> Result<(), StoreError> {
        let idle_seconds = i64::from(self.idle_minutes()) * 60;
        for session in self.filter(|_| true) {
            let now = self.0.core.clock.now();
            if session.unseen_since().is_some_and(|since| now.since(since) >= idle_seconds) {
                session.close(TerminalCloseReason::Unseen);
                continue;
            }
            session.record_use();
            self.close_unconnected(session.account.connection_key());
            match self.0.connections.accounts().get(session.account).await? {
                None => session.close(TerminalCloseReason::SignedOut),
                Some(account) if !self.is_offered(&account) => session.close(TerminalCloseReason::SwitchedOff),
                Some(_) => {
                    let mut db = self.0.core.store.read().await?;
                    if self.0.core.auth.viewer(&mut db, session.account.person).await?.is_none() {
                        session.close(TerminalCloseReason::SignedOut);
                    }
                }
            }
        }
        Ok(())
    }

    fn filter(&self, wanted: impl Fn(&TerminalSession) -> bool) -> Vec<Arc<TerminalSession>> {
        lock(&self.0.registry).open.values().filter(|session| wanted(session)).cloned().collect()
    }

    fn reserve(&self, person: PersonId) -> Result<TerminalReservation<'_>, StartTerminalError> {
        let mut registry = lock(&self.0.registry);
        let opening = registry.opening.iter().filter(|other| **other == person).count();
        let open = registry.open.values().filter(|session| session.account.person == person).count();
        if opening + open >= MAX_PER_PERSON {
            return Err(StartTerminalError::TooMany);
        }
        if registry.opening.len() + registry.open.len() >= MAX_IN_ALL {
            return Err(StartTerminalError::PortalFull);
        }
        registry.opening.push(person);
        Ok(TerminalReservation { service: &self.0, person })
    }

    async fn write_activity(
        &self,
        actor: &Actor,
        kind: ActivityEventKind,
        person: PersonId,
        subject: &str,
        detail: &str,
    ) -> Result<(), StoreError> {
        let mut tx = self.0.core.store.write().await?;
        let details = ActivityDetails { person: Some(person), subject, detail };
        record(&mut tx, actor, kind, details, self.0.core.clock.now()).await?;
        store::commit(tx).await
    }
}

/// Where its shell runs, for the activity log.
fn about(job: Option<JobShellTarget>) -> String {
    job.map(|job| format!("In job {}", job.id)).unwrap_or_default()
}
