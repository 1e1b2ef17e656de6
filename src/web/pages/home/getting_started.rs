//! The first steps for newcomers.

use crate::store::groups::Membership;
use crate::web::pages::groups::{accounts_path, invite_path};
use crate::web::pages::home::PortalSetupFacts;

/// A small job that is ready to submit.
pub const EXAMPLE_PATH: &str = "/compose/example";
/// Groups that are named in steps; the rest have their links in the list of groups.
const MAX_GROUP_STEPS: usize = 3;

pub struct GettingStartedStep {
    pub title: String,
    /// What it is good for.
    pub text: &'static str,
    pub href: String,
    /// The label of its button.
    pub action: &'static str,
    pub is_done: bool,
    /// done, next (the first that isn't done) or later.
    pub state: &'static str,
}

impl GettingStartedStep {
    /// A step that is done needs no explanation.
    pub const fn text_now(&self) -> &'static str {
        if self.is_done { "" } else { self.text }
    }
}

/// Marks the first open step as the next one. Returns nothing to show when all are done.
pub fn mark_next_step(mut steps: Vec<GettingStartedStep>) -> Vec<GettingStartedStep> {
    let Some(next) = steps.iter().position(|step| !step.is_done) else {
        return Vec::new();
    };
    for (index, step) in steps.iter_mut().enumerate() {
        step.state = match step.is_done {
            true => "done",
            false if index == next => "next",
            false => "later",
        };
    }
    steps
}

/// The step that is marked as the next one.
pub fn find_next_step(steps: &[GettingStartedStep]) -> Option<&GettingStartedStep> {
    steps.iter().find(|step| step.state == "next")
}

/// The first steps of whoever runs the portal.
pub fn admin_steps(
    overview: &PortalSetupFacts,
    without_accounts: &[&Membership],
    was_connected: bool,
    has_totp: bool,
) -> Vec<GettingStartedStep> {
    let invite = overview.first_group.map_or_else(|| "/groups".to_owned(), invite_path);
    let mut steps = vec![
        completed_step("Set up the portal"),
        step(
            "Create your group",
            "Enter the name of your lab. Its page brings together its members and their usage.",
            ("/groups", "Create a group"),
            overview.first_group.is_some(),
        ),
        step(
            "Add a cluster",
            "Choose one from the list of known centres, or enter its host name.",
            ("/clusters/new", "Add a cluster"),
            !overview.clusters.is_empty(),
        ),
        step(
            "Invite members",
            "You get an invitation link for each person, which they use to create their account.",
            (&invite, "Invite someone"),
            overview.has_people,
        ),
    ];
    if !without_accounts.is_empty() {
        // Accounts are offered once the portal has seen them on a cluster.
        steps.extend(connect_step(overview, was_connected));
    }
    steps.extend(account_steps(without_accounts));
    steps.push(second_factor_step(has_totp));
    steps
}

/// What someone has done already.
#[expect(clippy::struct_excessive_bools, reason = "each is one step that is done or not")]
#[derive(Clone, Copy)]
pub struct MemberProgress {
    pub has_group: bool,
    pub was_connected: bool,
    pub has_run: bool,
    pub has_totp: bool,
}

/// The first steps of everyone else.
pub fn member_steps(
    overview: &PortalSetupFacts,
    without_accounts: &[&Membership],
    done: MemberProgress,
) -> Vec<GettingStartedStep> {
    let mut steps = vec![completed_step("Create your account")];
    if !done.has_group {
        let text = "Ask a PI of your group for an invitation link and open it in this browser.";
        steps.push(step("Join your group", text, ("", ""), false));
    }
    if let Some(connect) = connect_step(overview, done.was_connected) {
        steps.push(connect);
        steps.extend(account_steps(without_accounts));
        let text = "Try a small example job that's ready to submit, or select New job above to choose a recipe.";
        steps.push(step("Run your first job", text, (EXAMPLE_PATH, "Try an example"), done.has_run));
    }
    steps.push(second_factor_step(done.has_totp));
    steps
}

/// `None` while the portal has no cluster.
fn connect_step(overview: &PortalSetupFacts, is_done: bool) -> Option<GettingStartedStep> {
    let first = overview.clusters.first()?;
    let cluster_page = format!("/clusters/{}", first.slug);
    let href = if overview.clusters.len() == 1 { &cluster_page } else { "/clusters" };
    let text = "Enter your user name on the cluster, create an SSH key with one click, and sign in once. The page guides you through it.";
    Some(step("Connect to a cluster", text, (href, "Connect"), is_done))
}

/// What a PI has to do before the group's usage can be shown.
fn account_steps(without_accounts: &[&Membership]) -> Vec<GettingStartedStep> {
    let one = |membership: &&Membership| GettingStartedStep {
        title: format!("Select {}'s accounts", membership.group_name),
        ..step(
            "",
            "Choose which Slurm accounts belong to your group. Their usage then appears on the group's page.",
            (&accounts_path(membership.group_id), "Select accounts"),
            false,
        )
    };
    without_accounts.iter().take(MAX_GROUP_STEPS).map(one).collect()
}

/// A step with its button: where it leads, and its label.
fn step(
    title: &'static str,
    text: &'static str,
    (href, action): (&str, &'static str),
    is_done: bool,
) -> GettingStartedStep {
    GettingStartedStep { title: title.to_owned(), text, href: href.to_owned(), action, is_done, state: "" }
}

fn completed_step(title: &'static str) -> GettingStartedStep {
    step(title, "", ("", ""), true)
}

fn second_factor_step(is_done: bool) -> GettingStartedStep {
    let text = "Add a second factor (a code from your phone), so that a stolen password isn't enough to sign in.";
    step("Protect your account", text, ("/account/second-factor", "Set up second factor"), is_done)
}
