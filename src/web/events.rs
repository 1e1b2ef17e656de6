//! One stream of events per open page (server-sent events): tells it at once when its session has ended, and when
//! one of the person's connections has changed.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use tokio::sync::broadcast::error::RecvError;

use super::Answer;
use super::cookies::Kind;
use super::extract::{Context, Me};
use super::streams::OpenStream;
use crate::app::AppState;
use crate::auth::Action;

/// How often a stream asks whether its session still holds: time limits and the command line end sessions
/// without anyone telling.
const ASK_EVERY: Duration = Duration::from_secs(20);

/// The stream of a signed-in page. It ends with the session and with the portal, and keeps neither alive.
pub async fn get(context: Context) -> Answer {
    let app = &context.app;
    let cookie = context.cookie(Kind::Session).unwrap_or_default().to_owned();
    let Some(me) = app.auth.peek(&cookie).await?.map(Me) else {
        // A redirect would lead the browser to read a page as a stream.
        return Ok(StatusCode::UNAUTHORIZED.into_response());
    };
    me.may(Action::UseOwnAccount)?;
    let Some(place) = app.streams.open(me.0.person.id) else {
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

fn until_signed_out(
    app: AppState,
    Me(me): Me,
    cookie: String,
    place: OpenStream,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let ended = app.auth.watch_ended();
    let lines = app.lines.watch();
    stream::unfold(Some((app, me, cookie, ended, lines, place)), |state| async move {
        let (app, me, cookie, mut ended, mut lines, place) = state?;
        loop {
            let over = tokio::select! {
                changed = lines.recv() => match changed {
                    Ok(key) if key.person == me.person.id => {
                        // One event for the page of that cluster; lists listen to the same stream by its prefix.
                        let event = Event::default().event(format!("line-{}", key.cluster)).data("changed");
                        return Some((Ok(event), Some((app, me, cookie, ended, lines, place))));
                    }
                    Err(RecvError::Closed) => return None,
                    // Those of others, or too many to remember: pages also look by themselves.
                    Ok(_) | Err(RecvError::Lagged(_)) => continue,
                },
                () = app.stop.cancelled() => return None,
                told = ended.recv() => match told {
                    Ok(ended) => ended.concerns(me.person.id, me.session),
                    // Too many at once to remember each: ask.
                    Err(RecvError::Lagged(_)) => !still_holds(&app, &cookie).await,
                    Err(RecvError::Closed) => return None,
                },
                () = tokio::time::sleep(ASK_EVERY) => !still_holds(&app, &cookie).await,
            };
            if over {
                // Browsers drop events without data.
                return Some((Ok(Event::default().event("signed-out").data("now")), None));
            }
        }
    })
}

/// A database that does not answer is no reason to send people away.
async fn still_holds(app: &AppState, cookie: &str) -> bool {
    !matches!(app.auth.peek(cookie).await, Ok(None))
}
