//! The frame of every page: title, navigation, person, message; and how templates become answers.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _};

use super::extract::Context;
use super::flash::Flash;
use super::theme::Theme;
use super::{Answer, assets};
use crate::auth::Permission;
use crate::auth::sessions::SignedInPerson;
use crate::error::AppError;
use crate::jobs::notices::Unread;

/// What `base.html` shows around every page.
pub struct Page {
    /// The page's name in the browser's tab.
    pub title: String,
    /// light, dark or auto.
    pub theme: &'static str,
    /// Address of the style sheet.
    pub css: &'static str,
    /// Address of our script.
    pub js: &'static str,
    /// Address of htmx.
    pub htmx: &'static str,
    /// Address of htmx's event-stream extension.
    pub sse: &'static str,
    /// Address of the icon.
    pub icon: &'static str,
    /// Who is signed in.
    pub person: Option<Person>,
    /// How much they have not seen.
    pub bell: Bell,
    /// Where one can go.
    pub nav: Vec<NavItem>,
    /// A message left by the page before.
    pub flash: Option<Message>,
    /// The program's version.
    pub version: &'static str,
}

/// Who is signed in, as the frame shows them.
pub struct Person {
    /// What others read.
    pub display_name: String,
    /// One or two letters.
    pub initials: String,
    /// Whether they administer the portal.
    pub is_admin: bool,
}

/// The bell in the frame.
#[derive(Default)]
pub struct Bell {
    /// Notices that were not seen, in words: `3`, `99+`; empty if there are none.
    pub count: String,
    /// The last notice that this page knows of.
    pub last: i64,
}

impl Bell {
    /// More are not counted out.
    const MOST: i64 = 99;

    /// The bell of someone.
    pub fn of(unread: Unread) -> Self {
        let count = match unread.count {
            ..=0 => String::new(),
            count @ 1..=Self::MOST => count.to_string(),
            _ => format!("{}+", Self::MOST),
        };
        Self { count, last: unread.last.0 }
    }
}

/// One place to go.
pub struct NavItem {
    /// What it is called.
    pub label: &'static str,
    /// Its address.
    pub href: &'static str,
    /// Its picture.
    pub icon: &'static str,
    /// Whether this page belongs to it.
    pub current: bool,
}

/// A message at the top of a page.
pub struct Message {
    /// ok, info, warning or danger.
    pub kind: &'static str,
    /// What it says.
    pub text: &'static str,
}

/// The part of the portal a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// The home page.
    Home,
    /// Jobs.
    Jobs,
    /// Dashboards.
    Boards,
    /// Clusters and one's connections to them.
    Clusters,
    /// Groups.
    Groups,
    /// People (administrators).
    People,
    /// Everybody's activity (administrators).
    Activity,
    /// One's own account: reached by the person's menu.
    Account,
    /// A page that belongs to none of them.
    Elsewhere,
}

impl Page {
    /// The frame of a page for someone who is signed in.
    pub fn for_person(
        context: &Context,
        me: &SignedInPerson,
        title: &str,
        section: Section,
    ) -> Self {
        let page = Self::for_anyone(context.theme, context.flash, title).with_person(me, section);
        Self { bell: Bell::of(context.app.notifications.known(me.person.id)), ..page }
    }

    /// The frame of someone who is signed in around a page.
    #[must_use]
    pub fn with_person(self, me: &SignedInPerson, section: Section) -> Self {
        Self {
            person: Some(Person {
                display_name: me.person.display_name.clone(),
                initials: initials(&me.person.display_name),
                is_admin: me.person.is_admin,
            }),
            nav: navigation(me, section),
            ..self
        }
    }

    /// The frame of a page for someone who is not signed in.
    pub fn for_visitor(context: &Context, title: &str) -> Self {
        Self::for_anyone(context.theme, context.flash, title)
    }

    /// The same where only the look is known.
    pub fn for_anyone(theme: Theme, flash: Option<Flash>, title: &str) -> Self {
        Self {
            title: title.to_owned(),
            theme: theme.as_str(),
            css: assets::address("app.css"),
            js: assets::address("app.js"),
            htmx: assets::address("htmx.min.js"),
            sse: assets::address("htmx-ext-sse.min.js"),
            icon: assets::address("favicon.svg"),
            person: None,
            bell: Bell::default(),
            nav: Vec::new(),
            flash: flash.map(|flash| Message { kind: flash.kind(), text: flash.text() }),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

fn navigation(me: &SignedInPerson, section: Section) -> Vec<NavItem> {
    let item =
        |label, href, icon, belongs| NavItem { label, href, icon, current: section == belongs };
    let mut items = vec![
        item("Home", "/", "home", Section::Home),
        item("Jobs", "/jobs", "jobs", Section::Jobs),
        item("Dashboards", "/boards", "chart", Section::Boards),
        item("Clusters", "/clusters", "cluster", Section::Clusters),
    ];
    if me.viewer.may(Permission::ManageGroups).is_ok() || !me.memberships.is_empty() {
        items.push(item("Groups", "/groups", "people", Section::Groups));
    }
    if me.viewer.may(Permission::ManagePeople).is_ok() {
        items.push(item("People", "/people", "person", Section::People));
    }
    if me.viewer.may(Permission::SeeAllActivity).is_ok() {
        items.push(item("Activity", "/activity", "activity", Section::Activity));
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
pub fn show(template: &impl Template) -> Answer {
    show_with(StatusCode::OK, template)
}

/// A page as an answer with another status (a form with problems: 422).
pub fn show_with(status: StatusCode, template: &impl Template) -> Answer {
    Ok((status, Html(render(template)?)).into_response())
}

/// What a template makes.
pub fn render(template: &impl Template) -> Result<String, AppError> {
    // Larger than most pages, so that none is copied while it grows.
    let mut text = String::with_capacity(PAGE_SIZE);
    template
        .render_into(&mut text)
        .map_err(|error| AppError::Internal(format!("template: {error}")))?;
    Ok(text)
}

/// Bytes set aside for a page.
const PAGE_SIZE: usize = 24 * 1024;

/// A form that was filled in wrongly is shown again with this status.
pub const PROBLEMS: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;

#[cfg(test)]
mod tests {
    use super::initials;

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
