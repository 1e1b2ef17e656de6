//! What Slurm says: the words of each command and a reader of its answer, one file per command.
//! Pure: nothing here runs a command. Readers never fail; they skip what they do not understand, and what they
//! return is bounded, because the answer comes from a machine that is not ours.
//!
//! The words hold no blanks, quotes or other characters that a shell would change (`|` inside a word apart), so that
//! they also work on nodes that split a command line on blanks and run it without a shell. `squeue` alone has tabs in
//! its words: its answer has to be read fast, and whatever people called their jobs.

pub mod accounting;
pub mod ahead;
pub mod associations;
pub mod config;
pub mod details;
pub mod factors;
mod fields;
pub mod gres;
pub mod job;
pub mod live_usage;
pub mod nodes;
pub mod output_path;
pub mod partitions;
pub mod queue;
pub mod shares;
pub mod submit;
pub mod tasks;
pub mod test_only;
pub mod text;
pub mod units;
pub mod usage;
pub mod version;

/// No answer is read beyond this many lines.
const MOST_LINES: usize = 20_000;

#[cfg(test)]
mod tests {
    use super::job::JobId;
    use super::{accounting, associations, config, details, factors, partitions, shares, version};
    use crate::clock::UnixTime;

    #[test]
    fn words_pass_through_a_plain_split() {
        let fixed = [
            (config::PROGRAM, config::ARGS),
            (partitions::PROGRAM, partitions::ARGS),
            (version::PROGRAM, version::ARGS),
        ];
        let mut words: Vec<String> = fixed
            .iter()
            .flat_map(|(program, args)| std::iter::once(program).chain(*args))
            .map(|word| (*word).to_owned())
            .collect();
        words.push(associations::PROGRAM.to_owned());
        words.extend(associations::args("alice").unwrap());
        words.extend(accounting::args("k3v9q2xw", "alice", UnixTime(5), None).unwrap());
        words.extend(accounting::steps_args("k3v9q2xw", JobId::whole(5)).unwrap());
        words.extend(details::args(JobId::whole(5)));
        words.extend(factors::args("alice").unwrap());
        words.extend(shares::args("alice", &["def-smith".to_owned()]).unwrap());
        for word in words {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_,=%|.".contains(c);
            assert!(!word.is_empty() && word.chars().all(plain), "{word}");
        }
    }
}
