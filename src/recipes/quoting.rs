//! Quoting for bash: what a person typed reaches the program exactly as typed.

mod arguments;
mod path;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use self::arguments::parse_arguments;
pub use self::path::{PathStartRule, parse_location, parse_path};
use crate::text::is_disruptive;

/// The variables that paths and arguments may contain. Everything else is literal.
pub const ALLOWED_VARIABLES: &[&str] = &[
    "HOME",
    "SCRATCH",
    "PROJECT",
    "USERWORK",
    "USER",
    "SLURM_TMPDIR",
    "LOCALSCRATCH",
    "SLURM_JOB_ID",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_CPUS_PER_TASK",
    "SLURM_NNODES",
];

/// A bash word that evaluates to exactly `text`.
pub fn quote_word(text: &str) -> String {
    let is_plain = !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:,=+@%^".contains(c))
        && !looks_like_assignment(text);
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// `a=b` as the first word of a command would set a variable instead of naming a program.
fn looks_like_assignment(text: &str) -> bool {
    text.contains('=') && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// A word that may contain known variables: literal text with variables in between.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellWord {
    pieces: Vec<ShellWordPiece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ShellWordPiece {
    Literal(String),
    Variable(String),
}

impl ShellWord {
    /// Text without variables.
    pub fn literal(text: &str) -> Self {
        Self { pieces: vec![ShellWordPiece::Literal(text.to_owned())] }
    }

    fn push(&mut self, c: char) {
        self.push_str(c.encode_utf8(&mut [0; 4]));
    }

    fn push_str(&mut self, more: &str) {
        if let Some(ShellWordPiece::Literal(text)) = self.pieces.last_mut() {
            text.push_str(more);
        } else if !more.is_empty() {
            self.pieces.push(ShellWordPiece::Literal(more.to_owned()));
        }
    }

    /// Appends text.
    #[must_use]
    pub fn followed_by(mut self, text: &str) -> Self {
        self.push_str(text);
        self
    }

    /// Appends a variable.
    #[must_use]
    pub fn followed_by_variable(mut self, name: &str) -> Self {
        self.pieces.push(ShellWordPiece::Variable(name.to_owned()));
        self
    }

    /// As one bash word.
    pub fn to_shell(&self) -> String {
        let expand = |piece: &ShellWordPiece| match piece {
            ShellWordPiece::Literal(text) => quote_word(text),
            ShellWordPiece::Variable(name) => format!("\"${name}\""),
        };
        if self.pieces.is_empty() { "''".to_owned() } else { self.pieces.iter().map(expand).collect() }
    }

    /// Expands the variables that are known outside of a job. `None` if one isn't known.
    pub fn resolve(&self, variables: &BTreeMap<String, String>) -> Option<String> {
        let expand = |piece: &ShellWordPiece| match piece {
            ShellWordPiece::Literal(text) => Some(text.clone()),
            ShellWordPiece::Variable(name) => variables.get(name).cloned(),
        };
        self.pieces.iter().map(expand).collect()
    }
}

/// Parses what follows a dollar sign: a known variable and the length of its name, or nothing special. `known` lists
/// further allowed names: those of a sweep.
fn parse_variable(rest: &str, known: &[String]) -> Result<Option<(String, usize)>, String> {
    let (name, length) = if let Some(inside) = rest.strip_prefix('{') {
        let name = leading_name(inside);
        if !inside[name.len()..].starts_with('}') {
            return Ok(None);
        }
        (name, name.len() + 2)
    } else {
        let name = leading_name(rest);
        (name, name.len())
    };
    if name.is_empty() {
        return Ok(None);
    }
    if ALLOWED_VARIABLES.contains(&name) || known.iter().any(|known| known == name) {
        return Ok(Some((name.to_owned(), length)));
    }
    Err(format!(
        "You can't use ${name} here. Allowed variables: {}. For a literal dollar sign, write \\$.",
        ALLOWED_VARIABLES[..7].iter().map(|name| format!("${name}")).collect::<Vec<_>>().join(", ")
    ))
}

fn leading_name(text: &str) -> &str {
    let end = text
        .char_indices()
        .find(|(at, c)| !(c.is_ascii_alphabetic() || *c == '_' || (*at > 0 && c.is_ascii_digit())))
        .map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// Whether a value may contain this character. The excluded ones would start a new line, make a script read
/// differently from how it runs, or are the marks that record which question wrote which line.
pub fn is_allowed_char(c: char) -> bool {
    !is_disruptive(c) && !matches!(c, '\u{f0000}'..='\u{f000f}')
}

/// Explains which characters of a text are not allowed.
pub fn reject_invisible_chars(text: &str) -> Result<(), String> {
    match text.chars().find(|c| !is_allowed_char(*c)) {
        None => Ok(()),
        Some('\n' | '\r') => Err("Enter a single line.".to_owned()),
        Some(_) => Err("This contains an invisible character. Type it again.".to_owned()),
    }
}
