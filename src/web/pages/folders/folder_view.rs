//! A folder, as the dialog and the page show it.

use crate::cluster::discovered_facts::DiscoveredUserFolder;
use crate::cluster::folders::{
    FolderEntry, FolderEntryKind, FolderError, FolderListing, MAX_ENTRIES, join_path, parent_path,
};
use crate::files::places::label_of;
use crate::web::pages::folders::FolderBrowser;

/// A field's name is one word; anything longer isn't ours.
const MAX_FIELD_LEN: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PickMode {
    File,
    Folder,
    Any,
}

impl PickMode {
    /// Parses the mode; anything unknown means either.
    pub fn parse(word: &str) -> Self {
        match word {
            "file" => Self::File,
            "folder" => Self::Folder,
            _ => Self::Any,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Folder => "folder",
            Self::Any => "any",
        }
    }
}

pub struct OpenedFolder {
    path: String,
    listing: Result<FolderListing, FolderError>,
}

impl OpenedFolder {
    /// A listing says itself which folder it is of.
    pub fn new(wanted: &str, listing: Result<FolderListing, FolderError>) -> Self {
        let path = match &listing {
            Ok(listing) => listing.path.clone(),
            Err(_) => crate::text::strip_hidden(wanted, usize::MAX),
        };
        Self { path, listing }
    }
}

pub struct FolderView {
    /// The cluster's short name.
    pub slug: String,
    pub title: String,
    pub pick: PickMode,
    /// The field that the choice is for.
    pub field: String,
    /// Whether this is the inside of the dialog, where things can be chosen.
    pub in_dialog: bool,
    /// The person's own folders, to start from.
    pub starts: Vec<FolderCrumb>,
    /// The path down to this folder.
    pub crumbs: Vec<FolderCrumb>,
    /// The URL of the parent folder; empty at the root.
    pub up: String,
    pub path: String,
    /// The folder as a form writes it, with a variable such as `$SCRATCH`.
    pub short: String,
    pub rows: Vec<FolderViewRow>,
    /// Whether the listing was cut off.
    pub is_cut: bool,
    /// Why there is no listing.
    pub trouble: Option<FolderError>,
    /// The name of a folder that couldn't be created.
    pub new_name: String,
    /// Why it couldn't be created.
    pub problem: String,
}

/// A link to a folder.
pub struct FolderCrumb {
    pub label: String,
    /// Its URL; empty for the folder that is shown.
    pub href: String,
    pub path: String,
}

pub struct FolderViewRow {
    pub entry: FolderEntry,
    /// Where it leads, if it is a folder that can be opened.
    pub href: String,
    /// What goes into the form if it is chosen; empty if it can't be.
    pub value: String,
}

impl FolderViewRow {
    pub const fn icon(&self) -> &'static str {
        match self.entry.kind {
            FolderEntryKind::Folder => "folder",
            FolderEntryKind::File => "file",
            FolderEntryKind::Other => "neutral",
        }
    }

    pub fn size(&self) -> String {
        if self.entry.kind == FolderEntryKind::File { crate::format::bytes(self.entry.size) } else { String::new() }
    }

    /// Why it can be neither opened nor chosen; empty if it can.
    pub fn why_not(&self) -> &'static str {
        match self.entry.kind {
            FolderEntryKind::Other => "Not a file",
            _ if !self.entry.is_choosable => "Unusable name",
            _ => "",
        }
    }

    pub fn hint(&self) -> &'static str {
        match self.entry.kind {
            FolderEntryKind::Other => "This is a device, a pipe or a broken link.",
            _ => "Its name contains characters that can't be displayed or typed. Rename it first.",
        }
    }
}

impl FolderView {
    pub fn new(browser: &FolderBrowser, pick: PickMode, field: &str, folder: OpenedFolder) -> Self {
        let (cluster, names) = (&browser.request.cluster.row, &browser.folder_names);
        let field: String = field.chars().take(MAX_FIELD_LEN).collect();
        let url = |path: &str| folder_url(&cluster.slug, path, pick, &field);
        let OpenedFolder { path, listing } = folder;
        let start = |folder: &DiscoveredUserFolder| FolderCrumb {
            label: label_of(folder, None),
            href: url(&folder.path),
            path: folder.path.clone(),
        };
        let starts: Vec<FolderCrumb> = browser.discovered.folders.iter().map(start).collect();
        let (entries, is_cut, trouble) = match listing {
            Ok(listing) => (listing.entries, listing.is_cut, None),
            Err(problem) => (Vec::new(), false, Some(problem)),
        };
        let row = |entry: FolderEntry| {
            let entry_path = join_path(&path, &entry.name);
            let can_open = entry.is_choosable && entry.kind == FolderEntryKind::Folder;
            let can_pick = entry.is_choosable && entry.kind == FolderEntryKind::File && pick != PickMode::Folder;
            FolderViewRow {
                href: if can_open { url(&entry_path) } else { String::new() },
                value: if can_pick { names.abbreviate(&entry_path) } else { String::new() },
                entry,
            }
        };
        Self {
            slug: cluster.slug.clone(),
            title: cluster.title.clone(),
            crumbs: build_crumbs(&path, &starts, &url),
            up: parent_path(&path).map(|parent| url(&parent)).unwrap_or_default(),
            short: names.abbreviate(&path),
            rows: entries.into_iter().map(row).collect(),
            starts,
            pick,
            in_dialog: browser.request.context.is_fragment,
            path,
            is_cut,
            trouble,
            new_name: String::new(),
            problem: String::new(),
            field,
        }
    }

    /// Whether the current folder belongs to this start.
    pub fn is_in(&self, start: &FolderCrumb) -> bool {
        innermost_start(&self.path, &self.starts).is_some_and(|inner| inner.path == start.path)
    }

    /// Whether the folder itself can be chosen.
    pub fn can_use(&self) -> bool {
        self.in_dialog && self.trouble.is_none() && self.pick != PickMode::File
    }

    /// Whether connecting would help.
    pub fn is_disconnected(&self) -> bool {
        self.trouble == Some(FolderError::NotConnected)
    }

    /// Read aloud by screen readers when the folder changes.
    pub fn announcement(&self) -> String {
        let name = self.crumbs.last().map_or(self.path.as_str(), |step| step.label.as_str());
        match (&self.trouble, self.rows.len()) {
            (Some(problem), _) => problem.to_string(),
            (None, 0) => format!("{name}: empty"),
            (None, 1) => format!("{name}: 1 item"),
            (None, count) => format!("{name}: {count} items"),
        }
    }

    /// How many entries are shown at most.
    pub fn most(&self) -> usize {
        self.rows.len().min(MAX_ENTRIES)
    }

    /// The URL of this folder, to reload it.
    pub fn again(&self) -> String {
        folder_url(&self.slug, &self.path, self.pick, &self.field)
    }
}

/// The URL of a folder in the dialog.
pub fn folder_url(slug: &str, path: &str, pick: PickMode, field: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("path", path).append_pair("pick", pick.as_str());
    if !field.is_empty() {
        query.append_pair("field", field);
    }
    format!("/clusters/{slug}/folders?{}", query.finish())
}

/// The innermost of the person's own folders that contains a path.
fn innermost_start<'a>(path: &str, starts: &'a [FolderCrumb]) -> Option<&'a FolderCrumb> {
    let contains_path = |start: &&FolderCrumb| {
        path.strip_prefix(start.path.trim_end_matches('/')).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    starts.iter().filter(contains_path).max_by_key(|start| start.path.len())
}

/// The path down, starting at the person's own folder if it begins there. The last entry is the folder itself.
fn build_crumbs(path: &str, starts: &[FolderCrumb], url: &dyn Fn(&str) -> String) -> Vec<FolderCrumb> {
    let (mut so_far, label) = match innermost_start(path, starts) {
        Some(start) => (start.path.trim_end_matches('/').to_owned(), start.label.clone()),
        None if path.starts_with('/') => (String::new(), "/".to_owned()),
        None => return Vec::new(),
    };
    let first = if so_far.is_empty() { "/" } else { &so_far };
    let mut steps = vec![FolderCrumb { label, href: url(first), path: first.to_owned() }];
    let rest = path.get(so_far.len()..).unwrap_or_default().to_owned();
    for part in rest.split('/').filter(|part| !part.is_empty()) {
        so_far = join_path(&so_far, part);
        steps.push(FolderCrumb { label: part.to_owned(), href: url(&so_far), path: so_far.clone() });
    }
    if let Some(last) = steps.last_mut() {
        last.href.clear();
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(label: &str, path: &str) -> FolderCrumb {
        FolderCrumb { label: label.into(), href: path.into(), path: path.into() }
    }

    fn way(path: &str, starts: &[FolderCrumb]) -> String {
        let steps = build_crumbs(path, starts, &|path| path.to_owned());
        let words: Vec<String> = steps.iter().map(|step| format!("{}={}", step.label, step.href)).collect();
        words.join(" ")
    }

    #[test]
    fn the_way_down_begins_at_ones_own_folder() {
        let starts = [step("Home", "/home/ada"), step("Scratch", "/scratch/ada")];
        assert_eq!(way("/scratch/ada", &starts), "Scratch=");
        assert_eq!(way("/scratch/ada/a/b", &starts), "Scratch=/scratch/ada a=/scratch/ada/a b=");
        assert_eq!(way("/scratch/adam", &starts), "/=/ scratch=/scratch adam=");
        assert_eq!(way("/", &starts), "/=");
        assert_eq!(way("nonsense", &starts), "");
        assert_eq!(way("/a", &[]), "/=/ a=");
        assert_eq!(way("/a", &[step("Root", "/")]), "Root=/ a=");
    }
}
