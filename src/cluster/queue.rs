//! Reads the queue: everything that a refresh needs, in one command over the person's own connection.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::UnixTime;
use crate::entropy;
use crate::sites::cost::{self, CostReport};
use crate::sites::quota::{self, StorageQuota};
use crate::sites::storage_per_user::{self, UserProjectStorage};
use crate::sites::{AllocationBalanceTool, QuotaTool};
use crate::slurm::accounting::{self, AccountingExtra};
use crate::slurm::fair_share::{self, SshareRow};
use crate::slurm::job::{JobId, SlurmJob};
use crate::slurm::pending_counts::{self, PendingJobCounts};
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

/// What to read besides the person's own queue.
#[derive(Debug, Clone, Default)]
pub struct QueueReadRequest {
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
    /// The storage quotas.
    pub quota: QuotaTool,
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
    pub pending_counts: Option<PendingJobCounts>,
    pub priority_factors: Option<Vec<SprioFactors>>,
    pub fair_share: Option<Vec<SshareRow>>,
    pub storage_quotas: Option<Vec<StorageQuota>>,
    pub storage_per_user: Option<Vec<UserProjectStorage>>,
    pub cost: Option<CostReport>,
}

#[derive(Debug, Clone, Copy)]
enum QueueReadPart {
    OwnJobs,
    History,
    EndedJobs,
    GroupJobs,
    PendingCounts,
    PriorityFactors,
    FairShare,
    StorageQuotas,
    StoragePerUser,
    Cost,
}

/// Runs the query with one command.
pub async fn load_queue(
    line: &Arc<ClusterConnection>,
    user: &str,
    wishes: &QueueReadRequest,
    urgency: CallUrgency,
) -> Result<QueueReadReply, RunCommandError> {
    let (marks, fields) = (nonce()?, nonce()?);
    let asks = query_commands(user, wishes, &fields);
    let commands: Vec<RemoteCommand> = asks.iter().map(|(_, command)| command.clone()).collect();
    let batch = RemoteCommand::batch(&marks, &commands)?.with_max_output(MAX_OUTPUT_BYTES);
    let output = line.run(batch, urgency).await?;
    let mut told = QueueReadReply::default();
    let mut parts = output.split_batch(&marks).into_iter();
    for (ask, _) in asks {
        // A missing part was cut off with everything after it.
        let part = parts.next().flatten().ok_or(RunCommandError::ConnectionLost)?;
        told.add_part(ask, &part, &fields, wishes);
    }
    Ok(told)
}

/// A word that nobody can guess.
pub(super) fn nonce() -> Result<String, RunCommandError> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bytes = entropy::random_bytes::<12>().map_err(|_| RunCommandError::Busy)?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}

fn query_commands(user: &str, wishes: &QueueReadRequest, fields: &str) -> Vec<(QueueReadPart, RemoteCommand)> {
    let slurm = |program, args: Vec<String>| RemoteCommand::new(program).args(args).with_deadline(SLURM_TIMEOUT);
    let site = |program| RemoteCommand::new(program).with_deadline(SITE_TOOL_TIMEOUT);
    let mut asks = Vec::new();
    let mut ask = |what, program, args: Option<Vec<String>>| {
        asks.extend(args.map(|args| (what, slurm(program, args))));
    };
    ask(QueueReadPart::OwnJobs, queue::PROGRAM, queue::args(fields, SqueueFilter::User(user)));
    if !wishes.ended_jobs.is_empty() {
        ask(QueueReadPart::EndedJobs, accounting::PROGRAM, accounting::args_for_jobs(fields, &wishes.ended_jobs));
    }
    if let Some((from, until)) = wishes.history {
        ask(QueueReadPart::History, accounting::PROGRAM, accounting::args_for_user(fields, user, from, Some(until)));
    }
    if !wishes.group_accounts.is_empty() {
        ask(
            QueueReadPart::GroupJobs,
            queue::PROGRAM,
            queue::args(fields, SqueueFilter::Accounts(&wishes.group_accounts)),
        );
    }
    if wishes.ranks {
        ask(QueueReadPart::PendingCounts, "sh", Some(vec!["-c".to_owned(), COUNT_PENDING_SCRIPT.to_owned()]));
        ask(QueueReadPart::PriorityFactors, priority_factors::PROGRAM, priority_factors::args(user));
    }
    if !wishes.fair_share.is_empty() {
        ask(QueueReadPart::FairShare, fair_share::PROGRAM, fair_share::args(user, &wishes.fair_share));
    }
    match wishes.quota {
        QuotaTool::DiskusageReport => {
            asks.push((QueueReadPart::StorageQuotas, site("diskusage_report")));
        }
        QuotaTool::Dusage => {
            asks.push((QueueReadPart::StorageQuotas, site("dusage").arg("--no-colors")));
        }
        QuotaTool::None | QuotaTool::LumiWorkspaces => {}
    }
    if wishes.storage_per_user && wishes.quota == QuotaTool::DiskusageReport {
        asks.push((QueueReadPart::StoragePerUser, site("diskusage_report").arg("--per_user")));
    }
    if wishes.cost == AllocationBalanceTool::Cost {
        asks.push((QueueReadPart::Cost, site("cost")));
    }
    asks
}

impl QueueReadReply {
    fn add_part(&mut self, ask: QueueReadPart, part: &CommandOutput, fields: &str, wishes: &QueueReadRequest) {
        let well = part.code == 0;
        let said = || if well { Ok(()) } else { Err(error_text(part)) };
        match ask {
            QueueReadPart::OwnJobs => {
                self.queue = Some(said().map(|()| queue::parse_queue(&part.stdout, fields)));
            }
            QueueReadPart::GroupJobs => {
                self.group_jobs = Some(said().map(|()| queue::parse_queue(&part.stdout, fields)));
            }
            QueueReadPart::History => {
                self.history = Some(said().map(|()| accounting::parse_accounting(&part.stdout, fields)));
            }
            QueueReadPart::EndedJobs => {
                self.ended_jobs = Some(said().map(|()| accounting::parse_accounting(&part.stdout, fields)));
            }
            QueueReadPart::PendingCounts if well => {
                self.pending_counts = Some(pending_counts::parse_pending_counts(&part.stdout_text()));
            }
            QueueReadPart::PriorityFactors if well => {
                self.priority_factors = Some(priority_factors::parse_factors(&part.stdout_text()));
            }
            QueueReadPart::FairShare if well => {
                self.fair_share = Some(fair_share::parse_fair_share(&part.stdout_text()));
            }
            QueueReadPart::StorageQuotas if well => {
                self.storage_quotas = Some(match wishes.quota {
                    QuotaTool::Dusage => quota::parse_dusage(&part.stdout_text()),
                    _ => quota::parse_diskusage_report(&part.stdout_text()),
                });
            }
            // Not every site's program supports the option: then there is nothing to report.
            QueueReadPart::StoragePerUser if well => {
                self.storage_per_user = Some(storage_per_user::parse_per_user(&part.stdout_text()));
            }
            QueueReadPart::StoragePerUser => self.storage_per_user = Some(Vec::new()),
            QueueReadPart::Cost if well => {
                self.cost = Some(cost::parse_cost(&part.stdout_text())).filter(|cost| !cost.accounts.is_empty());
            }
            QueueReadPart::PendingCounts
            | QueueReadPart::PriorityFactors
            | QueueReadPart::FairShare
            | QueueReadPart::StorageQuotas
            | QueueReadPart::Cost => {}
        }
    }
}

/// What a program printed instead of its answer, bounded.
pub(super) fn error_text(part: &CommandOutput) -> String {
    let said = part.stderr_text();
    let said = if said.trim().is_empty() { part.stdout_text() } else { said };
    crate::text::sanitize(&said.replace('\n', " "), 400)
}
