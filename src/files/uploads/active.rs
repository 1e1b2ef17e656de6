//! Which uploads are being written right now: one request at a time for each, and not too many for one person.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::UploadOwner;
use crate::core::lock;

/// How many uploads of one person may be written at the same time.
const MAX_PER_PERSON: usize = 16;
/// The same for guests, of all drop-boxes of one person together.
const MAX_BY_GUESTS: usize = 6;
/// How long a request waits for the one before it to stop.
const TAKE_OVER_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Default)]
pub(super) struct ActiveUploads(Arc<ActiveUploadsInner>);

#[derive(Default)]
struct ActiveUploadsInner {
    uploads: Mutex<HashMap<String, (UploadOwner, CancellationToken)>>,
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
    pub(super) async fn acquire(&self, owner: UploadOwner, id: &str) -> Result<ActiveUpload, AcquireUploadError> {
        let until = tokio::time::Instant::now() + TAKE_OVER_TIMEOUT;
        loop {
            let released = self.0.released.notified();
            if let Some(upload) = self.try_acquire(owner, id)? {
                return Ok(upload);
            }
            tokio::time::timeout_at(until, released).await.map_err(|_| AcquireUploadError::InUse)?;
        }
    }

    fn try_acquire(&self, owner: UploadOwner, id: &str) -> Result<Option<ActiveUpload>, AcquireUploadError> {
        let mut uploads = lock(&self.0.uploads);
        if let Some((_, wanted)) = uploads.get(id) {
            wanted.cancel();
            return Ok(None);
        }
        let is_guest = owner.drop_box.is_some();
        let is_alike = |other: &UploadOwner| other.person == owner.person && other.drop_box.is_some() == is_guest;
        let most = if is_guest { MAX_BY_GUESTS } else { MAX_PER_PERSON };
        if uploads.values().filter(|(other, _)| is_alike(other)).count() >= most {
            return Err(AcquireUploadError::TooMany);
        }
        let wanted = CancellationToken::new();
        uploads.insert(id.to_owned(), (owner, wanted.clone()));
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
    use crate::domain::{PersonId, SharedPathId};

    const ONE: UploadOwner = UploadOwner { person: PersonId(1), drop_box: None };
    const OTHER: UploadOwner = UploadOwner { person: PersonId(2), drop_box: None };

    #[tokio::test(start_paused = true)]
    async fn the_later_request_takes_over_from_the_earlier_one() {
        let all = ActiveUploads::default();
        let first = all.acquire(ONE, "a").await.unwrap();
        let (second, ()) = tokio::join!(all.acquire(ONE, "a"), async {
            first.wanted_elsewhere().await;
            drop(first);
        });
        assert!(second.is_ok());
        assert_eq!(all.acquire(ONE, "a").await.err(), Some(AcquireUploadError::InUse), "it doesn't stop");
    }

    #[tokio::test]
    async fn one_person_has_only_so_many_at_once() {
        let all = ActiveUploads::default();
        let mut held = Vec::new();
        for number in 0..MAX_PER_PERSON {
            held.push(all.acquire(ONE, &number.to_string()).await.unwrap());
        }
        assert_eq!(all.acquire(ONE, "more").await.err(), Some(AcquireUploadError::TooMany));
        assert!(all.acquire(OTHER, "other").await.is_ok());
        let guest = UploadOwner { drop_box: Some(SharedPathId(1)), ..ONE };
        for number in 0..MAX_BY_GUESTS {
            held.push(all.acquire(guest, &format!("guest {number}")).await.unwrap());
        }
        assert_eq!(all.acquire(guest, "guest").await.err(), Some(AcquireUploadError::TooMany));
        held.truncate(MAX_PER_PERSON);
        held.pop();
        assert!(all.acquire(ONE, "more").await.is_ok());
    }
}
