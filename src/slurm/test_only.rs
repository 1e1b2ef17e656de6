//! `sbatch --test-only`: when a job would start, without submitting it. The answer comes on stderr. With
//! `SLURM_TIME_FORMAT=%s` its time is in Unix seconds; other formats lack a time zone and are not read.

use super::text::is_name;
use crate::clock::UnixTime;
use crate::text::sanitize;

/// The program. It needs `SLURM_TIME_FORMAT=%s` in its environment.
pub const PROGRAM: &str = "sbatch";

/// How much of an error message is kept.
const MAX_MESSAGE_LEN: usize = 2000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestOnlyAnswer {
    Starts(TestOnlyStart),
    /// It would be refused; the message.
    Refused(String),
    /// There was no answer in time, or none that can be parsed.
    Unclear,
}

/// When and where it would start, if nothing changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestOnlyStart {
    pub at: UnixTime,
    pub processors: u32,
    pub nodes: String,
    pub partition: String,
}

/// Parses stderr and the exit code.
pub fn parse_test_only(message: &str, code: i32) -> TestOnlyAnswer {
    if let Some(start) = message.lines().find_map(parse_start) {
        return TestOnlyAnswer::Starts(start);
    }
    let message: Vec<String> = message.lines().map(|line| sanitize(line, 400)).collect();
    let message: String = message.join("\n").trim().chars().take(MAX_MESSAGE_LEN).collect();
    // `timeout` exits with 124, or 137 if it had to kill the program.
    if code == 0 || message.is_empty() || matches!(code, 124 | 137) {
        return TestOnlyAnswer::Unclear;
    }
    TestOnlyAnswer::Refused(message)
}

/// `sbatch: Job 20014 to start at 1794834589 using 4 processors on nodes c1 in partition cpu`. Newer versions have a
/// stray ` a` after the time.
fn parse_start(line: &str) -> Option<TestOnlyStart> {
    let (_, rest) = line.split_once(" to start at ")?;
    let (time, rest) = rest.split_once(" using ")?;
    let (processors, rest) = rest.split_once(" processors on ")?;
    let (nodes, partition) = match rest.split_once(" in partition ") {
        Some((nodes, partition)) => (nodes, partition),
        None => (rest, ""),
    };
    let seconds = time.split_whitespace().next()?;
    let is_seconds = (1..=12).contains(&seconds.len()) && seconds.bytes().all(|b| b.is_ascii_digit());
    Some(TestOnlyStart {
        at: UnixTime(is_seconds.then(|| seconds.parse().ok())??),
        processors: processors.trim().parse().ok()?,
        nodes: sanitize(nodes.trim_start_matches("nodes "), 400),
        partition: Some(partition.trim()).filter(|name| is_name(name)).unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FREE: &str = include_str!("../../tests/fixtures/slurm/sbatch-test-only-22.05.txt");
    const FULL: &str = include_str!("../../tests/fixtures/slurm/sbatch-test-only-full-22.05.txt");

    fn recorded(text: &str, name: &str) -> TestOnlyAnswer {
        let part = text.split("=== ").find(|part| part.starts_with(&format!("{name}:"))).unwrap();
        let (message, code) = part.split_once('\n').unwrap().1.rsplit_once("(exit ").unwrap();
        parse_test_only(message, code.trim_end().trim_end_matches(')').parse().unwrap())
    }

    fn starts(at: i64, processors: u32, nodes: &str, partition: &str) -> TestOnlyAnswer {
        let (nodes, partition) = (nodes.to_owned(), partition.to_owned());
        TestOnlyAnswer::Starts(TestOnlyStart { at: UnixTime(at), processors, nodes, partition })
    }

    #[test]
    fn a_cluster_with_room() {
        assert_eq!(recorded(FREE, "free_s"), starts(1_794_834_589, 1, "c1", "cpu"));
        assert_eq!(recorded(FREE, "free_s_c4"), starts(1_794_834_589, 4, "c1", "cpu"));
        assert_eq!(recorded(FREE, "two_nodes"), starts(1_794_834_589, 2, "c[1-2]", "cpu"));
        assert_eq!(recorded(FREE, "gpu"), starts(1_794_834_589, 1, "g2", "gpu"));
        assert_eq!(recorded(FREE, "free"), TestOnlyAnswer::Unclear, "a time without a zone");
        for (name, part) in [
            ("toolong", "time limit is invalid"),
            ("account", "Invalid account"),
            ("partition", "invalid partition specified: nowhere\nallocation failure"),
            ("mem", "node configuration"),
            ("gres", "node configuration"),
            ("option", "Invalid --time"),
            ("many", "More processors"),
        ] {
            let TestOnlyAnswer::Refused(message) = recorded(FREE, name) else { panic!("{name}") };
            assert!(message.contains(part), "{name}: {message}");
        }
    }

    #[test]
    fn a_full_partition() {
        assert_eq!(recorded(FULL, "v100"), starts(1_794_837_009, 1, "g2", "gpu"));
        assert_eq!(recorded(FULL, "t4"), starts(1_794_836_109, 1, "g1", "gpu"));
        assert_eq!(recorded(FULL, "both"), starts(1_794_837_009, 16, "g[1-2]", "gpu"));
        assert_eq!(recorded(FULL, "short"), starts(1_794_837_909, 8, "g1", "gpu"));
    }

    #[test]
    fn other_versions_and_silence() {
        let newer =
            "sbatch: Job 10820990 to start at 1789560641 a using 1 processors on nodes cn-f003 in partition long-cpu";
        assert_eq!(parse_test_only(newer, 0), starts(1_789_560_641, 1, "cn-f003", "long-cpu"));
        assert_eq!(parse_test_only("", 124), TestOnlyAnswer::Unclear);
        assert_eq!(parse_test_only("sbatch: error: slow", 137), TestOnlyAnswer::Unclear);
        assert_eq!(parse_test_only("", 1), TestOnlyAnswer::Unclear);
        let greeted = format!("Welcome!\n{newer}\n");
        assert_eq!(parse_test_only(&greeted, 0), parse_test_only(newer, 0));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s)( to start at | using |[0-9]{1,14}| processors on | in partition |.){0,40}", code in any::<i32>()) {
            let _ = parse_test_only(&text, code);
        }
    }
}
