//! What a guest reads when files can't be shown or downloaded.

use axum::http::StatusCode;
use axum::response::Response;

use crate::ssh::RunCommandError;
use crate::ssh::sftp::SftpError;
use crate::web::dashboard_origin::viewer;
use crate::web::http::errors::{format_wait, set_retry_after};

const UNREACHABLE: &str = "These files can't be reached right now";

/// What a guest reads instead of the files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GuestFilesProblem {
    pub(super) status: StatusCode,
    pub(super) title: &'static str,
    pub(super) text: String,
    /// After how many seconds it is worth another try.
    retry_after: Option<i64>,
}

impl GuestFilesProblem {
    /// The owner's own words would mislead a guest, and may name what isn't theirs to know.
    pub(super) fn new(owner: &str, error: &SftpError) -> Self {
        let (status, title, text) = match error {
            SftpError::Run(RunCommandError::NotConnected) => (
                StatusCode::SERVICE_UNAVAILABLE,
                UNREACHABLE,
                format!(
                    "{owner} isn't connected to the cluster at the moment. Try again later, or ask them to connect."
                ),
            ),
            SftpError::Run(_) | SftpError::NoService | SftpError::NotWritten | SftpError::NotReplaced(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                UNREACHABLE,
                "The cluster is busy or isn't responding. Try again in a moment.".to_owned(),
            ),
            // The server's own words for a loop of links, among others.
            SftpError::Refused(_)
            | SftpError::NotFound
            | SftpError::NotAllowed
            | SftpError::NotAFolder
            | SftpError::NotAFile
            | SftpError::SpecialFile
            | SftpError::Replaced
            | SftpError::AlreadyExists => (
                StatusCode::NOT_FOUND,
                "This isn't available",
                format!(
                    "It was moved or deleted, or it isn't part of what was shared with you. Ask {owner} if you need it."
                ),
            ),
        };
        Self { status, title, text, retry_after: None }
    }

    pub(super) fn too_many(seconds: i64) -> Self {
        let text = format!("This link was used too often in a short time. Try again in {}.", format_wait(seconds));
        Self { status: StatusCode::TOO_MANY_REQUESTS, title: "Too many requests", text, retry_after: Some(seconds) }
    }

    pub(super) fn into_page(self) -> Response {
        let mut response = viewer::show_text(self.status, self.title, &self.text);
        if let Some(seconds) = self.retry_after {
            set_retry_after(&mut response, seconds);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_read_whose_connection_is_missing_and_nothing_of_the_cluster() {
        let told = GuestFilesProblem::new("Alice", &RunCommandError::NotConnected.into());
        assert_eq!(told.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(told.title.contains("can't be reached right now") && told.text.starts_with("Alice isn't connected"));
        let told = GuestFilesProblem::new("Alice", &SftpError::Refused("/home/alice/secret: bad".into()));
        assert!(!told.text.contains("secret"), "{}", told.text);
        for error in [SftpError::NotFound, SftpError::NotAllowed, SftpError::SpecialFile] {
            let told = GuestFilesProblem::new("Alice", &error);
            assert_eq!((told.status, told.title), (StatusCode::NOT_FOUND, "This isn't available"));
        }
    }

    #[test]
    fn guests_who_ask_too_often_are_told_when_to_come_back() {
        let page = GuestFilesProblem::too_many(2).into_page();
        assert_eq!(page.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(page.headers()["retry-after"], "2");
    }
}
