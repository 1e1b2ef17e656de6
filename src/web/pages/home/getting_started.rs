//! The first steps for newcomers.

use crate::web::pages::home::HomeSharedData;

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
pub fn admin_steps(facts: &HomeSharedData, has_totp: bool) -> Vec<GettingStartedStep> {
    vec![
        completed_step("Set up the portal"),
        GettingStartedStep {
            title: "Create your group",
            text: "Give your lab a name. People, and later jobs and figures, belong to it.",
            href: "/groups".into(),
            action: "Create a group",
            is_done: facts.has_group,
            state: "",
        },
        GettingStartedStep {
            title: "Add a cluster",
            text: "Choose it from a list of known centres, or give its host name.",
            href: "/clusters/new".into(),
            action: "Add a cluster",
            is_done: !facts.clusters.is_empty(),
            state: "",
        },
        GettingStartedStep {
            title: "Invite your people",
            text: "You get a link for each of them. With it they make their own account.",
            href: "/groups".into(),
            action: "Invite someone",
            is_done: facts.has_people,
            state: "",
        },
        second_factor_step(has_totp),
    ]
}

/// The first steps of everyone else.
#[expect(clippy::fn_params_excessive_bools, reason = "each is one step that is done or not")]
pub fn member_steps(
    has_group: bool,
    facts: &HomeSharedData,
    was_connected: bool,
    has_run: bool,
    has_totp: bool,
) -> Vec<GettingStartedStep> {
    let mut steps = vec![completed_step("Make your account")];
    if !has_group {
        steps.push(GettingStartedStep {
            title: "Join your group",
            text: "Ask the leader of your group for an invitation link and open it in this browser.",
            href: String::new(),
            action: "",
            is_done: false,
            state: "",
        });
    }
    if let Some(first) = facts.clusters.first() {
        steps.push(GettingStartedStep {
            title: "Connect to a cluster",
            text: "Tell the portal your user name there, create a key with one click, and sign in once. The page leads you through it.",
            href: match facts.clusters.len() {
                1 => format!("/clusters/{}", first.slug),
                _ => "/clusters".into(),
            },
            action: "Connect",
            is_done: was_connected,
            state: "",
        });
        steps.push(GettingStartedStep {
            title: "Run your first job",
            text: "Choose a recipe, answer a few questions, and watch what becomes of it.",
            href: "/compose".into(),
            action: "New job",
            is_done: has_run,
            state: "",
        });
    }
    steps.push(second_factor_step(has_totp));
    steps
}

const fn completed_step(title: &'static str) -> GettingStartedStep {
    GettingStartedStep { title, text: "", href: String::new(), action: "", is_done: true, state: "" }
}

fn second_factor_step(is_done: bool) -> GettingStartedStep {
    GettingStartedStep {
        title: "Protect your account",
        text: "Add a second factor: a code from your phone. Then your password alone opens nothing.",
        href: "/account/second-factor".into(),
        action: "Set it up",
        is_done,
        state: "",
    }
}
