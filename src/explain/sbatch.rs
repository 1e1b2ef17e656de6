//! Explains `sbatch` refusals: what they mean, which form field they are about, and which accounts they offer
//! instead.

mod messages;
#[cfg(test)]
mod tests;

use self::messages::MESSAGES;
use super::refusals::is_unsure;
use crate::recipes::request::RequestField;
use crate::slurm::text::is_name;
use crate::text::clean_text;

/// How much of the message is kept.
const MAX_TEXT_BYTES: usize = 4000;
/// The most accounts to offer.
const MAX_ACCOUNTS: usize = 60;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SbatchRefusal {
    /// What it means, and what to do.
    pub sentence: String,
    /// The fields it is about; empty if that is unclear.
    pub fields: Vec<RequestField>,
    /// The accounts that the cluster offers.
    pub accounts: Vec<String>,
    /// The cluster's own message, cleaned for display.
    pub slurm: String,
    /// Whether the job may have been accepted anyway.
    pub is_unsure: bool,
}

/// Reads what `sbatch` wrote to stdout and stderr.
pub fn explain_sbatch(output: &str) -> SbatchRefusal {
    let slurm = without_rules(&clean_text(output, MAX_TEXT_BYTES));
    let lines: Vec<&str> = slurm.lines().map(without_prefix).collect();
    // Join the lines: Slurm wraps its sentences, and sites draw frames around theirs.
    let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
    let text = words.join(" ").to_lowercase();
    let accounts = offered_accounts(&lines);
    let is_unsure = text.is_empty() || is_unsure(&text);
    let known = MESSAGES.iter().find(|message| message.says.iter().any(|part| text.contains(part)));
    let (sentence, fields) = match known {
        _ if is_unsure => (
            "The cluster's reply was unclear. The job may still have been accepted, so check your job list \
             before you submit it again.",
            &[][..],
        ),
        Some(message) => (message.means, message.about),
        None => ("The cluster rejected the job. Its message is below.", &[][..]),
    };
    SbatchRefusal { sentence: sentence.to_owned(), fields: fields.to_vec(), accounts, slurm, is_unsure }
}

/// Strips the program's name from the start of a line.
fn without_prefix(line: &str) -> &str {
    let line = line.trim();
    let line = line.strip_prefix("sbatch:").unwrap_or(line).trim_start();
    line.strip_prefix("error:").unwrap_or(line).trim_start()
}

/// Drops lines that only draw a frame.
fn without_rules(text: &str) -> String {
    let is_rule = |line: &&str| {
        let line = without_prefix(line);
        !line.is_empty() && line.chars().all(|c| !c.is_alphanumeric())
    };
    text.lines().filter(|line| !is_rule(line)).collect::<Vec<_>>().join("\n")
}

/// The accounts in lists such as `RAC accounts: rrg-a, rpp-b,`, and below a line that announces them.
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
        let names: Vec<&str> = list.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty()).collect();
        if !names.iter().all(|name| is_account(name)) {
            // A sentence ends the list.
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

/// Tells account names from ordinary words.
fn is_account(name: &str) -> bool {
    is_name(name) && name.contains(|c: char| c == '-' || c == '_' || c.is_ascii_digit())
}
