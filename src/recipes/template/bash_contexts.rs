//! Where in a piece of bash a value may appear: only where bash reads plain words.

use super::TemplateError;

/// What the current position is nested in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BashContext {
    Double,
    /// `$( … )` or a group in parentheses: plain words again.
    Paren,
    /// `${ … }`
    Brace,
    /// `(( … ))`
    Arithmetic,
}

impl BashContext {
    const fn description(self) -> &'static str {
        match self {
            Self::Double => "inside quotes",
            Self::Paren => "inside ( )",
            Self::Brace => "inside ${ }",
            Self::Arithmetic => "inside (( ))",
        }
    }
}

/// Rejects a template in which a value or a condition appears where quoting would not protect it.
pub fn check(source: &str) -> Result<(), TemplateError> {
    if let Some(at) = source.find("{#") {
        let line = source[..at].matches('\n').count() + 1;
        let problem = "Template comments aren't supported here; use a bash comment (#).".to_owned();
        return Err(TemplateError { line, problem });
    }
    let mut scan = BashContextScanner { rest: source, line: 1, inside: Vec::new(), before: '\n' };
    while !scan.rest.is_empty() {
        scan.scan_next()?;
    }
    match scan.inside.last() {
        None | Some(BashContext::Paren) => Ok(()),
        Some(inside) => scan.refuse(&format!("The script ends {}.", inside.description())),
    }
}

struct BashContextScanner<'a> {
    rest: &'a str,
    line: usize,
    inside: Vec<BashContext>,
    before: char,
}

impl BashContextScanner<'_> {
    fn refuse(&self, problem: &str) -> Result<(), TemplateError> {
        Err(TemplateError { line: self.line, problem: problem.to_owned() })
    }

    fn consume(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.matches('\n').count();
        self.before = taken.chars().next_back().unwrap_or(self.before);
        self.rest = rest;
    }

    #[expect(clippy::match_same_arms, reason = "the order decides; arms that do the same stand apart")]
    fn scan_next(&mut self) -> Result<(), TemplateError> {
        if self.rest.starts_with("{{") || self.rest.starts_with("{%") {
            return self.scan_tag();
        }
        let top = self.inside.last().copied();
        let is_word_start = self.before.is_whitespace() || "();|&<>".contains(self.before);
        let is_before_tag = self.rest[1..].starts_with("{{") || self.rest[1..].starts_with("{%");
        match (top, self.rest.as_bytes()[0]) {
            (Some(BashContext::Double), b'"') => self.leave(1),
            (_, b'\\' | b'$' | b'<') if is_before_tag => self.refuse("A value or condition can't follow \\, $ or <."),
            (_, b'\\') => {
                let next = self.rest[1..].chars().next().map_or(0, char::len_utf8);
                self.consume(1 + next);
                Ok(())
            }
            (_, b'$') if self.rest.starts_with("$'") && top != Some(BashContext::Double) => {
                self.refuse("Use ordinary quotes instead of $'…'.")
            }
            (_, b'$') if self.rest.starts_with("${") => self.enter(BashContext::Brace, 2),
            (_, b'$') if self.rest.starts_with("$((") => self.enter(BashContext::Arithmetic, 3),
            (_, b'$') if self.rest.starts_with("$(") => self.enter(BashContext::Paren, 2),
            (_, b'`') => self.refuse("Use $( ) instead of backticks."),
            (Some(BashContext::Double), _) => self.advance(),
            (Some(BashContext::Brace), b'}') => self.leave(1),
            (Some(BashContext::Arithmetic), b')') if self.rest.starts_with("))") => self.leave(2),
            // Bash may still parse this as commands, and then these characters would mean something else.
            (Some(BashContext::Arithmetic), b'"' | b'\'' | b';' | b'\n' | b'#') => {
                self.refuse("Only numbers and variables are allowed inside (( )).")
            }
            (Some(BashContext::Arithmetic), _) => self.advance(),
            (_, b'\'') => self.scan_single_quotes(),
            (_, b'"') => self.enter(BashContext::Double, 1),
            (Some(BashContext::Brace), _) => self.advance(),
            (_, b'#') if is_word_start => self.scan_comment(),
            (_, b'<') if self.rest.starts_with("<<<") => {
                self.consume(3);
                Ok(())
            }
            (_, b'<') if self.rest.starts_with("<<") => {
                self.refuse("Here-documents (<<) aren't supported here; use printf.")
            }
            (_, b'(') if self.rest.starts_with("((") => self.refuse("Use [ … ] or $(( … )) instead of (( … ))."),
            (Some(_), b'c') if is_word_start && self.rest.starts_with("case") => {
                self.refuse("A case can't be inside $( ).")
            }
            (Some(BashContext::Paren), b'(') => self.enter(BashContext::Paren, 1),
            (Some(BashContext::Paren), b')') => self.leave(1),
            _ => self.advance(),
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "one of the ways on of `step`")]
    fn advance(&mut self) -> Result<(), TemplateError> {
        let length = self.rest.chars().next().map_or(1, char::len_utf8);
        self.consume(length);
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "one of the ways on of `step`")]
    fn enter(&mut self, inside: BashContext, length: usize) -> Result<(), TemplateError> {
        self.inside.push(inside);
        self.consume(length);
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "one of the ways on of `step`")]
    fn leave(&mut self, length: usize) -> Result<(), TemplateError> {
        self.inside.pop();
        self.consume(length);
        Ok(())
    }

    /// Scans a value or a condition.
    fn scan_tag(&mut self) -> Result<(), TemplateError> {
        if let Some(inside) = self.inside.iter().find(|inside| **inside != BashContext::Paren) {
            return self.refuse(&format!(
                "A value can't be {}: it's already quoted. Pass it to the program as a separate word.",
                inside.description()
            ));
        }
        let is_condition = self.rest.starts_with("{%");
        let close = if is_condition { "%}" } else { "}}" };
        // Not within the first two characters: `{%}` is not a tag.
        match self.rest[2..].find(close).map(|at| at + 2) {
            Some(at) if !is_known_tag(&self.rest[2..at], is_condition) => {
                self.refuse("Only values, {% if … %} and {% for … %} are supported here.")
            }
            Some(at) => {
                self.consume(at + 2);
                // Whatever follows is attached to a quoted word.
                self.before = '}';
                Ok(())
            }
            None => self.refuse(&format!("{close} is missing.")),
        }
    }

    /// Skips to the closing quote; rejects a value inside.
    fn scan_single_quotes(&mut self) -> Result<(), TemplateError> {
        let end = self.rest[1..].find('\'');
        let Some(end) = end else { return self.refuse("A single quote isn't closed.") };
        let text = &self.rest[1..=end];
        if text.contains("{{") || text.contains("{%") {
            return self.refuse(
                "A value can't be inside quotes: it's already quoted. Pass it to the program as a separate word.",
            );
        }
        self.consume(end + 2);
        Ok(())
    }

    fn scan_comment(&mut self) -> Result<(), TemplateError> {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        if self.rest[..end].contains("{{") || self.rest[..end].contains("{%") {
            return self.refuse("A value can't be in a comment.");
        }
        self.consume(end);
        Ok(())
    }
}

/// Whether a tag is one of the few that we and the engine read the same way: none that changes how the rest is
/// parsed, and no text in it that could look like the end of a tag.
fn is_known_tag(inside: &str, is_condition: bool) -> bool {
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
