//! Files in a job's folder that aren't its results although they changed while it ran: many jobs share one folder, and
//! the portal packs archives there.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::task_names::is_output_name;
use super::{JobResultFile, JobResults};
use crate::cluster::ClusterAccountId;
use crate::store::{self, Store, StoreError};

/// Shorter numbers in names count epochs and versions.
const MIN_JOB_DIGITS: usize = 4;
/// How many of someone's latest archives are known.
const MAX_ARCHIVES: i64 = 200;

/// The results without the output of this person's other jobs and without archives that the portal made.
pub async fn leave_out_others(
    store: &Store,
    account: ClusterAccountId,
    job: u64,
    results: Arc<JobResults>,
) -> Result<Arc<JobResults>, StoreError> {
    let mentioned: BTreeSet<u64> = results.files.iter().flat_map(|file| other_jobs_in_name(file, job)).collect();
    let mut db = store.read().await?;
    let archives = store::transfers::list_archives(&mut db, account.person, account.cluster, MAX_ARCHIVES).await?;
    let archives: HashSet<Vec<u8>> = archives.into_iter().collect();
    let mentioned: Vec<u64> = mentioned.into_iter().collect();
    let known = store::jobs::list_known_numbers(&mut db, account.person, account.cluster, &mentioned).await?;
    let known: HashSet<u64> = known.into_iter().filter_map(|number| u64::try_from(number).ok()).collect();
    Ok(results.retain(|file| {
        let is_other = other_jobs_in_name(file, job).iter().any(|number| known.contains(number));
        !is_other && !archives.contains(file.path.as_bytes())
    }))
}

/// The numbers in the name of an output file that may be other jobs'; none if it also has this job's.
fn other_jobs_in_name(file: &JobResultFile, job: u64) -> Vec<u64> {
    let Some(name) = file.path.name() else { return Vec::new() };
    let name = String::from_utf8_lossy(name.as_bytes());
    if !is_output_name(&name) {
        return Vec::new();
    }
    let runs = name.split(|c: char| !c.is_ascii_digit()).filter(|digits| digits.len() >= MIN_JOB_DIGITS);
    let numbers: Vec<u64> = runs.filter_map(|digits| digits.parse().ok()).collect();
    if numbers.contains(&job) { Vec::new() } else { numbers }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::UnixTime;
    use crate::domain::RemotePath;

    #[test]
    fn output_names_tell_other_jobs() {
        let others = |path: &str| {
            let path = RemotePath::parse(path.as_bytes()).unwrap();
            other_jobs_in_name(&JobResultFile { path, size: 1, modified: UnixTime(1) }, 20_005)
        };
        for (path, expected) in [
            ("/r/slurm-20004.out", vec![20_004]),
            ("/r/train-20004_3.err", vec![20_004]),
            ("/r/20005-after-20004.log", vec![]),
            ("/r/slurm-20005.out", vec![]),
            ("/20004/slurm.out", vec![]),
            ("/r/model-20004.pt", vec![]),
            ("/r/epoch-300.log", vec![]),
            ("/r/99999999999999999999999.log", vec![]),
            ("/r/out", vec![]),
        ] {
            assert_eq!(others(path), expected, "{path}");
        }
    }
}
