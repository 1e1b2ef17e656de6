//! Which uploads are being written right now: one request at a time for each, and not too many for one person.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::core::lock;
use crate::domain::PersonId;

/// How many uploads of one person may be written at the same time.
const MAX_PER_PERSON: usize = 16;
/// How long a request waits for the one before it to stop.
const TAKE_OVER_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Default)]
pub(super) struct ActiveUploads(Arc<ActiveUploadsInner>);

#[derive(Default)]
struct ActiveUploadsInner {
    uploads: Mutex<HashMap<String, (PersonId, CancellationToken)>>,
    released: Notify,
}

/// The right to write an upload; ends when dropped.
pub(super) struct ActiveUpload {
    all: ActiveUploads,
    id: String,
    wanted: CancellationToken,
}

/// Why an upload can't be written now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcquireUploadError {
    InUse,
    TooMany,
}

impl ActiveUploads {
    /// Takes an upload over. A client whose network broke comes back before we notice: its earlier request is asked to
    /// stop, and saves what has arrived.
    pub(super) async fn acquire(&self, person: PersonId, id: &str) -> Result<ActiveUpload, AcquireUploadError> {
        let until = tokio::time::Instant::now() + TAKE_OVER_TIMEOUT;
        loop {
            let released = self.0.released.notified();
            if let Some(upload) = self.try_acquire(person, id)? {
                return Ok(upload);
            }
            tokio::time::timeout_at(until, released).await.map_err(|_| AcquireUploadError::InUse)?;
        }
    }

    fn try_acquire(&self, person: PersonId, id: &str) -> Result<Option<ActiveUpload>, AcquireUploadError> {
        let mut uploads = lock(&self.0.uploads);
        if let Some((_, wanted)) = uploads.get(id) {
            wanted.cancel();
            return Ok(None);
        }
        if uploads.values().filter(|(owner, _)| *owner == person).count() >= MAX_PER_PERSON {
            return Err(AcquireUploadError::TooMany);
        }
        let wanted = CancellationToken::new();
        uploads.insert(id.to_owned(), (person, wanted.clone()));
        Ok(Some(ActiveUpload { all: self.clone(), id: id.to_owned(), wanted }))
    }
}

impl ActiveUpload {
    /// Resolves when another request wants to go on with this upload.
    pub(super) async fn wanted_elsewhere(&self) {
        self.wanted.cancelled().await;
    }
}

impl Drop for ActiveUpload {
    fn drop(&mut self) {
        lock(&self.all.0.uploads).remove(&self.id);
        self.all.0.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_later_request_takes_over_from_the_earlier_one() {
        let all = ActiveUploads::default();
        let first = all.acquire(PersonId(1), "a").await.unwrap();
        let (second, ()) = tokio::join!(all.acquire(PersonId(1), "a"), async {
            first.wanted_elsewhere().await;
            drop(first);
        });
        assert!(second.is_ok());
        assert_eq!(all.acquire(PersonId(1), "a").await.err(), Some(AcquireUploadError::InUse), "it doesn't stop");
    }

    #[tokio::test]
    async fn one_person_has_only_so_many_at_once() {
        let all = ActiveUploads::default();
        let mut held = Vec::new();
        for number in 0..MAX_PER_PERSON {
            held.push(all.acquire(PersonId(1), &number.to_string()).await.unwrap());
        }
        assert_eq!(all.acquire(PersonId(1), "more").await.err(), Some(AcquireUploadError::TooMany));
        assert!(all.acquire(PersonId(2), "other").await.is_ok());
        held.pop();
        assert!(all.acquire(PersonId(1), "more").await.is_ok());
    }
}
