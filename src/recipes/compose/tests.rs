mod form_choices;
mod partitions;

use std::sync::Arc;

use super::*;
use crate::recipes::catalog::RecipeCatalog;
use crate::recipes::context::{AvailableGpu, SubmitAccount};
use crate::recipes::form::{SWEEP_AT_ONCE, SWEEP_ONLY};
use crate::recipes::question::RequiredPathKind;
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
fn some_points_of_a_sweep_run_alone() {
    let five = ("sweep.script", "1..5");
    let job = composed(&[five, (SWEEP_ONLY, "1, 3-4"), (SWEEP_AT_ONCE, "2")]);
    assert_eq!(job.problems, []);
    let script = job.build_script();
    assert!(script.contains("#SBATCH --array=1,3-4%2\n"), "{script}");
    assert!(script.contains("script_values=(1 2 3 4 5)\n"), "every point keeps its number: {script}");
    let many = vec!["0-4"; 10_000].join(",");
    for wrong in ["5", "0-5", "x", "1%2", "-1", many.as_str()] {
        let job = composed(&[five, (SWEEP_ONLY, wrong)]);
        assert_eq!(job.problems[0].key, SWEEP_ONLY, "{wrong:.20}");
        assert!(job.problems[0].sentence.contains("from 0 to 4"), "{}", job.problems[0].sentence);
    }
    assert!(composed(&[(SWEEP_ONLY, "7")]).request.array.is_none(), "without a sweep, it means nothing");
}

fn inputs(change: &[(&str, &str)]) -> Vec<(String, String)> {
    let found = composed(change).input_paths;
    found.into_iter().map(|input| (input.key, input.path)).collect()
}

#[test]
fn files_that_a_job_reads() {
    let pair = |key: &str, path: &str| (key.to_owned(), path.to_owned());
    // Relative paths start in the job's folder.
    assert_eq!(inputs(&[]), [pair("script", "/scratch/al ice/portolan/train.py")]);
    assert_eq!(inputs(&[("script", "~/a b.py")]), [pair("script", "/home/alice/a b.py")]);
    let code = [("code", "folder"), ("code_folder", "$PROJECT/code/")];
    let expected = [pair("script", "/project/x/code/train.py"), pair("code_folder", "/project/x/code/")];
    assert_eq!(inputs(&code), expected);
    // Only the job knows where a clone is, and what is on the node's disk.
    assert!(inputs(&[("code", "git"), ("code_repository", "/r")]).is_empty());
    assert!(inputs(&[("script", "$SLURM_TMPDIR/x.py")]).is_empty());
    let data = inputs(&[("script", "/s.py"), ("data", "$SCRATCH/a.tar\n/b.tar\n/b.tar")]);
    assert_eq!(data, [pair("script", "/s.py"), pair("data", "/scratch/al ice/a.tar"), pair("data", "/b.tar")]);
    // A list of thousands costs no more than its first few.
    let many: Vec<String> = (0..4900).map(|number| format!("/{number}")).collect();
    assert_eq!(inputs(&[("script", "/s.py"), ("data", &many.join("\n"))]).len(), 20);
    // What the job creates, and what isn't asked, is left out.
    let more = [("script", "/s.py"), ("keep", "true"), ("results_to", "/new"), ("venv", "/v")];
    assert_eq!(inputs(&more), [pair("script", "/s.py")]);
    let venv = composed(&[("environment", "venv"), ("venv", "/v")]).input_paths;
    let kinds: Vec<RequiredPathKind> = venv.iter().map(|input| input.kind).collect();
    assert_eq!(kinds, [RequiredPathKind::File, RequiredPathKind::Folder]);
}

#[test]
fn software_that_is_left_empty_is_told_of() {
    let warned = |change: &[(&str, &str)]| {
        let job = composed(change);
        assert_eq!(job.problems, [], "a warning keeps nobody from submitting");
        job.warnings.into_iter().map(|warning| warning.key).collect::<Vec<_>>()
    };
    assert_eq!(warned(&[]), [""; 0], "the demo suggests modules");
    assert_eq!(warned(&[("modules", " ")]), ["modules"]);
    assert_eq!(warned(&[("modules", ""), ("environment", "none")]), [""; 0]);
    let wheels = ("environment", "wheels");
    assert_eq!(warned(&[wheels, ("modules", "")]), ["requirements"]);
    assert_eq!(warned(&[wheels, ("packages", "numpy")]), [""; 0]);
    assert_eq!(warned(&[wheels, ("requirements", "/r.txt")]), [""; 0]);
}

#[test]
fn the_example_is_ready_to_submit() {
    let (form, cluster) = (form("training-example"), demo());
    let job = compose(&form, &form.defaults(&cluster), &cluster);
    assert_eq!((job.problems.as_slice(), job.warnings.as_slice()), (&[][..], &[][..]));
    assert_eq!(job.input_paths, [], "it brings along all that it needs");
    let request = &job.request;
    assert_eq!((request.account.as_deref(), request.minutes), (Some("def-smith"), Some(10)));
    assert_eq!(request.folder.as_deref(), Some("/scratch/al ice/portolan"));
    let script = job.build_script();
    assert!(script.contains("run='/scratch/al ice/portolan'/tensorboard/\"run-$SLURM_JOB_ID\"\n"), "{script}");
    assert!(form.can_sweep(form.question("learning_rate").unwrap()), "to compare curves");
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
    answers.insert("array".into(), "3,7-8%2".into());
    let script = compose(&form, &answers, &cluster).build_script();
    assert!(script.contains("#SBATCH --array=3,7-8%2\n"), "{script}");
    answers.insert("array".into(), "all".into());
    assert_eq!(compose(&form, &answers, &cluster).problems[0].key, "array");
}

/// The list of tasks moves into its field, so that it can be changed there.
#[test]
fn the_array_of_a_script_is_read_into_its_field() {
    let cluster = demo();
    let options = script_import::parse_directives("#!/bin/bash\n#SBATCH --array=0-9%4 --nice=5\n");
    let form_of_script = form("own-script");
    let mut answers = form_of_script.defaults(&cluster);
    let rest = script_import::fill_answers(&form_of_script, &mut answers, &options, &cluster);
    assert_eq!((answers["array"].as_str(), rest.len()), ("0-9%4", 1));
    // A number of consecutive jobs is something else.
    let pieces = form("python-script");
    let mut answers = pieces.defaults(&cluster);
    assert_eq!(script_import::fill_answers(&pieces, &mut answers, &options, &cluster).len(), 2);
}

/// With ten minutes' warning, a ten-minute job would be signalled as soon as it starts.
#[test]
fn a_warning_never_comes_in_the_first_half() {
    let job = composed(&[("keep", "true"), ("warn", "10"), ("time", "10m")]);
    assert_eq!((job.problems.len(), job.request.warn_s), (0, Some(300)));
}
