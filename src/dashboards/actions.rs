//! What people do with dashboards: create, start, extend, stop. Requests are saved here; the reconciler carries them
//! out.

use super::new_dashboard::NewDashboard;
use super::service::{Dashboards, owner_of, queue_key};
use crate::auth::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use crate::auth::{AuthError, Permission};
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::cluster::ClusterAccount;
use crate::cluster::discovered_facts::FolderKind;
use crate::domain::{DashboardId, DisplayName, GroupId, NameError, PersonId};
use crate::entropy;
use crate::sites::SubmitFolderRule;
use crate::store::dashboards::runs::{self, DashboardRun, DashboardRunState, NewDashboardRun};
use crate::store::dashboards::{self, Dashboard, DashboardOwnerSettings, NewDashboardRow};
use crate::store::{self, DbConnection, StoreError};

/// Dashboards per person.
const MAX_DASHBOARDS: i64 = 200;
/// The shortest run, in minutes.
pub const MIN_RUN_MINUTES: u32 = 10;
/// The longest run, in minutes: people look at a dashboard, they do not leave it open for days.
pub const MAX_RUN_MINUTES: u32 = 12 * 60;
/// The time limit of a run, unless someone chooses another.
pub const DEFAULT_RUN_MINUTES: u32 = 60;
/// The most starts per day that an owner can allow others.
pub const MAX_WAKES_PER_DAY: i64 = 20;
/// A follow-up run starts this many seconds before the end of the current one.
const FOLLOW_UP_LEAD_S: i64 = 180;

/// Why a request was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum DashboardError {
    /// The person is not connected to the cluster, or nothing was discovered there yet.
    #[error("You're not connected to this cluster. Connect first, then try again.")]
    NotConnected,
    /// The owner of someone else's dashboard is not connected.
    #[error(
        "The dashboard can't be started because it runs as its owner, who isn't connected to the cluster. Ask them to connect."
    )]
    OwnerNotConnected,
    /// A folder that cannot be shown.
    #[error("{0}")]
    InvalidFolder(&'static str),
    #[error("Choose a time limit from {MIN_RUN_MINUTES} minutes to {} hours.", MAX_RUN_MINUTES / 60)]
    InvalidMinutes,
    #[error("Name: {0}")]
    InvalidTitle(NameError),
    #[error("You already have {MAX_DASHBOARDS} dashboards. Delete some you no longer need.")]
    TooMany,
    /// It runs, or is about to.
    #[error("The dashboard is already running or starting.")]
    AlreadyRunning,
    /// There is no run to extend or stop.
    #[error("The dashboard isn't running, so it can't be extended or stopped. Start it instead.")]
    NotRunning,
    /// There is a follow-up run already.
    #[error("The dashboard has already been extended.")]
    AlreadyExtended,
    /// The owner's limit for others.
    #[error("The dashboard has been started as often as its owner allows per day. Ask them to start it.")]
    WakeLimitReached,
    /// The form came without its token.
    #[error("The form is incomplete. Reload the page and try again.")]
    InvalidForm,
    /// Not allowed, or no such dashboard.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// Database error; nothing was written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<std::io::Error> for DashboardError {
    fn from(error: std::io::Error) -> Self {
        Self::Auth(error.into())
    }
}

impl Dashboards {
    /// Creates a dashboard and its first run. Sending the same form again returns the same dashboard.
    pub async fn create(&self, actor: &Actor, request: &NewDashboard) -> Result<DashboardId, DashboardError> {
        let title = request.check()?;
        let core = &self.0.core;
        let now = core.clock.now();
        let mut tx = core.store.write().await?;
        core.auth.authorise(&mut tx, actor, Permission::UseClusters).await?;
        if actor.id.is_some_and(|id| id != request.person) {
            return Err(AuthError::Denied.into());
        }
        if let Some(existing) = dashboards::find_by_form(&mut tx, request.person, &request.form).await? {
            return Ok(existing);
        }
        if dashboards::count_for_person(&mut tx, request.person).await? >= MAX_DASHBOARDS {
            return Err(DashboardError::TooMany);
        }
        let new = NewDashboardRow {
            person: request.person,
            cluster: request.cluster,
            kind: request.kind.as_str(),
            title: title.as_str(),
            places: &request.places,
            minutes: request.minutes.into(),
            account: &request.account,
            form: &request.form,
        };
        let id = dashboards::add(&mut tx, &new, now).await?;
        let dashboard = dashboards::get(&mut tx, id).await?.ok_or(AuthError::NotFound)?;
        self.add_run(&mut tx, &dashboard, None, dashboard.minutes, None).await?;
        self.finish_change(tx, actor, ActivityEventKind::DashboardCreated, &dashboard).await?;
        Ok(id)
    }

    pub async fn start(&self, actor: &Actor, id: DashboardId) -> Result<(), DashboardError> {
        let mut tx = self.0.core.store.write().await?;
        let dashboard = self.load_managed(&mut tx, actor, id).await?;
        ensure_no_open_run(&mut tx, id).await?;
        self.add_run(&mut tx, &dashboard, None, dashboard.minutes, None).await?;
        self.finish_change(tx, actor, ActivityEventKind::DashboardStarted, &dashboard).await
    }

    /// Starts another member's dashboard, as its owner and within the owner's limits.
    pub async fn wake(&self, actor: &Actor, id: DashboardId) -> Result<(), DashboardError> {
        let core = &self.0.core;
        let mut tx = core.store.write().await?;
        let dashboard = load_existing(&mut tx, id).await?;
        core.auth.authorise(&mut tx, actor, Permission::StartSharedDashboard(owner_of(&dashboard))).await?;
        ensure_no_open_run(&mut tx, id).await?;
        let since = core.clock.now().plus(-SECONDS_PER_DAY);
        if runs::count_wakes(&mut tx, id, since).await? >= dashboard.wakes_per_day {
            return Err(DashboardError::WakeLimitReached);
        }
        if dashboard.is_owner_off || self.0.connections.connection(queue_key(&dashboard).connection_key()).is_err() {
            return Err(DashboardError::OwnerNotConnected);
        }
        self.add_run(&mut tx, &dashboard, actor.id, dashboard.wake_minutes, None).await?;
        self.finish_change(tx, actor, ActivityEventKind::DashboardStartedByMember, &dashboard).await
    }

    /// Schedules a follow-up run that starts shortly before the current one ends.
    pub async fn extend(&self, actor: &Actor, id: DashboardId) -> Result<(), DashboardError> {
        let core = &self.0.core;
        let now = core.clock.now();
        let mut tx = core.store.write().await?;
        let dashboard = self.load_managed(&mut tx, actor, id).await?;
        let open = list_open_runs(&mut tx, id).await?;
        let [run] = open.as_slice() else {
            return Err(if open.is_empty() { DashboardError::NotRunning } else { DashboardError::AlreadyExtended });
        };
        let ends = run.ends_at().filter(|_| run.stop.is_empty()).ok_or(DashboardError::NotRunning)?;
        let begin = ends.plus(-FOLLOW_UP_LEAD_S).max(now);
        self.add_run(&mut tx, &dashboard, None, dashboard.minutes, Some(begin)).await?;
        self.finish_change(tx, actor, ActivityEventKind::DashboardExtended, &dashboard).await
    }

    /// Stops all its runs.
    pub async fn stop(&self, actor: &Actor, id: DashboardId) -> Result<(), DashboardError> {
        let mut tx = self.0.core.store.write().await?;
        let dashboard = self.load_managed(&mut tx, actor, id).await?;
        let open = list_open_runs(&mut tx, id).await?;
        if open.is_empty() {
            return Err(DashboardError::NotRunning);
        }
        for run in open {
            runs::request_stop(&mut tx, run.id, "person").await?;
        }
        self.finish_change(tx, actor, ActivityEventKind::DashboardStopped, &dashboard).await
    }

    /// Deletes it: runs are stopped, and its guest links stop working at once.
    pub async fn remove(&self, actor: &Actor, id: DashboardId) -> Result<(), DashboardError> {
        let mut tx = self.0.core.store.write().await?;
        let dashboard = self.load_managed(&mut tx, actor, id).await?;
        for run in list_open_runs(&mut tx, id).await? {
            runs::request_stop(&mut tx, run.id, "removed").await?;
        }
        dashboards::remove(&mut tx, id, self.0.core.clock.now()).await?;
        self.finish_change(tx, actor, ActivityEventKind::DashboardDeleted, &dashboard).await
    }

    /// Changes its title and what members of the group may do.
    pub async fn update_settings(
        &self,
        actor: &Actor,
        id: DashboardId,
        settings: DashboardOwnerSettings<'_>,
    ) -> Result<(), DashboardError> {
        let title: DisplayName = settings.title.parse().map_err(DashboardError::InvalidTitle)?;
        let mut tx = self.0.core.store.write().await?;
        let dashboard = self.load_managed(&mut tx, actor, id).await?;
        if let Some(group) = settings.group {
            self.authorise_group(&mut tx, actor, &dashboard, group).await?;
        }
        let settings = DashboardOwnerSettings {
            title: title.as_str(),
            wakes_per_day: settings.wakes_per_day.clamp(0, MAX_WAKES_PER_DAY),
            wake_minutes: settings.wake_minutes.clamp(MIN_RUN_MINUTES.into(), MAX_RUN_MINUTES.into()),
            ..settings
        };
        dashboards::update_settings(&mut tx, id, settings).await?;
        self.finish_change(tx, actor, ActivityEventKind::DashboardChanged, &dashboard).await
    }

    async fn authorise_group(
        &self,
        db: &mut DbConnection,
        actor: &Actor,
        dashboard: &Dashboard,
        group: GroupId,
    ) -> Result<(), DashboardError> {
        let action = Permission::ShowDashboard(owner_of(dashboard), group);
        Ok(self.0.core.auth.authorise(db, actor, action).await?)
    }

    /// A dashboard that the person may manage.
    pub(super) async fn load_managed(
        &self,
        db: &mut DbConnection,
        actor: &Actor,
        id: DashboardId,
    ) -> Result<Dashboard, DashboardError> {
        let dashboard = load_existing(db, id).await?;
        self.0.core.auth.authorise(db, actor, Permission::ManageDashboard(owner_of(&dashboard))).await?;
        Ok(dashboard)
    }

    async fn add_run(
        &self,
        db: &mut DbConnection,
        dashboard: &Dashboard,
        woken_by: Option<PersonId>,
        minutes: i64,
        begin_at: Option<UnixTime>,
    ) -> Result<(), DashboardError> {
        let accounts = self.0.connections.accounts();
        let owner = accounts.get_with(db, queue_key(dashboard)).await?;
        let owner = owner.filter(|owner| owner.cluster().retired_at().is_none());
        let base = owner.and_then(|owner| base_folder(&owner)).ok_or(DashboardError::NotConnected)?;
        let name = random_run_name()?;
        let folder = format!("{base}/boards/{name}");
        let new =
            NewDashboardRun { dashboard: dashboard.id, name: &name, folder: &folder, woken_by, minutes, begin_at };
        runs::add(db, &new, self.0.core.clock.now()).await?;
        Ok(())
    }

    pub(super) async fn record_activity(
        &self,
        db: &mut DbConnection,
        actor: &Actor,
        event: ActivityEventKind,
        dashboard: &Dashboard,
    ) -> Result<(), DashboardError> {
        let about = ActivityDetails {
            person: Some(dashboard.person_id),
            subject: &dashboard.title,
            detail: &dashboard.cluster,
        };
        Ok(record(db, actor, event, about, self.0.core.clock.now()).await?)
    }

    /// Records a change, commits it, and tells everyone who waits for it.
    async fn finish_change(
        &self,
        mut tx: store::Transaction,
        actor: &Actor,
        event: ActivityEventKind,
        dashboard: &Dashboard,
    ) -> Result<(), DashboardError> {
        self.record_activity(&mut tx, actor, event, dashboard).await?;
        store::commit(tx).await?;
        self.notify_changed(dashboard.id);
        Ok(())
    }

    pub(super) fn notify_changed(&self, dashboard: DashboardId) {
        self.notify_watchers(dashboard);
        self.wake_reconciler();
    }
}

/// A dashboard that was not deleted.
pub(super) async fn load_existing(db: &mut DbConnection, id: DashboardId) -> Result<Dashboard, DashboardError> {
    let dashboard = dashboards::get(db, id).await?.filter(|dashboard| !dashboard.is_removed());
    Ok(dashboard.ok_or(AuthError::NotFound)?)
}

async fn list_open_runs(db: &mut DbConnection, id: DashboardId) -> Result<Vec<DashboardRun>, StoreError> {
    let mut last = runs::list_for_dashboard(db, id, 10).await?;
    last.retain(|run| run.state != DashboardRunState::Over);
    Ok(last)
}

async fn ensure_no_open_run(db: &mut DbConnection, id: DashboardId) -> Result<(), DashboardError> {
    if list_open_runs(db, id).await?.is_empty() { Ok(()) } else { Err(DashboardError::AlreadyRunning) }
}

/// The folder on the cluster that holds everything for dashboards.
fn base_folder(owner: &ClusterAccount) -> Option<String> {
    let facts = &owner.discovered;
    let scratch = facts.folders_of_kind(FolderKind::Scratch).find(|folder| folder.writable);
    // Where jobs must not write to the home folder, they must not be submitted from there either.
    let base = match owner.site().jobs.submit_from {
        SubmitFolderRule::Scratch => scratch.map(|folder| &folder.path).or(facts.home.as_ref()),
        SubmitFolderRule::Anywhere => facts.home.as_ref(),
    };
    base.map(|base| format!("{}/.portolan", base.trim_end_matches('/')))
}

/// A random name that is safe for a folder.
fn random_run_name() -> Result<String, std::io::Error> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bytes = entropy::random_bytes::<16>()?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}
