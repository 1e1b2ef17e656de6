//! What a job left behind, as its page lists it: the newest first; those of an array by task.

use std::collections::HashMap;

use crate::clock::UnixTime;
use crate::domain::{RemoteName, RemotePath};
use crate::files::downloads::entity_tag;
use crate::files::preview::{has_picture_name, has_preview_name};
use crate::files::results::{JobResultFile, JobResults, find_task};
use crate::format;
use crate::ssh::sftp::{RemoteFileAttrs, RemoteFileKind};
use crate::web::pages::files::download::download_url;
use crate::web::pages::files::{raw_url, view_url};

/// How many files are shown, if they aren't grouped.
const MAX_SHOWN: usize = 50;
/// How many groups are shown, and how many files of each.
const MAX_GROUPS: usize = 20;
const MAX_SHOWN_PER_GROUP: usize = 10;
/// How many pictures are shown small, and how large their files may be: they are loaded as they are.
const MAX_THUMBNAILS: usize = 24;
const MAX_THUMBNAIL_BYTES: u64 = 2 * 1024 * 1024;

/// The tasks of an array by number, each with its sweep point, which may be empty.
pub struct ArrayTaskPoints {
    pub array: u64,
    pub points: HashMap<u32, String>,
}

/// The files that are shown, and how many more there are.
pub struct GroupedJobResults {
    pub groups: Vec<JobResultGroup>,
    pub left_out: usize,
}

/// The files of one task or one folder, or all of them.
pub struct JobResultGroup {
    /// Empty if there is only one group.
    pub title: String,
    /// The page of the task; empty for other groups.
    pub href: String,
    /// The sweep point of the task; may be empty.
    pub point: String,
    pub rows: Vec<JobResultRow>,
}

pub struct JobResultRow {
    /// Relative to the folder that the job ran in.
    pub name: String,
    pub size: String,
    pub modified: UnixTime,
    pub view_href: String,
    pub download_href: String,
    /// Whether its page shows what is in it, as far as the name tells.
    pub has_preview: bool,
    pub thumbnail: Option<PictureThumbnail>,
}

pub struct PictureThumbnail {
    /// The same as long as the file is the same, so that a page that refreshes itself keeps the picture.
    pub id: String,
    pub src: String,
}

impl JobResultGroup {
    /// The rows that are shown as pictures, too.
    pub fn pictures(&self) -> Vec<(&JobResultRow, &PictureThumbnail)> {
        self.rows.iter().filter_map(|row| Some((row, row.thumbnail.as_ref()?))).collect()
    }
}

/// Whose files a group has.
#[derive(PartialEq, Eq, Clone)]
enum GroupKey {
    Task(u32),
    /// A folder below the job's.
    Folder(String),
    Others,
}

/// Groups the files of an array by task where their names tell it, and otherwise by the folder below the job's. A group is
/// where its newest file would be.
pub fn group_results(
    slug: &str,
    folder: &RemotePath,
    results: &JobResults,
    array: Option<&ArrayTaskPoints>,
) -> GroupedJobResults {
    let mut found: Vec<(GroupKey, Vec<&JobResultFile>)> = Vec::new();
    for file in &results.files {
        let key = array.map_or(GroupKey::Others, |array| array.find_key(folder, file));
        match found.iter_mut().find(|(other, _)| *other == key) {
            Some((_, files)) => files.push(file),
            None => found.push((key, vec![file])),
        }
    }
    let (is_single, mut shown, mut thumbnails) = (found.len() == 1, 0, 0);
    let max_rows = if is_single { MAX_SHOWN } else { MAX_SHOWN_PER_GROUP };
    let mut groups = Vec::new();
    for (key, files) in found.into_iter().take(MAX_GROUPS) {
        let mut rows: Vec<JobResultRow> =
            files.into_iter().take(max_rows).map(|file| JobResultRow::new(slug, folder, file)).collect();
        for row in &mut rows {
            thumbnails += usize::from(row.thumbnail.is_some());
            if thumbnails > MAX_THUMBNAILS {
                row.thumbnail = None;
            }
        }
        shown += rows.len();
        let point = |task: &u32| array.and_then(|array| array.points.get(task)).cloned().unwrap_or_default();
        let (title, href, point) = match (&key, array) {
            (GroupKey::Task(task), Some(array)) => {
                let title = format!("Task {task}");
                (title, format!("/jobs/{slug}/{}_{task}", array.array), point(task))
            }
            (GroupKey::Folder(name), _) => (name.clone(), String::new(), String::new()),
            _ if is_single => (String::new(), String::new(), String::new()),
            _ => ("Other files".to_owned(), String::new(), String::new()),
        };
        groups.push(JobResultGroup { title, href, point, rows });
    }
    GroupedJobResults { groups, left_out: results.files.len() - shown }
}

impl ArrayTaskPoints {
    fn find_key(&self, folder: &RemotePath, file: &JobResultFile) -> GroupKey {
        let inside = file.path.relative_to(folder);
        let name = file.path.name();
        let told = inside.or_else(|| name.as_ref().map(RemoteName::as_bytes)).unwrap_or_default();
        if let Some(task) = find_task(told, self.array, |task| self.points.contains_key(&task)) {
            return GroupKey::Task(task);
        }
        let first = inside.and_then(|inside| Some(&inside[..memchr::memchr(b'/', inside)?]));
        match first.and_then(|name| RemoteName::parse(name).ok()) {
            Some(first) => GroupKey::Folder(first.to_string()),
            None => GroupKey::Others,
        }
    }
}

impl JobResultRow {
    fn new(slug: &str, folder: &RemotePath, file: &JobResultFile) -> Self {
        let shown = file.path.to_string();
        let inside = shown.strip_prefix(&folder.to_string()).and_then(|name| name.strip_prefix('/'));
        Self {
            name: if file.path.is_within(folder) { inside.unwrap_or(&shown).to_owned() } else { shown },
            size: format::bytes(file.size),
            modified: file.modified,
            view_href: view_url(slug, &file.path),
            download_href: download_url(slug, &file.path),
            has_preview: has_preview_name(&file.path),
            thumbnail: PictureThumbnail::new(slug, file),
        }
    }
}

impl PictureThumbnail {
    fn new(slug: &str, file: &JobResultFile) -> Option<Self> {
        if !has_picture_name(&file.path) || !(1..=MAX_THUMBNAIL_BYTES).contains(&file.size) {
            return None;
        }
        let attrs = RemoteFileAttrs {
            kind: RemoteFileKind::File,
            size: file.size,
            modified: Some(file.modified),
            mode: None,
            owner: None,
        };
        let tag = entity_tag(&file.path, &attrs);
        Some(Self { id: format!("picture-{}", tag.trim_matches('"')), src: raw_url(slug, &file.path) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, size: u64) -> JobResultFile {
        JobResultFile { path: RemotePath::parse(path.as_bytes()).unwrap(), size, modified: UnixTime(9) }
    }

    fn group(files: Vec<JobResultFile>, array: Option<&ArrayTaskPoints>) -> GroupedJobResults {
        let folder = RemotePath::parse(b"/home/a/run").unwrap();
        let results = JobResults { files, changed_later: 0, is_truncated: false, read_at: UnixTime(10) };
        group_results("key", &folder, &results, array)
    }

    fn names(group: &JobResultGroup) -> Vec<&str> {
        group.rows.iter().map(|row| row.name.as_str()).collect()
    }

    #[test]
    fn files_of_an_array_are_grouped_by_task() {
        let points = [(1, "lr=0.1".to_owned()), (2, "lr=0.2".to_owned())].into();
        let array = ArrayTaskPoints { array: 812, points };
        let files = || {
            let paths = ["run/2/x", "run/1/x", "run/2/y", "run/plots/z", "run/log", "o/slurm-812_1.out", "o/l"];
            paths.map(|path| file(&format!("/home/a/{path}"), 1)).to_vec()
        };
        let grouped = group(files(), Some(&array));
        let titles: Vec<(&str, &str)> =
            grouped.groups.iter().map(|group| (group.title.as_str(), group.point.as_str())).collect();
        assert_eq!(titles, [("Task 2", "lr=0.2"), ("Task 1", "lr=0.1"), ("plots", ""), ("Other files", "")]);
        assert_eq!(grouped.groups[0].href, "/jobs/key/812_2");
        assert_eq!(names(&grouped.groups[0]), ["2/x", "2/y"]);
        assert_eq!(names(&grouped.groups[1]), ["1/x", "/home/a/o/slurm-812_1.out"]);
        assert_eq!(names(&grouped.groups[3]), ["log", "/home/a/o/l"]);
        let plain = group(files(), None);
        assert_eq!((plain.groups.len(), plain.groups[0].title.as_str(), plain.left_out), (1, "", 0));
    }

    #[test]
    fn what_is_shown_is_bounded() {
        let many = |count: usize| (0..count).map(|number| file(&format!("/home/a/run/f{number}"), 1)).collect();
        let grouped = group(many(70), None);
        assert_eq!((grouped.groups[0].rows.len(), grouped.left_out), (50, 20));
        let array = ArrayTaskPoints { array: 8, points: (0..100).map(|task| (task, String::new())).collect() };
        let files =
            (0..100).flat_map(|task| (0..12).map(move |part| file(&format!("/home/a/run/{task}/{part}.csv"), 1)));
        let grouped = group(files.collect(), Some(&array));
        assert_eq!((grouped.groups.len(), grouped.groups[0].rows.len()), (20, 10));
        assert_eq!(grouped.left_out, 1000);
        assert!(group(Vec::new(), Some(&array)).groups.is_empty());
    }

    #[test]
    fn small_pictures_are_shown_and_text_has_a_preview() {
        let files = [("a.png", 10), ("b.PNG", 3_000_000), ("c.svg", 0), ("d.csv", 5), ("e.bin", 5), ("f.log", 5)];
        let files = files.map(|(name, size)| file(&format!("/home/a/run/{name}"), size)).to_vec();
        let grouped = group(files, None);
        let rows = &grouped.groups[0].rows;
        let shown: Vec<(bool, bool)> = rows.iter().map(|row| (row.thumbnail.is_some(), row.has_preview)).collect();
        let expected = [(true, true), (false, true), (false, true), (false, true), (false, false), (false, true)];
        assert_eq!(shown, expected);
        let picture = grouped.groups[0].pictures()[0].1;
        assert_eq!(picture.src, "/files/key/raw?path=%2Fhome%2Fa%2Frun%2Fa.png");
        assert!(picture.id.starts_with("picture-") && !picture.id.contains(['"', ' ']), "{}", picture.id);
        let pictures = (0..40).map(|number| file(&format!("/home/a/run/{number}.png"), 1)).collect();
        assert_eq!(group(pictures, None).groups[0].pictures().len(), MAX_THUMBNAILS);
    }
}
