//! Sessions on one connection: most centres allow ten, and refuse the next one immediately. People come first.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// How long a caller waits for a session before giving up.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// After this long without a refusal, one more session is tried.
const RAISE_LIMIT_AFTER: Duration = Duration::from_mins(5);

/// Who waits for the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallUrgency {
    Interactive,
    /// Nobody in particular: keeping snapshots fresh.
    Background,
    Bulk,
    /// Someone whom a person let in by a link: never at that person's cost.
    Guest,
    /// A terminal, which keeps its session for hours.
    Terminal,
}

/// The session slots of one connection.
#[derive(Debug)]
pub struct SessionSlots {
    all: Semaphore,
    background: Semaphore,
    bulk: Semaphore,
    terminals: Semaphore,
    /// For everything but people's own commands, which thereby always find a slot.
    shared: Semaphore,
    limit: AtomicUsize,
    max: usize,
    refused_at: std::sync::Mutex<Option<Instant>>,
    /// A caller is waiting: anyone who holds a slot only for convenience should release it.
    release_wanted: Notify,
}

/// A slot that is taken; dropping it frees it.
#[derive(Debug)]
pub struct SessionSlot<'a> {
    all: SemaphorePermit<'a>,
    /// Held, never read: the limit of its urgency class.
    class: Option<[SemaphorePermit<'a>; 2]>,
}

/// How many terminals a connection with this many sessions may hold: half, and none where commands would have no
/// session left.
const fn max_terminals(sessions: usize) -> usize {
    sessions / 2
}

impl SessionSlots {
    /// Some slots are reserved for people: background work and transfers can never take them all.
    pub fn new(most: usize) -> Self {
        let most = most.max(1);
        Self {
            all: Semaphore::new(most),
            background: Semaphore::new((most * 5 / 8).max(1)),
            bulk: Semaphore::new((most / 3).max(1)),
            terminals: Semaphore::new(max_terminals(most)),
            // With two sessions, background work shares the one that a terminal leaves.
            shared: Semaphore::new((most - 1).max(max_terminals(most) + 1)),
            limit: AtomicUsize::new(most),
            max: most,
            refused_at: std::sync::Mutex::default(),
            release_wanted: Notify::new(),
        }
    }

    /// Waits for a slot; `None` if it takes too long.
    pub async fn acquire(&self, urgency: CallUrgency) -> Option<SessionSlot<'_>> {
        let wait = async {
            let class = match urgency {
                CallUrgency::Interactive => None,
                CallUrgency::Background | CallUrgency::Guest => Some(&self.background),
                CallUrgency::Bulk => Some(&self.bulk),
                CallUrgency::Terminal => Some(&self.terminals),
            };
            let class = match class {
                None => None,
                Some(class) => Some([class.acquire().await.ok()?, self.acquire_or_ask(&self.shared).await?]),
            };
            Some(SessionSlot { all: self.acquire_or_ask(&self.all).await?, class })
        };
        tokio::time::timeout(ACQUIRE_TIMEOUT, wait).await.ok().flatten()
    }

    /// A permit; whoever holds a slot only for convenience is asked to release it if there is none.
    async fn acquire_or_ask<'a>(&'a self, from: &'a Semaphore) -> Option<SemaphorePermit<'a>> {
        if let Ok(free) = from.try_acquire() {
            return Some(free);
        }
        self.request_release();
        from.acquire().await.ok()
    }

    /// Whether another terminal may be opened now. Terminals stay for hours: nobody waits for one to end.
    pub fn has_room_for_terminal(&self) -> bool {
        let held = max_terminals(self.max) - self.terminals.available_permits();
        held < max_terminals(self.limit())
    }

    /// A slot for a transfer, if one is free at once and people keep one.
    pub fn try_acquire_bulk(&self) -> Option<SessionSlot<'_>> {
        let class = [self.bulk.try_acquire().ok()?, self.shared.try_acquire().ok()?];
        let all = self.all.try_acquire().ok()?;
        (self.all.available_permits() > 0).then_some(SessionSlot { all, class: Some(class) })
    }

    /// The server refused a session although a slot was free: lowers the limit by one and queues again.
    pub async fn retry_after_refusal<'a>(&'a self, slot: SessionSlot<'a>) -> Option<SessionSlot<'a>> {
        *self.refused_at.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Instant::now());
        let lowered =
            self.limit.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |limit| (limit > 1).then(|| limit - 1)).is_ok();
        let SessionSlot { all, class } = slot;
        if lowered {
            all.forget();
        } else {
            drop(all);
            // The last slot: whoever holds the server's sessions must release one first.
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let all = tokio::time::timeout(ACQUIRE_TIMEOUT, self.all.acquire()).await.ok()?.ok()?;
        Some(SessionSlot { all, class })
    }

    /// Asks anyone who holds a slot only for convenience to release it.
    pub fn request_release(&self) {
        self.release_wanted.notify_one();
    }

    /// Resolves when a release has been requested, now or since this was last awaited.
    pub async fn release_requested(&self) {
        self.release_wanted.notified().await;
    }

    /// Adds one slot again when the last refusal is long past.
    pub fn raise_limit(&self) {
        let mut refused = self.refused_at.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let past = refused.is_some_and(|at| at.elapsed() >= RAISE_LIMIT_AFTER);
        if past && self.limit.load(Ordering::SeqCst) < self.max {
            self.limit.fetch_add(1, Ordering::SeqCst);
            self.all.add_permits(1);
            *refused = Some(Instant::now());
        }
    }

    /// How many slots there are at present.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn people_find_a_place_however_much_goes_on_behind() {
        for (most, background) in [(6, 3), (8, 5)] {
            let slots = SessionSlots::new(most);
            let mut held = Vec::new();
            for urgency in [CallUrgency::Bulk; 2].into_iter().chain(vec![CallUrgency::Background; background]) {
                held.push(slots.acquire(urgency).await.unwrap());
            }
            assert!(slots.acquire(CallUrgency::Interactive).await.is_some(), "one of {most} is left for people");
            assert_eq!(slots.background.available_permits(), 0);
            assert_eq!(slots.bulk.available_permits(), 0);
        }
    }

    #[tokio::test]
    async fn terminals_leave_sessions_for_commands() {
        for (most, terminals) in [(1, 0), (2, 1), (3, 1), (6, 3), (8, 4)] {
            let slots = SessionSlots::new(most);
            let mut held = Vec::new();
            while slots.has_room_for_terminal() {
                held.push(slots.acquire(CallUrgency::Terminal).await.unwrap());
            }
            assert_eq!(held.len(), terminals, "of {most}");
            // Background work takes what it can get, and still leaves one where there are three or more.
            while let Ok(permit) = slots.shared.try_acquire() {
                held.push(SessionSlot { all: slots.all.try_acquire().unwrap(), class: None });
                permit.forget();
                if most < 3 {
                    break;
                }
            }
            assert!(most < 3 || slots.all.available_permits() == 1, "of {most}");
        }
    }

    #[tokio::test]
    async fn fewer_sessions_mean_fewer_terminals() {
        let slots = SessionSlots::new(4);
        let first = slots.acquire(CallUrgency::Terminal).await.unwrap();
        assert!(slots.has_room_for_terminal());
        let command = slots.acquire(CallUrgency::Interactive).await.unwrap();
        let command = slots.retry_after_refusal(command).await.unwrap();
        assert!(!slots.has_room_for_terminal(), "half of three is one");
        drop((first, command));
        assert!(slots.has_room_for_terminal());
    }

    #[tokio::test]
    async fn refusals_lower_the_limit_to_one_at_least() {
        let slots = SessionSlots::new(3);
        for expected in [2, 1, 1] {
            let slot = slots.acquire(CallUrgency::Interactive).await.unwrap();
            let slot = slots.retry_after_refusal(slot).await.unwrap();
            drop(slot);
            assert_eq!(slots.limit(), expected);
        }
    }
}
