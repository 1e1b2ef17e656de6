//! CSV files: cells that no spreadsheet takes for a formula, and the download response.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};

/// A quoted cell that no spreadsheet takes for a formula.
pub fn quote_cell(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

pub fn format_row(cells: &[impl AsRef<str>]) -> String {
    let cells: Vec<String> = cells.iter().map(|text| quote_cell(text.as_ref())).collect();
    format!("{}\r\n", cells.join(","))
}

/// The table as a download. `name` is one of ours: letters, digits, dots and dashes.
pub fn download_response(name: &str, text: String) -> Response {
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-')).collect();
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""))
        .unwrap_or_else(|_| HeaderValue::from_static("attachment"));
    let kind = HeaderValue::from_static("text/csv; charset=utf-8");
    ([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, disposition)], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_never_formulas() {
        assert_eq!(quote_cell("a\"b"), "\"a\"\"b\"");
        assert_eq!(quote_cell("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
        assert_eq!(quote_cell("-1"), "\"'-1\"");
        assert_eq!(format_row(&["a", "b,c"]), "\"a\",\"b,c\"\r\n");
    }
}
