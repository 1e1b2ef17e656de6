//! What an archive may contain at most, and which names are safe.

use super::{UnpackError, shown};
use crate::domain::{RemoteName, RemotePath, RemotePathError};

/// How many files and folders an archive may have.
pub const MAX_MEMBERS: u64 = 100_000;
/// How many folders may lie in one another.
pub const MAX_DEPTH: usize = 64;
/// How many bytes may come out.
pub const MAX_BYTES: u64 = 100 * 1024 * 1024 * 1024;
/// What all names together may take: they are kept until the end.
const MAX_NAMES_BYTES: u64 = 16 * 1024 * 1024;
/// Below this, an archive may grow as much as it likes.
const GROWTH_FREE_BYTES: u64 = 1024 * 1024 * 1024;
/// Above it, only so many times its own size.
const MAX_GROWTH: u64 = 200;

/// Where a member goes, relative to the folder that is extracted into. It never leads out of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MemberPath(Vec<u8>);

impl MemberPath {
    /// Reads a member's name; `None` if that is the folder itself (`./`).
    pub(super) fn parse(name: &[u8]) -> Result<Option<Self>, UnpackError> {
        if name.first() == Some(&b'/') || name.contains(&0) {
            return Err(UnpackError::UnsafeName(shown(name)));
        }
        let mut path = Vec::with_capacity(name.len());
        let mut depth = 0;
        for part in name.split(|byte| *byte == b'/') {
            match RemoteName::parse(part) {
                Ok(_) => {}
                Err(RemotePathError::EmptyName) => continue,
                Err(RemotePathError::ReservedName) if part == b"." => continue,
                Err(RemotePathError::NameTooLong) => return Err(UnpackError::NameTooLong(shown(name))),
                Err(_) => return Err(UnpackError::UnsafeName(shown(name))),
            }
            depth += 1;
            if depth > MAX_DEPTH {
                return Err(UnpackError::TooDeep);
            }
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(part);
        }
        Ok((!path.is_empty()).then_some(Self(path)))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The folder that it is in; `None` at the top.
    pub fn parent(&self) -> Option<Self> {
        let at = self.0.iter().rposition(|byte| *byte == b'/')?;
        Some(Self(self.0[..at].to_vec()))
    }

    /// Its path on the cluster.
    pub fn below(&self, folder: &RemotePath) -> Result<RemotePath, UnpackError> {
        let path = [folder.as_bytes(), b"/", &self.0].concat();
        RemotePath::parse(&path).map_err(|_| UnpackError::NameTooLong(shown(&self.0)))
    }
}

/// Counts what an archive announces.
#[derive(Debug, Default)]
pub(super) struct UnpackBudget {
    members: u64,
    names: u64,
    bytes: u64,
}

impl UnpackBudget {
    pub fn add(&mut self, name: &[u8], size: u64) -> Result<(), UnpackError> {
        self.members += 1;
        self.names = self.names.saturating_add(u64::try_from(name.len()).unwrap_or(u64::MAX));
        self.bytes = self.bytes.saturating_add(size);
        if self.members > MAX_MEMBERS || self.names > MAX_NAMES_BYTES {
            return Err(UnpackError::TooManyMembers);
        }
        if self.bytes > MAX_BYTES { Err(UnpackError::TooLarge) } else { Ok(()) }
    }

    pub const fn members(&self) -> u64 {
        self.members
    }

    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Refuses what grows from `packed` bytes as only a bomb does.
pub(super) fn check_growth(packed: u64, unpacked: u64) -> Result<(), UnpackError> {
    if unpacked > GROWTH_FREE_BYTES && unpacked / MAX_GROWTH > packed { Err(UnpackError::Bomb) } else { Ok(()) }
}
