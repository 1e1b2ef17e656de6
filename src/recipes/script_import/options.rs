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
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        found.extend(read_options(word, &mut words).unwrap_or_default());
    }
    found
}

/// Why a word isn't read as an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadWord {
    NotAnOption,
    /// An option that `sbatch` doesn't have, as far as we know.
    UnknownOption,
}

/// The options of one word, of which there are several in `-HOt 10`; `rest` has the words after it, for their values.
pub fn read_options<'a>(
    word: &'a str,
    rest: &mut impl Iterator<Item = &'a str>,
) -> Result<Vec<SbatchOption>, UnreadWord> {
    match word.strip_prefix("--") {
        Some(long) => read_long_option(long, rest).map(|option| vec![option]),
        None => match word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            Some(letters) => read_short_options(letters, rest),
            None => Err(UnreadWord::NotAnOption),
        },
    }
}

fn read_long_option<'a>(long: &'a str, rest: &mut impl Iterator<Item = &'a str>) -> Result<SbatchOption, UnreadWord> {
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    let good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !good {
        return Err(UnreadWord::UnknownOption);
    }
    let option = full_name(&format!("--{name}"));
    let takes_value = find_option(&option).is_none_or(|known| known.takes_value);
    let value = value.or_else(|| if takes_value { rest.next() } else { None });
    Ok((option, value.map(str::to_owned)))
}

/// Slurm accepts the beginning of a name if no other option begins like it.
pub fn full_name(option: &str) -> String {
    let mut like_it = SBATCH_OPTIONS.iter().filter(|known| known.name.starts_with(option));
    match (find_option(option), like_it.next(), like_it.next()) {
        (None, Some(only), None) => only.name.to_owned(),
        _ => option.to_owned(),
    }
}

fn read_short_options<'a>(
    letters: &'a str,
    rest: &mut impl Iterator<Item = &'a str>,
) -> Result<Vec<SbatchOption>, UnreadWord> {
    let mut found = Vec::new();
    for (at, letter) in letters.char_indices() {
        let known = SBATCH_OPTIONS.iter().find(|option| option.short == Some(letter));
        let option = known.ok_or(UnreadWord::UnknownOption)?;
        let name = option.name.to_owned();
        if option.takes_value {
            let glued = &letters[at + letter.len_utf8()..];
            let value = if glued.is_empty() { rest.next() } else { Some(glued.strip_prefix('=').unwrap_or(glued)) };
            found.push((name, value.map(str::to_owned)));
            break;
        }
        found.push((name, None));
    }
    Ok(found)
}
