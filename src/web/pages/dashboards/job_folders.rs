//! The job that a new dashboard is opened for: which of someone's folders it wrote to.

use crate::clock::UnixTime;
use crate::cluster::dashboard_folders::{FoundDashboardFolder, is_below};
use crate::cluster::discovered_facts::DiscoveredFacts;
use crate::error::AppError;
use crate::slurm::job::SlurmJob;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::pages::jobs::job_lookup::{self, JobOrArray};

/// How long after its end a job's files may still be written, in seconds.
const WRITE_GRACE_SECONDS: i64 = 120;

pub struct DashboardJob {
    /// The folder it ran in.
    pub folder: String,
    start: Option<UnixTime>,
    end: Option<UnixTime>,
}

impl DashboardJob {
    /// Finds the job without contacting any cluster. Other people's jobs and those that ran nowhere are none.
    pub async fn find(
        context: &RequestContext,
        me: &CurrentPerson,
        slug: &str,
        id: &str,
    ) -> Result<Option<Self>, AppError> {
        if id.is_empty() {
            return Ok(None);
        }
        let found = match job_lookup::find_job(context, me, slug, id).await {
            Ok(found) if found.is_own => found,
            Ok(_) | Err(AppError::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(match &found.job_or_array {
            JobOrArray::Job(record) => Self::from_job(&record.job, record.is_over),
            JobOrArray::Array(item) => Self::from_job(&item.head.job, item.head.is_over),
        })
    }

    fn from_job(job: &SlurmJob, is_over: bool) -> Option<Self> {
        let folder = job.work_dir.trim_end_matches('/');
        folder.starts_with('/').then(|| Self {
            folder: folder.to_owned(),
            start: job.start,
            end: job.end.filter(|_| is_over),
        })
    }

    /// Whether its folder says something about its files. A job that ran at home or at the top of another of the
    /// person's folders may have written anywhere below it.
    pub fn has_own_folder(&self, facts: &DiscoveredFacts) -> bool {
        let tops = facts.folders.iter().map(|folder| folder.path.as_str()).chain(facts.home.as_deref());
        !tops.map(|top| top.trim_end_matches('/')).any(|top| is_below(top, &self.folder))
    }

    /// Whether a folder is the job's or inside it.
    pub fn contains(&self, path: &str) -> bool {
        is_below(path, &self.folder)
    }

    /// Which of the found folders hold what the job wrote. Those that nobody has written to since it ended come first:
    /// the others are only meant if there are no such folders.
    pub fn select_written<'a>(&self, found: &'a [FoundDashboardFolder]) -> Vec<&'a str> {
        let is_related = |path: &str| self.contains(path) || is_below(&self.folder, path);
        let written: Vec<&FoundDashboardFolder> = found
            .iter()
            .filter(|one| is_related(&one.path) && self.start.is_none_or(|start| one.newest >= start))
            .collect();
        let is_last =
            |one: &FoundDashboardFolder| self.end.is_none_or(|end| one.newest.since(end) <= WRITE_GRACE_SECONDS);
        let is_sure = written.iter().any(|one| is_last(one));
        written.into_iter().filter(|one| !is_sure || is_last(one)).map(|one| one.path.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(all: &[(&str, i64)]) -> Vec<FoundDashboardFolder> {
        let folder =
            |(path, at): &(&str, i64)| FoundDashboardFolder { path: (*path).to_owned(), newest: UnixTime(*at) };
        all.iter().map(folder).collect()
    }

    fn job(folder: &str, start: i64, end: Option<i64>) -> DashboardJob {
        DashboardJob { folder: folder.to_owned(), start: Some(UnixTime(start)), end: end.map(UnixTime) }
    }

    #[test]
    fn what_a_job_wrote_is_in_its_folder_and_not_older_than_it() {
        let all = found(&[("/scratch/a/p/runs", 150), ("/scratch/a/p/old", 50), ("/scratch/a/other", 150)]);
        assert_eq!(job("/scratch/a/p", 100, None).select_written(&all), ["/scratch/a/p/runs"]);
        assert_eq!(job("/scratch/a/p", 100, Some(200)).select_written(&all), ["/scratch/a/p/runs"]);
        assert!(job("/scratch/a/pp", 100, None).select_written(&all).is_empty(), "a longer name is another folder");
    }

    #[test]
    fn folders_that_later_jobs_wrote_to_count_only_if_there_are_no_others() {
        let all = found(&[("/scratch/a/later", 9_000), ("/scratch/a/mine", 180)]);
        assert_eq!(job("/scratch/a", 100, Some(200)).select_written(&all), ["/scratch/a/mine"]);
        let all = found(&[("/scratch/a/shared", 9_000)]);
        assert_eq!(job("/scratch/a", 100, Some(200)).select_written(&all), ["/scratch/a/shared"]);
    }

    #[test]
    fn a_folder_around_the_jobs_shows_its_files_too() {
        let all = found(&[("/scratch/a/runs", 150)]);
        assert_eq!(job("/scratch/a/runs/one", 100, None).select_written(&all), ["/scratch/a/runs"]);
    }
}
