//! Where the program of a script runs: the folder that the script itself goes to, as far as that can be read from it.

use std::collections::BTreeMap;

use super::quoting::parse_arguments;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptWorkingFolder {
    /// The script stays in the folder that Slurm starts it in.
    Unchanged,
    /// Absolute.
    ChangedTo(String),
    /// Only the job knows.
    Unknown,
}

/// Reads the lines of a script that begin with `cd`; the last of them counts. `variables` are known outside of jobs.
pub fn find_working_folder(script: &str, variables: &BTreeMap<String, String>) -> ScriptWorkingFolder {
    let changes = |line: &str| line.trim_start().starts_with("cd ") || line.trim_start().starts_with("pushd ");
    let Some(last) = script.lines().rfind(|line| changes(line)) else { return ScriptWorkingFolder::Unchanged };
    // An indented line may never run.
    let words = last.strip_prefix("cd ").and_then(|rest| parse_arguments(rest, &[]).ok()).unwrap_or_default();
    match words.as_slice() {
        [folder] => match folder.resolve(variables).filter(|path| path.starts_with('/')) {
            Some(path) => ScriptWorkingFolder::ChangedTo(path),
            None => ScriptWorkingFolder::Unknown,
        },
        _ => ScriptWorkingFolder::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_folder_of_a_script() {
        let home = BTreeMap::from([("HOME".to_owned(), "/home/ada".to_owned())]);
        let to = |path: &str| ScriptWorkingFolder::ChangedTo(path.to_owned());
        for (script, folder) in [
            ("#!/bin/bash\npython3 a.py\n", ScriptWorkingFolder::Unchanged),
            ("cd /a\ncd '/home/ada/my data'\npython3 a.py\n", to("/home/ada/my data")),
            ("cd \"$HOME\"/'my data'\n", to("/home/ada/my data")),
            ("cd \"$SLURM_TMPDIR/code\"\n", ScriptWorkingFolder::Unknown),
            ("cd \"$(mktemp -d)\"\n", ScriptWorkingFolder::Unknown),
            ("cd /a && cd b\n", ScriptWorkingFolder::Unknown),
            ("cd /a\nif x; then\n  cd /b\nfi\n", ScriptWorkingFolder::Unknown),
            ("cd sub\n", ScriptWorkingFolder::Unknown),
        ] {
            assert_eq!(find_working_folder(script, &home), folder, "{script}");
        }
    }
}
