//! Splits `#SBATCH` lines into words, as Slurm does, and finds the options in them.

use super::SbatchOption;
use crate::recipes::sbatch_options::{SBATCH_OPTIONS, find_option};

/// Splits at spaces, except inside quotes or after a backslash. A separate `#` starts a comment.
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

/// The options among words, with their long names. Drops words that belong to none.
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
                None if find_option(&option).is_none_or(|known| known.takes_value) => words.next().cloned(),
                value => value,
            };
            found.push((option, value));
        } else if let Some(short) = word.strip_prefix('-') {
            let Some(letter) = short.chars().next() else { continue };
            let known = SBATCH_OPTIONS.iter().find(|option| option.short == Some(letter));
            let Some(option) = known else { continue };
            let glued = &short[letter.len_utf8()..];
            let value = match (option.takes_value, glued) {
                (false, _) => None,
                (true, "") => words.next().cloned(),
                (true, glued) => Some(glued.strip_prefix('=').unwrap_or(glued).to_owned()),
            };
            found.push((option.name.to_owned(), value));
        }
    }
    found
}
