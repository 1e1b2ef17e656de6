//! The activity log: people see their own, administrators see everything and can export it.

use askama::Template;
use serde::Deserialize;

use crate::auth::activity::{ActivityDetails, record};
use crate::auth::{ActivityEventKind, Permission};
use crate::error::AppError;
use crate::store;
use crate::store::activity::{self, ActivityEntry, ActivityFilter};
use crate::web::HandlerResult;
use crate::web::http::csv;
use crate::web::http::extractors::{CurrentPerson, QueryParams, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};

const PER_PAGE: i64 = 50;
const MAX_EXPORT_ROWS: i64 = 100_000;

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct ActivityQuery {
    action: String,
    text: String,
    before: Option<i64>,
}

impl ActivityQuery {
    fn to_filter(&self, limit: i64) -> ActivityFilter {
        let some = |text: &str| Some(text.trim().chars().take(200).collect::<String>()).filter(|t| !t.is_empty());
        ActivityFilter { about: None, action: some(&self.action), text: some(&self.text), before: self.before, limit }
    }

    fn to_query_string(&self, before: Option<i64>) -> String {
        let mut pairs = form_urlencoded::Serializer::new(String::new());
        pairs.append_pair("action", &self.action).append_pair("text", &self.text);
        if let Some(before) = before {
            pairs.append_pair("before", &before.to_string());
        }
        pairs.finish()
    }

    const fn is_empty(&self) -> bool {
        self.action.is_empty() && self.text.is_empty()
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
    let filter = ActivityFilter { about: Some(me.0.person.id), action: None, text: None, ..query.to_filter(PER_PAGE) };
    let (rows, next) = load_rows(&context, filter).await?;
    respond(&OwnActivityPage {
        page: PageFrame::for_person(&context, &me.0, "Activity", NavSection::Account),
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
    let (rows, next) = load_rows(&context, query.to_filter(PER_PAGE)).await?;
    respond(&AllActivityPage {
        page: PageFrame::for_person(&context, &me.0, "Activity", NavSection::Activity),
        rows,
        events: ActivityEventKind::ALL,
        export: format!("/activity.csv?{}", query.to_query_string(None)),
        older: next.map_or_else(String::new, |before| format!("/activity?{}", query.to_query_string(Some(before)))),
        newest: query.before.map_or_else(String::new, |_| format!("/activity?{}", query.to_query_string(None))),
        query,
    })
}

/// Exports the filtered entries as CSV.
pub async fn export_csv(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(query): QueryParams<ActivityQuery>,
) -> HandlerResult {
    me.may(Permission::SeeAllActivity)?;
    let app = &context.app;
    let entries = activity::list(&mut *app.store.read().await?, &query.to_filter(MAX_EXPORT_ROWS)).await?;
    let mut tx = app.store.write().await?;
    let detail = format!("{} entries", entries.len());
    let details = ActivityDetails { detail: &detail, ..ActivityDetails::default() };
    record(&mut tx, &me.actor(&context), ActivityEventKind::ActivityExported, details, app.clock.now()).await?;
    store::commit(tx).await?;
    let mut text = String::from("time,who,action,subject,detail,address\r\n");
    for entry in entries {
        let time = entry.at.iso();
        let cells = [&time, &entry.actor_name, &entry.action, &entry.subject, &entry.detail, &entry.address];
        text.push_str(&csv::format_row(&cells));
    }
    Ok(csv::download_response("portolan-activity.csv", text))
}
