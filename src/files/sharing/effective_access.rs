//! Who can really use a file: what its own permissions allow, unless a folder above keeps them out. All pages say it in
//! these words.

use futures_util::future::join_all;

use super::describe_mode;
use crate::domain::RemotePath;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{RemoteFileAttrs, RemoteFileKind};

/// The outermost folders on the way to a file that others can't pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClosedFolders {
    pub to_group: Option<RemotePath>,
    pub to_everyone: Option<RemotePath>,
}

/// A folder and all folders above it, outermost first, as far as they can be looked at. `folder` has no links in it.
pub async fn read_folders_above(session: &TransferSession, folder: &RemotePath) -> Vec<(RemotePath, RemoteFileAttrs)> {
    let paths = folder.ancestors_and_self();
    let attrs = join_all(paths.iter().map(|path| session.stat(path))).await;
    paths.into_iter().zip(attrs).filter_map(|(path, attrs)| Some((path, attrs.ok()?))).collect()
}

impl ClosedFolders {
    /// `group`: the file's group.
    pub fn find(above: &[(RemotePath, RemoteFileAttrs)], group: Option<u32>) -> Self {
        let first = |is_closed: &dyn Fn(&RemoteFileAttrs) -> bool| {
            above.iter().find(|(_, attrs)| is_closed(attrs)).map(|(path, _)| path.clone())
        };
        Self {
            to_group: first(&|attrs| is_closed_to_group(attrs, group)),
            to_everyone: first(&|attrs| attrs.mode.is_some_and(|mode| mode & 0o001 == 0)),
        }
    }
}

/// Whether a folder on the way keeps a file's group out. Where it belongs to another group, the file's group may be in
/// that one too: only a folder that is closed to both counts.
fn is_closed_to_group(folder: &RemoteFileAttrs, gid: Option<u32>) -> bool {
    let Some(mode) = folder.mode else { return false };
    let is_same_group = folder.owner.is_some_and(|(_, group)| Some(group) == gid);
    if is_same_group { mode & 0o010 == 0 } else { mode & 0o011 == 0 }
}

/// Who can use a file or folder, in words. `me`: the number of the person who looks, if it's known.
pub fn describe_access(attrs: &RemoteFileAttrs, closed: &ClosedFolders, me: Option<u32>) -> String {
    let Some(mode) = attrs.mode else { return "Unknown".to_owned() };
    let is_folder = attrs.kind == RemoteFileKind::Folder;
    let mut reachable = mode;
    if closed.to_group.is_some() {
        reachable &= !0o070;
    }
    if closed.to_everyone.is_some() {
        reachable &= !0o007;
    }
    let (allowed, real) = (describe_mode(mode, is_folder), describe_mode(reachable, is_folder));
    let words = if allowed == real { real } else { format!("{real}: others can't open a parent folder") };
    match (attrs.owner, me) {
        (Some((owner, _)), Some(me)) if owner != me => {
            words.replace("Only you", "Only its owner").replace("Your group", "Its group")
        }
        _ => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attrs(kind: RemoteFileKind, mode: u32, gid: u32) -> RemoteFileAttrs {
        RemoteFileAttrs { kind, size: 0, modified: None, mode: Some(mode), owner: Some((1, gid)) }
    }

    #[test]
    fn closed_parents_are_noticed() {
        for (mode, gid, is_closed) in [
            (0o700, 7, true),
            (0o700, 8, true),
            (0o750, 7, false),
            (0o705, 7, true),
            (0o705, 8, false),
            (0o750, 8, false),
            (0o711, 8, false),
        ] {
            let folder = attrs(RemoteFileKind::Folder, mode, gid);
            assert_eq!(is_closed_to_group(&folder, Some(7)), is_closed, "{mode:o} {gid}");
        }
    }

    /// What a file allows counts only for those who can get to it.
    #[test]
    fn folders_above_limit_who_can_use_a_file() {
        let folder = |path: &[u8], mode| (RemotePath::parse(path).unwrap(), attrs(RemoteFileKind::Folder, mode, 7));
        let words = |mode, above: &[u32], me| {
            let above: Vec<_> = above.iter().map(|mode| folder(b"/home/ada", *mode)).collect();
            let file = attrs(RemoteFileKind::File, mode, 7);
            describe_access(&file, &ClosedFolders::find(&above, Some(7)), me)
        };
        let closed = ": others can't open a parent folder";
        assert_eq!(words(0o644, &[0o755, 0o755], Some(1)), "Everyone on the cluster can read");
        assert_eq!(words(0o644, &[0o755, 0o700], Some(1)), format!("Only you{closed}"));
        assert_eq!(words(0o644, &[0o750, 0o755], Some(1)), format!("Your group can read{closed}"));
        assert_eq!(words(0o600, &[0o700], Some(1)), "Only you", "no folder changes that");
        assert_eq!(words(0o644, &[0o700], Some(2)), format!("Only its owner{closed}"));
        assert_eq!(words(0o640, &[0o755], Some(2)), "Its group can read");
        assert_eq!(words(0o640, &[0o755], None), "Your group can read");
    }
}
