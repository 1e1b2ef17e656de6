//! The ticked rows of a folder, as its form sends them, and the page that says why they can't be worked on.

use askama::Template;

use super::{FilesRequest, files_url};
use crate::domain::{RemoteName, RemotePath};
use crate::error::AppError;
use crate::web::HandlerResult;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond_with};

/// More rows can't be ticked at once.
const MAX_NAMES: usize = 2000;
/// How many names are shown one by one.
const MAX_SHOWN: usize = 20;

/// A form's fields, in order.
pub(super) type TransferFields = Vec<(String, String)>;

/// A folder and some of its items.
pub(super) struct TransferSelection {
    pub folder: RemotePath,
    pub names: Vec<RemoteName>,
}

/// Why a selection can't be worked on, on a page of its own.
#[derive(Template)]
#[template(path = "files/transfer_problem.html")]
struct TransferProblemPage {
    page: PageFrame,
    title: &'static str,
    problem: String,
    back: String,
}

/// A selection as pages show it and forms send it again.
pub(super) struct SelectionView {
    pub slug: String,
    /// The cluster's title.
    pub cluster: String,
    /// The folder, encoded.
    pub path: String,
    pub folder: String,
    pub back: String,
    pub encoded_names: Vec<String>,
    /// The first names, for people.
    pub names: Vec<String>,
    /// How many names aren't shown.
    pub more: usize,
}

impl SelectionView {
    pub fn new(request: &FilesRequest, selection: &TransferSelection) -> Self {
        Self {
            slug: request.slug().to_owned(),
            cluster: request.request.cluster.row.title.clone(),
            path: selection.folder.to_encoded(),
            folder: selection.folder.to_string(),
            back: files_url(request.slug(), &selection.folder),
            encoded_names: selection.names.iter().map(RemoteName::to_encoded).collect(),
            names: selection.names.iter().take(MAX_SHOWN).map(ToString::to_string).collect(),
            more: selection.names.len().saturating_sub(MAX_SHOWN),
        }
    }
}

/// The value of a field; empty if there is none.
pub(super) fn field<'a>(fields: &'a TransferFields, wanted: &str) -> &'a str {
    fields.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value.as_str())
}

impl TransferSelection {
    /// Reads `path` and the repeated `name`. A form of ours has nothing in it that can't be read.
    pub fn parse(fields: &TransferFields) -> Result<Self, AppError> {
        let bad = |error: crate::domain::RemotePathError| AppError::BadRequest(error.to_string());
        let folder = RemotePath::from_encoded(field(fields, "path")).map_err(bad)?;
        let ticked = fields.iter().filter(|(name, _)| name == "name").take(MAX_NAMES + 1);
        let mut names =
            ticked.map(|(_, value)| RemoteName::from_encoded(value)).collect::<Result<Vec<_>, _>>().map_err(bad)?;
        names.sort();
        names.dedup();
        Ok(Self { folder, names })
    }

    /// Why nothing can be done with it; `None` if something can.
    pub fn problem(&self) -> Option<String> {
        match self.names.len() {
            0 => Some("Nothing is selected. Go back and select at least one item.".to_owned()),
            1..=MAX_NAMES => None,
            _ => Some(format!(
                "Too many items are selected. Select at most {MAX_NAMES}, or the folder that contains them."
            )),
        }
    }

    pub fn paths(&self) -> Vec<RemotePath> {
        self.names.iter().map(|name| self.folder.join(name)).collect()
    }

    /// One item by its name, several by their number.
    pub fn title(&self) -> String {
        match self.names.as_slice() {
            [name] => name.to_string(),
            names => crate::format::count(u64::try_from(names.len()).unwrap_or(0), "item"),
        }
    }
}

/// Says why it can't be done, with the way back to the folder.
pub(super) fn show_problem(
    request: &FilesRequest,
    folder: &RemotePath,
    title: &'static str,
    problem: String,
) -> HandlerResult {
    let cluster = &request.request;
    let page = PageFrame::for_person(&cluster.context, &cluster.me.0, title, NavSection::Files);
    let back = files_url(request.slug(), folder);
    respond_with(FORM_ERROR_STATUS, &TransferProblemPage { page, title, problem, back })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> TransferFields {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn names_stay_in_their_folder() {
        let good = fields(&[("path", "/home/alice"), ("name", "b%FF"), ("name", "-rf"), ("name", "-rf")]);
        let selection = TransferSelection::parse(&good).unwrap();
        let paths: Vec<Vec<u8>> = selection.paths().iter().map(|path| path.as_bytes().to_vec()).collect();
        assert_eq!(paths, [b"/home/alice/-rf".to_vec(), b"/home/alice/b\xff".to_vec()]);
        assert_eq!(selection.problem(), None);
        for bad in ["..", ".", "", "a/b", "a%2Fb", "%00"] {
            assert!(TransferSelection::parse(&fields(&[("path", "/home/alice"), ("name", bad)])).is_err(), "{bad}");
        }
        assert!(TransferSelection::parse(&fields(&[("path", "/home/../etc"), ("name", "a")])).is_err());
        assert!(TransferSelection::parse(&fields(&[("path", "/a")])).unwrap().problem().is_some());
        let many: Vec<String> = (0..2001).map(|number| number.to_string()).collect();
        let many: Vec<(&str, &str)> =
            [("path", "/a")].into_iter().chain(many.iter().map(|name| ("name", name.as_str()))).collect();
        assert!(TransferSelection::parse(&fields(&many)).unwrap().problem().is_some());
    }
}
