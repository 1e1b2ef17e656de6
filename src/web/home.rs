//! The home page: what to do first, one's groups, and the clusters this portal knows.

use std::sync::Arc;

use askama::Template;

use super::Answer;
use super::extract::{Context, Me};
use super::page::{Page, Section, show};
use crate::app::AppState;
use crate::auth::Action;
use crate::store::clusters::Cluster;
use crate::store::groups::Membership;
use crate::store::{self, StoreError};

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    page: Page,
    greeting: String,
    steps: Vec<Step>,
    memberships: Vec<Membership>,
    facts: Arc<Facts>,
    is_admin: bool,
}

/// One of the first steps.
struct Step {
    title: &'static str,
    text: &'static str,
    href: &'static str,
    action: &'static str,
    is_done: bool,
    /// done, next (the first that is not) or later.
    state: &'static str,
}

/// What every home page shows, whoever looks.
pub struct Facts {
    clusters: Vec<Cluster>,
    has_group: bool,
    has_people: bool,
    /// Whether anyone has an account.
    pub is_set_up: bool,
}

/// What every home page shows, from memory where nothing was written since.
pub async fn known(app: &AppState) -> Result<Arc<Facts>, StoreError> {
    app.home
        .get(&app.store, &(), async || {
            let mut db = app.store.read().await?;
            let people = store::people::count(&mut db).await?;
            Ok(Facts {
                clusters: store::clusters::list(&mut db).await?,
                has_group: !store::groups::list(&mut db).await?.is_empty(),
                has_people: people > 1,
                is_set_up: people > 0,
            })
        })
        .await
}

/// The page.
pub async fn get(context: Context, me: Me) -> Answer {
    me.may(Action::UseOwnAccount)?;
    let facts = known(&context.app).await?;
    let is_admin = me.may(Action::ManageGroups).is_ok();
    let steps = if is_admin {
        admin_steps(facts.has_group, facts.has_people, me.0.person.has_totp)
    } else {
        member_steps(!me.0.memberships.is_empty(), me.0.person.has_totp)
    };
    let first_name = me.0.person.display_name.split_whitespace().next().unwrap_or_default();
    show(&HomePage {
        page: Page::for_person(&context, &me.0, "Home", Section::Home),
        greeting: format!("Hello {first_name}"),
        steps: in_order(steps),
        memberships: me.0.memberships.clone(),
        facts,
        is_admin,
    })
}

/// Marks the first open step as the next one; nothing is left to show when all are done.
fn in_order(mut steps: Vec<Step>) -> Vec<Step> {
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

fn admin_steps(has_group: bool, has_people: bool, has_totp: bool) -> Vec<Step> {
    vec![
        Step {
            title: "Set up the portal",
            text: "",
            href: "",
            action: "",
            is_done: true,
            state: "",
        },
        Step {
            title: "Create your group",
            text: "Give your lab a name. People, and later jobs and figures, belong to it.",
            href: "/groups",
            action: "Create a group",
            is_done: has_group,
            state: "",
        },
        Step {
            title: "Invite your people",
            text: "You get a link for each of them. With it they make their own account.",
            href: "/groups",
            action: "Invite someone",
            is_done: has_people,
            state: "",
        },
        protect(has_totp),
    ]
}

fn member_steps(has_group: bool, has_totp: bool) -> Vec<Step> {
    let mut steps = vec![Step {
        title: "Make your account",
        text: "",
        href: "",
        action: "",
        is_done: true,
        state: "",
    }];
    if !has_group {
        steps.push(Step {
            title: "Join your group",
            text: "Ask the leader of your group for an invitation link and open it in this browser.",
            href: "",
            action: "",
            is_done: false,
            state: "",
        });
    }
    steps.push(protect(has_totp));
    steps
}

const fn protect(is_done: bool) -> Step {
    Step {
        title: "Protect your account",
        text: "Add a second factor: a code from your phone. Then your password alone opens nothing.",
        href: "/account/second-factor",
        action: "Set it up",
        is_done,
        state: "",
    }
}
