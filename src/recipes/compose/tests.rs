use std::sync::Arc;

use super::*;
use crate::recipes::catalog::RecipeCatalog;
use crate::recipes::context::{AvailableGpu, SubmitAccount};
use crate::recipes::form::SWEEP_AT_ONCE;
use crate::sites;

/// The demo cluster as alice sees it.
pub fn demo() -> ComposeCluster {
    let site = sites::presets().iter().find(|site| site.name.as_str() == "demo").unwrap().clone();
    ComposeCluster {
        site: Arc::new(site),
        user: "alice".into(),
        accounts: vec![SubmitAccount {
            name: "def-smith".into(),
            for_cpu: true,
            for_gpu: true,
            ..SubmitAccount::default()
        }],
        partitions: Vec::new(),
        gpus: vec![AvailableGpu {
            model: Some("t4".into()),
            label: "T4".into(),
            per_node: 2,
            partition: Some("gpu".into()),
            ..AvailableGpu::default()
        }],
        folders: [("HOME", "/home/alice"), ("SCRATCH", "/scratch/al ice"), ("PROJECT", "/project/x")]
            .map(|(name, path)| (name.to_owned(), path.to_owned()))
            .into(),
        max_array: Some(1000),
        keeps_comments: true,
    }
}

fn form(name: &str) -> RecipeQuestionForm {
    let book = RecipeCatalog::shipped();
    RecipeQuestionForm::new(book.find(name).unwrap(), &book.blocks)
}

fn composed(change: &[(&str, &str)]) -> ComposedJob {
    let (form, cluster) = (form("python-script"), demo());
    let mut answers = form.defaults(&cluster);
    answers.insert("script".into(), "train.py".into());
    for (key, text) in change {
        answers.insert((*key).to_owned(), (*text).to_owned());
    }
    compose(&form, &answers, &cluster)
}

#[test]
fn the_first_form_makes_a_whole_script() {
    let job = composed(&[("arguments", "--epochs 3 --data $SLURM_TMPDIR/a")]);
    assert_eq!(job.problems, []);
    let script = job.build_script();
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
        "  python3 train.py --epochs 3 --data \"$SLURM_TMPDIR\"/a",
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
    assert!(job.build_script().contains("#SBATCH --partition=gpu\n"));
    assert!(job.build_script().contains("#SBATCH --gpus-per-node=t4:1\n"));
}

#[test]
fn what_is_missing_is_said_and_the_script_is_shown() {
    let job = composed(&[("script", ""), ("memory", "lots"), ("time", "0")]);
    let keys: Vec<&str> = job.problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["script", "time", "memory"]);
    assert!(job.build_script().contains("python3 '…'"));
}

#[test]
fn hostile_answers_stay_what_they_are() {
    for text in ["'; rm -rf ~ #", "$(id)", "`id`", "a\n#SBATCH --account=other", "x\u{0}y", "%n"] {
        let job = composed(&[("script", text), ("job_name", text), ("arguments", text), ("folder", text)]);
        let directives = script_import::parse_directives(&job.build_script());
        let accounts = directives.iter().filter(|(option, _)| option == "--account");
        assert_eq!(accounts.count(), 1, "{text:?}");
        assert!(!job.build_script().contains("#SBATCH --account=other"));
    }
}

#[test]
fn a_sweep_becomes_an_array() {
    let job = composed(&[("sweep.script", "a.py, 'b c.py'"), (SWEEP_AT_ONCE, "2")]);
    assert_eq!(job.problems, []);
    let script = job.build_script();
    assert!(script.contains("#SBATCH --array=0-1%2\n"), "{script}");
    assert!(script.contains("script_values=(a.py 'b c.py')\n"), "{script}");
    assert!(script.contains("python3 \"$script\""), "{script}");
    assert!(script.contains("python-%A_%a.out"), "{script}");
    let job = composed(&[("sweep.memory", "1G, 2G")]);
    assert_eq!(job.problems[0].key, "memory");
}

#[test]
fn locked_answers_cannot_be_changed() {
    let (mut form, cluster) = (form("python-script"), demo());
    form.locked.insert("time".into());
    let mut answers = form.defaults(&cluster);
    answers.insert("script".into(), "x.py".into());
    assert_eq!(compose(&form, &answers, &cluster).problems, []);
    answers.insert("time".into(), "100h".into());
    let job = compose(&form, &answers, &cluster);
    assert_eq!(job.problems[0].key, "time");
    assert!(job.build_script().contains("--time=01:00:00"));
}

#[test]
fn a_site_that_wants_containers_offers_no_environments() {
    let mut cluster = demo();
    let mut site = (*cluster.site).clone();
    site.jobs.containers_only = true;
    cluster.site = Arc::new(site);
    let form = form("pytorch");
    let mut answers = form.defaults(&cluster);
    answers.insert("script".into(), "train.py".into());
    assert_eq!(answers["environment"], "modules");
    assert_eq!(compose(&form, &answers, &cluster).problems, []);
    answers.insert("environment".into(), "wheels".into());
    assert_eq!(compose(&form, &answers, &cluster).problems[0].key, "environment");
}

#[test]
fn one_task_for_each_gpu() {
    let (form, mut cluster) = (form("pytorch-many"), demo());
    cluster.gpus[0].cores = Some(4);
    cluster.gpus[0].memory_gb = Some(7);
    let mut answers = form.defaults(&cluster);
    answers.insert("script".into(), "train.py".into());
    answers.insert("nodes".into(), "2".into());
    let job = compose(&form, &answers, &cluster);
    assert_eq!(job.problems, []);
    let request = &job.request;
    assert_eq!((request.tasks_per_node, request.cores), (Some(2), Some(4)));
    assert_eq!(request.memory, Some(crate::recipes::request::MemoryRequest::PerNode(14 * 1024)));
    assert!(job.build_script().contains("srun --ntasks=\"$SLURM_NNODES\" --ntasks-per-node=1 bash"));
}

/// A person's own script is sent unchanged and states its own requests.
#[test]
fn a_script_that_stands_alone() {
    let (form, cluster) = (form("own-script"), demo());
    let mut answers = form.defaults(&cluster);
    let own = "#!/bin/bash -l\n#SBATCH --time=5 --account=def-jones\nsrun hostname\n";
    answers.insert("script".into(), own.into());
    answers.insert("options".into(), "--nice=100".into());
    let job = compose(&form, &answers, &cluster);
    assert_eq!(job.problems, []);
    let script = job.build_script();
    assert!(script.starts_with("#!/bin/bash -l\n"), "{script}");
    for line in ["--nice=100", "--time=5", "--account=def-jones"] {
        assert!(script.contains(&format!("#SBATCH {line}\n")), "{script}");
    }
    assert_eq!(script.matches("#SBATCH").count(), 3, "{script}");
    answers.insert("time".into(), "1h".into());
    let script = compose(&form, &answers, &cluster).build_script();
    assert!(script.contains("--time=01:00:00") && !script.contains("--time=5"), "{script}");
}

/// With ten minutes' warning, a ten-minute job would be signalled as soon as it starts.
#[test]
fn a_warning_never_comes_in_the_first_half() {
    let job = composed(&[("keep", "true"), ("warn", "10"), ("time", "10m")]);
    assert_eq!((job.problems.len(), job.request.warn_s), (0, Some(300)));
}
