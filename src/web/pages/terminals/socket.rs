//! The WebSocket of a terminal's page. Binary frames are what is typed and printed; text frames are JSON: the window's
//! size and how much it has shown, how much of its input was taken, or how the terminal ended. It ends with the sign-in
//! session and keeps none alive.

use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use crate::app::AppState;
use crate::auth::Permission;
use crate::error::AppError;
use crate::ssh::terminal::TerminalSize;
use crate::terminals::{TerminalEvent, TerminalViewer, TerminalViewerEvents, ViewerDetached};
use crate::web::HandlerResult;
use crate::web::http::cookies::CookieKind;
use crate::web::http::extractors::{CurrentPerson, PathParams, QueryParams, RequestContext};

/// The longest frame from the page, which splits what is pasted.
const MAX_FRAME_BYTES: usize = 64 * 1024;
/// How far the page may be behind with showing what was sent. A browser would take any amount and run out of memory.
const MAX_UNSHOWN_BYTES: u64 = 512 * 1024;
/// How often a socket checks that its session is still valid: time limits and the command line end sessions without an
/// event.
const RECHECK_INTERVAL: Duration = Duration::from_secs(20);
/// How often a quiet socket shows that it is alive: proxies close those that say nothing for a minute.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// How long the last words may take.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

/// The window's size when it opens.
#[derive(Deserialize)]
#[serde(default)]
pub struct TerminalSocketQuery {
    cols: u16,
    rows: u16,
}

impl Default for TerminalSocketQuery {
    fn default() -> Self {
        Self { cols: 80, rows: 24 }
    }
}

/// What a page tells.
#[derive(Deserialize, Default)]
#[serde(default)]
struct TerminalPageMessage {
    cols: Option<u16>,
    rows: Option<u16>,
    /// Bytes shown since the socket opened.
    shown: Option<u64>,
}

/// Why a socket ends.
enum TerminalSocketEnd {
    /// The page is gone.
    Left,
    /// The terminal sends nothing more, without a word.
    Silent,
    Ended(&'static str),
    Detached(ViewerDetached),
    SignedOut,
}

pub async fn get(
    context: RequestContext,
    PathParams(id): PathParams<String>,
    QueryParams(size): QueryParams<TerminalSocketQuery>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> HandlerResult {
    let app = &context.app;
    let cookie = context.cookie(CookieKind::Session).unwrap_or_default().to_owned();
    let Some(me) = app.auth.peek_session(&cookie).await?.map(CurrentPerson) else {
        // A socket can't follow a redirect.
        return Ok(StatusCode::UNAUTHORIZED.into_response());
    };
    me.may(Permission::UseClusters)?;
    // Other sites may open sockets with the person's cookies; browsers say who asks.
    if !is_own_origin(app, &headers) {
        return Err(AppError::CrossOrigin);
    }
    let session = app.terminals.find(me.0.person.id, &id).ok_or(AppError::NotFound)?;
    let upgrade = upgrade.map_err(|rejection| AppError::BadRequest(rejection.body_text()))?;
    let size = TerminalSize::clamped(size.cols, size.rows);
    let app = app.clone();
    let upgrade = upgrade.max_frame_size(MAX_FRAME_BYTES).max_message_size(MAX_FRAME_BYTES);
    Ok(upgrade.on_upgrade(async move |socket| {
        // Subscribed before the terminal is shown: nothing that ends the session goes unnoticed.
        let guard = watch_session(app, me, cookie);
        let (viewer, events) = session.attach(size);
        serve(socket, viewer, events, guard).await;
    }))
}

fn is_own_origin(app: &AppState, headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = origins.next().and_then(|origin| origin.to_str().ok());
    origins.next().is_none() && origin.is_some_and(|origin| app.config.portal.public_url.is_origin(origin))
}

async fn serve(
    socket: WebSocket,
    viewer: TerminalViewer,
    TerminalViewerEvents { mut events, mut detached, taken }: TerminalViewerEvents,
    signed_out: impl Future<Output = ()>,
) {
    let (mut to_page, mut from_page) = socket.split();
    let (shown_sender, shown) = watch::channel(0);
    let end = tokio::select! {
        end = send_output(&mut to_page, &mut events, shown, taken) => end,
        () = take_input(&mut from_page, &viewer, &shown_sender) => TerminalSocketEnd::Left,
        Ok(why) = &mut detached => TerminalSocketEnd::Detached(why),
        () = signed_out => TerminalSocketEnd::SignedOut,
    };
    // First, so that nothing that is typed from now on arrives.
    drop(viewer);
    let end = match (end, detached.try_recv()) {
        (TerminalSocketEnd::Silent, Ok(why)) => TerminalSocketEnd::Detached(why),
        (end, _) => end,
    };
    let words = match end {
        // The page then asks what became of the terminal.
        TerminalSocketEnd::Left | TerminalSocketEnd::Silent => return,
        TerminalSocketEnd::Ended(why) => serde_json::json!({ "ended": why }),
        TerminalSocketEnd::Detached(ViewerDetached::Moved) => serde_json::json!({ "moved": true }),
        TerminalSocketEnd::Detached(ViewerDetached::Stuck) => serde_json::json!({ "stuck": true }),
        TerminalSocketEnd::SignedOut => serde_json::json!({ "signed_out": true }),
    };
    let farewell = async {
        to_page.send(Message::Text(words.to_string().into())).await?;
        to_page.send(Message::Close(None)).await
    };
    let _ = tokio::time::timeout(FAREWELL_TIMEOUT, farewell).await;
}

/// Sends what the terminal prints, as fast as the page shows it.
async fn send_output(
    page: &mut SplitSink<WebSocket, Message>,
    events: &mut tokio::sync::mpsc::Receiver<TerminalEvent>,
    mut shown: watch::Receiver<u64>,
    mut taken: watch::Receiver<u64>,
) -> TerminalSocketEnd {
    let mut sent = 0_u64;
    loop {
        let message = tokio::select! {
            event = events.recv() => match event {
                Some(TerminalEvent::Output(bytes)) => Message::Binary(bytes),
                Some(TerminalEvent::Ended(why)) => return TerminalSocketEnd::Ended(why),
                None => return TerminalSocketEnd::Silent,
            },
            Ok(()) = taken.changed() => {
                let count = *taken.borrow_and_update();
                Message::Text(serde_json::json!({ "taken": count }).to_string().into())
            }
            () = tokio::time::sleep(PING_INTERVAL) => Message::Ping(Bytes::new()),
        };
        if let Message::Binary(bytes) = &message {
            sent += bytes.len() as u64;
        }
        if page.send(message).await.is_err()
            || shown.wait_for(|shown| sent.saturating_sub(*shown) <= MAX_UNSHOWN_BYTES).await.is_err()
        {
            return TerminalSocketEnd::Left;
        }
    }
}

/// Takes what the page sends, until it is gone.
async fn take_input(page: &mut SplitStream<WebSocket>, viewer: &TerminalViewer, shown: &watch::Sender<u64>) {
    while let Some(Ok(message)) = page.next().await {
        match message {
            Message::Binary(bytes) => viewer.write(bytes).await,
            Message::Text(text) => {
                let message: TerminalPageMessage = serde_json::from_str(&text).unwrap_or_default();
                if let (Some(cols), Some(rows)) = (message.cols, message.rows) {
                    viewer.resize(TerminalSize::clamped(cols, rows));
                }
                if let Some(count) = message.shown {
                    shown.send_replace(count);
                }
            }
            Message::Close(_) => return,
            Message::Ping(_) | Message::Pong(_) => {}
        }
    }
}

/// Resolves when the session is no longer valid. If the database doesn't answer, nobody is signed out.
fn watch_session(app: AppState, CurrentPerson(me): CurrentPerson, cookie: String) -> impl Future<Output = ()> {
    let mut ended = app.auth.subscribe_sessions_ended();
    async move {
        loop {
            tokio::select! {
                event = ended.recv() => match event {
                    Ok(event) if event.applies_to(me.person.id, me.session) => return,
                    Ok(_) => continue,
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                },
                () = tokio::time::sleep(RECHECK_INTERVAL) => {}
            }
            if matches!(app.auth.peek_session(&cookie).await, Ok(None)) {
                return;
            }
        }
    }
}
