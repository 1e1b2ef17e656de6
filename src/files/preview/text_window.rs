//! A window into a text of any length: which bytes to read, where to cut them, and the lines they show.

use std::ops::Range;

use crate::format;
use crate::logs::terminal::{self, LogLine};

/// How much of a text is shown at a time.
pub const WINDOW_BYTES: u64 = 64 * 1024;
/// Longer lines are broken up, so that nothing in them is lost.
const MAX_LINE_BYTES: usize = 2_000;
/// Fewer than the renderer keeps.
const MAX_WINDOW_LINES: usize = 10_000;

/// Which part of a text is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WindowPosition {
    #[default]
    Start,
    /// From this byte on.
    From(u64),
    /// Up to this byte.
    UpTo(u64),
    End,
}

/// A part of a text, as lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextWindow {
    /// The bytes of the file that are shown.
    pub range: Range<u64>,
    /// How long the whole file was.
    pub size: u64,
    pub lines: Vec<LogLine>,
    /// Whether lines were broken up because they were too long.
    pub has_broken_lines: bool,
}

impl WindowPosition {
    /// The bytes to read.
    pub fn range(self, size: u64) -> Range<u64> {
        match self {
            Self::Start => 0..size.min(WINDOW_BYTES),
            Self::From(from) => {
                let from = from.min(size);
                from..size.min(from.saturating_add(WINDOW_BYTES))
            }
            Self::UpTo(end) => {
                let end = end.min(size);
                end.saturating_sub(WINDOW_BYTES)..end
            }
            Self::End => size.saturating_sub(WINDOW_BYTES)..size,
        }
    }

    const fn reads_backwards(self) -> bool {
        matches!(self, Self::UpTo(_) | Self::End)
    }
}

impl TextWindow {
    /// Cuts what was read from `start` at line breaks and turns it into lines. `bytes` may be shorter than asked for:
    /// the file may have shrunk.
    pub fn new(position: WindowPosition, start: u64, bytes: &[u8], size: u64) -> Self {
        let length = |bytes: &[u8]| u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let (start, bytes) = if position.reads_backwards() {
            let kept = if start == 0 { bytes } else { without_first_partial_line(bytes) };
            let kept = last_lines(kept, MAX_WINDOW_LINES);
            (start + length(bytes) - length(kept), kept)
        } else {
            let is_whole = start.saturating_add(length(bytes)) >= size;
            let kept = if is_whole { bytes } else { without_last_partial_line(bytes) };
            (start, first_lines(kept, MAX_WINDOW_LINES))
        };
        let (shown, has_broken_lines) = break_long_lines(bytes);
        let rendered = terminal::render(&shown, false);
        Self { range: start..start + length(bytes), size, lines: rendered.lines, has_broken_lines }
    }

    /// Which part is shown; empty if it is all of it.
    pub fn position_words(&self) -> String {
        let (start, end) = (self.range.start, self.range.end);
        let size = format::bytes(self.size);
        match (self.has_earlier(), self.has_later()) {
            (false, false) => String::new(),
            (false, true) => format!("The first {} of {size}", format::bytes(end)),
            (true, false) => format!("The last {} of {size}", format::bytes(end.saturating_sub(start))),
            (true, true) => format!("From {} to {} of {size}", format::bytes(start), format::bytes(end)),
        }
    }

    pub const fn has_earlier(&self) -> bool {
        self.range.start > 0
    }

    pub const fn has_later(&self) -> bool {
        self.range.end < self.size
    }

    /// Whether the whole file is shown.
    pub const fn is_whole(&self) -> bool {
        !self.has_earlier() && !self.has_later()
    }
}

/// Text from a file as lines that are safe to show; at most `max` bytes of it, and whether that was all.
pub fn safe_lines(text: &str, max: usize) -> (Vec<LogLine>, bool) {
    let cut = &text[..floor_char_boundary(text.as_bytes(), max)];
    let (shown, _) = break_long_lines(first_lines(cut.as_bytes(), MAX_WINDOW_LINES));
    let mut lines = terminal::render(&shown, false).lines;
    if lines.last().is_some_and(|line| line.spans.is_empty()) {
        lines.pop();
    }
    (lines, cut.len() == text.len())
}

fn without_first_partial_line(bytes: &[u8]) -> &[u8] {
    let after = memchr::memchr(b'\n', bytes).map(|at| at + 1).filter(|from| *from < bytes.len());
    let partial = || bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
    &bytes[after.unwrap_or_else(partial)..]
}

fn without_last_partial_line(bytes: &[u8]) -> &[u8] {
    match memchr::memrchr(b'\n', bytes) {
        Some(at) => &bytes[..=at],
        None => &bytes[..floor_char_boundary(bytes, bytes.len())],
    }
}

fn first_lines(bytes: &[u8], most: usize) -> &[u8] {
    let end = memchr::memchr_iter(b'\n', bytes).nth(most.saturating_sub(1));
    end.map_or(bytes, |at| &bytes[..=at])
}

fn last_lines(bytes: &[u8], most: usize) -> &[u8] {
    let start = memchr::memrchr_iter(b'\n', bytes).nth(most);
    start.map_or(bytes, |at| &bytes[at + 1..])
}

/// The last place up to `at` that isn't inside a character. Where the bytes are no UTF-8, any place is as good.
fn floor_char_boundary(bytes: &[u8], at: usize) -> usize {
    let at = at.min(bytes.len());
    for back in 1..=at.min(3) {
        let length = match bytes[at - back] {
            0x80..=0xBF => continue,
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => 1,
        };
        return if back < length { at - back } else { at };
    }
    at
}

fn break_long_lines(bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut broken = Vec::with_capacity(bytes.len() + bytes.len() / MAX_LINE_BYTES);
    let mut has_long = false;
    for line in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
        let mut rest = line;
        while rest.len() > MAX_LINE_BYTES {
            let at = floor_char_boundary(rest, MAX_LINE_BYTES).max(1);
            broken.extend_from_slice(&rest[..at]);
            broken.push(b'\n');
            rest = &rest[at..];
            has_long = true;
        }
        broken.extend_from_slice(rest);
    }
    (broken, has_long)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::is_disruptive;
    use proptest::prelude::*;

    fn read(file: &[u8], position: WindowPosition) -> TextWindow {
        let size = file.len() as u64;
        let range = position.range(size);
        let bytes = &file[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()];
        TextWindow::new(position, range.start, bytes, size)
    }

    fn texts(window: &TextWindow) -> Vec<String> {
        window.lines.iter().map(LogLine::text).collect()
    }

    fn numbered(lines: usize) -> Vec<u8> {
        (0..lines).flat_map(|number| format!("line {number}\n").into_bytes()).collect()
    }

    #[test]
    fn windows_begin_and_end_at_line_breaks_and_lead_through_the_file() {
        let file = numbered(30_000);
        let mut window = read(&file, WindowPosition::Start);
        let mut seen = Vec::new();
        loop {
            assert!(!window.has_broken_lines);
            seen.extend(texts(&window).into_iter().filter(|line| !line.is_empty()));
            if !window.has_later() {
                break;
            }
            window = read(&file, WindowPosition::From(window.range.end));
        }
        assert_eq!(seen.len(), 30_000);
        assert_eq!((seen[0].as_str(), seen[29_999].as_str()), ("line 0", "line 29999"));
        assert!(!texts(&read(&file, WindowPosition::End))[0].is_empty());
        let last = read(&file, WindowPosition::End);
        let before = read(&file, WindowPosition::UpTo(last.range.start));
        assert_eq!(before.range.end, last.range.start);
        assert!(texts(&before)[0].starts_with("line "));
    }

    #[test]
    fn one_huge_line_is_broken_up_and_nothing_is_lost() {
        let file = "é".repeat(100_000).into_bytes();
        let mut shown = 0;
        let mut position = WindowPosition::Start;
        loop {
            let window = read(&file, position);
            assert!(window.has_broken_lines);
            shown += texts(&window).iter().map(|line| line.chars().filter(|c| *c == 'é').count()).sum::<usize>();
            if !window.has_later() {
                break;
            }
            position = WindowPosition::From(window.range.end);
        }
        assert_eq!(shown, 100_000);
    }

    #[test]
    fn hidden_characters_and_bytes_that_are_no_text_are_shown_as_such() {
        let window = read(b"a\xff\xe2\x80\xaeb\n\x1b[31mred\x1b[0m\n", WindowPosition::Start);
        assert_eq!(texts(&window)[0], "a\u{FFFD}▯b");
        assert_eq!(window.lines[1].spans[0].class, "fg-red");
    }

    #[test]
    fn a_file_that_shrank_ends_where_it_ends() {
        let window = TextWindow::new(WindowPosition::From(100), 100, b"", 50);
        assert_eq!((window.range.clone(), window.has_later(), window.has_earlier()), (100..100, false, true));
        assert!(read(b"", WindowPosition::End).is_whole());
    }

    #[test]
    fn a_window_of_line_breaks_keeps_its_lines() {
        let file = vec![b'\n'; 60_000];
        let window = read(&file, WindowPosition::Start);
        assert_eq!(window.range, 0..10_000);
        let window = read(&file, WindowPosition::End);
        assert_eq!(window.range, 50_000..60_000);
    }

    proptest! {
        #[test]
        fn any_bytes_give_bounded_lines(file in proptest::collection::vec(any::<u8>(), 0..5000), at in 0_u64..6000) {
            for position in [WindowPosition::Start, WindowPosition::From(at), WindowPosition::UpTo(at), WindowPosition::End] {
                let window = read(&file, position);
                prop_assert!(window.range.end <= file.len() as u64 && window.range.start <= window.range.end);
                for line in texts(&window) {
                    prop_assert!(line.chars().count() <= terminal::MAX_LINE_CHARS + 1);
                    prop_assert!(!line.chars().any(is_disruptive));
                }
            }
        }

        #[test]
        fn any_text_can_be_cut_anywhere(text in any::<String>(), max in 0_usize..200) {
            let (lines, _) = safe_lines(&text, max);
            prop_assert!(lines.len() <= max + 1);
        }
    }
}
