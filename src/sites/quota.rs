//! Space and files, used and allowed, as the centres' own programs print them: `diskusage_report` and `dusage`,
//! as `quota` does, which most Linux systems have, and as `lfs quota` does on Lustre.

use serde::{Deserialize, Serialize};

use crate::text::one_line;

const MAX_QUOTAS: usize = 500;
const MAX_LINES: usize = 20_000;
const MAX_LINE_BYTES: usize = 1000;

/// The quota of one storage area.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageQuota {
    /// The program's name for it: `/project (project def-x)`, `/cluster/home/x`.
    pub label: String,
    /// Approximate, because programs round.
    pub used_bytes: u64,
    /// `None`: no limit is known.
    pub limit_bytes: Option<u64>,
    pub files: Option<u64>,
    /// `None`: no limit is known.
    pub files_limit: Option<u64>,
}

/// Parses the output of any version of `diskusage_report`. Leaves out areas that it could not query.
pub fn parse_diskusage_report(answer: &str) -> Vec<StorageQuota> {
    bounded_lines(answer).filter_map(parse_report_row).take(MAX_QUOTAS).collect()
}

/// `/home (user x)   88GiB/ 100GiB   767K/1000K`, `Home (x)   280 kB/47 GB   25/500k`.
fn parse_report_row(line: &str) -> Option<StorageQuota> {
    let end = line.rfind(')')? + 1;
    let (label, figures) = line.split_at(end);
    let mut amounts = QuotaNumberIter(figures);
    let used_bytes = amounts.next()?.bytes()?;
    let limit = amounts.next()?;
    let (files, files_limit) = (amounts.next(), amounts.next());
    Some(StorageQuota {
        label: one_line(label, 200),
        used_bytes,
        limit_bytes: limit.bytes().filter(|bytes| *bytes > 0),
        files: files.and_then(QuotaNumber::count),
        files_limit: files_limit.and_then(QuotaNumber::count).filter(|files| *files > 0),
    })
}

/// Parses the output of `dusage --no-colors`: a table whose columns are marked by a line of dashes.
pub fn parse_dusage(answer: &str) -> Vec<StorageQuota> {
    let mut columns: Vec<(usize, usize)> = Vec::new();
    let mut found = Vec::new();
    for line in bounded_lines(answer) {
        if line.starts_with("---") {
            columns = find_columns(line);
        } else if columns.len() >= 5 && found.len() < MAX_QUOTAS {
            found.extend(parse_dusage_row(line, &columns));
        }
    }
    found
}

fn parse_dusage_row(line: &str, columns: &[(usize, usize)]) -> Option<StorageQuota> {
    let letters: Vec<char> = line.chars().collect();
    let cell = |number: usize| {
        let (begin, end) = columns.get(number).copied().unwrap_or((usize::MAX, usize::MAX));
        let inside = letters.get(begin..end.min(letters.len())).unwrap_or_default();
        inside.iter().collect::<String>().trim().to_owned()
    };
    let bytes = |number| QuotaNumberIter(&cell(number)).next().and_then(QuotaNumber::bytes);
    let count = |number| cell(number).replace([' ', '\u{a0}', ','], "").parse::<u64>().ok();
    let label = one_line(&cell(0), 200);
    let used_bytes = bytes(1).filter(|_| label.starts_with('/'))?;
    Some(StorageQuota {
        label,
        used_bytes,
        limit_bytes: bytes(2).or(bytes(3)),
        files: count(4),
        files_limit: count(5).or(count(6)),
    })
}

/// Parses the output of `quota -w -p`. A quota of 0 means that there is none; file systems without any are left out.
pub fn parse_quota(answer: &str) -> Vec<StorageQuota> {
    bounded_lines(answer).filter_map(parse_quota_row).take(MAX_QUOTAS).collect()
}

/// `nfs01:/export/home  1839204  20971520 26214400 0  41023*  40000 50000 1795400000`: blocks of 1 KiB, then files, each
/// with soft limit, hard limit and when the grace period ends. A star marks what is exceeded.
fn parse_quota_row(line: &str) -> Option<StorageQuota> {
    let mut cells = line.split_whitespace();
    let label = cells.next().filter(|label| label.contains('/'))?;
    let numbers: Option<Vec<u64>> = cells.map(|cell| cell.trim_end_matches('*').parse().ok()).collect();
    let &[blocks, soft_blocks, hard_blocks, _, files, soft_files, hard_files, _] = numbers?.as_slice() else {
        return None;
    };
    from_blocks_and_files(label, [blocks, soft_blocks, hard_blocks], [files, soft_files, hard_files])
}

/// Used, soft limit and hard limit: of blocks of 1 KiB, and of files. `None` if nothing is limited.
fn from_blocks_and_files(label: &str, blocks: [u64; 3], files: [u64; 3]) -> Option<StorageQuota> {
    let limit = |[_, soft, hard]: [u64; 3]| Some(if soft > 0 { soft } else { hard }).filter(|limit| *limit > 0);
    let quota = StorageQuota {
        label: one_line(label, 200),
        used_bytes: blocks[0].checked_mul(1024)?,
        limit_bytes: limit(blocks).and_then(|blocks| blocks.checked_mul(1024)),
        files: Some(files[0]),
        files_limit: limit(files),
    };
    (quota.limit_bytes.is_some() || quota.files_limit.is_some()).then_some(quota)
}

/// Parses the output of `lfs quota -q`, each after a line `folder PATH`. A long name of a file system has a line of its own.
pub fn parse_lfs_quota(answer: &str) -> Vec<StorageQuota> {
    let mut found = Vec::new();
    let (mut folder, mut cells) = ("", Vec::new());
    for line in bounded_lines(answer).chain(["folder "]) {
        if let Some(next) = line.strip_prefix("folder ") {
            found.extend(parse_lfs_cells(folder, &cells));
            (folder, cells) = (next, Vec::new());
        } else {
            cells.extend(line.split_whitespace().take(20));
        }
    }
    found.truncate(MAX_QUOTAS);
    found
}

/// `/lustre 4123456* 20971520 22020096 6d23h 12345 1000000 1100000 -`: what is exceeded has a star, what is uncertain
/// (because a server is down) stands in brackets.
fn parse_lfs_cells(folder: &str, cells: &[&str]) -> Option<StorageQuota> {
    let at = cells.iter().position(|cell| cell.starts_with('/'))?;
    let &[_, blocks, soft_blocks, hard_blocks, _, files, soft_files, hard_files, ..] = cells.get(at..)? else {
        return None;
    };
    let number = |cell: &str| cell.trim_matches(['*', '[', ']']).parse::<u64>().ok();
    let blocks = [number(blocks)?, number(soft_blocks)?, number(hard_blocks)?];
    from_blocks_and_files(folder, blocks, [number(files)?, number(soft_files)?, number(hard_files)?])
}

fn find_columns(line: &str) -> Vec<(usize, usize)> {
    let mut columns: Vec<(usize, usize)> = Vec::new();
    for (at, letter) in line.chars().enumerate() {
        match columns.last_mut() {
            _ if letter != '-' => {}
            Some((_, end)) if *end == at => *end = at + 1,
            _ => columns.push((at, at + 1)),
        }
    }
    columns
}

pub(super) fn bounded_lines(answer: &str) -> impl Iterator<Item = &str> {
    answer.lines().take(MAX_LINES).filter(|line| line.len() <= MAX_LINE_BYTES)
}

/// A number in thousandths, and the unit after it in lower case.
pub(super) struct QuotaNumber<'a> {
    thousandths: u64,
    unit: &'a str,
}

impl QuotaNumber<'_> {
    /// `GiB` and `G` are powers of 1024, `GB` of 1000.
    pub(super) fn bytes(self) -> Option<u64> {
        let unit = self.unit.to_ascii_lowercase();
        let short = unit.strip_suffix('b').unwrap_or(&unit);
        let (letter, base) = match (short.strip_suffix('i'), short.len() == unit.len()) {
            (Some(letter), _) => (letter, 1024_u64),
            (None, true) => (short, 1024),
            (None, false) => (short, 1000),
        };
        self.scale(letter, base)
    }

    /// Numbers of files use powers of 1000.
    fn count(self) -> Option<u64> {
        let unit = self.unit.to_ascii_lowercase();
        self.scale(&unit, 1000)
    }

    fn scale(&self, letter: &str, base: u64) -> Option<u64> {
        let power = match letter {
            "" => 0,
            letter if letter.len() == 1 => "kmgtp".find(letter)? + 1,
            _ => return None,
        };
        let factor = base.checked_pow(u32::try_from(power).ok()?)?;
        u64::try_from(u128::from(self.thousandths) * u128::from(factor) / 1000).ok()
    }
}

/// The amounts in `0  B/1024GiB           7 /2000K`, one after the other.
pub(super) struct QuotaNumberIter<'a>(pub(super) &'a str);

impl<'a> Iterator for QuotaNumberIter<'a> {
    type Item = QuotaNumber<'a>;

    fn next(&mut self) -> Option<QuotaNumber<'a>> {
        let text = self.0.trim_start_matches([' ', '/', '*']);
        let length = |text: &str, good: fn(u8) -> bool| text.bytes().take_while(|b| good(*b)).count();
        let (number, rest) = text.split_at(length(text, |b| b.is_ascii_digit() || b == b'.'));
        let blanks = length(rest, |b| b == b' ').min(2);
        let behind = &rest[blanks..];
        let (unit, rest) = behind.split_at(length(behind, |b| b.is_ascii_alphabetic()));
        self.0 = rest;
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let part: String = part.chars().chain("000".chars()).take(3).collect();
        let whole: u64 = whole.parse().ok()?;
        let thousandths = whole.checked_mul(1000)?.checked_add(part.parse().ok()?)?;
        Some(QuotaNumber { thousandths, unit })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TRILLIUM: &str = include_str!("../../tests/fixtures/sites/diskusage-trillium.txt");
    const NARVAL: &str = include_str!("../../tests/fixtures/sites/diskusage-narval.txt");
    const DEMO: &str = include_str!("../../tests/fixtures/sites/diskusage-demo.txt");
    const DUSAGE: &str = include_str!("../../tests/fixtures/sites/dusage.txt");

    const G: u64 = 1 << 30;
    const T: u64 = 1 << 40;

    fn place(
        label: &str,
        used_bytes: u64,
        limit_bytes: impl Into<Option<u64>>,
        files: u64,
        files_limit: impl Into<Option<u64>>,
    ) -> StorageQuota {
        StorageQuota {
            label: label.into(),
            used_bytes,
            limit_bytes: limit_bytes.into(),
            files: Some(files),
            files_limit: files_limit.into(),
        }
    }

    #[test]
    fn reports_of_clusters() {
        assert_eq!(
            parse_diskusage_report(TRILLIUM),
            [
                place("/home (user def-brad)", 88 * G, 100 * G, 767_000, 1_000_000),
                place("/scratch (user def-brad)", 1122 * G, 25 * T, 1_264_000, 10_000_000),
                place("/project (project def-brad)", 0, 1024 * G, 7, 2_000_000),
                place("/project (project rrg-brad)", 16 * T, 50 * T, 2_013_000, 100_000_000),
            ]
        );
        let narval = parse_diskusage_report(NARVAL);
        assert_eq!(narval.len(), 3);
        assert_eq!(narval[0], place("/home (user normandf)", 4_942_000_000, 50_000_000_000, 28_000, 500_000));
        assert_eq!((narval[1].files, narval[1].files_limit), (Some(1), Some(1_000_000)));
        let demo = parse_diskusage_report(DEMO);
        assert_eq!(demo.len(), 5);
        assert_eq!(demo[1], place("/scratch (user alice)", 4096, 20_000_000_000_000, 1, 1_000_000));
    }

    #[test]
    fn rows_of_other_ages() {
        let rows = "      Home (username)         280 kB/47 GB              25/500k\n\
                    /project (group def-bengioy)           971G/1000G           791k/1005k\n\
                    /nearline (project def-selouani)        36KiB/ 279TiB           9 /5000 \n\
                    /home (user normandf)        19GiB/  25GiB         206K/ 250K\n\
                    /project (project def-y)   Unable to retrieve quota\n";
        assert_eq!(
            parse_diskusage_report(rows),
            [
                place("Home (username)", 280_000, 47_000_000_000, 25, 500_000),
                place("/project (group def-bengioy)", 971 * G, 1000 * G, 791_000, 1_005_000),
                place("/nearline (project def-selouani)", 36 << 10, 279 * T, 9, 5000),
                place("/home (user normandf)", 19 * G, 25 * G, 206_000, 250_000),
            ]
        );
    }

    #[test]
    fn a_table_of_dusage() {
        let found = parse_dusage(DUSAGE);
        assert_eq!(found.len(), 4);
        assert_eq!(found[0].limit_bytes, None);
        assert_eq!((found[0].files, found[0].files_limit), (Some(235_068), None));
        let used = 1_869_169_767_219;
        assert_eq!(found[3], place("/cluster/projects/nn****k", used, 2 * T, 1_036_089, 2_000_000));
        assert_eq!(found[1].limit_bytes, Some(20 * G));
    }

    #[test]
    fn rows_of_quota() {
        let answer = "Disk quotas for user alice (uid 1001): \n     \
                      Filesystem   space   quota   limit   grace   files   quota   limit   grace\n\
                      nfs01:/export/home 1839204  20971520 26214400 0 41023* 40000 50000 1795400000\n\
                      /dev/mapper/vg-scratch 4 0 1048576 0 1 0 0 0\n\
                      /dev/sda1 5000 0 0 0 12 0 0 0\n\
                      nfs02:/data 10 20 30\n";
        assert_eq!(
            parse_quota(answer),
            [
                place("nfs01:/export/home", 1_839_204 * 1024, 20 * G, 41_023, 40_000),
                place("/dev/mapper/vg-scratch", 4096, G, 1, None),
            ]
        );
        assert_eq!(parse_quota("Disk quotas for user alice (uid 1001): none\n"), []);
    }

    #[test]
    fn rows_of_lfs_quota() {
        let answer = "folder /home/alice\n\
                      folder /lustre/scratch/alice\n\
                      /lustre/scratch [4123456]*  20971520 22020096   6d23h   12345  1000000 1100000       -\n\
                      uid 1001 is using default block quota setting\n\
                      folder /work/alice\n\
                      /a/file/system/with/a/long/name\n                          8       0       0       -       2       0     500       -\n\
                      folder /free/alice\n/free 8 0 0 - 2 0 0 -\n\
                      folder /broken\n/broken 8 x 0 - 2 0 0 -\n";
        assert_eq!(
            parse_lfs_quota(answer),
            [
                place("/lustre/scratch/alice", 4_123_456 * 1024, 20 * G, 12_345, 1_000_000),
                place("/work/alice", 8192, None, 2, 500),
            ]
        );
        assert_eq!(parse_lfs_quota(""), []);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,200}|[a-z /()]{0,10}\\)[0-9./ KMGTiB]{0,60}") {
            let _ = parse_diskusage_report(&text);
            let _ = parse_dusage(&text);
            let _ = parse_quota(&text);
            let _ = parse_lfs_quota(&format!("folder /a\n/a {text}"));
            let _ = parse_dusage(&format!("--- -- -- -- -- --\n{text}"));
        }
    }
}
