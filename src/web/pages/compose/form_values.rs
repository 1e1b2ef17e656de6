//! A form as a browser sent it.

use crate::recipes::compose::{ComposedJob, compose};
use crate::recipes::context::ComposeCluster;
use crate::recipes::edits::merge_edits;
use crate::recipes::form::{FormAnswers, RecipeQuestionForm};
use crate::recipes::script_import;
use serde::{Deserialize, Serialize};

/// The fields of the form, as pairs.
pub type FormFields = Vec<(String, String)>;

/// A form as it was submitted, or as it is to be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobFormValues {
    pub answers: FormAnswers,
    /// The form's own nonce, by which submitting it twice is noticed.
    #[serde(skip)]
    pub nonce: String,
    /// The earlier job that this one repeats, by its ID; empty if there is none.
    #[serde(skip)]
    pub repeats: String,
    /// The hand-edited script and what it was edited from: only while it is edited.
    pub own: Option<HandEditedScript>,
    /// Buttons that were pressed: name and value.
    #[serde(skip)]
    pub pressed: Vec<(String, String)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandEditedScript {
    /// The script as the form made it at the last preview.
    pub base: String,
    /// The script as the person edited it.
    pub text: String,
}

/// The prefix of answers; values of a sweep begin with [`SWEEP_PREFIX`].
pub const ANSWER_PREFIX: &str = "a.";
pub const SWEEP_PREFIX: &str = "s.";

impl JobFormValues {
    pub fn parse(fields: FormFields) -> Self {
        let mut values = Self::default();
        let (mut base, mut text) = (None, None);
        for (name, value) in fields {
            if let Some(key) = name.strip_prefix(ANSWER_PREFIX) {
                values.answers.insert(key.to_owned(), value.replace("\r\n", "\n"));
            } else if let Some(key) = name.strip_prefix(SWEEP_PREFIX) {
                values.answers.insert(format!("sweep.{key}"), value.replace("\r\n", "\n"));
            } else {
                match name.as_str() {
                    "form" => values.nonce = value,
                    "repeats" => values.repeats = value,
                    "base" => base = Some(value.replace("\r\n", "\n")),
                    "own" => text = Some(value.replace("\r\n", "\n")),
                    _ => values.pressed.push((name, value)),
                }
            }
        }
        if let (Some(base), Some(text)) = (base, text) {
            values.own = Some(HandEditedScript { base, text });
        }
        values
    }

    /// The value of a button that was pressed.
    pub fn pressed_value(&self, name: &str) -> Option<&str> {
        self.pressed.iter().find(|(button, _)| button == name).map(|(_, value)| value.as_str())
    }

    /// Composes the job from the form and the person's own changes. `back` lists changes to revert.
    pub fn compose(&self, form: &RecipeQuestionForm, cluster: &ComposeCluster, reverted: &[usize]) -> ComposedJob {
        let mut job = compose(form, &self.answers, cluster);
        job.edited = self.own.as_ref().map(|own| merge_edits(&own.base, &own.text, &job.lines, reverted));
        job
    }
}

/// Folders that must exist before a script starts: its working directory and those of its output.
pub fn required_folders(script: &str) -> Vec<String> {
    let mut folders: Vec<String> = Vec::new();
    for (option, value) in script_import::parse_directives(script) {
        let Some(value) = value.filter(|value| value.starts_with('/')) else { continue };
        let folder = match option.as_str() {
            "--chdir" => Some(value),
            "--output" | "--error" => {
                let folder = value.rsplit_once('/').map(|(folder, _)| folder.replace("%%", "\u{0}"));
                // What Slurm fills in isn't known yet.
                folder
                    .filter(|folder| !folder.is_empty() && !folder.contains('%'))
                    .map(|folder| folder.replace('\u{0}', "%"))
            }
            _ => None,
        };
        folders.extend(folder.filter(|folder| !folders.contains(folder)));
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_a_script() {
        let script = "#!/bin/bash\n#SBATCH --chdir=/a --output=\"/b c/100%%/%j.out\"\n#SBATCH -e /d/%x/e\n";
        assert_eq!(required_folders(script), ["/a", "/b c/100%"]);
        assert_eq!(required_folders("#!/bin/sh\n#SBATCH -o rel.out\n"), Vec::<String>::new());
    }

    #[test]
    fn fields_find_their_places() {
        let pairs = [("a.time", "3h\r\nx"), ("s.lr", "1,2"), ("form", "n"), ("base", "b"), ("own", "o"), ("edit", "1")];
        let values = JobFormValues::parse(pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec());
        assert_eq!(values.answers["time"], "3h\nx");
        assert_eq!(values.answers["sweep.lr"], "1,2");
        assert_eq!((values.nonce.as_str(), values.pressed_value("edit")), ("n", Some("1")));
        assert_eq!(values.own, Some(HandEditedScript { base: "b".into(), text: "o".into() }));
    }
}
