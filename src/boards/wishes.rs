//! What people want of dashboards: a new one, once more, longer, no more. Written down here; the keeper carries it out.

use super::desk::{Boards, queue_of, whose};
use super::wish::Wish;
use crate::auth::activity::{ActivityDetails, ActivityEvent, Actor, record};
use crate::auth::{AuthError, Permission};
use crate::clock::UnixTime;
use crate::cluster::discovered_facts::FolderKind;
use crate::cluster::{ClusterProfile, DiscoveredFacts};
use crate::domain::{DashboardId, DisplayName, GroupId, NameError, PersonId};
use crate::entropy;
use crate::sites::SubmitFolderRule;
use crate::store::dashboards::runs::{self, DashboardRun, DashboardRunState, NewDashboardRun};
use crate::store::dashboards::{self, Dashboard, DashboardSettings, NewDashboardRow};
use crate::store::{self, DbConnection, StoreError};

/// So many dashboards may one person have.
const MOST_BOARDS: i64 = 200;
/// The shortest run, in minutes.
pub const SHORTEST: u32 = 10;
/// The longest run, in minutes: a dashboard is looked at, not lived in.
pub const LONGEST: u32 = 12 * 60;
/// How long one runs if nobody says.
pub const USUAL: u32 = 60;
/// Most starts by others in a day that an owner can allow.
pub const MOST_WAKES: i64 = 20;
/// A follow-up starts so many seconds before the end of what it follows.
const LEAD: i64 = 180;
const DAY: i64 = 86_400;

/// Why nothing came of a wish.
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    /// There is no way to the cluster, or nothing is known of one's place there.
    #[error("You have no connection to this cluster. Connect to it first, then try again.")]
    NoWay,
    /// The owner of someone else's dashboard is not connected.
    #[error(
        "It cannot be started now: it runs as its owner, and their connection to the cluster is closed. Ask them to connect."
    )]
    OwnerAway,
    /// What it should show.
    #[error("{0}")]
    Place(&'static str),
    /// For how long.
    #[error("Choose between {SHORTEST} minutes and {} hours.", LONGEST / 60)]
    Minutes,
    /// Its name.
    #[error("The name: {0}")]
    Title(NameError),
    /// There are enough.
    #[error("You have {MOST_BOARDS} dashboards already. Delete some that you no longer need.")]
    TooMany,
    /// It runs, or is about to.
    #[error("It is running or on its way already.")]
    RunsAlready,
    /// There is nothing to prolong or stop.
    #[error("It is not running, so there is nothing to prolong or stop. Start it again instead.")]
    NotRunning,
    /// What follows is there already.
    #[error("A follow-up is on its way already.")]
    FollowedAlready,
    /// The owner's limit for others.
    #[error("It was started as often as its owner allows in a day. Ask them to start it.")]
    WokenEnough,
    /// The form came without its mark.
    #[error("The form did not arrive as expected. Load the page again and try once more.")]
    Form,
    /// Rights, or no such dashboard.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The database; nothing was written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<std::io::Error> for NotDone {
    fn from(error: std::io::Error) -> Self {
        Self::Auth(error.into())
    }
}

impl Boards {
    /// Makes a dashboard and its first run. The same form sent again gives the same dashboard.
    pub async fn open(&self, actor: &Actor, wish: &Wish) -> Result<DashboardId, NotDone> {
        let title = wish.check()?;
        let parts = &self.0.parts;
        let now = parts.clock.now();
        let mut tx = parts.store.write().await?;
        parts.auth.authorise(&mut tx, actor, Permission::UseClusters).await?;
        if actor.id.is_some_and(|id| id != wish.person) {
            return Err(AuthError::Denied.into());
        }
        if let Some(known) = dashboards::find_by_form(&mut tx, wish.person, &wish.form).await? {
            return Ok(known);
        }
        if dashboards::count_for_person(&mut tx, wish.person).await? >= MOST_BOARDS {
            return Err(NotDone::TooMany);
        }
        let new = NewDashboardRow {
            person: wish.person,
            cluster: wish.cluster,
            kind: wish.kind.as_str(),
            title: title.as_str(),
            places: &wish.places,
            minutes: wish.minutes.into(),
            account: &wish.account,
            form: &wish.form,
        };
        let id = dashboards::add(&mut tx, &new, now).await?;
        let board = dashboards::get(&mut tx, id).await?.ok_or(AuthError::NotFound)?;
        self.add_run(&mut tx, &board, None, board.minutes, None).await?;
        self.note(&mut tx, actor, ActivityEvent::DashboardCreated, &board).await?;
        store::commit(tx).await?;
        self.changed(id);
        Ok(id)
    }

    /// Starts one again.
    pub async fn start(&self, actor: &Actor, id: DashboardId) -> Result<(), NotDone> {
        let mut tx = self.0.parts.store.write().await?;
        let board = self.managed(&mut tx, actor, id).await?;
        no_open_run(&mut tx, id).await?;
        self.add_run(&mut tx, &board, None, board.minutes, None).await?;
        self.note(&mut tx, actor, ActivityEvent::DashboardStarted, &board).await?;
        store::commit(tx).await?;
        self.changed(id);
        Ok(())
    }

    /// Starts a colleague's, as them and within their limits.
    pub async fn wake(&self, actor: &Actor, id: DashboardId) -> Result<(), NotDone> {
        let parts = &self.0.parts;
        let mut tx = parts.store.write().await?;
        let board = found(&mut tx, id).await?;
        parts
            .auth
            .authorise(&mut tx, actor, Permission::StartSharedDashboard(whose(&board)))
            .await?;
        no_open_run(&mut tx, id).await?;
        let since = parts.clock.now().plus(-DAY);
        if runs::count_wakes(&mut tx, id, since).await? >= board.wakes_per_day {
            return Err(NotDone::WokenEnough);
        }
        if board.is_owner_off || parts.lines.connection(queue_of(&board).line()).is_err() {
            return Err(NotDone::OwnerAway);
        }
        self.add_run(&mut tx, &board, actor.id, board.wake_minutes, None).await?;
        self.note(&mut tx, actor, ActivityEvent::DashboardStartedByMember, &board).await?;
        store::commit(tx).await?;
        self.changed(id);
        Ok(())
    }

    /// Lets a follow-up begin shortly before the end of the run that shows it.
    pub async fn extend(&self, actor: &Actor, id: DashboardId) -> Result<(), NotDone> {
        let parts = &self.0.parts;
        let now = parts.clock.now();
        let mut tx = parts.store.write().await?;
        let board = self.managed(&mut tx, actor, id).await?;
        let open = open_runs(&mut tx, id).await?;
        let [run] = open.as_slice() else {
            return Err(if open.is_empty() {
                NotDone::NotRunning
            } else {
                NotDone::FollowedAlready
            });
        };
        let ends = run.ends_at().filter(|_| run.stop.is_empty()).ok_or(NotDone::NotRunning)?;
        let begin = ends.plus(-LEAD).max(now);
        self.add_run(&mut tx, &board, None, board.minutes, Some(begin)).await?;
        self.note(&mut tx, actor, ActivityEvent::DashboardExtended, &board).await?;
        store::commit(tx).await?;
        self.changed(id);
        Ok(())
    }

    /// Ends all its runs.
    pub async fn stop(&self, actor: &Actor, id: DashboardId) -> Result<(), NotDone> {
        let mut tx = self.0.parts.store.write().await?;
        let board = self.managed(&mut tx, actor, id).await?;
        let open = open_runs(&mut tx, id).await?;
        if open.is_empty() {
            return Err(NotDone::NotRunning);
        }
        for run in open {
            runs::request_stop(&mut tx, run.id, "person").await?;
        }
        self.note(&mut tx, actor, ActivityEvent::DashboardStopped, &board).await?;
        store::commit(tx).await?;
        self.changed(id);
        Ok(())
    }

    /// Deletes it: what runs is ended, its links stop working at once.
    pub async fn remove(&self, actor: &Actor, id: DashboardId) -> Result<(), NotDone> {
        let mut tx = self.0.parts.store.write().await?;
        let board = self.managed(&mut tx, actor, id).await?;
        for run in open_runs(&mut tx, id).await? {
            runs::request_stop(&mut tx, run.id, "removed").await?;
        }
        dashboards::remove(&mut tx, id, self.0.parts.clock.now()).await?;
        self.note(&mut tx, actor, ActivityEvent::DashboardDeleted, &board).await?;
        store::commit(tx).await?;
        self.changed(id);
        Ok(())
    }

    /// Changes its name and what its owner's group may do.
    pub async fn change(
        &self,
        actor: &Actor,
        id: DashboardId,
        settings: DashboardSettings<'_>,
    ) -> Result<(), NotDone> {
        let title: DisplayName = settings.title.parse().map_err(NotDone::Title)?;
        let mut tx = self.0.parts.store.write().await?;
        let board = self.managed(&mut tx, actor, id).await?;
        if let Some(group) = settings.group {
            self.may_show(&mut tx, actor, &board, group).await?;
        }
        let settings = DashboardSettings {
            title: title.as_str(),
            wakes_per_day: settings.wakes_per_day.clamp(0, MOST_WAKES),
            wake_minutes: settings.wake_minutes.clamp(SHORTEST.into(), LONGEST.into()),
            ..settings
        };
        dashboards::update_settings(&mut tx, id, settings).await?;
        self.note(&mut tx, actor, ActivityEvent::DashboardChanged, &board).await?;
        store::commit(tx).await?;
        self.changed(id);
        Ok(())
    }

    async fn may_show(
        &self,
        db: &mut DbConnection,
        actor: &Actor,
        board: &Dashboard,
        group: GroupId,
    ) -> Result<(), NotDone> {
        let action = Permission::ShowDashboard(whose(board), group);
        Ok(self.0.parts.auth.authorise(db, actor, action).await?)
    }

    /// A dashboard that someone may manage.
    pub(super) async fn managed(
        &self,
        db: &mut DbConnection,
        actor: &Actor,
        id: DashboardId,
    ) -> Result<Dashboard, NotDone> {
        let board = found(db, id).await?;
        self.0.parts.auth.authorise(db, actor, Permission::ManageDashboard(whose(&board))).await?;
        Ok(board)
    }

    async fn add_run(
        &self,
        db: &mut DbConnection,
        board: &Dashboard,
        woken_by: Option<PersonId>,
        minutes: i64,
        begin_at: Option<UnixTime>,
    ) -> Result<(), NotDone> {
        let base = base(db, board).await?.ok_or(NotDone::NoWay)?;
        let name = name_of_run()?;
        let folder = format!("{base}/boards/{name}");
        let new = NewDashboardRun {
            dashboard: board.id,
            name: &name,
            folder: &folder,
            woken_by,
            minutes,
            begin_at,
        };
        runs::add(db, &new, self.0.parts.clock.now()).await?;
        Ok(())
    }

    pub(super) async fn note(
        &self,
        db: &mut DbConnection,
        actor: &Actor,
        event: ActivityEvent,
        board: &Dashboard,
    ) -> Result<(), NotDone> {
        let about = ActivityDetails {
            person: Some(board.person_id),
            subject: &board.title,
            detail: &board.cluster,
        };
        Ok(record(db, actor, event, about, self.0.parts.clock.now()).await?)
    }

    pub(super) fn changed(&self, board: DashboardId) {
        self.tell(board);
        self.hurry();
    }
}

/// One that was not deleted.
pub(super) async fn found(db: &mut DbConnection, id: DashboardId) -> Result<Dashboard, NotDone> {
    let board = dashboards::get(db, id).await?.filter(|board| !board.is_removed());
    Ok(board.ok_or(AuthError::NotFound)?)
}

async fn open_runs(
    db: &mut DbConnection,
    id: DashboardId,
) -> Result<Vec<DashboardRun>, StoreError> {
    let mut last = runs::list_for_dashboard(db, id, 10).await?;
    last.retain(|run| run.state != DashboardRunState::Over);
    Ok(last)
}

async fn no_open_run(db: &mut DbConnection, id: DashboardId) -> Result<(), NotDone> {
    if open_runs(db, id).await?.is_empty() { Ok(()) } else { Err(NotDone::RunsAlready) }
}

/// The folder on the cluster under which everything of dashboards is kept.
async fn base(db: &mut DbConnection, board: &Dashboard) -> Result<Option<String>, StoreError> {
    let Some(line) = store::connections::get(db, queue_of(board).line()).await? else {
        return Ok(None);
    };
    let Some(row) = store::clusters::get(db, board.cluster_id).await? else { return Ok(None) };
    if row.retired_at().is_some() {
        return Ok(None);
    }
    let known = ClusterProfile::load(db, row).await?;
    let learnt: DiscoveredFacts = serde_json::from_str(&line.learnt).unwrap_or_default();
    let scratch = learnt.folders_of_kind(FolderKind::Scratch).find(|folder| folder.writable);
    // Where jobs must not write into the home folder, they may not start from there either.
    let place = match known.site.jobs.submit_from {
        SubmitFolderRule::Scratch => scratch.map(|folder| folder.path.clone()).or(learnt.home),
        SubmitFolderRule::Anywhere => learnt.home,
    };
    Ok(place.map(|place| format!("{}/.portolan", place.trim_end_matches('/'))))
}

/// A random word, good as a folder's name.
fn name_of_run() -> Result<String, std::io::Error> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bytes = entropy::random_bytes::<16>()?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}
