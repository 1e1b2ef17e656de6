//! What the home page says of one's jobs: what runs and waits now, and what ended since the last visit.

use std::cmp::Reverse;

use super::super::jobs::list::frame;
use super::super::jobs::queues::Place;
use super::super::jobs::row::Row;
use crate::clock::UnixTime;
use crate::domain::NotificationId;
use crate::explain::sizes;
use crate::jobs::entry::Counts;
use crate::jobs::tidings::{self, Sums, Tiding};
use crate::jobs::{Entry, Record};
use crate::slurm::job::JobStage;
use crate::store::notifications::Notification;

/// Jobs that are shown; the rest is on the page of jobs.
const MOST_ROWS: usize = 5;
/// Ends that are shown.
const MOST_ENDED: usize = 6;
/// Pictures hold the ends of this many seconds; older ones are in the history.
const DAY: i64 = 86_400;

/// One's jobs now.
pub struct Now {
    /// Whether there is anything to say: some queue was seen, or is about to be.
    pub is_worth_showing: bool,
    /// Whether any queue was ever seen.
    pub is_known: bool,
    /// How many run, in words.
    pub running: String,
    /// How many wait, in words.
    pub waiting: String,
    /// How many of those can never start, in words; empty for none.
    pub stuck: String,
    /// The first of them.
    pub rows: Vec<Row>,
    /// How many more there are, in words; empty for none.
    pub more: String,
    /// Whether they are on several clusters.
    pub many: bool,
    /// How old each picture is: the cluster and when.
    pub seen: Vec<(String, UnixTime)>,
    /// Why pictures are not fresh, each with the cluster's short name if connecting helps.
    pub stale: Vec<(String, String)>,
    /// Since when ends are told.
    pub since: Option<UnixTime>,
    /// What ended, what needs a look first.
    pub ended: Vec<Tiding>,
    /// All of it in a few words; empty for nothing.
    pub ended_words: String,
    /// How many lines are not shown.
    pub more_ended: usize,
}

/// Something that ended.
struct End<'a> {
    place: &'a Place,
    first: &'a Record,
    at: UnixTime,
    sums: Sums,
}

impl Now {
    /// From the pictures of someone's places.
    pub fn of(places: &[Place], since: Option<UnixTime>, now: UnixTime) -> Self {
        let from = since.unwrap_or(UnixTime(0)).max(now.plus(-DAY));
        let mut counts = Counts::default();
        let mut stuck = 0;
        let mut open: Vec<(&Place, &Entry)> = Vec::new();
        let mut ends: Vec<End<'_>> = Vec::new();
        for place in places {
            for entry in place.picture.entries() {
                counts.add_all(entry.counts);
                if entry.stage() != JobStage::Ended {
                    stuck += u64::from(entry.is_stuck);
                    // The list is in order: no more than these can be shown.
                    if open.iter().filter(|(of, _)| std::ptr::eq(*of, place)).count() < MOST_ROWS {
                        open.push((place, entry));
                    }
                }
                ends.extend(end(place, entry, from));
            }
        }
        if places.len() > 1 {
            open.sort_by_cached_key(|(_, entry)| entry.rank());
        }
        let rows: Vec<Row> = open
            .iter()
            .take(MOST_ROWS)
            .map(|(place, entry)| frame(place, now, "").row(entry))
            .collect();
        let entries = places.iter().flat_map(|place| place.picture.entries());
        let all = entries.filter(|entry| entry.stage() != JobStage::Ended).count();
        let more = u64::try_from(all.saturating_sub(rows.len())).unwrap_or(0);
        let mut sums = Sums::default();
        for end in &ends {
            sums.add_all(end.sums);
        }
        ends.sort_by_key(|end| (end.sums.failed == 0, Reverse(end.at)));
        Self {
            is_worth_showing: places.iter().any(|place| place.is_up || place.seen().is_some()),
            is_known: places.iter().any(|place| place.seen().is_some()),
            running: sizes::number(counts.running),
            waiting: sizes::number(counts.waiting),
            stuck: if stuck > 0 { sizes::number(stuck) } else { String::new() },
            more: if more > 0 { sizes::number(more) } else { String::new() },
            rows,
            many: places.len() > 1,
            seen: places
                .iter()
                .filter_map(|place| Some((place.cluster.title.clone(), place.seen()?)))
                .collect(),
            stale: places.iter().filter_map(stale).collect(),
            since,
            ended: ends.iter().take(MOST_ENDED).map(End::words).collect(),
            more_ended: ends.len().saturating_sub(MOST_ENDED),
            ended_words: match sums.all {
                0 => String::new(),
                all => format!("{} ended: {}", sizes::count(all, "job"), sums.words()),
            },
        }
    }
}

fn stale(place: &Place) -> Option<(String, String)> {
    let stale = place.stale()?;
    let slug = if stale.can_reconnect { place.cluster.slug.clone() } else { String::new() };
    Some((stale.sentence, slug))
}

/// What of an entry ended since then.
fn end<'a>(place: &'a Place, entry: &'a Entry, from: UnixTime) -> Option<End<'a>> {
    let mut found: Option<End<'a>> = None;
    let records =
        if entry.is_array() { entry.tasks.as_slice() } else { std::slice::from_ref(&entry.head) };
    for record in records {
        let Some(at) = record.ended().filter(|at| *at > from) else { continue };
        let end = found.get_or_insert(End { place, first: record, at, sums: Sums::default() });
        end.sums.add(record.job.state);
        end.at = end.at.max(at);
    }
    found
}

impl End<'_> {
    fn words(&self) -> Tiding {
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
            slug: self.place.cluster.slug.clone(),
            cluster: self.place.cluster.title.clone(),
            board_id: None,
            group_id: None,
            text: String::new(),
        };
        tidings::ended(&first, self.sums)
    }
}
