//! How many jobs are ahead of one: the pending jobs of a whole cluster, counted by priority and partition.

use std::collections::BTreeMap;

use super::text::is_name;

/// The most partitions and priorities kept.
const MAX_PARTITIONS: usize = 1000;
const MAX_LINES: usize = 200_000;

/// Pending jobs by partition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PendingPriorityCounts {
    /// Priorities from the highest, each with the number of jobs at that priority or higher.
    partitions: BTreeMap<String, Vec<(u64, u64)>>,
}

/// Parses lines of `COUNT PRIORITY PARTITION[,PARTITION]`, as printed by
/// `squeue -h -t PD -o "%Q %P" | sort | uniq -c`. A pending array counts once. Held jobs have no priority and are
/// left out.
pub fn parse_pending_counts(answer: &str) -> PendingPriorityCounts {
    let mut partitions: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    for line in answer.lines().take(MAX_LINES) {
        let mut words = line.split_whitespace();
        let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok());
        let (Some(count), Some(priority)) = (number(words.next()), number(words.next())) else {
            continue;
        };
        let names = words.next().unwrap_or_default().split(',').filter(|name| is_name(name));
        for name in names.filter(|_| priority > 0).take(MAX_PARTITIONS) {
            if let Some(ranks) = partitions.get_mut(name) {
                ranks.push((priority, count));
            } else if partitions.len() < MAX_PARTITIONS {
                partitions.insert(name.to_owned(), vec![(priority, count)]);
            }
        }
    }
    for ranks in partitions.values_mut() {
        ranks.sort_unstable_by(|one, other| other.cmp(one));
        let mut sum = 0_u64;
        for (_, count) in ranks.iter_mut() {
            sum = sum.saturating_add(*count);
            *count = sum;
        }
        // Among several entries with one priority, the last holds the sum.
        ranks.reverse();
        ranks.dedup_by_key(|(priority, _)| *priority);
        ranks.reverse();
        ranks.shrink_to_fit();
    }
    PendingPriorityCounts { partitions }
}

impl PendingPriorityCounts {
    /// How many jobs in a partition have a higher priority, and how many are pending there in total.
    pub fn count_ahead(&self, partition: &str, priority: u64) -> (u64, u64) {
        let Some(ranks) = self.partitions.get(partition) else { return (0, 0) };
        let higher = ranks.partition_point(|(rank, _)| *rank > priority);
        let ahead = higher.checked_sub(1).and_then(|last| ranks.get(last));
        let count = |rank: Option<&(u64, u64)>| rank.map_or(0, |(_, count)| *count);
        (count(ahead), count(ranks.last()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const V22: &str = include_str!("../../tests/fixtures/slurm/squeue-ahead-22.05.txt");

    #[test]
    fn recorded_counts() {
        let waiting = parse_pending_counts(V22);
        assert_eq!(waiting.count_ahead("trial", 7924), (1, 2));
        assert_eq!(waiting.count_ahead("trial", 7974), (0, 2));
        assert_eq!(waiting.count_ahead("gpu", 1), (0, 0), "all of these are held");
    }

    #[test]
    fn partitions_together_and_lines_in_any_order() {
        let waiting = parse_pending_counts("  3 10 a,b\n 2 30 a\n1 20 a\n5 10 b\nx y z\n7 0 a\n1 20 a\n");
        assert_eq!(waiting.count_ahead("a", 10), (4, 7));
        assert_eq!(waiting.count_ahead("a", 5), (7, 7));
        assert_eq!(waiting.count_ahead("a", 25), (2, 7));
        assert_eq!(waiting.count_ahead("b", 10), (0, 8));
        assert_eq!(waiting.count_ahead("c", 10), (0, 0));
    }

    proptest! {
        #[test]
        fn counts_agree(lines in proptest::collection::vec((1_u64..9, 1_u64..9), 0..30), rank in 0_u64..10) {
            let text: Vec<_> = lines.iter().map(|(count, rank)| format!("{count} {rank} p")).collect();
            let above: u64 = lines.iter().filter(|line| line.1 > rank).map(|line| line.0).sum();
            let all: u64 = lines.iter().map(|line| line.0).sum();
            prop_assert_eq!(parse_pending_counts(&text.join("\n")).count_ahead("p", rank), (above, all));
        }

        #[test]
        fn any_text_is_survived(text in "(?s).{0,200}") {
            let _ = parse_pending_counts(&text).count_ahead("p", 1);
        }
    }
}
