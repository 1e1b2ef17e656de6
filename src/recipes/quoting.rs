//! Words of a bash script: what a person typed arrives in the program exactly as typed.

mod arguments;
mod path;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use self::arguments::parse_arguments;
pub use self::path::{PathShape, parse_path};
use crate::text::is_disruptive;

/// The variables that paths and arguments may hold. Everything else in them is taken literally.
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

/// A word for bash that reads as `text`, whatever that is.
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

/// A word that may hold known variables: pieces that are taken literally, and variables between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellWord {
    pieces: Vec<ShellWordPiece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ShellWordPiece {
    Literal(String),
    /// The value of a variable.
    Variable(String),
}

impl ShellWord {
    /// Text that holds no variables.
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

    /// The same with more text behind it.
    #[must_use]
    pub fn followed_by(mut self, text: &str) -> Self {
        self.push_str(text);
        self
    }

    /// The same with a variable behind it.
    #[must_use]
    pub fn followed_by_variable(mut self, name: &str) -> Self {
        self.pieces.push(ShellWordPiece::Variable(name.to_owned()));
        self
    }

    /// As one word of bash.
    pub fn to_shell(&self) -> String {
        let one = |piece: &ShellWordPiece| match piece {
            ShellWordPiece::Literal(text) => quote_word(text),
            ShellWordPiece::Variable(name) => format!("\"${name}\""),
        };
        if self.pieces.is_empty() { "''".to_owned() } else { self.pieces.iter().map(one).collect() }
    }

    /// With the variables filled in, as far as they are known outside of a job. None: one is not.
    pub fn resolve(&self, variables: &BTreeMap<String, String>) -> Option<String> {
        let one = |piece: &ShellWordPiece| match piece {
            ShellWordPiece::Literal(text) => Some(text.clone()),
            ShellWordPiece::Variable(name) => variables.get(name).cloned(),
        };
        self.pieces.iter().map(one).collect()
    }

    /// Whether it holds any variable at all.
    pub fn has_variables(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, ShellWordPiece::Variable(_)))
    }
}

/// What stands behind a dollar sign: a known variable and how many characters its name took, or nothing special.
/// `known` are further names that count, those of a sweep.
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
    if ALLOWED_VARIABLES.contains(&name) || known.iter().any(|one| one == name) {
        return Ok(Some((name.to_owned(), length)));
    }
    Err(format!(
        "${name} is not a variable that may stand here. These may: {}. Write a dollar sign that means itself as \\$.",
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

/// Whether a character can stand in a value at all. Those that are left out would begin new lines, make a script read
/// otherwise than it runs, or are the marks by which scripts remember which question made which line.
pub fn is_allowed_char(c: char) -> bool {
    !is_disruptive(c) && !matches!(c, '\u{f0000}'..='\u{f000f}')
}

/// Says what is wrong with a text that holds characters which cannot stand in a value.
pub fn reject_invisible_chars(text: &str) -> Result<(), String> {
    match text.chars().find(|c| !is_allowed_char(*c)) {
        None => Ok(()),
        Some('\n' | '\r') => Err("This must be one line.".to_owned()),
        Some(_) => Err("This holds a character that cannot be seen. Type it anew.".to_owned()),
    }
}
