//! A database of version 0.1.0 is brought up to date: nothing is lost, and addresses, links and cookies go on working.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use portolan::clock::{Clock, Day, UnixTime};
use portolan::domain::{ClusterId, GroupId};
use portolan::store::Store;
use portolan::store::usage::{UsageDayReadRow, UsageSource, UsageSourceOwner};
use portolan::usage::daily_totals::DayUsageBreakdown;
use portolan::usage::{SavedUsageDay, UsageBreakdown, UsageTotals, save_daily_totals};
use serde_json::Value;
use sqlx::{ConnectOptions as _, SqliteConnection};

use crate::support::cluster::root;
use crate::support::program::Installation;
use crate::support::{Client, Page, TestApp};

/// Tables that have another name now, and the queries that give back what was in tables that were merged. Ids of links
/// to reports went up by 4, the highest id that the fixture has of a link to a dashboard.
const TABLES: &[(&str, &str)] = &[
    (
        "board_accesses",
        "(SELECT access_key, cookie_hash, dashboard_id, session_id, NULL AS link_id, 0 AS is_locked, created_at,
                 expires_at FROM dashboard_accesses
          UNION ALL
          SELECT a.access_key, a.cookie_hash, l.dashboard_id, NULL, a.link_id, a.is_locked, a.created_at, a.expires_at
          FROM guest_link_accesses a JOIN guest_links l ON l.id = a.link_id AND l.dashboard_id IS NOT NULL)",
    ),
    ("board_links", "(SELECT * FROM guest_links WHERE dashboard_id IS NOT NULL)"),
    ("board_runs", "dashboard_runs"),
    ("boards", "dashboards"),
    ("connects", "connection_attempts"),
    ("facts", "settings"),
    ("job_moments", "job_events"),
    ("job_papers", "job_details"),
    ("lines", "connections"),
    ("links", "one_time_links"),
    ("notices", "notifications"),
    (
        "report_accesses",
        "(SELECT a.access_key, a.cookie_hash, a.link_id - 4 AS link_id, a.is_locked, a.created_at, a.expires_at
          FROM guest_link_accesses a JOIN guest_links l ON l.id = a.link_id AND l.report_id IS NOT NULL)",
    ),
    (
        "report_links",
        "(SELECT id - 4 AS id, report_id, created_by AS person_id, token_hash, label, passphrase, created_at,
                 expires_at, revoked_at, opened, opened_at FROM guest_links WHERE report_id IS NOT NULL)",
    ),
    ("share_points", "fair_share_history"),
    (
        "usage_books",
        "(SELECT id, (SELECT person_id FROM memberships m WHERE m.group_id = s.group_id AND m.role = 'pi') AS person_id,
                 cluster_id, account, 1 AS has_names, viewed_at, problem FROM usage_sources s)",
    ),
    ("usage_rolls", "usage_daily"),
    ("usage_told", "usage_alerts_sent"),
];

/// Usage is read once for a group: of what each person had read, that of the PIs is kept.
const KEPT: &[(&str, &str)] = &[
    ("usage_books", "(SELECT * FROM usage_books WHERE has_names)"),
    (
        "usage_days",
        "(SELECT * FROM usage_days WHERE book_id IN (SELECT id FROM usage_books WHERE has_names)) AS usage_days",
    ),
    ("usage_jobs", "(SELECT * FROM usage_jobs WHERE book_id IN (SELECT id FROM usage_books WHERE has_names))"),
    ("usage_rolls", "(SELECT * FROM usage_rolls WHERE book_id IN (SELECT id FROM usage_books WHERE has_names))"),
];

/// Columns that have another name now, whatever their table.
const COLUMNS: &[(&str, &str)] = &[
    ("about", "dedup_key"),
    ("asks", "has_prompts"),
    ("board_id", "dashboard_id"),
    ("book_id", "source_id"),
    ("chain", "keychain"),
    ("learnt", "discovered"),
    ("learnt_at", "discovered_at"),
    ("looked_at", "viewed_at"),
    ("paper", "details"),
    ("wanted", "is_wanted"),
    ("word", "access_key"),
];

/// Words in columns that changed: column, old, new.
const VALUES: &[(&str, &str, &str)] =
    &[("kind", "board-idle", "dashboard-idle"), ("name", "notices.toasts", "notifications.toasts")];

/// The activity log names clusters by their titles now, in all events.
const ACTIVITY_SUBJECT: &str = "quote(coalesce((SELECT title FROM clusters WHERE slug = activity.subject
    AND (action LIKE 'cluster.%' OR action LIKE 'line.%')), subject))";

/// Days that have usage are read again, because version 0.1.0 did not read partitions.
const USAGE_DAY_IS_FINAL: &str = "quote(iif(EXISTS (SELECT 1 FROM usage_rolls r
    WHERE r.book_id = usage_days.book_id AND r.day = usage_days.day), 0, is_final))";

fn fixture(name: &str) -> PathBuf {
    root().join("tests/fixtures/portal-0.1.0").join(name)
}

fn expected() -> Value {
    serde_json::from_slice(&std::fs::read(fixture("expected.json")).unwrap()).unwrap()
}

fn unpack(name: &str, to: &Path) {
    let packed = std::fs::File::open(fixture(&format!("{name}.gz"))).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    std::fs::write(to, bytes).unwrap();
}

/// Puts the master key into a data folder, which is made.
fn put_key(data: &Path) {
    std::fs::create_dir_all(data).unwrap();
    std::fs::set_permissions(data, std::fs::Permissions::from_mode(0o700)).unwrap();
    let key = data.join("master.key");
    std::fs::copy(fixture("master.key"), &key).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// A portal of today on the data of 0.1.0, a minute after that was left.
async fn upgraded() -> (TestApp, Value) {
    let expected = expected();
    let made = UnixTime(expected["made_until_unix"].as_i64().unwrap());
    let portal = TestApp::start_at(Clock::manual(made.plus(60)), |config| {
        put_key(&config.data_dir);
        unpack("portolan.db", &config.data_dir.join("portolan.db"));
    })
    .await;
    (portal, expected)
}

/// What something is called now.
fn renamed<'a>(names: &[(&'a str, &'a str)], old: &'a str) -> &'a str {
    names.iter().find(|(was, _)| *was == old).map_or(old, |(_, now)| *now)
}

/// All rows of a table, each as text, sorted.
async fn rows(db: &mut SqliteConnection, table: &str, columns: &[String]) -> Vec<String> {
    let sql = format!("SELECT {} AS row FROM {table} ORDER BY 1", columns.join(" || ',' || "));
    sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_all(db).await.unwrap()
}

/// The part of a whole address behind the host.
fn path_of(answer: &Value) -> String {
    let url: reqwest::Url = answer["url"].as_str().unwrap().parse().unwrap();
    url.path().to_owned()
}

/// Opens a page; one that has moved for good is looked for at its new address.
async fn get(browser: &Client, path: &str) -> Page {
    let answer = browser.get(path).await;
    if !matches!(answer.status, 301 | 308) {
        return answer;
    }
    let moved = answer.location().to_owned();
    browser.get(&moved).await
}

#[tokio::test]
async fn every_row_is_still_there() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old.db"), dir.path().join("new.db"));
    unpack("portolan.db", &old);
    unpack("portolan.db", &new);
    let store = Store::open(&new).await.unwrap();
    let mut now = store.read().await.unwrap();
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&old);
    let mut before = options.read_only(true).connect().await.unwrap();

    for (table, told) in expected()["tables"].as_object().unwrap() {
        if table.starts_with('_') || table.starts_with("sqlite_") {
            continue;
        }
        let columns = told["columns"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        let columns: Vec<&str> = columns.collect();
        let was: Vec<String> = columns
            .iter()
            .map(|name| match VALUES.iter().find(|(column, ..)| column == name) {
                Some((_, from, to)) => format!("quote(iif({name} = '{from}', '{to}', {name}))"),
                None if (table.as_str(), *name) == ("activity", "subject") => ACTIVITY_SUBJECT.to_owned(),
                None if (table.as_str(), *name) == ("usage_days", "is_final") => USAGE_DAY_IS_FINAL.to_owned(),
                None => format!("quote(\"{name}\")"),
            })
            .collect();
        let is: Vec<String> = columns.iter().map(|name| format!("quote(\"{}\")", renamed(COLUMNS, name))).collect();
        let all = rows(&mut before, table, &was).await;
        assert_eq!(all.len() as u64, told["rows"].as_u64().unwrap(), "{table}");
        let was = rows(&mut before, renamed(KEPT, table), &was).await;
        assert_eq!(rows(&mut now, renamed(TABLES, table), &is).await, was, "{table}");
    }
    // What only the new tables say: a link to a dashboard is its owner's, and no id is given twice.
    let strangers = "SELECT count(*) FROM guest_links l JOIN dashboards d ON d.id = l.dashboard_id
                     WHERE l.created_by IS NOT d.person_id";
    assert_eq!(sqlx::query_scalar::<_, i64>(strangers).fetch_one(&mut *now).await.unwrap(), 0);
    let last = "SELECT seq FROM sqlite_sequence WHERE name = 'guest_links'";
    assert_eq!(sqlx::query_scalar::<_, i64>(last).fetch_one(&mut *now).await.unwrap(), 7);
    // Jobs that the cluster interrupted were counted as failed; how many they were is known from the jobs.
    let interrupted = "SELECT sum(interrupted), (SELECT count(*) FROM usage_jobs WHERE state = 6) FROM usage_daily";
    let (counted, listed): (i64, i64) = sqlx::query_as(interrupted).fetch_one(&mut *now).await.unwrap();
    assert!(counted > 0 && counted == listed, "{counted} of {listed}");
    let broken: Vec<(String,)> = sqlx::query_as("PRAGMA foreign_key_check").fetch_all(&mut *now).await.unwrap();
    assert!(broken.is_empty(), "{broken:?}");
}

/// A day on which jobs ended, and the source that it belongs to.
async fn outdated_day(store: &Store) -> (UsageSource, Day) {
    let mut db = store.read().await.unwrap();
    let sql = "SELECT s.group_id, s.cluster_id, d.source_id, d.day FROM usage_days d
               JOIN usage_sources s ON s.id = d.source_id
               WHERE d.is_outdated = 1 AND d.is_final = 0 AND EXISTS (
                   SELECT 1 FROM usage_daily r WHERE r.source_id = d.source_id AND r.day = d.day AND r.jobs > 0)
               ORDER BY d.day, d.source_id LIMIT 1";
    let (group, cluster, id, day): (i64, i64, i64, i64) = sqlx::query_as(sql).fetch_one(&mut *db).await.unwrap();
    let owner = UsageSourceOwner::Group(GroupId(group));
    let sources = portolan::store::usage::list_sources(&mut db, owner, ClusterId(cluster)).await.unwrap();
    (sources.into_iter().find(|source| source.id.0 == id).unwrap(), Day(day))
}

/// What is stored of a day, and whether it is read again.
async fn stored_day(store: &Store, source: &UsageSource, day: Day) -> (Vec<String>, i64, (bool, bool)) {
    let mut db = store.read().await.unwrap();
    let sql = "SELECT core_s || ' ' || jobs || ' ' || partitions FROM usage_daily
               WHERE source_id = $1 AND day = $2 ORDER BY user_id, kind_id";
    let sums = sqlx::query_scalar(sql).bind(source.id.0).bind(day.0).fetch_all(&mut *db).await.unwrap();
    let sql = "SELECT count(*) FROM usage_jobs WHERE source_id = $1 AND day = $2";
    let jobs = sqlx::query_scalar(sql).bind(source.id.0).bind(day.0).fetch_one(&mut *db).await.unwrap();
    let sql = "SELECT is_final, is_outdated FROM usage_days WHERE source_id = $1 AND day = $2";
    let marks = sqlx::query_as(sql).bind(source.id.0).bind(day.0).fetch_one(&mut *db).await.unwrap();
    (sums, jobs, marks)
}

/// Days of 0.1.0 are read again for their partitions; what the cluster has deleted since is not lost.
#[tokio::test]
async fn old_usage_is_read_again_and_never_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("portolan.db");
    unpack("portolan.db", &path);
    let store = Store::open(&path).await.unwrap();
    let (source, day) = outdated_day(&store).await;
    let (sums, jobs, marks) = stored_day(&store, &source, day).await;
    assert!(!sums.is_empty() && jobs > 0);
    assert_eq!(marks, (false, true));
    let read = UsageDayReadRow { day, read_at: UnixTime(4_000_000_000), is_final: true, is_cut: false };
    let save = async |totals: &DayUsageBreakdown| {
        let mut tx = store.write().await.unwrap();
        let saved = save_daily_totals(&mut tx, &source, read, totals).await.unwrap();
        portolan::store::commit(tx).await.unwrap();
        saved
    };
    // The cluster has deleted everything.
    assert_eq!(save(&DayUsageBreakdown::default()).await, SavedUsageDay::Kept);
    assert_eq!(stored_day(&store, &source, day).await, (sums, jobs, (true, false)));

    // Of the next day, the cluster has deleted some: fewer jobs ended than are stored.
    let (source, day) = outdated_day(&store).await;
    let (sums, jobs, _) = stored_day(&store, &source, day).await;
    let read = UsageDayReadRow { day, ..read };
    let save = async |jobs: u64| {
        let partitions = UsageBreakdown::parse("cpu:60:0:1");
        let totals = UsageTotals { core_s: 60, jobs, partitions, ..UsageTotals::default() };
        let rows = vec![("bob".to_owned(), "fit".to_owned(), totals)];
        let mut tx = store.write().await.unwrap();
        // The list of jobs is compared in a unit test.
        let sql = "DELETE FROM usage_jobs WHERE source_id = $1 AND day = $2";
        sqlx::query(sql).bind(source.id.0).bind(day.0).execute(&mut *tx).await.unwrap();
        let totals = DayUsageBreakdown { rows, jobs: Vec::new() };
        save_daily_totals(&mut tx, &source, read, &totals).await.unwrap()
    };
    assert!(jobs > 0);
    assert_eq!(save(0).await, SavedUsageDay::Kept);
    assert_eq!(save(1000).await, SavedUsageDay::Replaced);
    assert_eq!(stored_day(&store, &source, day).await.0, sums, "these were not committed");
}

/// What a PI read where Slurm shows only their own jobs, or may do so, is not taken for the whole group's usage.
#[tokio::test]
async fn narrow_views_do_not_become_the_groups() {
    for (facts, kept) in [
        ("json_set(learnt, '$.hides_jobs', json('true'))", (0_i64, 7_i64)),
        ("json_remove(learnt, '$.hides_jobs')", (0, 0)),
        ("json_set(learnt, '$.slurm_version', NULL)", (0, 0)),
        ("''", (0, 0)),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("portolan.db");
        unpack("portolan.db", &path);
        let mut before = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
        let sql = format!("UPDATE lines SET learnt = {facts} WHERE learnt <> ''");
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut before).await.unwrap();
        sqlx::Connection::close(before).await.unwrap();
        let store = Store::open(&path).await.unwrap();
        let mut db = store.read().await.unwrap();
        let sql = "SELECT count(group_id), count(person_id) FROM usage_sources";
        let found: (i64, i64) = sqlx::query_as(sql).fetch_one(&mut *db).await.unwrap();
        assert_eq!(found, kept, "{facts}");
        let sql = "SELECT count(*) FROM usage_jobs WHERE source_id NOT IN (SELECT id FROM usage_sources)";
        assert_eq!(sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut *db).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn sentences_with_output_are_split() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("portolan.db");
    unpack("portolan.db", &path);
    let mut before = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    for sql in [
        "UPDATE lines SET problem = 'The cluster hung up.' || char(10, 10) || 'Node down' || char(10, 10) || 'Bye'",
        "UPDATE usage_books SET problem = 'Slurm''s accounting did not answer. It said: sacct: error: It said: no'",
    ] {
        sqlx::query(sql).execute(&mut before).await.unwrap();
    }
    sqlx::Connection::close(before).await.unwrap();
    let store = Store::open(&path).await.unwrap();
    let mut db = store.read().await.unwrap();
    let connections: Vec<(String, String, String)> =
        sqlx::query_as("SELECT DISTINCT problem, problem_code, problem_notices FROM connections")
            .fetch_all(&mut *db)
            .await
            .unwrap();
    assert_eq!(connections, [("The cluster hung up.".into(), "other".into(), "Node down\n\nBye".into())]);
    let sources: Vec<(String, String)> =
        sqlx::query_as("SELECT DISTINCT problem, problem_output FROM usage_sources").fetch_all(&mut *db).await.unwrap();
    let output = "sacct: error: It said: no".to_owned();
    assert_eq!(sources, [("Slurm's accounting did not answer.".to_owned(), output)]);
}

#[tokio::test]
async fn whoever_was_signed_in_finds_every_page() {
    let (portal, expected) = upgraded().await;
    for (name, pages) in expected["pages"].as_object().unwrap() {
        let person = portal.visitor();
        let session = expected["session_cookies"][name]["portolan_session"].as_str().unwrap();
        person.set_cookie(&format!("portolan_session={session}"));
        for (path, told) in pages.as_object().unwrap() {
            let mut answer = get(&person, path).await;
            // A group opens on its usage for those who lead it.
            if answer.status == 303 && told["status"] == 200 {
                answer = get(&person, answer.location()).await;
            }
            assert_eq!(u64::from(answer.status), told["status"], "{name} {path}");
        }
    }
    let alice = &expected["people"][1];
    let [name, password] = ["name", "password"].map(|field| alice[field].as_str().unwrap());
    assert_eq!(portal.visitor().sign_in(name, password).await.status, 303);
}

#[tokio::test]
async fn links_and_guests_cookies_go_on_working() {
    let (portal, expected) = upgraded().await;
    let links = expected["invitations"].as_object().unwrap().values();
    for link in links.chain([&expected["reset_link"]]) {
        let answer = get(&portal.visitor(), &path_of(link)).await;
        assert_eq!(u64::from(answer.status), link["answer"]["status"], "{link}");
    }
    for kind in ["board_links", "report_links"] {
        for link in expected[kind].as_object().unwrap().values() {
            let told = &link["answer"];
            let guest = Client::new(&portal.dashboards_url);
            let answer = get(&guest, &path_of(link)).await;
            assert_eq!(u64::from(answer.status), told["status"], "{link}");
            if answer.status != 303 {
                continue;
            }
            let place = answer.location().to_owned();
            if let Some(passphrase) = link["passphrase"].as_str() {
                let unlock = format!("{place}unlock");
                let wrong = guest.post(&unlock, &[("passphrase", "not this one")]).await;
                assert_eq!(u64::from(wrong.status), told["wrong_passphrase"], "{link}");
                let right = guest.post(&unlock, &[("passphrase", passphrase)]).await;
                assert_eq!(right.status, 303, "{link}");
            }
            assert_eq!(u64::from(get(&guest, &place).await.status), told["then"], "{link}");
        }
    }
    for who in ["guest-open", "guest-report-open"] {
        let cookie = &expected["guest_cookies"][who];
        let [path, name, value] = ["path", "name", "value"].map(|key| cookie[key].as_str().unwrap());
        let guest = Client::new(&portal.dashboards_url);
        guest.set_cookie(&format!("{name}={value}; Path=/"));
        assert_eq!(get(&guest, path).await.status, 200, "{who}");
    }
    portal.clock.advance(2 * 86_400);
    let short = path_of(&expected["board_links"]["short"]);
    assert_eq!(Client::new(&portal.dashboards_url).get(&short).await.status, 410);
}

#[tokio::test]
async fn a_backup_of_then_is_restored() {
    let installation = Installation::new();
    put_key(&installation.data());
    let backup = installation.dir.path().join("backup.db");
    unpack("backup.db", &backup);
    let restored = installation.run(&["restore", backup.to_str().unwrap()]);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    let store = Store::open(&installation.data().join("portolan.db")).await.unwrap();
    let mut db = store.read().await.unwrap();
    assert_eq!(portolan::store::people::count(&mut db).await.unwrap(), 7);
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM sessions").fetch_one(&mut *db).await.unwrap();
    assert_eq!(left, 0, "everyone signs in again");
}

/// There is no way back but the backup: an older program refuses, changes nothing, and says so.
#[tokio::test]
async fn an_older_program_refuses_a_newer_database_and_restores_the_backup() {
    let installation = Installation::new();
    put_key(&installation.data());
    let path = installation.data().join("portolan.db");
    unpack("portolan.db", &path);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let upgraded = installation.run(&["user", "list"]);
    assert!(upgraded.status.success(), "{}", String::from_utf8_lossy(&upgraded.stderr));
    // What a program of the future leaves behind.
    let mut db = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    let sql = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
               VALUES (9000, 'of the future', TRUE, x'00', 0)";
    sqlx::query(sql).execute(&mut db).await.unwrap();
    sqlx::query("ALTER TABLE people RENAME TO persons").execute(&mut db).await.unwrap();
    sqlx::Connection::close(db).await.unwrap();

    for command in [&["user", "list"][..], &["serve"], &["backup", "x.db"]] {
        let refused = installation.run(command);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success(), "{command:?}");
        assert!(said.contains("written by a newer version of Portolan"), "{command:?}: {said}");
        assert!(said.contains("restore the backup from before the upgrade"), "{command:?}: {said}");
    }
    let doctor = String::from_utf8_lossy(&installation.run(&["doctor"]).stdout).into_owned();
    assert!(doctor.contains("written by a newer version of Portolan"), "{doctor}");

    // A backup of the newer program is refused before it replaces anything.
    let newer = installation.dir.path().join("newer.db");
    std::fs::copy(&path, &newer).unwrap();
    let refused = installation.run(&["restore", newer.to_str().unwrap(), "--replace"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("Nothing was changed"), "{said}");

    let backup = installation.dir.path().join("backup.db");
    unpack("backup.db", &backup);
    let restored = installation.run(&["restore", backup.to_str().unwrap(), "--replace"]);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    let listed = String::from_utf8_lossy(&installation.run(&["user", "list"]).stdout).into_owned();
    assert!(listed.contains("alice"), "{listed}");
}
