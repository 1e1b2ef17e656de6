//! Recipes as files.

use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;

use super::super::Answer;
use super::super::extract::{Context, Me, Path, Query};
use crate::auth::Permission;
use crate::domain::RecipeId;
use crate::error::AppError;
use crate::recipes::keep::name_of;

/// Which version.
#[derive(Deserialize)]
pub struct Ask {
    version: Option<i64>,
}

/// One that someone keeps, exactly as it was saved.
pub async fn kept(
    context: Context,
    me: Me,
    Path(id): Path<RecipeId>,
    Query(ask): Query<Ask>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let found = context.app.saved_recipes.get(&me.0.viewer, id, ask.version).await?;
    let (kept, version) =
        found.filter(|(kept, _)| !kept.is_archived()).ok_or(AppError::NotFound)?;
    Ok(file(&name_of(&kept.title), version.text))
}

/// One that comes with the portal.
pub async fn shipped(context: Context, me: Me, Path(name): Path<String>) -> Answer {
    me.may(Permission::UseClusters)?;
    let book = context.app.recipe_files.catalog();
    let recipe = book.recipe(&name).ok_or(AppError::NotFound)?;
    Ok(file(&recipe.name, recipe.write()))
}

fn file(name: &str, text: String) -> Response {
    let name = format!("attachment; filename=\"{name}.toml\"");
    let kind = "text/plain; charset=utf-8".to_owned();
    ([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, name)], text).into_response()
}
