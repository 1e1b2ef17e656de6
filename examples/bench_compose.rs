//! Times how long it takes to build a script for a form whose fields come from standard input as a query string.
//! Usage: `bench_compose RECIPE <FORM` prints the microseconds of the best round.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use mimalloc::MiMalloc;
use portolan::recipes::catalog::RecipeCatalog;
use portolan::recipes::compose::compose;
use portolan::recipes::context::ComposeCluster;
use portolan::recipes::form::{FormAnswers, RecipeQuestionForm};
use portolan::sites;
use zeroizing_alloc::ZeroAlloc;

/// The same allocator as the portal.
#[global_allocator]
static ALLOCATOR: ZeroAlloc<MiMalloc> = ZeroAlloc(MiMalloc);

const ROUNDS: usize = 40;
const EACH: u32 = 50;

fn main() -> anyhow::Result<()> {
    let name = std::env::args().nth(1).context("usage: bench_compose RECIPE <FORM")?;
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let mut answers = FormAnswers::new();
    for (key, value) in form_urlencoded::parse(text.as_bytes()) {
        if let Some(key) = key.strip_prefix("a.") {
            answers.insert(key.to_owned(), value.into_owned());
        } else if let Some(key) = key.strip_prefix("s.") {
            answers.insert(format!("sweep.{key}"), value.into_owned());
        }
    }
    let catalog = RecipeCatalog::shipped();
    let recipe = catalog.find(&name).context("there is no such recipe")?;
    let form = RecipeQuestionForm::new(recipe, &catalog.blocks);
    let site = sites::presets().iter().find(|site| site.name.as_str() == "demo").context("no demo")?;
    let folders = [("HOME", "/home/alice"), ("SCRATCH", "/scratch/alice"), ("PROJECT", "/project/x")];
    let cluster = ComposeCluster {
        site: Arc::new(site.clone()),
        user: "alice".into(),
        accounts: Vec::new(),
        partitions: Vec::new(),
        gpus: Vec::new(),
        folders: folders.map(|(name, path)| (name.to_owned(), path.to_owned())).into_iter().collect::<BTreeMap<_, _>>(),
        max_array: Some(1001),
        keeps_comments: true,
    };
    let job = compose(&form, &answers, &cluster);
    anyhow::ensure!(job.problems.is_empty(), "{:?}", job.problems);
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for _ in 0..EACH {
            black_box(compose(&form, black_box(&answers), &cluster).build_script());
        }
        best = best.min(began.elapsed() / EACH);
    }
    #[expect(clippy::print_stdout, reason = "that is what it is for")]
    {
        println!("{:.1}", best.as_secs_f64() * 1e6);
    }
    Ok(())
}
