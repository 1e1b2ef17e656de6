//! What people do with files on a cluster: bring them in, look at them, change them, take them home. Bytes pass over the
//! person's own connection by SFTP, so the cluster's rights decide; nothing here builds a command from a name.

pub mod archive;
pub mod changes;
pub mod downloads;
pub mod folder_contents;
pub mod folder_listing_cache;
pub mod folder_sizes;
mod folder_walk;
pub mod forget;
mod little_endian;
pub mod places;
pub mod preview;
pub mod preview_tokens;
pub mod results;
pub mod shared_paths;
pub mod sharing;
pub mod storage;
pub mod text_file;
pub mod transfers;
pub mod treemap;
pub mod unpack;
pub mod uploads;

pub use self::folder_contents::{FolderContents, FolderOrder, FolderSort, FolderSortColumn};
pub use self::folder_listing_cache::{FolderListingCache, ListingFreshness};
pub use self::places::StoragePlace;

use crate::ssh::RunCommandError;
use crate::ssh::sftp::SftpError;

/// Runs a change to its end even if whoever asked for it stops waiting, so that nothing is left half done.
async fn run_to_end<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, SftpError> {
    tokio::spawn(work).await.map_err(|_| RunCommandError::ConnectionLost.into())
}
