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
        if facts.is_narrow && !hidden.contains(&facts.cluster) {
            hidden.push(facts.cluster);
            let title = format!("{} may hide other people's jobs.", facts.title);
            let text = "The cluster hides them from you, or doesn't say whether it does. Figures from there may include only your own usage, so totals may be too low. Ask the centre to make a PI or another member an account coordinator. Once they have connected, everyone in the group sees the figures of the whole account.";
            notes.push(UsageNote::new("warning", title, text));
        }
    }
    for (cluster, (accounts, read, wanted)) in &reading {
        let accounts = accounts.join(", ");
        let title = format!("Loading the history of {accounts} on {cluster}: {read} of {wanted} days loaded.");
        let text = "Once loaded, the history is available to the whole group. Loading continues while any member is connected, even if you leave this page. The period you choose is loaded first.";
        notes.push(UsageNote { progress: Some((*read, *wanted)), ..UsageNote::new("info", title, text) });
    }
    if figures.missing > 0 && reading.is_empty() {
        let days = format::count(figures.missing, "day");
        let verb = if figures.missing == 1 { "is" } else { "are" };
        let title = format!("{days} of this period {verb} not loaded yet.");
        notes.push(UsageNote::new("info", title, "Until then, the figures are too low."));
    }
    if figures.is_cut {
        let title = "A day in this period had more jobs than the portal can load.".to_owned();
        let text = "The figures for that day are too low.";
        notes.push(UsageNote::new("warning", title, text));
    }
    notes
}

fn not_connected_note(account: &GroupAccountUsage) -> UsageNote {
    let facts = &account.details;
    let (href, action) = (format!("/clusters/{}", facts.slug), format!("Connect to {}", facts.title));
    let title = if facts.own_user.is_none() {
        format!("You haven't connected to {} yet, and nobody else in the group is connected.", facts.title)
    } else {
        format!("You're not connected to {}, and nobody else in the group is.", facts.title)
    };
    let text = match account.read_at {
        Some(at) => format!("Its figures are from {}. Connect to update them for the whole group.", at.words()),
        None => "No figures have been loaded from there yet. Connect to load them for the whole group.".to_owned(),
    };
    UsageNote { href, action, ..UsageNote::new("info", title, text) }
}

fn read_problem_note(account: &GroupAccountUsage) -> UsageNote {
    let facts = &account.details;
    let title = format!("Couldn't load the usage of {} on {}.", facts.account, facts.title);
    let text = format!("{} The portal will try again. Figures loaded earlier are below.", account.problem);
    UsageNote { said: account.problem_output.clone(), ..UsageNote::new("warning", title, text) }
}
