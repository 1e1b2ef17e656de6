//! Numbers as people read them: one rule for each kind of figure, for pages, reports, mail and tables. Dates are
//! formatted by [`crate::clock`]. Every module may use it.
//!
//! Slurm's `G` is 1024 × 1024 × 1024 bytes; people say GB and type `--mem=16G`, so we write "16 GB": what is shown is
//! what one requests.

use crate::clock::SECONDS_PER_DAY;

/// Shown when a figure is unknown.
pub const UNKNOWN: &str = "–";

const DAY: u64 = SECONDS_PER_DAY.unsigned_abs();
const TWO_DAYS: u64 = 2 * DAY;

/// Formats a figure, or shows that it is unknown.
pub fn or_unknown<T>(figure: Option<T>, words: impl FnOnce(T) -> String) -> String {
    figure.map_or_else(|| UNKNOWN.to_owned(), words)
}

/// A text of at most `most` characters; a longer one is cut.
pub fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most - 1).collect();
    format!("{start}…")
}

/// A whole number with thousands separators: `12,345`.
pub fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number and its noun, with a plural s: `1 job`, `4 jobs`.
pub fn count(of: u64, noun: &str) -> String {
    let many = if of == 1 { "" } else { "s" };
    format!("{} {noun}{many}", number(of))
}

/// Hours or any other amount that was used, to about three digits and without trailing zeros: `12,346`, `12.3`, `3`,
/// `0.04`, `<0.01`.
pub fn amount(amount: f64) -> String {
    match amount.abs() {
        size if size > 0.0 && size < 0.005 => format!("{}<0.01", sign(amount)),
        ..0.0995 => round_amount(amount, 2),
        _ => fine_amount(amount),
    }
}

/// Like [`amount`], with more digits of what is small: for what was granted, prices, and the axes of charts.
pub fn fine_amount(amount: f64) -> String {
    match amount.abs() {
        size if size.is_nan() => UNKNOWN.to_owned(),
        size if size > 0.0 && size < 0.000_05 => format!("{}<0.0001", sign(amount)),
        ..0.0995 => round_amount(amount, 4),
        ..9.995 => round_amount(amount, 2),
        ..99.95 => round_amount(amount, 1),
        size => format!("{}{}", sign(amount), number(round(size))),
    }
}

fn sign(amount: f64) -> &'static str {
    if amount < 0.0 { "−" } else { "" }
}

/// With at most this many decimals.
fn round_amount(amount: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", amount.abs());
    format!("{}{}", sign(amount), text.trim_end_matches('0').trim_end_matches('.'))
}

/// A fraction as a percentage: `87%`, `0.4%`, `<0.1%`.
pub fn percent(part: f64) -> String {
    match part * 100.0 {
        p if p.is_nan() => UNKNOWN.to_owned(),
        ..=0.0 => "0%".to_owned(),
        ..0.1 => "<0.1%".to_owned(),
        p @ ..9.95 => {
            let tenths = format!("{p:.1}");
            format!("{}%", tenths.trim_end_matches(".0"))
        }
        p => format!("{}%", number(round(p))),
    }
}

/// Rounds a non-negative number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded before")]
pub fn round(number: f64) -> u64 {
    if number.is_nan() { 0 } else { number.clamp(0.0, 1e15).round() as u64 }
}

/// A coordinate in an SVG.
pub fn coordinate(at: f64) -> String {
    format!("{at:.1}")
}

/// Bytes in units of 1024: `5 bytes`, `2.5 kB`, `15.9 GB`.
pub fn bytes(count: u64) -> String {
    scaled(count.into(), 1024)
}

/// Bytes in units of 1000, for figures that are counted that way.
pub fn decimal_bytes(count: u64) -> String {
    scaled(count.into(), 1000)
}

/// Memory in mebibytes: `512 MB`, `15.9 GB`, `1.5 TB`.
pub fn memory(mb: u64) -> String {
    if mb == 0 { "0 MB".to_owned() } else { scaled(u128::from(mb) << 20, 1024) }
}

/// Memory as Slurm's options expect it: `24G`, `768M`.
pub fn memory_option(mb: u64) -> String {
    if mb > 0 && mb.is_multiple_of(1024) { format!("{}G", mb / 1024) } else { format!("{mb}M") }
}

/// In the largest unit that fits, with one decimal if it isn't 0 and the number is small.
fn scaled(bytes: u128, base: u128) -> String {
    let (mut unit, mut name) = (1, "");
    for next in ["kB", "MB", "GB", "TB"] {
        if bytes < unit * base {
            break;
        }
        (unit, name) = (unit * base, next);
    }
    let tenths = (bytes * 10 + unit / 2) / unit;
    match (name, tenths / 10, tenths % 10) {
        ("", 1, _) => "1 byte".to_owned(),
        ("", whole, _) => format!("{whole} bytes"),
        (_, whole, part) if part == 0 || whole >= 100 => format!("{whole} {name}"),
        (_, whole, part) => format!("{whole}.{part} {name}"),
    }
}

/// Seconds in at most two units: `45 s`, `12 min`, `3 h`, `2 days 4 h`.
pub fn duration(seconds: u64) -> String {
    let two = |first: u64, name: &str, second: u64, small: &str| match second {
        0 => format!("{first} {name}"),
        _ => format!("{first} {name} {second} {small}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..600 => two(seconds / 60, "min", seconds % 60, "s"),
        600..3600 => format!("{} min", seconds / 60),
        3600..DAY => two(seconds / 3600, "h", seconds / 60 % 60, "min"),
        DAY..TWO_DAYS => two(1, "day", seconds / 3600 % 24, "h"),
        _ => two(seconds / DAY, "days", seconds / 3600 % 24, "h"),
    }
}

/// A duration that is only roughly known: `about 3 min`.
pub fn rough_duration(seconds: u64) -> String {
    let rounded = if seconds < 60 { seconds } else { (seconds + 30) / 60 * 60 };
    format!("about {}", duration(rounded))
}

/// Minutes, formatted the same way.
pub fn minutes(minutes: u32) -> String {
    duration(u64::from(minutes) * 60)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_and_parts() {
        for (hours, words) in [
            (0.0, "0"),
            (0.000_01, "<0.01"),
            (0.0034, "<0.01"),
            (0.005, "0.01"),
            (0.0274, "0.03"),
            (0.0996, "0.1"),
            (0.123, "0.12"),
            (0.04, "0.04"),
            (0.5, "0.5"),
            (3.0, "3"),
            (3.25, "3.25"),
            (4.0, "4"),
            (12.25, "12.2"),
            (12.34, "12.3"),
            (40.0, "40"),
            (99.96, "100"),
            (12_345.6, "12,346"),
            (-3.0, "−3"),
            (-0.001, "−<0.01"),
            (f64::NAN, UNKNOWN),
        ] {
            assert_eq!(amount(hours), words);
        }
        for (granted, words) in [(0.0, "0"), (0.000_01, "<0.0001"), (0.0274, "0.0274"), (0.5, "0.5"), (12.34, "12.3")] {
            assert_eq!(fine_amount(granted), words);
        }
        for (part, words) in [
            (0.0, "0%"),
            (-1.0, "0%"),
            (0.000_5, "<0.1%"),
            (0.004, "0.4%"),
            (0.04, "4%"),
            (0.826, "83%"),
            (0.874, "87%"),
            (12.0, "1,200%"),
            (f64::NAN, UNKNOWN),
        ] {
            assert_eq!(percent(part), words);
        }
        assert_eq!([number(7), number(1000), number(1_234_567)], ["7", "1,000", "1,234,567"]);
        assert_eq!([count(1, "core"), count(4, "core")], ["1 core", "4 cores"]);
    }

    #[test]
    fn sizes() {
        for (mb, words) in [
            (0, "0 MB"),
            (512, "512 MB"),
            (1024, "1 GB"),
            (16_282, "15.9 GB"),
            (16_384, "16 GB"),
            (767_000, "749 GB"),
            (1_572_864, "1.5 TB"),
        ] {
            assert_eq!(memory(mb), words);
        }
        for (size, words) in
            [(0, "0 bytes"), (1, "1 byte"), (5, "5 bytes"), (2048, "2 kB"), (5 << 20, "5 MB"), (3 << 30, "3 GB")]
        {
            assert_eq!(bytes(size), words);
        }
        assert_eq!(decimal_bytes(4_942_000_000), "4.9 GB");
        assert_eq!([memory_option(24_576), memory_option(768)], ["24G", "768M"]);
    }

    #[test]
    fn times() {
        for (seconds, words) in [
            (0, "0 s"),
            (45, "45 s"),
            (60, "1 min"),
            (90, "1 min 30 s"),
            (720, "12 min"),
            (10_800, "3 h"),
            (9_000, "2 h 30 min"),
            (187_200, "2 days 4 h"),
            (DAY, "1 day"),
            (DAY + 3600, "1 day 1 h"),
            (7 * DAY, "7 days"),
        ] {
            assert_eq!(duration(seconds), words);
        }
        assert_eq!(minutes(180), "3 h");
        for (seconds, words) in
            [(42, "about 42 s"), (207, "about 3 min"), (90, "about 2 min"), (5000, "about 1 h 23 min")]
        {
            assert_eq!(rough_duration(seconds), words);
        }
    }

    proptest! {
        #[test]
        fn any_figure_has_words(figure in proptest::num::f64::ANY, whole in any::<u64>()) {
            prop_assert!(!amount(figure).is_empty() && percent(figure).ends_with(['%', '–']));
            prop_assert!(!memory(whole).is_empty() && !duration(whole).is_empty());
            prop_assert!(bytes(whole).len() < 20 && decimal_bytes(whole).len() < 20);
        }
    }
}
