//! The activity log: everyone sees their own, administrators see all and may export it.

use askama::Template;
use serde::Deserialize;

use super::extract::{Context, Me, Query};
use super::page::{Page, Section, show};
use super::{Answer, csv};
use crate::auth::activity::{ActivityDetails, record};
use crate::auth::{ActivityEvent, Permission};
use crate::clock::UnixTime;
use crate::store::activity::{self, ActivityEntry, ActivityFilter};
use crate::store::{self};

/// Entries on a page.
const PER_PAGE: i64 = 50;
/// Entries in an export.
const EXPORT_MAX: i64 = 100_000;

/// What to show.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Choice {
    action: String,
    text: String,
    before: Option<i64>,
}

impl Choice {
    fn filter(&self, limit: i64) -> ActivityFilter {
        let some = |text: &str| {
            Some(text.trim().chars().take(200).collect::<String>()).filter(|t| !t.is_empty())
        };
        ActivityFilter {
            about: None,
            action: some(&self.action),
            text: some(&self.text),
            before: self.before,
            limit,
        }
    }

    fn query(&self, before: Option<i64>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("action", &self.action).append_pair("text", &self.text);
        if let Some(before) = before {
            query.append_pair("before", &before.to_string());
        }
        query.finish()
    }

    const fn is_empty(&self) -> bool {
        self.action.is_empty() && self.text.is_empty()
    }
}

struct Row {
    at: UnixTime,
    actor: String,
    is_stranger: bool,
    sentence: String,
    subject: String,
    detail: String,
    address: String,
}

impl From<ActivityEntry> for Row {
    fn from(entry: ActivityEntry) -> Self {
        let sentence = ActivityEvent::parse(&entry.action)
            .map_or(entry.action, |event| event.sentence().to_owned());
        Self {
            at: entry.at,
            actor: entry.actor_name,
            is_stranger: entry.is_stranger,
            sentence,
            subject: entry.subject,
            detail: entry.detail,
            address: entry.address,
        }
    }
}

#[derive(Template)]
#[template(path = "activity/own.html")]
struct OwnPage {
    page: Page,
    me: String,
    rows: Vec<Row>,
    older: String,
    newest: String,
}

#[derive(Template)]
#[template(path = "activity/all.html")]
struct AllPage {
    page: Page,
    rows: Vec<Row>,
    events: &'static [ActivityEvent],
    choice: Choice,
    export: String,
    older: String,
    newest: String,
}

/// One page of entries, and where the next begins.
async fn read(
    context: &Context,
    filter: ActivityFilter,
) -> Result<(Vec<Row>, Option<i64>), crate::error::AppError> {
    let limit = filter.limit;
    let mut db = context.app.store.read().await?;
    let mut entries =
        activity::list(&mut db, &ActivityFilter { limit: limit + 1, ..filter }).await?;
    let more = i64::try_from(entries.len()).unwrap_or(i64::MAX) > limit;
    entries.truncate(usize::try_from(limit).unwrap_or_default());
    let last = entries.last().map(|entry| entry.id).filter(|_| more);
    Ok((entries.into_iter().map(Row::from).collect(), last))
}

/// What I did, and what was done to my account.
pub async fn own(context: Context, me: Me, Query(choice): Query<Choice>) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    let filter = ActivityFilter {
        about: Some(me.0.person.id),
        action: None,
        text: None,
        ..choice.filter(PER_PAGE)
    };
    let (rows, next) = read(&context, filter).await?;
    show(&OwnPage {
        page: Page::for_person(&context, &me.0, "Activity", Section::Account),
        me: me.0.person.name.clone(),
        rows,
        older: next.map_or_else(String::new, |before| format!("/account/activity?before={before}")),
        newest: choice.before.map_or_else(String::new, |_| "/account/activity".into()),
    })
}

/// What anyone did.
pub async fn all(context: Context, me: Me, Query(choice): Query<Choice>) -> Answer {
    me.may(Permission::SeeAllActivity)?;
    let (rows, next) = read(&context, choice.filter(PER_PAGE)).await?;
    show(&AllPage {
        page: Page::for_person(&context, &me.0, "Activity", Section::Activity),
        rows,
        events: ActivityEvent::ALL,
        export: format!("/activity.csv?{}", choice.query(None)),
        older: next
            .map_or_else(String::new, |before| format!("/activity?{}", choice.query(Some(before)))),
        newest: choice
            .before
            .map_or_else(String::new, |_| format!("/activity?{}", choice.query(None))),
        choice,
    })
}

/// The chosen entries as a table for other programs.
pub async fn export(context: Context, me: Me, Query(choice): Query<Choice>) -> Answer {
    me.may(Permission::SeeAllActivity)?;
    let app = &context.app;
    let entries = activity::list(&mut *app.store.read().await?, &choice.filter(EXPORT_MAX)).await?;
    let mut tx = app.store.write().await?;
    let detail = format!("{} entries", entries.len());
    let about = ActivityDetails { detail: &detail, ..ActivityDetails::default() };
    record(&mut tx, &me.actor(&context), ActivityEvent::ActivityExported, about, app.clock.now())
        .await?;
    store::commit(tx).await?;
    let mut text = String::from("time,who,action,subject,detail,address\r\n");
    for entry in entries {
        let time = entry.at.iso();
        let cells = [
            &time,
            &entry.actor_name,
            &entry.action,
            &entry.subject,
            &entry.detail,
            &entry.address,
        ];
        text.push_str(&csv::line(&cells));
    }
    Ok(csv::download("portolan-activity.csv", text))
}
