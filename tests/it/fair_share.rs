//! How a group stands, on the real cluster: fair share, queued demand, storage by person, and why a priority is low.

use portolan::cluster::ClusterAccountId;
use portolan::domain::{GroupId, PersonId};
use portolan::sites::QuotaTool;
use portolan::store;

use crate::queue::{cancel, submit, wait_for_list};
use crate::support::client::send;
use crate::support::cluster::Cluster;
use crate::support::server::site_at;
use crate::support::wait::wait_until;
use crate::support::{Client, TestApp};

/// A portal with a group that has two accounts, led by asmith, with alice in it; both are connected.
pub async fn lab() -> (TestApp, Client, Client, Client, i64) {
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    let group = portal.group(&admin, "Smith Lab").await;
    let pi = portal.join(&portal.invite(&admin, group, "pi").await, "asmith").await;
    let alice = portal.join(&portal.invite(&admin, group, "member").await, "alice").await;
    let mut site = site_at("key", Cluster::get().port("key"));
    site.units.fair_share = true;
    site.storage.quota_tool = QuotaTool::DiskusageReport;
    portal.add_site(&site).await;
    let mut tx = portal.app.store.write().await.unwrap();
    let cluster = store::clusters::find_by_slug(&mut tx, "key").await.unwrap().unwrap().id;
    let accounts = ["def-smith".to_owned(), "rrg-smith".to_owned()];
    store::allocations::set_accounts(&mut tx, GroupId(group), cluster, &accounts).await.unwrap();
    store::commit(tx).await.unwrap();
    for (who, name) in [(&pi, "asmith"), (&alice, "alice")] {
        who.prepare("key", name).await;
        who.connect("key").await;
    }
    (portal, admin, pi, alice, group)
}

#[tokio::test(flavor = "multi_thread")]
async fn pi_sees_fair_share_queued_demand_and_storage_by_person() {
    let (portal, admin, pi, alice, group) = lab().await;
    // Held, so that it waits for as long as it is looked at.
    let job = submit("alice", "true", &["-A", "def-smith", "-H", "-c", "4", "-t", "60", "-a", "0-4"]);
    let path = format!("/groups/{group}/usage/fair-share");
    let page = wait_for_list(&pi, &path, "shares, queue and storage", |page| {
        page.select_all(".standing-share").len() >= 2
            && page.text().contains("Storage by member in def-smith")
            && page.select_all("#standing-queue-key tbody tr").len() == 2
            && page.select_text("#standing-queue-key").contains("20")
    })
    .await;
    let text = page.select_text("main");
    assert!(text.contains("def-smith") && text.contains("rrg-smith") && text.contains("Updated"));
    assert!(text.contains("weight of past usage halves every 7 days"), "{text}");
    assert!(page.select_text("#standing-storage-key").contains("/project (project def-smith)"));
    let members = page.select_text("#share-members-key-def-smith");
    assert!(members.contains("alice") && members.contains("bob"), "{members}");
    let people = page.select_text("#standing-people-key-1");
    assert!(people.contains("alice") && people.contains("bob"), "{people}");
    let request = pi.request(reqwest::Method::GET, &path).header("hx-request", "true");
    let part = send(request).await;
    assert!(!part.text().contains("<html") && part.text().contains("id=\"standing\""));

    let page = wait_for_list(&alice, &path, "shares and queue", |page| {
        page.select_all(".standing-share").len() >= 2
            && page.select_all("#standing-queue-key tbody tr").len() == 2
            && page.text().contains("/project (project def-smith)")
    })
    .await;
    let text = page.select_text("main");
    for name in ["bob", "carol", "asmith", "Storage by member", "By member"] {
        assert!(!text.contains(name), "{name} is shown to a member: {text}");
    }

    let mut db = portal.app.store.read().await.unwrap();
    let cluster = store::clusters::find_by_slug(&mut db, "key").await.unwrap().unwrap().id;
    for name in ["asmith", "alice"] {
        let person = portal.person_id(name).await;
        let sql = "SELECT count(*) FROM fair_share_history WHERE person_id = $1 AND account = 'def-smith'";
        let points: i64 = sqlx::query_scalar(sql).bind(person).fetch_one(&mut *db).await.unwrap();
        assert_eq!(points, 1, "{name}, however often the pages were looked at");
    }
    drop(db);

    // What one of them has read, all see: the same series for the PI and the member.
    let mut tx = portal.app.store.write().await.unwrap();
    let sql = "INSERT INTO fair_share_history (person_id, cluster_id, account, at, share, used)
               VALUES ($1, $2, 'def-smith', $3, 0.25, 0.123456)";
    let (person, at) = (portal.person_id("asmith").await, portal.clock.now().plus(-5 * 86_400));
    sqlx::query(sql).bind(person).bind(cluster.0).bind(at.0).execute(&mut *tx).await.unwrap();
    store::commit(tx).await.unwrap();
    let csv = format!("/groups/{group}/usage/fair-share.csv");
    let (theirs, hers) = (pi.get(&csv).await, alice.get(&csv).await);
    assert!(hers.text().contains("0.123456"), "{}", hers.text());
    assert_eq!(theirs.text(), hers.text());

    let other = portal.group(&admin, "Jones Lab").await;
    let dave = portal.join(&portal.invite(&admin, other, "member").await, "dave").await;
    for path in [path, format!("/groups/{group}/priority"), "/groups/999/priority".to_owned()] {
        let said = dave.get(&path).await;
        assert_eq!(said.status, 403, "the same whether there is such a group or not");
        assert!(!said.text().contains("Smith") && !said.text().contains("def-smith"));
        assert_eq!(admin.get(&path).await.status, 403, "nor does who runs the portal");
    }
    cancel("alice", &job);
}

#[tokio::test(flavor = "multi_thread")]
async fn member_sees_why_their_priority_is_low() {
    let (_portal, _admin, _pi, alice, group) = lab().await;
    // It asks for a node that is busy with itself: more cores than are free, so that it waits in line.
    let jobs: Vec<String> = (0..4)
        .map(|_| {
            let options = ["-A", "def-smith", "-J", "in-line", "-p", "cpu", "-w", "c3", "-c", "8", "-t", "5"];
            submit("alice", "sleep 200", &options)
        })
        .collect();
    // An array of which one task runs: the others wait.
    let options = ["-A", "def-smith", "-J", "array-line", "-p", "cpu", "-w", "c2", "-c", "8", "-a", "0-3", "-t", "5"];
    let array = submit("alice", "sleep 200", &options);
    let ask = ["exec", "--as", "alice", "squeue", "-h", "-j", &array, "-t", "running"];
    wait_until("a task of it runs", async || !Cluster::get().script(&ask).stdout.is_empty()).await;
    let path = format!("/groups/{group}/priority");
    wait_for_list(&alice, &path, "the rank of those that wait", |page| {
        let line = page.select_all(".rank-job");
        line.iter().any(|one| one.contains("array-line"))
    })
    .await;
    cancel("alice", &array);
    let page = wait_for_list(&alice, &path, "ranks of waiting jobs", |page| {
        let jobs = page.select_all(".rank-job");
        !page.select_all(".rank-account").is_empty() && jobs.iter().any(|one| one.contains("in-line"))
    })
    .await;
    let text = page.select_text("main");
    assert!(text.contains("def-smith") && text.contains("Group's share"), "{text}");
    let part = send(alice.request(reqwest::Method::GET, &path).header("hx-request", "true")).await;
    assert_eq!(part.select_all("#priority-title[hx-swap-oob]"), page.select_all("#priority-title"));
    assert!(page.select_all(".rank-job").len() <= 5);
    assert!(!page.text().contains(" style="), "style is in the style sheet only");
    let last = jobs.last().unwrap();
    let link = format!("href=\"/groups/{group}/priority\"");
    wait_for_list(&alice, &format!("/jobs/key/{last}"), "the way from the job's page", |page| {
        page.text().contains(&link)
    })
    .await;
    cancel("alice", &jobs.join(" "));
}

#[tokio::test(flavor = "multi_thread")]
async fn fair_share_is_read_again_when_asked_for() {
    let (portal, _admin, pi, _alice, group) = lab().await;
    let path = format!("/groups/{group}/usage/fair-share");
    wait_for_list(&pi, &path, "fair share and its button", |page| {
        page.select_all(".standing-share").len() >= 2 && page.select_all("#refresh-group-key").len() == 1
    })
    .await;
    let cluster = store::clusters::find_by_slug(&mut portal.app.store.read().await.unwrap(), "key").await;
    let key =
        ClusterAccountId { person: PersonId(portal.person_id("asmith").await), cluster: cluster.unwrap().unwrap().id };
    let read_at = async || portal.app.queue_monitor.snapshot(key).await.unwrap().resources.shares_at;
    let before = read_at().await;
    // The time that is shown has whole seconds.
    wait_until("the next second", async || portal.app.clock.now().0 > before.unwrap_or(0)).await;
    let form = [("cluster", "key"), ("page", "priority")];
    let answer = pi.post(&format!("{path}/refresh"), &form).await;
    assert_eq!((answer.status, answer.location()), (303, format!("/groups/{group}/priority").as_str()));
    wait_until("newer figures", async || read_at().await > before).await;
    wait_for_list(&pi, &path, "the button again", |page| page.select_all("#refresh-group-key").len() == 1).await;
    assert_eq!(pi.post(&format!("{path}/refresh"), &[("cluster", "nowhere")]).await.status, 404);
}
