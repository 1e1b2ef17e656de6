//! Unfinished uploads: their list in the tools above a folder, and what to do with one whose name is taken.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;

use super::responses::TusError;
use crate::error::AppError;
use crate::files::uploads::{NameDecision, UploadError, stored_path};
use crate::format;
use crate::store::uploads::{StoredUpload, UploadState};
use crate::web::HandlerResult;
use crate::web::http::extractors::{FormBody, MaybeCurrentPerson, PathParams};
use crate::web::http::page_frame::respond;
use crate::web::pages::files::UncheckedFilesRequest;
use crate::web::portal_state::PortalState;

#[derive(Template)]
#[template(path = "files/unfinished_uploads.html")]
struct UnfinishedUploadsFragment {
    /// `2 unfinished uploads`.
    title: String,
    uploads: Vec<UnfinishedUpload>,
}

impl UnfinishedUploadsFragment {
    fn new(uploads: Vec<StoredUpload>) -> Result<Self, UploadError> {
        let uploads: Vec<UnfinishedUpload> =
            uploads.into_iter().map(UnfinishedUpload::new).collect::<Result<_, _>>()?;
        let count = u64::try_from(uploads.len()).unwrap_or(u64::MAX);
        Ok(Self { title: format::count(count, "unfinished upload"), uploads })
    }
}

/// One row of the list.
struct UnfinishedUpload {
    upload: StoredUpload,
    name: String,
    folder: String,
    /// `1.2 GB of 4.0 GB`.
    progress: String,
    is_name_taken: bool,
}

impl UnfinishedUpload {
    fn new(upload: StoredUpload) -> Result<Self, UploadError> {
        let target = stored_path(&upload.target)?;
        let bytes = |count: i64| format::bytes(u64::try_from(count).unwrap_or_default());
        Ok(Self {
            name: target.name().map(|name| name.to_string()).unwrap_or_default(),
            folder: target.parent().map(|folder| folder.to_string()).unwrap_or_default(),
            progress: format!("{} of {}", bytes(upload.confirmed), bytes(upload.size)),
            is_name_taken: upload.state == UploadState::NameTaken,
            upload,
        })
    }
}

/// The list, for the page's tools.
pub async fn list(unchecked: UncheckedFilesRequest) -> HandlerResult {
    let request = unchecked.authorize().await?;
    let id = request.request.account_id();
    let found = request.request.context.app.uploads.list_unfinished(id.person, id.cluster).await;
    let fragment = found.and_then(UnfinishedUploadsFragment::new);
    respond(&fragment.map_err(|error| AppError::Internal(error.to_string()))?)
}

#[derive(Deserialize)]
pub struct FinishUploadForm {
    /// `replace`, `keep-both`, or nothing.
    #[serde(default)]
    decision: String,
}

/// Finishes an upload that has arrived: again after an interruption, or as its owner decided about the name.
pub async fn finish(
    State(state): State<PortalState>,
    me: MaybeCurrentPerson,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
    FormBody(form): FormBody<FinishUploadForm>,
) -> Result<Response, TusError> {
    let request = super::authorize(state, me, headers)?;
    let decision = match form.decision.as_str() {
        "" => NameDecision::TryAgain,
        "replace" => NameDecision::Replace,
        "keep-both" => NameDecision::KeepBoth,
        _ => {
            return Err(TusError::new(StatusCode::BAD_REQUEST, "Choose whether to replace the file or keep both."));
        }
    };
    request.finish(&id, decision).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::UnixTime;
    use crate::domain::{ClusterId, PersonId};

    /// As much of a folder's page as the tools see.
    struct ShownFolder {
        slug: String,
        path: String,
        is_connected: bool,
    }

    impl ShownFolder {
        const fn is_connected(&self) -> bool {
            self.is_connected
        }
    }

    #[derive(Template)]
    #[template(source = r#"{% include "files/upload_tools.html" %}"#, ext = "html")]
    struct UploadToolsTestPage {
        view: ShownFolder,
    }

    #[test]
    fn tools_say_where_files_go_and_rest_without_a_connection() {
        for is_connected in [true, false] {
            let view = ShownFolder { slug: "key".into(), path: "/a \"b\"%FF".into(), is_connected };
            let html = UploadToolsTestPage { view }.render().unwrap();
            assert!(html.contains("data-cluster=\"key\" data-folder=\"/a &#34;b&#34;%FF\""), "{html}");
            assert_eq!(html.contains(" disabled"), !is_connected);
        }
    }

    #[test]
    fn rows_show_any_name_as_text() {
        let upload = StoredUpload {
            id: "0a".into(),
            person_id: PersonId(1),
            cluster_id: ClusterId(1),
            drop_box_id: None,
            target: "/home/<img src=x>%FF".into(),
            temporary: "/home/.portolan-upload-1".into(),
            metadata: "filename YQ==".into(),
            size: 4_000_000,
            confirmed: 1_000_000,
            checksum_state: 0,
            replaces: false,
            modified_at: None,
            state: UploadState::NameTaken,
            problem: UploadError::NameTaken.to_string(),
            address: String::new(),
            created_at: UnixTime(1),
            touched_at: UnixTime(1),
        };
        let html = UnfinishedUploadsFragment::new(vec![upload]).unwrap().render().unwrap();
        assert!(!html.contains("<img"), "{html}");
        for words in ["1 unfinished upload", "Replace", "Keep both", "already exists"] {
            assert!(html.contains(words), "{words}: {html}");
        }
    }
}
