use super::super::learnt::{Folder, FolderKind};
use super::*;

fn starts_of(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

fn found(lines: &[&str], sort: Sort) -> Vec<(String, i64)> {
    let printed = lines.join("\0");
    let starts = starts_of(&["/home/a", "/scratch/a"]);
    let found = read(printed.as_bytes(), &starts, sort, false);
    found.places.into_iter().map(|place| (place.path, place.newest.0)).collect()
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
    let expected = [
        one("/home/a/single/logs", 40),
        one("/scratch/a/exp/runs", 30),
        one("/home/a/other/logs", 6),
    ];
    assert_eq!(found(&lines, Sort::Events), expected);
}

#[test]
fn whole_home_folders_are_not_offered() {
    let lines = ["1 /home/a/one", "2 /home/a/two", "3 /home/a"];
    let paths = found(&lines[..2], Sort::Events);
    assert_eq!(paths, [one("/home/a/two", 2), one("/home/a/one", 1)]);
    assert_eq!(found(&["3 /home/a/x", "9 /home/a/x/y/z"], Sort::Events), [one("/home/a/x", 9)]);
}

#[test]
fn tracking_folders_and_databases() {
    let lines = [
        "10 /scratch/a/p/mlruns/0",
        "20 /scratch/a/p/mlruns/0/abc",
        "15 /scratch/a/q/mlflow.db",
        "1 /home/a/mlruns/mlruns/1",
    ];
    let expected = [
        one("/scratch/a/p/mlruns", 20),
        one("/scratch/a/q/mlflow.db", 15),
        one("/home/a/mlruns/mlruns", 1),
    ];
    assert_eq!(found(&lines, Sort::Runs), expected);
}

#[test]
fn odd_answers_are_left_out_and_long_ones_bounded() {
    let long = format!("1 /{}", "x".repeat(LONGEST_PATH));
    let lines =
        ["", "x /a", "1", "1 relative", "1 /a\u{202e}b", "1 /a\nb", "99999999999999999999 /a"];
    assert_eq!(found(&lines, Sort::Events), []);
    assert_eq!(found(&[&long], Sort::Events), []);
    let bytes = b"1 /a\xff\x001 /it's; a <b>\"name\"\0";
    let places = read(bytes, &[], Sort::Events, true);
    assert_eq!((places.places.len(), places.is_cut), (1, true));
    let many: Vec<u8> = (0..3000).flat_map(|n| format!("{n} /d{n}/x\0").into_bytes()).collect();
    let many = read(&many, &[], Sort::Events, false);
    assert_eq!((many.places.len(), many.is_cut), (MOST_FOUND, true));
    assert_eq!(many.places[0].path, "/d2999/x");
}

#[test]
fn a_start_lies_in_no_other() {
    let folder = |path: &str| Folder {
        label: FolderKind::Project,
        path: path.to_owned(),
        writable: true,
        group: None,
    };
    let learnt = Learnt {
        home: Some("/home/a/".to_owned()),
        folders: ["/home/a", "/home/a/project", "/scratch/a", "/home/ab", "x"].map(folder).to_vec(),
        ..Learnt::default()
    };
    assert_eq!(starts(&learnt), ["/home/a", "/scratch/a", "/home/ab"]);
    assert_eq!(starts(&Learnt::default()), [""; 0]);
}

/// The words are tried on a real `find`.
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
        let output =
            std::process::Command::new("timeout").args(args(&starts, sort)).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let found = read(&output.stdout, &starts, sort, false);
        let mut paths: Vec<String> = found
            .places
            .into_iter()
            .map(|place| place.path.strip_prefix(&start).unwrap().to_owned())
            .collect();
        paths.sort();
        paths
    };
    assert_eq!(search(Sort::Events), ["/runs"]);
    assert_eq!(search(Sort::Runs), ["/p/mlruns", "/q/mlflow.db"]);
}
