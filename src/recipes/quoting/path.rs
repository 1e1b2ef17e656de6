//! Paths as people type them: a few variables are expanded, everything else is literal.

use super::{ShellWord, parse_variable, reject_invisible_chars};

/// Linux allows no longer paths.
const MAX_PATH_LEN: usize = 4096;

/// How a path may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStartRule {
    /// Absolute: `/…`, `~/…`, `$SCRATCH/…`.
    Absolute,
    /// Absolute, or relative to the job's working folder.
    Relative,
}

/// Parses a path. `known`: sweep variables that may appear in it.
pub fn parse_path(text: &str, shape: PathStartRule, known: &[String]) -> Result<ShellWord, String> {
    reject_invisible_chars(text)?;
    if text.len() > MAX_PATH_LEN {
        return Err(format!("A path can have at most {MAX_PATH_LEN} characters."));
    }
    if text.split('/').any(|step| step == "..") {
        return Err("Enter the full path, without “..”.".to_owned());
    }
    let mut words = ShellWord::default();
    let mut rest = text;
    if text == "~" || text.starts_with("~/") {
        words = words.followed_by_variable("HOME");
        rest = &text[1..];
    } else if text.starts_with('~') {
        return Err("Enter the full path: ~ works only for your own home folder.".to_owned());
    } else if text.starts_with('-') {
        // Programs would take a leading dash for an option.
        words = words.followed_by("./");
    }
    let words = expand_variables(words, rest, known)?;
    let is_full = text.starts_with(['/', '~', '$']);
    if shape == PathStartRule::Absolute && !is_full {
        return Err("Enter the full path, starting with /, ~ or a variable such as $SCRATCH.".to_owned());
    }
    Ok(words)
}

/// Parses an address, or something else that may be a path: known variables and a leading `~` are expanded, everything
/// else is literal. `known`: sweep variables that may appear in it.
pub fn parse_location(text: &str, known: &[String]) -> Result<ShellWord, String> {
    reject_invisible_chars(text)?;
    if text == "~" || text.starts_with("~/") {
        return expand_variables(ShellWord::default().followed_by_variable("HOME"), &text[1..], known);
    }
    expand_variables(ShellWord::default(), text, known)
}

/// Appends text in which known variables are expanded.
fn expand_variables(mut words: ShellWord, text: &str, known: &[String]) -> Result<ShellWord, String> {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let plain = rest.find(['$', '\\']).unwrap_or(rest.len());
        if plain > 0 {
            words.push_str(&rest[..plain]);
            rest = &rest[plain..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '$' => match parse_variable(rest, known)? {
                Some((name, length)) => {
                    words = words.followed_by_variable(&name);
                    rest = &rest[length..];
                }
                None => words.push(c),
            },
            // An escaped, literal dollar sign.
            '\\' if rest.starts_with('$') => {
                words.push('$');
                rest = &rest[1..];
            }
            _ => words.push(c),
        }
    }
    Ok(words)
}
