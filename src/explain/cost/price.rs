//! What each part of a request costs per hour, in the centre's own unit. The largest part is charged.

use super::{CostDriver, CostPart};
use crate::explain::job_types::{candidate_partitions, factor_names, uses_whole_nodes};
use crate::format;
use crate::recipes::context::ComposeCluster;
use crate::recipes::request::JobRequest;
use crate::sites::{BilledResource, Site};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct JobHourlyCost {
    /// The unit as shown.
    pub unit: String,
    /// The cost of each part.
    pub parts: Vec<CostPart>,
    /// GPUs that the unit leaves out, counted beside it in GPU hours; 0 where the unit covers them.
    pub separate_gpus: u64,
    /// Whether this is the unit of the group's quota.
    pub is_sites_unit: bool,
    /// What is unknown, one sentence each.
    pub notes: Vec<String>,
}

impl JobHourlyCost {
    /// The charge: the largest part.
    pub fn per_hour(&self) -> f64 {
        self.parts.iter().map(|part| part.counts).fold(0.0, f64::max)
    }

    /// The part that is charged. On a tie, the one that comes first in a request.
    pub fn driver(&self) -> Option<&CostPart> {
        let most = self.per_hour();
        self.parts.iter().find(|part| part.counts >= most)
    }
}

/// The name under which Alliance sites list the memory factor for jobs without GPUs.
const WITHOUT_GPUS: &str = "cpu";

pub(super) fn hourly_price(request: &JobRequest, cluster: &ComposeCluster) -> JobHourlyCost {
    let units = &cluster.site.units;
    let name = units.name.as_deref().unwrap_or_default();
    let in_rgu = name.contains("RGU");
    match (in_rgu, request.gpus.is_some()) {
        (true, true) => price_in_reference_gpus(request, cluster),
        (true, false) => price_in_units(request, cluster, &[WITHOUT_GPUS], "core hours"),
        (false, _) => {
            // If two units are named, such as core hours and GPU hours, the first applies to jobs without GPUs.
            let unit = if name.is_empty() || name.contains("core") { "core hours" } else { name };
            price_in_units(request, cluster, &factor_names(request, cluster), unit)
        }
    }
}

/// The value of the first of these names that has one.
fn factor(site: &Site, per: BilledResource, names: &[&str]) -> Option<f64> {
    let value = |name: &&str| {
        let fits = |factor: &&crate::sites::BillingFactor| factor.per == per && factor.name == *name;
        site.units.factors.iter().find(fits).map(|factor| factor.value)
    };
    names.iter().find_map(value)
}

/// Cores, memory and GPUs, each multiplied by its factor.
fn price_in_units(request: &JobRequest, cluster: &ComposeCluster, names: &[&str], unit: &str) -> JobHourlyCost {
    let site = &*cluster.site;
    let mut price = JobHourlyCost {
        unit: unit.to_owned(),
        parts: Vec::new(),
        separate_gpus: 0,
        is_sites_unit: site.units.name.is_some(),
        notes: Vec::new(),
    };
    if site.units.name.is_none() {
        price.notes.push(
            "The portal doesn't know how this cluster charges for jobs, so this is simply the number of hours."
                .to_owned(),
        );
    }
    // The closest name that has any factors: a short test on ordinary nodes is charged like an ordinary job.
    let known = |name: &&&str| site.units.factors.iter().any(|factor| factor.name == ***name);
    let names: Vec<&str> = names.iter().find(known).map(|name| vec![*name]).unwrap_or_default();
    let gpus = u64::from(request.all_gpus());
    if let (Some(each), 0) = (factor(site, BilledResource::Node, &names), gpus) {
        price.parts.push(whole_node_part(node_count(request, cluster), each));
        return price;
    }
    if gpus > 0 {
        let name = site.units.name.as_deref().unwrap_or_default();
        match factor(site, BilledResource::Gpu, &names) {
            Some(each) => price.parts.push(CostPart {
                what: CostDriver::Gpus,
                words: format::count(gpus, "GPU"),
                counts: to_f64(gpus) * each,
            }),
            // If the site says nothing about GPUs, it doesn't charge for them. Usage counts their hours all the same.
            None if site.units.factors.is_empty() && !name.contains("GPU") => {
                price.separate_gpus = all_gpus(request, cluster);
            }
            None => return price_in_gpu_hours(request, cluster, price.notes),
        }
    }
    if uses_whole_nodes(request, cluster) && gpus == 0 {
        let nodes = node_count(request, cluster);
        if let Some(cores) = cores_of_node(request, cluster) {
            price.parts.push(whole_node_part(nodes, to_f64(cores)));
        } else {
            (price.unit, price.is_sites_unit) = ("node hours".to_owned(), false);
            price.notes.push(
                "This cluster charges for whole nodes. The number of cores per node isn't known yet, so this counts nodes."
                    .to_owned(),
            );
            price.parts.push(whole_node_part(nodes, 1.0));
        }
        return price;
    }
    let cores = u64::from(request.all_cores());
    let of_cores = to_f64(cores) * factor(site, BilledResource::Core, &names).unwrap_or(1.0);
    price.parts.insert(0, CostPart { what: CostDriver::Cores, words: format::count(cores, "core"), counts: of_cores });
    match (total_memory_mb(request, site), factor(site, BilledResource::Gib, &names)) {
        (Some(mb), Some(each)) => price.parts.insert(1, memory_part(mb, each)),
        (Some(_), None) if counts_memory(site) => price.notes.push(
            "This cluster also charges for memory, but the portal doesn't know how much. A job that requests a lot of memory may \
             cost more."
                .to_owned(),
        ),
        _ => {}
    }
    price
}

/// Whether the site charges for memory.
fn counts_memory(site: &Site) -> bool {
    site.units.explanation.as_deref().is_some_and(|words| words.contains("memory"))
}

/// GPUs in reference units; cores and memory beyond a GPU's bundle count as more GPUs.
fn price_in_reference_gpus(request: &JobRequest, cluster: &ComposeCluster) -> JobHourlyCost {
    let site = &*cluster.site;
    let Some(model) = gpu_model(request, site) else {
        let note = "No GPU model is chosen, so the cost in reference GPU units (RGU) isn't known.";
        return price_in_gpu_hours(request, cluster, vec![note.to_owned()]);
    };
    let Some(each) = factor(site, BilledResource::Gpu, &[model]) else {
        let note = format!("The portal doesn't know how many reference GPU units (RGU) a {model} GPU counts as.");
        return price_in_gpu_hours(request, cluster, vec![note]);
    };
    let gpus = all_gpus(request, cluster);
    let mut price = JobHourlyCost {
        unit: "RGU hours".to_owned(),
        parts: vec![CostPart {
            what: CostDriver::Gpus,
            words: format!("{} ({model})", format::count(gpus, "GPU")),
            counts: to_f64(gpus) * each,
        }],
        separate_gpus: 0,
        is_sites_unit: true,
        notes: Vec::new(),
    };
    if uses_whole_nodes(request, cluster) {
        return price;
    }
    match cores_and_memory_per_unit(site, model) {
        Some((cores_of_unit, gib_of_unit)) => {
            let cores = u64::from(request.all_cores());
            price.parts.push(CostPart {
                what: CostDriver::Cores,
                words: format::count(cores, "core"),
                counts: to_f64(cores) / cores_of_unit,
            });
            price.parts.extend(total_memory_mb(request, site).map(|mb| memory_part(mb, gib_of_unit.recip())));
        }
        None => price.notes.push(
            "The portal doesn't know how many cores and how much memory are included with this GPU. A job that requests \
             a lot may cost more."
                .to_owned(),
        ),
    }
    price
}

/// Cores and gibibytes that come with one reference unit. The ratio is the same across a cluster; slices use that of
/// the whole GPU.
fn cores_and_memory_per_unit(site: &Site, model: &str) -> Option<(f64, f64)> {
    let ratio = |name: &str, cores: Option<u16>, gib: Option<u16>| {
        let each = factor(site, BilledResource::Gpu, &[name])?;
        let (cores, gib) = (f64::from(cores?), f64::from(gib?));
        (cores > 0.0 && gib > 0.0).then(|| (cores / each, gib / each))
    };
    let of_gpu = |gpu: &crate::sites::SiteGpu| ratio(&gpu.name, gpu.cores, gpu.node_memory_gb);
    if let Some(gpu) = site.jobs.gpus.iter().find(|gpu| gpu.name == model) {
        return of_gpu(gpu);
    }
    let known: Vec<(f64, f64)> = site.jobs.gpus.iter().filter_map(of_gpu).collect();
    if let [only] = known.as_slice() {
        return Some(*only);
    }
    let slice = site.jobs.slices.iter().find(|slice| slice.name == model)?;
    ratio(&slice.name, slice.cores, slice.node_memory_gb)
}

/// The GPU model: the one it names, or the only one there is.
fn gpu_model<'a>(request: &'a JobRequest, site: &'a Site) -> Option<&'a str> {
    let named = request.gpus.as_ref()?.model.as_deref();
    let only = match site.jobs.gpus.as_slice() {
        [only] => Some(only.name.as_str()),
        _ => None,
    };
    named.or(only)
}

/// Counts GPUs one by one, where their factors are unknown.
fn price_in_gpu_hours(request: &JobRequest, cluster: &ComposeCluster, notes: Vec<String>) -> JobHourlyCost {
    let gpus = all_gpus(request, cluster);
    let part = CostPart { what: CostDriver::Gpus, words: format::count(gpus, "GPU"), counts: to_f64(gpus) };
    JobHourlyCost { unit: "GPU hours".to_owned(), parts: vec![part], separate_gpus: 0, is_sites_unit: false, notes }
}

/// All GPUs of the request; on whole nodes, all GPUs of the nodes.
fn all_gpus(request: &JobRequest, cluster: &ComposeCluster) -> u64 {
    let asked = u64::from(request.all_gpus());
    let per_node = gpu_model(request, &cluster.site)
        .and_then(|model| cluster.site.jobs.gpus.iter().find(|gpu| gpu.name == model))
        .and_then(|gpu| gpu.per_node);
    match per_node {
        Some(per_node) if uses_whole_nodes(request, cluster) => {
            asked.max(u64::from(per_node) * u64::from(request.nodes_or_one()))
        }
        _ => asked,
    }
}

fn whole_node_part(nodes: u64, each: f64) -> CostPart {
    let words = format!("{} in full", format::count(nodes, "node"));
    CostPart { what: CostDriver::Nodes, words, counts: to_f64(nodes) * each }
}

fn memory_part(mb: u64, each: f64) -> CostPart {
    CostPart { what: CostDriver::Memory, words: format::memory(mb), counts: to_f64(mb) / 1024.0 * each }
}

/// The total memory: as requested, or the site's default.
fn total_memory_mb(request: &JobRequest, site: &Site) -> Option<u64> {
    let default = site.jobs.memory_default_mb.map(u64::from);
    request
        .all_memory_mb()
        .filter(|mb| *mb > 0)
        .or_else(|| default.map(|each| each.saturating_mul(request.all_cores().into())))
}

/// How many nodes it takes, where nodes are allocated whole.
fn node_count(request: &JobRequest, cluster: &ComposeCluster) -> u64 {
    let asked = u64::from(request.nodes_or_one());
    let needed = cores_of_node(request, cluster).map(|cores| u64::from(request.all_cores()).div_ceil(cores.max(1)));
    asked.max(needed.unwrap_or(0))
}

fn cores_of_node(request: &JobRequest, cluster: &ComposeCluster) -> Option<u64> {
    let of = |partition: &crate::recipes::context::Partition| partition.cpus.map(|span| span.most);
    let usual = cluster.default_partition().filter(|_| request.partition.is_none());
    usual.and_then(of).or_else(|| candidate_partitions(request, cluster).into_iter().filter_map(of).max())
}

/// Counts are far too small for the lost digits to show.
#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
pub(super) const fn to_f64(number: u64) -> f64 {
    number as f64
}

/// Reference units of a job with these GPUs: counted by GPUs, or by cores or memory if it has more than come with
/// them. None if the GPU's factor is unknown.
pub fn reference_units(site: &Site, model: &str, gpus: u64, cores: u64, memory_mb: u64) -> Option<f64> {
    let by_gpus = to_f64(gpus) * factor(site, BilledResource::Gpu, &[model])?;
    let Some((cores_of_unit, gib_of_unit)) = cores_and_memory_per_unit(site, model) else {
        return Some(by_gpus);
    };
    let by_memory = to_f64(memory_mb) / 1024.0 / gib_of_unit;
    Some(by_gpus.max(to_f64(cores) / cores_of_unit).max(by_memory))
}
