//! Submits a run to Slurm: its script is made here and submitted like any other job, exactly once.

use super::DashboardKind;
use super::job::{self, LaunchPlan};
use super::service::{Dashboards, queue_key};
use crate::auth::activity::Actor;
use crate::cluster::ClusterAccount;
use crate::jobs::submissions::{SubmitError, SubmitRequest};
use crate::store::dashboards::Dashboard;
use crate::store::dashboards::runs::{self, DashboardRun};
use crate::store::{self, StoreError};

impl Dashboards {
    /// Submits a run. Repeated after a crash it is the same submission, because the run's name is its form token.
    pub(super) async fn launch(&self, dashboard: &Dashboard, run: &DashboardRun) -> Result<(), StoreError> {
        let request = match self.load_submit_request(dashboard, run).await? {
            Ok(request) => request,
            Err(problem) => return self.end_run(dashboard, run, "not-sent", &problem).await,
        };
        // It runs as its owner, who asked for it or allowed others to; that was authorised and recorded before.
        let core = &self.0.core;
        match self.0.submissions.submit(&Actor::portal(), request).await {
            Ok(id) => {
                let mut tx = core.store.write().await?;
                runs::set_submission(&mut tx, run.id, id).await?;
                store::commit(tx).await?;
                self.notify_changed(dashboard.id);
                Ok(())
            }
            Err(SubmitError::Store(error)) => Err(error),
            Err(problem) => self.end_run(dashboard, run, "not-sent", &problem.to_string()).await,
        }
    }

    async fn load_submit_request(
        &self,
        dashboard: &Dashboard,
        run: &DashboardRun,
    ) -> Result<Result<SubmitRequest, String>, StoreError> {
        let accounts = self.0.connections.accounts();
        Ok(match accounts.get(queue_key(dashboard)).await? {
            Some(account) => build_submit_request(dashboard, run, &account),
            None => Err("This cluster is no longer set up for you. Connect to it again.".to_owned()),
        })
    }
}

fn build_submit_request(
    dashboard: &Dashboard,
    run: &DashboardRun,
    owner: &ClusterAccount,
) -> Result<SubmitRequest, String> {
    let site = owner.site();
    let kind: DashboardKind = dashboard.kind.parse().map_err(|_| "This type of dashboard isn't supported.")?;
    let account = charged_account(dashboard, owner);
    let minutes = u32::try_from(run.minutes).unwrap_or(super::DEFAULT_RUN_MINUTES);
    let base = run.folder.strip_suffix(&format!("/boards/{}", run.name)).unwrap_or(&run.folder);
    let request = job::build_request(kind, minutes, account.as_deref(), run.begin_at, site);
    let places = dashboard.places();
    let plan = LaunchPlan { kind, places: &places, folder: &run.folder, base, site, request };
    let script = job::render_script(&plan).map_err(|error| error.to_string())?;
    Ok(SubmitRequest {
        person: dashboard.person_id,
        cluster: dashboard.cluster_id,
        // As in 0.1: a run that was being submitted during an upgrade keeps its token.
        form_token: format!("board-run-{}", run.name),
        script,
        job_name: kind.job_name().to_owned(),
        folders: vec![run.folder.clone()],
        recipe: format!("Dashboard: {}", kind.title()),
        recipe_version: None,
        recipe_id: None,
        answers: String::new(),
        sweep: String::new(),
    })
}

/// The account to charge: the chosen one, or the first where Slurm requires one.
fn charged_account(dashboard: &Dashboard, owner: &ClusterAccount) -> Option<String> {
    if !dashboard.account.is_empty() {
        return Some(dashboard.account.clone());
    }
    let first = owner.discovered.accounts.first().map(|account| account.name.clone());
    first.filter(|_| owner.site().jobs.account_required)
}
