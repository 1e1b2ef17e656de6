//! The terms that people meet on the pages, each explained in a sentence or two. The help page lists them all, and
//! labels on other pages show them. Templates name a term by its variant, so one that doesn't exist doesn't compile.

/// Declares the terms in alphabetical order: name in the code, anchor on the help page, the term, its explanation.
macro_rules! glossary {
    ($($variant:ident $anchor:literal $term:literal: $meaning:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum GlossaryTerm {
            $($variant,)*
        }

        impl GlossaryTerm {
            /// All terms, in alphabetical order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its anchor on the help page.
            pub const fn anchor(self) -> &'static str {
                match self { $(Self::$variant => $anchor,)* }
            }

            /// The term itself, as a title.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $term,)* }
            }

            /// What it means, in plain sentences.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

glossary! {
    Account "account" "Account":
        "The budget that a job is charged to, for example def-smith. Your group has one or more at the centre. \
         It isn't your user name, and it isn't your portal account, which you use to sign in here.";
    Administrator "administrator" "Administrator":
        "Someone who runs this portal: they add clusters, groups and people. They can't see your results or use \
         your SSH key.";
    Allocation "allocation" "Allocation":
        "An amount of computing time that the centre grants to an account for a period, for example 50,000 core \
         hours for one year.";
    AutomationHost "automation-host" "Automation host":
        "A special host at some centres that doesn't ask for a second factor. A key works there only from one IP \
         address, and can run only a few commands.";
    BillingHours "billing-hours" "Billing hours":
        "A unit that some centres charge in: cores, memory and GPUs, combined using the centre's weights and \
         multiplied by time.";
    Cancelled "cancelled" "Cancelled":
        "A job state: someone stopped the job, or removed it from the queue before it started. Usually that was \
         you, but the centre can cancel jobs too.";
    CanNeverStart "cant-start" "Can't start":
        "A job state: as submitted, the job would stay pending forever, for example because it requests more \
         memory than any node has. Its page says what to change.";
    Cluster "cluster" "Cluster":
        "Many computers in one place that work together, run by a computing centre. Many people share it, so jobs \
         have to queue.";
    Completed "completed" "Completed":
        "A job state: the program ended and reported no error.";
    Completing "completing" "Completing":
        "A job state: the program has ended, and the cluster is cleaning up after it. This usually takes a few \
         seconds.";
    Connection "connection" "Connection":
        "The link between the portal and a cluster, under your own user name. It stays open when you close the \
         browser. Your jobs keep running even if the connection closes.";
    Container "container" "Container":
        "A file that holds a program with everything it needs, so that it runs the same everywhere. On clusters, \
         these are usually .sif files.";
    Core "core" "Core":
        "The part of a processor that does the computing, also called a CPU. A node has many of them, and a program \
         uses more than one only if it's written for that.";
    CoreHours "core-hours" "Core hours":
        "The cores allocated to a job, multiplied by time: 4 cores for 3 hours is 12 core hours, whether or not the \
         cores were busy.";
    CpuEfficiency "cpu-efficiency" "CPU efficiency":
        "The CPU time a job used, compared with the core time allocated to it. At 25%, three of four cores were \
         idle.";
    Dashboard "dashboard" "Dashboard":
        "TensorBoard or MLflow, opened in your browser: pages that show the curves of your training runs. The \
         portal starts it as a small job on the cluster.";
    Dependency "dependency" "Dependency":
        "Another job that this one waits for. It starts when the other job has ended, or only if the other job \
         completed.";
    DropBox "drop-box" "Drop-box":
        "A link that lets people without a portal account upload files into one of your folders. They can't see \
         what's in it, and you decide how much they can upload.";
    ExitCode "exit-code" "Exit code":
        "The number that a program returns when it ends. 0 means success; any other number means an error.";
    Failed "failed" "Failed":
        "A job state: the program ended with an error. The job's output usually says which one.";
    FairShare "fair-share" "Fair share":
        "Slurm's way of sharing the cluster fairly: it compares what your group used recently with the share it's \
         entitled to. A group that used less than its share gets higher priority.";
    Forecast "forecast" "Forecast":
        "How much of an allocation will be used by its end if your group continues as in recent weeks. It's a \
         range, not a promise.";
    Gpu "gpu" "GPU":
        "A processor that does many calculations at once, for example to train neural networks. A program uses it only \
         if it's written for that.";
    GpuHours "gpu-hours" "GPU hours":
        "The GPUs allocated to a job, multiplied by time: 2 GPUs for 5 hours is 10 GPU hours, whether or not the \
         GPUs were busy.";
    Group "group" "Group":
        "A lab or team in this portal, with members and one or more PIs. The portal shows its combined usage.";
    GuestLink "guest-link" "Guest link":
        "A link that lets people without an account view one dashboard, report, file or folder. It expires, and can be \
         revoked at any time.";
    Held "held" "Held":
        "A job state: the job waits until someone releases it. You can hold and release your own pending jobs.";
    HomeFolder "home-folder" "Home folder":
        "Your own folder on a cluster, for programs and settings. It's usually small and backed up. In paths, it's \
         written as $HOME or ~.";
    HostKey "host-key" "Host key":
        "The proof of a cluster's identity. The portal checks it each time it connects, and refuses to connect if \
         the key has changed.";
    Job "job" "Job":
        "A program that you submit to the cluster, together with what it needs: time, cores, memory and GPUs. It \
         starts automatically as soon as there's room.";
    JobArray "job-array" "Job array":
        "One job that runs the same script many times, each time with a different number. Each of these runs is a \
         task.";
    JobId "job-id" "Job ID":
        "The number that Slurm gives to a job. Mention it when you ask the centre for help. For a task of a job \
         array, the task's number follows: 4711_3.";
    JobState "job-state" "Job state":
        "What a job is doing now, or how it ended: for example Pending, Running, Completed or Failed.";
    JobType "job-type" "Job type":
        "Jobs whose names differ only in numbers, counted together: fold-1 and fold-12 are one type.";
    LoginNode "login-node" "Login node":
        "The computer that answers when you connect to a cluster; its address is called the login host. It's for \
         preparing jobs; the jobs themselves run on other nodes.";
    MedianWait "median-wait" "Median wait":
        "How long jobs waited from when they were eligible to start until they started. Half of the jobs waited \
         less.";
    Memory "memory" "Memory":
        "The working memory (RAM) that a program needs while it runs, not disk space. A job that needs more than it \
         requested is stopped.";
    MemoryEfficiency "memory-efficiency" "Memory efficiency":
        "The most memory a job used at once, compared with the memory allocated to it.";
    MissedDeadline "deadline-missed" "Missed deadline":
        "A job state: the job could no longer finish by its deadline, so Slurm removed it.";
    Module "module" "Module":
        "Software that the centre has installed on the cluster, for example python or r. A job loads the modules it \
         needs, in the version it needs.";
    Node "node" "Node":
        "One of the computers of a cluster. It has many cores, its own memory, and sometimes GPUs.";
    NodeFailed "node-failed" "Node failed":
        "A job state: a node that the job ran on failed or didn't start. Your program didn't cause this: resubmit \
         the job.";
    OutOfMemory "out-of-memory" "Out of memory":
        "A job state: the job needed more memory than it requested, so Slurm stopped it. Request more next time.";
    Output "output" "Output":
        "What your program prints while it runs, including its error messages. Slurm saves it in a file, and the \
         job's page shows it.";
    OverRequested "over-requested" "Over-requested":
        "Core hours, GPU hours and memory that completed jobs requested beyond what they used plus a 20% margin. \
         Requesting less lets jobs start sooner and makes an allocation last longer.";
    Partition "partition" "Partition":
        "A set of nodes with common rules, for example those with GPUs or those for short jobs. Each job waits and \
         runs in one partition.";
    Pending "pending" "Pending":
        "A job state: the job is in the queue and hasn't started. That's normal on a busy cluster.";
    PendingReason "pending-reason" "Pending reason":
        "Why a job hasn't started yet: often other jobs come first, sometimes a limit is reached, and now and then \
         something in the request has to change.";
    Permissions "permissions" "Permissions":
        "Who on the cluster can read or change a file or folder: only you, your group, or everyone. Someone also \
         needs permission for every folder above it.";
    Pi "pi" "PI":
        "Principal investigator: someone who leads a group. PIs invite members and see the usage of each member.";
    Place "place" "Place":
        "A folder where you can keep files on a cluster, such as your home folder, scratch or a project folder. Each \
         has its own purpose and its own quota.";
    Preempted "preempted" "Preempted":
        "A job state: the job was stopped to make room for one that takes precedence. Some clusters then start it \
         again later.";
    Priority "priority" "Priority":
        "The number that decides the order of pending jobs: the job with the highest priority starts first. It grows \
         while a job waits, and depends on your group's fair share.";
    ProjectFolder "project-folder" "Project folder":
        "A folder that your group shares on a cluster, for data and results you want to keep. In paths, it's often \
         written as $PROJECT.";
    Qos "qos" "QOS":
        "Short for quality of service: a set of rules for a job, such as its maximum time limit, its priority, and \
         how many such jobs can run at once.";
    Queue "queue" "Queue":
        "All jobs waiting for their turn on a cluster. Their order depends on priority, not only on which was \
         submitted first.";
    QueuedDemand "queued-demand" "Queued demand":
        "The core and GPU hours your group's pending jobs would use if each ran to its time limit.";
    Quota "quota" "Quota":
        "How much you can store in a folder: a limit on space, and often on the number of files too. Once you reach \
         it, jobs can't save anything.";
    Recipe "recipe" "Recipe":
        "A form that creates a job, such as Run a Python script. You can save a filled-in form as your own recipe \
         and share it with your group.";
    RecoveryCode "recovery-code" "Recovery code":
        "A code that replaces the one from your phone when you sign in, in case you lose the phone. Each works \
         once.";
    Requeue "requeue" "Requeue":
        "To put a job back into the queue, so that it starts from the beginning. Many clusters do this automatically \
         if a node fails.";
    RguHours "rgu-hours" "RGU hours":
        "Reference GPU units, multiplied by time: the unit in which some centres count GPUs of different speeds.";
    Running "running" "Running":
        "A job state: the job has started and is working.";
    Scratch "scratch" "Scratch":
        "A large, fast folder on a cluster for files you need for a short time. Many centres delete old files \
         there, so copy what you want to keep. In paths, it's often written as $SCRATCH.";
    Script "script" "Script":
        "A text file with the commands that a job runs, one after the other. Lines that start with #SBATCH tell \
         Slurm what the job requests.";
    SecondFactor "second-factor" "Second factor":
        "A code or confirmation from your phone, in addition to your password. Someone who learns your password \
         then still can't sign in.";
    Slurm "slurm" "Slurm":
        "The program that manages a cluster: it takes everyone's jobs, decides which runs when and where, and \
         records what was used.";
    SshKey "ssh-key" "SSH key":
        "What you use to sign in to clusters instead of a password. It has two halves: you give the public key to \
         the centre, and the portal keeps the private key encrypted.";
    Starting "starting" "Starting":
        "A job state: Slurm has chosen nodes for the job and is preparing them.";
    SuccessRate "success-rate" "Success rate":
        "The percentage of ended jobs that completed. Cancelled jobs don't count.";
    Suspended "suspended" "Suspended":
        "A job state: the job has been paused by the centre and continues later.";
    Sweep "sweep" "Sweep":
        "A parameter sweep: the same program run with different values, such as several learning rates. It runs as \
         one job array, with a task for each combination.";
    Task "task" "Task":
        "One run in a job array. In a job that isn't an array, Slurm uses the word for each of several copies of a \
         program that run together.";
    TimeLimit "time-limit" "Time limit":
        "The longest a job can run. When it's reached, Slurm stops the job, finished or not. Jobs with a shorter \
         time limit often start sooner.";
    TimedOut "timed-out" "Timed out":
        "A job state, TIMEOUT in Slurm: the job reached its time limit and was stopped. Request more time, or let \
         the program save its progress.";
    Transfer "transfer" "Transfer":
        "Work on files that continues in the background, such as copying, compressing or deleting many files. The \
         Transfers page shows how far each one is.";
    UnattendedUse "unattended-use" "Unattended use":
        "Your permission for the portal to use your SSH key while you're signed out, for example to reconnect after \
         a restart. It's off unless you allow it.";
    UserName "user-name" "User name on a cluster":
        "The name you sign in to a cluster with. The computing centre gives it to you, and it's often different from \
         your user name in this portal.";
    WastedHours "wasted-hours" "Wasted hours":
        "Core and GPU hours of jobs that failed, timed out, ran out of memory, missed their deadline, or were lost to \
         a node failure or interrupted by the cluster. Some may still have produced useful files.";
    WorkingFolder "working-folder" "Working folder":
        "The folder that a job's program runs in. Relative paths, which don't begin with a slash, start from there.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_in_alphabetical_order() {
        let letters = |term: &GlossaryTerm| term.title().to_lowercase().replace('\'', "");
        let titles: Vec<String> = GlossaryTerm::ALL.iter().map(letters).collect();
        assert!(titles.is_sorted(), "{titles:#?}");
    }

    #[test]
    fn anchors_are_unique_and_fit_into_a_url() {
        let mut anchors: Vec<&str> = GlossaryTerm::ALL.iter().map(|term| term.anchor()).collect();
        let is_plain = |anchor: &&str| anchor.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        assert!(anchors.iter().all(is_plain), "{anchors:?}");
        anchors.sort_unstable();
        anchors.dedup();
        assert_eq!(anchors.len(), GlossaryTerm::ALL.len());
    }

    /// They must fit beside a label on a phone.
    #[test]
    fn explanations_are_short_sentences() {
        for term in GlossaryTerm::ALL {
            let meaning = term.meaning();
            assert!(meaning.ends_with('.') && meaning.len() < 260, "{}: {} bytes", term.title(), meaning.len());
            assert!(!meaning.contains("  "), "{}: {meaning}", term.title());
        }
    }
}
