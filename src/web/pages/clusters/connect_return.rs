//! Coming back after connecting: a page about files that needs a connection is remembered in a cookie for a while.

use axum_extra::extract::CookieJar;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::web::http::cookies::{self, CookieKind};
use crate::web::http::extractors::RequestContext;
use crate::web::http::flash::safe_local_path;

/// Long enough to find the phone and to enter a code.
const RETURN_SECS: i64 = 15 * 60;

/// Remembers the page to come back to, or forgets an earlier one.
pub fn remember(context: &RequestContext, slug: &str, back: Option<&str>) -> CookieJar {
    match back.filter(|back| is_files_page(slug, back)) {
        Some(back) => {
            // Cookies hold plain words only.
            let value = URL_SAFE_NO_PAD.encode(back);
            cookies::set(CookieJar::new(), &context.app, CookieKind::ReturnAfterConnect, &value, RETURN_SECS)
        }
        None if context.cookie(CookieKind::ReturnAfterConnect).is_some() => forget(context),
        None => CookieJar::new(),
    }
}

/// The page to come back to, if there is one on this cluster.
pub fn find(context: &RequestContext, slug: &str) -> Option<String> {
    let value = URL_SAFE_NO_PAD.decode(context.cookie(CookieKind::ReturnAfterConnect)?).ok()?;
    String::from_utf8(value).ok().filter(|back| is_files_page(slug, back))
}

pub fn forget(context: &RequestContext) -> CookieJar {
    cookies::clear(CookieJar::new(), &context.app, CookieKind::ReturnAfterConnect)
}

/// Only pages that need the connection.
fn is_files_page(slug: &str, back: &str) -> bool {
    let rest = back.strip_prefix("/files/").and_then(|rest| rest.strip_prefix(slug));
    let is_there = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['?', '/']));
    is_there && back.bytes().all(|byte| byte.is_ascii_graphic()) && safe_local_path(back) == back
}

#[cfg(test)]
mod tests {
    use super::is_files_page;

    #[test]
    fn one_comes_back_only_to_files_of_the_cluster() {
        for good in ["/files/key", "/files/key?path=%2Fscratch%2Fada&sort=-size", "/files/key/view?path=%2Fx"] {
            assert!(is_files_page("key", good), "{good}");
        }
        for bad in
            ["", "/", "/files/keys", "/files/other?path=%2F", "//files/key", "https://files/key", "/files/key?a b"]
        {
            assert!(!is_files_page("key", bad), "{bad}");
        }
        assert!(!is_files_page("key", &format!("/files/key?path={}", "x".repeat(2000))));
    }
}
