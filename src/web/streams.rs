//! How many event streams are open: one page has one, so someone with hundreds is up to no good.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::PersonId;

/// Streams that one person may hold: more tabs than anyone reads.
const MOST_PER_PERSON: usize = 32;

/// Counts open streams by person.
#[derive(Debug, Clone, Default)]
pub struct Streams(Arc<Mutex<HashMap<PersonId, usize>>>);

/// One open stream; dropping it makes room for another.
#[derive(Debug)]
pub struct OpenStream {
    streams: Streams,
    person: PersonId,
}

impl Streams {
    /// Takes a place for a stream, if the person has one left.
    pub fn open(&self, person: PersonId) -> Option<OpenStream> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(person).or_default();
        if *count >= MOST_PER_PERSON {
            return None;
        }
        *count += 1;
        Some(OpenStream { streams: self.clone(), person })
    }

    /// How many someone holds.
    pub fn count(&self, person: PersonId) -> usize {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&person).copied().unwrap_or(0)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut counts = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        let streams = Streams::default();
        let mut open: Vec<OpenStream> =
            (0..MOST_PER_PERSON).map(|_| streams.open(PersonId(1)).unwrap()).collect();
        assert!(streams.open(PersonId(1)).is_none());
        assert!(streams.open(PersonId(2)).is_some(), "another person has their own");
        open.pop();
        assert!(streams.open(PersonId(1)).is_some());
        drop(open);
        assert!(streams.0.lock().unwrap().is_empty(), "nothing is kept of closed ones");
    }
}
