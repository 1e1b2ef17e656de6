//! Downloading a job's output: the whole file, in chunks, so that little of it is in memory at a time.

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse as _;
use futures_util::stream;

use crate::error::AppError;
use crate::jobs::JobOutputCache;
use crate::jobs::output::OutputFileKey;
use crate::web::HandlerResult;
use crate::web::http::extractors::QueryParams;
use crate::web::http::flash::see_other;
use crate::web::pages::jobs::job_lookup::JobPageRequest;
use crate::web::pages::jobs::output::{OutputQuery, find_output_file};

/// How much is read at a time.
const CHUNK_BYTES: u32 = 8 * 1024 * 1024;
/// Larger files aren't sent through the portal.
pub const MAX_DOWNLOAD_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// Streams the whole file, chunk by chunk.
pub async fn get(request: JobPageRequest, QueryParams(query): QueryParams<OutputQuery>) -> HandlerResult {
    let found = request.find_job().await?;
    let context = request.context;
    let (file, _) = find_output_file(&context, &found, &query.stream).await?;
    let outputs = context.app.job_outputs.clone();
    let first = outputs.read_piece(&file, 0, 0, CHUNK_BYTES).await;
    let first = first.map_err(|error| {
        tracing::debug!(%error, "Could not start a download");
        AppError::Busy
    })?;
    let first = first.ok_or(AppError::NotFound)?;
    if first.size > MAX_DOWNLOAD_BYTES {
        // The viewer says what to do instead.
        return Ok(see_other(&format!("{}/output", found.href())));
    }
    let disposition = format!("attachment; filename=\"{}\"", safe_file_name(&file.path));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::try_from(disposition).unwrap_or(HeaderValue::from_static("attachment")),
        ),
    ];
    let state = OutputDownload {
        outputs,
        file,
        size: first.size,
        inode: first.inode,
        offset: 0,
        first_chunk: Some(first.bytes),
        stop: context.app.stop.clone(),
    };
    let body = Body::from_stream(stream::try_unfold(state, OutputDownload::next_chunk));
    Ok((headers, body).into_response())
}

/// A download in progress. At most two chunks are in memory.
struct OutputDownload {
    outputs: JobOutputCache,
    file: OutputFileKey,
    size: u64,
    inode: u64,
    offset: u64,
    first_chunk: Option<Vec<u8>>,
    stop: tokio_util::sync::CancellationToken,
}

impl OutputDownload {
    async fn next_chunk(mut self) -> Result<Option<(Bytes, Self)>, std::io::Error> {
        let broken = |words: String| std::io::Error::other(words);
        let mut bytes = match self.first_chunk.take() {
            Some(bytes) => bytes,
            None if self.offset >= self.size => return Ok(None),
            None => {
                let asked = self.outputs.read_piece(&self.file, self.offset, self.inode, CHUNK_BYTES);
                let piece = tokio::select! {
                    piece = asked => piece.map_err(|error| broken(error.to_string()))?,
                    () = self.stop.cancelled() => return Err(broken("the portal is shutting down".to_owned())),
                };
                piece.ok_or_else(|| broken("the file has changed".to_owned()))?.bytes
            }
        };
        let left = usize::try_from(self.size - self.offset).unwrap_or(usize::MAX);
        bytes.truncate(left);
        if bytes.is_empty() {
            return if left == 0 { Ok(None) } else { Err(broken("the file ended early".to_owned())) };
        }
        self.offset += u64::try_from(bytes.len()).unwrap_or(0);
        Ok(Some((Bytes::from(bytes), self)))
    }
}

/// The file's own name, reduced to plain characters.
fn safe_file_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = name.chars().take(100).map(plain).collect();
    let name = name.trim_start_matches('.').to_owned();
    match name.is_empty() {
        true => "output.txt".to_owned(),
        // A name that ends like a program's must not be taken for one.
        false if ["out", "err", "log", "txt"].iter().any(|end| name.ends_with(&format!(".{end}"))) => name,
        false => format!("{name}.txt"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_downloads_are_plain() {
        for (path, name) in [
            ("/home/a/slurm-1.out", "slurm-1.out"),
            ("/home/a/ev\"il\r\n.html", "ev_il__.html.txt"),
            ("/home/a/..", "output.txt"),
            ("/home/a/名前.log", "__.log"),
            ("/home/a/run.exe", "run.exe.txt"),
        ] {
            assert_eq!(safe_file_name(path), name, "{path}");
        }
    }
}
