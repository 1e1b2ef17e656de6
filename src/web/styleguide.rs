//! Every building block of the pages in one place. Development builds only.

use askama::Template;

use super::extract::{Context, MaybeMe};
use super::page::{Page, Section, show};
use super::{Answer, assets};

#[derive(Template)]
#[template(path = "styleguide.html")]
struct StyleguidePage {
    page: Page,
    picker_js: &'static str,
}

/// The page; it shows nothing of anyone, so it needs no sign-in.
pub async fn get(context: Context, MaybeMe(me): MaybeMe) -> Answer {
    let page = match me {
        Some(me) => Page::for_person(&context, &me, "Style guide", Section::Account),
        None => Page::for_visitor(&context, "Style guide"),
    };
    show(&StyleguidePage { page, picker_js: assets::address("picker.js") })
}
