//! The list of jobs. Made from what is known; looking at it keeps it fresh.

use std::sync::Arc;

use askama::Template;

use super::super::Answer;
use super::super::extract::{Context, Me, Query};
use super::super::page::{Page, Section, show};
use super::queues::{Place, places};
use super::row::{Frame, Row, Time};
use super::view::{COLUMNS, View, Whose, columns};
use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::error::AppError;
use crate::explain::sizes;
use crate::explain::waiting::Kind;
use crate::jobs::entry::{Counts, Entry};
use crate::jobs::{QueueKey, Record};
use crate::slurm::array_tasks::ArrayTaskSet;
use crate::slurm::job::{JobStage, JobState, SlurmJob};
use crate::store;
use crate::store::jobs::JobHistorySearch;

/// Rows on a page.
const PER_PAGE: usize = 50;
/// The preference that holds the chosen columns.
pub const COLUMNS_CHOSEN: &str = "jobs.columns";

#[derive(Template)]
#[template(path = "jobs/list.html")]
struct ListPage {
    page: Page,
    list: List,
    tabs: Vec<(String, &'static str, bool)>,
    accounts: Vec<String>,
    columns: Vec<(&'static str, &'static str, bool)>,
}

#[derive(Template)]
#[template(path = "jobs/rows.html")]
struct RowsPart {
    list: List,
}

/// The part of the page that renews itself.
pub struct List {
    view: View,
    whose: Whose,
    rows: Vec<Row>,
    places: Vec<Place>,
    chips: Vec<(String, &'static str, String, bool)>,
    shown: &'static [(&'static str, &'static str)],
    has: Vec<&'static str>,
    total: usize,
    pages: usize,
    more_history: Vec<(String, String, UnixTime)>,
    /// Other clusters are worth a column.
    many: bool,
}

impl List {
    fn has(&self, column: &str) -> bool {
        self.has.contains(&column)
    }

    /// Whether any of the clusters lets people reorder their jobs.
    fn can_reorder(&self) -> bool {
        self.places.iter().any(|place| place.user_top)
    }

    fn sum(&self) -> String {
        sizes::count(u64::try_from(self.total).unwrap_or(0), "job")
    }

    fn previous(&self) -> String {
        if self.view.page() > 1 { self.view.with_page(self.view.page() - 1) } else { String::new() }
    }

    fn next(&self) -> String {
        if self.view.page() < self.pages {
            self.view.with_page(self.view.page() + 1)
        } else {
            String::new()
        }
    }

    fn page_words(&self) -> String {
        format!("Page {} of {}", self.view.page().min(self.pages), self.pages)
    }

    fn columns_shown(&self) -> usize {
        // The box, the job, the state, the time, what was asked; then the chosen ones.
        5 + self.has.len() + usize::from(self.whose == Whose::Group)
    }
}

/// The page.
pub async fn get(context: Context, me: Me, Query(view): Query<View>) -> Answer {
    me.may(Permission::UseClusters)?;
    let list = list(&context, &me, view).await?;
    let chosen = list.has.clone();
    let mut accounts: Vec<String> =
        list.places.iter().flat_map(|place| place.accounts.iter().cloned()).collect();
    accounts.sort();
    accounts.dedup();
    let tab = |whose: Whose, label| (list.view.with_whose(whose), label, list.whose == whose);
    show(&ListPage {
        tabs: vec![
            tab(Whose::Mine, "Mine"),
            tab(Whose::Group, "My group's"),
            tab(Whose::History, "History"),
        ],
        accounts,
        columns: COLUMNS
            .iter()
            .map(|(name, label)| (*name, *label, chosen.contains(name)))
            .collect(),
        list,
        page: Page::for_person(&context, &me.0, "Jobs", Section::Jobs),
    })
}

/// The rows alone, for the page that is open.
pub async fn rows(context: Context, me: Me, Query(view): Query<View>) -> Answer {
    me.may(Permission::UseClusters)?;
    show(&RowsPart { list: list(&context, &me, view).await? })
}

async fn list(context: &Context, me: &Me, view: View) -> Result<List, AppError> {
    let whose = view.whose();
    let mut places = places(context, me).await?;
    for place in &mut places {
        let key = QueueKey { person: me.0.person.id, cluster: place.cluster.id };
        place.picture = context.app.queue_monitor.look(key, whose == Whose::Group).await?;
    }
    let mut db = context.app.store.read().await?;
    let chosen = store::queues::load_preference(&mut db, me.0.person.id, COLUMNS_CHOSEN).await?;
    drop(db);
    let mut list = List {
        has: columns(&chosen.unwrap_or_default()),
        shown: COLUMNS,
        many: places.len() > 1,
        rows: Vec::new(),
        chips: Vec::new(),
        total: 0,
        pages: 1,
        more_history: Vec::new(),
        view,
        whose,
        places,
    };
    match whose {
        Whose::Mine => list.fill_with_mine(context),
        Whose::Group => list.fill_with_group(context),
        Whose::History => list.fill_with_history(context, me).await?,
    }
    Ok(list)
}

impl List {
    fn fill_with_mine(&mut self, context: &Context) {
        let now = context.app.clock.now();
        let text = self.view.text();
        let places = self.chosen_places();
        let mut counts = Counts::default();
        let mut never = 0;
        let mut found: Vec<(&Place, &Entry)> = Vec::new();
        for place in &places {
            for entry in place.picture.entries() {
                if !fits(&entry.head.job, &self.view.account, &text) {
                    continue;
                }
                counts.add_all(entry.counts);
                never += u64::from(entry.is_stuck);
                if self.wants(entry) {
                    found.push((place, entry));
                }
            }
        }
        match self.view.sort.as_str() {
            "name" => found.sort_by_cached_key(|(_, entry)| entry.head.job.name.to_lowercase()),
            "size" => found.sort_by_key(|(_, entry)| {
                let job = &entry.head.job;
                std::cmp::Reverse((job.gpu_count(), job.cpus, job.memory_mb))
            }),
            "submitted" => {
                found.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.head.job.submitted));
            }
            // One picture is in order already.
            _ if places.len() > 1 => found.sort_by_cached_key(|(_, entry)| entry.rank()),
            _ => {}
        }
        let total = found.len();
        let skip = (self.view.page() - 1) * PER_PAGE;
        let rows = found.iter().skip(skip).take(PER_PAGE);
        let rows =
            rows.map(|(place, entry)| frame(place, now, &self.view.open).row(entry)).collect();
        let chip = |state: &str, label, count: u64| {
            (self.view.with_state(state), label, sizes::number(count), self.view.state == state)
        };
        let chips = vec![
            chip("", "All", counts.total()),
            chip("running", "Running", counts.running),
            chip("waiting", "Waiting", counts.waiting),
            chip("ended", "Ended", counts.ended()),
            chip("problem", "Problems", counts.bad + never),
        ];
        (self.rows, self.chips) = (rows, chips);
        self.set_total(total);
    }

    fn wants(&self, entry: &Entry) -> bool {
        match self.view.state.as_str() {
            "running" => entry.counts.running > 0,
            "waiting" => entry.counts.waiting > 0,
            "ended" => entry.counts.ended() > 0,
            "problem" => entry.counts.bad > 0 || entry.is_stuck,
            _ => true,
        }
    }

    fn fill_with_group(&mut self, context: &Context) {
        let now = context.app.clock.now();
        let text = self.view.text();
        let mut counts = Counts::default();
        let places = self.chosen_places();
        let mut found: Vec<(&Place, &SlurmJob)> = Vec::new();
        for place in &places {
            let Some(group) = &place.picture.group else { continue };
            for job in &group.jobs {
                let by_user = !text.is_empty() && job.user.to_lowercase().contains(&text);
                if !by_user && !fits(job, &self.view.account, &text) {
                    continue;
                }
                let tasks = job.tasks.as_ref().map_or(1, ArrayTaskSet::len);
                let (place_of, state) = match job.state.stage() {
                    JobStage::Pending => (&mut counts.waiting, "waiting"),
                    JobStage::Running | JobStage::Ended => (&mut counts.running, "running"),
                };
                *place_of += tasks;
                if self.view.state.is_empty() || self.view.state == state {
                    found.push((place, job));
                }
            }
        }
        found.sort_by_key(|(_, job)| {
            (job.state.stage() == JobStage::Pending, std::cmp::Reverse(job.priority), job.id)
        });
        let total = found.len();
        let skip = (self.view.page() - 1) * PER_PAGE;
        let rows = found.iter().skip(skip).take(PER_PAGE);
        let rows = rows.map(|(place, job)| frame(place, now, "").job(job, false)).collect();
        let chip = |state: &str, label, count: u64| {
            (self.view.with_state(state), label, sizes::number(count), self.view.state == state)
        };
        let chips = vec![
            chip("", "All", counts.total()),
            chip("running", "Running", counts.running),
            chip("waiting", "Waiting", counts.waiting),
        ];
        (self.rows, self.chips) = (rows, chips);
        self.set_total(total);
    }

    async fn fill_with_history(&mut self, context: &Context, me: &Me) -> Result<(), AppError> {
        let now = context.app.clock.now();
        let cluster = self.places.iter().find(|place| place.cluster.slug == self.view.cluster);
        let search = JobHistorySearch {
            cluster: cluster.map_or(0, |place| place.cluster.id.0),
            state: self.view.state.clone(),
            account: self.view.account.clone(),
            text: self.view.text(),
        };
        let (offset, most) = ((self.view.page() - 1) * PER_PAGE, PER_PAGE);
        let (offset, most) =
            (i64::try_from(offset).unwrap_or(0), i64::try_from(most).unwrap_or(50));
        let mut db = context.app.store.read().await?;
        let (rows, total) =
            store::jobs::search_history(&mut db, me.0.person.id, &search, offset, most).await?;
        drop(db);
        let records = rows.into_iter().map(|row| (row.cluster_id, Arc::new(Record::of(row))));
        let rows = records.filter_map(|(cluster, record)| {
            let place = self.places.iter().find(|place| place.cluster.id.0 == cluster)?;
            Some(frame(place, now, "").record(&record, false))
        });
        self.rows = rows.collect();
        let states = [
            ("", "All"),
            (JobState::Completed.slurm_name(), "Done"),
            (JobState::Failed.slurm_name(), "Failed"),
            (JobState::Timeout.slurm_name(), "Out of time"),
            (JobState::OutOfMemory.slurm_name(), "Out of memory"),
            (JobState::Cancelled.slurm_name(), "Cancelled"),
        ];
        let chip = |(state, label): (&str, &'static str)| {
            (self.view.with_state(state), label, String::new(), self.view.state == state)
        };
        self.chips = states.into_iter().map(chip).collect();
        let known = |place: &Place| {
            Some((
                place.cluster.slug.clone(),
                place.cluster.title.clone(),
                place.picture.history_from?,
            ))
        };
        self.more_history = self.places.iter().filter_map(known).collect();
        self.set_total(usize::try_from(total).unwrap_or(0));
        Ok(())
    }

    fn set_total(&mut self, total: usize) {
        self.total = total;
        self.pages = total.div_ceil(PER_PAGE).max(1);
    }

    fn chosen_places(&self) -> Vec<Place> {
        let wanted = |place: &&Place| {
            self.view.cluster.is_empty() || place.cluster.slug == self.view.cluster
        };
        self.places.iter().filter(wanted).cloned().collect()
    }
}

fn fits(job: &SlurmJob, account: &str, text: &str) -> bool {
    (account.is_empty() || job.account == account)
        && (text.is_empty()
            || job.name.to_lowercase().contains(text)
            || job.id.number.to_string().contains(text)
            || job.work_dir.to_lowercase().contains(text))
}

/// What all rows of a place have in common.
pub fn frame<'a>(place: &'a Place, now: UnixTime, open: &'a str) -> Frame<'a> {
    Frame {
        cluster: &place.cluster,
        picture: &place.picture,
        now,
        fair_share: place.fair_share,
        open,
        own_waiting: place.picture.waiting(),
    }
}
