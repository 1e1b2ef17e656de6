//! A file, looked into: its page appears at once, its content follows over the person's own connection.

use askama::Template;
use axum::http::header;
use serde::Deserialize;

use crate::auth::AuthError;
use crate::domain::RemotePath;
use crate::error::AppError;
use crate::files::preview::{
    self, FilePreview, MarkdownBlock, MarkdownSpan, MediaKind, NotebookCell, NotebookOutput, PreviewContent,
    PreviewRequest, WindowPosition, has_pdf_name, highlight_language,
};
use crate::files::preview_tokens::PreviewTokenTarget;
use crate::files::transfers::is_archive_name;
use crate::ssh::RunCommandError;
use crate::ssh::sftp::SftpError;
use crate::web::HandlerResult;
use crate::web::http::assets::asset_url;
use crate::web::http::extractors::QueryParams;
use crate::web::http::file_response::insert_header;
use crate::web::http::middleware::policy_with_frame;
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::clusters::ClusterRequest;
use crate::web::pages::files::folder_crumbs::FolderCrumbs;
use crate::web::pages::files::{FilesRequest, UncheckedFilesRequest, edit, files_url, tensorboard_url};

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct FileViewQuery {
    /// The encoded path.
    path: String,
    /// The first byte of the window.
    from: Option<u64>,
    /// The end of the window.
    to: Option<u64>,
    /// `end`: the last window.
    at: String,
    /// `text`: as text, whatever it is.
    #[serde(rename = "as")]
    shown_as: String,
    /// Whether the page comes with its content, for browsers without JavaScript.
    wait: String,
}

#[derive(Template)]
#[template(path = "files/view.html")]
struct FileViewPage {
    page: PageFrame,
    scripts: Vec<&'static str>,
    file: FileAddress,
    crumbs: FolderCrumbs,
    content: Option<FileContentView>,
}

#[derive(Template)]
#[template(path = "files/view_part.html")]
struct FileContentFragment {
    content: FileContentView,
}

/// A file, and the URLs about it.
struct FileAddress {
    slug: String,
    cluster_title: String,
    path: RemotePath,
    /// Its name, for people.
    name: String,
    /// The language to highlight it in; may be empty.
    language: &'static str,
}

/// What the content part of the page shows.
struct FileContentView {
    file: FileAddress,
    is_text_forced: bool,
    /// Where a PDF comes from; empty for everything else.
    frame_url: String,
    /// Where a job with this script is composed; empty for everything else.
    job_href: String,
    result: Result<FilePreview, SftpError>,
}

/// The page. With `wait`, its content is part of it.
pub async fn get(unchecked: UncheckedFilesRequest, QueryParams(query): QueryParams<FileViewQuery>) -> HandlerResult {
    let request = unchecked.authorize().await?;
    let file = FileAddress::new(&request, &query.path)?;
    let content = if query.wait.is_empty() { None } else { Some(load_content(&request, &query).await?) };
    let crumbs = FolderCrumbs::load(&request, &file.folder()).await?;
    let ClusterRequest { context, me, .. } = &request.request;
    let has_frame = has_pdf_name(&file.path);
    let mut response = respond(&FileViewPage {
        page: PageFrame::for_person(context, &me.0, &file.name, NavSection::Files),
        scripts: file.scripts(),
        crumbs,
        content,
        file,
    })?;
    if has_frame {
        let policy = policy_with_frame(&context.app.config.dashboards.public_url);
        insert_header(&mut response, header::CONTENT_SECURITY_POLICY, policy);
    }
    Ok(response)
}

/// The content, as a fragment.
pub async fn get_content(
    unchecked: UncheckedFilesRequest,
    QueryParams(query): QueryParams<FileViewQuery>,
) -> HandlerResult {
    let request = unchecked.authorize().await?;
    respond(&FileContentFragment { content: load_content(&request, &query).await? })
}

async fn load_content(request: &FilesRequest, query: &FileViewQuery) -> Result<FileContentView, AppError> {
    let file = FileAddress::new(request, &query.path)?;
    let home = request.discovered.home.as_deref();
    let home = home.and_then(|home| RemotePath::parse(home.as_bytes()).ok());
    let wanted = query.to_request();
    let result = match &request.connection {
        Ok(connection) => preview::load(connection, &file.path, home.as_ref(), wanted).await,
        Err(error) => Err(error.clone().into()),
    };
    let is_pdf = matches!(&result, Ok(FilePreview { content: PreviewContent::Pdf(_), .. }));
    let frame_url = if is_pdf { issue_frame_url(&request.request, file.path.clone())? } else { String::new() };
    let job_href = edit::job_href(request, &file.path, file.language);
    Ok(FileContentView { file, is_text_forced: wanted.as_text, frame_url, job_href, result })
}

/// An address on the dashboards' origin that shows this one file for a few minutes.
fn issue_frame_url(request: &ClusterRequest, path: RemotePath) -> Result<String, AppError> {
    let app = &request.context.app;
    let target = PreviewTokenTarget { session: request.me.0.session, account: request.account_id(), path };
    let token = app.preview_tokens.issue(target, app.clock.now()).map_err(AuthError::from)?;
    Ok(app.config.dashboards.public_url.join(&format!("/pdf/{}", token.as_str())))
}

impl FileViewQuery {
    fn to_request(&self) -> PreviewRequest {
        let position = match (self.from, self.to) {
            (Some(0), _) => WindowPosition::Start,
            (Some(from), _) => WindowPosition::From(from),
            (None, Some(to)) => WindowPosition::UpTo(to),
            (None, None) if self.at == "end" => WindowPosition::End,
            (None, None) => WindowPosition::Start,
        };
        PreviewRequest { position, as_text: self.shown_as == "text" }
    }
}

impl FileAddress {
    fn new(request: &FilesRequest, encoded: &str) -> Result<Self, AppError> {
        let path = RemotePath::from_encoded(encoded).map_err(|_| AppError::NotFound)?;
        // The root is a folder.
        let name = path.name().ok_or(AppError::NotFound)?;
        Ok(Self {
            slug: request.slug().to_owned(),
            cluster_title: request.request.cluster.row.title.clone(),
            language: highlight_language(&name.to_string(), &name.extension()),
            name: name.to_string(),
            path,
        })
    }

    /// The scripts of the page: those for highlighting only where there is something to highlight.
    fn scripts(&self) -> Vec<&'static str> {
        let mut scripts = Vec::new();
        let is_notebook = self.path.name().is_some_and(|name| name.extension() == "ipynb");
        if !self.language.is_empty() || is_notebook {
            scripts.push("highlight.min.js");
        }
        match self.language {
            "julia" => scripts.push("highlight-julia.min.js"),
            "fortran" => scripts.push("highlight-fortran.min.js"),
            "matlab" => scripts.push("highlight-matlab.min.js"),
            _ => {}
        }
        scripts.push("preview.js");
        scripts.into_iter().map(asset_url).collect()
    }

    fn url(&self, below: &str, more: &str) -> String {
        let query =
            form_urlencoded::Serializer::new(String::new()).append_pair("path", &self.path.to_encoded()).finish();
        format!("/files/{}/{below}?{query}{more}", self.slug)
    }

    /// The page with its content, for browsers without JavaScript. `more` continues the query.
    fn page_url(&self, more: impl AsRef<str>) -> String {
        self.url("view", &format!("{}&wait=1", more.as_ref()))
    }

    fn content_url(&self, more: impl AsRef<str>) -> String {
        self.url("view/content", more.as_ref())
    }

    fn download_url(&self) -> String {
        self.url("download", "")
    }

    /// What the form to extract it sends, encoded, if it is an archive: its folder and its name.
    fn archive_fields(&self) -> Option<(String, String)> {
        let name = self.path.name().filter(is_archive_name)?;
        Some((self.path.parent()?.to_encoded(), name.to_encoded()))
    }

    fn share_url(&self) -> String {
        self.url("share", "&is_file=yes")
    }

    fn edit_url(&self) -> String {
        self.url("edit", "")
    }

    fn raw_url(&self) -> String {
        self.url("raw", "")
    }

    /// The folder that it is in.
    fn folder(&self) -> RemotePath {
        self.path.parent().unwrap_or_else(RemotePath::root)
    }

    fn folder_url(&self) -> String {
        files_url(&self.slug, &self.folder())
    }

    /// The file itself, as if it were a folder.
    fn as_folder_url(&self) -> String {
        files_url(&self.slug, &self.path)
    }

    /// A new TensorBoard for the folder, if this is one of the files that TensorBoard reads.
    fn tensorboard_url(&self) -> Option<String> {
        let folder = self.path.parent().filter(|_| self.name.contains("tfevents"))?;
        tensorboard_url(&self.slug, &folder)
    }
}

impl FileContentView {
    fn is_disconnected(&self) -> bool {
        let lost = [RunCommandError::NotConnected, RunCommandError::ConnectionLost];
        matches!(&self.result, Err(SftpError::Run(error)) if lost.contains(error))
    }

    /// Why the file can't be shown: what happened, and what to do.
    fn problem(&self) -> Option<(&'static str, String)> {
        let problem = self.result.as_ref().err()?;
        Some(match problem {
            SftpError::NotFound => {
                ("File not found", "It may have been moved, renamed or deleted. Look for it in its folder.".to_owned())
            }
            SftpError::NotAllowed => (
                "You can't read this file",
                "It belongs to someone else, or its permissions don't allow it. Ask its owner for access.".to_owned(),
            ),
            SftpError::NotAFile => ("This is a folder", "Open it to see its files.".to_owned()),
            SftpError::SpecialFile => ("This can't be shown", problem.to_string()),
            _ => ("Couldn't open this file", problem.to_string()),
        })
    }

    fn is_missing(&self) -> bool {
        self.result == Err(SftpError::NotFound)
    }

    fn is_folder(&self) -> bool {
        self.result == Err(SftpError::NotAFile)
    }

    /// Whether it is text that is small enough to edit.
    fn can_edit(&self) -> bool {
        let Ok(shown) = &self.result else { return false };
        let is_text = match &shown.content {
            PreviewContent::Empty | PreviewContent::Table(_) | PreviewContent::Notebook(_) => true,
            PreviewContent::Text(window) => window.size == shown.facts.size,
            PreviewContent::Media(media) => media.content_type == "image/svg+xml",
            _ => false,
        };
        is_text && shown.facts.size <= preview::MAX_EDIT_BYTES
    }

    /// The other way to show it: label and the end of its query.
    fn other_view(&self) -> Option<(&'static str, &'static str)> {
        let Ok(shown) = &self.result else { return None };
        let is_text = match &shown.content {
            PreviewContent::Table(_) | PreviewContent::Notebook(_) => true,
            PreviewContent::Media(media) => media.content_type == "image/svg+xml",
            PreviewContent::Text(_) if self.is_text_forced => return Some(("Show preview", "")),
            _ => false,
        };
        is_text.then_some(("Show as text", "&as=text"))
    }

    /// Continues a query: the same view of another window.
    fn window_query(&self, position: impl AsRef<str>) -> String {
        format!("{}{}", position.as_ref(), if self.is_text_forced { "&as=text" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &[u8]) -> FileAddress {
        let path = RemotePath::parse(path).unwrap();
        let name = path.name().unwrap();
        FileAddress {
            slug: "key".to_owned(),
            cluster_title: "Harbour".to_owned(),
            language: highlight_language(&name.to_string(), &name.extension()),
            name: name.to_string(),
            path,
        }
    }

    #[test]
    fn urls_carry_any_name() {
        let odd = file(b"/a b/\xff&<x>.py");
        assert_eq!(odd.download_url(), "/files/key/download?path=%2Fa+b%2F%25FF%26%3Cx%3E.py");
        assert_eq!(odd.page_url("&from=5"), "/files/key/view?path=%2Fa+b%2F%25FF%26%3Cx%3E.py&from=5&wait=1");
        assert_eq!(odd.language, "python");
    }

    #[test]
    fn event_files_lead_to_tensorboard() {
        let events = file(b"/runs/1/events.out.tfevents.1700.node");
        let url = events.tensorboard_url().unwrap();
        assert_eq!(url, "/dashboards/new?kind=tensorboard&cluster=key&place=%2Fruns%2F1");
        assert_eq!(file(b"/runs/1/notes.txt").tensorboard_url(), None);
        assert_eq!(file(b"/bad\xff/tfevents").tensorboard_url(), None);
    }

    #[test]
    fn archives_can_be_extracted() {
        let fields = file(b"/data/bad\xff.zip").archive_fields();
        assert_eq!(fields, Some(("/data".to_owned(), "bad%FF.zip".to_owned())));
        assert_eq!(file(b"/data/table.csv.gz").archive_fields(), None);
    }

    #[test]
    fn scripts_for_highlighting_come_only_with_code() {
        assert_eq!(file(b"/a.txt").scripts().len(), 1);
        assert_eq!(file(b"/a.py").scripts().len(), 2);
        assert_eq!(file(b"/a.jl").scripts().len(), 3);
        assert!(!file(b"/a.f90").scripts().contains(&"/assets/missing"));
        assert!(!file(b"/a.m").scripts().contains(&"/assets/missing"));
    }

    #[test]
    fn the_wanted_window_is_read_from_the_query() {
        let position = |from, to, at: &str| {
            FileViewQuery { from, to, at: at.to_owned(), ..FileViewQuery::default() }.to_request().position
        };
        assert_eq!(position(None, None, ""), WindowPosition::Start);
        assert_eq!(position(Some(0), None, ""), WindowPosition::Start);
        assert_eq!(position(Some(7), None, "end"), WindowPosition::From(7));
        assert_eq!(position(None, Some(9), ""), WindowPosition::UpTo(9));
        assert_eq!(position(None, None, "end"), WindowPosition::End);
    }
}
