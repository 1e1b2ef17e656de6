//! The command line that a job was submitted with, as Slurm stores it: `sbatch -A def-smith -p gpu job.sh --epochs 3`.
//! Slurm drops the quotes, so values with spaces can't be told from the words after them.

use super::options::{UnreadWord, full_name, read_options};
use super::{SbatchOption, is_reserved_option, override_options};
use crate::recipes::sbatch_options::find_option;

/// No real command line has more words before its script.
const MAX_WORDS: usize = 300;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubmitLineOptions {
    /// Those that a script may set, each once.
    pub options: Vec<SbatchOption>,
    /// The names of options that a new job doesn't take over.
    pub left_out: Vec<String>,
    /// Whether there may be more options, or longer values: the line couldn't be read up to the script.
    pub is_uncertain: bool,
}

/// Reads the options up to the script, whose own arguments mean something else. `job_name` is the job's name, which may
/// contain spaces; `command` is the script and its arguments, empty if unknown.
pub fn parse_submit_line(line: &str, job_name: &str, command: &str) -> SubmitLineOptions {
    let mut found = SubmitLineOptions::default();
    let mut words = line.split_whitespace().take(MAX_WORDS).peekable();
    // `srun` and `salloc` submit jobs as well, but these have no script.
    let program = words.next().unwrap_or_default();
    if !file_name(program).eq_ignore_ascii_case("sbatch") {
        return found;
    }
    while let Some(word) = words.next() {
        let options = if is_unclear(word) { Err(UnreadWord::UnknownOption) } else { read_options(word, &mut words) };
        let options = match options {
            Ok(options) => options,
            Err(UnreadWord::NotAnOption) => {
                let script = command.split_whitespace().next().unwrap_or_default();
                found.is_uncertain = !script.is_empty() && file_name(script) != file_name(word);
                break;
            }
            Err(UnreadWord::UnknownOption) => {
                found.left_out.push(word.split('=').next().unwrap_or_default().to_owned());
                found.is_uncertain = true;
                break;
            }
        };
        for (option, mut value) in options {
            if option == "--wrap" {
                return found;
            }
            if let Some(value) = value.as_mut().filter(|_| option == "--job-name") {
                let mut more = job_name.strip_prefix(value.as_str()).unwrap_or_default().split_whitespace();
                while let Some(word) = more.next().filter(|word| words.peek() == Some(word)) {
                    value.push(' ');
                    value.push_str(word);
                    words.next();
                }
            }
            let takes_value = find_option(&option).is_some_and(|known| known.takes_value);
            match (is_reserved_option(&option), takes_value) {
                (false, true) if value.is_none() => {}
                (false, _) => override_options(&mut found.options, &[(option, value)]),
                (true, true) if !found.left_out.contains(&option) => found.left_out.push(option),
                // These only change what `sbatch` prints, or whether it waits.
                (true, _) => {}
            }
        }
    }
    found
}

/// Whether it can't be known if the next word is this option's value, or the script.
fn is_unclear(word: &str) -> bool {
    word.starts_with("--") && !word.contains('=') && find_option(&full_name(word)).is_none()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recipes::script_import::format_option;

    fn options(line: &str) -> String {
        let found = parse_submit_line(line, "", "");
        assert!(!found.is_uncertain && found.left_out.is_empty(), "{found:?}");
        found.options.iter().map(format_option).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_way_of_writing_an_option() {
        for (line, expected) in [
            ("sbatch -A def-x -p gpu --gpus=v100:1 job.sh", "--account=def-x --partition=gpu --gpus=v100:1"),
            ("/opt/slurm/bin/sbatch -Adef-x --time 10 job.sh -p other", "--account=def-x --time=10"),
            (
                "sbatch --parsable -J deadline -o %x-%j.out -t 10 --qos=debug -t 45",
                "--job-name=deadline \
              --output=%x-%j.out --qos=debug --time=45",
            ),
            ("sbatch -HOt 5 --exclusive --nice=3 --nice job.sh", "--hold --overcommit --time=5 --exclusive --nice"),
            ("sbatch --part=gpu --mem-per-c 2G", "--partition=gpu --mem-per-cpu=2G"),
            ("sbatch --gres=gpu:1 --gpus=2 --mem=1G --mem-per-cpu=2G", "--gpus=2 --mem-per-cpu=2G"),
            (
                "sbatch --reservation maint -B 2:4 --kill-on-invalid-dep yes -m block x.sh",
                "--reservation=maint \
              --extra-node-info=2:4 --kill-on-invalid-dep=yes --distribution=block",
            ),
            ("sbatch -t 10 --wrap srun -n2 python3 -A x", "--time=10"),
            ("srun -A def-x hostname", ""),
            ("sbatch job.sh --time=5", ""),
            ("sbatch -A", ""),
            ("", ""),
        ] {
            assert_eq!(options(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_left_out_is_named() {
        let found = parse_submit_line("SBATCH --comment /opt/bin/sbatch --parsable /s/x.sh -A a", "", "/s/x.sh");
        assert_eq!((found.options.len(), found.left_out, found.is_uncertain), (0, vec!["--comment".to_owned()], false));
        // It can't be known whether the script is the value of an option that isn't known.
        let found = parse_submit_line("sbatch -A a --newest x.sh --time=5", "", "");
        assert_eq!(found.options, [("--account".to_owned(), Some("a".to_owned()))]);
        assert_eq!((found.left_out, found.is_uncertain), (vec!["--newest".to_owned()], true));
        let found = parse_submit_line("sbatch --newest=5 -zA a x.sh", "", "");
        assert_eq!(found.options, [("--newest".to_owned(), Some("5".to_owned()))], "its value is known");
        assert_eq!(found.left_out, ["-zA"]);
    }

    #[test]
    fn values_with_spaces() {
        let line = "sbatch -J my long job -t 5 run.sh 3";
        let found = parse_submit_line(line, "my long job", "/home/alice/run.sh 3");
        assert_eq!(found.options[0], ("--job-name".to_owned(), Some("my long job".to_owned())));
        assert_eq!((found.options.len(), found.is_uncertain), (2, false));
        let line = "sbatch -o my logs/x.out -t 5 run.sh";
        assert!(parse_submit_line(line, "x", "/home/alice/run.sh").is_uncertain);
    }

    proptest! {
        #[test]
        fn any_line_is_survived(text in "(?s).{0,80}|([-= a-zA-Z0-9/]{0,30} ){0,4}", name in "\\PC{0,12}") {
            for line in [text.clone(), format!("sbatch {text}"), format!("sbatch -{text} --{text}")] {
                let found = parse_submit_line(&line, &name, &text);
                prop_assert!(found.options.iter().all(|(option, _)| !is_reserved_option(option)));
            }
        }
    }
}
