//! Recipes that people keep: the list of them, one's own page, saving a form as one, changing it, files in and out.

pub mod change;
pub mod export;
pub mod import;
pub mod keep;
pub mod list;
pub mod recipe;
mod sheet;

use super::extract::{Context, Me};
use crate::domain::RecipeId;
use crate::error::AppError;
use crate::jobs::kitchen::{Kept, NotKept, RecipeVersion};
use crate::recipes::recipe::RecipeError;

/// A recipe's address.
pub fn address(id: RecipeId) -> String {
    format!("/recipes/{id}")
}

/// A recipe that someone can see, with its newest version.
async fn find(context: &Context, me: &Me, id: RecipeId) -> Result<(Kept, RecipeVersion), AppError> {
    let found = context.app.saved_recipes.get(&me.0.viewer, id, None).await?;
    found.ok_or(AppError::NotFound)
}

/// What is wrong with a file, with its line.
fn words(error: &RecipeError) -> String {
    match error.line {
        0 => error.problem.clone(),
        line => format!("Line {line}: {}", error.problem),
    }
}

/// Why something was not saved, for the one who wrote it; anything else is an error page.
fn told(error: NotKept) -> Result<String, AppError> {
    match error {
        NotKept::Unreadable(error) => Ok(words(&error)),
        NotKept::Auth(error) => Err(error.into()),
        NotKept::Store(error) => Err(error.into()),
        other => Ok(other.to_string()),
    }
}
