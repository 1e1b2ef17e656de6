//! Writes a tar archive in GNU's format, which keeps names of any bytes and any length, and sizes beyond 8 GiB. Pure.

use super::member::ArchiveEntryHeader;

const BLOCK: usize = 512;
/// How many bytes of a name fit into a header.
const NAME_BYTES: usize = 100;
/// The largest number that eleven octal digits hold.
const MAX_OCTAL: u64 = 0o777_7777_7777;
/// The name that marks a header whose body is the name of the next one.
const LONG_NAME: &[u8] = b"././@LongLink";

/// Writes members one after the other; the archive ends with [`Self::finish`].
#[derive(Debug, Default)]
pub struct TarWriter {
    /// The length of the file being written.
    open_len: u64,
}

#[expect(clippy::unused_self, reason = "it is used as the zip writer is")]
impl TarWriter {
    pub fn add_folder(&self, member: &ArchiveEntryHeader, out: &mut Vec<u8>) {
        let mut name = member.name.clone();
        name.push(b'/');
        write_header(out, &name, b"", b'5', 0, member);
    }

    pub fn add_link(&self, member: &ArchiveEntryHeader, target: &[u8], out: &mut Vec<u8>) {
        write_header(out, &member.name, target, b'2', 0, member);
    }

    /// Begins a file. Exactly this many bytes follow, then [`Self::end_file`].
    pub fn begin_file(&mut self, member: &ArchiveEntryHeader, len: u64, out: &mut Vec<u8>) {
        self.open_len = len;
        write_header(out, &member.name, b"", b'0', len, member);
    }

    pub fn end_file(&mut self, out: &mut Vec<u8>) {
        pad(out, self.open_len);
    }

    pub fn finish(self, out: &mut Vec<u8>) {
        out.resize(out.len() + 2 * BLOCK, 0);
    }
}

fn write_header(out: &mut Vec<u8>, name: &[u8], link: &[u8], kind: u8, len: u64, member: &ArchiveEntryHeader) {
    for (text, kind) in [(name, b'L'), (link, b'K')] {
        if text.len() > NAME_BYTES {
            let text_len = u64::try_from(text.len() + 1).unwrap_or(u64::MAX);
            write_block(out, LONG_NAME, b"", kind, text_len, &ArchiveEntryHeader { mode: 0o644, ..member.clone() });
            out.extend_from_slice(text);
            out.push(0);
            pad(out, text_len);
        }
    }
    write_block(out, name, link, kind, len, member);
}

fn write_block(out: &mut Vec<u8>, name: &[u8], link: &[u8], kind: u8, len: u64, member: &ArchiveEntryHeader) {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &name[..name.len().min(NAME_BYTES)]);
    put(100, &octal::<8>(member.mode.into()));
    put(108, &octal::<8>(fitting(member.owner.0)));
    put(116, &octal::<8>(fitting(member.owner.1)));
    put(124, &number(len));
    put(136, &number(u64::try_from(member.modified.0).unwrap_or_default()));
    put(148, b"        ");
    put(156, &[kind]);
    put(157, &link[..link.len().min(NAME_BYTES)]);
    put(257, b"ustar  \0");
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    block[148..155].copy_from_slice(&octal::<7>(sum));
    out.extend_from_slice(&block);
}

/// Ends with a zero byte.
fn octal<const LEN: usize>(number: u64) -> [u8; LEN] {
    let mut digits = [0; LEN];
    let mut rest = number;
    for digit in digits[..LEN - 1].iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 8).unwrap_or_default();
        rest /= 8;
    }
    digits
}

/// Twelve bytes: octal, or GNU's binary form if that is too short.
fn number(number: u64) -> [u8; 12] {
    if number <= MAX_OCTAL {
        return octal(number);
    }
    let mut bytes = [0; 12];
    bytes[0] = 0x80;
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Owners with larger numbers belong to nobody whom the archive could name.
fn fitting(owner: u32) -> u64 {
    let owner = u64::from(owner);
    if owner <= 0o777_7777 { owner } else { 0 }
}

fn pad(out: &mut Vec<u8>, len: u64) {
    let over = usize::try_from(len % 512).unwrap_or_default();
    if over > 0 {
        out.resize(out.len() + BLOCK - over, 0);
    }
}
