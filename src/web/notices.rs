//! What people are told about their jobs: the bell on every page, toasts for what is new, and the list.

use askama::Template;
use serde::Deserialize;

use super::Answer;
use super::extract::{Context, Form, Me, Query};
use super::flash::see_other;
use super::page::{Bell, Page, Section, show};
use crate::auth::Permission;
use crate::domain::{NotificationId, PersonId};
use crate::explain::sizes;
use crate::jobs::tidings::{self, Kind, Tiding};
use crate::store::{self, StoreError};

/// Notices that are read for the list.
const MOST_NOTICES: i64 = 2000;
/// Lines that it has.
const MOST_LINES: usize = 100;
/// New notices that a page is told of at once; they become one toast for each kind.
const MOST_NEW: i64 = 2000;
/// What a person wants to see as toasts: the name of that choice.
pub const TOASTS: &str = "notices.toasts";

#[derive(Template)]
#[template(path = "notices/list.html")]
struct ListPage {
    page: Page,
    lines: Vec<Tiding>,
    /// How many were not seen, in words; empty for none.
    unread: String,
}

#[derive(Template)]
#[template(path = "notices/ring.html")]
struct Ring {
    page: Frame,
    toasts: Vec<Tiding>,
}

/// As much of a page as the bell needs.
struct Frame {
    bell: Bell,
}

/// The list.
pub async fn get(context: Context, me: Me) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    let person = me.0.person.id;
    let unread = context.app.notifications.unread(&context.app.store, person).await?;
    let mut db = context.app.store.read().await?;
    let notices = store::notifications::list_latest(&mut db, person, MOST_NOTICES).await?;
    drop(db);
    let mut lines = tidings::list(&notices);
    lines.truncate(MOST_LINES);
    let count = u64::try_from(unread.count).unwrap_or(0);
    show(&ListPage {
        page: Page::for_person(&context, &me.0, "Notices", Section::Elsewhere),
        lines,
        unread: if count > 0 { sizes::number(count) } else { String::new() },
    })
}

/// Up to which notice everything was seen.
#[derive(Deserialize)]
pub struct UpTo {
    up_to: NotificationId,
}

/// Notes what was seen. The list sends this by itself once it is shown.
pub async fn read(context: Context, me: Me, Form(form): Form<UpTo>) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    let app = &context.app;
    app.notifications.mark_read(&app.store, me.0.person.id, form.up_to, app.clock.now()).await?;
    if context.is_fragment {
        // The bell of the page that showed them: its stream of events may not be open yet.
        let unread = app.notifications.unread(&app.store, me.0.person.id).await?;
        return show(&Ring { page: Frame { bell: Bell::of(unread) }, toasts: Vec::new() });
    }
    Ok(see_other("/notices"))
}

/// What a page has shown already.
#[derive(Deserialize)]
pub struct After {
    #[serde(default)]
    after: Option<NotificationId>,
}

/// The bell anew, and what came since as toasts.
pub async fn bell(context: Context, me: Me, Query(query): Query<After>) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    let person = me.0.person.id;
    let app = &context.app;
    let unread = app.notifications.unread(&app.store, person).await?;
    let mut new = Vec::new();
    if let Some(after) = query.after.filter(|after| *after < unread.last) {
        let mut db = app.store.read().await?;
        new = store::notifications::list_after(&mut db, person, after, MOST_NEW).await?;
        let wanted = wanted(&mut db, person).await?;
        // What is read already is quiet, or was seen in another window.
        new.retain(|notice| {
            let kind = Kind::from_word(&notice.kind);
            !notice.is_read && kind.is_some_and(|kind| !kind.is_choice() || wanted.contains(&kind))
        });
    }
    show(&Ring { page: Frame { bell: Bell::of(unread) }, toasts: tidings::summary(&new) })
}

/// What someone wants to see as toasts; everything if they have not said.
pub async fn wanted(
    db: &mut store::DbConnection,
    person: PersonId,
) -> Result<Vec<Kind>, StoreError> {
    let chosen = store::queues::load_preference(db, person, TOASTS).await?;
    Ok(Kind::list(&chosen.unwrap_or_else(Kind::all_words)))
}
