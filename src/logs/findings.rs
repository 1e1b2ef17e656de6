//! The errors in a log, lifted out: which lines tell what went wrong, what they mean, and what to do about it.
//! Only the wording of well-known programs is recognised; a log without findings may still tell of trouble.

mod generic;
mod kinds;
#[cfg(test)]
mod tests;
mod traceback;

use traceback::Traceback;

/// No more of one line is looked at.
const LONGEST_LINE: usize = 600;
/// No more than this of one finding is kept.
const LONGEST_TEXT: usize = 3_000;
/// How many lines of a module system's explanation are kept.
const BLOCK: usize = 8;

/// What a finding tells of, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
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
    /// A machine failed.
    NodeFailure,
    /// Someone cancelled it.
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
    /// A program crashed.
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
pub struct Finding {
    /// What it tells of.
    pub kind: Kind,
    /// The line that says it, counted from 0 among the lines looked at; for a block, its first line.
    pub line: usize,
    /// What stands there, bounded: one line or a whole block.
    pub text: String,
    /// The line in it that says most; the same as `text` unless that is a block.
    pub last: String,
    /// What it means, in a few words.
    pub title: &'static str,
    /// What to do.
    pub advice: String,
}

/// What a log tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings {
    /// At most one of each kind, the most telling first.
    pub list: Vec<Finding>,
    /// The first line that tells of an error, to jump to.
    pub first_error_line: Option<usize>,
}

/// Looks through the plain lines of a log, such as [`super::terminal::Rendered::texts`] gives them.
pub fn find<S: AsRef<str>>(lines: &[S]) -> Findings {
    let mut found = Findings::default();
    let mut tracebacks: Vec<Traceback> = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let line = bounded(line.as_ref());
        if let Some(block) = traceback::read(lines, at) {
            found.note(at);
            at = block.end;
            tracebacks.push(block);
            continue;
        }
        if let Some(kind) = kinds::of(line) {
            let text = if kind == Kind::Module { block(lines, at) } else { line.trim().to_owned() };
            found.add(kind, at, &text, line.trim());
        }
        at += 1;
    }
    if let Some(block) = traceback::most_telling(tracebacks) {
        let kind = kinds::of(&block.last).filter(|kind| *kind < Kind::Slurm);
        let kind = kind.unwrap_or(Kind::Python);
        // What Python says with its whole block tells more than a single line of the same kind.
        found.list.retain(|finding| finding.kind != kind);
        found.add(kind, block.start, &block.text, &block.last);
        if kind != Kind::Python {
            found.list.retain(|finding| finding.kind != Kind::Error);
        }
    }
    found.list.sort_by_key(|finding| finding.kind);
    found
}

impl Findings {
    fn note(&mut self, line: usize) {
        self.first_error_line = Some(self.first_error_line.map_or(line, |first| first.min(line)));
    }

    /// Keeps the first of each kind.
    fn add(&mut self, kind: Kind, line: usize, text: &str, last: &str) {
        self.note(line);
        if self.list.iter().all(|finding| finding.kind != kind) {
            let (title, advice) = kinds::words(kind, last);
            let text = cut(text, LONGEST_TEXT).to_owned();
            self.list.push(Finding { kind, line, text, last: last.to_owned(), title, advice });
        }
    }
}

/// A line and those after it up to an empty one.
fn block<S: AsRef<str>>(lines: &[S], at: usize) -> String {
    let rest = lines.iter().skip(at).map(|line| bounded(line.as_ref()).trim_end());
    rest.take_while(|line| !line.is_empty()).take(BLOCK).collect::<Vec<_>>().join("\n")
}

fn bounded(line: &str) -> &str {
    cut(line, LONGEST_LINE)
}

/// At most so many bytes, whole letters.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
