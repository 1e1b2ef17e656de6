//! Looking for secrets where none may be: in files, in what processes were started with, in their memory.

use std::io::{BufRead as _, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Something that must not be found: what it is, and its bytes.
pub struct Needle {
    pub what: String,
    pub bytes: Vec<u8>,
}

impl Needle {
    pub fn new(what: &str, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        assert!(bytes.len() >= 8, "{what} is too short to be told from chance");
        Self { what: what.to_owned(), bytes }
    }
}

/// Where needles are in some bytes.
fn search(bytes: &[u8], needles: &[Needle], place: &str, found: &mut Vec<String>) {
    for needle in needles {
        let (first, rest) = needle.bytes.split_first().unwrap();
        let mut behind = bytes;
        // The one search for a byte that is fast in a debug build too.
        while behind.skip_until(*first).is_ok_and(|passed| passed > 0) {
            if behind.starts_with(rest) {
                let at = bytes.len() - behind.len() - 1;
                let around = &bytes[at.saturating_sub(40)..bytes.len().min(at + 80)];
                found.push(format!("{} in {place} at {at:#x}: {}", needle.what, around.escape_ascii()));
            }
        }
    }
}

/// Needles in the files below a folder.
pub fn in_files(folder: &Path, needles: &[Needle]) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let kind = std::fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let bytes = std::fs::read(&path).unwrap();
                search(&bytes, needles, &path.display().to_string(), &mut found);
            }
        }
    }
    found
}

/// Needles in the command lines and environments of a process and of all that descend from it.
pub fn in_processes(pid: u32, needles: &[Needle]) -> Vec<String> {
    let mut found = Vec::new();
    for pid in family(pid) {
        for file in ["cmdline", "environ"] {
            let path = format!("/proc/{pid}/{file}");
            search(&std::fs::read(&path).unwrap_or_default(), needles, &path, &mut found);
        }
    }
    found
}

/// A process and all that descend from it.
pub fn family(pid: u32) -> Vec<u32> {
    let mut family = vec![pid];
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(thread.path().join("children"));
        for child in children.unwrap_or_default().split_whitespace() {
            family.extend(self::family(child.parse().unwrap()));
        }
    }
    family
}

/// Needles in the memory that a process can write to.
pub fn in_memory(pid: u32, needles: &[Needle]) -> Vec<String> {
    let mut found = Vec::new();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut pages = std::fs::File::open(format!("/proc/{pid}/pagemap")).unwrap();
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (range, rights) = (words.next().unwrap(), words.next().unwrap());
        if !rights.starts_with("rw") {
            continue;
        }
        let name = words.nth(3).unwrap_or("anonymous");
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|hex| u64::from_str_radix(hex, 16).unwrap());
        for (from, length) in used_pages(&mut pages, start, end) {
            let mut bytes = vec![0; length];
            memory.seek(SeekFrom::Start(from)).unwrap();
            // It goes on working meanwhile and may have given the piece back.
            if memory.read_exact(&mut bytes).is_ok() {
                search(&bytes, needles, &format!("{name} {range}, {from:#x}"), &mut found);
            }
        }
    }
    found
}

/// The pieces of a mapping that are really there; an allocator reserves far more than it uses.
fn used_pages(pages: &mut std::fs::File, start: u64, end: u64) -> Vec<(u64, usize)> {
    const PAGE: u64 = 4096;
    let count = usize::try_from((end - start) / PAGE).unwrap();
    let mut table = vec![0; count * 8];
    pages.seek(SeekFrom::Start(start / PAGE * 8)).unwrap();
    if pages.read_exact(&mut table).is_err() {
        return Vec::new();
    }
    let mut pieces: Vec<(u64, usize)> = Vec::new();
    for (number, entry) in table.chunks_exact(8).enumerate() {
        // The two highest bits: in memory, or swapped out.
        if entry[7] & 0b1100_0000 == 0 {
            continue;
        }
        let from = start + u64::try_from(number).unwrap() * PAGE;
        match pieces.last_mut() {
            Some((begin, length)) if *begin + u64::try_from(*length).unwrap() == from => {
                *length += 4096;
            }
            _ => pieces.push((from, 4096)),
        }
    }
    pieces
}
