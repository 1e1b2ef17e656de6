//! Reads a zip archive's table of contents, which is at its end, and refuses what can't be extracted before anything is.

use super::limits::{MAX_MEMBERS, MemberPath, UnpackBudget, check_growth};
use super::{SkippedKind, UnpackError, shown};
use crate::clock::UnixTime;
use crate::files::little_endian::{u16_at, u32_at, u64_at};

const END_BYTES: usize = 22;
const LOCATOR_BYTES: usize = 20;
const LARGE_END_BYTES: usize = 56;
const ENTRY_BYTES: usize = 46;
pub(super) const LOCAL_HEADER_BYTES: u64 = 30;
/// More than a table of contents of as many members as are allowed takes.
const MAX_DIRECTORY_BYTES: u64 = 32 * 1024 * 1024;
const FLAG_ENCRYPTED: u64 = 1 | 1 << 6 | 1 << 13;
const MADE_BY_UNIX: u64 = 3;
const TYPE_MASK: u32 = 0o170_000;
const FOLDER_TYPE: u32 = 0o040_000;
const FILE_TYPE: u32 = 0o100_000;
const LINK_TYPE: u32 = 0o120_000;
/// Numbers in a 32-bit field that say: see the ZIP64 field.
const SEE_ZIP64: u64 = 0xFFFF_FFFF;

/// Where the table of contents is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZipEnd {
    pub offset: u64,
    pub bytes: u64,
    members: u64,
}

impl ZipEnd {
    /// How much of the archive's end is needed to find it.
    pub const TAIL_BYTES: u64 = 0xFFFF + 22 + 20 + 56;

    /// Finds it in the end of an archive of `size` bytes.
    pub fn find(tail: &[u8], size: u64) -> Result<Self, UnpackError> {
        let start = size.checked_sub(to_u64(tail.len())).ok_or(UnpackError::Truncated)?;
        // A comment follows it, which may contain the same mark: only the one that ends where the file does is real.
        let is_end = |at: &usize| {
            let record = &tail[*at..];
            u16_at(record, 20).is_some_and(|comment| to_u64(record.len()) == to_u64(END_BYTES) + comment)
        };
        let at = memchr::memmem::rfind_iter(tail, b"PK\x05\x06").find(is_end).ok_or(UnpackError::Truncated)?;
        let record = &tail[at..];
        let number = |at| u16_at(record, at).ok_or(UnpackError::Truncated);
        let large = |at| u32_at(record, at).ok_or(UnpackError::Truncated);
        if number(4)? != number(6)? && number(4)? != 0xFFFF {
            return Err(UnpackError::UnsupportedFormat("split zip"));
        }
        let mut end = Self { members: number(10)?, bytes: large(12)?, offset: large(16)? };
        let mut before = at;
        if end.members == 0xFFFF || end.bytes == SEE_ZIP64 || end.offset == SEE_ZIP64 {
            let locator =
                at.checked_sub(LOCATOR_BYTES).map(|at| &tail[at..]).filter(|it| it.starts_with(b"PK\x06\x07"));
            // Without it, the numbers are what they are.
            if let Some(locator) = locator {
                let offset = u64_at(locator, 8).and_then(|offset| offset.checked_sub(start));
                before = usize::try_from(offset.ok_or(UnpackError::Truncated)?).unwrap_or(usize::MAX);
                let record = tail.get(before..).filter(|it| it.starts_with(b"PK\x06\x06"));
                let record = record.filter(|it| it.len() >= LARGE_END_BYTES).ok_or(UnpackError::Truncated)?;
                let number = |at| u64_at(record, at).ok_or(UnpackError::Truncated);
                end = Self { members: number(32)?, bytes: number(40)?, offset: number(48)? };
            }
        }
        if end.members > MAX_MEMBERS || end.bytes > MAX_DIRECTORY_BYTES {
            return Err(UnpackError::TooManyMembers);
        }
        let is_in_place = end.offset.checked_add(end.bytes) == Some(start + to_u64(before));
        if is_in_place { Ok(end) } else { Err(UnpackError::Damaged("its table of contents isn't where it should be")) }
    }
}

/// One file, folder or link in a zip archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ZipMember {
    /// As it is in the archive; the header before its bytes must have the same.
    pub name: Vec<u8>,
    pub kind: ZipMemberKind,
    pub offset: u64,
    /// Where something else begins.
    pub end: u64,
    pub packed: u64,
    pub size: u64,
    pub checksum: u32,
    pub is_deflated: bool,
    pub mode: Option<u32>,
    pub modified: Option<UnixTime>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ZipMemberKind {
    /// `None`: the folder that is extracted into.
    Folder(Option<MemberPath>),
    File(MemberPath),
    Skipped(SkippedKind),
}

/// A zip archive's members, in the order of their bytes.
#[derive(Debug)]
pub struct ZipContents {
    pub(super) members: Vec<ZipMember>,
    budget: UnpackBudget,
}

impl ZipContents {
    /// Reads the table of contents of an archive of `size` bytes.
    pub fn parse(mut table: &[u8], end: &ZipEnd, size: u64) -> Result<Self, UnpackError> {
        let mut members = Vec::new();
        let mut budget = UnpackBudget::default();
        while !table.is_empty() {
            let (member, rest) = parse_entry(table)?;
            let is_file = matches!(member.kind, ZipMemberKind::File(_));
            budget.add(&member.name, if is_file { member.size } else { 0 })?;
            members.push(member);
            table = rest;
        }
        if to_u64(members.len()) != end.members {
            return Err(UnpackError::Damaged("its table of contents is incomplete"));
        }
        check_growth(size, budget.bytes())?;
        members.sort_by_key(|member| member.offset);
        let ends: Vec<u64> = members.iter().skip(1).map(|member| member.offset).chain([end.offset]).collect();
        for (member, end) in members.iter_mut().zip(ends) {
            member.end = end;
            // The header before the bytes may be longer: that shows when it is read.
            let least = LOCAL_HEADER_BYTES + to_u64(member.name.len());
            let needed = member.offset.checked_add(least).and_then(|at| at.checked_add(member.packed));
            if needed.is_none_or(|needed| needed > end) {
                return Err(UnpackError::Overlap);
            }
        }
        Ok(Self { members, budget })
    }

    /// How many files, folders and links there are.
    pub const fn count(&self) -> u64 {
        self.budget.members()
    }

    /// How many bytes all files have.
    pub const fn bytes(&self) -> u64 {
        self.budget.bytes()
    }
}

fn parse_entry(table: &[u8]) -> Result<(ZipMember, &[u8]), UnpackError> {
    let damaged = || UnpackError::Damaged("its table of contents can't be read");
    if !table.starts_with(b"PK\x01\x02") {
        return Err(damaged());
    }
    let short = |at| u16_at(table, at).ok_or_else(damaged);
    let long = |at| u32_at(table, at).ok_or_else(damaged);
    let part = |from: usize, len: u64| {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        table.get(from..from.saturating_add(len)).ok_or_else(damaged)
    };
    let (name_len, extra_len, comment_len) = (short(28)?, short(30)?, short(32)?);
    let name = part(ENTRY_BYTES, name_len)?.to_vec();
    let extra = part(ENTRY_BYTES + name.len(), extra_len)?;
    let rest_at = ENTRY_BYTES + name.len() + extra.len();
    let comment = part(rest_at, comment_len)?;
    let (mut size, mut packed, mut offset) = (long(24)?, long(20)?, long(42)?);
    let mut modified = None;
    for (id, mut field) in ExtraFields(extra) {
        match id {
            1 => {
                for number in [&mut size, &mut packed, &mut offset] {
                    if *number == SEE_ZIP64 {
                        *number = u64_at(field, 0).ok_or_else(damaged)?;
                        field = &field[8..];
                    }
                }
            }
            // Info-ZIP's time: flags, then seconds since 1970.
            0x5455 if field.first().is_some_and(|flags| flags & 1 != 0) => {
                let seconds = field.get(1..5).and_then(|four| four.try_into().ok()).map(i32::from_le_bytes);
                modified = seconds.map(|seconds| UnixTime(seconds.into()));
            }
            _ => {}
        }
    }
    let (flags, method) = (short(8)?, short(10)?);
    let attributes = u32::try_from(long(38)?).unwrap_or_default();
    let unix_mode = (short(4)? >> 8 == MADE_BY_UNIX && attributes >> 16 != 0).then_some(attributes >> 16);
    let path = MemberPath::parse(&name)?;
    let kind = match (unix_mode.map_or(0, |mode| mode & TYPE_MASK), path) {
        (LINK_TYPE, _) => ZipMemberKind::Skipped(SkippedKind::Link),
        (FOLDER_TYPE, path) => ZipMemberKind::Folder(path),
        (0 | FILE_TYPE, path) if name.ends_with(b"/") => ZipMemberKind::Folder(path),
        (0 | FILE_TYPE, Some(path)) => ZipMemberKind::File(path),
        (0 | FILE_TYPE, None) => return Err(UnpackError::UnsafeName(shown(&name))),
        _ => ZipMemberKind::Skipped(SkippedKind::Special),
    };
    let is_file = matches!(kind, ZipMemberKind::File(_));
    if flags & FLAG_ENCRYPTED != 0 {
        return Err(UnpackError::Encrypted);
    }
    if is_file && !matches!(method, 0 | 8) {
        return Err(UnpackError::UnsupportedMethod(shown(&name)));
    }
    if is_file && method == 0 && size != packed {
        return Err(UnpackError::Damaged("a file's sizes contradict each other"));
    }
    let member = ZipMember {
        kind,
        offset,
        end: offset,
        packed,
        size,
        checksum: u32::try_from(long(16)?).unwrap_or_default(),
        is_deflated: method == 8,
        mode: unix_mode.map(|mode| mode & 0o7777),
        modified,
        name,
    };
    Ok((member, &table[rest_at + comment.len()..]))
}

/// The extra fields of an entry: their number and their bytes. Ends at the first that is cut off.
struct ExtraFields<'a>(&'a [u8]);

impl<'a> Iterator for ExtraFields<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (id, len) = (u16_at(self.0, 0)?, usize::try_from(u16_at(self.0, 2)?).ok()?);
        let field = self.0.get(4..4 + len)?;
        self.0 = &self.0[4 + len..];
        Some((id, field))
    }
}

fn to_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
