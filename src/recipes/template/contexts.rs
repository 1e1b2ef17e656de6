//! Where in a piece of bash a value may stand: only where bash reads plain words.

use super::TemplateError;

/// What bash is inside of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Double,
    /// `$( … )` or a group in parentheses: plain words again.
    Paren,
    /// `${ … }`
    Brace,
    /// `(( … ))`
    Arithmetic,
}

impl Inside {
    const fn words(self) -> &'static str {
        match self {
            Self::Double => "inside quotes",
            Self::Paren => "inside ( )",
            Self::Brace => "inside ${ }",
            Self::Arithmetic => "inside (( ))",
        }
    }
}

/// Refuses a template in which a value or a condition stands where quoting would not hold.
pub fn check(source: &str) -> Result<(), TemplateError> {
    let mut scan = Scan { rest: source, line: 1, inside: Vec::new(), before: '\n' };
    while !scan.rest.is_empty() {
        scan.step()?;
    }
    match scan.inside.last() {
        None | Some(Inside::Paren) => Ok(()),
        Some(inside) => scan.refuse(&format!("The script ends {}.", inside.words())),
    }
}

struct Scan<'a> {
    rest: &'a str,
    line: usize,
    inside: Vec<Inside>,
    /// The character before.
    before: char,
}

impl Scan<'_> {
    fn refuse(&self, problem: &str) -> Result<(), TemplateError> {
        Err(TemplateError { line: self.line, problem: problem.to_owned() })
    }

    fn take(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.matches('\n').count();
        self.before = taken.chars().next_back().unwrap_or(self.before);
        self.rest = rest;
    }

    fn step(&mut self) -> Result<(), TemplateError> {
        if self.rest.starts_with("{{") || self.rest.starts_with("{%") {
            return self.tag();
        }
        if self.rest.starts_with("{#") {
            return self.refuse("Comments in braces are not known here; use # of bash.");
        }
        let top = self.inside.last().copied();
        let is_word_start = self.before.is_whitespace() || "(;|&".contains(self.before);
        match (top, self.rest.as_bytes()[0]) {
            (Some(Inside::Double), b'"') => self.leave(1),
            (_, b'\\') => {
                if self.rest[1..].starts_with("{{") {
                    return self.refuse("A backslash must not stand before a value.");
                }
                let next = self.rest[1..].chars().next().map_or(0, char::len_utf8);
                self.take(1 + next);
                Ok(())
            }
            (_, b'$') if self.rest.starts_with("${") && !self.rest.starts_with("${{") => {
                self.enter(Inside::Brace, 2)
            }
            (_, b'$') if self.rest.starts_with("$((") => self.enter(Inside::Arithmetic, 3),
            (_, b'$') if self.rest.starts_with("$(") => self.enter(Inside::Paren, 2),
            (_, b'$') if self.rest[1..].starts_with("{{") => {
                self.refuse("A dollar sign must not stand before a value.")
            }
            (_, b'`') => self.refuse("Write $( ) instead of backticks."),
            (Some(Inside::Double), _) => self.next(),
            (Some(Inside::Brace), b'}') => self.leave(1),
            (Some(Inside::Arithmetic), b')') if self.rest.starts_with("))") => self.leave(2),
            (Some(Inside::Arithmetic), _) => self.next(),
            (_, b'\'') => self.single(),
            (_, b'"') => self.enter(Inside::Double, 1),
            (Some(Inside::Brace), _) => self.next(),
            (_, b'#') if is_word_start => self.comment(),
            (_, b'<') if self.rest.starts_with("<<") && !self.rest.starts_with("<<<") => {
                self.refuse("Here-documents (<<) are not known here; use printf.")
            }
            (_, b'(') if self.rest.starts_with("((") => self.enter(Inside::Arithmetic, 2),
            (Some(Inside::Paren), b'(') => self.enter(Inside::Paren, 1),
            (Some(Inside::Paren), b')') => self.leave(1),
            _ => self.next(),
        }
    }

    fn next(&mut self) -> Result<(), TemplateError> {
        let length = self.rest.chars().next().map_or(1, char::len_utf8);
        self.take(length);
        Ok(())
    }

    fn enter(&mut self, inside: Inside, length: usize) -> Result<(), TemplateError> {
        self.inside.push(inside);
        self.take(length);
        Ok(())
    }

    fn leave(&mut self, length: usize) -> Result<(), TemplateError> {
        self.inside.pop();
        self.take(length);
        Ok(())
    }

    /// A value or a condition.
    fn tag(&mut self) -> Result<(), TemplateError> {
        if let Some(inside) = self.inside.iter().find(|inside| **inside != Inside::Paren) {
            return self.refuse(&format!(
                "A value cannot stand {}: it is quoted already. Give it to the program as a word of its own.",
                inside.words()
            ));
        }
        let close = if self.rest.starts_with("{{") { "}}" } else { "%}" };
        match self.rest.find(close) {
            Some(at) => {
                self.take(at + 2);
                // What follows is glued to a quoted word.
                self.before = '}';
                Ok(())
            }
            None => self.refuse(&format!("{close} is missing.")),
        }
    }

    /// To the end of the quotes; a value in them is refused.
    fn single(&mut self) -> Result<(), TemplateError> {
        let end = self.rest[1..].find('\'');
        let Some(end) = end else { return self.refuse("A single quote is open to the end.") };
        let text = &self.rest[1..=end];
        if text.contains("{{") || text.contains("{%") {
            return self.refuse(
                "A value cannot stand inside quotes: it is quoted already. Give it to the program as a word of its own.",
            );
        }
        self.take(end + 2);
        Ok(())
    }

    fn comment(&mut self) -> Result<(), TemplateError> {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        if self.rest[..end].contains("{{") || self.rest[..end].contains("{%") {
            return self.refuse("A value cannot stand in a comment.");
        }
        self.take(end);
        Ok(())
    }
}
