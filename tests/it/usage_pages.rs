//! What a group used, in the portal: who sees which names, files whose sums are the page's, odd addresses, and what
//! those who lead a group can set.

mod browser;
mod clicks;
mod jobs;
mod settings;
mod sorting;
mod user_names;

use portolan::clock::{Day, UnixTime};
use portolan::domain::PersonId;
use portolan::store;
use portolan::store::allocations::{self, NewAllocation};
use portolan::store::usage::{self, UsageDayReadRow, UsageSource, UsageSourceOwner};
use portolan::usage::daily_totals::{DayUsageBreakdown, UsageRunDay};
use portolan::usage::{BreakdownSums, UsageJobOutcome, UsageTotals, save_daily_totals};

use crate::support::app::START;
use crate::support::{Client, Page, TestApp};

/// Markup in everything that a cluster can name.
const EVIL: &str = "<b id=evil>\"'&</b>";
/// The day on which the tests begin.
const TODAY: Day = Day(20_773);

/// A lab with figures, its people, and those who have no business there.
struct World {
    portal: TestApp,
    lab: i64,
    admin: Client,
    pi: Client,
    member: Client,
    other: Client,
}

async fn world() -> World {
    let (portal, admin) = TestApp::with_admin().await;
    let lab = portal.group(&admin, "Smith Lab").await;
    let jones = portal.group(&admin, "Jones Lab").await;
    let pi = portal.join(&portal.invite(&admin, lab, "pi").await, "pia").await;
    let member = portal.join(&portal.invite(&admin, lab, "member").await, "max").await;
    let other = portal.join(&portal.invite(&admin, jones, "pi").await, "otto").await;
    portal.give_cluster_account(&pi, "pia").await;
    portal.give_cluster_account(&member, "max").await;
    portal.give_cluster_account(&other, "otto").await;
    World { portal, lab, admin, pi, member, other }
}

/// What someone did on a day: name, sort, hours of 4 cores, how it ended.
type Did<'a> = (&'a str, &'a str, u64, UsageJobOutcome);

impl World {
    fn url(&self, rest: &str) -> String {
        format!("/groups/{}/{rest}", self.lab)
    }

    async fn choose(&self, accounts: &[&str]) {
        let shown = self.pi.get(&self.url("accounts")).await;
        let was = shown.attributes("input[name=was]", "value");
        let was = was.iter().map(|one| ("was", one.as_str()));
        let form: Vec<(&str, &str)> = accounts.iter().map(|one| ("account", *one)).chain(was).collect();
        let page = self.pi.post(&self.url("accounts"), &form).await;
        assert_eq!(page.status, 303, "{}", page.text());
    }

    /// Writes what the connection of a member who sees everybody's jobs would have told of a day.
    async fn put_day(&self, day: Day, did: &[Did<'_>]) {
        self.put_sheet(self.owner(), day, &sheet(day, did)).await;
    }

    fn owner(&self) -> UsageSourceOwner {
        UsageSourceOwner::Group(portolan::domain::GroupId(self.lab))
    }

    async fn put_sheet(&self, owner: UsageSourceOwner, day: Day, sheet: &DayUsageBreakdown) {
        let portal = &self.portal;
        let cluster = portal.cluster_id("key").await;
        let mut tx = portal.app.store.write().await.unwrap();
        let now = portal.clock.now();
        let id = usage::open_source(&mut tx, owner, cluster, "def-one", now).await.unwrap();
        let books = usage::list_sources(&mut tx, owner, cluster).await.unwrap();
        let book: UsageSource = books.into_iter().find(|book| book.id == id).unwrap();
        let read = UsageDayReadRow { day, read_at: now, is_final: true, is_cut: false };
        save_daily_totals(&mut tx, &book, read, sheet).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    /// Three months of figures, and an allocation.
    async fn fill(&self) {
        self.choose(&["key/def-one"]).await;
        for back in 0..95 {
            let day = TODAY.plus(-back);
            let hours = u64::try_from(back % 7).unwrap();
            let did = [
                ("pia", "train-#", 3, UsageJobOutcome::Done),
                ("max", "fit", 2 + hours, UsageJobOutcome::Done),
                ("max", EVIL, 1, UsageJobOutcome::Failed),
                (EVIL, "=cmd()", 1, UsageJobOutcome::OutOfMemory),
                ("gone", "fit", 1 + hours / 2, UsageJobOutcome::TimedOut),
            ];
            self.put_day(day, &did).await;
        }
        let new = NewAllocation {
            group: portolan::domain::GroupId(self.lab),
            cluster: self.portal.cluster_id("key").await,
            account: "def-one".into(),
            unit: "core-hours",
            amount: 20_000.0,
            begins: TODAY.plus(-60),
            ends: TODAY.plus(120),
        };
        let mut tx = self.portal.app.store.write().await.unwrap();
        allocations::add(&mut tx, &new, START).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    async fn seen(&self) -> Vec<String> {
        let mut db = self.portal.app.store.read().await.unwrap();
        let action = Some("usage.seen".to_owned());
        let filter =
            store::activity::ActivityFilter { action, limit: 100, ..store::activity::ActivityFilter::default() };
        let entries = store::activity::list(&mut db, &filter).await.unwrap();
        entries.into_iter().map(|entry| entry.detail).collect()
    }
}

/// A day's jobs, and their sums.
fn sheet(day: Day, did: &[Did<'_>]) -> DayUsageBreakdown {
    let mut sheet = DayUsageBreakdown::default();
    for (place, (user, kind, hours, outcome)) in did.iter().enumerate() {
        let sums = sums(*hours, *outcome);
        match sheet.rows.iter_mut().find(|(a, b, _)| a == user && b == kind) {
            Some((.., known)) => known.add(&sums),
            None => sheet.rows.push(((*user).to_owned(), (*kind).to_owned(), sums)),
        }
        let raw = u64::try_from(day.0).unwrap() * 100 + u64::try_from(place).unwrap();
        sheet.jobs.push(line(raw, day, (user, kind, *hours, *outcome)));
    }
    sheet
}

fn sums(hours: u64, outcome: UsageJobOutcome) -> UsageTotals {
    let seconds = hours * 3600;
    let lost = if outcome.is_lost() { seconds * 4 } else { 0 };
    let one = |is: bool| u64::from(is);
    let mut sums = UsageTotals {
        core_s: seconds * 4 + 7,
        gpu_s: seconds,
        jobs: 1,
        done: one(outcome == UsageJobOutcome::Done),
        failed: one(outcome == UsageJobOutcome::Failed),
        node_failed: one(outcome == UsageJobOutcome::NodeFailed),
        timed_out: one(outcome == UsageJobOutcome::TimedOut),
        missed_deadline: one(outcome == UsageJobOutcome::MissedDeadline),
        memory_out: one(outcome == UsageJobOutcome::OutOfMemory),
        held_core_s: seconds * 4,
        used_core_s: seconds * 3,
        held_mb_s: seconds * 4096,
        used_mb_s: seconds * 1024,
        lost_core_s: lost,
        spare_core_s: seconds,
        spare_mb_s: seconds * 2048,
        ..UsageTotals::default()
    };
    sums.add_gpus("v100", seconds);
    let whole = BreakdownSums { name: "gpu".into(), core_s: sums.core_s, gpu_s: seconds, jobs: 1 };
    sums.partitions.add(&whole);
    sums.qos.add(&BreakdownSums { name: "normal".into(), ..whole });
    sums.waits.record(90);
    sums
}

fn line(raw: u64, day: Day, (user, kind, hours, outcome): Did<'_>) -> UsageRunDay {
    UsageRunDay {
        raw,
        start: UnixTime(day.start().0 + 60),
        submitted: Some(day.start()),
        number: raw,
        task: None,
        user: user.to_owned(),
        kind: kind.to_owned(),
        outcome,
        seconds: hours * 3600,
        elapsed_s: hours * 3600,
        wait_s: 90,
        cores: 4,
        memory_mb: 4096,
        gpus: "v100:1".into(),
        partition: "gpu".into(),
        qos: "normal".into(),
        cpu_s: Some(hours * 3600 * 3),
        rss_mb: Some(1024),
    }
}

/// The sum of a column of a file.
fn sum(page: &Page, column: usize) -> f64 {
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.header("content-type").starts_with("text/csv"));
    let rows = page.text().lines().skip(1);
    rows.map(|row| row.trim_matches('"').split("\",\"").nth(column).unwrap().parse::<f64>().unwrap()).sum()
}

fn shown(page: &Page, place: usize) -> f64 {
    let html = scraper::Html::parse_document(page.text());
    let data = scraper::Selector::parse(".fact data").unwrap();
    let found = html.select(&data).nth(place);
    let value = found.unwrap_or_else(|| panic!("{}", page.select_text("main"))).attr("value").unwrap().to_owned();
    value.parse().unwrap()
}

#[tokio::test]
async fn pis_see_names_and_members_do_not() {
    let world = world().await;
    world.fill().await;
    let page = world.pi.get(&world.url("usage")).await;
    assert_eq!(page.status, 200, "{}", page.text());
    for words in ["max", "gone", "not linked to a group member", "train-#", "By member", "v100"] {
        assert!(page.text().contains(words), "{words}");
    }
    assert!(!page.text().contains("<b id"), "markup of names is not markup of the page");
    assert!(page.text().contains("&#60;b id") || page.text().contains("&lt;b id"));
    assert!(page.text().contains("If usage continues as in the last 8"));
    let part = world.pi.get(&world.url("usage/fragment")).await;
    assert!(part.text().contains("gone") && !part.text().contains("<html"));

    let page = world.member.get(&world.url("usage")).await;
    assert_eq!(page.status, 200, "{}", page.text());
    for words in ["You", "Everyone else", "fit", "View your jobs"] {
        assert!(page.text().contains(words), "{words}");
    }
    for file in ["usage", "usage/fragment", "usage/members.csv", "usage/kinds.csv", "usage/days.csv"] {
        let page = world.member.get(&world.url(file)).await;
        let text = page.text().to_lowercase();
        for name in ["pia", "gone", "train-#", "cmd()"] {
            assert!(!text.contains(name), "{file} tells {name} to a member");
        }
    }
    let all = shown(&world.pi.get(&world.url("usage")).await, 0);
    let same = shown(&world.member.get(&world.url("usage")).await, 0);
    assert!((all - same).abs() < 1e-3, "the group's totals are for everybody in it");
}

#[tokio::test]
async fn members_find_only_their_own_jobs() {
    let world = world().await;
    world.fill().await;
    let pia = world.portal.person_id("pia").await;
    let cluster = world.portal.cluster_id("key").await;
    for query in [
        String::new(),
        format!("member=p{pia}"),
        format!("member=u{cluster}-gone"),
        "member=&kind=train-%23".into(),
        "outcome=lost".into(),
    ] {
        for path in ["usage/jobs", "usage/jobs.csv"] {
            let page = world.member.get(&world.url(&format!("{path}?{query}"))).await;
            assert_eq!(page.status, 200, "{}", page.text());
            let text = page.text();
            assert!(!text.contains("gone") && !text.contains(">pia"), "{path}?{query}");
            let other = text.contains("<p class=\"cell-sub\" dir=\"auto\">train-#</p>");
            assert!(!other && !text.contains("\"train-#\""), "{path}?{query}");
        }
    }
    let own = world.member.get(&world.url("usage/jobs")).await;
    assert!(own.attribute("tbody a[href^='/jobs/key/']", "href").starts_with("/jobs/key/"));
    assert_eq!(own.select_text("h1"), "Your jobs in these figures");
    assert!(world.seen().await.is_empty(), "nobody's names were looked at");

    let gone = format!("usage/jobs?member=u{cluster}-gone&outcome=out-of-time&period=2026-10");
    let page = world.pi.get(&world.url(&gone)).await;
    assert!(page.text().contains("31 jobs"), "{}", page.text());
    assert!(page.select_text("main").contains("gone's jobs that timed out,"), "{}", page.text());
    assert_eq!(page.select_text("h1"), "Jobs in these figures");
    let max = world.portal.person_id("max").await;
    let path = world.url(&format!("usage/jobs?member=p{max}"));
    for _ in 0..3 {
        assert!(world.pi.get(&path).await.text().contains("</strong>'s jobs"));
        world.pi.get(&world.url("usage")).await;
    }
    // The same under the name on the cluster: it is known whose that is.
    let named = world.pi.get(&world.url(&format!("usage/jobs?member=u{cluster}-max"))).await;
    assert!(named.text().contains("</strong>'s jobs"), "{}", named.text());
    let own = world.pi.get(&world.url(&format!("usage/jobs?member=u{cluster}-pia"))).await;
    assert!(own.text().contains("Your jobs"), "{}", own.text());
    let mut seen = world.seen().await;
    seen.sort();
    assert_eq!(seen, ["", "jobs of gone", "jobs of max"], "once a day each");
    let told = world.member.get("/account/activity").await;
    assert!(told.text().contains("jobs of max"), "whose jobs they were can read it");
}

/// Jobs of two days, without a GPU, and one that never began: the list says what the figures count.
#[tokio::test]
async fn job_list_says_which_jobs_and_hours_it_counts() {
    let world = world().await;
    world.choose(&["key/def-one", "key/def-two"]).await;
    let failed = ("pia", "over-midnight", 2, UsageJobOutcome::Failed);
    let over = UsageRunDay { elapsed_s: 10 * 3600, gpus: String::new(), ..line(1, TODAY.plus(-1), failed) };
    let late = ("pia", "late", 0, UsageJobOutcome::MissedDeadline);
    let never = UsageRunDay { cores: 0, gpus: String::new(), ..line(3, TODAY, late) };
    let trained = line(2, TODAY, ("pia", "train", 3, UsageJobOutcome::Done));
    let rolls = [&over, &trained, &never].map(|one| {
        let sums = sums(one.seconds / 3600, one.outcome);
        (one.user.clone(), one.kind.clone(), sums)
    });
    let sheet = DayUsageBreakdown { rows: rolls.to_vec(), jobs: vec![over, trained, never] };
    world.put_sheet(world.owner(), TODAY, &sheet).await;

    let failures = world.pi.get(&world.url("usage/jobs?outcome=failed")).await;
    let said = failures.select_text("main");
    assert!(said.contains("8 core hours within these dates; 40 core hours over the jobs' whole run time"), "{said}");
    assert!(said.contains("The group's failed jobs,"), "{said}");
    let wasted = world.pi.get(&world.url("usage/jobs?outcome=lost")).await;
    assert!(wasted.select_text("main").contains("The group's unsuccessful jobs,"), "{}", wasted.text());
    let page = world.pi.get(&world.url("usage")).await;
    let with_gpus = page.attribute(".fact a[href*='with=gpus']", "href");
    let list = world.pi.get(&with_gpus).await;
    assert_eq!(list.select_all("tbody .use-name .cell-sub:nth-child(2)"), ["train"]);
    assert!(list.select_text("main").contains("The group's jobs with GPUs"));
    let all = world.pi.get(&world.url("usage/jobs?account=key/def-one&outcome=missed-deadline")).await;
    assert!(all.text().contains("charged to <span dir=\"auto\">def-one on Harbour key</span>"));
    assert_eq!(all.select_all("[data-label=Outcome]"), ["Missed deadline"]);
    let started = all.select_text("[data-label=Started]");
    assert!(started.starts_with("never") && started.contains("submitted"), "{started}");
    assert_eq!(all.attribute("[data-label=Started] time", "datetime"), TODAY.start().iso());
    assert_eq!(all.select_all("[data-label=Wait]"), ["–"]);
}

/// However many there are: the totals are those of all, each job is on one page, and the file has every one.
#[tokio::test]
async fn many_jobs_are_shown_in_pages() {
    let world = world().await;
    world.fill().await;
    let mut path = world.url("usage/jobs?period=90d");
    let mut numbers = Vec::new();
    let mut said = Vec::new();
    while !path.is_empty() {
        let page = world.pi.get(&path).await;
        assert!(page.text().contains("450 jobs, "), "{}", page.text());
        said.push(page.attribute("data", "value"));
        let rows = page.select_all("tbody .use-name .cell-title");
        assert!(rows.len() <= 50);
        numbers.extend(rows);
        path = page.attributes("a[rel=next]", "href").pop().unwrap_or_default();
    }
    assert_eq!((numbers.len(), said.len()), (450, 9));
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), 450, "each once");
    let csv = world.pi.get(&world.url("usage/jobs.csv?period=90d")).await;
    assert_eq!(csv.text().lines().count(), 1 + 450);
    assert!(csv.text().contains("\"Completed\"") && !csv.text().contains("\"done\""), "the page's words");
    let core_hours = format!("{:.4}", sum(&csv, 8));
    assert!(said.iter().all(|one| *one == core_hours), "{said:?} {core_hours}");
    let beyond = world.pi.get(&world.url("usage/jobs?period=90d&page=40")).await;
    assert_eq!(beyond.status, 303, "{}", beyond.text());
    for page in ["0", "-1", "x", "99999999999999999999999", "1"] {
        let page = world.pi.get(&world.url(&format!("usage/jobs?period=2026-10&page={page}"))).await;
        assert!([200, 303].contains(&page.status), "{}", page.text());
    }
}

#[tokio::test]
async fn downloaded_files_have_the_totals_of_the_page() {
    let world = world().await;
    world.fill().await;
    for who in [&world.pi, &world.member] {
        for query in [
            "",
            "period=90d",
            "period=2026-10",
            "period=year&by=month",
            "period=allocation",
            "period=days&first=2026-09-20&last=2026-11-05",
        ] {
            let page = who.get(&world.url(&format!("usage?{query}"))).await;
            let (cores, gpus, jobs) = (shown(&page, 0), shown(&page, 1), shown(&page, 2));
            assert!(cores > 100.0);
            for file in ["members", "kinds"] {
                let csv = who.get(&world.url(&format!("usage/{file}.csv?{query}"))).await;
                assert!((sum(&csv, 1) - cores).abs() < 0.01, "{file} {query}");
                assert!((sum(&csv, 2) - gpus).abs() < 0.01, "{file} {query}");
                assert!((sum(&csv, 5) - jobs).abs() < 1e-9, "{file} {query}");
            }
            let csv = who.get(&world.url(&format!("usage/days.csv?{query}"))).await;
            assert!((sum(&csv, 2) - cores).abs() < 0.01, "days {query}");
        }
    }
    let csv = world.pi.get(&world.url("usage/kinds.csv")).await;
    assert!(csv.text().contains("\"'=cmd()\""), "no formulas: {}", csv.text());
    let jobs = world.pi.get(&world.url("usage/jobs.csv?period=2026-10&kind=fit")).await;
    assert_eq!(jobs.text().lines().count(), 1 + 62);
}

#[tokio::test]
async fn strangers_see_nothing() {
    let world = world().await;
    world.fill().await;
    for path in [
        "usage",
        "usage/fragment",
        "usage/jobs",
        "usage/members.csv",
        "usage/kinds.csv",
        "usage/days.csv",
        "usage/jobs.csv",
        "accounts",
    ] {
        for who in [&world.other, &world.admin] {
            let page = who.get(&world.url(path)).await;
            assert_eq!(page.status, 403, "{path}");
            assert!(!page.text().contains("def-one"));
        }
    }
    assert_eq!(world.member.get(&world.url("accounts")).await.status, 403);
    let page = world.admin.get(&format!("/groups/{}", world.lab)).await;
    assert!(!page.text().contains(">Usage</a>"), "no way to where one may not go");
    let page = world.member.get(&format!("/groups/{}", world.lab)).await;
    assert!(page.text().contains(">Usage</a>"));
}

#[tokio::test]
async fn invalid_query_values_still_show_a_page() {
    let world = world().await;
    world.fill().await;
    for query in [
        "period=&by=&show=&account=",
        "period=2026-99&by=century&show=gold&account=/",
        "period=year&by=day",
        "period=9999-12",
        "period=days",
        "period=days&first=9999-12-31&last=0001-01-01",
        "period=%3Cb%3E..2026-11-01",
        "period=2026-11-01..2026-10-01&by=day",
        "period=-1d&period=90d&period=x",
        "show=site",
        "account=key/def-two",
        "account=nowhere%2F%3Cb%3E",
        "by=month&period=30d",
        "%00=%ff&period=%ff%fe",
        "from=2026-11-40&until=0000-00-00",
        "from=2026-11-10&until=2020-01-01&member=p99999999999999999999&kind=%27%22%3C",
        "from=-9999-01-01&until=9999-12-31&outcome=%00",
        "member=u1-&outcome=lost&kind=",
    ] {
        for path in ["usage", "usage/fragment", "usage/jobs", "usage/days.csv", "usage/members.csv"] {
            let page = world.pi.get(&world.url(&format!("{path}?{query}"))).await;
            assert_eq!(page.status, 200, "{path}?{query}: {}", page.text());
            let bars = page.text().matches("<tr><th scope=\"row\">").count();
            assert!(bars <= 92, "{path}?{query} draws {bars} bars");
        }
    }
    for path in ["/groups/x/usage", "/groups/-1/usage", "/groups/99999999999999999999/usage/days.csv"] {
        assert!([403, 404].contains(&world.pi.get(path).await.status), "{path}");
    }
}

#[tokio::test]
async fn empty_pages_say_what_to_do() {
    let world = world().await;
    let page = world.pi.get(&world.url("usage")).await;
    assert!(page.text().contains("No accounts selected yet"), "{}", page.text());
    let page = world.member.get(&world.url("usage")).await;
    assert!(page.text().contains("Usage appears here once a PI selects"), "{}", page.text());
    world.choose(&["key/def-one", "key/def-two"]).await;
    let page = world.pi.get(&world.url("usage")).await;
    assert!(page.text().contains("No data for this period yet"));
    assert!(page.text().contains("You&#39;re not connected to Harbour key"), "{}", page.text());
    assert!(page.text().contains("not loaded yet"));
    // An account that is taken away takes its figures along, and nothing else breaks.
    world.fill().await;
    world.choose(&["key/def-two"]).await;
    let page = world.pi.get(&world.url("usage")).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("no longer belongs to the group"), "{}", page.text());
    world.choose(&[]).await;
    assert!(world.pi.get(&world.url("usage")).await.text().contains("No accounts selected yet"));
}

/// What a shell on the cluster says of itself is its owner's to change: names are those that people connected under.
#[tokio::test]
async fn nobody_can_pose_as_someone_else() {
    let world = world().await;
    world.fill().await;
    let key = world.portal.connection_key("max", "key").await;
    for forged in ["pia", "gone"] {
        let learnt = format!(r#"{{"user":"{forged}"}}"#);
        let mut tx = world.portal.app.store.write().await.unwrap();
        store::connections::save_discovered(&mut tx, key, &learnt, START).await.unwrap();
        store::commit(tx).await.unwrap();
        let jobs = world.pi.get(&world.url("usage/jobs.csv?period=30d")).await;
        let of = |user: &str| {
            let mark = format!(",\"{user}\",");
            let rows: Vec<&str> = jobs.text().lines().filter(|row| row.contains(&mark)).collect();
            assert!(!rows.is_empty(), "{user}: {}", jobs.text());
            rows.join("\n")
        };
        assert!(of("max").contains("\"max\",\"max\""), "{}", of("max"));
        assert!(!of("gone").contains("\"max\""), "{}", of("gone"));
        assert!(!of("pia").contains("\"max\""), "{}", of("pia"));
        let mine = world.member.get(&world.url("usage/jobs.csv?period=30d")).await;
        assert!(!mine.text().contains("gone") && !mine.text().contains("train-#"), "{}", mine.text());
    }
}

#[tokio::test]
async fn viewing_names_is_recorded_but_never_made_up_names() {
    for path in ["usage/jobs", "report", "usage/fair-share", "usage/kinds.csv"] {
        let world = world().await;
        world.fill().await;
        for _ in 0..2 {
            assert_eq!(world.pi.get(&world.url(path)).await.status, 200, "{path}");
        }
        assert_eq!(world.seen().await, [""], "{path}: once");
        assert_eq!(world.member.get(&world.url("usage")).await.status, 200);
        assert_eq!(world.seen().await.len(), 1, "members see no names");
    }
    let world = world().await;
    world.fill().await;
    for name in ["nobody", "Alice%20Martin%20(all)", "x%0Ay", "%E2%80%AEx"] {
        let page = world.pi.get(&world.url(&format!("usage/jobs?member=u1-{name}"))).await;
        assert_eq!(page.status, 200);
    }
    assert_eq!(world.seen().await, Vec::<String>::new());
    world.pi.get(&world.url("usage/jobs?member=u1-gone")).await;
    assert_eq!(world.seen().await, ["jobs of gone"]);
}

/// Figures are the group's: they outlive its people, and go with the account.
#[tokio::test]
async fn usage_stays_with_the_group_and_goes_with_the_account() {
    let world = world().await;
    world.fill().await;
    let rows = async || {
        portolan::housekeeping::sweep(&world.portal.app, &world.portal.app.notifications).await;
        let mut db = world.portal.app.store.read().await.unwrap();
        sqlx::query_scalar::<_, i64>("SELECT count(*) FROM usage_jobs").fetch_one(&mut *db).await.unwrap()
    };
    let all = rows().await;
    assert!(all > 0);
    let pia = world.portal.person_id("pia").await;
    // Whoever leads the group next sees all of it at once; whoever no longer does sees no names.
    let max = world.portal.person_id("max").await.to_string();
    let form = [("role", "member"), ("successor", max.as_str())];
    assert_eq!(world.admin.post(&world.url(&format!("people/{pia}/role")), &form).await.status, 303);
    assert_eq!(rows().await, all);
    let page = world.member.get(&world.url("usage/members.csv")).await;
    assert!(page.text().contains("\"gone\""), "{}", page.text());
    let page = world.pi.get(&world.url("usage/members.csv")).await;
    assert!(!page.text().contains("gone") && page.text().contains("\"You\""), "{}", page.text());
    // Whoever leaves the group sees nothing of it any more.
    assert_eq!(world.admin.post(&world.url(&format!("people/{pia}/remove")), &[]).await.status, 303);
    for path in ["usage", "usage/fragment", "usage/members.csv", "usage/jobs", "usage/jobs.csv", "report"] {
        let page = world.pi.get(&world.url(path)).await;
        assert!([403, 404].contains(&page.status), "{path} {}", page.status);
    }
    assert_eq!(rows().await, all);
    // Once the account is taken from the group, its figures go.
    let mut tx = world.portal.app.store.write().await.unwrap();
    let (group, cluster) = (portolan::domain::GroupId(world.lab), world.portal.cluster_id("key").await);
    allocations::set_accounts(&mut tx, group, cluster, &[]).await.unwrap();
    store::commit(tx).await.unwrap();
    assert_eq!(rows().await, 0);
}

/// What one member's narrow view shows is theirs alone, and never the group's.
#[tokio::test]
async fn a_narrow_view_is_shown_to_its_reader_only_and_says_so() {
    let world = world().await;
    world.choose(&["key/def-one"]).await;
    let pia = UsageSourceOwner::Person(PersonId(world.portal.person_id("pia").await));
    world.put_sheet(pia, TODAY, &sheet(TODAY, &[("pia", "train-#", 3, UsageJobOutcome::Done)])).await;
    let page = world.pi.get(&world.url("usage")).await;
    assert!(page.text().contains("may hide other people&#39;s jobs"), "{}", page.text());
    assert!((shown(&page, 0) - 12.0).abs() < 0.01);
    let page = world.member.get(&world.url("usage")).await;
    assert!(page.select_all(".fact-value").iter().all(|value| value == "Not loaded yet"), "{}", page.text());
}

/// Where a cluster doesn't say what it hides, other people's jobs in someone's figures prove that they see them.
#[tokio::test]
async fn other_peoples_jobs_prove_a_whole_view() {
    let world = world().await;
    world.choose(&["key/def-one"]).await;
    let pia = PersonId(world.portal.person_id("pia").await);
    let cluster = world.portal.cluster_id("key").await;
    let has_seen_others = async || {
        let mut db = world.portal.app.store.read().await.unwrap();
        usage::has_seen_others(&mut db, pia, cluster, "def-one", "pia").await.unwrap()
    };
    let owner = UsageSourceOwner::Person(pia);
    world.put_sheet(owner, TODAY, &sheet(TODAY, &[("pia", "train-#", 3, UsageJobOutcome::Done)])).await;
    assert!(!has_seen_others().await);
    // Others have no names in one person's figures.
    let before = TODAY.plus(-1);
    world.put_sheet(owner, before, &sheet(before, &[("", "", 2, UsageJobOutcome::Done)])).await;
    assert!(has_seen_others().await);
}

/// As soon as the whole account was read for the group, everybody sees that instead.
#[tokio::test]
async fn the_whole_account_is_shown_instead_of_a_narrow_view() {
    let world = world().await;
    world.choose(&["key/def-one"]).await;
    let pia = UsageSourceOwner::Person(PersonId(world.portal.person_id("pia").await));
    world.put_sheet(pia, TODAY, &sheet(TODAY, &[("pia", "train-#", 3, UsageJobOutcome::Done)])).await;
    let did = [("pia", "train-#", 3, UsageJobOutcome::Done), ("max", "fit", 2, UsageJobOutcome::Done)];
    world.put_day(TODAY, &did).await;
    for who in [&world.pi, &world.member] {
        let page = who.get(&world.url("usage")).await;
        assert!(!page.text().contains("hide other people"), "{}", page.text());
        assert!((shown(&page, 0) - 20.0).abs() < 0.01, "{}", page.text());
    }
}

/// Nothing is 0 that was not read: not the figures, not an allocation, not an account, not a report.
#[tokio::test]
async fn what_was_not_read_is_not_zero() {
    let world = world().await;
    world.fill().await;
    world.choose(&["key/def-one", "key/def-two"]).await;
    let facts = async |query: &str| {
        let page = world.pi.get(&world.url(&format!("usage?{query}"))).await;
        assert_eq!(page.status, 200);
        page.select_all(".fact-value")
    };
    assert!(facts("period=30d").await.iter().all(|value| !value.contains("Not loaded yet")));
    let unread = facts("account=key/def-two").await;
    assert!(!unread.is_empty() && unread.iter().all(|value| value == "Not loaded yet"), "{unread:?}");
    let unread = facts("period=2026-01-01..2026-02-01").await;
    assert!(!unread.is_empty() && unread.iter().all(|value| value == "Not loaded yet"), "{unread:?}");
    let page = world.pi.get(&world.url("usage")).await;
    let accounts = page.select_text("#use-accounts");
    assert!(accounts.contains("not loaded yet") && accounts.contains('–'), "{accounts}");
    // However the table is sorted, the note is on the account that it is about.
    let page = world.pi.get(&world.url("usage?sort=accounts.name-desc")).await;
    assert!(page.select_text("#use-accounts tbody tr").contains("not loaded yet"), "{}", page.text());
    let csv = world.pi.get(&world.url("usage/accounts.csv")).await.text().to_owned();
    let line = csv.lines().find_map(|line| line.strip_prefix("\"key/def-two\",")).expect(&csv);
    assert!(line.split(',').all(|cell| cell == "\"\""), "{line}");
    let report = world.pi.get(&world.url("report?month=2026-11")).await;
    let cells = report.select_all("[aria-labelledby=accounts-title] tbody td[colspan]");
    assert_eq!(cells, ["not loaded yet"], "{}", report.text());
    let new = NewAllocation {
        group: portolan::domain::GroupId(world.lab),
        cluster: world.portal.cluster_id("key").await,
        account: "def-two".into(),
        unit: "core-hours",
        amount: 7000.0,
        begins: TODAY.plus(-60),
        ends: TODAY.plus(120),
    };
    let mut tx = world.portal.app.store.write().await.unwrap();
    allocations::add(&mut tx, &new, START).await.unwrap();
    store::commit(tx).await.unwrap();
    let page = world.pi.get(&world.url("usage")).await;
    assert!(page.text().contains("7,000 core hours granted; usage not loaded yet"), "{}", page.text());
    assert!(!page.text().contains("(0%)"), "{}", page.text());
    let report = world.pi.get(&world.url("report?month=2026-01")).await;
    assert!(report.select_text(".report").contains("not loaded yet"), "{}", report.text());
    assert!(report.select_all(".report-facts dd").is_empty(), "{}", report.text());
}

#[tokio::test]
async fn home_tells_pis_that_an_allocation_is_used_up() {
    let world = world().await;
    world.fill().await;
    assert!(!world.pi.get("/").await.text().contains("is used up"), "there is enough left");
    let new = NewAllocation {
        group: portolan::domain::GroupId(world.lab),
        cluster: world.portal.cluster_id("key").await,
        account: "def-one".into(),
        unit: "core-hours",
        amount: 10.0,
        begins: TODAY.plus(-60),
        ends: TODAY.plus(120),
    };
    let mut tx = world.portal.app.store.write().await.unwrap();
    allocations::add(&mut tx, &new, START).await.unwrap();
    store::commit(tx).await.unwrap();
    let home = world.pi.get("/").await;
    let line = ".home-groups .row-problem a";
    assert_eq!(home.select_text(line), "The allocation of def-one on Harbour key is used up");
    assert_eq!(home.attribute(line, "href"), world.url("usage"));
    assert!(!world.member.get("/").await.text().contains("is used up"), "members have no say in it");
}

/// What the cluster's own program says was granted, of the group's accounts only; more may be used than was granted.
#[tokio::test]
async fn allocation_known_to_the_cluster_is_shown() {
    let world = world().await;
    world.fill().await;
    let rows = r#"[["Quota (pri)", 1000.0], ["Used", 1050.0], ["Available", -50.0], ["Odd", null]]"#;
    let standing = format!(
        r#"{{"cost": {{"period": "2026.2 (2026-10-01 - 2027-04-01)", "unit": "Billing hours", "accounts":
            [{{"account": "def-one", "rows": {rows}}}, {{"account": "nn9999k", "rows": {rows}}}]}}, "cost_at": {}}}"#,
        START.0
    );
    let key = world.portal.connection_key("pia", "key").await;
    let mut tx = world.portal.app.store.write().await.unwrap();
    store::queues::mark_seen(&mut tx, key.person, key.cluster, START).await.unwrap();
    store::queues::set_standing(&mut tx, key.person, key.cluster, &standing).await.unwrap();
    store::commit(tx).await.unwrap();
    let page = world.pi.get(&world.url("usage")).await;
    let granted = page.select_text("#standing-granted-key");
    assert!(granted.contains("1,050 of 1,000 Billing hours used (over the allocation)"), "{granted}");
    assert!(granted.contains("2026.2") && !granted.contains("nn9999k"), "{granted}");
}
