//! Makes text from outside (servers, files, people) safe to show: no colours, no control characters, nothing that
//! hides or reorders. Every module may use it; it uses none.

mod terminal_text;

pub use terminal_text::{TerminalToken, TerminalTokenizer};

/// The most lines ever shown of one text.
pub const MAX_LINES: usize = 60;

/// Text that is safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanedText {
    /// Line breaks are its only control characters.
    pub text: String,
    /// Whether the end was cut off.
    pub is_truncated: bool,
}

/// Text from a server (a greeting, a message), safe to show, at most `max` characters and 60 lines long. Ends in an
/// ellipsis if it was cut off.
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

/// Cleans at most this many characters and lines; drops blank lines around the text.
pub fn clean_bounded(raw: &str, max: usize, max_lines: usize) -> CleanedText {
    let plain = to_plain_lines(raw);
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

/// Safe to show on one line: the first that isn't blank, cut to `max` characters.
pub fn one_line(raw: &str, max: usize) -> String {
    clean_bounded(raw, max, 1).text.trim().to_owned()
}

/// `text` without escapes and hidden characters, at most `max` characters: for quoting others.
pub fn strip_hidden(text: &str, max: usize) -> String {
    TerminalTokenizer::chars(text).filter(|c| !is_hidden(*c)).take(max).collect()
}

/// `text` without escapes, disruptive characters and surrounding spaces, at most `max` characters: for values that
/// must stay intact, such as paths.
pub fn sanitize(text: &str, max: usize) -> String {
    let clean: String = TerminalTokenizer::chars(text).filter(|c| !is_disruptive(*c)).take(max).collect();
    clean.trim().to_owned()
}

/// Whether a character is invisible, breaks the line, or makes text look like other text. This is the only such list:
/// all control characters, Unicode's `Default_Ignorable_Code_Point`, line and paragraph separators, annotation marks,
/// and the Braille blank.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// The same, except characters that texts need: joiners (Persian, Indic scripts, emoji), variation selectors (`⚡️`),
/// and the Braille blank, with which programs draw charts and spinners. For logs, paths and scripts.
pub fn is_disruptive(c: char) -> bool {
    let is_needed = matches!(c, '\u{200C}' | '\u{200D}' | '\u{2800}' | '\u{180B}'..='\u{180D}'
        | '\u{180F}' | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}');
    is_hidden(c) && !is_needed
}

/// Removes terminal control and hidden characters; every kind of line end becomes one line break.
fn to_plain_lines(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut before = '\0';
    for c in TerminalTokenizer::chars(raw) {
        match c {
            '\n' if before == '\r' => {}
            // A terminal would overwrite the line; people see both lines instead.
            '\r' | '\n' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\t' => out.push(' '),
            c if is_hidden(c) => {}
            c => out.push(c),
        }
        before = c;
    }
    out
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

    #[test]
    fn values_and_quotes_lose_what_steers() {
        assert_eq!(sanitize("\u{1b}[31mred\u{202e}\t", 100), "red");
        assert_eq!(sanitize("  abcdef", 4), "ab");
        assert_eq!(strip_hidden("\u{1b}]0;t\u{7}a\u{200d}b\nc", 2), "ab");
        assert_eq!(one_line("\n\n \u{1b}[1m one\ttwo \nthree", 100), "one two");
        assert_eq!(one_line("abcdef", 3), "abc");
    }

    #[test]
    fn what_texts_need_is_hidden_but_not_disruptive() {
        for c in ['\u{200C}', '\u{200D}', '\u{2800}', '\u{FE0F}', '\u{E0100}'] {
            assert!(is_hidden(c) && !is_disruptive(c), "{c:?}");
        }
        assert_eq!(sanitize("/scratch/⚡\u{FE0F}/نمی\u{200C}خواهم", 100), "/scratch/⚡\u{FE0F}/نمی\u{200C}خواهم");
        for c in ['a', 'é', '名', ' ', '\u{A0}', '\u{300}', '▯', '…', '\u{FFFD}', '🧪', '\u{F0000}'] {
            assert!(!is_hidden(c), "{c:?}");
        }
    }

    /// Each of these was once in a separate list.
    #[test]
    fn nothing_that_was_ever_refused_passes() {
        let disruptive = [
            '\u{AD}'..='\u{AD}',
            '\u{61C}'..='\u{61C}',
            '\u{115F}'..='\u{1160}',
            '\u{180E}'..='\u{180E}',
            '\u{200B}'..='\u{200B}',
            '\u{200E}'..='\u{200F}',
            '\u{2028}'..='\u{202E}',
            '\u{2060}'..='\u{206F}',
            '\u{3164}'..='\u{3164}',
            '\u{FEFF}'..='\u{FEFF}',
            '\u{FFA0}'..='\u{FFA0}',
            '\u{FFF9}'..='\u{FFFB}',
            '\u{E0000}'..='\u{E007F}',
            '\0'..='\u{1F}',
            '\u{7F}'..='\u{9F}',
        ];
        for c in disruptive.into_iter().flatten() {
            assert!(is_hidden(c) && is_disruptive(c), "{c:?}");
        }
    }

    #[test]
    fn sequences_are_told_apart_from_text() {
        use TerminalToken::{Char, ControlSequence};
        let items: Vec<_> = TerminalTokenizer::new("a\u{1b}[1;31mb\u{9b}2K\u{1b}]0;x\u{7}\u{1b}[é").collect();
        let bold = ControlSequence { params: "1;31", command: 'm' };
        let erase = ControlSequence { params: "2", command: 'K' };
        assert_eq!(items, [Char('a'), bold, Char('b'), erase, Char('é')]);
    }

    proptest! {
        #[test]
        fn values_are_bounded_and_harmless(text in any::<String>(), max in 0_usize..50) {
            let (value, quote) = (sanitize(&text, max), strip_hidden(&text, max));
            prop_assert!(value.chars().count() <= max && quote.chars().count() <= max);
            prop_assert!(!value.chars().any(is_disruptive) && !quote.chars().any(is_hidden));
            prop_assert!(one_line(&text, max).chars().all(|c| !is_hidden(c)));
        }

        #[test]
        fn disruptive_is_hidden(c in any::<char>()) {
            prop_assert!(is_hidden(c) || !is_disruptive(c));
            prop_assert!(is_hidden(c) || !c.is_control());
        }

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
