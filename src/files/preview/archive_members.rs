//! What is in an archive, from its table of contents alone: nothing is unpacked.

use crate::files::little_endian::{u16_at, u32_at, u64_at};
use crate::format;
use crate::text::is_disruptive;

/// The most members that are listed.
pub const MAX_MEMBERS: usize = 500;
const MAX_NAME_CHARS: usize = 300;
/// A block of a tar archive.
pub const TAR_BLOCK_BYTES: u64 = 512;

/// The first members of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArchiveMembers {
    pub members: Vec<ArchiveMember>,
    /// How many there are in all, if the archive says so.
    pub total: Option<u64>,
    pub is_cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveMember {
    pub name: String,
    /// In bytes, unpacked; `None` for folders and links.
    pub size: Option<u64>,
}

impl ArchiveMember {
    /// Its size for people; empty for folders and links.
    pub fn size_words(&self) -> String {
        self.size.map(format::bytes).unwrap_or_default()
    }
}

/// Where a zip archive's table of contents lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZipDirectory {
    pub offset: u64,
    pub bytes: u64,
    pub entries: u64,
}

/// The original name and size of a gzip file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GzipFacts {
    pub name: Option<String>,
    /// In bytes; exact only below 4 GB.
    pub size: u64,
}

/// The header of a member of a tar archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TarHeader {
    pub name: String,
    pub size: u64,
    pub kind: TarEntryKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TarEntryKind {
    File,
    /// A folder, a link, a device.
    Other,
    /// Not a member: the long name of the next one.
    LongName,
    /// Not a member: attributes of the next one.
    Attributes,
}

impl TarHeader {
    /// Where the next header is, seen from this one.
    pub const fn next_offset(&self, offset: u64) -> u64 {
        let blocks = self.size.div_ceil(TAR_BLOCK_BYTES);
        offset.saturating_add(TAR_BLOCK_BYTES).saturating_add(blocks.saturating_mul(TAR_BLOCK_BYTES))
    }
}

fn usize_from(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A name as it can be shown.
pub fn shown_name(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let shown = |c: char| if is_disruptive(c) { '▯' } else { c };
    text.chars().map(shown).take(MAX_NAME_CHARS).collect()
}

/// Finds the table of contents from the end of a zip archive.
pub fn find_zip_directory(tail: &[u8]) -> Option<ZipDirectory> {
    let end = memchr::memmem::rfind(tail, b"PK\x05\x06")?;
    let record = &tail[end..];
    let plain = ZipDirectory { entries: u16_at(record, 10)?, bytes: u32_at(record, 12)?, offset: u32_at(record, 16)? };
    if plain.entries < 0xFFFF && plain.bytes < 0xFFFF_FFFF && plain.offset < 0xFFFF_FFFF {
        return Some(plain);
    }
    // Zip64: the real figures are in a record before this one.
    let large = memchr::memmem::rfind(&tail[..end], b"PK\x06\x06")?;
    let record = &tail[large..];
    Some(ZipDirectory { entries: u64_at(record, 32)?, bytes: u64_at(record, 40)?, offset: u64_at(record, 48)? })
}

/// An entry of a zip archive's table of contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipEntry {
    pub name: Vec<u8>,
    /// In bytes, unpacked.
    pub size: u64,
    /// Where its own header is.
    pub offset: u64,
    /// Whether it isn't compressed.
    pub is_stored: bool,
}

/// Lists what a zip archive's table of contents (or the beginning of it) names.
pub fn list_zip_members(directory: &[u8], entries: u64) -> ArchiveMembers {
    let member = |entry: &ZipEntry| {
        let is_folder = entry.name.ends_with(b"/");
        ArchiveMember { name: shown_name(&entry.name), size: (!is_folder).then_some(entry.size) }
    };
    let members: Vec<ArchiveMember> = parse_zip_entries(directory).iter().map(member).collect();
    let listed = u64::try_from(members.len()).unwrap_or(u64::MAX);
    ArchiveMembers { members, total: Some(entries.max(listed)), is_cut: listed < entries }
}

/// The first entries of a table of contents, or of the beginning of one.
pub fn parse_zip_entries(mut directory: &[u8]) -> Vec<ZipEntry> {
    const HEADER_BYTES: usize = 46;
    let mut entries = Vec::new();
    while entries.len() < MAX_MEMBERS && directory.starts_with(b"PK\x01\x02") {
        let length = |at: usize| u16_at(directory, at).map(usize_from);
        let (Some(name), Some(extra), Some(comment)) = (length(28), length(30), length(32)) else { break };
        let Some(raw_name) = directory.get(HEADER_BYTES..HEADER_BYTES + name) else { break };
        let extra_bytes = directory.get(HEADER_BYTES + name..HEADER_BYTES + name + extra).unwrap_or_default();
        let size = u32_at(directory, 24).unwrap_or_default();
        let offset = u32_at(directory, 42).unwrap_or_default();
        entries.push(ZipEntry {
            name: raw_name.to_vec(),
            size: if size == 0xFFFF_FFFF { zip64_size(extra_bytes).unwrap_or(size) } else { size },
            offset,
            // Where larger offsets are isn't looked up.
            is_stored: u16_at(directory, 10) == Some(0) && offset < 0xFFFF_FFFF,
        });
        directory = directory.get(HEADER_BYTES + name + extra + comment..).unwrap_or_default();
    }
    entries
}

/// The unpacked size in the extra fields of an entry: the first figure of field 1.
fn zip64_size(mut extra: &[u8]) -> Option<u64> {
    loop {
        let (id, length) = (u16_at(extra, 0)?, usize_from(u16_at(extra, 2)?));
        if id == 1 {
            return u64_at(extra.get(4..4 + length)?, 0);
        }
        extra = extra.get(4 + length..)?;
    }
}

/// Reads a tar header; `None` at the end of the archive, or if it isn't one.
pub fn parse_tar_header(block: &[u8]) -> Option<TarHeader> {
    let block = block.get(..usize_from(TAR_BLOCK_BYTES))?;
    if &block[257..262] != b"ustar" {
        return None;
    }
    let until_zero = |field: &[u8]| memchr::memchr(0, field).map_or(field.len(), |at| at);
    let (name, prefix) = (&block[..100], &block[345..500]);
    let (name, prefix) = (&name[..until_zero(name)], &prefix[..until_zero(prefix)]);
    // Old GNU archives keep times where others keep the prefix.
    let has_prefix = !prefix.is_empty() && block[262] == 0;
    let name = if has_prefix { [prefix, b"/", name].concat() } else { name.to_vec() };
    let kind = match block[156] {
        b'0' | 0 | b'7' => TarEntryKind::File,
        b'L' => TarEntryKind::LongName,
        b'x' | b'g' | b'K' => TarEntryKind::Attributes,
        _ => TarEntryKind::Other,
    };
    Some(TarHeader { name: shown_name(&name), size: parse_tar_number(&block[124..136])?, kind })
}

/// Octal digits, or a large number in binary with the first bit set.
fn parse_tar_number(field: &[u8]) -> Option<u64> {
    if field.first()? & 0x80 != 0 {
        let eight = field.get(field.len().checked_sub(8)?..)?;
        return Some(u64::from_be_bytes(eight.try_into().ok()?));
    }
    let digits = field.iter().filter(|byte| !matches!(byte, 0 | b' '));
    digits.copied().try_fold(0_u64, |number, byte| match byte {
        b'0'..=b'7' => number.checked_mul(8)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// Reads the header and the end of a gzip file.
pub fn parse_gzip(head: &[u8], tail: &[u8]) -> Option<GzipFacts> {
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    if !head.starts_with(b"\x1f\x8b\x08") {
        return None;
    }
    let flags = *head.get(3)?;
    let mut at = 10;
    if flags & EXTRA != 0 {
        at += 2 + usize_from(u16_at(head, at)?);
    }
    let name = (flags & NAME != 0).then(|| {
        let rest = head.get(at..).unwrap_or_default();
        shown_name(&rest[..memchr::memchr(0, rest).unwrap_or(0)])
    });
    let size = u32_at(tail, tail.len().checked_sub(4)?)?;
    Some(GzipFacts { name: name.filter(|name| !name.is_empty()), size })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn zip_entry(name: &[u8], size: u32, extra: &[u8]) -> Vec<u8> {
        let mut entry = b"PK\x01\x02".to_vec();
        entry.resize(46, 0);
        entry[24..28].copy_from_slice(&size.to_le_bytes());
        entry[28..30].copy_from_slice(&u16::try_from(name.len()).unwrap().to_le_bytes());
        entry[30..32].copy_from_slice(&u16::try_from(extra.len()).unwrap().to_le_bytes());
        [&entry[..], name, extra].concat()
    }

    #[test]
    fn members_of_a_zip_are_listed() {
        let mut zip64 = vec![1, 0, 8, 0];
        zip64.extend(5_000_000_000_u64.to_le_bytes());
        let mut tail = [
            zip_entry(b"data/", 0, &[]),
            zip_entry(b"data/a\xff<b>", 7, &[9, 9, 1, 0, 0]),
            zip_entry(b"big", u32::MAX, &zip64),
        ]
        .concat();
        let bytes = tail.len();
        let mut end = b"PK\x05\x06\0\0\0\0\x03\0\x03\0".to_vec();
        end.extend(u32::try_from(bytes).unwrap().to_le_bytes());
        end.extend([0, 0, 0, 0, 0, 0]);
        tail.extend(&end);
        let directory = find_zip_directory(&tail).unwrap();
        assert_eq!(directory, ZipDirectory { offset: 0, bytes: bytes as u64, entries: 3 });
        let listed = list_zip_members(&tail[..bytes], directory.entries);
        let members: Vec<_> = listed.members.iter().map(|member| (member.name.as_str(), member.size)).collect();
        assert_eq!(members, [("data/", None), ("data/a\u{FFFD}<b>", Some(7)), ("big", Some(5_000_000_000))]);
        assert_eq!((listed.total, listed.is_cut), (Some(3), false));
        let many = zip_entry(b"x", 1, &[]).repeat(MAX_MEMBERS + 10);
        let listed = list_zip_members(&many, 65_534);
        assert_eq!((listed.members.len(), listed.total, listed.is_cut), (MAX_MEMBERS, Some(65_534), true));
    }

    fn tar_header(name: &str, size: &[u8], kind: u8) -> Vec<u8> {
        let mut block = vec![0; 512];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[124..124 + size.len()].copy_from_slice(size);
        block[156] = kind;
        block[257..262].copy_from_slice(b"ustar");
        block
    }

    #[test]
    fn tar_headers_are_read() {
        let header = parse_tar_header(&tar_header("a/b.txt", b"00000001001\0", b'0')).unwrap();
        assert_eq!((header.name.as_str(), header.size, header.kind), ("a/b.txt", 513, TarEntryKind::File));
        assert_eq!(header.next_offset(1024), 1024 + 512 + 1024);
        let large = parse_tar_header(&tar_header("big", b"\x80\0\0\0\0\0\0\x02\0\0\0\0", b'0')).unwrap();
        assert_eq!(large.size, 8 << 30);
        assert_eq!(parse_tar_header(&tar_header("x", b"9", b'0')), None);
        assert_eq!(parse_tar_header(&[0; 512]), None);
        assert_eq!(parse_tar_header(b"short"), None);
        let endless = TarHeader { name: String::new(), size: u64::MAX, kind: TarEntryKind::File };
        assert_eq!(endless.next_offset(u64::MAX), u64::MAX);
    }

    #[test]
    fn gzip_tells_its_original_name_and_size() {
        let head = b"\x1f\x8b\x08\x08\0\0\0\0\0\x03data.csv\0rest";
        assert_eq!(
            parse_gzip(head, &[9, 0, 1, 0, 0]),
            Some(GzipFacts { name: Some("data.csv".to_owned()), size: 256 })
        );
        assert_eq!(parse_gzip(b"\x1f\x8b\x08\0", &[0, 0, 0, 0]), Some(GzipFacts { name: None, size: 0 }));
        assert_eq!(parse_gzip(b"plain", &[0; 8]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_archive_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..700), entries in any::<u64>()) {
            let _ = (find_zip_directory(&bytes), parse_tar_header(&bytes), parse_gzip(&bytes, &bytes));
            let _ = list_zip_members(&bytes, entries);
            for magic in [&b"PK\x05\x06"[..], b"PK\x06\x06", b"PK\x01\x02", b"\x1f\x8b\x08\x0c"] {
                let marked = [magic, &bytes[..]].concat();
                let _ = (find_zip_directory(&marked), parse_gzip(&marked, &marked));
                let listed = list_zip_members(&marked, entries);
                prop_assert!(listed.members.iter().all(|member| member.name.chars().count() <= MAX_NAME_CHARS));
            }
            let mut block = bytes.clone();
            block.resize(512, 7);
            block[257..262].copy_from_slice(b"ustar");
            if let Some(header) = parse_tar_header(&block) {
                prop_assert!(header.next_offset(0) >= 512);
            }
        }
    }
}
