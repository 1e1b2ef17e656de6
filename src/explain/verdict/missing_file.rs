//! A program that didn't find a file by a relative path: people expect it to look beside the script, and it looks in the
//! folder that the job runs in.

use super::JobVerdict;
use crate::text::sanitize;

/// How much of a path is repeated; what a program printed has no limit.
const MAX_PATH_LEN: usize = 200;
const NOT_FOUND: &str = "No such file or directory";

/// The relative path that a line of output complains about. None if it's absolute or can't be told.
pub fn relative_path(line: &str) -> Option<String> {
    let (before, after) = line.split_once(NOT_FOUND)?;
    // Python names the path afterwards; most others before, some of them in quotes.
    let path = if let Some(after) = after.strip_prefix(": ") {
        unquoted(after.trim())?
    } else {
        let before = before.trim_end().trim_end_matches(':').trim_end_matches("[Errno 2]").trim_end();
        let before = before.trim_end_matches(':');
        match before.chars().last().filter(|last| is_quote(*last)) {
            Some(quote) => unquoted(&before[before[..before.len() - 1].rfind(quote)?..])?,
            None => before.rsplit_once(": ")?.1,
        }
    };
    let path = sanitize(path, MAX_PATH_LEN);
    (!path.is_empty() && !path.starts_with(['/', '~', '$'])).then_some(path)
}

/// Says where the program looked, and what to do.
pub fn add_advice(verdict: JobVerdict, path: &str, folder: &str) -> JobVerdict {
    let folder = sanitize(folder, MAX_PATH_LEN);
    verdict.with_advice(format!("The job looked for “{path}” in the folder it ran in: {folder}.")).with_advice(
        "Move the file there, or give its full path. You can also resubmit the job and choose the file's folder as \
             the working folder.",
    )
}

const fn is_quote(c: char) -> bool {
    matches!(c, '\'' | '"')
}

/// The text between a quote at the start and the next one like it.
fn unquoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|first| is_quote(*first))?;
    text[1..].split_once(quote).map(|(inside, _)| inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_programs_did_not_find() {
        for (line, path) in [
            ("FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'", Some("data.csv")),
            ("FileNotFoundError: [Errno 2] No such file or directory: 'in/my data.csv'", Some("in/my data.csv")),
            ("FileNotFoundError: [Errno 2] No such file or directory: \"it's.csv\"", Some("it's.csv")),
            ("FileNotFoundError: [Errno 2] No such file or directory: '/scratch/x.csv'", None),
            ("python3: can't open file 'train.py': [Errno 2] No such file or directory", Some("train.py")),
            ("python3: can't open file '/a/train.py': [Errno 2] No such file or directory", None),
            ("  cannot open file 'data.csv': No such file or directory", Some("data.csv")),
            ("cat: data.csv: No such file or directory", Some("data.csv")),
            ("tail: cannot open 'ä': No such file or directory", Some("ä")),
            ("/var/spool/job1/slurm_script: line 9: in.txt: No such file or directory", Some("in.txt")),
            ("No such file or directory", None),
            ("': No such file or directory", None),
            ("FileNotFoundError: x", None),
        ] {
            assert_eq!(relative_path(line).as_deref(), path, "{line}");
        }
        let long = format!("cat: {}: No such file or directory", "a".repeat(900));
        assert!(relative_path(&long).unwrap().chars().count() <= MAX_PATH_LEN + 1);
    }
}
