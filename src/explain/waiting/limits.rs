//! Slurm's limit names: who is limited, in what, and how it is counted. They are composed of a few words:
//! `AssocGrpCPURunMinutesLimit`, `QOSMaxGRESPerUser`, `MaxJobsPerAccount`, `QOSMinMemory`.

use super::reasons::new_explanation;
use super::{WaitExplanation, WaitKind, WaitingJob};
use crate::format;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitScope {
    Person,
    /// An account.
    Project,
    /// All jobs of a QOS.
    Service,
    Job,
    /// One job, on each node.
    Machine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitMeasure {
    /// Resources held at the same time.
    Now,
    /// What running jobs may still use up to their time limits.
    Reserved,
    /// Past usage: a budget.
    Spent,
    /// A minimum: the job requests too little.
    Least,
}

/// A limit that Slurm gives as the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockingLimit {
    whose: LimitScope,
    counted: LimitMeasure,
    what: &'static str,
}

/// Slurm's resource names and ours. Longer names come before their own prefixes.
const LIMITED_RESOURCES: &[(&str, &str)] = &[
    ("WallDuration", "time"),
    ("Wall", "time"),
    ("SubmitJobs", "jobs in the queue"),
    ("SubmitJob", "jobs in the queue"),
    ("Jobs", "jobs"),
    ("Job", "jobs"),
    ("Cpu", "cores"),
    ("CPU", "cores"),
    ("Memory", "memory"),
    ("Mem", "memory"),
    ("Node", "nodes"),
    ("GRES", "GPUs or other GRES"),
    ("License", "licences"),
    ("BB", "burst buffer space"),
    ("Billing", "billing"),
    ("Energy", "energy"),
    ("Unknown", "resources"),
];

/// Parses a reason; none if it does not name a limit.
pub fn parse_limit(reason: &str) -> Option<BlockingLimit> {
    let name = reason.split([',', ' ']).next()?;
    let (service, rest) = match (name.strip_prefix("Assoc"), name.strip_prefix("QOS")) {
        (Some(rest), _) => (false, rest),
        (None, Some(rest)) => (true, rest),
        (None, None) => (true, name),
    };
    let (scope, rest) =
        ["Grp", "Max", "Min"].into_iter().find_map(|scope| rest.strip_prefix(scope).map(|rest| (scope, rest)))?;
    let (slurm, what) = LIMITED_RESOURCES.iter().find(|(word, _)| rest.starts_with(word))?;
    let rest = &rest[slurm.len()..];
    let (counted, rest) = match (rest.strip_prefix("RunMinutes"), rest.strip_prefix("Minutes")) {
        (Some(rest), _) => (LimitMeasure::Reserved, rest),
        (None, Some(rest)) => (LimitMeasure::Spent, rest),
        (None, None) => (LimitMeasure::Now, rest),
    };
    let group = if service { LimitScope::Service } else { LimitScope::Project };
    let (whose, counted) = match (scope, rest.trim_end_matches("Limit")) {
        ("Min", "" | "NotSatisfied" | "PerJob") => (LimitScope::Job, LimitMeasure::Least),
        ("Grp", "") if *what == "time" => (group, LimitMeasure::Spent),
        ("Grp", "") => (group, counted),
        (_, "PerJob") => (LimitScope::Job, counted),
        (_, "PerNode") => (LimitScope::Machine, counted),
        (_, "PerAccount") => (LimitScope::Project, counted),
        (_, "PerUser") | ("Max", "") => (LimitScope::Person, counted),
        _ => return None,
    };
    Some(BlockingLimit { whose, counted, what })
}

impl BlockingLimit {
    pub fn explain(self, waiting: &WaitingJob<'_>) -> WaitExplanation {
        let what = self.what;
        match (self.whose, self.counted) {
            (_, LimitMeasure::Least) => new_explanation(
                WaitKind::Never,
                "Request too small",
                &format!("Its QOS is for larger jobs, and it requests too little ({what})."),
                "Remove --qos, choose another QOS, or request more.",
            ),
            (LimitScope::Job | LimitScope::Machine, counted) => self.too_much(counted, waiting),
            // Nothing else counts towards the limit, so this job alone is more than it allows.
            (whose, LimitMeasure::Now | LimitMeasure::Reserved) if whose.is_idle(waiting) => {
                let times = if self.counted == LimitMeasure::Now { "" } else { " × time" };
                new_explanation(
                    WaitKind::Never,
                    "More than the limit allows",
                    &format!(
                        "It requests more than the limit of {} allows in total ({what}{times}), although no other job counts \
                         towards it. It can never start as submitted.",
                        whose.noun()
                    ),
                    "Request less, or choose another QOS or account.",
                )
            }
            (whose, LimitMeasure::Spent) => new_explanation(
                WaitKind::Limit,
                "Limit used up",
                &format!(
                    "The limit of {} is used up{}, or too little is left for this job's full time limit.",
                    whose.noun(),
                    match what {
                        "billing" => String::new(),
                        "time" => " (time)".to_owned(),
                        what => format!(" ({what} × time)"),
                    }
                ),
                "Request less time or fewer resources: the whole request counts.\nUse another account, or ask \
                 your PI or the centre for more.",
            ),
            (whose, LimitMeasure::Reserved) => new_explanation(
                WaitKind::Limit,
                "Limit on running jobs reached",
                &format!(
                    "The running jobs of {} have reserved as much ({what} × time) as is allowed. This job starts when some \
                     of them end or have less time left.",
                    whose.noun()
                ),
                "A shorter time limit reserves less.",
            ),
            (whose, LimitMeasure::Now) if what == "jobs in the queue" => new_explanation(
                WaitKind::Limit,
                "Too many jobs in the queue",
                &format!("{} as many jobs in the queue, pending and running, as allowed.", whose.has_words()),
                "Wait until some of them end.",
            ),
            (whose, LimitMeasure::Now) if what == "jobs" => new_explanation(
                WaitKind::Limit,
                whose.reached_headline(),
                &format!(
                    "{} as many jobs running as allowed. This job starts when one of them ends.",
                    whose.has_words()
                ),
                "",
            ),
            (whose, LimitMeasure::Now) => new_explanation(
                WaitKind::Limit,
                whose.reached_headline(),
                &format!(
                    "{} {} in use as allowed, or would have with this job. It starts when other jobs \
                     end.",
                    whose.has_words(),
                    self.as_many_words()
                ),
                "",
            ),
        }
    }

    /// `as many cores`, `as much memory`.
    fn as_many_words(self) -> String {
        match self.what {
            "memory" | "burst buffer space" | "energy" | "time" | "billing" => format!("as much {}", self.what),
            what => format!("as many {what}"),
        }
    }

    /// More than a single job may have.
    fn too_much(self, counted: LimitMeasure, waiting: &WaitingJob<'_>) -> WaitExplanation {
        let asked = waiting.job.time_limit.minutes();
        if self.what == "time" {
            let much =
                asked.map_or_else(|| "more time".to_owned(), |asked| format!("{}, more", format::minutes(asked)));
            return new_explanation(
                WaitKind::Never,
                "Time limit too long",
                &format!("It requests {much} than a single job is allowed. It can never start as submitted."),
                "Reduce its time limit, or choose another QOS or account.",
            );
        }
        let each = if self.whose == LimitScope::Machine { "per node " } else { "" };
        let times = if counted == LimitMeasure::Now { "" } else { " × time" };
        new_explanation(
            WaitKind::Never,
            &format!("Request too large: {}", self.what),
            &format!(
                "It requests more {each}than a single job is allowed ({}{times}). It can never start as submitted.",
                self.what
            ),
            "Request less, or choose another QOS or account.",
        )
    }
}

impl LimitScope {
    /// Whether nothing but the waiting job can count towards a limit of this scope, as far as is known.
    const fn is_idle(self, waiting: &WaitingJob<'_>) -> bool {
        match self {
            Self::Person => waiting.is_own_idle,
            Self::Project => waiting.is_own_idle && waiting.is_account_idle,
            Self::Service | Self::Job | Self::Machine => false,
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::Service => "this QOS",
            Self::Project => "your account",
            _ => "your user",
        }
    }

    const fn reached_headline(self) -> &'static str {
        match self {
            Self::Person => "Your limit reached",
            Self::Project => "Account limit reached",
            _ => "Limit reached",
        }
    }

    const fn has_words(self) -> &'static str {
        match self {
            Self::Service => "Jobs in this QOS together have",
            Self::Project => "Your account has",
            _ => "You have",
        }
    }
}
