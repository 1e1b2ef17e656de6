//! A member's job, opened by a PI from the group's usage: how it ended, what it requested and used. Script and output
//! are shown only if they are shared. Whoever is not a PI of the group finds nothing here.

use std::time::Duration;

use askama::Template;
use axum::extract::FromRequestParts;

use crate::auth::{MemberJobSharing, Permission};
use crate::clock::UnixTime;
use crate::cluster::ClusterAccountId;
use crate::cluster::accounted_jobs::load_accounted_job;
use crate::domain::GroupId;
use crate::error::AppError;
use crate::explain::amounts;
use crate::explain::efficiency::{JobEfficiency, MeasuredJob, efficiency};
use crate::format;
use crate::jobs::{JobDetails, JobRecord};
use crate::slurm::job::{ExitStatus, JobId, SlurmJob};
use crate::slurm::job_usage::JobUsage;
use crate::store;
use crate::store::groups::Group;
use crate::usage::{UsageJobOutcome, UsageJobRecord};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, PathParams, RequestContext};
use crate::web::http::flash::see_other;
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::groups::usage::usage_path;
use crate::web::portal_state::PortalState;

/// How long the fragment waits for the accounting.
const ACCOUNTING_TIMEOUT: Duration = Duration::from_secs(20);

/// A request about a job of a group's usage.
#[derive(FromRequestParts)]
#[from_request(state(PortalState), rejection(AppError))]
pub struct MemberJobRequest {
    context: RequestContext,
    me: CurrentPerson,
    /// The group, the cluster's short name, and the job's id.
    #[from_request(via(PathParams))]
    path: (GroupId, String, String),
}

#[derive(Template)]
#[template(path = "groups/usage/member_job.html")]
struct MemberJobPage {
    page: PageFrame,
    group: Group,
    href: String,
    job: UsageJobRecord,
    owner: String,
    /// From the usage figures.
    facts: Vec<(&'static str, String)>,
    /// From the portal's record of the job; empty if it has none.
    recorded: Vec<(&'static str, String)>,
    used: Option<JobEfficiency>,
    files: MemberJobFiles,
}

#[derive(Template)]
#[template(path = "groups/usage/member_job_accounting.html")]
struct MemberJobAccountingFragment {
    facts: Vec<(&'static str, String)>,
    problem: String,
}

enum MemberJobFiles {
    Shown(Box<JobDetails>),
    /// Shared, but the portal has no record of the job.
    NotKept,
    NotShared,
    /// The owner has no account here.
    NotMember,
}

impl MemberJobRequest {
    /// Finds the job, for PIs of the group. Everyone else gets the same answer as for a job that doesn't exist.
    async fn find(&self) -> Result<UsageJobRecord, AppError> {
        let (group, slug, id) = &self.path;
        self.me.may(Permission::SeePeoplesUsage(*group)).map_err(|_| AppError::NotFound)?;
        let id: JobId = id.parse().map_err(|_| AppError::NotFound)?;
        let found = self.context.app.usage.find_group_job(&self.me.0.viewer, *group, slug, id).await?;
        found.ok_or(AppError::NotFound)
    }

    /// The portal's own record of the job, which it has if the owner uses the portal.
    async fn find_record(&self, job: &UsageJobRecord) -> Result<Option<JobRecord>, AppError> {
        let Some(owner) = &job.person else { return Ok(None) };
        let row = &job.row;
        let mut db = self.context.app.store.read().await?;
        let stored = store::jobs::find(&mut db, owner.id, job.details.cluster, row.number, row.task).await?;
        let stored = stored.map(JobRecord::from_row);
        // Ids are given again after years, and only jobs of the group's accounts are the group's business.
        Ok(stored.filter(|record| {
            i64::try_from(record.job.raw_id) == Ok(row.raw)
                && (job.details.slurm_names.contains(&record.job.account) || job.details.account == record.job.account)
        }))
    }

    async fn load_files(&self, job: &UsageJobRecord, record: Option<&JobRecord>) -> Result<MemberJobFiles, AppError> {
        let app = &self.context.app;
        let Some(owner) = &job.person else { return Ok(MemberJobFiles::NotMember) };
        let group = self.path.0;
        let Some(chosen) = app.usage.job_sharing(group, owner.id).await? else { return Ok(MemberJobFiles::NotMember) };
        let sharing =
            MemberJobSharing { group, is_group_shared: chosen.is_group_shared, member_choice: chosen.member_choice };
        if self.me.may(Permission::SeeMemberJobFiles(sharing)).is_err() {
            return Ok(MemberJobFiles::NotShared);
        }
        let Some(record) = record else { return Ok(MemberJobFiles::NotKept) };
        let key = ClusterAccountId { person: owner.id, cluster: job.details.cluster };
        let loaded = app.job_details.get_cached(key, record).await?;
        Ok(MemberJobFiles::Shown(Box::new(JobDetails::clone(&loaded.details))))
    }

    /// What its steps used, from the figures or else from what was read for the owner's page.
    async fn find_usage(&self, job: &UsageJobRecord, record: Option<&JobRecord>) -> Result<Option<JobUsage>, AppError> {
        let (Some(owner), Some(record)) = (&job.person, record) else { return Ok(job.usage()) };
        let key = ClusterAccountId { person: owner.id, cluster: job.details.cluster };
        let details = self.context.app.job_details.get_cached(key, record).await?.details;
        Ok(details.usage.or_else(|| job.usage()))
    }
}

pub async fn get(request: MemberJobRequest) -> HandlerResult {
    let job = request.find().await?;
    let (group, slug, id) = (request.path.0, job.details.slug.clone(), job.id());
    if job.details.own_user.as_deref() == Some(&*job.user) {
        return Ok(see_other(&format!("/jobs/{slug}/{id}")));
    }
    let record = request.find_record(&job).await?;
    let files = request.load_files(&job, record.as_ref()).await?;
    let usage = request.find_usage(&job, record.as_ref()).await?;
    let MemberJobRequest { context, me, .. } = request;
    let group_row = store::groups::get(&mut *context.app.store.read().await?, group).await?;
    let group_row = group_row.ok_or(AppError::NotFound)?;
    let owner = job.owner.clone();
    let whose = (job.person.as_ref().map(|person| person.id), owner.as_str());
    let has_files = matches!(files, MemberJobFiles::Shown(_));
    let usage_service = &context.app.usage;
    usage_service.record_job_view(&me.actor(&context), group, whose, &id.to_string(), has_files).await?;
    let known = record.as_ref().map_or_else(|| job.to_record().job, |record| record.job.clone());
    let used = usage.map(|usage| efficiency(&MeasuredJob { job: &known, usage: &usage, whole_node: false }));
    respond(&MemberJobPage {
        page: PageFrame::for_person(&context, &me.0, &format!("Job {id}"), NavSection::Groups),
        href: member_job_path(group, &slug, &id.to_string()),
        facts: figure_facts(&job),
        recorded: record.map(|record| job_facts(&record.job)).unwrap_or_default(),
        group: group_row,
        job,
        owner,
        used,
        files,
    })
}

/// What Slurm's accounting tells the viewer of the job, over the viewer's own connection.
pub async fn get_accounting(request: MemberJobRequest) -> HandlerResult {
    let job = request.find().await?;
    let key = ClusterAccountId { person: request.me.0.person.id, cluster: job.details.cluster };
    let title = &job.details.title;
    let fragment = |facts, problem: String| MemberJobAccountingFragment { facts, problem };
    let Ok(connection) = request.context.app.connections.connection(key.connection_key()) else {
        return respond(&fragment(Vec::new(), format!("You're not connected to {title}. Connect to load these.")));
    };
    let asking = load_accounted_job(&connection, job.id());
    let found = match tokio::time::timeout(ACCOUNTING_TIMEOUT, asking).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return respond(&fragment(Vec::new(), error.to_string())),
        Err(_) => return respond(&fragment(Vec::new(), "The cluster is slow to respond. Reload the page.".to_owned())),
    };
    let is_it = |found: &SlurmJob| found.user == job.user && i64::try_from(found.raw_id) == Ok(job.row.raw);
    match found.filter(|(found, _)| is_it(found)) {
        Some((found, _)) => respond(&fragment(job_facts(&found), String::new())),
        None => respond(&fragment(Vec::new(), format!("Slurm's accounting on {title} no longer has this job."))),
    }
}

pub fn member_job_path(group: GroupId, slug: &str, id: &str) -> String {
    format!("{}/jobs/{slug}/{id}", usage_path(group))
}

/// What is known from the figures; what isn't is left out.
fn figure_facts(job: &UsageJobRecord) -> Vec<(&'static str, String)> {
    let row = &job.row;
    let known = job.to_record().job;
    let seconds = |number: i64| format::duration(u64::try_from(number).unwrap_or(0));
    let has_begun = known.start.is_some();
    let all = [
        ("User name", job.user.clone()),
        ("Account", job.details.account.clone()),
        ("Job type", job.kind.clone()),
        ("Started", known.start.map_or_else(|| "never".to_owned(), UnixTime::words)),
        ("Run time", seconds(row.elapsed_s)),
        ("Wait", if has_begun { seconds(row.wait_s) } else { String::new() }),
        ("Allocated", amounts::format_request(&known)),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// What Slurm told about the job: no script, no command line, no folders.
fn job_facts(job: &SlurmJob) -> Vec<(&'static str, String)> {
    let all = [
        ("Name", job.name.clone()),
        ("State", job.state.slurm_name().to_owned()),
        ("Exit code", job.exit.map(exit_text).unwrap_or_default()),
        ("Partition", job.partition.clone()),
        ("QOS", job.qos.clone()),
        ("Requested", amounts::format_request(job)),
        ("Time limit", job.time_limit.minutes().map(format::minutes).unwrap_or_default()),
        ("Submitted", job.submitted.map(UnixTime::words).unwrap_or_default()),
        ("Ended", job.end.map(UnixTime::words).unwrap_or_default()),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn exit_text(exit: ExitStatus) -> String {
    if exit.signal > 0 { format!("{}, signal {}", exit.code, exit.signal) } else { exit.code.to_string() }
}

impl MemberJobPage {
    /// The colour class of the outcome.
    fn tone(&self) -> &'static str {
        match self.job.outcome() {
            UsageJobOutcome::Done => "ok",
            UsageJobOutcome::Running => "running",
            UsageJobOutcome::Cancelled => "neutral",
            outcome if outcome.is_lost() => "failed",
            _ => "neutral",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pi_is_told_how_it_ended_and_nothing_of_its_content() {
        let job = SlurmJob {
            name: "fit-1".into(),
            exit: Some(ExitStatus { code: 0, signal: 9 }),
            work_dir: "/home/max/secret".into(),
            cpus: 4,
            ..SlurmJob::default()
        };
        let facts = job_facts(&job);
        assert!(facts.contains(&("Exit code", "0, signal 9".to_owned())), "{facts:?}");
        assert!(facts.iter().any(|(label, value)| *label == "Requested" && value.contains("4 cores")), "{facts:?}");
        assert!(!facts.iter().any(|(_, value)| value.contains("secret")));
        assert_eq!(exit_text(ExitStatus { code: 2, signal: 0 }), "2");
    }
}
