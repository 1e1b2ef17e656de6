//! Arguments for a program as people type them on one line. Quotes group words, a few variables count, nothing runs.

use super::{Words, is_allowed, variable};

/// More arguments than this were pasted by mistake.
const MOST: usize = 1000;

enum Inside {
    Nothing,
    Single,
    Double,
}

/// Splits a line into words. Line breaks count as spaces. `known`: names of a sweep that may stand in them, too.
pub fn arguments(text: &str, known: &[String]) -> Result<Vec<Words>, String> {
    let mut all: Vec<Words> = Vec::new();
    let mut word: Option<Words> = None;
    let mut inside = Inside::Nothing;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let is_space = matches!(c, ' ' | '\t' | '\n' | '\r');
        if !is_space && !is_allowed(c) {
            return Err("This holds a character that cannot be seen. Type it anew.".to_owned());
        }
        match (&inside, c) {
            (Inside::Nothing, _) if is_space => all.extend(word.take()),
            (Inside::Nothing, '\'') => {
                inside = Inside::Single;
                word.get_or_insert_default();
            }
            (Inside::Nothing, '"') => {
                inside = Inside::Double;
                word.get_or_insert_default();
            }
            (Inside::Single, '\'') | (Inside::Double, '"') => inside = Inside::Nothing,
            (Inside::Nothing | Inside::Double, '$') => {
                let place = word.get_or_insert_default();
                match variable(rest, known)? {
                    Some((name, length)) => {
                        *place = std::mem::take(place).followed_by_variable(&name);
                        rest = &rest[length..];
                    }
                    None => place.push('$'),
                }
            }
            (Inside::Nothing | Inside::Double, '\\') => {
                let next = rest.chars().next().filter(|next| is_allowed(*next));
                let escapes = match inside {
                    Inside::Double => next.is_some_and(|next| matches!(next, '"' | '\\' | '$')),
                    _ => next.is_some(),
                };
                let place = word.get_or_insert_default();
                if let (true, Some(next)) = (escapes, next) {
                    place.push(next);
                    rest = &rest[next.len_utf8()..];
                } else {
                    place.push('\\');
                }
            }
            _ if is_space && c != ' ' && c != '\t' => {
                return Err("A quote is open at the end of a line: close it.".to_owned());
            }
            // As bash does it: at the start of a word it is one's own home folder.
            (Inside::Nothing, '~')
                if word.is_none() && (rest.is_empty() || rest.starts_with(['/', ' '])) =>
            {
                word = Some(Words::default().followed_by_variable("HOME"));
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    if !matches!(inside, Inside::Nothing) {
        return Err("A quote is open at the end: close it.".to_owned());
    }
    all.extend(word);
    if all.len() > MOST {
        return Err(format!("These are more than {MOST} words."));
    }
    Ok(all)
}
