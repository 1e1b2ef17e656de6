//! The archives as other programs read them.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;

use super::member::ArchiveEntryHeader;
use super::tar::TarWriter;
use super::zip::ZipWriter;
use crate::clock::UnixTime;

fn member(name: &[u8], mode: u32) -> ArchiveEntryHeader {
    ArchiveEntryHeader { name: name.to_vec(), mode, modified: UnixTime(1_700_000_000), owner: (1000, 1000) }
}

fn run(program: &str, args: &[&str], folder: &Path) -> String {
    let done = Command::new(program).args(args).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{program} {args:?}: {done:?}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Names that text tools trip over; the last is too long for a tar header.
fn names() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [&b"plain.txt"[..], b"-rf", b"it's \"q\" $(a)", b"a\nb", "Ünï".as_bytes()]
        .iter()
        .map(|name| [&b"top/"[..], name].concat())
        .collect();
    names.push([&b"top/"[..], "long ".repeat(50).trim_end().as_bytes()].concat());
    names
}

fn write_tar(names: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut tar = TarWriter::default();
    tar.add_folder(&member(b"top", 0o755), &mut out);
    for name in names {
        tar.begin_file(&member(name, 0o640), name.len() as u64, &mut out);
        out.extend_from_slice(name);
        tar.end_file(&mut out);
    }
    tar.begin_file(&member(b"top/empty", 0o600), 0, &mut out);
    tar.end_file(&mut out);
    tar.add_link(&member(b"top/link", 0o777), b"plain.txt", &mut out);
    tar.finish(&mut out);
    out
}

fn write_zip(names: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut zip = ZipWriter::default();
    zip.add_folder(&member(b"top", 0o755), &mut out);
    for (number, name) in names.iter().enumerate() {
        // One way and the other.
        if number % 2 == 0 {
            zip.add_file(&member(name, 0o640), name, &mut out);
        } else {
            zip.begin_file(&member(name, 0o640), name.len() as u64, &mut out);
            zip.update(name);
            out.extend_from_slice(name);
            zip.end_file(&mut out);
        }
    }
    zip.add_file(&member(b"top/empty", 0o600), b"", &mut out);
    zip.add_link(&member(b"top/link", 0o777), b"plain.txt", &mut out);
    zip.finish(&mut out);
    out
}

fn assert_unpacked(folder: &Path, names: &[Vec<u8>]) {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    for name in names {
        let path = folder.join(std::ffi::OsStr::from_bytes(name));
        assert_eq!(std::fs::read(&path).unwrap(), *name, "{path:?}");
        let about = std::fs::metadata(&path).unwrap();
        assert_eq!((about.permissions().mode() & 0o777, about.mtime()), (0o640, 1_700_000_000), "{path:?}");
    }
    assert_eq!(std::fs::read(folder.join("top/empty")).unwrap(), b"");
    assert_eq!(std::fs::read_link(folder.join("top/link")).unwrap().as_os_str(), "plain.txt");
}

#[test]
fn tar_reads_what_we_write() {
    let folder = tempfile::tempdir().unwrap();
    let mut names = names();
    names.push(b"top/bad\xff\xfe".to_vec());
    std::fs::write(folder.path().join("a.tar"), write_tar(&names)).unwrap();
    run("tar", &["-xpf", "a.tar"], folder.path());
    assert_unpacked(folder.path(), &names);
}

#[test]
fn unzip_and_python_read_what_we_write() {
    let folder = tempfile::tempdir().unwrap();
    let names = names();
    std::fs::write(folder.path().join("a.zip"), write_zip(&names)).unwrap();
    run("unzip", &["-tq", "a.zip"], folder.path());
    let script = "import zipfile; z = zipfile.ZipFile('a.zip'); assert z.testzip() is None; print(len(z.namelist()))";
    assert_eq!(run("python3", &["-c", script], folder.path()).trim(), (names.len() + 3).to_string());
    // Without the one whose line break unzip replaces.
    let names: Vec<Vec<u8>> = names.into_iter().filter(|name| !name.contains(&b'\n')).collect();
    std::fs::write(folder.path().join("b.zip"), write_zip(&names)).unwrap();
    run("env", &["LC_ALL=C.UTF-8", "unzip", "-q", "b.zip"], folder.path());
    assert_unpacked(folder.path(), &names);
}

#[test]
fn names_that_are_no_utf8_are_bytes_without_the_flag() {
    let mut out = Vec::new();
    let mut zip = ZipWriter::default();
    zip.add_file(&member(b"bad\xff", 0o644), b"x", &mut out);
    zip.finish(&mut out);
    assert_eq!(out[6..8], [0, 0]);
    assert_eq!(&out[30..34], b"bad\xff");
    let mut out = Vec::new();
    ZipWriter::default().add_file(&member("Ü".as_bytes(), 0o644), b"x", &mut out);
    assert_eq!(out[6..8], [0, 8]);
}

/// A sparse file stands in for the data, which would take minutes to write.
#[test]
fn sizes_and_offsets_beyond_four_gigabytes_are_read() {
    use std::io::{Seek as _, SeekFrom, Write as _};
    const LEN: u64 = 5 * 1024 * 1024 * 1024;
    let folder = tempfile::tempdir().unwrap();
    let mut file = std::fs::File::create(folder.path().join("large.zip")).unwrap();
    let (mut zip, mut out) = (ZipWriter::default(), Vec::new());
    zip.begin_file(&member(b"large", 0o644), LEN, &mut out);
    file.write_all(&out).unwrap();
    file.seek(SeekFrom::Current(i64::try_from(LEN).unwrap())).unwrap();
    zip.skip_for_test(LEN);
    out.clear();
    zip.end_file(&mut out);
    zip.add_file(&member(b"after", 0o644), b"here", &mut out);
    zip.finish(&mut out);
    file.write_all(&out).unwrap();
    let script = "import zipfile; z = zipfile.ZipFile('large.zip'); print(z.getinfo('large').file_size, \
                  z.read('after').decode(), z.open('large').read(4))";
    let told = run("python3", &["-c", script], folder.path());
    assert_eq!(told.trim(), format!("{LEN} here b'\\x00\\x00\\x00\\x00'"));
    assert!(run("unzip", &["-l", "large.zip"], folder.path()).contains(&LEN.to_string()));

    let mut file = std::fs::File::create(folder.path().join("large.tar")).unwrap();
    let (mut tar, mut out) = (TarWriter::default(), Vec::new());
    let len = 9 * 1024 * 1024 * 1024 + 1;
    tar.begin_file(&member(b"large", 0o644), len, &mut out);
    file.write_all(&out).unwrap();
    file.seek(SeekFrom::Current(i64::try_from(len).unwrap())).unwrap();
    out.clear();
    tar.end_file(&mut out);
    tar.begin_file(&member(b"after", 0o644), 0, &mut out);
    tar.end_file(&mut out);
    tar.finish(&mut out);
    file.write_all(&out).unwrap();
    let told = run("tar", &["-tvf", "large.tar"], folder.path());
    assert!(told.contains(&len.to_string()) && told.contains("after"), "{told}");
}

#[test]
fn more_members_than_a_small_directory_counts() {
    let folder = tempfile::tempdir().unwrap();
    let (mut zip, mut out) = (ZipWriter::default(), Vec::new());
    for number in 0..70_000 {
        zip.add_file(&member(format!("{number}").as_bytes(), 0o644), b"", &mut out);
    }
    zip.finish(&mut out);
    std::fs::write(folder.path().join("many.zip"), out).unwrap();
    let script = "import zipfile; print(len(zipfile.ZipFile('many.zip').namelist()))";
    assert_eq!(run("python3", &["-c", script], folder.path()).trim(), "70000");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tar_has_whole_blocks(name in proptest::collection::vec(1_u8.., 1..300), content in proptest::collection::vec(any::<u8>(), 0..1500)) {
        let (mut tar, mut out) = (TarWriter::default(), Vec::new());
        tar.begin_file(&member(&name, 0o644), content.len() as u64, &mut out);
        out.extend_from_slice(&content);
        tar.end_file(&mut out);
        tar.finish(&mut out);
        prop_assert_eq!(out.len() % 512, 0);
        prop_assert!(out.windows(content.len().max(1)).any(|window| window == content) || content.is_empty());
    }

    #[test]
    fn zip_directory_points_at_each_member(names in proptest::collection::vec(proptest::collection::vec(1_u8.., 1..60), 1..20)) {
        let (mut zip, mut out) = (ZipWriter::default(), Vec::new());
        for name in &names {
            zip.add_file(&member(name, 0o644), name, &mut out);
        }
        zip.finish(&mut out);
        let number = |at: usize| u32::from_le_bytes(out[at..at + 4].try_into().unwrap()) as usize;
        let end = out.len() - 22;
        prop_assert_eq!(number(end), 0x0605_4b50);
        let mut at = number(end + 16);
        for name in &names {
            prop_assert_eq!(number(at), 0x0201_4b50);
            let local = number(at + 42);
            prop_assert_eq!(number(local), 0x0403_4b50);
            prop_assert_eq!(&out[local + 30..local + 30 + name.len()], name.as_slice());
            at += 46 + name.len() + 9;
        }
        prop_assert_eq!(at, end);
    }
}
