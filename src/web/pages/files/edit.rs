//! The editor for text files. The page is there at once; the file's text follows as a fragment. Saving replaces only the
//! part that says what came of it, so that nothing in the text moves.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::folder_crumbs::FolderCrumbs;
use super::{FilesRequest, UncheckedFilesRequest, files_url};
use crate::auth::ActivityEventKind;
use crate::clock::UnixTime;
use crate::domain::{RemoteName, RemotePath};
use crate::error::AppError;
use crate::files::changes;
use crate::files::text_file::{
    self, ChangedTextFile, LineEndings, OpenTextFileError, SaveTextFileError, TextFileSave, TextFileVersion,
};
use crate::ssh::RunCommandError;
use crate::ssh::sftp::{self, SftpError};
use crate::web::HandlerResult;
use crate::web::http::assets;
use crate::web::http::extractors::{FormBody, QueryParams};
use crate::web::http::flash::{self, FlashMessage, name_in_message};
use crate::web::http::form_errors::echo_input;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond, respond_with};

/// A longer name of a script isn't offered as the name of its job.
const MAX_JOB_NAME_LEN: usize = 40;
/// Without the special bits.
const PERMISSION_BITS: u32 = 0o777;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct EditorQuery {
    /// The file, encoded.
    path: String,
    /// Whether the page waits for the file: without script, there is no other way.
    wait: Option<String>,
}

#[derive(Deserialize)]
pub struct SaveTextForm {
    path: String,
    text: String,
    /// What was in the file when it was opened.
    version: String,
    #[serde(default)]
    endings: String,
    /// The version that may be overwritten: someone has seen it.
    #[serde(default)]
    overwrite: String,
    /// Another name or path to save to.
    #[serde(default)]
    save_as: String,
}

#[derive(Template)]
#[template(path = "files/edit.html")]
struct EditorPage<'a> {
    page: PageFrame,
    editor_js: &'static str,
    crumbs: FolderCrumbs,
    name: String,
    editor: EditorView<'a>,
}

#[derive(Template)]
#[template(path = "files/editor.html")]
struct EditorFragment<'a> {
    editor: EditorView<'a>,
}

#[derive(Template)]
#[template(path = "files/editor_status.html")]
struct EditorStatusFragment {
    status: EditorStatus,
}

struct EditorView<'a> {
    slug: &'a str,
    /// Encoded.
    path: String,
    shown: String,
    url: String,
    /// The way back to the folder.
    folder: String,
    state: EditorState,
}

enum EditorState {
    Loading,
    Disconnected,
    /// It can't be edited, for this reason.
    Failed(String),
    Open(Box<OpenEditor>),
}

struct OpenEditor {
    text: String,
    endings: LineEndings,
    is_writable: bool,
    /// What the highlighting goes by.
    language: &'static str,
    /// Where a job with this script is composed; empty if there is no such form.
    job_href: String,
    status: EditorStatus,
}

/// What the last attempt to save came to, and what the next one needs to know.
#[derive(Default)]
struct EditorStatus {
    version: String,
    saved_at: Option<UnixTime>,
    /// Why it wasn't saved; may be empty.
    problem: String,
    conflict: Option<ChangedTextFile>,
    save_as: String,
    save_as_error: String,
}

/// The URL of a file's editor.
pub fn editor_url(slug: &str, path: &RemotePath) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("path", &path.to_encoded()).finish();
    format!("/files/{slug}/edit?{query}")
}

pub async fn get(unchecked: UncheckedFilesRequest, QueryParams(query): QueryParams<EditorQuery>) -> HandlerResult {
    let files = unchecked.authorize().await?;
    let path = parse_path(&query.path)?;
    let is_fragment = files.request.context.is_fragment;
    let state = if is_fragment || query.wait.is_some() { load(&files, &path).await } else { EditorState::Loading };
    if is_fragment {
        return respond(&EditorFragment { editor: EditorView::new(&files, &path, state) });
    }
    respond_page(&files, StatusCode::OK, &path, state).await
}

/// Goes to a page that says what was saved.
fn redirect_saved(files: FilesRequest, url: &str, path: &RemotePath) -> Response {
    let name = path.name().map(name_in_message).unwrap_or_default();
    flash::redirect_with_text(files.request.context, url, FlashMessage::FileSaved, &format!("Saved {name}."))
}

/// Saves the text, under its own name or another one.
pub async fn save(unchecked: UncheckedFilesRequest, FormBody(form): FormBody<SaveTextForm>) -> HandlerResult {
    let files = unchecked.authorize().await?;
    let path = parse_path(&form.path)?;
    let endings = LineEndings::parse(&form.endings);
    let is_overwriting = !form.overwrite.is_empty();
    let mut status = EditorStatus { version: form.version.clone(), ..EditorStatus::default() };
    let mut code = FORM_ERROR_STATUS;
    if !form.save_as.trim().is_empty() && !is_overwriting {
        match save_as(&files, &path, &form, endings).await {
            Ok(saved) => {
                files.record(ActivityEventKind::FileCreated, &saved.to_string()).await?;
                let url = editor_url(files.slug(), &saved);
                return Ok(redirect_saved(files, &url, &saved));
            }
            Err(error) => (status.save_as, status.save_as_error) = (echo_input(&form.save_as), error),
        }
    } else {
        let seen = TextFileVersion::from_form(if is_overwriting { &form.overwrite } else { &form.version });
        let wanted = TextFileSave { path: path.clone(), text: form.text.clone(), endings, seen };
        let saved = save_text(&files, wanted).await;
        if saved.is_ok() {
            files.record(ActivityEventKind::FileEdited, &path.to_string()).await?;
        }
        match saved {
            Ok(version) if files.request.context.is_fragment => {
                code = StatusCode::OK;
                version.as_str().clone_into(&mut status.version);
                status.saved_at = Some(files.request.context.app.clock.now());
            }
            Ok(_) => {
                let url = format!("{}&wait=1", editor_url(files.slug(), &path));
                return Ok(redirect_saved(files, &url, &path));
            }
            Err(SaveTextFileError::Changed(changed)) => {
                code = StatusCode::CONFLICT;
                status.conflict = Some(changed);
            }
            Err(error) => {
                if error == SaveTextFileError::Gone {
                    status.save_as = path.name().and_then(|name| name.as_text().map(str::to_owned)).unwrap_or_default();
                }
                status.problem = explain_unsaved(&error);
            }
        }
    }
    if files.request.context.is_fragment {
        return respond_with(code, &EditorStatusFragment { status });
    }
    let text = form.text.replace("\r\n", "\n");
    let state = EditorState::Open(Box::new(OpenEditor::new(&files, &path, text, endings, status)));
    respond_page(&files, code, &path, state).await
}

fn parse_path(encoded: &str) -> Result<RemotePath, AppError> {
    let path = RemotePath::from_encoded(encoded).map_err(|error| AppError::BadRequest(error.to_string()))?;
    // The root is no file.
    if path.name().is_none() { Err(AppError::NotFound) } else { Ok(path) }
}

async fn load(files: &FilesRequest, path: &RemotePath) -> EditorState {
    let opened = match &files.connection {
        Ok(connection) => text_file::open(connection, path).await,
        Err(error) => Err(SftpError::from(error.clone()).into()),
    };
    match opened {
        Ok(file) => {
            let status = EditorStatus { version: file.version.as_str().to_owned(), ..EditorStatus::default() };
            let mut editor = OpenEditor::new(files, path, file.text, file.endings, status);
            editor.is_writable = file.is_writable;
            EditorState::Open(Box::new(editor))
        }
        Err(OpenTextFileError::Sftp(SftpError::Run(
            RunCommandError::NotConnected | RunCommandError::ConnectionLost,
        ))) => EditorState::Disconnected,
        Err(error) => EditorState::Failed(error.to_string()),
    }
}

async fn save_text(files: &FilesRequest, wanted: TextFileSave) -> Result<TextFileVersion, SaveTextFileError> {
    let connection = files.connection.as_ref().map_err(|error| SftpError::from(error.clone()))?;
    text_file::save(connection, wanted).await
}

fn explain_unsaved(error: &SaveTextFileError) -> String {
    match error {
        SaveTextFileError::Sftp(SftpError::Run(RunCommandError::NotConnected | RunCommandError::ConnectionLost)) => {
            "You're not connected to the cluster. Connect in another tab, then save again.".to_owned()
        }
        error => error.to_string(),
    }
}

/// Saves to a new file, with the permissions of the one that was opened.
async fn save_as(
    files: &FilesRequest,
    path: &RemotePath,
    form: &SaveTextForm,
    endings: LineEndings,
) -> Result<RemotePath, String> {
    let typed = form.save_as.trim();
    let target = if typed.starts_with(['/', '~', '$']) {
        files.typed_path(typed).map_err(|error| error.to_string())?
    } else {
        let name = RemoteName::from_typed(typed).map_err(|error| error.to_string())?;
        path.parent().unwrap_or_else(RemotePath::root).join(&name)
    };
    let (Some(folder), Some(name)) = (target.parent(), target.name()) else {
        return Err("Enter a name.".to_owned());
    };
    let bytes = endings.encode(&form.text);
    if bytes.len() > text_file::MAX_TEXT_BYTES {
        return Err(SaveTextFileError::TooLong.to_string());
    }
    let connection = files.connection.as_ref().map_err(ToString::to_string)?;
    let mode = sftp::stat(connection, path).await.ok().and_then(|attrs| attrs.mode).map(|mode| mode & PERMISSION_BITS);
    changes::create_file(connection, &folder, &name, bytes, mode).await.map_err(|error| error.to_string())
}

async fn respond_page(files: &FilesRequest, code: StatusCode, path: &RemotePath, state: EditorState) -> HandlerResult {
    let name = path.name().map(|name| name.to_string()).unwrap_or_default();
    let folder = path.parent().unwrap_or_else(RemotePath::root);
    let page = EditorPage {
        page: PageFrame::for_person(
            &files.request.context,
            &files.request.me.0,
            &format!("Edit {name}"),
            NavSection::Files,
        ),
        editor_js: assets::asset_url("editor.js"),
        crumbs: FolderCrumbs::load(files, &folder).await?,
        name,
        editor: EditorView::new(files, path, state),
    };
    respond_with(code, &page)
}

impl<'a> EditorView<'a> {
    fn new(files: &'a FilesRequest, path: &RemotePath, state: EditorState) -> Self {
        Self {
            slug: files.slug(),
            path: path.to_encoded(),
            shown: path.to_string(),
            url: editor_url(files.slug(), path),
            folder: files_url(files.slug(), &path.parent().unwrap_or_else(RemotePath::root)),
            state,
        }
    }
}

impl OpenEditor {
    fn new(files: &FilesRequest, path: &RemotePath, text: String, endings: LineEndings, status: EditorStatus) -> Self {
        let language = path.name().map(|name| language_of(&name, &text)).unwrap_or_default();
        Self { job_href: job_href(files, path, language), text, endings, is_writable: true, language, status }
    }
}

/// What the highlighting goes by: the name's ending, or the first line of a script.
fn language_of(name: &RemoteName, text: &str) -> &'static str {
    let first = text.lines().next().filter(|line| line.starts_with("#!")).unwrap_or_default();
    match name.extension().as_str() {
        "py" | "pyi" => "python",
        "sh" | "bash" | "zsh" | "slurm" | "sbatch" | "job" => "shell",
        "r" => "r",
        "json" | "jsonl" | "ipynb" => "json",
        "yaml" | "yml" => "yaml",
        "toml" | "ini" | "cfg" | "conf" => "toml",
        _ if first.contains("python") => "python",
        _ if first.contains("Rscript") => "r",
        _ if first.contains("sh") => "shell",
        _ => "",
    }
}

/// Where a job that runs this script is composed: there are recipes for scripts of two languages.
pub(super) fn job_href(files: &FilesRequest, path: &RemotePath, language: &str) -> String {
    let recipe = match language {
        "python" => "python-script",
        "r" => "r-script",
        _ => return String::new(),
    };
    let is_known = files.request.context.app.recipe_files.catalog().find(recipe).is_some();
    let Some(path) = path.as_text().filter(|_| is_known) else { return String::new() };
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("a.script", &files.variables.abbreviate(path));
    if let Some(name) = job_name(path) {
        query.append_pair("a.job_name", name);
    }
    format!("/compose/{}/{recipe}?{}", files.slug(), query.finish())
}

/// The job is named after its script, if that is a name for a job.
fn job_name(path: &str) -> Option<&str> {
    let file = path.rsplit('/').next()?;
    let name = file.rsplit_once('.').map_or(file, |(name, _)| name);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    ((1..=MAX_JOB_NAME_LEN).contains(&name.len()) && name.chars().all(is_plain)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_known_by_ending_or_first_line() {
        for (name, text, language) in [
            ("train.py", "", "python"),
            ("model.R", "", "r"),
            ("run.sbatch", "", "shell"),
            ("run", "#!/usr/bin/env python3\nimport os", "python"),
            ("run", "#!/bin/bash -l\n", "shell"),
            ("config.yml", "", "yaml"),
            ("notes.txt", "a shell", ""),
        ] {
            let name = RemoteName::parse(name.as_bytes()).unwrap();
            assert_eq!(language_of(&name, text), language, "{name}");
        }
    }

    #[test]
    fn jobs_are_named_after_plain_scripts() {
        assert_eq!(job_name("/home/ada/train_v2.py"), Some("train_v2"));
        assert_eq!(job_name("/home/ada/run"), Some("run"));
        for path in ["/home/ada/.py", "/a/it's $(id).py", "/a/1.2.py", &format!("/a/{}.py", "x".repeat(41))] {
            assert_eq!(job_name(path), None, "{path}");
        }
    }

    #[test]
    fn editor_urls_carry_any_name() {
        let path = RemotePath::parse(b"/data/a&b\xff\n.sh").unwrap();
        let url = editor_url("key", &path);
        let (_, query) = url.split_once('?').unwrap();
        let (_, value) = form_urlencoded::parse(query.as_bytes()).next().unwrap();
        assert_eq!(RemotePath::from_encoded(&value), Ok(path));
        assert!(parse_path("/").is_err() && parse_path("data").is_err());
    }
}
