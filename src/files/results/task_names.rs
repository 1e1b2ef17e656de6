//! Which task of an array wrote a file, as far as its name tells.

/// What people write before the number of a task.
const WORDS: [&str; 5] = ["task", "point", "array", "run", "job"];
/// Extensions of output files, whose name may be the number alone.
const OUTPUT_EXTENSIONS: [&str; 3] = ["out", "err", "log"];

/// The task whose full number is in the path, as Slurm writes it: `slurm-812_3.out`, `sweep-812_3/model.pt`.
pub fn find_numbered_task(path: &[u8], array: u64) -> Option<u32> {
    let path = String::from_utf8_lossy(path);
    let number = format!("{array}_");
    path.match_indices(&number).find_map(|(at, _)| {
        let is_whole = !path[..at].ends_with(|c: char| c.is_ascii_digit());
        let rest = &path[at + number.len()..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
        digits.parse().ok().filter(|_| is_whole)
    })
}

/// The same, or the task for which a folder or file is named: `3/loss.csv`, `task-03/loss.csv`, `logs/3.out`.
pub fn find_task(path: &[u8], array: u64, is_task: impl Fn(u32) -> bool) -> Option<u32> {
    if let Some(task) = find_numbered_task(path, array).filter(|task| is_task(*task)) {
        return Some(task);
    }
    let path = String::from_utf8_lossy(path);
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    let by_folder = folders.split('/').find_map(|folder| parse_task(folder, true).filter(|task| is_task(*task)));
    by_folder.or_else(|| parse_task(stem, OUTPUT_EXTENSIONS.contains(&extension)).filter(|task| is_task(*task)))
}

/// Whether a program's output usually has such a name.
pub fn is_output_name(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| OUTPUT_EXTENSIONS.contains(&extension))
}

/// The number in `task-3`, `point_03`, `run 3`, and in `3` if that alone is enough.
fn parse_task(name: &str, is_number_enough: bool) -> Option<u32> {
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let word = name[..name.len() - digits.len()].trim_end_matches(['-', '_', ' ', '=']);
    let is_named = WORDS.iter().any(|known| word.eq_ignore_ascii_case(known));
    let is_number = is_number_enough && word.is_empty();
    let is_task = (is_named || is_number) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_task.then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_tell_the_task() {
        let find = |path: &str| find_task(path.as_bytes(), 812, |task| (1..=20).contains(&task));
        for (path, expected) in [
            ("slurm-812_3.out", Some(3)),
            ("sweep-812_12/model.pt", Some(12)),
            ("a/b/c-812_7.csv", Some(7)),
            ("3/loss.csv", Some(3)),
            ("out/003/loss.csv", Some(3)),
            ("task-4/epoch-9/x.csv", Some(4)),
            ("Task_04/x.csv", Some(4)),
            ("run5/x.csv", Some(5)),
            ("logs/6.out", Some(6)),
            ("logs/task-6.txt", Some(6)),
            ("9.csv", None),
            ("epoch-3/x.csv", None),
            ("task-99/x.csv", None),
            ("task-3b/x.csv", None),
            ("1812_3.out", None),
            ("slurm-812_99.out", None),
            ("slurm-813_3.out", None),
            ("task-/x", None),
            ("task-99999999999999999999/x", None),
            ("model.pt", None),
            ("", None),
        ] {
            assert_eq!(find(path), expected, "{path}");
        }
        assert_eq!(find_numbered_task(b"slurm-812_99.out", 812), Some(99));
        assert_eq!(find_numbered_task(b"\xff812_4\xfe", 812), Some(4));
    }

    proptest! {
        #[test]
        fn any_name_is_read(path in proptest::collection::vec(any::<u8>(), 0..60), text in "\\PC{0,40}") {
            for path in [&path[..], text.as_bytes()] {
                let _ = find_task(path, 8, |_| true);
            }
        }
    }
}
