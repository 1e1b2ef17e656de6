//! Downloads a web address into a folder. The bytes pass through the portal, which keeps none; where the server allows
//! it, an interrupted download goes on from where it was.

mod address;
mod file_name;

use std::time::Duration;

use reqwest::header::{CONTENT_DISPOSITION, CONTENT_RANGE, ETAG, HeaderMap, LAST_MODIFIED, LOCATION};
use reqwest::{Response, StatusCode};
use serde::{Deserialize, Serialize};

pub use self::address::{FetchAddress, FetchAddressError};
use self::file_name::choose_file_name;
use super::free_name::find_free_path;
use super::partial_file::{PartialFile, PartialFileWriter, temporary_name};
use super::worker::TransferRun;
use super::{TransferError, check_space};
use crate::http_client;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{RemoteFileKind, SetAttrs};

const MAX_REDIRECTS: usize = 5;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a server may send nothing.
const READ_TIMEOUT: Duration = Duration::from_mins(1);
/// How long one request may take; what remains comes with the next.
const REQUEST_TIMEOUT: Duration = Duration::from_hours(12);

/// Where a download goes on from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct FetchCheckpoint {
    /// What tells one version of the file from another: an `ETag` or a date. Empty if the server gives neither.
    validator: String,
    partial: Option<PartialFile>,
}

/// Downloads the transfer's address. Returns what to know about the result.
pub(super) async fn run(run: &TransferRun) -> Result<String, TransferError> {
    let folder = run.transfer.folder();
    let session = TransferSession::open(&run.connection).await?;
    if session.stat(&folder).await?.kind != RemoteFileKind::Folder {
        return Err(TransferError::Failed("The target isn't a folder.".to_owned()));
    }
    let temporary = folder.join(&temporary_name(&run.transfer, "download")?);
    let mut checkpoint: FetchCheckpoint = serde_json::from_str(&run.transfer.checkpoint).unwrap_or_default();
    let left = checkpoint.partial.take().filter(|_| !checkpoint.validator.is_empty());
    let source = format!("{} {}", run.transfer.url, checkpoint.validator);
    let open = |source, left: Option<PartialFile>| {
        let temporary = temporary.clone();
        async move { PartialFileWriter::open(&run.connection, temporary, source, u64::MAX, left.as_ref()).await }
    };
    if left.is_none() {
        // Until the checkpoint names it.
        run.progress.begin_temporary(&temporary);
    }
    let mut writer = open(source, left).await?;
    let (mut response, address) = request(run, writer.confirmed(), &checkpoint.validator).await?;
    let is_rest = response.status() == StatusCode::PARTIAL_CONTENT
        && content_range_start(response.headers()) == Some(writer.confirmed());
    if !is_rest {
        checkpoint.validator = validator(response.headers());
        writer = open(format!("{} {}", run.transfer.url, checkpoint.validator), None).await?;
    }
    let length = response.content_length().unwrap_or(0);
    check_space(run, &folder, length).await?;
    let begun = writer.confirmed();
    run.progress.set_totals(1, if length > 0 { begun.saturating_add(length) } else { 0 });
    run.progress.set_done(0, begun);
    run.progress.set_current(address.host().to_owned());
    let mut counted = begun;
    loop {
        let data = match response.chunk().await {
            Ok(Some(data)) => data,
            Ok(None) => break,
            Err(_) => {
                writer.flush().await?;
                checkpoint.partial = Some(writer.to_partial());
                run.progress.set_checkpoint(&checkpoint);
                return Err(TransferError::Interrupted(format!(
                    "{} stopped sending the file. Try again later.",
                    address.host()
                )));
            }
        };
        writer.write(data).await?;
        let confirmed = writer.confirmed();
        if confirmed > counted {
            run.progress.add_bytes(confirmed - counted);
            counted = confirmed;
            checkpoint.partial = Some(writer.to_partial());
            run.progress.set_checkpoint(&checkpoint);
            run.progress.end_temporary(&temporary);
        }
    }
    let name = choose_file_name(header(response.headers(), &CONTENT_DISPOSITION), address.path());
    let name = name.map_err(|error| TransferError::Failed(error.to_string()))?;
    let path = find_free_path(&session, &folder, &name).await?;
    let size = writer.finish(&path, SetAttrs { mode: Some(0o644), ..SetAttrs::default() }).await?;
    run.progress.add_bytes(size.saturating_sub(counted));
    run.progress.add_file();
    run.progress.set_checkpoint(&FetchCheckpoint::default());
    run.progress.end_temporary(&temporary);
    let saved_name = path.name().unwrap_or(name);
    Ok(format!("Saved as {saved_name}."))
}

/// Asks for the file, from an offset on if a version of it is known. Each redirect leads to an address that is checked
/// like the first.
async fn request(
    run: &TransferRun,
    mut offset: u64,
    validator: &str,
) -> Result<(Response, FetchAddress), TransferError> {
    let allow_private = run.core.config.transfers.allow_private;
    let refused = |error: FetchAddressError| TransferError::Failed(error.to_string());
    // What answered before will answer again.
    let is_known = offset > 0;
    let unreachable = |sentence: String| {
        if is_known { TransferError::Interrupted(sentence) } else { TransferError::Failed(sentence) }
    };
    let mut address = FetchAddress::parse(&run.transfer.url).map_err(refused)?;
    for _ in 0..=MAX_REDIRECTS {
        let found = address.resolve(allow_private).await.map_err(refused)?;
        // Connect to the checked addresses, so that a name that resolves differently a moment later changes nothing.
        let client = http_client::client_builder(REQUEST_TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .resolve_to_addrs(address.host(), &found)
            .build();
        let client = client.map_err(|error| TransferError::Failed(error.to_string()))?;
        let mut request = client
            .get(address.url())
            .header("user-agent", concat!("Portolan/", env!("CARGO_PKG_VERSION")))
            .header("accept-encoding", "identity");
        if offset > 0 {
            request = request.header("range", format!("bytes={offset}-")).header("if-range", validator);
        }
        let sent = request.send().await;
        let response = sent.map_err(|_| {
            unreachable(format!("Couldn't reach {}. Check the address, or try again later.", address.host()))
        })?;
        let status = response.status();
        let location = header(response.headers(), &LOCATION).to_owned();
        if status.is_redirection() && !location.is_empty() {
            address = address.follow(&location).map_err(refused)?;
        } else if status == StatusCode::RANGE_NOT_SATISFIABLE && offset > 0 {
            // It is shorter now: all of it again.
            offset = 0;
        } else if status.is_success() {
            return Ok((response, address));
        } else {
            let sentence = format!(
                "{} responded with status {}. Check the address, or try again later.",
                address.host(),
                status.as_u16()
            );
            return Err(if status.is_server_error() { unreachable(sentence) } else { TransferError::Failed(sentence) });
        }
    }
    Err(TransferError::Failed(format!("{} redirects too many times. Check the address.", address.host())))
}

fn header<'a>(headers: &'a HeaderMap, name: &reqwest::header::HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// What tells this version of a file from another. Weak tags don't tell bytes apart.
fn validator(headers: &HeaderMap) -> String {
    let tag = header(headers, &ETAG);
    if tag.starts_with('"') { tag.to_owned() } else { header(headers, &LAST_MODIFIED).to_owned() }
}

/// Where a partial answer begins: `bytes 100-199/200`.
fn content_range_start(headers: &HeaderMap) -> Option<u64> {
    let range = header(headers, &CONTENT_RANGE).strip_prefix("bytes ")?;
    range.split('-').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart_by_strong_tags_or_dates() {
        let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (reqwest::header::HeaderName::from_static(name), reqwest::header::HeaderValue::from_static(value))
            };
            pairs.iter().map(pair).collect()
        };
        assert_eq!(validator(&headers(&[("etag", "\"a\""), ("last-modified", "Tue")])), "\"a\"");
        assert_eq!(validator(&headers(&[("etag", "W/\"a\""), ("last-modified", "Tue")])), "Tue");
        assert_eq!(validator(&headers(&[])), "");
        assert_eq!(content_range_start(&headers(&[("content-range", "bytes 100-199/200")])), Some(100));
        assert_eq!(content_range_start(&headers(&[("content-range", "bytes */200")])), None);
        assert_eq!(content_range_start(&headers(&[])), None);
    }
}
