//! Scripts of dashboards: what they contain, and that nothing can break out of them.

use std::process::Command;

use super::*;
use crate::clock::UnixTime;
use crate::recipes::request::SbatchDirective;
use crate::sites::{SiteLookupResult, find_site, presets};

fn site(name: &str) -> &'static Site {
    match find_site(name) {
        SiteLookupResult::Site(site) => site,
        other => panic!("{other:?}"),
    }
}

fn plan<'a>(kind: DashboardKind, places: &'a [String], site: &'a Site) -> LaunchPlan<'a> {
    LaunchPlan {
        kind,
        places,
        folder: "/home/alice/.portolan/boards/k3j9",
        base: "/home/alice/.portolan",
        site,
        request: build_request(kind, 60, Some("def-smith"), None, site),
    }
}

fn lines(request: &JobRequest, site: &Site) -> Vec<String> {
    request.directives(site.jobs.gpu_option).iter().map(SbatchDirective::to_line).collect()
}

/// What bash makes of the script's first part, without running the rest.
fn read_by_bash(script: &str, ask: &str) -> String {
    let (first, _) = script.split_once("# From here on").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let done = Command::new("bash")
        .args(["-c", &format!("{first}\nwrite_files\n{ask}")])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "four files and no more");
    String::from_utf8(done.stdout).unwrap()
}

/// Names that people give their folders, by mistake or on purpose.
fn odd_names() -> Vec<String> {
    [
        "/scratch/alice/my runs",
        "/scratch/a,b:c=d",
        "/scratch/it's \"quoted\"",
        "/scratch/$(touch pwned) `touch pwned` ${HOME}",
        "/scratch/; touch pwned #",
        "/scratch/END_OF_THE_FILE",
        "/scratch/<<'END_OF_THE_FILE'",
        "/scratch/%s%j\\n\\",
        "/scratch/-rf --help",
        "/scratch/日本語 ünï \u{1F600}",
        "/scratch/*?[a-z]{a,b}!",
    ]
    .map(str::to_owned)
    .to_vec()
}

#[test]
fn odd_names_arrive_as_they_are() {
    let places = odd_names();
    let mut plan = plan(DashboardKind::TensorBoard, &places, site("demo"));
    plan.folder = "/home/a'l$ice/.port`olan/boards/k3j9";
    plan.base = "/home/a'l$ice/.port`olan";
    let text = render_script(&plan).unwrap();
    let read = read_by_bash(&text, "printf '%s|%s|' \"$folder\" \"$base\"; cat plan.json");
    let (folder, rest) = read.split_once('|').unwrap();
    let (base, json) = rest.split_once('|').unwrap();
    assert_eq!((folder, base), (plan.folder, plan.base));
    let given: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(given["places"], serde_json::json!(places));
    assert_eq!((&given["kind"], &given["folder"]), (&"tensorboard".into(), &plan.folder.into()));
}

#[test]
fn what_is_no_path_makes_no_script() {
    let demo = site("demo");
    let tried = |kind, places: &[&str]| {
        let places: Vec<String> = places.iter().map(|&place| place.to_owned()).collect();
        render_script(&plan(kind, &places, demo)).unwrap_err()
    };
    assert_eq!(tried(DashboardKind::TensorBoard, &[]), LaunchPlanError::NoFolder);
    assert_eq!(
        tried(DashboardKind::TensorBoard, &["/a"; MAX_JOB_FOLDERS + 1]),
        LaunchPlanError::TooMany(MAX_JOB_FOLDERS)
    );
    assert_eq!(tried(DashboardKind::Mlflow, &["/a", "/b"]), LaunchPlanError::TooMany(1));
    let long = format!("/{}", "a".repeat(MAX_PATH_LEN));
    for place in ["", "runs", "~/runs", "$HOME/runs", "/a\nb", "/a\0", "/a/../b", "/..", &long] {
        assert_eq!(tried(DashboardKind::TensorBoard, &["/a", place]), LaunchPlanError::InvalidPath(place.to_owned()));
    }
}

#[test]
fn files_are_written_as_they_are() {
    for kind in DashboardKind::ALL {
        let places = ["/scratch/alice/runs".to_owned()];
        let text = render_script(&plan(kind, &places, site("demo"))).unwrap();
        assert!(text.len() < 100_000 && !text.contains('\r') && !text.contains('\0'));
        assert_eq!(read_by_bash(&text, "cat server.py"), SERVER_PY);
        assert_eq!(read_by_bash(&text, "cat exact.txt"), packages_for(kind).exact);
        assert_eq!(text.matches("\nEND_OF_THE_FILE\n").count(), 4);
        let pinned = read_by_bash(&text, "echo \"$pinned\"");
        assert!(pinned.starts_with(&format!("{kind}==")), "{pinned}");
    }
}

/// Versions from there on have `MLflow`'s security holes fixed, and the installed versions are known to have what is
/// needed.
#[test]
fn pins_are_exact() {
    for kind in DashboardKind::ALL {
        for line in packages_for(kind).exact.lines() {
            let (name, version) = line.split_once("==").unwrap();
            assert!(!name.is_empty() && version.starts_with(|c: char| c.is_ascii_digit()), "{line}");
        }
    }
    let version = packages_for(DashboardKind::Mlflow).exact.lines().find_map(|line| line.strip_prefix("mlflow=="));
    let numbers: Vec<u32> = version.unwrap().split('.').map(|part| part.parse().unwrap()).collect();
    assert!(numbers >= MLFLOW_WRITABLE_FROM.to_vec(), "{numbers:?}");
    let names = |kind| {
        let site = site("demo");
        environment_name(&plan(kind, &[], site))
    };
    assert_ne!(names(DashboardKind::TensorBoard), names(DashboardKind::Mlflow));
}

#[test]
fn the_request_is_small_and_fits_the_site() {
    let asked = |name: &str, minutes| {
        let site = site(name);
        lines(&build_request(DashboardKind::TensorBoard, minutes, Some("def-smith"), None, site), site).join("\n")
    };
    let narval = asked("narval", 60);
    for line in ["job-name=dashboard-tensorboard", "account=def-smith", "time=01:00:00", "cpus-per-task=1", "mem=4G"] {
        assert!(narval.contains(&format!("#SBATCH --{line}\n")) || narval.ends_with(line), "{narval}");
    }
    assert!(!narval.contains("partition") && !narval.contains("gpu"), "{narval}");
    let trillium = asked("trillium", 5);
    assert!(!trillium.contains("--mem") && trillium.contains("--time=00:15:00"), "{trillium}");
    let killarney = asked("killarney", 60);
    assert!(killarney.contains("=l40s:1"), "{killarney}");
    assert!(asked("lumi", 60).contains("--partition=small"));
    assert!(asked("betzy", 9_999_999).contains("--qos=preproc"));
    assert!(asked("betzy", 9_999_999).contains("--time=1-00:00:00"));
    for site in presets() {
        let possible = allowed_minutes(site);
        assert!(possible.contains(&60), "{}: {possible:?}", site.name.as_str());
    }
}

#[test]
fn a_follow_up_waits_for_its_moment() {
    let demo = site("demo");
    let later = build_request(DashboardKind::Mlflow, 60, None, Some(UnixTime(1_794_820_320)), demo);
    assert!(lines(&later, demo).contains(&"#SBATCH --begin=uts1794820320".to_owned()));
}

/// A symbolic link in a shared folder may lead to what only the owner may read: the dashboard does not follow it.
#[test]
fn links_out_of_the_chosen_folder_lead_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for folder in ["shared/inside", "private", "run", "code"] {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    std::fs::write(at("private/key"), "secret").unwrap();
    std::fs::write(at("shared/inside/curve"), "curve").unwrap();
    std::os::unix::fs::symlink(at("private/key"), at("shared/param")).unwrap();
    std::os::unix::fs::symlink(at("private"), at("shared/run")).unwrap();
    std::os::unix::fs::symlink(at("shared/inside"), at("shared/again")).unwrap();
    std::fs::write(at("code/server.py"), super::SERVER_PY).unwrap();
    let script = r#"
import os, sys
sys.path.insert(0, sys.argv[1] + "/code")
import server
os.chdir(sys.argv[1])
fence = server.Fence({"places": [sys.argv[1] + "/shared"], "folder": sys.argv[1] + "/run"})
fence.close()
def reads(name):
    try:
        open(name).read() if not os.path.isdir(name) else os.listdir(name)
        return True
    except PermissionError:
        return False
good = ["shared/inside/curve", "shared/again/curve", "shared", "run"]
bad = ["shared/param", "shared/run", "shared/run/key", "private/key", "shared/../private/key", "/proc/self/environ"]
print([name for name in good if not reads(name)], [name for name in bad if reads(name)])
"#;
    let done = std::process::Command::new("python3").args(["-B", "-c", script]).arg(dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert_eq!(said.trim(), "[] []", "{}", String::from_utf8_lossy(&done.stderr));
}
