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
        "You have several projects on this cluster. Choose which one pays for this job.",
    ),
    message(
        &["you cannot use this account to submit"],
        &[RequestField::Account],
        "This project cannot pay for such a job here: it has a share for GPUs only, or for jobs without GPUs only. Choose another one.",
    ),
    message(
        &["gpu type required"],
        &[RequestField::GpuModel, RequestField::Gpus],
        "This cluster wants to know which GPU the job needs. Choose one.",
    ),
    message(
        &["submitting jobs from directories residing in /home"],
        &[RequestField::Folder],
        "This cluster takes no jobs that start in a home folder. Let it start in a folder on scratch or in the project.",
    ),
    message(
        &["walltime must be at least"],
        &[RequestField::Time],
        "It asks for less time than jobs must have here. Ask for a little more.",
    ),
    message(
        &["request is not allowed nor necessary", "--mem request is not allowed"],
        &[RequestField::Memory, RequestField::MemoryPerCore],
        "Jobs do not ask for memory here: each has all the memory of its nodes. Leave it out.",
    ),
    message(
        &["read-only on the compute nodes"],
        &[RequestField::Output],
        "Its output would go to a folder that jobs can only read. Let it go to a folder on scratch.",
    ),
    message(
        &["cannot use environment variables"],
        &[RequestField::Output],
        "The path of its output holds a variable such as $SCRATCH, which is not filled in there. Write the whole path.",
    ),
    // Limit names, on a line of their own.
    message(
        &["billingminutes", "cpuminutes", "tresminutes", "gresminutes", "memminutes", "grpwalllimit"],
        &[RequestField::Time, RequestField::Account],
        "Too little is left of the project's quota for the whole time that this job asks for. Ask for less time, use another project, or ask whoever leads the project for more.",
    ),
    message(
        &["runminutes"],
        &[RequestField::Time],
        "With the jobs that run already, it would reserve more computing time than is allowed at once. Ask for less time, or wait until some have ended.",
    ),
    message(
        &["maxsubmitjob", "grpsubmitjob", "submitjobslimit"],
        &[RequestField::Array],
        "You or your project have as many jobs in the queue as are allowed; each task of an array counts as one. Wait until some have ended, or make the array smaller.",
    ),
    message(
        &["maxwalldurationperjob", "maxwallduration"],
        &[RequestField::Time],
        "It asks for more time than jobs of this project or sort may have. Ask for less.",
    ),
    message(
        &["maxjobsper", "maxjobslimit", "grpjobs"],
        &[RequestField::Array],
        "You or your project have as many jobs as are allowed at a time. Wait until some have ended.",
    ),
    message(
        &["maxnodeper", "grpnode", "maxnodes"],
        &[RequestField::Nodes],
        "It asks for more nodes than a job of this project or sort may have. Ask for fewer.",
    ),
    message(
        &["maxcpuper", "grpcpu", "maxcpus"],
        &[RequestField::Cores, RequestField::Tasks],
        "It asks for more cores than a job of this project or sort may have. Ask for fewer.",
    ),
    message(
        &["maxgresper", "grpgres"],
        &[RequestField::Gpus],
        "It asks for more GPUs than a job of this project or sort may have. Ask for fewer.",
    ),
    message(
        &["maxmemper", "maxmemoryper", "grpmem"],
        &[RequestField::Memory],
        "It asks for more memory than a job of this project or sort may have. Ask for less.",
    ),
    message(
        &["qosmin", "qosnotallowed"],
        &[RequestField::Qos, RequestField::Partition],
        "The kind of service (QOS) is not for such a job. Choose another sort of job.",
    ),
    // Slurm.
    message(
        &["requested time limit is invalid"],
        &[RequestField::Time],
        "The time it asks for is longer than jobs may run there, or none was given. Ask for less.",
    ),
    message(
        &["invalid --time specification"],
        &[RequestField::Time],
        "The time was not understood. Write it like 3:00:00 for three hours, or 1-12:00:00 for a day and a half.",
    ),
    message(
        &["memory specification can not be satisfied", "memory required by task is not available"],
        &[RequestField::Memory, RequestField::MemoryPerCore],
        "No machine there has as much memory. Ask for less, or choose a sort of job with larger machines.",
    ),
    message(
        &["invalid account or account/partition combination"],
        &[RequestField::Account, RequestField::Partition],
        "You cannot use this project on this cluster, or not in this partition. Shares from a competition are often valid on one cluster only. Choose another project.",
    ),
    message(
        &["invalid generic resource", "invalid gres specification", "invalid tres"],
        &[RequestField::GpuModel, RequestField::Gpus],
        "This cluster has no GPU of that name. Choose one that it has.",
    ),
    message(
        &["invalid partition name", "invalid partition specified"],
        &[RequestField::Partition],
        "This cluster has no partition of that name. Choose another sort of job.",
    ),
    message(
        &["no partition specified or system default partition"],
        &[RequestField::Partition],
        "This cluster wants each job to name its partition. Choose a sort of job.",
    ),
    message(
        &["user's group not permitted to use this partition", "access/permission denied to partition"],
        &[RequestField::Partition],
        "You may not use this partition. Choose another sort of job.",
    ),
    message(
        &["invalid qos specification", "invalid qos"],
        &[RequestField::Qos, RequestField::Partition],
        "You cannot use this kind of service (QOS) on this cluster, or there is none of that name. Choose another sort of job.",
    ),
    message(
        &["requested partition configuration not available now"],
        &[RequestField::Partition, RequestField::Nodes, RequestField::Time],
        "The partition cannot take such a job now: it asks for more nodes or time than the partition has, or the partition is closed.",
    ),
    message(
        &[
            "more processors requested than permitted",
            "cpu count specification invalid",
            "cpu count per node can not be satisfied",
        ],
        &[RequestField::Cores, RequestField::Tasks, RequestField::Nodes],
        "It asks for more cores or nodes than there are. Ask for fewer.",
    ),
    message(
        &["node count specification invalid", "invalid --nodes specification"],
        &[RequestField::Nodes],
        "It asks for a number of nodes that is not possible there. Ask for fewer, or for at least one.",
    ),
    message(
        &["requested node configuration is not available"],
        &[RequestField::Cores, RequestField::Memory, RequestField::Gpus, RequestField::GpuModel],
        "No machine there has this mix of cores, memory and GPUs. Ask for less of one of them, or choose another GPU or sort of job.",
    ),
    message(
        &["invalid job array specification"],
        &[RequestField::Array],
        "The array has more tasks than are allowed here, or its list cannot be read. Write it like 0-11, or split it.",
    ),
    message(
        &["job dependency problem", "circular job dependency", "dependency specification"],
        &[RequestField::After],
        "The job that it is to wait for is not known any more, or its number is wrong. Choose another one, or none.",
    ),
    message(
        &["invalid feature specification"],
        &[RequestField::Other],
        "It wants machines with a feature that this cluster does not know (--constraint). Look that option up, or leave it out.",
    ),
    message(
        &["requested reservation is invalid", "reservation"],
        &[RequestField::Other],
        "The reservation that it names is not there, is over, or is not yours.",
    ),
    message(
        &["invalid license specification"],
        &[RequestField::Other],
        "It asks for a licence that this cluster does not know (--licenses).",
    ),
    message(
        &["begin specification", "invalid time specification"],
        &[RequestField::Other],
        "The time from which it may start was not understood (--begin).",
    ),
    message(
        &["unrecognized option", "invalid option", "requires an argument", "is ambiguous"],
        &[RequestField::Other],
        "The cluster does not know one of the options in the script. It names it below.",
    ),
    message(
        &["invalid --signal specification"],
        &[RequestField::Warn],
        "The signal before its end was not understood (--signal).",
    ),
    message(&["batch script is empty"], &[], "The script is empty: there is nothing to run."),
    message(
        &["does not look like a batch script"],
        &[],
        "The script's first line must say which program reads it, such as #!/bin/bash.",
    ),
    message(
        &["contains dos line breaks"],
        &[],
        "The script has line ends as Windows writes them. Save it with those of Unix (LF).",
    ),
    message(
        &["unable to open file"],
        &[],
        "The cluster did not find the script's file. It may have been moved or deleted.",
    ),
    message(
        &["disk quota exceeded", "no space left on device"],
        &[RequestField::Folder, RequestField::Output],
        "There is no room left for its files: the quota of space or of the number of files is used up. Delete something, or use another folder.",
    ),
    message(
        &["job violates accounting/qos policy"],
        &[RequestField::Account, RequestField::Qos, RequestField::Time],
        "It goes beyond a limit of your project or of this sort of job: in time, in size, or in the number of jobs. The cluster does not say which.",
    ),
    message(
        &["access/permission denied", "user not found on host", "invalid user id"],
        &[],
        "The cluster does not let you submit this job. Its support can say why.",
    ),
    message(
        &["unable to contact slurm controller"],
        &[],
        "Slurm's controller did not answer, so the job was not taken. Look for it in your list before you try again in a few minutes.",
    ),
    message(&["rate limit"], &[], "The cluster is busy and asked to wait. Try again in a moment."),
    message(
        &["job submission is disabled", "slurm backup controller in standby", "system is temporarily"],
        &[],
        "The cluster takes no jobs at the moment. Try again later.",
    ),
];
