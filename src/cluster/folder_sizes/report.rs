//! The result of a measurement, as parsed from the script's output and stored as JSON. Bounded, because it comes from a
//! machine that is not ours.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{FolderSizeError, MAX_SECTION_BYTES, NOTE_NUMBER};
use crate::clock::UnixTime;
use crate::domain::RemotePath;
use crate::ssh::RunCommandError;

/// The largest folders that are kept: by size, and by number of files.
const MAX_BY_SIZE: usize = 300;
const MAX_BY_FILES: usize = 100;
/// How many files that will be deleted soon are kept.
const MAX_AGING_FILES: usize = 50;

/// What takes the space in a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FolderSizeReport {
    /// Subfolders down to the second level, the largest first. Each includes what is inside it.
    pub folders: Vec<MeasuredFolder>,
    /// `None` if the measurement was stopped early.
    pub total_bytes: Option<u64>,
    /// Files and folders together, as quotas count them; `None` if they were not all counted.
    pub total_files: Option<u64>,
    /// Whether the time limit was reached before everything was measured.
    pub is_partial: bool,
    /// Whether parts could not be read, or changed meanwhile.
    pub has_unreadable: bool,
    /// Files that will be deleted soon; `None` if the centre deletes none, or doesn't say when.
    pub aging: Option<AgingFiles>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredFolder {
    #[serde(with = "encoded_path")]
    pub path: RemotePath,
    /// On the disk.
    pub bytes: u64,
    /// Files and folders, itself included; `None` if they were not counted.
    pub files: Option<u64>,
}

/// Files that nobody has used for a long time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgingFiles {
    /// They haven't been used for at least this many days.
    pub after_days: u16,
    /// The oldest first.
    pub files: Vec<AgingFile>,
    /// Whether there are more than are kept.
    pub has_more: bool,
    /// Whether the search was stopped early.
    pub is_partial: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgingFile {
    #[serde(with = "encoded_path")]
    pub path: RemotePath,
    pub bytes: u64,
    /// When it was last read or written, in seconds since 1970.
    pub last_used: i64,
}

impl AgingFile {
    pub const fn last_used_at(&self) -> UnixTime {
        UnixTime(self.last_used)
    }
}

/// Paths in JSON, as in URLs.
mod encoded_path {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use crate::domain::RemotePath;

    pub fn serialize<S: Serializer>(path: &RemotePath, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&path.to_encoded())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RemotePath, D::Error> {
        RemotePath::from_encoded(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// One part of the output: its records, and the notes among them.
#[derive(Default)]
struct ScriptSection<'a> {
    records: Vec<&'a [u8]>,
    bytes: usize,
    is_timed_out: bool,
    has_unreadable: bool,
}

impl<'a> ScriptSection<'a> {
    fn add(&mut self, record: &'a [u8], notes: &[u8]) {
        self.bytes += record.len() + 1;
        match record.strip_prefix(notes).and_then(|rest| rest.strip_prefix(b"\t")) {
            Some(b"time") => self.is_timed_out = true,
            Some(b"denied") => self.has_unreadable = true,
            _ if !record.is_empty() => self.records.push(record),
            _ => {}
        }
    }

    /// The last record may have been cut off at the limit.
    fn drop_cut_record(&mut self) {
        if self.bytes >= MAX_SECTION_BYTES {
            self.records.pop();
        }
    }

    /// The amounts of `du`, and the paths that they are for.
    fn amounts(&self) -> impl Iterator<Item = (u64, RemotePath)> {
        self.records.iter().filter_map(|record| {
            let at = record.iter().position(|byte| *byte == b'\t')?;
            let amount = std::str::from_utf8(&record[..at]).ok()?.parse().ok()?;
            Some((amount, RemotePath::parse(&record[at + 1..]).ok()?))
        })
    }
}

impl FolderSizeReport {
    /// Parses the script's output. `aging_after`: from how many days on files were to be listed.
    pub fn parse(folder: &RemotePath, aging_after: Option<u16>, output: &[u8]) -> Result<Self, FolderSizeError> {
        let [mut sizes, mut files, mut old] = <[ScriptSection<'_>; 3]>::default();
        let mut section = None;
        let mut is_complete = false;
        for record in output.split(|byte| *byte == 0) {
            match record {
                b"missing" if section.is_none() => return Err(FolderSizeError::NotFound),
                b"denied" if section.is_none() => return Err(FolderSizeError::PermissionDenied),
                // Paths are absolute and follow a number, so no name can look like a heading.
                b"sizes" => section = Some((&mut sizes, NOTE_NUMBER)),
                b"files" => section = Some((&mut files, NOTE_NUMBER)),
                b"old" => section = Some((&mut old, &b"0"[..])),
                b"end" => is_complete = true,
                record => {
                    if let Some((section, notes)) = &mut section {
                        section.add(record, notes);
                    }
                }
            }
        }
        if !is_complete {
            return Err(RunCommandError::IncompleteReply.into());
        }
        for section in [&mut sizes, &mut files, &mut old] {
            section.drop_cut_record();
        }
        let mut report = Self {
            is_partial: sizes.is_timed_out,
            has_unreadable: sizes.has_unreadable,
            aging: aging_after.map(|days| aging_files(days, &old)),
            ..Self::default()
        };
        report.add_folders(folder, &sizes, &files);
        match (report.total_bytes, report.folders.is_empty(), report.is_partial) {
            (None, true, true) => Err(FolderSizeError::TooSlow),
            (None, true, false) => Err(FolderSizeError::NoSizes),
            _ => Ok(report),
        }
    }

    fn add_folders(&mut self, folder: &RemotePath, sizes: &ScriptSection<'_>, files: &ScriptSection<'_>) {
        let mut counts: HashMap<RemotePath, u64> = files.amounts().map(|(count, path)| (path, count)).collect();
        self.total_files = counts.remove(folder);
        for (kibibytes, path) in sizes.amounts() {
            let bytes = u64::saturating_mul(kibibytes, 1024);
            if path == *folder {
                self.total_bytes = Some(bytes);
            } else if path.is_within(folder) {
                let files = counts.remove(&path);
                self.folders.push(MeasuredFolder { path, bytes, files });
            }
        }
        let mut by_files: Vec<u64> = self.folders.iter().filter_map(|folder| folder.files).collect();
        by_files.sort_unstable_by(|a, b| b.cmp(a));
        let many = by_files.get(MAX_BY_FILES).copied().unwrap_or(0);
        self.folders.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
        let mut rank = 0;
        self.folders.retain(|folder| {
            rank += 1;
            rank <= MAX_BY_SIZE || folder.files.is_some_and(|files| files > many)
        });
    }
}

fn aging_files(after_days: u16, section: &ScriptSection<'_>) -> AgingFiles {
    let parse = |record: &&[u8]| {
        let mut fields = record.splitn(4, |byte| *byte == b'\t');
        let mut number = || {
            let text = std::str::from_utf8(fields.next()?).ok()?;
            text.split('.').next()?.parse::<i64>().ok()
        };
        let (read, written, bytes) = (number()?, number()?, number()?);
        let path = RemotePath::parse(fields.next()?).ok()?;
        Some(AgingFile { path, bytes: u64::try_from(bytes).ok()?, last_used: read.max(written) })
    };
    let mut files: Vec<AgingFile> = section.records.iter().filter_map(parse).collect();
    files.sort_by_key(|file| file.last_used);
    let has_more = files.len() > MAX_AGING_FILES || section.bytes >= MAX_SECTION_BYTES;
    files.truncate(MAX_AGING_FILES);
    AgingFiles { after_days, files, has_more, is_partial: section.is_timed_out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place() -> RemotePath {
        RemotePath::parse(b"/scratch/alice").unwrap()
    }

    fn parse(output: &[u8]) -> Result<FolderSizeReport, FolderSizeError> {
        FolderSizeReport::parse(&place(), Some(46), output)
    }

    #[test]
    fn partial_measurements_say_so() {
        let output = b"sizes\x0099999999999999999999\ttime\x002048\t/scratch/alice/a\x00\x00files\x00\
            99999999999999999999\tdenied\x00\x00old\x000\ttime\x00\x00end\x00";
        let report = parse(output).unwrap();
        assert_eq!((report.total_bytes, report.is_partial, report.has_unreadable), (None, true, false));
        assert_eq!((report.folders[0].bytes, report.folders[0].files), (2048 * 1024, None));
        assert!(report.aging.unwrap().is_partial);
        let nothing = b"sizes\x0099999999999999999999\ttime\x00\x00files\x00\x00end\x00";
        assert_eq!(parse(nothing), Err(FolderSizeError::TooSlow));
        let failed = b"sizes\x0099999999999999999999\tdenied\x00\x00files\x00\x00end\x00";
        assert_eq!(parse(failed), Err(FolderSizeError::NoSizes));
        assert_eq!(parse(b"sizes\x001\t/scratch/alice\x00"), Err(RunCommandError::IncompleteReply.into()));
        assert_eq!(parse(b"missing\x00"), Err(FolderSizeError::NotFound));
        assert_eq!(parse(b"denied\x00"), Err(FolderSizeError::PermissionDenied));
    }

    #[test]
    fn folders_elsewhere_and_nonsense_are_left_out() {
        let output = b"sizes\x009\t/scratch/alice\x008\t/etc\x00x\t/scratch/alice/x\x007\trelative\x00\
            6\t/scratch/alice/../bob\x005\t/scratch/alice/sizes\x00\x00files\x003\t/scratch/alice/sizes\x00\x00end\x00";
        let report = parse(output).unwrap();
        let names: Vec<String> = report.folders.iter().map(|folder| folder.path.to_string()).collect();
        assert_eq!(names, ["/scratch/alice/sizes"]);
        assert_eq!((report.total_bytes, report.total_files), (Some(9 * 1024), None));
    }

    #[test]
    fn reports_are_bounded_and_keep_what_has_many_files() {
        let mut output = b"sizes\x00999999\t/scratch/alice\x00".to_vec();
        let mut counts = b"\x00files\x00".to_vec();
        for number in 0..1000 {
            output.extend(format!("{}\t/scratch/alice/{number}\0", 2000 - number).bytes());
            // The smallest folders have the most files.
            counts.extend(format!("{}\t/scratch/alice/{number}\0", number + 1).bytes());
        }
        output.extend(counts);
        output.extend(b"\x00end\x00");
        let report = parse(&output).unwrap();
        assert_eq!(report.folders.len(), MAX_BY_SIZE + MAX_BY_FILES);
        assert!(report.folders.iter().any(|folder| folder.files == Some(1000)));
        assert!(report.folders.iter().any(|folder| folder.bytes == 2000 * 1024));
    }

    #[test]
    fn a_record_at_the_limit_is_dropped() {
        let mut output = b"sizes\x0099999999\t/scratch/alice\x00".to_vec();
        while output.len() < MAX_SECTION_BYTES {
            output.extend(b"10\t/scratch/alice/");
            output.extend([b'n'; 200]);
            output.push(0);
        }
        output.truncate(MAX_SECTION_BYTES + 6);
        output.extend(b"\x00files\x00\x00end\x00");
        let report = parse(&output).unwrap();
        assert!(report.folders.iter().all(|folder| folder.path.as_bytes().len() == 215), "none is cut short");
    }

    #[test]
    fn paths_that_are_not_text_are_stored_exactly() {
        let path = place().join(&crate::domain::RemoteName::parse(b"a\n\xff%41").unwrap());
        let folders = vec![MeasuredFolder { path: path.clone(), bytes: 1, files: None }];
        let report = FolderSizeReport { folders, ..FolderSizeReport::default() };
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<FolderSizeReport>(&json).unwrap().folders[0].path, path);
    }

    proptest! {
        #[test]
        fn any_output_is_survived(output in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&output);
            let framed = [b"sizes\0", output.as_slice(), b"\0files\0", &output, b"\0old\0", &output, b"\0end\0"].concat();
            let _ = parse(&framed);
        }
    }
}
