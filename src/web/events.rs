//! One stream of events per open page (server-sent events): tells it at once when its session has ended, and when
//! one of the person's connections, jobs or submissions has changed, a dashboard that they see, what was read for them
//! of their groups' use, or there is a notice.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::Answer;
use super::cookies::Kind;
use super::extract::{Context, Me};
use super::streams::OpenStream;
use crate::app::AppState;
use crate::auth::sessions::SignedInPerson;
use crate::auth::{Permission, SessionsEnded};
use crate::boards::whose;
use crate::domain::{DashboardId, PersonId};
use crate::jobs::QueueKey;
use crate::jobs::submissions::Change;
use crate::store;
use crate::store::connections::ConnectionKey;
use crate::usage::Reader;

/// How often a stream asks whether its session still holds: time limits and the command line end sessions
/// without anyone telling.
const ASK_EVERY: Duration = Duration::from_secs(20);

/// The stream of a signed-in page. It ends with the session and with the portal, and keeps neither alive.
pub async fn get(context: Context) -> Answer {
    let app = &context.app;
    let cookie = context.cookie(Kind::Session).unwrap_or_default().to_owned();
    let Some(me) = app.auth.peek_session(&cookie).await?.map(Me) else {
        // A redirect would lead the browser to read a page as a stream.
        return Ok(StatusCode::UNAUTHORIZED.into_response());
    };
    me.may(Permission::UseOwnAccount)?;
    let Some(place) = app.event_streams.open(me.0.person.id) else {
        return Ok(StatusCode::TOO_MANY_REQUESTS.into_response());
    };
    let mut response = Sse::new(until_signed_out(app.clone(), me, cookie, place))
        .keep_alive(KeepAlive::new().interval(ASK_EVERY))
        .into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    // Proxies in front must pass events on as they come.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// What a stream listens to.
struct Ears {
    ended: Receiver<SessionsEnded>,
    lines: Receiver<ConnectionKey>,
    queues: Receiver<QueueKey>,
    submissions: Receiver<Change>,
    boards: Receiver<DashboardId>,
    usage: Receiver<Reader>,
    bell: Receiver<PersonId>,
}

/// What a stream heard.
enum Heard {
    /// Something for the page.
    Event(String),
    /// The session may be over.
    Doubt,
    /// The session is over.
    Over,
    /// Nothing that concerns this person.
    Nothing,
    /// The portal stops.
    Stop,
}

impl Ears {
    fn new(app: &AppState) -> Self {
        Self {
            ended: app.auth.subscribe_sessions_ended(),
            lines: app.connections.subscribe(),
            queues: app.queue_monitor.watch(),
            submissions: app.submissions.watch(),
            boards: app.dashboards.watch(),
            usage: app.usage.watch(),
            bell: app.notifications.listen(),
        }
    }

    async fn listen(&mut self, app: &AppState, me: &SignedInPerson) -> Heard {
        let person = me.person.id;
        tokio::select! {
            changed = self.lines.recv() => about(changed, |key| {
                // One event for the page of that cluster; lists listen to the same stream by its prefix.
                (key.person == person).then(|| format!("line-{}", key.cluster))
            }),
            changed = self.queues.recv() => about(changed, |key| {
                (key.person == person).then(|| "jobs".to_owned())
            }),
            changed = self.submissions.recv() => about(changed, |change| {
                (change.person == person).then(|| "submissions".to_owned())
            }),
            changed = self.boards.recv() => match changed {
                Ok(board) if sees(app, me, board).await => Heard::Event("boards".to_owned()),
                told => about(told, |_| None),
            },
            read = self.usage.recv() => about(read, |reader| {
                (reader.person == person).then(|| "usage".to_owned())
            }),
            rung = self.bell.recv() => about(rung, |whom| (whom == person).then(|| "notices".to_owned())),
            () = app.stop.cancelled() => Heard::Stop,
            told = self.ended.recv() => match told {
                Ok(ended) if ended.applies_to(person, me.session) => Heard::Over,
                Ok(_) => Heard::Nothing,
                // Too many at once to remember each: ask.
                Err(RecvError::Lagged(_)) => Heard::Doubt,
                Err(RecvError::Closed) => Heard::Stop,
            },
            () = tokio::time::sleep(ASK_EVERY) => Heard::Doubt,
        }
    }
}

/// Whether a dashboard is theirs or one of their groups', also one that was just deleted. What cannot be read now is
/// told at the next change.
async fn sees(app: &AppState, me: &SignedInPerson, id: DashboardId) -> bool {
    let Ok(mut db) = app.store.read().await else { return false };
    let board = store::dashboards::get(&mut db, id).await.ok().flatten();
    board.is_some_and(|board| me.viewer.may(Permission::SeeDashboard(whose(&board))).is_ok())
}

/// Those of others, or too many to remember, are passed over: pages also look by themselves.
fn about<T>(told: Result<T, RecvError>, event: impl FnOnce(T) -> Option<String>) -> Heard {
    match told {
        Ok(told) => event(told).map_or(Heard::Nothing, Heard::Event),
        Err(RecvError::Lagged(_)) => Heard::Nothing,
        Err(RecvError::Closed) => Heard::Stop,
    }
}

fn until_signed_out(
    app: AppState,
    Me(me): Me,
    cookie: String,
    place: OpenStream,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let ears = Ears::new(&app);
    stream::unfold(Some((app, me, cookie, ears, place)), |state| async move {
        let (app, me, cookie, mut ears, place) = state?;
        loop {
            let is_over = match ears.listen(&app, &me).await {
                Heard::Event(name) => {
                    let event = Event::default().event(name).data("changed");
                    return Some((Ok(event), Some((app, me, cookie, ears, place))));
                }
                Heard::Doubt => !still_holds(&app, &cookie).await,
                Heard::Over => true,
                Heard::Nothing => false,
                Heard::Stop => return None,
            };
            if is_over {
                // Browsers drop events without data.
                return Some((Ok(Event::default().event("signed-out").data("now")), None));
            }
        }
    })
}

/// A database that does not answer is no reason to send people away.
async fn still_holds(app: &AppState, cookie: &str) -> bool {
    !matches!(app.auth.peek_session(cookie).await, Ok(None))
}
