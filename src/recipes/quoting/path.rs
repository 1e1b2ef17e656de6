//! Paths as people type them: a few variables count, everything else is literal.

use super::{Words, refuse_tricks, variable};

/// Longer paths do not exist.
const LONGEST: usize = 4096;

/// How a path may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// At the top: `/…`, `~/…`, `$SCRATCH/…`.
    Full,
    /// Or below the folder that the job works in.
    Relative,
}

/// Reads a path. `known`: names of a sweep that may stand in it, too.
pub fn path(text: &str, shape: Shape, known: &[String]) -> Result<Words, String> {
    refuse_tricks(text)?;
    if text.len() > LONGEST {
        return Err(format!("A path has at most {LONGEST} characters."));
    }
    if text.split('/').any(|step| step == "..") {
        return Err("Write the path in full, without “..”.".to_owned());
    }
    let mut words = Words::default();
    let mut rest = text;
    if text == "~" || text.starts_with("~/") {
        words = words.followed_by_variable("HOME");
        rest = &text[1..];
    } else if text.starts_with('~') {
        return Err("Write the path in full: ~ stands for your own home folder only.".to_owned());
    } else if text.starts_with('-') {
        // Programs would take it for an option.
        words = words.followed_by("./");
    }
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '$' => match variable(rest, known)? {
                Some((name, length)) => {
                    words = words.followed_by_variable(&name);
                    rest = &rest[length..];
                }
                None => words.push(c),
            },
            // The way to write a dollar sign that means itself.
            '\\' if rest.starts_with('$') => {
                words.push('$');
                rest = &rest[1..];
            }
            _ => words.push(c),
        }
    }
    let is_full = text.starts_with(['/', '~', '$']);
    if shape == Shape::Full && !is_full {
        return Err(
            "Write the whole path: it begins with /, ~ or a variable such as $SCRATCH.".to_owned()
        );
    }
    Ok(words)
}
