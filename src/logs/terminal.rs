//! Turns the bytes of a log into the lines that a terminal would show: progress bars overwrite themselves, colours
//! become CSS classes, and all other control sequences are dropped.

mod screen;
mod style;
#[cfg(test)]
mod tests;

use screen::TerminalScreen;

use crate::text::{TerminalToken, TerminalTokenizer, is_disruptive};

/// How much of a log is read, counted from its end.
pub const MAX_BYTES: usize = 4 << 20;
/// How many lines are kept, counted from the end.
pub const MAX_LINES: usize = 20_000;
pub const MAX_LINE_CHARS: usize = 4_000;
/// The most spans in all; the rest of the log has no colours.
pub const MAX_SPANS: usize = 100_000;
/// Replaces characters that are invisible or change the text direction.
pub const HIDDEN_CHAR: char = '▯';
/// Marks the end of a line that was cut.
pub const CUT_MARK: char = '…';

/// A log, or the end of one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RenderedLog {
    pub lines: Vec<LogLine>,
    /// Whether it does not look like text.
    pub is_binary: bool,
    /// Whether earlier lines were dropped.
    pub is_cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogLine {
    /// Its spans in order; none for an empty line.
    pub spans: Vec<LogSpan>,
}

/// Text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSpan {
    pub text: String,
    /// CSS classes such as `fg-red b`; empty for plain text. The classes are `fg-` and `bg-` with
    /// `black red green yellow blue magenta cyan white`, each also after `bright-`, and `b dim i u rev`.
    pub class: &'static str,
}

impl LogLine {
    /// The line without styles.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}

impl RenderedLog {
    /// All lines without styles, as input for [`super::findings::find_errors`].
    pub fn texts(&self) -> Vec<String> {
        self.lines.iter().map(LogLine::text).collect()
    }
}

/// Renders a log. `starts_mid_line` says that the bytes are the end of something longer: everything before the first
/// line end (or carriage return) is then dropped, because part of a line, character or colour means nothing.
pub fn render(bytes: &[u8], starts_mid_line: bool) -> RenderedLog {
    let too_long = bytes.len().saturating_sub(MAX_BYTES);
    let mut bytes = &bytes[too_long..];
    if starts_mid_line || too_long > 0 {
        bytes = after_first_line(bytes);
    }
    bytes = without_partial_char(bytes);
    let text = String::from_utf8_lossy(bytes);
    let mut screen = TerminalScreen::new(text.len());
    for item in TerminalTokenizer::new(&text) {
        let c = match item {
            TerminalToken::Char(c) => c,
            TerminalToken::ControlSequence { params, command } => {
                run_control_sequence(params, command, &mut screen);
                continue;
            }
        };
        match c {
            ' '..='~' => screen.put(c),
            '\n' | '\u{B}' | '\u{C}' => screen.newline(),
            '\r' => screen.column = 0,
            '\t' => screen.column = (screen.column / 8 + 1) * 8,
            '\u{8}' => screen.column = screen.column.saturating_sub(1),
            '\0' | '\u{7}' | '\u{E}' | '\u{F}' | '\u{7F}'..='\u{9F}' | '\u{FEFF}' => {}
            c if is_disruptive(c) => screen.put(HIDDEN_CHAR),
            c => screen.put(c),
        }
    }
    let binary = is_binary(bytes);
    let (lines, dropped) = screen.into_lines();
    RenderedLog { lines, is_binary: binary, is_cut: starts_mid_line || too_long > 0 || dropped }
}

/// The bytes after the first line end. If there is none, the bytes after a partial character.
fn after_first_line(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    let half = || bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
    let from = end.map_or_else(half, |at| at + 1);
    &bytes[from..]
}

/// Drops an incomplete UTF-8 character at the end, which is still being written.
fn without_partial_char(bytes: &[u8]) -> &[u8] {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let length = match bytes[at] {
            0x80..=0xBF => continue,
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => 1,
        };
        return if back < length { &bytes[..at] } else { bytes };
    }
    bytes
}

/// Whether many bytes do not occur in text. Zeros at the start are the hole that a truncated file leaves.
fn is_binary(bytes: &[u8]) -> bool {
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(0);
    let odd = bytes[start..].iter().filter(|byte| matches!(byte, 0..=6 | 14..=26 | 28..=31)).count();
    odd >= 4 && odd * 50 > bytes.len() - start
}

/// Handles colours and the cursor moves that progress bars use.
fn run_control_sequence(params: &str, command: char, screen: &mut TerminalScreen) {
    let params = style::EscapeSequenceParams::parse(params);
    if params.is_private {
        return;
    }
    let count = usize::from(params.first().max(1));
    match command {
        'm' => screen.style.apply(&params),
        'A' => screen.move_up(count),
        'B' => screen.move_down(count),
        'C' => screen.column = (screen.column + count).min(MAX_LINE_CHARS),
        'D' => screen.column = screen.column.saturating_sub(count),
        'E' => {
            screen.move_down(count);
            screen.column = 0;
        }
        'F' => {
            screen.move_up(count);
            screen.column = 0;
        }
        'G' => screen.column = (count - 1).min(MAX_LINE_CHARS),
        'K' => screen.erase_in_line(params.first()),
        'J' if params.first() == 0 => screen.erase_below(),
        _ => {}
    }
}
