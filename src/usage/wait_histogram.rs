//! Waiting times in buckets, so that many days can be added up and still have a median.

use std::fmt;

use crate::clock::SECONDS_PER_DAY;

/// Upper bounds of the buckets, in seconds; the last bucket has none.
const BUCKET_ENDS: [u64; 15] =
    [10, 30, 60, 120, 300, 600, 1200, 2400, 3600, 7200, 14_400, 28_800, 57_600, 86_400, 259_200];
const BUCKETS: usize = BUCKET_ENDS.len() + 1;
/// The last bucket is assumed to end here.
const LAST_BUCKET_END: u64 = 14 * SECONDS_PER_DAY.unsigned_abs();

/// Number of jobs by waiting time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WaitHistogram([u32; BUCKETS]);

impl WaitHistogram {
    pub fn record(&mut self, seconds: u64) {
        let step = BUCKET_ENDS.iter().position(|end| seconds < *end).unwrap_or(BUCKET_ENDS.len());
        self.0[step] = self.0[step].saturating_add(1);
    }

    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// The median wait in seconds, accurate to its bucket.
    pub fn median(&self) -> Option<u64> {
        let all: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        if all == 0 {
            return None;
        }
        let mut before = 0;
        let mut from = 0;
        for (step, count) in self.0.iter().map(|count| u64::from(*count)).enumerate() {
            let until = BUCKET_ENDS.get(step).copied().unwrap_or(LAST_BUCKET_END);
            if 2 * (before + count) >= all && count > 0 {
                // Assumes that a bucket's jobs are spread evenly over it.
                return Some(from + (until - from) * (all - 2 * before) / (2 * count));
            }
            before += count;
            from = until;
        }
        Some(from)
    }

    /// Parses the format of `Display`.
    pub fn parse(text: &str) -> Self {
        let mut waits = Self::default();
        for (mine, count) in waits.0.iter_mut().zip(text.split(',')) {
            *mine = count.parse().unwrap_or(0);
        }
        waits
    }
}

/// Counts separated by commas, without trailing zeros.
impl fmt::Display for WaitHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.0.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        for (index, count) in self.0[..used].iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            if *count > 0 {
                write!(f, "{count}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_middle_lies_in_its_step() {
        let mut waits = WaitHistogram::default();
        assert_eq!(waits.median(), None);
        for seconds in [5, 5, 90, 5000, 10_000_000] {
            waits.record(seconds);
        }
        assert!((60..120).contains(&waits.median().unwrap()), "{:?}", waits.median());
        assert_eq!(WaitHistogram::parse(&waits.to_string()), waits);
        assert_eq!(WaitHistogram::default().to_string(), "");
    }

    proptest! {
        #[test]
        fn the_middle_is_near(all in proptest::collection::vec(0_u64..2_000_000, 1..60)) {
            let mut waits = WaitHistogram::default();
            for one in &all {
                waits.record(*one);
            }
            let mut sorted = all;
            sorted.sort_unstable();
            let exact = sorted[(sorted.len() - 1) / 2];
            let step = |seconds: u64| BUCKET_ENDS.iter().position(|end| seconds < *end).unwrap_or(BUCKET_ENDS.len());
            let found = waits.median().unwrap();
            prop_assert!(step(found).abs_diff(step(exact)) <= 1, "{found} for {exact}");
            prop_assert_eq!(WaitHistogram::parse(&waits.to_string()), waits);
        }

        #[test]
        fn any_text_is_survived(text in "[0-9,x-]{0,40}") {
            let _ = WaitHistogram::parse(&text).median();
        }
    }
}
