//! Compressing ticked rows into an archive beside them: a form that asks for name and format, then a transfer.

use askama::Template;
use axum::http::StatusCode;

use super::transfer_selection::{SelectionView, TransferFields, TransferSelection, field, show_problem};
use super::{FilesRequest, UncheckedFilesRequest, files_url};
use crate::auth::ActivityEventKind;
use crate::domain::RemoteName;
use crate::files::transfers::{CompressFormat, StartTransferError};
use crate::store::transfers::{NewTransfer, TransferKind};
use crate::web::HandlerResult;
use crate::web::http::extractors::FormBody;
use crate::web::http::flash::see_other;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond_with};

const TITLE: &str = "Compress files";
/// Longer names aren't accepted.
const MAX_ECHO_CHARS: usize = 255;

#[derive(Template)]
#[template(path = "files/compress.html")]
struct CompressPage {
    page: PageFrame,
    view: CompressView,
}

struct CompressView {
    title: String,
    selection: SelectionView,
    /// The archive's name, without its ending.
    archive: String,
    /// Value and label; whether it is chosen.
    formats: Vec<(&'static str, &'static str, bool)>,
    problem: String,
}

/// Asks for the archive's name and format, then starts the transfer.
pub async fn post(unchecked: UncheckedFilesRequest, FormBody(fields): FormBody<TransferFields>) -> HandlerResult {
    let request = unchecked.authorize().await?;
    let selection = TransferSelection::parse(&fields)?;
    if let Some(problem) = selection.problem() {
        return show_problem(&request, &selection.folder, TITLE, problem);
    }
    let format = CompressFormat::parse(field(&fields, "format")).unwrap_or(CompressFormat::TarGz);
    if field(&fields, "step") != "confirm" {
        return show_form(&request, &selection, format, &suggest_name(&selection), "");
    }
    let typed = field(&fields, "archive");
    let name = match RemoteName::from_typed(typed).and_then(|_| add_ending(typed, format)) {
        Ok(name) => name,
        Err(error) => return show_form(&request, &selection, format, typed, &error.to_string()),
    };
    let cluster = request.request.cluster.row.id;
    let new = NewTransfer {
        person: request.request.me.0.person.id,
        kind: TransferKind::Compress,
        cluster,
        folder: selection.folder.clone(),
        names: selection.names.clone(),
        url: String::new(),
        target: Some((cluster, selection.folder.join(&name))),
    };
    match request.request.context.app.transfers.start(&new).await {
        Ok(_) => {
            let detail = format!("{} in {}, to {name}", selection.title(), selection.folder);
            request.record(ActivityEventKind::FilesCompressed, &detail).await?;
            Ok(see_other(&files_url(request.slug(), &selection.folder)))
        }
        Err(StartTransferError::Store(error)) => Err(error.into()),
        Err(error) => show_problem(&request, &selection.folder, TITLE, error.to_string()),
    }
}

/// The archive's name with the ending of its format, unless it was typed.
fn add_ending(typed: &str, format: CompressFormat) -> Result<RemoteName, crate::domain::RemotePathError> {
    let (typed, ending) = (typed.trim(), format!(".{}", format.extension()));
    let stem = typed.strip_suffix(&ending).filter(|stem| !stem.is_empty()).unwrap_or(typed);
    RemoteName::from_typed(&format!("{stem}{ending}"))
}

/// The only item's name, or the folder's.
fn suggest_name(selection: &TransferSelection) -> String {
    let only = match selection.names.as_slice() {
        [name] => Some(name.clone()),
        _ => selection.folder.name(),
    };
    only.as_ref().and_then(RemoteName::as_text).unwrap_or("files").to_owned()
}

fn show_form(
    request: &FilesRequest,
    selection: &TransferSelection,
    format: CompressFormat,
    typed: &str,
    problem: &str,
) -> HandlerResult {
    let cluster = &request.request;
    let formats = CompressFormat::ALL.map(|one| (one.extension(), label(one), one == format));
    let view = CompressView {
        title: format!("Compress {}", selection.title()),
        selection: SelectionView::new(request, selection),
        archive: typed.chars().take(MAX_ECHO_CHARS).collect(),
        formats: formats.to_vec(),
        problem: problem.to_owned(),
    };
    let status = if problem.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS };
    let page = PageFrame::for_person(&cluster.context, &cluster.me.0, TITLE, NavSection::Files);
    respond_with(status, &CompressPage { page, view })
}

const fn label(format: CompressFormat) -> &'static str {
    match format {
        CompressFormat::TarGz => "tar.gz: smallest, keeps links",
        CompressFormat::Zip => "zip: opens on any computer, but saves no space",
        CompressFormat::Tar => "tar: fastest and keeps links, but saves no space",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_get_the_ending_of_their_format() {
        let name = |typed: &str, format| add_ending(typed, format).map(|name| name.to_string());
        assert_eq!(name(" runs ", CompressFormat::TarGz).unwrap(), "runs.tar.gz");
        assert_eq!(name("runs.tar.gz", CompressFormat::TarGz).unwrap(), "runs.tar.gz");
        assert_eq!(name("v1.2", CompressFormat::Zip).unwrap(), "v1.2.zip");
        assert_eq!(name(".tar", CompressFormat::Tar).unwrap(), ".tar.tar");
        assert!(name("a/b", CompressFormat::Zip).is_err());
        assert!(name(&"x".repeat(254), CompressFormat::Zip).is_err());
    }

    #[test]
    fn suggested_names_can_be_typed() {
        let fields = |names: &[&str]| {
            let mut fields = vec![("path".to_owned(), "/home/alice".to_owned())];
            fields.extend(names.iter().map(|name| ("name".to_owned(), (*name).to_owned())));
            suggest_name(&TransferSelection::parse(&fields).unwrap())
        };
        assert_eq!(fields(&["runs"]), "runs");
        assert_eq!(fields(&["bad%FF"]), "files");
        assert_eq!(fields(&["a", "b"]), "alice");
    }
}
