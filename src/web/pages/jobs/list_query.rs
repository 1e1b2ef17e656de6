//! What someone wants to see of the jobs: which, in what order, in which columns. All of it is in the URL, so that
//! a view can be bookmarked and sent; only the columns are remembered.

use serde::Deserialize;

use crate::explain::GlossaryTerm;

/// Optional columns of the list, with their labels.
pub const OPTIONAL_COLUMNS: &[(&str, &str)] = &[
    ("account", "Account"),
    ("partition", "Partition"),
    ("nodes", "Nodes"),
    ("submitted", "Submitted"),
    ("priority", "Priority"),
    ("folder", "Working folder"),
];

/// The orders of the list, with their labels; the default comes first.
pub const SORT_ORDERS: &[(&str, &str)] =
    &[("", "Running first"), ("submitted", "Newest first"), ("name", "Name"), ("size", "Largest request first")];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobListScope {
    /// The person's own jobs that are active or ended recently.
    #[default]
    Mine,
    /// Jobs of the person's accounts.
    Group,
    /// The person's own jobs that have ended.
    History,
}

impl JobListScope {
    /// As in the URL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mine => "mine",
            Self::Group => "group",
            Self::History => "history",
        }
    }
}

/// The view, as the URL describes it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct JobListQuery {
    /// mine, group or history.
    #[serde(rename = "view")]
    pub scope: String,
    /// running, waiting, ended, problem; empty for all.
    pub state: String,
    /// A cluster's short name; empty for all.
    pub cluster: String,
    /// An account; empty for all.
    pub account: String,
    /// Search text for names, numbers and folders.
    pub q: String,
    /// name, submitted, size; empty for the default order.
    pub sort: String,
    pub page: usize,
    /// An array that is expanded into its tasks: `cluster-number`.
    pub open: String,
}

/// The longest search text.
const MAX_SEARCH_LEN: usize = 100;

impl JobListQuery {
    pub fn scope(&self) -> JobListScope {
        match self.scope.as_str() {
            "group" => JobListScope::Group,
            "history" => JobListScope::History,
            _ => JobListScope::Mine,
        }
    }

    /// The search text, in lower case.
    pub fn search_text(&self) -> String {
        self.q.trim().chars().take(MAX_SEARCH_LEN).collect::<String>().to_lowercase()
    }

    /// The page, from 1.
    pub fn page_number(&self) -> usize {
        self.page.clamp(1, 100_000)
    }

    pub fn is_filtered(&self) -> bool {
        [&self.state, &self.cluster, &self.account, &self.q].iter().any(|choice| !choice.is_empty())
    }

    /// The URL of this view.
    pub fn href(&self) -> String {
        self.build_href("/jobs")
    }

    /// The URL of its rows alone.
    pub fn rows_href(&self) -> String {
        self.build_href("/jobs/rows")
    }

    fn build_href(&self, path: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let page = if self.page_number() > 1 { self.page_number().to_string() } else { String::new() };
        for (name, value) in [
            ("view", &self.scope),
            ("state", &self.state),
            ("cluster", &self.cluster),
            ("account", &self.account),
            ("q", &self.q),
            ("sort", &self.sort),
            ("page", &page),
            ("open", &self.open),
        ] {
            let is_usual = value.is_empty() || (name == "view" && value == "mine");
            if !is_usual {
                query.append_pair(name, value);
            }
        }
        let query = query.finish();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
    }

    /// The same view with another state, from its first page.
    pub fn with_state(&self, state: &str) -> String {
        Self { state: state.to_owned(), page: 0, open: String::new(), ..self.clone() }.href()
    }

    /// The same view in another order.
    pub fn with_sort(&self, sort: &str) -> String {
        Self { sort: sort.to_owned(), page: 0, ..self.clone() }.href()
    }

    pub fn with_page(&self, page: usize) -> String {
        Self { page, ..self.clone() }.href()
    }

    /// The same view with an array expanded, or collapsed if it is expanded.
    pub fn with_open(&self, key: &str) -> String {
        let open = if self.open == key { String::new() } else { key.to_owned() };
        Self { open, ..self.clone() }.href()
    }

    /// The view of another scope.
    pub fn with_scope(&self, scope: JobListScope) -> String {
        Self { scope: scope.as_str().to_owned(), cluster: self.cluster.clone(), ..Self::default() }.href()
    }

    pub fn unfiltered(&self) -> String {
        Self { scope: self.scope.clone(), sort: self.sort.clone(), ..Self::default() }.href()
    }
}

/// What an optional column's title means, where it needs explaining.
pub fn column_term(name: &str) -> Option<GlossaryTerm> {
    match name {
        "account" => Some(GlossaryTerm::Account),
        "partition" => Some(GlossaryTerm::Partition),
        "nodes" => Some(GlossaryTerm::Node),
        "priority" => Some(GlossaryTerm::Priority),
        _ => None,
    }
}

/// The columns of a remembered choice.
pub fn parse_columns(remembered: &str) -> Vec<&'static str> {
    OPTIONAL_COLUMNS
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| remembered.split(',').any(|word| word == *name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_only_what_is_unusual() {
        let mut view = JobListQuery { scope: "mine".into(), page: 1, ..JobListQuery::default() };
        assert_eq!(view.href(), "/jobs");
        view.q = "a&b=c".into();
        view.page = 3;
        assert_eq!(view.href(), "/jobs?q=a%26b%3Dc&page=3");
        assert_eq!(view.with_state("waiting"), "/jobs?state=waiting&q=a%26b%3Dc");
        assert_eq!(view.with_scope(JobListScope::History), "/jobs?view=history");
    }

    #[test]
    fn an_array_opens_and_closes() {
        let view = JobListQuery::default();
        assert_eq!(view.with_open("fir-12"), "/jobs?open=fir-12");
        let view = JobListQuery { open: "fir-12".into(), ..JobListQuery::default() };
        assert_eq!(view.with_open("fir-12"), "/jobs");
    }

    #[test]
    fn unknown_columns_are_left_out() {
        assert_eq!(parse_columns("folder,account,<script>"), ["account", "folder"]);
    }
}
