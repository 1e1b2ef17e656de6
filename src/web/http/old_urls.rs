//! Old paths and their current names, so that bookmarks, links in messages and pages left open during an upgrade keep
//! working.

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::error::AppError;

/// Answers requests that match no route: redirects an old path, or reports that there is no such page.
/// The redirect keeps method and body, so that a form on an old page still arrives.
pub async fn redirect_or_not_found(request: Request) -> Result<Response, AppError> {
    let uri = request.uri();
    let path = new_path(uri.path()).ok_or(AppError::NotFound)?;
    let location = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    Ok((StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, location)]).into_response())
}

/// The current path for an old one; `None` if the path isn't an old one.
fn new_path(path: &str) -> Option<String> {
    let old: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    let mut new = old.clone();
    match old.as_slice() {
        ["boards", ..] => {
            new[0] = "dashboards";
            match old.get(1..).unwrap_or_default() {
                ["links", ..] => new[1] = "guest-links",
                [_, "links"] => new[2] = "guest-links",
                _ => {}
            }
        }
        ["notices", rest @ ..] => {
            new[0] = "notifications";
            if rest == ["bell"] {
                new[1] = "badge";
            }
        }
        ["account", "notices", ..] => new[1] = "notifications",
        ["groups", _, "use", rest @ ..] => {
            new[2] = "usage";
            if rest == ["standing"] {
                new[3] = "fair-share";
            }
        }
        ["groups", _, "logins"] => new[2] = "user-names",
        ["groups", _, "reports", _, "links", ..] => new[4] = "guest-links",
        ["compose", _, _, "rework"] => new[3] = "edit",
        ["compose", _, _, "keep"] => new[3] = "save",
        ["compose", _, _, "sizes"] => new[3] = "right-size",
        ["clusters" | "submissions", _, "give-up"] => new[2] = "cancel",
        _ => {}
    }
    if matches!(old[0], "boards" | "groups" | "jobs" | "submissions")
        && let Some(last) = new.last_mut()
        && *last == "part"
    {
        *last = "fragment";
    }
    (new != old).then(|| format!("/{}", new.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_addresses_lead_to_the_new_ones() {
        for (old, new) in [
            ("/boards", "/dashboards"),
            ("/boards/new", "/dashboards/new"),
            ("/boards/7", "/dashboards/7"),
            ("/boards/7/part", "/dashboards/7/fragment"),
            ("/boards/links", "/dashboards/guest-links"),
            ("/boards/links/3/revoke", "/dashboards/guest-links/3/revoke"),
            ("/boards/7/links", "/dashboards/7/guest-links"),
            ("/notices", "/notifications"),
            ("/notices/bell", "/notifications/badge"),
            ("/account/notices/webhook", "/account/notifications/webhook"),
            ("/groups/1/use", "/groups/1/usage"),
            ("/groups/1/use/standing", "/groups/1/usage/fair-share"),
            ("/groups/1/use/part", "/groups/1/usage/fragment"),
            ("/groups/1/use/jobs.csv", "/groups/1/usage/jobs.csv"),
            ("/groups/1/logins", "/groups/1/user-names"),
            ("/groups/1/reports/2/links/3/revoke", "/groups/1/reports/2/guest-links/3/revoke"),
            ("/compose/fir/python-script/keep", "/compose/fir/python-script/save"),
            ("/clusters/fir/give-up", "/clusters/fir/cancel"),
            ("/jobs/fir/12_3/part", "/jobs/fir/12_3/fragment"),
            ("/submissions/9/part", "/submissions/9/fragment"),
        ] {
            assert_eq!(new_path(old).as_deref(), Some(new), "{old}");
        }
    }

    #[test]
    fn other_addresses_are_not_touched() {
        for path in ["/", "//evil.example", "/boards.evil", "/dashboards/7", "/part", "/groups/1", "", "/x/use"] {
            assert_eq!(new_path(path), None, "{path}");
        }
    }

    /// A path that starts with two slashes would be read as another host.
    #[test]
    fn redirects_stay_on_this_host() {
        for path in ["//boards/7", "/boards//evil.example", "/boards/../x"] {
            assert!(new_path(path).is_none_or(|new| !new.starts_with("//")), "{path}");
        }
    }
}
