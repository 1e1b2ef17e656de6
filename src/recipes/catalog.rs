//! All recipes of the portal: those that come with the program and those that an administrator put beside it. A file
//! that is wrong is left out and told; it never keeps the others from being used.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use rust_embed::RustEmbed;

use super::form::RecipeForm;
use super::recipe::{Recipe, RecipeBlock, RecipeError};

#[derive(RustEmbed)]
#[folder = "recipes/"]
#[include = "*.toml"]
#[include = "blocks/*.toml"]
struct ShippedRecipes;

/// The recipes that there are.
#[derive(Debug, Clone, Default)]
pub struct RecipeCatalog {
    /// Parts that they share.
    pub blocks: Vec<RecipeBlock>,
    /// The recipes, in the order in which they are offered.
    pub recipes: Vec<Arc<Recipe>>,
    /// The form of each recipe, by its name. Previews need one with every key that is typed.
    forms: BTreeMap<String, Arc<RecipeForm>>,
    /// Files that could not be used.
    pub rejected: Vec<RejectedRecipeFile>,
}

/// A file that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedRecipeFile {
    pub file: String,
    pub error: RecipeError,
}

/// A file of an administrator's.
#[derive(Debug, Clone)]
pub struct RecipeFile {
    /// Its name below the folder: `sequencing.toml`, `blocks/licence.toml`.
    pub name: String,
    pub text: String,
}

impl RecipeCatalog {
    /// What comes with the program.
    pub fn shipped() -> Self {
        Self::with_files(&[])
    }

    /// What comes with the program, and an administrator's own files; those replace ours of the same name.
    pub fn with_files(own: &[RecipeFile]) -> Self {
        let mut files: Vec<RecipeFile> = ShippedRecipes::iter()
            .filter_map(|name| {
                let text = ShippedRecipes::get(&name)?.data;
                Some(RecipeFile {
                    name: name.into_owned(),
                    text: String::from_utf8_lossy(&text).into_owned(),
                })
            })
            .filter(|file| !own.iter().any(|own| own.name == file.name))
            .collect();
        files.extend(own.iter().cloned());
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let mut book = Self::default();
        let (blocks, recipes): (Vec<&RecipeFile>, Vec<&RecipeFile>) =
            files.iter().partition(|file| file.name.starts_with("blocks/"));
        for file in blocks {
            match RecipeBlock::parse(&file.text) {
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

    /// The recipe of a name.
    pub fn find(&self, name: &str) -> Option<&Arc<Recipe>> {
        self.recipes.iter().find(|recipe| recipe.name == name)
    }

    /// The form of one of its recipes.
    pub fn form(&self, recipe: &Recipe) -> Arc<RecipeForm> {
        let known = self.forms.get(&recipe.name).cloned();
        known.unwrap_or_else(|| Arc::new(RecipeForm::new(recipe, &self.blocks)))
    }
}
