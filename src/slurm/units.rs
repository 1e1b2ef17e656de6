//! Times and memory sizes as Slurm writes them.

use crate::clock::SECONDS_PER_DAY;
use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeLimit {
    /// Slurm did not report it.
    #[default]
    Unknown,
    Unlimited,
    /// Minutes, rounded up as Slurm does.
    Minutes(u32),
}

impl TimeLimit {
    /// Parses `1-00:00:00`, `1-12`, `3:00:00`, `30:00` (minutes and seconds), `90` (minutes), `infinite`, `n/a`.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        if ["unlimited", "infinite", "-1"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
            return Self::Unlimited;
        }
        parse_duration_s(text)
            .and_then(|seconds| u32::try_from(seconds.div_ceil(60)).ok())
            .map_or(Self::Unknown, Self::Minutes)
    }

    /// The minutes, if there is a limit.
    pub const fn minutes(self) -> Option<u32> {
        match self {
            Self::Minutes(minutes) => Some(minutes),
            Self::Unknown | Self::Unlimited => None,
        }
    }
}

/// In the form that Slurm writes and accepts: `1-00:00:00`, `03:00:00`, `UNLIMITED`.
impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Unknown => f.write_str("N/A"),
            Self::Unlimited => f.write_str("UNLIMITED"),
            Self::Minutes(minutes) => {
                let (days, hours, minutes) = (minutes / 1440, minutes / 60 % 24, minutes % 60);
                if days > 0 {
                    write!(f, "{days}-")?;
                }
                write!(f, "{hours:02}:{minutes:02}:00")
            }
        }
    }
}

/// Parses a Slurm time into seconds; a single number is minutes.
pub(super) fn parse_duration_s(text: &str) -> Option<u64> {
    const HOURS_FIRST: &[u64] = &[3600, 60, 1];
    let (days, rest) = text.split_once('-').unwrap_or(("0", text));
    let units: &[u64] = match rest.split(':').count() {
        1 if rest == text => &[60],
        2 if rest == text => &[60, 1],
        _ => HOURS_FIRST,
    };
    let mut total = parse_digits(days)? * SECONDS_PER_DAY.unsigned_abs();
    for (place, part) in rest.split(':').enumerate() {
        total += parse_digits(part)? * units.get(place)?;
    }
    Some(total)
}

/// Digits only, and few enough that sums cannot overflow.
fn parse_digits(text: &str) -> Option<u64> {
    let digits = (1..=10).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// Mebibytes from `767000` (already mebibytes), `767000M`, `4G`, `1.5T`, `4Gn`, rounded up. None for `UNLIMITED` and
/// the like.
pub fn parse_memory_mb(text: &str) -> Option<u64> {
    let text = text.trim();
    // Old versions of sacct append n (per node) or c (per core).
    let text = text.strip_suffix(['n', 'c']).unwrap_or(text);
    let text = text.strip_suffix(['B', 'b']).unwrap_or(text);
    let (amount, kib) = match text.char_indices().last()? {
        (at, unit) if unit.is_ascii_alphabetic() => {
            let power = "KMGTP".find(unit.to_ascii_uppercase())?;
            (&text[..at], 1_u128 << (10 * power))
        }
        _ => (text, 1024),
    };
    let (whole, part) = amount.split_once('.').unwrap_or((amount, "0"));
    let amount = u128::from(parse_digits(whole)?) * 1000 + u128::from(parse_thousandths(part)?);
    u64::try_from((amount * kib).div_ceil(1000 * 1024)).ok()
}

/// The digits after a decimal point, as thousandths; further ones are dropped.
fn parse_thousandths(part: &str) -> Option<u64> {
    let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let three: String = part.chars().chain("000".chars()).take(3).collect();
    if digits { parse_digits(&three) } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn time_limits_as_the_commands_print_them() {
        use TimeLimit::{Minutes, Unknown, Unlimited};
        let cases = [
            ("1-00:00:00", Minutes(1440)),
            ("7-00:00:00", Minutes(10_080)),
            ("1-12:00:00", Minutes(2160)),
            ("1-12:30", Minutes(2190)),
            ("2-6", Minutes(54 * 60)),
            ("1:00:00", Minutes(60)),
            ("00:30:00", Minutes(30)),
            ("30:00", Minutes(30)),
            ("3:00", Minutes(3)),
            ("0:01", Minutes(1)),
            ("90", Minutes(90)),
            (" 15 ", Minutes(15)),
            ("UNLIMITED", Unlimited),
            ("infinite", Unlimited),
            ("-1", Unlimited),
            ("n/a", Unknown),
            ("", Unknown),
            ("Partition_Limit", Unknown),
            ("1-", Unknown),
            ("1:2:3:4", Unknown),
            ("1-2:3:4:5", Unknown),
            ("-5", Unknown),
            ("99999999999999999999-00:00:00", Unknown),
            ("9999999999-00:00:00", Unknown),
        ];
        for (text, expected) in cases {
            assert_eq!(TimeLimit::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn memory_as_the_commands_print_it() {
        let cases = [
            ("767000", Some(767_000)),
            ("767000M", Some(767_000)),
            ("4G", Some(4096)),
            ("4Gn", Some(4096)),
            ("4Gc", Some(4096)),
            ("4GB", Some(4096)),
            ("1.5T", Some(1_572_864)),
            ("15848K", Some(16)),
            ("0", Some(0)),
            ("UNLIMITED", None),
            ("(null)", None),
            ("", None),
            ("G", None),
            ("1.é", None),
            ("1.", None),
            ("-4G", None),
            ("99999999999999999999", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_memory_mb(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_time_limit_reads_back(minutes in any::<u32>()) {
            let limit = TimeLimit::Minutes(minutes);
            prop_assert_eq!(TimeLimit::parse(&limit.to_string()), limit);
        }

        #[test]
        fn units_of_memory_agree(amount in 0_u64..1_000_000_000) {
            prop_assert_eq!(parse_memory_mb(&amount.to_string()), Some(amount));
            prop_assert_eq!(parse_memory_mb(&format!("{amount}M")), Some(amount));
            prop_assert_eq!(parse_memory_mb(&format!("{amount}G")), Some(amount * 1024));
            prop_assert_eq!(parse_memory_mb(&format!("{amount}K")), Some(amount.div_ceil(1024)));
        }

        #[test]
        fn any_text_is_survived(text in "[0-9:.KMGTPnc-]{0,40}|\\PC{0,40}") {
            let _ = TimeLimit::parse(&text);
            let _ = parse_memory_mb(&text);
        }
    }
}
