//! Reads a tar archive: old, GNU's and POSIX's formats.

use bytes::{Buf as _, Bytes};

use super::limits::{MemberPath, UnpackBudget};
use super::{PIECE_BYTES, SkippedKind, UnpackError, UnpackEvent, UnpackedMember, shown};
use crate::clock::UnixTime;

const BLOCK: usize = 512;
const BLOCK_BYTES: u64 = 512;
/// The longest name or list of attributes that a header may announce.
const MAX_EXTENSION_BYTES: u64 = 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct TarUnpacker {
    state: TarState,
    /// A header or an extension that hasn't come as a whole yet.
    partial: Vec<u8>,
    /// What extensions say about the next member.
    next: TarExtensions,
    budget: UnpackBudget,
    has_begun: bool,
}

#[derive(Debug, Default)]
enum TarState {
    #[default]
    Header,
    Extension {
        kind: u8,
        size: u64,
    },
    Content {
        left: u64,
        padding: u64,
    },
    Skip(u64),
    /// What follows doesn't belong to the archive.
    End,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct TarExtensions {
    name: Option<Vec<u8>>,
    size: Option<u64>,
    modified: Option<i64>,
    is_sparse: bool,
}

impl TarUnpacker {
    pub fn next_event(&mut self, chunk: &mut Bytes) -> Result<Option<UnpackEvent>, UnpackError> {
        loop {
            match &mut self.state {
                TarState::End => {
                    chunk.clear();
                    return Ok(None);
                }
                TarState::Skip(0) => self.state = TarState::Header,
                TarState::Skip(left) => {
                    if chunk.is_empty() {
                        return Ok(None);
                    }
                    let skipped = clamp(*left, chunk.len());
                    chunk.advance(skipped);
                    *left -= to_u64(skipped);
                }
                TarState::Content { left: 0, padding } => {
                    self.state = TarState::Skip(*padding);
                    return Ok(Some(UnpackEvent::FileEnd));
                }
                TarState::Content { left, .. } => {
                    if chunk.is_empty() {
                        return Ok(None);
                    }
                    let data = chunk.split_to(clamp(*left, chunk.len().min(PIECE_BYTES)));
                    *left -= to_u64(data.len());
                    return Ok(Some(UnpackEvent::Data(data)));
                }
                TarState::Header => {
                    let Some(block) = fill(&mut self.partial, chunk, BLOCK) else { return Ok(None) };
                    if let Some(event) = self.read_header(&block)? {
                        return Ok(Some(event));
                    }
                }
                TarState::Extension { kind, size } => {
                    let (kind, size) = (*kind, *size);
                    let wanted = usize::try_from(size.next_multiple_of(BLOCK_BYTES)).unwrap_or(usize::MAX);
                    let Some(mut body) = fill(&mut self.partial, chunk, wanted) else { return Ok(None) };
                    body.truncate(usize::try_from(size).unwrap_or(usize::MAX));
                    self.read_extension(kind, body)?;
                    self.state = TarState::Header;
                }
            }
        }
    }

    pub fn finish(&self) -> Result<(), UnpackError> {
        match self.state {
            TarState::End => Ok(()),
            _ if !self.has_begun => Err(UnpackError::NotAnArchive),
            _ => Err(UnpackError::Truncated),
        }
    }

    fn read_header(&mut self, block: &[u8]) -> Result<Option<UnpackEvent>, UnpackError> {
        if block.iter().all(|byte| *byte == 0) {
            self.has_begun = true;
            self.state = TarState::End;
            return Ok(None);
        }
        if !is_header(block) {
            let damaged = UnpackError::Damaged("a file's header can't be read");
            return Err(if self.has_begun { damaged } else { UnpackError::NotAnArchive });
        }
        self.has_begun = true;
        let size = parse_number(&block[124..136]).ok_or(UnpackError::Damaged("a file's size can't be read"))?;
        let kind = block[156];
        if matches!(kind, b'L' | b'K' | b'x' | b'X' | b'g') {
            if size > MAX_EXTENSION_BYTES {
                return Err(UnpackError::NameTooLong("longer than 1 MB".to_owned()));
            }
            self.state = TarState::Extension { kind, size };
            return Ok(None);
        }
        let next = std::mem::take(&mut self.next);
        let size = next.size.unwrap_or(size);
        let raw_name = next.name.unwrap_or_else(|| header_name(block));
        let is_folder = kind == b'5' || matches!(kind, b'0' | 0) && raw_name.ends_with(b"/");
        let skipped = match kind {
            b'1' | b'2' => Some(SkippedKind::Link),
            b'S' => return Err(UnpackError::UnsupportedMethod(shown(&raw_name))),
            b'0' | 0 | b'7' | b'5' if !next.is_sparse => None,
            _ => Some(SkippedKind::Special),
        };
        let content = if is_folder || matches!(kind, b'2'..=b'6') { 0 } else { size };
        let padding = padding(content)?;
        self.budget.add(&raw_name, if skipped.is_some() { 0 } else { content })?;
        let path = MemberPath::parse(&raw_name)?;
        if let Some(kind) = skipped {
            self.state = TarState::Skip(content.saturating_add(padding));
            return Ok(Some(UnpackEvent::Skipped { name: shown(&raw_name), kind }));
        }
        let header_time = || parse_number(&block[136..148]).and_then(|at| i64::try_from(at).ok());
        let modified = next.modified.or_else(header_time).map(UnixTime);
        let mode = parse_number(&block[100..108]).and_then(|mode| u32::try_from(mode & 0o7777).ok());
        self.state = if is_folder { TarState::Header } else { TarState::Content { left: content, padding } };
        let Some(path) = path else {
            // The folder that is extracted into is there already.
            return if is_folder { Ok(None) } else { Err(UnpackError::UnsafeName(shown(&raw_name))) };
        };
        let member = UnpackedMember { path, size: content, mode, modified };
        Ok(Some(if is_folder { UnpackEvent::Folder(member) } else { UnpackEvent::File(member) }))
    }

    fn read_extension(&mut self, kind: u8, mut body: Vec<u8>) -> Result<(), UnpackError> {
        match kind {
            b'L' => {
                body.truncate(memchr::memchr(0, &body).unwrap_or(body.len()));
                self.next.name = Some(body);
            }
            b'x' | b'X' => read_attributes(&body, &mut self.next)?,
            // Where links lead, and attributes of all members: neither is used.
            _ => {}
        }
        Ok(())
    }
}

/// How many bytes fill up the last block.
fn padding(size: u64) -> Result<u64, UnpackError> {
    let end = size.checked_next_multiple_of(BLOCK_BYTES).ok_or(UnpackError::TooLarge)?;
    Ok(end - size)
}

/// Whether this block is a header: its checksum is right.
pub(super) fn is_header(block: &[u8]) -> bool {
    let Some(block) = block.get(..BLOCK) else { return false };
    let byte = |(at, byte): (usize, &u8)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) };
    let sum: u64 = block.iter().enumerate().map(byte).sum();
    parse_number(&block[148..156]) == Some(sum)
}

fn header_name(block: &[u8]) -> Vec<u8> {
    let until_zero = |field: &[u8]| field[..memchr::memchr(0, field).unwrap_or(field.len())].to_vec();
    let (name, prefix) = (until_zero(&block[..100]), until_zero(&block[345..500]));
    // GNU keeps times where POSIX keeps the rest of a long name.
    let is_posix = &block[257..263] == b"ustar\0";
    if is_posix && !prefix.is_empty() { [&prefix[..], b"/", &name].concat() } else { name }
}

/// Octal digits, or a large number in binary with the first bit set.
fn parse_number(field: &[u8]) -> Option<u64> {
    let first = *field.first()?;
    if first & 0x80 != 0 {
        let (high, low) = field.split_at(field.len().checked_sub(8)?);
        // Negative numbers and those beyond 64 bits aren't sizes.
        let is_small = high.iter().enumerate().all(|(at, byte)| *byte == if at == 0 { 0x80 } else { 0 });
        return if is_small { Some(u64::from_be_bytes(low.try_into().ok()?)) } else { None };
    }
    let digits = field.iter().filter(|byte| !matches!(byte, 0 | b' '));
    digits.copied().try_fold(0_u64, |number, byte| match byte {
        b'0'..=b'7' => number.checked_mul(8)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// Reads POSIX attributes: `18 path=some/name\n`, one after the other.
fn read_attributes(mut body: &[u8], next: &mut TarExtensions) -> Result<(), UnpackError> {
    let damaged = || UnpackError::Damaged("a file's attributes can't be read");
    while !body.is_empty() {
        let space = memchr::memchr(b' ', body).ok_or_else(damaged)?;
        let length = std::str::from_utf8(&body[..space]).ok().and_then(|text| text.parse::<usize>().ok());
        let length = length.filter(|length| *length > space + 1 && *length <= body.len()).ok_or_else(damaged)?;
        let record = body[space + 1..length].strip_suffix(b"\n").ok_or_else(damaged)?;
        let equals = memchr::memchr(b'=', record).ok_or_else(damaged)?;
        let (key, value) = (&record[..equals], &record[equals + 1..]);
        let text = || std::str::from_utf8(value).ok();
        match key {
            b"path" => next.name = Some(value.to_vec()),
            b"size" => next.size = Some(text().and_then(|text| text.parse().ok()).ok_or_else(damaged)?),
            b"mtime" => next.modified = text().and_then(|text| text.split('.').next()?.parse().ok()),
            key if key.starts_with(b"GNU.sparse.") => next.is_sparse = true,
            _ => {}
        }
        body = &body[length..];
    }
    Ok(())
}

/// Collects so many bytes; `None` while some are missing.
fn fill(partial: &mut Vec<u8>, chunk: &mut Bytes, wanted: usize) -> Option<Vec<u8>> {
    let taken = wanted.saturating_sub(partial.len()).min(chunk.len());
    partial.extend_from_slice(&chunk.split_to(taken));
    (partial.len() >= wanted).then(|| std::mem::take(partial))
}

fn clamp(left: u64, most: usize) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(most)
}

fn to_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
