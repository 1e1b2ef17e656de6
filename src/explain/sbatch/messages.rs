//! Messages from Slurm and from computing centres, with their meanings. Data only.

use crate::recipes::request::RequestField;

pub(super) struct KnownSbatchMessage {
    /// Any of these phrases identifies it; in lower case, with single spaces.
    pub says: &'static [&'static str],
    /// The fields it is about.
    pub about: &'static [RequestField],
    /// What it means, and what to do.
    pub means: &'static str,
}

const fn message(
    says: &'static [&'static str],
    about: &'static [RequestField],
    means: &'static str,
) -> KnownSbatchMessage {
    KnownSbatchMessage { says, about, means }
}

/// The first match wins: first the centres' own messages, then Slurm's limit names, which appear next to a general
/// line, then Slurm's own sentences.
pub(super) const MESSAGES: &[KnownSbatchMessage] = &[
    // Centres.
    message(
        &["you are associated with multiple"],
        &[RequestField::Account],
        "You have several accounts on this cluster. Choose one for this job.",
    ),
    message(
        &["you cannot use this account to submit"],
        &[RequestField::Account],
        "You can't use this account for this job: it's only for GPU jobs, or only for jobs without GPUs. Choose another account.",
    ),
    message(
        &["gpu type required"],
        &[RequestField::GpuModel, RequestField::Gpus],
        "This cluster needs to know which GPU the job uses. Choose a GPU model.",
    ),
    message(
        &["submitting jobs from directories residing in /home"],
        &[RequestField::Folder],
        "This cluster doesn't accept jobs submitted from a home folder. Choose a folder on scratch or in your project space.",
    ),
    message(
        &["walltime must be at least"],
        &[RequestField::Time],
        "The time limit is shorter than this cluster allows. Request a little more time.",
    ),
    message(
        &["request is not allowed nor necessary", "--mem request is not allowed"],
        &[RequestField::Memory, RequestField::MemoryPerCore],
        "Jobs can't request memory on this cluster: each gets all the memory of its nodes. Leave the memory empty.",
    ),
    message(
        &["read-only on the compute nodes"],
        &[RequestField::Output],
        "The output folder is read-only for jobs. Choose a folder on scratch.",
    ),
    message(
        &["cannot use environment variables"],
        &[RequestField::Output],
        "The output path contains a variable such as $SCRATCH, which Slurm doesn't expand. Enter the full path.",
    ),
    // Limit names, on a line of their own.
    message(
        &["billingminutes", "cpuminutes", "tresminutes", "gresminutes", "memminutes", "grpwalllimit"],
        &[RequestField::Time, RequestField::Account],
        "The account doesn't have enough left for this job's full time limit. Request less time, use another account, or ask your PI for more.",
    ),
    message(
        &["runminutes"],
        &[RequestField::Time],
        "Together with your running jobs, it would reserve more computing time than is allowed at once. Request less time, or wait until some jobs end.",
    ),
    message(
        &["maxsubmitjob", "grpsubmitjob", "submitjobslimit"],
        &[RequestField::Array],
        "You or your account have as many jobs in the queue as allowed; each array task counts as one. Wait until some end, or make the array smaller.",
    ),
    message(
        &["maxwalldurationperjob", "maxwallduration"],
        &[RequestField::Time],
        "It requests more time than its account or QOS allows. Request less time.",
    ),
    message(
        &["maxjobsper", "maxjobslimit", "grpjobs"],
        &[RequestField::Array],
        "You or your account have as many jobs as allowed. Wait until some end.",
    ),
    message(
        &["maxnodeper", "grpnode", "maxnodes"],
        &[RequestField::Nodes],
        "It requests more nodes than its account or QOS allows. Request fewer nodes.",
    ),
    message(
        &["maxcpuper", "grpcpu", "maxcpus"],
        &[RequestField::Cores, RequestField::Tasks],
        "It requests more cores than its account or QOS allows. Request fewer cores.",
    ),
    message(
        &["maxgresper", "grpgres"],
        &[RequestField::Gpus],
        "It requests more GPUs than its account or QOS allows. Request fewer GPUs.",
    ),
    message(
        &["maxmemper", "maxmemoryper", "grpmem"],
        &[RequestField::Memory],
        "It requests more memory than its account or QOS allows. Request less memory.",
    ),
    message(
        &["qosmin", "qosnotallowed"],
        &[RequestField::Qos, RequestField::Partition],
        "The QOS doesn't allow this job. Choose another partition or QOS.",
    ),
    // Slurm.
    message(
        &["requested time limit is invalid"],
        &[RequestField::Time],
        "The time limit is longer than the partition allows, or missing. Request less time.",
    ),
    message(
        &["invalid --time specification"],
        &[RequestField::Time],
        "The time limit isn't valid. Write it like 3:00:00 for three hours, or 1-12:00:00 for a day and a half.",
    ),
    message(
        &["memory specification can not be satisfied", "memory required by task is not available"],
        &[RequestField::Memory, RequestField::MemoryPerCore],
        "No node in the partition has that much memory. Request less, or choose a partition with larger nodes.",
    ),
    message(
        &["invalid account or account/partition combination"],
        &[RequestField::Account, RequestField::Partition],
        "You can't use this account on this cluster or in this partition. Accounts awarded in a resource allocation competition are often valid on one cluster only. Choose another account.",
    ),
    message(
        &["invalid generic resource", "invalid gres specification", "invalid tres"],
        &[RequestField::GpuModel, RequestField::Gpus],
        "This cluster has no GPU with that name. Choose another one.",
    ),
    message(
        &["invalid partition name", "invalid partition specified"],
        &[RequestField::Partition],
        "This cluster has no partition with that name. Choose another partition.",
    ),
    message(
        &["no partition specified or system default partition"],
        &[RequestField::Partition],
        "This cluster requires a partition. Choose one.",
    ),
    message(
        &["user's group not permitted to use this partition", "access/permission denied to partition"],
        &[RequestField::Partition],
        "You don't have access to this partition. Choose another one.",
    ),
    message(
        &["invalid qos specification", "invalid qos"],
        &[RequestField::Qos, RequestField::Partition],
        "You can't use this QOS on this cluster, or it doesn't exist. Choose another partition or QOS.",
    ),
    message(
        &["requested partition configuration not available now"],
        &[RequestField::Partition, RequestField::Nodes, RequestField::Time],
        "The partition can't accept this job now: it requests more nodes or time than the partition allows, or the partition is closed. Request less, or choose another partition.",
    ),
    message(
        &[
            "more processors requested than permitted",
            "cpu count specification invalid",
            "cpu count per node can not be satisfied",
        ],
        &[RequestField::Cores, RequestField::Tasks, RequestField::Nodes],
        "It requests more cores or nodes than there are. Request fewer.",
    ),
    message(
        &["node count specification invalid", "invalid --nodes specification"],
        &[RequestField::Nodes],
        "That number of nodes isn't possible in the partition. Request fewer, or at least one.",
    ),
    message(
        &["requested node configuration is not available"],
        &[RequestField::Cores, RequestField::Memory, RequestField::Gpus, RequestField::GpuModel],
        "No node in the partition has this combination of cores, memory and GPUs. Request less, or choose another GPU or partition.",
    ),
    message(
        &["invalid job array specification"],
        &[RequestField::Array],
        "The job array has more tasks than allowed, or its task list isn't valid. Write it like 0-11, or split the array.",
    ),
    message(
        &["job dependency problem", "circular job dependency", "dependency specification"],
        &[RequestField::After],
        "The job it should wait for no longer exists, or its job ID is wrong. Choose another job, or none.",
    ),
    message(
        &["invalid feature specification"],
        &[RequestField::Other],
        "It requests a node feature that this cluster doesn't have (--constraint). Check the feature's name, or remove the option.",
    ),
    message(
        &["requested reservation is invalid", "reservation"],
        &[RequestField::Other],
        "The reservation doesn't exist, has ended, or isn't yours. Choose another one, or none.",
    ),
    message(
        &["invalid license specification"],
        &[RequestField::Other],
        "It requests a licence that this cluster doesn't have (--licenses). Check its name, or remove the option.",
    ),
    message(
        &["begin specification", "invalid time specification"],
        &[RequestField::Other],
        "The start time isn't valid (--begin). Correct it, or remove the option.",
    ),
    message(
        &["unrecognized option", "invalid option", "requires an argument", "is ambiguous"],
        &[RequestField::Other],
        "The cluster doesn't recognise one of the options in the script. Its message below names the option.",
    ),
    message(
        &["invalid --signal specification"],
        &[RequestField::Warn],
        "The signal isn't valid (--signal). Correct it, or remove the option.",
    ),
    message(&["batch script is empty"], &[], "The script is empty."),
    message(
        &["does not look like a batch script"],
        &[],
        "The script's first line must name its interpreter, such as #!/bin/bash.",
    ),
    message(
        &["contains dos line breaks"],
        &[],
        "The script has Windows line endings. Save it with Unix line endings (LF).",
    ),
    message(
        &["unable to open file"],
        &[],
        "The cluster couldn't find the script file. It may have been moved or deleted.",
    ),
    message(
        &["disk quota exceeded", "no space left on device"],
        &[RequestField::Folder, RequestField::Output],
        "There's no space left for its files: the quota for space or number of files is used up. Delete some files, or use another folder.",
    ),
    message(
        &["job violates accounting/qos policy"],
        &[RequestField::Account, RequestField::Qos, RequestField::Time],
        "It exceeds a limit of your account or QOS on time, size or number of jobs. The cluster doesn't say which.",
    ),
    message(
        &["access/permission denied", "user not found on host", "invalid user id"],
        &[],
        "The cluster doesn't allow you to submit this job. Ask its support for the reason.",
    ),
    message(
        &["unable to contact slurm controller"],
        &[],
        "Slurm's controller didn't respond, so the job wasn't accepted. Check your job list, then try again in a few minutes.",
    ),
    message(&["rate limit"], &[], "The cluster is busy. Try again in a moment."),
    message(
        &["job submission is disabled", "slurm backup controller in standby", "system is temporarily"],
        &[],
        "The cluster isn't accepting jobs at the moment. Try again later.",
    ),
];
