//! Where a batch job writes: Slurm's file name patterns, filled in for one job, and the options that set them.
//!
//! Tested with Slurm 22.05: `%J` is the job ID and `%s` is `batch` for a script, widths go up to ten digits and
//! affect numbers only, and a backslash turns patterns off.

use super::job::SlurmJob;
use super::node_list;
use crate::text::sanitize;

const MAX_PATH_LEN: usize = 4096;
/// The most words read from a submit line.
const MAX_WORDS: usize = 2000;
/// The task index that Slurm writes for a job outside an array.
const NO_TASK_INDEX: u64 = 4_294_967_294;
/// The most digits of a number.
const MAX_WIDTH: usize = 10;

/// The output options from the command line, with patterns not filled in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputOptions {
    /// `-o`, `--output`.
    pub output: Option<String>,
    /// `-e`, `--error`.
    pub error: Option<String>,
    /// `-D`, `--chdir`.
    pub folder: Option<String>,
}

/// The full path behind a pattern; without a pattern, Slurm's default. None while it is unknown: before array tasks
/// are separate jobs, and before a node that is part of the name is chosen.
pub fn resolve_output_path(pattern: Option<&str>, job: &SlurmJob) -> Option<String> {
    let usual = if job.id.task.is_some() || job.tasks.is_some() { "slurm-%A_%a.out" } else { "slurm-%j.out" };
    let name = expand_pattern(pattern.unwrap_or(usual), job)?;
    if name.starts_with('/') {
        return Some(name);
    }
    let folder = job.work_dir.trim_end_matches('/');
    let known = job.work_dir.starts_with('/') && !name.is_empty();
    known.then(|| sanitize(&format!("{folder}/{name}"), MAX_PATH_LEN))
}

pub fn expand_pattern(pattern: &str, job: &SlurmJob) -> Option<String> {
    if pattern.contains('\\') {
        return Some(sanitize(&pattern.replace('\\', ""), MAX_PATH_LEN));
    }
    let mut name = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('%') {
        if name.len() > MAX_PATH_LEN {
            break;
        }
        name.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let width = after[..digits].parse::<usize>().unwrap_or(0).min(MAX_WIDTH);
        let mut letters = after[digits..].chars();
        let letter = letters.next();
        rest = letters.as_str();
        match letter {
            Some('%') => name.push('%'),
            Some(letter) if "AajJxuNnstb".contains(letter) => {
                name.push_str(&pattern_value(letter, width, job)?);
            }
            // Not a pattern: keep it as is.
            _ => {
                name.push('%');
                rest = after;
            }
        }
    }
    name.push_str(rest);
    Some(sanitize(&name, MAX_PATH_LEN))
}

fn pattern_value(letter: char, width: usize, job: &SlurmJob) -> Option<String> {
    let alone = job.tasks.is_none();
    let number = |number: u64| format!("{number:0width$}");
    match letter {
        'A' => Some(number(job.id.number)),
        'a' => alone.then(|| number(job.id.task.map_or(NO_TASK_INDEX, u64::from))),
        'b' => alone.then(|| number(job.id.task.map_or(NO_TASK_INDEX, u64::from) % 10)),
        'j' | 'J' => alone.then(|| number(job.raw_id)),
        'x' => Some(job.name.clone()),
        'u' => Some(job.user.clone()),
        'N' => node_list::first_node(&job.node_list),
        's' => Some("batch".to_owned()),
        _ => Some(number(0)),
    }
}

/// Short options whose value may be the next word.
const SHORT_WITH_VALUE: &str = "AaBbCcDdeFGiJLMmNnopqStwxZ";
/// Long options without a value, or with one only after `=`.
const LONG_WITHOUT_VALUE: [&str; 24] = [
    "parsable",
    "hold",
    "exclusive",
    "requeue",
    "no-requeue",
    "test-only",
    "wait",
    "quiet",
    "verbose",
    "contiguous",
    "overcommit",
    "oversubscribe",
    "share",
    "spread-job",
    "reboot",
    "ignore-pbs",
    "nice",
    "no-kill",
    "propagate",
    "get-user-env",
    "use-min-nodes",
    "wait-all-nodes",
    "disable-stdout-job-summary",
    "help",
];

/// Parses a job's submit line. Slurm stores it without the original quotes, so a value ends at its first space.
/// Parsing stops at the script, because the script's own options mean something else.
pub fn parse_output_options(submit_line: &str) -> OutputOptions {
    let mut found = OutputOptions::default();
    let mut words = submit_line.split_whitespace().skip(1).take(MAX_WORDS);
    while let Some(word) = words.next() {
        let (name, value) = if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            if name.is_empty() || name == "wrap" {
                break;
            }
            let takes_next = value.is_none() && !LONG_WITHOUT_VALUE.contains(&name);
            (name, if takes_next { words.next() } else { value })
        } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
            let Some(at) = short.find(|c| SHORT_WITH_VALUE.contains(c)) else { continue };
            let (letter, value) = (&short[at..=at], &short[at + 1..]);
            (letter, if value.is_empty() { words.next() } else { Some(value) })
        } else {
            break;
        };
        match name {
            "output" | "o" => found.output = value.map(clean_path),
            "error" | "e" => found.error = value.map(clean_path),
            "chdir" | "workdir" | "D" => found.folder = value.map(clean_path),
            _ => {}
        }
    }
    found
}

fn clean_path(value: &str) -> String {
    sanitize(value, MAX_PATH_LEN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::slurm::array_tasks::ArrayTaskSet;
    use crate::slurm::job::JobId;

    fn job() -> SlurmJob {
        SlurmJob {
            id: JobId::without_task(20037),
            raw_id: 20037,
            name: "na me".into(),
            user: "alice".into(),
            node_list: "c[2-3]".into(),
            work_dir: "/home/alice/names".into(),
            ..SlurmJob::default()
        }
    }

    fn task() -> SlurmJob {
        SlurmJob { id: JobId { number: 20038, task: Some(7) }, name: "arr".into(), raw_id: 20044, ..job() }
    }

    #[test]
    fn as_the_test_cluster_named_its_files() {
        let cases = [
            (
                "o-J%J-s%s-t%t-n%n-N%N-j%8j-a%4a-A%7A-x%9x-u%u-%%-q%q-%12N-%3s-%03j-end%",
                "o-J20037-sbatch-t0-n0-Nc2-j00020037-a4294967294-A0020037-xna me-ualice-%-q%q-c2-batch-20037-end%",
            ),
            ("%15j", "0000020037"),
            ("q\\-%j-%x", "q-%j-%x"),
        ];
        for (pattern, expected) in cases {
            assert_eq!(expand_pattern(pattern, &job()).as_deref(), Some(expected), "{pattern}");
        }
        assert_eq!(expand_pattern("%A-%4a-%j", &task()).as_deref(), Some("20038-0007-20044"));
    }

    #[test]
    fn whole_paths() {
        let path_for = |pattern, job: &SlurmJob| resolve_output_path(pattern, job).unwrap_or_default();
        assert_eq!(path_for(None, &job()), "/home/alice/names/slurm-20037.out");
        assert_eq!(path_for(None, &task()), "/home/alice/names/slurm-20038_7.out");
        assert_eq!(path_for(Some("/tmp/%x"), &job()), "/tmp/na me");
        assert_eq!(path_for(Some("logs/%u"), &job()), "/home/alice/names/logs/alice");
        let waits = SlurmJob { tasks: ArrayTaskSet::parse("1-3"), node_list: String::new(), ..job() };
        assert_eq!(resolve_output_path(None, &waits), None);
        assert_eq!(resolve_output_path(Some("%x.out"), &waits).as_deref(), Some("/home/alice/names/na me.out"));
        assert_eq!(resolve_output_path(Some("%N"), &waits), None);
        assert_eq!(resolve_output_path(None, &SlurmJob { work_dir: String::new(), ..job() }), None);
    }

    #[test]
    fn what_was_asked_for() {
        let read = |line: &str| {
            let OutputOptions { output, error, folder } = parse_output_options(line);
            [output, error, folder].map(Option::unwrap_or_default)
        };
        let cases = [
            ("sbatch --parsable -J array -o %x-%j.out -t 10 --array=0-3 -o %x-%A_%a.out", ["%x-%A_%a.out", "", ""]),
            ("sbatch --output=a --error b -D /x job.sh -o c", ["a", "b", "/x"]),
            ("sbatch -Hoa -eb --chdir=/y job.sh", ["a", "b", "/y"]),
            ("sbatch --hold -o a --wrap srun -e b true", ["a", "", ""]),
            ("srun -Q -t 1 bash -c echo -o x", ["", "", ""]),
            ("SBATCH --comment /opt/slurm/bin/sbatch --parsable /scratch/brad/x.sh --output y", ["", "", ""]),
            ("", ["", "", ""]),
            ("sbatch -o", ["", "", ""]),
        ];
        for (line, expected) in cases {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[%0-9a-zA-Z\\\\/é -]{0,60}|(?s).{0,60}") {
            let _ = expand_pattern(&text, &task());
            let _ = resolve_output_path(Some(&text), &job());
            let _ = parse_output_options(&text);
            let _ = parse_output_options(&format!("sbatch -{text} --{text}"));
        }
    }
}
