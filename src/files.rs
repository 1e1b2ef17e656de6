//! What people do with files on a cluster: bring them in, look at them, change them, take them home. Bytes pass over the
//! person's own connection by SFTP, so the cluster's rights decide; nothing here builds a command from a name.

pub mod archive;
pub mod downloads;
pub mod folder_contents;
pub mod folder_listing_cache;
mod folder_walk;
pub mod places;
pub mod preview;
pub mod results;

pub use self::folder_contents::{FolderContents, FolderOrder, FolderSort, FolderSortColumn};
pub use self::folder_listing_cache::{FolderListingCache, ListingFreshness};
pub use self::places::StoragePlace;
