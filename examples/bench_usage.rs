//! Writes a year of a million made-up jobs to a portal's database, the way the portal writes what it has read.
//! Usage: `bench_usage DATABASE`. Prints the bytes that each job takes.

use std::path::Path;

use mimalloc::MiMalloc;
use portolan::clock::{Clock, Day};
use portolan::domain::{ConnectionRole, GroupId, PersonId};
use portolan::sites::Site;
use portolan::slurm::accounting::account_runs::AccountedRun;
use portolan::slurm::gres::GpuCount;
use portolan::slurm::job::JobState;
use portolan::slurm::job_usage::JobUsage;
use portolan::store::allocations::NewAllocation;
use portolan::store::connections::ConnectionKey;
use portolan::store::usage::{UsageDayReadRow, UsageSourceOwner};
use portolan::store::{self, Store};
use portolan::usage::daily_totals::{OneDayWindow, UserNameVisibility, count_day};
use portolan::usage::save_daily_totals;
use zeroizing_alloc::ZeroAlloc;

/// The same allocator as the portal.
#[global_allocator]
static ALLOCATOR: ZeroAlloc<MiMalloc> = ZeroAlloc(MiMalloc);

const JOBS: u64 = 1_000_000;
const DAYS: i64 = 365;
const PEOPLE: u64 = 12;
const KINDS: [&str; 10] = [
    "train-resnet",
    "finetune",
    "evaluate",
    "fit-model",
    "preprocess",
    "sweep",
    "bootstrap",
    "assemble",
    "align",
    "figures",
];

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the figure is what this program is for")]
async fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).ok_or_else(|| anyhow::anyhow!("usage: bench_usage DATABASE"))?;
    let database = Path::new(&path);
    let store = Store::open(database).await?;
    let before = size(database)?;
    fill(&store).await?;
    store.close().await;
    #[expect(clippy::cast_precision_loss, reason = "a figure")]
    let each = (size(database)? - before) as f64 / JOBS as f64;
    println!("{each:.1}");
    Ok(())
}

fn size(database: &Path) -> anyhow::Result<u64> {
    Ok(std::fs::metadata(database)?.len())
}

async fn fill(store: &Store) -> anyhow::Result<()> {
    let now = Clock::system().now();
    let mut tx = store.write().await?;
    let row = store::clusters::find_by_slug(&mut tx, "bench").await?;
    let cluster = row.ok_or_else(|| anyhow::anyhow!("no cluster `bench`"))?.id;
    let (person, group) = (PersonId(1), GroupId(1));
    let key = ConnectionKey { person, cluster, role: ConnectionRole::Login };
    store::connections::save_discovered(&mut tx, key, r#"{"user":"user0"}"#, now).await?;
    store::allocations::set_accounts(&mut tx, group, cluster, &["def-smith".to_owned()]).await?;
    for unit in ["core-hours", "gpu-hours"] {
        let today = Day::from_time(now);
        let allocation = NewAllocation {
            group,
            cluster,
            account: "def-smith".to_owned(),
            unit,
            amount: 1e7,
            begins: today.plus(-300),
            ends: today.plus(65),
        };
        store::allocations::add(&mut tx, &allocation, now).await?;
    }
    let owner = UsageSourceOwner::Group(group);
    let id = store::usage::open_source(&mut tx, owner, cluster, "def-smith", now).await?;
    let sources = store::usage::list_sources(&mut tx, owner, cluster).await?;
    let source = sources.into_iter().find(|source| source.id == id);
    let source = source.ok_or_else(|| anyhow::anyhow!("no source"))?;
    store::commit(tx).await?;
    let site = Site::with_defaults(portolan::sites::SiteName("bench".parse()?), "Bench");
    let today = Day::from_time(now);
    let a_day = JOBS.div_ceil(u64::try_from(DAYS)?);
    let mut number = 0;
    for days_ago in (0..DAYS).rev() {
        let day = today.plus(-days_ago);
        let runs: Vec<AccountedRun> = (0..a_day.min(JOBS - number)).map(|offset| run(number + offset, day)).collect();
        number += u64::try_from(runs.len())?;
        let window = OneDayWindow { from: day.start(), until: day.plus(1).start() };
        let totals = count_day(&runs.iter().collect::<Vec<_>>(), window, &UserNameVisibility::All, &site);
        let read = UsageDayReadRow { day, read_at: now, is_final: true, is_cut: false };
        let mut tx = store.write().await?;
        save_daily_totals(&mut tx, &source, read, &totals).await?;
        store::commit(tx).await?;
    }
    anyhow::ensure!(number == JOBS, "{number} jobs were written");
    Ok(())
}

/// A varied mix of jobs: arrays, GPUs, failures, some without usage measurements.
fn run(number: u64, day: Day) -> AccountedRun {
    let small = |modulo: u64| i64::try_from(number % modulo).unwrap_or(0);
    let start = day.start().plus(small(80_000));
    let elapsed = 30 + small(5000);
    let cores = u32::try_from(1 + number % 16).unwrap_or(1);
    let kind = KINDS[usize::try_from(number / 7 % 10).unwrap_or(0)];
    let array = number.is_multiple_of(3);
    AccountedRun {
        number: 40_000_000 + if array { number / 100 * 100 } else { number },
        task: array.then(|| u32::try_from(number % 100).unwrap_or(0)),
        raw_id: 40_000_000 + number,
        user: format!("user{}", number % PEOPLE),
        account: "def-smith".to_owned(),
        name: format!("{kind}-{}", number % 500),
        state: match number % 20 {
            0 => JobState::Failed,
            1 => JobState::Timeout,
            2 => JobState::OutOfMemory,
            3 => JobState::Cancelled,
            _ => JobState::Completed,
        },
        partition: "cpu".to_owned(),
        qos: "normal".to_owned(),
        submitted: Some(start.plus(-small(20_000))),
        eligible: Some(start.plus(-small(20_000))),
        start: Some(start),
        end: Some(start.plus(elapsed)),
        cores,
        nodes: 1,
        memory_mb: u64::from(cores) * 4000,
        gpus: match number % 4 {
            0 => vec![GpuCount { model: Some("h100".to_owned()), count: 1 }],
            _ => Vec::new(),
        },
        billing: u64::from(cores),
        usage: JobUsage {
            elapsed_s: u64::try_from(elapsed).unwrap_or(0),
            cpu_s: Some(u64::try_from(elapsed).unwrap_or(0) * u64::from(cores) / 2),
            max_rss_mb: (!number.is_multiple_of(9)).then_some(1500 + number % 3000),
            tasks: 1,
            ..JobUsage::default()
        },
        suspended_s: 0,
    }
}
