//! Exporting recipes as files.

use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;

use crate::auth::Permission;
use crate::error::AppError;
use crate::recipes::overrides::slug_from_title;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, PathParams, QueryParams, RequestContext};
use crate::web::pages::recipes::RecipeRequest;

#[derive(Deserialize)]
pub struct ExportRecipeQuery {
    version: Option<i64>,
}

/// A saved recipe, exactly as it was saved.
pub async fn export_saved(request: RecipeRequest, QueryParams(query): QueryParams<ExportRecipeQuery>) -> HandlerResult {
    let (recipe, version) = request.find(query.version).await?;
    if recipe.is_archived() {
        return Err(AppError::NotFound);
    }
    Ok(file_response(&slug_from_title(&recipe.title), version.text))
}

/// A recipe that ships with the portal.
pub async fn export_shipped(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(name): PathParams<String>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let catalog = context.app.recipe_files.catalog();
    let recipe = catalog.find(&name).ok_or(AppError::NotFound)?;
    Ok(file_response(&recipe.name, recipe.to_toml()))
}

fn file_response(name: &str, text: String) -> Response {
    let name = format!("attachment; filename=\"{name}.toml\"");
    let kind = "text/plain; charset=utf-8".to_owned();
    ([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, name)], text).into_response()
}
