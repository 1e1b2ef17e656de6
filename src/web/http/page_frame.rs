//! The frame of every page (title, navigation, person, message), and how templates become responses.

use std::sync::Arc;

use askama::Template;
use askama::filters::HtmlSafe;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _};

use crate::app::App;
use crate::auth::Permission;
use crate::auth::sessions::SignedInPerson;
use crate::error::AppError;
use crate::jobs::notifications::UnreadCount;
use crate::web::HandlerResult;
use crate::web::http::extractors::RequestContext;
use crate::web::http::flash::PendingFlash;
use crate::web::pages::account::theme::Theme;

/// What `base.html` shows around every page.
pub struct PageFrame {
    /// The title in the browser's tab.
    pub title: String,
    /// light, dark or auto.
    pub theme: &'static str,
    /// Who is signed in.
    pub me: Option<Arc<SignedInPerson>>,
    /// Their unread notifications.
    pub bell: NotificationBadge,
    pub nav: Vec<NavigationItem>,
    /// Whether the portal offers terminals.
    pub has_terminals: bool,
    /// A message left by the previous page.
    pub flash: Option<PendingFlash>,
}

/// Declares the parts of the frame that no page changes. Each is a template of its own: what stands in `base.html` itself
/// is compiled once for every page that extends it.
macro_rules! frame_parts {
    ($($part:ident $method:ident $path:literal)*) => {
        $(
            #[derive(Template)]
            #[template(path = $path)]
            struct $part<'a> {
                page: &'a PageFrame,
            }

            // A template has escaped its values already.
            impl HtmlSafe for $part<'_> {}
        )*

        impl PageFrame {
            $(
                pub(in crate::web) fn $method(&self) -> impl Template + HtmlSafe {
                    $part { page: self }
                }
            )*
        }
    };
}

frame_parts! {
    FrameHead head "frame/head.html"
    FrameTop top "frame/top.html"
    FrameFlash flash_alert "frame/flash.html"
    FrameEnd end "frame/end.html"
}

/// The notification button in the frame.
#[derive(Default)]
pub struct NotificationBadge {
    /// The unread count as text: `3`, `99+`; empty if there are none.
    pub count: String,
    /// The last notification that this page knows of.
    pub last: i64,
}

impl NotificationBadge {
    /// Larger counts are shown as `99+`.
    const MOST: u64 = 99;

    pub fn from_unread(unread: UnreadCount) -> Self {
        let count = match unread.count {
            0 => String::new(),
            count @ 1..=Self::MOST => count.to_string(),
            _ => format!("{}+", Self::MOST),
        };
        Self { count, last: unread.last.0 }
    }
}

pub struct NavigationItem {
    pub label: &'static str,
    pub href: &'static str,
    pub icon: &'static str,
    /// Whether the current page belongs to it.
    pub current: bool,
    /// How many things of it are under way, as text; empty for none.
    pub count: String,
    /// Where an open page renews it; empty for what is always there.
    pub refresh: &'static str,
}

impl NavigationItem {
    /// Background work on files: there while there is some, and on its own page.
    pub fn transfers(open: u64, current: bool) -> Self {
        Self {
            label: "Transfers",
            href: "/transfers",
            icon: "refresh",
            current,
            count: if open > 0 { open.to_string() } else { String::new() },
            refresh: if current { "/transfers/nav?current=true" } else { "/transfers/nav" },
        }
    }

    /// Whether only its place is kept.
    pub const fn is_absent(&self) -> bool {
        !self.refresh.is_empty() && self.count.is_empty() && !self.current
    }
}

/// The navigation section that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NavSection {
    Home,
    Jobs,
    Files,
    Dashboards,
    /// Background work on files; in the navigation while there is some.
    Transfers,
    /// Clusters and your connections to them.
    Clusters,
    Groups,
    People,
    Activity,
    /// Your own account, reached from the user menu.
    Account,
    NoSection,
}

impl PageFrame {
    /// The frame of a page for a signed-in person.
    pub fn for_person(context: &RequestContext, me: &Arc<SignedInPerson>, title: &str, section: NavSection) -> Self {
        Self::for_visitor(context, title).with_person(&context.app, me, section)
    }

    /// Adds the signed-in person, their notifications and the navigation to a frame.
    #[must_use]
    pub fn with_person(self, app: &App, me: &Arc<SignedInPerson>, section: NavSection) -> Self {
        Self {
            me: Some(me.clone()),
            bell: NotificationBadge::from_unread(app.notifications.cached_unread(me.person.id)),
            has_terminals: app.terminals.is_enabled(),
            nav: build_navigation(me, section, app.transfers.open_count(me.person.id)),
            ..self
        }
    }

    /// The frame of a page for someone who isn't signed in.
    pub fn for_visitor(context: &RequestContext, title: &str) -> Self {
        Self::for_anyone(context.theme, context.flash.clone(), title)
    }

    /// Like `for_visitor`, where only the theme is known.
    pub fn for_anyone(theme: Theme, flash: Option<PendingFlash>, title: &str) -> Self {
        Self {
            title: title.to_owned(),
            theme: theme.as_str(),
            me: None,
            bell: NotificationBadge::default(),
            nav: Vec::new(),
            has_terminals: false,
            flash,
        }
    }
}

fn build_navigation(me: &SignedInPerson, section: NavSection, transfers: u64) -> Vec<NavigationItem> {
    let item = |label, href, icon, of| NavigationItem {
        label,
        href,
        icon,
        current: section == of,
        count: String::new(),
        refresh: "",
    };
    let mut items = vec![
        item("Home", "/", "home", NavSection::Home),
        item("Jobs", "/jobs", "jobs", NavSection::Jobs),
        item("Files", "/files", "folder", NavSection::Files),
        item("Dashboards", "/dashboards", "chart", NavSection::Dashboards),
        item("Clusters", "/clusters", "cluster", NavSection::Clusters),
    ];
    items.push(NavigationItem::transfers(transfers, section == NavSection::Transfers));
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
pub fn initials(name: &str) -> String {
    let mut words = name.split_whitespace();
    let first = words.next().and_then(|word| word.chars().next());
    let last = words.next_back().and_then(|word| word.chars().next());
    first.into_iter().chain(last).flat_map(char::to_uppercase).collect()
}

/// Renders a page as a response.
pub fn respond(template: &impl Template) -> HandlerResult {
    respond_with(StatusCode::OK, template)
}

/// Renders a page with another status (a form with errors: 422).
pub fn respond_with(status: StatusCode, template: &impl Template) -> HandlerResult {
    Ok((status, Html(render(template)?)).into_response())
}

pub fn render(template: &impl Template) -> Result<String, AppError> {
    // Larger than most pages, so that the buffer rarely grows.
    let mut text = String::with_capacity(INITIAL_PAGE_CAPACITY);
    template.render_into(&mut text).map_err(|error| AppError::Internal(format!("template: {error}")))?;
    Ok(text)
}

const INITIAL_PAGE_CAPACITY: usize = 24 * 1024;

/// A form with errors is shown again with this status.
pub const FORM_ERROR_STATUS: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;

#[cfg(test)]
mod tests {
    use crate::web::http::page_frame::{NavigationItem, initials};

    #[test]
    fn transfers_are_in_the_navigation_while_there_are_some() {
        assert!(NavigationItem::transfers(0, false).is_absent());
        assert!(!NavigationItem::transfers(2, false).is_absent() && !NavigationItem::transfers(0, true).is_absent());
        assert_eq!(NavigationItem::transfers(2, false).count, "2");
    }

    #[test]
    fn initials_of_many_names() {
        for (name, expected) in
            [("Ada Smith", "AS"), ("ada maria smith", "AS"), ("Ada", "A"), ("ßx", "SS"), ("名前", "名"), ("", "")]
        {
            assert_eq!(initials(name), expected, "{name}");
        }
    }
}
