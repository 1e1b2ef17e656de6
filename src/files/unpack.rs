//! Reads archives that people extract: zip, tar and tar.gz. Bytes go in as they come, members come out; nothing here does
//! I/O. Archives may be hostile: names never lead out of the folder, sizes and numbers are limited before anything is
//! written, and a member never has more bytes than its archive announced.

mod gzip;
mod limits;
mod tar;
#[cfg(test)]
mod tests;
mod zip;
mod zip_contents;

use bytes::Bytes;

use self::gzip::GzipInflater;
pub use self::limits::{MAX_BYTES, MAX_DEPTH, MAX_MEMBERS, MemberPath};
use self::tar::TarUnpacker;
use self::zip::ZipUnpacker;
pub use self::zip_contents::{ZipContents, ZipEnd};
use crate::clock::UnixTime;

/// How much of a file's beginning tells what it is.
pub const HEAD_BYTES: usize = 512;
/// The most bytes that come out in one piece.
const PIECE_BYTES: usize = 128 * 1024;

/// Why an archive can't be extracted: what is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    #[error("The portal can't extract this file. It can extract zip, tar and tar.gz archives.")]
    NotAnArchive,
    #[error(
        "The portal can't extract {0} archives, only zip, tar and tar.gz. Extract this one in a job or a terminal."
    )]
    UnsupportedFormat(&'static str),
    #[error("The archive is protected by a password. Extract it in a terminal, where you can enter the password.")]
    Encrypted,
    #[error(
        "{0} is compressed in a way that the portal can't read. Extract the archive in a job or a terminal, or create it again."
    )]
    UnsupportedMethod(String),
    #[error("The archive is incomplete: its end is missing. Upload or download it again.")]
    Truncated,
    #[error("The archive is damaged: {0}. Upload or download it again.")]
    Damaged(&'static str),
    #[error("{0} is damaged in the archive: its checksum is wrong. Upload or download the archive again.")]
    WrongChecksum(String),
    #[error(
        "The archive contains the path {0}, which leads out of the folder it is extracted into. It may be malicious."
    )]
    UnsafeName(String),
    #[error("The archive contains a name that is too long ({0}). Extract it in a job or a terminal.")]
    NameTooLong(String),
    #[error("The archive has folders nested more than {MAX_DEPTH} levels deep. Extract it in a job or a terminal.")]
    TooDeep,
    #[error("The archive has more than 100,000 items. Extract it in a job or a terminal.")]
    TooManyMembers,
    #[error("The archive would take more than 100 GB when extracted. Extract it in a job or a terminal.")]
    TooLarge,
    #[error(
        "The archive would become suspiciously large when extracted, like a “zip bomb”. If you trust it, extract it in a job or a terminal."
    )]
    Bomb,
    #[error("Files in the archive overlap, as in a “zip bomb”. If you trust it, extract it in a job or a terminal.")]
    Overlap,
}

/// How an archive is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackedFormat {
    Zip,
    Tar,
    TarGz,
}

impl PackedFormat {
    /// Finds out from a file's first bytes. What a gzip file contains shows only when it is inflated.
    pub fn detect(head: &[u8]) -> Result<Self, UnpackError> {
        let is = |magic: &[u8]| head.starts_with(magic);
        if is(b"PK\x03\x04") || is(b"PK\x05\x06") {
            Ok(Self::Zip)
        } else if is(b"\x1f\x8b") {
            Ok(Self::TarGz)
        } else if is(b"BZh") {
            Err(UnpackError::UnsupportedFormat("bzip2"))
        } else if is(b"\xfd7zXZ\0") {
            Err(UnpackError::UnsupportedFormat("xz"))
        } else if is(b"\x28\xb5\x2f\xfd") {
            Err(UnpackError::UnsupportedFormat("Zstandard"))
        } else if is(b"7z\xbc\xaf\x27\x1c") {
            Err(UnpackError::UnsupportedFormat("7-Zip"))
        } else if is(b"Rar!") {
            Err(UnpackError::UnsupportedFormat("RAR"))
        } else if tar::is_header(head) {
            Ok(Self::Tar)
        } else {
            Err(UnpackError::NotAnArchive)
        }
    }
}

/// A file or folder in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackedMember {
    pub path: MemberPath,
    /// In bytes, as announced; 0 for a folder.
    pub size: u64,
    /// Permission bits, if the archive has any.
    pub mode: Option<u32>,
    pub modified: Option<UnixTime>,
}

/// What is left out because it isn't a file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkippedKind {
    /// A symbolic or hard link.
    Link,
    /// A device, a pipe, or something that only special programs know.
    Special,
}

/// What comes out of an archive, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnpackEvent {
    Folder(UnpackedMember),
    /// Its bytes follow, then [`UnpackEvent::FileEnd`].
    File(UnpackedMember),
    Data(Bytes),
    FileEnd,
    Skipped {
        name: String,
        kind: SkippedKind,
    },
}

/// An archive that is being read from its first byte to its last.
pub struct ArchiveUnpacker(UnpackerKind);

enum UnpackerKind {
    Zip(ZipUnpacker),
    Tar(TarUnpacker),
    TarGz { inflater: Box<GzipInflater>, tar: TarUnpacker, inflated: Bytes },
}

impl ArchiveUnpacker {
    pub fn zip(directory: ZipContents) -> Self {
        Self(UnpackerKind::Zip(ZipUnpacker::new(directory)))
    }

    pub fn tar() -> Self {
        Self(UnpackerKind::Tar(TarUnpacker::default()))
    }

    pub fn tar_gz() -> Self {
        let (inflater, tar) = (Box::<GzipInflater>::default(), TarUnpacker::default());
        Self(UnpackerKind::TarGz { inflater, tar, inflated: Bytes::new() })
    }

    /// Takes bytes off `chunk` until something comes out. `None`: all were taken, and more are needed.
    pub fn next_event(&mut self, chunk: &mut Bytes) -> Result<Option<UnpackEvent>, UnpackError> {
        match &mut self.0 {
            UnpackerKind::Zip(zip) => zip.next_event(chunk),
            UnpackerKind::Tar(tar) => tar.next_event(chunk),
            UnpackerKind::TarGz { inflater, tar, inflated } => loop {
                if let Some(event) = tar.next_event(inflated)? {
                    return Ok(Some(event));
                }
                match inflater.next_piece(chunk)? {
                    Some(piece) => *inflated = piece,
                    None => return Ok(None),
                }
            },
        }
    }

    /// The archive's last byte was taken. What still comes out is returned one by one; `None` if it was whole.
    pub fn finish(&mut self) -> Result<Option<UnpackEvent>, UnpackError> {
        match &mut self.0 {
            UnpackerKind::Zip(zip) => zip.finish().map(|()| None),
            UnpackerKind::Tar(tar) => tar.finish().map(|()| None),
            UnpackerKind::TarGz { inflater, tar, inflated } => loop {
                if let Some(event) = tar.next_event(inflated)? {
                    return Ok(Some(event));
                }
                match inflater.finish()? {
                    Some(piece) => *inflated = piece,
                    None => return tar.finish().map(|()| None),
                }
            },
        }
    }
}

/// A name for people.
fn shown(name: &[u8]) -> String {
    const MAX_CHARS: usize = 120;
    let text = String::from_utf8_lossy(name);
    let visible = |c: char| if crate::text::is_hidden(c) { char::REPLACEMENT_CHARACTER } else { c };
    let mut shown: String = text.chars().map(visible).take(MAX_CHARS).collect();
    if text.chars().count() > MAX_CHARS {
        shown.push('…');
    }
    shown
}
