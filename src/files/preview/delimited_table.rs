//! CSV and similar files as a table (RFC 4180, with the delimiters that people use).

use crate::text::is_disruptive;

const MAX_ROWS: usize = 500;
const MAX_COLUMNS: usize = 200;
const MAX_CELL_CHARS: usize = 200;
/// How many rows show which delimiter it is.
const SAMPLE_ROWS: usize = 20;

/// The first rows of a delimited file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelimitedTable {
    pub columns: Vec<TableColumn>,
    /// Each has as many cells as there are columns.
    pub rows: Vec<Vec<String>>,
    /// Whether the file has more rows.
    pub has_more_rows: bool,
    /// Whether the file has more columns.
    pub has_more_columns: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    pub title: String,
    /// Whether every cell that isn't empty is a number.
    pub is_number: bool,
}

impl DelimitedTable {
    /// Reads the beginning of a file. `is_whole`: there is nothing after these bytes; otherwise the last row is dropped,
    /// because it may be a part of one.
    pub fn parse(bytes: &[u8], extension: &str, is_whole: bool) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
        let delimiter = if extension == "csv" { detect_delimiter(text) } else { '\t' };
        let mut reader = RowReader::new(text, delimiter);
        let mut rows: Vec<Vec<String>> = reader.by_ref().take(MAX_ROWS + 2).collect();
        if !is_whole && reader.rest.is_empty() && rows.len() < MAX_ROWS + 2 {
            rows.pop();
        }
        let has_more_rows = !is_whole || rows.len() > MAX_ROWS + 1;
        rows.truncate(MAX_ROWS + 1);
        let width = rows.iter().map(Vec::len).max().unwrap_or_default();
        for row in &mut rows {
            row.resize(width.min(MAX_COLUMNS), String::new());
        }
        let mut rows = rows.into_iter();
        let titles = rows.next().unwrap_or_default();
        let rows: Vec<Vec<String>> = rows.collect();
        let is_number = |column: usize| {
            let mut filled = rows.iter().map(|row| row[column].trim()).filter(|cell| !cell.is_empty()).peekable();
            filled.peek().is_some() && filled.all(|cell| cell.parse::<f64>().is_ok())
        };
        let columns = titles.into_iter().enumerate();
        let columns = columns.map(|(at, title)| TableColumn { is_number: is_number(at), title }).collect();
        Self { columns, rows, has_more_rows, has_more_columns: width > MAX_COLUMNS }
    }
}

/// The delimiter that gives the most rows of the same width, with the fewest quotes left over, and the most columns.
fn detect_delimiter(text: &str) -> char {
    let score = |delimiter: char| {
        let rows: Vec<Vec<String>> = RowReader::new(text, delimiter).take(SAMPLE_ROWS).collect();
        let width = rows.first().map(Vec::len).unwrap_or_default();
        let alike = rows.iter().filter(|row| row.len() == width && width > 1).count();
        let clean = rows.iter().filter(|row| !row.iter().any(|cell| cell.contains('"'))).count();
        (alike, clean, width)
    };
    // `max_by_key` takes the last of equals.
    ['\t', ';', ','].into_iter().max_by_key(|delimiter| score(*delimiter)).unwrap_or(',')
}

/// Reads row by row. Cells are cut to what is shown.
struct RowReader<'a> {
    rest: &'a str,
    delimiter: char,
}

impl<'a> RowReader<'a> {
    const fn new(text: &'a str, delimiter: char) -> Self {
        Self { rest: text, delimiter }
    }
}

impl Iterator for RowReader<'_> {
    type Item = Vec<String>;

    fn next(&mut self) -> Option<Vec<String>> {
        if self.rest.is_empty() {
            return None;
        }
        let mut row = RowInProgress::default();
        let mut chars = self.rest.char_indices().peekable();
        let mut is_quoted = false;
        let mut is_cell_start = true;
        while let Some((at, c)) = chars.next() {
            match c {
                '"' if is_quoted && chars.next_if(|(_, next)| *next == '"').is_some() => row.push('"'),
                '"' if is_quoted => is_quoted = false,
                '"' if is_cell_start => is_quoted = true,
                c if is_quoted => row.push(c),
                c if c == self.delimiter => row.end_cell(),
                '\r' if chars.peek().is_some_and(|(_, next)| *next == '\n') => {}
                '\n' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(row.finish());
                }
                c => row.push(c),
            }
            is_cell_start = c == self.delimiter && !is_quoted;
        }
        self.rest = "";
        Some(row.finish())
    }
}

#[derive(Default)]
struct RowInProgress {
    cells: Vec<String>,
    cell: String,
    chars: usize,
}

impl RowInProgress {
    fn push(&mut self, c: char) {
        match self.chars.cmp(&MAX_CELL_CHARS) {
            std::cmp::Ordering::Less => {
                let shown = if c.is_whitespace() && c.is_control() { ' ' } else { c };
                self.cell.push(if is_disruptive(shown) { '▯' } else { shown });
            }
            std::cmp::Ordering::Equal => self.cell.push('…'),
            std::cmp::Ordering::Greater => return,
        }
        self.chars += 1;
    }

    fn end_cell(&mut self) {
        // One more than is shown tells that there are more.
        if self.cells.len() <= MAX_COLUMNS {
            self.cells.push(std::mem::take(&mut self.cell));
        }
        self.cell.clear();
        self.chars = 0;
    }

    fn finish(mut self) -> Vec<String> {
        self.end_cell();
        self.cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> DelimitedTable {
        DelimitedTable::parse(text.as_bytes(), "csv", true)
    }

    fn titles(table: &DelimitedTable) -> Vec<&str> {
        table.columns.iter().map(|column| column.title.as_str()).collect()
    }

    #[test]
    fn quotes_line_breaks_and_doubled_quotes_are_read_as_the_rfc_says() {
        let table = parse("\u{FEFF}name,note\r\n\"a, b\",\"say \"\"hi\"\"\nnow\"\r\nc,\r\n");
        assert_eq!(titles(&table), ["name", "note"]);
        assert_eq!(table.rows, [vec!["a, b", "say \"hi\" now"], vec!["c", ""]]);
        assert!(!table.has_more_rows && !table.has_more_columns);
    }

    #[test]
    fn the_delimiter_is_found() {
        for (text, expected) in [
            ("a,b,c\n1,2,3\n", vec!["a", "b", "c"]),
            ("a;b\n1,5;2,5\n3,5;4,5\n", vec!["a", "b"]),
            ("a\tb\n1, x\t2\n", vec!["a", "b"]),
            ("only\n1\n2\n", vec!["only"]),
            ("name,\"x;y;z\"\na,\"p;q;r\"\n", vec!["name", "x;y;z"]),
        ] {
            assert_eq!(titles(&parse(text)), expected, "{text}");
        }
        assert_eq!(titles(&DelimitedTable::parse(b"a,b\tc\n", "tsv", true)), ["a,b", "c"]);
    }

    #[test]
    fn columns_of_numbers_are_known() {
        let table = parse("epoch,loss,note\n1,0.5,x\n2,1e-3,\n3,,y\n");
        assert_eq!(table.columns.iter().map(|column| column.is_number).collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn rows_columns_and_cells_are_bounded() {
        let wide = parse(&format!("{}\n", "x,".repeat(500)));
        assert_eq!((wide.columns.len(), wide.has_more_columns), (MAX_COLUMNS, true));
        let long = parse(&"1,2\n".repeat(1000));
        assert_eq!((long.rows.len(), long.has_more_rows), (MAX_ROWS, true));
        let exact = parse(&"1,2\n".repeat(MAX_ROWS + 1));
        assert_eq!((exact.rows.len(), exact.has_more_rows), (MAX_ROWS, false));
        let cell = parse(&format!("a,b\n{},<script>\n", "y".repeat(5000)));
        assert_eq!(cell.rows[0][0].chars().count(), MAX_CELL_CHARS + 1);
        assert_eq!(cell.rows[0][1], "<script>");
        let part = DelimitedTable::parse(b"a,b\n1,2\n3", "csv", false);
        assert_eq!((part.rows.len(), part.has_more_rows), (1, true));
        assert!(parse("").columns.is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_bounded_table(bytes in proptest::collection::vec(any::<u8>(), 0..3000), whole in any::<bool>()) {
            let table = DelimitedTable::parse(&bytes, "csv", whole);
            prop_assert!(table.columns.len() <= MAX_COLUMNS && table.rows.len() <= MAX_ROWS);
            for row in &table.rows {
                prop_assert_eq!(row.len(), table.columns.len());
                prop_assert!(row.iter().all(|cell| cell.chars().count() <= MAX_CELL_CHARS + 1));
                prop_assert!(!row.iter().any(|cell| cell.chars().any(is_disruptive)));
            }
        }

        #[test]
        fn many_quotes_and_delimiters_do_no_harm(text in "[\",;\t\r\nab]{0,400}") {
            let table = DelimitedTable::parse(text.as_bytes(), "csv", true);
            prop_assert!(table.rows.len() <= 400);
        }
    }
}
