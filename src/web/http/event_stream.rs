//! One stream of server-sent events per open page. It tells the page at once when the session has ended, when one of
//! the person's connections, jobs or submissions or a dashboard they can see has changed, when usage of their groups
//! was read, when a transfer of theirs moved on, and when there is a notification.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::app::AppState;
use crate::auth::sessions::SignedInPerson;
use crate::auth::{Permission, SessionsEndedSignal};
use crate::cluster::ClusterAccountId;
use crate::dashboards::owner_of;
use crate::domain::{DashboardId, PersonId};
use crate::jobs::submissions::SubmissionChangedEvent;
use crate::store;
use crate::store::connections::ConnectionKey;
use crate::store::usage::UsageSourceOwner;
use crate::web::HandlerResult;
use crate::web::http::cookies::CookieKind;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::stream_limits::OpenResponsePermit;

/// How often a stream checks that its session is still valid: time limits and the command line end sessions
/// without sending an event.
const RECHECK_INTERVAL: Duration = Duration::from_secs(20);

/// The stream of a signed-in page. It ends with the session or the portal, and keeps neither alive.
pub async fn get(context: RequestContext) -> HandlerResult {
    let app = &context.app;
    let cookie = context.cookie(CookieKind::Session).unwrap_or_default().to_owned();
    let Some(me) = app.auth.peek_session(&cookie).await?.map(CurrentPerson) else {
        // A redirect would make the browser read a page as a stream.
        return Ok(StatusCode::UNAUTHORIZED.into_response());
    };
    me.may(Permission::UseOwnAccount)?;
    let Some(permit) = context.pages.event_streams.acquire(me.0.person.id) else {
        return Ok(StatusCode::TOO_MANY_REQUESTS.into_response());
    };
    let mut response = Sse::new(build_stream(app.clone(), me, cookie, permit))
        .keep_alive(KeepAlive::new().interval(RECHECK_INTERVAL))
        .into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    // Proxies in front must pass events on without buffering.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

struct EventStreamReceivers {
    sessions_ended: Receiver<SessionsEndedSignal>,
    connections: Receiver<ConnectionKey>,
    queues: Receiver<ClusterAccountId>,
    submissions: Receiver<SubmissionChangedEvent>,
    dashboards: Receiver<DashboardId>,
    usage: Receiver<UsageSourceOwner>,
    transfers: Receiver<PersonId>,
    notifications: Receiver<PersonId>,
}

enum EventStreamSignal {
    PageEvent(String),
    /// The session may have ended.
    RecheckSession,
    SessionEnded,
    /// Nothing that concerns this person.
    Ignored,
    ShuttingDown,
}

impl EventStreamReceivers {
    fn new(app: &AppState) -> Self {
        Self {
            sessions_ended: app.auth.subscribe_sessions_ended(),
            connections: app.connections.subscribe(),
            queues: app.queue_monitor.subscribe(),
            submissions: app.submissions.subscribe(),
            dashboards: app.dashboards.watch(),
            usage: app.usage.watch(),
            transfers: app.transfers.subscribe(),
            notifications: app.notifications.subscribe(),
        }
    }

    async fn next_signal(&mut self, app: &AppState, me: &SignedInPerson) -> EventStreamSignal {
        let person = me.person.id;
        let for_me = |owner: PersonId, event: &str| (owner == person).then(|| event.to_owned());
        tokio::select! {
            // One event for the page of that cluster; lists match the same event by its prefix.
            changed = self.connections.recv() => to_signal(changed, |connection| {
                for_me(connection.person, &format!("connection-{}", connection.cluster))
            }),
            changed = self.queues.recv() => to_signal(changed, |account| for_me(account.person, "jobs")),
            changed = self.submissions.recv() => to_signal(changed, |change| for_me(change.person, "submissions")),
            changed = self.dashboards.recv() => match changed {
                Ok(id) if can_see_dashboard(app, me, id).await => EventStreamSignal::PageEvent("dashboards".to_owned()),
                received => to_signal(received, |_| None),
            },
            changed = self.usage.recv() => to_signal(changed, |owner| match owner {
                UsageSourceOwner::Group(group) => {
                    me.viewer.may(Permission::SeeUsage(group)).is_ok().then(|| "usage".to_owned())
                }
                UsageSourceOwner::Person(reader) => for_me(reader, "usage"),
            }),
            changed = self.transfers.recv() => to_signal(changed, |owner| for_me(owner, "transfers")),
            changed = self.notifications.recv() => to_signal(changed, |recipient| for_me(recipient, "notifications")),
            () = app.stop.cancelled() => EventStreamSignal::ShuttingDown,
            received = self.sessions_ended.recv() => match received {
                Ok(ended) if ended.applies_to(person, me.session) => EventStreamSignal::SessionEnded,
                Ok(_) => EventStreamSignal::Ignored,
                // Too many events were missed to know what they said, so check.
                Err(RecvError::Lagged(_)) => EventStreamSignal::RecheckSession,
                Err(RecvError::Closed) => EventStreamSignal::ShuttingDown,
            },
            () = tokio::time::sleep(RECHECK_INTERVAL) => EventStreamSignal::RecheckSession,
        }
    }
}

/// Whether a dashboard is theirs or one of their groups', including one that was just deleted. If that can't be read
/// now, the page learns of it at the next change.
async fn can_see_dashboard(app: &AppState, me: &SignedInPerson, id: DashboardId) -> bool {
    let Ok(mut db) = app.store.read().await else { return false };
    let dashboard = store::dashboards::get(&mut db, id).await.ok().flatten();
    dashboard.is_some_and(|dashboard| me.viewer.may(Permission::SeeDashboard(owner_of(&dashboard))).is_ok())
}

/// Skips other people's events, and gaps where events were missed: pages also refresh on their own.
fn to_signal<T>(received: Result<T, RecvError>, event: impl FnOnce(T) -> Option<String>) -> EventStreamSignal {
    match received {
        Ok(change) => event(change).map_or(EventStreamSignal::Ignored, EventStreamSignal::PageEvent),
        Err(RecvError::Lagged(_)) => EventStreamSignal::Ignored,
        Err(RecvError::Closed) => EventStreamSignal::ShuttingDown,
    }
}

fn build_stream(
    app: AppState,
    CurrentPerson(me): CurrentPerson,
    cookie: String,
    permit: OpenResponsePermit,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let subscriptions = EventStreamReceivers::new(&app);
    stream::unfold(Some((app, me, cookie, subscriptions, permit)), |state| async move {
        let (app, me, cookie, mut subscriptions, permit) = state?;
        loop {
            let is_over = match subscriptions.next_signal(&app, &me).await {
                EventStreamSignal::PageEvent(name) => {
                    let event = Event::default().event(name).data("changed");
                    return Some((Ok(event), Some((app, me, cookie, subscriptions, permit))));
                }
                EventStreamSignal::RecheckSession => !is_session_valid(&app, &cookie).await,
                EventStreamSignal::SessionEnded => true,
                EventStreamSignal::Ignored => false,
                EventStreamSignal::ShuttingDown => return None,
            };
            if is_over {
                // Browsers drop events without data.
                return Some((Ok(Event::default().event("signed-out").data("now")), None));
            }
        }
    })
}

/// If the database doesn't answer, nobody is signed out.
async fn is_session_valid(app: &AppState, cookie: &str) -> bool {
    !matches!(app.auth.peek_session(cookie).await, Ok(None))
}
