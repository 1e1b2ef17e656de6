//! A small, safe subset of Markdown: headings, lists, code, bold text and web links. Everything else, markup above
//! all, stays the text that it is.

use super::text_window::safe_lines;
use crate::logs::terminal::LogLine;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarkdownBlock {
    /// Its level, from 1 to 6.
    Heading(usize, Vec<MarkdownSpan>),
    Paragraph(Vec<MarkdownSpan>),
    List(Vec<Vec<MarkdownSpan>>),
    Code(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarkdownSpan {
    Text(String),
    Bold(String),
    Code(String),
    Link { text: String, href: String },
}

/// Reads at most `max` bytes of a text.
pub fn parse_markdown(text: &str, max: usize) -> Vec<MarkdownBlock> {
    let (lines, _) = safe_lines(text, max);
    let lines: Vec<String> = lines.iter().map(LogLine::text).collect();
    let mut blocks = Vec::new();
    let mut rest = lines.iter().map(String::as_str).peekable();
    while let Some(line) = rest.next() {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            continue;
        }
        if let Some(fence) = ["```", "~~~"].into_iter().find(|fence| trimmed.starts_with(fence)) {
            let code: Vec<&str> = rest.by_ref().take_while(|line| !line.trim_start().starts_with(fence)).collect();
            blocks.push(MarkdownBlock::Code(code.join("\n")));
        } else if let Some((level, title)) = heading(trimmed) {
            blocks.push(MarkdownBlock::Heading(level, parse_spans(title)));
        } else if let Some(first) = list_item(trimmed) {
            let mut items = vec![parse_spans(first)];
            while let Some(item) = rest.peek().and_then(|line| list_item(line.trim())) {
                items.push(parse_spans(item));
                rest.next();
            }
            blocks.push(MarkdownBlock::List(items));
        } else {
            let mut paragraph = trimmed.to_owned();
            while let Some(next) = rest.next_if(|line| is_continuation(line.trim())) {
                paragraph.push(' ');
                paragraph.push_str(next.trim());
            }
            blocks.push(MarkdownBlock::Paragraph(parse_spans(&paragraph)));
        }
    }
    blocks
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    ((1..=6).contains(&level) && title.starts_with(' ')).then(|| (level, title.trim()))
}

fn list_item(line: &str) -> Option<&str> {
    if let Some(item) = ["- ", "* ", "+ "].into_iter().find_map(|mark| line.strip_prefix(mark)) {
        return Some(item.trim());
    }
    let (number, item) = line.split_once(". ")?;
    (!number.is_empty() && number.len() <= 3 && number.bytes().all(|byte| byte.is_ascii_digit())).then(|| item.trim())
}

fn is_continuation(line: &str) -> bool {
    !line.is_empty()
        && heading(line).is_none()
        && list_item(line).is_none()
        && !line.starts_with("```")
        && !line.starts_with("~~~")
}

fn parse_spans(text: &str) -> Vec<MarkdownSpan> {
    let mut spans = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let found = match c {
            '`' => enclosed(rest, "`").map(|(code, after)| (MarkdownSpan::Code(code.to_owned()), after)),
            '*' => enclosed(rest, "**").map(|(bold, after)| (MarkdownSpan::Bold(bold.to_owned()), after)),
            '[' => link(rest),
            _ => None,
        };
        if let Some((span, after)) = found {
            if !plain.is_empty() {
                spans.push(MarkdownSpan::Text(std::mem::take(&mut plain)));
            }
            spans.push(span);
            rest = after;
        } else {
            plain.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    if !plain.is_empty() {
        spans.push(MarkdownSpan::Text(plain));
    }
    spans
}

/// How far the end of a span may be from its start: without a bound, a text of opening marks takes quadratic time.
const MAX_SPAN_BYTES: usize = 1_000;

fn enclosed<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let inside = text.strip_prefix(mark)?;
    let (content, after) = split_near(inside, mark)?;
    (!content.is_empty()).then_some((content, after))
}

fn split_near<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let near = &text[..text.floor_char_boundary(MAX_SPAN_BYTES)];
    let at = near.find(mark)?;
    Some((&text[..at], &text[at + mark.len()..]))
}

/// `[text](http…)`. Other schemes could run something.
fn link(text: &str) -> Option<(MarkdownSpan, &str)> {
    let (label, after) = split_near(text.strip_prefix('[')?, "](")?;
    let (href, after) = split_near(after, ")")?;
    let is_web = href.starts_with("https://") || href.starts_with("http://");
    let is_plain = !href.chars().any(|c| c.is_whitespace() || c.is_control());
    (is_web && is_plain && !label.trim().is_empty())
        .then(|| (MarkdownSpan::Link { text: label.to_owned(), href: href.to_owned() }, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(words: &str) -> MarkdownSpan {
        MarkdownSpan::Text(words.to_owned())
    }

    #[test]
    fn headings_lists_code_and_bold_are_known() {
        let blocks =
            parse_markdown("## Two\n\nOne **bold**\nline `x`\n- a\n* b\n1. c\n```py\nx = 1\n\n```\nend", 10_000);
        assert_eq!(
            blocks,
            [
                MarkdownBlock::Heading(2, vec![text("Two")]),
                MarkdownBlock::Paragraph(vec![
                    text("One "),
                    MarkdownSpan::Bold("bold".to_owned()),
                    text(" line "),
                    MarkdownSpan::Code("x".to_owned())
                ]),
                MarkdownBlock::List(vec![vec![text("a")], vec![text("b")], vec![text("c")]]),
                MarkdownBlock::Code("x = 1\n".to_owned()),
                MarkdownBlock::Paragraph(vec![text("end")]),
            ]
        );
    }

    #[test]
    fn links_lead_to_the_web_only() {
        let spans = |words: &str| parse_spans(words);
        assert_eq!(
            spans("see [docs](https://example.org/a?b=c)."),
            [
                text("see "),
                MarkdownSpan::Link { text: "docs".to_owned(), href: "https://example.org/a?b=c".to_owned() },
                text(".")
            ]
        );
        for bad in
            ["[x](javascript:alert(1))", "[x](data:text/html,x)", "[x](/sign-out)", "[x](//evil)", "[](http://a)"]
        {
            assert!(!spans(bad).iter().any(|span| matches!(span, MarkdownSpan::Link { .. })), "{bad}");
        }
        assert_eq!(spans("<a href=x onclick=y>"), [text("<a href=x onclick=y>")]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(words in "(\\PC|[`*\\[\\]()#\n -]){0,400}", max in 0_usize..500) {
            for block in parse_markdown(&words, max) {
                if let MarkdownBlock::Paragraph(spans) = block {
                    for span in spans {
                        if let MarkdownSpan::Link { href, .. } = span {
                            prop_assert!(href.starts_with("http://") || href.starts_with("https://"));
                        }
                    }
                }
            }
        }
    }
}
