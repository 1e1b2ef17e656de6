//! What groups' leaders are told: chosen, told once, to those who lead and nobody else.

use portolan::clock::UnixTime;
use portolan::domain::GroupId;
use portolan::jobs::queue_snapshot::PersonSharesAndQuotas;
use portolan::sites::quota::StorageQuota;
use portolan::store;

use crate::reports::{EVIL, Lab, sums};
use crate::support::app::START;

async fn notices(world: &Lab) -> Vec<String> {
    world.pi.get("/notifications").await.select_all(".notices .row-title a")
}

async fn choose(world: &Lab, form: &[(&str, &str)]) {
    let answer = world.pi.post(&format!("/groups/{}/alerts", world.group), form).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
}

async fn put_places(world: &Lab, places: Vec<StorageQuota>) {
    let standing = PersonSharesAndQuotas { places, places_at: Some(START.0), ..PersonSharesAndQuotas::default() };
    let text = serde_json::to_string(&standing).unwrap();
    let mut tx = world.portal.app.store.write().await.unwrap();
    sqlx::query(
        "INSERT INTO queues (person_id, cluster_id, seen_at, standing) VALUES ($1, $2, $3, $4)
         ON CONFLICT (person_id, cluster_id) DO UPDATE SET standing = $4",
    )
    .bind(world.reader.person.0)
    .bind(world.reader.cluster.0)
    .bind(START.0)
    .bind(text)
    .execute(&mut *tx)
    .await
    .unwrap();
    store::commit(tx).await.unwrap();
}

async fn lab() -> Lab {
    let world = Lab::new().await;
    world.put_day(0, &[(EVIL, "train", sums(85, 12, 8)), ("pia", "x", sums(1, 12, 2))]).await;
    world.grant(100.0).await;
    let place = |label: &str, used| StorageQuota {
        label: label.into(),
        used_bytes: used,
        limit_bytes: Some(100),
        ..StorageQuota::default()
    };
    let places = vec![place("/project (project def-lab)", 93), place("/home (user pia)", 99)];
    put_places(&world, places).await;
    world
}

#[tokio::test]
async fn each_alert_is_sent_once_and_only_if_chosen() {
    let world = lab().await;
    let usage = &world.portal.app.usage;
    usage.notify_leader(world.reader).await.unwrap();
    assert!(notices(&world).await.is_empty(), "nothing was chosen");
    choose(&world, &[("quota", "true"), ("storage", "true"), ("failing", "true")]).await;
    let page = world.pi.get(&format!("/groups/{}/alerts", world.group)).await;
    assert_eq!(page.select_all("input[type=checkbox][checked]").len(), 3);
    for _ in 0..3 {
        usage.notify_leader(world.reader).await.unwrap();
    }
    let told = notices(&world).await;
    assert_eq!(told.len(), 3, "{told:?}");
    for words in ["def-lab has used 86% of the 100 core hours granted", "/project (project def-lab)", "8 of 12 jobs by"]
    {
        assert!(told.iter().any(|line| line.contains(words)), "{words}: {told:?}");
    }
    let page = world.pi.get("/notifications").await;
    assert!(page.select_all("#evil").is_empty() && page.text().contains("&#60;b id=evil&#62;"));
    assert!(page.text().contains(&format!("href=\"/groups/{}/usage\"", world.group)));
    assert!(page.text().contains("bell-count"), "it is new");
    let log = world.admin.get("/activity").await;
    assert!(log.text().contains("Changed a group&#39;s usage alerts"));
    assert!(log.text().contains("allocation 80% used, storage 90% full, 50% of a member&#39;s jobs failed"));
    world.portal.clock.advance(86_400);
    usage.notify_leader(world.reader).await.unwrap();
    let mut db = world.portal.app.store.read().await.unwrap();
    let all = store::notifications::list_latest(&mut db, world.reader.person, 100).await.unwrap();
    assert_eq!(all.len(), 3, "not again the next day");
    drop(db);
}

#[tokio::test]
async fn former_pis_get_no_alerts() {
    let world = lab().await;
    choose(&world, &[("failing", "true")]).await;
    let pia = world.reader.person;
    let role = format!("/groups/{}/people/{pia}/role", world.group);
    let max = world.portal.person_id("max").await.to_string();
    assert_eq!(world.admin.post(&role, &[("role", "member"), ("successor", &max)]).await.status, 303);
    world.portal.app.usage.notify_leader(world.reader).await.unwrap();
    assert!(notices(&world).await.is_empty());
}

#[tokio::test]
async fn usage_is_read_while_someone_has_chosen_alerts() {
    let world = lab().await;
    let wanted = async || {
        let mut db = world.portal.app.store.read().await.unwrap();
        store::usage::list_wanted(&mut db, UnixTime(START.0 + 5 * 86_400)).await.unwrap().len()
    };
    assert_eq!(wanted().await, 0);
    choose(&world, &[("quota", "true")]).await;
    assert_eq!(wanted().await, 2, "the group's, and what only this PI's connection shows");
    choose(&world, &[]).await;
    assert_eq!(wanted().await, 0);
    let mut db = world.portal.app.store.read().await.unwrap();
    let kinds = store::usage_alerts::list_kinds(&mut db, world.reader.person, GroupId(world.group)).await;
    assert!(kinds.unwrap().is_empty());
}

#[tokio::test]
async fn pi_sets_from_which_percentage_they_are_told() {
    let world = lab().await;
    let usage = &world.portal.app.usage;
    let path = format!("/groups/{}/alerts", world.group);
    let refused = world.pi.post(&path, &[("quota", "true"), ("quota_percent", "many")]).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(
        refused.text().contains("Enter a whole number from 1 to 100.") && refused.text().contains("value=\"many\"")
    );
    // 86% of the allocation is used, 93% of the folder, and two thirds of the jobs failed.
    choose(&world, &[("quota", "true"), ("quota_percent", "90"), ("storage", "true"), ("storage_percent", "95")]).await;
    let page = world.pi.get(&path).await;
    assert_eq!(page.select_all("input[name=quota_percent][value='90']").len(), 1);
    assert_eq!(page.select_all("input[name=failing_percent][value='50']").len(), 1, "the usual one");
    usage.notify_leader(world.reader).await.unwrap();
    assert!(notices(&world).await.is_empty(), "not yet");
    choose(&world, &[("quota", "true"), ("quota_percent", "60"), ("storage", "true"), ("storage_percent", "92")]).await;
    usage.notify_leader(world.reader).await.unwrap();
    let told = notices(&world).await;
    assert_eq!(told.len(), 2, "{told:?}");
    choose(&world, &[("failing", "true"), ("failing_percent", "70")]).await;
    usage.notify_leader(world.reader).await.unwrap();
    assert_eq!(notices(&world).await.len(), 2, "fewer failed");
}

#[tokio::test]
async fn allocation_that_will_run_out_early_is_told_once_until_the_outlook_changes() {
    let world = Lab::new().await;
    for back in 0..=57 {
        world.put_day(back, &[("pia", "train", sums(10, 1, 0))]).await;
    }
    world.grant(300.0).await;
    let usage = &world.portal.app.usage;
    let set_amount = async |amount: f64| {
        let mut tx = world.portal.app.store.write().await.unwrap();
        sqlx::query("UPDATE allocations SET amount = $1").bind(amount).execute(&mut *tx).await.unwrap();
        store::commit(tx).await.unwrap();
    };
    let told = async || {
        for _ in 0..2 {
            usage.notify_leader(world.reader).await.unwrap();
        }
        notices(&world).await
    };
    assert!(told().await.is_empty(), "nothing was chosen");
    choose(&world, &[("runs_out", "true")]).await;
    let first = told().await;
    assert_eq!(first.len(), 1, "{first:?}");
    assert!(first[0].contains("300 core hours granted to def-lab") && first[0].contains("will run out"), "{first:?}");
    set_amount(5000.0).await;
    assert_eq!(told().await.len(), 1, "it lasts");
    set_amount(300.0).await;
    assert_eq!(told().await.len(), 2, "that is news again");
}
