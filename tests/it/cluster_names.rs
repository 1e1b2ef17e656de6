//! Names that try to be more than names: user names, host names and short names of clusters.

use crate::support::server::Server;
use crate::support::{Client, TestApp};

const TRICKS: &[&str] = &[
    "",
    " ",
    "-l root",
    "-oProxyCommand=touch /tmp/portolan-was-here",
    "two words",
    "line\nProxyCommand touch /tmp/portolan-was-here",
    "line\r\nUser root",
    "tab\tbed",
    "$(id)",
    "`id`",
    "a;b",
    "a|b",
    "%h",
    "\"quoted\"",
    "#x",
    "nul\0nul",
    "\u{202e}gnp",
];

#[tokio::test]
async fn hostile_user_names_are_refused() {
    let server = Server::start();
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_server("own", &server).await;
    alice.make_key().await;
    for name in TRICKS.iter().copied().chain(["someone@example.org", &"x".repeat(65)]) {
        let refused = alice.post("/clusters/own/user", &[("user", name)]).await;
        assert_eq!(refused.status, 422, "{name:?}");
        assert!(refused.text().contains("aria-invalid"), "{name:?}: said next to the field");
        let begun = alice.post_and_follow("/clusters/own/connect", &[]).await;
        assert!(begun.text().contains("First enter your user name"), "{name:?}");
    }
    // A name that is one but nobody's goes to the server as it is.
    alice.name_user("own", "no.such_body-1").await;
    alice.post("/clusters/own/connect", &[]).await;
    alice.wait_until_asked("own", "rejected your SSH key").await;
    assert!(server.log().contains("Invalid user no.such_body-1 from"), "{}", server.log());
    assert!(!std::path::Path::new("/tmp/portolan-was-here").exists());
}

/// The form of a new cluster with some fields changed.
async fn add(admin: &Client, change: &[(&str, &str)]) -> crate::support::Page {
    let base = "name = \"own\"\ntitle = \"Own\"\n";
    let mut form = vec![
        ("name", "own"),
        ("title", "Own"),
        ("host", "127.0.0.1"),
        ("port", "1"),
        ("jump_host", ""),
        ("jump_port", "22"),
        ("robot_host", ""),
        ("robot_port", "22"),
        ("calls_per_minute", "20"),
        ("idle_minutes", "45"),
        ("connects_per_hour", "60"),
        ("storage", ""),
        ("accounts", ""),
        ("units", ""),
        ("base", base),
    ];
    for (field, value) in change {
        form.iter_mut().find(|(name, _)| name == field).unwrap().1 = value;
    }
    admin.post("/clusters/new", &form).await
}

/// Before the host is asked for its keys, and at the field.
#[tokio::test]
async fn a_short_name_that_is_taken_is_noticed_on_the_first_step() {
    let (portal, admin) = TestApp::with_admin().await;
    portal.add_cluster("key").await;
    let file = "name = \"key\"\ntitle = \"Own\"\n[login]\nhost = \"127.0.0.1\"\nport = 1\n";
    let import = admin.post("/clusters/import", &[("file", file)]).await;
    for refused in [add(&admin, &[("name", "key")]).await, import] {
        assert_eq!(refused.status, 422);
        assert!(refused.select_text("#f-name-error").contains("A cluster with this short name already exists."));
        assert_eq!(refused.attribute("#f-title", "value"), "Own", "what was typed stays");
    }
    assert_eq!(add(&admin, &[("name", "other")]).await.status, 200);
}

#[tokio::test]
async fn hostile_host_names_ports_and_slugs_are_refused() {
    let (portal, admin) = TestApp::with_admin().await;
    assert_eq!(add(&admin, &[]).await.status, 200, "the plain form is fine");
    for field in ["host", "jump_host", "robot_host"] {
        for name in TRICKS.iter().filter(|name| !name.trim().is_empty() || field == "host") {
            let refused = add(&admin, &[(field, name)]).await;
            assert_eq!(refused.status, 422, "{field} {name:?}");
            assert!(refused.text().contains("Enter a host name such as"), "{field} {name:?}");
        }
    }
    for name in TRICKS.iter().copied().chain(["Upper", "9nine", "dot.ted", "a/b", "..", &"x".repeat(33)]) {
        let refused = add(&admin, &[("name", name)]).await;
        assert_eq!(refused.status, 422, "short name {name:?}");
        assert!(refused.text().contains("Use up to 32 lower-case letters"), "{name:?}");
    }
    for port in ["0", "65536", "-1", "22 -oProxyCommand=x", "", "x"] {
        assert_eq!(add(&admin, &[("port", port)]).await.status, 422, "port {port:?}");
    }
    for file in [
        "name = \"own\"\ntitle = \"Own\"\n[login]\nhost = \"-oProxyCommand=x\"\n",
        "name = \"own\"\ntitle = \"Own\"\n[login]\nhost = \"a b\"\n",
        "name = \"../x\"\ntitle = \"Own\"\n[login]\nhost = \"a\"\n",
        "name = \"own\"\ntitle = \"a\\nb\"\n[login]\nhost = \"a\"\n",
    ] {
        assert_eq!(admin.post("/clusters/import", &[("file", file)]).await.status, 422, "{file}");
        let form = [("site", file), ("keys", ""), ("compared", "true")];
        assert_eq!(admin.post("/clusters", &form).await.status, 422, "{file}");
    }
    let mut db = portal.app.store.read().await.unwrap();
    assert!(portolan::store::clusters::list(&mut db).await.unwrap().is_empty(), "none was added");
    assert!(!std::path::Path::new("/tmp/portolan-was-here").exists());
}
