//! What a terminal shows, kept so that whoever looks at it next sees the same. Output is hostile: the worst that it may
//! do is to spoil its own screen.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::ssh::terminal::TerminalSize;

/// How many lines that have scrolled away are kept.
const SCROLLBACK_ROWS: usize = 200;
/// Brings the viewer's terminal to its first state, with nothing above the screen.
const RESET: &[u8] = b"\x1bc";
const ENTER_ALTERNATE_SCREEN: &[u8] = b"\x1b[?1049h";

pub struct RememberedScreen {
    parser: vt100::Parser,
    size: TerminalSize,
}

impl RememberedScreen {
    pub fn new(size: TerminalSize) -> Self {
        Self { parser: vt100::Parser::new(size.rows(), size.cols(), SCROLLBACK_ROWS), size }
    }

    /// Takes what the program has printed.
    pub fn process(&mut self, bytes: &[u8]) {
        self.guarded(|parser| parser.process(bytes));
    }

    pub fn resize(&mut self, size: TerminalSize) {
        if size != self.size {
            self.scroll_to_cursor(size.rows());
            self.size = size;
            self.guarded(|parser| parser.screen_mut().set_size(size.rows(), size.cols()));
        }
    }

    /// With fewer rows, the last ones would be lost: as in other terminals, the first ones scroll away instead.
    fn scroll_to_cursor(&mut self, rows: u16) {
        let (row, col) = self.parser.screen().cursor_position();
        let excess = (row + 1).saturating_sub(rows);
        if excess > 0 && !self.is_alternate() {
            let newlines = "\n".repeat(excess.into());
            let (last, row, col) = (self.size.rows(), row + 1 - excess, col + 1);
            self.process(format!("\x1b[{last};1H{newlines}\x1b[{row};{col}H").as_bytes());
        }
    }

    /// Whether a program such as an editor has the whole screen. What lies below it isn't known until it ends.
    pub fn is_alternate(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    /// What brings another terminal into the same state. It contains nothing that a terminal would answer to.
    pub fn snapshot(&mut self) -> Vec<u8> {
        let mut bytes = RESET.to_vec();
        self.guarded(|parser| {
            let screen = parser.screen_mut();
            if screen.alternate_screen() {
                bytes.extend(ENTER_ALTERNATE_SCREEN);
            } else {
                append_scrollback(screen, &mut bytes);
            }
            bytes.extend(screen.state_formatted());
        });
        bytes
    }

    /// The text of the screen, as a person reads it.
    #[cfg(test)]
    pub fn text(&self) -> String {
        self.parser.screen().contents()
    }

    /// The parser is someone else's code on hostile input: if it gives up, an empty screen takes over.
    fn guarded(&mut self, work: impl FnOnce(&mut vt100::Parser)) {
        if catch_unwind(AssertUnwindSafe(|| work(&mut self.parser))).is_err() {
            tracing::warn!("A terminal's screen could not follow its output and was cleared");
            self.parser = vt100::Parser::new(self.size.rows(), self.size.cols(), SCROLLBACK_ROWS);
        }
    }
}

/// Writes the lines above the screen, and scrolls them away.
fn append_scrollback(screen: &mut vt100::Screen, bytes: &mut Vec<u8>) {
    let (rows, cols) = screen.size();
    screen.set_scrollback(usize::MAX);
    let above = screen.scrollback();
    let mut left = above;
    while left > 0 {
        screen.set_scrollback(left);
        let count = left.min(usize::from(rows));
        for row in screen.rows_formatted(0, cols).take(count) {
            bytes.extend(row);
            bytes.extend(b"\x1b[m\r\n");
        }
        left -= count;
    }
    screen.set_scrollback(0);
    if above > 0 {
        bytes.extend(b"\r\n".repeat(usize::from(rows.saturating_sub(1))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(cols: u16, rows: u16) -> RememberedScreen {
        RememberedScreen::new(TerminalSize::clamped(cols, rows))
    }

    #[test]
    fn snapshot_gives_the_same_screen() {
        let mut first = screen(40, 5);
        for line in 0..30 {
            first.process(format!("\x1b[3{}mline {line} ä\u{1F600}\x1b[m\r\n", line % 8).as_bytes());
        }
        first.process(b"$ \x1b[?2004h");
        let mut second = screen(40, 5);
        second.process(&first.snapshot());
        assert_eq!(second.text(), first.text());
        assert_eq!(second.parser.screen().cursor_position(), first.parser.screen().cursor_position());
        assert!(second.parser.screen().bracketed_paste());
        for above in [1, 7, 26] {
            for screen in [&mut first, &mut second] {
                screen.parser.screen_mut().set_scrollback(above);
            }
            assert_eq!(second.text(), first.text(), "{above} lines up");
        }
        assert!(first.text().starts_with("line 0 ä"), "{}", first.text());
    }

    #[test]
    fn smaller_window_shows_the_end() {
        let mut screen = screen(20, 6);
        screen.process(b"1\r\n2\r\n3\r\n4\r\n5\r\n$ ls");
        screen.resize(TerminalSize::clamped(20, 3));
        assert_eq!(screen.text(), "4\n5\n$ ls");
        assert_eq!(screen.parser.screen().cursor_position(), (2, 4));
        screen.parser.screen_mut().set_scrollback(1);
        assert!(screen.text().starts_with("3\n4"), "above it is the rest: {}", screen.text());
    }

    #[test]
    fn program_with_the_whole_screen_is_picked_up_and_ends() {
        let mut first = screen(20, 4);
        first.process(b"before\r\n\x1b[?1049h\x1b[Hfile");
        assert!(first.is_alternate());
        let mut second = screen(20, 4);
        second.process(&first.snapshot());
        assert!(second.is_alternate());
        assert_eq!(second.text(), "file");
        first.process(b"\x1b[?1049l");
        second.process(&first.snapshot());
        assert_eq!((second.is_alternate(), second.text()), (false, "before".to_owned()));
    }

    #[test]
    fn questions_to_the_terminal_are_not_repeated() {
        let mut first = screen(20, 4);
        first.process(b"\x1b[c\x1b[6n\x1b]10;?\x07\x1b[>c\x1bP+q544e\x1b\\text\x1b]52;c;c2VjcmV0\x07");
        let snapshot = String::from_utf8(first.snapshot()).unwrap();
        assert!(snapshot.contains("text"));
        for query in ["\x1b[c", "\x1b[6n", "\x1b]", "\x1b[>", "\x1bP"] {
            assert!(!snapshot.contains(query), "{query:?} in {snapshot:?}");
        }
    }

    #[test]
    fn any_bytes_and_sizes_leave_a_screen() {
        let mut one = screen(8, 2);
        let mut state = 7_u32;
        for step in 0..3000_u32 {
            let mut bytes = Vec::new();
            for _ in 0..40 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                bytes.push(match state >> 28 {
                    0..=4 => 0x1b,
                    5 | 6 => b'[',
                    7 => b';',
                    8 => 0xe3,
                    _ => u8::try_from((state >> 16) & 0xff).unwrap(),
                });
            }
            one.process(&bytes);
            if step % 10 == 0 {
                let size = u16::try_from(state >> 20 & 63).unwrap();
                one.resize(TerminalSize::clamped(size, size / 2));
                assert!(!one.snapshot().is_empty());
            }
        }
        one.process(b"\x1bc\x1b[?1049lwell");
        assert!(one.text().contains("well"));
    }
}
