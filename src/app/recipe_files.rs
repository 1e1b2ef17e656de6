//! The administrator's own recipe files: read at the start, and again when they change. A file that is wrong is told in
//! the log and on the page of recipes; the portal goes on with the others.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::recipes::book::{Book, File};
use crate::recipes::recipe::LONGEST;

/// The folder is looked at no more often than this.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// More files than this are not read.
const MOST_FILES: usize = 500;

/// The recipes of the portal.
pub struct RecipeFiles {
    folder: PathBuf,
    known: Mutex<Known>,
}

struct Known {
    looked: Instant,
    files: Vec<Seen>,
    book: Arc<Book>,
}

/// A file, and by what a change of it is noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    name: String,
    length: u64,
    changed: Option<SystemTime>,
}

impl RecipeFiles {
    /// The recipes that come with the program, and those in a folder, which need not be there.
    pub fn new(folder: PathBuf) -> Self {
        let files = list(&folder);
        let book = Arc::new(read(&folder, &files));
        Self { folder, known: Mutex::new(Known { looked: Instant::now(), files, book }) }
    }

    /// The recipes as they are now.
    pub fn book(&self) -> Arc<Book> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.looked.elapsed() >= LOOK_EVERY {
            known.looked = Instant::now();
            let files = list(&self.folder);
            if files != known.files {
                known.book = Arc::new(read(&self.folder, &files));
                known.files = files;
            }
        }
        known.book.clone()
    }
}

fn list(folder: &Path) -> Vec<Seen> {
    let mut found = Vec::new();
    for (below, prefix) in [(folder.to_owned(), ""), (folder.join("blocks"), "blocks/")] {
        let Ok(entries) = std::fs::read_dir(below) else { continue };
        for entry in entries.flatten().take(MOST_FILES) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(facts) = std::fs::metadata(entry.path()) else { continue };
            if facts.is_file()
                && Path::new(&name).extension().is_some_and(|end| end == "toml")
                && !name.starts_with('.')
            {
                let changed = facts.modified().ok();
                found.push(Seen { name: format!("{prefix}{name}"), length: facts.len(), changed });
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn read(folder: &Path, files: &[Seen]) -> Book {
    let text = |file: &Seen| {
        // One that is too long is read as far as it needs to be to say so.
        let most = u64::try_from(LONGEST).unwrap_or(u64::MAX).saturating_add(1);
        if file.length > most {
            return Some(" ".repeat(LONGEST + 1));
        }
        std::fs::read(folder.join(&file.name))
            .ok()
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let own: Vec<File> = files
        .iter()
        .filter_map(|file| Some(File { name: file.name.clone(), text: text(file)? }))
        .collect();
    let book = Book::with(&own);
    for fault in &book.faults {
        tracing::warn!(recipe.file = %fault.file, "A recipe file cannot be used: {}", fault.error);
    }
    book
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_wrong_ones_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let count = Book::shipped().recipes.len();
        std::fs::write(
            folder.path().join("a.toml"),
            "name = 'a'\ntitle = 'A'\nsummary = 'S'\nscript = 'true'\n",
        )
        .unwrap();
        std::fs::write(folder.path().join("b.toml"), "name = ").unwrap();
        std::fs::write(folder.path().join(".hidden.toml"), "x").unwrap();
        let files = RecipeFiles::new(folder.path().to_owned());
        let book = files.book();
        assert_eq!((book.recipes.len(), book.faults.len()), (count + 1, 1));
        assert_eq!(book.faults[0].file, "b.toml");
        std::fs::write(
            folder.path().join("b.toml"),
            "name = 'b'\ntitle = 'B'\nsummary = 'S'\nscript = 'true'\n",
        )
        .unwrap();
        files.known.lock().unwrap().looked -= LOOK_EVERY;
        let book = files.book();
        assert_eq!((book.recipes.len(), book.faults.len()), (count + 2, 0));
    }
}
