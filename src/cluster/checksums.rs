//! Checksums of files, computed where they are. They are those of POSIX `cksum`: each cluster has that program, and it
//! hardly costs more than reading the file. They find damage, not forgery.

mod running;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub use self::running::RunningChecksum;
use crate::domain::RemotePath;
use crate::ssh::{CallUrgency, ClusterConnection, RemoteCommand, RunCommandError};

/// Even for small files: the cluster may be busy.
const MIN_DEADLINE_SECS: u64 = 60;
/// A slow disk reads at least this much in a second.
const MIN_BYTES_PER_SECOND: u64 = 10 * 1024 * 1024;
/// The names come back with the checksums.
const MAX_OUTPUT: usize = 16 * 1024 * 1024;
/// The exit codes of `xargs` and of shells for a program that is missing or can't be run.
const NO_PROGRAM: [i32; 2] = [126, 127];

/// What `cksum` says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileChecksum {
    pub crc: u32,
    pub size: u64,
}

/// The checksums of these files, which have `bytes` together; one that can't be read is missing. `None` if the cluster has
/// no program for it. The paths are sent as input, so that no byte in them means anything to a shell.
pub async fn compute(
    connection: &Arc<ClusterConnection>,
    files: &[RemotePath],
    bytes: u64,
) -> Result<Option<HashMap<RemotePath, FileChecksum>>, RunCommandError> {
    compute_for(connection, files, bytes, CallUrgency::Background).await
}

/// The same for someone in particular.
pub async fn compute_for(
    connection: &Arc<ClusterConnection>,
    files: &[RemotePath],
    bytes: u64,
    urgency: CallUrgency,
) -> Result<Option<HashMap<RemotePath, FileChecksum>>, RunCommandError> {
    let mut input = Vec::new();
    for file in files {
        input.extend_from_slice(file.as_bytes());
        input.push(0);
    }
    let command = RemoteCommand::new("nice")
        .args(["-n", "10", "xargs", "-0", "-r", "cksum", "--"])
        .input(input)
        .with_deadline(Duration::from_secs(MIN_DEADLINE_SECS + bytes / MIN_BYTES_PER_SECOND))
        .with_max_output(MAX_OUTPUT);
    let output = connection.run(command, urgency).await?;
    if NO_PROGRAM.contains(&output.code) {
        return Ok(None);
    }
    Ok(Some(parse_checksums(&output.stdout, files)))
}

/// Reads lines of `CRC SIZE PATH`. Nothing is escaped in them, but the paths are known and come in order.
fn parse_checksums(mut output: &[u8], files: &[RemotePath]) -> HashMap<RemotePath, FileChecksum> {
    let mut checksums = HashMap::new();
    for file in files {
        if let Some((checksum, rest)) = parse_line(output, file) {
            checksums.insert(file.clone(), checksum);
            output = rest;
        }
    }
    checksums
}

/// The checksum at the beginning of the output if it is this file's, and what follows.
fn parse_line<'o>(output: &'o [u8], file: &RemotePath) -> Option<(FileChecksum, &'o [u8])> {
    let (crc, rest) = split_number(output)?;
    let (size, rest) = split_number(rest)?;
    let rest = rest.strip_prefix(file.as_bytes())?.strip_prefix(b"\n")?;
    Some((FileChecksum { crc: u32::try_from(crc).ok()?, size }, rest))
}

fn split_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| *byte == b' ')?;
    let number = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    Some((number, &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_belong_to_names_of_any_bytes() {
        let path = |bytes: &[u8]| RemotePath::parse(bytes).unwrap();
        let files =
            [path(b"/gone"), path(b"/a\n1 2 /b"), path(b"/b"), path(b"/-x \\ \xff"), path(b"/unread"), path(b"/c")];
        let output = b"4294967295 0 /a\n1 2 /b\n7 8 /b\n9 10 /-x \\ \xff\n11 12 /c\n";
        let checksums = parse_checksums(output, &files);
        let found: Vec<_> = files.iter().map(|file| checksums.get(file).map(|sum| (sum.crc, sum.size))).collect();
        assert_eq!(found, [None, Some((u32::MAX, 0)), Some((7, 8)), Some((9, 10)), None, Some((11, 12))]);
        for bad in [&b""[..], b"cksum: /b: No such file", b"4294967296 1 /b\n", b"1 -1 /b\n", b"1 1 /b"] {
            assert!(parse_checksums(bad, &[path(b"/b")]).is_empty(), "{}", String::from_utf8_lossy(bad));
        }
    }
}
