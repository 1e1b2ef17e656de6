//! Words of `#SBATCH` lines, as Slurm splits them, and the options in them.

use super::SbatchOption;

/// Short options and their long names; the last column says whether a value follows.
const SHORT_OPTIONS: &[(char, &str, bool)] = &[
    ('A', "--account", true),
    ('a', "--array", true),
    ('b', "--begin", true),
    ('C', "--constraint", true),
    ('c', "--cpus-per-task", true),
    ('D', "--chdir", true),
    ('d', "--dependency", true),
    ('e', "--error", true),
    ('F', "--nodefile", true),
    ('G', "--gpus", true),
    ('H', "--hold", false),
    ('i', "--input", true),
    ('J', "--job-name", true),
    ('k', "--no-kill", false),
    ('L', "--licenses", true),
    ('M', "--clusters", true),
    ('N', "--nodes", true),
    ('n', "--ntasks", true),
    ('O', "--overcommit", false),
    ('o', "--output", true),
    ('p', "--partition", true),
    ('Q', "--quiet", false),
    ('q', "--qos", true),
    ('S', "--core-spec", true),
    ('s', "--oversubscribe", false),
    ('t', "--time", true),
    ('v', "--verbose", false),
    ('W', "--wait", false),
    ('w', "--nodelist", true),
    ('x', "--exclude", true),
];

/// Long options without a value, or with one only behind an equals sign.
const VALUELESS_OPTIONS: &[&str] = &[
    "--hold",
    "--no-kill",
    "--overcommit",
    "--quiet",
    "--oversubscribe",
    "--verbose",
    "--wait",
    "--exclusive",
    "--requeue",
    "--no-requeue",
    "--contiguous",
    "--spread-job",
    "--use-min-nodes",
    "--reboot",
    "--parsable",
    "--test-only",
    "--ignore-pbs",
    "--kill-on-invalid-dep",
    "--nice",
    "--propagate",
    "--get-user-env",
    "--disable-stdout-job-summary",
    "--help",
    "--usage",
    "--version",
];

/// Splits at spaces; quotes and backslashes keep them. What follows a `#` of its own is a comment.
pub fn split_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                if let Some(next) = chars.next() {
                    word.get_or_insert_default().push(next);
                }
            }
            (None, ' ' | '\t' | '\r') => words.extend(word.take()),
            (None, '#') if word.is_none() => break,
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The options among words, with their long names. Words that belong to none are dropped.
pub fn parse_options(words: &[String]) -> Vec<SbatchOption> {
    let mut found = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let good = name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            if !good {
                continue;
            }
            let option = format!("--{name}");
            let value = match value {
                None if !VALUELESS_OPTIONS.contains(&option.as_str()) => words.next().cloned(),
                value => value,
            };
            found.push((option, value));
        } else if let Some(short) = word.strip_prefix('-') {
            let Some(letter) = short.chars().next() else { continue };
            let Some((_, long, takes)) = SHORT_OPTIONS.iter().find(|(known, ..)| *known == letter)
            else {
                continue;
            };
            let glued = &short[letter.len_utf8()..];
            let value = match (takes, glued) {
                (false, _) => None,
                (true, "") => words.next().cloned(),
                (true, glued) => Some(glued.strip_prefix('=').unwrap_or(glued).to_owned()),
            };
            found.push(((*long).to_owned(), value));
        }
    }
    found
}
