//! The name under which a browser saves a download. Names on a cluster may contain anything; a header may not.

use std::fmt::Write as _;

use crate::text::is_hidden;

/// What stands for a character that can't be part of the name.
const SUBSTITUTE: char = '_';

/// The value of `Content-Disposition` for a download with this name (RFC 6266): plain ASCII for old programs, then the
/// whole name as UTF-8. What isn't text, can't be seen, or separates folders somewhere is replaced.
pub fn attachment_disposition(name: &[u8]) -> String {
    let shown: String = String::from_utf8_lossy(name).chars().map(substitute_unsafe).collect();
    let shown = if shown.trim_matches(['.', ' ']).is_empty() { "download".to_owned() } else { shown };
    let plain: String =
        shown.chars().map(|c| if c.is_ascii() && !"\"%;".contains(c) { c } else { SUBSTITUTE }).collect();
    let mut value = format!("attachment; filename=\"{plain}\"");
    if plain != shown {
        value.push_str("; filename*=UTF-8''");
        for byte in shown.bytes() {
            // The characters that need no escape in such a value (RFC 8187).
            if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
                value.push(char::from(byte));
            } else {
                let _ = write!(value, "%{byte:02X}");
            }
        }
    }
    value
}

fn substitute_unsafe(c: char) -> char {
    if is_hidden(c) || c.is_control() || "/\\".contains(c) || c == char::REPLACEMENT_CHARACTER { SUBSTITUTE } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_become_safe_headers() {
        for (name, expected) in [
            (&b"model.pt"[..], "attachment; filename=\"model.pt\""),
            (b"my data.csv", "attachment; filename=\"my data.csv\""),
            (b".bashrc", "attachment; filename=\".bashrc\""),
            (b"a\"; b=\"c", "attachment; filename=\"a__ b=_c\"; filename*=UTF-8''a%22%3B%20b%3D%22c"),
            (b"a\r\nSet-Cookie: x", "attachment; filename=\"a__Set-Cookie: x\""),
            ("Ünï.txt".as_bytes(), "attachment; filename=\"_n_.txt\"; filename*=UTF-8''%C3%9Cn%C3%AF.txt"),
            ("gpj\u{202e}exe".as_bytes(), "attachment; filename=\"gpj_exe\""),
            (b"bad\xff\xfe", "attachment; filename=\"bad__\""),
            (b"..\\..\\x", "attachment; filename=\".._.._x\""),
            (b"100%", "attachment; filename=\"100_\"; filename*=UTF-8''100%25"),
            (b"..", "attachment; filename=\"download\""),
            (b"", "attachment; filename=\"download\""),
        ] {
            assert_eq!(attachment_disposition(name), expected);
        }
    }

    proptest! {
        #[test]
        fn any_name_makes_one_header_with_one_name(name in proptest::collection::vec(any::<u8>(), 0..255)) {
            let value = attachment_disposition(&name);
            prop_assert!(value.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{}", value);
            prop_assert_eq!(value.matches('"').count(), 2);
            prop_assert!(!value.contains(['/', '\\']));
            prop_assert!(http::HeaderValue::from_str(&value).is_ok());
        }
    }
}
