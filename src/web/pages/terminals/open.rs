//! Opens terminals: on a cluster, and inside a running job.

use axum::response::Response;

use crate::auth::Permission;
use crate::cluster::ClusterAccount;
use crate::cluster::job_shell::JobShellTarget;
use crate::error::AppError;
use crate::jobs::job_list::record_stage;
use crate::slurm::job::JobStage;
use crate::terminals::StartTerminalError;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::pages::clusters::{ClusterRequest, UncheckedClusterRequest};
use crate::web::pages::jobs::job_lookup::JobPageRequest;

/// Opens a terminal on a cluster and shows it.
pub async fn on_cluster(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    let back = format!("/clusters/{}", request.cluster.row.slug);
    let account = request.context.app.cluster_accounts.get(request.account_id()).await?;
    let ClusterRequest { context, me, .. } = request;
    match account {
        Some(account) => open_and_show(context, &me, &account, None, &back).await,
        None => Ok(flash::redirect(context, &back, FlashMessage::NoUserName)),
    }
}

/// Opens a shell inside a running job of the person and shows it.
pub async fn in_job(request: JobPageRequest) -> HandlerResult {
    let found = request.find_job().await?;
    let record = found.require_job()?;
    if !found.is_own {
        return Err(AppError::NotFound);
    }
    let back = found.href();
    let JobPageRequest { context, me, .. } = request;
    if record_stage(record) != JobStage::Running {
        return Ok(flash::redirect(context, &back, FlashMessage::JobNotRunning));
    }
    let job = JobShellTarget { id: found.id, own_number: record.job.raw_id };
    open_and_show(context, &me, &found.queue.account, Some(job), &back).await
}

async fn open_and_show(
    context: RequestContext,
    me: &CurrentPerson,
    account: &ClusterAccount,
    job: Option<JobShellTarget>,
    back: &str,
) -> Result<Response, AppError> {
    match context.app.terminals.open(account, job, &me.actor(&context)).await {
        Ok(id) => Ok(flash::see_other(&format!("/terminals/{id}"))),
        Err(StartTerminalError::Store(error)) => Err(error.into()),
        Err(error) => Ok(flash::redirect_with_text(context, back, FlashMessage::TerminalNotOpened, &error.to_string())),
    }
}
