//! Finds the recipe that a URL names: one that ships with the portal, or a saved one.

use std::sync::Arc;

use crate::domain::RecipeId;
use crate::error::AppError;
use crate::jobs::submissions::Submission;
use crate::recipes::catalog::RecipeCatalog;
use crate::recipes::form::RecipeQuestionForm;
use crate::recipes::recipe::Recipe;
use crate::web::http::extractors::{CurrentPerson, RequestContext};

pub struct ChosenRecipe {
    /// As it appears in the URL.
    pub address: String,
    pub recipe: Arc<Recipe>,
    pub form: Arc<RecipeQuestionForm>,
    /// Its id, if it is a saved recipe.
    pub id: Option<i64>,
    pub version: Option<i64>,
    /// Where the newest version is, if this is an older one.
    pub newest: Option<String>,
}

/// Finds a recipe. Recipes that the person can't see are treated as missing.
pub async fn find_recipe(
    context: &RequestContext,
    me: &CurrentPerson,
    address: &str,
) -> Result<ChosenRecipe, AppError> {
    if let Some((id, version)) = parse_saved_address(address) {
        return find_saved(context, me, id, version).await;
    }
    let catalog = context.app.recipe_files.catalog();
    let recipe = catalog.find(address).cloned().ok_or(AppError::NotFound)?;
    Ok(choose_shipped(&catalog, recipe))
}

/// A recipe of the catalog.
pub fn choose_shipped(catalog: &RecipeCatalog, recipe: Arc<Recipe>) -> ChosenRecipe {
    ChosenRecipe {
        address: recipe.name.clone(),
        form: catalog.form(&recipe),
        recipe,
        id: None,
        version: None,
        newest: None,
    }
}

/// The recipe of a submission, in the version that it used; `None` if it is gone or no longer usable.
pub async fn find_for_submission(
    context: &RequestContext,
    me: &CurrentPerson,
    submission: &Submission,
) -> Result<Option<ChosenRecipe>, AppError> {
    let found = match (submission.recipe_id, submission.recipe_version) {
        (Some(id), Some(version)) => find_saved(context, me, RecipeId(id), Some(version)).await,
        _ => find_recipe(context, me, &submission.recipe).await,
    };
    match found {
        Ok(chosen) => Ok(Some(chosen)),
        Err(AppError::NotFound | AppError::BrokenRecipe(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A saved recipe; the newest version unless one is given.
async fn find_saved(
    context: &RequestContext,
    me: &CurrentPerson,
    id: RecipeId,
    version: Option<i64>,
) -> Result<ChosenRecipe, AppError> {
    let found = context.app.saved_recipes.get(&me.0.viewer, id, version).await?;
    let (saved, version) = found.ok_or(AppError::NotFound)?;
    let catalog = context.app.recipe_files.catalog();
    let recipe =
        Recipe::parse(&version.text, &catalog.blocks).map_err(|error| AppError::BrokenRecipe(error.problem))?;
    let is_newest = version.version == saved.version && !saved.is_archived();
    let newest = format!("r{id}");
    Ok(ChosenRecipe {
        address: if is_newest { newest.clone() } else { format!("r{id}v{}", version.version) },
        form: Arc::new(RecipeQuestionForm::new(&recipe, &catalog.blocks)),
        recipe: Arc::new(recipe),
        id: Some(id.0),
        version: Some(version.version),
        newest: Some(newest).filter(|_| !is_newest && !saved.is_archived()),
    })
}

/// `r12` is the newest version of a saved recipe, `r12v3` its third.
fn parse_saved_address(address: &str) -> Option<(RecipeId, Option<i64>)> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if digits { text.parse::<i64>().ok() } else { None }
    };
    let rest = address.strip_prefix('r')?;
    match rest.split_once('v') {
        Some((id, version)) => Some((RecipeId(number(id)?), Some(number(version)?))),
        None => Some((RecipeId(number(rest)?), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_recipes() {
        assert_eq!(parse_saved_address("r12"), Some((RecipeId(12), None)));
        assert_eq!(parse_saved_address("r12v3"), Some((RecipeId(12), Some(3))));
        for other in ["r", "rv", "r1v", "rv1", "r-1", "r+1", "r1v2v3", "r-script", "12", "R1", "r99999999999999999999"]
        {
            assert_eq!(parse_saved_address(other), None, "{other}");
        }
    }
}
