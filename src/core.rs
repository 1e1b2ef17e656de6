//! What almost every service depends on, passed around as one value.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::AuthService;
use crate::clock::Clock;
use crate::config::Config;
use crate::store::Store;
use crate::vault::Vault;

/// The shared foundations. Cheap to clone; all clones share the database, the accounts and the shutdown signal.
#[derive(Clone)]
pub struct Core {
    pub config: Arc<Config>,
    pub auth: AuthService,
    pub store: Store,
    pub vault: Vault,
    pub clock: Clock,
    /// Cancelled at shutdown: every stream and task ends with it.
    pub stop: CancellationToken,
    /// Background tasks, awaited at shutdown.
    pub tasks: TaskTracker,
}

impl Core {
    pub fn new(config: Config, store: Store, vault: Vault, clock: Clock) -> Self {
        let sessions = config.sessions.clone();
        Self {
            config: Arc::new(config),
            auth: AuthService::new(store.clone(), vault.clone(), clock.clone(), sessions),
            store,
            vault,
            clock,
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }
}

/// Locks a mutex. What a task that panicked left behind is still valid here.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
