//! What the forms that change files share: the entries that were selected, and how a form is shown. Where htmx is at
//! work it opens below the toolbar of the folder page; otherwise it is a page of its own.

use askama::Template;
use askama::filters::HtmlSafe;
use axum::http::StatusCode;

use super::folder_crumbs::FolderCrumbs;
use super::{FilesRequest, files_url};
use crate::domain::{RemoteName, RemotePath};
use crate::error::AppError;
use crate::files::changes::MAX_NAMES;
use crate::web::HandlerResult;
use crate::web::http::assets;
use crate::web::http::page_frame::{NavSection, PageFrame, respond_with};

/// The fields of a form, as pairs: names repeat.
pub type FileFormFields = Vec<(String, String)>;

/// The largest form: a text of 1 MiB in which every byte is escaped, or as many names as one change can have.
pub const MAX_FORM_BYTES: usize = 8 * 1024 * 1024;

#[derive(Template)]
#[template(path = "files/change.html")]
struct FileChangePage<T: Template + HtmlSafe> {
    page: PageFrame,
    picker_js: &'static str,
    crumbs: FolderCrumbs,
    part: T,
}

/// A folder as a link, and as forms send it back.
#[derive(Clone)]
pub struct FolderLink {
    pub href: String,
    /// For people.
    pub shown: String,
    pub encoded: String,
}

impl FolderLink {
    pub fn new(slug: &str, folder: &RemotePath) -> Self {
        Self { href: files_url(slug, folder), shown: folder.to_string(), encoded: folder.to_encoded() }
    }
}

/// Entries of a folder that were selected.
pub struct ChangeSelection {
    pub folder: RemotePath,
    pub names: Vec<RemoteName>,
}

impl ChangeSelection {
    pub fn parse(fields: &FileFormFields) -> Result<Self, AppError> {
        let bad = |what: &str| AppError::BadRequest(format!("this isn't one of our forms: {what}"));
        let folder = RemotePath::from_encoded(field(fields, "path")).map_err(|_| bad("path"))?;
        let mut names = Vec::new();
        for (_, name) in fields.iter().filter(|(key, _)| key == "name") {
            let name = RemoteName::from_encoded(name).map_err(|_| bad("name"))?;
            if !names.contains(&name) {
                names.push(name);
            }
            if names.len() > MAX_NAMES {
                return Err(AppError::TooLarge);
            }
        }
        Ok(Self { folder, names })
    }

    /// What is said about them: a name, or how many there are.
    pub fn words(&self) -> String {
        match &self.names[..] {
            [one] => format!("“{one}”"),
            names => format!("{} items", names.len()),
        }
    }

    /// The names as forms send them back.
    pub fn encoded_names(&self) -> Vec<String> {
        self.names.iter().map(RemoteName::to_encoded).collect()
    }
}

/// The value of a field; empty if it is missing.
pub fn field<'a>(fields: &'a FileFormFields, name: &str) -> &'a str {
    fields.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
}

/// Shows a form, or what came of it.
pub async fn respond_part<T: Template + HtmlSafe>(
    files: &FilesRequest,
    status: StatusCode,
    title: &str,
    folder: &RemotePath,
    part: T,
) -> HandlerResult {
    let context = &files.request.context;
    if context.is_fragment {
        return respond_with(status, &part);
    }
    let page = FileChangePage {
        page: PageFrame::for_person(context, &files.request.me.0, title, NavSection::Files),
        picker_js: assets::asset_url("picker.js"),
        crumbs: FolderCrumbs::load(files, folder).await?,
        part,
    };
    respond_with(status, &page)
}

/// Says why there is nothing to change.
#[derive(Template)]
#[template(path = "files/nothing_selected.html")]
pub struct NothingSelectedPart {
    pub title: &'static str,
    pub text: &'static str,
    pub folder: FolderLink,
}

impl HtmlSafe for NothingSelectedPart {}

/// A list of what was done and what wasn't.
#[derive(Template)]
#[template(path = "files/change_result.html")]
pub struct ChangeResultPart {
    /// ok or warning.
    pub kind: &'static str,
    pub title: String,
    pub text: String,
    /// What was not done, as sentences.
    pub failures: Vec<String>,
    /// A further remark; may be empty.
    pub warning: String,
    pub folder: FolderLink,
}

impl HtmlSafe for ChangeResultPart {}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> FileFormFields {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn selections_are_read_exactly_and_bounded() {
        let selection = ChangeSelection::parse(&fields(&[
            ("path", "/data"),
            ("name", "bad%FF%0A"),
            ("name", "-rf"),
            ("name", "-rf"),
            ("to", "x"),
        ]))
        .unwrap();
        assert_eq!(selection.folder.as_bytes(), b"/data");
        assert_eq!(selection.names[0].as_bytes(), b"bad\xff\n");
        assert_eq!((selection.names.len(), selection.words().as_str()), (2, "2 items"));
        assert_eq!(selection.encoded_names(), ["bad%FF%0A", "-rf"]);
        for bad in [
            vec![("path", "data")],
            vec![("name", "a")],
            vec![("path", "/a/../b"), ("name", "a")],
            vec![("path", "/a"), ("name", "..")],
            vec![("path", "/a"), ("name", "%2Fetc")],
            vec![("path", "/a"), ("name", "")],
        ] {
            assert!(ChangeSelection::parse(&fields(&bad)).is_err(), "{bad:?}");
        }
        let names: Vec<String> = (0..=MAX_NAMES).map(|number| number.to_string()).collect();
        let mut many = vec![("path", "/a")];
        many.extend(names.iter().map(|name| ("name", name.as_str())));
        assert!(matches!(ChangeSelection::parse(&fields(&many)), Err(AppError::TooLarge)));
    }
}
