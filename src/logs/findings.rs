//! The errors in a log, lifted out: which lines tell what went wrong, what they mean, and what to do about it.
//! Only the wording of well-known programs is recognised; a log without findings may still tell of trouble.

mod generic;
mod patterns;
#[cfg(test)]
mod tests;
mod traceback;

use traceback::PythonTraceback;

/// No more of one line is looked at.
const MAX_LINE_BYTES: usize = 600;
/// No more than this of one finding is kept.
const MAX_TEXT_BYTES: usize = 3_000;
/// How many lines of a module system's explanation are kept.
const MAX_PARAGRAPH_LINES: usize = 8;

/// What a finding tells of, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// A GPU's memory was full.
    GpuMemory,
    /// No more room for files, or no more files allowed.
    DiskFull,
    /// More memory was used than asked for.
    OutOfMemory,
    /// The time limit was reached.
    TimeLimit,
    /// Another job needed the place.
    Preempted,
    NodeFailure,
    Cancelled,
    /// The script has the line ends of Windows.
    LineEnds,
    /// A package of Python is missing.
    MissingPackage,
    /// A module could not be loaded.
    Module,
    /// Something outside could not be reached.
    Network,
    /// A program in Python ended with an error.
    Python,
    /// A program was not found.
    CommandNotFound,
    /// A library was not found.
    Library,
    Crash,
    /// A file or folder was not found.
    NoSuchFile,
    /// A file may not be read, written or run.
    Permission,
    /// Slurm reports that a part of the job ended badly.
    Slurm,
    /// Something calls itself an error.
    Error,
}

/// One thing that the log tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFinding {
    /// What it tells of.
    pub kind: FindingKind,
    /// The line that says it, counted from 0 among the lines looked at; for a block, its first line.
    pub line: usize,
    /// What stands there, bounded: one line or a whole block.
    pub text: String,
    /// The line in it that says most; the same as `text` unless that is a block.
    pub last: String,
    /// What it means, in a few words.
    pub title: &'static str,
    pub advice: String,
}

/// What a log tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogFindings {
    /// At most one of each kind, the most telling first.
    pub list: Vec<LogFinding>,
    /// The first line that tells of an error, to jump to.
    pub first_error_line: Option<usize>,
}

/// Looks through the plain lines of a log, such as [`super::terminal::Rendered::texts`] gives them.
pub fn find_errors<S: AsRef<str>>(lines: &[S]) -> LogFindings {
    let mut found = LogFindings::default();
    let mut tracebacks: Vec<PythonTraceback> = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let line = bounded_line(line.as_ref());
        if let Some(block) = traceback::parse(lines, at) {
            found.note_error_line(at);
            at = block.end;
            tracebacks.push(block);
            continue;
        }
        if let Some(kind) = patterns::classify_line(line) {
            let text = if kind == FindingKind::Module {
                paragraph(lines, at)
            } else {
                line.trim().to_owned()
            };
            found.add(kind, at, &text, line.trim());
        }
        at += 1;
    }
    if let Some(block) = traceback::most_telling(tracebacks) {
        let kind = patterns::classify_line(&block.last).filter(|kind| *kind < FindingKind::Slurm);
        let kind = kind.unwrap_or(FindingKind::Python);
        // What Python says with its whole block tells more than a single line of the same kind.
        found.list.retain(|finding| finding.kind != kind);
        found.add(kind, block.start, &block.text, &block.last);
        if kind != FindingKind::Python {
            found.list.retain(|finding| finding.kind != FindingKind::Error);
        }
    }
    found.list.sort_by_key(|finding| finding.kind);
    found
}

impl LogFindings {
    fn note_error_line(&mut self, line: usize) {
        self.first_error_line = Some(self.first_error_line.map_or(line, |first| first.min(line)));
    }

    /// Keeps the first of each kind.
    fn add(&mut self, kind: FindingKind, line: usize, text: &str, last: &str) {
        self.note_error_line(line);
        if self.list.iter().all(|finding| finding.kind != kind) {
            let (title, advice) = patterns::describe(kind, last);
            let text = truncate(text, MAX_TEXT_BYTES).to_owned();
            self.list.push(LogFinding { kind, line, text, last: last.to_owned(), title, advice });
        }
    }
}

/// A line and those after it up to an empty one.
fn paragraph<S: AsRef<str>>(lines: &[S], at: usize) -> String {
    let rest = lines.iter().skip(at).map(|line| bounded_line(line.as_ref()).trim_end());
    rest.take_while(|line| !line.is_empty())
        .take(MAX_PARAGRAPH_LINES)
        .collect::<Vec<_>>()
        .join("\n")
}

fn bounded_line(line: &str) -> &str {
    truncate(line, MAX_LINE_BYTES)
}

/// At most so many bytes, whole letters.
fn truncate(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
