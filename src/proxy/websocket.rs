//! WebSocket through the proxy: which requests ask for it, and joining the two connections once both sides have
//! agreed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{Method, Version, request};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

use super::ProxyError;
use super::framing::{DeclaredLength, has_token};
use super::request::ProxyRequestKind;

/// A key is 16 random bytes.
const KEY_BYTES: usize = 16;

/// Whether this request asks for a WebSocket. A malformed upgrade is refused; other upgrades are ignored, and their
/// headers are dropped with all other hop-by-hop headers.
pub(super) fn requested_kind(parts: &request::Parts, declared: DeclaredLength) -> Result<ProxyRequestKind, ProxyError> {
    let headers = &parts.headers;
    if !has_token(headers, UPGRADE, "websocket") {
        return Ok(ProxyRequestKind::Plain);
    }
    let only = |name| {
        let mut values = headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none())
    };
    let key = only(SEC_WEBSOCKET_KEY).and_then(|key| STANDARD.decode(key).ok());
    let fine = parts.method == Method::GET
        && parts.version == Version::HTTP_11
        && matches!(declared, DeclaredLength::Undeclared | DeclaredLength::Bytes(0))
        && has_token(headers, CONNECTION, "upgrade")
        && only(UPGRADE).is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"websocket"))
        && only(SEC_WEBSOCKET_VERSION).is_some_and(|it| it == "13")
        && key.is_some_and(|key| key.len() == KEY_BYTES)
        && parts.extensions.get::<OnUpgrade>().is_some();
    if fine { Ok(ProxyRequestKind::WebSocket) } else { Err(ProxyError::Refused("it is no proper WebSocket")) }
}

/// Relays bytes both ways until either side ends or `until` is cancelled; then closes both.
pub(super) async fn relay(client: OnUpgrade, upstream: OnUpgrade, until: CancellationToken) {
    let carried = async {
        let (client, upstream) = tokio::try_join!(client, upstream)?;
        let (from_client, to_client) = tokio::io::split(TokioIo::new(client));
        let (from_upstream, to_upstream) = tokio::io::split(TokioIo::new(upstream));
        tokio::select! {
            _ = copy_and_shutdown(from_client, to_upstream) => {}
            _ = copy_and_shutdown(from_upstream, to_client) => {}
        }
        Ok::<_, hyper::Error>(())
    };
    tokio::select! {
        () = until.cancelled() => {}
        done = carried => if let Err(error) = done {
            tracing::debug!(%error, "A WebSocket was agreed on but did not come about");
        },
    }
}

async fn copy_and_shutdown(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> std::io::Result<()> {
    tokio::io::copy(&mut from, &mut to).await?;
    to.shutdown().await
}
