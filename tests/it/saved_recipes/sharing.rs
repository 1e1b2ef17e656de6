//! A group's recipes: who uses them, who changes them, and that others do not learn that they exist.

use portolan::housekeeping;
use portolan::store;

use super::{FILE, Fields, TITLE, fields, form_of, post, save, with};
use crate::support::{Client, TestApp};

/// A lab with two members and its PI, and another lab's PI. The first recipe is max's, still private.
struct World {
    portal: TestApp,
    admin: Client,
    max: Client,
    mia: Client,
    pia: Client,
    otto: Client,
    lab: i64,
    other: i64,
    /// The form by which the recipe is changed.
    change: Fields,
    file: String,
}

async fn world() -> World {
    let (portal, admin, max) = TestApp::with_member("max").await;
    let lab = portal.group(&admin, "Smith Lab").await;
    let other = portal.group(&admin, "Jones Lab").await;
    let mia = portal.member(&admin, "mia").await;
    let pia = portal.join(&portal.invite(&admin, lab, "pi").await, "pia").await;
    let otto = portal.join(&portal.invite(&admin, other, "pi").await, "otto").await;
    for (who, name) in [(&max, "max"), (&mia, "mia"), (&pia, "pia"), (&otto, "otto"), (&admin, "ada")] {
        portal.give_place(who, name).await;
    }
    save(&max, &[]).await;
    let file = max.get("/recipes/1/export").await.text().to_owned();
    let change = fields(&max.get("/recipes/1/change").await, "form[action='/recipes/1/change']");
    World { portal, admin, max, mia, pia, otto, lab, other, change, file }
}

impl World {
    /// Everything that would change the recipe.
    fn tries(&self) -> [(&'static str, Fields); 6] {
        let file = vec![("file".into(), self.file.clone()), ("was".into(), "1".into())];
        [
            ("/recipes/1/change", self.change.clone()),
            ("/recipes/1/file", file),
            ("/recipes/1/publish", vec![("group".into(), self.other.to_string())]),
            ("/recipes/1/publish", vec![("group".into(), String::new())]),
            ("/recipes/1/delete", Fields::new()),
            ("/recipes/9/delete", Fields::new()),
        ]
    }

    /// For this person there is no such recipe, wherever they ask.
    async fn sees_nothing(&self, who: &Client, name: &str) {
        let before = self.portal.kept().await;
        for path in [
            "/recipes/1",
            "/recipes/1/export",
            "/recipes/1/export?version=1",
            "/compose/key/r1",
            "/compose/key/r1v1",
            "/recipes/1/change",
        ] {
            assert_eq!(who.get(path).await.status, 404, "{name}: {path}");
        }
        for (path, form) in self.tries() {
            assert_eq!(post(who, path, &form).await.status, 404, "{name}: {path}");
        }
        let form = with(form_of(who, "python-script").await, &[("a.script", "x")]);
        for path in ["", "/preview", "/edit", "/save"] {
            let path = format!("/compose/key/r1{path}");
            assert_eq!(post(who, &path, &form).await.status, 404, "{name}: {path}");
        }
        assert!(!who.get("/recipes").await.text().contains("nightly"), "{name}");
        assert!(!who.get("/compose").await.text().contains("nightly"), "{name}");
        let steal = with(self.change.clone(), &[("base", "r1"), ("who", "me")]);
        assert_eq!(post(who, "/recipes", &steal).await.status, 404, "{name}: as a base");
        assert_eq!(self.portal.kept().await, before, "{name}");
    }
}

#[tokio::test]
async fn a_group_shares_its_recipes_and_others_never_see_them() {
    let world = world().await;
    let World { portal, admin, max, mia, pia, otto, lab, other, change, .. } = &world;
    for (who, name) in [(mia, "mia"), (pia, "pia"), (otto, "otto"), (admin, "ada")] {
        world.sees_nothing(who, name).await;
    }

    let publish = |group: i64| vec![("group".to_owned(), group.to_string())];
    assert_eq!(post(max, "/recipes/1/publish", &publish(*other)).await.status, 403, "not their group");
    assert_eq!(post(max, "/recipes/1/publish", &publish(*lab)).await.status, 303);
    world.sees_nothing(otto, "otto").await;
    assert!(
        mia.get("/compose").await.select_text("[aria-labelledby=shelf-groups]").contains("Smith Lab, published by max")
    );
    assert!(mia.get("/recipes").await.select_text("[aria-labelledby=groups-title]").contains(TITLE));
    assert!(admin.get("/recipes").await.select_text("[aria-labelledby=others-title]").contains(TITLE));
    assert_eq!(mia.get("/compose/key/r1").await.attribute("[name='a.memory']", "value"), "8 GB");
    let before = portal.kept().await;
    let page = mia.get("/recipes/1").await;
    assert!(page.status == 200 && !page.text().contains("/delete") && !page.text().contains("/change"));
    assert_eq!(mia.get("/recipes/1/change").await.status, 403);
    for (path, form) in &world.tries()[..5] {
        assert_eq!(post(mia, path, form).await.status, 403, "mia: {path}");
    }
    assert_eq!(portal.kept().await, before);

    let locked = with(change.clone(), &[("l.time", "true"), ("note", "fixed")]);
    assert_eq!(post(pia, "/recipes/1/change", &locked).await.status, 303, "a PI may");
    let form = with(form_of(mia, "r1").await, &[("a.time", "9:00:00")]);
    assert_eq!(post(mia, "/compose/key/r1", &form).await.status, 422);
    assert_eq!(portal.count("submissions").await, 0);
    let again = with(locked, &[("was", "2")]);
    assert_eq!(post(admin, "/recipes/1/change", &again).await.status, 303, "an administrator, too");
}

#[tokio::test]
async fn former_members_lose_the_groups_recipes() {
    let world = world().await;
    let World { portal, admin, max, mia, pia, lab, change, .. } = &world;
    let group = lab.to_string();
    assert_eq!(max.post("/recipes/1/publish", &[("group", &group)]).await.status, 303);
    assert_eq!(mia.get("/recipes/1").await.status, 200);
    let id = portal.person_id("max").await;
    admin.post(&format!("/groups/{lab}/people/{id}/remove"), &[]).await;
    assert_eq!(max.get("/recipes/1").await.status, 200);
    assert_eq!(post(max, "/recipes/1/change", change).await.status, 403);
    assert_eq!(max.post("/recipes/1/delete", &[]).await.status, 403);
    let id = portal.person_id("mia").await;
    admin.post(&format!("/groups/{lab}/people/{id}/remove"), &[]).await;
    world.sees_nothing(mia, "mia").await;

    assert_eq!(pia.post("/recipes/1/publish", &[("group", "")]).await.location(), "/recipes");
    world.sees_nothing(pia, "pia").await;
    assert_eq!(max.get("/recipes/1").await.status, 200, "its owner's again");
    let log = admin.get("/activity").await;
    for words in ["Published a recipe", "Unpublished a recipe"] {
        assert!(log.text().contains(words), "{words}");
    }
}

#[tokio::test]
async fn group_recipe_outlives_its_author() {
    let world = world().await;
    let World { portal, max, mia, pia, lab, .. } = &world;
    max.post("/recipes/import", &[("file", FILE)]).await;
    let group = lab.to_string();
    max.post("/recipes/1/publish", &[("group", &group)]).await;
    let mut tx = portal.app.store.write().await.unwrap();
    let query = sqlx::query("DELETE FROM people WHERE name = 'max'");
    query.execute(&mut *tx).await.unwrap();
    store::commit(tx).await.unwrap();
    housekeeping::sweep(&portal.app, &portal.app.notifications).await;
    assert_eq!(portal.kept().await.iter().map(|one| one.0).collect::<Vec<_>>(), [1]);
    assert_eq!(portal.count("recipe_versions").await, 1, "private ones go with the person");
    let page = mia.get("/recipes/1").await;
    assert!(page.text().contains("no longer has an account here") && page.text().contains(">max<"));
    assert_eq!(mia.get("/compose/key/r1").await.status, 200);
    assert_eq!(pia.post("/recipes/1/publish", &[("group", "")]).await.status, 403, "to nobody");
    assert_eq!(pia.post("/recipes/1/delete", &[]).await.status, 303);
}
