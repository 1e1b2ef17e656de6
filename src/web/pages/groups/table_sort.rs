//! The order of the tables on a group's pages: one table of a page can be sorted by one of its columns, with
//! `sort=members.gpus-desc` in the query string. Headings are links, so this works without JavaScript.

use std::cmp::Ordering;

use crate::explain::GlossaryTerm;

const MAX_VALUE_LEN: usize = 60;
const ASCENDING: &str = "asc";
const DESCENDING: &str = "desc";

/// The table and the column that the query string names; both empty for the usual order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableSort {
    table: String,
    column: String,
    is_ascending: bool,
}

/// A column that a table can be sorted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortColumn {
    /// Its name in the query string.
    pub code: String,
    pub label: String,
    pub is_number: bool,
    /// Whether the label is someone's name, in whatever script.
    pub is_name: bool,
    /// What the label means, where the page explains it.
    pub term: Option<GlossaryTerm>,
}

/// A column's heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortHeading {
    pub column: SortColumn,
    /// Sorts by the column; the other way round, if the table is sorted by it.
    pub href: String,
    /// For `aria-sort`; empty if the table is sorted by another column.
    pub direction: &'static str,
}

impl SortColumn {
    pub fn text(code: &str, label: &str) -> Self {
        Self { code: code.to_owned(), label: label.to_owned(), is_number: false, is_name: false, term: None }
    }

    pub fn number(code: &str, label: &str) -> Self {
        Self { is_number: true, ..Self::text(code, label) }
    }

    /// The figures of someone.
    pub fn person(code: &str, name: &str) -> Self {
        Self { is_name: true, ..Self::number(code, name) }
    }

    /// Explains the label, if the page has not explained it already.
    pub fn explained(self, term: GlossaryTerm, is_first: bool) -> Self {
        Self { term: Some(term).filter(|_| is_first), ..self }
    }
}

impl TableSort {
    /// Anything that is not of the right form means the usual order.
    pub fn parse(text: &str) -> Self {
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let found = || {
            let (table, rest) = text.split_once('.').filter(|_| text.len() <= MAX_VALUE_LEN)?;
            let (column, way) = rest.rsplit_once('-')?;
            let is_known = matches!(way, ASCENDING | DESCENDING) && is_word(table) && is_word(column);
            let (table, column) = (table.to_owned(), column.to_owned());
            is_known.then_some(Self { table, column, is_ascending: way == ASCENDING })
        };
        found().unwrap_or_default()
    }

    /// For the query string; empty for the usual order.
    pub fn query_value(&self) -> String {
        if self.table.is_empty() {
            return String::new();
        }
        let way = if self.is_ascending { ASCENDING } else { DESCENDING };
        format!("{}.{}-{way}", self.table, self.column)
    }

    pub fn is_for(&self, table: &str) -> bool {
        self.table == table
    }

    /// The column that a table is sorted by, and whether the smallest comes first.
    pub fn of_table(&self, table: &str) -> Option<(&str, bool)> {
        self.is_for(table).then_some((self.column.as_str(), self.is_ascending))
    }

    /// A table's headings. `usual` is the column that it is sorted by otherwise, if any, and `href` makes the link for
    /// a value of the query string.
    pub fn headings(
        &self,
        table: &str,
        columns: Vec<SortColumn>,
        usual: Option<(&str, bool)>,
        href: impl Fn(&str) -> String,
    ) -> Vec<SortHeading> {
        let chosen = self.of_table(table).filter(|(code, _)| columns.iter().any(|column| column.code == *code));
        let current = chosen.or(usual);
        let heading = |column: SortColumn| {
            let is_ascending = current.filter(|(code, _)| *code == column.code).map(|(_, is_ascending)| is_ascending);
            let sort = Self {
                table: table.to_owned(),
                column: column.code.clone(),
                // Of numbers, the largest are wanted first.
                is_ascending: is_ascending.map_or(!column.is_number, |is_ascending| !is_ascending),
            };
            let direction = match is_ascending {
                None => "",
                Some(true) => "ascending",
                Some(false) => "descending",
            };
            SortHeading { href: href(&sort.query_value()), column, direction }
        };
        columns.into_iter().map(heading).collect()
    }

    /// Sorts a table's rows by the chosen column. `compare` gives none for a column that it does not know.
    pub fn apply<T>(&self, table: &str, rows: &mut [T], compare: impl Fn(&T, &T, &str) -> Option<Ordering>) {
        if let Some((column, is_ascending)) = self.of_table(table) {
            rows.sort_by(|a, b| {
                let order = compare(a, b, column).unwrap_or(Ordering::Equal);
                if is_ascending { order } else { order.reverse() }
            });
        }
    }
}

/// Compares what may not be known: that comes below everything else.
pub fn compare_known(a: Option<f64>, b: Option<f64>) -> Ordering {
    let value = |known: Option<f64>| known.unwrap_or(f64::NEG_INFINITY);
    value(a).total_cmp(&value(b))
}

/// Compares names as people sort them.
pub fn compare_names(a: &str, b: &str) -> Ordering {
    a.to_lowercase().cmp(&b.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_proper_values_are_taken() {
        for text in ["members.gpus-desc", "time.s-3-asc"] {
            assert_eq!(TableSort::parse(text).query_value(), text);
        }
        for odd in ["", "members", "members.gpus", "members.-asc", ".gpus-asc", "a.b-up", "a.<b>-asc", "é.b-asc"] {
            assert_eq!(TableSort::parse(odd), TableSort::default(), "{odd}");
        }
        assert_eq!(TableSort::parse(&format!("{}.b-asc", "a".repeat(99))), TableSort::default());
    }

    #[test]
    fn a_heading_sorts_by_its_column_and_then_the_other_way_round() {
        let columns = || vec![SortColumn::text("name", "Member"), SortColumn::number("cores", "Core hours")];
        let headings = |sort: &str| {
            let headings = TableSort::parse(sort).headings("members", columns(), Some(("cores", false)), str::to_owned);
            headings.into_iter().map(|one| (one.href, one.direction)).collect::<Vec<_>>()
        };
        let usual = [("members.name-asc".to_owned(), ""), ("members.cores-asc".to_owned(), "descending")];
        for sort in ["", "kinds.name-asc", "members.unknown-asc", "members.cores-desc"] {
            assert_eq!(headings(sort), usual, "{sort}");
        }
        let by_name = [("members.name-desc".to_owned(), "ascending"), ("members.cores-desc".to_owned(), "")];
        assert_eq!(headings("members.name-asc"), by_name);
    }

    #[test]
    fn rows_are_sorted_and_what_is_unknown_comes_last() {
        let sorted = |sort: &str| {
            let mut rows = [Some(2.0), None, Some(3.0), Some(1.0)];
            TableSort::parse(sort).apply("t", &mut rows, |a, b, column| (column == "x").then(|| compare_known(*a, *b)));
            rows
        };
        assert_eq!(sorted("t.x-desc"), [Some(3.0), Some(2.0), Some(1.0), None]);
        assert_eq!(sorted("t.x-asc"), [None, Some(1.0), Some(2.0), Some(3.0)]);
        for unsorted in ["", "t.y-asc", "u.x-asc"] {
            assert_eq!(sorted(unsorted), [Some(2.0), None, Some(3.0), Some(1.0)]);
        }
        assert_eq!(compare_names("ada", "Bob"), Ordering::Less);
    }
}
