//! A job that Slurm has just accepted, as its submission describes it. It is listed at once; the next read of the queue
//! replaces it with what Slurm says.

use crate::clock::UnixTime;
use crate::recipes::request::MemoryRequest;
use crate::recipes::script_import::read_request;
use crate::slurm::array_tasks::ArrayTaskSet;
use crate::slurm::gres::GpuCount;
use crate::slurm::job::{JobId, JobState, SlurmJob};
use crate::slurm::units::TimeLimit;

/// The job as its script describes it, without owner and folder. None for an array whose tasks can't be read.
pub(super) fn submitted_job(script: &str, job_name: &str, number: u64, now: UnixTime) -> Option<SlurmJob> {
    let request = read_request(script);
    let tasks = match &request.array {
        Some(array) => {
            let at_once = array.at_once.map(|most| format!("%{most}")).unwrap_or_default();
            Some(ArrayTaskSet::parse(&format!("{}{at_once}", array.tasks))?)
        }
        None if request.other_options.iter().any(|(option, _)| option == "--array") => return None,
        None => None,
    };
    let (nodes, cores) = (request.nodes_or_one(), request.all_cores());
    let memory_mb = request.memory.and_then(|memory| match memory {
        MemoryRequest::PerNode(mb) => Some(mb.saturating_mul(nodes.into())),
        MemoryRequest::PerCore(mb) => Some(mb.saturating_mul(cores.into())),
        MemoryRequest::PerGpu(_) => None,
    });
    let gpus = request.gpus.iter();
    let gpus =
        gpus.map(|gpus| GpuCount { model: gpus.model.clone(), count: gpus.count.saturating_mul(nodes) }).collect();
    Some(SlurmJob {
        id: JobId::without_task(number),
        raw_id: number,
        tasks,
        name: job_name.to_owned(),
        state: JobState::Pending,
        account: request.account.unwrap_or_default(),
        partition: request.partition.unwrap_or_default(),
        qos: request.qos.unwrap_or_default(),
        submitted: Some(now),
        time_limit: request.minutes.map_or(TimeLimit::Unknown, TimeLimit::Minutes),
        cpus: cores,
        nodes,
        memory_mb,
        gpus,
        ..SlurmJob::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixTime = UnixTime(1000);

    #[test]
    fn a_job_is_what_its_script_requests() {
        let script = "#!/bin/bash\n#SBATCH --account=def-smith\n#SBATCH --time=0:10:00\n#SBATCH --cpus-per-task=2\n\
                      #SBATCH --mem=500M\ntrue\n";
        let job = submitted_job(script, "fit", 77, NOW).unwrap();
        assert_eq!((job.id.to_string().as_str(), job.name.as_str(), job.state), ("77", "fit", JobState::Pending));
        assert_eq!((job.account.as_str(), job.time_limit, job.cpus), ("def-smith", TimeLimit::Minutes(10), 2));
        assert_eq!((job.memory_mb, job.tasks, job.submitted), (Some(500), None, Some(NOW)));
    }

    #[test]
    fn an_array_has_its_tasks_or_is_left_to_the_queue() {
        let job = submitted_job("#!/bin/sh\n#SBATCH --array=0-9%2\ntrue\n", "x", 78, NOW).unwrap();
        let tasks = job.tasks.unwrap();
        assert_eq!((tasks.len(), tasks.max_running), (10, Some(2)));
        assert_eq!(submitted_job("#!/bin/sh\n#SBATCH --array=whatever\ntrue\n", "x", 79, NOW), None);
    }
}
