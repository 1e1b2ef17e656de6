//! Reads the members of a zip archive one after the other, as its table of contents lists them.

use bytes::{Buf as _, Bytes};
use flate2::{Decompress, FlushDecompress, Status};

use super::zip_contents::{LOCAL_HEADER_BYTES, ZipContents, ZipMember, ZipMemberKind};
use super::{PIECE_BYTES, UnpackError, UnpackEvent, UnpackedMember, shown};
use crate::files::little_endian::u16_at;

pub(super) struct ZipUnpacker {
    /// What is still to come, the last first.
    members: Vec<ZipMember>,
    /// How many bytes of the archive were taken.
    at: u64,
    state: ZipState,
}

enum ZipState {
    /// On the way to the next member.
    Between,
    /// Its header hasn't come as a whole yet.
    Header(Vec<u8>),
    Content(Box<ZipMemberContent>),
}

struct ZipMemberContent {
    member: ZipMember,
    /// How many packed bytes are still to come.
    left: u64,
    unpacked: u64,
    checksum: crc32fast::Hasher,
    inflate: Option<Decompress>,
    has_ended: bool,
}

impl ZipUnpacker {
    pub fn new(directory: ZipContents) -> Self {
        let mut members = directory.members;
        members.reverse();
        Self { members, at: 0, state: ZipState::Between }
    }

    pub fn next_event(&mut self, chunk: &mut Bytes) -> Result<Option<UnpackEvent>, UnpackError> {
        loop {
            match &mut self.state {
                ZipState::Between => {
                    let Some(next) = self.members.last() else {
                        chunk.clear();
                        return Ok(None);
                    };
                    let gap = next.offset - self.at;
                    let skipped = usize::try_from(gap).unwrap_or(usize::MAX).min(chunk.len());
                    chunk.advance(skipped);
                    self.at += to_u64(skipped);
                    if self.at < next.offset || chunk.is_empty() {
                        return Ok(None);
                    }
                    self.state = ZipState::Header(Vec::new());
                }
                ZipState::Header(header) => {
                    let Some(next) = self.members.last() else { return Ok(None) };
                    let wanted = header_bytes(header, next)?;
                    let taken = chunk.split_to(wanted.saturating_sub(header.len()).min(chunk.len()));
                    header.extend_from_slice(&taken);
                    self.at += to_u64(taken.len());
                    if header.len() < wanted {
                        return Ok(None);
                    }
                    // Once the fixed part is there, it says how long the rest is.
                    if header.len() >= header_bytes(header, next)?
                        && let Some(event) = self.begin_member()?
                    {
                        return Ok(Some(event));
                    }
                }
                ZipState::Content(content) => {
                    let before = chunk.len();
                    let event = content.next_event(chunk)?;
                    self.at += to_u64(before - chunk.len());
                    if event == Some(UnpackEvent::FileEnd) {
                        self.state = ZipState::Between;
                    }
                    return Ok(event);
                }
            }
        }
    }

    pub fn finish(&self) -> Result<(), UnpackError> {
        let is_over = self.members.is_empty() && matches!(self.state, ZipState::Between);
        if is_over { Ok(()) } else { Err(UnpackError::Truncated) }
    }

    /// A member's header has come: compares it with the table of contents.
    fn begin_member(&mut self) -> Result<Option<UnpackEvent>, UnpackError> {
        let ZipState::Header(header) = std::mem::replace(&mut self.state, ZipState::Between) else { return Ok(None) };
        let Some(member) = self.members.pop() else { return Ok(None) };
        let name_at = usize::try_from(LOCAL_HEADER_BYTES).unwrap_or_default();
        let is_same = header.get(name_at..name_at + member.name.len()) == Some(&member.name[..])
            && u16_at(&header, 26) == Some(to_u64(member.name.len()))
            && (u16_at(&header, 8) == Some(if member.is_deflated { 8 } else { 0 })
                || !matches!(member.kind, ZipMemberKind::File(_)));
        if !is_same {
            return Err(UnpackError::Damaged("a file doesn't match the table of contents"));
        }
        if self.at.checked_add(member.packed).is_none_or(|end| end > member.end) {
            return Err(UnpackError::Overlap);
        }
        let describe = |path, size| UnpackedMember { path, size, mode: member.mode, modified: member.modified };
        match &member.kind {
            ZipMemberKind::Folder(path) => Ok(path.clone().map(|path| UnpackEvent::Folder(describe(path, 0)))),
            ZipMemberKind::Skipped(kind) => Ok(Some(UnpackEvent::Skipped { name: shown(&member.name), kind: *kind })),
            ZipMemberKind::File(path) => {
                let described = describe(path.clone(), member.size);
                self.state = ZipState::Content(Box::new(ZipMemberContent {
                    left: member.packed,
                    unpacked: 0,
                    checksum: crc32fast::Hasher::new(),
                    inflate: member.is_deflated.then(|| Decompress::new(false)),
                    has_ended: !member.is_deflated,
                    member,
                }));
                Ok(Some(UnpackEvent::File(described)))
            }
        }
    }
}

/// How long a member's header is, as far as is known.
fn header_bytes(header: &[u8], member: &ZipMember) -> Result<usize, UnpackError> {
    let fixed = usize::try_from(LOCAL_HEADER_BYTES).unwrap_or_default();
    if header.len() < fixed {
        return Ok(fixed);
    }
    if !header.starts_with(b"PK\x03\x04") {
        return Err(UnpackError::Damaged("a file isn't where the table of contents says"));
    }
    let len = LOCAL_HEADER_BYTES + u16_at(header, 26).unwrap_or_default() + u16_at(header, 28).unwrap_or_default();
    if member.offset + len > member.end {
        return Err(UnpackError::Overlap);
    }
    Ok(usize::try_from(len).unwrap_or(usize::MAX))
}

impl ZipMemberContent {
    fn next_event(&mut self, chunk: &mut Bytes) -> Result<Option<UnpackEvent>, UnpackError> {
        if self.left == 0 && self.has_ended {
            return self.end().map(Some);
        }
        if chunk.is_empty() && self.left > 0 {
            return Ok(None);
        }
        let available = usize::try_from(self.left).unwrap_or(usize::MAX).min(chunk.len());
        let data = match &mut self.inflate {
            None => chunk.split_to(available.min(PIECE_BYTES)),
            Some(_) if self.has_ended => return Err(UnpackError::Damaged("there is data after the end of a file")),
            Some(inflate) => {
                let (taken, produced) = (inflate.total_in(), inflate.total_out());
                let mut out = vec![0; PIECE_BYTES];
                let status = inflate.decompress(&chunk[..available], &mut out, FlushDecompress::None);
                let status = status.map_err(|_| UnpackError::WrongChecksum(shown(&self.member.name)))?;
                let taken = usize::try_from(inflate.total_in() - taken).unwrap_or(usize::MAX);
                out.truncate(usize::try_from(inflate.total_out() - produced).unwrap_or(usize::MAX));
                chunk.advance(taken.min(available));
                self.left -= to_u64(taken);
                self.has_ended = status == Status::StreamEnd;
                if taken == 0 && out.is_empty() && !self.has_ended {
                    return Err(UnpackError::Damaged("a file ends too early"));
                }
                self.unpacked += to_u64(out.len());
                if self.unpacked > self.member.size {
                    return Err(UnpackError::Bomb);
                }
                self.checksum.update(&out);
                return Ok(Some(UnpackEvent::Data(out.into())));
            }
        };
        self.left -= to_u64(data.len());
        self.unpacked += to_u64(data.len());
        self.checksum.update(&data);
        Ok(Some(UnpackEvent::Data(data)))
    }

    fn end(&self) -> Result<UnpackEvent, UnpackError> {
        if self.unpacked != self.member.size || self.checksum.clone().finalize() != self.member.checksum {
            return Err(UnpackError::WrongChecksum(shown(&self.member.name)));
        }
        Ok(UnpackEvent::FileEnd)
    }
}

fn to_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
