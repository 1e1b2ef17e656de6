//! Parses text written for a terminal into characters and control sequences. We don't use the `vte` crate: its titles
//! and device strings continue across line ends, so that one could swallow a login prompt.

use std::str::Chars;

/// One item of terminal text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalToken<'a> {
    /// Any character that doesn't start an escape; may be a control character.
    Char(char),
    /// `ESC [ params command`, as in `ESC [ 1;31 m`.
    ControlSequence { params: &'a str, command: char },
}

/// Reads text item by item. Skips titles, links and all other escapes.
pub struct TerminalTokenizer<'a>(Chars<'a>);

impl<'a> TerminalTokenizer<'a> {
    pub fn new(text: &'a str) -> Self {
        Self(text.chars())
    }

    /// Only the characters.
    pub fn chars(text: &'a str) -> impl Iterator<Item = char> {
        Self::new(text).filter_map(|item| match item {
            TerminalToken::Char(c) => Some(c),
            TerminalToken::ControlSequence { .. } => None,
        })
    }

    fn next_if(&mut self, fits: impl Fn(char) -> bool) -> Option<char> {
        let mut ahead = self.0.clone();
        let c = ahead.next().filter(|c| fits(*c))?;
        self.0 = ahead;
        Some(c)
    }

    /// Reads what follows an escape character.
    fn read_escape(&mut self) -> Option<TerminalToken<'a>> {
        if self.next_if(|c| c == '[').is_some() {
            return self.read_control_sequence();
        }
        if self.next_if(|c| matches!(c, ']' | 'P' | 'X' | '^' | '_')).is_some() {
            self.skip_string();
        } else {
            while self.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            self.next_if(|c| matches!(c, '0'..='~'));
        }
        None
    }

    /// Parameters and the final letter. Without that letter it isn't a sequence, and is skipped.
    fn read_control_sequence(&mut self) -> Option<TerminalToken<'a>> {
        let rest = self.0.as_str();
        let (params, rest) = rest.split_at(rest.find(|c| !matches!(c, ' '..='?')).unwrap_or(rest.len()));
        self.0 = rest.chars();
        let command = self.next_if(|c| matches!(c, '@'..='~'))?;
        Some(TerminalToken::ControlSequence { params, command })
    }

    /// Skips a title or the like. It ends at the end of the line at the latest, so that it can't swallow what
    /// follows.
    fn skip_string(&mut self) {
        while let Some(c) = self.next_if(|c| !matches!(c, '\n' | '\r')) {
            match c {
                '\u{7}' | '\u{9C}' => return,
                '\u{1B}' => {
                    self.next_if(|c| c == '\\');
                    return;
                }
                _ => {}
            }
        }
    }
}

impl<'a> Iterator for TerminalTokenizer<'a> {
    type Item = TerminalToken<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let sequence = match self.0.next()? {
                '\u{1B}' => self.read_escape(),
                '\u{9B}' => self.read_control_sequence(),
                '\u{90}' | '\u{98}' | '\u{9D}'..='\u{9F}' => {
                    self.skip_string();
                    None
                }
                c => return Some(TerminalToken::Char(c)),
            };
            if sequence.is_some() {
                return sequence;
            }
        }
    }
}
