//! The administrator's own recipe files: read at the start, and again when they change. A broken file is reported in
//! the log and on the recipes page; the others stay available.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::recipes::catalog::{AdminRecipeFile, RecipeCatalog};
use crate::recipes::recipe::MAX_RECIPE_FILE_LEN;

/// How often the folder is checked at most.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
const MAX_FILES: usize = 500;

/// The portal's recipes, reloaded when files change.
pub struct RecipeFolderCache {
    folder: PathBuf,
    loaded: Mutex<CachedRecipeFiles>,
}

struct CachedRecipeFiles {
    checked_at: Instant,
    files: Vec<RecipeFileStamp>,
    catalog: Arc<RecipeCatalog>,
}

/// A file, and the metadata that reveals a change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RecipeFileStamp {
    name: String,
    size: u64,
    modified_at: Option<SystemTime>,
}

impl RecipeFolderCache {
    /// The shipped recipes, and those in a folder, which need not exist.
    pub fn new(folder: PathBuf) -> Self {
        let files = list_files(&folder);
        let catalog = Arc::new(load_catalog(&folder, &files));
        Self { folder, loaded: Mutex::new(CachedRecipeFiles { checked_at: Instant::now(), files, catalog }) }
    }

    /// The current recipes.
    pub fn catalog(&self) -> Arc<RecipeCatalog> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.checked_at.elapsed() >= CHECK_INTERVAL {
            loaded.checked_at = Instant::now();
            let files = list_files(&self.folder);
            if files != loaded.files {
                loaded.catalog = Arc::new(load_catalog(&self.folder, &files));
                loaded.files = files;
            }
        }
        loaded.catalog.clone()
    }
}

fn list_files(folder: &Path) -> Vec<RecipeFileStamp> {
    let mut found = Vec::new();
    for (below, prefix) in [(folder.to_owned(), ""), (folder.join("blocks"), "blocks/")] {
        let Ok(entries) = std::fs::read_dir(below) else { continue };
        for entry in entries.flatten().take(MAX_FILES) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(facts) = std::fs::metadata(entry.path()) else { continue };
            if facts.is_file()
                && Path::new(&name).extension().is_some_and(|end| end == "toml")
                && !name.starts_with('.')
            {
                let changed = facts.modified().ok();
                found.push(RecipeFileStamp {
                    name: format!("{prefix}{name}"),
                    size: facts.len(),
                    modified_at: changed,
                });
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn load_catalog(folder: &Path, files: &[RecipeFileStamp]) -> RecipeCatalog {
    let text = |file: &RecipeFileStamp| {
        // Read an oversized file only far enough to report it.
        let most = u64::try_from(MAX_RECIPE_FILE_LEN).unwrap_or(u64::MAX).saturating_add(1);
        if file.size > most {
            return Some(" ".repeat(MAX_RECIPE_FILE_LEN + 1));
        }
        std::fs::read(folder.join(&file.name)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let own: Vec<AdminRecipeFile> =
        files.iter().filter_map(|file| Some(AdminRecipeFile { name: file.name.clone(), text: text(file)? })).collect();
    let catalog = RecipeCatalog::with_files(&own);
    for fault in &catalog.rejected {
        tracing::warn!(recipe.file = %fault.file, "Skipped a recipe file: {}", fault.error);
    }
    catalog
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_wrong_ones_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let count = RecipeCatalog::shipped().recipes.len();
        std::fs::write(folder.path().join("a.toml"), "name = 'a'\ntitle = 'A'\nsummary = 'S'\nscript = 'true'\n")
            .unwrap();
        std::fs::write(folder.path().join("b.toml"), "name = ").unwrap();
        std::fs::write(folder.path().join(".hidden.toml"), "x").unwrap();
        let files = RecipeFolderCache::new(folder.path().to_owned());
        let catalog = files.catalog();
        assert_eq!((catalog.recipes.len(), catalog.rejected.len()), (count + 1, 1));
        assert_eq!(catalog.rejected[0].file, "b.toml");
        std::fs::write(folder.path().join("b.toml"), "name = 'b'\ntitle = 'B'\nsummary = 'S'\nscript = 'true'\n")
            .unwrap();
        files.loaded.lock().unwrap().checked_at -= CHECK_INTERVAL;
        let catalog = files.catalog();
        assert_eq!((catalog.recipes.len(), catalog.rejected.len()), (count + 2, 0));
    }
}
