//! Sweeps: one job array with one point per task. Values are lists or ranges; several are combined as a grid or
//! zipped. A script contains the lists, not the points, so a thousand points take no more space than ten.

#[cfg(test)]
mod tests;
mod values;

use serde::{Deserialize, Serialize};

pub use self::values::{parse_argument_lines, parse_values};
use super::question::is_valid_key;
use super::quoting::quote_word;
use super::template::RenderedScriptLine;

/// The limit for any sweep, whatever a cluster allows.
pub const MAX_POINTS: usize = 100_000;

/// How several lists are combined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SweepMode {
    /// Every combination.
    #[default]
    Grid,
    /// The first with the first, the second with the second.
    Zip,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// What varies between points.
    pub axes: Vec<SweepAxis>,
    pub how: SweepMode,
}

/// A variable that differs between points.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepAxis {
    /// The variable's name in the script.
    pub name: String,
    /// Its values, as typed.
    pub values: Vec<String>,
    /// The values as bash words.
    #[serde(skip)]
    pub words: Vec<String>,
    /// Whether each value is several words, such as arguments: its variable is then an array.
    #[serde(skip)]
    pub has_several_words: bool,
    /// The swept question; none for a parameter that exists only in the sweep.
    #[serde(skip)]
    pub key: Option<String>,
}

impl SweepAxis {
    /// A parameter whose values are plain text.
    pub fn new(name: &str, values: Vec<String>) -> Self {
        let words = values.iter().map(|value| quote_word(value)).collect();
        Self { name: name.to_owned(), values, words, has_several_words: false, key: None }
    }
}

impl Sweep {
    /// The number of points, or why the sweep can't run.
    pub fn count_points(&self) -> Result<usize, String> {
        let points = match self.how {
            SweepMode::Grid => self.axes.iter().try_fold(1_usize, |n, axis| n.checked_mul(axis.values.len())),
            SweepMode::Zip => {
                let lengths: Vec<usize> = self.axes.iter().map(|axis| axis.values.len()).collect();
                if lengths.windows(2).any(|pair| pair[0] != pair[1]) {
                    let list: Vec<String> =
                        self.axes.iter().map(|axis| format!("{} has {}", axis.name, axis.values.len())).collect();
                    return Err(format!("In pairs, all lists need the same number of values: {}.", list.join(", ")));
                }
                lengths.first().copied()
            }
        };
        match points {
            Some(points) if points <= MAX_POINTS => Ok(points),
            _ => Err(format!("This makes more than {MAX_POINTS} tasks. Use fewer values.")),
        }
    }

    /// The number of points of a checked sweep.
    pub fn len(&self) -> usize {
        self.count_points().unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.axes.is_empty()
    }

    pub fn point(&self, number: usize) -> Vec<(&str, &str)> {
        self.axes
            .iter()
            .zip(self.strides())
            .filter_map(|(axis, stride)| {
                let at = (number / stride).checked_rem(axis.values.len())?;
                Some((axis.name.as_str(), axis.values[at].as_str()))
            })
            .collect()
    }

    /// A label such as `lr=0.1 batch=32`.
    pub fn label(&self, number: usize) -> String {
        let one = |(name, value): (&str, &str)| format!("{name}={value}");
        self.point(number).into_iter().map(one).collect::<Vec<_>>().join(" ")
    }

    /// After how many points the value of each axis changes.
    fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1_usize; self.axes.len()];
        if self.how == SweepMode::Grid {
            for index in (0..self.axes.len().saturating_sub(1)).rev() {
                strides[index] = strides[index + 1].saturating_mul(self.axes[index + 1].values.len()).max(1);
            }
        }
        strides
    }

    /// The script lines with which each task finds its point.
    pub fn script_lines(&self) -> Vec<RenderedScriptLine> {
        let points = self.len();
        let mut lines =
            vec![RenderedScriptLine::plain(format!("# A sweep of {points} combinations: each array task runs one."))];
        for (axis, stride) in self.axes.iter().zip(self.strides()) {
            let (name, count) = (&axis.name, axis.values.len());
            let at = match (self.how, stride) {
                (SweepMode::Zip, _) => "SLURM_ARRAY_TASK_ID".to_owned(),
                (SweepMode::Grid, 1) => format!("SLURM_ARRAY_TASK_ID % {count}"),
                (SweepMode::Grid, stride) => format!("SLURM_ARRAY_TASK_ID / {stride} % {count}"),
            };
            let key = axis.key.as_deref().unwrap_or(PARAMETERS_KEY);
            let mut add = |text: String| lines.push(RenderedScriptLine::from_question(text, key));
            if axis.has_several_words {
                add(format!("case $(({at})) in"));
                for (index, words) in axis.words.iter().enumerate() {
                    add(format!("  {index}) {name}=({words}) ;;"));
                }
                add("esac".to_owned());
            } else {
                add(format!("{name}_values=({})", axis.words.join(" ")));
                add(format!("{name}=${{{name}_values[{at}]}}"));
            }
        }
        let setting = |axis: &SweepAxis| {
            let name = &axis.name;
            if axis.has_several_words { format!("{name}=${{{name}[*]}}") } else { format!("{name}=${name}") }
        };
        let settings: Vec<String> = self.axes.iter().map(setting).collect();
        // Bash passes no arrays on to programs.
        let single = self.axes.iter().filter(|axis| !axis.has_several_words);
        let names: Vec<&str> = single.map(|axis| axis.name.as_str()).collect();
        if !names.is_empty() {
            lines.push(RenderedScriptLine::plain(format!("export {}", names.join(" "))));
        }
        lines.push(RenderedScriptLine::plain(format!(
            "echo \"Task $SLURM_ARRAY_TASK_ID of 0 to {}: {}\"",
            points.saturating_sub(1),
            settings.join(" ")
        )));
        lines
    }
}

/// The question that holds the sweep's own parameters.
pub const PARAMETERS_KEY: &str = "parameters";

/// Parses parameters, one per line: `lr = 0.1, 0.01`.
pub fn parse_parameters(text: &str) -> Result<Vec<SweepAxis>, String> {
    let mut axes: Vec<SweepAxis> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, list) = line
            .split_once('=')
            .ok_or_else(|| format!("Write each line as name = values. “{line}” has no equals sign."))?;
        let name = name.trim();
        // Lower case only: the script, bash and Slurm name their variables otherwise, so a sweep never overwrites one.
        if !is_valid_key(name) {
            return Err(format!(
                "“{name}” isn't a valid parameter name. Use lowercase letters, digits and _, starting with a letter."
            ));
        }
        if axes.iter().any(|axis| axis.name == name) {
            return Err(format!("“{name}” is listed twice."));
        }
        axes.push(SweepAxis::new(name, parse_values(list)?));
    }
    Ok(axes)
}
