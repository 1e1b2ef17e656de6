//! The activity log: people see their own, administrators see everything and can export it.

use askama::Template;
use axum::http::StatusCode;
use serde::Deserialize;

use crate::auth::activity::{ActivityDetails, record};
use crate::auth::{ActivityEventKind, Permission};
use crate::clock::Day;
use crate::error::AppError;
use crate::store;
use crate::store::activity::{self, ActivityEntry, ActivityFilter};
use crate::web::HandlerResult;
use crate::web::http::csv;
use crate::web::http::extractors::{CurrentPerson, QueryParams, RequestContext};
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond, respond_with};

const PER_PAGE: i64 = 50;
const MAX_EXPORT_ROWS: i64 = 100_000;

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct ActivityQuery {
    action: String,
    text: String,
    /// The first day, in UTC, such as 2026-11-17.
    from: String,
    /// The last day.
    to: String,
    before: Option<i64>,
}

impl ActivityQuery {
    fn to_filter(&self, limit: i64) -> ActivityFilter {
        let some = |text: &str| Some(text.trim().chars().take(200).collect::<String>()).filter(|t| !t.is_empty());
        let midnight = |text: &str, days: i64| Day::parse(text).map(|day| day.plus(days).start());
        ActivityFilter {
            about: None,
            action: some(&self.action),
            text: some(&self.text),
            since: midnight(&self.from, 0),
            until: midnight(&self.to, 1),
            before: self.before,
            limit,
        }
    }

    /// What is wrong with the dates; empty if nothing is.
    fn date_problem(&self) -> &'static str {
        let days = [&self.from, &self.to].map(|text| (text.trim().is_empty(), Day::parse(text)));
        match days {
            [(false, None), _] | [_, (false, None)] => "Enter dates as year-month-day, for example 2026-11-17.",
            [(_, Some(from)), (_, Some(to))] if from > to => "The “From” date is after the “To” date. Swap them.",
            _ => "",
        }
    }

    fn to_query_string(&self, before: Option<i64>) -> String {
        let mut pairs = form_urlencoded::Serializer::new(String::new());
        for (name, value) in [("action", &self.action), ("text", &self.text), ("from", &self.from), ("to", &self.to)] {
            pairs.append_pair(name, value);
        }
        if let Some(before) = before {
            pairs.append_pair("before", &before.to_string());
        }
        pairs.finish()
    }

    const fn is_empty(&self) -> bool {
        self.action.is_empty() && self.text.is_empty() && !self.has_dates()
    }

    /// Whether entries are filtered by date. They then show their own date, so that both can be compared.
    const fn has_dates(&self) -> bool {
        !self.from.is_empty() || !self.to.is_empty()
    }
}

/// What happened, in words; an event of another version by its code.
fn sentence(entry: &ActivityEntry) -> &str {
    match ActivityEventKind::parse(&entry.action) {
        Some(event) => event.sentence(),
        None => &entry.action,
    }
}

#[derive(Template)]
#[template(path = "admin/activity/own.html")]
struct OwnActivityPage {
    page: PageFrame,
    is_admin: bool,
    me: String,
    rows: Vec<ActivityEntry>,
    older: String,
    newest: String,
}

#[derive(Template)]
#[template(path = "admin/activity/all.html")]
struct AllActivityPage {
    page: PageFrame,
    rows: Vec<ActivityEntry>,
    events: &'static [ActivityEventKind],
    query: ActivityQuery,
    date_problem: &'static str,
    export: String,
    older: String,
    newest: String,
}

/// One page of entries, and where the next one starts.
async fn load_rows(
    context: &RequestContext,
    filter: ActivityFilter,
) -> Result<(Vec<ActivityEntry>, Option<i64>), AppError> {
    let limit = filter.limit;
    let mut db = context.app.store.read().await?;
    let mut entries = activity::list(&mut db, &ActivityFilter { limit: limit + 1, ..filter }).await?;
    let has_more = i64::try_from(entries.len()).unwrap_or(i64::MAX) > limit;
    entries.truncate(usize::try_from(limit).unwrap_or_default());
    let last = entries.last().map(|entry| entry.id).filter(|_| has_more);
    Ok((entries, last))
}

/// What the viewer did, and what was done to their account.
pub async fn show_own(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(query): QueryParams<ActivityQuery>,
) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let filter = ActivityFilter {
        about: Some(me.0.person.id),
        before: query.before,
        limit: PER_PAGE,
        ..ActivityFilter::default()
    };
    let (rows, next) = load_rows(&context, filter).await?;
    respond(&OwnActivityPage {
        page: PageFrame::for_person(&context, &me.0, "Your activity", NavSection::Account),
        is_admin: me.may(Permission::SeeAllActivity).is_ok(),
        me: me.0.person.name.clone(),
        rows,
        older: next.map_or_else(String::new, |before| format!("/account/activity?before={before}")),
        newest: query.before.map_or_else(String::new, |_| "/account/activity".into()),
    })
}

pub async fn show_all(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(query): QueryParams<ActivityQuery>,
) -> HandlerResult {
    me.may(Permission::SeeAllActivity)?;
    let date_problem = query.date_problem();
    let (rows, next) = if date_problem.is_empty() {
        load_rows(&context, query.to_filter(PER_PAGE)).await?
    } else {
        (Vec::new(), None)
    };
    let status = if date_problem.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS };
    let page = AllActivityPage {
        page: PageFrame::for_person(&context, &me.0, "Activity", NavSection::Activity),
        rows,
        events: ActivityEventKind::ALL,
        export: format!("/activity.csv?{}", query.to_query_string(None)),
        older: next.map_or_else(String::new, |before| format!("/activity?{}", query.to_query_string(Some(before)))),
        newest: query.before.map_or_else(String::new, |_| format!("/activity?{}", query.to_query_string(None))),
        date_problem,
        query,
    };
    respond_with(status, &page)
}

/// Exports the filtered entries as CSV.
pub async fn export_csv(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(query): QueryParams<ActivityQuery>,
) -> HandlerResult {
    me.may(Permission::SeeAllActivity)?;
    if !query.date_problem().is_empty() {
        return Err(AppError::BadRequest(query.date_problem().to_owned()));
    }
    let app = &context.app;
    let entries = activity::list(&mut *app.store.read().await?, &query.to_filter(MAX_EXPORT_ROWS)).await?;
    let mut tx = app.store.write().await?;
    let detail = format!("{} entries", entries.len());
    let details = ActivityDetails { detail: &detail, ..ActivityDetails::default() };
    record(&mut tx, &me.actor(&context), ActivityEventKind::ActivityExported, details, app.clock.now()).await?;
    store::commit(tx).await?;
    Ok(csv::download_response("portolan-activity.csv", render_csv(&entries)))
}

/// The event in words comes last: programs may read the other columns by their position.
fn render_csv(entries: &[ActivityEntry]) -> String {
    let mut text = String::from("time,who,action,subject,detail,address,event\r\n");
    for entry in entries {
        let ActivityEntry { actor_name, action, subject, detail, address, .. } = entry;
        let time = entry.at.iso();
        let cells: [&str; 7] = [&time, actor_name, action, subject, detail, address, sentence(entry)];
        text.push_str(&csv::format_row(&cells));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::UnixTime;

    fn between(from: &str, to: &str) -> ActivityQuery {
        ActivityQuery { from: from.into(), to: to.into(), ..ActivityQuery::default() }
    }

    #[test]
    fn export_has_words_beside_codes() {
        let entry = |action: &str| ActivityEntry {
            id: 1,
            at: UnixTime(86_400),
            actor_name: "bob".into(),
            is_stranger: false,
            action: action.into(),
            subject: "Bob".into(),
            detail: String::new(),
            address: "127.0.0.1".into(),
        };
        let text = render_csv(&[entry("profile.name"), entry("of.another-version")]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "time,who,action,subject,detail,address,event");
        let start = r#""1970-01-02T00:00:00Z","bob""#;
        let end = r#""Bob","","127.0.0.1""#;
        assert_eq!(lines[1], format!(r#"{start},"profile.name",{end},"Changed the display name""#));
        assert_eq!(lines[2], format!(r#"{start},"of.another-version",{end},"of.another-version""#));
    }

    #[test]
    fn both_days_are_included() {
        let filter = between("1970-01-02", " 1970-01-03 ").to_filter(50);
        assert_eq!((filter.since, filter.until), (Some(UnixTime(86_400)), Some(UnixTime(3 * 86_400))));
        let filter = between("", "1970-01-03").to_filter(50);
        assert_eq!((filter.since, filter.until), (None, Some(UnixTime(3 * 86_400))));
    }

    #[test]
    fn dates_that_make_no_sense_are_named() {
        for (from, to, is_fine) in [
            ("", "", true),
            ("2026-11-16", "2026-11-16", true),
            ("2026-11-17", "2026-11-16", false),
            ("17.11.2026", "", false),
            ("", "2026-13-01", false),
        ] {
            assert_eq!(between(from, to).date_problem().is_empty(), is_fine, "{from} {to}");
        }
    }
}
