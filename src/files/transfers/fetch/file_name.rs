//! The name of a downloaded file: the server proposes one, and nothing in it may be hidden or lead elsewhere.

use crate::domain::{RemoteName, RemotePathError};

const FALLBACK: &[u8] = b"download";

/// The name that the server gives, or the last part of the address.
pub(super) fn choose_file_name(content_disposition: &str, url_path: &str) -> Result<RemoteName, RemotePathError> {
    let last = url_path.rsplit('/').next().unwrap_or_default();
    let from_url = || decode(last).and_then(|name| clean(&name));
    let chosen = proposed_name(content_disposition).and_then(|name| clean(&name)).or_else(from_url);
    chosen.map_or_else(|| RemoteName::parse(FALLBACK), Ok)
}

/// `filename*=UTF-8''a%20b.txt` or `filename="a b.txt"`.
fn proposed_name(header: &str) -> Option<String> {
    let mut plain = None;
    for part in header.split(';').skip(1) {
        let Some((name, value)) = part.split_once('=') else { continue };
        let value = value.trim();
        match name.trim().to_ascii_lowercase().as_str() {
            "filename*" => {
                let encoded = value.strip_prefix("UTF-8''").or_else(|| value.strip_prefix("utf-8''"))?;
                return decode(encoded);
            }
            "filename" => plain = Some(value.trim_matches('"').replace("\\\"", "\"")),
            _ => {}
        }
    }
    plain
}

fn decode(encoded: &str) -> Option<String> {
    RemoteName::from_encoded(encoded).ok()?.as_text().map(str::to_owned)
}

/// Only the last part of a path, and no dot in front: a hidden file could change how someone's login works.
fn clean(name: &str) -> Option<RemoteName> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    RemoteName::from_typed(last.trim().trim_start_matches('.')).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_server_or_the_address_and_stay_in_the_folder() {
        for (header, path, expected) in [
            ("", "/data/set.tar.gz", "set.tar.gz"),
            ("", "/", "download"),
            ("", "/a%20b%C3%A4.txt", "a bä.txt"),
            ("", "/..%2F..%2Fetc%2Fpasswd", "download"),
            ("", "/.bash_profile", "bash_profile"),
            ("attachment; filename=\"results 1.csv\"", "/x", "results 1.csv"),
            ("attachment; filename=plain.csv", "/x", "plain.csv"),
            ("attachment; filename=\"x\"; filename*=UTF-8''%C3%BC.txt", "/y", "ü.txt"),
            ("attachment; filename=\"../../.ssh/authorized_keys\"", "/x", "authorized_keys"),
            ("attachment; filename=\"C:\\\\evil.exe\"", "/x", "evil.exe"),
            ("attachment; filename=\".bashrc\"", "/x", "bashrc"),
            ("attachment; filename=\"..\"", "/safe", "safe"),
            ("attachment; filename*=UTF-8''a%0Ab", "/safe", "safe"),
            ("inline", "/safe", "safe"),
        ] {
            assert_eq!(choose_file_name(header, path).unwrap().to_string(), expected, "{header} {path}");
        }
        let long = choose_file_name("", &format!("/{}", "x".repeat(300)));
        assert_eq!(long.unwrap().to_string(), "download");
    }
}
