//! Guests who look at one frozen report: by a link, for reading, and nothing else.

use askama::Template;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::super::assets;
use super::super::cookies::Sent;
use super::super::extract::{Form, Path};
use super::super::reports::chart::Chart;
use super::super::reports::sheet;
use super::enter::{self, Unlock, opened_link, see_other, unlocked, visit};
use super::look::{self, Behind, Look, Words};
use super::{Thing, is_word};
use crate::app::{App, AppState};
use crate::clock::UnixTime;
use crate::usage::report::Report;
use crate::usage::report_links::{NoReport, ReportPass};

const CLOSED: Words = Words {
    title: "This report is not open to you",
    text: "The link may have ended or been taken back, or this address belongs to another browser. If you got a link, open that link again.",
};

#[derive(Template)]
#[template(path = "boards_origin/report.html")]
struct ReportPage {
    look: Look,
    report_css: &'static str,
    owner: String,
    group: String,
    until: UnixTime,
    report: Report,
    chart: Chart,
}

/// A guest comes by a link.
pub async fn by_link(
    State(app): State<AppState>,
    Path(token): Path<String>,
    parts: Parts,
) -> Response {
    // Of another length it is none of ours, and costs a try like any other guess.
    let opened = app.usage.visit_report(&token, &visit(&app, &parts)).await;
    opened_link(&app, Thing::Report, opened)
}

async fn check(app: &App, word: &str, headers: &HeaderMap) -> Result<ReportPass, NoReport> {
    if !is_word(word) {
        return Err(NoReport::Closed);
    }
    let sent = Sent::of(headers);
    app.usage.check_report(word, sent.named(Thing::Report.cookie_name(app))).await
}

/// The report.
pub async fn get(
    State(app): State<AppState>,
    Path(word): Path<String>,
    headers: HeaderMap,
) -> Response {
    let pass = match check(&app, &word, &headers).await {
        Ok(pass) => pass,
        Err(NoReport::Locked(pass)) => return locked(&pass, ""),
        Err(error) => return no_entry(&app, &error),
    };
    let report = match app.usage.seen_report(&pass).await {
        Ok(report) => report,
        Err(error) => return enter::trouble(&app, &error),
    };
    let page = ReportPage {
        look: Look::new(),
        report_css: assets::address("report.css"),
        owner: pass.link.owner_name.clone(),
        group: pass.link.group_name.clone(),
        until: pass.link.terms.expires_at,
        chart: Chart::of(&report),
        report,
    };
    look::page(StatusCode::OK, &page)
}

/// A guest tells the passphrase.
pub async fn unlock(
    State(app): State<AppState>,
    Path(word): Path<String>,
    parts: Parts,
    Form(form): Form<Unlock>,
) -> Response {
    let to = format!("{}/", Thing::Report.base(&word));
    let pass = match check(&app, &word, &parts.headers).await {
        Err(NoReport::Locked(pass)) => pass,
        Ok(_) => return see_other(&to),
        Err(error) => return no_entry(&app, &error),
    };
    let visitor = visit(&app, &parts);
    let tried = app.usage.unlock_report(&pass, &form.passphrase, &visitor).await;
    unlocked(&app, &to, tried, |problem| locked(&pass, problem))
}

fn locked(pass: &ReportPass, problem: &str) -> Response {
    let owner = &pass.link.owner_name;
    look::locked(&Behind { thing: Thing::Report, word: &pass.word, owner }, problem)
}

fn no_entry(app: &App, error: &NoReport) -> Response {
    match error {
        NoReport::Closed | NoReport::Locked(_) => look::say(app, StatusCode::NOT_FOUND, &CLOSED),
        NoReport::Store(error) => {
            tracing::error!(%error, "It could not be decided who may look at a report");
            look::say(app, StatusCode::SERVICE_UNAVAILABLE, &look::BUSY)
        }
    }
}
