//! Sharing a file or folder with people who have no account, to read it or to upload into it: the form, and creating the
//! link.

use askama::Template;
use axum::http::StatusCode;
use serde::Deserialize;

use super::change_form::{ChangeSelection, FileFormFields, field};
use super::folder_crumbs::FolderCrumbs;
use super::links::LINKS_PATH;
use super::{FilesRequest, UncheckedFilesRequest, files_url};
use crate::auth::guest_links::{DEFAULT_LINK_DAYS, GuestLinkTargetKind};
use crate::domain::RemotePath;
use crate::error::AppError;
use crate::files::ListingFreshness;
use crate::files::shared_paths::{self, SharePathError, ShareablePath};
use crate::ssh::sftp::RemoteFileKind;
use crate::store::shared_paths::{NewSharedPath, SharedPathKind};
use crate::web::HandlerResult;
use crate::web::http::extractors::{FormBody, QueryParams};
use crate::web::http::form_errors::{FormErrors, echo_input};
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond_with};
use crate::web::http::reveal_once;
use crate::web::pages::clusters::ClusterRequest;
use crate::web::pages::dashboards::dashboard::GuestLinkFormState;
use crate::web::pages::dashboards::guest_links::GuestLinkForm;

/// The longest name that an activity entry or a guest's page shows.
const MAX_TITLE_CHARS: usize = 120;
/// The most that a drop-box may hold.
const MAX_MB: i64 = 10_000_000;
const MAX_FILES: i64 = 1000;
const BYTES_PER_MB: i64 = 1_000_000;

const BECAME_FOLDER: &str = "This is now a folder, so guests would see everything in it. Open it in Files to check what's there, then share it.";

#[derive(Template)]
#[template(path = "files/share.html")]
struct SharePage {
    page: PageFrame,
    slug: String,
    cluster_title: String,
    is_connected: bool,
    crumbs: FolderCrumbs,
    /// What it is, as far as that is known without asking the cluster.
    known_kind: Option<SharedPathKind>,
    /// Encoded.
    path: String,
    shown_path: String,
    folder_href: String,
    /// Why this path can't be shared; may be empty.
    problem: String,
    link_form: GuestLinkFormState,
    drop_box: DropBoxFormState,
}

impl SharePage {
    fn is_file(&self) -> bool {
        self.known_kind == Some(SharedPathKind::File)
    }

    const fn reading_hint(&self) -> &'static str {
        match self.known_kind {
            Some(_) => {
                "Guests can see and download everything in this folder, including hidden files, and nothing else."
            }
            None => {
                "Guests can see and download this file, or everything in this folder (including hidden files), and nothing else."
            }
        }
    }
}

/// What is asked about a drop-box, as it is shown.
struct DropBoxFormState {
    is_chosen: bool,
    max_mb: String,
    max_files: String,
}

impl Default for DropBoxFormState {
    fn default() -> Self {
        Self { is_chosen: false, max_mb: "1000".to_owned(), max_files: "20".to_owned() }
    }
}

#[derive(Deserialize)]
pub struct ShareForm {
    /// Encoded.
    path: String,
    /// `drop-box`, or anything else for a link to read.
    #[serde(default)]
    kind: String,
    /// Whether the form said that this is a file.
    #[serde(default)]
    is_file: Option<String>,
    #[serde(default)]
    max_mb: String,
    #[serde(default)]
    max_files: String,
    #[serde(flatten)]
    link: GuestLinkForm,
}

impl ShareForm {
    fn is_drop_box(&self) -> bool {
        self.kind == "drop-box"
    }

    /// What a drop-box may hold: bytes and files. Nothing for a link to read.
    fn limits(&self) -> Result<(i64, i64), FormErrors> {
        if !self.is_drop_box() {
            return Ok((0, 0));
        }
        let number = |text: &str, most: i64| text.trim().parse().ok().filter(|number| (1..=most).contains(number));
        let (megabytes, files) = (number(&self.max_mb, MAX_MB), number(&self.max_files, MAX_FILES));
        if let (Some(megabytes), Some(files)) = (megabytes, files) {
            return Ok((megabytes * BYTES_PER_MB, files));
        }
        let mut problems = FormErrors::default();
        if megabytes.is_none() {
            problems.add("max_mb", format_args!("Enter a whole number of megabytes from 1 to {MAX_MB}."));
        }
        if files.is_none() {
            problems.add("max_files", format_args!("Enter a number of files from 1 to {MAX_FILES}."));
        }
        Err(problems)
    }

    fn drop_box_state(&self) -> DropBoxFormState {
        let (max_mb, max_files) = (echo_input(&self.max_mb), echo_input(&self.max_files));
        DropBoxFormState { is_chosen: self.is_drop_box(), max_mb, max_files }
    }
}

/// The form, for the row that is ticked in a folder; without one, for the folder itself.
pub async fn get(unchecked: UncheckedFilesRequest, QueryParams(fields): QueryParams<FileFormFields>) -> HandlerResult {
    let files = unchecked.authorize().await?;
    if field(&fields, "path").is_empty() {
        return Err(AppError::NotFound);
    }
    let selection = ChangeSelection::parse(&fields)?;
    let form = GuestLinkFormState { days: DEFAULT_LINK_DAYS.to_string(), ..GuestLinkFormState::default() };
    let form = (form, DropBoxFormState::default());
    let kind = (field(&fields, "is_file") == "yes").then_some(SharedPathKind::File);
    match &selection.names[..] {
        [] => show_form_for(&files, (&selection.folder, kind), form, "").await,
        [name] => show_form(&files, &selection.folder.join(name), form, "").await,
        _ => {
            let problem =
                "Several items are selected. Share one file or folder at a time, or the folder that contains them.";
            show_form(&files, &selection.folder, form, problem).await
        }
    }
}

/// Creates a link and reveals it once.
pub async fn post(unchecked: UncheckedFilesRequest, FormBody(form): FormBody<ShareForm>) -> HandlerResult {
    let files = unchecked.authorize().await?;
    let path = RemotePath::from_encoded(&form.path).map_err(|error| AppError::BadRequest(error.to_string()))?;
    let again = |problems: FormErrors| (form.link.echo(problems), form.drop_box_state());
    let known = (&path, form.is_file.as_ref().map(|_| SharedPathKind::File));
    let (max_bytes, max_files) = match form.limits() {
        Ok(limits) => limits,
        Err(problems) => return show_form_for(&files, known, again(problems), "").await,
    };
    let shareable = match inspect(&files, &path).await {
        Ok(shareable) => shareable,
        Err(problem) => return show_form_for(&files, known, again(FormErrors::default()), &problem).await,
    };
    if form.is_file.is_some() && shareable.is_folder {
        return show_form(&files, &path, again(FormErrors::default()), BECAME_FOLDER).await;
    }
    let (kind, target) = match (form.is_drop_box(), shareable.is_folder) {
        (true, true) => (SharedPathKind::DropBox, GuestLinkTargetKind::DropBox),
        (true, false) => {
            let problem = SharePathError::NotAFolder.to_string();
            return show_form(&files, &path, again(FormErrors::default()), &problem).await;
        }
        (false, true) => (SharedPathKind::Folder, GuestLinkTargetKind::Files),
        (false, false) => (SharedPathKind::File, GuestLinkTargetKind::Files),
    };
    let account = files.request.account_id();
    let new = NewSharedPath {
        person: account.person,
        cluster: account.cluster,
        path: &shareable.path.to_encoded(),
        title: &title(&shareable.path),
        kind,
        max_bytes,
        max_files,
    };
    let ClusterRequest { context, me, .. } = &files.request;
    let created = context.app.auth.share_path(&me.actor(context), &new, &form.link.to_request()).await;
    match form.link.show_created(context, target, created)? {
        Ok(shown) => {
            let ClusterRequest { context, me, .. } = files.request;
            reveal_once::redirect(context, &me, LINKS_PATH, &shown)
        }
        Err(link_form) => show_form_for(&files, known, (link_form, form.drop_box_state()), "").await,
    }
}

/// Asks the cluster what the path is; gives the reason as a sentence if it can't be shared.
async fn inspect(files: &FilesRequest, path: &RemotePath) -> Result<ShareablePath, String> {
    let connection = files.connection.as_ref().map_err(ToString::to_string)?;
    let home = files.discovered.home.as_deref().and_then(|home| RemotePath::parse(home.as_bytes()).ok());
    shared_paths::inspect(connection, home.as_ref(), path).await.map_err(|error| error.to_string())
}

/// A path's last part, for people.
fn title(path: &RemotePath) -> String {
    let name = path.name().map_or_else(|| path.to_string(), |name| name.to_string());
    if name.chars().count() <= MAX_TITLE_CHARS {
        return name;
    }
    name.chars().take(MAX_TITLE_CHARS - 1).chain(['…']).collect()
}

/// What a path was when its folder was last looked at.
fn find_known_kind(files: &FilesRequest, path: &RemotePath) -> Option<SharedPathKind> {
    let (app, account) = (&files.request.context.app, files.request.account_id());
    let find = |folder| app.folder_listings.find(account, folder, ListingFreshness::Kept, None, app.clock.now());
    if find(path).is_some() {
        return Some(SharedPathKind::Folder);
    }
    let (folder, name) = (find(&path.parent()?)?, path.name()?);
    match folder.entries.iter().find(|entry| entry.name == name)?.attrs.kind {
        RemoteFileKind::File => Some(SharedPathKind::File),
        RemoteFileKind::Folder => Some(SharedPathKind::Folder),
        _ => None,
    }
}

async fn show_form(
    files: &FilesRequest,
    path: &RemotePath,
    form: (GuestLinkFormState, DropBoxFormState),
    problem: &str,
) -> HandlerResult {
    show_form_for(files, (path, None), form, problem).await
}

/// The same for a page that knows what the path is.
async fn show_form_for(
    files: &FilesRequest,
    (path, kind): (&RemotePath, Option<SharedPathKind>),
    (link_form, drop_box): (GuestLinkFormState, DropBoxFormState),
    problem: &str,
) -> HandlerResult {
    let ClusterRequest { context, me, cluster } = &files.request;
    let is_fine = problem.is_empty() && link_form.problems.is_empty();
    let folder = path.parent().unwrap_or_else(RemotePath::root);
    let page = SharePage {
        page: PageFrame::for_person(context, &me.0, &format!("Share {}", title(path)), NavSection::Files),
        slug: files.slug().to_owned(),
        cluster_title: cluster.row.title.clone(),
        is_connected: files.connection.is_ok(),
        crumbs: FolderCrumbs::load(files, &folder).await?,
        folder_href: files_url(files.slug(), &folder),
        known_kind: kind.or_else(|| find_known_kind(files, path)),
        path: path.to_encoded(),
        shown_path: path.to_string(),
        problem: problem.to_owned(),
        link_form,
        drop_box,
    };
    respond_with(if is_fine { StatusCode::OK } else { FORM_ERROR_STATUS }, &page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_the_last_part_and_short() {
        let title = |path: &[u8]| title(&RemotePath::parse(path).unwrap());
        assert_eq!(title(b"/scratch/alice/results.csv"), "results.csv");
        assert_eq!(title(&[b"/a/", "ü".repeat(121).as_bytes()].concat()).chars().count(), 120);
    }
}
