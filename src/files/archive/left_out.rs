//! The note in an archive about what isn't in it.

use std::fmt::Write as _;

use super::LeftOutSummary;
use crate::format;

/// The note's name; another one if a file has it.
pub(super) const NOTE_NAME: &str = "NOT INCLUDED.txt";
/// How many names the note lists.
const MAX_LINES: usize = 2000;

/// What was left out, and why.
#[derive(Debug, Default)]
pub(super) struct LeftOutFiles {
    lines: Vec<String>,
    count: u64,
}

impl LeftOutFiles {
    pub fn add(&mut self, name: &[u8], reason: &str) {
        self.count += 1;
        if self.lines.len() < MAX_LINES {
            let shown: String = String::from_utf8_lossy(name)
                .chars()
                .map(|c| if crate::text::is_hidden(c) { char::REPLACEMENT_CHARACTER } else { c })
                .collect();
            self.lines.push(format!("{shown}: {reason}"));
        }
    }

    pub fn to_summary(&self, is_truncated: bool) -> LeftOutSummary {
        LeftOutSummary { count: self.count, first: self.lines.first().cloned().unwrap_or_default(), is_truncated }
    }

    /// The note; `None` if everything is in the archive. `limit` is set if the archive has as many entries as it may.
    pub fn to_note(&self, limit: Option<usize>) -> Option<String> {
        if self.count == 0 && limit.is_none() {
            return None;
        }
        let mut note = String::from("This archive doesn't contain everything that you selected.\n\n");
        if let Some(limit) = limit {
            let limit = format::number(u64::try_from(limit).unwrap_or(u64::MAX));
            let _ = writeln!(
                note,
                "It has {limit} items, the maximum for one archive. The rest is missing. \
                 Select fewer folders at a time.\n"
            );
        }
        for line in &self.lines {
            let _ = writeln!(note, "{line}");
        }
        let more = self.count - u64::try_from(self.lines.len()).unwrap_or(self.count);
        if more > 0 {
            let _ = writeln!(note, "... and {} more.", format::number(more));
        }
        Some(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_says_what_is_missing_and_why() {
        let mut files = LeftOutFiles::default();
        assert_eq!(files.to_note(None), None);
        assert!(files.to_note(Some(100_000)).unwrap().contains("100,000 items"));
        files.add(b"data/a\nb\xff", "It is a pipe.");
        let note = files.to_note(None).unwrap();
        assert!(note.ends_with("data/a\u{FFFD}b\u{FFFD}: It is a pipe.\n"), "{note}");
        for number in 0..MAX_LINES {
            files.add(format!("{number}").as_bytes(), "No.");
        }
        assert!(files.to_note(None).unwrap().ends_with("... and 1 more.\n"));
    }
}
