//! Limits open event streams. Each page opens one, so hundreds by one person are abuse.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::PersonId;

/// Streams that one person may hold: more tabs than anyone reads.
const MAX_PER_PERSON: usize = 32;

/// Counts open streams by person.
#[derive(Debug, Clone, Default)]
pub struct EventStreamLimiter(Arc<Mutex<HashMap<PersonId, usize>>>);

/// One open stream. Dropping it frees the slot.
#[derive(Debug)]
pub struct EventStreamPermit {
    limiter: EventStreamLimiter,
    person: PersonId,
}

impl EventStreamLimiter {
    /// Takes a slot for a stream, if the person has one left.
    pub fn acquire(&self, person: PersonId) -> Option<EventStreamPermit> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(person).or_default();
        if *count >= MAX_PER_PERSON {
            return None;
        }
        *count += 1;
        Some(EventStreamPermit { limiter: self.clone(), person })
    }

    /// How many streams someone holds.
    pub fn count(&self, person: PersonId) -> usize {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&person).copied().unwrap_or(0)
    }
}

impl Drop for EventStreamPermit {
    fn drop(&mut self) {
        let mut counts = self.limiter.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.person) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.person);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_limited_and_given_back() {
        let streams = EventStreamLimiter::default();
        let mut open: Vec<EventStreamPermit> =
            (0..MAX_PER_PERSON).map(|_| streams.acquire(PersonId(1)).unwrap()).collect();
        assert!(streams.acquire(PersonId(1)).is_none());
        assert!(streams.acquire(PersonId(2)).is_some(), "another person has their own");
        open.pop();
        assert!(streams.acquire(PersonId(1)).is_some());
        drop(open);
        assert!(streams.0.lock().unwrap().is_empty(), "nothing is kept of closed ones");
    }
}
