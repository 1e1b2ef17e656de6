//! Finds the errors in a log: which lines say what went wrong, what they mean, and what to do. It only recognises
//! messages of well-known programs; a log without findings may still contain problems.

mod generic;
mod patterns;
#[cfg(test)]
mod tests;
mod traceback;

use traceback::PythonTraceback;

/// How much of one line is read.
const MAX_LINE_BYTES: usize = 600;
/// How much of one finding is kept.
const MAX_TEXT_BYTES: usize = 3_000;
/// How many lines of a module system's explanation are kept.
const MAX_PARAGRAPH_LINES: usize = 8;

/// Kinds of findings, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogFindingKind {
    /// A GPU ran out of memory.
    GpuMemory,
    /// The disk or the file quota is full.
    DiskFull,
    /// The job used more memory than it requested.
    OutOfMemory,
    TimeLimit,
    /// A job with a higher priority took its nodes.
    Preempted,
    NodeFailure,
    Cancelled,
    /// The script has Windows line endings.
    LineEnds,
    /// A Python package is missing.
    MissingPackage,
    /// An environment module could not be loaded.
    Module,
    /// A remote host could not be reached.
    Network,
    /// A Python program ended with an error.
    Python,
    CommandNotFound,
    /// A shared library was not found.
    Library,
    Crash,
    NoSuchFile,
    /// A file may not be read, written or run.
    Permission,
    /// Slurm reports that a job step failed.
    Slurm,
    /// A line that calls itself an error.
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFinding {
    pub kind: LogFindingKind,
    /// The line number, counted from 0 among the lines read; for a block, its first line.
    pub line: usize,
    /// The text, bounded: one line or a whole block.
    pub text: String,
    /// Its most telling line; the same as `text` unless that is a block.
    pub last: String,
    /// What it means, in a few words.
    pub title: &'static str,
    pub advice: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogFindings {
    /// At most one of each kind, the most telling first.
    pub list: Vec<LogFinding>,
    /// The first line with an error, to jump to.
    pub first_error_line: Option<usize>,
}

/// Searches the plain lines of a log, as returned by [`super::terminal::RenderedLog::texts`].
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
            let text = if kind == LogFindingKind::Module { paragraph(lines, at) } else { line.trim().to_owned() };
            found.add(kind, at, &text, line.trim());
        }
        at += 1;
    }
    if let Some(block) = traceback::most_telling(tracebacks) {
        let kind = patterns::classify_line(&block.last).filter(|kind| *kind < LogFindingKind::Slurm);
        let kind = kind.unwrap_or(LogFindingKind::Python);
        // A complete Python traceback says more than a single line of the same kind.
        found.list.retain(|finding| finding.kind != kind);
        found.add(kind, block.start, &block.text, &block.last);
        if kind != LogFindingKind::Python {
            found.list.retain(|finding| finding.kind != LogFindingKind::Error);
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
    fn add(&mut self, kind: LogFindingKind, line: usize, text: &str, last: &str) {
        self.note_error_line(line);
        if self.list.iter().all(|finding| finding.kind != kind) {
            let (title, advice) = patterns::describe(kind, last);
            let text = truncate(text, MAX_TEXT_BYTES).to_owned();
            self.list.push(LogFinding { kind, line, text, last: last.to_owned(), title, advice });
        }
    }
}

/// A line and those after it, up to an empty one.
fn paragraph<S: AsRef<str>>(lines: &[S], at: usize) -> String {
    let rest = lines.iter().skip(at).map(|line| bounded_line(line.as_ref()).trim_end());
    rest.take_while(|line| !line.is_empty()).take(MAX_PARAGRAPH_LINES).collect::<Vec<_>>().join("\n")
}

fn bounded_line(line: &str) -> &str {
    truncate(line, MAX_LINE_BYTES)
}

/// Cuts to a number of bytes without splitting a character.
fn truncate(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
