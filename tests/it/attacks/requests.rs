//! Requests that make no sense: answered in words, and without repeating them.

use reqwest::Method;

use super::{World, routes, world};
use crate::support::client::{send, send_too_large};

/// Lessons 6 and 13: errors repeat nothing of the request, and numbers of requests are ours.
#[tokio::test]
async fn error_pages_never_echo_the_request() {
    let world = world().await;
    for client in [&world.admin, &world.portal.visitor()] {
        for path in [
            "/evil<b>?evil=1",
            "/groups/evil",
            "/people/evil?evil",
            "/join/evil-token",
            "/activity?before=evil",
            "/sign-in?next=//evil.org",
            "/assets/evil",
            "//evil.org/evil",
        ] {
            let request = client.request(Method::GET, path).header("x-request-id", "evil-id");
            let page = send(request.header("user-agent", "evil").header("referer", "http://evil/")).await;
            assert!(!page.text().contains("evil"), "{path}: {}", page.text());
            assert_ne!(page.header("x-request-id"), "evil-id");
            assert!(!page.location().contains("evil.org"), "{path}: {}", page.location());
        }
    }
    let page = world.portal.visitor().get("/no-such-page").await;
    assert_eq!((page.status, page.select_text("h1").as_str()), (404, "Page not found"));
}

/// Buttons without fields.
const NO_FORM: &[&str] = &[
    "/revoke",
    "/remove",
    "/delete",
    "/connect",
    "/disconnect",
    "/hide",
    "/show",
    "/forget",
    "/test-key",
    "/test",
    "/webhook/secret",
    "/install",
    "/retire",
    "/restore",
    "/end-alarm",
    "/dashboards/{id}/start",
    "/dashboards/{id}/wake",
    "/dashboards/{id}/extend",
    "/dashboards/{id}/stop",
    "/submissions/{id}/again",
    "/submissions/{id}/cancel",
    "/archive",
    "/storage/refresh",
    "/transfers/clear",
    "/transfers/{id}/pause",
    "/transfers/{id}/resume",
    "/transfers/{id}/cancel",
    "/transfers/{id}/dismiss",
    "/terminal",
    "/terminals/{id}/close",
    "/upload-batch",
    "/uploads",
    "/uploads/{id}",
];

#[tokio::test]
async fn unreadable_forms_are_answered_with_a_client_error() {
    let world = world().await;
    let World { portal, admin, .. } = &world;
    let form = "application/x-www-form-urlencoded";
    let large = format!("name=x&password={}", "x".repeat(64 * 1024));
    let just = format!("name=x&password={}", "x".repeat(60 * 1024));
    let multipart = "multipart/form-data; boundary=x";
    let before = portal.snapshot().await;
    for (kind, body, status) in [
        (form, large.as_bytes(), 413),
        (form, just.as_bytes(), 422),
        (form, b"", 400),
        (form, b"name=x", 400),
        (form, b"name=x&name=y&password=z", 400),
        (form, b"name=%ff%fe&password=%c3%28", 422),
        (form, b"name=%&password=%zz", 422),
        (form, b"\xff\xfe\x00&=&=&&&", 400),
        (form, b"name[]=x&password[a]=y", 400),
        ("application/json", b"{\"name\":\"ada\",\"password\":\"x\"}", 400),
        ("text/plain", b"name=ada&password=x", 400),
        ("", b"name=ada&password=x", 400),
        (multipart, b"--x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nada\r\n--x--", 400),
        (multipart, b"--x\r\n\xff\x00garbage", 400),
        ("multipart/form-data", b"", 400),
    ] {
        let request = portal.visitor().request(Method::POST, "/sign-in").header("origin", &portal.url);
        let page = send(request.header("content-type", kind).body(body.to_vec())).await;
        let start = String::from_utf8_lossy(&body[..body.len().min(30)]).into_owned();
        assert_eq!(page.status, status, "{kind}: {start}");
        assert!(page.select_text("h1").len() > 5, "in words");
    }
    for route in routes().iter().filter(|route| route.verbs.contains(&"POST")) {
        let skip = ["/sign-out", "/account/devices/end-all", "/account/devices/{id}/end"];
        let takes_no_form = route.path.starts_with("/people")
            || route.path.ends_with("/as-me")
            || NO_FORM.iter().any(|end| route.path.ends_with(end));
        if skip.contains(&route.path.as_str()) || takes_no_form {
            continue;
        }
        let path = world.fill(&route.path);
        let request = admin.request(Method::POST, &path).header("origin", &portal.url);
        // Forms with a script or a recipe in them may be longer.
        let is_long = path.starts_with("/compose/") || path.starts_with("/recipes");
        // A selection of files may have thousands of names.
        let is_selection = path.starts_with("/files/");
        let most = if is_selection {
            8 * 1024 * 1024
        } else if is_long {
            2 * 1024 * 1024
        } else {
            64 * 1024
        };
        let page = send_too_large(request.header("content-type", form).body(vec![b'x'; most + 6 * 1024])).await;
        assert!(page.is_none_or(|page| page.status == 413), "{path}");
        let request = admin.request(Method::POST, &path).header("origin", &portal.url);
        let page = send(request.header("content-type", multipart).body("--x\r\n\u{0}")).await;
        assert_eq!(page.status, 400, "{path}");
    }
    let people = async |text: &str| text.split("Entry {").next().unwrap().to_owned();
    assert_eq!(people(&portal.snapshot().await).await, people(&before).await);
}
