//! A form as a browser sent it.

use crate::recipes::compose::{Composed, compose};
use crate::recipes::edits::{Edited, merge};
use crate::recipes::form::{Answers, Form};
use crate::recipes::place::Place;
use crate::recipes::read_back;
use crate::recipes::request::{Array, Gpus, Memory, Request};
use crate::slurm::units::{TimeLimit, parse_memory_mb};
use serde::{Deserialize, Serialize};

/// The fields of the form, as pairs.
pub type Fields = Vec<(String, String)>;

/// A form as it was sent, or as it is to be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filled {
    /// What was typed.
    pub answers: Answers,
    /// The form's own random word, by which sending it twice is noticed.
    #[serde(skip)]
    pub nonce: String,
    /// The script by hand, and what it was before: only while it is edited.
    pub own: Option<Own>,
    /// Buttons that were pressed: name and value.
    #[serde(skip)]
    pub pressed: Vec<(String, String)>,
}

/// A script that is edited by hand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Own {
    /// As the form made it when it was last looked at.
    pub base: String,
    /// As the person has it.
    pub text: String,
}

/// Answers begin with this, values of a sweep with [`SWEEP`].
pub const ANSWER: &str = "a.";
/// Values of a sweep.
pub const SWEEP: &str = "s.";

impl Filled {
    /// Reads the fields.
    pub fn read(fields: Fields) -> Self {
        let mut filled = Self::default();
        let (mut base, mut text) = (None, None);
        for (name, value) in fields {
            if let Some(key) = name.strip_prefix(ANSWER) {
                filled.answers.insert(key.to_owned(), value.replace("\r\n", "\n"));
            } else if let Some(key) = name.strip_prefix(SWEEP) {
                filled.answers.insert(format!("sweep.{key}"), value.replace("\r\n", "\n"));
            } else {
                match name.as_str() {
                    "form" => filled.nonce = value,
                    "base" => base = Some(value.replace("\r\n", "\n")),
                    "own" => text = Some(value.replace("\r\n", "\n")),
                    _ => filled.pressed.push((name, value)),
                }
            }
        }
        if let (Some(base), Some(text)) = (base, text) {
            filled.own = Some(Own { base, text });
        }
        filled
    }

    /// The value of a button that was pressed.
    pub fn pressed(&self, name: &str) -> Option<&str> {
        self.pressed.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A job as the form and the person's own changes make it.
pub struct Job {
    /// As the form makes it.
    pub composed: Composed,
    /// With the person's own changes, if there are any.
    pub edited: Option<Edited>,
    /// Whether the script is someone's own, with options that no field holds.
    is_bare: bool,
}

impl Job {
    /// Puts it together. `back`: own changes that are to be taken back.
    pub fn of(form: &Form, filled: &Filled, place: &Place, back: &[usize]) -> Self {
        let composed = compose(form, &filled.answers, place);
        let edited =
            filled.own.as_ref().map(|own| merge(&own.base, &own.text, &composed.lines, back));
        Self { composed, edited, is_bare: form.bare }
    }

    /// The script that will be sent.
    pub fn script(&self) -> String {
        self.edited.as_ref().map_or_else(|| self.composed.script(), Edited::script)
    }

    /// What the script asks for, also where it was changed by hand.
    pub fn request(&self) -> Request {
        match &self.edited {
            Some(edited) if !edited.changes.is_empty() => asked(&edited.script()),
            None if self.is_bare => asked(&self.script()),
            _ => self.composed.request.clone(),
        }
    }
}

/// What a script of anyone's asks for, as far as its options can be read.
pub fn asked(script: &str) -> Request {
    let mut request = Request::default();
    for (option, value) in read_back::directives(script) {
        let text = value.clone().unwrap_or_default();
        let number = text.parse::<u32>().ok();
        let mb = parse_memory_mb(&text);
        match option.as_str() {
            "--job-name" => request.name = value,
            "--account" => request.account = value,
            "--partition" => request.partition = value,
            "--qos" => request.qos = value,
            "--time" => request.minutes = TimeLimit::parse(&text).minutes(),
            "--nodes" => request.nodes = number,
            "--ntasks" => request.tasks = number,
            "--ntasks-per-node" => request.tasks_per_node = number,
            "--cpus-per-task" => request.cores = number,
            "--mem" => request.memory = mb.map(Memory::PerNode),
            "--mem-per-cpu" => request.memory = mb.map(Memory::PerCore),
            "--mem-per-gpu" => request.memory = mb.map(Memory::PerGpu),
            "--chdir" => request.folder = value,
            "--output" => request.output = value,
            "--array" => {
                let (tasks, most) = text.split_once('%').unwrap_or((&text, ""));
                request.array = Some(Array { tasks: tasks.to_owned(), at_once: most.parse().ok() });
            }
            "--gres" | "--gpus-per-node" | "--gpus" => {
                let words = text.strip_prefix("gpu:").unwrap_or(&text);
                let (model, count) = words
                    .rsplit_once(':')
                    .map_or((None, words), |(model, count)| (Some(model.to_owned()), count));
                request.gpus = count.parse().ok().map(|count| Gpus { model, count });
            }
            _ => request.others.push((option, value)),
        }
    }
    request
}

/// Folders that must be there before a script starts: where it works and where its output goes.
pub fn folders(script: &str) -> Vec<String> {
    let mut folders: Vec<String> = Vec::new();
    for (option, value) in read_back::directives(script) {
        let Some(value) = value.filter(|value| value.starts_with('/')) else { continue };
        let folder = match option.as_str() {
            "--chdir" => Some(value),
            "--output" | "--error" => {
                let folder =
                    value.rsplit_once('/').map(|(folder, _)| folder.replace("%%", "\u{0}"));
                // What Slurm fills in is not known yet.
                folder
                    .filter(|folder| !folder.is_empty() && !folder.contains('%'))
                    .map(|one| one.replace('\u{0}', "%"))
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
        let script =
            "#!/bin/bash\n#SBATCH --chdir=/a --output=\"/b c/100%%/%j.out\"\n#SBATCH -e /d/%x/e\n";
        assert_eq!(folders(script), ["/a", "/b c/100%"]);
        assert_eq!(folders("#!/bin/sh\n#SBATCH -o rel.out\n"), Vec::<String>::new());
    }

    #[test]
    fn fields_find_their_places() {
        let pairs = [
            ("a.time", "3h\r\nx"),
            ("s.lr", "1,2"),
            ("form", "n"),
            ("base", "b"),
            ("own", "o"),
            ("edit", "1"),
        ];
        let filled = Filled::read(pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec());
        assert_eq!(filled.answers["time"], "3h\nx");
        assert_eq!(filled.answers["sweep.lr"], "1,2");
        assert_eq!((filled.nonce.as_str(), filled.pressed("edit")), ("n", Some("1")));
        assert_eq!(filled.own, Some(Own { base: "b".into(), text: "o".into() }));
    }
}
