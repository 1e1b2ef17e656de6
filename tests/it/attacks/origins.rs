//! Requests that come from elsewhere or go elsewhere: other sites, other names, other places to be sent to.

use reqwest::Method;

use super::{World, routes, world};
use crate::support::app::new_person;
use crate::support::browser::Browser;
use crate::support::client::send;
use crate::support::{Client, PASSWORD, TestApp};

/// Lesson 11: a page of another site cannot make the browser do anything here.
#[tokio::test]
async fn requests_from_other_sites_change_nothing() {
    let world = world().await;
    let World { portal, admin, .. } = &world;
    let (here, boards) = (portal.url.as_str(), portal.dashboards_url.as_str());
    let port = here.rsplit(':').next().unwrap();
    let suffix = format!("{here}.evil.org");
    let (https, number) = (here.replace("http", "https"), format!("http://127.0.0.1:{port}"));
    let sources: &[&[(&str, &str)]] = &[
        &[],
        &[("origin", "https://evil.org")],
        &[("origin", "null")],
        &[("origin", "")],
        &[("origin", boards)],
        &[("origin", "http://localhost")],
        &[("origin", &suffix)],
        &[("origin", &https)],
        &[("origin", &number)],
        &[("referer", here)],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
        &[("origin", "null"), ("sec-fetch-site", "cross-site")],
        &[("origin", "https://evil.org"), ("sec-fetch-site", "same-origin")],
        &[("origin", here), ("sec-fetch-site", "cross-site")],
        &[("origin", "https://evil.org"), ("x-forwarded-host", "evil.org"), ("referer", here)],
        &[("origin", "https://evil.org"), ("hx-request", "true"), ("x-requested-with", "x")],
    ];
    let fields = [
        ("name", "x"),
        ("display_name", "x"),
        ("role", "pi"),
        ("days", "7"),
        ("admin", "false"),
        ("password", PASSWORD),
        ("current", PASSWORD),
        ("again", PASSWORD),
        ("theme", "dark"),
    ];
    let before = portal.snapshot().await;
    for route in routes().iter().filter(|route| route.verbs.contains(&"POST")) {
        for source in sources {
            let request = admin.request(Method::POST, &world.fill(&route.path)).form(&fields);
            let request = source.iter().fold(request, |request, (k, v)| request.header(*k, *v));
            let page = send(request).await;
            assert_eq!(page.status, 403, "{} from {source:?}", route.path);
            assert_eq!(page.header("set-cookie"), "", "{} from {source:?}", route.path);
        }
    }
    assert_eq!(portal.snapshot().await, before);
    assert!(admin.is_signed_in().await, "nobody was signed out either");
    let own = admin.request(Method::POST, "/account/name").header("sec-fetch-site", "same-origin");
    assert_eq!(send(own.form(&fields)).await.status, 303, "the portal's own pages may");
}

/// Lesson 11: following a link, or a page loading a picture, changes nothing.
#[tokio::test]
async fn get_requests_change_nothing() {
    let world = world().await;
    let World { portal, admin, .. } = &world;
    let before = portal.snapshot().await;
    for route in routes() {
        let path = world.fill(&route.path);
        // Uploads know more verbs, but only from clients that say which protocol they speak.
        let refusal = |verb: &Method| {
            let is_known = route.path == "/uploads/{id}" && ![Method::GET, Method::PUT].contains(verb);
            if is_known { 412 } else { 405 }
        };
        if route.verbs == ["POST"] {
            for verb in [Method::GET, Method::HEAD] {
                let query = admin.request(verb.clone(), &path).query(&new_person("eve"));
                assert_eq!(send(query).await.status, refusal(&verb), "{verb} {path}");
            }
        } else if path != "/events" && path != "/activity.csv" {
            admin.get(&format!("{path}?name=x&admin=true&role=pi&_method=POST")).await;
        }
        for verb in [Method::PUT, Method::DELETE, Method::PATCH] {
            let request = admin.request(verb.clone(), &path).header("origin", &portal.url);
            let request = request.header("x-http-method-override", "POST");
            assert_eq!(send(request).await.status, refusal(&verb), "{verb} {path}");
        }
        let preflight = admin.request(Method::OPTIONS, &path).header("origin", "https://evil.org");
        let page = send(preflight.header("access-control-request-method", "POST")).await;
        assert_eq!(page.header("access-control-allow-origin"), "", "{path}");
    }
    assert_eq!(portal.snapshot().await, before);
    assert!(admin.is_signed_in().await);
}

/// Lessons 6 and 10: a foreign name that points here gets a fixed answer.
#[tokio::test]
async fn other_host_names_are_refused() {
    let world = world().await;
    let World { portal, admin, lab, .. } = &world;
    let right = portal.url.trim_start_matches("http://");
    let port = right.rsplit(':').next().unwrap();
    for host in [
        "evil.org",
        "localhost",
        "localhost:1",
        "",
        "<script>alert(1)</script>",
        &format!("127.0.0.1:{port}"),
        &format!("[::1]:{port}"),
        &format!("{right}.evil.org"),
        &format!("evil.org@{right}"),
        &format!("{right}/"),
        &format!("evil.org, {right}"),
    ] {
        for path in ["/", "/healthz", "/evil-path?evil=1"] {
            let request = admin.request(Method::GET, path).header("host", host);
            let page = send(request.header("x-forwarded-host", right)).await;
            assert_eq!(page.status, 421, "{host}{path}");
            let text = page.text();
            assert!(!text.contains("evil") && !text.contains('<') && !text.contains("127"), "{text}");
            assert_eq!(page.header("set-cookie"), "");
            assert!(page.header("content-security-policy").contains("default-src 'none'"));
        }
        let request = admin.request(Method::POST, "/sign-out").header("host", host);
        assert_eq!(send(request.header("origin", format!("http://{host}"))).await.status, 421);
    }
    let upper = admin.request(Method::GET, "/").header("host", right.to_uppercase());
    assert_eq!(send(upper).await.status, 200, "names have no case");

    let form = [("role", "member"), ("days", "7")];
    let request = admin.request(Method::POST, &format!("/groups/{lab}/invitations")).form(&form);
    let request = request.header("origin", &portal.url).header("x-forwarded-host", "evil.org");
    let page = send(request.header("forwarded", "host=evil.org").header("x-forwarded-proto", "https")).await;
    let link = admin.get(page.location()).await.select_text(".alert code");
    assert!(link.starts_with(&format!("{}/join/", portal.url)), "never built from the request: {link}");
}

/// The switch of light and dark goes back to where it was used, and never further.
#[tokio::test]
async fn theme_switch_never_redirects_to_another_site() {
    let portal = TestApp::start().await;
    let here = &portal.url;
    for (referer, to) in [
        (format!("{here}/account?a=b"), "/account?a=b"),
        (format!("{here}//evil.org/"), "/"),
        (format!("{here}/\\evil.org/"), "/"),
        (format!("{here}.evil.org/"), "/"),
        (format!("{here}@evil.org/"), "/"),
        ("https://evil.org/".into(), "/"),
        (String::new(), "/"),
    ] {
        let request = portal.visitor().request(Method::POST, "/theme").header("origin", here);
        let request = request.header("referer", &referer).form(&[("theme", "dark")]);
        let page = send(request).await;
        assert_eq!((page.status, page.location()), (303, to), "{referer}");
    }
    let visitor = portal.visitor();
    visitor.post("/theme", &[("theme", "\"><script>")]).await;
    assert_eq!(visitor.cookie("portolan_theme").unwrap(), "auto");
    for (cookie, expected) in [("dark", "dark"), ("%22%3E%3Cb%3E", "auto")] {
        visitor.set_cookie(&format!("portolan_theme={cookie}"));
        let page = visitor.get("/sign-in").await;
        assert_eq!(page.attribute("html", "data-theme"), expected);
    }
}

/// Dashboards share one origin: a window that one of them opens must not reach what its opener shows later.
#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_a_dashboard_opens_loses_its_opener() {
    let (portal, _admin) = TestApp::with_admin().await;
    let browser = Browser::open(&portal.dashboards_url, 1280).await;
    browser.go("/s/wrong").await;
    browser.wait_for_text("Invalid link").await;
    let first = browser.window.window().await.unwrap();
    browser.run("window.open(location.href)").await;
    let tabs = browser.window.windows().await.unwrap();
    let second = tabs.into_iter().find(|tab| *tab != first).expect("a second window");
    browser.window.switch_to_window(second).await.unwrap();
    browser.wait_for_text("Invalid link").await;
    assert_eq!(browser.run("return window.opener === null").await, true);
    browser.close().await;
}

/// Whatever is wrong with a request to the dashboards' origin, a person sees a sentence, not an empty page.
#[tokio::test]
async fn bad_requests_to_the_dashboards_origin_get_a_page() {
    let (portal, _admin) = TestApp::with_admin().await;
    let guest = Client::new(&portal.dashboards_url);
    let unlock = |origin: &str| guest.request(Method::POST, "/b/x/unlock").header("origin", origin.to_owned());
    let long = [("passphrase", "x".repeat(5000))];
    for (request, status) in [
        (guest.request(Method::GET, "/r/%ff"), 404),
        (guest.request(Method::GET, "/b/%ff/"), 404),
        (guest.request(Method::GET, "/pdf/%ff"), 404),
        (unlock(&portal.dashboards_url), 400),
        (unlock(&portal.dashboards_url).form(&long), 413),
        (unlock("https://evil.org").form(&[("passphrase", "x")]), 403),
    ] {
        let page = send(request).await;
        assert_eq!(page.status, status, "{}", page.text());
        assert_eq!(page.select_text("h1"), "This request isn't valid", "{status}");
    }
}
