//! Which paths are let through.

use proptest::prelude::*;

use crate::proxy::clean_path;

#[test]
fn ordinary_paths_pass_as_they_are() {
    for path in [
        "/",
        "/data/plugin/scalars/tags?run=a%2Fb&tag=..",
        "/a//b/",
        "/a%2Fb",
        "/100%25.png",
        "/.well-known/x",
        "/a..b/...",
        "/ajax-api/2.0/mlflow/runs/search",
        "/caf%C3%A9",
        "/?next=//elsewhere",
    ] {
        assert_eq!(clean_path(path).as_deref(), Some(path), "{path}");
    }
    assert_eq!(clean_path("").as_deref(), Some("/"));
    assert_eq!(clean_path("?a=b").as_deref(), Some("/?a=b"));
}

#[test]
fn what_passes_can_be_sent() {
    for byte in 0..=127_u8 {
        for path in [format!("/{}", char::from(byte)), format!("/?{}", char::from(byte))] {
            if let Some(clean) = clean_path(&path) {
                assert!(http::uri::PathAndQuery::try_from(clean.as_ref()).is_ok(), "{path:?}");
            }
        }
    }
}

#[test]
fn what_could_leave_its_place_does_not_pass() {
    for path in [
        "http://elsewhere/",
        "elsewhere",
        "*",
        "//elsewhere/",
        "/%2felsewhere",
        "/%2Felsewhere",
        "/%252felsewhere",
        "/..",
        "/../x",
        "/a/..",
        "/a/./b",
        "/.",
        "/a/%2e%2e/b",
        "/a/.%2E/b",
        "/a/..%2fb",
        "/a%2f..%2fb",
        "/a%2f%2e%2e",
        "/a/%252e%252e/b",
        "/a/%25252e%25252e/b",
        "/a/%2525252525252e/b",
        "/a/..;x/b",
        "/a/..%3bx/b",
        "/a\\b",
        "/a/..\\b",
        "/a%5cb",
        "/a%5C..%5Cb",
        "/a%00",
        "/a%0d%0aX: y",
        "/a\r\nX: y",
        "/a b",
        "/a\u{e9}",
        "/a%c0%ae%c0%ae/",
        "/a%",
        "/a%2",
        "/a%zz",
        "/a#b",
        "/?a#b",
        "/?a=\"",
        "/<b>",
    ] {
        assert_eq!(clean_path(path), None, "{path:?}");
    }
    assert_eq!(clean_path(&format!("/{}", "a".repeat(5000))), None);
    assert_eq!(clean_path(&format!("/?{}", "a".repeat(40_000))), None);
}

/// Whether a path leaves its folder on a server that decodes it this many times and accepts both slashes.
fn climbs(path: &str, decodings: usize) -> bool {
    let mut bytes = path.as_bytes().to_vec();
    for _ in 0..decodings {
        let mut next = Vec::new();
        let mut rest = bytes.as_slice();
        while let Some((first, after)) = rest.split_first() {
            let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
            let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
            if let Some(byte) = byte.filter(|_| *first == b'%') {
                next.push(byte);
                rest = &after[2..];
            } else {
                next.push(*first);
                rest = after;
            }
        }
        bytes = next;
    }
    bytes.split(|byte| matches!(byte, b'/' | b'\\')).any(|part| part == b"..")
}

proptest! {
    #[test]
    fn nothing_climbs_however_often_it_is_decoded(
        path in "/([./%\\\\;25eEfFcC?a]|%2e|%2E|%2f|%25|\\.\\.){0,24}"
    ) {
        if let Some(clean) = clean_path(&path) {
            let path = clean.split('?').next().unwrap_or_default();
            for decodings in 0..6 {
                prop_assert!(!climbs(path, decodings), "{path} after {decodings}");
            }
            prop_assert!(!clean.starts_with("//"));
            prop_assert!(clean.starts_with('/'));
        }
    }

    #[test]
    fn no_text_makes_it_panic_or_change(text in "\\PC{0,40}|[/%.a-f0-9?#\\x00-\\x20]{0,40}") {
        if let Some(clean) = clean_path(&text) {
            prop_assert!(clean.as_ref() == text || clean.strip_prefix('/') == Some(text.as_str()));
            prop_assert!(http::uri::PathAndQuery::try_from(clean.as_ref()).is_ok(), "{clean}");
        }
    }
}
