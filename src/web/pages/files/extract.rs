//! Extracting one archive into a new folder beside it. It replaces nothing, so it starts at once.

use super::transfer_selection::{TransferFields, TransferSelection, show_problem};
use super::{UncheckedFilesRequest, files_url};
use crate::auth::ActivityEventKind;
use crate::files::transfers::{StartTransferError, is_archive_name};
use crate::store::transfers::{NewTransfer, TransferKind};
use crate::web::HandlerResult;
use crate::web::http::extractors::FormBody;
use crate::web::http::flash::see_other;

const TITLE: &str = "Extract archive";

pub async fn post(unchecked: UncheckedFilesRequest, FormBody(fields): FormBody<TransferFields>) -> HandlerResult {
    let request = unchecked.authorize().await?;
    let selection = TransferSelection::parse(&fields)?;
    if selection.names.len() != 1 {
        let problem = "Go back and select one archive: a zip, tar or tar.gz file.".to_owned();
        return show_problem(&request, &selection.folder, TITLE, problem);
    }
    if let Some(name) = selection.names.iter().find(|name| !is_archive_name(name)) {
        let problem = format!("“{name}” isn't an archive. The portal can extract zip, tar and tar.gz files.");
        return show_problem(&request, &selection.folder, TITLE, problem);
    }
    let detail = format!("{} in {}", selection.title(), selection.folder);
    let new = NewTransfer {
        person: request.request.me.0.person.id,
        kind: TransferKind::Extract,
        cluster: request.request.cluster.row.id,
        folder: selection.folder.clone(),
        names: selection.names,
        url: String::new(),
        target: None,
    };
    match request.request.context.app.transfers.start(&new).await {
        Ok(_) => {
            request.record(ActivityEventKind::ArchiveExtracted, &detail).await?;
            Ok(see_other(&files_url(request.slug(), &selection.folder)))
        }
        Err(StartTransferError::Store(error)) => Err(error.into()),
        Err(error) => show_problem(&request, &selection.folder, TITLE, error.to_string()),
    }
}
