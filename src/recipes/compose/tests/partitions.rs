//! The partition in the script, and what scripts of people's own keep.

use super::*;

/// A cluster of which only what it showed is known: GPUs are in a partition that isn't the default one.
fn unknown_site() -> ComposeCluster {
    let site = sites::presets().iter().find(|site| site.name.as_str() == "generic").unwrap().clone();
    let sinfo = include_str!("../../../../tests/fixtures/slurm/sinfo-22.05.txt");
    let mut cluster = ComposeCluster {
        site: Arc::new(site),
        partitions: crate::slurm::partitions::parse_partitions(sinfo),
        ..demo()
    };
    cluster.gpus[0].partition = None;
    cluster
}

#[test]
fn a_partition_is_chosen_from_what_the_cluster_showed() {
    let (form, cluster) = (form("python-script"), unknown_site());
    let partitions = |change: &[(&str, &str)]| {
        let mut answers = form.defaults(&cluster);
        answers.insert("script".into(), "train.py".into());
        answers.extend(change.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())));
        let job = compose(&form, &answers, &cluster);
        assert_eq!(job.problems, []);
        let lines = job.lines.into_iter().filter(|line| line.text.contains("--partition"));
        lines.map(|line| (line.text, line.keys.join(" "))).collect::<Vec<_>>()
    };
    assert_eq!(partitions(&[]), [], "Slurm's default partition");
    let pair = |text: &str| (text.to_owned(), "job_type".to_owned());
    assert_eq!(partitions(&[("gpus", "1")]), [pair("#SBATCH --partition=gpu")]);
    assert_eq!(partitions(&[("gpus", "1"), ("job_type", "debug")]), [pair("#SBATCH --partition=debug")]);
    assert_eq!(partitions(&[("job_type", "debug")]), [pair("#SBATCH --partition=debug")]);
}

/// The partition of someone's own script stays, and what no field takes isn't lost.
#[test]
fn a_script_keeps_its_partition() {
    let (form, mut cluster) = (form("own-script"), unknown_site());
    let mut answers = form.defaults(&cluster);
    answers.insert("script".into(), "#!/bin/bash\n#SBATCH --partition=debug\nhostname\n".into());
    answers.insert("gpus".into(), "1".into());
    let script = compose(&form, &answers, &cluster).build_script();
    assert!(script.contains("--partition=debug") && !script.contains("--partition=gpu"), "{script}");
    answers.insert("script".into(), "#!/bin/bash\nhostname\n".into());
    let script = compose(&form, &answers, &cluster).build_script();
    assert!(script.contains("--partition=gpu"), "{script}");
    answers.insert("gpus".into(), String::new());
    assert!(!compose(&form, &answers, &cluster).build_script().contains("--partition"));
    cluster.partitions.clear();
    let options = script_import::parse_directives("#SBATCH --partition=debug\n");
    assert_eq!(script_import::fill_answers(&form, &mut answers, &options, &cluster), options, "no field for it");
}

/// A script that names both a folder and an output file can be read into the form and sent as it is.
#[test]
fn a_folder_and_an_output_file() {
    let (form, cluster) = (form("own-script"), demo());
    let mut answers = form.defaults(&cluster);
    answers.insert("script".into(), "#!/bin/bash\nhostname\n".into());
    answers.insert("folder".into(), "/work".into());
    answers.insert("options".into(), "--output=/logs/%j.out\n--export=ALL".into());
    let job = compose(&form, &answers, &cluster);
    assert_eq!(job.problems, []);
    let script = job.build_script();
    for line in ["--chdir=/work", "--output=/logs/%j.out", "--export=ALL"] {
        assert!(script.contains(&format!("#SBATCH {line}\n")), "{script}");
    }
}
