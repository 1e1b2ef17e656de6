//! The way down to a folder, as its page and the pages below it show it.

use super::places::load_places;
use super::{FilesRequest, files_url};
use crate::domain::RemotePath;
use crate::error::AppError;
use crate::files::StoragePlace;
use crate::files::places::innermost_place;

/// A link to a folder.
pub struct FolderStep {
    pub label: String,
    pub href: String,
    /// Whether it is, or contains, the folder that is shown.
    pub is_current: bool,
}

/// The way down to the folder of what a page is about.
pub struct FolderCrumbs {
    pub slug: String,
    pub cluster_title: String,
    pub steps: Vec<FolderStep>,
}

impl FolderCrumbs {
    pub async fn load(files: &FilesRequest, folder: &RemotePath) -> Result<Self, AppError> {
        let (places, _) = load_places(files).await?;
        let slug = files.slug();
        Ok(Self {
            slug: slug.to_owned(),
            cluster_title: files.request.cluster.row.title.clone(),
            steps: build_steps(folder, innermost_place(&places, folder), |path| files_url(slug, path)),
        })
    }
}

/// From the person's own place if the folder is in one. The last step is the folder itself.
pub fn build_steps(
    folder: &RemotePath,
    place: Option<&StoragePlace>,
    href: impl Fn(&RemotePath) -> String,
) -> Vec<FolderStep> {
    let all = folder.ancestors_and_self();
    let steps = all.into_iter().filter(|path| place.is_none_or(|place| path.is_within(&place.path)));
    let step = |path: RemotePath| FolderStep {
        label: match (place, path.name()) {
            (Some(place), _) if place.path == path => place.label.clone(),
            (_, Some(name)) => name.to_string(),
            (_, None) => "/".to_owned(),
        },
        is_current: path == *folder,
        href: href(&path),
    };
    steps.map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crumbs(path: &[u8], place: Option<&StoragePlace>) -> Vec<(String, bool)> {
        let steps = build_steps(&RemotePath::parse(path).unwrap(), place, |_| String::new());
        steps.into_iter().map(|step| (step.label, step.is_current)).collect()
    }

    #[test]
    fn the_way_down_begins_at_ones_own_place() {
        let scratch = StoragePlace {
            label: "Scratch".into(),
            path: RemotePath::parse(b"/scratch/ada").unwrap(),
            purpose: String::new(),
            purge: String::new(),
            room: String::new(),
            is_read_only: false,
            quota: None,
        };
        let own = |label: &str, is_current| (label.to_owned(), is_current);
        assert_eq!(crumbs(b"/scratch/ada", Some(&scratch)), [own("Scratch", true)]);
        assert_eq!(crumbs(b"/scratch/ada/a", Some(&scratch)), [own("Scratch", false), own("a", true)]);
        assert_eq!(crumbs(b"/scratch", None), [own("/", false), own("scratch", true)]);
        assert_eq!(crumbs(b"/", None), [own("/", true)]);
    }
}
