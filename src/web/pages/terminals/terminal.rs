//! A terminal's page.

use askama::Template;
use axum::extract::FromRequestParts;
use axum::http::{HeaderValue, StatusCode, header};

use crate::auth::Permission;
use crate::error::AppError;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, PathParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::middleware::INLINE_STYLE_POLICY;
use crate::web::http::page_frame::{NavSection, PageFrame, respond, respond_with};
use crate::web::pages::terminals::terminal_title;
use crate::web::portal_state::PortalState;

/// A request about one terminal.
#[derive(FromRequestParts)]
#[from_request(state(PortalState), rejection(AppError))]
pub struct TerminalRequest {
    context: RequestContext,
    me: CurrentPerson,
    #[from_request(via(PathParams))]
    id: String,
}

#[derive(Template)]
#[template(path = "terminals/terminal.html")]
struct TerminalPage {
    page: PageFrame,
    title: String,
    id: String,
    idle_minutes: u32,
    /// Where another one like it is opened.
    open_path: String,
}

#[derive(Template)]
#[template(path = "terminals/gone.html")]
struct TerminalGonePage {
    page: PageFrame,
}

pub async fn get(request: TerminalRequest) -> HandlerResult {
    request.me.may(Permission::UseClusters)?;
    let TerminalRequest { context, me, id } = request;
    let app = &context.app;
    let Some(session) = app.terminals.find(me.0.person.id, &id) else {
        let page = PageFrame::for_person(&context, &me.0, "Terminal ended", NavSection::Clusters);
        return respond_with(StatusCode::NOT_FOUND, &TerminalGonePage { page });
    };
    let account = app.cluster_accounts.get(session.account).await?.ok_or(AppError::NotFound)?;
    let slug = &account.cluster().slug;
    let title = terminal_title(&session);
    let mut response = respond(&TerminalPage {
        page: PageFrame::for_person(&context, &me.0, &format!("Terminal: {title}"), NavSection::Clusters),
        open_path: match session.job {
            Some(job) => format!("/jobs/{slug}/{job}/terminal"),
            None => format!("/clusters/{slug}/terminal"),
        },
        title,
        id,
        idle_minutes: app.terminals.idle_minutes(),
    })?;
    let policy = HeaderValue::from_static(INLINE_STYLE_POLICY);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// Ends the terminal and what runs in it.
pub async fn close(request: TerminalRequest) -> HandlerResult {
    request.me.may(Permission::UseClusters)?;
    let TerminalRequest { context, me, id } = request;
    if context.app.terminals.find(me.0.person.id, &id).is_none() {
        return Err(AppError::NotFound);
    }
    context.app.terminals.close(me.0.person.id, &id);
    Ok(flash::redirect(context, "/terminals", FlashMessage::TerminalClosed))
}
