//! Where responses may redirect.

use http::HeaderValue;
use proptest::prelude::*;

use super::world::passage;
use crate::proxy::location::confine_location;

fn leads(location: &str, from: &str) -> Option<String> {
    let value = HeaderValue::from_bytes(location.as_bytes()).unwrap();
    confine_location(&value, &passage(from)).map(|place| place.to_str().unwrap().to_owned())
}

#[test]
fn places_of_the_upstream_are_told_under_the_prefix() {
    for (location, public) in [
        ("/x", "/b/word/app/x"),
        ("/", "/b/word/app/"),
        ("x", "/b/word/app/dir/x"),
        ("./x", "/b/word/app/dir/x"),
        ("../x?q=1#f", "/b/word/app/x?q=1#f"),
        ("..", "/b/word/app/"),
        ("../../../../b/other/app/", "/b/word/app/b/other/app/"),
        ("%2e%2e/%2E%2e/../x", "/b/word/app/x"),
        ("?q", "/b/word/app/dir/page?q"),
        ("#f", "/b/word/app/dir/page?old#f"),
        ("", "/b/word/app/dir/page?old"),
        ("http://localhost/x", "/b/word/app/x"),
        ("HTTP://LOCALHOST:80", "/b/word/app/"),
        ("https://localhost?q", "/b/word/app/?q"),
        ("//localhost/x", "/b/word/app/x"),
        ("https://boards.example.org/b/word/app/x", "/b/word/app/x"),
        ("https://boards.example.org/x", "/b/word/app/x"),
        ("/b/word/app/x", "/b/word/app/x"),
        ("/b/word/app", "/b/word/app/"),
        ("/b/word/app?q", "/b/word/app/?q"),
        ("/b/word/application", "/b/word/app/b/word/application"),
        ("/b/word/app/../../other/app/", "/b/word/app/other/app/"),
        ("/a b\u{e9}", "/b/word/app/a%20b%C3%A9"),
        ("/x?to=https://elsewhere/..", "/b/word/app/x?to=https://elsewhere/.."),
    ] {
        assert_eq!(leads(location, "/dir/page?old").as_deref(), Some(public), "{location}");
    }
}

#[test]
fn places_elsewhere_are_not_told() {
    for location in [
        "https://elsewhere/",
        "//elsewhere/x",
        "///elsewhere",
        "/\\elsewhere",
        "\\\\elsewhere",
        "/\t/elsewhere",
        "http:elsewhere",
        "http:/elsewhere",
        "http:///elsewhere",
        "http://localhost@elsewhere/",
        "http://localhost:8080/",
        "http://localhost.elsewhere/",
        "http://elsewhere#@localhost/",
        "https://boards.example.org.elsewhere/",
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "data:text/html,x",
        "mailto:a@b",
        "/..//elsewhere",
        "/.//elsewhere",
        "/%2f/elsewhere",
        "/a/..%2f..%2fx",
        "/%252e%252e/x",
        "/a%0d%0aSet-Cookie:x",
    ] {
        assert_eq!(leads(location, "/dir/page"), None, "{location}");
    }
}

proptest! {
    #[test]
    fn whatever_is_told_stays_under_the_prefix(
        bytes in prop::collection::vec(
            prop::sample::select(&b"/./..%2e%2f\\:?#@a&\t hlocalhost\xff"[..]), 0..32
        ),
        scheme in prop::sample::select(vec!["", "http:", "http://", "//", "/", "https://localhost"]),
    ) {
        let text = [scheme.as_bytes(), bytes.as_slice()].concat();
        let Ok(value) = HeaderValue::from_bytes(&text) else { return Ok(()) };
        if let Some(place) = confine_location(&value, &passage("/dir/page?q")) {
            let place = place.to_str().unwrap();
            prop_assert!(place.starts_with("/b/word/app/"), "{place}");
            let path = place.split(['?', '#']).next().unwrap().to_ascii_lowercase();
            let plain = path.replace("%2e", ".").replace("%2f", "/");
            prop_assert!(!plain.split('/').any(|part| part == ".."), "{place}");
            prop_assert!(!place.contains('\\'));
        }
    }
}
