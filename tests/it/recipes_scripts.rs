//! The scripts of all recipes at all sites: bash reads them, and shellcheck finds nothing to warn of.

use std::collections::BTreeMap;
use std::process::Command;

use portolan::recipes::catalog::RecipeCatalog;
use portolan::sites;

use crate::recipes::{composed, place};
use crate::support::snapshots_in;

type Answers<'a> = Vec<(&'a str, &'a str)>;

/// What has to be answered.
fn needed(recipe: &str) -> Answers<'static> {
    match recipe {
        "container" => vec![("image", "/images/a b.sif"), ("command", "python3 'train it.py'")],
        "sweep" => vec![("parameters", "lr = 0.1, 0.01"), ("command", "echo \"$lr\"")],
        "own-script" => vec![("script", "#!/bin/bash\n#SBATCH --time=5\nhostname\n")],
        "prepare-environment" => vec![("packages", "numpy")],
        "collect-wheels" => vec![("target", "$HOME/wheels"), ("packages", "numpy\ntorch==2.5")],
        "training-example" => vec![],
        "pack-folder" => vec![("source", "$SCRATCH/a b"), ("archive", "$HOME/a.tar")],
        "fetch-data" => vec![("addresses", "https://example.org/a.tar")],
        "get-code" => vec![("address", "https://example.org/a.git"), ("target", "$HOME/a")],
        _ => vec![("script", "train it.py")],
    }
}

/// What can be answered besides, in ways that change the script.
fn further(recipe: &str) -> Vec<Answers<'static>> {
    let git = [("code", "git"), ("code_repository", "$HOME/a b"), ("code_ref", "v1")];
    let keep = [("keep", "true"), ("results", "$SLURM_TMPDIR/a b\nout"), ("results_to", "/p")];
    let pieces = [("in_pieces", "true"), ("resume", "--resume 'a b'")];
    let mut all: Vec<Answers<'static>> = Vec::new();
    match recipe {
        "python-script" | "pytorch-many" | "container" | "sweep" => {
            let environments: &[Answers<'static>] = &[
                vec![("environment", "none"), ("variables", "A=b c\nD=$HOME")],
                vec![("environment", "venv"), ("venv", "$HOME/a b")],
                vec![("environment", "wheels"), ("packages", "a\nb>=2\n$HOME/w w/c.whl"), ("wheels", "/w")],
                vec![("environment", "container"), ("image", "/a b.sif"), ("binds", "/a\n/b c")],
            ];
            for (place, environment) in environments.iter().enumerate() {
                let mut one: Answers<'static> = vec![("data", "/a b.tar\n/c.zip")];
                if recipe != "container" {
                    one.extend(environment);
                }
                if recipe == "pytorch-many" || (recipe == "sweep" && place % 2 == 0) {
                    one.push(("nodes", "2"));
                }
                if recipe == "pytorch-many" && place % 2 == 1 {
                    one.push(("sweep.arguments", "--lr 0.1 --name 'a b'\n--lr 1,2"));
                }
                if recipe != "sweep" && place % 2 == 0 {
                    one.extend(pieces);
                }
                one.extend(keep.iter().take(if place == 0 { 0 } else { keep.len() }));
                one.extend(git.iter().take(if place == 3 { 0 } else { git.len() }));
                all.push(one);
            }
        }
        "r-script" => all.push(vec![("r_modules", "r/4.4"), ("r_library", "$HOME/R")]),
        "prepare-environment" | "collect-wheels" => {
            all.push(vec![("requirements", "$HOME/a b.txt"), ("packages", "")]);
        }
        "fetch-data" => {
            all.push(vec![("checksum", "00  a.tar")]);
            all.push(vec![("from", "s3"), ("bucket", "s3://a/*"), ("profile", "me")]);
            all.push(vec![("from", "huggingface"), ("repository", "a/b"), ("revision", "v1")]);
        }
        "get-code" => all.push(vec![("ref", "main"), ("submodules", "true")]),
        _ => {}
    }
    all
}

/// Without what differs between sites and says nothing to bash.
fn body(script: &str) -> String {
    let kept = |line: &&str| !line.starts_with("#SBATCH") && !line.starts_with("module load");
    script.lines().filter(kept).collect::<Vec<_>>().join("\n") + "\n"
}

/// All different scripts, with a name for each.
fn scripts() -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for recipe in &RecipeCatalog::shipped().recipes {
        for site in sites::presets() {
            let with_more = matches!(site.name.as_str(), "demo" | "generic");
            let mut cases = vec![Vec::new()];
            cases.extend(if with_more { further(&recipe.name) } else { Vec::new() });
            for (number, case) in cases.into_iter().enumerate() {
                let mut answers = needed(&recipe.name);
                answers.extend(case);
                let job = composed(&recipe.name, &answers, &place(site));
                let name = format!("{}-{}-{number}", recipe.name, site.name.as_str());
                assert_eq!(job.problems, [], "{name}");
                found.entry(body(&job.build_script())).or_insert(name);
            }
        }
    }
    found
}

#[test]
fn every_script_at_every_site_is_valid_bash() {
    let folder = tempfile::tempdir().unwrap();
    let scripts = scripts();
    assert!(scripts.len() > 50, "{}", scripts.len());
    for (text, name) in &scripts {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let read = "for script in *; do bash -n \"$script\" || exit 1; done";
    let done = Command::new("bash").args(["-c", read]).current_dir(folder.path()).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    // Files that are sourced are on the cluster. A comma is part of a program's own argument.
    let done = Command::new("shellcheck")
        .args(["--severity=warning", "--exclude=SC1090,SC1091,SC2054", "--format=gcc"])
        .args(scripts.values())
        .current_dir(folder.path())
        .output()
        .expect("shellcheck is installed by script/test");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

/// What people get from each recipe, word for word: a change in a recipe or in a shared block shows in every script.
#[test]
fn scripts_at_the_demo_site_read_as_recorded() {
    let site = sites::presets().iter().find(|site| site.name.as_str() == "demo").unwrap();
    let _settings = snapshots_in("recipes_scripts");
    for recipe in &RecipeCatalog::shipped().recipes {
        let job = composed(&recipe.name, &needed(&recipe.name), &place(site));
        insta::assert_snapshot!(recipe.name.as_str(), job.build_script());
    }
}
