//! One look at the queue: everything that a refresh needs, in one command over the person's own connection.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::UnixTime;
use crate::entropy;
use crate::sites::cost::{self, CostReport};
use crate::sites::quota::{self, StorageQuota};
use crate::sites::storage_per_user::{self, UserStorageUse};
use crate::sites::{CostTool, QuotaTool};
use crate::slurm::accounting::{self, Extra};
use crate::slurm::ahead::{self, Waiting};
use crate::slurm::factors::{self, Factors};
use crate::slurm::job::{Job, JobId};
use crate::slurm::queue::{self, Whose};
use crate::slurm::shares::{self, Share};
use crate::ssh::{CallUrgency, ClusterConnection, CommandOutput, RemoteCommand, RunCommandError};

/// Slurm's own programs answer within a second or two, or not at all.
const SLURM_WITHIN: Duration = Duration::from_secs(20);
/// Programs of the site may ask many disks.
const SITE_WITHIN: Duration = Duration::from_secs(25);
/// A queue of fifty thousand jobs fits.
const MOST_OUTPUT: usize = 32 * 1024 * 1024;
/// Who waits before whom: priorities and partitions of all that waits, counted on the cluster so that little is sent.
const COUNT_WAITING: &str = "squeue -h -t PD -o \"%Q %P\" | sort | uniq -c";

/// What to look at besides the person's own queue.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// The accounting of this stretch of time.
    pub history: Option<(UnixTime, UnixTime)>,
    /// What the accounting knows of these jobs.
    pub ended: Vec<JobId>,
    /// The jobs of these accounts.
    pub group: Vec<String>,
    /// Who waits before whom, and where ranks come from.
    pub ranks: bool,
    /// Fair-share of these accounts.
    pub shares: Vec<String>,
    /// How full the folders are.
    pub quota: QuotaTool,
    /// Who has how much in the projects' folders, where the site's program tells.
    pub per_user: bool,
    /// What is left of the quota of computing time.
    pub cost: CostTool,
}

/// What was told; for each thing that was asked, what came or what was said instead.
#[derive(Debug, Default)]
pub struct Told {
    /// The person's own jobs.
    pub queue: Option<Result<queue::Answer, String>>,
    /// The accounting of the stretch of time.
    pub history: Option<Result<Vec<(Job, Extra)>, String>>,
    /// The accounting of single jobs.
    pub ended: Option<Result<Vec<(Job, Extra)>, String>>,
    /// The jobs of the accounts.
    pub group: Option<Result<queue::Answer, String>>,
    /// Who waits before whom.
    pub ahead: Option<Waiting>,
    /// Where ranks come from.
    pub factors: Option<Vec<Factors>>,
    /// Fair-share.
    pub shares: Option<Vec<Share>>,
    /// How full the folders are.
    pub places: Option<Vec<StorageQuota>>,
    /// Who has how much in the projects' folders.
    pub per_user: Option<Vec<UserStorageUse>>,
    /// What is left.
    pub cost: Option<CostReport>,
}

/// A thing that was asked.
#[derive(Debug, Clone, Copy)]
enum Ask {
    Queue,
    History,
    Ended,
    Group,
    Ahead,
    Factors,
    Shares,
    Places,
    PerUser,
    Cost,
}

/// Looks, with one command.
pub async fn look(
    line: &Arc<ClusterConnection>,
    user: &str,
    wishes: &Wishes,
    urgency: CallUrgency,
) -> Result<Told, RunCommandError> {
    let (marks, fields) = (nonce()?, nonce()?);
    let asks = asks(user, wishes, &fields);
    let commands: Vec<RemoteCommand> = asks.iter().map(|(_, command)| command.clone()).collect();
    let batch = RemoteCommand::batch(&marks, &commands)?.with_max_output(MOST_OUTPUT);
    let output = line.run(batch, urgency).await?;
    let mut told = Told::default();
    let mut parts = output.split_batch(&marks).into_iter();
    for (ask, _) in asks {
        // A part that is not there was cut off with the rest.
        let part = parts.next().flatten().ok_or(RunCommandError::ConnectionLost)?;
        told.take(ask, &part, &fields, wishes);
    }
    Ok(told)
}

/// A word that nobody can know beforehand.
pub(super) fn nonce() -> Result<String, RunCommandError> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bytes = entropy::bytes::<12>().map_err(|_| RunCommandError::Busy)?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}

fn asks(user: &str, wishes: &Wishes, fields: &str) -> Vec<(Ask, RemoteCommand)> {
    let slurm = |program, args: Vec<String>| {
        RemoteCommand::new(program).args(args).with_deadline(SLURM_WITHIN)
    };
    let site = |program| RemoteCommand::new(program).with_deadline(SITE_WITHIN);
    let mut asks = Vec::new();
    let mut ask = |what, program, args: Option<Vec<String>>| {
        asks.extend(args.map(|args| (what, slurm(program, args))));
    };
    ask(Ask::Queue, queue::PROGRAM, queue::args(fields, Whose::Me(user)));
    if !wishes.ended.is_empty() {
        ask(Ask::Ended, accounting::PROGRAM, accounting::args_of(fields, &wishes.ended));
    }
    if let Some((from, until)) = wishes.history {
        ask(Ask::History, accounting::PROGRAM, accounting::args(fields, user, from, Some(until)));
    }
    if !wishes.group.is_empty() {
        ask(Ask::Group, queue::PROGRAM, queue::args(fields, Whose::Accounts(&wishes.group)));
    }
    if wishes.ranks {
        ask(Ask::Ahead, "sh", Some(vec!["-c".to_owned(), COUNT_WAITING.to_owned()]));
        ask(Ask::Factors, factors::PROGRAM, factors::args(user));
    }
    if !wishes.shares.is_empty() {
        ask(Ask::Shares, shares::PROGRAM, shares::args(user, &wishes.shares));
    }
    match wishes.quota {
        QuotaTool::DiskusageReport => asks.push((Ask::Places, site("diskusage_report"))),
        QuotaTool::Dusage => asks.push((Ask::Places, site("dusage").arg("--no-colors"))),
        QuotaTool::None | QuotaTool::LumiWorkspaces => {}
    }
    if wishes.per_user && wishes.quota == QuotaTool::DiskusageReport {
        asks.push((Ask::PerUser, site("diskusage_report").arg("--per_user")));
    }
    if wishes.cost == CostTool::Cost {
        asks.push((Ask::Cost, site("cost")));
    }
    asks
}

impl Told {
    fn take(&mut self, ask: Ask, part: &CommandOutput, fields: &str, wishes: &Wishes) {
        let well = part.code == 0;
        let said = || if well { Ok(()) } else { Err(complaint(part)) };
        match ask {
            Ask::Queue => self.queue = Some(said().map(|()| queue::read(&part.stdout, fields))),
            Ask::Group => self.group = Some(said().map(|()| queue::read(&part.stdout, fields))),
            Ask::History => {
                self.history = Some(said().map(|()| accounting::read(&part.stdout, fields)));
            }
            Ask::Ended => {
                self.ended = Some(said().map(|()| accounting::read(&part.stdout, fields)));
            }
            Ask::Ahead if well => self.ahead = Some(ahead::read(&part.stdout_text())),
            Ask::Factors if well => self.factors = Some(factors::read(&part.stdout_text())),
            Ask::Shares if well => self.shares = Some(shares::read(&part.stdout_text())),
            Ask::Places if well => {
                self.places = Some(match wishes.quota {
                    QuotaTool::Dusage => quota::parse_dusage(&part.stdout_text()),
                    _ => quota::parse_diskusage_report(&part.stdout_text()),
                });
            }
            // Not every site's program knows the option: then there is nothing to tell.
            Ask::PerUser if well => {
                self.per_user = Some(storage_per_user::parse_per_user(&part.stdout_text()))
            }
            Ask::PerUser => self.per_user = Some(Vec::new()),
            Ask::Cost if well => {
                self.cost = Some(cost::parse_cost(&part.stdout_text()))
                    .filter(|cost| !cost.accounts.is_empty());
            }
            Ask::Ahead | Ask::Factors | Ask::Shares | Ask::Places | Ask::Cost => {}
        }
    }
}

/// What a program said instead of its answer, bounded.
pub(super) fn complaint(part: &CommandOutput) -> String {
    let said = part.stderr_text();
    let said = if said.trim().is_empty() { part.stdout_text() } else { said };
    crate::slurm::text::plain(&said.replace('\n', " "), 400)
}
