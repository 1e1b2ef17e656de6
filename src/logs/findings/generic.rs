//! Whether a line calls itself an error, as opposed to metrics and counters that contain the word.

/// `small` is the line in lower case.
pub fn is_error(line: &str, small: &str) -> bool {
    let start = small.trim_start();
    if start.starts_with("fatal:") || start.starts_with("fatal error") || line.contains("FATAL") {
        return true;
    }
    if start.starts_with("execution halted") {
        return true;
    }
    small.match_indices("error").any(|(at, word)| is_error_word(line, small, at, at + word.len()))
}

fn is_error_word(line: &str, small: &str, at: usize, end: usize) -> bool {
    let before = small[..at].chars().next_back();
    let (word, after) = (&line[at..end], &small[end..]);
    let denied = ["no ", "0 ", "without ", "zero ", "squared ", "absolute ", "standard ", "std "];
    if denied.iter().any(|deny| small[..at].ends_with(deny)) || is_measure(after) {
        return false;
    }
    match before {
        // `ValueError: …`, but neither `val_error` nor `terror`.
        Some(c) if c.is_alphanumeric() => word == "Error" && after.starts_with(':'),
        Some('_' | '-' | '.' | '/' | '=' | '%') => false,
        _ if word == "ERROR" => !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'),
        None => after.starts_with(':') || after.starts_with(" in ") || after.starts_with(" at "),
        _ => after.starts_with(':') || (word == "Error" && after.starts_with(" in ")),
    }
}

/// `: 0.1`, `=0.01`, ` rate`, `s: 0`.
fn is_measure(after: &str) -> bool {
    if after.starts_with(" rate") || after.starts_with(" bar") {
        return true;
    }
    let value = after.trim_start_matches(['s', ')', ']']).trim_start_matches([':', '=', ' ', '\t']);
    let value = value.split([' ', ',', ';', '|', '%', ')', ']']).next().unwrap_or_default();
    value.trim_end_matches('.').parse::<f64>().is_ok()
}
