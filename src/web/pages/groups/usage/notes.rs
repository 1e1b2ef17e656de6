//! Notes above the figures: what is being read, what is missing, and why.

use std::collections::BTreeMap;

use crate::format;
use crate::usage::figures::{UsageFigures, is_selected};
use crate::usage::{GroupAccountUsage, GroupUsage};

use crate::web::pages::groups::usage::query::UsageFilter;

#[derive(Default)]
pub struct UsageNote {
    pub tone: &'static str,
    pub title: String,
    pub text: String,
    /// A command's output, verbatim.
    pub said: String,
    /// Where the note links to; empty for nowhere.
    pub href: String,
    pub action: String,
    /// How much is done, and of how much.
    pub progress: Option<(i64, i64)>,
}

impl UsageNote {
    fn new(tone: &'static str, title: String, text: impl Into<String>) -> Self {
        Self { tone, title, text: text.into(), ..Self::default() }
    }
}

/// All notes for the selected period and accounts.
pub fn collect_notes(view: &GroupUsage, figures: &UsageFigures, filter: &UsageFilter) -> Vec<UsageNote> {
    let mut notes = Vec::new();
    let mut away = Vec::new();
    let mut hidden = Vec::new();
    let mut reading: BTreeMap<&str, (Vec<&str>, i64, i64)> = BTreeMap::new();
    for account in view.accounts.iter().filter(|account| is_selected(account, &filter.choice)) {
        let facts = &account.details;
        if !account.is_connected && !away.contains(&facts.cluster) {
            away.push(facts.cluster);
            notes.push(not_connected_note(account));
        }
        let (read, wanted) = account.progress;
        if account.is_connected && read < wanted && account.problem.is_empty() {
            let progress = reading.entry(&facts.title).or_insert((Vec::new(), read, wanted));
            progress.0.push(facts.account.as_str());
            progress.1 = progress.1.min(read);
        }
        if !account.problem.is_empty() {
            notes.push(read_problem_note(account));
        }
        if facts.discovered.hides_jobs && !hidden.contains(&facts.cluster) {
            hidden.push(facts.cluster);
            let title = format!("{} shows people only their own jobs.", facts.title);
            let text = "What others used there may not be told to you. The figures of its accounts can be yours alone, and sums too low. A centre can give the leader of a group the right to see its jobs: ask for the role of a coordinator.";
            notes.push(UsageNote::new("warning", title, text));
        }
    }
    for (cluster, (accounts, read, wanted)) in &reading {
        let accounts = accounts.join(", ");
        let title = format!("History of {accounts} on {cluster} is being read: {read} of {wanted} days.");
        let text = "It goes on while you are connected, also if you leave this page.";
        notes.push(UsageNote { progress: Some((*read, *wanted)), ..UsageNote::new("info", title, text) });
    }
    if figures.missing > 0 && reading.is_empty() {
        let days = format::count(figures.missing, "day");
        let verb = if figures.missing == 1 { "was" } else { "were" };
        let title = format!("{days} of this time {verb} not read yet.");
        notes.push(UsageNote::new("info", title, "What was used then is not in the figures."));
    }
    if figures.is_cut {
        let title = "A day in this time had more jobs than the portal reads.".to_owned();
        let text = "The figures of that day are too low.";
        notes.push(UsageNote::new("warning", title, text));
    }
    notes
}

fn not_connected_note(account: &GroupAccountUsage) -> UsageNote {
    let facts = &account.details;
    let (href, action) = (format!("/clusters/{}", facts.slug), format!("Connect to {}", facts.title));
    let note = if facts.own_user.is_none() {
        let title = format!("You were never connected to {}.", facts.title);
        let text = "Figures are read over your own connection, with your own rights. Connect once, and reading begins.";
        UsageNote::new("info", title, text)
    } else {
        let title = format!("You are not connected to {}.", facts.title);
        let text = match account.read_at {
            Some(at) => format!("Figures from there are as of {}. Nothing new is read until you connect.", at.words()),
            None => "Nothing was read from there yet. Reading begins when you connect.".to_owned(),
        };
        UsageNote::new("info", title, text)
    };
    UsageNote { href, action, ..note }
}

fn read_problem_note(account: &GroupAccountUsage) -> UsageNote {
    let facts = &account.details;
    let title = format!("What {} used on {} could not be read.", facts.account, facts.title);
    let text = format!("{} It is tried again by itself. What was read before is below.", account.problem);
    UsageNote { said: account.problem_output.clone(), ..UsageNote::new("warning", title, text) }
}
