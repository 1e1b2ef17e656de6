//! Range requests (RFC 9110, section 14): one range of a file, as browsers and download programs ask for it when they
//! resume.

use std::ops::Range;

/// What a `Range` header asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadRange {
    /// No range, several, or one that we don't understand: the whole file, as the standard allows.
    All,
    Part(Range<u64>),
    /// A range that lies outside the file.
    Unsatisfiable,
}

/// Reads a `Range` header for a file of this size.
pub fn parse_range(header: Option<&str>, size: u64) -> DownloadRange {
    let Some((first, last)) = header.and_then(split_range) else { return DownloadRange::All };
    match (first, last) {
        (None, None) => DownloadRange::All,
        (None, Some(0)) => DownloadRange::Unsatisfiable,
        (None, Some(count)) if size > 0 => DownloadRange::Part(size.saturating_sub(count)..size),
        (Some(first), Some(last)) if last < first => DownloadRange::All,
        (Some(first), last) if first < size => {
            DownloadRange::Part(first..last.map_or(size, |last| last.saturating_add(1).min(size)))
        }
        _ => DownloadRange::Unsatisfiable,
    }
}

/// The two numbers of a single range: `bytes=2-5`, `bytes=2-`, `bytes=-5`.
fn split_range(header: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (unit, range) = header.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    Some((parse_number(first).ok()?, parse_number(last).ok()?))
}

/// `None` if nothing is written. A number that is too large lies beyond any file.
fn parse_number(text: &str) -> Result<Option<u64>, NotANumber> {
    match text {
        "" => Ok(None),
        text if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Some(text.parse().unwrap_or(u64::MAX))),
        _ => Err(NotANumber),
    }
}

struct NotANumber;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn single_ranges_are_read_and_others_give_the_whole_file() {
        use DownloadRange::{All, Part, Unsatisfiable};
        for (header, expected) in [
            ("bytes=0-0", Part(0..1)),
            ("bytes=2-5", Part(2..6)),
            ("Bytes = 2-5", Part(2..6)),
            ("bytes=2-", Part(2..10)),
            ("bytes=2-99999999999999999999999", Part(2..10)),
            ("bytes=-3", Part(7..10)),
            ("bytes=-30", Part(0..10)),
            ("bytes=9-9", Part(9..10)),
            ("bytes=10-", Unsatisfiable),
            ("bytes=99999999999999999999999-", Unsatisfiable),
            ("bytes=-0", Unsatisfiable),
            ("bytes=5-2", All),
            ("bytes=0-1,4-5", All),
            ("bytes=-", All),
            ("bytes=+1-2", All),
            ("bytes=a-b", All),
            ("lines=0-1", All),
            ("", All),
        ] {
            assert_eq!(parse_range(Some(header), 10), expected, "{header}");
        }
        assert_eq!(parse_range(None, 10), All);
        assert_eq!(parse_range(Some("bytes=0-"), 0), Unsatisfiable);
        assert_eq!(parse_range(Some("bytes=-1"), 0), Unsatisfiable);
    }

    proptest! {
        #[test]
        fn part_lies_inside_the_file(header in "(bytes=)?[0-9]{0,3}-?[0-9]{0,3},?[a-z]?", size in 0_u64..500) {
            if let DownloadRange::Part(range) = parse_range(Some(&header), size) {
                prop_assert!(range.start < range.end && range.end <= size);
            }
        }

        #[test]
        fn any_range_in_the_file_is_what_was_asked_for(first in 0_u64..500, len in 1_u64..500) {
            let header = format!("bytes={first}-{}", first + len - 1);
            prop_assert_eq!(parse_range(Some(&header), 1000), DownloadRange::Part(first..first + len));
        }
    }
}
