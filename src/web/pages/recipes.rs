//! Saved recipes: the list, a recipe's page, saving a form as a recipe, editing it, and import and export.

pub mod edit;
mod editor;
pub mod export;
pub mod import;
pub mod list;
pub mod recipe;
pub mod save;

use axum::extract::FromRequestParts;

use crate::auth::Permission;
use crate::domain::RecipeId;
use crate::error::AppError;
use crate::jobs::saved_recipes::{RecipeVersion, SaveRecipeError, SavedRecipeRow, recipe_ownership};
use crate::recipes::recipe::RecipeError;
use crate::web::http::extractors::{CurrentPerson, PathParams, RequestContext};
use crate::web::portal_state::PortalState;

pub fn recipe_path(id: RecipeId) -> String {
    format!("/recipes/{id}")
}

/// A request about a saved recipe.
#[derive(FromRequestParts)]
#[from_request(state(PortalState), rejection(AppError))]
pub struct RecipeRequest {
    context: RequestContext,
    me: CurrentPerson,
    #[from_request(via(PathParams))]
    id: RecipeId,
}

impl RecipeRequest {
    /// The recipe, if the person can see it; its newest version unless one is given.
    async fn find(&self, version: Option<i64>) -> Result<(SavedRecipeRow, RecipeVersion), AppError> {
        self.me.may(Permission::UseClusters)?;
        let found = self.context.app.saved_recipes.get(&self.me.0.viewer, self.id, version).await?;
        found.ok_or(AppError::NotFound)
    }

    /// The recipe in its newest version, if the person may change it.
    async fn find_to_change(&self) -> Result<(SavedRecipeRow, RecipeVersion), AppError> {
        let (recipe, version) = self.find(None).await?;
        self.me.may(Permission::ChangeRecipe(recipe_ownership(&recipe)))?;
        Ok((recipe, version))
    }
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
