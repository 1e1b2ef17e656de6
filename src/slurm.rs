//! Slurm's commands: the arguments of each and a parser for its output, one file per command. Pure: nothing here runs
//! a command. Parsers never fail; they skip what they don't understand, and what they return is bounded, because the
//! output comes from a machine that isn't ours.
//!
//! The arguments contain no spaces, quotes or other characters that a shell would change (except `|` inside a word),
//! so that they also work on nodes that split a command line at spaces and run it without a shell. Only `squeue` has
//! tabs in its arguments: its output must parse fast, whatever people named their jobs.

pub mod accounting;
pub mod array_tasks;
pub mod associations;
pub mod config;
pub mod fair_share;
mod fields;
pub mod gres;
pub mod job;
pub mod job_usage;
pub mod live_usage;
pub mod node_list;
pub mod output_path;
pub mod partition_access;
pub mod partitions;
pub mod pending_counts;
pub mod priority_factors;
pub mod queue;
pub mod scontrol_job;
pub mod submit;
pub mod test_only;
pub mod text;
pub mod units;
pub mod version;

/// No output is parsed beyond this many lines.
const MAX_LINES: usize = 20_000;

#[cfg(test)]
mod tests {
    use super::job::JobId;
    use super::{
        accounting, associations, config, fair_share, partition_access, partitions, priority_factors, scontrol_job,
        version,
    };
    use crate::clock::UnixTime;

    #[test]
    fn words_pass_through_a_plain_split() {
        let fixed = [
            (config::PROGRAM, config::ARGS),
            (partitions::PROGRAM, partitions::ARGS),
            (partition_access::PROGRAM, partition_access::ARGS),
            (version::PROGRAM, version::ARGS),
        ];
        let mut words: Vec<String> = fixed
            .iter()
            .flat_map(|(program, args)| std::iter::once(program).chain(*args))
            .map(|word| (*word).to_owned())
            .collect();
        words.push(associations::PROGRAM.to_owned());
        words.extend(associations::args("alice").unwrap());
        words.extend(accounting::args_for_user("k3v9q2xw", "alice", UnixTime(5), None).unwrap());
        words.extend(accounting::steps_args("k3v9q2xw", JobId::without_task(5)).unwrap());
        words.extend(scontrol_job::args(JobId::without_task(5)));
        words.extend(priority_factors::args("alice").unwrap());
        words.extend(fair_share::args(fair_share::SshareUsers::One("alice"), &["def-smith".to_owned()]).unwrap());
        for word in words {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_,=%|.".contains(c);
            assert!(!word.is_empty() && word.chars().all(plain), "{word}");
        }
    }
}
