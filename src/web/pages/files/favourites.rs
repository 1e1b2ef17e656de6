//! Marking folders as favourites.

use askama::Template;
use serde::Deserialize;

use super::{UncheckedFilesRequest, files_url};
use crate::domain::RemotePath;
use crate::error::AppError;
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::FormBody;
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::respond;

#[derive(Deserialize)]
pub struct FavouriteFolderForm {
    /// The folder, encoded.
    path: String,
    #[serde(default)]
    remove: bool,
    /// Whether the list of places is shown again, not the folder.
    #[serde(default)]
    from_places: bool,
}

#[derive(Template)]
#[template(path = "files/favourite_fragment.html")]
struct FavouriteFragment {
    slug: String,
    path: String,
    is_favourite: bool,
    /// What to say about it.
    message: FlashMessage,
}

pub async fn post(unchecked: UncheckedFilesRequest, FormBody(form): FormBody<FavouriteFolderForm>) -> HandlerResult {
    let files = unchecked.authorize().await?;
    let path = RemotePath::from_encoded(&form.path).map_err(|problem| AppError::BadRequest(problem.to_string()))?;
    let (app, id) = (&files.request.context.app, files.request.account_id());
    let mut tx = app.store.write().await?;
    let message = if form.remove {
        store::file_folders::remove_favourite(&mut tx, id.person, id.cluster, &path).await?;
        FlashMessage::FavouriteRemoved
    } else if store::file_folders::add_favourite(&mut tx, id.person, id.cluster, &path, app.clock.now()).await? {
        FlashMessage::FavouriteAdded
    } else {
        FlashMessage::FavouritesFull
    };
    store::commit(tx).await?;
    let slug = files.slug().to_owned();
    if files.request.context.is_fragment {
        let is_favourite = message == FlashMessage::FavouriteAdded;
        return respond(&FavouriteFragment { slug, path: path.to_encoded(), is_favourite, message });
    }
    let to = if form.from_places { format!("/files/{slug}") } else { files_url(&slug, &path) };
    Ok(flash::redirect(files.request.context, &to, message))
}
