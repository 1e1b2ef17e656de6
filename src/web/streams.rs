//! How many event streams are open: one page has one, so a browser with hundreds is not a person.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::SessionId;

/// Streams that one signed-in browser may hold: more tabs than anyone reads.
const MOST_PER_SESSION: usize = 32;

/// Counts open streams by session.
#[derive(Debug, Clone, Default)]
pub struct Streams(Arc<Mutex<HashMap<SessionId, usize>>>);

/// One open stream; dropping it makes room for another.
#[derive(Debug)]
pub struct OpenStream {
    streams: Streams,
    session: SessionId,
}

impl Streams {
    /// Takes a place for a stream, if the session has one left.
    pub fn open(&self, session: SessionId) -> Option<OpenStream> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(session).or_default();
        if *count >= MOST_PER_SESSION {
            return None;
        }
        *count += 1;
        Some(OpenStream { streams: self.clone(), session })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut counts = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.session);
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
            (0..MOST_PER_SESSION).map(|_| streams.open(SessionId(1)).unwrap()).collect();
        assert!(streams.open(SessionId(1)).is_none());
        assert!(streams.open(SessionId(2)).is_some(), "another browser has its own");
        open.pop();
        assert!(streams.open(SessionId(1)).is_some());
        drop(open);
        assert!(streams.0.lock().unwrap().is_empty(), "nothing is kept of closed ones");
    }
}
