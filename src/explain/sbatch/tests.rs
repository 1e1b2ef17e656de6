use proptest::prelude::*;

use super::*;

/// Recorded on the demo cluster: `=== NAME: COMMAND`, the output, `(exit CODE)`.
const RECORDED: &str = include_str!("../../../tests/fixtures/slurm/sbatch-refused-22.05.txt");

/// The output recorded under a name.
fn recorded(name: &str) -> &'static str {
    let part = RECORDED
        .split("=== ")
        .find(|part| part.split([':', '\n']).next() == Some(name))
        .unwrap_or_else(|| panic!("{name}"));
    let (_, said) = part.split_once('\n').unwrap();
    said.rsplit_once("(exit").unwrap().0
}

#[test]
fn refusals_of_the_demo_cluster() {
    let cases: &[(&str, RequestField, &str)] = &[
        ("account", RequestField::Account, "You can't use this account on this cluster"),
        ("account_partition", RequestField::Account, "You can't use this account on this cluster"),
        ("partition", RequestField::Partition, "no partition with that name"),
        ("time", RequestField::Time, "longer than the partition allows"),
        ("time_cpu", RequestField::Time, "longer than the partition allows"),
        ("time_bad", RequestField::Time, "The time limit isn't valid"),
        ("memory", RequestField::Memory, "that much memory"),
        ("memory_core", RequestField::Memory, "that much memory"),
        ("gres", RequestField::Gpus, "No node in the partition"),
        ("gres_count", RequestField::Gpus, "No node in the partition"),
        ("gpus_cpu", RequestField::Gpus, "No node in the partition"),
        ("gpus_model", RequestField::GpuModel, "No node in the partition"),
        ("qos", RequestField::Qos, "this QOS"),
        ("dependency_bad", RequestField::After, "wait for"),
        ("array", RequestField::Array, "more tasks"),
        ("array_bad", RequestField::Array, "more tasks"),
        ("nodes", RequestField::Nodes, "more cores or nodes"),
        ("nodes_bad", RequestField::Nodes, "number of nodes"),
        ("cores", RequestField::Cores, "more cores or nodes"),
        ("tasks", RequestField::Tasks, "more cores or nodes"),
        ("constraint", RequestField::Other, "feature"),
        ("unknown_option", RequestField::Other, "options in the script"),
        ("begin", RequestField::Other, "start time"),
        ("reservation", RequestField::Other, "reservation"),
        ("license", RequestField::Other, "licence"),
        ("signal", RequestField::Warn, "signal"),
        ("submit_limit", RequestField::Array, "as many jobs in the queue"),
    ];
    for (name, about, part) in cases {
        let refused = explain_sbatch(recorded(name));
        assert!(refused.sentence.contains(part), "{name}: {}", refused.sentence);
        assert!(refused.fields.contains(about) && !refused.is_unsure, "{name}: {refused:?}");
        assert!(!refused.slurm.is_empty() && refused.accounts.is_empty(), "{name}");
    }
    for (name, part) in [
        ("empty", "script is empty"),
        ("nobang", "#!/bin/bash"),
        ("dos", "Windows"),
        ("nofile", "couldn't find the script"),
    ] {
        assert!(explain_sbatch(recorded(name)).sentence.contains(part), "{name}");
    }
}

/// As quoted on the centres' pages and in other tools.
#[test]
fn messages_of_centres() {
    let cases: &[(&str, Option<RequestField>, &str)] = &[
        (
            "Submitting jobs from directories residing in /home is not permitted",
            Some(RequestField::Folder),
            "home folder",
        ),
        (
            "SBATCH ERROR:\n Walltime must be at least 15 minutes (except on the debug partition)\n\
             SBATCH: Job not submitted because of this error.",
            Some(RequestField::Time),
            "shorter than this cluster allows",
        ),
        (
            "SBATCH ERROR:\n The --mem=... request is not allowed nor necessary on Trillium; ...\n\
             SBATCH: Job not submitted because of this error.",
            Some(RequestField::Memory),
            "can't request memory",
        ),
        (
            "Job output requested to be written to file /home/x/y.out which is read-only on the compute nodes.",
            Some(RequestField::Output),
            "read-only for jobs",
        ),
        (
            "Job output file specification cannot use environment variables like $SCRATCH",
            Some(RequestField::Output),
            "variable",
        ),
        (
            "sbatch: error: AssocGrpBillingMinutes\nsbatch: error: Batch job submission failed: Job violates \
             accounting/QOS policy (job submit limit, user's size and/or time limits)",
            Some(RequestField::Time),
            "doesn't have enough left",
        ),
        (
            "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates \
             accounting/QOS policy (job submit limit, user's size and/or time limits)",
            Some(RequestField::Array),
            "as many jobs in the queue",
        ),
        (
            "sbatch: error: QOSMaxWallDurationPerJobLimit\nsbatch: error: Batch job submission failed: Job violates \
             accounting/QOS policy (job submit limit, user's size and/or time limits)",
            Some(RequestField::Time),
            "more time",
        ),
        (
            "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
            Some(RequestField::Account),
            "doesn't say which",
        ),
        ("Invalid generic resource (gres) specification", Some(RequestField::GpuModel), "no GPU"),
        ("Memory required by task is not available", Some(RequestField::Memory), "that much memory"),
        ("CPU count specification invalid", Some(RequestField::Cores), "more cores"),
        ("Node count specification invalid", Some(RequestField::Nodes), "nodes"),
        ("No partition specified or system default partition", Some(RequestField::Partition), "partition"),
        ("Circular job dependency", Some(RequestField::After), "wait for"),
        ("Disk quota exceeded", Some(RequestField::Output), "no space left"),
        ("cat: write error: No space left on device", Some(RequestField::Output), "no space left"),
        ("Unable to contact slurm controller (connect failure)", None, "didn't respond"),
        ("Rate limit exceeded, please retry momentarily", None, "busy"),
        ("allocation failure: Requested node configuration is not available", Some(RequestField::Gpus), "No node"),
        ("something new", None, "Its message is below"),
    ];
    for (said, about, part) in cases {
        let refused = explain_sbatch(said);
        assert!(refused.sentence.contains(part), "{said}: {}", refused.sentence);
        assert!(about.is_none_or(|about| refused.fields.contains(&about)), "{said}: {refused:?}");
        assert!(!refused.is_unsure, "{said}");
    }
}

#[test]
fn projects_to_choose_from() {
    let lists = "sbatch: error: You are associated with multiple _cpu allocations...\n\
                 sbatch: error: Please specify one of the following accounts to submit this job:\n\
                 sbatch: error:   RAS default accounts: def-a, def-b, \n\
                 sbatch: error:           RAC accounts: rpp-x, \n\
                 sbatch: error:   Compute-Burst accounts: \n\
                 sbatch: error:          Other accounts: \n\
                 sbatch: error: Use the parameter --account=desired_account when submitting your job\n";
    let general = "sbatch: error: Batch job submission failed: Unspecified error\n";
    // The general line may come first or last.
    for said in [format!("{lists}{general}"), format!("{general}{lists}")] {
        let refused = explain_sbatch(&said);
        assert_eq!(refused.accounts, ["def-a", "def-b", "rpp-x"]);
        assert_eq!(refused.fields, [RequestField::Account]);
        assert!(refused.sentence.contains("several accounts"));
    }
    let other = explain_sbatch(
        "You cannot use this account to submit this job.\nPlease use one of the following accounts:\n\
         def-smith, rrg-smith\ndef-a\nUse the parameter --account=desired_account\n",
    );
    assert_eq!(other.accounts, ["def-smith", "rrg-smith", "def-a"]);
    assert!(other.sentence.contains("only for GPU jobs"));
    assert!(explain_sbatch("Please specify one of the accounts: none of them is yours").accounts.is_empty());
}

#[test]
fn banners_lose_their_colours_and_frames() {
    let refused = explain_sbatch(
        "\u{1b}[1;31m=====================\u{1b}[0m\n\u{1b}[1;31mGPU type required (e.g. --gpus=h100:1)\u{1b}[0m\n\
         \u{1b}[1;31m=====================\u{1b}[0m\r\nsbatch: error: Batch job submission failed: Unspecified error",
    );
    assert_eq!(
        refused.slurm,
        "GPU type required (e.g. --gpus=h100:1)\nsbatch: error: Batch job submission failed: Unspecified error"
    );
    assert_eq!(refused.fields, [RequestField::GpuModel, RequestField::Gpus]);
}

#[test]
fn where_nobody_knows() {
    for said in [
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        "slurm_receive_msg: Zero Bytes were transmitted or received",
        "",
        "\n\n",
    ] {
        let refused = explain_sbatch(said);
        assert!(refused.is_unsure && refused.sentence.contains("your job list"), "{said:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_survived_and_bounded(text in "(?s)(.|accounts:|def-a|, |\n|\u{1b}\\[31m){0,300}") {
        let refused = explain_sbatch(&text);
        prop_assert!(refused.slurm.chars().count() <= MAX_TEXT_BYTES && refused.accounts.len() <= MAX_ACCOUNTS);
        prop_assert!(!refused.slurm.chars().any(|c| c.is_control() && c != '\n'));
        prop_assert!(refused.accounts.iter().all(|name| is_account(name)));
    }
}

#[test]
fn the_table_is_written_as_it_is_read() {
    for message in MESSAGES {
        assert!(message.means.ends_with('.'), "{}", message.means);
        for part in message.says {
            assert_eq!(*part, part.to_lowercase());
            assert!(!part.contains("  "));
        }
    }
}
