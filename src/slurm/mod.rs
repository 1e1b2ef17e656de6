//! What Slurm says: the words of each command and a reader of its answer, one file per command.
//! Pure: nothing here runs a command. Readers never fail; they skip what they do not understand, and what they
//! return is bounded, because the answer comes from a machine that is not ours.
//!
//! The words hold no blanks, quotes or other characters that a shell would change (`|` inside a word apart), so that
//! they also work on nodes that split a command line on blanks and run it without a shell.

pub mod associations;
pub mod config;
pub mod gres;
pub mod partitions;
pub mod text;
pub mod units;
pub mod version;

/// No answer is read beyond this many lines.
const MOST_LINES: usize = 20_000;

#[cfg(test)]
mod tests {
    use super::{associations, config, partitions, version};

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
        for word in words {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_,=%|.".contains(c);
            assert!(!word.is_empty() && word.chars().all(plain), "{word}");
        }
    }
}
