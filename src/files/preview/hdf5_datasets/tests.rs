use super::*;
use proptest::prelude::*;

/// Reads parts of a file as they are asked for, beginning with `head` bytes.
fn find(file: &[u8], head: usize) -> (Vec<(String, String, String)>, bool) {
    let mut parts = LoadedParts::new(file[..head.min(file.len())].to_vec(), file.len() as u64);
    for _ in 0..50 {
        let search = find_datasets(&parts);
        let Some(missing) = search.missing else {
            let shown = |array: DescribedArray| (array.name, array.shape, array.dtype);
            return (search.found.arrays.into_iter().map(shown).collect(), search.found.is_cut);
        };
        let range = to_usize(missing.start)..to_usize(missing.end);
        parts.add(missing.start, file[range].to_vec());
    }
    panic!("it never has enough");
}

const GROUPS: &[u8] = include_bytes!("../../../../tests/fixtures/previews/groups.h5");
const LATEST: &[u8] = include_bytes!("../../../../tests/fixtures/previews/latest.h5");

#[test]
fn data_sets_tell_their_shapes() {
    let row = |name: &str, shape: &str, dtype: &str| (name.to_owned(), shape.to_owned(), dtype.to_owned());
    let weight = row("model/weight", "2 × 3", "float64");
    for head in [100, 1000, 100_000] {
        assert_eq!(find(GROUPS, head), (vec![weight.clone(), row("x", "4 × 5", "float32")], false), "{head}");
    }
    let (mut found, is_cut) = find(LATEST, 100_000);
    found.sort();
    let step = row("model/step", "a single value", "int64");
    assert_eq!((found, is_cut), (vec![step, weight, row("x", "4 × 5", "float32")], false));
}

#[test]
fn group_that_contains_itself_ends() {
    let mut looped = GROUPS.to_vec();
    // The entry of `model` leads to the root group.
    let at = looped.windows(4).position(|part| part == b"SNOD").unwrap() + 8 + 8;
    looped[at..at + 8].copy_from_slice(&0x60_u64.to_le_bytes());
    let (found, is_cut) = find(&looped, 100_000);
    assert!(is_cut && found.len() <= MAX_ARRAYS, "{}", found.len());
}

proptest! {
    #[test]
    fn any_damage_is_survived(at in 0_usize..4800, byte in any::<u8>(), cut in 100_usize..4816) {
        for file in [GROUPS, LATEST] {
            let mut damaged = file.to_vec();
            let at = at % damaged.len();
            damaged[at] = byte;
            let _ = find(&damaged, 100_000);
            damaged.truncate(cut);
            let _ = find(&damaged, 512);
        }
    }
}
