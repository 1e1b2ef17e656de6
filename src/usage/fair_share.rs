//! A group's fair share: its usage against its share, the outlook, and the history. Pure.

use super::forecast::whole_days;
use crate::clock::{Day, UnixTime};
use crate::explain::fair_share::{FairShareExplanation, FairShareFigures, explain_fair_share};
use crate::format;
use crate::slurm::fair_share::SshareRow;
use crate::store::fair_share_history::FairSharePoint;

/// Ratios above this are not told apart.
const MAX_RATIO: f64 = 1000.0;
/// No day further ahead than this is predicted.
const MAX_FORECAST_DAYS: f64 = 365.0;
/// Above this ratio a group has used more than its share; below `1 / NEAR_SHARE_RATIO`, less.
pub const NEAR_SHARE_RATIO: f64 = 1.1;

/// An account's usage as a multiple of its share: 1 is exactly its share. None if the cluster does not say.
pub fn usage_ratio(share: &SshareRow) -> Option<f64> {
    let good = |ratio: &f64| ratio.is_finite() && *ratio >= 0.0;
    // For an account that was never used, Slurm shows a meaningless level close to 0 for a while.
    if share.effective_usage.is_some_and(|used| used <= 0.0) {
        return Some(0.0);
    }
    let of_parts = || Some(share.effective_usage? / share.norm_shares?).filter(good);
    let of_level = || {
        let level = share.level_fs?;
        if level == f64::INFINITY { Some(0.0) } else { Some(level.recip()).filter(good) }
    };
    of_parts().or_else(of_level).map(|ratio| ratio.min(MAX_RATIO))
}

/// Describes it in words and on a scale, and until when it stays so. `half_life` is in hours: after that time, usage counts half.
pub fn describe_fair_share(ratio: Option<f64>, half_life: Option<u32>, now: UnixTime) -> FairShareExplanation {
    let level = ratio.map(|ratio| if ratio > 0.0 { ratio.recip() } else { f64::INFINITY });
    let plain = explain_fair_share(&FairShareFigures { level_fs: level, ..FairShareFigures::default() });
    let sentence = match ratio {
        None => "The cluster doesn't report how much of its share the group has used.".to_owned(),
        Some(ratio) if ratio <= 0.0 => {
            "The group hasn't used anything recently, so its jobs have high priority.".to_owned()
        }
        Some(ratio) if ratio > NEAR_SHARE_RATIO => describe_overuse(ratio, half_life, now),
        Some(ratio) if ratio * NEAR_SHARE_RATIO < 1.0 => format!(
            "The group has recently used {} of its share, so its jobs have higher priority than those of groups that \
             used more.",
            format::percent(ratio)
        ),
        Some(_) => "The group has recently used about its share, so its jobs have average priority.".to_owned(),
    };
    FairShareExplanation { sentence, ..plain }
}

fn describe_overuse(ratio: f64, half_life: Option<u32>, now: UnixTime) -> String {
    let used = format!("The group has recently used {} its share", format_times(ratio));
    let longer = "Its jobs will wait longer than other groups' jobs";
    let Some(until) = recovery_day(ratio, half_life, now) else {
        return match half_life {
            Some(_) => format!("{used}. {longer} for more than a year, even if it runs nothing."),
            None => format!("{used}. {longer}."),
        };
    };
    format!("{used}. {longer} until about {}, even if it runs nothing before then.", until.short())
}

/// The day on which a group is back at its share if it runs nothing and others go on as before: usage decays by half
/// in each half-life. Rough, since it depends on what others run. None without a half-life, or if the group is at its
/// share already.
pub fn recovery_day(ratio: f64, half_life: Option<u32>, now: UnixTime) -> Option<Day> {
    let days = f64::from(half_life?) / 24.0 * ratio.log2();
    if !(days > 0.0 && days <= MAX_FORECAST_DAYS) {
        return None;
    }
    Some(Day::from_time(now).plus(whole_days(days.ceil())))
}

/// `2.1 times`, `37 times`, `more than 1,000 times`.
pub fn format_times(ratio: f64) -> String {
    match ratio {
        r if r >= MAX_RATIO => "more than 1,000 times".to_owned(),
        r if r >= 10.0 => format!("{r:.0} times"),
        r => format!("{r:.1} times"),
    }
}

/// The ratio of a point; none if the account has no share.
pub fn ratio_of_point(point: &FairSharePoint) -> Option<f64> {
    let ratio = point.used / point.share;
    (ratio.is_finite() && ratio >= 0.0).then(|| ratio.min(MAX_RATIO))
}

/// The last point of each day, newest first: for a table.
pub fn last_point_per_day(points: &[FairSharePoint]) -> Vec<(Day, FairSharePoint)> {
    let mut days: Vec<(Day, FairSharePoint)> = Vec::new();
    for point in points.iter().rev() {
        let day = Day::from_time(point.at);
        if days.last().is_none_or(|(known, _)| *known != day) {
            days.push((day, *point));
        }
    }
    days
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: UnixTime = UnixTime(1_794_820_320);

    fn share(norm: Option<f64>, used: Option<f64>, level: Option<f64>) -> SshareRow {
        SshareRow { norm_shares: norm, effective_usage: used, level_fs: level, ..SshareRow::default() }
    }

    #[test]
    fn ratios_of_told_shares() {
        let of = |norm, used, level| usage_ratio(&share(norm, used, level));
        assert_eq!(of(Some(0.2), Some(0.1), Some(2.0)), Some(0.5));
        assert_eq!(of(None, None, Some(0.5)), Some(2.0));
        assert_eq!(of(Some(0.2), Some(0.0), Some(0.0001)), Some(0.0), "never used");
        assert_eq!(of(None, None, Some(f64::INFINITY)), Some(0.0));
        assert_eq!(of(Some(0.0), Some(0.1), None), None);
        assert_eq!(of(None, None, None), None);
    }

    #[test]
    fn words_say_until_when() {
        let said = |ratio, half| describe_fair_share(Some(ratio), half, NOW).sentence;
        assert_eq!(
            said(4.0, Some(168)),
            "The group has recently used 4.0 times its share. Its jobs will wait longer than other groups' jobs until \
             about 30 Nov, even if it runs nothing before then.",
            "two half-lives of a week"
        );
        assert!(said(2.1, None).ends_with("than other groups' jobs."), "nothing is foretold");
        assert!(said(1000.0, Some(9000)).contains("more than a year"));
        assert!(said(1.0, Some(168)).contains("about its share"));
        assert!(said(0.37, Some(168)).contains("37% of its share"));
        assert!(said(0.0, Some(168)).contains("anything"));
        assert_eq!(describe_fair_share(None, Some(168), NOW).position, None);
        assert_eq!(describe_fair_share(Some(10.0), None, NOW).position, Some(25));
        assert_eq!(recovery_day(0.5, Some(168), NOW), None);
        assert_eq!(recovery_day(1.0, Some(168), NOW), None);
    }

    #[test]
    fn one_row_a_day() {
        let at = |hours: i64| FairSharePoint { at: NOW.plus(hours * 3600), share: 0.5, used: 0.25 };
        let rows = last_point_per_day(&[at(-30), at(-24), at(-6), at(0)]);
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert_eq!(rows[1].1.at, NOW.plus(-24 * 3600), "the last of its day");
        assert_eq!(rows[0].1.at, NOW);
        assert_eq!(ratio_of_point(&at(0)), Some(0.5));
        assert_eq!(ratio_of_point(&FairSharePoint { share: 0.0, ..at(0) }), None);
    }

    proptest! {
        #[test]
        fn any_numbers_are_survived(
            norm in proptest::option::of(proptest::num::f64::ANY),
            used in proptest::option::of(proptest::num::f64::ANY),
            level in proptest::option::of(proptest::num::f64::ANY),
            half in proptest::option::of(proptest::num::u32::ANY),
        ) {
            let ratio = usage_ratio(&share(norm, used, level));
            prop_assert!(ratio.is_none_or(|ratio| (0.0..=MAX_RATIO).contains(&ratio)));
            let words = describe_fair_share(ratio, half, NOW);
            prop_assert!(!words.sentence.is_empty() && words.sentence.len() < 300);
        }
    }
}
