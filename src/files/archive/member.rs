//! What both archive formats write about a file, folder or link.

use crate::clock::UnixTime;
use crate::ssh::sftp::RemoteFileAttrs;

/// One file, folder or link in an archive. Its name is relative: it never leaves the folder that is unpacked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveEntryHeader {
    /// Folders are separated by `/`; it doesn't end with one.
    pub name: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
    pub modified: UnixTime,
    /// The numbers of user and group.
    pub owner: (u32, u32),
}

impl ArchiveEntryHeader {
    /// `None` if unpacking it could write outside the folder that is unpacked into.
    pub fn new(name: Vec<u8>, attrs: &RemoteFileAttrs, default_mode: u32) -> Option<Self> {
        is_safe_name(&name).then(|| Self {
            name,
            mode: attrs.mode.unwrap_or(default_mode),
            modified: attrs.modified.unwrap_or(UnixTime(0)),
            owner: attrs.owner.unwrap_or_default(),
        })
    }
}

fn is_safe_name(name: &[u8]) -> bool {
    name.split(|byte| *byte == b'/').all(|part| !part.is_empty() && part != b"." && part != b"..") && !name.contains(&0)
}

/// Whether Windows would read folders or a drive into a name that is a single one elsewhere (`..\x`, `C:x`).
pub(super) fn is_path_on_windows(name: &[u8]) -> bool {
    let is_drive = |part: &[u8]| part.len() > 1 && part[0].is_ascii_alphabetic() && part[1] == b':';
    name.contains(&b'\\') || name.split(|byte| *byte == b'/').any(is_drive)
}

/// Whether a link stays in the folder that the archive is unpacked into, as far as its text says.
pub(super) fn is_link_inside(name: &[u8], target: &[u8]) -> bool {
    if target.first() == Some(&b'/') {
        return false;
    }
    // The link's own folder, counted from the archive's top.
    let mut depth = memchr::memchr_iter(b'/', name).count();
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if depth == 0 => return false,
            b".." => depth -= 1,
            _ => depth += 1,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssh::sftp::RemoteFileKind;
    use proptest::prelude::*;

    const ATTRS: RemoteFileAttrs =
        RemoteFileAttrs { kind: RemoteFileKind::File, size: 0, modified: None, mode: None, owner: None };

    #[test]
    fn names_that_leave_the_folder_make_no_member() {
        for name in ["a", "a/b", "..a/...", "a\nb", "~", "-rf", " "] {
            assert!(ArchiveEntryHeader::new(name.into(), &ATTRS, 0o644).is_some(), "{name}");
        }
        for name in ["", "/", "/a", "..", ".", "a/..", "../a", "a/../../b", "a//b", "a/", "./a", "a\0b"] {
            assert!(ArchiveEntryHeader::new(name.into(), &ATTRS, 0o644).is_none(), "{name}");
        }
        for name in ["..\\a", "a/..\\b", "C:a", "a/c:\\b"] {
            assert!(is_path_on_windows(name.as_bytes()), "{name}");
        }
        assert!(!is_path_on_windows(b"12:30.log") && !is_path_on_windows(b"ab: c"));
    }

    #[test]
    fn links_that_lead_out_are_told_from_those_that_stay() {
        for (name, target, expected) in [
            ("data/latest", "run-7", true),
            ("data/latest", "../other/run", true),
            ("data/latest", "./run/../run", true),
            ("data/latest", "../../etc/passwd", false),
            ("latest", "../x", false),
            ("latest", "/etc/passwd", false),
            ("a/b/c", "x/../../../..", false),
        ] {
            assert_eq!(is_link_inside(name.as_bytes(), target.as_bytes()), expected, "{name} -> {target}");
        }
    }

    proptest! {
        #[test]
        fn a_member_never_goes_up(name in "[./a\\\\:]{0,12}") {
            if let Some(member) = ArchiveEntryHeader::new(name.into_bytes(), &ATTRS, 0o644) {
                prop_assert!(member.name[0] != b'/');
                prop_assert!(!member.name.split(|byte| *byte == b'/').any(|part| part == b".."));
            }
        }
    }
}
