//! Writes a zip archive as a stream (APPNOTE 6.3): members are stored, not compressed. What is known only after a file's
//! last byte follows it; sizes and offsets beyond 4 GiB are written in the ZIP64 form. Pure.

use super::member::ArchiveEntryHeader;

/// A number in a 32-bit field that says: see the ZIP64 field.
const SEE_ZIP64: u32 = u32::MAX;
/// The same in a 16-bit field.
const MANY: u16 = u16::MAX;
const MADE_BY_UNIX: u16 = 0x032d;
const NEEDS_PLAIN: u16 = 20;
const NEEDS_ZIP64: u16 = 45;
/// Checksum and sizes follow the data.
const FLAG_DESCRIPTOR: u16 = 1 << 3;
const FLAG_UTF8: u16 = 1 << 11;
const FILE_TYPE: u32 = 0o100_000;
const FOLDER_TYPE: u32 = 0o040_000;
const LINK_TYPE: u32 = 0o120_000;
/// What DOS calls a folder.
const DOS_FOLDER: u32 = 0x10;

/// Writes members one after the other and remembers what the directory at the end says about them.
#[derive(Debug, Default)]
pub struct ZipWriter {
    /// How many bytes were written so far.
    at: u64,
    /// The directory's entries, as they will be written.
    directory: Vec<u8>,
    members: u64,
    open: Option<OpenZipFile>,
}

#[derive(Debug)]
struct OpenZipFile {
    head: ZipHead,
    checksum: crc32fast::Hasher,
    len: u64,
}

/// What a member's header and its directory entry have in common.
#[derive(Debug)]
struct ZipHead {
    name: Vec<u8>,
    /// Type and permissions.
    mode: u32,
    modified: i64,
    flags: u16,
    offset: u64,
    is_zip64: bool,
}

impl ZipWriter {
    pub fn add_folder(&mut self, member: &ArchiveEntryHeader, out: &mut Vec<u8>) {
        let mut name = member.name.clone();
        name.push(b'/');
        self.add(ArchiveEntryHeader { name, ..member.clone() }, FOLDER_TYPE, b"", out);
    }

    pub fn add_link(&mut self, member: &ArchiveEntryHeader, target: &[u8], out: &mut Vec<u8>) {
        self.add(member.clone(), LINK_TYPE, target, out);
    }

    /// Adds a short file as a whole.
    pub fn add_file(&mut self, member: &ArchiveEntryHeader, content: &[u8], out: &mut Vec<u8>) {
        self.add(member.clone(), FILE_TYPE, content, out);
    }

    /// Begins a file of about this length. Its bytes are told to [`Self::update`]; then [`Self::end_file`].
    pub fn begin_file(&mut self, member: &ArchiveEntryHeader, len: u64, out: &mut Vec<u8>) {
        let mut head = self.head(member.clone(), FILE_TYPE, FLAG_DESCRIPTOR);
        head.is_zip64 = len >= u64::from(SEE_ZIP64);
        let begun = out.len();
        head.write_local(0, 0, out);
        self.advance(out.len() - begun);
        self.open = Some(OpenZipFile { head, checksum: crc32fast::Hasher::new(), len: 0 });
    }

    /// Counts bytes of the open file, which the caller writes itself.
    pub fn update(&mut self, data: &[u8]) {
        self.advance(data.len());
        if let Some(open) = &mut self.open {
            open.checksum.update(data);
            open.len += to_u64(data.len());
        }
    }

    /// As if so many bytes had been written; the checksum doesn't know them.
    #[cfg(test)]
    pub(super) fn skip_for_test(&mut self, len: u64) {
        self.at += len;
        if let Some(open) = &mut self.open {
            open.len += len;
        }
    }

    pub fn end_file(&mut self, out: &mut Vec<u8>) {
        let Some(OpenZipFile { head, checksum, len }) = self.open.take() else { return };
        let checksum = checksum.finalize();
        let begun = out.len();
        put_u32(out, 0x0807_4b50);
        put_u32(out, checksum);
        for _ in 0..2 {
            if head.is_zip64 { put_u64(out, len) } else { put_u32(out, clamp(len)) }
        }
        self.advance(out.len() - begun);
        self.remember(&head, checksum, len);
    }

    /// Writes the directory, which says where each member is.
    pub fn finish(self, out: &mut Vec<u8>) {
        let (offset, len) = (self.at, to_u64(self.directory.len()));
        out.extend_from_slice(&self.directory);
        let is_large = self.members >= u64::from(MANY) || offset >= SEE_ZIP64.into() || len >= SEE_ZIP64.into();
        if is_large {
            put_u32(out, 0x0606_4b50);
            put_u64(out, 44);
            put_u16(out, MADE_BY_UNIX);
            put_u16(out, NEEDS_ZIP64);
            put_u32(out, 0);
            put_u32(out, 0);
            put_u64(out, self.members);
            put_u64(out, self.members);
            put_u64(out, len);
            put_u64(out, offset);
            put_u32(out, 0x0706_4b50);
            put_u32(out, 0);
            put_u64(out, offset + len);
            put_u32(out, 1);
        }
        put_u32(out, 0x0605_4b50);
        put_u32(out, 0);
        let members = u16::try_from(self.members).unwrap_or(MANY);
        put_u16(out, members);
        put_u16(out, members);
        put_u32(out, clamp(len));
        put_u32(out, clamp(offset));
        put_u16(out, 0);
    }

    fn add(&mut self, member: ArchiveEntryHeader, kind: u32, content: &[u8], out: &mut Vec<u8>) {
        let head = self.head(member, kind, 0);
        let checksum = crc32fast::hash(content);
        let begun = out.len();
        head.write_local(checksum, to_u64(content.len()), out);
        out.extend_from_slice(content);
        self.advance(out.len() - begun);
        self.remember(&head, checksum, to_u64(content.len()));
    }

    fn head(&self, member: ArchiveEntryHeader, kind: u32, flags: u16) -> ZipHead {
        let is_utf8 = std::str::from_utf8(&member.name).is_ok();
        ZipHead {
            mode: kind | member.mode & 0o7777,
            modified: member.modified.0,
            flags: flags | if is_utf8 { FLAG_UTF8 } else { 0 },
            offset: self.at,
            is_zip64: false,
            name: member.name,
        }
    }

    fn remember(&mut self, head: &ZipHead, checksum: u32, len: u64) {
        head.write_directory_entry(checksum, len, &mut self.directory);
        self.members += 1;
    }

    fn advance(&mut self, bytes: usize) {
        self.at += to_u64(bytes);
    }
}

impl ZipHead {
    fn write_local(&self, checksum: u32, len: u64, out: &mut Vec<u8>) {
        put_u32(out, 0x0403_4b50);
        put_u16(out, if self.is_zip64 { NEEDS_ZIP64 } else { NEEDS_PLAIN });
        self.write_common(checksum, if self.is_zip64 { u64::MAX } else { len }, out);
        put_u16(out, if self.is_zip64 { 29 } else { 9 });
        out.extend_from_slice(&self.name);
        self.write_time(out);
        if self.is_zip64 {
            // Both sizes follow the data.
            put_u16(out, 0x0001);
            put_u16(out, 16);
            put_u64(out, 0);
            put_u64(out, 0);
        }
    }

    fn write_directory_entry(&self, checksum: u32, len: u64, out: &mut Vec<u8>) {
        let mut large = Vec::new();
        if len >= SEE_ZIP64.into() {
            put_u64(&mut large, len);
            put_u64(&mut large, len);
        }
        if self.offset >= SEE_ZIP64.into() {
            put_u64(&mut large, self.offset);
        }
        let needs = if self.is_zip64 || !large.is_empty() { NEEDS_ZIP64 } else { NEEDS_PLAIN };
        put_u32(out, 0x0201_4b50);
        put_u16(out, MADE_BY_UNIX);
        put_u16(out, needs);
        self.write_common(checksum, len, out);
        let large_len = u16::try_from(large.len()).unwrap_or_default();
        put_u16(out, 9 + if large.is_empty() { 0 } else { 4 + large_len });
        put_u16(out, 0);
        put_u16(out, 0);
        put_u16(out, 0);
        put_u32(out, self.mode << 16 | if self.mode & FOLDER_TYPE == FOLDER_TYPE { DOS_FOLDER } else { 0 });
        put_u32(out, clamp(self.offset));
        out.extend_from_slice(&self.name);
        self.write_time(out);
        if !large.is_empty() {
            put_u16(out, 0x0001);
            put_u16(out, large_len);
            out.extend_from_slice(&large);
        }
    }

    /// From the flags to the length of the name.
    fn write_common(&self, checksum: u32, len: u64, out: &mut Vec<u8>) {
        put_u16(out, self.flags);
        put_u16(out, 0);
        put_u32(out, dos_time(self.modified));
        put_u32(out, checksum);
        put_u32(out, clamp(len));
        put_u32(out, clamp(len));
        put_u16(out, u16::try_from(self.name.len()).unwrap_or(u16::MAX));
    }

    /// The time in seconds since 1970: nine bytes. The other field knows no time zone.
    fn write_time(&self, out: &mut Vec<u8>) {
        put_u16(out, 0x5455);
        put_u16(out, 5);
        out.push(1);
        let seconds = i32::try_from(self.modified).unwrap_or(i32::MAX);
        out.extend_from_slice(&seconds.to_le_bytes());
    }
}

/// As DOS writes it, date above time, in UTC; 1980 is its beginning and 2107 its end.
fn dos_time(seconds: i64) -> u32 {
    const BEGINNING: u32 = 1 << 21 | 1 << 16;
    let Ok(at) = jiff::Timestamp::from_second(seconds) else { return BEGINNING };
    let at = at.to_zoned(jiff::tz::TimeZone::UTC);
    let part = |number: i8| u32::try_from(number).unwrap_or_default();
    match u32::try_from(at.year() - 1980) {
        Ok(year @ 0..=127) => {
            let date = year << 9 | part(at.month()) << 5 | part(at.day());
            date << 16 | part(at.hour()) << 11 | part(at.minute()) << 5 | (part(at.second()) / 2)
        }
        _ => BEGINNING,
    }
}

fn clamp(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(SEE_ZIP64)
}

fn to_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn put_u16(out: &mut Vec<u8>, number: u16) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}
