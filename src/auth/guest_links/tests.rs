//! Who creates, opens and revokes guest links, whatever they lead to.

use std::net::{IpAddr, Ipv4Addr};

use super::*;
use crate::clock::Clock;
use crate::config::SessionSettings;
use crate::domain::{ClusterId, GroupId, GroupRole, PersonId, ReportId};
use crate::store::clusters::ClusterSettings;
use crate::store::dashboards::NewDashboardRow;
use crate::store::shared_paths::{NewSharedPath, SharedPathKind};
use crate::store::{Store, dashboards, groups, people, reports};
use crate::vault::{MasterKey, Vault};

const NOW: UnixTime = UnixTime(1_800_000_000);
const VISITOR: RequestClient = RequestClient { address: IpAddr::V4(Ipv4Addr::LOCALHOST), user_agent: String::new() };

/// A lab of which pia is the PI and max a member with a dashboard, a report of the lab, and eve, who leads another.
struct Lab {
    auth: AuthService,
    clock: Clock,
    group: GroupId,
    report: ReportId,
    dashboard: GuestLinkTarget,
    people: [PersonId; 3],
    _dir: tempfile::TempDir,
}

impl Lab {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("p.db")).await.unwrap();
        let mut tx = store.write().await.unwrap();
        let mut ids = Vec::new();
        for name in ["pia", "max", "eve"] {
            let added = people::add(&mut tx, &name.parse().unwrap(), &name.parse().unwrap(), false, NOW).await;
            ids.push(added.unwrap());
        }
        let people: [PersonId; 3] = ids.try_into().unwrap();
        let group = groups::add(&mut tx, &"Lab".parse().unwrap(), NOW).await.unwrap();
        let other = groups::add(&mut tx, &"Other lab".parse().unwrap(), NOW).await.unwrap();
        for (group, person, role) in [
            (group, people[0], GroupRole::Pi),
            (group, people[1], GroupRole::Member),
            (other, people[2], GroupRole::Pi),
        ] {
            groups::set_member(&mut tx, group, person, role, NOW).await.unwrap();
        }
        let report = reports::add(&mut tx, group, people[0], "March", "{}", NOW).await.unwrap();
        let (title, host) = ("Harbour".parse().unwrap(), "harbour.example".parse().unwrap());
        let details = ClusterSettings { title: &title, host: &host, port: 22, site: "" };
        let cluster = store::clusters::add(&mut tx, &"harbour".parse().unwrap(), &details, NOW).await.unwrap();
        let new = NewDashboardRow {
            person: people[1],
            cluster,
            kind: "tensorboard",
            title: "Curves",
            places: &[],
            minutes: 60,
            account: "",
            form: "x",
        };
        let dashboard = GuestLinkTarget::Dashboard(dashboards::add(&mut tx, &new, NOW).await.unwrap());
        store::commit(tx).await.unwrap();
        let clock = Clock::manual(NOW);
        let vault = Vault::new(MasterKey::generate().unwrap());
        let auth = AuthService::new(store, vault, clock.clone(), SessionSettings::default());
        Self { auth, clock, group, report, dashboard, people, _dir: dir }
    }

    fn report(&self) -> GuestLinkTarget {
        GuestLinkTarget::Report(self.group, self.report)
    }

    fn actor(&self, person: usize) -> Actor {
        Actor { id: Some(self.people[person]), name: String::new(), address: String::new() }
    }

    async fn create(
        &self,
        person: usize,
        target: GuestLinkTarget,
        passphrase: &str,
    ) -> Result<SecretToken, CreateGuestLinkError> {
        let request = GuestLinkRequest { label: "Ada".into(), days: 7, passphrase: passphrase.to_owned().into() };
        self.auth.create_guest_link(&self.actor(person), target, &request).await
    }

    /// Shares a folder of max's.
    async fn share(&self, person: usize, kind: SharedPathKind) -> Result<SecretToken, CreateGuestLinkError> {
        let request = GuestLinkRequest { label: "Ada".into(), days: 7, passphrase: String::new().into() };
        let new = NewSharedPath {
            person: self.people[1],
            cluster: ClusterId(1),
            path: "/scratch/max/runs",
            title: "runs",
            kind,
            max_bytes: 0,
            max_files: 0,
        };
        self.auth.share_path(&self.actor(person), &new, &request).await
    }

    async fn viewer(&self, person: usize) -> Viewer {
        let mut db = self.auth.store.read().await.unwrap();
        self.auth.viewer(&mut db, self.people[person]).await.unwrap().unwrap()
    }

    async fn list(&self, target: GuestLinkTarget) -> Vec<GuestLink> {
        guest_links::list(&mut self.auth.store.read().await.unwrap(), target, NOW).await.unwrap()
    }

    async fn open(
        &self,
        kind: GuestLinkTargetKind,
        token: &SecretToken,
    ) -> Result<NewViewerAccess, OpenGuestLinkError> {
        self.auth.open_guest_link(kind, token.as_str(), &VISITOR).await.map(|(_, session)| session)
    }

    async fn check(
        &self,
        kind: GuestLinkTargetKind,
        session: &NewViewerAccess,
    ) -> Result<GuestBrowserAccess, GuestAccessError> {
        self.auth.check_guest_access(kind, &session.access_key, session.cookie.as_str()).await
    }
}

#[tokio::test]
async fn only_whom_it_belongs_to_creates_and_lists_links() {
    let lab = Lab::new().await;
    for (target, allowed) in [(lab.dashboard, 1), (lab.report(), 0)] {
        for person in 0..3 {
            let created = lab.create(person, target, "").await;
            let viewer = lab.auth.viewer(&mut lab.auth.store.read().await.unwrap(), lab.people[person]).await;
            let listed = lab.auth.list_guest_links(&viewer.unwrap().unwrap(), target).await;
            if person == allowed {
                assert_eq!((created.is_ok(), listed.unwrap().len()), (true, 1));
            } else {
                assert!(matches!(created, Err(CreateGuestLinkError::Auth(AuthError::Denied))), "{target:?}");
                assert!(matches!(listed, Err(AuthError::Denied)), "{target:?}");
            }
        }
    }
    let elsewhere = GuestLinkTarget::Report(GroupId(2), lab.report);
    let created = lab.create(2, elsewhere, "").await;
    assert!(matches!(created, Err(CreateGuestLinkError::Auth(AuthError::NotFound))));
}

#[tokio::test]
async fn a_link_opens_its_own_kind_until_it_ends() {
    let lab = Lab::new().await;
    for (target, person, other) in
        [(lab.dashboard, 1, GuestLinkTargetKind::Report), (lab.report(), 0, GuestLinkTargetKind::Dashboard)]
    {
        let token = lab.create(person, target, "three old boats").await.unwrap();
        assert!(matches!(lab.open(other, &token).await, Err(OpenGuestLinkError::Unknown)));
        let session = lab.open(target.kind(), &token).await.unwrap();
        assert!(matches!(lab.check(other, &session).await, Err(GuestAccessError::Closed)));
        let wrong_cookie = lab.auth.check_guest_access(target.kind(), &session.access_key, "x").await;
        assert!(matches!(wrong_cookie, Err(GuestAccessError::Closed)));
        let Err(GuestAccessError::Locked(access)) = lab.check(target.kind(), &session).await else {
            panic!("a passphrase is missing");
        };
        assert!(!lab.auth.unlock_guest_access(&access, &"new boats".into(), &VISITOR).await.unwrap());
        assert_eq!(lab.list(target).await[0].opened, 0, "counted once unlocked");
        assert!(lab.auth.unlock_guest_access(&access, &"three old boats".into(), &VISITOR).await.unwrap());
        assert_eq!(lab.check(target.kind(), &session).await.unwrap().link.target, target);
        assert_eq!(lab.list(target).await[0].opened, 1);
    }
    let token = lab.create(1, lab.dashboard, "").await.unwrap();
    let session = lab.open(GuestLinkTargetKind::Dashboard, &token).await.unwrap();
    assert!(lab.check(GuestLinkTargetKind::Dashboard, &session).await.is_ok());
    lab.clock.advance(7 * SECONDS_PER_DAY);
    assert!(matches!(lab.check(GuestLinkTargetKind::Dashboard, &session).await, Err(GuestAccessError::Closed)));
    assert!(matches!(lab.open(GuestLinkTargetKind::Dashboard, &token).await, Err(OpenGuestLinkError::Expired(_))));
}

#[tokio::test]
async fn a_link_is_revoked_by_its_owner_or_a_pi_of_theirs() {
    let lab = Lab::new().await;
    for (target, person, allowed) in [(lab.dashboard, 1, [true, true, false]), (lab.report(), 0, [true, false, false])]
    {
        for (revoker, is_allowed) in allowed.into_iter().enumerate() {
            let token = lab.create(person, target, "").await.unwrap();
            let session = lab.open(target.kind(), &token).await.unwrap();
            let id = lab.list(target).await[0].id;
            let unexpected = lab.auth.revoke_guest_link(&lab.actor(revoker), id, |_| false).await;
            assert!(matches!(unexpected, Err(AuthError::NotFound)));
            let revoked = lab.auth.revoke_guest_link(&lab.actor(revoker), id, |found| found == target).await;
            assert_eq!(revoked.is_ok(), is_allowed, "{target:?} by {revoker}");
            assert_eq!(lab.check(target.kind(), &session).await.is_err(), is_allowed);
            let is_gone = matches!(lab.open(target.kind(), &token).await, Err(OpenGuestLinkError::Revoked));
            assert_eq!(is_gone, is_allowed);
        }
    }
}

/// Someone who is disabled or no longer leads the group shares nothing; what is deleted takes its links along.
#[tokio::test]
async fn links_end_with_the_rights_of_their_makers_and_with_what_they_show() {
    let lab = Lab::new().await;
    let (of_dashboard, of_report) =
        (lab.create(1, lab.dashboard, "").await.unwrap(), lab.create(0, lab.report(), "").await.unwrap());
    let session = lab.open(GuestLinkTargetKind::Report, &of_report).await.unwrap();
    let mut tx = lab.auth.store.write().await.unwrap();
    people::set_disabled(&mut tx, lab.people[1], Some(NOW)).await.unwrap();
    groups::set_member(&mut tx, lab.group, lab.people[0], GroupRole::Member, NOW).await.unwrap();
    store::commit(tx).await.unwrap();
    assert!(matches!(lab.open(GuestLinkTargetKind::Dashboard, &of_dashboard).await, Err(OpenGuestLinkError::Unknown)));
    assert!(matches!(lab.open(GuestLinkTargetKind::Report, &of_report).await, Err(OpenGuestLinkError::Unknown)));
    assert!(matches!(lab.check(GuestLinkTargetKind::Report, &session).await, Err(GuestAccessError::Closed)));
    assert!(lab.list(lab.report()).await[0].is_paused, "it may work again");

    let GuestLinkTarget::Dashboard(id) = lab.dashboard else { panic!("a dashboard") };
    let mut tx = lab.auth.store.write().await.unwrap();
    dashboards::remove(&mut tx, id, NOW).await.unwrap();
    reports::remove(&mut tx, lab.group, lab.report, NOW).await.unwrap();
    assert_eq!(guest_links::count_open(&mut tx, lab.dashboard, NOW).await.unwrap(), 0);
    assert!(guest_links::find_access(&mut tx, &session.access_key).await.unwrap().is_none());
    reports::delete_removed(&mut tx, NOW.plus(1)).await.unwrap();
    assert_eq!(guest_links::count_open(&mut tx, lab.report(), NOW).await.unwrap(), 0);
}

#[tokio::test]
async fn files_are_shared_by_their_owner_and_only_their_own_kind_opens() {
    let lab = Lab::new().await;
    for stranger in [0, 2] {
        let shared = lab.share(stranger, SharedPathKind::Folder).await;
        assert!(matches!(shared, Err(CreateGuestLinkError::Auth(AuthError::Denied))));
    }
    assert!(lab.auth.list_file_links(&lab.viewer(1).await).await.unwrap().is_empty(), "nothing is left of what failed");
    let token = lab.share(1, SharedPathKind::Folder).await.unwrap();
    let drop_box = lab.share(1, SharedPathKind::DropBox).await.unwrap();
    for kind in [GuestLinkTargetKind::Dashboard, GuestLinkTargetKind::Report, GuestLinkTargetKind::DropBox] {
        assert!(matches!(lab.open(kind, &token).await, Err(OpenGuestLinkError::Unknown)), "{kind:?}");
    }
    assert!(matches!(lab.open(GuestLinkTargetKind::Files, &drop_box).await, Err(OpenGuestLinkError::Unknown)));
    let session = lab.open(GuestLinkTargetKind::Files, &token).await.unwrap();
    let check = async |kind| lab.auth.check_shared_path(kind, &session.access_key, session.cookie.as_str()).await;
    let (access, shared) = check(GuestLinkTargetKind::Files).await.unwrap();
    assert_eq!(
        (shared.path.as_str(), shared.kind, access.link.opened),
        ("/scratch/max/runs", SharedPathKind::Folder, 1)
    );
    assert!(matches!(check(GuestLinkTargetKind::DropBox).await, Err(GuestAccessError::Closed)));

    let links = lab.auth.list_file_links(&lab.viewer(1).await).await.unwrap();
    assert_eq!(links.len(), 2);
    assert!(
        lab.auth.list_file_links(&lab.viewer(0).await).await.unwrap().is_empty(),
        "they are listed for their owner"
    );
    assert_eq!(lab.auth.list_overseen_links(&lab.viewer(0).await).await.unwrap().len(), 2, "a PI oversees them");
    assert!(lab.auth.list_overseen_links(&lab.viewer(2).await).await.unwrap().is_empty());
    let id = access.link.id;
    assert!(matches!(lab.auth.revoke_guest_link(&lab.actor(2), id, |_| true).await, Err(AuthError::Denied)));
    assert!(lab.auth.is_link_usable(id).await.unwrap());
    lab.auth.revoke_guest_link(&lab.actor(0), id, GuestLinkTarget::is_to_files).await.unwrap();
    assert!(!lab.auth.is_link_usable(id).await.unwrap());
    assert!(matches!(check(GuestLinkTargetKind::Files).await, Err(GuestAccessError::Closed)));

    // Long after they have ended, links go, and then what they led to.
    lab.clock.advance(98 * SECONDS_PER_DAY);
    let mut tx = lab.auth.store.write().await.unwrap();
    guest_links::sweep(&mut tx, lab.clock.now()).await.unwrap();
    assert!(store::shared_paths::list(&mut tx, lab.people[1]).await.unwrap().is_empty());
}

#[tokio::test]
async fn one_person_has_only_so_many_links_to_files() {
    let lab = Lab::new().await;
    for _ in 0..MAX_OPEN_LINKS {
        lab.share(1, SharedPathKind::File).await.unwrap();
    }
    assert!(matches!(lab.share(1, SharedPathKind::Folder).await, Err(CreateGuestLinkError::TooMany)));
    lab.clock.advance(7 * SECONDS_PER_DAY);
    assert!(lab.share(1, SharedPathKind::Folder).await.is_ok(), "ended ones don't count");
}
