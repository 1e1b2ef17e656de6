//! One cluster: the guided way in, and once connected what was learnt of the place.

use askama::Template;

use super::super::Answer;
use super::super::extract::{Context, Me, Path};
use super::super::form::shown_again;
use super::super::page::{PROBLEMS, Page, Section, show, show_with};
use super::find;
use super::panel::{Panel, PanelState, Step};
use super::way::{Next, Way};
use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::cluster::{ClusterProfile, DiscoveredFacts};
use crate::error::AppError;
use crate::store;
use crate::store::connections::SshKeyUse;
use crate::store::keys::SshKey;

/// So many of a long list are shown at first.
const MOST_AT_FIRST: usize = 12;

#[derive(Template)]
#[template(path = "clusters/cluster.html", blocks = ["place"])]
struct ClusterPage {
    page: Page,
    known: ClusterProfile,
    panel: Panel,
    user: String,
    user_problem: String,
    key: Option<SshKey>,
    /// A new key that waits to be proven.
    next_key: Option<SshKey>,
    /// Where the new key has opened a connection.
    next_uses: Vec<SshKeyUse>,
    /// Whether a test of the new key has just ended here.
    is_tested: bool,
    /// Whether it was connected before.
    was_connected: bool,
    learnt: Option<(DiscoveredFacts, UnixTime)>,
    is_admin: bool,
}

impl ClusterPage {
    /// Whether the new key has opened this cluster.
    fn is_next_proven_here(&self) -> bool {
        self.next_uses.iter().any(|place| place.cluster == self.known.row.title)
    }
}

/// The page.
pub async fn get(context: Context, me: Me, Path(slug): Path<String>) -> Answer {
    me.may(Permission::UseClusters)?;
    let known = find(&context.app, &slug).await?;
    let way = Way::of(&context, &me, &known).await?;
    show(&page(&context, &me, known, way).await?)
}

/// What has changed of a page that is open and has seen this mark: nothing, the panel, or everything below the
/// title where the page is to be arranged anew.
pub(super) async fn changes(
    context: &Context,
    me: &Me,
    known: &ClusterProfile,
    seen: Option<&str>,
) -> Answer {
    use axum::response::IntoResponse as _;
    let way = Way::of(context, me, known).await?;
    let panel = Panel::of(known, &way);
    // A test leaves no trace in the panel; what it showed is said beside the key.
    let is_tested = way.test.is_none() && seen.is_some_and(|mark| mark.contains(".test-"));
    match seen {
        Some(mark) if is_tested || !panel.fits(mark) => {
            // Whoever has just connected wants to see the beginning of what is there now.
            let was_connecting = mark.starts_with("connect.connect-");
            let swap = match panel.next {
                Next::Nothing | Next::Closed if was_connecting => "outerHTML show:window:top",
                _ => "outerHTML",
            };
            let mut page = page(context, me, known.clone(), way).await?;
            page.is_tested = is_tested;
            let place = [("hx-retarget", "#place"), ("hx-reswap", swap)];
            Ok((place, show(&page.as_place())?).into_response())
        }
        _ => panel.answer(seen),
    }
}

/// The page again, with what is wrong about the user name.
pub(super) async fn with_problem(
    context: &Context,
    me: &Me,
    known: &ClusterProfile,
    user: &str,
    problem: &str,
) -> Answer {
    let way = Way::of(context, me, known).await?;
    let mut page = page(context, me, known.clone(), way).await?;
    page.user = shown_again(user);
    problem.clone_into(&mut page.user_problem);
    show_with(PROBLEMS, &page)
}

async fn page(
    context: &Context,
    me: &Me,
    known: ClusterProfile,
    way: Way,
) -> Result<ClusterPage, AppError> {
    let next_uses = match &way.next_key {
        Some(next) => {
            let mut db = context.app.store.read().await?;
            store::connections::list_key_uses(&mut db, next.id).await?
        }
        None => Vec::new(),
    };
    let line = way.line.as_ref();
    let learnt =
        line.and_then(|line| Some((serde_json::from_str(&line.learnt).ok()?, line.learnt_at()?)));
    Ok(ClusterPage {
        page: Page::for_person(context, &me.0, &known.row.title, Section::Clusters),
        panel: Panel::of(&known, &way),
        user: line.map(|line| line.remote_user.clone()).unwrap_or_default(),
        user_problem: String::new(),
        was_connected: way.was_connected(),
        key: way.key,
        next_key: way.next_key,
        next_uses,
        is_tested: false,
        learnt,
        is_admin: me.may(Permission::ManageClusters).is_ok(),
        known,
    })
}

/// How long a job may run, in words.
fn long_words(minutes: Option<u32>) -> String {
    match minutes {
        None => "no limit known".into(),
        Some(1440) => "1 day".into(),
        Some(minutes) if minutes > 1440 && minutes % 1440 == 0 => {
            format!("{} days", minutes / 1440)
        }
        Some(60) => "1 hour".into(),
        Some(minutes) if minutes > 60 && minutes % 60 == 0 => format!("{} hours", minutes / 60),
        Some(minutes) if minutes > 60 => format!("{} h {} min", minutes / 60, minutes % 60),
        Some(minutes) => format!("{minutes} minutes"),
    }
}
