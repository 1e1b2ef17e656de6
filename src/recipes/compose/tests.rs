use std::sync::Arc;

use super::*;
use crate::recipes::book::Book;
use crate::recipes::form::SWEEP_AT_ONCE;
use crate::recipes::place::{Account, Gpu};
use crate::sites;

/// The demo cluster as alice finds it.
pub fn demo() -> Place {
    let site = sites::presets().iter().find(|site| site.name.as_str() == "demo").unwrap().clone();
    Place {
        site: Arc::new(site),
        user: "alice".into(),
        accounts: vec![Account {
            name: "def-smith".into(),
            for_cpu: true,
            for_gpu: true,
            ..Account::default()
        }],
        partitions: Vec::new(),
        gpus: vec![Gpu {
            model: Some("t4".into()),
            label: "T4".into(),
            per_node: 2,
            partition: Some("gpu".into()),
            ..Gpu::default()
        }],
        folders: [
            ("HOME", "/home/alice"),
            ("SCRATCH", "/scratch/al ice"),
            ("PROJECT", "/project/x"),
        ]
        .map(|(name, path)| (name.to_owned(), path.to_owned()))
        .into(),
        max_array: Some(1000),
        keeps_comments: true,
    }
}

fn form(name: &str) -> Form {
    let book = Book::shipped();
    Form::of(book.recipe(name).unwrap(), &book.blocks)
}

fn composed(change: &[(&str, &str)]) -> Composed {
    let (form, place) = (form("python-script"), demo());
    let mut answers = form.defaults(&place);
    answers.insert("script".into(), "train.py".into());
    for (key, text) in change {
        answers.insert((*key).to_owned(), (*text).to_owned());
    }
    compose(&form, &answers, &place)
}

#[test]
fn the_first_form_makes_a_whole_script() {
    let job = composed(&[("arguments", "--epochs 3 --data $SLURM_TMPDIR/a")]);
    assert_eq!(job.problems, []);
    let script = job.script();
    for line in [
        "#!/bin/bash",
        "#SBATCH --job-name=python",
        "#SBATCH --account=def-smith",
        "#SBATCH --time=01:00:00",
        "#SBATCH --cpus-per-task=1",
        "#SBATCH --mem=4G",
        "#SBATCH --chdir=\"/scratch/al ice/portolan\"",
        "#SBATCH --output=\"/scratch/al ice/portolan/python-%j.out\"",
        "#SBATCH --export=NONE",
        "python train.py --epochs 3 --data \"$SLURM_TMPDIR\"/a",
    ] {
        assert!(script.lines().any(|known| known == line), "{line} is not in\n{script}");
    }
    assert_eq!(job.folders, ["/scratch/al ice/portolan"]);
    let time = job.lines.iter().find(|line| line.text.contains("--time")).unwrap();
    assert_eq!(time.keys, ["time"]);
    assert!(!script.contains("--gpus"));
}

#[test]
fn a_gpu_brings_its_partition() {
    let job = composed(&[("gpus", "1")]);
    assert_eq!(job.problems, []);
    assert!(job.script().contains("#SBATCH --partition=gpu\n"));
    assert!(job.script().contains("#SBATCH --gpus-per-node=t4:1\n"));
}

#[test]
fn what_is_missing_is_said_and_the_script_is_shown() {
    let job = composed(&[("script", ""), ("memory", "lots"), ("time", "0")]);
    let keys: Vec<&str> = job.problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["script", "time", "memory"]);
    assert!(job.script().contains("python '…'"));
}

#[test]
fn hostile_answers_stay_what_they_are() {
    for text in ["'; rm -rf ~ #", "$(id)", "`id`", "a\n#SBATCH --account=other", "x\u{0}y", "%n"] {
        let job = composed(&[
            ("script", text),
            ("job_name", text),
            ("arguments", text),
            ("folder", text),
        ]);
        let directives = read_back::directives(&job.script());
        let accounts = directives.iter().filter(|(option, _)| option == "--account");
        assert_eq!(accounts.count(), 1, "{text:?}");
        assert!(!job.script().contains("#SBATCH --account=other"));
    }
}

#[test]
fn a_sweep_becomes_an_array() {
    let job = composed(&[("sweep.script", "a.py, 'b c.py'"), (SWEEP_AT_ONCE, "2")]);
    assert_eq!(job.problems, []);
    let script = job.script();
    assert!(script.contains("#SBATCH --array=0-1%2\n"), "{script}");
    assert!(script.contains("script_values=(a.py 'b c.py')\n"), "{script}");
    assert!(script.contains("python \"$script\""), "{script}");
    assert!(script.contains("python-%A_%a.out"), "{script}");
    let job = composed(&[("sweep.memory", "1G, 2G")]);
    assert_eq!(job.problems[0].key, "memory");
}

#[test]
fn locked_answers_cannot_be_changed() {
    let (mut form, place) = (form("python-script"), demo());
    form.locked.insert("time".into());
    let mut answers = form.defaults(&place);
    answers.insert("script".into(), "x.py".into());
    assert_eq!(compose(&form, &answers, &place).problems, []);
    answers.insert("time".into(), "100h".into());
    let job = compose(&form, &answers, &place);
    assert_eq!(job.problems[0].key, "time");
    assert!(job.script().contains("--time=01:00:00"));
}
