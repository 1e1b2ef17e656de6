//! All recipes of the portal: those that ship with it and the administrator's own files. A broken file is left out
//! and reported; it never blocks the others.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use rust_embed::RustEmbed;

use super::form::RecipeQuestionForm;
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
    forms: BTreeMap<String, Arc<RecipeQuestionForm>>,
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
        let mut catalog = Self::default();
        let (blocks, recipes): (Vec<&AdminRecipeFile>, Vec<&AdminRecipeFile>) =
            files.iter().partition(|file| file.name.starts_with("blocks/"));
        for file in blocks {
            let added = SharedRecipeBlock::parse(&file.text).map(|block| catalog.blocks.push(block));
            catalog.note_rejected(file, added);
        }
        for file in recipes {
            let added = Recipe::parse(&file.text, &catalog.blocks).and_then(|recipe| catalog.add(recipe));
            catalog.note_rejected(file, added);
        }
        catalog.recipes.sort_by(|a, b| (a.shelf, a.order, &a.name).cmp(&(b.shelf, b.order, &b.name)));
        catalog
    }

    fn add(&mut self, recipe: Recipe) -> Result<(), RecipeError> {
        if self.find(&recipe.name).is_some() {
            let problem = format!("Another file already uses the name “{}”.", recipe.name);
            return Err(RecipeError { line: 0, problem });
        }
        self.forms.insert(recipe.name.clone(), Arc::new(RecipeQuestionForm::new(&recipe, &self.blocks)));
        self.recipes.push(Arc::new(recipe));
        Ok(())
    }

    fn note_rejected(&mut self, file: &AdminRecipeFile, added: Result<(), RecipeError>) {
        self.rejected.extend(added.err().map(|error| RejectedRecipeFile { file: file.name.clone(), error }));
    }

    pub fn find(&self, name: &str) -> Option<&Arc<Recipe>> {
        self.recipes.iter().find(|recipe| recipe.name == name)
    }

    pub fn form(&self, recipe: &Recipe) -> Arc<RecipeQuestionForm> {
        let known = self.forms.get(&recipe.name).cloned();
        known.unwrap_or_else(|| Arc::new(RecipeQuestionForm::new(recipe, &self.blocks)))
    }
}
