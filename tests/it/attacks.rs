//! What others got wrong (lessons (d) of our notes on peers), tried on every address and every field.

mod origins;
mod requests;
mod text;

use reqwest::Method;
use scraper::{Html, Selector};

use crate::support::app::new_person;
use crate::support::client::send;
use crate::support::totp::turn_on;
use crate::support::{Client, PASSWORD, Page, TestApp};

/// An address of the portal.
pub struct Route {
    pub path: String,
    pub verbs: Vec<&'static str>,
}

/// Every address of the portal, read from its own table: no new one is forgotten here.
pub fn routes() -> Vec<Route> {
    let source = include_str!("../../src/web/routes.rs");
    let table = source.split("pub fn dashboard_router").next().unwrap();
    let route = |text: &str| {
        let path = text.split('"').nth(1).unwrap().to_owned();
        let verbs = [("get(", "GET"), ("post(", "POST")].into_iter();
        Route { path, verbs: verbs.filter(|(word, _)| text.contains(word)).map(|(_, v)| v).collect() }
    };
    let routes: Vec<Route> = table.split(".route(").skip(1).map(route).collect();
    assert!(routes.len() > 30 && routes.iter().all(|route| !route.verbs.is_empty()));
    routes
}

/// A portal with an administrator, a group, an open invitation, and a member.
struct World {
    portal: TestApp,
    admin: Client,
    link: String,
    lab: i64,
}

async fn world() -> World {
    let (portal, admin, _bob) = TestApp::with_member("bob").await;
    let lab = portal.group(&admin, "Smith Lab").await;
    let link = portal.invite(&admin, lab, "member").await;
    World { portal, admin, link, lab }
}

impl World {
    /// An address with things that exist in it.
    fn fill(&self, path: &str) -> String {
        let token = self.link.trim_start_matches("/join/");
        let path = path.replace("{id}", "1").replace("{person}", "2").replace("{link}", "2");
        let path = path.replace("{report}", "1").replace("{allocation}", "1");
        path.replace("{token}", token).replace("{file}", "app.css")
    }

    /// Every page, and every kind of error page.
    async fn pages(&self) -> Vec<(String, Page)> {
        let mut pages = Vec::new();
        let visitor = self.portal.visitor();
        for route in routes() {
            let path = self.fill(&route.path);
            if route.verbs.contains(&"GET") && path != "/events" {
                pages.push((format!("admin {path}"), self.admin.get(&path).await));
                pages.push((format!("visitor {path}"), visitor.get(&path).await));
            }
            if route.verbs == ["POST"] {
                pages.push((format!("405 {path}"), self.admin.get(&path).await));
            }
        }
        let bad = [("name", ""), ("role", "member"), ("days", "0"), ("display_name", "")];
        for path in ["/groups", &format!("/groups/{}/invitations", self.lab), "/account/name"] {
            pages.push((format!("422 {path}"), self.admin.post(path, &bad).await));
        }
        pages.push(("422 /sign-in".into(), visitor.sign_in("ada", "wrong").await));
        pages.push(("422 join".into(), visitor.post(&self.link, &new_person("1")).await));
        pages.push(("404".into(), visitor.get("/no/such/page").await));
        pages.push(("403".into(), send(visitor.request(Method::POST, "/sign-in")).await));
        pages.push(("400".into(), self.admin.post("/groups", &[]).await));
        pages.push(("409".into(), self.admin.post("/people/1/disable", &[]).await));
        let json = visitor.request(Method::GET, "/nope").header("accept", "application/json");
        pages.push(("json".into(), send(json).await));
        let fragment = visitor.request(Method::GET, "/nope").header("hx-request", "true");
        pages.push(("fragment".into(), send(fragment).await));
        pages
    }
}

/// Lessons 1, 6, 19, 21: every answer, errors included, carries the same protection.
#[tokio::test]
async fn every_response_has_security_headers() {
    let world = world().await;
    turn_on(&world.portal, &world.admin).await;
    let waiting = world.portal.visitor();
    waiting.sign_in("ada", PASSWORD).await;
    let mut pages = world.pages().await;
    pages.push(("code".into(), waiting.get("/sign-in/code").await));
    let html = pages.iter().filter(|(_, page)| page.header("content-type").contains("html"));
    assert!(html.count() > 30);
    for (name, page) in pages {
        assert!(page.status < 500, "{name}: {}", page.status);
        let policy = page.header("content-security-policy");
        for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "base-uri 'none'"] {
            assert!(policy.split("; ").any(|found| found == part), "{name}: {part} not in {policy}");
        }
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'self'"));
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{name}: {policy}");
        assert_eq!(page.header("x-content-type-options"), "nosniff", "{name}");
        assert_eq!(page.header("x-frame-options"), "DENY", "{name}");
        assert_eq!(page.header("referrer-policy"), "same-origin", "{name}");
        assert_eq!(page.header("cross-origin-opener-policy"), "same-origin", "{name}");
        assert_eq!(page.header("cross-origin-resource-policy"), "same-origin", "{name}");
        assert_eq!(page.header("cache-control"), "private, no-store", "{name}");
        assert!(!page.header("x-request-id").is_empty(), "{name}");
        let cors = page.headers.keys().find(|key| key.as_str().starts_with("access-control"));
        assert_eq!(cors, None, "{name}");
        refuse_inline(&name, &page);
    }
}

/// No script, style or handler inside a page: the policy would block it, or it is somebody's attack.
fn refuse_inline(name: &str, page: &Page) {
    let html = Html::parse_document(page.text());
    for element in html.select(&Selector::parse("*").unwrap()) {
        let tag = element.value().name();
        let is_inline = tag == "script" && element.attr("src").is_none();
        assert!(!is_inline && tag != "style" && tag != "iframe", "{name}: {}", element.html());
        for (key, value) in element.value().attrs() {
            let runs = key.starts_with("on") || key.starts_with("hx-on") || key == "style" || key == "srcdoc";
            let address = value.trim().to_lowercase();
            let leads = ["href", "xlink:href", "src", "action", "formaction", "hx-get", "hx-post"];
            let leads_out = leads.contains(&key)
                && !(address.starts_with('/') && !address.starts_with("//") || address.starts_with('#'));
            assert!(!runs && !leads_out, "{name}: {key}={value}");
        }
    }
}

#[tokio::test]
async fn only_assets_are_cacheable_and_their_paths_cannot_escape() {
    let portal = TestApp::start().await;
    let visitor = portal.visitor();
    let page = visitor.get("/sign-in").await;
    let addresses = [
        (page.attribute("link[rel=stylesheet]", "href"), "text/css; charset=utf-8"),
        (page.attribute("script", "src"), "text/javascript; charset=utf-8"),
        (page.attribute("link[rel=icon]", "href"), "image/svg+xml"),
    ];
    for (address, kind) in addresses {
        let page = visitor.get(&address).await;
        assert_eq!((page.status, page.header("content-type")), (200, kind), "{address}");
        assert_eq!(page.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(page.header("set-cookie"), "");
        assert_eq!(page.header("x-content-type-options"), "nosniff");
    }
    for path in [
        "/assets/app.css",
        "/assets/app.00000000.css",
        "/assets/..%2f..%2fCargo.toml",
        "/assets/%2e%2e%2fVENDORED.md",
        "/assets/..%5c..%5cCargo.toml",
        "/assets/%2fetc%2fpasswd",
        "/assets/vendor%2fhtmx.min.js",
        "/assets/%00",
        "/assets/",
        "/assets/x/../../Cargo.toml",
        "/Cargo.toml",
        "/.git/config",
    ] {
        let page = visitor.get(path).await;
        assert_eq!((page.status, page.header("cache-control")), (404, "private, no-store"), "{path}");
        assert!(!page.text().contains("[package]") && !page.text().contains("root:"), "{path}");
    }
}
