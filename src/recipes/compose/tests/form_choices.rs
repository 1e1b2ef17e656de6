//! What forms ask and offer: sweeps, variables, and no more questions than a recipe needs.

use super::*;

#[test]
fn arguments_are_swept_line_by_line() {
    let (form, cluster) = (form("pytorch-many"), demo());
    let mut answers = form.defaults(&cluster);
    answers.insert("script".into(), "train.py".into());
    answers.insert("sweep.arguments".into(), "--lr 0.1 --layers 64,32\n\n--name 'a b'\n".into());
    let job = compose(&form, &answers, &cluster);
    assert_eq!(job.problems, []);
    let script = job.build_script();
    for line in [
        "#SBATCH --array=0-1",
        "case $((SLURM_ARRAY_TASK_ID % 2)) in",
        "  0) arguments=(--lr 0.1 --layers 64,32) ;;",
        "  1) arguments=(--name 'a b') ;;",
    ] {
        assert!(script.lines().any(|known| known == line), "{line} is not in\n{script}");
    }
    assert!(script.contains("python3 train.py \"${arguments[@]}\""), "{script}");
    answers.insert("sweep.arguments".into(), "--lr $UNKNOWN".into());
    assert_eq!(compose(&form, &answers, &cluster).problems[0].key, "arguments");
}

/// Arguments and numbers, but not what is one file, folder or address for all tasks.
#[test]
fn what_a_form_offers_to_sweep() {
    let book = RecipeCatalog::shipped();
    let offered = |name: &str| {
        let form = form(name);
        let all = form.questions().filter(|question| form.offers_sweep(question));
        all.map(|question| question.key.clone()).collect::<Vec<_>>()
    };
    assert_eq!(offered("pytorch-many"), ["arguments"]);
    assert_eq!(offered("training-example"), ["epochs", "learning_rate", "pause"]);
    for recipe in &book.recipes {
        let form = form(&recipe.name);
        for question in form.questions().filter(|question| form.offers_sweep(question)) {
            assert_ne!(question.kind, RecipeQuestionKind::Path, "{} {}", recipe.name, question.key);
        }
    }
}

/// Variables mean the same in repositories and packages as in paths, and nothing else in them is read by bash.
#[test]
fn variables_in_addresses_and_packages() {
    let script = |change: &[(&str, &str)]| {
        let job = composed(change);
        assert_eq!(job.problems, []);
        job.build_script()
    };
    let git = |repository| [("code", "git"), ("code_repository", repository)];
    for (typed, written) in [
        ("$HOME/code it", "\"$HOME\"'/code it'"),
        ("~/code", "\"$HOME\"/code"),
        ("https://example.org/$(id).git", "'https://example.org/$(id).git'"),
        ("git@example.org:a/b.git", "git@example.org:a/b.git"),
        ("${SCRATCH}/x;`id`", "\"$SCRATCH\"'/x;`id`'"),
    ] {
        let script = script(&git(typed));
        assert!(script.contains(&format!("git clone --quiet -- {written} ")), "{typed} in\n{script}");
    }
    let packages = [("environment", "wheels"), ("packages", "numpy>=2\n$PROJECT/a b.whl\n--pre")];
    let script = script(&packages);
    assert!(script.contains("'numpy>=2' \"$PROJECT\"'/a b.whl' --pre\n"), "{script}");
    assert_eq!(composed(&git("$OTHER/x")).problems[0].key, "code_repository");
}

/// What one core and little memory can do asks for neither, whatever a form sends.
#[test]
fn recipes_ask_only_what_they_need() {
    let cluster = demo();
    for (name, memory) in [("get-code", "--mem=2G"), ("pack-folder", "--mem=2G"), ("training-example", "--mem=1G")] {
        let form = form(name);
        let mut answers = form.defaults(&cluster);
        for key in ["cores", "memory", "gpus", "gpu_model"] {
            assert!(!form.is_asked(form.question(key).unwrap(), &answers, &cluster), "{name} {key}");
        }
        answers.insert("gpus".into(), "2".into());
        answers.insert("memory".into(), "900 GB".into());
        let script = compose(&form, &answers, &cluster).build_script();
        assert!(script.contains(memory) && !script.contains("--gpus"), "{script}");
    }
    // A site that takes only jobs with GPUs gets one.
    let mut site = (*cluster.site).clone();
    site.jobs.gpu_only = true;
    let cluster = ComposeCluster { site: Arc::new(site), ..demo() };
    let form = form("get-code");
    assert!(compose(&form, &form.defaults(&cluster), &cluster).build_script().contains("--gpus-per-node=t4:1"));
}

#[test]
fn a_sweep_on_several_nodes_prepares_each() {
    let (form, cluster) = (form("sweep"), demo());
    let mut answers = form.defaults(&cluster);
    for (key, text) in
        [("parameters", "lr = 1, 2"), ("command", "srun echo $lr"), ("environment", "wheels"), ("packages", "torch")]
    {
        answers.insert(key.into(), text.into());
    }
    let script = compose(&form, &answers, &cluster).build_script();
    assert!(!script.contains("--nodes") && !script.contains("-c make_environment"), "{script}");
    answers.insert("nodes".into(), "2".into());
    let job = compose(&form, &answers, &cluster);
    assert_eq!(job.problems, []);
    let script = job.build_script();
    assert!(script.contains("#SBATCH --nodes=2\n#SBATCH"), "{script}");
    assert!(script.contains("--ntasks-per-node=1 bash -eo pipefail -c make_environment\n"), "{script}");
}

/// A script finds the files beside it. A relative path still starts at the output folder.
#[test]
fn scripts_start_in_their_own_folder() {
    let script = |change: &[(&str, &str)]| {
        let job = composed(change);
        assert_eq!(job.problems, []);
        job.build_script()
    };
    for (typed, line) in [
        ("~/analysis/run.py", "cd /home/alice/analysis"),
        ("$SCRATCH/run.py", "cd '/scratch/al ice'"),
        ("/run.py", "cd /"),
    ] {
        let script = script(&[("script", typed)]);
        assert!(script.lines().any(|known| known == line), "{line} is not in\n{script}");
        assert!(script.contains("--output=\"/scratch/al ice/portolan/"), "{script}");
    }
    for change in [&[("script", "sub/run.py")][..], &[("script", "~/a/run.py"), ("code", "here")]] {
        assert!(!script(change).contains("cd "), "{change:?}");
    }
    let folders = |name: &str| {
        let form = form(name);
        form.question("code").unwrap().choices.iter().map(|choice| choice.value.clone()).collect::<Vec<_>>()
    };
    assert_eq!(folders("python-script"), ["script", "here", "folder", "git"]);
    assert_eq!(folders("sweep"), ["here", "folder", "git"], "it runs a command");
}

#[test]
fn script_in_a_folder_that_jobs_cannot_write_to_is_warned_of() {
    let site = sites::presets().iter().find(|site| site.name.as_str() == "trillium").unwrap().clone();
    let cluster = ComposeCluster { site: Arc::new(site), ..demo() };
    let warned = |path: &str| {
        let form = form("python-script");
        let mut answers = form.defaults(&cluster);
        answers.insert("script".into(), path.into());
        let warnings = compose(&form, &answers, &cluster).warnings;
        warnings.into_iter().find(|warning| warning.key == "script").map(|warning| warning.sentence)
    };
    assert!(warned("~/analysis/run.py").unwrap().contains("can read home but not write to it"));
    assert_eq!(warned("$SCRATCH/run.py"), None);
}
