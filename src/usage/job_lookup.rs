//! One job of the usage figures: what is known of a job that left the queue before the portal saw it there.

use std::sync::Arc;

use super::group_usage::{GroupAccountContext, GroupMemberName};
use super::service::UsageService;
use super::totals::UsageJobOutcome;
use crate::auth::{Permission, Viewer};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, GroupId};
use crate::jobs::JobRecord;
use crate::slurm::gres::GpuCount;
use crate::slurm::job::{JobId, JobState, SlurmJob};
use crate::slurm::job_usage::JobUsage;
use crate::store::usage::jobs::StoredUsageJob;
use crate::store::{self, StoreError};

/// A job, and whose it is.
#[derive(Debug, Clone)]
pub struct UsageJobRecord {
    pub details: Arc<GroupAccountContext>,
    /// Its last run; seconds are of all days that were read.
    pub row: StoredUsageJob,
    /// The owner's user name on the cluster.
    pub user: String,
    /// The job type: its name, with every number replaced.
    pub kind: String,
    /// The owner, if they are a member of the group.
    pub person: Option<GroupMemberName>,
    /// The owner's name, as far as it is known; else the user name.
    pub owner: String,
}

impl UsageJobRecord {
    pub fn outcome(&self) -> UsageJobOutcome {
        UsageJobOutcome::from_number(self.row.state)
    }

    pub fn id(&self) -> JobId {
        JobId { number: whole(self.row.number), task: u32::try_from(self.row.task).ok() }
    }

    /// What its steps used; none if that was not measured.
    pub fn usage(&self) -> Option<JobUsage> {
        let measured = |number: i64| u64::try_from(number).ok();
        let (cpu_s, max_rss_mb) = (measured(self.row.cpu_s), measured(self.row.rss_mb));
        (cpu_s.is_some() || max_rss_mb.is_some()).then(|| JobUsage {
            elapsed_s: whole(self.row.elapsed_s),
            cpu_s,
            max_rss_mb,
            tasks: 1,
            ..JobUsage::default()
        })
    }

    /// The job as the accounting would tell it, as far as the figures know. It is not in the queue, so it is over.
    pub fn to_record(&self) -> JobRecord {
        let row = &self.row;
        let outcome = self.outcome();
        let start = UnixTime(row.start_at);
        let has_begun = row.cores > 0;
        let job = SlurmJob {
            id: self.id(),
            raw_id: whole(row.raw),
            user: self.user.clone(),
            name: self.kind.clone(),
            state: state_of(outcome),
            account: self.details.account.clone(),
            eligible: has_begun.then(|| start.plus(-row.wait_s.max(0))),
            start: has_begun.then_some(start),
            end: (outcome != UsageJobOutcome::Running).then(|| start.plus(row.elapsed_s.max(0))),
            cpus: u32::try_from(row.cores).unwrap_or(0),
            memory_mb: Some(whole(row.memory_mb)).filter(|mb| *mb > 0),
            gpus: parse_gpus(&row.gpus),
            ..SlurmJob::default()
        };
        let end = job.end.unwrap_or(start);
        JobRecord { is_over: true, is_settled: true, ..JobRecord::new(job, end) }
    }
}

fn whole(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Slurm's state, where the outcome leaves no doubt.
fn state_of(outcome: UsageJobOutcome) -> JobState {
    const STATES: [(UsageJobOutcome, JobState); 7] = [
        (UsageJobOutcome::Done, JobState::Completed),
        (UsageJobOutcome::Failed, JobState::Failed),
        (UsageJobOutcome::TimedOut, JobState::Timeout),
        (UsageJobOutcome::OutOfMemory, JobState::OutOfMemory),
        (UsageJobOutcome::Cancelled, JobState::Cancelled),
        (UsageJobOutcome::NodeFailed, JobState::NodeFail),
        (UsageJobOutcome::MissedDeadline, JobState::Deadline),
    ];
    STATES.iter().find(|(known, _)| *known == outcome).map_or(JobState::Unknown, |(_, state)| *state)
}

/// For example `v100:2,:1`.
fn parse_gpus(text: &str) -> Vec<GpuCount> {
    let parse = |word: &str| {
        let (model, count) = word.rsplit_once(':')?;
        Some(GpuCount { model: (!model.is_empty()).then(|| model.to_owned()), count: count.parse().ok()? })
    };
    text.split(',').filter_map(parse).collect()
}

impl UsageService {
    /// A job of the viewer's own, from the figures of any of their groups.
    pub async fn find_own_job(
        &self,
        viewer: &Viewer,
        cluster: ClusterId,
        id: JobId,
    ) -> Result<Option<UsageJobRecord>, StoreError> {
        for (group, _) in &viewer.groups {
            if viewer.may(Permission::SeeUsage(*group)).is_err() {
                continue;
            }
            let records = self.load_context(viewer, *group).await?;
            for details in records.accounts.iter().filter(|details| details.cluster == cluster) {
                let Some(own_user) = &details.own_user else { continue };
                if let Some((row, kind)) = self.find_row(details, Some(own_user), id).await? {
                    let (user, details) = (own_user.clone(), details.clone());
                    return Ok(Some(UsageJobRecord { details, row, owner: user.clone(), user, kind, person: None }));
                }
            }
        }
        Ok(None)
    }

    /// A job charged to one of a group's accounts, whoever's it is; none if the viewer may not see that.
    pub async fn find_group_job(
        &self,
        viewer: &Viewer,
        group: GroupId,
        slug: &str,
        id: JobId,
    ) -> Result<Option<UsageJobRecord>, StoreError> {
        if viewer.may(Permission::SeePeoplesUsage(group)).is_err() {
            return Ok(None);
        }
        let records = self.load_context(viewer, group).await?;
        for details in records.accounts.iter().filter(|details| details.slug == slug) {
            if let Some((row, kind)) = self.find_row(details, None, id).await? {
                let mut db = self.0.core.store.read().await?;
                let user = store::usage::get_name(&mut db, row.user_id).await?.unwrap_or_default();
                let user_name = (details.cluster, user.clone());
                // Whoever only has the name of a member decides nothing about what that member shares.
                let is_linked = records.user_names.name(&user_name).is_none();
                let person = records.people.get(&user_name).filter(|_| is_linked).cloned();
                let owner = person.as_ref().map(|person| person.name.as_str()).or(records.user_names.name(&user_name));
                let owner = owner.unwrap_or(&user).to_owned();
                return Ok(Some(UsageJobRecord { details: details.clone(), row, user, kind, person, owner }));
            }
        }
        Ok(None)
    }

    async fn find_row(
        &self,
        details: &GroupAccountContext,
        user: Option<&String>,
        id: JobId,
    ) -> Result<Option<(StoredUsageJob, String)>, StoreError> {
        let number = i64::try_from(id.number).unwrap_or(-1);
        let task = id.task.map_or(-1, i64::from);
        let mut db = self.0.core.store.read().await?;
        for source in &details.sources {
            if let Some(row) = store::usage::jobs::find_one(&mut db, source.id, user, number, task).await? {
                let kind = store::usage::get_name(&mut db, row.kind_id).await?.unwrap_or_default();
                return Ok(Some((row, kind)));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_figures_know_becomes_a_record() {
        let row = StoredUsageJob {
            raw: 7,
            number: 5,
            task: 2,
            start_at: 1000,
            elapsed_s: 600,
            wait_s: 60,
            cores: 4,
            memory_mb: 2048,
            gpus: "v100:2,:1".into(),
            cpu_s: 1200,
            rss_mb: -1,
            state: UsageJobOutcome::TimedOut.number(),
            ..StoredUsageJob::default()
        };
        let details = Arc::new(GroupAccountContext {
            cluster: ClusterId(1),
            slug: "key".into(),
            title: "Harbour".into(),
            account: "def-one".into(),
            slurm_names: Vec::new(),
            site: Arc::new(crate::sites::presets()[0].clone()),
            discovered: Arc::default(),
            own_user: None,
            is_narrow: false,
            sources: Vec::new(),
            all_sources: Vec::new(),
        });
        let (user, owner, kind) = ("max".to_owned(), "max".to_owned(), "fit-#".to_owned());
        let mut known = UsageJobRecord { details, row, user, kind, person: None, owner };
        let record = known.to_record();
        assert_eq!((record.job.id.to_string().as_str(), record.job.state), ("5_2", JobState::Timeout));
        assert_eq!(record.job.end, Some(UnixTime(1600)));
        assert_eq!(record.job.eligible, Some(UnixTime(940)));
        assert_eq!((record.job.gpus.len(), record.job.gpus[1].model.as_ref()), (2, None));
        assert!(record.is_over && !record.is_lost() && record.job.exit.is_none());
        assert_eq!(known.usage().map(|usage| (usage.cpu_s, usage.max_rss_mb)), Some((Some(1200), None)));
        // What the figures cannot tell apart is not made up.
        for outcome in [UsageJobOutcome::Running, UsageJobOutcome::Interrupted] {
            known.row.state = outcome.number();
            assert!(known.to_record().is_lost(), "{outcome:?}");
        }
    }
}
