//! A person's resources on a cluster, as bars with text: fair share or granted hours, and how full their folders are;
//! and the worst of these figures in words.

use crate::clock::UnixTime;
use crate::explain::fair_share::{self, FairShareExplanation, FairShareFigures};
use crate::format;
use crate::sites::cost::AccountBalance;
use crate::sites::quota::StorageQuota;
use crate::slurm::fair_share::SshareRow;
use crate::web::pages::jobs::cluster_queues::PersonClusterQueue;

/// Accounts that are shown.
const MAX_ACCOUNTS: usize = 4;
/// Folders that are shown.
const MAX_FOLDERS: usize = 8;
/// From here on, a folder is nearly full.
const WARNING_PERCENT: u64 = 85;
/// From here on, it is as good as full.
const DANGER_PERCENT: u64 = 95;

/// A person's resources on one cluster.
pub struct OwnClusterResources {
    /// The short name of the cluster.
    pub slug: String,
    /// The fair share of each account.
    pub shares: Vec<FairShareGauge>,
    pub shares_at: Option<UnixTime>,
    /// Granted hours of each account.
    pub costs: Vec<GrantedHoursBar>,
    /// The period of the grant; empty if it isn't known.
    pub period: String,
    pub costs_at: Option<UnixTime>,
    pub folders: Vec<FolderQuotaBars>,
    /// How many folders aren't shown.
    pub more_folders: usize,
    pub folders_at: Option<UnixTime>,
    /// Why there is nothing to show; empty if there is something.
    pub nothing: &'static str,
}

/// The fair share of an account.
pub struct FairShareGauge {
    pub account: String,
    pub explanation: FairShareExplanation,
    /// Slurm's own number, as text; empty if there is none.
    pub level: String,
}

impl FairShareGauge {
    /// Where its mark is drawn, in percent, so that it stays wholly inside the scale.
    pub fn place(&self) -> u8 {
        2 + (u16::from(self.explanation.position.unwrap_or(50)) * 96 / 100).to_le_bytes()[0]
    }
}

pub struct GrantedHoursBar {
    pub account: String,
    pub value: u64,
    pub max: u64,
    pub text: String,
    /// empty, warning or danger.
    pub level: &'static str,
}

pub struct FolderQuotaBars {
    /// As the cluster calls it.
    pub label: String,
    pub space: QuotaBar,
    /// The number of files, where the cluster counts them.
    pub files: Option<QuotaBar>,
    /// What to do; empty if there is nothing to do.
    pub advice: &'static str,
}

impl FolderQuotaBars {
    /// How full it is by space or by files, whichever is more; in thousandths of the limit.
    pub fn fullness(&self) -> u64 {
        self.files.as_ref().map_or(0, |files| files.value).max(self.space.value)
    }
}

/// The figure of a cluster that most needs attention, in words.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WorstResourceFigure {
    /// Empty if there are no figures.
    pub text: String,
    /// empty, warning or danger.
    pub level: &'static str,
}

/// Usage against a limit.
pub struct QuotaBar {
    /// In thousandths of the limit.
    pub value: u64,
    /// Whether a limit is known.
    pub has_limit: bool,
    pub text: String,
    /// empty, warning or danger.
    pub level: &'static str,
}

impl OwnClusterResources {
    /// The resources of a cluster account; `None` if there is nothing to show.
    pub fn from_queue(queue: &PersonClusterQueue) -> Option<Self> {
        let resources = &queue.snapshot.resources;
        let accounts = resources.shares.iter().filter(|share| share.user.is_none() && queue.account.uses_fair_share());
        let shares: Vec<FairShareGauge> = accounts.take(MAX_ACCOUNTS).map(fair_share_bar).collect();
        let cost = resources.cost.as_ref();
        let unit = cost.map_or("hours", |cost| cost.unit.as_str());
        let costs = cost.iter().flat_map(|cost| &cost.accounts).take(MAX_ACCOUNTS);
        let costs: Vec<GrantedHoursBar> = costs.filter_map(|account| granted_hours_bar(account, unit)).collect();
        let folders: Vec<FolderQuotaBars> = resources.places.iter().take(MAX_FOLDERS).map(folder_quota).collect();
        let is_empty = shares.is_empty() && costs.is_empty() && folders.is_empty();
        let nothing = match (is_empty, queue.is_connected) {
            (false, _) => "",
            (true, true) if queue.account.uses_fair_share() && resources.shares_at.is_none() => {
                "Loading from the cluster. This takes a moment."
            }
            (true, _) => return None,
        };
        Some(Self {
            slug: queue.cluster().slug.clone(),
            shares,
            shares_at: resources.shares_at.map(UnixTime),
            costs,
            period: cost.map(|cost| cost.period.clone()).unwrap_or_default(),
            costs_at: resources.cost_at.map(UnixTime),
            more_folders: resources.places.len().saturating_sub(folders.len()),
            folders,
            folders_at: resources.places_at.map(UnixTime),
            nothing,
        })
    }

    /// The figure that most needs attention: what is nearly full or used up; otherwise the lowest fair share.
    pub fn worst(&self) -> WorstResourceFigure {
        let folders = self.folders.iter().flat_map(|folder| {
            let bars = [Some(&folder.space), folder.files.as_ref()].into_iter().flatten();
            bars.filter(|bar| bar.has_limit).map(move |bar| {
                let state = match bar.level {
                    "danger" => " is full or almost full",
                    "warning" => " is nearly full",
                    _ => "",
                };
                let text = format!("{}{state}: {}", folder.label, bar.text);
                (bar.value, WorstResourceFigure { text, level: bar.level })
            })
        });
        let costs = self.costs.iter().map(|cost| {
            let text = format!("{}: {}", cost.account, cost.text);
            (cost.value.saturating_mul(1000) / cost.max.max(1), WorstResourceFigure { text, level: cost.level })
        });
        let fullest = folders.chain(costs).max_by_key(|(part, figure)| (severity(figure.level), *part));
        let fullest = fullest.map(|(_, figure)| figure);
        let known = self.shares.iter().filter(|share| share.explanation.position.is_some());
        let share = known.min_by_key(|share| share.explanation.position).map(|share| WorstResourceFigure {
            text: format!("Fair share of {}: {}", share.account, share.explanation.headline.to_lowercase()),
            level: "",
        });
        match (fullest, share) {
            (Some(figure), _) if !figure.level.is_empty() => figure,
            (_, Some(share)) => share,
            (figure, None) => figure.unwrap_or_default(),
        }
    }
}

fn severity(level: &str) -> Option<usize> {
    ["", "warning", "danger"].iter().position(|known| *known == level)
}

fn fair_share_bar(share: &SshareRow) -> FairShareGauge {
    let explanation = fair_share::explain_fair_share(&FairShareFigures {
        level_fs: share.level_fs,
        norm_shares: share.norm_shares,
        effective_usage: share.effective_usage,
    });
    let level = match share.level_fs {
        Some(level) if level == f64::INFINITY => "infinite (no usage)".to_owned(),
        Some(level) if level >= 100.0 => format!("{level:.0}"),
        Some(level) => format!("{level:.2}"),
        None => String::new(),
    };
    FairShareGauge { account: share.account.clone(), explanation, level }
}

/// Granted hours of an account as a bar; `None` if nothing was granted.
pub fn granted_hours_bar(account: &AccountBalance, unit: &str) -> Option<GrantedHoursBar> {
    let granted = round_to_whole(account.granted()?).filter(|granted| *granted > 0)?;
    let left = account.available();
    let used = match left {
        // The remainder is negative if more was used than granted.
        Some(left) => round_to_whole((account.granted()? - left).max(0.0))?,
        None => round_to_whole(account.amount("used")?)?,
    };
    let unit = format_unit(unit);
    let number = format::number;
    let text = if used <= granted {
        let left = number(granted - used);
        format!("{} of {} {unit} used, {left} left", number(used), number(granted))
    } else {
        format!("{} of {} {unit} used (over the allocation)", number(used), number(granted))
    };
    let level = warning_level(percent(used, granted));
    Some(GrantedHoursBar { account: account.account.clone(), value: used.min(granted), max: granted, text, level })
}

/// `Cpu hours` → `CPU hours`.
fn format_unit(unit: &str) -> String {
    let unit = if unit.is_empty() { "hours" } else { unit };
    unit.replace("Cpu", "CPU").replace("Gpu", "GPU")
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded before")]
fn round_to_whole(number: f64) -> Option<u64> {
    (0.0..1e15).contains(&number).then(|| number.round() as u64)
}

/// How full a folder is.
pub fn folder_quota(quota: &StorageQuota) -> FolderQuotaBars {
    let is_decimal = quota.limit_bytes.is_some_and(|limit| limit % 1_000_000_000 == 0 && limit % (1 << 30) != 0);
    // Count as the cluster does: in units of 1000 if that makes its limit a round number.
    let format_size = if is_decimal { format::decimal_bytes } else { format::bytes };
    let space = quota_bar(quota.used_bytes, quota.limit_bytes, format_size, "");
    let files = quota.files.map(|files| quota_bar(files, quota.files_limit, format::number, " files"));
    let worst = [Some(&space), files.as_ref()].into_iter().flatten().map(|bar| bar.level);
    let worst = worst.max_by_key(|level| severity(level));
    let advice = match worst.unwrap_or_default() {
        "danger" => "Full or almost full: jobs that write here may fail. Delete or move files you no longer need.",
        "warning" => "Nearly full. Delete or move files you no longer need before jobs fail.",
        _ => "",
    };
    FolderQuotaBars { label: quota.label.clone(), space, files, advice }
}

fn quota_bar(used: u64, limit: Option<u64>, format_value: impl Fn(u64) -> String, noun: &str) -> QuotaBar {
    let Some(limit) = limit.filter(|limit| *limit > 0) else {
        return QuotaBar { value: 0, has_limit: false, text: format!("{}{noun}", format_value(used)), level: "" };
    };
    let percent = percent(used, limit);
    let thousandths = u64::try_from(u128::from(used) * 1000 / u128::from(limit)).unwrap_or(u64::MAX);
    #[expect(clippy::cast_precision_loss, reason = "a part for people")]
    let share = format::percent(used as f64 / limit as f64);
    QuotaBar {
        value: thousandths.min(1000),
        has_limit: true,
        text: format!("{} of {}{noun} ({share})", format_value(used), format_value(limit)),
        level: warning_level(percent),
    }
}

fn percent(used: u64, limit: u64) -> u64 {
    u64::try_from(u128::from(used) * 100 / u128::from(limit.max(1))).unwrap_or(u64::MAX)
}

const fn warning_level(percent: u64) -> &'static str {
    match percent {
        ..WARNING_PERCENT => "",
        WARNING_PERCENT..DANGER_PERCENT => "warning",
        DANGER_PERCENT.. => "danger",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(used: u64, limit: Option<u64>, files: Option<u64>) -> StorageQuota {
        StorageQuota { label: "/home".into(), used_bytes: used, limit_bytes: limit, files, files_limit: Some(1000) }
    }

    #[test]
    fn folders_warn_from_85_percent() {
        for (used, level) in [(84, ""), (85, "warning"), (94, "warning"), (95, "danger"), (120, "danger")] {
            let folder = folder_quota(&quota(used << 30, Some(100 << 30), Some(1)));
            assert_eq!(folder.space.level, level, "{used}");
            assert_eq!(folder.advice.is_empty(), level.is_empty());
        }
        let files = folder_quota(&quota(1 << 30, Some(100 << 30), Some(960)));
        assert_eq!((files.space.level, files.files.unwrap().level), ("", "danger"));
        assert!(files.advice.contains("may fail"));
        assert!(!folder_quota(&quota(5, None, None)).space.has_limit);
    }

    fn resources(folders: Vec<FolderQuotaBars>, shares: Vec<FairShareGauge>) -> OwnClusterResources {
        OwnClusterResources {
            slug: "key".into(),
            shares,
            shares_at: None,
            costs: Vec::new(),
            period: String::new(),
            costs_at: None,
            folders,
            more_folders: 0,
            folders_at: None,
            nothing: "",
        }
    }

    fn share(account: &str, level_fs: f64) -> FairShareGauge {
        let row = SshareRow { account: account.into(), level_fs: Some(level_fs), ..SshareRow::default() };
        fair_share_bar(&row)
    }

    #[test]
    fn worst_figure_is_what_is_full_then_the_lowest_share() {
        let folder = |used: u64, files: u64| folder_quota(&quota(used << 30, Some(100 << 30), Some(files)));
        let shares = || vec![share("def-one", 3.0), share("def-two", 0.2)];
        let worst = resources(vec![folder(88, 1), folder(20, 970)], shares()).worst();
        assert_eq!(worst.text, "/home is full or almost full: 970 of 1,000 files (97%)");
        assert_eq!(worst.level, "danger");
        let worst = resources(vec![folder(20, 1)], shares()).worst();
        assert_eq!((worst.text.as_str(), worst.level), ("Fair share of def-two: usage well above share", ""));
        let worst = resources(vec![folder(20, 1), folder(40, 1)], Vec::new()).worst();
        assert_eq!(worst.text, "/home: 40 GB of 100 GB (40%)");
        assert_eq!(resources(Vec::new(), Vec::new()).worst(), WorstResourceFigure::default());
    }

    #[test]
    fn space_is_written_as_the_cluster_counts_it() {
        assert_eq!(folder_quota(&quota(88 << 30, Some(100 << 30), None)).space.text, "88 GB of 100 GB (88%)");
        let decimal = folder_quota(&quota(4_942_000_000, Some(50_000_000_000), None));
        assert_eq!(decimal.space.text, "4.9 GB of 50 GB (9.9%)");
        let large = folder_quota(&quota(4096, Some(20_000_000_000_000), None));
        assert_eq!(large.space.text, "4.1 kB of 20 TB (<0.1%)");
    }

    #[test]
    fn granted_hours() {
        let account = |quota: f64, used: f64, left: f64| AccountBalance {
            account: "nn8050k".into(),
            rows: vec![("Quota (pri)".into(), Some(quota)), ("Used".into(), Some(used)), ("Avail".into(), Some(left))],
        };
        let bar = granted_hours_bar(&account(14_000.0, 3257.5, 10_702.5), "Cpu hours").unwrap();
        assert_eq!(bar.text, "3,298 of 14,000 CPU hours used, 10,702 left");
        let over = granted_hours_bar(&account(100.0, 130.0, -30.0), "").unwrap();
        assert_eq!((over.value, over.level), (100, "danger"));
        assert!(over.text.contains("over the allocation"));
        assert!(granted_hours_bar(&account(0.0, 0.0, 0.0), "").is_none());
    }
}
