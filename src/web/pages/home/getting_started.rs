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
            "Give your lab a name. People, and later jobs and figures, belong to it.",
            ("/groups", "Create a group"),
            overview.has_group,
        ),
        step(
            "Add a cluster",
            "Choose it from a list of known centres, or give its host name.",
            ("/clusters/new", "Add a cluster"),
            !overview.clusters.is_empty(),
        ),
        step(
            "Invite your people",
            "You get a link for each of them. With it they make their own account.",
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
    let mut steps = vec![completed_step("Make your account")];
    if !has_group {
        let text = "Ask the leader of your group for an invitation link and open it in this browser.";
        steps.push(step("Join your group", text, ("", ""), false));
    }
    if let Some(first) = overview.clusters.first() {
        let cluster_page = format!("/clusters/{}", first.slug);
        let href = if overview.clusters.len() == 1 { &cluster_page } else { "/clusters" };
        steps.push(step(
            "Connect to a cluster",
            "Tell the portal your user name there, create a key with one click, and sign in once. The page leads you through it.",
            (href, "Connect"),
            was_connected,
        ));
        let text = "Choose a recipe, answer a few questions, and watch what becomes of it.";
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
    let text = "Add a second factor: a code from your phone. Then your password alone opens nothing.";
    step("Protect your account", text, ("/account/second-factor", "Set it up"), is_done)
}
