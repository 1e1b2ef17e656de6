//! Which questions wrote which line. Marks are inserted into a template before rendering and removed afterwards; they
//! are characters that no answer may contain.

use std::collections::BTreeSet;

/// Precedes the key of the value that follows.
const VALUE_MARK: char = '\u{f0000}';
/// Precedes the keys on which the line depends.
const CONDITION_MARK: char = '\u{f0001}';
const END_OF_KEYS_MARK: char = '\u{f0002}';
/// Follows the value, because code can span several lines.
const END_OF_VALUE_MARK: char = '\u{f0003}';

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderedScriptLine {
    pub text: String,
    /// The keys of the questions that wrote it.
    pub keys: Vec<String>,
}

impl RenderedScriptLine {
    /// A line that no question wrote.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), keys: Vec::new() }
    }

    /// A line that a question wrote.
    pub fn from_question(text: impl Into<String>, key: &str) -> Self {
        Self { text: text.into(), keys: vec![key.to_owned()] }
    }
}

/// Joins lines into a script.
pub fn join_lines<'a>(lines: impl IntoIterator<Item = &'a RenderedScriptLine>) -> String {
    let mut text = String::new();
    for line in lines {
        text.push_str(&line.text);
        text.push('\n');
    }
    text
}

/// The template with marks inserted.
pub fn insert_marks(source: &str) -> String {
    let mut marked = String::with_capacity(source.len() * 2);
    let mut conditions: Vec<String> = Vec::new();
    for line in source.split_inclusive('\n') {
        let is_tag = line.trim_start().starts_with("{%");
        if !is_tag && !conditions.is_empty() && !line.trim().is_empty() {
            let keys: Vec<&str> = conditions.iter().map(String::as_str).collect();
            marked.push(CONDITION_MARK);
            marked.push_str(&keys.join(" "));
            marked.push(END_OF_KEYS_MARK);
        }
        let mut rest = line;
        while let Some(at) = rest.find("{{") {
            marked.push_str(&rest[..at]);
            if let Some(key) = answer_names(tag_content(&rest[at..])).into_iter().next() {
                marked.push(VALUE_MARK);
                marked.push_str(&key);
                marked.push(END_OF_KEYS_MARK);
            }
            let end = rest[at..].find("}}").map_or(rest.len(), |end| at + end + 2);
            marked.push_str(&rest[at..end]);
            marked.push(END_OF_VALUE_MARK);
            rest = &rest[end..];
        }
        marked.push_str(rest);
        track_conditions(line, &mut conditions);
    }
    marked
}

/// Tracks the conditions that are still open after a line.
fn track_conditions(line: &str, conditions: &mut Vec<String>) {
    let mut rest = line;
    while let Some(at) = rest.find("{%") {
        // A leading sign controls whitespace around the tag.
        let inside = tag_content(&rest[at..]).trim_start_matches(['-', '+']);
        match inside.split_whitespace().next() {
            Some("if" | "for") => {
                let key = answer_names(inside).into_iter().next().unwrap_or_default();
                conditions.push(key);
            }
            Some("endif" | "endfor") => drop(conditions.pop()),
            _ => {}
        }
        rest = &rest[at + 2..];
    }
}

/// The text between the braces of the tag at the start.
fn tag_content(text: &str) -> &str {
    let end = text.find("}}").into_iter().chain(text.find("%}")).min().unwrap_or(text.len());
    &text[2.min(end)..end]
}

/// The names in an expression that refer to answers.
fn answer_names(expression: &str) -> Vec<String> {
    const WORDS: &[&str] = &[
        "if", "elif", "else", "endif", "for", "in", "endfor", "and", "or", "not", "is", "true", "false", "none",
        "loop", "set", "True", "False",
    ];
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(c) = rest.chars().next() {
        if matches!(c, '"' | '\'') {
            let end = rest[1..].find(c).map_or(rest.len(), |end| end + 2);
            rest = &rest[end..];
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end == 0 {
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let word = &rest[..end];
        if !WORDS.contains(&word) && !word.starts_with(|c: char| c.is_ascii_digit()) {
            found.push(word.to_owned());
        }
        rest = &rest[end..];
    }
    // `for x in list`: the list comes first; the loop variable is not a key.
    if expression.trim_start().starts_with("for ") && found.len() > 1 {
        found.remove(0);
    }
    found
}

/// The keys that a template uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplateMentions {
    /// Keys, each with the line of its first use.
    pub keys: Vec<(String, usize)>,
    /// Keys that decide which lines the script has; they can't differ between points of a sweep.
    pub deciding: BTreeSet<String>,
}

pub fn find_mentions(source: &str) -> TemplateMentions {
    let mut all = TemplateMentions::default();
    let mut own: BTreeSet<String> = BTreeSet::new();
    let mut line = 1;
    let mut rest = source;
    while let Some(at) = rest.find('{') {
        line += rest[..at].matches('\n').count();
        rest = &rest[at..];
        if rest.starts_with("{{") || rest.starts_with("{%") {
            let inside = tag_content(rest);
            if let Some(looped) = inside.trim_start().strip_prefix("for ") {
                own.extend(looped.split_whitespace().next().map(str::to_owned));
            }
            for name in answer_names(inside).into_iter().filter(|name| !own.contains(name)) {
                if rest.starts_with("{%") {
                    all.deciding.insert(name.clone());
                }
                if !all.keys.iter().any(|(known, _)| *known == name) {
                    all.keys.push((name, line));
                }
            }
        }
        rest = &rest[1..];
    }
    all
}

/// Splits the rendered text into lines and removes the marks.
pub fn extract_lines(text: &str) -> Vec<RenderedScriptLine> {
    let mut open: Vec<String> = Vec::new();
    text.trim_end_matches('\n').split('\n').map(|line| extract_line(line, &mut open)).collect()
}

/// `open`: keys whose value continues from the previous line.
fn extract_line(marked: &str, open: &mut Vec<String>) -> RenderedScriptLine {
    let mut line = RenderedScriptLine { text: String::new(), keys: open.clone() };
    let mut conditions = Vec::new();
    let mut rest = marked;
    while let Some(at) = rest.find([VALUE_MARK, CONDITION_MARK, END_OF_VALUE_MARK]) {
        line.text.push_str(&rest[..at]);
        let mark = rest[at..].chars().next();
        rest = &rest[at + VALUE_MARK.len_utf8()..];
        if mark == Some(END_OF_VALUE_MARK) {
            open.pop();
            continue;
        }
        let end = rest.find(END_OF_KEYS_MARK).unwrap_or(rest.len());
        let keys: Vec<String> = rest[..end].split(' ').filter(|key| !key.is_empty()).map(str::to_owned).collect();
        if mark == Some(VALUE_MARK) {
            line.keys.extend(keys.iter().cloned());
            open.extend(keys);
        } else {
            conditions.extend(keys);
        }
        rest = rest.get(end + END_OF_KEYS_MARK.len_utf8()..).unwrap_or_default();
    }
    line.text.push_str(rest);
    if line.keys.is_empty() {
        line.keys.extend(conditions.pop());
    }
    line.keys.dedup();
    line
}
