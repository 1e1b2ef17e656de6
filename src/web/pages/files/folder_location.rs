//! The addresses of a folder: its page, its rows, and the links to it from other pages.

use form_urlencoded::Serializer;

use crate::domain::{RemoteName, RemotePath};
use crate::files::{FolderOrder, FolderSort, FolderSortColumn};

/// How many rows are sent at a time.
pub const PAGE_ROWS: usize = 200;
/// Nobody filters by more.
const MAX_FILTER_CHARS: usize = 200;

/// A folder on a cluster, and how it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderLocation {
    /// The cluster's short name.
    pub slug: String,
    pub path: RemotePath,
    pub order: FolderOrder,
}

impl FolderLocation {
    pub fn new(slug: &str, path: RemotePath) -> Self {
        let order = FolderOrder { near_top: PAGE_ROWS, ..FolderOrder::default() };
        Self { slug: slug.to_owned(), path, order }
    }

    #[must_use]
    pub fn with_filter(mut self, filter: &str) -> Self {
        self.order.filter = filter.trim().chars().take(MAX_FILTER_CHARS).collect();
        self
    }

    #[must_use]
    pub fn with_hidden(mut self, shows_hidden: bool) -> Self {
        self.order.shows_hidden = shows_hidden;
        self
    }

    #[must_use]
    pub fn with_sort(mut self, sort: FolderSort) -> Self {
        self.order.sort = sort;
        self
    }

    #[must_use]
    pub fn with_selected(mut self, selected: Option<RemoteName>) -> Self {
        self.order.selected = selected;
        self
    }

    /// The same folder, after a click on a column's heading.
    #[must_use]
    pub fn sorted_by(&self, column: FolderSortColumn) -> Self {
        self.clone().with_sort(self.order.sort.clicked(column))
    }

    /// Another folder, shown in the same way.
    #[must_use]
    pub fn at(&self, path: RemotePath) -> Self {
        Self::new(&self.slug, path).with_sort(self.order.sort).with_hidden(self.order.shows_hidden)
    }

    fn query(&self) -> Serializer<'static, String> {
        let mut query = Serializer::new(String::new());
        query.append_pair("path", &self.path.to_encoded());
        if self.order.sort != FolderSort::default() {
            query.append_pair("sort", &self.order.sort.to_text());
        }
        if !self.order.filter.is_empty() {
            query.append_pair("filter", &self.order.filter);
        }
        if self.order.shows_hidden {
            query.append_pair("hidden", "true");
        }
        if let Some(name) = &self.order.selected {
            query.append_pair("select", &name.to_encoded());
        }
        query
    }

    /// The address of the page.
    pub fn page_url(&self) -> String {
        format!("/files/{}?{}", self.slug, self.query().finish())
    }

    /// The page with its rows, for browsers without JavaScript: the cluster is asked before it is sent.
    pub fn waiting_url(&self, from: usize) -> String {
        let mut query = self.query();
        query.append_pair("wait", "true");
        if from > 0 {
            query.append_pair("from", &from.to_string());
        }
        format!("/files/{}?{}", self.slug, query.finish())
    }

    /// The address of the rows from this one on.
    pub fn rows_url(&self, from: usize) -> String {
        let mut query = self.query();
        if from > 0 {
            query.append_pair("from", &from.to_string());
        }
        format!("/files/{}/rows?{}", self.slug, query.finish())
    }

    /// The rows as they are now.
    pub fn refresh_url(&self) -> String {
        format!("/files/{}/rows?{}", self.slug, self.query().append_pair("refresh", "true").finish())
    }
}

/// A link to a folder whose path a cluster or a person wrote: a full path, or one that begins with a variable such as
/// `$SCRATCH`. Empty if it is neither.
pub fn folder_link(slug: &str, path: &str) -> String {
    let path = path.trim();
    if path.starts_with(['~', '$']) {
        let query = Serializer::new(String::new()).append_pair("go", path).finish();
        return format!("/files/{slug}?{query}");
    }
    RemotePath::parse(path.as_bytes()).map(|path| FolderLocation::new(slug, path).page_url()).unwrap_or_default()
}

/// A link to a file in its folder; empty if it isn't a full path.
pub fn file_link(slug: &str, path: &str) -> String {
    let path = RemotePath::parse(path.trim().as_bytes()).ok();
    let parts = path.and_then(|path| Some((path.parent()?, path.name()?)));
    parts.map_or_else(String::new, |(folder, name)| {
        FolderLocation::new(slug, folder).with_selected(Some(name)).page_url()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_carry_any_name() {
        let path = RemotePath::parse(b"/a b/50%\xff&x=\n").unwrap();
        let location = FolderLocation::new("key", path).with_filter(" a&b ").with_hidden(true);
        assert_eq!(location.page_url(), "/files/key?path=%2Fa+b%2F50%2525%25FF%26x%3D%250A&filter=a%26b&hidden=true");
        let sorted = location.sorted_by(FolderSortColumn::Size);
        assert!(
            sorted.rows_url(200).ends_with("&sort=-size&filter=a%26b&hidden=true&from=200"),
            "{}",
            sorted.rows_url(200)
        );
        assert!(sorted.refresh_url().ends_with("&refresh=true"));
        let other = sorted.at(RemotePath::root());
        assert_eq!(other.page_url(), "/files/key?path=%2F&sort=-size&hidden=true", "the filter was for that folder");
    }

    #[test]
    fn links_from_other_pages_need_a_full_path() {
        assert_eq!(folder_link("key", "/scratch/ada/"), "/files/key?path=%2Fscratch%2Fada");
        assert_eq!(file_link("key", "/scratch/ada/x.log"), "/files/key?path=%2Fscratch%2Fada&select=x.log");
        assert_eq!(file_link("key", "/x"), "/files/key?path=%2F&select=x");
        assert_eq!(folder_link("key", "$SCRATCH/a b"), "/files/key?go=%24SCRATCH%2Fa+b");
        for bad in ["", "x.log", "./x", "/a/../b"] {
            assert_eq!((folder_link("key", bad), file_link("key", bad)), (String::new(), String::new()), "{bad}");
        }
        assert_eq!(file_link("key", "/"), "");
    }
}
