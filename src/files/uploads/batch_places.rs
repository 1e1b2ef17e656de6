//! How many requests with small files are held in memory at once: few for all people together, and fewer for one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::core::lock;
use crate::domain::PersonId;

/// For all people together.
const MAX_BATCHES: usize = 8;
/// Nobody keeps the others from uploading.
const MAX_PER_PERSON: usize = 2;
/// How long a request waits for a place; then the client tries again later.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub(super) struct BatchPlaces {
    all: Arc<Semaphore>,
    people: Arc<Mutex<HashMap<PersonId, Arc<Semaphore>>>>,
}

/// A place for one request; free again when dropped.
pub struct BatchPlace {
    _own: OwnedSemaphorePermit,
    _shared: OwnedSemaphorePermit,
}

impl Default for BatchPlaces {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_BATCHES)), people: Arc::default() }
    }
}

impl BatchPlaces {
    /// Waits for a place; `None` if that takes too long. One's own places come first, so that nobody waits among the
    /// others with more than that.
    pub(super) async fn acquire(&self, person: PersonId) -> Option<BatchPlace> {
        let own = self.own_places(person);
        let wait = async {
            let own = own.acquire_owned().await.ok()?;
            let shared = self.all.clone().acquire_owned().await.ok()?;
            Some(BatchPlace { _own: own, _shared: shared })
        };
        tokio::time::timeout(WAIT_TIMEOUT, wait).await.ok().flatten()
    }

    fn own_places(&self, person: PersonId) -> Arc<Semaphore> {
        let mut people = lock(&self.people);
        // Those of people who neither hold nor want any are ours alone.
        people.retain(|_, places| Arc::strong_count(places) > 1);
        people.entry(person).or_insert_with(|| Arc::new(Semaphore::new(MAX_PER_PERSON))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_person_never_takes_the_places_of_others() {
        let places = BatchPlaces::default();
        let mut held = Vec::new();
        for _ in 0..MAX_PER_PERSON {
            held.push(places.acquire(PersonId(1)).await.unwrap());
        }
        assert!(places.acquire(PersonId(1)).await.is_none(), "it waits, but not for ever");
        let (more, ()) = tokio::join!(places.acquire(PersonId(1)), async { drop(held.pop()) });
        held.extend(more);
        assert_eq!(held.len(), MAX_PER_PERSON);
        for person in 2..5 {
            for _ in 0..MAX_PER_PERSON {
                held.push(places.acquire(PersonId(person)).await.unwrap());
            }
        }
        assert!(places.acquire(PersonId(9)).await.is_none(), "all are taken");
        held.clear();
        assert!(places.acquire(PersonId(9)).await.is_some());
        assert_eq!(lock(&places.people).len(), 1, "nothing is kept of people who have none");
    }
}
