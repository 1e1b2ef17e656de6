//! The form of a new dashboard: what it offers, what it refuses, and that it makes one and not two.

use super::{EVIL, form_with};
use crate::support::TestApp;

#[tokio::test]
async fn submitting_the_form_twice_makes_one_dashboard() {
    let (portal, _admin, max) = TestApp::with_member("max").await;
    let page = max.get("/dashboards").await;
    assert!(page.text().contains("Create your first dashboard"));
    let page = max.get("/dashboards/new").await;
    assert!(page.text().contains("No clusters yet") && page.select_all("#new-board").is_empty());
    portal.give_cluster_account(&max, "max").await;

    let page = max.get("/dashboards/new?cluster=key&kind=mlflow&place=/scratch/max/mlruns").await;
    assert_eq!(page.attribute("#f-kind-mlflow", "checked"), "");
    assert_eq!(page.attribute("#f-place", "value"), "$SCRATCH/mlruns");
    assert_eq!(page.attribute("[name=account] option[selected]", "value"), "");
    assert_eq!(page.attribute("[name=minutes] option[selected]", "value"), "60");
    assert!(page.select_text(".dashboard-cost").contains("Cost: about"));
    assert!(page.select_text("main").contains("You're not connected"));
    let nonce = page.attribute("[name=form]", "value");

    let form = [
        ("form", nonce.as_str()),
        ("kind", "tensorboard"),
        ("cluster", "key"),
        ("place", "$SCRATCH/runs"),
        ("place", ""),
        ("place", "/scratch/max/runs/"),
        ("place", " ~/it's; $(id) `id` "),
        ("minutes", "120"),
        ("account", "def-two"),
        ("title", "Curves"),
    ];
    let made = max.post("/dashboards", &form).await;
    assert_eq!((made.status, made.location()), (303, "/dashboards/1"), "{}", made.text());
    let again = max.post("/dashboards", &form).await;
    assert_eq!(again.location(), "/dashboards/1", "a double click");
    let page = max.get("/dashboards/1").await;
    assert_eq!(page.select_text("h1"), "Curves");
    assert_eq!(page.select_all(".dashboard-list li"), ["/scratch/max/runs", "/home/max/it's; $(id) `id`"]);
    let list = max.get("/dashboards").await;
    assert!(list.select_text(".dashboard-row").contains("TensorBoard on"), "{}", list.text());
    assert!(list.select_text(".dashboard-row").contains("and 1 more"));

    let page = max.get("/dashboards/new?cluster=key&place=/scratch/max/runs").await;
    let recent = page.select_all(".dashboard-offer li");
    assert!(recent.contains(&"/home/max/it's; $(id) `id`".to_owned()), "{recent:?}");
    assert_eq!(page.attribute(".dashboard-offer input[checked]", "value"), "/scratch/max/runs");
    assert_eq!(page.attribute("#f-place", "value"), "", "what is ticked is not typed as well");
    assert_eq!(
        page.attribute("#dashboard-fields .alert a[href^='/dashboards/']", "href"),
        "/dashboards/1",
        "it is asked for"
    );
    let other = max.get("/dashboards/new?cluster=key&place=/scratch/max/other").await;
    assert!(other.select_all("#dashboard-fields .alert a[href^='/dashboards/']").is_empty());
    let log = max.get("/account/activity").await;
    assert!(log.text().contains("Curves"));
}

#[tokio::test]
async fn errors_are_shown_at_their_field() {
    let (portal, _admin, max) = TestApp::with_member("max").await;
    portal.give_cluster_account(&max, "max").await;
    let long = "x".repeat(81);
    let deep = format!("/{}", "x".repeat(2000));
    for (changes, field, problem) in [
        (vec![("place", "")], "place", "Choose at least one folder."),
        (vec![("place", "runs")], "place", "Enter the full path"),
        (vec![("place", "$NOWHERE/runs")], "place", "Enter the full path"),
        (vec![("place", "/scratch/../etc")], "place", "Enter the full path"),
        (vec![("place", "/a\nb")], "place", "Enter the full path"),
        (vec![("place", &deep)], "place", "Enter the full path"),
        (vec![("minutes", "0")], "minutes", "Choose one of the listed times."),
        (vec![("minutes", "99999")], "minutes", "Choose one of the listed times."),
        (vec![("minutes", "soon")], "minutes", "Choose one of the listed times."),
        (vec![("account", "def-others")], "account", "Choose one of your accounts."),
        (vec![("title", &long)], "title", "Use at most 80 characters."),
        (vec![("title", "a\u{202e}b")], "title", "invisible"),
        (vec![("cluster", "nowhere")], "cluster", "Choose one of your clusters."),
    ] {
        let page = max.post("/dashboards", &form_with(&changes)).await;
        assert_eq!(page.status, 422, "{changes:?}");
        let summary = page.select_text(".error-summary");
        assert!(summary.contains(problem), "{changes:?}: {summary}");
        let href = page.attribute(".error-summary a", "href");
        assert_eq!(href, format!("#f-{field}"), "{changes:?}");
        assert_eq!(page.select_all(&href).len(), 1, "the summary leads to the field {field}");
    }
    let mut two = form_with(&[("kind", "mlflow")]);
    two.push(("place", "/scratch/max/other"));
    let page = max.post("/dashboards", &two).await;
    assert!(page.select_text(".error-summary").contains("one tracking folder"), "{}", page.text());
    let mut many = form_with(&[]);
    let paths: Vec<String> = (0..40).map(|number| format!("/runs/{number}")).collect();
    many.extend(paths.iter().map(|path| ("place", path.as_str())));
    let page = max.post("/dashboards", &many).await;
    assert!(page.select_text(".error-summary").contains("at most 12 folders"), "{}", page.text());
    assert_eq!(max.post("/dashboards", &form_with(&[("form", " ")])).await.status, 400);
    let no_path = EVIL.trim_start_matches('/');
    let page = max.post("/dashboards", &form_with(&[("title", EVIL), ("place", no_path)])).await;
    assert_eq!((page.status, page.select_all("#evil").len()), (422, 0));
    assert_eq!(page.attribute("#f-place", "value"), no_path, "what was typed stays");
    assert_eq!(portal.dashboards_as_stored().await, "[]\n[]\n[]");
}

/// Without script, one more field and another choice are a way to the server and back; nothing is made by it.
#[tokio::test]
async fn form_works_without_javascript() {
    let (portal, admin, max) = TestApp::with_member("max").await;
    portal.give_cluster_account(&max, "max").await;
    let page = max.post("/dashboards", &form_with(&[("add", "yes"), ("title", "Mine")])).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.attribute("#f-place", "value"), "$SCRATCH/runs");
    assert_eq!(page.attribute("#f-place-2", "value"), "");
    assert_eq!(page.attribute("[name=title]", "value"), "Mine");
    assert_eq!(page.attribute("[name=form]", "value"), "0123456789abcdef");
    let page = max.post("/dashboards", &form_with(&[("look", "yes"), ("kind", "mlflow")])).await;
    assert!(page.select_all("[name=add]").is_empty(), "MLflow shows one at a time");
    assert_eq!(page.attribute("[data-pick]", "data-pick-kind"), "any");
    assert_eq!(portal.dashboards_as_stored().await, "[]\n[]\n[]");

    // Nothing is known of this person there, and of these clusters nothing but that they exist.
    portal.add_cluster("mfa").await;
    let page = admin.get("/dashboards/new").await;
    let not_here = page.select_text("#not-here");
    assert_eq!(
        not_here.matches("You haven't set up these clusters yet. Set up a connection to run dashboards there.").count(),
        1
    );
    let clusters = page.select_all("#not-here a[href^='/clusters/']");
    assert_eq!(clusters.len(), 2, "the reason is said once for all: {not_here}");
    admin.name_user("key", "ada").await;
    let page = admin.get("/dashboards/new").await;
    assert!(page.text().contains("Connect first"), "{}", page.text());
    let page = admin.post("/dashboards", &form_with(&[("place", "/home/ada/runs")])).await;
    assert_eq!(page.status, 422);
    assert!(page.select_text(".error-summary").contains("Connect first"));
}

#[tokio::test]
async fn suggested_folders_come_from_the_own_connection_only() {
    let (portal, admin, max) = TestApp::with_member("max").await;
    portal.give_cluster_account(&max, "max").await;
    let page = max.get("/dashboards/found?cluster=key&kind=tensorboard&place=x&place=y").await;
    assert_eq!(page.status, 200);
    assert!(page.select_text("body").contains("You're not connected to the cluster."), "{}", page.text());
    for path in ["/dashboards/found", "/dashboards/found?cluster=key&kind=x", "/dashboards/found?kind=mlflow"] {
        assert_eq!(max.get(path).await.status, 404, "{path}");
    }
    assert_eq!(admin.get("/dashboards/found?cluster=key&kind=mlflow").await.status, 404);
}
