//! Jupyter notebooks as text and pictures. Nothing in a notebook becomes markup: HTML outputs are left out, and text
//! cells are read as a small subset of Markdown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::markdown::{MarkdownBlock, parse_markdown};
use super::text_window::safe_lines;
use crate::logs::terminal::LogLine;

/// Larger notebooks are shown as text.
pub const MAX_NOTEBOOK_BYTES: u64 = 8 * 1024 * 1024;
const MAX_CELLS: usize = 500;
const MAX_OUTPUTS: usize = 50;
const MAX_CELL_BYTES: usize = 50_000;
const MAX_OUTPUT_BYTES: usize = 20_000;
/// All text of a notebook together.
const MAX_TEXT_BYTES: usize = 2 * 1024 * 1024;
/// All pictures of a notebook together, in base64.
const MAX_PICTURE_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotebookView {
    /// The language of its code, in lower case; may be empty.
    pub language: String,
    pub cells: Vec<NotebookCell>,
    /// Whether cells, outputs or text were left out because there were too many.
    pub is_cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotebookCell {
    Markdown(Vec<MarkdownBlock>),
    Code {
        number: Option<u64>,
        source: Vec<LogLine>,
        outputs: Vec<NotebookOutput>,
    },
    /// Neither: shown as it is.
    Raw(Vec<LogLine>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotebookOutput {
    Text(Vec<LogLine>),
    /// An error with its traceback.
    Error(Vec<LogLine>),
    /// A picture as a `data:` URL.
    Picture(String),
    /// Something that isn't shown, and why.
    LeftOut(&'static str),
}

#[derive(Deserialize)]
struct RawNotebook {
    cells: Vec<RawNotebookCell>,
    #[serde(default)]
    metadata: RawNotebookMetadata,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawNotebookMetadata {
    language_info: RawLanguageInfo,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawLanguageInfo {
    name: MultilineText,
}

#[derive(Deserialize)]
struct RawNotebookCell {
    cell_type: String,
    #[serde(default)]
    source: MultilineText,
    #[serde(default)]
    execution_count: Option<u64>,
    #[serde(default)]
    outputs: Vec<RawNotebookOutput>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawNotebookOutput {
    output_type: String,
    text: MultilineText,
    data: RawOutputData,
    traceback: MultilineText,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawOutputData {
    #[serde(rename = "text/plain")]
    plain: MultilineText,
    #[serde(rename = "image/png")]
    png: MultilineText,
    #[serde(rename = "image/jpeg")]
    jpeg: MultilineText,
    #[serde(rename = "text/html")]
    html: Option<IgnoredAny>,
}

/// Text as notebooks write it: one string, or one for each line. Anything else counts as empty.
#[derive(Deserialize)]
#[serde(untagged)]
enum MultilineText {
    One(String),
    Many(Vec<String>),
    Other(IgnoredAny),
}

impl Default for MultilineText {
    fn default() -> Self {
        Self::One(String::new())
    }
}

impl MultilineText {
    fn join(self, between: &str) -> String {
        match self {
            Self::One(text) => text,
            Self::Many(lines) => lines.join(between),
            Self::Other(IgnoredAny) => String::new(),
        }
    }
}

impl NotebookView {
    /// Reads a notebook; `None` if it isn't one of the current format.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let raw: RawNotebook = serde_json::from_slice(bytes).ok()?;
        let mut reader = NotebookReader { text_left: MAX_TEXT_BYTES, pictures_left: MAX_PICTURE_BYTES, is_cut: false };
        let is_cut = raw.cells.len() > MAX_CELLS;
        let cells = raw.cells.into_iter().take(MAX_CELLS).map(|cell| reader.read_cell(cell)).collect();
        let language = raw.metadata.language_info.name.join("").to_lowercase();
        Some(Self { language, cells, is_cut: is_cut || reader.is_cut })
    }
}

struct NotebookReader {
    text_left: usize,
    pictures_left: usize,
    is_cut: bool,
}

impl NotebookReader {
    fn read_cell(&mut self, cell: RawNotebookCell) -> NotebookCell {
        let source = cell.source.join("");
        match cell.cell_type.as_str() {
            "markdown" => {
                let max = self.admit(source.len(), MAX_CELL_BYTES);
                NotebookCell::Markdown(parse_markdown(&source, max))
            }
            "code" => {
                let source = self.lines(&source, MAX_CELL_BYTES);
                self.is_cut |= cell.outputs.len() > MAX_OUTPUTS;
                let outputs = cell.outputs.into_iter().take(MAX_OUTPUTS);
                let outputs = outputs.filter_map(|output| self.read_output(output)).collect();
                NotebookCell::Code { number: cell.execution_count, source, outputs }
            }
            _ => NotebookCell::Raw(self.lines(&source, MAX_CELL_BYTES)),
        }
    }

    fn read_output(&mut self, output: RawNotebookOutput) -> Option<NotebookOutput> {
        if output.output_type == "error" {
            return Some(NotebookOutput::Error(self.lines(&output.traceback.join("\n"), MAX_OUTPUT_BYTES)));
        }
        let RawOutputData { plain, png, jpeg, html } = output.data;
        for (content_type, magic, data) in
            [("image/png", &b"\x89PNG\r\n\x1a\n"[..], png.join("")), ("image/jpeg", b"\xff\xd8\xff", jpeg.join(""))]
        {
            if !data.is_empty() {
                return Some(self.read_picture(content_type, magic, &data));
            }
        }
        let text = output.text.join("") + &plain.join("");
        if !text.is_empty() {
            return Some(NotebookOutput::Text(self.lines(&text, MAX_OUTPUT_BYTES)));
        }
        html.map(|IgnoredAny| {
            NotebookOutput::LeftOut("HTML output isn't shown. Open the notebook in Jupyter to see it.")
        })
    }

    fn read_picture(&mut self, content_type: &str, magic: &[u8], data: &str) -> NotebookOutput {
        if data.len() > self.pictures_left {
            return NotebookOutput::LeftOut("This picture isn't shown: the notebook's pictures are too large.");
        }
        self.pictures_left -= data.len();
        let data: String = data.split_ascii_whitespace().collect();
        // Decoded and written again, so that nothing but base64 can get into the page.
        match STANDARD.decode(&data) {
            Ok(bytes) if bytes.starts_with(magic) => {
                NotebookOutput::Picture(format!("data:{content_type};base64,{}", STANDARD.encode(bytes)))
            }
            _ => NotebookOutput::LeftOut("This picture isn't shown: its data is damaged."),
        }
    }

    fn lines(&mut self, text: &str, max: usize) -> Vec<LogLine> {
        let max = self.admit(text.len(), max);
        safe_lines(text, max).0
    }

    /// How much of a text may still be shown.
    fn admit(&mut self, length: usize, max: usize) -> usize {
        let max = max.min(self.text_left);
        self.is_cut |= length > max;
        self.text_left -= length.min(max);
        max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::preview::markdown::MarkdownSpan;
    use proptest::prelude::*;

    fn texts(lines: &[LogLine]) -> Vec<String> {
        lines.iter().map(LogLine::text).collect()
    }

    const PNG: &str = "iVBORw0KGgo=";

    #[test]
    fn cells_come_in_order_and_nothing_in_them_is_markup() {
        let json = format!(
            r##"{{"nbformat": 4, "metadata": {{"language_info": {{"name": "Python"}}}}, "cells": [
              {{"cell_type": "markdown", "source": ["# Title\n", "<script>alert(1)</script>"]}},
              {{"cell_type": "code", "execution_count": 3, "source": "print(1)\nx", "outputs": [
                {{"output_type": "stream", "text": ["1\n", "2\n"]}},
                {{"output_type": "display_data", "data": {{"text/html": ["<b>x</b>"]}}}},
                {{"output_type": "display_data", "data": {{"image/png": "{PNG}\n", "text/plain": "<Figure>"}}}},
                {{"output_type": "display_data", "data": {{"image/png": "\" onerror=alert(1)"}}}},
                {{"output_type": "error", "traceback": ["\u001b[31mNo\u001b[0m", "end"]}},
                {{"output_type": "execute_result", "data": {{"application/json": {{"a": 1}}, "text/plain": {{}}}}}}]}},
              {{"cell_type": "raw", "source": "as is"}}]}}"##
        );
        let view = NotebookView::parse(json.as_bytes()).unwrap();
        assert_eq!((view.language.as_str(), view.cells.len(), view.is_cut), ("python", 3, false));
        let NotebookCell::Markdown(blocks) = &view.cells[0] else { panic!("{view:?}") };
        assert_eq!(blocks[0], MarkdownBlock::Heading(1, vec![MarkdownSpan::Text("Title".to_owned())]));
        assert_eq!(
            blocks[1],
            MarkdownBlock::Paragraph(vec![MarkdownSpan::Text("<script>alert(1)</script>".to_owned())])
        );
        let NotebookCell::Code { number, source, outputs } = &view.cells[1] else { panic!("{view:?}") };
        assert_eq!((*number, texts(source)), (Some(3), vec!["print(1)".to_owned(), "x".to_owned()]));
        let [
            NotebookOutput::Text(text),
            NotebookOutput::LeftOut(html),
            NotebookOutput::Picture(picture),
            NotebookOutput::LeftOut(damaged),
            NotebookOutput::Error(error),
        ] = &outputs[..]
        else {
            panic!("{outputs:?}")
        };
        assert_eq!(texts(text), ["1", "2"]);
        assert!(html.contains("HTML") && damaged.contains("damaged"));
        assert_eq!(picture, &format!("data:image/png;base64,{PNG}"));
        assert_eq!(texts(error), ["No", "end"]);
        assert_eq!(view.cells[2], NotebookCell::Raw(safe_lines("as is", 100).0));
    }

    #[test]
    fn large_notebooks_are_cut() {
        let cell = r#"{"cell_type": "raw", "source": "x"}"#;
        let many = format!(r#"{{"cells": [{}]}}"#, vec![cell; MAX_CELLS + 1].join(","));
        let view = NotebookView::parse(many.as_bytes()).unwrap();
        assert_eq!((view.cells.len(), view.is_cut), (MAX_CELLS, true));
        let long = format!(r#"{{"cells": [{{"cell_type": "code", "source": "{}"}}]}}"#, "y".repeat(200_000));
        assert!(NotebookView::parse(long.as_bytes()).unwrap().is_cut);
        let deep = format!(r#"{{"cells": {}"#, "[".repeat(100_000));
        assert_eq!(NotebookView::parse(deep.as_bytes()), None);
        assert_eq!(NotebookView::parse(b"{\"worksheets\": []}"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_notebook_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
            let _ = NotebookView::parse(&bytes);
        }

        #[test]
        fn any_source_is_bounded(source in any::<String>(), kind in "markdown|code|raw|x") {
            let json = serde_json::json!({"cells": [{"cell_type": kind, "source": source}]}).to_string();
            prop_assert_eq!(NotebookView::parse(json.as_bytes()).unwrap().cells.len(), 1);
        }
    }
}
