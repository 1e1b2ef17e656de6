//! What a client says about a file before it sends it: the header `Upload-Metadata`, as tus defines it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::clock::UnixTime;
use crate::domain::{RemoteName, RemotePath, RemotePathError};

/// Longer than a path and a few facts can be.
const MAX_METADATA_BYTES: usize = 16 * 1024;
/// Longer headers aren't stored as they are: one person can have thousands.
const MAX_STORED_BYTES: usize = 2 * 1024;
/// More folders inside one another than people make.
const MAX_PATH_PARTS: usize = 100;

/// Why the facts about a file can't be used, as a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UploadMetadataError {
    #[error("The upload's metadata can't be read.")]
    Malformed,
    #[error("The upload doesn't say which cluster it is for (cluster).")]
    NoCluster,
    #[error("The upload doesn't say which folder it is for (folder).")]
    NoFolder,
    #[error("The upload doesn't name the file (filename or relativePath).")]
    NoName,
    #[error("Files whose names begin with a dot can't be uploaded here. Rename the file first.")]
    HiddenName,
    #[error(transparent)]
    Path(#[from] RemotePathError),
}

/// Where a file goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadMetadata {
    /// The cluster's short name.
    pub cluster: String,
    /// An existing folder.
    pub folder: RemotePath,
    /// The file's place in it: the folders that lead to it, then its name. Never empty.
    pub relative: Vec<RemoteName>,
    /// Whether it may replace a file with the same name.
    pub replaces: bool,
    /// The file's own time.
    pub modified_at: Option<UnixTime>,
}

/// What a client says, as far as it can be read.
#[derive(Default)]
pub(super) struct UploadFacts {
    cluster: Option<String>,
    folder: Option<RemotePath>,
    pub(super) name: Option<RemoteName>,
    relative: Option<Vec<RemoteName>>,
    replaces: bool,
    pub(super) modified_at: Option<UnixTime>,
}

impl UploadMetadata {
    /// Reads the header: pairs of a key and a value in base64, separated by commas.
    pub(super) fn read_facts(header: &str) -> Result<UploadFacts, UploadMetadataError> {
        if header.len() > MAX_METADATA_BYTES {
            return Err(UploadMetadataError::Malformed);
        }
        let mut facts = UploadFacts::default();
        for pair in header.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once(' ').unwrap_or((pair, ""));
            let value = STANDARD.decode(value.trim()).map_err(|_| UploadMetadataError::Malformed)?;
            let text = || std::str::from_utf8(&value).map_err(|_| UploadMetadataError::Malformed);
            match key {
                "cluster" => facts.cluster = Some(text()?.to_owned()),
                "folder" => facts.folder = Some(RemotePath::from_encoded(text()?)?),
                "filename" => facts.name = Some(RemoteName::parse(&value)?),
                "relativePath" => facts.relative = Some(parse_relative_path(&value)?),
                "replace" => facts.replaces = value == b"yes",
                // Times that SFTP can carry.
                "modified" => {
                    facts.modified_at = text()?.parse::<u32>().ok().map(|seconds| UnixTime(i64::from(seconds)));
                }
                _ => {}
            }
        }
        Ok(facts)
    }

    /// What a person says about a file of theirs.
    pub fn parse(header: &str) -> Result<Self, UploadMetadataError> {
        let facts = Self::read_facts(header)?;
        let name = facts.name.map(|name| vec![name]);
        let metadata = Self {
            cluster: facts.cluster.ok_or(UploadMetadataError::NoCluster)?,
            folder: facts.folder.ok_or(UploadMetadataError::NoFolder)?,
            relative: facts.relative.or(name).ok_or(UploadMetadataError::NoName)?,
            replaces: facts.replaces,
            modified_at: facts.modified_at,
        };
        metadata.check()
    }

    /// The whole path has a limit, too.
    pub(super) fn check(self) -> Result<Self, UploadMetadataError> {
        RemotePath::parse(self.target().as_bytes())?;
        Ok(self)
    }

    /// The file's path.
    pub fn target(&self) -> RemotePath {
        self.relative.iter().fold(self.folder.clone(), |path, name| path.join(name))
    }

    /// What is stored of the header: all of it, or only the file's name if it is long.
    pub(super) fn to_stored(&self, header: &str) -> String {
        match self.relative.last() {
            Some(name) if header.len() > MAX_STORED_BYTES => format!("filename {}", STANDARD.encode(name.as_bytes())),
            _ => header.to_owned(),
        }
    }

    /// The folders between [`Self::folder`] and the file, the outermost first.
    pub fn folders(&self) -> Vec<RemotePath> {
        parent_folders(&self.folder, &self.relative)
    }
}

/// The file's name as the uploader chose it; `None` if the header can't be read any more.
pub(super) fn chosen_name(header: &str, is_for_drop_box: bool) -> Option<RemoteName> {
    let facts = UploadMetadata::read_facts(header).ok()?;
    let relative = facts.relative.filter(|_| !is_for_drop_box);
    relative.and_then(|mut names| names.pop()).or(facts.name)
}

/// The folders that lead from `folder` to a file in it, the outermost first.
pub(super) fn parent_folders(folder: &RemotePath, relative: &[RemoteName]) -> Vec<RemotePath> {
    let mut path = folder.clone();
    let parents = relative.iter().take(relative.len().saturating_sub(1));
    parents
        .map(|name| {
            path = path.join(name);
            path.clone()
        })
        .collect()
}

/// A path inside an uploaded folder: every part is a plain name, so it can only lead down.
pub(super) fn parse_relative_path(path: &[u8]) -> Result<Vec<RemoteName>, RemotePathError> {
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').take(MAX_PATH_PARTS + 1).collect();
    if parts.len() > MAX_PATH_PARTS {
        return Err(RemotePathError::PathTooLong);
    }
    parts.into_iter().map(RemoteName::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(pairs: &[(&str, &[u8])]) -> String {
        let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key} {}", STANDARD.encode(value))).collect();
        pairs.join(",")
    }

    fn parse(name: &[u8]) -> Result<UploadMetadata, UploadMetadataError> {
        UploadMetadata::parse(&header(&[("cluster", b"key"), ("folder", b"/home/a%FF"), ("relativePath", name)]))
    }

    #[test]
    fn facts_are_read_as_they_were_sent() {
        let text = header(&[
            ("cluster", b"key"),
            ("folder", b"/home/alice"),
            ("filename", b"line\nbreak \xff"),
            ("replace", b"yes"),
            ("modified", b"1700000000"),
            ("filetype", b"text/plain"),
        ]);
        let read = UploadMetadata::parse(&format!("{text},is_confidential")).unwrap();
        assert_eq!(read.cluster, "key");
        assert_eq!(read.target().as_bytes(), b"/home/alice/line\nbreak \xff");
        assert_eq!((read.replaces, read.modified_at), (true, Some(UnixTime(1_700_000_000))));
        assert_eq!(read.folders(), []);
    }

    #[test]
    fn folders_of_a_path_are_told_from_the_outside_in() {
        let read = parse(b"a/b/c.txt").unwrap();
        assert_eq!(read.target().as_bytes(), b"/home/a\xff/a/b/c.txt");
        let folders: Vec<Vec<u8>> = read.folders().iter().map(|path| path.as_bytes().to_vec()).collect();
        assert_eq!(folders, [b"/home/a\xff/a".to_vec(), b"/home/a\xff/a/b".to_vec()]);
    }

    #[test]
    fn the_chosen_name_is_the_last_part_of_the_path() {
        let text = header(&[("filename", b"a.txt"), ("relativePath", b"x/b.txt")]);
        let name =
            |header: &str, is_for_drop_box| chosen_name(header, is_for_drop_box).map(|name| name.as_bytes().to_vec());
        assert_eq!(name(&text, false).unwrap(), b"b.txt");
        assert_eq!(name(&text, true).unwrap(), b"a.txt", "guests choose no folders");
        assert_eq!(name(&header(&[("filename", b"a.txt")]), false).unwrap(), b"a.txt");
        assert_eq!(name("", false), None);
    }

    #[test]
    fn long_headers_are_not_stored() {
        let whole: [(&str, &[u8]); 3] = [("cluster", b"key"), ("folder", b"/home"), ("relativePath", b"a/b.txt")];
        let short = header(&whole);
        assert_eq!(UploadMetadata::parse(&short).unwrap().to_stored(&short), short);
        let long = header(&[&whole[..], &[("other", &[b'x'; 10_000])]].concat());
        let stored = UploadMetadata::parse(&long).unwrap().to_stored(&long);
        assert_eq!(stored, "filename Yi50eHQ=");
        assert_eq!(chosen_name(&stored, false).unwrap().as_bytes(), b"b.txt");
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        for bad in ["", "/", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "a//b", "a/", "./a", "a/./b", "a\0b"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(parse("x/".repeat(200).trim_end_matches('/').as_bytes()).is_err());
        assert!(parse(&[b'x'; 256]).is_err());
        for good in ["%2e%2e", "..a", "a/...", "-rf", "<b>", "\\..\\x"] {
            assert_eq!(
                parse(good.as_bytes()).unwrap().target().as_bytes(),
                [b"/home/a\xff/", good.as_bytes()].concat()
            );
        }
    }

    #[test]
    fn incomplete_facts_are_refused() {
        let whole: [(&str, &[u8]); 3] = [("cluster", b"key"), ("folder", b"/home"), ("filename", b"a")];
        for left_out in 0..3 {
            let mut pairs = whole.to_vec();
            pairs.remove(left_out);
            assert!(UploadMetadata::parse(&header(&pairs)).is_err(), "{pairs:?}");
        }
        for bad in ["", "cluster !!", "cluster a2V5,folder fi9h,filename YQ=="] {
            assert!(UploadMetadata::parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_taken_lies_inside_the_folder(path in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(read) = parse(&path) {
                let target = read.target();
                prop_assert!(target.is_within(&read.folder) && target != read.folder);
                prop_assert_eq!(RemotePath::parse(target.as_bytes()), Ok(target.clone()));
                prop_assert_eq!(target.relative_to(&read.folder), Some(&path[..]));
            }
        }

        #[test]
        fn no_header_breaks_the_reader(text in ".{0,200}") {
            let _ = UploadMetadata::parse(&text);
        }
    }
}
