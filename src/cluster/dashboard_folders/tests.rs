use super::*;
use crate::cluster::discovered_facts::{DiscoveredUserFolder, FolderKind};

fn starts_of(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

fn found(lines: &[&str], sort: DashboardFolderKind) -> Vec<(String, i64)> {
    let printed = lines.join("\0");
    let starts = starts_of(&["/home/a", "/scratch/a"]);
    let found = parse_search_output(printed.as_bytes(), &starts, sort, false);
    found.folders.into_iter().map(|place| (place.path, place.newest.0)).collect()
}

fn one(path: &str, at: i64) -> (String, i64) {
    (path.to_owned(), at)
}

#[test]
fn runs_beside_each_other_are_one_experiment() {
    let lines = [
        "10.5 /scratch/a/exp/runs/a/train",
        "11.5 /scratch/a/exp/runs/a/valid",
        "30 /scratch/a/exp/runs/b/train",
        "12 /scratch/a/exp/runs/b/valid",
        "40 /home/a/single/logs",
        "5 /home/a/other/logs",
        "6 /home/a/other/logs",
    ];
    let expected = [one("/home/a/single/logs", 40), one("/scratch/a/exp/runs", 30), one("/home/a/other/logs", 6)];
    assert_eq!(found(&lines, DashboardFolderKind::EventFiles), expected);
}

#[test]
fn whole_home_folders_are_not_offered() {
    let lines = ["1 /home/a/one", "2 /home/a/two", "3 /home/a"];
    let paths = found(&lines[..2], DashboardFolderKind::EventFiles);
    assert_eq!(paths, [one("/home/a/two", 2), one("/home/a/one", 1)]);
    assert_eq!(found(&["3 /home/a/x", "9 /home/a/x/y/z"], DashboardFolderKind::EventFiles), [one("/home/a/x", 9)]);
}

#[test]
fn tracking_folders_and_databases() {
    let lines = [
        "10 /scratch/a/p/mlruns/0",
        "20 /scratch/a/p/mlruns/0/abc",
        "15 /scratch/a/q/mlflow.db",
        "1 /home/a/mlruns/mlruns/1",
    ];
    let expected = [one("/scratch/a/p/mlruns", 20), one("/scratch/a/q/mlflow.db", 15), one("/home/a/mlruns/mlruns", 1)];
    assert_eq!(found(&lines, DashboardFolderKind::MlflowRuns), expected);
}

#[test]
fn odd_answers_are_left_out_and_long_ones_bounded() {
    let long = format!("1 /{}", "x".repeat(MAX_PATH_LEN));
    let lines = ["", "x /a", "1", "1 relative", "1 /a\u{202e}b", "1 /a\nb", "99999999999999999999 /a"];
    assert_eq!(found(&lines, DashboardFolderKind::EventFiles), []);
    assert_eq!(found(&[&long], DashboardFolderKind::EventFiles), []);
    let bytes = b"1 /a\xff\x001 /it's; a <b>\"name\"\0";
    let places = parse_search_output(bytes, &[], DashboardFolderKind::EventFiles, true);
    assert_eq!((places.folders.len(), places.is_cut), (1, true));
    let many: Vec<u8> = (0..3000).flat_map(|n| format!("{n} /d{n}/x\0").into_bytes()).collect();
    let many = parse_search_output(&many, &[], DashboardFolderKind::EventFiles, false);
    assert_eq!((many.folders.len(), many.is_cut), (MAX_FOLDERS, true));
    assert_eq!(many.folders[0].path, "/d2999/x");
}

#[test]
fn a_start_lies_in_no_other() {
    let folder = |path: &str| DiscoveredUserFolder {
        label: FolderKind::Project,
        path: path.to_owned(),
        writable: true,
        group: None,
    };
    let facts = DiscoveredFacts {
        home: Some("/home/a/".to_owned()),
        folders: ["/home/a", "/home/a/project", "/scratch/a", "/home/ab", "x"].map(folder).to_vec(),
        ..DiscoveredFacts::default()
    };
    assert_eq!(search_roots(&facts), ["/home/a", "/scratch/a", "/home/ab"]);
    assert_eq!(search_roots(&DiscoveredFacts::default()), [""; 0]);
}

/// Runs the arguments with a real `find`.
#[test]
fn the_search_finds_what_it_should() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for path in [
        "runs/a/events.out.tfevents.1.host",
        "runs/it's (b) \"x\"/events.out.tfevents.2.host",
        ".hidden/events.out.tfevents.1",
        "conda/x/events.out.tfevents.1",
        "lib/site-packages/events.out.tfevents.1",
        "1/2/3/4/5/events.out.tfevents.1",
        "p/mlruns/0/meta.yaml",
        "p/mlruns/0/abc/meta.yaml",
        "q/mlflow.db",
        "q/other.db",
        "r/meta.yaml",
    ] {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    std::os::unix::fs::symlink(root, root.join("runs/loop")).unwrap();
    let start = root.to_str().unwrap().to_owned();
    let starts = [start.clone()];
    let search = |sort| {
        let output = std::process::Command::new("timeout").args(find_args(&starts, sort)).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let found = parse_search_output(&output.stdout, &starts, sort, false);
        let mut paths: Vec<String> =
            found.folders.into_iter().map(|place| place.path.strip_prefix(&start).unwrap().to_owned()).collect();
        paths.sort();
        paths
    };
    assert_eq!(search(DashboardFolderKind::EventFiles), ["/runs"]);
    assert_eq!(search(DashboardFolderKind::MlflowRuns), ["/p/mlruns", "/q/mlflow.db"]);
}
