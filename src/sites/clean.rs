//! Makes text from a server fit to be shown: no colours, no control characters, nothing that hides or reorders.

use std::iter::Peekable;
use std::str::Chars;

/// Most lines that are ever shown of one text.
pub const MAX_LINES: usize = 60;

/// Text that is fit to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanedText {
    /// What is left: line breaks are its only control characters.
    pub text: String,
    /// Whether the end was cut off.
    pub is_truncated: bool,
}

/// Text of a server (a greeting, a notice), fit to be shown, at most `max` characters and 60 lines long.
/// Where the end was cut off, it ends in an ellipsis.
pub fn clean_text(raw: &str, max: usize) -> String {
    let CleanedText { mut text, is_truncated: cut } = clean_bounded(raw, max, MAX_LINES);
    if cut && max > 0 {
        if text.chars().count() == max {
            text.pop();
        }
        text.push('…');
    }
    text
}

/// Cleans at most so many characters and lines; blank lines around the text are dropped.
pub fn clean_bounded(raw: &str, max: usize, max_lines: usize) -> CleanedText {
    let plain = strip_escapes(raw);
    let mut lines: Vec<&str> = plain.split('\n').map(str::trim_end).collect();
    let first = lines.iter().position(|line| !line.is_empty()).unwrap_or(lines.len());
    let last = lines.iter().rposition(|line| !line.is_empty()).map_or(first, |at| at + 1);
    let mut cut = last - first > max_lines;
    lines = lines[first..last].iter().take(max_lines).copied().collect();
    let whole = lines.join("\n");
    let text: String = whole.chars().take(max).collect();
    cut |= text.len() < whole.len();
    CleanedText { text: text.trim_end().to_owned(), is_truncated: cut }
}

/// Whether a character cannot be seen, breaks the line, or makes text look like other text.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
            | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Drops what steers a terminal and what is hidden; every kind of line end becomes one line break.
fn strip_escapes(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1B}' => skip_escape(&mut chars),
            '\u{9B}' => skip_sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9D}'..='\u{9F}' => skip_string(&mut chars),
            '\r' => {
                // A terminal would go back and write over the line; people see both lines instead.
                if chars.peek() != Some(&'\n') {
                    out.push('\n');
                }
            }
            '\n' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\t' => out.push(' '),
            c if is_hidden(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// What follows an escape character.
fn skip_escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_sequence(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars);
        }
        _ => {
            while chars.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            chars.next_if(|c| matches!(c, '0'..='~'));
        }
    }
}

/// Parameters and the letter that ends them, as in `1;31m`.
fn skip_sequence(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}

/// A title or the like, up to its end. It ends with its line at the latest, so that it cannot swallow a question.
fn skip_string(chars: &mut Peekable<Chars<'_>>) {
    while let Some(c) = chars.next_if(|c| !matches!(c, '\n' | '\r')) {
        match c {
            '\u{7}' | '\u{9C}' => return,
            '\u{1B}' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn colours_titles_and_tricks_go() {
        for (raw, clean) in [
            ("\u{1B}[1;31mGPU type required\u{1B}[0m", "GPU type required"),
            ("\u{1B}]0;a title\u{7}Password:", "Password:"),
            ("\u{1B}]8;;https://evil.example\u{1B}\\click\u{1B}]8;;\u{1B}\\", "click"),
            ("\u{1B}]0;never ends\nPassword: ", "Password:"),
            ("\u{9B}31mred", "red"),
            ("\u{1B}(Bplain", "plain"),
            ("a\u{202E}b\u{2066}c\u{200B}d\u{E0041}e\u{FEFF}", "abcde"),
            ("x\u{8}y\u{0}z\u{7F}", "xyz"),
            ("one\r\ntwo\rthree", "one\ntwo\nthree"),
            ("a\tb", "a b"),
            ("\n\n  Welcome  \n\n\n", "  Welcome"),
            ("Ødegård 名前 é", "Ødegård 名前 é"),
            ("", ""),
            ("\u{1B}", ""),
            ("\u{1B}[", ""),
        ] {
            assert_eq!(clean_text(raw, 100), clean, "{raw:?}");
        }
    }

    #[test]
    fn long_text_is_cut_and_says_so() {
        assert_eq!(clean_text("abcdef", 6), "abcdef");
        assert_eq!(clean_text("abcdefg", 6), "abcde…");
        let many = "line\n".repeat(100);
        let shown = clean_text(&many, 10_000);
        assert_eq!(shown.lines().count(), MAX_LINES);
        assert!(shown.ends_with("line…"));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_bounded_and_plain(raw in "(\\PC|[\u{0}-\u{1F}\u{7F}-\u{9F}]|\u{1B}[\\[\\]P]|\u{202E}|\n){0,300}", max in 0usize..80) {
            let text = clean_text(&raw, max);
            prop_assert!(text.chars().count() <= max);
            prop_assert!(text.lines().count() <= MAX_LINES);
            prop_assert!(!text.chars().any(|c| c != '\n' && is_hidden(c)));
            prop_assert_eq!(clean_text(&text, max.max(1)), text.trim_start_matches('\n').to_owned());
        }
    }
}
