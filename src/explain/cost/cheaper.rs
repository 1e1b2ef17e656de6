//! Finds requests that cost less and do nearly the same. Each is priced again with the change applied, so no saving
//! is promised that is not real.

use super::price::{JobHourlyCost, hourly_price};
use super::{CheaperRequest, CostDriver};
use crate::format;
use crate::recipes::context::ComposeCluster;
use crate::recipes::request::{JobRequest, MemoryRequest, RequestField};

/// The smallest saving worth a sentence, as a fraction of the price.
const MIN_SAVING: f64 = 0.1;
const MAX_OFFERS: usize = 3;

/// Cheaper requests, cheapest first.
pub(super) fn find_cheaper(request: &JobRequest, cluster: &ComposeCluster, now: &JobHourlyCost) -> Vec<CheaperRequest> {
    let mut found: Vec<CheaperRequest> = match now.driver().map(|part| part.what) {
        Some(CostDriver::Memory) => less_memory(request, cluster, now).into_iter().collect(),
        Some(CostDriver::Cores) if request.gpus.is_some() => fewer_cores(request, cluster, now).into_iter().collect(),
        Some(CostDriver::Gpus) => gpu_slices(request, cluster, now),
        _ => Vec::new(),
    };
    found.sort_by(|one, other| one.per_hour.total_cmp(&other.per_hour));
    found.truncate(MAX_OFFERS);
    found
}

/// The changed request, if it really is cheaper.
fn cheaper_if_changed(
    then: &JobRequest,
    cluster: &ComposeCluster,
    now: &JobHourlyCost,
    changes: Vec<(RequestField, String)>,
    sentence: impl FnOnce(&str) -> String,
) -> Option<CheaperRequest> {
    let new = hourly_price(then, cluster);
    let per_hour = new.per_hour();
    let good = new.unit == now.unit && per_hour <= now.per_hour() * (1.0 - MIN_SAVING);
    let paid = format!("{} instead of {}", format::fine_amount(per_hour), format::fine_amount(now.per_hour()));
    good.then(|| CheaperRequest { sentence: sentence(&paid), changes, per_hour })
}

/// The highest cost among the parts other than the driver.
fn next_highest(now: &JobHourlyCost, driver: CostDriver) -> f64 {
    let others = now.parts.iter().filter(|part| part.what != driver);
    others.map(|part| part.counts).fold(0.0, f64::max)
}

/// Reduces memory until something else sets the price.
fn less_memory(request: &JobRequest, cluster: &ComposeCluster, now: &JobHourlyCost) -> Option<CheaperRequest> {
    let part = now.parts.iter().find(|part| part.what == CostDriver::Memory)?;
    let share = next_highest(now, CostDriver::Memory) / part.counts;
    // The form has memory per node and per core.
    let (asked, sets) = match request.memory? {
        MemoryRequest::PerNode(mb) => (mb, RequestField::Memory),
        MemoryRequest::PerGpu(mb) => (mb.saturating_mul(request.gpus.as_ref()?.count.into()), RequestField::Memory),
        MemoryRequest::PerCore(mb) => (mb, RequestField::MemoryPerCore),
    };
    let mb = round_down_memory(scaled(asked, share));
    let (memory_then, each) = match sets {
        _ if mb == 0 => return None,
        RequestField::MemoryPerCore => (MemoryRequest::PerCore(mb), " per core"),
        _ if request.nodes_or_one() > 1 => (MemoryRequest::PerNode(mb), " per node"),
        _ => (MemoryRequest::PerNode(mb), ""),
    };
    let changed = JobRequest { memory: Some(memory_then), ..request.clone() };
    cheaper_if_changed(&changed, cluster, now, vec![(sets, format::memory_option(mb))], |paid| {
        format!(
            "With {}{each} instead of {}, it would cost {paid} per hour. That much memory is included with your \
             cores and GPUs.",
            format::memory(mb),
            format::memory(asked)
        )
    })
}

/// Reduces cores until the GPUs set the price.
fn fewer_cores(request: &JobRequest, cluster: &ComposeCluster, now: &JobHourlyCost) -> Option<CheaperRequest> {
    let part = now.parts.iter().find(|part| part.what == CostDriver::Cores)?;
    let share = next_highest(now, CostDriver::Cores) / part.counts;
    let asked = request.cores?;
    let cores = u32::try_from(scaled(asked.into(), share)).ok().filter(|cores| *cores > 0)?;
    let changed = JobRequest { cores: Some(cores), ..request.clone() };
    let each = if request.all_tasks() > 1 { " per task" } else { "" };
    cheaper_if_changed(&changed, cluster, now, vec![(RequestField::Cores, cores.to_string())], |paid| {
        format!(
            "With {cores} cores{each} instead of {asked}, it would cost {paid} per hour: that many are included with the GPUs."
        )
    })
}

/// Replaces a whole GPU with a slice.
fn gpu_slices(request: &JobRequest, cluster: &ComposeCluster, now: &JobHourlyCost) -> Vec<CheaperRequest> {
    let Some(gpus) = request.gpus.as_ref().filter(|_| request.all_gpus() == 1) else {
        return Vec::new();
    };
    let is_whole =
        gpus.model.as_deref().is_none_or(|model| cluster.site.jobs.slices.iter().all(|slice| slice.name != model));
    if !is_whole {
        return Vec::new();
    }
    let offer = |slice: &crate::sites::SiteGpuSlice| {
        let mut changed = request.clone();
        changed.gpus.as_mut()?.model = Some(slice.name.clone());
        cheaper_if_changed(&changed, cluster, now, vec![(RequestField::GpuModel, slice.name.clone())], |paid| {
            format!("{} would cost {paid} per hour, if that part of a GPU is enough.", slice.label)
        })
    };
    cluster.site.jobs.slices.iter().filter_map(offer).collect()
}

/// A fraction of an amount, rounded down.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a part of an amount is no larger than it"
)]
fn scaled(asked: u64, share: f64) -> u64 {
    ((asked as f64 * share.clamp(0.0, 1.0) + 1e-6).floor() as u64).min(asked)
}

/// Rounds down to whole gibibytes, if there is at least one.
const fn round_down_memory(mb: u64) -> u64 {
    if mb >= 1024 { mb / 1024 * 1024 } else { mb }
}
