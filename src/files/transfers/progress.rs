//! How far a running transfer is: counted by the work, read by pages and by whoever saves it.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::core::lock;
use crate::domain::RemotePath;
use crate::store::transfers::{Transfer, TransferCounts};

/// Before this, a speed says nothing.
const MEASURE_AT_LEAST: Duration = Duration::from_secs(2);

/// Shared by the work, which counts, and those who show or save it.
#[derive(Debug)]
pub(super) struct TransferProgress {
    files_done: AtomicU64,
    files_total: AtomicU64,
    bytes_done: AtomicU64,
    bytes_total: AtomicU64,
    texts: Mutex<TransferTexts>,
    /// When this run began, and what was done by then.
    begun: Mutex<(Instant, u64, u64)>,
}

#[derive(Debug, Default)]
struct TransferTexts {
    current: String,
    checkpoint: String,
    /// Hidden names that are in use now.
    temporaries: HashSet<RemotePath>,
}

/// How far a transfer is at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransferSnapshot {
    pub files_done: u64,
    /// 0 if they weren't counted.
    pub files_total: u64,
    pub bytes_done: u64,
    /// 0 if it isn't known.
    pub bytes_total: u64,
    /// The item in work, for people; empty if nothing is.
    pub current: String,
    /// Bytes per second; 0 if it isn't known.
    pub bytes_per_second: u64,
    /// Files per second; 0 if it isn't known.
    pub files_per_second: u64,
}

impl TransferSnapshot {
    /// As it was last saved.
    pub fn from_row(row: &Transfer) -> Self {
        let number = |stored: i64| u64::try_from(stored).unwrap_or(0);
        Self {
            files_done: number(row.files_done),
            files_total: number(row.files_total),
            bytes_done: number(row.bytes_done),
            bytes_total: number(row.bytes_total),
            ..Self::default()
        }
    }

    /// Seconds until it is finished at this speed; by bytes where they are known.
    pub fn seconds_left(&self) -> Option<u64> {
        let left = |done: u64, total: u64, speed: u64| {
            (total > 0 && speed > 0).then(|| total.saturating_sub(done).div_ceil(speed))
        };
        left(self.bytes_done, self.bytes_total, self.bytes_per_second)
            .or_else(|| left(self.files_done, self.files_total, self.files_per_second))
    }
}

impl TransferProgress {
    /// Goes on from what was saved.
    pub(super) fn from_row(row: &Transfer) -> Self {
        let saved = TransferSnapshot::from_row(row);
        Self {
            files_done: saved.files_done.into(),
            files_total: saved.files_total.into(),
            bytes_done: saved.bytes_done.into(),
            bytes_total: saved.bytes_total.into(),
            texts: Mutex::new(TransferTexts { checkpoint: row.checkpoint.clone(), ..TransferTexts::default() }),
            begun: Mutex::new((Instant::now(), saved.files_done, saved.bytes_done)),
        }
    }

    /// For work that nobody looks at.
    pub(super) fn unseen() -> Self {
        Self {
            files_done: 0.into(),
            files_total: 0.into(),
            bytes_done: 0.into(),
            bytes_total: 0.into(),
            texts: Mutex::default(),
            begun: Mutex::new((Instant::now(), 0, 0)),
        }
    }

    pub(super) fn add_file(&self) {
        self.files_done.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_bytes(&self, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts anew, from what is certainly done.
    pub(super) fn set_done(&self, files: u64, bytes: u64) {
        self.files_done.store(files, Ordering::Relaxed);
        self.bytes_done.store(bytes, Ordering::Relaxed);
        *lock(&self.begun) = (Instant::now(), files, bytes);
    }

    pub(super) fn done(&self) -> (u64, u64) {
        (self.files_done.load(Ordering::Relaxed), self.bytes_done.load(Ordering::Relaxed))
    }

    /// A hidden name comes into use.
    pub(super) fn begin_temporary(&self, path: &RemotePath) {
        lock(&self.texts).temporaries.insert(path.clone());
    }

    /// A hidden name is gone.
    pub(super) fn end_temporary(&self, path: &RemotePath) {
        lock(&self.texts).temporaries.remove(path);
    }

    /// The hidden names that were in use when the work was stopped.
    pub(super) fn take_temporaries(&self) -> HashSet<RemotePath> {
        std::mem::take(&mut lock(&self.texts).temporaries)
    }

    /// Where to go on from, from now on.
    pub(super) fn set_checkpoint(&self, checkpoint: &impl serde::Serialize) {
        if let Ok(text) = serde_json::to_string(checkpoint) {
            lock(&self.texts).checkpoint = text;
        }
    }

    /// What is to do, as far as it was counted.
    pub(super) fn set_totals(&self, files: u64, bytes: u64) {
        self.files_total.store(files, Ordering::Relaxed);
        self.bytes_total.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn set_current(&self, current: String) {
        lock(&self.texts).current = current;
    }

    /// How much was done by this run and those before.
    pub(super) fn units(&self) -> u64 {
        self.files_done.load(Ordering::Relaxed).saturating_add(self.bytes_done.load(Ordering::Relaxed))
    }

    /// What the database keeps.
    pub(super) fn to_saved(&self) -> (TransferCounts, String) {
        let number = |counted: &AtomicU64| i64::try_from(counted.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
        let counts = TransferCounts {
            files_done: number(&self.files_done),
            files_total: number(&self.files_total),
            bytes_done: number(&self.bytes_done),
            bytes_total: number(&self.bytes_total),
        };
        (counts, lock(&self.texts).checkpoint.clone())
    }

    pub(super) fn snapshot(&self) -> TransferSnapshot {
        let read = |counted: &AtomicU64| counted.load(Ordering::Relaxed);
        let (begun, files_before, bytes_before) = *lock(&self.begun);
        let elapsed = begun.elapsed();
        let per_second = |now: u64, before: u64| {
            let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
            let is_measured = elapsed >= MEASURE_AT_LEAST;
            if is_measured { now.saturating_sub(before).saturating_mul(1000) / millis.max(1) } else { 0 }
        };
        let (files_done, bytes_done) = (read(&self.files_done), read(&self.bytes_done));
        TransferSnapshot {
            files_done,
            files_total: read(&self.files_total),
            bytes_done,
            bytes_total: read(&self.bytes_total),
            current: lock(&self.texts).current.clone(),
            bytes_per_second: per_second(bytes_done, bytes_before),
            files_per_second: per_second(files_done, files_before),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_bytes_then_files() {
        let by_bytes = TransferSnapshot {
            files_done: 1,
            files_total: 1000,
            bytes_done: 50,
            bytes_total: 150,
            bytes_per_second: 30,
            files_per_second: 1,
            ..TransferSnapshot::default()
        };
        assert_eq!(by_bytes.seconds_left(), Some(4));
        let by_files = TransferSnapshot { bytes_total: 0, ..by_bytes.clone() };
        assert_eq!(by_files.seconds_left(), Some(999));
        let unknown = TransferSnapshot { bytes_per_second: 0, files_per_second: 0, ..by_bytes.clone() };
        assert_eq!(unknown.seconds_left(), None);
        let grown = TransferSnapshot { bytes_done: 500, ..by_bytes };
        assert_eq!(grown.seconds_left(), Some(0), "more came than was counted");
    }
}
