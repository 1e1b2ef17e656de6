//! What a folder contains, read once and then sorted and filtered here: a folder of 100,000 names is shown a part at a
//! time.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::UnixTime;
use crate::domain::{RemoteName, RemotePath};
use crate::ssh::sftp::{RemoteDirEntry, RemoteDirListing, RemoteFileKind};

/// What programs that write TensorBoard's event files put into their names.
const EVENT_FILE_MARK: &[u8] = b"tfevents";

/// A folder as it was at some moment.
pub struct FolderContents {
    pub path: RemotePath,
    /// In the server's order.
    pub entries: Vec<RemoteDirEntry>,
    /// Whether the folder has more names than were read.
    pub is_truncated: bool,
    pub read_at: UnixTime,
    /// The order that was asked for last: the parts of a long list are asked for one after the other.
    last_order: Mutex<Option<(FolderOrder, Arc<[usize]>)>>,
}

/// Which entries are shown, and in which order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderOrder {
    pub sort: FolderSort,
    /// What names must contain, in any case; empty for all.
    pub filter: String,
    /// Whether names that begin with a dot are shown.
    pub shows_hidden: bool,
    /// An entry that is shown whatever it is called, and within the first `near_top` entries.
    pub selected: Option<RemoteName>,
    pub near_top: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FolderSort {
    pub column: FolderSortColumn,
    pub is_descending: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FolderSortColumn {
    #[default]
    Name,
    Size,
    Modified,
}

impl FolderSortColumn {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Size => "size",
            Self::Modified => "modified",
        }
    }
}

impl FolderSort {
    /// Reads `size`, or `-size` for the other direction. Anything else means by name.
    pub fn parse(text: &str) -> Self {
        let (is_descending, word) = text.strip_prefix('-').map_or((false, text), |word| (true, word));
        let columns = [FolderSortColumn::Name, FolderSortColumn::Size, FolderSortColumn::Modified];
        let column = columns.into_iter().find(|column| column.as_str() == word);
        column.map_or_else(Self::default, |column| Self { column, is_descending })
    }

    pub fn to_text(self) -> String {
        format!("{}{}", if self.is_descending { "-" } else { "" }, self.column.as_str())
    }

    /// What clicking on a column's heading asks for: the other direction if the folder is sorted by it, otherwise the
    /// direction that people mean (the largest and the latest first).
    #[must_use]
    pub fn clicked(self, column: FolderSortColumn) -> Self {
        let is_descending = if self.column == column { !self.is_descending } else { column != FolderSortColumn::Name };
        Self { column, is_descending }
    }
}

impl FolderContents {
    pub fn new(path: RemotePath, listing: RemoteDirListing, read_at: UnixTime) -> Self {
        let RemoteDirListing { entries, is_truncated } = listing;
        Self { path, entries, is_truncated, read_at, last_order: Mutex::default() }
    }

    /// The indices of the entries to show, in order. Folders come first.
    pub fn order(&self, wanted: &FolderOrder) -> Arc<[usize]> {
        let mut last = self.last_order.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((order, indices)) = last.as_ref()
            && order == wanted
        {
            return indices.clone();
        }
        let indices: Arc<[usize]> = self.sort_entries(wanted).into();
        *last = Some((wanted.clone(), indices.clone()));
        indices
    }

    fn sort_entries(&self, wanted: &FolderOrder) -> Vec<usize> {
        let filter = wanted.filter.to_lowercase();
        let is_selected = |entry: &RemoteDirEntry| wanted.selected.as_ref() == Some(&entry.name);
        let is_shown = |entry: &RemoteDirEntry| {
            let is_visible = wanted.shows_hidden || !entry.name.is_dot_name();
            let is_match = || filter.is_empty() || entry.name.to_string().to_lowercase().contains(&filter);
            is_selected(entry) || (is_visible && is_match())
        };
        let shown = self.entries.iter().enumerate().filter(|(_, entry)| is_shown(entry));
        let mut indices: Vec<usize> = shown.map(|(index, _)| index).collect();
        let entry = |index: &usize| self.entries.get(*index);
        indices.sort_by(|a, b| match (entry(a), entry(b)) {
            (Some(a), Some(b)) => compare_entries(a, b, wanted.sort),
            _ => Ordering::Equal,
        });
        let at = indices.iter().position(|index| entry(index).is_some_and(is_selected));
        if let Some(at) = at.filter(|at| *at >= wanted.near_top) {
            indices[..=at].rotate_right(1);
        }
        indices
    }

    /// How many names begin with a dot.
    pub fn count_hidden(&self) -> usize {
        self.entries.iter().filter(|entry| entry.name.is_dot_name()).count()
    }

    /// Whether TensorBoard could show something of it.
    pub fn has_event_files(&self) -> bool {
        let has_mark = |name: &[u8]| name.windows(EVENT_FILE_MARK.len()).any(|part| part == EVENT_FILE_MARK);
        self.entries.iter().any(|entry| has_mark(entry.name.as_bytes()))
    }

    /// Names that begin with what someone has typed so far, folders first.
    pub fn names_beginning(&self, typed: &str, most: usize) -> Vec<&RemoteDirEntry> {
        let typed = typed.to_lowercase();
        let fits = |entry: &&RemoteDirEntry| {
            let is_meant = !entry.name.is_dot_name() || typed.starts_with('.');
            is_meant && entry.name.as_text().is_some_and(|name| name.to_lowercase().starts_with(&typed))
        };
        let mut found: Vec<&RemoteDirEntry> = self.entries.iter().filter(fits).collect();
        found.sort_by(|a, b| compare_entries(a, b, FolderSort::default()));
        found.truncate(most);
        found
    }

    /// Roughly how much memory it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        let names: usize = self.entries.iter().map(|entry| entry.name.as_bytes().len()).sum();
        // The order that is kept with it, too.
        names + self.entries.len() * (size_of::<RemoteDirEntry>() + size_of::<usize>()) + self.path.as_bytes().len()
    }
}

fn compare_entries(a: &RemoteDirEntry, b: &RemoteDirEntry, sort: FolderSort) -> Ordering {
    let is_file = |entry: &RemoteDirEntry| entry.attrs.kind != RemoteFileKind::Folder;
    let by_name = || compare_names(a.name.as_bytes(), b.name.as_bytes());
    let by_column = match sort.column {
        FolderSortColumn::Name => by_name(),
        // The size of a folder says nothing about what is in it.
        FolderSortColumn::Size if !is_file(a) => Ordering::Equal,
        FolderSortColumn::Size => a.attrs.size.cmp(&b.attrs.size),
        FolderSortColumn::Modified => a.attrs.modified.cmp(&b.attrs.modified),
    };
    let by_column = if sort.is_descending { by_column.reverse() } else { by_column };
    is_file(a).cmp(&is_file(b)).then(by_column).then_with(by_name)
}

/// In any case, and numbers by their value: `run-2` before `Run-10`.
fn compare_names(a: &[u8], b: &[u8]) -> Ordering {
    let (mut rest_a, mut rest_b) = (a, b);
    loop {
        match (rest_a.first(), rest_b.first()) {
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let ((x, after_x), (y, after_y)) = (split_number(rest_a), split_number(rest_b));
                let by_value = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
                if by_value.is_ne() {
                    return by_value;
                }
                (rest_a, rest_b) = (after_x, after_y);
            }
            (Some(x), Some(y)) => {
                let by_letter = x.to_ascii_lowercase().cmp(&y.to_ascii_lowercase());
                if by_letter.is_ne() {
                    return by_letter;
                }
                (rest_a, rest_b) = (&rest_a[1..], &rest_b[1..]);
            }
            (None, None) => return a.cmp(b),
            (x, y) => return x.is_some().cmp(&y.is_some()),
        }
    }
}

/// The digits that a name begins with, without leading zeros, and what follows them.
fn split_number(name: &[u8]) -> (&[u8], &[u8]) {
    let end = name.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(name.len());
    let (digits, rest) = name.split_at(end);
    let zeros = digits.iter().position(|byte| *byte != b'0').unwrap_or(digits.len());
    (&digits[zeros..], rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssh::sftp::RemoteFileAttrs;

    fn entry(name: &str, kind: RemoteFileKind, size: u64, modified: i64) -> RemoteDirEntry {
        let attrs = RemoteFileAttrs { kind, size, modified: Some(UnixTime(modified)), mode: None, owner: None };
        RemoteDirEntry { name: RemoteName::parse(name.as_bytes()).unwrap(), attrs, is_link: false }
    }

    fn folder() -> FolderContents {
        use RemoteFileKind::{File, Folder, Link};
        let entries = vec![
            entry("run-10.log", File, 5, 30),
            entry("Run-2.log", File, 50, 10),
            entry("data", Folder, 4096, 5),
            entry(".cache", Folder, 4096, 99),
            entry(".bashrc", File, 1, 98),
            entry("lost", Link, 7, 50),
            entry("Checkpoints", Folder, 4096, 70),
            entry("events.out.tfevents.1", File, 9, 60),
        ];
        let listing = RemoteDirListing { entries, is_truncated: false };
        FolderContents::new(RemotePath::parse(b"/scratch/ada").unwrap(), listing, UnixTime(100))
    }

    fn names(order: &FolderOrder) -> Vec<String> {
        let folder = folder();
        folder.order(order).iter().map(|index| folder.entries[*index].name.to_string()).collect()
    }

    fn sorted(sort: &str) -> Vec<String> {
        names(&FolderOrder { sort: FolderSort::parse(sort), ..FolderOrder::default() })
    }

    #[test]
    fn folders_come_first_whatever_is_sorted_by() {
        let by_name = ["Checkpoints", "data", "events.out.tfevents.1", "lost", "Run-2.log", "run-10.log"];
        assert_eq!(sorted("name"), by_name);
        assert_eq!(sorted("nonsense"), by_name);
        assert_eq!(
            sorted("-name"),
            ["data", "Checkpoints", "run-10.log", "Run-2.log", "lost", "events.out.tfevents.1"]
        );
        assert_eq!(sorted("size")[2..], ["run-10.log", "lost", "events.out.tfevents.1", "Run-2.log"]);
        assert_eq!(sorted("-size")[..3], ["Checkpoints", "data", "Run-2.log"], "folders by name");
        assert_eq!(
            sorted("-modified"),
            ["Checkpoints", "data", "events.out.tfevents.1", "lost", "run-10.log", "Run-2.log"]
        );
    }

    #[test]
    fn headings_turn_the_order_round() {
        let by_name = FolderSort::default();
        let by_size = by_name.clicked(FolderSortColumn::Size);
        assert_eq!(
            (by_size.to_text().as_str(), by_size.clicked(FolderSortColumn::Size).to_text().as_str()),
            ("-size", "size")
        );
        assert_eq!(by_name.clicked(FolderSortColumn::Name).to_text(), "-name");
        assert_eq!(by_size.clicked(FolderSortColumn::Name), by_name);
        assert_eq!(FolderSort::parse(&by_size.to_text()), by_size);
    }

    #[test]
    fn names_are_filtered_and_hidden() {
        let order =
            |filter: &str, shows_hidden| FolderOrder { filter: filter.into(), shows_hidden, ..FolderOrder::default() };
        assert_eq!(names(&order("RUN", false)), ["Run-2.log", "run-10.log"]);
        assert_eq!(names(&order("zzz", true)), [""; 0]);
        assert_eq!(names(&order("", true)).len(), 8);
        assert_eq!(names(&order("bash", false)), [""; 0]);
        assert_eq!(names(&order("bash", true)), [".bashrc"]);
        assert_eq!(folder().count_hidden(), 2);
        assert!(folder().has_event_files());
    }

    #[test]
    fn a_selected_entry_is_always_near_the_top() {
        let select = |name: &str, near_top| FolderOrder {
            selected: RemoteName::parse(name.as_bytes()).ok(),
            near_top,
            ..FolderOrder::default()
        };
        assert_eq!(names(&select("run-10.log", 3))[..2], ["run-10.log", "Checkpoints"]);
        assert_eq!(names(&select("run-10.log", 200)), sorted("name"), "there already");
        assert!(names(&select(".bashrc", 200)).contains(&".bashrc".to_owned()), "although it is hidden");
        assert_eq!(names(&select("gone", 3)), sorted("name"));
    }

    #[test]
    fn an_order_is_kept_until_another_is_asked_for() {
        let (folder, order) = (folder(), FolderOrder::default());
        let first = folder.order(&order);
        assert!(Arc::ptr_eq(&first, &folder.order(&order)));
        folder.order(&FolderOrder { shows_hidden: true, ..FolderOrder::default() });
        assert_eq!(first, folder.order(&order));
    }

    #[test]
    fn names_are_suggested_by_their_beginning() {
        let folder = folder();
        let suggested = |typed: &str, most| -> Vec<String> {
            folder.names_beginning(typed, most).iter().map(|entry| entry.name.to_string()).collect()
        };
        assert_eq!(suggested("run", 10), ["Run-2.log", "run-10.log"]);
        assert_eq!(suggested("", 1), ["Checkpoints"]);
        assert_eq!(suggested(".", 10), [".cache", ".bashrc"]);
        assert_eq!(suggested("ata", 10), [""; 0]);
    }

    #[test]
    fn numbers_in_names_count_by_their_value() {
        for (small, large) in [("a2", "a10"), ("2", "10"), ("a", "b"), ("a", "aa"), ("a01b", "a1c"), ("A1", "a2")] {
            assert_eq!(compare_names(small.as_bytes(), large.as_bytes()), Ordering::Less, "{small} {large}");
            assert_eq!(compare_names(large.as_bytes(), small.as_bytes()), Ordering::Greater, "{small} {large}");
        }
        assert_ne!(compare_names(b"a01", b"a1"), Ordering::Equal, "different names are never equal");
        assert_eq!(compare_names(b"\xff\n", b"\xff\n"), Ordering::Equal);
    }
}
