//! Archives as our own writers and hostile hands make them.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use proptest::prelude::*;

use super::*;

/// What came out: names with the bytes of files, `None` for folders.
type Unpacked = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// Feeds an archive in pieces of this size.
fn unpack(mut unpacker: ArchiveUnpacker, archive: &[u8], piece: usize) -> Result<Unpacked, UnpackError> {
    let mut out = Unpacked::new();
    let mut take = |event: UnpackEvent| match event {
        UnpackEvent::Folder(member) => out.push((member.path.as_bytes().to_vec(), None)),
        UnpackEvent::File(member) => out.push((member.path.as_bytes().to_vec(), Some(Vec::new()))),
        UnpackEvent::Data(data) => out.last_mut().unwrap().1.as_mut().unwrap().extend_from_slice(&data),
        UnpackEvent::FileEnd | UnpackEvent::Skipped { .. } => {}
    };
    for part in archive.chunks(piece) {
        let mut chunk = Bytes::copy_from_slice(part);
        while let Some(event) = unpacker.next_event(&mut chunk)? {
            take(event);
        }
        assert!(chunk.is_empty());
    }
    while let Some(event) = unpacker.finish()? {
        take(event);
    }
    Ok(out)
}

fn unpack_zip(archive: &[u8]) -> Result<Unpacked, UnpackError> {
    unpack_zip_in(archive, 7)
}

fn unpack_zip_in(archive: &[u8], piece: usize) -> Result<Unpacked, UnpackError> {
    let size = archive.len() as u64;
    let tail = &archive[archive.len().saturating_sub(usize::try_from(ZipEnd::TAIL_BYTES).unwrap())..];
    let end = ZipEnd::find(tail, size)?;
    let (from, to) = (usize::try_from(end.offset).unwrap(), usize::try_from(end.offset + end.bytes).unwrap());
    let contents = ZipContents::parse(&archive[from..to], &end, size)?;
    unpack(ArchiveUnpacker::zip(contents), &archive[..from], piece)
}

/// A member of a zip as it is written: each field can lie.
#[derive(Clone)]
struct Entry {
    name: Vec<u8>,
    packed: Vec<u8>,
    size: u32,
    checksum: u32,
    method: u16,
    flags: u16,
    mode: u32,
    /// Says that its bytes are where another member's are.
    offset: Option<u32>,
}

fn stored(name: &[u8], content: &[u8]) -> Entry {
    Entry {
        name: name.to_vec(),
        packed: content.to_vec(),
        size: u32::try_from(content.len()).unwrap(),
        checksum: crc32fast::hash(content),
        method: 0,
        flags: 0,
        mode: 0o100_644,
        offset: None,
    }
}

fn deflated(name: &[u8], content: &[u8]) -> Entry {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    Entry { packed: encoder.finish().unwrap(), method: 8, ..stored(name, content) }
}

fn zip(entries: &[Entry]) -> Vec<u8> {
    let (mut out, mut table) = (Vec::new(), Vec::new());
    for entry in entries {
        let offset = entry.offset.unwrap_or_else(|| u32::try_from(out.len()).unwrap());
        let packed = u32::try_from(entry.packed.len()).unwrap();
        let mut common = Vec::new();
        common.extend(20_u16.to_le_bytes());
        common.extend(entry.flags.to_le_bytes());
        common.extend(entry.method.to_le_bytes());
        common.extend([0; 4]);
        common.extend(entry.checksum.to_le_bytes());
        common.extend(packed.to_le_bytes());
        common.extend(entry.size.to_le_bytes());
        common.extend(u16::try_from(entry.name.len()).unwrap().to_le_bytes());
        common.extend([0; 2]);
        if entry.offset.is_none() {
            out.extend(b"PK\x03\x04");
            out.extend(&common);
            out.extend(&entry.name);
            out.extend(&entry.packed);
        }
        table.extend(b"PK\x01\x02");
        table.extend(0x0314_u16.to_le_bytes());
        table.extend(&common);
        table.extend([0; 6]);
        table.extend((entry.mode << 16).to_le_bytes());
        table.extend(offset.to_le_bytes());
        table.extend(&entry.name);
    }
    let offset = u32::try_from(out.len()).unwrap();
    out.extend(&table);
    out.extend(b"PK\x05\x06\0\0\0\0");
    let count = u16::try_from(entries.len()).unwrap().to_le_bytes();
    out.extend(count);
    out.extend(count);
    out.extend(u32::try_from(table.len()).unwrap().to_le_bytes());
    out.extend(offset.to_le_bytes());
    out.extend([0; 2]);
    out
}

fn tar_header(name: &[u8], size: u64, kind: u8) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name);
    block[100..107].copy_from_slice(b"0000644");
    block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    block[136..147].copy_from_slice(b"14524710400");
    block[156] = kind;
    block[257..265].copy_from_slice(b"ustar\x0000");
    block[148..156].copy_from_slice(b"        ");
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    block
}

fn tar_member(name: &[u8], content: &[u8], kind: u8) -> Vec<u8> {
    let mut out = tar_header(name, content.len() as u64, kind);
    out.extend(content);
    out.resize(out.len().next_multiple_of(512), 0);
    out
}

fn tar(members: &[Vec<u8>]) -> Vec<u8> {
    [members.concat(), vec![0; 1024]].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn unpack_tar(archive: &[u8]) -> Result<Unpacked, UnpackError> {
    unpack(ArchiveUnpacker::tar(), archive, 100)
}

fn unpack_tar_gz(archive: &[u8]) -> Result<Unpacked, UnpackError> {
    unpack(ArchiveUnpacker::tar_gz(), archive, 11)
}

#[test]
fn files_and_folders_come_out_of_a_zip() {
    let long = b"zeros and ones ".repeat(40_000);
    let mut link = stored(b"top/link", b"/etc/passwd");
    link.mode = 0o120_777;
    let archive = zip(&[
        stored(b"top/", b""),
        stored(b"top/a\xff\n", b"plain"),
        deflated(b"top/long", &long),
        link,
        deflated(b"empty", b""),
        stored(b"nothing", b""),
    ]);
    let expected: Unpacked = vec![
        (b"top".to_vec(), None),
        (b"top/a\xff\n".to_vec(), Some(b"plain".to_vec())),
        (b"top/long".to_vec(), Some(long)),
        (b"empty".to_vec(), Some(vec![])),
        (b"nothing".to_vec(), Some(vec![])),
    ];
    for piece in [1, 1000, usize::MAX] {
        assert!(unpack_zip_in(&archive, piece).unwrap() == expected, "{piece}");
    }
    assert_eq!(unpack_zip(&zip(&[])).unwrap(), vec![]);
}

#[test]
fn names_that_lead_out_are_refused() {
    for name in [&b"../evil"[..], b"/etc/cron.d/evil", b"a/../../evil", b"a/..", b"..", b"a\0b"] {
        let refused = UnpackError::UnsafeName(shown(name));
        assert_eq!(unpack_zip(&zip(&[stored(b"ok", b"1"), stored(name, b"x")])), Err(refused.clone()));
        if !name.contains(&0) {
            assert_eq!(unpack_tar(&tar(&[tar_member(name, b"x", b'0')])), Err(refused.clone()));
        }
        let long = tar(&[tar_member(b"././@LongLink", name, b'L'), tar_member(b"x", b"x", b'0')]);
        if !name.contains(&0) {
            assert_eq!(unpack_tar(&long), Err(refused.clone()));
        }
        let record = [&b" path="[..], name, b"\n"].concat();
        let record = [format!("{}", record.len() + 2).as_bytes(), &record].concat();
        assert_eq!(unpack_tar(&tar(&[tar_member(b"pax", &record, b'x'), tar_member(b"x", b"x", b'0')])), Err(refused));
    }
    let long = vec![b'n'; 256];
    assert!(matches!(unpack_zip(&zip(&[stored(&long, b"")])), Err(UnpackError::NameTooLong(_))));
    let deep = b"d/".repeat(65);
    assert_eq!(unpack_zip(&zip(&[stored(&deep, b"")])), Err(UnpackError::TooDeep));
    let odd = unpack_zip(&zip(&[stored(b"./a//b/./c", b"1")])).unwrap();
    assert_eq!(odd, [(b"a/b/c".to_vec(), Some(b"1".to_vec()))]);
}

#[test]
fn bombs_are_refused() {
    // More bytes than announced.
    let mut bomb = deflated(b"bomb", &vec![0; 10_000_000]);
    bomb.size = 10;
    assert_eq!(unpack_zip(&zip(&[bomb.clone()])), Err(UnpackError::Bomb));
    // An unlikely size from the start.
    bomb.size = u32::MAX - 1;
    assert_eq!(unpack_zip(&zip(&[bomb.clone()])), Err(UnpackError::Bomb));
    let many: Vec<Entry> = (0..30).map(|n| Entry { name: format!("{n}").into_bytes(), ..bomb.clone() }).collect();
    assert_eq!(unpack_zip(&zip(&many)), Err(UnpackError::TooLarge));
    // The same bytes for many files.
    let first = deflated(b"a", &[0; 1000]);
    let again = Entry { offset: Some(0), ..first.clone() };
    assert_eq!(unpack_zip(&zip(&[first.clone(), again])), Err(UnpackError::Overlap));
    let inside = Entry { offset: Some(5), name: b"b".to_vec(), ..first.clone() };
    assert_eq!(unpack_zip(&zip(&[first, inside])), Err(UnpackError::Overlap));
    let huge = tar_header(b"huge", 0o77_777_777_777, b'0');
    let huge = [huge.clone(), huge].concat();
    assert!(matches!(unpack_tar(&huge), Err(UnpackError::Truncated)), "its bytes are missing");
}

#[test]
fn damaged_and_protected_zips_say_so() {
    let good = zip(&[deflated(b"a", b"some text"), stored(b"b", b"more")]);
    for end in 0..good.len() {
        assert!(unpack_zip(&good[..end]).is_err(), "{end}");
    }
    let encrypted = Entry { flags: 1, ..stored(b"secret", b"x") };
    assert_eq!(unpack_zip(&zip(&[encrypted])), Err(UnpackError::Encrypted));
    let lzma = Entry { method: 14, ..stored(b"new", b"x") };
    assert_eq!(unpack_zip(&zip(&[lzma])), Err(UnpackError::UnsupportedMethod("new".to_owned())));
    let wrong = Entry { checksum: 7, ..stored(b"a", b"x") };
    assert_eq!(unpack_zip(&zip(&[wrong])), Err(UnpackError::WrongChecksum("a".to_owned())));
    let short = Entry { size: 100, ..deflated(b"a", b"x") };
    assert_eq!(unpack_zip(&zip(&[short])), Err(UnpackError::WrongChecksum("a".to_owned())));
    // The name before the bytes differs from the one in the table of contents.
    let mut renamed = zip(&[stored(b"aaaa", b"x")]);
    renamed[30] = b'b';
    assert!(matches!(unpack_zip(&renamed), Err(UnpackError::Damaged(_))));
    // A comment that looks like an end.
    let mut commented = good.clone();
    let at = commented.len() - 2;
    commented[at] = 30;
    commented.extend(b"PK\x05\x06");
    commented.extend([0; 26]);
    assert_eq!(unpack_zip(&commented).unwrap(), unpack_zip(&good).unwrap());
}

#[test]
fn tar_and_tar_gz_are_read_and_links_left_out() {
    let archive = tar(&[
        tar_member(b"./", b"", b'5'),
        tar_member(b"./top/", b"", b'5'),
        tar_member(b"././@LongLink", &[b"top/".to_vec(), vec![b'n'; 200], vec![0]].concat(), b'L'),
        tar_member(b"short", b"content", b'0'),
        tar_member(b"pax", b"16 path=top/pax\n24 mtime=1700000000.123\n", b'x'),
        tar_member(b"x", &[b'y'; 600], b'0'),
        tar_member(b"top/link", b"", b'2'),
        tar_member(b"top/hard", b"", b'1'),
        tar_member(b"top/device", b"", b'3'),
        tar_member(b"top/old", b"", 0),
    ]);
    let expected: Unpacked = vec![
        (b"top".to_vec(), None),
        ([b"top/".to_vec(), vec![b'n'; 200]].concat(), Some(b"content".to_vec())),
        (b"top/pax".to_vec(), Some(vec![b'y'; 600])),
        (b"top/old".to_vec(), Some(vec![])),
    ];
    assert_eq!(unpack_tar(&archive).unwrap(), expected);
    let packed = gzip(&archive);
    assert_eq!(unpack_tar_gz(&packed).unwrap(), expected);
    // Several gzip files in a row are one.
    let halves = archive.split_at(1000);
    assert_eq!(unpack_tar_gz(&[gzip(halves.0), gzip(halves.1)].concat()).unwrap(), expected);

    for end in [0, 100, 512, 1500, archive.len() - 1024] {
        assert!(unpack_tar(&archive[..end]).is_err(), "{end}");
    }
    for end in [20, packed.len() / 2, packed.len() - 1] {
        assert_eq!(unpack_tar_gz(&packed[..end]), Err(UnpackError::Truncated), "{end}");
    }
    let mut flipped = packed.clone();
    let at = flipped.len() - 6;
    flipped[at] ^= 1;
    assert!(unpack_tar_gz(&flipped).is_err(), "the checksum is wrong");
    assert_eq!(unpack_tar_gz(&gzip(&[b'x'; 5000])), Err(UnpackError::NotAnArchive));
}

#[test]
fn formats_are_told_by_their_first_bytes() {
    let detect = |head: &[u8]| PackedFormat::detect(head);
    assert_eq!(detect(&zip(&[])), Ok(PackedFormat::Zip));
    assert_eq!(detect(&gzip(b"")), Ok(PackedFormat::TarGz));
    assert_eq!(detect(&tar(&[tar_member(b"a", b"", b'0')])), Ok(PackedFormat::Tar));
    assert_eq!(detect(b"\xfd7zXZ\0..."), Err(UnpackError::UnsupportedFormat("xz")));
    assert_eq!(detect(b"BZh91AY"), Err(UnpackError::UnsupportedFormat("bzip2")));
    assert_eq!(detect(&[b'x'; 512]), Err(UnpackError::NotAnArchive));
    assert_eq!(detect(b""), Err(UnpackError::NotAnArchive));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damaged_archives_never_lead_out_or_grow(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        piece in 1_usize..700,
    ) {
        let members = [stored(b"a/b", b"one"), deflated(b"c", &[7; 3000]), stored(b"a/", b"")];
        let archives = [zip(&members), tar(&[tar_member(b"a/b", b"one", b'0'), tar_member(b"c", &[7; 900], b'0')])];
        for (number, mut archive) in archives.into_iter().enumerate() {
            for (at, byte) in &flips {
                let at = at.index(archive.len());
                archive[at] = *byte;
            }
            let unpacked = match number {
                0 => unpack_zip_in(&archive, piece),
                _ => unpack(ArchiveUnpacker::tar(), &archive, piece),
            };
            for (name, content) in unpacked.unwrap_or_default() {
                prop_assert!(name[0] != b'/' && !name.split(|byte| *byte == b'/').any(|part| part == b".."));
                prop_assert!(content.is_none_or(|content| content.len() <= 4096));
            }
        }
    }

    #[test]
    fn any_bytes_are_an_archive_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..1200)) {
        let _ = PackedFormat::detect(&bytes);
        let _ = (unpack_zip(&bytes), unpack_tar(&bytes), unpack_tar_gz(&bytes));
        let _ = unpack_tar_gz(&[&b"\x1f\x8b\x08\0\0\0\0\0\0\0"[..], &bytes].concat());
    }

    #[test]
    fn member_paths_stay_inside(name in "[./a\\\\]{0,12}") {
        if let Ok(Some(path)) = MemberPath::parse(name.as_bytes()) {
            let root = crate::domain::RemotePath::parse(b"/scratch/x").unwrap();
            let whole = path.below(&root).unwrap();
            prop_assert!(whole.is_within(&root) && whole != root);
            prop_assert_eq!(whole.relative_to(&root).unwrap(), path.as_bytes());
        }
    }
}
