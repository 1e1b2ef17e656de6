//! The page of a submission: what is happening, in words, until there is a job to show instead.

use askama::Template;
use axum::extract::FromRequestParts;

use crate::auth::Permission;
use crate::cluster::{ClusterAccountId, ConnectionStatus};
use crate::domain::SubmissionId;
use crate::error::AppError;
use crate::explain::sbatch;
use crate::jobs::submissions::{Submission, SubmissionState};
use crate::slurm::job::JobId;
use crate::store;
use crate::store::clusters::Cluster;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, PathParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage, see_other};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::jobs::job_lookup::{self, JobPageRequest};
use crate::web::portal_state::PortalState;

/// A job that the list doesn't know after this many seconds won't appear soon.
const APPEARS_WITHIN_SECS: i64 = 300;

/// A request about a submission.
#[derive(FromRequestParts)]
#[from_request(state(PortalState), rejection(AppError))]
pub struct SubmissionPageRequest {
    context: RequestContext,
    me: CurrentPerson,
    #[from_request(via(PathParams))]
    id: SubmissionId,
}

#[derive(Template)]
#[template(path = "jobs/submissions/submission.html")]
struct SubmissionPage {
    page: PageFrame,
    view: SubmissionView,
}

#[derive(Template)]
#[template(path = "jobs/submissions/part.html")]
struct SubmissionFragment {
    view: SubmissionView,
}

struct SubmissionView {
    href: String,
    /// The form that fills in the same again.
    change: String,
    name: String,
    cluster: String,
    slug: String,
    /// How it looks: the style of badge and message, and whether something is in progress.
    badge: (&'static str, &'static str),
    tone: &'static str,
    is_moving: bool,
    title: String,
    text: String,
    /// The reason, in the words of whoever gave it.
    why: String,
    said: String,
    script: String,
    buttons: SubmissionPageButtons,
}

/// The actions available now.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "buttons that are there or not")]
struct SubmissionPageButtons {
    connect: bool,
    again: bool,
    change: bool,
    give_up: bool,
}

/// The page; redirects to the job's own page once that is known.
pub async fn get(request: SubmissionPageRequest) -> HandlerResult {
    match request.load_view().await? {
        Err(job) => Ok(see_other(&job)),
        Ok(view) => {
            let page = PageFrame::for_person(&request.context, &request.me.0, &view.name, NavSection::Jobs);
            respond(&SubmissionPage { page, view })
        }
    }
}

/// The fragment that refreshes itself.
pub async fn fragment(request: SubmissionPageRequest) -> HandlerResult {
    match request.load_view().await? {
        Err(job) => Ok(see_other(&job)),
        Ok(view) => respond(&SubmissionFragment { view }),
    }
}

/// Retries a submission that couldn't be sent.
pub async fn retry(request: SubmissionPageRequest) -> HandlerResult {
    let (submission, _) = request.load_own().await?;
    request.context.app.submissions.retry(submission.person_id, submission.id).await?;
    // Whether it is retried or has moved on in the meantime: its page shows the current state.
    Ok(see_other(&submission_path(submission.id)))
}

/// Cancels a submission that wasn't sent.
pub async fn give_up(request: SubmissionPageRequest) -> HandlerResult {
    let (submission, _) = request.load_own().await?;
    let is_done = request.context.app.submissions.give_up(submission.person_id, submission.id).await?;
    let to = submission_path(submission.id);
    if is_done { Ok(see_other(&to)) } else { Ok(flash::redirect(request.context, &to, FlashMessage::CannotWithdraw)) }
}

/// Redirects from the URL of a job that isn't known yet to the submission that has just become it.
pub async fn redirect_from_job(JobPageRequest { context, me, path: (slug, id) }: &JobPageRequest) -> HandlerResult {
    let id: JobId = id.parse().map_err(|_| AppError::NotFound)?;
    let number = i64::try_from(id.number).map_err(|_| AppError::NotFound)?;
    let mut db = context.app.store.read().await?;
    let cluster = store::clusters::find_by_slug(&mut db, slug).await?.ok_or(AppError::NotFound)?;
    let submission = store::submissions::find_by_job(&mut db, me.0.person.id, cluster.id, number).await?;
    let submission = submission.filter(|_| id.task.is_none()).ok_or(AppError::NotFound)?;
    Ok(see_other(&submission_path(submission.id)))
}

pub fn submission_path(id: SubmissionId) -> String {
    format!("/submissions/{id}")
}

impl SubmissionPageRequest {
    /// Loads it, if the person may use clusters.
    async fn load_own(&self) -> Result<(Submission, Cluster), AppError> {
        self.me.may(Permission::UseClusters)?;
        load_own(&self.context, &self.me, self.id).await
    }

    /// What the page shows; `Err` with the URL of the job that it has become, if the list of jobs knows it.
    async fn load_view(&self) -> Result<Result<SubmissionView, String>, AppError> {
        let (submission, cluster) = self.load_own().await?;
        if let Some(number) = submission.number.filter(|_| submission.state == SubmissionState::Accepted) {
            match job_lookup::find_job(&self.context, &self.me, &cluster.slug, &number.to_string()).await {
                Ok(found) => return Ok(Err(found.href())),
                Err(AppError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Ok(build_view(&self.context, &submission, &cluster)))
    }
}

/// The person's own submission. Other people's are treated as missing.
pub async fn load_own(
    context: &RequestContext,
    me: &CurrentPerson,
    id: SubmissionId,
) -> Result<(Submission, Cluster), AppError> {
    let submission = context.app.submissions.get(me.0.person.id, id).await?.ok_or(AppError::NotFound)?;
    let mut db = context.app.store.read().await?;
    let cluster = store::clusters::get(&mut db, submission.cluster_id).await?;
    Ok((submission, cluster.ok_or(AppError::NotFound)?))
}

fn build_view(context: &RequestContext, submission: &Submission, cluster: &Cluster) -> SubmissionView {
    let key = ClusterAccountId { person: submission.person_id, cluster: cluster.id };
    let is_down = matches!(context.app.connections.status(key.connection_key()), ConnectionStatus::Down);
    let mut view = SubmissionView {
        href: submission_path(submission.id),
        change: format!("/compose/again/{}", submission.id),
        name: submission.job_name.clone(),
        cluster: cluster.title.clone(),
        slug: cluster.slug.clone(),
        badge: ("running", "Sending"),
        tone: "info",
        is_moving: true,
        title: "Sending your job".into(),
        text: format!("Sending the script to {} and waiting for Slurm to accept it.", cluster.title),
        why: String::new(),
        said: String::new(),
        script: submission.script.clone(),
        buttons: SubmissionPageButtons::default(),
    };
    match submission.state {
        SubmissionState::Ready if submission.problem.is_empty() && !is_down => {}
        SubmissionState::Ready => describe_waiting(&mut view, submission, is_down),
        SubmissionState::Sent => {}
        SubmissionState::Checking => describe_checking(&mut view, submission, is_down),
        SubmissionState::Accepted => describe_accepted(&mut view, submission, context.app.clock.now().0),
        SubmissionState::Refused => describe_refused(&mut view, submission),
        SubmissionState::NotSent => describe_not_sent(&mut view, submission, is_down),
        SubmissionState::GivenUp => {
            view.badge = ("neutral", "Cancelled");
            view.title = "You cancelled this submission".into();
            view.text = "Nothing was submitted.".into();
            view.is_moving = false;
            view.buttons.change = true;
        }
    }
    view
}

fn describe_waiting(view: &mut SubmissionView, submission: &Submission, is_down: bool) {
    view.badge = ("waiting", "Not sent yet");
    view.tone = "warning";
    view.buttons = SubmissionPageButtons { connect: is_down, give_up: true, ..SubmissionPageButtons::default() };
    view.why.clone_from(&submission.problem);
    view.title = if is_down { "Waiting for the connection".into() } else { "Your job hasn't been sent yet".into() };
    view.text = if is_down {
        format!(
            "You're not connected to {}. Connect within ten minutes and the job is sent automatically. After that, you'll need to submit it again.",
            view.cluster
        )
    } else {
        "The portal keeps trying for ten minutes. Nothing has been submitted so far.".into()
    };
}

fn describe_checking(view: &mut SubmissionView, submission: &Submission, is_down: bool) {
    view.badge = ("unknown", "Checking");
    view.tone = "warning";
    view.title = "Checking whether the job was submitted".into();
    view.why.clone_from(&submission.problem);
    view.buttons.connect = is_down;
    view.text = if is_down {
        format!(
            "The connection to {} broke while the job was being sent, so it may or may not be in the queue. Connect, and the portal will look for it. Don't submit it again: if it isn't there, the portal sends it for you.",
            view.cluster
        )
    } else {
        "The cluster's reply was lost, so the job may or may not be in the queue. The portal is looking for it and will send it again only if it isn't there. This can take a few minutes. Don't submit it again.".into()
    };
}

fn describe_accepted(view: &mut SubmissionView, submission: &Submission, now: i64) {
    let number = submission.number.unwrap_or_default();
    view.badge = ("ok", "Accepted");
    view.tone = "ok";
    view.title = format!("Submitted as job {number}");
    let is_recent = submission.settled_at.is_some_and(|at| now - at.0 < APPEARS_WITHIN_SECS);
    view.is_moving = is_recent;
    view.text = if is_recent {
        "You'll be taken to the job's page in a moment.".into()
    } else {
        "The portal hasn't seen it in the queue yet. This page will link to it as soon as the cluster lists it.".into()
    };
}

fn describe_refused(view: &mut SubmissionView, submission: &Submission) {
    view.badge = ("failed", "Rejected");
    view.tone = "danger";
    view.is_moving = false;
    view.title = "Slurm rejected the job".into();
    view.text = sbatch::explain_sbatch(&submission.refusal).sentence;
    view.said.clone_from(&submission.refusal);
    view.buttons.change = true;
}

fn describe_not_sent(view: &mut SubmissionView, submission: &Submission, is_down: bool) {
    view.badge = ("failed", "Not sent");
    view.tone = "warning";
    view.is_moving = false;
    view.title = "The job wasn't submitted".into();
    view.text = if is_down {
        format!("No job was created on {}. Connect, then try again.", view.cluster)
    } else {
        format!("No job was created on {}. Try again, or edit it first.", view.cluster)
    };
    view.why.clone_from(&submission.problem);
    view.buttons = SubmissionPageButtons { connect: is_down, again: true, change: true, give_up: true };
}
