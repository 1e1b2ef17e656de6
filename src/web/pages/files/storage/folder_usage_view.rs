//! The largest folders of a place, as a treemap and as a table, and its files that will be deleted soon.

use std::collections::HashMap;

use super::{place_query, storage_url};
use crate::clock::UnixTime;
use crate::cluster::folder_sizes::{AgingFiles, FolderSizeReport, MeasuredFolder, PURGE_WARNING_DAYS};
use crate::domain::RemotePath;
use crate::files::folder_sizes::{FolderMeasurementState, StoredFolderSizes};
use crate::files::storage::PlaceWithQuota;
use crate::files::treemap::{TreemapRectangle, squarify};
use crate::format;
use crate::sites::quota::StorageQuota;
use crate::web::pages::files::files_url;
use crate::web::pages::home::resource_bars::folder_quota;

/// Rows of the table.
const MAX_ROWS: usize = 50;
/// Folders that the treemap shows at each level; the others share a rectangle.
const MAX_TILES: usize = 24;
const MAX_INNER_TILES: usize = 12;
/// The treemap's own units.
const CANVAS: TreemapRectangle = TreemapRectangle::new(0.0, 0.0, 1000.0, 500.0);
/// The part of a folder's rectangle that its name takes, above the folders in it.
const NAME_HEIGHT: f64 = 30.0;
const GAP: f64 = 3.0;
/// Folders in smaller rectangles aren't drawn.
const MIN_OUTER_SIZE: (f64, f64) = (70.0, 70.0);
/// Smaller rectangles have no name.
const MIN_NAMED_SIZE: (f64, f64) = (60.0, 28.0);
/// Rectangles that are less high have no figure below their name.
const MIN_HEIGHT_WITH_AMOUNT: f64 = 52.0;

/// By what folders are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderUsageUnit {
    Size,
    Files,
}

impl FolderUsageUnit {
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Size, Self::Files].into_iter().find(|unit| unit.as_str() == text)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Files => "files",
        }
    }

    /// Files are often the limit that is reached first.
    pub fn closest_to_limit(quota: Option<&StorageQuota>) -> Self {
        let bars = quota.map(folder_quota);
        let files = bars.as_ref().and_then(|bars| bars.files.as_ref()).filter(|files| !files.level.is_empty());
        match (bars.as_ref(), files) {
            (Some(bars), Some(files)) if files.value > bars.space.value => Self::Files,
            _ => Self::Size,
        }
    }

    fn amount(self, folder: &MeasuredFolder) -> u64 {
        match self {
            Self::Size => folder.bytes,
            Self::Files => folder.files.unwrap_or(0),
        }
    }

    fn format(self, amount: u64) -> String {
        match self {
            Self::Size => format::bytes(amount),
            Self::Files => format::count(amount, "file"),
        }
    }
}

/// A place and what takes the space in it, as far as it was measured.
pub struct FolderUsageView {
    pub slug: String,
    /// The place's title.
    pub title: String,
    /// Encoded.
    pub path: String,
    /// The address of this part of the page.
    pub href: String,
    pub is_connected: bool,
    pub running_since: Option<UnixTime>,
    /// Why the last attempt failed, and when.
    pub failure: Option<(String, UnixTime)>,
    /// When the centre deletes files, as a sentence.
    pub purge: Option<String>,
    pub measured: Option<MeasuredUsageView>,
}

pub struct MeasuredUsageView {
    pub at: UnixTime,
    /// Everything in the place.
    pub summary: String,
    /// What the figures leave out.
    pub notes: Vec<&'static str>,
    pub unit: FolderUsageUnit,
    /// Whether files were counted.
    pub has_files: bool,
    pub size_href: String,
    pub files_href: String,
    pub tiles: Vec<TreemapTile>,
    pub rows: Vec<FolderUsageRow>,
    pub more_rows: usize,
    pub aging: Option<AgingFilesView>,
}

/// A rectangle of the treemap. Lengths are percentages of the drawing.
pub struct TreemapTile {
    pub x: String,
    pub y: String,
    pub width: String,
    pub height: String,
    /// Its last name, or what it stands for.
    pub name: String,
    pub amount: String,
    /// Its whole name below the place, and the figures.
    pub hint: String,
    /// Empty if it isn't a folder.
    pub href: String,
    /// Whether other rectangles lie in it.
    pub is_outer: bool,
    pub has_name: bool,
    pub has_amount: bool,
}

pub struct FolderUsageRow {
    pub name: String,
    pub href: String,
    pub size: String,
    pub files: String,
    pub share: String,
}

pub struct AgingFilesView {
    pub after_days: u16,
    pub within_days: u16,
    pub rows: Vec<AgingFileRow>,
    pub has_more: bool,
    pub is_partial: bool,
}

pub struct AgingFileRow {
    pub name: String,
    /// The folder that it is in.
    pub href: String,
    pub size: String,
    pub last_used: UnixTime,
}

impl FolderUsageView {
    pub fn new(
        slug: &str,
        place: &PlaceWithQuota,
        unit: FolderUsageUnit,
        stored: Option<StoredFolderSizes>,
        state: Option<FolderMeasurementState>,
        is_connected: bool,
    ) -> Self {
        let (running_since, failure) = match state {
            Some(FolderMeasurementState::Running { since }) => (Some(since), None),
            Some(FolderMeasurementState::Failed { at, reason }) => (None, Some((reason, at))),
            None => (None, None),
        };
        Self {
            slug: slug.to_owned(),
            title: place.title.clone(),
            path: place.path.to_encoded(),
            href: format!("/files/{slug}/storage/place?{}", place_query(&place.path, Some(unit))),
            is_connected,
            running_since,
            failure,
            purge: place.area.as_ref().and_then(|area| area.purge.clone()),
            measured: stored.map(|stored| MeasuredUsageView::new(slug, &place.path, unit, &stored)),
        }
    }
}

impl MeasuredUsageView {
    fn new(slug: &str, place: &RemotePath, unit: FolderUsageUnit, stored: &StoredFolderSizes) -> Self {
        let report = &stored.report;
        let has_files = report.folders.iter().any(|folder| folder.files.is_some()) || report.total_files.is_some();
        let unit = if has_files { unit } else { FolderUsageUnit::Size };
        let drawing = FolderUsageDrawing { slug, place, unit, report };
        let mut folders: Vec<&MeasuredFolder> = report.folders.iter().collect();
        folders.sort_by_key(|folder| std::cmp::Reverse(unit.amount(folder)));
        let total = drawing.total();
        let row = |folder: &&MeasuredFolder| FolderUsageRow {
            name: drawing.relative_name(&folder.path),
            href: files_url(slug, &folder.path),
            size: format::bytes(folder.bytes),
            files: format::or_unknown(folder.files, format::number),
            share: share(unit.amount(folder), total),
        };
        Self {
            at: stored.measured_at,
            summary: summary(report),
            notes: notes(report),
            unit,
            has_files,
            size_href: format!("{}#largest", storage_url(slug, place, Some(FolderUsageUnit::Size))),
            files_href: format!("{}#largest", storage_url(slug, place, Some(FolderUsageUnit::Files))),
            tiles: drawing.tiles(),
            rows: folders.iter().take(MAX_ROWS).map(row).collect(),
            more_rows: folders.len().saturating_sub(MAX_ROWS),
            aging: report.aging.as_ref().map(|aging| aging_view(slug, place, aging)),
        }
    }
}

fn summary(report: &FolderSizeReport) -> String {
    let files = report.total_files.map(|files| format!(" in {}", format::count(files, "file")));
    let bytes = report.total_bytes.map(format::bytes);
    bytes.map(|bytes| format!("{bytes}{}", files.unwrap_or_default())).unwrap_or_default()
}

fn notes(report: &FolderSizeReport) -> Vec<&'static str> {
    let partial = "Measuring took too long and was stopped. Only folders that had been measured by then are shown.";
    let unreadable = "Some folders couldn't be read, because you don't have permission or because they changed while they were being measured. They aren't counted.";
    let both = [(report.is_partial, partial), (report.has_unreadable, unreadable)];
    both.into_iter().filter_map(|(is_so, note)| is_so.then_some(note)).collect()
}

fn aging_view(slug: &str, place: &RemotePath, aging: &AgingFiles) -> AgingFilesView {
    let rows = aging.files.iter().map(|file| AgingFileRow {
        name: name_below(place, &file.path),
        href: files_url(slug, &file.path.parent().unwrap_or_else(RemotePath::root)),
        size: format::bytes(file.bytes),
        last_used: file.last_used_at(),
    });
    AgingFilesView {
        after_days: aging.after_days,
        within_days: PURGE_WARNING_DAYS,
        rows: rows.collect(),
        has_more: aging.has_more,
        is_partial: aging.is_partial,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a part for people")]
fn share(amount: u64, total: u64) -> String {
    format::percent(amount as f64 / total.max(1) as f64)
}

/// A path below a place, for people.
fn name_below(place: &RemotePath, path: &RemotePath) -> String {
    let (place, path) = (place.to_string(), path.to_string());
    let rest = path.strip_prefix(place.as_str()).unwrap_or(&path);
    rest.trim_start_matches('/').to_owned()
}

/// What is drawn, and by what.
struct FolderUsageDrawing<'a> {
    slug: &'a str,
    place: &'a RemotePath,
    unit: FolderUsageUnit,
    report: &'a FolderSizeReport,
}

impl FolderUsageDrawing<'_> {
    fn relative_name(&self, path: &RemotePath) -> String {
        name_below(self.place, path)
    }

    /// Everything in the place, or as much as was measured.
    fn total(&self) -> u64 {
        let total = match self.unit {
            FolderUsageUnit::Size => self.report.total_bytes,
            FolderUsageUnit::Files => self.report.total_files,
        };
        total.unwrap_or_else(|| {
            let top = self.report.folders.iter().filter(|folder| folder.path.parent().as_ref() == Some(self.place));
            top.map(|folder| self.unit.amount(folder)).sum()
        })
    }

    fn tiles(&self) -> Vec<TreemapTile> {
        let mut inside: HashMap<RemotePath, Vec<&MeasuredFolder>> = HashMap::new();
        for folder in &self.report.folders {
            inside.entry(folder.path.parent().unwrap_or_else(RemotePath::root)).or_default().push(folder);
        }
        let mut tiles = Vec::new();
        let top = inside.remove(self.place).unwrap_or_default();
        for (folder, amount, area) in self.divide(top, self.total(), MAX_TILES, CANVAS) {
            let inner = folder.and_then(|folder| inside.remove(&folder.path)).unwrap_or_default();
            let is_outer = !inner.is_empty() && area.width >= MIN_OUTER_SIZE.0 && area.height >= MIN_OUTER_SIZE.1;
            tiles.push(self.tile(folder, amount, area, is_outer));
            if is_outer {
                let (width, height) = (area.width - 2.0 * GAP, area.height - NAME_HEIGHT - GAP);
                let area = TreemapRectangle::new(area.x + GAP, area.y + NAME_HEIGHT, width, height);
                let inner = self.divide(inner, amount, MAX_INNER_TILES, area);
                tiles.extend(inner.into_iter().map(|(folder, amount, area)| self.tile(folder, amount, area, false)));
            }
        }
        tiles
    }

    /// Divides an area among folders, the largest first. What is left of the total shares a rectangle without a folder.
    fn divide<'f>(
        &self,
        mut folders: Vec<&'f MeasuredFolder>,
        total: u64,
        max: usize,
        area: TreemapRectangle,
    ) -> Vec<(Option<&'f MeasuredFolder>, u64, TreemapRectangle)> {
        folders.sort_by_key(|folder| std::cmp::Reverse(self.unit.amount(folder)));
        let mut parts: Vec<(Option<&MeasuredFolder>, u64)> =
            folders.into_iter().take(max).map(|folder| (Some(folder), self.unit.amount(folder))).collect();
        let shown: u64 = parts.iter().map(|(_, amount)| amount).sum();
        parts.push((None, total.saturating_sub(shown)));
        parts.retain(|(_, amount)| *amount > 0);
        parts.sort_by_key(|(_, amount)| std::cmp::Reverse(*amount));
        #[expect(clippy::cast_precision_loss, reason = "for a drawing")]
        let weights: Vec<f64> = parts.iter().map(|(_, amount)| *amount as f64).collect();
        let areas = squarify(&weights, area);
        parts.into_iter().zip(areas).map(|((folder, amount), area)| (folder, amount, area)).collect()
    }

    fn tile(
        &self,
        folder: Option<&MeasuredFolder>,
        amount: u64,
        area: TreemapRectangle,
        is_outer: bool,
    ) -> TreemapTile {
        let percent = |length: f64, of: f64| format!("{:.2}%", length / of * 100.0);
        let words = self.unit.format(amount);
        let whole = folder.map_or_else(|| "Everything else".to_owned(), |folder| self.relative_name(&folder.path));
        let name = folder.and_then(|folder| folder.path.name()).map_or_else(|| whole.clone(), |name| name.to_string());
        let has_name = area.width >= MIN_NAMED_SIZE.0 && area.height >= MIN_NAMED_SIZE.1;
        TreemapTile {
            x: percent(area.x, CANVAS.width),
            y: percent(area.y, CANVAS.height),
            width: percent(area.width, CANVAS.width),
            height: percent(area.height, CANVAS.height),
            name,
            hint: format!("{whole}: {words} ({})", share(amount, self.total())),
            amount: words,
            href: folder.map(|folder| files_url(self.slug, &folder.path)).unwrap_or_default(),
            is_outer,
            has_name,
            has_amount: has_name && !is_outer && area.height >= MIN_HEIGHT_WITH_AMOUNT,
        }
    }
}

#[cfg(test)]
mod tests;
