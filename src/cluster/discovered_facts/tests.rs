//! Runs the script with bash and with dash; the other tests parse recorded answers.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;

use super::*;

const DEMO: &str = include_str!("../../../tests/fixtures/slurm/look-around-demo.txt");
const CONFIG: &str = include_str!("../../../tests/fixtures/slurm/scontrol-config-24.11.txt");
const SINFO: &str = include_str!("../../../tests/fixtures/slurm/sinfo-22.05.txt");
const ASSOC: &str = include_str!("../../../tests/fixtures/slurm/sacctmgr-assoc-24.11.txt");
const OTHER_CLUSTER: &str = include_str!("../../../tests/fixtures/slurm/sacctmgr-assoc-22.05.txt");

fn look(text: &str) -> DiscoveredFacts {
    facts_from(Some(text), None, None, None, &[])
}

fn facts_from(
    look_around: Option<&str>,
    config: Option<&str>,
    sinfo: Option<&str>,
    assoc: Option<&str>,
    suffixes: &[String],
) -> DiscoveredFacts {
    let answers = DiscoveryAnswers { look_around, config, sinfo, assoc, partition_access: None };
    DiscoveredFacts::from_answers(answers, suffixes)
}

fn folder(label: FolderKind, path: impl Into<String>, group: Option<&str>) -> DiscoveredUserFolder {
    DiscoveredUserFolder { label, path: path.into(), writable: true, group: group.map(str::to_owned) }
}

/// Runs the script in `home` with these variables and nothing else.
fn run(shell: &str, home: &Path, variables: &[(&str, &str)]) -> String {
    let output = Command::new(shell)
        .args(["-c", DISCOVERY_SCRIPT])
        .env_clear()
        .env("HOME", home)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell}");
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_script_can_be_quoted_anywhere() {
    assert!(!DISCOVERY_SCRIPT.contains(['\n', '\r', '\'', '\\', '!', '`']));
    assert!(DISCOVERY_SCRIPT.is_ascii());
}

#[test]
fn bash_and_dash_look_around() {
    let place = tempfile::tempdir().unwrap();
    let base = std::fs::canonicalize(place.path()).unwrap();
    let at = |name: &str| base.join(name).to_str().unwrap().to_owned();
    for name in ["home/projects/thesis", "home/links", "home/project", "data/scratch", "bin"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    for name in ["data/600 1", "data/6002", "data/6003", "data/work"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    symlink(at("data/scratch"), at("home/scratch")).unwrap();
    symlink(at("data/600 1"), at("home/projects/def-a")).unwrap();
    symlink(at("data/6002"), at("home/project/def-b")).unwrap();
    symlink(at("data/nowhere"), at("home/projects/def-gone")).unwrap();
    for tool in ["seff", "tensorboard", "unasked"] {
        let file = at(&format!("bin/{tool}"));
        std::fs::write(&file, "#!/bin/sh\nexit 1\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", at("bin"));
    let variables = [
        ("PATH", path.as_str()),
        ("LANG", "nb_NO.UTF-8"),
        ("SHELL", "/bin/zsh"),
        ("SSH_CONNECTION", "::ffff:192.0.2.7 50412 198.51.100.1 22"),
        ("SCRATCH", &at("data/scratch")),
        ("PROJECT", &at("home/project")),
        ("USERWORK", "/no/such/folder"),
    ];
    for shell in ["bash", "dash"] {
        let facts = look(&run(shell, Path::new(&at("home")), &variables));
        assert_eq!(facts.home.as_deref(), Some(at("home").as_str()), "{shell}");
        assert!(facts.host.is_some() && facts.user.is_some());
        assert_eq!(facts.search_path(), Some(path.as_str()));
        assert_eq!(facts.env["LANG"], "nb_NO.UTF-8");
        assert!(!facts.env.contains_key("SLURM_CONF"));
        assert_eq!(facts.our_address, Some("192.0.2.7".parse().unwrap()));
        assert_eq!(facts.shell.as_deref(), Some("/bin/zsh"));
        assert!(facts.has_tool("seff") && facts.has_tool("tensorboard") && !facts.has_tool("unasked"));
        assert_eq!(
            facts.folders,
            [
                folder(FolderKind::Home, at("home"), None),
                folder(FolderKind::Scratch, at("data/scratch"), None),
                folder(FolderKind::Project, at("data/600 1"), Some("def-a")),
                folder(FolderKind::Project, at("data/6002"), Some("def-b")),
            ],
            "{shell}: the person's own folders and the folder of links are no places apart"
        );
        assert!(facts.missing[0].starts_with("USERWORK is set to /no/such/folder, but that folder doesn't exist."));
    }
}

#[test]
fn a_link_named_project_is_one_groups_folder() {
    let place = tempfile::tempdir().unwrap();
    let base = std::fs::canonicalize(place.path()).unwrap();
    let (home, group) = (base.join("home"), base.join("def-a"));
    std::fs::create_dir_all(&home).unwrap();
    std::fs::create_dir_all(group.join("another-member")).unwrap();
    symlink(&group, home.join("project")).unwrap();
    for shell in ["bash", "dash"] {
        let facts = look(&run(shell, &home, &[("PATH", "/usr/bin:/bin")]));
        let projects: Vec<_> = facts.folders_of_kind(FolderKind::Project).collect();
        assert_eq!(projects, [&folder(FolderKind::Project, group.to_str().unwrap(), None)]);
    }
}

#[test]
fn much_is_cut() {
    let place = tempfile::tempdir().unwrap();
    let base = std::fs::canonicalize(place.path()).unwrap();
    let home = base.join("home");
    std::fs::create_dir_all(home.join("projects")).unwrap();
    for n in 0..30 {
        let group = base.join(format!("g{n}"));
        std::fs::create_dir_all(&group).unwrap();
        symlink(&group, home.join(format!("projects/g{n}"))).unwrap();
    }
    let long = format!("/usr/bin:/bin{}", ":/opt/some/where/bin".repeat(400));
    for shell in ["bash", "dash"] {
        let text = run(shell, &home, &[("PATH", &long), ("LANG", &"x".repeat(9000))]);
        assert!(text.lines().all(|line| line.len() < 4100), "{shell}");
        let facts = look(&text);
        assert_eq!(facts.folders_of_kind(FolderKind::Project).count(), 20);
        let path = facts.search_path().unwrap();
        assert!((3900..4000).contains(&path.len()) && path.ends_with("/opt/some/where/bin"));
        assert!(!facts.env.contains_key("LANG"));
    }
}

#[test]
fn the_demo_cluster() {
    let facts = facts_from(Some(DEMO), Some(CONFIG), Some(SINFO), Some(ASSOC), &["_cpu".into()]);
    assert_eq!(facts.missing, Vec::<String>::new());
    assert_eq!(facts.host.as_deref(), Some("login1.harbour.local"));
    assert_eq!(facts.user.as_deref(), Some("alice"));
    assert_eq!(facts.our_address, Some("127.0.0.1".parse().unwrap()));
    assert_eq!(facts.slurm_version.as_deref(), Some("24.11.5"));
    assert_eq!(facts.slurm_cluster.as_deref(), Some("lab"));
    assert_eq!((facts.max_array_size, facts.uses_fair_share), (Some(1001), true));
    assert_eq!(facts.half_life_hours, Some(168));
    assert_eq!(
        facts.folders,
        [
            folder(FolderKind::Home, "/home/alice", None),
            folder(FolderKind::Scratch, "/scratch/alice", None),
            folder(FolderKind::Project, "/project/def-smith", Some("def-smith")),
            folder(FolderKind::Project, "/project/def-jones", Some("def-jones")),
            folder(FolderKind::Project, "/project/rrg-smith", Some("rrg-smith")),
        ]
    );
    let accounts: Vec<_> = facts.accounts.iter().map(|account| account.name.as_str()).collect();
    assert_eq!(accounts, ["def-jones", "def-smith", "rrg-smith"]);
    assert_eq!(facts.partitions.len(), 5);
    let gpu = |model: &str, per_node_most, nodes| DiscoveredGpu { model: Some(model.into()), per_node_most, nodes };
    assert_eq!(facts.gpus, [gpu("t4", 2, 1), gpu("v100", 1, 1)]);
    assert!(facts.has_tool("diskusage_report") && facts.has_tool("module") && !facts.has_tool("seff"));

    let json = serde_json::to_string(&facts).unwrap();
    assert_eq!(serde_json::from_str::<DiscoveredFacts>(&json).unwrap(), facts);
}

#[test]
fn old_and_newer_rows_still_read() {
    assert_eq!(serde_json::from_str::<DiscoveredFacts>("{}").unwrap(), DiscoveredFacts::default());
    let row = r#"{"folders":[{"label":"attic","path":"/x"}],"accounts":[{"name":"a"}],"partitions":[{}],"gpus":[{}],"news":1}"#;
    let facts = serde_json::from_str::<DiscoveredFacts>(row).unwrap();
    assert_eq!(facts.folders[0].label, FolderKind::Work);
}

#[test]
fn what_is_missing_is_said() {
    let nothing = facts_from(None, None, None, None, &[]);
    assert_eq!(
        nothing.missing,
        [
            "Your home folder and the installed tools couldn't be read: the shell didn't respond.",
            "Slurm's version and settings couldn't be read: scontrol didn't respond.",
            "The list of partitions couldn't be read: sinfo didn't respond.",
            "The list of accounts couldn't be read: sacctmgr didn't respond.",
        ]
    );
    let refused = facts_from(
        Some("Command rejected by slurm_commands.sh: bash -l -c …"),
        Some("slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)\n"),
        Some("Command rejected by slurm_commands.sh: sinfo -h -o %P|%a"),
        Some("bash: line 1: sacctmgr: command not found"),
        &[],
    );
    assert_eq!(
        refused.missing,
        [
            "Your home folder and the installed tools couldn't be read: this host doesn't allow the shell.",
            "Slurm's version and settings couldn't be read: scontrol said “slurm_load_ctl_conf error: Unable to \
             contact slurm controller (connect failure)”.",
            "The list of partitions couldn't be read: this host doesn't allow sinfo.",
            "The list of accounts couldn't be read: sacctmgr wasn't found.",
        ]
    );
    let without = DEMO.replace("tool\tsacctmgr\n", "");
    let facts = facts_from(Some(&without), Some(CONFIG), Some(SINFO), None, &[]);
    assert_eq!(facts.missing, ["The list of accounts couldn't be read: sacctmgr isn't installed."]);
    let facts = facts_from(Some(DEMO), Some(CONFIG), Some(SINFO), Some(OTHER_CLUSTER), &[]);
    assert!(facts.accounts.is_empty());
    assert_eq!(facts.missing, ["You have no Slurm account on lab. Ask your PI or the centre for one."]);
    let facts = facts_from(Some(DEMO), Some(CONFIG), Some(SINFO), Some("\n"), &[]);
    assert_eq!(facts.missing, ["The list of accounts couldn't be read: sacctmgr printed nothing."]);
    assert!(look(DEMO.trim_end_matches("end\n")).missing[0].starts_with("The search was cut"));
}

/// Slurm tells in another command which accounts a partition takes; without it, all partitions look open.
#[test]
fn partitions_closed_to_accounts() {
    let answers = DiscoveryAnswers {
        look_around: Some(DEMO),
        config: Some(CONFIG),
        sinfo: Some(SINFO),
        assoc: Some(ASSOC),
        partition_access: Some("PartitionName=gpu AllowGroups=ALL AllowAccounts=root AllowQos=ALL\n"),
    };
    let facts = DiscoveredFacts::from_answers(answers, &[]);
    assert!(!facts.accounts.is_empty() && facts.missing.is_empty());
    for partition in &facts.partitions {
        let closed = if partition.name == "gpu" { facts.accounts.len() } else { 0 };
        assert_eq!(partition.closed_to.len(), closed, "{}", partition.name);
    }
    let open = DiscoveredFacts::from_answers(DiscoveryAnswers { partition_access: None, ..answers }, &[]);
    assert!(open.partitions.iter().all(|partition| partition.closed_to.is_empty()) && open.missing.is_empty());
}

#[test]
fn hostile_answers_stay_small() {
    let start = "home\t/h\u{1b}[2J\nuser\t$(id)\nhost\t\u{202e}evil\u{7}\nPATH\t/bin\u{0}\n\
                 dir\tSCRATCH\tw\trelative\t/x\ndir\tSCRATCH\tw\t/a\u{1b}b\t/x\n";
    let row = |n: u32| format!("dir\tgroup\tw\t/p/{n}\t/p/{n}\ngone\tSCRATCH\t/{n}\ntool\tseff\ntool\tx{n}\n");
    let rows: Vec<String> = (0..5000).map(row).collect();
    let text = start.to_owned() + &rows.concat();
    let facts = look(&text);
    assert_eq!((facts.home.as_deref(), facts.user.as_deref()), (None, None));
    assert_eq!((facts.host.as_deref(), facts.search_path()), (Some("evil"), Some("/bin")));
    assert_eq!(facts.folders.len(), 200);
    assert!(facts.folders.iter().all(|folder| folder.label == FolderKind::Project));
    assert!(facts.missing.len() <= 10);
    assert_eq!(facts.tools, ["seff"]);
}

proptest! {
    #[test]
    fn any_text_is_survived(
        text in "(?s)((home|PATH|dir|gone|tool|SSH_CONNECTION)\t.{0,40}\n){0,12}",
        cut in 0_usize..800,
    ) {
        let _ = facts_from(Some(&text), Some(&text), Some(&text), Some(&text), &[]);
        let _ = look(&DEMO[..cut.min(DEMO.len())]);
    }
}
