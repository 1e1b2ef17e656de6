//! User names that belong to nobody in the portal: named and merged by a PI, everywhere in the figures.

use super::{EVIL, world};

#[tokio::test]
async fn a_pi_names_and_merges_user_names_everywhere() {
    let world = world().await;
    world.fill().await;
    let path = world.url("user-names");
    let old = world.pi.get(&world.url("logins")).await;
    assert_eq!((old.status, old.location()), (308, path.as_str()), "an old bookmark");
    let page = world.pi.get(&path).await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.select_all("#evil").is_empty());
    let mut listed = page.attributes("input[name=user_name]", "value");
    listed.sort();
    assert_eq!(listed, [EVIL, "gone"], "members are named already");
    let save = async |user_name: &str, name: &str| {
        let form = [("cluster", "key"), ("user_name", user_name), ("name", name)];
        world.pi.post(&path, &form).await.status
    };
    let hostile = "Erik <i id=evil>Berg</i>";
    assert_eq!(save("gone", hostile).await, 303);
    for file in ["usage", "usage/jobs?outcome=out-of-time", "report?month=2026-11"] {
        let page = world.pi.get(&world.url(file)).await;
        let said = page.select_text("main");
        assert!(said.contains("Erik <i id=evil>Berg</i>"), "{file}: {said}");
        assert!(page.select_all("#evil").is_empty(), "{file}");
    }
    for file in ["usage/members.csv", "usage/days.csv", "usage/jobs.csv"] {
        let text = world.pi.get(&world.url(file)).await;
        assert!(text.text().contains("Erik <i id=evil>Berg</i>"), "{file}: {}", text.text());
    }
    // Two user names with one name are one person: one row, with the jobs of both.
    let rows = async || world.pi.get(&world.url("usage/members.csv")).await.text().lines().count();
    let before = rows().await;
    assert_eq!(save(EVIL, hostile).await, 303);
    assert_eq!(rows().await, before - 1);
    let page = world.pi.get(&world.url("usage")).await;
    let links = page.attributes("a[href*='member=u']", "href");
    let jobs = world.pi.get(&links[0]).await;
    let users = jobs.select_all("[data-label=Member] .cell-sub");
    assert!(users.contains(&"gone".to_owned()) && users.contains(&EVIL.to_owned()), "{users:?}");
    // Apart again.
    assert_eq!(save(EVIL, " ").await, 303);
    assert_eq!(rows().await, before);
    let log = world.admin.get("/activity").await;
    assert!(log.select_text("main").contains("Entered a name for a user name"), "{}", log.text());
}

#[tokio::test]
async fn only_pis_name_user_names_and_only_known_ones() {
    let world = world().await;
    world.fill().await;
    let path = world.url("user-names");
    let form =
        |user_name: &'static str, name: &'static str| [("cluster", "key"), ("user_name", user_name), ("name", name)];
    for who in [&world.member, &world.other, &world.admin] {
        assert!([403, 404].contains(&who.get(&path).await.status));
        assert!([403, 404].contains(&who.post(&path, &form("gone", "Erik")).await.status));
    }
    // A member's own user name, and one that nobody has.
    for user_name in ["max", "pia", "nobody", ""] {
        assert_eq!(world.pi.post(&path, &form(user_name, "Erik")).await.status, 404, "{user_name}");
    }
    let long = "x".repeat(5000);
    let page = world.pi.post(&path, &[("cluster", "key"), ("user_name", "gone"), ("name", &long)]).await;
    assert_eq!(page.status, 422, "{}", page.status);
    // Members read no names, whoever gave them.
    assert_eq!(world.pi.post(&path, &form("gone", "Erik Berg")).await.status, 303);
    for file in ["usage", "usage/members.csv", "usage/jobs.csv"] {
        assert!(!world.member.get(&world.url(file)).await.text().contains("Erik Berg"), "{file}");
    }
}
