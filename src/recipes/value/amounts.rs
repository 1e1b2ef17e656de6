//! Durations and amounts of memory as people type them.

use crate::recipes::question::RecipeQuestion;

/// A year: no job runs longer.
const MAX_MINUTES: u64 = 366 * 24 * 60;
/// A pebibyte: no machine has more.
const MAX_MEMORY_MB: u64 = 1 << 30;

/// Minutes from `3h`, `90m`, `1h30`, `2d 12h`, `3 hours`, `1-12:00`, `03:00:00`, `3:00` (hours and minutes).
pub fn parse_duration(text: &str) -> Result<u32, String> {
    let sentence = "Enter a time such as 3:00:00, 90 minutes, 12h or 2 days.";
    let minutes = parse_clock(text.trim()).or_else(|| parse_units(text)).ok_or(sentence)?;
    match minutes {
        0 => Err("Enter at least one minute.".to_owned()),
        1..=MAX_MINUTES => u32::try_from(minutes).map_err(|_| sentence.to_owned()),
        _ => Err("Enter at most one year.".to_owned()),
    }
}

/// `D-HH:MM:SS` and its shorter forms. Two numbers are hours and minutes here, because that is what people mean; the
/// script shows all three.
fn parse_clock(text: &str) -> Option<u64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (parse_digits(days)?, rest),
        None if text.contains(':') => (0, text),
        None => return None,
    };
    let mut parts = rest.split(':');
    let hours = parse_digits(parts.next()?)?;
    let minutes = parts.next().map_or(Some(0), parse_digits)?;
    let seconds = parts.next().map_or(Some(0), parse_digits)?;
    if parts.next().is_some() {
        return None;
    }
    Some(days * 1440 + hours * 60 + minutes + seconds.div_ceil(60))
}

/// `2 days 12 h`; a bare whole number is minutes, as in Slurm.
fn parse_units(text: &str) -> Option<u64> {
    let lower = text.to_lowercase().replace(',', " ").replace("and", " ");
    let mut rest = lower.trim();
    let mut total: u64 = 0;
    let mut last_unit: Option<u64> = None;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let amount: f64 = rest[..end].parse().ok().filter(|amount: &f64| *amount < 1e7)?;
        rest = rest[end..].trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = match (&rest[..end], last_unit) {
            ("s" | "sec" | "second" | "seconds", _) => 1.0 / 60.0,
            // A number without a unit after hours is minutes: 1h30.
            ("m" | "min" | "mins" | "minute" | "minutes", _) | ("", None | Some(60)) => 1.0,
            ("h" | "hr" | "hrs" | "hour" | "hours", _) => 60.0,
            ("d" | "day" | "days", _) => 1440.0,
            ("w" | "week" | "weeks", _) => 10_080.0,
            _ => return None,
        };
        rest = rest[end..].trim_start();
        total = total.checked_add(to_whole((amount * unit).ceil())?)?;
        last_unit = to_whole(unit);
    }
    Some(total)
}

/// Mebibytes from `16G`, `16 gb`, `16384M`, `1.5 TB`, `64 GiB`; a bare number needs a unit.
pub fn parse_memory(text: &str) -> Result<u64, String> {
    let sentence = "Enter an amount with its unit, such as 16 GB or 500 MB.";
    let lower = text.trim().to_lowercase();
    let end = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
    let amount: f64 = lower[..end].parse().map_err(|_| sentence.to_owned())?;
    let unit = match lower[end..].trim() {
        "k" | "kb" | "kib" => 1.0 / 1024.0,
        "m" | "mb" | "mib" => 1.0,
        "g" | "gb" | "gib" => 1024.0,
        "t" | "tb" | "tib" => 1024.0 * 1024.0,
        _ => return Err(sentence.to_owned()),
    };
    match to_whole((amount * unit).ceil()) {
        None | Some(0) => Err("Enter more than 0.".to_owned()),
        Some(mb) if mb > MAX_MEMORY_MB => Err("No node has that much memory.".to_owned()),
        Some(mb) => Ok(mb),
    }
}

/// A number that is whole and within reason.
fn to_whole(number: f64) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range that was asked for")]
    (0.0..1e15).contains(&number).then_some(number as u64)
}

fn parse_digits(text: &str) -> Option<u64> {
    let good = (1..=6).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if good { text.parse().ok() } else { None }
}

/// Whether an amount is within its question's limits.
pub(super) fn check_limits<T: PartialOrd>(
    amount: &T,
    question: &RecipeQuestion,
    read: impl Fn(&str) -> Option<T>,
) -> Result<(), String> {
    if read(&question.min.0).is_some_and(|least| *amount < least) {
        return Err(format!("Must be at least {}.", question.min.0));
    }
    if read(&question.max.0).is_some_and(|most| *amount > most) {
        return Err(format!("Must be at most {}.", question.max.0));
    }
    Ok(())
}
