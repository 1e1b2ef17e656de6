//! What a group used, read from the real cluster's accounting: as `sreport` counts it, with each person's own rights,
//! one command at a time, and never a day twice.

use std::collections::{BTreeSet, HashMap};

use portolan::auth::Viewer;
use portolan::clock::{Clock, Day};
use portolan::domain::{GroupId, GroupRole, PersonId};
use portolan::store;
use portolan::usage::figures::{ChartStep, FiguresSelection, UsageFigures, UsageMember, compute_figures};
use portolan::usage::{GroupUsage, UsageMeasure, UsageTotals};

use crate::queue::{cancel, submit};
use crate::support::app::hurry;
use crate::support::browser::Browser;
use crate::support::cluster::Cluster;
use crate::support::server::Server;
use crate::support::wait::{note_seen, wait_for_value, wait_until};
use crate::support::{Client, TestApp};

/// Days that tests read, today included (`support/app.rs`).
const DAYS: i64 = 33;

impl TestApp {
    /// Someone who leads the lab.
    pub async fn leader(&self, admin: &Client, name: &str) -> Client {
        let group = self.group(admin, "Smith Lab").await;
        let link = self.invite(admin, group, "pi").await;
        self.join(&link, name).await
    }

    /// Says which accounts are the lab's.
    pub async fn set_accounts(&self, slug: &str, accounts: &[&str]) {
        let cluster = self.cluster_id(slug).await;
        let accounts: Vec<String> = accounts.iter().map(|one| (*one).to_owned()).collect();
        let mut tx = self.app.store.write().await.unwrap();
        store::allocations::set_accounts(&mut tx, GroupId(1), cluster, &accounts).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    /// The lab's use, as someone sees it.
    pub async fn usage_seen_by(&self, name: &str) -> GroupUsage {
        let id = PersonId(self.person_id(name).await);
        let mut db = self.app.store.read().await.unwrap();
        let viewer: Viewer = self.app.auth.viewer(&mut db, id).await.unwrap().unwrap();
        drop(db);
        let seen = self.app.usage.load_group_usage(&viewer, GroupId(1)).await.unwrap();
        note_seen(|| format!("{seen:#?}"));
        seen
    }

    /// Waits until everything is read for someone.
    pub async fn all_usage_seen_by(&self, name: &str) -> GroupUsage {
        wait_until("all days are read", async || {
            let view = self.usage_seen_by(name).await;
            !view.accounts.is_empty() && view.accounts.iter().all(|one| one.progress.0 == DAYS)
        })
        .await;
        self.usage_seen_by(name).await
    }
}

/// A portal with the leader of the lab on the cluster connected, and the lab's accounts chosen.
async fn led() -> (TestApp, Client, Client) {
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    let leader = portal.leader(&admin, "asmith").await;
    portal.add_cluster("key").await;
    leader.prepare("key", "asmith").await;
    leader.connect("key").await;
    portal.set_accounts("key", &["def-smith", "rrg-smith"]).await;
    (portal, admin, leader)
}

fn between(view: &GroupUsage, from: Day, until: Day) -> UsageFigures {
    let choice = FiguresSelection { from, until, step: ChartStep::Day, measure: UsageMeasure::Cores, account: None };
    compute_figures(view, &choice)
}

/// Seconds by account, user (empty: all) and resource, as `sreport` tells them to someone.
fn reported(who: &str, from: Day, until: Day) -> HashMap<(String, String, String), u64> {
    let script = format!(
        "sreport -n -P -t Seconds cluster AccountUtilizationByUser Start={from}T00:00:00 End={}T00:00:00 \
         -T cpu,gres/gpu,gres/gpu:t4,gres/gpu:v100,billing",
        until.plus(1)
    );
    let done = Cluster::get().script(&["exec", "--as", who, "bash", "-lc", &script]);
    assert!(done.status.success(), "{done:?}");
    let text = String::from_utf8(done.stdout).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        let [_, account, user, _, resource, seconds] = cells[..] else { return None };
        let key = (account.to_owned(), user.to_owned(), resource.to_owned());
        Some((key, seconds.parse().unwrap()))
    };
    text.lines().filter_map(row).collect()
}

/// The days that are certainly rolled up: some weeks up to the day before yesterday.
fn settled(view: &GroupUsage) -> (Day, Day) {
    let today = view.accounts[0].today;
    (today.plus(-28), today.plus(-2))
}

#[tokio::test(flavor = "multi_thread")]
async fn totals_equal_sreport() {
    let (portal, _, _) = led().await;
    let view = portal.all_usage_seen_by("asmith").await;
    let (from, until) = settled(&view);
    let reported = reported("asmith", from, until);
    let told = |account: &str, user: &str, resource: &str| {
        let key = (account.to_owned(), user.to_owned(), resource.to_owned());
        reported.get(&key).copied().unwrap_or(0)
    };
    for account in &view.accounts {
        let name = &account.details.account;
        let mut whole = UsageTotals::default();
        let mut people: HashMap<String, UsageTotals> = HashMap::new();
        for (_, roll) in account.usage.iter().flat_map(|ledger| ledger.rows_between(from, until)) {
            whole.add(&roll.totals);
            people.entry(roll.user.to_string()).or_default().add(&roll.totals);
        }
        assert!(whole.core_s > 0 && people.len() > 1, "{name} has a history");
        for (user, sums) in people.into_iter().chain([(String::new(), whole)]) {
            assert_eq!(sums.core_s, told(name, &user, "cpu"), "{name} {user}");
            assert_eq!(sums.gpu_s, told(name, &user, "gres/gpu"), "{name} {user}");
            // Every job of a real cluster has a partition and a QOS, so these add up to the same.
            for breakdown in [&sums.partitions, &sums.qos] {
                let (cores, gpus) =
                    breakdown.sums().iter().fold((0, 0), |all, one| (all.0 + one.core_s, all.1 + one.gpu_s));
                assert_eq!((cores, gpus), (sums.core_s, sums.gpu_s), "{name} {user} {breakdown:?}");
            }
            for (model, seconds) in &sums.gpus {
                let resource = format!("gres/gpu:{model}");
                assert_eq!(*seconds, told(name, &user, &resource), "{name} {user} {model}");
            }
        }
    }
    // What the pages add up is the same.
    let shown = between(&view, from, until);
    let both = ["def-smith", "rrg-smith"].map(|account| told(account, "", "cpu"));
    assert_eq!(shown.totals.core_s, both.iter().sum::<u64>());
    let sum: f64 = shown.bars.iter().map(|bar| bar.total).sum();
    assert!((sum - portolan::usage::hours(shown.totals.core_s)).abs() < 0.001);
}

/// How many jobs of both accounts ended in a state on these days, as `sacct` tells.
fn count_ended(from: Day, until: Day) -> HashMap<String, u64> {
    let script = format!(
        "sacct -n -P -X -D -a -A def-smith,rrg-smith -S {from}T00:00:00 -E {}T00:00:00 -o State,End",
        until.plus(1)
    );
    let done = Cluster::get().script(&["exec", "--as", "asmith", "bash", "-lc", &script]);
    assert!(done.status.success(), "{done:?}");
    let mut counts = HashMap::new();
    for line in String::from_utf8(done.stdout).unwrap().lines() {
        let Some((state, end)) = line.split_once('|') else { continue };
        let day = end.get(..10).and_then(Day::parse);
        if day.is_some_and(|day| (from..=until).contains(&day)) {
            *counts.entry(state.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn outcomes_equal_sacct_with_node_failures_apart() {
    let (portal, _, _) = led().await;
    let view = portal.all_usage_seen_by("asmith").await;
    let (from, until) = settled(&view);
    let ended = count_ended(from, until);
    let told = |state: &str| ended.get(state).copied().unwrap_or(0);
    let totals = between(&view, from, until).totals;
    assert!(totals.failed > 0, "the history has failures: {ended:?}");
    for (counted, told) in [
        (totals.done, told("COMPLETED")),
        (totals.failed, told("FAILED")),
        (totals.node_failed, told("NODE_FAIL") + told("BOOT_FAIL")),
        (totals.interrupted, told("PREEMPTED")),
        (totals.timed_out, told("TIMEOUT")),
        (totals.missed_deadline, told("DEADLINE")),
        (totals.memory_out, told("OUT_OF_MEMORY")),
    ] {
        assert_eq!(counted, told, "{ended:?} {totals:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn member_sees_themselves_and_everyone_else_as_one_row() {
    let (portal, admin, _) = led().await;
    let bob = portal.member(&admin, "bob").await;
    bob.prepare("key", "bob").await;
    bob.connect("key").await;
    let view = portal.all_usage_seen_by("bob").await;
    let (from, until) = settled(&view);
    let shown = between(&view, from, until);
    let whose: Vec<&UsageMember> = shown.members.iter().map(|one| &one.owner).collect();
    assert_eq!(whose.len(), 2, "{whose:?}");
    assert!(whose.contains(&&UsageMember::Others), "{whose:?}");
    let leaders = portal.all_usage_seen_by("asmith").await;
    assert_eq!(shown.totals.core_s, between(&leaders, from, until).totals.core_s);
    // Nobody else's name or job type is handed to them, not even to what makes the page.
    let users = view.accounts.iter().flat_map(|account| &account.usage).flat_map(|usage| usage.days.values());
    let users: BTreeSet<&str> = users.flat_map(|day| day.rows.iter().map(|row| &*row.user)).collect();
    assert_eq!(users, BTreeSet::from(["", "bob"]));
    // It was read once, for the group: each day of each account.
    let mut db = portal.app.store.read().await.unwrap();
    let days: i64 = sqlx::query_scalar("SELECT count(*) FROM usage_days").fetch_one(&mut *db).await.unwrap();
    drop(db);
    assert_eq!(days, DAYS * 2);
    let id = portal.person_id("bob").await;
    // Whoever comes to lead the group sees names at once; whoever no longer does sees none.
    for (role, count) in [(GroupRole::Pi, 4), (GroupRole::Member, 2)] {
        let mut tx = portal.app.store.write().await.unwrap();
        let now = portal.clock.now();
        store::groups::set_member(&mut tx, GroupId(1), PersonId(id), role, now).await.unwrap();
        store::commit(tx).await.unwrap();
        let view = portal.usage_seen_by("bob").await;
        let members = between(&view, from, until).members.len();
        assert!(if role == GroupRole::Pi { members >= count } else { members == count }, "{members}");
    }
}

/// What one PI's connection has read, another PI sees at once, without a connection of their own; and a member's
/// connection reads for the PIs.
#[tokio::test(flavor = "multi_thread")]
async fn usage_is_read_once_for_the_whole_group() {
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    let _first = portal.leader(&admin, "pia").await;
    let bob = portal.member(&admin, "bob").await;
    portal.add_cluster("key").await;
    bob.prepare("key", "bob").await;
    bob.connect("key").await;
    portal.set_accounts("key", &["def-smith"]).await;
    let view = portal.all_usage_seen_by("pia").await;
    assert!(view.accounts[0].details.own_user.is_none(), "they never connected");
    let (from, until) = settled(&view);
    let key = ("def-smith".to_owned(), String::new(), "cpu".to_owned());
    let all = between(&view, from, until);
    assert_eq!(all.totals.core_s, reported("asmith", from, until)[&key]);
    assert!(all.members.len() > 2, "by name");
    // An account that is not the member's own is not read over their connection.
    portal.set_accounts("key", &["def-smith", "def-jones"]).await;
    let jones = async || {
        let view = portal.usage_seen_by("pia").await;
        let account = view.accounts.iter().find(|account| account.details.account == "def-jones").unwrap();
        (account.is_connected, account.read_at)
    };
    assert_eq!(jones().await, (false, None));
}

/// The days of the period that someone chose are read before all others.
#[tokio::test(flavor = "multi_thread")]
async fn chosen_days_are_read_first() {
    let portal = TestApp::start_at(Clock::system(), |config| {
        hurry(config);
        config.usage_pace.history_days = 366;
    })
    .await;
    let admin = portal.set_up("ada").await;
    let leader = portal.leader(&admin, "asmith").await;
    portal.add_cluster("key").await;
    leader.prepare("key", "asmith").await;
    portal.set_accounts("key", &["def-smith"]).await;
    // Before anything can be read: there is no connection yet.
    let today = portal.usage_seen_by("asmith").await.accounts[0].today;
    let (from, until) = (today.plus(-300), today.plus(-296));
    let path = format!("/groups/1/usage?period={from}..{until}");
    assert!(leader.get(&path).await.text().contains("Not loaded yet"));
    leader.connect("key").await;
    let unread = async || portal.usage_seen_by("asmith").await.accounts[0].unread_days(from, until);
    wait_until("the chosen days are read", async || unread().await == 0).await;
    let view = portal.usage_seen_by("asmith").await;
    let days = &view.accounts[0].usage[0].days;
    let last_chosen = (from.0..=until.0).map(|day| days[&Day(day)].read_at).max().unwrap();
    let others = days.iter().filter(|(day, _)| !(from..=until).contains(*day));
    assert!(others.clone().all(|(_, read)| read.read_at >= last_chosen), "{days:?}");
}

/// The days that are settled, and when each was read.
async fn settled_days(portal: &TestApp) -> Vec<(i64, i64, i64)> {
    let mut db = portal.app.store.read().await.unwrap();
    let sql = "SELECT source_id, day, read_at FROM usage_days WHERE is_final = 1";
    sqlx::query_as(sql).fetch_all(&mut *db).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_accounting_is_reported_and_nothing_is_read_twice() {
    let server = crate::queue_faults::with_own_slurm_conf();
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    let leader = portal.leader(&admin, "asmith").await;
    portal.add_server("key", &server).await;
    leader.prepare_on(&server, "key", "asmith").await;
    leader.connect("key").await;
    portal.set_accounts("key", &["def-smith"]).await;
    let read = async || portal.usage_seen_by("asmith").await.accounts[0].progress.0;
    wait_for_value("some days are read", async || read().await, |seen| *seen > 3).await;
    crate::queue_faults::spoil(&server, "AccountingStoragePort");
    wait_until("the trouble is told", async || {
        portal.usage_seen_by("asmith").await.accounts[0].problem.contains("accounting database")
    })
    .await;
    assert!(read().await < DAYS, "not all of it");
    let before = settled_days(&portal).await;
    crate::queue_faults::mend(&server);
    let view = portal.all_usage_seen_by("asmith").await;
    assert_eq!(view.accounts[0].problem, "", "well again");
    let (from, until) = settled(&view);
    let key = ("def-smith".to_owned(), String::new(), "cpu".to_owned());
    assert_eq!(between(&view, from, until).totals.core_s, reported("asmith", from, until)[&key]);
    let after = settled_days(&portal).await;
    assert!(before.iter().all(|day| after.contains(day)), "what is settled is not read again");
}

/// Days that an older version read get their partitions; a day of which the cluster has deleted a job stays.
#[tokio::test(flavor = "multi_thread")]
async fn days_of_an_older_version_are_read_again() {
    let (mut portal, _, leader) = led().await;
    let view = portal.all_usage_seen_by("asmith").await;
    let (from, until) = settled(&view);
    let mut tx = portal.app.store.write().await.unwrap();
    let sql = "SELECT source_id, day FROM usage_daily JOIN usage_days USING (source_id, day)
               WHERE day BETWEEN $1 AND $2 AND jobs > 0 AND is_final = 1
               GROUP BY source_id, day ORDER BY day DESC LIMIT 2";
    let days: Vec<(i64, i64)> = sqlx::query_as(sql).bind(from.0).bind(until.0).fetch_all(&mut *tx).await.unwrap();
    for (source, day) in &days {
        for sql in [
            "UPDATE usage_daily SET partitions = '', qos = '' WHERE source_id = $1 AND day = $2",
            "UPDATE usage_days SET is_final = 0, is_outdated = 1, read_at = 0 WHERE source_id = $1 AND day = $2",
        ] {
            sqlx::query(sql).bind(source).bind(day).execute(&mut *tx).await.unwrap();
        }
    }
    // One more job than the cluster has.
    let (source, day) = days[1];
    let sql = "UPDATE usage_daily SET jobs = jobs + 1, done = done + 1 WHERE source_id = $1 AND day = $2";
    sqlx::query(sql).bind(source).bind(day).execute(&mut *tx).await.unwrap();
    store::commit(tx).await.unwrap();
    portal.restart().await;
    let _ = leader.get("/").await;
    let sql = "SELECT count(*) FROM usage_days WHERE is_outdated = 1";
    wait_until("they are read again", async || {
        let _ = portal.usage_seen_by("asmith").await;
        let mut db = portal.app.store.read().await.unwrap();
        sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut *db).await.unwrap() == 0
    })
    .await;
    let mut db = portal.app.store.read().await.unwrap();
    for ((source, day), is_known) in days.iter().zip([true, false]) {
        let sql = "SELECT count(*), sum(partitions <> '') FROM usage_daily WHERE source_id = $1 AND day = $2";
        let (rows, known): (i64, i64) = sqlx::query_as(sql).bind(source).bind(day).fetch_one(&mut *db).await.unwrap();
        assert!(rows > 0);
        assert_eq!(known, if is_known { rows } else { 0 });
        let sql = "SELECT is_final FROM usage_days WHERE source_id = $1 AND day = $2";
        let is_final: bool = sqlx::query_scalar(sql).bind(source).bind(day).fetch_one(&mut *db).await.unwrap();
        assert!(is_final, "never again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_usage_resumes_after_a_restart() {
    let (mut portal, _, leader) = led().await;
    let read = async |portal: &TestApp| portal.usage_seen_by("asmith").await.accounts[0].progress.0;
    wait_for_value("some days are read", async || read(&portal).await, |seen| *seen > 3).await;
    portal.restart().await;
    assert!(read(&portal).await > 3, "what was read is there");
    let _ = leader.get("/").await;
    let view = portal.all_usage_seen_by("asmith").await;
    let mut db = portal.app.store.read().await.unwrap();
    let days: i64 = sqlx::query_scalar("SELECT count(*) FROM usage_days").fetch_one(&mut *db).await.unwrap();
    drop(db);
    assert_eq!(days, DAYS * i64::try_from(view.accounts.len()).unwrap(), "each day once");
}

#[tokio::test(flavor = "multi_thread")]
async fn running_jobs_count_so_far_and_unusual_accounts_are_read() {
    // In letters: numbers do not make a sort of job, and an earlier run on this cluster left jobs like this one.
    let letter = |digit: char| char::from(b'a' + u8::try_from(digit.to_digit(10).unwrap()).unwrap());
    let name: String = std::process::id().to_string().chars().map(letter).collect();
    let name = format!("long {name} 1");
    let options = ["-A", "def-smith", "-o", "/dev/null", "-t", "6", "-J", &name];
    let job = submit("asmith", "sleep 300", &options);
    let ask = ["exec", "--as", "asmith", "sacct", "-n", "-X", "-j", &job, "-o", "State"];
    wait_until("the accounting knows that it runs", async || {
        let said = Cluster::get().script(&ask).stdout;
        String::from_utf8(said).unwrap().contains("RUNNING")
    })
    .await;
    let (portal, _, _) = led().await;
    let odd = ["x; touch oops", "-A root", "nobody-has-this"];
    portal.set_accounts("key", &["def-smith", odd[0], odd[1], odd[2]]).await;
    let mut today = UsageFigures::default();
    wait_until("today is read", async || {
        let view = portal.usage_seen_by("asmith").await;
        let day = view.accounts[0].today;
        today = between(&view, day, day);
        !today.kinds.is_empty()
    })
    .await;
    cancel("asmith", &job);
    let mine = today.kinds.iter().find(|kind| kind.name == name.replace('1', "#")).expect("the running job");
    assert!(mine.totals.core_s > 0 && mine.totals.jobs == 0, "{mine:?}");
    let view = portal.usage_seen_by("asmith").await;
    for account in view.accounts.iter().filter(|one| odd[..2].contains(&&*one.details.account)) {
        assert_eq!((account.read_at, account.usage.len()), (None, 0));
    }
}

/// Notes when a command begins and when it ends. What the server's own log says of an end may be written after the next
/// beginning: connections are processes of their own.
const NOTED: &str = r#"echo "begin $USER" >>@DIR@/turns
"$SHELL" -c "$SSH_ORIGINAL_COMMAND"
code=$?
echo "end $USER" >>@DIR@/turns
exit $code
"#;

/// Reading costs one command a day, and one after the other, whoever else reads. A year of 366 days is then less than 400.
#[tokio::test(flavor = "multi_thread")]
async fn history_is_one_command_a_day_and_never_two_at_once() {
    let server = Server::with("ForceCommand /bin/sh @DIR@/noted");
    server.write("noted", &NOTED.replace("@DIR@", &server.inside()));
    server.tell("touch turns && chmod 666 turns");
    let mut portal = TestApp::start_at(Clock::system(), |config| {
        hurry(config);
        config.usage_pace.history_days = 100;
        // Nothing else is asked meanwhile.
        config.queue_pace.is_on = false;
    })
    .await;
    let admin = portal.set_up("ada").await;
    let leader = portal.leader(&admin, "asmith").await;
    let bob = portal.member(&admin, "bob").await;
    let mut site = server.site("key");
    site.limits.calls_per_minute = 600;
    portal.add_pinned(&site, &server.pins()).await;
    for (who, name) in [(&leader, "asmith"), (&bob, "bob")] {
        who.prepare_on(&server, "key", name).await;
        who.connect("key").await;
    }
    server.write("turns", "");
    portal.set_accounts("key", &["def-smith", "rrg-smith"]).await;
    // Another reader waits for their turn on the same cluster.
    portal.usage_seen_by("bob").await;
    wait_for_value(
        "a hundred days are read",
        async || portal.usage_seen_by("asmith").await.accounts[0].progress,
        |seen| *seen == (100, 100),
    )
    .await;
    portal.stop().await;
    let turns = server.read("turns");
    let asked = turns.matches("begin asmith").count();
    assert!((100..=109).contains(&asked), "{asked} commands");
    let (mut open, mut most) = (0, 0);
    for turn in turns.lines() {
        open += if turn.starts_with("begin") { 1 } else { -1 };
        most = most.max(open);
    }
    assert_eq!(most, 1, "one at a time");
}

/// In a real browser: the page, its totals and its file say what `sreport` says of a whole month; a member reads no name.
#[tokio::test(flavor = "multi_thread")]
async fn pi_reads_a_month_in_the_browser() {
    let portal = TestApp::start_at(Clock::system(), |config| {
        hurry(config);
        config.usage_pace.history_days = 75;
    })
    .await;
    let admin = portal.set_up("ada").await;
    let leader = portal.leader(&admin, "asmith").await;
    let bob = portal.member(&admin, "bob").await;
    portal.add_cluster("key").await;
    for (who, name) in [(&leader, "asmith"), (&bob, "bob")] {
        who.prepare("key", name).await;
        who.connect("key").await;
    }
    // Through the pages, as people do.
    let form = [("account", "key/def-smith"), ("account", "key/rrg-smith")];
    let chosen = leader.post("/groups/1/accounts", &form).await;
    assert_eq!(chosen.status, 303, "{}", chosen.text());
    for name in ["asmith", "bob"] {
        wait_until("all days are read", async || {
            let view = portal.usage_seen_by(name).await;
            view.accounts.iter().all(|one| one.progress == (75, 75))
        })
        .await;
    }
    let month = portal.usage_seen_by("asmith").await.accounts[0].today.month().previous();
    let told = reported("asmith", month.first(), month.last());
    let told = |resource: &str| {
        let of =
            |account: &str| told.get(&(account.to_owned(), String::new(), resource.to_owned())).copied().unwrap_or(0);
        portolan::usage::hours(of("def-smith") + of("rrg-smith"))
    };
    let browser = Browser::open(&portal.url, 1280).await;
    browser.sign_in("asmith").await;
    browser.go(&format!("/groups/1/usage?period={month}")).await;
    browser.wait_for_text("By member").await;
    let figures = browser.run("return [...document.querySelectorAll('.fact data')].map(one => one.value)").await;
    let figure = |place: usize| figures[place].as_str().unwrap().parse::<f64>().unwrap();
    assert!((figure(0) - told("cpu")).abs() < 0.01, "{figures} {}", told("cpu"));
    assert!((figure(1) - told("gres/gpu")).abs() < 0.01, "{figures} {}", told("gres/gpu"));
    let bars = browser.run("return document.querySelectorAll('.plot-area rect').length").await;
    assert!(bars.as_i64().unwrap() > 20, "a chart is drawn: {bars}");
    for name in ["asmith", "bob", "carol", "erik"] {
        assert!(browser.text().await.contains(name), "{name} is named");
    }
    let file = leader.get(&format!("/groups/1/usage/members.csv?period={month}")).await;
    let cells = |row: &str| row.split(',').map(|one| one.trim_matches('"').to_owned()).collect::<Vec<_>>();
    let mut rows = file.text().lines().map(cells);
    let place = rows.next().unwrap().iter().position(|name| name == "core hours").unwrap();
    let sum: f64 = rows.map(|row| row[place].parse::<f64>().unwrap()).sum();
    assert!((sum - told("cpu")).abs() < 0.1, "{sum} {}", told("cpu"));
    browser.close().await;
    // The figures that are hardest to trace lead to just the jobs that make them.
    let lines: Vec<Vec<String>> = file.text().lines().map(cells).collect();
    let column = |name: &str| -> f64 {
        let place = lines[0].iter().position(|one| one == name).unwrap();
        lines[1..].iter().map(|row| row[place].parse::<f64>().unwrap()).sum()
    };
    let behind = async |outcome: &str| {
        let path = format!("/groups/1/usage/jobs?period={month}&outcome={outcome}");
        leader.get(&path).await
    };
    let spare = behind("could-be-less").await.attributes("data", "value");
    let spare = spare.last().unwrap().parse::<f64>().unwrap();
    let wanted = column("over-requested core hours");
    assert!(wanted > 1.0 && (spare - wanted).abs() < 0.01, "{spare} {wanted}");
    let failed = behind("failed").await;
    let count = format!("{} jobs, ", column("failed"));
    assert!(failed.text().contains(&count), "{count} {}", failed.text());
    let page = bob.get(&format!("/groups/1/usage?period={month}")).await;
    assert!(page.text().contains("Everyone else"));
    for name in ["carol", "erik", "Alice", "alice"] {
        assert!(!page.text().contains(name), "{name} is not told to members");
    }
}
