//! Names to choose from while someone types a path.

use askama::Template;
use serde::Deserialize;

use super::UncheckedFilesRequest;
use crate::domain::RemotePath;
use crate::files::ListingFreshness;
use crate::ssh::sftp::RemoteFileKind;
use crate::web::HandlerResult;
use crate::web::http::extractors::QueryParams;
use crate::web::http::page_frame::respond;

/// More than anyone looks through.
const MAX_SUGGESTIONS: usize = 40;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct NameSuggestionQuery {
    /// What was typed so far.
    go: String,
    /// The folder that is shown, encoded.
    path: String,
}

#[derive(Template)]
#[template(path = "files/name_suggestions.html")]
struct NameSuggestionsFragment {
    /// Paths as they would be typed on.
    suggestions: Vec<String>,
}

/// The names in the folder that was typed so far. If it can't be read, there are none: the path can still be typed.
pub async fn get(
    unchecked: UncheckedFilesRequest,
    QueryParams(query): QueryParams<NameSuggestionQuery>,
) -> HandlerResult {
    let files = unchecked.authorize().await?;
    let app = &files.request.context.app;
    let typed = query.go.trim_start();
    let (before, name) = typed.rfind('/').map_or(("", typed), |at| typed.split_at(at + 1));
    let folder = match before {
        "" => RemotePath::from_encoded(&query.path),
        before if before.starts_with(['/', '~', '$']) => files.typed_path(before),
        before => RemotePath::from_encoded(&query.path)
            .and_then(|folder| RemotePath::parse(&[folder.as_bytes(), b"/", before.as_bytes()].concat())),
    };
    let mut suggestions = Vec::new();
    if let (Ok(folder), Ok(connection)) = (folder, &files.connection) {
        let (account, now) = (files.request.account_id(), app.clock.now());
        let loaded = app.folder_listings.load(connection, account, &folder, ListingFreshness::Kept, now).await;
        if let Ok(contents) = loaded {
            let found = contents.names_beginning(name, MAX_SUGGESTIONS);
            suggestions.extend(found.into_iter().map(|entry| {
                let end = if entry.attrs.kind == RemoteFileKind::Folder { "/" } else { "" };
                format!("{before}{}{end}", entry.name)
            }));
        }
    }
    respond(&NameSuggestionsFragment { suggestions })
}
