//! Notifications in words, many folded into few: "12 tasks of sweep ended: 11 completed, 1 failed". A job is one line with
//! its latest event, and an array is one line with counts. Pure.

mod end_counts;
mod job_words;

use std::collections::HashMap;

use crate::clock::UnixTime;
use crate::domain::{NotificationId, codes};
use crate::format;
use crate::slurm::job::JobState;
use crate::store::notifications::Notification;
use crate::text::strip_hidden;

pub use end_counts::JobEndCounts;
use job_words::{display_name, outcome_words};

/// Notifications about jobs with the same name share a line if they are at most this far apart.
const FOLD_WITHIN: i64 = 3600;
/// Sentences about groups are cut to this many characters.
const MAX_SENTENCE_CHARS: usize = 400;
/// The state of a notification about a transfer that failed.
pub const TRANSFER_FAILED: &str = "failed";
/// The state of a notification about a file that a guest uploaded.
pub const DROP_BOX_FILLED: &str = "drop-box";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NotificationKind {
    /// A job can never start as requested.
    NeverStarts,
    Ended,
    Started,
    /// The webhook was switched off because deliveries kept failing.
    WebhookOff,
    /// A dashboard was stopped because nobody used it.
    DashboardIdle,
    /// Something about a group whose PI the person is.
    Group,
    /// A transfer of files ended.
    TransferEnded,
}

codes!(NotificationKind {
    NeverStarts = "never",
    Ended = "ended",
    Started = "started",
    WebhookOff = "webhook-off",
    DashboardIdle = "dashboard-idle",
    Group = "group",
    TransferEnded = "transfer",
});

impl NotificationKind {
    /// The kinds that people can turn on or off, each with its label.
    pub const CHOICES: &'static [(Self, &'static str)] = &[
        (Self::Ended, "A job ends"),
        (Self::NeverStarts, "A job can't start as submitted"),
        (Self::Started, "A job starts"),
    ];

    /// The kinds that can be sent to a webhook, each with its label.
    pub const WEBHOOK_CHOICES: &'static [(Self, &'static str)] = &[
        Self::CHOICES[0],
        Self::CHOICES[1],
        Self::CHOICES[2],
        (Self::Group, "A group I'm a PI of has a usage alert (may name members)"),
    ];

    /// Whether its line is one sentence, without the name of a job or dashboard.
    const fn is_sentence(self) -> bool {
        matches!(self, Self::WebhookOff | Self::Group | Self::TransferEnded)
    }

    /// Whether people can turn it off; the others are always shown.
    pub fn is_selectable(self) -> bool {
        Self::CHOICES.iter().any(|(kind, _)| *kind == self)
    }

    /// Parses `started,ended,never,group`; other kinds never appear in a list.
    pub fn parse_list(words: &str) -> Vec<Self> {
        let chosen: Vec<&str> = words.split(',').map(str::trim).collect();
        Self::WEBHOOK_CHOICES.iter().map(|(kind, _)| *kind).filter(|kind| chosen.contains(&kind.as_str())).collect()
    }

    /// Every selectable kind, as a list.
    pub fn default_list() -> String {
        Self::format_list(Self::CHOICES.iter().map(|(kind, _)| *kind))
    }

    pub fn format_list(kinds: impl Iterator<Item = Self>) -> String {
        kinds.map(Self::as_str).collect::<Vec<_>>().join(",")
    }
}

/// One or several notifications as one line. The job's name is a separate field because it is untrusted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationDigest {
    pub kind: NotificationKind,
    /// The badge style.
    pub look: &'static str,
    pub before: String,
    /// The job or array name; empty if there are several.
    pub name: String,
    pub after: String,
    /// The portal page with more about it.
    pub href: String,
    /// The cluster's name; empty if there are several.
    pub cluster: String,
    /// The time of the latest one.
    pub at: UnixTime,
    /// Whether all of them have been read.
    pub is_read: bool,
    pub counts: JobEndCounts,
}

impl NotificationDigest {
    /// The whole line as plain text.
    pub fn text(&self) -> String {
        format!("{}{}{}", self.before, self.name, self.after)
    }
}

struct NotificationDigestBuilder<'a> {
    first: &'a Notification,
    kind: NotificationKind,
    /// What ended.
    counts: JobEndCounts,
    started: u64,
    never: u64,
    /// Notifications that aren't about jobs.
    others: u64,
    oldest: UnixTime,
    newest: UnixTime,
    state: JobState,
    unread: u64,
    same_name: bool,
    same_cluster: bool,
    same_number: bool,
}

impl<'a> NotificationDigestBuilder<'a> {
    fn new(notification: &'a Notification, kind: NotificationKind) -> Self {
        Self {
            first: notification,
            kind,
            counts: JobEndCounts::default(),
            started: 0,
            never: 0,
            others: 0,
            oldest: notification.at,
            newest: notification.at,
            state: JobState::parse(&notification.state),
            unread: 0,
            same_name: true,
            same_cluster: true,
            same_number: true,
        }
    }

    fn add(&mut self, notification: &Notification, kind: NotificationKind) {
        match kind {
            NotificationKind::Ended => self.counts.add(JobState::parse(&notification.state)),
            NotificationKind::Started => self.started += 1,
            NotificationKind::NeverStarts => self.never += 1,
            NotificationKind::WebhookOff
            | NotificationKind::DashboardIdle
            | NotificationKind::Group
            | NotificationKind::TransferEnded => self.others += 1,
        }
        self.oldest = self.oldest.min(notification.at);
        self.newest = self.newest.max(notification.at);
        self.unread += u64::from(!notification.is_read);
        self.same_name &= notification.name == self.first.name;
        self.same_cluster &= notification.slug == self.first.slug;
        self.same_number &= self.same_cluster && notification.number == self.first.number;
    }

    const fn total(&self) -> u64 {
        self.counts.all + self.started + self.never + self.others
    }

    /// Whether the tasks of an array are in different states.
    const fn is_mixed(&self) -> bool {
        let total = self.total();
        self.counts.all != total && self.started != total && self.never != total && self.others != total
    }

    /// `: 12 tasks ended (11 completed, 1 failed), 3 tasks started`
    fn mixed_words(&self) -> String {
        let part = |count: u64, words: &str| (count > 0).then(|| format!("{} {words}", format::count(count, "task")));
        let parts = [
            part(self.counts.all, &format!("ended ({})", self.counts.summary())),
            part(self.started, "started"),
            part(self.never, "can't start as submitted"),
        ];
        format!(": {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }

    /// What the line is about; if the tasks of an array differ, what needs attention most.
    const fn line_kind(&self) -> NotificationKind {
        if !self.is_mixed() {
            self.kind
        } else if self.never > 0 {
            NotificationKind::NeverStarts
        } else {
            NotificationKind::Ended
        }
    }

    fn build(self) -> NotificationDigest {
        let first = self.first;
        let many = self.total() > 1;
        let is_array = self.same_number && first.task >= 0;
        let things = if is_array { "task" } else { "job" };
        let (name, before) = match self.same_name || is_array {
            _ if self.kind.is_sentence() => Default::default(),
            _ if !many || self.is_mixed() => (display_name(&first.name), String::new()),
            true => {
                let link = if is_array { "of " } else { "named " };
                (display_name(&first.name), format!("{} {link}", format::count(self.total(), things)))
            }
            false => (String::new(), format::count(self.total(), things)),
        };
        let after = match (self.kind, many) {
            _ if self.is_mixed() => self.mixed_words(),
            (NotificationKind::Started, _) => " started".to_owned(),
            (NotificationKind::NeverStarts, _) => " can't start as submitted".to_owned(),
            (NotificationKind::Ended, false) => format!(" {}", outcome_words(self.state)),
            (NotificationKind::Ended, true) => format!(" {}", self.counts.after_count()),
            (NotificationKind::WebhookOff, _) => {
                "Your webhook was turned off because no message could be delivered for three days".to_owned()
            }
            (NotificationKind::DashboardIdle, _) => " was stopped because nobody was viewing it".to_owned(),
            (NotificationKind::Group | NotificationKind::TransferEnded, _) => {
                strip_hidden(&first.text, MAX_SENTENCE_CHARS)
            }
        };
        let href = match (self.kind, many) {
            (NotificationKind::WebhookOff, _) => "/account/notifications".to_owned(),
            (NotificationKind::TransferEnded, _) if first.state == DROP_BOX_FILLED => "/file-links".to_owned(),
            (NotificationKind::TransferEnded, _) => "/transfers".to_owned(),
            (NotificationKind::DashboardIdle, _) => {
                first.dashboard_id.map_or_else(|| "/dashboards".to_owned(), |id| format!("/dashboards/{id}"))
            }
            (NotificationKind::Group, _) => {
                first.group_id.map_or_else(|| "/groups".to_owned(), |id| format!("/groups/{id}/usage"))
            }
            (_, false) if first.task >= 0 => {
                format!("/jobs/{}/{}_{}", first.slug, first.number, first.task)
            }
            (_, false) => format!("/jobs/{}/{}", first.slug, first.number),
            (_, true) if is_array => format!("/jobs/{}/{}", first.slug, first.number),
            (NotificationKind::Ended, true) if self.counts.has_failures() => "/jobs?state=problem".to_owned(),
            (NotificationKind::Ended, true) => "/jobs?state=ended".to_owned(),
            (NotificationKind::Started, true) => "/jobs?state=running".to_owned(),
            (NotificationKind::NeverStarts, true) => "/jobs?state=problem".to_owned(),
        };
        NotificationDigest {
            kind: self.line_kind(),
            look: self.badge(),
            before,
            name,
            after,
            href,
            cluster: if self.same_cluster { first.cluster.clone() } else { String::new() },
            at: self.newest,
            is_read: self.unread == 0,
            counts: self.counts,
        }
    }

    fn badge(&self) -> &'static str {
        match self.line_kind() {
            NotificationKind::Started => "running",
            NotificationKind::NeverStarts => "failed",
            NotificationKind::WebhookOff | NotificationKind::DashboardIdle | NotificationKind::Group => "warning",
            NotificationKind::TransferEnded if self.first.state == TRANSFER_FAILED => "failed",
            NotificationKind::TransferEnded => "ok",
            NotificationKind::Ended if self.counts.has_failures() => "failed",
            NotificationKind::Ended if self.started > 0 => "running",
            NotificationKind::Ended if self.counts.done > 0 => "ok",
            NotificationKind::Ended if self.counts.cancelled > 0 => "neutral",
            NotificationKind::Ended => "unknown",
        }
    }
}

/// Notifications with the same key share a line.
#[derive(PartialEq, Eq, Hash)]
enum DigestKey<'a> {
    /// The cluster and the array's job ID.
    Array(&'a str, i64),
    /// What happened, the cluster and the jobs' name.
    SameName(NotificationKind, &'a str, &'a str),
    Single(NotificationId),
}

/// Builds the list, newest first: a line for each job with its latest event, or for each array with counts of its
/// tasks. Jobs with the same name to which the same happened within an hour share a line. Expects `notifications`
/// newest first.
pub fn build_digests(notifications: &[Notification]) -> Vec<NotificationDigest> {
    let latest = latest_of_each_job(notifications);
    let mut digests: Vec<NotificationDigestBuilder<'_>> = Vec::new();
    let mut open: HashMap<DigestKey<'_>, usize> = HashMap::new();
    for notification in &latest {
        let Some(kind) = NotificationKind::parse(&notification.kind) else { continue };
        let key = match (kind.is_selectable(), notification.task >= 0) {
            (false, _) => DigestKey::Single(notification.id),
            (true, true) => DigestKey::Array(&notification.slug, notification.number),
            (true, false) => DigestKey::SameName(kind, &notification.slug, &notification.name),
        };
        let is_near = |digest: &NotificationDigestBuilder<'_>| digest.oldest.since(notification.at) <= FOLD_WITHIN;
        let is_array = matches!(key, DigestKey::Array(..));
        let index = open.get(&key).copied();
        let index = index.filter(|index| is_array || digests.get(*index).is_some_and(is_near));
        let index = fold_in(&mut digests, index, notification, kind);
        open.insert(key, index);
    }
    digests.into_iter().map(NotificationDigestBuilder::build).collect()
}

/// The latest notification of each job, in the same order; all that aren't about a job. One counts as read if all of
/// its job are.
pub fn latest_of_each_job(notifications: &[Notification]) -> Vec<Notification> {
    let mut latest: Vec<Notification> = Vec::new();
    let mut known: HashMap<(&str, i64, i64), usize> = HashMap::new();
    for notification in notifications {
        let is_job = NotificationKind::parse(&notification.kind).is_some_and(NotificationKind::is_selectable);
        if !is_job {
            latest.push(notification.clone());
            continue;
        }
        let key = (notification.slug.as_str(), notification.number, notification.task);
        let Some(kept) = known.get(&key).and_then(|index| latest.get_mut(*index)) else {
            known.insert(key, latest.len());
            latest.push(notification.clone());
            continue;
        };
        let is_read = kept.is_read && notification.is_read;
        if notification.id > kept.id {
            *kept = notification.clone();
        }
        kept.is_read = is_read;
    }
    latest
}

/// The shortest form: one line for each kind, the ones that need attention first.
pub fn summarize(notifications: &[Notification]) -> Vec<NotificationDigest> {
    let mut digests: Vec<NotificationDigestBuilder<'_>> = Vec::new();
    for notification in notifications {
        let Some(kind) = NotificationKind::parse(&notification.kind) else { continue };
        // A notification that is a sentence of its own stays one.
        let is_alone = matches!(kind, NotificationKind::Group | NotificationKind::TransferEnded);
        let is_same = |digest: &NotificationDigestBuilder<'_>| digest.kind == kind && !is_alone;
        let index = digests.iter().position(is_same);
        fold_in(&mut digests, index, notification, kind);
    }
    digests.sort_by_key(|digest| digest.kind);
    digests.into_iter().map(NotificationDigestBuilder::build).collect()
}

/// Adds a notification to the digest at this index, or to a new one. Returns the index.
fn fold_in<'a>(
    digests: &mut Vec<NotificationDigestBuilder<'a>>,
    index: Option<usize>,
    notification: &'a Notification,
    kind: NotificationKind,
) -> usize {
    let index = index.unwrap_or(digests.len());
    if index == digests.len() {
        digests.push(NotificationDigestBuilder::new(notification, kind));
    }
    digests[index].add(notification, kind);
    index
}

/// The line for one ended job, or for an array that `first` represents.
pub fn ended_digest(first: &Notification, counts: JobEndCounts) -> NotificationDigest {
    NotificationDigestBuilder { counts, ..NotificationDigestBuilder::new(first, NotificationKind::Ended) }.build()
}

#[cfg(test)]
mod tests;
