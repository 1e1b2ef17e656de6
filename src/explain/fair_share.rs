//! Fair share in words: how a group's recent usage compares with its share. `LevelFS` is share divided by usage: 1
//! means exactly the share, more means less was used, and `inf` means that nothing was.

use crate::format;

/// A group's figures from `sshare`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FairShareFigures {
    /// Share divided by usage; may be infinite.
    pub level_fs: Option<f64>,
    /// The group's fraction of all shares, from 0 to 1.
    pub norm_shares: Option<f64>,
    /// Its fraction of all usage, from 0 to 1; older usage counts less.
    pub effective_usage: Option<f64>,
}

/// The figures in words and on a scale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FairShareExplanation {
    pub headline: &'static str,
    /// What it means for waiting times.
    pub sentence: String,
    /// The mark's position on a bar from 0 to 100: 50 is exactly the share, lower means more was used. Each step of
    /// 25 is a factor of ten. None if unknown.
    pub position: Option<u8>,
}

pub fn explain_fair_share(shares: &FairShareFigures) -> FairShareExplanation {
    let Some(level) = fair_share_level(shares) else {
        return FairShareExplanation {
            headline: "Usage not reported",
            sentence: "The cluster doesn't report how much of its share your group has used.".to_owned(),
            position: None,
        };
    };
    let (headline, meaning) = match level {
        level if level == f64::INFINITY => {
            ("No recent usage", "Your group hasn't used anything recently, so its jobs have high priority.")
        }
        level if level >= 2.0 => (
            "Usage well below share",
            "Your group has recently used much less than its share, so its jobs have high priority.",
        ),
        level if level >= 1.1 => (
            "Usage below share",
            "Your group has recently used less than its share, so its jobs have slightly higher priority.",
        ),
        level if level > 0.9 => {
            ("Usage close to share", "Your group has recently used about its share, so its jobs have average priority.")
        }
        level if level > 0.5 => (
            "Usage above share",
            "Your group has recently used more than its share, so its jobs wait somewhat longer. Past usage counts less \
             each day.",
        ),
        _ => (
            "Usage well above share",
            "Your group has recently used much more than its share, so its jobs wait longer than other \
             groups' jobs. They can still run whenever there's room. Past usage counts less each day.",
        ),
    };
    let figures = match (shares.norm_shares.and_then(share_percent), shares.effective_usage.and_then(share_percent)) {
        (Some(share), Some(used)) => {
            format!(" Its share is {share} of the cluster; its recent usage is {used}.")
        }
        _ => String::new(),
    };
    let position = Some(position(level));
    FairShareExplanation { headline, sentence: format!("{meaning}{figures}"), position }
}

/// `LevelFS` as reported, or calculated from share and usage. For a while, an account without usage reports a
/// meaningless number close to 0.
fn fair_share_level(shares: &FairShareFigures) -> Option<f64> {
    let good = |level: &f64| !level.is_nan() && *level >= 0.0;
    let unused = shares.effective_usage.is_some_and(|used| used == 0.0);
    if unused && shares.norm_shares.is_none_or(|share| share > 0.0) {
        return Some(f64::INFINITY);
    }
    shares.level_fs.filter(good).or_else(|| {
        let (share, used) = (shares.norm_shares?, shares.effective_usage?);
        Some(share / used).filter(good)
    })
}

/// A logarithmic scale from one hundredth to one hundred.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 100")]
fn position(level: f64) -> u8 {
    let position = 50.0 + 25.0 * level.max(1e-9).log10();
    position.clamp(0.0, 100.0).round() as u8
}

/// None if the number is not a fraction.
fn share_percent(part: f64) -> Option<String> {
    (0.0..=1.005).contains(&part).then(|| format::percent(part))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(level: f64) -> FairShareExplanation {
        explain_fair_share(&FairShareFigures { level_fs: Some(level), ..FairShareFigures::default() })
    }

    #[test]
    fn levels() {
        for (level, position, part) in [
            (f64::INFINITY, 100, "anything"),
            (10.0, 75, "much less"),
            (1.5, 54, "less than its share"),
            (1.0, 50, "about its share"),
            (0.673_123, 46, "somewhat longer"),
            (0.1, 25, "whenever there's room"),
            (0.0001, 0, "much more"),
            (0.0, 0, "much more"),
        ] {
            let words = of(level);
            assert_eq!(words.position, Some(position), "{level}");
            assert!(words.sentence.contains(part), "{}", words.sentence);
        }
    }

    #[test]
    fn figures() {
        let all = FairShareFigures {
            level_fs: Some(0.673_123),
            norm_shares: Some(0.538_554),
            effective_usage: Some(0.800_082),
        };
        assert!(
            explain_fair_share(&all).sentence.ends_with("Its share is 54% of the cluster; its recent usage is 80%.")
        );
        let computed = explain_fair_share(&FairShareFigures { level_fs: None, ..all });
        assert_eq!(computed.position, explain_fair_share(&all).position);
        let fresh = FairShareFigures { level_fs: Some(0.0001), norm_shares: Some(0.1), effective_usage: Some(0.0) };
        assert_eq!(explain_fair_share(&fresh).position, Some(100));
        assert_eq!(explain_fair_share(&FairShareFigures::default()).position, None);
        assert_eq!(of(f64::NAN).position, None);
    }

    proptest! {
        #[test]
        fn any_numbers_are_survived(level in any::<f64>(), share in any::<f64>(), used in any::<f64>()) {
            let words = explain_fair_share(&FairShareFigures { level_fs: Some(level), norm_shares: Some(share), effective_usage: Some(used) });
            prop_assert!(words.position.is_none_or(|at| at <= 100));
        }
    }
}
