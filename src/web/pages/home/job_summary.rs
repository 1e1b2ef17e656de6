//! The person's jobs on the home page: what is running and pending now, and what ended since the last visit.

use std::cmp::Reverse;

use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::domain::NotificationId;
use crate::format;
use crate::jobs::job_list::JobCounts;
use crate::jobs::notification_digest::{self, JobEndCounts, NotificationDigest};
use crate::jobs::{JobListItem, JobRecord};
use crate::slurm::job::JobStage;
use crate::store::notifications::Notification;
use crate::web::pages::home::cluster_lines::join_names;
use crate::web::pages::jobs::cluster_queues::PersonClusterQueue;
use crate::web::pages::jobs::list::row_builder;
use crate::web::pages::jobs::list_row::JobListRow;

/// Jobs that are shown; the rest are on the jobs page.
const MAX_ROWS: usize = 5;
/// Ended jobs that are shown, after digesting.
const MAX_ENDED: usize = 4;

pub struct HomeJobSummary {
    /// Whether there is anything to show: some queue was read, or is about to be.
    pub is_worth_showing: bool,
    /// Whether any queue was ever read.
    pub is_known: bool,
    pub running: String,
    pub waiting: String,
    /// How many of those can never start; empty for none.
    pub stuck: String,
    /// The first jobs.
    pub rows: Vec<JobListRow>,
    /// How many more there are; empty for none.
    pub more: String,
    /// Whether they are on several clusters.
    pub many: bool,
    /// The age of each snapshot: the cluster, and when it was read.
    pub seen: Vec<(String, UnixTime)>,
    /// Why snapshots are out of date, with the cluster's short name if connecting to this one helps. Clusters that
    /// aren't connected share one sentence.
    pub stale: Vec<(String, String)>,
    /// The last visit, since which ended jobs are shown; none if it was more than a day ago.
    pub since: Option<UnixTime>,
    /// What ended, with what needs attention first.
    pub ended: Vec<NotificationDigest>,
    /// All of it in a few words; empty for nothing.
    pub ended_words: String,
    /// How many rows aren't shown.
    pub more_ended: usize,
}

struct EndedJobsSummary<'a> {
    queue: &'a PersonClusterQueue,
    first: &'a JobRecord,
    at: UnixTime,
    sums: JobEndCounts,
}

impl HomeJobSummary {
    /// Builds the summary from the snapshots of someone's queues.
    pub fn new(queues: &[PersonClusterQueue], since: Option<UnixTime>, now: UnixTime) -> Self {
        let day_ago = now.plus(-SECONDS_PER_DAY);
        let since = since.filter(|since| *since > day_ago);
        let from = since.unwrap_or(day_ago);
        let mut counts = JobCounts::default();
        let mut stuck = 0;
        let mut open: Vec<(&PersonClusterQueue, &JobListItem)> = Vec::new();
        let mut ends: Vec<EndedJobsSummary<'_>> = Vec::new();
        for queue in queues {
            for item in queue.snapshot.items() {
                counts.add_all(item.counts);
                if item.stage() != JobStage::Ended {
                    stuck += u64::from(item.is_stuck);
                    // The list is sorted: no more than these can be shown.
                    if open.iter().filter(|(other, _)| std::ptr::eq(*other, queue)).count() < MAX_ROWS {
                        open.push((queue, item));
                    }
                }
                ends.extend(find_ended(queue, item, from));
            }
        }
        if queues.len() > 1 {
            open.sort_by_cached_key(|(_, item)| item.sort_key());
        }
        let rows: Vec<JobListRow> =
            open.iter().take(MAX_ROWS).map(|(queue, item)| row_builder(queue, now, "").item_row(item)).collect();
        let items = queues.iter().flat_map(|queue| queue.snapshot.items());
        let all = items.filter(|item| item.stage() != JobStage::Ended).count();
        let more = u64::try_from(all.saturating_sub(rows.len())).unwrap_or(0);
        let mut sums = JobEndCounts::default();
        for end in &ends {
            sums.add_all(end.sums);
        }
        ends.sort_by_key(|end| (!end.sums.has_failures(), Reverse(end.at)));
        Self {
            is_worth_showing: queues.iter().any(|queue| queue.is_connected || queue.seen().is_some()),
            is_known: queues.iter().any(|queue| queue.seen().is_some()),
            running: format::number(counts.running),
            waiting: format::number(counts.waiting),
            stuck: if stuck > 0 { format::number(stuck) } else { String::new() },
            more: if more > 0 { format::number(more) } else { String::new() },
            rows,
            many: queues.len() > 1,
            seen: queues.iter().filter_map(|queue| Some((queue.cluster().title.clone(), queue.seen()?))).collect(),
            stale: explain_stale(queues),
            since,
            ended: ends.iter().take(MAX_ENDED).map(EndedJobsSummary::to_digest).collect(),
            more_ended: ends.len().saturating_sub(MAX_ENDED),
            ended_words: match sums.all {
                0 => String::new(),
                all => format!("{} {}", format::count(all, "job"), sums.after_count()),
            },
        }
    }
}

fn explain_stale(queues: &[PersonClusterQueue]) -> Vec<(String, String)> {
    let stale = queues.iter().filter_map(|queue| Some((queue, queue.stale()?)));
    let (away, others): (Vec<_>, Vec<_>) = stale.partition(|(_, stale)| stale.can_reconnect);
    let mut sentences = Vec::new();
    match away.as_slice() {
        [] => {}
        [(queue, stale)] => sentences.push((stale.sentence.clone(), queue.cluster().slug.clone())),
        several => {
            let names = join_names(several.iter().map(|(queue, _)| queue.cluster().title.as_str()), "or");
            let sentence = format!("You're not connected to {names}. This page shows the last known state.");
            sentences.push((sentence, String::new()));
        }
    }
    sentences.extend(others.into_iter().map(|(_, stale)| (stale.sentence, String::new())));
    sentences
}

/// What ended since then, of one item of the list.
fn find_ended<'a>(
    queue: &'a PersonClusterQueue,
    item: &'a JobListItem,
    from: UnixTime,
) -> Option<EndedJobsSummary<'a>> {
    let mut ended: Option<EndedJobsSummary<'a>> = None;
    let records = if item.is_array() { item.tasks.as_slice() } else { std::slice::from_ref(&item.head) };
    for record in records {
        let Some(at) = record.ended_at().filter(|at| *at > from) else { continue };
        let summary = ended.get_or_insert(EndedJobsSummary { queue, first: record, at, sums: JobEndCounts::default() });
        summary.sums.add(record.job.state);
        summary.at = summary.at.max(at);
    }
    ended
}

impl EndedJobsSummary<'_> {
    fn to_digest(&self) -> NotificationDigest {
        let job = &self.first.job;
        let first = Notification {
            id: NotificationId(0),
            kind: "ended".to_owned(),
            at: self.at,
            is_read: false,
            number: i64::try_from(job.id.number).unwrap_or(0),
            task: job.id.task.map_or(-1, i64::from),
            name: job.name.clone(),
            state: job.state.slurm_name().to_owned(),
            slug: self.queue.cluster().slug.clone(),
            cluster: self.queue.cluster().title.clone(),
            dashboard_id: None,
            group_id: None,
            text: String::new(),
        };
        notification_digest::ended_digest(&first, self.sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ended jobs are shown for a day at most, so an earlier visit says nothing about them.
    #[test]
    fn earlier_visit_than_a_day_ago_is_not_named() {
        let now = UnixTime(10 * SECONDS_PER_DAY);
        let since = |seconds: i64| HomeJobSummary::new(&[], Some(now.plus(-seconds)), now).since;
        assert_eq!(since(3600), Some(now.plus(-3600)));
        assert_eq!(since(2 * SECONDS_PER_DAY), None);
    }
}
