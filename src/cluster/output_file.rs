//! Reads output files over the person's own connection: the end, or what follows an offset. Never more than
//! requested, however long the file is.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::UnixTime;
use crate::ssh::{CallUrgency, ClusterConnection, RemoteCommand, RunCommandError};

/// Seeking to the end is quick unless the disks are slow.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// A long chunk takes longer.
const BULK_READ_TIMEOUT: Duration = Duration::from_mins(2);

/// Describes the file in one line, then prints a chunk of it: `$1` the file, `$2` the offset (or `end`), `$3` the
/// maximum size, `$4` the file's inode when it was last read (or 0). A file that was replaced or is shorter than
/// before is read from its end. Pipes and devices are not touched: reading them may take forever.
const READ_SCRIPT: &str = "f=$1; from=$2; most=$3; was=$4; d=${f%/*}; d=${d:-/}; \
if [ ! -e \"$f\" ]; then if [ ! -d \"$d\" ]; then echo no-folder; elif [ -x \"$d\" ]; then echo missing; else echo denied; fi; exit 0; fi; \
if [ ! -f \"$f\" ]; then echo odd; exit 0; fi; \
if [ ! -r \"$f\" ]; then echo denied; exit 0; fi; \
set -- $(stat -L -c '%s %Y %i' -- \"$f\"); \
if [ -z \"$3\" ]; then echo denied; exit 0; fi; \
if [ \"$from\" = end ] || [ \"$from\" -gt \"$1\" ] || { [ \"$was\" != 0 ] && [ \"$was\" != \"$3\" ]; }; then from=$(($1 - most)); [ \"$from\" -ge 0 ] || from=0; fi; \
n=$(($1 - from)); [ \"$n\" -le \"$most\" ] || n=$most; \
echo \"ok $1 $2 $3 $from\"; \
[ \"$n\" -gt 0 ] || exit 0; \
tail -c +$((from + 1)) -- \"$f\" | head -c \"$n\"";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFilePosition {
    End,
    /// What follows this offset, if the file still has this inode (0: any).
    Offset {
        /// In bytes.
        offset: u64,
        inode: u64,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputFileResult {
    Chunk(OutputFileChunk),
    /// The file does not exist, but its folder does.
    Missing,
    /// The folder does not exist either, or its parent is not accessible.
    NoFolder,
    /// The person may not read it.
    Denied,
    /// A device, a folder or a pipe.
    NotAFile,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputFileChunk {
    /// The size of the whole file.
    pub size: u64,
    pub modified: Option<UnixTime>,
    /// Another inode means another file.
    pub inode: u64,
    /// The offset of the chunk in the file.
    pub start: u64,
    pub bytes: Vec<u8>,
}

impl OutputFileChunk {
    /// Drops everything before the first line break, so that the chunk begins with a whole line. Returns true if
    /// it still begins in the middle of one.
    pub fn trim_to_line(&mut self) -> bool {
        if self.start == 0 {
            return false;
        }
        match memchr::memchr(b'\n', &self.bytes) {
            Some(at) if at + 1 < self.bytes.len() => {
                self.bytes.drain(..=at);
                self.start += u64::try_from(at + 1).unwrap_or(u64::MAX);
                false
            }
            _ => true,
        }
    }
}

pub async fn read_output_file(
    connection: &Arc<ClusterConnection>,
    path: &str,
    from: OutputFilePosition,
    most: u32,
    urgency: CallUrgency,
) -> Result<OutputFileResult, RunCommandError> {
    let (position, inode) = match from {
        OutputFilePosition::End => ("end".to_owned(), 0),
        OutputFilePosition::Offset { offset, inode } => (offset.to_string(), inode),
    };
    let timeout = if urgency == CallUrgency::Bulk { BULK_READ_TIMEOUT } else { READ_TIMEOUT };
    let max_output = usize::try_from(most).unwrap_or(usize::MAX).saturating_add(4096);
    let command = RemoteCommand::new("/bin/sh")
        .args(["-c", READ_SCRIPT, "sh", path, &position, &most.to_string(), &inode.to_string()])
        .with_deadline(timeout)
        .with_max_output(max_output);
    let output = connection.run(command, urgency).await?;
    parse_output_file(output.stdout).ok_or(RunCommandError::ConnectionLost)
}

fn parse_output_file(mut printed: Vec<u8>) -> Option<OutputFileResult> {
    let end = memchr::memchr(b'\n', &printed)?;
    let head = std::str::from_utf8(&printed[..end]).ok()?.to_owned();
    let mut words = head.split(' ');
    match words.next()? {
        "missing" => Some(OutputFileResult::Missing),
        "no-folder" => Some(OutputFileResult::NoFolder),
        "denied" => Some(OutputFileResult::Denied),
        "odd" => Some(OutputFileResult::NotAFile),
        "ok" => {
            let mut number = || words.next()?.parse::<i64>().ok();
            let (size, modified, inode, start) = (number()?, number()?, number()?, number()?);
            let whole = |number: i64| u64::try_from(number).ok();
            let bytes = printed.split_off(end + 1);
            Some(OutputFileResult::Chunk(OutputFileChunk {
                size: whole(size)?,
                modified: Some(UnixTime(modified)).filter(|at| at.0 > 0),
                inode: whole(inode)?,
                start: whole(start)?,
                bytes,
            }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(path: &std::path::Path, from: &str, most: u32, inode: u64) -> OutputFileResult {
        let done = std::process::Command::new("/bin/sh")
            .args(["-c", READ_SCRIPT, "sh"])
            .arg(path)
            .args([from, &most.to_string(), &inode.to_string()])
            .output()
            .unwrap();
        parse_output_file(done.stdout).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&done.stderr)))
    }

    fn piece(found: OutputFileResult) -> OutputFileChunk {
        let OutputFileResult::Chunk(piece) = found else { panic!("{found:?}") };
        piece
    }

    #[test]
    fn pieces_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it's a $(log) \\ file");
        assert_eq!(here(&path, "end", 4, 0), OutputFileResult::Missing);
        assert_eq!(here(&path.join("x"), "end", 4, 0), OutputFileResult::NoFolder);
        assert_eq!(here(folder.path(), "end", 4, 0), OutputFileResult::NotAFile);
        assert_eq!(here("/dev/null".as_ref(), "end", 4, 0), OutputFileResult::NotAFile);
        std::fs::write(&path, "").unwrap();
        assert_eq!(piece(here(&path, "end", 4, 0)).size, 0);
        std::fs::write(&path, b"0123\n\xff6789").unwrap();
        let end = piece(here(&path, "end", 4, 0));
        assert_eq!((end.size, end.start, end.bytes.as_slice()), (10, 6, &b"6789"[..]));
        let next = piece(here(&path, "2", 4, end.inode));
        assert_eq!((next.start, next.bytes.as_slice()), (2, &b"23\n\xff"[..]));
        assert_eq!(piece(here(&path, "10", 4, end.inode)).bytes, b"");
        assert_eq!(piece(here(&path, "11", 4, end.inode)).start, 6, "shorter than before");
        assert_eq!(piece(here(&path, "2", 4, end.inode + 1)).start, 6, "another file");
    }

    /// A sparse file of ten gigabytes, without a line break.
    #[test]
    fn the_end_of_a_long_file_is_found_at_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(10 << 30).unwrap();
        let begun = std::time::Instant::now();
        let end = piece(here(file.path(), "end", 262_144, 0));
        assert_eq!((end.size, end.bytes.len()), (10 << 30, 262_144));
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_name_with_a_line_break_cannot_be_asked_for() {
        let command = RemoteCommand::new("/bin/sh").args(["-c", READ_SCRIPT, "sh", "/tmp/a\nb"]);
        assert!(command.to_command_line(&crate::ssh::RemoteCommandMode::Bare).is_err());
        let command = RemoteCommand::new("/bin/sh").args(["-c", READ_SCRIPT, "sh", "/tmp/a"]);
        assert!(command.to_command_line(&crate::ssh::RemoteCommandMode::Bare).is_ok());
    }

    #[test]
    fn a_piece_begins_with_a_line() {
        let piece = |start, text: &str| OutputFileChunk {
            start,
            bytes: text.as_bytes().to_vec(),
            ..OutputFileChunk::default()
        };
        for (start, text, half, base, rest) in [
            (0, "ab\ncd", false, 0, "ab\ncd"),
            (7, "b\ncd\n", false, 9, "cd\n"),
            (7, "no line end", true, 7, "no line end"),
            (7, "only at the end\n", true, 7, "only at the end\n"),
        ] {
            let mut piece = piece(start, text);
            assert_eq!(piece.trim_to_line(), half, "{text}");
            assert_eq!((piece.start, piece.bytes.as_slice()), (base, rest.as_bytes()), "{text}");
        }
    }
}
