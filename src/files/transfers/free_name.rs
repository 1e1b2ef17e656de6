//! Names for copies and downloads: what is there stays, and the new item gets a number.

use super::TransferError;
use crate::domain::{RemoteName, RemotePath};
use crate::ssh::sftp::SftpError;
use crate::ssh::sftp::transfer::TransferSession;

/// After so many names that are taken, someone is better asked.
const MAX_TRIES: u32 = 1000;
const MAX_NAME_BYTES: usize = 255;

/// A path in a folder that nothing has yet: the name itself, or with a number.
pub(super) async fn find_free_path(
    session: &TransferSession,
    folder: &RemotePath,
    name: &RemoteName,
) -> Result<RemotePath, TransferError> {
    for number in 1..=MAX_TRIES {
        let path = folder.join(&numbered_name(name, number));
        match session.lstat(&path).await {
            Err(SftpError::NotFound) => return Ok(path),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(TransferError::Failed(format!(
        "{folder} already has too many items named like {name}. Rename some of them, then try again."
    )))
}

/// `name`, `name (2)`, `name (3)` … An ending stays the ending: `data (2).csv`.
fn numbered_name(name: &RemoteName, number: u32) -> RemoteName {
    if number <= 1 {
        return name.clone();
    }
    let bytes = name.as_bytes();
    let dot = bytes.iter().rposition(|byte| *byte == b'.').filter(|at| *at > 0 && bytes.len() - at <= 10);
    let dot = dot.map(|at| if bytes[..at].ends_with(b".tar") && at > 4 { at - 4 } else { at });
    let (stem, ending) = bytes.split_at(dot.unwrap_or(bytes.len()));
    let number = format!(" ({number})");
    let room = MAX_NAME_BYTES.saturating_sub(number.len() + ending.len());
    let mut new = shorten(stem, room).to_vec();
    new.extend_from_slice(number.as_bytes());
    new.extend_from_slice(ending);
    RemoteName::parse(&new).unwrap_or_else(|_| name.clone())
}

/// As many bytes as there is room for, without half a character.
fn shorten(stem: &[u8], room: usize) -> &[u8] {
    let mut end = stem.len().min(room);
    while end > 0 && end < stem.len() && stem[end] & 0b1100_0000 == 0b1000_0000 {
        end -= 1;
    }
    &stem[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_numbered_before_their_ending() {
        let numbered = |name: &[u8], number| {
            let name = numbered_name(&RemoteName::parse(name).unwrap(), number);
            name.as_bytes().to_vec()
        };
        assert_eq!(numbered(b"data", 1), b"data");
        assert_eq!(numbered(b"data", 2), b"data (2)");
        assert_eq!(numbered(b"data.csv", 3), b"data (3).csv");
        assert_eq!(numbered(b"data.tar.gz", 2), b"data (2).tar.gz");
        assert_eq!(numbered(b".tar.gz", 2), b".tar (2).gz");
        assert_eq!(numbered(b".bashrc", 2), b".bashrc (2)");
        assert_eq!(numbered(b"run.2026-11-17 evening", 2), b"run.2026-11-17 evening (2)");
        assert_eq!(numbered(b"bad\xff.txt", 2), b"bad\xff (2).txt");
        let long = numbered("ä".repeat(127).as_bytes(), 1000);
        assert!(long.len() <= 255 && std::str::from_utf8(&long).unwrap().ends_with(" (1000)"));
    }
}
