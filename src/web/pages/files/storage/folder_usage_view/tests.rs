use super::*;
use crate::domain::RemoteName;

const G: u64 = 1 << 30;

fn path(text: &str) -> RemotePath {
    RemotePath::parse(text.as_bytes()).unwrap()
}

fn place() -> PlaceWithQuota {
    PlaceWithQuota { title: "Scratch".into(), path: path("/scratch/alice"), area: None, quota: None }
}

fn folder(path: RemotePath, gigabytes: u64, files: u64) -> MeasuredFolder {
    MeasuredFolder { path, bytes: gigabytes * G, files: Some(files) }
}

fn view(report: FolderSizeReport, unit: FolderUsageUnit) -> MeasuredUsageView {
    let stored = StoredFolderSizes { report, measured_at: UnixTime(1_700_000_000) };
    FolderUsageView::new("key", &place(), unit, Some(stored), None, true).measured.unwrap()
}

fn report() -> FolderSizeReport {
    let odd = path("/scratch/alice").join(&RemoteName::parse(b"a\n\xff").unwrap());
    FolderSizeReport {
        folders: vec![
            folder(path("/scratch/alice/data"), 60, 100),
            folder(path("/scratch/alice/data/images"), 50, 90),
            folder(odd, 30, 5000),
        ],
        total_bytes: Some(100 * G),
        total_files: Some(6000),
        ..FolderSizeReport::default()
    }
}

#[test]
fn folders_by_size_and_by_files() {
    let by_size = view(report(), FolderUsageUnit::Size);
    let rows: Vec<_> = by_size.rows.iter().map(|row| (&*row.name, &*row.size, &*row.files, &*row.share)).collect();
    assert_eq!(
        rows,
        [
            ("data", "60 GB", "100", "60%"),
            ("data/images", "50 GB", "90", "50%"),
            ("a\u{FFFD}\u{FFFD}", "30 GB", "5,000", "30%"),
        ]
    );
    assert_eq!(by_size.summary, "100 GB in 6,000 files");
    assert_eq!(by_size.rows[2].href, "/files/key?path=%2Fscratch%2Falice%2Fa%250A%25FF");
    assert_eq!(view(report(), FolderUsageUnit::Files).rows[0].files, "5,000");
    let uncounted = MeasuredFolder { files: None, ..folder(path("/scratch/alice/data"), 60, 0) };
    let without = FolderSizeReport { folders: vec![uncounted], total_files: None, ..report() };
    let without = view(without, FolderUsageUnit::Files);
    assert!(!without.has_files && without.unit == FolderUsageUnit::Size);
    assert_eq!(without.rows[0].files, format::UNKNOWN);
}

#[test]
fn treemap_shows_folders_in_folders_and_the_rest() {
    let tiles = view(report(), FolderUsageUnit::Size).tiles;
    let shown: Vec<_> = tiles.iter().map(|tile| (&*tile.name, &*tile.amount, tile.is_outer)).collect();
    assert_eq!(
        shown,
        [
            ("data", "60 GB", true),
            ("images", "50 GB", false),
            ("Everything else", "10 GB", false),
            ("a\u{FFFD}\u{FFFD}", "30 GB", false),
            ("Everything else", "10 GB", false),
        ]
    );
    assert_eq!(tiles[1].hint, "data/images: 50 GB (50%)");
    assert!(tiles[2].href.is_empty() && !tiles[1].href.is_empty());
    assert_eq!(
        (&*tiles[0].x, &*tiles[0].y, &*tiles[0].width, &*tiles[0].height),
        ("0.00%", "0.00%", "60.00%", "100.00%")
    );
}

#[test]
fn files_come_first_where_their_limit_is_closer() {
    let quota = |used_bytes, files| StorageQuota {
        label: "/home".into(),
        used_bytes,
        limit_bytes: Some(1000),
        files: Some(files),
        files_limit: Some(1000),
    };
    for (bytes, files, unit) in
        [(10, 900, FolderUsageUnit::Files), (10, 500, FolderUsageUnit::Size), (950, 900, FolderUsageUnit::Size)]
    {
        assert_eq!(FolderUsageUnit::closest_to_limit(Some(&quota(bytes, files))), unit);
    }
    assert_eq!(FolderUsageUnit::closest_to_limit(None), FolderUsageUnit::Size);
}

#[test]
fn what_is_missing_is_said() {
    let partial = FolderSizeReport { is_partial: true, has_unreadable: true, total_bytes: None, ..report() };
    let partial = view(partial, FolderUsageUnit::Size);
    assert_eq!((partial.notes.len(), partial.summary.as_str()), (2, ""));
    assert_eq!(partial.rows[0].share, "67%", "of what was measured");
    assert!(view(report(), FolderUsageUnit::Size).notes.is_empty());
}
