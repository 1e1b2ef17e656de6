//! A job's output to keep: the whole file, in pieces, so that little of it is in memory at a time.

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse as _;
use futures_util::stream;

use super::super::Answer;
use super::super::extract::{Context, Me, Path, Query};
use super::super::flash::see_other;
use super::found::find;
use super::output::{Wish, file};
use crate::auth::Permission;
use crate::error::AppError;
use crate::jobs::Outputs;
use crate::jobs::output::OutputKey;

/// So much is asked for at a time.
const PIECE: u32 = 8 * 1024 * 1024;
/// Longer files are not sent through the portal.
pub const LARGEST: u64 = 2 * 1024 * 1024 * 1024;

/// The whole file, piece by piece.
pub async fn get(
    context: Context,
    me: Me,
    Path((slug, id)): Path<(String, String)>,
    Query(wish): Query<Wish>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let found = find(&context, &me, &slug, &id).await?;
    let (file, _) = file(&context, &me, &found, &wish.stream).await?;
    let outputs = context.app.job_outputs.clone();
    let first = outputs.piece(&file, 0, 0, PIECE).await;
    let first = first.map_err(|error| {
        tracing::debug!(%error, "A download could not begin");
        AppError::Busy
    })?;
    let first = first.ok_or(AppError::NotFound)?;
    if first.size > LARGEST {
        // The viewer says what to do instead.
        return Ok(see_other(&format!("{}/output", found.href())).into_response());
    }
    let disposition = format!("attachment; filename=\"{}\"", safe_name(&file.path));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::try_from(disposition).unwrap_or(HeaderValue::from_static("attachment")),
        ),
    ];
    let state = Download {
        outputs,
        file,
        size: first.size,
        inode: first.inode,
        at: 0,
        ready: Some(first.bytes),
        stop: context.app.stop.clone(),
    };
    let body = Body::from_stream(stream::try_unfold(state, Download::next));
    Ok((headers, body).into_response())
}

/// A download under way. At most two pieces are in memory.
struct Download {
    outputs: Outputs,
    file: OutputKey,
    size: u64,
    inode: u64,
    at: u64,
    ready: Option<Vec<u8>>,
    stop: tokio_util::sync::CancellationToken,
}

impl Download {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, std::io::Error> {
        let broken = |words: String| std::io::Error::other(words);
        let mut bytes = match self.ready.take() {
            Some(bytes) => bytes,
            None if self.at >= self.size => return Ok(None),
            None => {
                let asked = self.outputs.piece(&self.file, self.at, self.inode, PIECE);
                let piece = tokio::select! {
                    piece = asked => piece.map_err(|error| broken(error.to_string()))?,
                    () = self.stop.cancelled() => return Err(broken("the portal stops".to_owned())),
                };
                piece.ok_or_else(|| broken("the file was changed".to_owned()))?.bytes
            }
        };
        let left = usize::try_from(self.size - self.at).unwrap_or(usize::MAX);
        bytes.truncate(left);
        if bytes.is_empty() {
            return if left == 0 {
                Ok(None)
            } else {
                Err(broken("the file ended early".to_owned()))
            };
        }
        self.at += u64::try_from(bytes.len()).unwrap_or(0);
        Ok(Some((Bytes::from(bytes), self)))
    }
}

/// The file's own name, with plain letters only.
fn safe_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = name.chars().take(100).map(plain).collect();
    let name = name.trim_start_matches('.').to_owned();
    match name.is_empty() {
        true => "output.txt".to_owned(),
        // What ends like a program must not be taken for one.
        false
            if ["out", "err", "log", "txt"]
                .iter()
                .any(|end| name.ends_with(&format!(".{end}"))) =>
        {
            name
        }
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
            assert_eq!(safe_name(path), name, "{path}");
        }
    }
}
