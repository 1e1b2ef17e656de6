//! What those who are not a board's owner may ask of it: reading, and nothing that writes, uploads or calls out. Pure.

use super::Kind;

/// Whether a guest's request passes. `path` is the part after the board's prefix, percent-decoded and cleaned (see
/// `proxy::clean_path`), without its query.
pub fn is_allowed(kind: Kind, method: &str, path: &str) -> bool {
    let _ = (kind, method, path);
    false
}
