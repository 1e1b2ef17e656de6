//! Saved recipes: the list, a recipe's page, saving a form as a recipe, editing it, and import and export.

pub mod edit;
mod editor;
pub mod export;
pub mod import;
pub mod list;
pub mod recipe;
pub mod save;

use crate::domain::RecipeId;
use crate::error::AppError;
use crate::jobs::saved_recipes::{RecipeVersion, SaveRecipeError, SavedRecipeRow};
use crate::recipes::recipe::RecipeError;
use crate::web::http::extractors::{CurrentPerson, RequestContext};

pub fn recipe_path(id: RecipeId) -> String {
    format!("/recipes/{id}")
}

/// A recipe that someone can see, in its newest version.
async fn find_saved(
    context: &RequestContext,
    me: &CurrentPerson,
    id: RecipeId,
) -> Result<(SavedRecipeRow, RecipeVersion), AppError> {
    let found = context.app.saved_recipes.get(&me.0.viewer, id, None).await?;
    found.ok_or(AppError::NotFound)
}

/// What is wrong with a file, and on which line.
fn describe_error(error: &RecipeError) -> String {
    match error.line {
        0 => error.problem.clone(),
        line => format!("Line {line}: {}", error.problem),
    }
}

/// Why a recipe wasn't saved, for its author; anything else becomes an error page.
fn save_error_text(error: SaveRecipeError) -> Result<String, AppError> {
    match error {
        SaveRecipeError::Unreadable(error) => Ok(describe_error(&error)),
        SaveRecipeError::Auth(error) => Err(error.into()),
        SaveRecipeError::Store(error) => Err(error.into()),
        other => Ok(other.to_string()),
    }
}
