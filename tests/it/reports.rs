//! Reports of groups: who may make them, that a frozen one stays as it is, and links for guests.

use portolan::clock::Day;
use portolan::cluster::discovered_facts::SubmitAccount;
use portolan::cluster::{ClusterAccountId, DiscoveredFacts};
use portolan::domain::GroupId;
use portolan::store;
use portolan::store::allocations::NewAllocation;
use portolan::store::guest_links::{self, GuestLinkTarget, NewGuestLink};
use portolan::store::usage::{UsageDayReadRow, UsageSourceOwner};
use portolan::usage::daily_totals::DayUsageBreakdown;
use portolan::usage::{UsageTotals, save_daily_totals};
use reqwest::Method;

use crate::support::app::START;
use crate::support::client::send;
use crate::support::server::site_at;
use crate::support::{Client, Page, TestApp};

/// A host key, so that there can be a cluster; nobody connects to it.
const HOST_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINfWrr1i597zvwGC8fHEx8KXa4aGkFm6BJk/3bOELP8w";
/// Markup in everything that others can name.
pub const EVIL: &str = "<b id=evil>\"'&</b>";
pub const ACCOUNT: &str = "def-lab";

/// A lab whose PI has read what it used; its member, another lab's PI.
pub struct Lab {
    pub portal: TestApp,
    pub admin: Client,
    pub pi: Client,
    pub member: Client,
    pub outsider: Client,
    pub group: i64,
    pub other: i64,
    pub reader: ClusterAccountId,
}

/// Some jobs.
pub fn sums(hours: u64, jobs: u64, failed: u64) -> UsageTotals {
    let core_s = hours * 3600;
    UsageTotals { core_s, jobs, failed, done: jobs - failed, lost_core_s: failed * 60, ..UsageTotals::default() }
}

impl Lab {
    pub async fn new() -> Self {
        let (portal, admin) = TestApp::with_admin().await;
        let lab = portal.group(&admin, "Smith Lab").await;
        let other = portal.group(&admin, "Jones Lab").await;
        let pi = portal.join(&portal.invite(&admin, lab, "pi").await, "pia").await;
        let member = portal.join(&portal.invite(&admin, lab, "member").await, "max").await;
        let outsider = portal.join(&portal.invite(&admin, other, "pi").await, "otto").await;
        portal.add_pinned(&site_at("key", 9), &[("login".to_owned(), HOST_KEY.to_owned())]).await;
        pi.name_user("key", "pia").await;
        let key = portal.connection_key("pia", "key").await;
        let account = SubmitAccount { name: ACCOUNT.to_owned(), ..SubmitAccount::default() };
        let learnt =
            DiscoveredFacts { user: Some("pia".into()), accounts: vec![account], ..DiscoveredFacts::default() };
        let learnt = serde_json::to_string(&learnt).unwrap();
        let mut tx = portal.app.store.write().await.unwrap();
        store::connections::save_discovered(&mut tx, key, &learnt, START).await.unwrap();
        store::commit(tx).await.unwrap();
        let reader = ClusterAccountId { person: key.person, cluster: key.cluster };
        let world = Self { portal, admin, pi, member, outsider, group: lab, other, reader };
        world.set_accounts(&[ACCOUNT.to_owned()]).await;
        world
    }

    pub async fn set_accounts(&self, accounts: &[String]) {
        let mut tx = self.portal.app.store.write().await.unwrap();
        let group = GroupId(self.group);
        store::allocations::set_accounts(&mut tx, group, self.reader.cluster, accounts).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    /// Writes what was read of a day, `back` days ago. Before anyone has looked: what is known stays in memory.
    pub async fn put_day(&self, back: i64, rolls: &[(&str, &str, UsageTotals)]) {
        let (owner, cluster) = (UsageSourceOwner::Group(GroupId(self.group)), self.reader.cluster);
        let mut tx = self.portal.app.store.write().await.unwrap();
        store::usage::open_source(&mut tx, owner, cluster, ACCOUNT, START).await.unwrap();
        let books = store::usage::list_sources(&mut tx, owner, cluster).await.unwrap();
        let read =
            UsageDayReadRow { day: Day::from_time(START).plus(-back), read_at: START, is_final: true, is_cut: false };
        let roll =
            |(user, kind, sums): &(&str, &str, UsageTotals)| ((*user).to_owned(), (*kind).to_owned(), sums.clone());
        let sheet = DayUsageBreakdown { rows: rolls.iter().map(roll).collect(), jobs: Vec::new() };
        save_daily_totals(&mut tx, &books[0], read, &sheet).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    /// Grants core hours to the account, for this month and the next.
    pub async fn grant(&self, amount: f64) {
        let month = Day::from_time(START).month();
        let new = NewAllocation {
            group: GroupId(self.group),
            cluster: self.reader.cluster,
            account: ACCOUNT.to_owned(),
            unit: "core-hours",
            amount,
            begins: month.first(),
            ends: month.next().last(),
        };
        let mut tx = self.portal.app.store.write().await.unwrap();
        store::allocations::add(&mut tx, &new, START).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    async fn with_use() -> Self {
        let world = Self::new().await;
        for back in 1..10 {
            let rolls = [("pia", "train", sums(7, 3, 0)), (EVIL, EVIL, sums(2, 4, 2))];
            world.put_day(back, &rolls).await;
        }
        world.grant(100.0).await;
        world
    }

    /// Freezes this month and gives the path of the report.
    async fn freeze(&self) -> String {
        let path = format!("/groups/{}/reports", self.group);
        let answer = self.pi.post(&path, &[("month", "2026-11")]).await;
        assert_eq!(answer.status, 303, "{}", answer.text());
        answer.location().to_owned()
    }

    /// Makes a link to a report and gives its path on the other origin.
    async fn link(&self, report: &str, passphrase: &str) -> String {
        self.link_of(&self.pi, report, passphrase).await
    }

    async fn link_of(&self, maker: &Client, report: &str, passphrase: &str) -> String {
        let form = [("label", EVIL), ("days", "7"), ("passphrase", passphrase)];
        let page = maker.post_and_follow(&format!("{report}/guest-links"), &form).await;
        assert_eq!(page.status, 200, "{}", page.text());
        let link = page.select_text(".alert code");
        link.strip_prefix(&self.portal.dashboards_url).expect("the dashboards' origin").to_owned()
    }

    fn guest(&self) -> Client {
        Client::new(&self.portal.dashboards_url)
    }
}

fn is_clean(page: &Page) {
    assert!(!page.text().contains("<b id=evil>"), "{}", page.text());
    assert!(page.select_all("#evil").is_empty());
}

#[tokio::test]
async fn only_pis_see_and_make_reports() {
    let world = Lab::with_use().await;
    let report = world.freeze().await;
    let (lab, other) = (world.group, world.other);
    let gets = [format!("/groups/{lab}/report"), report.clone(), format!("/groups/{lab}/alerts")];
    for path in &gets {
        for (who, client) in [("member", &world.member), ("outsider", &world.outsider), ("admin", &world.admin)] {
            assert_eq!(client.get(path).await.status, 403, "{who} {path}");
        }
        assert_eq!(world.pi.get(path).await.status, 200, "{path}");
    }
    let number = report.rsplit('/').next().unwrap();
    let elsewhere = format!("/groups/{other}/reports/{number}");
    assert_eq!(world.outsider.get(&elsewhere).await.status, 404, "another group's report");
    assert_eq!(world.outsider.post(&format!("{elsewhere}/remove"), &[]).await.status, 404);
    let form = [("label", "x"), ("days", "7")];
    assert_eq!(world.outsider.post(&format!("{elsewhere}/guest-links"), &form).await.status, 404);
    world.link(&report, "").await;
    let revoke = format!("{elsewhere}/guest-links/1/revoke");
    assert_eq!(world.outsider.post(&revoke, &[]).await.status, 404);
    for month in ["2026-13", "x", "1999-12", "2027-06", "2026-11-01"] {
        let path = format!("/groups/{lab}/report?month={month}");
        assert_eq!(world.pi.get(&path).await.status, 404, "{month}");
        let freeze = world.pi.post(&format!("/groups/{lab}/reports"), &[("month", month)]).await;
        assert_eq!(freeze.status, 400, "{month}");
    }
    let pia = world.portal.person_id("pia").await;
    let role = format!("/groups/{lab}/people/{pia}/role");
    let max = world.portal.person_id("max").await.to_string();
    assert_eq!(world.admin.post(&role, &[("role", "member"), ("successor", &max)]).await.status, 303);
    for path in &gets {
        assert_eq!(world.pi.get(path).await.status, 403, "a former PI: {path}");
    }
    assert_eq!(world.pi.post(&format!("{report}/guest-links"), &form).await.status, 403);
    assert_eq!(world.pi.post(&format!("{report}/guest-links/1/revoke"), &[]).await.status, 403);
}

#[tokio::test]
async fn any_days_up_to_a_year_make_a_report_in_cores_or_gpus() {
    let world = Lab::new().await;
    for back in 1..20 {
        let trained = UsageTotals { gpu_s: 3600, node_failed: 1, jobs: 4, ..sums(7, 3, 0) };
        world.put_day(back, &[("pia", "train", trained), (EVIL, EVIL, sums(2, 4, 2))]).await;
    }
    let today = Day::from_time(START);
    let days = |first: i64, last: i64| format!("month=days&first={}&last={}", today.plus(-first), today.plus(-last));
    let path = |query: &str| format!("/groups/{}/report?{query}", world.group);
    let page = world.pi.get(&path(&format!("{}&show=gpus", days(8, 1)))).await;
    assert_eq!(page.status, 200, "{}", page.text());
    is_clean(&page);
    assert_eq!(page.select_text(".report-facts dd"), "72", "eight days of nine hours");
    assert_eq!(page.select_text("#days-title"), "Daily usage, in GPU hours");
    let compared = page.select_text(".report-compared");
    assert!(
        compared.starts_with("Compared with the 8 days before") && compared.contains("core hours unchanged"),
        "{compared}"
    );
    let outcomes = page.select_all(".report-facts dd .report-small");
    assert!(outcomes.iter().any(|one| *one == "16 failed, 8 lost to node failures"), "{outcomes:?}");
    // Sorted by any column; the link keeps the days.
    let first_member = |page: &Page| page.select_text("[aria-labelledby=people-title] tbody th");
    assert_eq!(first_member(&page), "pia");
    let link = page.attribute("[aria-labelledby=people-title] thead a[href*='people.name']", "href");
    let sorted = world.pi.get(&path(link.trim_start_matches('?'))).await;
    assert!(first_member(&sorted).starts_with("<b"), "{}", first_member(&sorted));
    assert_eq!(sorted.select_text(".report-facts dd"), "72");
    // A year, by week; what was not read is said.
    let year = world.pi.get(&path(&days(365, 1))).await;
    assert_eq!(year.select_text("#days-title"), "Weekly usage, in core hours");
    assert!(year.select_text(".report-compared").starts_with("No comparison"), "{}", year.text());
    let form = [("month", "days"), ("first", "2026-11-01"), ("last", "2026-11-10"), ("show", "gpus")];
    let frozen = world.pi.post(&format!("/groups/{}/reports", world.group), &form).await;
    assert_eq!(frozen.status, 303, "{}", frozen.text());
    let frozen = world.pi.get(frozen.location()).await;
    assert!(frozen.select_text(".report-sub").contains("1 Nov 2026 to 10 Nov 2026"));
    let back = frozen.attribute(".crumbs a[href*='month=days']", "href");
    assert_eq!(world.pi.get(&back).await.status, 200, "{back}");
    for query in [days(367, 1), days(1, 5), "month=days".into(), "month=days&first=x&last=2026-11-01".into()] {
        let page = world.pi.get(&path(&query)).await;
        assert_eq!(page.status, 422, "{query}");
        assert!(page.select_text(".alert").contains("at most 366 days"), "{}", page.text());
        assert_eq!(page.attribute("#report-month option[selected]", "value"), "days", "{query}");
    }
}

#[tokio::test]
async fn frozen_report_never_changes() {
    let world = Lab::with_use().await;
    let live = format!("/groups/{}/report?month=2026-11", world.group);
    let page = world.pi.get(&live).await;
    is_clean(&page);
    assert_eq!(page.select_text(".report-facts dd"), "81", "{}", page.text());
    assert!(page.text().contains("81%"), "of the allocation");
    assert_eq!(page.attribute(".report-table progress", "class"), "is-warning", "as on the usage page");
    assert!(page.text().contains("&#60;b id=evil&#62;") && !page.text().contains(" style="));
    assert!(page.text().contains("over; figures run up to"));
    let report = world.freeze().await;
    let before = world.pi.get(&report).await.select_text(".report");
    world.set_accounts(&[]).await;
    let rename = format!("/groups/{}/name", world.group);
    assert_eq!(world.admin.post(&rename, &[("name", "New name")]).await.status, 303);
    let page = world.pi.get(&live).await;
    assert_eq!(page.select_text(".report-facts dd"), "0", "the live one changes");
    let frozen = world.pi.get(&report).await;
    assert_eq!(frozen.select_text(".report"), before, "the frozen one does not");
    is_clean(&frozen);
    assert!(page.text().contains(&report), "it is listed");
    let removed = world.pi.post(&format!("{report}/remove"), &[]).await;
    assert_eq!((removed.status, world.pi.get(&report).await.status), (303, 404));
    let log = world.admin.get("/activity").await;
    for words in ["Froze a group report", "Deleted a group report"] {
        assert!(log.text().contains(words), "{words}");
    }
}

#[tokio::test]
async fn guest_sees_one_report_until_the_link_is_revoked() {
    let world = Lab::with_use().await;
    let report = world.freeze().await;
    let link = world.link(&report, "").await;
    assert!(!world.pi.get(&report).await.text().contains(&link), "shown once");
    let guest = world.guest();
    let entered = guest.get(&link).await;
    assert_eq!(entered.status, 303, "{}", entered.text());
    let place = entered.location().to_owned();
    assert!(place.starts_with("/report/"), "{place}");
    let cookie = entered.header("set-cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains(&format!("Path={place}")), "{cookie}");
    assert_eq!(entered.header("referrer-policy"), "no-referrer");
    let page = guest.get(&place).await;
    assert_eq!(page.status, 200, "{}", page.text());
    is_clean(&page);
    assert_eq!(page.select_text(".report-facts dd"), "81");
    assert!(page.text().contains("Smith Lab") && page.text().contains("Shared by"));
    assert!(!page.text().contains(&link) && !page.text().contains("/groups/"));
    assert_eq!(world.guest().get(&place).await.status, 404, "another browser");
    world.guest().get(&link).await;
    let own = world.pi.get(&report).await;
    is_clean(&own);
    assert!(own.text().contains("2 times"), "{}", own.select_text("#share"));
    assert_eq!(world.pi.post(&format!("{report}/guest-links/1/revoke"), &[]).await.status, 303);
    assert_eq!(guest.get(&place).await.status, 404);
    let back = world.guest().get(&link).await;
    assert_eq!(back.status, 410);
    assert!(back.text().contains("revoked"));
    let log = world.admin.get("/activity").await;
    for words in
        ["Created a guest link to a report", "Revoked a guest link to a report", "Opened a guest link to a report"]
    {
        assert!(log.text().contains(words), "{words}");
    }
}

#[tokio::test]
async fn guest_link_asks_for_its_passphrase_and_expires() {
    let world = Lab::with_use().await;
    let report = world.freeze().await;
    let bad = [("label", "x"), ("days", "91"), ("passphrase", "")];
    let page = world.pi.post(&format!("{report}/guest-links"), &bad).await;
    assert_eq!(page.status, 422);
    assert!(page.text().contains("a number of days from 1 to 90"));
    let link = world.link(&report, "seven seas").await;
    let guest = world.guest();
    let place = guest.get(&link).await.location().to_owned();
    let locked = guest.get(&place).await;
    assert!(locked.text().contains("This report is protected by a passphrase"), "{}", locked.text());
    assert!(locked.select_all(".report").is_empty());
    // The link may have come into other hands: neither the group nor the month is named.
    assert!(!locked.text().contains("Smith Lab") && !locked.text().contains("2026"));
    let unlock = format!("{place}unlock");
    assert_eq!(guest.post(&unlock, &[("passphrase", "wrong one")]).await.status, 403);
    assert_eq!(guest.post(&unlock, &[("passphrase", "seven seas")]).await.status, 303);
    assert_eq!(guest.get(&place).await.select_text(".report-facts dd"), "81");
    let other = world.guest();
    let place_of_other = other.get(&link).await.location().to_owned();
    let mut last = 0;
    for _ in 0..10 {
        let tried = [("passphrase", "wrong one")];
        last = other.post(&format!("{place_of_other}unlock"), &tried).await.status;
    }
    assert_eq!(last, 429, "guesses are counted");
    world.portal.clock.advance(7 * 86_400);
    assert_eq!(guest.get(&place).await.status, 404);
    let ended = world.guest().get(&link).await;
    assert_eq!(ended.status, 410);
    assert!(ended.text().contains("This link has expired"));
}

#[tokio::test]
async fn guesses_are_limited_and_deleted_reports_are_not_found() {
    let world = Lab::with_use().await;
    let report = world.freeze().await;
    let link = world.link(&report, "").await;
    let guest = world.guest();
    let place = guest.get(&link).await.location().to_owned();
    assert_eq!(world.pi.post(&format!("{report}/remove"), &[]).await.status, 303);
    assert_eq!(guest.get(&place).await.status, 404);
    assert_eq!(guest.get(&link).await.status, 404, "as if it had never been");
    let mut last = 0;
    for number in 0..40 {
        last = guest.get(&format!("/r/{number}")).await.status;
    }
    assert_eq!(last, 429);
}

#[tokio::test]
async fn report_cookies_open_no_dashboard_and_vice_versa() {
    let world = Lab::with_use().await;
    let report = world.freeze().await;
    let link = world.link(&report, "").await;
    let token = portolan::auth::token::SecretToken::generate().unwrap();
    let mut tx = world.portal.app.store.write().await.unwrap();
    let board: i64 = sqlx::query_scalar(
        "INSERT INTO dashboards (person_id, cluster_id, kind, title, places, minutes, form, created_at)
         VALUES ($1, $2, 'tensorboard', 'Curves', '[]', 60, 'x', $3) RETURNING id",
    )
    .bind(world.reader.person.0)
    .bind(world.reader.cluster.0)
    .bind(START.0)
    .fetch_one(&mut *tx)
    .await
    .unwrap();
    let new = NewGuestLink {
        target: GuestLinkTarget::Dashboard(portolan::domain::DashboardId(board)),
        created_by: world.reader.person,
        token_hash: token.hash_token(),
        label: "x",
        passphrase: "",
        expires_at: START.plus(86_400),
    };
    guest_links::add(&mut tx, &new, START).await.unwrap();
    store::commit(tx).await.unwrap();
    let inside = |place: &str| place.split('/').nth(2).unwrap().to_owned();
    let (guest, viewer) = (world.guest(), world.guest());
    let of_report = inside(guest.get(&link).await.location());
    let of_board = inside(viewer.get(&format!("/s/{}", token.as_str())).await.location());
    assert_eq!(viewer.get(&format!("/b/{of_board}/")).await.status, 200);
    let report_cookie = guest.cookie("portolan_report").unwrap_or_default();
    let dashboard_cookie = viewer.cookie("portolan_board").unwrap_or_default();
    for (path, value) in [
        (format!("/b/{of_report}/"), &report_cookie),
        (format!("/b/{of_board}/"), &report_cookie),
        (format!("/report/{of_board}/"), &dashboard_cookie),
        (format!("/report/{of_report}/"), &dashboard_cookie),
    ] {
        let cookies = format!("portolan_board={value}; portolan_report={value}");
        let request = world.guest().request(Method::GET, &path).header("cookie", cookies);
        assert_eq!(send(request).await.status, 404, "{path}");
    }
    assert_eq!(viewer.get(&format!("/r/{}", token.as_str())).await.status, 404);
    assert_eq!(viewer.get(&link.replace("/r/", "/s/")).await.status, 404);
}

/// Whoever froze the report: a link is its maker's, and ends with their lead.
#[tokio::test]
async fn link_ends_when_its_creator_is_no_longer_a_pi() {
    let world = Lab::with_use().await;
    let report = world.freeze().await;
    let link = world.link(&report, "").await;
    let max = world.portal.person_id("max").await;
    let pia = world.portal.person_id("pia").await;
    let set = async |person: i64, role: &str| {
        let path = format!("/groups/{}/people/{person}/role", world.group);
        assert_eq!(world.admin.post(&path, &[("role", role)]).await.status, 303);
    };
    set(max, "pi").await;
    let theirs = world.link_of(&world.member, &report, "").await;
    let (guest, other) = (world.guest(), world.guest());
    let place = guest.get(&link).await.location().to_owned();
    let other_place = other.get(&theirs).await.location().to_owned();
    assert!(other.get(&other_place).await.text().contains("max"), "who shares it");
    let listed = world.pi.get(&report).await;
    assert!(listed.select_all(".row-detail").iter().any(|one| one.contains("by max")));

    let month = format!("/groups/{}/report?month=2026-11", world.group);
    assert!(world.pi.get(&month).await.text().contains("2 active guest links"));

    set(pia, "member").await;
    assert!(world.member.get(&month).await.text().contains("1 active guest link"));
    assert_eq!(guest.get(&place).await.status, 404);
    assert_eq!(world.guest().get(&link).await.status, 404);
    assert_eq!(other.get(&other_place).await.status, 200, "another's link to the same report");
    let listed = world.member.get(&report).await;
    assert!(listed.text().contains("its creator is no longer a PI of this group"));
    // It can be taken back before it works again.
    let all = listed.attributes("form[action$='/revoke']", "action");
    assert_eq!(all.len(), 2, "both");
    assert_eq!(world.member.post(&all[1], &[]).await.status, 303);
    set(pia, "pi").await;
    assert_eq!(guest.get(&place).await.status, 404);
    assert_eq!(world.guest().get(&link).await.status, 410);
    set(max, "member").await;
    assert_eq!(other.get(&other_place).await.status, 404);
}

/// However many were taken back, the one that works is listed, to be taken back as well.
#[tokio::test]
async fn active_link_is_listed_however_many_have_ended() {
    let world = Lab::with_use().await;
    let report = world.freeze().await;
    world.link(&report, "").await;
    let mut tx = world.portal.app.store.write().await.unwrap();
    sqlx::query(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250)
         INSERT INTO guest_links (report_id, token_hash, label, passphrase, created_at, expires_at, revoked_at, created_by)
         SELECT report_id, randomblob(32), label, passphrase, created_at, expires_at, created_at, created_by
         FROM guest_links, n",
    )
    .execute(&mut *tx)
    .await
    .unwrap();
    portolan::store::commit(tx).await.unwrap();
    let page = world.pi.get(&report).await;
    assert_eq!(page.attributes("form[action$='/revoke']", "action").len(), 1, "{}", page.text());
    assert!(!page.text().contains("No guest links yet"));
}
