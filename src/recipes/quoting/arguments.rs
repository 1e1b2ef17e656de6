//! Command-line arguments as people type them. Quotes group words, a few variables are expanded, nothing is executed.

use super::{ShellWord, is_allowed_char, parse_variable};

/// More arguments than this must have been pasted by mistake.
const MAX_ARGUMENTS: usize = 1000;

enum ArgumentQuoteState {
    Nothing,
    Single,
    Double,
}

/// Splits a line into words. Line breaks count as spaces. `known`: sweep variables that may appear.
pub fn parse_arguments(text: &str, known: &[String]) -> Result<Vec<ShellWord>, String> {
    let mut all: Vec<ShellWord> = Vec::new();
    let mut word: Option<ShellWord> = None;
    let mut inside = ArgumentQuoteState::Nothing;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let is_space = matches!(c, ' ' | '\t' | '\n' | '\r');
        if !is_space && !is_allowed_char(c) {
            return Err("This contains an invisible character. Type it again.".to_owned());
        }
        match (&inside, c) {
            (ArgumentQuoteState::Nothing, _) if is_space => all.extend(word.take()),
            (ArgumentQuoteState::Nothing, '\'') => {
                inside = ArgumentQuoteState::Single;
                word.get_or_insert_default();
            }
            (ArgumentQuoteState::Nothing, '"') => {
                inside = ArgumentQuoteState::Double;
                word.get_or_insert_default();
            }
            (ArgumentQuoteState::Single, '\'') | (ArgumentQuoteState::Double, '"') => {
                inside = ArgumentQuoteState::Nothing;
            }
            (ArgumentQuoteState::Nothing | ArgumentQuoteState::Double, '$') => {
                let current = word.get_or_insert_default();
                match parse_variable(rest, known)? {
                    Some((name, length)) => {
                        *current = std::mem::take(current).followed_by_variable(&name);
                        rest = &rest[length..];
                    }
                    None => current.push('$'),
                }
            }
            (ArgumentQuoteState::Nothing | ArgumentQuoteState::Double, '\\') => {
                let next = rest.chars().next().filter(|next| is_allowed_char(*next));
                let escapes = match inside {
                    ArgumentQuoteState::Double => next.is_some_and(|next| matches!(next, '"' | '\\' | '$')),
                    _ => next.is_some(),
                };
                let current = word.get_or_insert_default();
                if let (true, Some(next)) = (escapes, next) {
                    current.push(next);
                    rest = &rest[next.len_utf8()..];
                } else {
                    current.push('\\');
                }
            }
            _ if is_space && c != ' ' && c != '\t' => {
                return Err("A quotation mark isn't closed at the end of a line.".to_owned());
            }
            // As in bash: at the start of a word it means the home folder.
            (ArgumentQuoteState::Nothing, '~')
                if word.is_none() && (rest.is_empty() || rest.starts_with(['/', ' '])) =>
            {
                word = Some(ShellWord::default().followed_by_variable("HOME"));
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    if !matches!(inside, ArgumentQuoteState::Nothing) {
        return Err("A quotation mark isn't closed.".to_owned());
    }
    all.extend(word);
    if all.len() > MAX_ARGUMENTS {
        return Err(format!("Enter at most {MAX_ARGUMENTS} words."));
    }
    Ok(all)
}
