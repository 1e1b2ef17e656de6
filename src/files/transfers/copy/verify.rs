//! Compares copies on another cluster with their originals, by checksums that each cluster computes itself.

use crate::cluster::checksums;
use crate::domain::RemotePath;
use crate::files::transfers::TransferError;
use crate::files::transfers::worker::TransferRun;

/// So many files are compared at once …
const BATCH_FILES: usize = 1000;
/// … or so many bytes: a command that takes hours would hold a session all the time.
const BATCH_BYTES: u64 = 8 << 30;

/// Files that were copied and are still to be compared.
#[derive(Debug)]
pub(super) struct CopyVerifier {
    /// Copies on the same cluster came from the same disks over the same connection: nothing is compared.
    is_wanted: bool,
    /// Source and copy.
    files: Vec<(RemotePath, RemotePath)>,
    bytes: u64,
}

impl CopyVerifier {
    pub(super) const fn new(is_wanted: bool) -> Self {
        Self { is_wanted, files: Vec::new(), bytes: 0 }
    }

    pub(super) fn add(&mut self, source: &RemotePath, copy: &RemotePath, bytes: u64) {
        if self.is_wanted {
            self.files.push((source.clone(), copy.clone()));
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }

    pub(super) const fn is_due(&self) -> bool {
        self.files.len() >= BATCH_FILES || self.bytes >= BATCH_BYTES
    }

    /// Compares what was added. Returns whether a cluster has no program for checksums.
    pub(super) async fn verify(&mut self, run: &TransferRun) -> Result<bool, TransferError> {
        let (files, bytes) = (std::mem::take(&mut self.files), std::mem::take(&mut self.bytes));
        let mut is_unverified = false;
        for batch in files.chunks(BATCH_FILES) {
            let (sources, copies): (Vec<RemotePath>, Vec<RemotePath>) = batch.iter().cloned().unzip();
            let sums = tokio::try_join!(
                checksums::compute(&run.connection, &sources, bytes),
                checksums::compute(&run.target, &copies, bytes)
            );
            let (Some(expected), Some(found)) = sums.map_err(|error| TransferError::Interrupted(error.to_string()))?
            else {
                is_unverified = true;
                continue;
            };
            for (source, copy) in batch {
                let (Some(expected), Some(found)) = (expected.get(source), found.get(copy)) else {
                    // One that couldn't be read, or whose command was killed, proves nothing.
                    is_unverified = true;
                    continue;
                };
                if found != expected {
                    return Err(TransferError::Failed(format!(
                        "{copy} differs from the original. The original may have changed while it was being copied. Delete the copy, then copy it again."
                    )));
                }
            }
        }
        Ok(is_unverified)
    }
}
