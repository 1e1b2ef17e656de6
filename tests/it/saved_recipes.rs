//! Recipes that people keep: saved from a form, used, fixed, changed in versions, shared with a group, in and out as files.

mod files;
mod sharing;

use portolan::cluster::DiscoveredFacts;
use portolan::cluster::discovered_facts::{DiscoveredUserFolder, FolderKind};
use portolan::store;
use scraper::{Html, Selector};

use crate::accessibility::audit;
use crate::support::browser::Browser;
use crate::support::server::site_at;
use crate::support::{Client, Page, TestApp};

/// A host key, so that there can be a cluster; nobody connects to it.
const HOST_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINfWrr1i597zvwGC8fHEx8KXa4aGkFm6BJk/3bOELP8w";

const TITLE: &str = "Train <b>it</b> \"nightly\"";
const HELP: &str = "<i>At most</i> three hours & no more.";

/// A recipe's file.
const FILE: &str = r#"# Kept as it is, this remark included.
name = "hello"
title = "Say hello"
summary = "To somebody."
use = ["resources"]
script = '''
echo hello {{ who }}
'''

[[questions]]
key = "who"
kind = "text"
label = "To whom"
required = true
default = "world"
"#;

type Fields = Vec<(String, String)>;

impl TestApp {
    /// A cluster that is never reached, and what someone's place there is like.
    async fn give_place(&self, who: &Client, name: &str) {
        let mut db = self.app.store.read().await.unwrap();
        let is_there = store::clusters::find_by_slug(&mut db, "key").await.unwrap().is_some();
        drop(db);
        if !is_there {
            self.add_pinned(&site_at("key", 9), &[("login".to_owned(), HOST_KEY.to_owned())]).await;
        }
        who.name_user("key", name).await;
        let path = format!("/scratch/{name}");
        let folder = DiscoveredUserFolder { label: FolderKind::Scratch, path, writable: true, group: None };
        let learnt = DiscoveredFacts {
            user: Some(name.to_owned()),
            home: Some(format!("/home/{name}")),
            folders: vec![folder],
            ..DiscoveredFacts::default()
        };
        let learnt = serde_json::to_string(&learnt).unwrap();
        let key = self.connection_key(name, "key").await;
        let mut tx = self.app.store.write().await.unwrap();
        store::connections::save_discovered(&mut tx, key, &learnt, self.clock.now()).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    async fn count(&self, table: &str) -> i64 {
        let mut db = self.app.store.read().await.unwrap();
        let sql = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        sqlx::query_scalar(sql).fetch_one(&mut *db).await.unwrap()
    }

    /// Everything the database says of recipes, to be compared.
    async fn kept(&self) -> Vec<(i64, Option<i64>, Option<i64>, String, i64)> {
        let mut db = self.app.store.read().await.unwrap();
        sqlx::query_as(
            "SELECT id, group_id, archived_at, title, (SELECT count(*) FROM recipe_versions WHERE recipe_id = id)
             FROM recipes ORDER BY id",
        )
        .fetch_all(&mut *db)
        .await
        .unwrap()
    }
}

/// What a browser would send for a form.
fn fields(page: &Page, form: &str) -> Fields {
    let html = Html::parse_document(page.text());
    let form = html.select(&Selector::parse(form).unwrap()).next().expect("the form");
    let all = Selector::parse("input[name], select[name], textarea[name]").unwrap();
    let chosen = Selector::parse("option[selected]").unwrap();
    let mut found = Fields::new();
    for one in form.select(&all) {
        let is_ticked = one.attr("checked").is_some();
        let is_box = matches!(one.attr("type"), Some("checkbox" | "radio"));
        if one.attr("disabled").is_some() || (is_box && !is_ticked) {
            continue;
        }
        let value = match one.value().name() {
            "select" => one.select(&chosen).next().and_then(|one| one.attr("value")).unwrap_or("").to_owned(),
            "textarea" => one.text().collect(),
            _ => one.attr("value").unwrap_or("").to_owned(),
        };
        found.push((one.attr("name").unwrap().to_owned(), value));
    }
    found
}

/// The same with other values.
fn with(mut fields: Fields, changes: &[(&str, &str)]) -> Fields {
    for (name, value) in changes {
        fields.retain(|(known, _)| known != name);
        fields.push(((*name).to_owned(), (*value).to_owned()));
    }
    fields
}

async fn post(who: &Client, path: &str, fields: &Fields) -> Page {
    let pairs: Vec<(&str, &str)> = fields.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    who.post(path, &pairs).await
}

/// Fills the form of a recipe in and saves it as another one; gives its address.
async fn save(who: &Client, changes: &[(&str, &str)]) -> String {
    let page = who.get("/compose/key/python-script").await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.text().contains("/compose/key/python-script/save"), "the button");
    let form =
        with(fields(&page, "#compose"), &[("a.script", "/home/max/run.py"), ("a.memory", "8 GB"), ("a.mail", "true")]);
    let page = post(who, "/compose/key/python-script/save", &form).await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert_eq!(page.attribute("[name='d.memory']", "value"), "8 GB");
    assert!(page.select_all("details[open] [name='d.memory']").is_empty(), "the questions are folded");
    let form = with(fields(&page, "form[action='/recipes']"), &[("title", TITLE), ("h.time", HELP)]);
    let saved = post(who, "/recipes", &with(form, changes)).await;
    assert_eq!(saved.status, 303, "{}", saved.select_text("main"));
    saved.location().to_owned()
}

/// The form of a kept recipe, ready to be sent.
async fn form_of(who: &Client, name: &str) -> Fields {
    let page = who.get(&format!("/compose/key/{name}")).await;
    assert_eq!(page.status, 200, "{}", page.text());
    fields(&page, "#compose")
}

#[tokio::test]
async fn saved_recipe_fills_the_form_and_keeps_fixed_fields() {
    let (portal, _admin, max) = TestApp::with_member("max").await;
    portal.give_place(&max, "max").await;
    assert!(max.get("/recipes").await.text().contains("No recipes yet"));
    let changes = [("l.cores", "true"), ("d.cores", "2"), ("most.time", "3:00:00")];
    assert_eq!(save(&max, &changes).await, "/recipes/1");

    let page = max.get("/recipes/1").await;
    assert_eq!(page.select_text("h1"), TITLE);
    assert!(page.select_all("main b, main i").is_empty() && page.select_text("dl").contains('2'));
    assert!(max.get("/compose").await.select_text("[aria-labelledby=shelf-own]").contains(TITLE));
    assert!(max.get("/recipes").await.select_text("[aria-labelledby=mine-title]").contains(TITLE));
    let page = max.get("/compose/key/r1").await;
    assert_eq!(page.select_text("h1"), TITLE);
    assert_eq!(page.attribute("[name='a.memory']", "value"), "8 GB");
    assert_eq!(page.attribute("[name='a.script']", "value"), "/home/max/run.py");
    assert_eq!(page.attribute("[name='a.mail']", "checked"), "");
    assert_eq!(page.attribute("[name='a.cores']", "readonly"), "");
    let help = page.select_text("[id='f-a.time-hint']");
    assert!(help.starts_with(HELP) && help.ends_with("At most 3:00:00."), "{help}");
    assert!(page.select_text("#composed").contains("--cpus-per-task=2"));

    let form = form_of(&max, "r1").await;
    for (key, value, problem) in [("a.cores", "9", "The recipe sets this answer"), ("a.time", "4:00:00", "3")] {
        let refused = post(&max, "/compose/key/r1", &with(form.clone(), &[(key, value)])).await;
        assert_eq!(refused.status, 422, "{key}");
        assert!(refused.select_text(".error-summary").contains(problem), "{key}");
    }
    assert_eq!(portal.count("submissions").await, 0);
    let log = max.get("/account/activity").await;
    assert!(log.text().contains("Saved a recipe"));
}

#[tokio::test]
async fn errors_are_shown_at_their_field_and_nothing_is_saved() {
    let (portal, _admin, max) = TestApp::with_member("max").await;
    portal.give_place(&max, "max").await;
    let page = post(&max, "/compose/key/python-script/save", &form_of(&max, "python-script").await).await;
    assert_eq!(page.attribute("[name=title]", "value"), "", "it needs a name of its own");
    let form = with(fields(&page, "form[action='/recipes']"), &[("title", TITLE), ("d.script", "x.py")]);
    for (changes, problem) in [
        (vec![("title", " ")], "Enter a name."),
        (vec![("title", "a\u{202E}b")], "contains an invisible character"),
        (vec![("d.cores", "many")], "CPU cores"),
        (vec![("d.cores", "8"), ("most.cores", "4")], "Must be at most 4."),
        (vec![("least.time", "soon")], "Time limit"),
        (vec![("d.script", ""), ("l.script", "true")], "fixed and empty"),
    ] {
        let page = post(&max, "/recipes", &with(form.clone(), &changes)).await;
        assert_eq!(page.status, 422, "{problem}");
        assert!(page.select_text(".error-summary").contains(problem), "{}", page.select_text(".error-summary"));
        let is_open = !page.select_all("details[open] [name='d.script']").is_empty();
        assert_eq!(is_open, !changes.iter().any(|(name, _)| *name == "title"), "{problem}");
        assert_eq!(page.attribute("[name='d.script']", "value"), if problem.contains("fixed") { "" } else { "x.py" });
    }
    assert_eq!(post(&max, "/recipes", &with(form.clone(), &[("who", "99")])).await.status, 403);
    assert_eq!(post(&max, "/recipes", &with(form.clone(), &[("who", "x")])).await.status, 400);
    assert_eq!(post(&max, "/recipes", &with(form, &[("base", "nothing")])).await.status, 404);
    let by_hand = with(form_of(&max, "python-script").await, &[("base", "a\nb\n"), ("own", "a\nc\n")]);
    let page = post(&max, "/compose/key/python-script/save", &by_hand).await;
    assert!(page.select_text(".alert").contains("Your script edits won't be saved"), "{}", page.text());
    assert_eq!(portal.count("recipes").await, 0);
}

#[tokio::test]
async fn old_jobs_keep_the_version_they_ran_with() {
    let (portal, _admin, max) = TestApp::with_member("max").await;
    portal.give_place(&max, "max").await;
    save(&max, &[("l.cores", "true"), ("d.cores", "2")]).await;
    let sent = post(&max, "/compose/key/r1", &form_of(&max, "r1").await).await;
    assert_eq!((sent.status, sent.location()), (303, "/submissions/1"), "{}", sent.text());

    let change = fields(&max.get("/recipes/1/change").await, "form[action='/recipes/1/change']");
    let mut changed = with(change.clone(), &[("d.memory", "16 GB"), ("note", "more <b>memory</b>")]);
    changed.retain(|(name, _)| name != "l.cores");
    let saved = post(&max, "/recipes/1/change", &changed).await;
    assert_eq!((saved.status, saved.location()), (303, "/recipes/1"), "{}", saved.text());
    let again = post(&max, "/recipes/1/change", &changed).await;
    assert_eq!(again.status, 422, "made from a version that is no longer the newest");
    assert!(again.select_text(".error-summary").contains("version 2 while you were editing"));

    let page = max.get("/recipes/1").await;
    assert_eq!(page.select_all("tbody tr").len(), 2);
    assert!(page.select_text("tbody tr").contains("more <b>memory</b>"));
    let new = max.get("/compose/key/r1").await;
    assert_eq!(new.attribute("[name='a.memory']", "value"), "16 GB");
    assert!(new.select_all("[name='a.cores'][readonly]").is_empty());
    let old = max.get("/compose/again/1").await;
    assert_eq!(old.attribute("[name='a.memory']", "value"), "8 GB");
    assert_eq!(old.select_all("[name='a.cores'][readonly]").len(), 1, "as version 1 has it");
    assert_eq!(old.attribute("#compose", "action"), "/compose/key/r1v1");
    assert!(old.select_text(".alert-title").contains("Older version"));
    let of = async |version: &str| max.get(&format!("/recipes/1/export{version}")).await.text().to_owned();
    assert!(of("?version=1").await.contains("8 GB") && of("").await.contains("16 GB"));

    assert_eq!(max.post("/recipes/1/delete", &[]).await.location(), "/recipes");
    for path in
        ["/recipes/1", "/compose/key/r1", "/recipes/1/export", "/recipes/1/change", "/recipes/1/export?version=1"]
    {
        assert_eq!(max.get(path).await.status, 404, "{path}");
    }
    let old = max.get("/compose/again/1").await;
    assert_eq!(old.attribute("#compose", "action"), "/compose/key/r1v1", "the job is still known");
    assert_eq!(max.get("/compose/key/r1v1").await.status, 200);
    assert!(max.get("/recipes").await.text().contains("No recipes yet"));
}

#[tokio::test(flavor = "multi_thread")]
async fn recipe_pages_are_accessible() {
    let (portal, admin, max) = TestApp::with_member("max").await;
    let lab = portal.group(&admin, "Smith Lab").await;
    portal.give_place(&max, "max").await;
    let lab = lab.to_string();
    save(&max, &[("l.cores", "true"), ("d.cores", "2"), ("who", &lab)]).await;
    max.post("/recipes/import", &[("file", FILE)]).await;
    for width in [1280, 390] {
        let browser = Browser::open(&portal.url, width).await;
        browser.sign_in("max").await;
        for path in ["/recipes", "/recipes/1", "/recipes/1/change", "/recipes/import", "/compose"] {
            browser.go(path).await;
            audit(&browser, &format!("{path} at {width}")).await;
        }
        browser.go("/compose/key/r1").await;
        browser.press("Save as recipe…").await;
        browser.wait_for_text("Next time, the form opens with these answers").await;
        audit(&browser, &format!("keep at {width}")).await;
        let names = browser.find("[name=who][value='1'] + .choice-body .choice-title").await;
        assert_eq!(names.text().await.unwrap(), "Smith Lab");
        browser.close().await;
    }
}
