//! Names, shapes and types of the data sets in an HDF5 file, from its metadata (HDF5 file format specification, version
//! 3). Groups with so many links that they are kept in a heap of their own aren't followed.

use std::ops::Range;

use super::archive_members::shown_name;
use super::described_array::{DescribedArray, DescribedArrays, MAX_ARRAYS, MAX_RANK, shape_words};

pub const HDF5_SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// How much is read at a time, if something is missing.
const PART_BYTES: u64 = 16 * 1024;
/// Limits on what a damaged or hostile file can make us do.
const MAX_DEPTH: usize = 8;
const MAX_VISITED: usize = 2000;
const MAX_MESSAGES: usize = 200;
const MAX_BLOCKS: usize = 16;
const MAX_NAME_BYTES: u64 = 255;
/// An address that leads nowhere.
const UNDEFINED: u64 = u64::MAX;

mod message {
    pub const DATASPACE: u16 = 0x01;
    pub const LINK_INFO: u16 = 0x02;
    pub const DATATYPE: u16 = 0x03;
    pub const LINK: u16 = 0x06;
    pub const CONTINUATION: u16 = 0x10;
    pub const SYMBOL_TABLE: u16 = 0x11;
}

/// The parts of a file that were read so far.
pub struct LoadedParts {
    /// Where each part begins, and its bytes.
    parts: Vec<(u64, Vec<u8>)>,
    size: u64,
}

/// Why something couldn't be read.
enum Hdf5Stop {
    /// This part is needed first.
    Missing(Range<u64>),
    Damaged,
}

/// What was found, and the part that is needed to find more.
pub struct Hdf5Search {
    pub found: DescribedArrays,
    pub missing: Option<Range<u64>>,
}

/// A message of an object's header: its type and its content.
type HeaderMessage<'a> = (u16, &'a [u8]);

struct Hdf5Walk<'a> {
    parts: &'a LoadedParts,
    /// Where the file's addresses count from.
    base: u64,
    visited: usize,
    found: DescribedArrays,
}

impl LoadedParts {
    pub fn new(head: Vec<u8>, size: u64) -> Self {
        Self { parts: vec![(0, head)], size }
    }

    pub fn add(&mut self, at: u64, bytes: Vec<u8>) {
        self.parts.push((at, bytes));
    }

    fn get(&self, at: u64, count: u64) -> Result<&[u8], Hdf5Stop> {
        if count == 0 {
            return Ok(&[]);
        }
        let end = at.checked_add(count).filter(|end| *end <= self.size).ok_or(Hdf5Stop::Damaged)?;
        let slice = |(start, bytes): &'_ (u64, Vec<u8>)| -> Option<Range<usize>> {
            let from = usize::try_from(at.checked_sub(*start)?).ok()?;
            let to = usize::try_from(end - *start).ok()?;
            (to <= bytes.len()).then_some(from..to)
        };
        let found = self.parts.iter().find_map(|part| Some(&part.1[slice(part)?]));
        found.ok_or_else(|| Hdf5Stop::Missing(at..end.max(at.saturating_add(PART_BYTES)).min(self.size)))
    }
}

/// Looks for data sets in the parts that were read.
pub fn find_datasets(parts: &LoadedParts) -> Hdf5Search {
    let mut walk = Hdf5Walk { parts, base: 0, visited: 0, found: DescribedArrays::default() };
    let stop = walk.find_root().and_then(|root| walk.visit(root, &mut Vec::new()));
    let missing = match stop {
        Err(Hdf5Stop::Missing(range)) => Some(range),
        Err(Hdf5Stop::Damaged) => {
            walk.found.is_cut = true;
            None
        }
        Ok(()) => None,
    };
    Hdf5Search { found: walk.found, missing }
}

/// A little-endian number of up to eight bytes.
fn number(bytes: &[u8], at: usize, count: usize) -> Result<u64, Hdf5Stop> {
    let part = bytes.get(at..at.saturating_add(count)).ok_or(Hdf5Stop::Damaged)?;
    Ok(part.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl<'a> Hdf5Walk<'a> {
    fn get(&self, address: u64, count: u64) -> Result<&'a [u8], Hdf5Stop> {
        if address == UNDEFINED {
            return Err(Hdf5Stop::Damaged);
        }
        self.parts.get(self.base.checked_add(address).ok_or(Hdf5Stop::Damaged)?, count)
    }

    /// The address of the root group, from the superblock.
    fn find_root(&mut self) -> Result<u64, Hdf5Stop> {
        let head = &self.parts.parts[0].1;
        // A user block may stand before it.
        let starts = [0, 512, 1024, 2048, 4096, 8192];
        let start = starts.into_iter().find(|at| head.get(*at..).is_some_and(|rest| rest.starts_with(HDF5_SIGNATURE)));
        let start = start.ok_or(Hdf5Stop::Damaged)?;
        let superblock = &head[start..];
        let version = number(superblock, 8, 1)?;
        let (sizes_at, root_at) = match version {
            0 => (13, 64),
            1 => (13, 68),
            2 | 3 => (9, 36),
            _ => return Err(Hdf5Stop::Damaged),
        };
        // Addresses and lengths of eight bytes, which is what everyone uses.
        if number(superblock, sizes_at, 2)? != 0x0808 {
            return Err(Hdf5Stop::Damaged);
        }
        self.base = u64::try_from(start).map_err(|_| Hdf5Stop::Damaged)?;
        number(superblock, root_at, 8)
    }

    /// Looks at a group or a data set. What is damaged is left out.
    fn visit(&mut self, address: u64, path: &mut Vec<String>) -> Result<(), Hdf5Stop> {
        self.visited += 1;
        let is_enough = self.visited > MAX_VISITED || self.found.arrays.len() >= MAX_ARRAYS;
        if is_enough || path.len() > MAX_DEPTH {
            self.found.is_cut = true;
            return Ok(());
        }
        let messages = self.read_messages(address)?;
        let content = |kind: u16| messages.iter().find(|(found, _)| *found == kind).map(|(_, content)| *content);
        if let (Some(space), Some(datatype)) = (content(message::DATASPACE), content(message::DATATYPE)) {
            let array = DescribedArray {
                name: shown_name(path.join("/").as_bytes()),
                shape: describe_dataspace(space)?,
                dtype: describe_datatype(datatype)?,
            };
            self.found.arrays.push(array);
            return Ok(());
        }
        let mut links = Vec::new();
        if let Some(table) = content(message::SYMBOL_TABLE) {
            let (tree, heap) = (number(table, 0, 8)?, number(table, 8, 8)?);
            self.read_tree(tree, heap, 0, &mut links)?;
        }
        for (_, link) in messages.iter().filter(|(kind, _)| *kind == message::LINK) {
            links.extend(parse_link(link)?);
        }
        if let Some(info) = content(message::LINK_INFO) {
            let flags = number(info, 1, 1)?;
            let heap = number(info, if flags & 1 == 0 { 2 } else { 10 }, 8)?;
            self.found.is_cut |= heap != UNDEFINED;
        }
        for (name, child) in links {
            path.push(name);
            let visited = self.visit(child, path);
            path.pop();
            match visited {
                Err(Hdf5Stop::Damaged) => self.found.is_cut = true,
                visited => visited?,
            }
        }
        Ok(())
    }

    /// The messages of an object's header, in all of its blocks.
    fn read_messages(&self, address: u64) -> Result<Vec<HeaderMessage<'a>>, Hdf5Stop> {
        let start = self.get(address, 16)?;
        let mut messages = Vec::new();
        let mut blocks = Vec::new();
        let layout = if start.starts_with(b"OHDR") {
            let flags = start[5];
            let times = if flags & 0x20 == 0 { 0 } else { 16 };
            let phases = if flags & 0x10 == 0 { 0 } else { 4 };
            let width = 1_u64 << (flags & 3);
            let before = 6 + times + phases;
            let prefix = self.get(address, before + width)?;
            let length = number(prefix, to_usize(before), to_usize(width))?;
            blocks.push((address.saturating_add(before + width), length));
            HeaderLayout { is_old: false, has_order: flags & 4 != 0 }
        } else if start[0] == 1 {
            blocks.push((address.saturating_add(16), number(start, 8, 4)?));
            HeaderLayout { is_old: true, has_order: false }
        } else {
            return Err(Hdf5Stop::Damaged);
        };
        let mut next = 0;
        while next < blocks.len().min(MAX_BLOCKS) {
            let (at, length) = blocks[next];
            let mut block = self.get(at, length.min(PART_BYTES))?;
            // Later blocks of the new format have a signature and a checksum around them.
            if !layout.is_old && next > 0 {
                block = block
                    .strip_prefix(b"OCHK")
                    .and_then(|rest| rest.get(..rest.len().checked_sub(4)?))
                    .ok_or(Hdf5Stop::Damaged)?;
            }
            next += 1;
            while messages.len() < MAX_MESSAGES {
                let Some((kind, content, rest)) = layout.split_message(block) else { break };
                block = rest;
                if kind == message::CONTINUATION {
                    blocks.push((number(content, 0, 8)?, number(content, 8, 8)?));
                } else {
                    messages.push((kind, content));
                }
            }
        }
        Ok(messages)
    }

    /// The links of an old group: names and addresses, from a tree whose leaves are tables.
    fn read_tree(
        &mut self,
        address: u64,
        heap: u64,
        depth: usize,
        links: &mut Vec<(String, u64)>,
    ) -> Result<(), Hdf5Stop> {
        self.visited += 1;
        if depth > MAX_DEPTH || self.visited > MAX_VISITED || links.len() >= MAX_ARRAYS {
            self.found.is_cut = true;
            return Ok(());
        }
        let start = self.get(address, 8)?;
        let count = number(start, 6, 2)?;
        if start.starts_with(b"SNOD") {
            let table = self.get(address, 8 + count * 40)?;
            for entry in table[8..].chunks_exact(40) {
                // Symbolic links lead to what is listed elsewhere.
                if number(entry, 16, 4)? != 2 {
                    links.push((self.read_name(heap, number(entry, 0, 8)?)?, number(entry, 8, 8)?));
                }
            }
        } else if start.starts_with(b"TREE\0") {
            let node = self.get(address, 24 + 8 + count * 16)?;
            for child in node[32..].chunks_exact(16) {
                self.read_tree(number(child, 0, 8)?, heap, depth + 1, links)?;
            }
        } else {
            return Err(Hdf5Stop::Damaged);
        }
        Ok(())
    }

    /// A name from the heap of an old group.
    fn read_name(&self, heap: u64, offset: u64) -> Result<String, Hdf5Stop> {
        let header = self.get(heap, 32)?;
        if !header.starts_with(b"HEAP") {
            return Err(Hdf5Stop::Damaged);
        }
        let (size, data) = (number(header, 8, 8)?, number(header, 24, 8)?);
        let left = size.checked_sub(offset).ok_or(Hdf5Stop::Damaged)?;
        let bytes = self.get(data.saturating_add(offset), left.min(MAX_NAME_BYTES))?;
        Ok(shown_name(bytes.split(|byte| *byte == 0).next().unwrap_or_default()))
    }
}

/// How the messages of an object's header are laid out.
#[derive(Clone, Copy)]
struct HeaderLayout {
    is_old: bool,
    /// Whether each message says when it was created.
    has_order: bool,
}

impl HeaderLayout {
    /// The first message of a block, and what follows it.
    fn split_message(self, block: &[u8]) -> Option<(u16, &[u8], &[u8])> {
        let (kind, length_at, start) = match (self.is_old, self.has_order) {
            (true, _) => (u16::from_le_bytes(block.get(..2)?.try_into().ok()?), 2, 8),
            (false, false) => (u16::from(*block.first()?), 1, 4),
            (false, true) => (u16::from(*block.first()?), 1, 6),
        };
        let length = usize::from(u16::from_le_bytes(block.get(length_at..length_at + 2)?.try_into().ok()?));
        let (content, rest) = block.get(start..)?.split_at_checked(length)?;
        Some((kind, content, rest))
    }
}

/// The name and the address of a link of a new group; `None` if it isn't a hard link.
fn parse_link(link: &[u8]) -> Result<Option<(String, u64)>, Hdf5Stop> {
    let flags = number(link, 1, 1)?;
    let mut at = 2;
    let mut kind = 0;
    if flags & 0x08 != 0 {
        kind = number(link, at, 1)?;
        at += 1;
    }
    at += if flags & 0x04 == 0 { 0 } else { 8 };
    at += usize::from(flags & 0x10 != 0);
    let width = 1_usize << (flags & 3);
    let length = to_usize(number(link, at, width)?);
    at += width;
    let end = at.checked_add(length).ok_or(Hdf5Stop::Damaged)?;
    let name = shown_name(link.get(at..end).ok_or(Hdf5Stop::Damaged)?);
    Ok(if kind == 0 { Some((name, number(link, end, 8)?)) } else { None })
}

fn describe_dataspace(space: &[u8]) -> Result<String, Hdf5Stop> {
    let (version, rank) = (number(space, 0, 1)?, to_usize(number(space, 1, 1)?));
    let start = if version == 1 { 8 } else { 4 };
    if version == 2 && number(space, 3, 1)? == 2 {
        return Ok("empty".to_owned());
    }
    let sizes: Result<Vec<u64>, Hdf5Stop> =
        (0..rank.min(MAX_RANK)).map(|dimension| number(space, start + dimension * 8, 8)).collect();
    Ok(shape_words(&sizes?))
}

fn describe_datatype(datatype: &[u8]) -> Result<String, Hdf5Stop> {
    let (class, flags) = (number(datatype, 0, 1)? & 0x0f, number(datatype, 1, 1)?);
    let bits = number(datatype, 4, 4)?.saturating_mul(8);
    Ok(match class {
        0 if flags & 0x08 == 0 => format!("uint{bits}"),
        0 => format!("int{bits}"),
        1 => format!("float{bits}"),
        3 => "text".to_owned(),
        6 => "compound".to_owned(),
        8 => "enumeration".to_owned(),
        9 if flags & 0x0f == 1 => "text".to_owned(),
        9 => "lists of different lengths".to_owned(),
        10 => "arrays".to_owned(),
        _ => "other".to_owned(),
    })
}

#[cfg(test)]
mod tests;
