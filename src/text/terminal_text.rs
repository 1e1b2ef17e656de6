//! Text that was written for a terminal, taken apart: its characters, and the control sequences between them. The `vte`
//! crate is not used: its titles and device strings go on across line ends, so that one could swallow a question.

use std::str::Chars;

/// A piece of text for a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalItem<'a> {
    /// Any character but those that begin an escape; may be a control character.
    Char(char),
    /// `ESC [ params command`, as in `ESC [ 1;31 m`.
    ControlSequence { params: &'a str, command: char },
}

/// Reads text piece by piece. Titles, links and all other escapes are left out.
pub struct TerminalText<'a>(Chars<'a>);

impl<'a> TerminalText<'a> {
    pub fn new(text: &'a str) -> Self {
        Self(text.chars())
    }

    /// The characters alone.
    pub fn chars(text: &'a str) -> impl Iterator<Item = char> {
        Self::new(text).filter_map(|item| match item {
            TerminalItem::Char(c) => Some(c),
            TerminalItem::ControlSequence { .. } => None,
        })
    }

    fn next_if(&mut self, fits: impl Fn(char) -> bool) -> Option<char> {
        let mut ahead = self.0.clone();
        let c = ahead.next().filter(|c| fits(*c))?;
        self.0 = ahead;
        Some(c)
    }

    /// What follows an escape character.
    fn read_escape(&mut self) -> Option<TerminalItem<'a>> {
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

    /// Parameters and the letter that ends them. Without that letter it is none, and left out.
    fn read_control_sequence(&mut self) -> Option<TerminalItem<'a>> {
        let rest = self.0.as_str();
        let (params, rest) =
            rest.split_at(rest.find(|c| !matches!(c, ' '..='?')).unwrap_or(rest.len()));
        self.0 = rest.chars();
        let command = self.next_if(|c| matches!(c, '@'..='~'))?;
        Some(TerminalItem::ControlSequence { params, command })
    }

    /// A title or the like, up to its end. It ends with its line at the latest, so that it cannot swallow what follows.
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

impl<'a> Iterator for TerminalText<'a> {
    type Item = TerminalItem<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let sequence = match self.0.next()? {
                '\u{1B}' => self.read_escape(),
                '\u{9B}' => self.read_control_sequence(),
                '\u{90}' | '\u{98}' | '\u{9D}'..='\u{9F}' => {
                    self.skip_string();
                    None
                }
                c => return Some(TerminalItem::Char(c)),
            };
            if sequence.is_some() {
                return sequence;
            }
        }
    }
}
