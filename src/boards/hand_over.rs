//! Handing a run over to Slurm: its script is made here and goes the way of all jobs, exactly once.

use super::Kind;
use super::desk::{Boards, queue_of};
use super::job::{self, Plan};
use crate::auth::activity::Actor;
use crate::cluster::{ClusterProfile, DiscoveredFacts};
use crate::jobs::submissions::{NotTaken, Order};
use crate::sites::Site;
use crate::store::dashboards::Dashboard;
use crate::store::dashboards::runs::{self, DashboardRun};
use crate::store::{self, StoreError};

impl Boards {
    /// Hands a run over. Done again after a crash it is the same submission: the run's name is its form.
    pub(super) async fn hand_over(
        &self,
        board: &Dashboard,
        run: &DashboardRun,
    ) -> Result<(), StoreError> {
        let order = match self.order(board, run).await? {
            Ok(order) => order,
            Err(problem) => return self.end(board, run, "not-sent", &problem).await,
        };
        // It runs as its owner, who wanted it or allowed others to want it; that was decided and recorded before.
        let parts = &self.0.parts;
        match parts.submissions.submit(&Actor::portal(), order).await {
            Ok(id) => {
                let mut tx = parts.store.write().await?;
                runs::set_submission(&mut tx, run.id, id).await?;
                store::commit(tx).await?;
                self.changed(board.id);
                Ok(())
            }
            Err(NotTaken::Store(error)) => Err(error),
            Err(problem) => self.end(board, run, "not-sent", &problem.to_string()).await,
        }
    }

    async fn order(
        &self,
        board: &Dashboard,
        run: &DashboardRun,
    ) -> Result<Result<Order, String>, StoreError> {
        let mut db = self.0.parts.store.read().await?;
        let line = store::connections::get(&mut db, queue_of(board).line()).await?;
        let row = store::clusters::get(&mut db, board.cluster_id).await?;
        let (Some(line), Some(row)) = (line, row) else {
            return Ok(Err("There is no way to this cluster any more.".to_owned()));
        };
        let known = ClusterProfile::load(&mut db, row).await?;
        let learnt: DiscoveredFacts = serde_json::from_str(&line.learnt).unwrap_or_default();
        Ok(order(board, run, &known.site, &learnt))
    }
}

fn order(
    board: &Dashboard,
    run: &DashboardRun,
    site: &Site,
    learnt: &DiscoveredFacts,
) -> Result<Order, String> {
    let kind: Kind = board.kind.parse().map_err(|_| "There is no such kind of dashboard.")?;
    let account = account(board, site, learnt);
    let minutes = u32::try_from(run.minutes).unwrap_or(super::USUAL);
    let base = run.folder.strip_suffix(&format!("/boards/{}", run.name)).unwrap_or(&run.folder);
    let request = job::request(kind, minutes, account.as_deref(), run.begin_at(), site);
    let places = board.places();
    let plan = Plan { kind, places: &places, folder: &run.folder, base, site, request };
    let script = job::script(&plan).map_err(|error| error.to_string())?;
    Ok(Order {
        person: board.person_id,
        cluster: board.cluster_id,
        form: format!("board-run-{}", run.name),
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

/// Which project pays: the chosen one, or the first where one must be named.
fn account(board: &Dashboard, site: &Site, learnt: &DiscoveredFacts) -> Option<String> {
    if !board.account.is_empty() {
        return Some(board.account.clone());
    }
    let first = learnt.accounts.first().map(|account| account.name.clone());
    first.filter(|_| site.jobs.account_required)
}
