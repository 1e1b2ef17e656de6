//! All interface components on one page. Development builds only.

use askama::Template;

use crate::web::HandlerResult;
use crate::web::http::extractors::{MaybeCurrentPerson, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};

#[derive(Template)]
#[template(path = "styleguide.html")]
struct StyleguidePage {
    page: PageFrame,
}

/// The page shows no personal data, so it needs no sign-in.
pub async fn get(context: RequestContext, MaybeCurrentPerson(me): MaybeCurrentPerson) -> HandlerResult {
    let page = match me {
        Some(me) => PageFrame::for_person(&context, &me, "Style guide", NavSection::Account),
        None => PageFrame::for_visitor(&context, "Style guide"),
    };
    respond(&StyleguidePage { page })
}
