//! Python tracebacks.

use super::bounded_line;

const TRACEBACK_MARK: &str = "Traceback (most recent call last)";
/// How many lines of a block are read, and how many are kept: the end says most.
const MAX_READ_LINES: usize = 2_000;
const MAX_KEPT_LINES: usize = 30;
/// How many unrelated lines a block may contain.
const MAX_FOREIGN_LINES: usize = 4;
/// Errors of launchers that only report that another program failed.
const WRAPPER_ERRORS: [&str; 5] =
    ["ChildFailedError", "BrokenPipeError", "DistBackendError", "CalledProcessError", "SystemExit"];

#[derive(Debug)]
pub struct PythonTraceback {
    pub start: usize,
    /// The line after it.
    pub end: usize,
    /// The block, without the prefix that some launchers add to each line.
    pub text: String,
    /// The line that names the error.
    pub last: String,
    /// Whether it comes from one of several cooperating processes.
    is_ranked: bool,
}

/// Reads the traceback that begins at this line, with those that Python chains to it.
pub fn parse<S: AsRef<str>>(lines: &[S], start: usize) -> Option<PythonTraceback> {
    let line = |at: usize| lines.get(at).map(|line| bounded_line(line.as_ref()));
    let at_mark = line(start)?.find(TRACEBACK_MARK)?;
    let before = &line(start)?[..at_mark];
    // `[rank0]: ` and `0: ` precede every line of the block, a progress bar only the first.
    let prefix = before.trim_end_matches("Original ");
    let prefix = line(start + 1).filter(|next| next.starts_with(prefix)).map_or("", |_| prefix);
    let inner = |at: usize| line(at).map(|line| line.strip_prefix(prefix).unwrap_or(line));
    let mut block = vec![line(start)?[at_mark..].to_owned()];
    let mut last = String::new();
    let mut end = start + 1;
    let mut foreign_lines = 0;
    while let Some(text) = inner(end).filter(|_| end - start < MAX_READ_LINES) {
        end += 1;
        let inside = text.starts_with([' ', '\t']) || text.contains(TRACEBACK_MARK) || text.is_empty();
        block.push(text.trim_end().to_owned());
        if inside {
            continue;
        }
        if !names_error(text) {
            // Unrelated output in between, or an error with an unusual name.
            foreign_lines += 1;
            if foreign_lines > MAX_FOREIGN_LINES {
                break;
            }
            continue;
        }
        text.trim().clone_into(&mut last);
        match next_chained(&inner, end) {
            Some(next) => end = next,
            None => break,
        }
    }
    if block.len() > MAX_KEPT_LINES {
        block.drain(1..=block.len() - MAX_KEPT_LINES);
        block[0].push_str(" …");
    }
    if last.is_empty() {
        last.clone_from(block.last()?);
    }
    let is_ranked = before.contains("[rank");
    Some(PythonTraceback { start, end, text: block.join("\n").trim_end().to_owned(), last, is_ranked })
}

/// Where the block continues, if Python chains another error to it.
fn next_chained<'a>(inner: &impl Fn(usize) -> Option<&'a str>, at: usize) -> Option<usize> {
    let next = (at..at + 3).find(|at| inner(*at).is_some_and(|line| !line.trim().is_empty()))?;
    let line = inner(next)?;
    let chained = line.starts_with("During handling of the above exception")
        || line.starts_with("The above exception was the direct cause")
        || line.trim_start_matches("Original ").starts_with(TRACEBACK_MARK);
    chained.then_some(next)
}

/// `ValueError: …`, `torch.OutOfMemoryError: …`, `KeyboardInterrupt`.
fn names_error(line: &str) -> bool {
    let name = line.split([':', ' ']).next().unwrap_or_default();
    let dotted = name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
    let first = name.rsplit('.').next().and_then(|word| word.chars().next());
    let follows = line[name.len()..].trim_end();
    dotted && first.is_some_and(|c| c.is_uppercase() || c == '_') && (follows.is_empty() || follows.starts_with(':'))
}

/// The block that explains the failure: the last one, because the program may have survived earlier ones; but among
/// cooperating processes the first, because the others fail as a result.
pub fn most_telling(mut blocks: Vec<PythonTraceback>) -> Option<PythonTraceback> {
    let echo = |block: &PythonTraceback| {
        let name = block.last.split(':').next().unwrap_or_default();
        WRAPPER_ERRORS.iter().any(|echo| name.ends_with(echo))
    };
    if blocks.iter().any(|block| !echo(block)) {
        blocks.retain(|block| !echo(block));
    }
    if blocks.first()?.is_ranked { blocks.into_iter().next() } else { blocks.pop() }
}
