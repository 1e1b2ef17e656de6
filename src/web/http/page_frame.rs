//! The frame of every page: title, navigation, person, message; and how templates become answers.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _};

use crate::auth::Permission;
use crate::auth::sessions::SignedInPerson;
use crate::error::AppError;
use crate::jobs::notifications::UnreadCount;
use crate::web::HandlerResult;
use crate::web::http::assets;
use crate::web::http::extractors::RequestContext;
use crate::web::http::flash::FlashMessage;
use crate::web::pages::account::theme::Theme;

/// What `base.html` shows around every page.
pub struct PageFrame {
    /// The page's name in the browser's tab.
    pub title: String,
    /// light, dark or auto.
    pub theme: &'static str,
    /// Address of the style sheet.
    pub css: &'static str,
    /// Address of our script.
    pub js: &'static str,
    pub htmx: &'static str,
    /// Address of htmx's event-stream extension.
    pub sse: &'static str,
    /// Address of the icon.
    pub icon: &'static str,
    /// Who is signed in.
    pub person: Option<PagePerson>,
    /// How much they have not seen.
    pub bell: NotificationBadge,
    /// Where one can go.
    pub nav: Vec<NavigationItem>,
    /// A message left by the page before.
    pub flash: Option<PageMessage>,
    pub version: &'static str,
}

/// Who is signed in, as the frame shows them.
pub struct PagePerson {
    pub display_name: String,
    /// One or two letters.
    pub initials: String,
    /// Whether they administer the portal.
    pub is_admin: bool,
}

/// The bell in the frame.
#[derive(Default)]
pub struct NotificationBadge {
    /// Notices that were not seen, in words: `3`, `99+`; empty if there are none.
    pub count: String,
    /// The last notice that this page knows of.
    pub last: i64,
}

impl NotificationBadge {
    /// More are not counted out.
    const MOST: i64 = 99;

    /// The bell of someone.
    pub fn from_unread(unread: UnreadCount) -> Self {
        let count = match unread.count {
            ..=0 => String::new(),
            count @ 1..=Self::MOST => count.to_string(),
            _ => format!("{}+", Self::MOST),
        };
        Self { count, last: unread.last.0 }
    }
}

/// One place to go.
pub struct NavigationItem {
    /// What it is called.
    pub label: &'static str,
    pub href: &'static str,
    pub icon: &'static str,
    /// Whether this page belongs to it.
    pub current: bool,
}

/// A message at the top of a page.
pub struct PageMessage {
    /// ok, info, warning or danger.
    pub kind: &'static str,
    pub text: &'static str,
}

/// The part of the portal a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NavSection {
    Home,
    Jobs,
    Dashboards,
    /// Clusters and one's connections to them.
    Clusters,
    Groups,
    People,
    Activity,
    /// One's own account: reached by the person's menu.
    Account,
    /// A page that belongs to none of them.
    NoSection,
}

impl PageFrame {
    /// The frame of a page for someone who is signed in.
    pub fn for_person(
        context: &RequestContext,
        me: &SignedInPerson,
        title: &str,
        section: NavSection,
    ) -> Self {
        let page = Self::for_anyone(context.theme, context.flash, title).with_person(me, section);
        Self {
            bell: NotificationBadge::from_unread(
                context.app.notifications.cached_unread(me.person.id),
            ),
            ..page
        }
    }

    /// The frame of someone who is signed in around a page.
    #[must_use]
    pub fn with_person(self, me: &SignedInPerson, section: NavSection) -> Self {
        Self {
            person: Some(PagePerson {
                display_name: me.person.display_name.clone(),
                initials: initials(&me.person.display_name),
                is_admin: me.person.is_admin,
            }),
            nav: build_navigation(me, section),
            ..self
        }
    }

    /// The frame of a page for someone who is not signed in.
    pub fn for_visitor(context: &RequestContext, title: &str) -> Self {
        Self::for_anyone(context.theme, context.flash, title)
    }

    /// The same where only the look is known.
    pub fn for_anyone(theme: Theme, flash: Option<FlashMessage>, title: &str) -> Self {
        Self {
            title: title.to_owned(),
            theme: theme.as_str(),
            css: assets::asset_url("app.css"),
            js: assets::asset_url("app.js"),
            htmx: assets::asset_url("htmx.min.js"),
            sse: assets::asset_url("htmx-ext-sse.min.js"),
            icon: assets::asset_url("favicon.svg"),
            person: None,
            bell: NotificationBadge::default(),
            nav: Vec::new(),
            flash: flash.map(|flash| PageMessage { kind: flash.kind(), text: flash.text() }),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

fn build_navigation(me: &SignedInPerson, section: NavSection) -> Vec<NavigationItem> {
    let item = |label, href, icon, belongs| NavigationItem {
        label,
        href,
        icon,
        current: section == belongs,
    };
    let mut items = vec![
        item("Home", "/", "home", NavSection::Home),
        item("Jobs", "/jobs", "jobs", NavSection::Jobs),
        item("Dashboards", "/dashboards", "chart", NavSection::Dashboards),
        item("Clusters", "/clusters", "cluster", NavSection::Clusters),
    ];
    if me.viewer.may(Permission::ManageGroups).is_ok() || !me.memberships.is_empty() {
        items.push(item("Groups", "/groups", "people", NavSection::Groups));
    }
    if me.viewer.may(Permission::ManagePeople).is_ok() {
        items.push(item("People", "/people", "person", NavSection::People));
    }
    if me.viewer.may(Permission::SeeAllActivity).is_ok() {
        items.push(item("Activity", "/activity", "activity", NavSection::Activity));
    }
    items
}

/// The first letters of the first and the last word.
fn initials(name: &str) -> String {
    let mut words = name.split_whitespace();
    let first = words.next().and_then(|word| word.chars().next());
    let last = words.next_back().and_then(|word| word.chars().next());
    first.into_iter().chain(last).flat_map(char::to_uppercase).collect()
}

/// A page as an answer.
pub fn respond(template: &impl Template) -> HandlerResult {
    respond_with(StatusCode::OK, template)
}

/// A page as an answer with another status (a form with problems: 422).
pub fn respond_with(status: StatusCode, template: &impl Template) -> HandlerResult {
    Ok((status, Html(render(template)?)).into_response())
}

/// What a template makes.
pub fn render(template: &impl Template) -> Result<String, AppError> {
    // Larger than most pages, so that none is copied while it grows.
    let mut text = String::with_capacity(INITIAL_PAGE_CAPACITY);
    template
        .render_into(&mut text)
        .map_err(|error| AppError::Internal(format!("template: {error}")))?;
    Ok(text)
}

/// Bytes set aside for a page.
const INITIAL_PAGE_CAPACITY: usize = 24 * 1024;

/// A form that was filled in wrongly is shown again with this status.
pub const FORM_ERROR_STATUS: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;

#[cfg(test)]
mod tests {
    use crate::web::http::page_frame::initials;

    #[test]
    fn initials_of_many_names() {
        for (name, expected) in [
            ("Ada Smith", "AS"),
            ("ada maria smith", "AS"),
            ("Ada", "A"),
            ("ßx", "SS"),
            ("名前", "名"),
            ("", ""),
        ] {
            assert_eq!(initials(name), expected, "{name}");
        }
    }
}
