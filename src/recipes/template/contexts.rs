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
    if let Some(at) = source.find("{#") {
        let line = source[..at].matches('\n').count() + 1;
        let problem = "Comments in braces are not known here; use # of bash.".to_owned();
        return Err(TemplateError { line, problem });
    }
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

    #[expect(
        clippy::match_same_arms,
        reason = "the order decides; arms that do the same stand apart"
    )]
    fn step(&mut self) -> Result<(), TemplateError> {
        if self.rest.starts_with("{{") || self.rest.starts_with("{%") {
            return self.tag();
        }
        let top = self.inside.last().copied();
        let is_word_start = self.before.is_whitespace() || "();|&<>".contains(self.before);
        let is_before_tag = self.rest[1..].starts_with("{{") || self.rest[1..].starts_with("{%");
        match (top, self.rest.as_bytes()[0]) {
            (Some(Inside::Double), b'"') => self.leave(1),
            (_, b'\\' | b'$' | b'<') if is_before_tag => {
                self.refuse("No \\, $ or < may stand before a value or a condition.")
            }
            (_, b'\\') => {
                let next = self.rest[1..].chars().next().map_or(0, char::len_utf8);
                self.take(1 + next);
                Ok(())
            }
            (_, b'$') if self.rest.starts_with("$'") && top != Some(Inside::Double) => {
                self.refuse("Write $'…' as ordinary quotes.")
            }
            (_, b'$') if self.rest.starts_with("${") => self.enter(Inside::Brace, 2),
            (_, b'$') if self.rest.starts_with("$((") => self.enter(Inside::Arithmetic, 3),
            (_, b'$') if self.rest.starts_with("$(") => self.enter(Inside::Paren, 2),
            (_, b'`') => self.refuse("Write $( ) instead of backticks."),
            (Some(Inside::Double), _) => self.next(),
            (Some(Inside::Brace), b'}') => self.leave(1),
            (Some(Inside::Arithmetic), b')') if self.rest.starts_with("))") => self.leave(2),
            // Bash may read it as commands after all, and then these would mean something else.
            (Some(Inside::Arithmetic), b'"' | b'\'' | b';' | b'\n' | b'#') => {
                self.refuse("Only numbers and variables may stand inside (( )).")
            }
            (Some(Inside::Arithmetic), _) => self.next(),
            (_, b'\'') => self.single(),
            (_, b'"') => self.enter(Inside::Double, 1),
            (Some(Inside::Brace), _) => self.next(),
            (_, b'#') if is_word_start => self.comment(),
            (_, b'<') if self.rest.starts_with("<<<") => {
                self.take(3);
                Ok(())
            }
            (_, b'<') if self.rest.starts_with("<<") => {
                self.refuse("Here-documents (<<) are not known here; use printf.")
            }
            (_, b'(') if self.rest.starts_with("((") => {
                self.refuse("Write [ … ] or $(( … )) instead of (( … )).")
            }
            (Some(_), b'c') if is_word_start && self.rest.starts_with("case") => {
                self.refuse("A case cannot stand inside $( ).")
            }
            (Some(Inside::Paren), b'(') => self.enter(Inside::Paren, 1),
            (Some(Inside::Paren), b')') => self.leave(1),
            _ => self.next(),
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "one of the ways on of `step`")]
    fn next(&mut self) -> Result<(), TemplateError> {
        let length = self.rest.chars().next().map_or(1, char::len_utf8);
        self.take(length);
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "one of the ways on of `step`")]
    fn enter(&mut self, inside: Inside, length: usize) -> Result<(), TemplateError> {
        self.inside.push(inside);
        self.take(length);
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "one of the ways on of `step`")]
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
        let is_condition = self.rest.starts_with("{%");
        let close = if is_condition { "%}" } else { "}}" };
        // Not within the first two signs: `{%}` is none.
        match self.rest[2..].find(close).map(|at| at + 2) {
            Some(at) if !is_known(&self.rest[2..at], is_condition) => {
                self.refuse("Only values, {% if … %} and {% for … %} are known here.")
            }
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

/// Whether a tag is one of the few that mean the same to us as to the engine: no tag that changes how the rest is read, and
/// no text in it that could look like the end of one.
fn is_known(inside: &str, is_condition: bool) -> bool {
    let mut quote: Option<char> = None;
    for c in inside.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) if matches!(c, '{' | '}' | '%' | '\\') => return false,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None if matches!(c, '{' | '}' | '|' | '(' | '~' | '\n') => return false,
            _ => {}
        }
    }
    let word = inside.trim_start_matches(['-', '+']).split_whitespace().next().unwrap_or_default();
    let known = ["if", "elif", "else", "endif", "for", "endfor"];
    let word = word.trim_end_matches(['-', '+']);
    quote.is_none() && (!is_condition || known.contains(&word))
}
