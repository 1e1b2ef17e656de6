//! A long download ends with the link that it came by.

use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::Method;
use axum::response::Response;
use futures_util::{StreamExt as _, stream};

use crate::app::AppState;
use crate::domain::GuestLinkId;

/// How often a running download looks whether its link still works.
const LINK_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Cuts a download off when its link is revoked or expires.
pub fn end_with_link(app: &AppState, link: GuestLinkId, method: &Method, response: Response) -> Response {
    if *method == Method::HEAD {
        return response;
    }
    let ended: LinkEnd = Box::pin(wait_until_ended(app.clone(), link));
    response.map(|body| Body::from_stream(stream::try_unfold((body.into_data_stream(), ended), next_piece)))
}

type LinkEnd = Pin<Box<dyn Future<Output = ()> + Send>>;

async fn next_piece(
    (mut body, mut ended): (BodyDataStream, LinkEnd),
) -> Result<Option<(bytes::Bytes, (BodyDataStream, LinkEnd))>, axum::Error> {
    let piece = tokio::select! {
        biased;
        () = &mut ended => return Err(axum::Error::new("the guest link has ended")),
        piece = body.next() => piece,
    };
    Ok(piece.transpose()?.map(|piece| (piece, (body, ended))))
}

async fn wait_until_ended(app: AppState, link: GuestLinkId) {
    loop {
        tokio::time::sleep(LINK_CHECK_INTERVAL).await;
        if matches!(app.auth.is_link_usable(link).await, Ok(false)) {
            return;
        }
    }
}
