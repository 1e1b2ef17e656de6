//! The parts of a pending job's priority, as bars that add up to it.

use crate::format;
use crate::slurm::priority_factors::SprioFactors;

/// Slurm rounds each part, so their sum may differ by about a point for each of them.
const MAX_ROUNDING: i64 = 10;

/// A part of a priority.
pub struct PriorityPart {
    pub label: &'static str,
    /// Negative if it lowers the priority.
    pub points: i64,
    /// The points in words.
    pub words: String,
}

/// The parts of a priority, largest first; what lowers it comes last. They add up to Slurm's figure.
pub fn priority_parts(factors: &SprioFactors) -> Vec<PriorityPart> {
    let whole = |points: u64| i64::try_from(points).unwrap_or(i64::MAX);
    let mut parts = vec![
        ("Age", whole(factors.age)),
        ("Fair share", whole(factors.fair_share)),
        ("Job size", whole(factors.size)),
        ("Partition", whole(factors.partition_points)),
        ("QOS", whole(factors.qos)),
        ("Account", whole(factors.association)),
        ("Requested resources", whole(factors.resource_points())),
        ("Site factor", factors.site),
        ("Nice", factors.nice.saturating_neg()),
    ];
    let sum = parts.iter().fold(0_i64, |sum, (_, points)| sum.saturating_add(*points));
    let rest = whole(factors.priority).saturating_sub(sum);
    parts.push((if rest.saturating_abs() <= MAX_ROUNDING { "Rounding" } else { "Other" }, rest));
    parts.retain(|(_, points)| *points != 0);
    parts.sort_by_key(|(_, points)| std::cmp::Reverse(*points));
    let part = |(label, points): (&'static str, i64)| {
        let words = format::count(points.unsigned_abs(), "point");
        PriorityPart { label, points, words: if points < 0 { format!("−{words}") } else { words } }
    };
    parts.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slurm::priority_factors::parse_factors;

    const V22: &str = include_str!("../../../../tests/fixtures/slurm/sprio-22.05.txt");

    fn labels(factors: &SprioFactors) -> Vec<(&'static str, i64)> {
        priority_parts(factors).iter().map(|part| (part.label, part.points)).collect()
    }

    #[test]
    fn recorded_parts_add_up() {
        let all = parse_factors(V22);
        let parts = priority_parts(&all[0]);
        let found: Vec<_> = parts.iter().map(|part| (part.label, part.words.as_str())).collect();
        assert_eq!(
            found,
            [
                ("Fair share", "7,692 points"),
                ("Partition", "200 points"),
                ("Job size", "82 points"),
                ("Nice", "−50 points")
            ]
        );
        for factors in &all {
            let sum: i64 = priority_parts(factors).iter().map(|part| part.points).sum();
            assert_eq!(u64::try_from(sum).unwrap(), factors.priority);
        }
    }

    #[test]
    fn whatever_slurm_adds_is_listed() {
        let factors = SprioFactors {
            priority: 1,
            size: 337,
            partition_points: 200,
            nice: 1000,
            resources: "cpu=100.6,mem=20".into(),
            ..SprioFactors::default()
        };
        let expected =
            [("Job size", 337), ("Other", 343), ("Partition", 200), ("Requested resources", 121), ("Nice", -1000)];
        let mut sorted = expected.to_vec();
        sorted.sort_by_key(|(_, points)| std::cmp::Reverse(*points));
        assert_eq!(labels(&factors), sorted, "a priority is never below 1");
        let raised = SprioFactors { priority: 61, age: 10, nice: -50, ..SprioFactors::default() };
        assert_eq!(labels(&raised), [("Nice", 50), ("Age", 10), ("Rounding", 1)]);
    }
}
