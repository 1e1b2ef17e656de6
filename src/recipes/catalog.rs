//! All recipes of the portal: those that ship with it and the administrator's own files. A broken file is left out
//! and reported; it never blocks the others.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use rust_embed::RustEmbed;

use super::form::RecipeForm;
use super::recipe::{Recipe, RecipeError, SharedRecipeBlock};

#[derive(RustEmbed)]
#[folder = "recipes/"]
#[include = "*.toml"]
#[include = "blocks/*.toml"]
struct ShippedRecipes;

#[derive(Debug, Clone, Default)]
pub struct RecipeCatalog {
    /// Questions and script parts that several recipes share.
    pub blocks: Vec<SharedRecipeBlock>,
    /// In the order in which pages list them.
    pub recipes: Vec<Arc<Recipe>>,
    /// The form of each recipe, by name. Cached, because a preview needs one on every keystroke.
    forms: BTreeMap<String, Arc<RecipeForm>>,
    pub rejected: Vec<RejectedRecipeFile>,
}

/// A recipe file that could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedRecipeFile {
    pub file: String,
    pub error: RecipeError,
}

/// A recipe file from the administrator.
#[derive(Debug, Clone)]
pub struct AdminRecipeFile {
    /// Path below the recipes folder: `sequencing.toml`, `blocks/licence.toml`.
    pub name: String,
    pub text: String,
}

impl RecipeCatalog {
    /// Only the recipes that ship with the portal.
    pub fn shipped() -> Self {
        Self::with_files(&[])
    }

    /// The shipped recipes plus the administrator's own files, which replace shipped ones of the same name.
    pub fn with_files(own: &[AdminRecipeFile]) -> Self {
        let mut files: Vec<AdminRecipeFile> = ShippedRecipes::iter()
            .filter_map(|name| {
                let text = ShippedRecipes::get(&name)?.data;
                Some(AdminRecipeFile { name: name.into_owned(), text: String::from_utf8_lossy(&text).into_owned() })
            })
            .filter(|file| !own.iter().any(|own| own.name == file.name))
            .collect();
        files.extend(own.iter().cloned());
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let mut book = Self::default();
        let (blocks, recipes): (Vec<&AdminRecipeFile>, Vec<&AdminRecipeFile>) =
            files.iter().partition(|file| file.name.starts_with("blocks/"));
        for file in blocks {
            match SharedRecipeBlock::parse(&file.text) {
                Ok(block) => book.blocks.push(block),
                Err(error) => {
                    book.rejected.push(RejectedRecipeFile { file: file.name.clone(), error });
                }
            }
        }
        for file in recipes {
            match Recipe::parse(&file.text, &book.blocks) {
                Ok(recipe) if book.find(&recipe.name).is_some() => {
                    let problem = format!("Another file has the name “{}” already.", recipe.name);
                    let error = RecipeError { line: 0, problem };
                    book.rejected.push(RejectedRecipeFile { file: file.name.clone(), error });
                }
                Ok(recipe) => {
                    let form = RecipeForm::new(&recipe, &book.blocks);
                    book.forms.insert(recipe.name.clone(), Arc::new(form));
                    book.recipes.push(Arc::new(recipe));
                }
                Err(error) => {
                    book.rejected.push(RejectedRecipeFile { file: file.name.clone(), error });
                }
            }
        }
        book.recipes.sort_by(|a, b| (a.shelf, a.order, &a.name).cmp(&(b.shelf, b.order, &b.name)));
        book
    }

    pub fn find(&self, name: &str) -> Option<&Arc<Recipe>> {
        self.recipes.iter().find(|recipe| recipe.name == name)
    }

    pub fn form(&self, recipe: &Recipe) -> Arc<RecipeForm> {
        let known = self.forms.get(&recipe.name).cloned();
        known.unwrap_or_else(|| Arc::new(RecipeForm::new(recipe, &self.blocks)))
    }
}
