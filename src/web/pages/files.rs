//! Files on clusters. A page shows at once what it knows; what is on the cluster's disks arrives over the person's own
//! connection afterwards. Paths in addresses and forms are encoded text (`RemotePath::to_encoded`).

pub mod archive;
mod change_form;
pub(in crate::web) mod changes;
pub mod compress;
pub mod copy;
pub mod delete;
pub mod download;
pub(in crate::web) mod edit;
pub mod extract;
pub mod favourites;
pub mod fetch;
mod files_request;
pub mod folder;
mod folder_crumbs;
mod folder_location;
mod folder_rows;
pub mod folder_transfers;
pub mod index;
pub mod links;
pub mod name_suggestions;
pub(in crate::web) mod permissions;
mod places;
pub mod raw;
pub mod share;
pub mod storage;
mod transfer_selection;
pub mod transfers;
pub mod uploads;
pub mod view;

pub(in crate::web) use self::change_form::MAX_FORM_BYTES;
pub(in crate::web) use self::files_request::{
    FilesRequest, UncheckedFilesRequest, files_url, raw_url, tensorboard_url, view_url,
};
pub(in crate::web) use self::folder_location::{file_link, folder_link};
