//! Paths and names on a cluster. They are bytes: a name that isn't UTF-8 must come back exactly as it was. Pages, forms
//! and URLs carry them as encoded text.

use std::fmt;
use std::fmt::Write as _;

use crate::text::is_hidden;

/// Longer than any path that a cluster accepts.
const MAX_PATH_BYTES: usize = 4096;
/// The longest name that common file systems accept.
const MAX_NAME_BYTES: usize = 255;

/// An absolute path on a cluster, without `..`: where that leads depends on links, so nobody can tell from the path.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RemotePath(Vec<u8>);

/// The name of a file or folder on a cluster.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RemoteName(Vec<u8>);

/// Why a path or a name was rejected, as a sentence for the person who entered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RemotePathError {
    #[error("Enter a full path. It starts with a slash (/) and doesn't contain “..”.")]
    NotAbsolute,
    #[error("This path is too long.")]
    PathTooLong,
    #[error("Enter a name.")]
    EmptyName,
    #[error("Choose another name. This one is reserved.")]
    ReservedName,
    #[error("Leave out slashes: a name can't contain them.")]
    SlashInName,
    #[error("Use a shorter name.")]
    NameTooLong,
    #[error("Remove line breaks and invisible control characters.")]
    HiddenCharacters,
}

impl RemotePath {
    pub fn root() -> Self {
        Self(b"/".to_vec())
    }

    /// Reads a path as a cluster writes it; repeated slashes and `.` are dropped.
    pub fn parse(path: &[u8]) -> Result<Self, RemotePathError> {
        if path.len() > MAX_PATH_BYTES {
            return Err(RemotePathError::PathTooLong);
        }
        if path.first() != Some(&b'/') || path.contains(&0) {
            return Err(RemotePathError::NotAbsolute);
        }
        let mut normal = Vec::with_capacity(path.len());
        for part in path.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => return Err(RemotePathError::NotAbsolute),
                part => {
                    normal.push(b'/');
                    normal.extend_from_slice(part);
                }
            }
        }
        if normal.is_empty() {
            normal.push(b'/');
        }
        Ok(Self(normal))
    }

    /// Reads what [`Self::to_encoded`] wrote.
    pub fn from_encoded(text: &str) -> Result<Self, RemotePathError> {
        Self::parse(&decode(text))
    }

    /// As text that any form, URL or JSON can carry: `%`, hidden characters and invalid UTF-8 are written as `%XX`.
    pub fn to_encoded(&self) -> String {
        encode(&self.0)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path as text, if it contains nothing that a person couldn't read or type.
    pub fn as_text(&self) -> Option<&str> {
        as_plain_text(&self.0)
    }

    #[must_use]
    pub fn join(&self, name: &RemoteName) -> Self {
        let mut path = self.0.clone();
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        path.extend_from_slice(&name.0);
        Self(path)
    }

    /// The folder that it is in; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        let at = self.0.iter().rposition(|byte| *byte == b'/')?;
        match (at, self.0.len()) {
            (0, 1) => None,
            (0, _) => Some(Self::root()),
            (at, _) => Some(Self(self.0[..at].to_vec())),
        }
    }

    /// Its last part; `None` for the root.
    pub fn name(&self) -> Option<RemoteName> {
        let at = self.0.iter().rposition(|byte| *byte == b'/')?;
        (at + 1 < self.0.len()).then(|| RemoteName(self.0[at + 1..].to_vec()))
    }

    /// Whether it is this folder or lies inside it.
    pub fn is_within(&self, folder: &Self) -> bool {
        match self.0.strip_prefix(folder.0.as_slice()) {
            Some(rest) => rest.is_empty() || rest[0] == b'/' || folder.0 == b"/",
            None => false,
        }
    }

    /// The parts below `folder`; `None` if it isn't inside.
    pub fn relative_to(&self, folder: &Self) -> Option<&[u8]> {
        let rest = self.is_within(folder).then(|| &self.0[folder.0.len()..])?;
        Some(rest.strip_prefix(b"/").unwrap_or(rest))
    }

    /// The folders that lead to it, the root first, then itself.
    pub fn ancestors_and_self(&self) -> Vec<Self> {
        let mut all = vec![self.clone()];
        while let Some(parent) = all.last().and_then(Self::parent) {
            all.push(parent);
        }
        all.reverse();
        all
    }
}

impl RemoteName {
    /// Reads a name as a cluster writes it: any bytes that a file system allows.
    pub fn parse(name: &[u8]) -> Result<Self, RemotePathError> {
        match name {
            b"" => Err(RemotePathError::EmptyName),
            b"." | b".." => Err(RemotePathError::ReservedName),
            _ if name.contains(&b'/') => Err(RemotePathError::SlashInName),
            _ if name.contains(&0) => Err(RemotePathError::HiddenCharacters),
            _ if name.len() > MAX_NAME_BYTES => Err(RemotePathError::NameTooLong),
            _ => Ok(Self(name.to_vec())),
        }
    }

    /// Reads a name that a person chose for something new: nothing hidden in it, no space around it.
    pub fn from_typed(name: &str) -> Result<Self, RemotePathError> {
        let name = name.trim();
        if name.chars().any(|c| is_hidden(c) || c == char::REPLACEMENT_CHARACTER) {
            return Err(RemotePathError::HiddenCharacters);
        }
        Self::parse(name.as_bytes())
    }

    /// Reads what [`Self::to_encoded`] wrote.
    pub fn from_encoded(text: &str) -> Result<Self, RemotePathError> {
        Self::parse(&decode(text))
    }

    /// See [`RemotePath::to_encoded`].
    pub fn to_encoded(&self) -> String {
        encode(&self.0)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// See [`RemotePath::as_text`].
    pub fn as_text(&self) -> Option<&str> {
        as_plain_text(&self.0)
    }

    /// Whether programs leave it out of listings unless asked: it begins with a dot.
    pub fn is_dot_name(&self) -> bool {
        self.0.first() == Some(&b'.')
    }

    /// What follows the last dot, in lower case; empty if nothing does.
    pub fn extension(&self) -> String {
        let at = self.0.iter().rposition(|byte| *byte == b'.').filter(|at| *at > 0);
        at.map(|at| String::from_utf8_lossy(&self.0[at + 1..]).to_lowercase()).unwrap_or_default()
    }
}

/// For people: what can't be shown is replaced.
fn to_shown(bytes: &[u8]) -> String {
    let shown = |c: char| if is_hidden(c) { char::REPLACEMENT_CHARACTER } else { c };
    String::from_utf8_lossy(bytes).chars().map(shown).collect()
}

macro_rules! shown {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&to_shown(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.to_encoded())
            }
        }
    };
}
shown!(RemotePath);
shown!(RemoteName);

fn as_plain_text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.chars().any(|c| is_hidden(c) || c == char::REPLACEMENT_CHARACTER)).then_some(text)
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let escape = |text: &mut String, bytes: &[u8]| {
        for byte in bytes {
            let _ = write!(text, "%{byte:02X}");
        }
    };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '%' || is_hidden(c) {
                escape(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(c);
            }
        }
        escape(&mut text, chunk.invalid());
    }
    text
}

fn decode(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let value =
            digits.and_then(|two| std::str::from_utf8(two).ok()).and_then(|two| u8::from_str_radix(two, 16).ok());
        decoded.push(value.unwrap_or(*byte));
        at += if value.is_some() { 3 } else { 1 };
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_are_written_in_one_way_or_refused() {
        for (path, expected) in [
            ("/", Some("/")),
            ("//", Some("/")),
            ("/home//alice/./", Some("/home/alice")),
            ("/home/..alice/...", Some("/home/..alice/...")),
            ("/it's $(a) `b` \\ *", Some("/it's $(a) `b` \\ *")),
            ("/a\nb", Some("/a\nb")),
            ("/home/../etc", None),
            ("/..", None),
            ("home/alice", None),
            ("", None),
            ("~", None),
            ("/a\0b", None),
        ] {
            let read = RemotePath::parse(path.as_bytes());
            assert_eq!(read.ok().map(|path| path.0), expected.map(|path| path.as_bytes().to_vec()), "{path}");
        }
        assert_eq!(RemotePath::parse("/x".repeat(3000).as_bytes()), Err(RemotePathError::PathTooLong));
    }

    #[test]
    fn a_path_knows_where_it_lies() {
        let path = |text: &str| RemotePath::parse(text.as_bytes()).unwrap();
        assert_eq!(path("/a/b").parent(), Some(path("/a")));
        assert_eq!(path("/a").parent(), Some(path("/")));
        assert_eq!(path("/").parent(), None);
        assert_eq!(path("/").name(), None);
        assert_eq!(path("/a/b.TXT").name().unwrap().extension(), "txt");
        assert_eq!(path("/.bashrc").name().unwrap().extension(), "");
        assert_eq!(path("/").join(&RemoteName::parse(b"a").unwrap()), path("/a"));
        assert!(
            path("/a/b").is_within(&path("/a"))
                && path("/a").is_within(&path("/a"))
                && path("/a").is_within(&path("/"))
        );
        assert!(!path("/ab").is_within(&path("/a")) && !path("/a").is_within(&path("/a/b")));
        assert_eq!(path("/a/b/c").relative_to(&path("/a")), Some(&b"b/c"[..]));
        assert_eq!(path("/a").relative_to(&path("/")), Some(&b"a"[..]));
        assert_eq!(path("/a").relative_to(&path("/b")), None);
        assert_eq!(path("/a/b").ancestors_and_self(), [path("/"), path("/a"), path("/a/b")]);
    }

    #[test]
    fn names_for_something_new_have_nothing_hidden() {
        for good in ["data", "my data", "Ünï", "-rf", "<b>", ".config", "100%"] {
            assert_eq!(RemoteName::from_typed(good).unwrap().as_text(), Some(good));
        }
        assert_eq!(RemoteName::from_typed("  data ").unwrap().as_bytes(), b"data");
        for bad in ["", " ", ".", "..", "a/b", "/", "a\nb", "a\u{202E}b", "a\0"] {
            assert!(RemoteName::from_typed(bad).is_err(), "{bad:?}");
        }
        assert!(RemoteName::from_typed(&"x".repeat(256)).is_err());
    }

    #[test]
    fn names_that_are_no_text_are_shown_but_not_as_text() {
        let name = RemoteName::parse(b"bad\xff\n").unwrap();
        assert_eq!((name.to_string().as_str(), name.to_encoded().as_str()), ("bad\u{FFFD}\u{FFFD}", "bad%FF%0A"));
        assert_eq!(name.as_text(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_come_back_from_their_encoding(bytes in proptest::collection::vec(any::<u8>(), 1..60)) {
            prop_assert_eq!(decode(&encode(&bytes)), bytes.clone());
            if let Ok(name) = RemoteName::parse(&bytes) {
                prop_assert_eq!(RemoteName::from_encoded(&name.to_encoded()), Ok(name.clone()));
                let path = RemotePath::root().join(&name);
                prop_assert_eq!(path.name(), Some(name));
                prop_assert_eq!(RemotePath::from_encoded(&path.to_encoded()), Ok(path));
            }
        }

        #[test]
        fn a_path_that_is_taken_is_absolute_and_goes_down(path in "[/.a~ %2]{0,12}") {
            if let Ok(path) = RemotePath::from_encoded(&path) {
                prop_assert_eq!(path.0[0], b'/');
                prop_assert_eq!(RemotePath::parse(&path.0), Ok(path.clone()));
                prop_assert!(!path.0.split(|byte| *byte == b'/').any(|part| part == b".." || part == b"."));
            }
        }
    }
}
