//! Times reading a queue, against the least that reading it can cost.
//! Usage: `bench_queue parse`

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use memchr::memchr2_iter;
use mimalloc::MiMalloc;
use portolan::clock::UnixTime;
use portolan::slurm::queue;
use zeroizing_alloc::ZeroAlloc;

/// The same allocator as the portal.
#[global_allocator]
static ALLOCATOR: ZeroAlloc<MiMalloc> = ZeroAlloc(MiMalloc);

/// Rows in total; a reply holds at most [`queue::MAX_JOBS`], so there are two replies.
const ROWS: usize = 100_000;
const ANSWERS: usize = 2;
/// Both methods take turns, so that a busy moment affects both; the best of each counts.
const ROUNDS: usize = 30;
const NONCE: &str = "k3v9q2xw";
const ASKED_AT: UnixTime = UnixTime(1_794_900_000);
const LIMIT: f64 = 0.15;

fn main() -> anyhow::Result<()> {
    let what = std::env::args().nth(1);
    anyhow::ensure!(what.as_deref() == Some("parse"), "usage: bench_queue parse");
    let answers: Vec<String> = (0..ANSWERS).map(|part| answer(part * ROWS / ANSWERS)).collect();
    let (mut split_best, mut read_best) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let (result, took) = timed(|| answers.iter().map(|text| split(text)).sum::<usize>());
        anyhow::ensure!(result > ROWS, "the reference found {result} fields");
        split_best = split_best.min(took);
        let (mut jobs, mut all) = (0, Duration::ZERO);
        for text in &answers {
            let (answer, took) = timed(|| queue::parse_queue(text.as_bytes(), NONCE, ASKED_AT));
            jobs += answer.jobs.len();
            all += took;
        }
        anyhow::ensure!(jobs == ROWS, "{jobs} jobs were read");
        read_best = read_best.min(all);
    }
    let value = split_best.as_secs_f64() / read_best.as_secs_f64();
    print_figure("parse_vs_memchr", value, LIMIT);
    Ok(())
}

/// `black_box` keeps the compiler from skipping the work; dropping the result is not timed.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    let result = black_box(work());
    (result, began.elapsed())
}

/// The baseline: finds every field with `memchr`, passes it to `black_box`, and does nothing else.
fn split(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut begin, mut fields) = (0, 0);
    for end in memchr2_iter(b'\t', b'\n', bytes) {
        black_box(&bytes[begin..end]);
        begin = end + 1;
        fields += 1;
    }
    fields
}

/// Rows as `squeue` prints them: some run, most are pending, some have just ended; with GPUs, arrays, dependencies.
fn answer(first: usize) -> String {
    let mut text = String::new();
    for number in first..first + ROWS / ANSWERS {
        row(&mut text, number);
    }
    text
}

fn row(text: &mut String, number: usize) {
    let id = 41_000_000 + number;
    let array = match number % 5 {
        0 => format!("{id}_[{}-{}%20]", number % 50, number % 50 + 400),
        1 => format!("{}_{}", id - number % 100, number % 100),
        _ => id.to_string(),
    };
    let (state, reason, nodes) = match number % 10 {
        0..=4 => ("PD", ["Priority", "Resources", "Dependency"][number % 3], String::new()),
        5..=7 => ("R", "None", format!("ng{:05}", number % 1300)),
        8 => ("CD", "None", format!("nc[{:05}-{:05}]", number % 900, number % 900 + 3)),
        _ => ("F", "NonZeroExitCode", format!("nc{:05}", number % 900)),
    };
    let gpus = if number.is_multiple_of(4) { ",gres/gpu=2,gres/gpu:h100=2" } else { "" };
    let dependency = if reason == "Dependency" { "afterok:40999999(unfulfilled)" } else { "(null)" };
    let moment = 1_794_800_000 + number;
    let exit = if state == "F" { 256 } else { 0 };
    let _ = writeln!(
        text,
        "{array}\t{id}\tuser{:03}\t{state}\t{reason}\trrg-group{:02}_gpu\tgpubase_bygpu_b3\tnormal\t{moment}\t{moment}\t\
         {moment}\t{}\t1-00:00:00\t{}\t1\tcpu=8,mem={}M,node=1,billing=4000{gpus}\t{nodes}\t{}\t{dependency}\t0\t{exit}\t\
         {}:{:02}:07\t/scratch/user{:03}/projects/model/runs_{NONCE}train-model-{number}_{NONCE}",
        number % 400,
        number % 60,
        moment + 86_400,
        8 + number % 56,
        16_000 + number % 90_000,
        1_000_000 + number * 7 % 900_000,
        number % 20,
        number % 60,
        number % 400,
    );
}

#[expect(clippy::print_stdout, reason = "the figures are what this program is for")]
fn print_figure(name: &str, value: f64, limit: f64) {
    let verdict = if value >= limit { "ok" } else { "short" };
    println!("{name} {value:.3} {limit} {verdict}");
}
