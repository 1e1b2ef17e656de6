//! The lines of a log while they are written: a cursor that can move back, and the characters in place.

use std::collections::VecDeque;

use super::style::TextStyle;
use super::{CUT_MARK, LogLine, LogSpan, MAX_LINE_CHARS, MAX_LINES, MAX_SPANS};

const MAX_SPANS_PER_LINE: usize = 500;

#[derive(Default)]
struct TerminalRow {
    cells: Vec<(char, TextStyle)>,
    is_cut: bool,
}

/// All lines, and the cursor.
pub struct TerminalScreen {
    rows: VecDeque<TerminalRow>,
    row: usize,
    /// The cursor's column.
    pub column: usize,
    pub style: TextStyle,
    /// How many more spaces may be filled in: cursor moves must not turn a little input into a lot of output.
    blanks: usize,
    has_dropped: bool,
}

impl TerminalScreen {
    /// An empty screen for this many bytes of input.
    pub fn new(bytes: usize) -> Self {
        Self {
            rows: VecDeque::from([TerminalRow::default()]),
            row: 0,
            column: 0,
            style: TextStyle::default(),
            blanks: bytes.saturating_mul(4).saturating_add(10_000),
            has_dropped: false,
        }
    }

    /// Overwrites the character at the cursor, and moves on by one.
    pub fn put(&mut self, c: char) {
        let Some(row) = self.rows.get_mut(self.row) else { return };
        if self.column >= MAX_LINE_CHARS {
            row.is_cut = true;
            return;
        }
        let missing = self.column.saturating_sub(row.cells.len());
        if missing > 0 {
            let missing = missing.min(self.blanks);
            self.blanks -= missing;
            row.cells.resize(row.cells.len() + missing, (' ', TextStyle::default()));
            self.column = row.cells.len();
        }
        match row.cells.get_mut(self.column) {
            Some(cell) => *cell = (c, self.style),
            None => row.cells.push((c, self.style)),
        }
        self.column += 1;
    }

    /// Moves to the start of the next line. Drops the first line if there are too many.
    pub fn newline(&mut self) {
        // Tabs at the end of a line are part of it.
        self.pad_to_cursor();
        self.column = 0;
        self.row += 1;
        if self.row < self.rows.len() {
            return;
        }
        // Lines in a log tend to have similar lengths.
        let like = self.rows.back().map_or(0, |row| row.cells.len()).min(128);
        self.rows.push_back(TerminalRow { cells: Vec::with_capacity(like), is_cut: false });
        if self.rows.len() > MAX_LINES + 1 {
            self.rows.pop_front();
            self.row -= 1;
            self.has_dropped = true;
        }
    }

    /// Moves up, at most to the first line.
    pub fn move_up(&mut self, lines: usize) {
        self.row = self.row.saturating_sub(lines);
    }

    /// Moves down, at most to the last line.
    pub fn move_down(&mut self, lines: usize) {
        self.row = self.row.saturating_add(lines).min(self.rows.len() - 1);
    }

    /// Clears to the right of the cursor (0), to its left (1) or the whole line.
    pub fn erase_in_line(&mut self, which: u16) {
        let (column, Some(row)) = (self.column, self.rows.get_mut(self.row)) else { return };
        match which {
            0 => row.cells.truncate(column),
            1 if column + 1 < row.cells.len() => {
                row.cells[..=column].fill((' ', TextStyle::default()));
            }
            _ => row.cells.clear(),
        }
        row.is_cut &= which == 1;
    }

    /// Clears to the right of the cursor and below it.
    pub fn erase_below(&mut self) {
        self.erase_in_line(0);
        self.rows.truncate(self.row + 1);
    }

    /// The lines, and whether earlier ones were dropped.
    pub fn into_lines(mut self) -> (Vec<LogLine>, bool) {
        self.pad_to_cursor();
        if self.rows.back().is_some_and(|row| row.cells.is_empty()) {
            self.rows.pop_back();
        }
        if self.rows.len() > MAX_LINES {
            self.rows.pop_front();
            self.has_dropped = true;
        }
        let mut left = MAX_SPANS;
        let lines = self.rows.into_iter().map(|row| to_log_line(&row, &mut left)).collect();
        (lines, self.has_dropped)
    }

    /// Fills with spaces up to the cursor, if it is beyond the end of the line.
    fn pad_to_cursor(&mut self) {
        let column = self.column.min(MAX_LINE_CHARS);
        let Some(row) = self.rows.get_mut(self.row) else { return };
        let missing = column.saturating_sub(row.cells.len()).min(self.blanks);
        self.blanks -= missing;
        row.cells.resize(row.cells.len() + missing, (' ', TextStyle::default()));
    }
}

/// Builds a line's spans, without styles if there are too many.
fn to_log_line(row: &TerminalRow, left: &mut usize) -> LogLine {
    let mut spans: Vec<LogSpan> = Vec::new();
    let most = MAX_SPANS_PER_LINE.min(*left);
    let mut rest = row.cells.as_slice();
    while let Some((_, style)) = rest.first() {
        let last = spans.len() + 1 >= most;
        let same = rest.iter().take_while(|(_, other)| last || other == style).count();
        let (now, later) = rest.split_at(same);
        let class = if last { "" } else { style.class() };
        let mut text = String::with_capacity(now.len());
        text.extend(now.iter().map(|(c, _)| *c));
        spans.push(LogSpan { text, class });
        rest = later;
    }
    if row.is_cut {
        spans.push(LogSpan { text: CUT_MARK.to_string(), class: "dim" });
    }
    *left = left.saturating_sub(spans.len());
    LogLine { spans }
}
