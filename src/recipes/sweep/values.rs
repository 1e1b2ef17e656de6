//! Sweep values as people type them: `0.1, 0.01`, `1..10`, `0..1 step 0.25`, `1e-4..1e-1 log 4`.

use super::MAX_POINTS;
use crate::recipes::quoting::reject_invisible_chars;

/// Parses a list or a range.
pub fn parse_values(text: &str) -> Result<Vec<String>, String> {
    let text = text.trim();
    if let Some(range) = parse_range(text) {
        return range;
    }
    let mut found = Vec::new();
    for line in text.lines() {
        reject_invisible_chars(line)?;
        split_values(line, &mut found)?;
        if found.len() > MAX_POINTS {
            return Err(too_many());
        }
    }
    if found.is_empty() {
        return Err("Enter values, such as 0.1, 0.01, 0.001 or 1..10.".to_owned());
    }
    Ok(found)
}

/// Sets of command-line arguments, one per line: commas mean something in arguments.
pub fn parse_argument_lines(text: &str) -> Result<Vec<String>, String> {
    let lines: Vec<String> = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if lines.len() > MAX_POINTS { Err(too_many()) } else { Ok(lines) }
}

fn too_many() -> String {
    format!("Enter at most {MAX_POINTS} values.")
}

/// Splits at commas outside quotes.
fn split_values(line: &str, found: &mut Vec<String>) -> Result<(), String> {
    let mut value = String::new();
    let mut quote: Option<char> = None;
    let mut was_quoted = false;
    let mut finish = |value: &mut String, was_quoted: &mut bool| {
        let finished = if *was_quoted { value.clone() } else { value.trim().to_owned() };
        if !finished.is_empty() || *was_quoted {
            found.push(finished);
        }
        value.clear();
        *was_quoted = false;
    };
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') if value.trim().is_empty() => {
                value.clear();
                (quote, was_quoted) = (Some(c), true);
            }
            (None, ',') => finish(&mut value, &mut was_quoted),
            // Only spaces may follow a closing quote.
            (None, ' ') if was_quoted => {}
            _ => value.push(c),
        }
    }
    if quote.is_some() {
        return Err("A quotation mark isn't closed.".to_owned());
    }
    finish(&mut value, &mut was_quoted);
    Ok(())
}

/// `None` if it isn't a range.
fn parse_range(text: &str) -> Option<Result<Vec<String>, String>> {
    let (from, rest) = text.split_once("..")?;
    let from: f64 = parse_number(from)?;
    let mut words = rest.split_whitespace();
    let to: f64 = parse_number(words.next()?)?;
    let kind = (words.next(), words.next().and_then(parse_number), words.next());
    Some(match kind {
        (None, None, None) => linear_range(from, to, if to < from { -1.0 } else { 1.0 }),
        (Some("step"), Some(step), None) => linear_range(from, to, step),
        (Some("log"), Some(points), None) => log_range(from, to, points),
        _ => Err("Write a range as 1..10, 0..1 step 0.25 or 1e-4..1e-1 log 4.".to_owned()),
    })
}

fn parse_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let good = text.starts_with(|c: char| c.is_ascii_digit() || "-+.".contains(c));
    text.parse().ok().filter(|number: &f64| good && number.is_finite())
}

fn linear_range(from: f64, to: f64, step: f64) -> Result<Vec<String>, String> {
    if step == 0.0 || (to - from) * step < 0.0 {
        return Err("With this step, the range never reaches its end.".to_owned());
    }
    // A small tolerance past the end, for steps that floating point can't hit exactly.
    let steps = ((to - from) / step + 1e-9).floor();
    let count = to_count(steps + 1.0)?;
    Ok((0..count).map(|index| format_number(from + step * as_f64(index))).collect())
}

fn log_range(from: f64, to: f64, points: f64) -> Result<Vec<String>, String> {
    if from <= 0.0 || to <= 0.0 {
        return Err("A log range needs a start and an end above zero.".to_owned());
    }
    let count = to_count(points)?;
    if count < 2 {
        return Err("A log range needs at least 2 points.".to_owned());
    }
    let factor = (to / from).ln() / as_f64(count - 1);
    Ok((0..count).map(|index| format_number(from * (factor * as_f64(index)).exp())).collect())
}

fn to_count(number: f64) -> Result<usize, String> {
    #[expect(clippy::cast_precision_loss, reason = "a small constant")]
    let most = MAX_POINTS as f64;
    if !(1.0..=most).contains(&number) {
        return Err(too_many());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range")]
    Ok(number as usize)
}

#[expect(clippy::cast_precision_loss, reason = "never more than MOST_POINTS")]
const fn as_f64(index: usize) -> f64 {
    index as f64
}

/// A readable number: `0.3`, not `0.30000000000000004`; very small and very large ones get an exponent.
fn format_number(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    // Most ranges contain whole numbers, which need no rounding.
    if number.fract() == 0.0 && number.abs() < 1e9 {
        return format!("{number}");
    }
    let rounded: f64 = format!("{number:.9e}").parse().unwrap_or(number);
    let size = rounded.abs();
    if (1e-3..1e15).contains(&size) { format!("{rounded}") } else { format!("{rounded:e}") }
}
