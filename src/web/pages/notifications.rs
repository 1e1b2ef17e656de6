//! Notifications about jobs: the button on every page, toasts for new ones, and the list.

use askama::Template;
use serde::Deserialize;

use crate::auth::Permission;
use crate::domain::{NotificationId, PersonId};
use crate::format;
use crate::jobs::notification_digest::{self, NotificationDigest, NotificationKind};
use crate::store::{self, StoreError};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, QueryParams, RequestContext};
use crate::web::http::flash::see_other;
use crate::web::http::page_frame::{NavSection, NotificationBadge, PageFrame, respond};

/// Notifications read for the list.
const MAX_NOTIFICATIONS: i64 = 2000;
/// Rows in the list, after digesting.
const MAX_LIST_ROWS: usize = 100;
/// New notifications that a page gets at once; they become one toast per kind.
const MAX_NEW: i64 = 2000;
/// The preference that holds which kinds a person wants as toasts.
pub const TOASTS_PREFERENCE: &str = "notifications.toasts";

#[derive(Template)]
#[template(path = "notifications/list.html")]
struct NotificationListPage {
    page: PageFrame,
    digests: Vec<NotificationDigest>,
    /// The unread count as text; empty for none.
    unread: String,
}

#[derive(Template)]
#[template(path = "notifications/ring.html")]
struct NotificationBellFragment {
    page: BellPageFrame,
    toasts: Vec<NotificationDigest>,
}

/// As much of the page frame as the notification button needs.
struct BellPageFrame {
    bell: NotificationBadge,
}

pub async fn list(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let person = me.0.person.id;
    let unread = context.app.notifications.unread(&context.app.store, person).await?;
    let mut db = context.app.store.read().await?;
    let latest = store::notifications::list_latest(&mut db, person, MAX_NOTIFICATIONS).await?;
    drop(db);
    let mut digests = notification_digest::build_digests(&latest);
    digests.truncate(MAX_LIST_ROWS);
    respond(&NotificationListPage {
        page: PageFrame::for_person(&context, &me.0, "Notifications", NavSection::NoSection),
        digests,
        unread: if unread.count > 0 { format::number(unread.count) } else { String::new() },
    })
}

/// The last notification that was seen; all before it count as read.
#[derive(Deserialize)]
pub struct MarkReadForm {
    up_to: NotificationId,
}

/// Marks notifications as read. The list sends this on its own once it is shown.
pub async fn mark_read(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<MarkReadForm>,
) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let app = &context.app;
    app.notifications.mark_read(&app.store, me.0.person.id, form.up_to, app.clock.now()).await?;
    if !context.is_fragment {
        return Ok(see_other("/notifications"));
    }
    // Refreshes the button of the page that showed them: its event stream may not be open yet.
    let bell = NotificationBadge::from_unread(app.notifications.unread(&app.store, me.0.person.id).await?);
    respond(&NotificationBellFragment { page: BellPageFrame { bell }, toasts: Vec::new() })
}

/// The last notification that a page has shown.
#[derive(Deserialize)]
pub struct NewNotificationsQuery {
    #[serde(default)]
    after: Option<NotificationId>,
}

/// Renders the button again, with everything new as toasts.
pub async fn show_bell(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(query): QueryParams<NewNotificationsQuery>,
) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let person = me.0.person.id;
    let app = &context.app;
    let unread = app.notifications.unread(&app.store, person).await?;
    let mut new = Vec::new();
    if let Some(after) = query.after.filter(|after| *after < unread.last) {
        let mut db = app.store.read().await?;
        new = store::notifications::list_after(&mut db, person, after, MAX_NEW).await?;
        let wanted = load_toast_kinds(&mut db, person).await?;
        // Notifications that are already read are quiet, or were seen in another window.
        new.retain(|notification| {
            let kind = NotificationKind::parse(&notification.kind);
            !notification.is_read && kind.is_some_and(|kind| !kind.is_selectable() || wanted.contains(&kind))
        });
    }
    let bell = NotificationBadge::from_unread(unread);
    let toasts = notification_digest::summarize(&notification_digest::latest_of_each_job(&new));
    respond(&NotificationBellFragment { page: BellPageFrame { bell }, toasts })
}

/// The kinds that someone wants as toasts; all of them if they haven't chosen.
pub async fn load_toast_kinds(
    db: &mut store::DbConnection,
    person: PersonId,
) -> Result<Vec<NotificationKind>, StoreError> {
    let chosen = store::queues::load_preference(db, person, TOASTS_PREFERENCE).await?;
    Ok(NotificationKind::parse_list(&chosen.unwrap_or_else(NotificationKind::default_list)))
}
