//! Styles, scripts and images: embedded in the program, named by their content, cached by browsers for good.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse as _;
use rust_embed::{Embed, EmbeddedFile};
use sha2::{Digest as _, Sha256};

use crate::error::AppError;
use crate::web::HandlerResult;
use crate::web::http::extractors::PathParams;

#[derive(Embed)]
#[folder = "static/"]
#[exclude = "*.md"]
#[exclude = "*.txt"]
struct EmbeddedStaticFiles;

struct AssetIndex {
    /// From `app.css` to `/assets/app.1a2b3c4d.css`.
    addresses: HashMap<String, String>,
    /// From `app.1a2b3c4d.css` to the file.
    files: HashMap<String, (EmbeddedFile, &'static str)>,
}

static ASSETS: LazyLock<AssetIndex> = LazyLock::new(|| {
    let mut assets = AssetIndex { addresses: HashMap::new(), files: HashMap::new() };
    for path in EmbeddedStaticFiles::iter() {
        let Some(file) = EmbeddedStaticFiles::get(&path) else {
            continue;
        };
        let name = path.rsplit('/').next().unwrap_or(&path);
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
        let hash = Sha256::digest(&file.data);
        let hashed = format!("{stem}.{:02x}{:02x}{:02x}{:02x}.{extension}", hash[0], hash[1], hash[2], hash[3]);
        assets.addresses.insert(name.to_owned(), format!("/assets/{hashed}"));
        assets.files.insert(hashed, (file, content_type(extension)));
    }
    assets
});

fn content_type(extension: &str) -> &'static str {
    match extension {
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// The URL of an asset, for templates.
pub fn asset_url(name: &str) -> &'static str {
    ASSETS.addresses.get(name).map_or("/assets/missing", String::as_str)
}

/// Serves an asset. Its name changes with its content, so browsers may cache it for good.
pub async fn get(PathParams(name): PathParams<String>) -> HandlerResult {
    let (file, content_type) = ASSETS.files.get(&name).ok_or(AppError::NotFound)?;
    let headers =
        [(header::CONTENT_TYPE, *content_type), (header::CACHE_CONTROL, "public, max-age=31536000, immutable")];
    let body = match &file.data {
        std::borrow::Cow::Borrowed(bytes) => axum::body::Bytes::from_static(bytes),
        std::borrow::Cow::Owned(bytes) => bytes.clone().into(),
    };
    Ok((headers, body).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_a_page_names_is_there() {
        for name in [
            "app.css",
            "app.js",
            "editor.js",
            "jobs.js",
            "log.js",
            "picker.js",
            "preview.js",
            "uploads.js",
            "upload_tasks.js",
            "tus.min.js",
            "terminal.css",
            "terminal.js",
            "xterm.css",
            "xterm.js",
            "addon-fit.js",
            "htmx.min.js",
            "htmx-ext-sse.min.js",
            "favicon.svg",
        ] {
            assert_ne!(asset_url(name), "/assets/missing", "{name}");
        }
    }

    #[test]
    fn vendored_files_are_those_recorded() {
        let record = include_str!("../../../static/VENDORED.md");
        for path in EmbeddedStaticFiles::iter().filter(|path| path.starts_with("vendor/")) {
            let file = EmbeddedStaticFiles::get(&path).unwrap();
            let bytes = file.metadata.sha256_hash();
            let hash = bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
            assert!(record.contains(&hash), "{path} is not the file recorded in VENDORED.md");
        }
    }
}
