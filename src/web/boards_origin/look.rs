//! Our own pages on this origin: the bar around a dashboard, the passphrase, and what there is to say when there is
//! nothing to see.

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse as _, Response};
use serde::Serialize;

use super::super::assets;
use super::super::extract::Path;
use super::{Thing, base, check};
use crate::app::{App, AppState};
use crate::boards::{Kind, NoEntry, Pass, Standing, Who};
use crate::clock::UnixTime;
use crate::store::dashboards::runs::{DashboardRun as RunRow, DashboardRunState as Run};

/// A sentence and what to do.
pub struct Words {
    /// What happened.
    pub title: &'static str,
    /// What to do.
    pub text: &'static str,
}

/// What is said when the portal itself has trouble.
pub const BUSY: Words = Words {
    title: "The portal cannot show this now",
    text: "It is busy or has a problem of its own. Try again in a minute.",
};
const CLOSED: Words = Words {
    title: "This dashboard is not open to you",
    text: "The link may have ended or been taken back, or this address belongs to another browser. If you got a link, open that link again. If you have an account, open the dashboard from the portal.",
};

#[derive(Template)]
#[template(path = "boards_origin/said.html")]
struct Said<'a> {
    look: Look,
    title: &'a str,
    text: &'a str,
}

#[derive(Template)]
#[template(path = "boards_origin/locked.html")]
struct Locked<'a> {
    look: Look,
    noun: &'static str,
    base: String,
    owner: &'a str,
    problem: &'a str,
}

#[derive(Template)]
#[template(path = "boards_origin/board.html")]
struct BoardPage {
    look: Look,
    base: String,
    /// Where inside the dashboard one begins.
    begin: &'static str,
    bar: Bar,
    resting: Option<Resting>,
}

/// Addresses of style and script.
pub struct Look {
    /// The portal's style.
    pub css: &'static str,
    /// This origin's own.
    pub board_css: &'static str,
    /// Its script.
    pub js: &'static str,
    /// The icon.
    pub icon: &'static str,
}

impl Look {
    /// As they are now.
    pub fn new() -> Self {
        Self {
            css: assets::address("app.css"),
            board_css: assets::address("board.css"),
            js: assets::address("board.js"),
            icon: assets::address("favicon.svg"),
        }
    }
}

/// What the bar says.
struct Bar {
    kind: &'static str,
    title: String,
    places: Vec<String>,
    /// Who shared it; empty for its owner.
    shared_by: String,
    /// Until when a guest may look.
    until: Option<UnixTime>,
    /// When the run ends, unless a follow-up takes over.
    ends: Option<UnixTime>,
    is_followed: bool,
    /// Where its owner manages it; empty for guests.
    portal: String,
    is_owner: bool,
    key: String,
}

/// Why there is nothing to see now.
struct Resting {
    title: &'static str,
    text: String,
    since: Option<UnixTime>,
    is_coming: bool,
}

/// The page around a dashboard.
pub async fn get(
    State(app): State<AppState>,
    Path(word): Path<String>,
    headers: HeaderMap,
) -> Response {
    let pass = match check(&app, &word, &headers).await {
        Ok(pass) => pass,
        Err(NoEntry::Locked(pass)) => return locked_board(&pass, ""),
        Err(error) => return no_entry(&app, &error),
    };
    let Ok(standing) = app.dashboards.seen_by(&pass).await else {
        return say(&app, StatusCode::SERVICE_UNAVAILABLE, &BUSY);
    };
    let resting = (!standing.is_live).then(|| resting(&standing));
    let bar = bar_of(&app, &pass, &standing);
    let begin = begin(&pass);
    let look = Look::new();
    page(StatusCode::OK, &BoardPage { look, base: base(&pass.word), begin, bar, resting })
}

/// Of the two kinds, one greets with its pages for language models; people here have trained something and look for
/// their runs.
fn begin(pass: &Pass) -> &'static str {
    match pass.board.kind.parse() {
        Ok(Kind::Mlflow) => "#/experiments?workflowType=machine_learning",
        _ => "",
    }
}

/// What the bar asks now and then: whether anything has changed.
#[derive(Serialize)]
struct News {
    key: String,
    ends: Option<i64>,
    followed: bool,
}

/// News for the bar.
pub async fn bar(
    State(app): State<AppState>,
    Path(word): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Ok(pass) = check(&app, &word, &headers).await else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match app.dashboards.seen_by(&pass).await {
        Ok(standing) => Json(News {
            key: key(&standing),
            ends: ends(&standing).map(|at| at.0),
            followed: standing.next.is_some(),
        })
        .into_response(),
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// Changes whenever the page would look different.
fn key(standing: &Standing) -> String {
    let run = standing.run.as_ref();
    let state = run.map_or("none", |run| run.state.as_str());
    format!("{}-{state}-{}", run.map_or(0, |run| run.id.0), standing.is_live)
}

fn ends(standing: &Standing) -> Option<UnixTime> {
    standing.run.as_ref().filter(|run| run.state != Run::Over).and_then(RunRow::ends_at)
}

fn bar_of(app: &App, pass: &Pass, standing: &Standing) -> Bar {
    let board = &pass.board;
    let kind = board.kind.parse::<Kind>().map_or("Dashboard", Kind::title);
    let is_owner = pass.who == Who::Owner;
    let is_guest = matches!(pass.who, Who::Guest(_));
    let portal = app.config.portal.public_url.join(&format!("/boards/{}", board.id));
    Bar {
        kind,
        title: board.title.clone(),
        // A guest was shown curves, not how someone's folders are called.
        places: if is_guest { Vec::new() } else { board.places() },
        shared_by: if is_owner { String::new() } else { board.owner_name.clone() },
        until: is_guest.then_some(pass.until),
        ends: ends(standing),
        is_followed: standing.next.is_some(),
        portal: if is_guest { String::new() } else { portal },
        is_owner,
        key: key(standing),
    }
}

fn resting(standing: &Standing) -> Resting {
    let run = standing.run.as_ref();
    match run.map(|run| run.state) {
        Some(Run::Asked | Run::Waiting | Run::Starting) => Resting {
            title: "This dashboard is being started",
            text: "It appears here by itself once it is ready.".to_owned(),
            since: run.map(|run| run.asked_at),
            is_coming: true,
        },
        Some(Run::Ready) => Resting {
            title: "This dashboard cannot be reached at the moment",
            text: "The connection to the cluster is interrupted. It comes back here by itself when that is over."
                .to_owned(),
            since: None,
            is_coming: true,
        },
        Some(Run::Over) | None => Resting {
            title: "This dashboard is not running",
            text: format!(
                "{} can start it again; it then appears here by itself.",
                standing.board.owner_name
            ),
            since: run.and_then(RunRow::over_at),
            is_coming: false,
        },
    }
}

/// Why a browser does not get in.
pub fn no_entry(app: &App, error: &NoEntry) -> Response {
    match error {
        NoEntry::Closed | NoEntry::Locked(_) => say(app, StatusCode::NOT_FOUND, &CLOSED),
        NoEntry::Store(error) => {
            tracing::error!(%error, "It could not be decided who may look at a dashboard");
            say(app, StatusCode::SERVICE_UNAVAILABLE, &BUSY)
        }
    }
}

/// Who shared what, for whoever still owes the passphrase.
pub struct Behind<'a> {
    /// What it is.
    pub thing: Thing,
    /// The word in the browser's address.
    pub word: &'a str,
    /// Who shared it.
    pub owner: &'a str,
}

/// A page that asks for the passphrase. It does not say what lies behind: the link may have come into other hands.
pub fn locked(behind: &Behind<'_>, problem: &str) -> Response {
    let status = if problem.is_empty() { StatusCode::OK } else { StatusCode::FORBIDDEN };
    let Behind { thing, word, owner } = *behind;
    let (look, noun, base) = (Look::new(), thing.noun(), thing.base(word));
    page(status, &Locked { look, noun, base, owner, problem })
}

/// The same for a dashboard.
pub fn locked_board(pass: &Pass, problem: &str) -> Response {
    let owner = &pass.board.owner_name;
    locked(&Behind { thing: Thing::Dashboard, word: &pass.word, owner }, problem)
}

/// A link whose time is up.
pub fn expired(_: &App, thing: Thing, at: UnixTime) -> Response {
    let text = format!(
        "It worked until {}. Ask whoever shared the {} for a new link.",
        at.words(),
        thing.noun()
    );
    page(StatusCode::GONE, &Said { look: Look::new(), title: "This link has ended", text: &text })
}

/// A page with a sentence.
pub fn say(_: &App, status: StatusCode, words: &Words) -> Response {
    page(status, &Said { look: Look::new(), title: words.title, text: words.text })
}

/// A template as an answer.
pub fn page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(error) => {
            tracing::error!(%error, "A page could not be made");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
