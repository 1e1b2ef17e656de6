//! Arrays in zip archives: those of `NumPy` (`.npz`), and the tensors of `PyTorch` (`.pt`). Only members that aren't
//! compressed are looked into, which is how both programs write them by default.

use super::archive_members::{ZipEntry, shown_name};
use super::data_files::NpyHeader;
use super::described_array::{DescribedArray, DescribedArrays, MAX_ARRAYS, shape_words};
use super::pickled_tensors::find_tensors;

/// How many members of an archive are looked into: each is a read of its own.
const MAX_MEMBER_READS: usize = 30;
/// How much of a `NumPy` member is read: its header.
const NPY_BYTES: u64 = 1024;
/// How much of the description of tensors is read.
const PICKLE_BYTES: u64 = 256 * 1024;
/// The fixed part of a member's header, and the most that may stand between it and the content besides the name.
const LOCAL_HEADER_BYTES: usize = 30;
const MAX_EXTRA_BYTES: u64 = 1024;

/// What is read of a member, and how it is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedMember {
    pub offset: u64,
    pub bytes: u64,
    name: Vec<u8>,
    size: u64,
    kind: WantedKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WantedKind {
    Npy,
    Tensors,
}

/// The members that tell about arrays, and whether others are left out.
pub fn find_wanted_members(entries: &[ZipEntry]) -> (Vec<WantedMember>, bool) {
    let stored = entries.iter().filter(|entry| entry.is_stored);
    let wanted = stored.filter_map(|entry| {
        let (kind, most) = match &entry.name {
            name if name.ends_with(b".npy") => (WantedKind::Npy, NPY_BYTES),
            name if name.ends_with(b"/data.pkl") => (WantedKind::Tensors, PICKLE_BYTES),
            _ => return None,
        };
        let header = LOCAL_HEADER_BYTES + entry.name.len();
        let bytes = u64::try_from(header).ok()? + MAX_EXTRA_BYTES + entry.size.min(most);
        Some(WantedMember { offset: entry.offset, bytes, name: entry.name.clone(), size: entry.size, kind })
    });
    let mut wanted: Vec<WantedMember> = wanted.collect();
    let is_cut = wanted.len() > MAX_MEMBER_READS;
    wanted.truncate(MAX_MEMBER_READS);
    (wanted, is_cut)
}

impl WantedMember {
    /// Adds what the member's bytes say, beginning with its header.
    pub fn describe(&self, bytes: &[u8], found: &mut DescribedArrays) {
        let Some(content) = skip_local_header(bytes) else { return };
        let content = usize::try_from(self.size).ok().and_then(|size| content.get(..size)).unwrap_or(content);
        match self.kind {
            WantedKind::Npy => {
                let header = NpyHeader::parse(content);
                let name = self.name.strip_suffix(b".npy").unwrap_or(&self.name);
                found.arrays.extend(header.map(|header| DescribedArray {
                    name: shown_name(name),
                    shape: shape_words(&header.sizes),
                    dtype: header.dtype,
                }));
            }
            WantedKind::Tensors => {
                let tensors = find_tensors(content);
                found.arrays.extend(tensors.arrays);
                found.is_cut |= tensors.is_cut;
            }
        }
        found.is_cut |= found.arrays.len() > MAX_ARRAYS;
        found.arrays.truncate(MAX_ARRAYS);
    }
}

/// The content of a member after its header.
fn skip_local_header(bytes: &[u8]) -> Option<&[u8]> {
    let length = |at: usize| Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    if !bytes.starts_with(b"PK\x03\x04") {
        return None;
    }
    bytes.get(LOCAL_HEADER_BYTES + length(26)? + length(28)?..)
}

#[cfg(test)]
mod tests {
    use super::super::archive_members::{find_zip_directory, parse_zip_entries};
    use super::*;
    use proptest::prelude::*;

    fn describe(file: &[u8]) -> DescribedArrays {
        let directory = find_zip_directory(file).unwrap();
        let entries = parse_zip_entries(&file[usize::try_from(directory.offset).unwrap()..]);
        let (wanted, is_cut) = find_wanted_members(&entries);
        let mut found = DescribedArrays { is_cut, ..DescribedArrays::default() };
        for member in wanted {
            let start = usize::try_from(member.offset).unwrap();
            let end = file.len().min(start + usize::try_from(member.bytes).unwrap());
            member.describe(&file[start..end], &mut found);
        }
        found
    }

    fn array(name: &str, shape: &str, dtype: &str) -> DescribedArray {
        DescribedArray { name: name.to_owned(), shape: shape.to_owned(), dtype: dtype.to_owned() }
    }

    #[test]
    fn arrays_of_a_numpy_archive_tell_their_shapes() {
        let found = describe(include_bytes!("../../../tests/fixtures/previews/two_arrays.npz"));
        assert_eq!(found.arrays, [array("loss", "3 × 2", "float32"), array("step", "5", "int64")]);
        assert!(!found.is_cut);
    }

    #[test]
    fn tensors_of_a_model_tell_their_shapes() {
        let found = describe(include_bytes!("../../../tests/fixtures/previews/model.pt"));
        let expected = [
            array("epoch_loss", "a single value", "float64"),
            array("model.layer.weight", "4 × 3", "float32"),
            array("model.layer.bias", "4", "float32"),
            array("steps", "2", "int64"),
        ];
        assert_eq!(found.arrays, expected);
    }

    proptest! {
        #[test]
        fn any_member_is_described_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..300), size in any::<u64>()) {
            let names = [&b"a.npy"[..], b"m/data.pkl"];
            let entries = names.map(|name| ZipEntry { name: name.to_vec(), size, offset: 0, is_stored: true });
            let mut found = DescribedArrays::default();
            for member in find_wanted_members(&entries).0 {
                member.describe(&bytes, &mut found);
                member.describe(&[&b"PK\x03\x04"[..], &[0; 26], &bytes[..]].concat(), &mut found);
            }
        }
    }
}
