//! The first steps for newcomers.

use crate::web::pages::home::PortalSetupFacts;

pub struct GettingStartedStep {
    pub title: &'static str,
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

/// The first steps of whoever runs the portal.
pub fn admin_steps(overview: &PortalSetupFacts, has_totp: bool) -> Vec<GettingStartedStep> {
    vec![
        completed_step("Set up the portal"),
        step(
            "Create your group",
            "Enter the name of your lab. Its members, jobs and usage figures are collected under it.",
            ("/groups", "Create a group"),
            overview.has_group,
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
            ("/groups", "Invite someone"),
            overview.has_people,
        ),
        second_factor_step(has_totp),
    ]
}

/// The first steps of everyone else.
#[expect(clippy::fn_params_excessive_bools, reason = "each is one step that is done or not")]
pub fn member_steps(
    has_group: bool,
    overview: &PortalSetupFacts,
    was_connected: bool,
    has_run: bool,
    has_totp: bool,
) -> Vec<GettingStartedStep> {
    let mut steps = vec![completed_step("Create your account")];
    if !has_group {
        let text = "Ask a PI of your group for an invitation link and open it in this browser.";
        steps.push(step("Join your group", text, ("", ""), false));
    }
    if let Some(first) = overview.clusters.first() {
        let cluster_page = format!("/clusters/{}", first.slug);
        let href = if overview.clusters.len() == 1 { &cluster_page } else { "/clusters" };
        steps.push(step(
            "Connect to a cluster",
            "Enter your user name on the cluster, create an SSH key with one click, and sign in once. The page guides you through it.",
            (href, "Connect"),
            was_connected,
        ));
        let text = "Choose a recipe, fill in a short form, and follow the job as it runs.";
        steps.push(step("Run your first job", text, ("/compose", "New job"), has_run));
    }
    steps.push(second_factor_step(has_totp));
    steps
}

/// A step with its button: where it leads, and its label.
fn step(
    title: &'static str,
    text: &'static str,
    (href, action): (&str, &'static str),
    is_done: bool,
) -> GettingStartedStep {
    GettingStartedStep { title, text, href: href.to_owned(), action, is_done, state: "" }
}

fn completed_step(title: &'static str) -> GettingStartedStep {
    step(title, "", ("", ""), true)
}

fn second_factor_step(is_done: bool) -> GettingStartedStep {
    let text = "Add a second factor, a code from your phone, so a stolen password isn't enough to sign in.";
    step("Protect your account", text, ("/account/second-factor", "Set up second factor"), is_done)
}
