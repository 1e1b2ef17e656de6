//! Reads the queue: everything that a refresh needs, in one command over the person's own connection.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::UnixTime;
use crate::entropy;
use crate::sites::cost::{self, AllocationBalanceReport};
use crate::sites::quota::{self, StorageQuota};
use crate::sites::storage_per_user::{self, UserProjectStorage};
use crate::sites::{AllocationBalanceTool, QuotaTool};
use crate::slurm::accounting::{self, AccountingExtra};
use crate::slurm::fair_share::{self, SshareRow, SshareUsers};
use crate::slurm::job::{JobId, SlurmJob};
use crate::slurm::pending_counts::{self, PendingPriorityCounts};
use crate::slurm::priority_factors::{self, SprioFactors};
use crate::slurm::queue::{self, SqueueFilter};
use crate::ssh::{CallUrgency, ClusterConnection, CommandOutput, RemoteCommand, RunCommandError};

/// Slurm's own programs answer within a second or two, or not at all.
const SLURM_TIMEOUT: Duration = Duration::from_secs(20);
/// The site's programs may query many disks.
const SITE_TOOL_TIMEOUT: Duration = Duration::from_secs(25);
/// Enough for a queue of fifty thousand jobs.
const MAX_OUTPUT_BYTES: usize = 32 * 1024 * 1024;
/// Priorities and partitions of all pending jobs, counted on the cluster so that little is sent.
const COUNT_PENDING_SCRIPT: &str = "squeue -h -t PD -o \"%Q %P\" | sort | uniq -c";

/// A line with each folder, and what is known of the quota there. Folders on other disks have none.
const LFS_QUOTA_SCRIPT: &str =
    "for folder do echo \"folder $folder\"; lfs quota -q -u \"$0\" \"$folder\" 2>/dev/null; done; true";

/// What to read besides the person's own queue.
#[derive(Debug, Clone, Default)]
pub struct QueueReadOptions {
    /// The accounting of this period.
    pub history: Option<(UnixTime, UnixTime)>,
    /// The accounting of these jobs.
    pub ended_jobs: Vec<JobId>,
    /// The jobs of these accounts.
    pub group_accounts: Vec<String>,
    /// Everyone's position in the queue, and the priority factors.
    pub ranks: bool,
    /// The fair share of these accounts.
    pub fair_share: Vec<String>,
    /// The same for everyone in them, not only for the person.
    pub fair_share_per_user: bool,
    /// The storage quotas.
    pub quota: QuotaTool,
    /// The folders to ask about, for programs that want to know.
    pub quota_folders: Vec<String>,
    /// Storage per user in the projects' folders, if the site's program reports it.
    pub storage_per_user: bool,
    /// What is left of the allocation.
    pub cost: AllocationBalanceTool,
}

/// The replies: for each part of the query, the result or what was printed instead.
#[derive(Debug, Default)]
pub struct QueueReadReply {
    /// The person's own jobs.
    pub queue: Option<Result<queue::SqueueOutput, String>>,
    /// The accounting of the period.
    pub history: Option<Result<Vec<(SlurmJob, AccountingExtra)>, String>>,
    /// The accounting of single jobs.
    pub ended_jobs: Option<Result<Vec<(SlurmJob, AccountingExtra)>, String>>,
    /// The jobs of the accounts.
    pub group_jobs: Option<Result<queue::SqueueOutput, String>>,
    /// Pending jobs by priority and partition.
    pub pending_counts: Option<PendingPriorityCounts>,
    pub priority_factors: Option<Vec<SprioFactors>>,
    pub fair_share: Option<Vec<SshareRow>>,
    pub storage_quotas: Option<Vec<StorageQuota>>,
    pub storage_per_user: Option<Vec<UserProjectStorage>>,
    pub cost: Option<AllocationBalanceReport>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueueReadPart {
    OwnJobs,
    History,
    EndedJobs,
    GroupJobs,
    PendingCounts,
    PriorityFactors,
    FairShare,
    StorageQuotas,
    /// Those of disks that aren't Lustre, on clusters that have it.
    OtherQuotas,
    StoragePerUser,
    Cost,
}

/// Runs the query with one command; `asked_at` is the time now.
pub async fn load_queue(
    connection: &Arc<ClusterConnection>,
    user: &str,
    request: &QueueReadOptions,
    asked_at: UnixTime,
    urgency: CallUrgency,
) -> Result<QueueReadReply, RunCommandError> {
    let (marks, fields) = (nonce()?, nonce()?);
    let queries = query_commands(user, request, &fields);
    let commands: Vec<RemoteCommand> = queries.iter().map(|(_, command)| command.clone()).collect();
    let batch = RemoteCommand::batch(&marks, &commands)?.with_max_output(MAX_OUTPUT_BYTES);
    let output = connection.run(batch, urgency).await?;
    let mut reply = QueueReadReply::default();
    let mut parts = output.split_batch(&marks).into_iter();
    for (query, _) in queries {
        // A missing part was cut off with everything after it.
        let part = parts.next().flatten().ok_or(RunCommandError::ConnectionLost)?;
        reply.add_part(query, &part, &fields, request, asked_at);
    }
    Ok(reply)
}

/// A word that nobody can guess.
pub(super) fn nonce() -> Result<String, RunCommandError> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bytes = entropy::random_bytes::<12>().map_err(|_| RunCommandError::Busy)?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}

fn query_commands(user: &str, request: &QueueReadOptions, fields: &str) -> Vec<(QueueReadPart, RemoteCommand)> {
    let slurm = |program, args: Vec<String>| RemoteCommand::new(program).args(args).with_deadline(SLURM_TIMEOUT);
    let site = |program| RemoteCommand::new(program).with_deadline(SITE_TOOL_TIMEOUT);
    // One line per file system, and a number in each column.
    let quota = || site("quota").arg("-w").arg("-p");
    let mut queries = Vec::new();
    let mut add = |part, program, args: Option<Vec<String>>| {
        queries.extend(args.map(|args| (part, slurm(program, args))));
    };
    add(QueueReadPart::OwnJobs, queue::PROGRAM, queue::args(fields, SqueueFilter::User(user)));
    if !request.ended_jobs.is_empty() {
        add(QueueReadPart::EndedJobs, accounting::PROGRAM, accounting::args_for_jobs(fields, &request.ended_jobs));
    }
    if let Some((from, until)) = request.history {
        add(QueueReadPart::History, accounting::PROGRAM, accounting::args_for_user(fields, user, from, Some(until)));
    }
    if !request.group_accounts.is_empty() {
        add(
            QueueReadPart::GroupJobs,
            queue::PROGRAM,
            queue::args(fields, SqueueFilter::Accounts(&request.group_accounts)),
        );
    }
    if request.ranks {
        add(QueueReadPart::PendingCounts, "sh", Some(vec!["-c".to_owned(), COUNT_PENDING_SCRIPT.to_owned()]));
        add(QueueReadPart::PriorityFactors, priority_factors::PROGRAM, priority_factors::args(user));
    }
    if !request.fair_share.is_empty() {
        let users = if request.fair_share_per_user { SshareUsers::All } else { SshareUsers::One(user) };
        add(QueueReadPart::FairShare, fair_share::PROGRAM, fair_share::args(users, &request.fair_share));
    }
    match request.quota {
        QuotaTool::DiskusageReport => {
            queries.push((QueueReadPart::StorageQuotas, site("diskusage_report")));
        }
        QuotaTool::Dusage => {
            queries.push((QueueReadPart::StorageQuotas, site("dusage").arg("--no-colors")));
        }
        QuotaTool::Quota => queries.push((QueueReadPart::StorageQuotas, quota())),
        QuotaTool::LfsQuota => {
            let script = RemoteCommand::new("sh").arg("-c").arg(LFS_QUOTA_SCRIPT).arg(user);
            let script = script.args(request.quota_folders.iter().cloned()).with_deadline(SITE_TOOL_TIMEOUT);
            queries.push((QueueReadPart::StorageQuotas, script));
            // Home is often NFS.
            queries.push((QueueReadPart::OtherQuotas, quota()));
        }
        QuotaTool::None | QuotaTool::LumiWorkspaces => {}
    }
    if request.storage_per_user && request.quota == QuotaTool::DiskusageReport {
        queries.push((QueueReadPart::StoragePerUser, site("diskusage_report").arg("--per_user")));
    }
    if request.cost == AllocationBalanceTool::Cost {
        queries.push((QueueReadPart::Cost, site("cost")));
    }
    queries
}

impl QueueReadReply {
    fn add_part(
        &mut self,
        kind: QueueReadPart,
        part: &CommandOutput,
        fields: &str,
        request: &QueueReadOptions,
        asked_at: UnixTime,
    ) {
        let is_ok = part.code == 0;
        let check = || if is_ok { Ok(()) } else { Err(error_text(part)) };
        match kind {
            QueueReadPart::OwnJobs => {
                self.queue = Some(check().map(|()| queue::parse_queue(&part.stdout, fields, asked_at)));
            }
            QueueReadPart::GroupJobs => {
                self.group_jobs = Some(check().map(|()| queue::parse_queue(&part.stdout, fields, asked_at)));
            }
            QueueReadPart::History => {
                self.history = Some(check().map(|()| accounting::parse_accounting(&part.stdout, fields)));
            }
            QueueReadPart::EndedJobs => {
                self.ended_jobs = Some(check().map(|()| accounting::parse_accounting(&part.stdout, fields)));
            }
            QueueReadPart::PendingCounts if is_ok => {
                self.pending_counts = Some(pending_counts::parse_pending_counts(&part.stdout_text()));
            }
            QueueReadPart::PriorityFactors if is_ok => {
                self.priority_factors = Some(priority_factors::parse_factors(&part.stdout_text()));
            }
            QueueReadPart::FairShare if is_ok => {
                self.fair_share = Some(fair_share::parse_fair_share(&part.stdout_text()));
            }
            // `quota` ends with 1 if a quota is exceeded.
            QueueReadPart::StorageQuotas if is_ok || (request.quota == QuotaTool::Quota && part.code == 1) => {
                self.storage_quotas = Some(match request.quota {
                    QuotaTool::Dusage => quota::parse_dusage(&part.stdout_text()),
                    QuotaTool::Quota => quota::parse_quota(&part.stdout_text()),
                    QuotaTool::LfsQuota => quota::parse_lfs_quota(&part.stdout_text()),
                    _ => quota::parse_diskusage_report(&part.stdout_text()),
                });
            }
            QueueReadPart::OtherQuotas if is_ok || part.code == 1 => {
                let others = quota::parse_quota(&part.stdout_text());
                self.storage_quotas.get_or_insert_default().extend(others);
            }
            // Not every site's program supports the option: then there is nothing to report.
            QueueReadPart::StoragePerUser if is_ok => {
                self.storage_per_user = Some(storage_per_user::parse_per_user(&part.stdout_text()));
            }
            QueueReadPart::StoragePerUser => self.storage_per_user = Some(Vec::new()),
            QueueReadPart::Cost if is_ok => {
                self.cost = Some(cost::parse_cost(&part.stdout_text())).filter(|cost| !cost.accounts.is_empty());
            }
            QueueReadPart::PendingCounts
            | QueueReadPart::PriorityFactors
            | QueueReadPart::FairShare
            | QueueReadPart::StorageQuotas
            | QueueReadPart::OtherQuotas
            | QueueReadPart::Cost => {}
        }
    }
}

/// What a program printed instead of its answer, bounded.
pub(super) fn error_text(part: &CommandOutput) -> String {
    let text = part.stderr_text();
    let text = if text.trim().is_empty() { part.stdout_text() } else { text };
    crate::text::sanitize(&text.replace('\n', " "), 400)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn lustre_is_asked_about_each_folder() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("lfs");
        let text = "#!/bin/sh\n[ \"$*\" = \"quota -q -u alice /scratch/a b\" ] || { echo no >&2; exit 1; }\n\
                    echo /scratch 8 16 0 - 2 0 500 -\n";
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
        let mut script = Command::new("sh");
        script.args(["-c", LFS_QUOTA_SCRIPT, "alice", "/home/alice", "/scratch/a b"]).env("PATH", path);
        let output = script.output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let found = quota::parse_lfs_quota(&String::from_utf8(output.stdout).unwrap());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].label.as_str(), found[0].limit_bytes), ("/scratch/a b", Some(16 * 1024)));
    }

    #[test]
    fn disks_that_are_not_lustre_keep_their_quota() {
        let request = QueueReadOptions { quota: QuotaTool::LfsQuota, ..QueueReadOptions::default() };
        let parts: Vec<QueueReadPart> = query_commands("alice", &request, "").iter().map(|(part, _)| *part).collect();
        assert!(parts.ends_with(&[QueueReadPart::StorageQuotas, QueueReadPart::OtherQuotas]), "{parts:?}");
        let mut reply = QueueReadReply::default();
        let mut add = |kind, code, text: &str| {
            let part = CommandOutput { code, stdout: text.as_bytes().to_vec(), stderr: Vec::new() };
            reply.add_part(kind, &part, "", &request, UnixTime(0));
        };
        add(QueueReadPart::StorageQuotas, 0, "folder /scratch\n/scratch 8 16 0 - 2 0 500 -\n");
        // It ends with 1 if a quota is exceeded, with 127 if there is no such program.
        add(QueueReadPart::OtherQuotas, 1, "nfs01:/export/home 30* 20 25 0 4 0 0 0\n");
        add(QueueReadPart::OtherQuotas, 127, "nfs01:/export/x 30 20 25 0 4 0 0 0\n");
        let labels: Vec<String> = reply.storage_quotas.unwrap().into_iter().map(|quota| quota.label).collect();
        assert_eq!(labels, ["/scratch", "nfs01:/export/home"]);
    }
}
