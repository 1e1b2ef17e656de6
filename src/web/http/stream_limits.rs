//! Limits how many long responses one person may hold open: event streams (each page opens one) and downloads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::PersonId;

/// Event streams that one person may hold: more tabs than anyone reads.
pub const MAX_EVENT_STREAMS: usize = 32;
/// Downloads that one person may have under way.
pub const MAX_DOWNLOADS: usize = 12;

/// Counts open responses by person.
#[derive(Debug, Clone)]
pub struct OpenResponseLimiter {
    counts: Arc<Mutex<HashMap<PersonId, usize>>>,
    max_per_person: usize,
}

/// One open response. Dropping it frees the slot.
#[derive(Debug)]
pub struct OpenResponsePermit {
    limiter: OpenResponseLimiter,
    person: PersonId,
}

impl OpenResponseLimiter {
    pub fn new(max_per_person: usize) -> Self {
        Self { counts: Arc::default(), max_per_person }
    }

    /// Takes a slot, if the person has one left.
    pub fn acquire(&self, person: PersonId) -> Option<OpenResponsePermit> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(person).or_default();
        if *count >= self.max_per_person {
            return None;
        }
        *count += 1;
        Some(OpenResponsePermit { limiter: self.clone(), person })
    }

    /// How many someone holds.
    pub fn count(&self, person: PersonId) -> usize {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&person).copied().unwrap_or(0)
    }
}

impl Drop for OpenResponsePermit {
    fn drop(&mut self) {
        let mut counts = self.limiter.counts.lock().unwrap_or_else(PoisonError::into_inner);
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
        let streams = OpenResponseLimiter::new(3);
        let mut open: Vec<OpenResponsePermit> = (0..3).map(|_| streams.acquire(PersonId(1)).unwrap()).collect();
        assert!(streams.acquire(PersonId(1)).is_none());
        assert!(streams.acquire(PersonId(2)).is_some(), "another person has their own");
        open.pop();
        assert!(streams.acquire(PersonId(1)).is_some());
        drop(open);
        assert!(streams.counts.lock().unwrap().is_empty(), "nothing is kept of closed ones");
    }
}
