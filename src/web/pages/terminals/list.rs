//! The page *Terminals*: someone's open terminals, and the clusters on which they can open one.

use askama::Template;

use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::cluster::ConnectionStatus;
use crate::terminals::TerminalSession;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::terminals::terminal_title;

#[derive(Template)]
#[template(path = "terminals/list.html")]
struct TerminalListPage {
    page: PageFrame,
    is_enabled: bool,
    idle_minutes: u32,
    rows: Vec<TerminalListRow>,
    /// Clusters on which a terminal can be opened now: short name and title.
    clusters: Vec<(String, String)>,
}

struct TerminalListRow {
    id: String,
    title: String,
    opened_at: UnixTime,
    /// Since when no window shows it.
    unseen_since: Option<UnixTime>,
}

impl TerminalListRow {
    fn new(session: &TerminalSession) -> Self {
        Self {
            id: session.id.to_string(),
            title: terminal_title(session),
            opened_at: session.opened_at,
            unseen_since: session.unseen_since(),
        }
    }
}

pub async fn get(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let app = &context.app;
    let accounts = app.cluster_accounts.list(me.0.person.id).await?;
    let is_ready = |status| matches!(status, ConnectionStatus::Up(_));
    let offered = accounts.iter().filter(|account| app.terminals.is_offered(account));
    let connected = offered.filter(|account| is_ready(account.status(&app.connections)));
    respond(&TerminalListPage {
        page: PageFrame::for_person(&context, &me.0, "Terminals", NavSection::Clusters),
        is_enabled: app.terminals.is_enabled(),
        idle_minutes: app.terminals.idle_minutes(),
        rows: app.terminals.list(me.0.person.id).iter().map(|session| TerminalListRow::new(session)).collect(),
        clusters: connected.map(|account| (account.cluster().slug.clone(), account.cluster().title.clone())).collect(),
    })
}
