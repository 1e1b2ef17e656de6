//! Array task lists as Slurm writes them: `1-50%3`, `5-9,20,30-40:2`.

use std::collections::BTreeSet;
use std::fmt;

/// The most ranges kept from one list.
const MAX_RANGES: usize = 20_000;
/// Slurm's own maximum for a task index is far lower.
const MAX_TASK_INDEX: u32 = 4_000_001;

/// Some tasks of an array, as ranges that do not overlap in Slurm's output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArrayTaskSet {
    ranges: Vec<(u32, u32, u32)>,
    /// How many may run at a time; none: no limit.
    pub max_running: Option<u32>,
    /// Whether the list was cut.
    pub is_cut: bool,
}

impl ArrayTaskSet {
    /// Parses the list, with or without brackets. None if it contains no task.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('[').trim_end_matches(']');
        let (list, at_once) = match text.split_once('%') {
            Some((list, most)) => (list, most.parse().ok()),
            None => (text, None),
        };
        let mut set = Self { max_running: at_once, ..Self::default() };
        for word in list.split(',') {
            if word.starts_with("...") || set.ranges.len() == MAX_RANGES {
                set.is_cut = true;
                break;
            }
            set.ranges.push(parse_range(word)?);
        }
        (!set.ranges.is_empty()).then_some(set)
    }

    /// The set of these tasks, in order. None if there are none.
    pub fn from_tasks(tasks: impl IntoIterator<Item = u32>) -> Option<Self> {
        let tasks: BTreeSet<u32> = tasks.into_iter().filter(|task| *task <= MAX_TASK_INDEX).collect();
        let mut ranges: Vec<(u32, u32, u32)> = Vec::new();
        for task in tasks {
            match ranges.last_mut() {
                Some((_, last, _)) if *last + 1 == task => *last = task,
                _ => ranges.push((task, task, 1)),
            }
        }
        (!ranges.is_empty()).then_some(Self { ranges, ..Self::default() })
    }

    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|(first, last, step)| u64::from((last - first) / step) + 1).sum()
    }

    /// Always false: a set has at least one task.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub fn contains(&self, task: u32) -> bool {
        self.ranges
            .iter()
            .any(|(first, last, step)| (first..=last).contains(&&task) && (task - first).is_multiple_of(*step))
    }

    /// The tasks in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|(first, last, step)| (*first..=*last).step_by(usize::try_from(*step).unwrap_or(1)))
    }
}

/// In the form that Slurm accepts, without the limit: `5-9,20,30-40:2`.
impl fmt::Display for ArrayTaskSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (first, last, step)) in self.ranges.iter().enumerate() {
            if place > 0 {
                f.write_str(",")?;
            }
            match (first == last, step) {
                (true, _) => write!(f, "{first}")?,
                (false, 1) => write!(f, "{first}-{last}")?,
                (false, _) => write!(f, "{first}-{last}:{step}")?,
            }
        }
        Ok(())
    }
}

fn parse_range(word: &str) -> Option<(u32, u32, u32)> {
    let (range, step) = match word.split_once(':') {
        Some((range, step)) => (range, parse_index(step)?),
        None => (word, 1),
    };
    let (first, last) = match range.split_once('-') {
        Some((first, last)) => (parse_index(first)?, parse_index(last)?),
        None => (parse_index(range)?, parse_index(range)?),
    };
    (first <= last && step > 0).then_some((first, last, step))
}

fn parse_index(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok().filter(|number| *number <= MAX_TASK_INDEX) } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_of_the_queue() {
        let set = ArrayTaskSet::parse("[1-50%3]").unwrap();
        assert_eq!((set.len(), set.max_running), (50, Some(3)));
        let set = ArrayTaskSet::parse("5-9,20,30-40:2").unwrap();
        assert_eq!(set.len(), 5 + 1 + 6);
        assert!(set.contains(36) && !set.contains(35) && set.contains(20));
        assert_eq!(set.to_string(), "5-9,20,30-40:2");
        assert_eq!(set.iter().count(), 12);
        let set = ArrayTaskSet::parse("1-3,5,...").unwrap();
        assert!(set.is_cut);
        let set = ArrayTaskSet::from_tasks([7, 3, 4, 5, 11, 3]).unwrap();
        assert_eq!(set.to_string(), "3-5,7,11");
        assert_eq!(ArrayTaskSet::from_tasks([]), None);
        for bad in ["", "x", "5-1", "1-2:0", "1-", "-1", "1-99999999999"] {
            assert_eq!(ArrayTaskSet::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_list_reads_back(pieces in proptest::collection::vec((0_u32..1000, 0_u32..1000, 1_u32..9), 1..20)) {
            let ranges = pieces.into_iter().map(|(first, more, step)| (first, first + more, step)).collect();
            let set = ArrayTaskSet { ranges, max_running: None, is_cut: false };
            let again = ArrayTaskSet::parse(&set.to_string()).unwrap();
            prop_assert_eq!(again.iter().collect::<Vec<_>>(), set.iter().collect::<Vec<_>>());
            prop_assert_eq!(again.len(), set.len());
        }

        #[test]
        fn any_text_is_survived(text in "[0-9,:%.\\[\\]-]{0,40}|\\PC{0,40}") {
            let _ = ArrayTaskSet::parse(&text);
        }
    }
}
