//! All recipes of the portal: those that come with the program and those that an administrator put beside it. A file
//! that is wrong is left out and told; it never keeps the others from being used.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rust_embed::RustEmbed;

use super::recipe::{Block, Recipe, RecipeError};

#[derive(RustEmbed)]
#[folder = "recipes/"]
#[include = "*.toml"]
#[include = "blocks/*.toml"]
struct Shipped;

/// The recipes that there are.
#[derive(Debug, Clone, Default)]
pub struct Book {
    /// Parts that they share.
    pub blocks: Vec<Block>,
    /// The recipes, in the order in which they are offered.
    pub recipes: Vec<Arc<Recipe>>,
    /// Files that could not be used.
    pub faults: Vec<Fault>,
}

/// A file that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its name.
    pub file: String,
    /// Why.
    pub error: RecipeError,
}

/// A file of an administrator's.
#[derive(Debug, Clone)]
pub struct File {
    /// Its name below the folder: `sequencing.toml`, `blocks/licence.toml`.
    pub name: String,
    /// What it holds.
    pub text: String,
}

impl Book {
    /// What comes with the program.
    pub fn shipped() -> Self {
        Self::with(&[])
    }

    /// What comes with the program, and an administrator's own files; those replace ours of the same name.
    pub fn with(own: &[File]) -> Self {
        let mut files: Vec<File> = Shipped::iter()
            .filter_map(|name| {
                let text = Shipped::get(&name)?.data;
                Some(File {
                    name: name.into_owned(),
                    text: String::from_utf8_lossy(&text).into_owned(),
                })
            })
            .filter(|file| !own.iter().any(|own| own.name == file.name))
            .collect();
        files.extend(own.iter().cloned());
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let mut book = Self::default();
        let (blocks, recipes): (Vec<&File>, Vec<&File>) =
            files.iter().partition(|file| file.name.starts_with("blocks/"));
        for file in blocks {
            match Block::read(&file.text) {
                Ok(block) => book.blocks.push(block),
                Err(error) => book.faults.push(Fault { file: file.name.clone(), error }),
            }
        }
        for file in recipes {
            match Recipe::read(&file.text, &book.blocks) {
                Ok(recipe) if book.recipe(&recipe.name).is_some() => {
                    let problem = format!("Another file has the name “{}” already.", recipe.name);
                    let error = RecipeError { line: 0, problem };
                    book.faults.push(Fault { file: file.name.clone(), error });
                }
                Ok(recipe) => book.recipes.push(Arc::new(recipe)),
                Err(error) => book.faults.push(Fault { file: file.name.clone(), error }),
            }
        }
        book.recipes.sort_by(|a, b| (a.shelf, a.order, &a.name).cmp(&(b.shelf, b.order, &b.name)));
        book
    }

    /// The recipe of a name.
    pub fn recipe(&self, name: &str) -> Option<&Arc<Recipe>> {
        self.recipes.iter().find(|recipe| recipe.name == name)
    }
}
