//! What a dashboard's job asks for: little, in the form that the site prescribes for dashboards.

use std::ops::RangeInclusive;

use crate::clock::UnixTime;
use crate::dashboards::DashboardKind;
use crate::recipes::request::{GpuRequest, JobRequest, MemoryRequest};
use crate::sites::{JobOptionRule, Site, SiteJobType};

/// The longest time limit of any dashboard: a week.
const MAX_MINUTES: u32 = 7 * 24 * 60;

/// The time limits, in minutes, that a dashboard may have at a site.
pub fn allowed_minutes(site: &Site) -> RangeInclusive<u32> {
    let of_type = job_type(site).and_then(|kind| kind.max_minutes);
    let of_site = site.jobs.max_hours.map(|hours| hours.saturating_mul(60));
    let most = [of_type, of_site].into_iter().flatten().min().unwrap_or(MAX_MINUTES);
    let least = site.jobs.min_minutes.unwrap_or(5);
    least..=most.min(MAX_MINUTES).max(least)
}

/// The request for a run at a site; the minutes are clamped to what the site allows. `begin` is the earliest start.
pub fn build_request(
    kind: DashboardKind,
    minutes_wanted: u32,
    account: Option<&str>,
    begin: Option<UnixTime>,
    site: &Site,
) -> JobRequest {
    let possible = allowed_minutes(site);
    let (sort, jobs) = (job_type(site), &site.jobs);
    let whole_node = jobs.whole_node || sort.is_some_and(|sort| sort.whole_node);
    let memory = match sort.and_then(|sort| sort.memory).unwrap_or(jobs.memory) {
        JobOptionRule::Never => None,
        JobOptionRule::Optional if whole_node => None,
        JobOptionRule::Optional | JobOptionRule::Required => {
            Some(MemoryRequest::PerNode(site.dashboards.memory_mb.into()))
        }
    };
    let begin = begin.map(|at| ("--begin".to_owned(), Some(format!("uts{}", at.0))));
    JobRequest {
        name: Some(kind.job_name().to_owned()),
        account: account.map(str::to_owned),
        partition: sort.and_then(|sort| sort.partition.clone()).filter(|_| jobs.partition != JobOptionRule::Never),
        qos: sort.and_then(|sort| sort.qos.clone()),
        minutes: Some(minutes_wanted.clamp(*possible.start(), *possible.end())),
        nodes: Some(1),
        tasks: Some(1),
        cores: Some(site.dashboards.cores),
        memory,
        gpus: jobs.gpu_only.then(|| required_gpu(site)),
        other_options: begin.into_iter().collect(),
        ..JobRequest::default()
    }
}

fn job_type(site: &Site) -> Option<&SiteJobType> {
    let name = site.dashboards.job_type.as_ref()?;
    site.jobs.types.iter().find(|kind| kind.name == *name)
}

/// One GPU, where no job runs without one.
fn required_gpu(site: &Site) -> GpuRequest {
    let jobs = &site.jobs;
    let first = || jobs.slices.first().map(|one| &one.name).or(jobs.gpus.first().map(|one| &one.name));
    let model = site.dashboards.gpu.as_ref().or_else(first).filter(|_| jobs.gpu_model != JobOptionRule::Never);
    GpuRequest { model: model.cloned(), count: 1 }
}
