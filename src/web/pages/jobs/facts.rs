//! The facts of a job, as a list on its page.

use crate::explain::{GlossaryTerm, amounts};
use crate::format;
use crate::jobs::job_list::record_stage;
use crate::jobs::{JobDetails, JobRecord};
use crate::slurm::job::JobStage;
use crate::web::pages::jobs::job_lookup::JobOfPage;

/// A fact with its label.
#[derive(Hash)]
pub struct JobFact {
    pub label: &'static str,
    pub value: String,
    /// What the label means, where it needs explaining.
    pub term: Option<GlossaryTerm>,
}

/// What is known; what isn't known is left out.
pub fn build_job_facts(record: &JobRecord, details: &JobDetails, found: &JobOfPage, point: &str) -> Vec<JobFact> {
    let job = &record.job;
    let limit = job.time_limit.minutes().map(format::minutes).unwrap_or_default();
    let restarts = if job.restarts > 0 { format::count(job.restarts.into(), "time") } else { String::new() };
    let nodes = if record_stage(record) == JobStage::Pending { String::new() } else { job.node_list.clone() };
    // The portal finds its own jobs by its comment; people learn nothing from it.
    let comment = if details.comment.starts_with("portolan:") { String::new() } else { details.comment.clone() };
    let all = [
        ("Job ID", Some(GlossaryTerm::JobId), job.id.to_string()),
        ("Sweep parameters", Some(GlossaryTerm::Sweep), point.to_owned()),
        ("Cluster", None, found.queue.cluster().title.clone()),
        ("User", None, if found.is_own { String::new() } else { job.user.clone() }),
        ("Account", Some(GlossaryTerm::Account), job.account.clone()),
        ("Partition", Some(GlossaryTerm::Partition), job.partition.clone()),
        ("QOS", Some(GlossaryTerm::Qos), job.qos.clone()),
        ("Requested", None, amounts::format_request(job)),
        ("Time limit", Some(GlossaryTerm::TimeLimit), limit),
        ("Nodes", Some(GlossaryTerm::Node), nodes),
        ("Constraints", None, details.features.clone()),
        ("Licenses", None, details.licenses.clone()),
        ("Dependencies", Some(GlossaryTerm::Dependency), job.dependency.clone()),
        ("Requeued", Some(GlossaryTerm::Requeue), restarts),
        ("Comment", None, comment),
    ];
    let facts = all.into_iter().map(|(label, term, value)| JobFact { label, value, term });
    facts.filter(|fact| !fact.value.is_empty()).collect()
}
