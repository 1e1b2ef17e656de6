//! Cards for the fair share and queued demand of accounts.

use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::domain::ClusterId;
use crate::format;
use crate::slurm::fair_share::SshareRow;
use crate::slurm::job::SlurmJob;
use crate::store::fair_share_history::FairSharePoint;
use crate::usage::demand;
use crate::usage::fair_share_chart::{self, FairShareHistoryChart};
use crate::usage::{GroupAccountContext, GroupUsage, fair_share, hours};

/// How far back fair share is drawn, in seconds.
pub const HISTORY_SECONDS: i64 = 120 * SECONDS_PER_DAY;
/// Rows of the table behind the chart.
const MAX_ROWS: usize = 60;
/// Members listed per account.
const MAX_MEMBERS: usize = 100;

pub struct GroupFairShareCard {
    /// Slurm's name for the account.
    pub account: String,
    pub headline: &'static str,
    pub sentence: String,
    /// From 0 (waits longer) to 100 (starts earlier).
    pub position: Option<u8>,
    /// Share and usage as text; empty if Slurm doesn't report them.
    pub figures: String,
    /// How past usage decays, as text.
    pub fading: String,
    /// Fair share over time.
    pub line: Option<FairShareHistoryChart>,
    /// The same as rows: day, usage relative to the share, share, usage.
    pub rows: Vec<[String; 4]>,
    /// For PIs, where Slurm reports it: the account's members, most usage first.
    pub members: Vec<MemberFairShare>,
    /// How many members are not listed.
    pub more_members: usize,
}

/// A member's part of an account's usage.
pub struct MemberFairShare {
    /// Display name.
    pub name: String,
    /// User name on the cluster, where it differs.
    pub user: String,
    pub share: String,
    pub used: String,
    /// Slurm's fair-share factor.
    pub factor: String,
}

impl GroupFairShareCard {
    pub fn new(share: &SshareRow, points: &[FairSharePoint], half_life: Option<u32>, now: UnixTime) -> Self {
        let ratio = fair_share::usage_ratio(share);
        let description = fair_share::describe_fair_share(ratio, half_life, now);
        let figures = match (share.norm_shares, share.effective_usage) {
            (Some(entitled), Some(used)) => format!(
                "Its share is {} of the cluster; its recent usage is {}.",
                format::percent(entitled),
                format::percent(used)
            ),
            _ => String::new(),
        };
        let mut fading = half_life.map_or_else(String::new, |hours| {
            let time = match (hours / 24, hours % 24) {
                (days, 0) => format::count(u64::from(days), "day"),
                _ => format::duration(u64::from(hours) * 3600),
            };
            format!("The weight of past usage halves every {time}.")
        });
        if ratio.is_some_and(|ratio| fair_share::recovery_day(ratio, half_life, now).is_some()) {
            fading.push_str(" The date is a rough estimate that depends on what others run.");
        }
        let rows = fair_share::last_point_per_day(points).into_iter().take(MAX_ROWS).map(|(day, point)| {
            let ratio = fair_share::ratio_of_point(&point);
            [
                day.words(),
                ratio.map_or_else(|| "unknown".to_owned(), |ratio| format!("{ratio:.2}")),
                format::percent(point.share),
                format::percent(point.used),
            ]
        });
        Self {
            account: share.account.clone(),
            headline: description.headline,
            sentence: description.sentence,
            position: description.position,
            figures,
            fading,
            line: fair_share_chart::draw_chart(points),
            rows: rows.collect(),
            members: Vec::new(),
            more_members: 0,
        }
    }

    /// Adds the members of the account. Only PIs see them.
    pub fn add_members(&mut self, rows: &[SshareRow], cluster: ClusterId, view: &GroupUsage) {
        let is_member = |row: &&SshareRow| row.account == self.account && row.user.is_some();
        let mut rows: Vec<&SshareRow> = rows.iter().filter(is_member).collect();
        rows.sort_by(|a, b| {
            let used = |row: &SshareRow| row.effective_usage.unwrap_or(0.0);
            used(b).total_cmp(&used(a)).then_with(|| a.user.cmp(&b.user))
        });
        self.more_members = rows.len().saturating_sub(MAX_MEMBERS);
        let percent = |part: Option<f64>| part.map_or_else(|| "unknown".to_owned(), format::percent);
        let member = |row: &&SshareRow| {
            let user = row.user.clone().unwrap_or_default();
            let person = view.people.get(&(cluster, user.clone()));
            MemberFairShare {
                name: person.map_or_else(|| user.clone(), |person| person.name.clone()),
                user: person.map(|_| user).unwrap_or_default(),
                share: percent(row.norm_shares),
                used: percent(row.effective_usage),
                factor: row.fair_share.map_or_else(|| "unknown".to_owned(), |factor| format!("{factor:.2}")),
            }
        };
        self.members = rows.iter().take(MAX_MEMBERS).map(member).collect();
    }

    /// Where the marker is drawn, in percent; kept fully inside the scale.
    pub fn marker_percent(&self) -> u8 {
        2 + (u16::from(self.position.unwrap_or(50)) * 96 / 100).to_le_bytes()[0]
    }
}

/// The queued demand of an account.
pub struct AccountDemandCard {
    /// The name that people submit with.
    pub account: String,
    pub waiting: String,
    pub waiting_cores: String,
    pub waiting_gpus: String,
    pub running: String,
    /// What the running jobs hold now.
    pub holding: String,
    /// Jobs whose demand could not be counted, as text; empty if there are none.
    pub endless: String,
}

pub fn build_demand_cards(
    jobs: &[SlurmJob],
    accounts: &[&GroupAccountContext],
    now: UnixTime,
) -> Vec<AccountDemandCard> {
    let card = |facts: &&GroupAccountContext| {
        let found = demand::compute_demand(jobs, &facts.slurm_names, now);
        let holding = match (found.cores, found.gpus) {
            (0, 0) => "nothing".to_owned(),
            (cores, 0) => format::count(cores, "core"),
            (cores, gpus) => {
                format!("{}, {}", format::count(cores, "core"), format::count(gpus, "GPU"))
            }
        };
        let endless = found.waiting.without_limit;
        AccountDemandCard {
            account: facts.account.clone(),
            waiting: format::number(found.waiting.jobs),
            waiting_cores: format::amount(hours(found.waiting.core_s)),
            waiting_gpus: format::amount(hours(found.waiting.gpu_s)),
            running: format::number(found.running.jobs),
            holding,
            endless: if endless == 0 {
                String::new()
            } else {
                format!("{} without a time limit not included", format::count(endless, "job"))
            },
        }
    };
    accounts.iter().map(card).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use super::*;
    use crate::domain::{GroupId, PersonId};
    use crate::usage::GroupMemberName;

    #[test]
    fn hours_read_well() {
        let words = [0, 1440, 36_000, 4_446_000].map(|seconds| format::amount(hours(seconds)));
        assert_eq!(words, ["0", "0.4", "10", "1,235"]);
    }

    #[test]
    fn a_card_of_a_share() {
        let share = SshareRow {
            account: "def-smith".into(),
            norm_shares: Some(0.2),
            effective_usage: Some(0.8),
            ..SshareRow::default()
        };
        let now = UnixTime(1_794_820_320);
        let point = |at: i64, used: f64| FairSharePoint { at: now.plus(at), share: 0.2, used };
        let card = GroupFairShareCard::new(&share, &[point(-90_000, 0.1), point(0, 0.8)], Some(168), now);
        assert!(card.sentence.contains("4.0 times its share"), "{}", card.sentence);
        assert!(card.fading.starts_with("The weight of past usage halves every 7 days."), "{}", card.fading);
        assert_eq!(card.rows[0][1..], ["4.00", "20%", "80%"]);
        assert!(card.line.is_some() && card.marker_percent() < 50);
    }

    #[test]
    fn members_by_usage() {
        let answer = include_str!("../../../../../tests/fixtures/slurm/sshare-all-22.05.txt");
        let rows = crate::slurm::fair_share::parse_fair_share(answer);
        let mut card = GroupFairShareCard::new(&rows[0], &[], None, UnixTime(0));
        assert!(card.members.is_empty(), "only PIs get them");
        let bob = GroupMemberName { id: PersonId(7), name: "Bob Tremblay".into() };
        let view = GroupUsage {
            group: GroupId(1),
            is_leader: true,
            viewer: PersonId(1),
            accounts: Vec::new(),
            people: Arc::new(HashMap::from([((ClusterId(1), "bob".to_owned()), bob)])),
            user_names: Arc::default(),
        };
        card.add_members(&rows, ClusterId(1), &view);
        let shown: Vec<_> = card.members.iter().map(|member| (&*member.name, &*member.user, &*member.used)).collect();
        assert_eq!(shown[..2], [("Bob Tremblay", "bob", "85%"), ("alice", "", "15%")]);
        assert_eq!((card.members.len(), card.more_members, &*card.members[0].factor), (4, 0, "0.10"));
    }
}
