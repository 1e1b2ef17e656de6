//! The list of jobs, built from what is known. Viewing it keeps it up to date.

use askama::Template;

use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::error::AppError;
use crate::explain::waiting::WaitKind;
use crate::format;
use crate::jobs::job_list::JobListItem;
use crate::slurm::job::{JobStage, JobState, SlurmJob};
use crate::store;
use crate::store::jobs::{HistoryCluster, JobHistorySearch};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, QueryParams, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::jobs::cluster_queues::{PersonClusterQueue, list_shown_queues};
use crate::web::pages::jobs::list_query::{JobListQuery, JobListScope, OPTIONAL_COLUMNS, SORT_ORDERS, parse_columns};
use crate::web::pages::jobs::list_row::{JobListRow, JobRowBuilder, JobTimeCell, mark_repeated_hints};
use crate::web::pages::jobs::{failure_hints, history};

const JOBS_PER_PAGE: usize = 50;
/// The preference that holds the chosen columns.
pub const COLUMNS_PREFERENCE: &str = "jobs.columns";

/// The states of one's own jobs to choose from.
const MINE_STATES: [(&str, &str); 5] =
    [("", "All"), ("running", "Running"), ("waiting", "Pending"), ("ended", "Ended"), ("problem", "Needs attention")];

#[derive(Template)]
#[template(path = "jobs/list.html")]
struct JobListPage {
    page: PageFrame,
    list: JobList,
    tabs: Vec<(String, &'static str, bool)>,
    accounts: Vec<String>,
    columns: Vec<(&'static str, &'static str, bool)>,
}

#[derive(Template)]
#[template(path = "jobs/list_rows.html")]
struct JobRowsFragment {
    list: JobList,
}

/// The fragment that refreshes itself.
pub struct JobList {
    view: JobListQuery,
    scope: JobListScope,
    rows: Vec<JobListRow>,
    queues: Vec<PersonClusterQueue>,
    chips: Vec<(String, &'static str, String, bool)>,
    shown: &'static [(&'static str, &'static str)],
    selected_columns: Vec<&'static str>,
    total: usize,
    pages: usize,
    more_history: Vec<(String, String, UnixTime)>,
    /// Whether there are several clusters, which need a column.
    many: bool,
    /// Whether only the rows are sent, to a page that is open.
    is_fragment: bool,
}

impl JobList {
    fn has(&self, column: &str) -> bool {
        self.selected_columns.contains(&column)
    }

    /// The queues of clusters that the person isn't connected to.
    fn disconnected(&self) -> Vec<&PersonClusterQueue> {
        self.queues.iter().filter(|queue| queue.is_disconnected()).collect()
    }

    /// Whether any of the clusters lets people reorder their jobs.
    fn can_reorder(&self) -> bool {
        self.queues.iter().any(PersonClusterQueue::can_reorder)
    }

    fn sum(&self) -> String {
        format::count(u64::try_from(self.total).unwrap_or(0), "job")
    }

    fn previous(&self) -> String {
        if self.view.page_number() > 1 { self.view.with_page(self.view.page_number() - 1) } else { String::new() }
    }

    fn next(&self) -> String {
        if self.view.page_number() < self.pages {
            self.view.with_page(self.view.page_number() + 1)
        } else {
            String::new()
        }
    }

    fn page_words(&self) -> String {
        format!("Page {} of {}", self.view.page_number().min(self.pages), self.pages)
    }

    /// The filters that are on, for the summary of the folded filters. The default order is none.
    fn filters_in_words(&self) -> String {
        let state = self.chips.iter().find(|(.., is_on)| *is_on).map_or("", |(_, label, ..)| label);
        let cluster = self.queues.iter().find(|queue| queue.cluster().slug == self.view.cluster);
        let sort = match self.view.sort.as_str() {
            "" => String::new(),
            "name" => "sorted by name".to_owned(),
            sort => SORT_ORDERS.iter().find(|(name, _)| *name == sort).map_or("", |(_, label)| label).to_lowercase(),
        };
        let text = self.view.q.trim();
        let parts = [
            if self.view.state.is_empty() { String::new() } else { state.to_owned() },
            cluster.map(|queue| queue.cluster().title.clone()).unwrap_or_default(),
            self.view.account.clone(),
            if text.is_empty() { String::new() } else { format!("“{text}”") },
            sort,
        ];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// The clusters that hide other people's jobs, by name; empty if none does.
    fn hiding_clusters(&self) -> String {
        self.join_titles(PersonClusterQueue::hides_jobs)
    }

    /// The clusters whose queue is too long to read in full, by name.
    fn cut_clusters(&self) -> String {
        self.join_titles(|queue| queue.snapshot.is_cut)
    }

    fn join_titles(&self, is_meant: impl Fn(&PersonClusterQueue) -> bool) -> String {
        let titles = self.queues.iter().filter(|queue| is_meant(queue)).map(|queue| queue.cluster().title.as_str());
        titles.collect::<Vec<_>>().join(", ")
    }

    fn columns_shown(&self) -> usize {
        // Checkbox, job, state, time and request; then the chosen columns.
        5 + self.selected_columns.len() + usize::from(self.scope == JobListScope::Group)
    }
}

pub async fn get(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(view): QueryParams<JobListQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let list = load_list(&context, &me, view).await?;
    let chosen = list.selected_columns.clone();
    let mut accounts: Vec<String> = list.queues.iter().flat_map(|queue| queue.account.slurm_accounts()).collect();
    accounts.sort();
    accounts.dedup();
    let tab = |scope: JobListScope, label| (list.view.with_scope(scope), label, list.scope == scope);
    respond(&JobListPage {
        tabs: vec![
            tab(JobListScope::Mine, "Your jobs"),
            tab(JobListScope::Group, "Your group"),
            tab(JobListScope::History, "History"),
        ],
        accounts,
        columns: OPTIONAL_COLUMNS.iter().map(|(name, label)| (*name, *label, chosen.contains(name))).collect(),
        list,
        page: PageFrame::for_person(&context, &me.0, "Jobs", NavSection::Jobs),
    })
}

/// The rows alone, for a page that is open.
pub async fn get_rows(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(view): QueryParams<JobListQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let mut list = load_list(&context, &me, view).await?;
    list.is_fragment = true;
    respond(&JobRowsFragment { list })
}

async fn load_list(context: &RequestContext, me: &CurrentPerson, view: JobListQuery) -> Result<JobList, AppError> {
    let scope = view.scope();
    let mut queues = list_shown_queues(context, me, &view.cluster).await?;
    for queue in &mut queues {
        let key = queue.account.id;
        queue.snapshot = context.app.queue_monitor.view(key, scope == JobListScope::Group).await?;
    }
    let mut db = context.app.store.read().await?;
    let chosen = store::queues::load_preference(&mut db, me.0.person.id, COLUMNS_PREFERENCE).await?;
    drop(db);
    let mut list = JobList {
        selected_columns: parse_columns(&chosen.unwrap_or_default()),
        shown: OPTIONAL_COLUMNS,
        many: queues.len() > 1,
        is_fragment: false,
        rows: Vec::new(),
        chips: Vec::new(),
        total: 0,
        pages: 1,
        more_history: Vec::new(),
        view,
        scope,
        queues,
    };
    match scope {
        JobListScope::Mine => list.fill_with_mine(context),
        JobListScope::Group => list.fill_with_group(context),
        JobListScope::History => list.fill_with_history(context, me).await?,
    }
    mark_repeated_hints(&mut list.rows);
    failure_hints::add_failure_hints(context, &mut list.rows).await?;
    Ok(list)
}

impl JobList {
    fn fill_with_mine(&mut self, context: &RequestContext) {
        let now = context.app.clock.now();
        let text = self.view.search_text();
        let queues = self.selected_queues();
        let mut counts = MINE_STATES.map(|(state, label)| (state, label, 0));
        let mut found: Vec<(&PersonClusterQueue, &JobListItem)> = Vec::new();
        for queue in &queues {
            for item in queue.snapshot.items() {
                if !matches_filter(&item.head.job, &self.view.account, &text) {
                    continue;
                }
                for (state, _, count) in &mut counts {
                    *count += u64::from(is_in_state(item, state));
                }
                if is_in_state(item, &self.view.state) {
                    found.push((queue, item));
                }
            }
        }
        match self.view.sort.as_str() {
            "name" => found.sort_by_cached_key(|(_, item)| item.head.job.name.to_lowercase()),
            "size" => found.sort_by_key(|(_, item)| {
                let job = &item.head.job;
                std::cmp::Reverse((job.gpu_count(), job.cpus, job.memory_mb))
            }),
            "submitted" => {
                found.sort_by_key(|(_, item)| std::cmp::Reverse(item.head.job.submitted));
            }
            // A single snapshot is already sorted.
            _ if queues.len() > 1 => found.sort_by_cached_key(|(_, item)| item.sort_key()),
            _ => {}
        }
        self.set_total(found.len());
        let rows = found.iter().skip(self.skip()).take(JOBS_PER_PAGE);
        let row = |(queue, item): &(&PersonClusterQueue, &JobListItem)| JobListRow {
            cluster: queue.title(),
            ..row_builder(queue, now, &self.view.open).item_row(item)
        };
        self.rows = rows.map(row).collect();
        self.chips = counts.map(|(state, label, count)| self.chip(state, label, count)).into();
    }

    fn fill_with_group(&mut self, context: &RequestContext) {
        let now = context.app.clock.now();
        let text = self.view.search_text();
        let (mut waiting, mut running) = (0, 0);
        let queues = self.selected_queues();
        let mut found: Vec<(&PersonClusterQueue, &SlurmJob)> = Vec::new();
        for queue in &queues {
            let Some(group) = &queue.snapshot.group else { continue };
            for job in &group.jobs {
                let by_user = !text.is_empty() && job.user.to_lowercase().contains(&text);
                if !by_user && !matches_filter(job, &self.view.account, &text) {
                    continue;
                }
                let (count, state) = match job.state.stage() {
                    JobStage::Pending => (&mut waiting, "waiting"),
                    JobStage::Running | JobStage::Ended => (&mut running, "running"),
                };
                *count += 1;
                if self.view.state.is_empty() || self.view.state == state {
                    found.push((queue, job));
                }
            }
        }
        found.sort_by_key(|(_, job)| (job.state.stage() == JobStage::Pending, std::cmp::Reverse(job.priority), job.id));
        self.set_total(found.len());
        let rows = found.iter().skip(self.skip()).take(JOBS_PER_PAGE);
        self.rows = rows.map(|(queue, job)| row_builder(queue, now, "").job_row(job, false)).collect();
        self.chips = vec![
            self.chip("", "All", waiting + running),
            self.chip("running", "Running", running),
            self.chip("waiting", "Pending", waiting),
        ];
    }

    async fn fill_with_history(&mut self, context: &RequestContext, me: &CurrentPerson) -> Result<(), AppError> {
        let search = JobHistorySearch {
            clusters: self.history_clusters(),
            state: self.view.state.clone(),
            account: self.view.account.clone(),
            text: self.view.search_text(),
        };
        let page = (self.skip(), JOBS_PER_PAGE);
        let (rows, total) =
            history::load_history_rows(context, me, &self.queues, &search, page, &self.view.open).await?;
        self.rows = rows;
        let states = [
            ("", "All"),
            (JobState::Completed.slurm_name(), "Completed"),
            (JobState::Failed.slurm_name(), "Failed"),
            (JobState::Timeout.slurm_name(), "Timed out"),
            (JobState::OutOfMemory.slurm_name(), "Out of memory"),
            (JobState::Cancelled.slurm_name(), "Cancelled"),
        ];
        let chip = |(state, label)| (self.view.with_state(state), label, String::new(), self.view.state == state);
        self.chips = states.map(chip).into();
        let history = |queue: &PersonClusterQueue| {
            Some((queue.cluster().slug.clone(), queue.cluster().title.clone(), queue.snapshot.history_from?))
        };
        self.more_history = self.queues.iter().filter_map(history).collect();
        self.set_total(total);
        Ok(())
    }

    /// The clusters whose history is shown. Jobs of another entry for the same Slurm cluster are shown only if they
    /// aren't known from the first.
    fn history_clusters(&self) -> Vec<HistoryCluster> {
        let mut clusters = Vec::new();
        for queue in self.selected_queues() {
            let cluster = queue.cluster().id;
            clusters.push(HistoryCluster { cluster, unless_in: None });
            let others = queue.other_entries.iter().map(|other| other.cluster().id);
            clusters.extend(others.map(|other| HistoryCluster { cluster: other, unless_in: Some(cluster) }));
        }
        clusters
    }

    /// A state to choose, and how many rows the list then has: an array is one, as in the sum below the list.
    fn chip(&self, state: &str, label: &'static str, count: u64) -> (String, &'static str, String, bool) {
        (self.view.with_state(state), label, format::number(count), self.view.state == state)
    }

    /// How many jobs are on the pages before.
    fn skip(&self) -> usize {
        (self.view.page_number() - 1) * JOBS_PER_PAGE
    }

    fn set_total(&mut self, total: usize) {
        self.total = total;
        self.pages = total.div_ceil(JOBS_PER_PAGE).max(1);
    }

    fn selected_queues(&self) -> Vec<PersonClusterQueue> {
        let wanted =
            |queue: &&PersonClusterQueue| self.view.cluster.is_empty() || queue.cluster().slug == self.view.cluster;
        self.queues.iter().filter(wanted).cloned().collect()
    }
}

/// Whether a job is in this state, or some task of an array is.
fn is_in_state(item: &JobListItem, state: &str) -> bool {
    match state {
        "running" => item.counts.running > 0,
        "waiting" => item.counts.waiting > 0,
        "ended" => item.counts.ended() > 0,
        "problem" => item.counts.bad > 0 || item.is_stuck,
        _ => true,
    }
}

fn matches_filter(job: &SlurmJob, account: &str, text: &str) -> bool {
    (account.is_empty() || job.account == account)
        && (text.is_empty()
            || job.name.to_lowercase().contains(text)
            || job.id.number.to_string().contains(text)
            || job.work_dir.to_lowercase().contains(text))
}

/// What all rows of a cluster have in common.
pub fn row_builder<'a>(queue: &'a PersonClusterQueue, now: UnixTime, open: &'a str) -> JobRowBuilder<'a> {
    JobRowBuilder {
        cluster: queue.cluster(),
        snapshot: &queue.snapshot,
        now,
        uses_fair_share: queue.account.uses_fair_share(),
        open,
        own_waiting: queue.snapshot.waiting_count(),
        idle_user: queue.snapshot.is_idle(now).then_some(queue.account.remote_user.as_str()),
        is_group_known: !queue.hides_jobs() && queue.snapshot.is_group_current(now),
    }
}
