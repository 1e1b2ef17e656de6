//! The facts of a job, as a list on its page.

use crate::explain::amounts;
use crate::format;
use crate::jobs::job_list::record_stage;
use crate::jobs::{JobDetails, JobRecord};
use crate::slurm::job::JobStage;
use crate::web::pages::jobs::job_lookup::JobOfPage;

/// What is known, each with its label; what isn't known is left out.
pub fn build_job_facts(
    record: &JobRecord,
    details: &JobDetails,
    found: &JobOfPage,
    point: &str,
) -> Vec<(&'static str, String)> {
    let job = &record.job;
    let limit = job.time_limit.minutes().map(format::minutes).unwrap_or_default();
    let restarts = if job.restarts > 0 { format::count(job.restarts.into(), "time") } else { String::new() };
    let all = [
        ("Job ID", job.id.to_string()),
        ("Sweep parameters", point.to_owned()),
        ("Cluster", found.queue.cluster().title.clone()),
        ("User", if found.is_own { String::new() } else { job.user.clone() }),
        ("Account", job.account.clone()),
        ("Partition", job.partition.clone()),
        ("QOS", job.qos.clone()),
        ("Requested", amounts::format_request(job)),
        ("Time limit", limit),
        ("Nodes", if record_stage(record) == JobStage::Pending { String::new() } else { job.node_list.clone() }),
        ("Constraints", details.features.clone()),
        ("Licenses", details.licenses.clone()),
        ("Dependencies", job.dependency.clone()),
        ("Requeued", restarts),
        // The portal finds its own jobs by its comment; people learn nothing from it.
        ("Comment", if details.comment.starts_with("portolan:") { String::new() } else { details.comment.clone() }),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}
