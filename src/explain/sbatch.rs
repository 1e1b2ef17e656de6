//! What `sbatch` says against a job, in words: what it means, which part of the form it is about, and which projects
//! it offers instead.

mod messages;
#[cfg(test)]
mod tests;

use self::messages::MESSAGES;
use super::refusals::is_unsure;
use crate::recipes::request::RequestField;
use crate::slurm::text::is_name;
use crate::text::clean_text;

/// No more of what was said is kept.
const MAX_TEXT_BYTES: usize = 4000;
/// No more projects are offered.
const MAX_ACCOUNTS: usize = 60;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SbatchRefusal {
    /// What it means, and what to do.
    pub sentence: String,
    /// The parts of the request that it is about; empty if that is not plain.
    pub fields: Vec<RequestField>,
    /// The projects that the cluster offers to choose from.
    pub accounts: Vec<String>,
    /// The cluster's own words, fit to be shown.
    pub slurm: String,
    /// Whether the job may have been accepted all the same.
    pub is_unsure: bool,
}

/// Reads what `sbatch` said, on stdout and stderr.
pub fn explain_sbatch(said: &str) -> SbatchRefusal {
    let slurm = without_rules(&clean_text(said, MAX_TEXT_BYTES));
    let lines: Vec<&str> = slurm.lines().map(without_prefix).collect();
    // One line: Slurm breaks its sentences, and sites put frames around theirs.
    let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
    let text = words.join(" ").to_lowercase();
    let accounts = offered_accounts(&lines);
    let is_unsure = text.is_empty() || is_unsure(&text);
    let known = MESSAGES.iter().find(|message| message.says.iter().any(|part| text.contains(part)));
    let (sentence, fields) = match known {
        _ if is_unsure => (
            "The cluster gave no proper answer. The job may have been accepted all the same: look for it in your list \
             before you submit it again.",
            &[][..],
        ),
        Some(message) => (message.means, message.about),
        None => ("The cluster refused the job. Its own words are below.", &[][..]),
    };
    SbatchRefusal {
        sentence: sentence.to_owned(),
        fields: fields.to_vec(),
        accounts,
        slurm,
        is_unsure,
    }
}

/// A line without the program's name before it.
fn without_prefix(line: &str) -> &str {
    let line = line.trim();
    let line = line.strip_prefix("sbatch:").unwrap_or(line).trim_start();
    line.strip_prefix("error:").unwrap_or(line).trim_start()
}

/// Without lines that only draw a frame.
fn without_rules(text: &str) -> String {
    let is_rule = |line: &&str| {
        let line = without_prefix(line);
        !line.is_empty() && line.chars().all(|c| !c.is_alphanumeric())
    };
    text.lines().filter(|line| !is_rule(line)).collect::<Vec<_>>().join("\n")
}

/// The projects in lists such as `RAC accounts: rrg-a, rpp-b,`, and below a line that announces them.
fn offered_accounts(lines: &[&str]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut announced = false;
    for line in lines {
        let lower = line.to_lowercase();
        let list = match lower.find("accounts:").map(|at| at + "accounts:".len()) {
            Some(at) => {
                announced = true;
                line.get(at..).unwrap_or_default()
            }
            None if lower.contains("following accounts") => {
                announced = true;
                continue;
            }
            None if announced => line,
            None => continue,
        };
        let names: Vec<&str> =
            list.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty()).collect();
        if !names.iter().all(|name| is_account(name)) {
            // A sentence: the list is over.
            announced = false;
            continue;
        }
        for name in names {
            if found.len() < MAX_ACCOUNTS && !found.iter().any(|known| known == name) {
                found.push(name.to_owned());
            }
        }
    }
    found
}

/// A name that is no word of a sentence.
fn is_account(name: &str) -> bool {
    is_name(name) && name.contains(|c: char| c == '-' || c == '_' || c.is_ascii_digit())
}
