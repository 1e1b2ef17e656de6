//! Recipes as files: in and out unchanged, refused with their lines, and told when they no longer read.

use portolan::store;

use super::{FILE, post};
use crate::support::TestApp;
use crate::support::wait::wait_until;

#[tokio::test]
async fn recipe_files_round_trip_unchanged_or_are_refused() {
    let (portal, _admin, max) = TestApp::with_member("max").await;
    portal.give_place(&max, "max").await;
    let long = format!("{FILE}# {}\n", "x".repeat(300_000));
    let lines = |text: &str, near: &str| text.lines().position(|line| line.contains(near)).unwrap() + 1;
    let unknown = FILE.replace("summary =", "colour = 'red'\nsummary =");
    let broken = FILE.replace("{{ who }}", "{{ who");
    let nobody = FILE.replace("{{ who }}", "{{ whom }}");
    let second = "[[questions]]\nkey = \"b\"\nkind = \"switch\"\nlabel = \"B\"\nshow_when = { who = [\"x\"] }\n";
    let circle = format!("{FILE}show_when = {{ b = [true] }}\n{second}");
    let block = FILE.replace("\"resources\"", "\"nothing-like-it\"");
    for (text, problem) in [
        (unknown.as_str(), format!("Line {}: unknown field `colour`", lines(&unknown, "colour"))),
        (&broken, format!("Line {}: ", lines(&broken, "{{ who"))),
        (&nobody, format!("Line {}: The script uses “whom”", lines(&nobody, "whom"))),
        (&circle, "depends on itself".to_owned()),
        (&block, format!("Line {}: There is no block", lines(&block, "nothing"))),
        (&FILE.replace("Say hello", ""), "Title: Enter a name.".to_owned()),
        (&long, "The file is longer than 256 kB.".to_owned()),
        ("", "missing field".to_owned()),
        ("name = ", "Line 1: ".to_owned()),
    ] {
        let page = max.post("/recipes/import", &[("file", text)]).await;
        assert_eq!(page.status, 422, "{problem}");
        assert!(
            page.select_text(".error-summary").contains(&problem),
            "{problem}: {}",
            page.select_text(".error-summary")
        );
    }
    assert_eq!(portal.count("recipes").await, 0);

    let sent = FILE.replace('\n', "\r\n");
    assert_eq!(max.post("/recipes/import", &[("file", &sent)]).await.location(), "/recipes/1");
    let out = max.get("/recipes/1/export").await;
    assert_eq!(out.text(), FILE);
    assert_eq!(out.header("content-disposition"), "attachment; filename=\"say-hello.toml\"");
    assert!(out.header("content-type").starts_with("text/plain"));
    max.post("/recipes/import", &[("file", out.text())]).await;
    assert_eq!(max.get("/recipes/2/export").await.text(), FILE);
    assert!(max.get("/compose/key/r1").await.select_text("#composed").contains("echo hello world"));

    let ours = max.get("/recipes/shipped/python-script/export").await;
    assert_eq!(max.post("/recipes/import", &[("file", ours.text())]).await.status, 303);
    assert_eq!(max.get("/recipes/3/export").await.text(), ours.text());
    assert_eq!(max.get("/recipes/shipped/nothing/export").await.status, 404);

    // By hand: an error with its line, then the mended file as version 2.
    let wrong = max.post("/recipes/1/file", &[("file", &broken), ("was", "1")]).await;
    assert_eq!(wrong.status, 422);
    assert!(wrong.select_text(".error-summary").contains(&format!("Line {}", lines(&broken, "{{ who"))));
    assert_eq!(wrong.select_text("[name=file]").trim(), broken.trim(), "what was typed is there");
    let hi = FILE.replace("echo hello", "echo hi");
    assert_eq!(max.post("/recipes/1/file", &[("file", &hi), ("was", "1")]).await.status, 303);
    assert!(max.get("/compose/key/r1").await.select_text("#composed").contains("echo hi world"));
    assert_eq!(max.get("/recipes/1/export?version=1").await.text(), FILE, "never changed");
}

#[tokio::test]
async fn unreadable_recipe_is_reported_and_can_be_repaired() {
    let (portal, admin, max) = TestApp::with_member("max").await;
    portal.give_place(&max, "max").await;
    max.post("/recipes/import", &[("file", FILE)]).await;
    let gone = FILE.replace("resources", "gone-block");
    let mut tx = portal.app.store.write().await.unwrap();
    let query = sqlx::query("UPDATE recipe_versions SET text = $1").bind(&gone);
    query.execute(&mut *tx).await.unwrap();
    store::commit(tx).await.unwrap();
    let page = max.get("/compose/key/r1").await;
    assert_eq!((page.status, page.select_text("h1").as_str()), (409, "This recipe no longer works"));
    assert!(page.text().contains("There is no block “gone-block”."));
    let page = max.get("/recipes/1").await;
    assert!(page.status == 200 && page.select_text(".alert").contains("gone-block"));
    assert!(max.get("/compose").await.select_text("[aria-labelledby=shelf-own]").contains("This recipe can't be used"));
    assert_eq!(max.get("/recipes/1/export").await.text(), gone);
    let page = max.get("/recipes/1/change").await;
    assert!(page.status == 200 && page.select_all("form[action='/recipes/1/change']").is_empty());
    assert_eq!(post(&max, "/recipes/1/change", &vec![("was".into(), "1".into())]).await.status, 409);
    assert_eq!(max.post("/recipes/1/file", &[("file", FILE), ("was", "1")]).await.status, 303);
    assert_eq!(max.get("/compose/key/r1").await.status, 200);

    // An administrator's file that is wrong is told to administrators.
    let folder = portal.app.config.data_dir.join("recipes");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("bad.toml"), "name = 'x'\ncolour = 1\n").unwrap();
    wait_until("it is noticed", async || admin.get("/recipes").await.text().contains("bad.toml")).await;
    assert!(admin.get("/recipes").await.select_text(".alert").contains("Line 2"));
    assert!(!max.get("/recipes").await.text().contains("bad.toml"));
}
