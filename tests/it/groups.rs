//! Groups: who may see and change them, their names, roles in them, and leaving them.

use crate::support::{Client, TestApp};

const LAB: &str = "Smith Lab";

/// A lab with its people, another lab's PI, and someone who belongs nowhere.
struct World {
    portal: TestApp,
    admin: Client,
    lab: i64,
    other: i64,
    /// In this order: the lab's PI, its member, the other lab's PI, someone without a group.
    people: [(&'static str, Client); 4],
}

async fn world() -> World {
    let (portal, admin) = TestApp::with_admin().await;
    let lab = portal.group(&admin, LAB).await;
    let other = portal.group(&admin, "Jones Lab").await;
    let pi = portal.join(&portal.invite(&admin, lab, "pi").await, "pia").await;
    let member = portal.join(&portal.invite(&admin, lab, "member").await, "max").await;
    let other_pi = portal.join(&portal.invite(&admin, other, "pi").await, "otto").await;
    let nobody = portal.join(&portal.invite(&admin, lab, "member").await, "nora").await;
    let nora = portal.person_id("nora").await;
    admin.post(&format!("/groups/{lab}/people/{nora}/remove"), &[]).await;
    let people = [("pia", pi), ("max", member), ("otto", other_pi), ("nora", nobody)];
    World { portal, admin, lab, other, people }
}

/// What needs more than an account: each address, and who of the four may use it.
/// `{lab}`, `{max}` and `{link}` stand for the lab, its member and one of its open invitations; `{report}` and
/// `{shared}` for a report of it and a link to that.
const RIGHTS: &[(&str, &str, &str, &[&str])] = &[
    ("GET", "/groups/{lab}", "", &["pia", "max"]),
    ("GET", "/groups/{lab}/members", "", &["pia", "max"]),
    ("POST", "/groups", "name=Mine", &[]),
    ("POST", "/groups/{lab}/name", "name=Mine", &[]),
    ("POST", "/groups/{lab}/invitations", "role=member&days=7&label=x", &["pia"]),
    ("POST", "/groups/{lab}/invitations", "role=pi&days=7&label=x", &[]),
    ("POST", "/groups/{lab}/invitations/{link}/revoke", "", &["pia"]),
    ("POST", "/groups/{lab}/people/{max}/role", "role=pi", &[]),
    ("GET", "/groups/{lab}/usage", "", &["pia", "max"]),
    ("GET", "/groups/{lab}/usage/fragment", "", &["pia", "max"]),
    ("GET", "/groups/{lab}/usage/fair-share", "", &["pia", "max"]),
    ("GET", "/groups/{lab}/priority", "", &["pia", "max"]),
    ("GET", "/groups/{lab}/usage/jobs", "", &["pia", "max"]),
    ("GET", "/groups/{lab}/usage/members.csv", "", &["pia", "max"]),
    ("GET", "/groups/{lab}/usage/accounts.csv", "", &["pia", "max"]),
    ("GET", "/groups/{lab}/usage/allocations.csv", "", &["pia", "max"]),
    ("GET", "/groups/{lab}/usage/fair-share.csv", "", &["pia", "max"]),
    ("GET", "/groups/{lab}/usage/queue.csv", "", &["pia", "max"]),
    ("GET", "/groups/{lab}/usage/storage.csv", "", &["pia", "max"]),
    ("GET", "/groups/{lab}/usage/kinds.csv", "", &["pia", "max"]),
    ("GET", "/groups/{lab}/usage/days.csv", "", &["pia", "max"]),
    ("GET", "/groups/{lab}/usage/jobs.csv", "", &["pia", "max"]),
    ("GET", "/groups/{lab}/usage/breakdown.csv", "", &["pia", "max"]),
    ("POST", "/groups/{lab}/usage/fair-share/refresh", "cluster=x", &["pia", "max"]),
    ("GET", "/groups/{lab}/sharing", "", &["pia", "max"]),
    ("POST", "/groups/{lab}/sharing/own", "choice=keep", &["pia", "max"]),
    ("POST", "/groups/{lab}/sharing/group", "", &["pia"]),
    ("GET", "/groups/{lab}/user-names", "", &["pia"]),
    ("POST", "/groups/{lab}/user-names", "cluster=x&user_name=y&name=z", &["pia"]),
    ("GET", "/groups/{lab}/accounts", "", &["pia"]),
    ("POST", "/groups/{lab}/accounts", "", &["pia"]),
    ("POST", "/groups/{lab}/allocations", "account=x", &["pia"]),
    ("POST", "/groups/{lab}/allocations/{allocation}", "account=x", &["pia"]),
    ("POST", "/groups/{lab}/allocations/{allocation}/remove", "", &["pia"]),
    ("GET", "/groups/{lab}/report", "", &["pia"]),
    ("POST", "/groups/{lab}/reports", "month=2026-10", &["pia"]),
    ("GET", "/groups/{lab}/reports/{report}", "", &["pia"]),
    ("POST", "/groups/{lab}/reports/{report}/guest-links", "label=x&days=7", &["pia"]),
    ("POST", "/groups/{lab}/reports/{report}/guest-links/{shared}/revoke", "", &["pia"]),
    ("POST", "/groups/{lab}/reports/{report}/remove", "", &["pia"]),
    ("GET", "/groups/{lab}/alerts", "", &["pia"]),
    ("POST", "/groups/{lab}/alerts", "quota=true", &["pia"]),
    ("GET", "/people", "", &[]),
    ("GET", "/people/{max}", "", &[]),
    ("POST", "/people/{max}/disable", "", &[]),
    ("POST", "/people/{max}/enable", "", &[]),
    ("GET", "/people/{max}/delete", "", &[]),
    ("POST", "/people/{max}/delete", "", &[]),
    ("POST", "/people/{max}/admin", "admin=true", &[]),
    ("POST", "/people/{max}/reset-link", "", &[]),
    ("POST", "/people/{max}/second-factor-off", "", &[]),
    ("GET", "/activity", "", &[]),
    ("GET", "/activity.csv", "", &[]),
    ("GET", "/dashboards/guest-links", "", &["pia", "otto"]),
    ("POST", "/clusters", "compared=true", &[]),
    ("GET", "/clusters/new", "", &[]),
    ("POST", "/clusters/new", SETTINGS, &[]),
    ("POST", "/clusters/new/edit", "file=x", &[]),
    ("POST", "/clusters/import", "file=x", &[]),
    ("GET", "/clusters/{slug}/settings", "", &[]),
    ("POST", "/clusters/{slug}/settings", SETTINGS, &[]),
    ("POST", "/clusters/{slug}/file", "file=x", &[]),
    ("GET", "/clusters/{slug}/export", "", &[]),
    ("POST", "/clusters/{slug}/retire", "", &[]),
    ("POST", "/clusters/{slug}/restore", "", &[]),
    ("POST", "/clusters/{slug}/remove", "", &[]),
    ("GET", "/clusters/{slug}/host-keys", "", &[]),
    ("POST", "/clusters/{slug}/host-keys", "compared=true", &[]),
    ("POST", "/clusters/{slug}/end-alarm", "", &[]),
    // Last, because afterwards max may no longer do what is above.
    ("POST", "/groups/{lab}/people/{max}/remove", "", &["pia"]),
];

/// The form of a cluster's settings.
const SETTINGS: &str = "name=x&title=X&host=h&port=22&jump_host=&jump_port=22&robot_host=&robot_port=22&calls_per_minute=20&idle_minutes=45&connects_per_hour=60&storage=&accounts=&units=&base=";

/// What is for everyone who is signed in.
const OWN: &[(&str, &str)] = &[
    ("GET", "/"),
    ("GET", "/help"),
    ("GET", "/compose"),
    ("GET", "/compose/example"),
    ("GET", "/compose/again/{id}"),
    ("GET", "/compose/{slug}/{recipe}"),
    ("POST", "/compose/{slug}/{recipe}"),
    ("POST", "/compose/{slug}/{recipe}/preview"),
    ("POST", "/compose/{slug}/{recipe}/edit"),
    ("POST", "/compose/{slug}/{recipe}/check"),
    ("POST", "/compose/{slug}/{recipe}/estimate"),
    ("POST", "/compose/{slug}/{recipe}/right-size"),
    ("POST", "/compose/{slug}/{recipe}/save"),
    ("GET", "/files/{slug}/storage"),
    ("GET", "/files/{slug}/storage/place"),
    ("POST", "/files/{slug}/storage/measure"),
    ("POST", "/files/{slug}/storage/refresh"),
    ("GET", "/recipes"),
    ("POST", "/recipes"),
    ("GET", "/recipes/import"),
    ("POST", "/recipes/import"),
    ("GET", "/recipes/shipped/{name}/export"),
    ("GET", "/recipes/{id}"),
    ("GET", "/recipes/{id}/export"),
    ("GET", "/recipes/{id}/change"),
    ("POST", "/recipes/{id}/change"),
    ("POST", "/recipes/{id}/file"),
    ("POST", "/recipes/{id}/publish"),
    ("POST", "/recipes/{id}/delete"),
    ("GET", "/jobs/{slug}/{id}/again"),
    ("GET", "/account"),
    ("POST", "/account/name"),
    ("POST", "/account/password"),
    ("GET", "/account/second-factor"),
    ("POST", "/account/second-factor"),
    ("POST", "/account/second-factor/off"),
    ("POST", "/account/second-factor/codes"),
    ("GET", "/account/devices"),
    ("POST", "/account/devices/{id}/end"),
    ("POST", "/account/devices/end-all"),
    ("GET", "/account/activity"),
    ("GET", "/account/notifications"),
    ("POST", "/account/notifications"),
    ("POST", "/account/notifications/webhook"),
    ("POST", "/account/notifications/webhook/test"),
    ("POST", "/account/notifications/webhook/secret"),
    ("POST", "/account/notifications/webhook/remove"),
    ("GET", "/notifications"),
    ("GET", "/notifications/badge"),
    ("POST", "/notifications/read"),
    ("GET", "/account/key"),
    ("POST", "/account/key"),
    ("POST", "/account/key/import"),
    ("POST", "/account/key/replace"),
    ("POST", "/account/key/{id}/delete"),
    ("POST", "/account/key/{id}/unattended"),
    ("GET", "/clusters"),
    ("GET", "/clusters/{slug}"),
    ("GET", "/clusters/{slug}/panel"),
    ("POST", "/clusters/{slug}/user"),
    ("POST", "/clusters/{slug}/connect"),
    ("POST", "/clusters/{slug}/answer"),
    ("POST", "/clusters/{slug}/cancel"),
    ("POST", "/clusters/{slug}/disconnect"),
    ("POST", "/clusters/{slug}/hide"),
    ("POST", "/clusters/{slug}/show"),
    ("POST", "/clusters/{slug}/move"),
    ("GET", "/clusters/{slug}/forget"),
    ("POST", "/clusters/{slug}/forget"),
    ("POST", "/clusters/{slug}/test-key"),
    ("GET", "/clusters/{slug}/folders"),
    ("POST", "/clusters/{slug}/folders"),
    ("GET", "/files/{slug}/view"),
    ("GET", "/files/{slug}/view/content"),
    ("GET", "/files/{slug}/raw"),
    ("GET", "/clusters/{slug}/automation"),
    ("POST", "/clusters/{slug}/automation/install"),
    ("POST", "/clusters/{slug}/automation/test"),
    ("POST", "/clusters/{slug}/automation/disconnect"),
    ("GET", "/automation/portolan-commands"),
    ("GET", "/jobs"),
    ("GET", "/jobs/rows"),
    ("POST", "/jobs/columns"),
    ("POST", "/jobs/refresh"),
    ("POST", "/jobs/older"),
    ("POST", "/jobs/act"),
    ("GET", "/jobs/{slug}/{id}"),
    ("GET", "/jobs/{slug}/{id}/fragment"),
    ("GET", "/jobs/{slug}/{id}/script"),
    ("GET", "/jobs/{slug}/{id}/output"),
    ("GET", "/jobs/{slug}/{id}/output/more"),
    ("GET", "/jobs/{slug}/{id}/output/before"),
    ("GET", "/jobs/{slug}/{id}/output/download"),
    ("GET", "/jobs/{slug}/{id}/results"),
    ("GET", "/jobs/{slug}/{id}/results/archive"),
    ("GET", "/submissions/{id}"),
    ("GET", "/submissions/{id}/fragment"),
    ("POST", "/submissions/{id}/again"),
    ("POST", "/submissions/{id}/cancel"),
    ("GET", "/files"),
    ("GET", "/files/{slug}"),
    ("GET", "/files/{slug}/rows"),
    ("GET", "/files/{slug}/names"),
    ("POST", "/files/{slug}/favourites"),
    ("GET", "/files/{slug}/download"),
    ("GET", "/files/{slug}/archive"),
    ("POST", "/files/{slug}/archive"),
    ("POST", "/files/{slug}/new-folder"),
    ("POST", "/files/{slug}/new-file"),
    ("POST", "/files/{slug}/rename"),
    ("POST", "/files/{slug}/move"),
    ("POST", "/files/{slug}/permissions"),
    ("GET", "/files/{slug}/edit"),
    ("POST", "/files/{slug}/edit"),
    ("POST", "/files/{slug}/copy"),
    ("GET", "/files/{slug}/delete"),
    ("POST", "/files/{slug}/delete"),
    ("POST", "/files/{slug}/fetch"),
    ("GET", "/files/{slug}/transfers"),
    ("GET", "/files/{slug}/share"),
    ("POST", "/files/{slug}/share"),
    ("GET", "/file-links"),
    ("POST", "/file-links/{id}/revoke"),
    ("POST", "/files/{slug}/compress"),
    ("POST", "/files/{slug}/extract"),
    ("GET", "/terminals"),
    ("GET", "/terminals/{id}"),
    ("GET", "/terminals/{id}/socket"),
    ("POST", "/terminals/{id}/close"),
    ("POST", "/clusters/{slug}/terminal"),
    ("POST", "/jobs/{slug}/{id}/terminal"),
    ("GET", "/transfers"),
    ("GET", "/transfers/rows"),
    ("GET", "/transfers/nav"),
    ("POST", "/transfers/clear"),
    ("POST", "/transfers/{id}/pause"),
    ("POST", "/transfers/{id}/resume"),
    ("POST", "/transfers/{id}/cancel"),
    ("POST", "/transfers/{id}/dismiss"),
    ("GET", "/dashboards"),
    ("POST", "/dashboards"),
    ("GET", "/dashboards/new"),
    ("GET", "/dashboards/found"),
    ("POST", "/dashboards/guest-links/{share}/revoke"),
    ("GET", "/dashboards/{id}"),
    ("GET", "/dashboards/{id}/fragment"),
    ("GET", "/dashboards/{id}/open"),
    ("POST", "/dashboards/{id}/start"),
    ("POST", "/dashboards/{id}/wake"),
    ("POST", "/dashboards/{id}/extend"),
    ("POST", "/dashboards/{id}/stop"),
    ("POST", "/dashboards/{id}/remove"),
    ("POST", "/dashboards/{id}/settings"),
    ("POST", "/dashboards/{id}/guest-links"),
    ("POST", "/files/{slug}/upload-batch"),
    ("GET", "/files/{slug}/uploads"),
    ("POST", "/uploads"),
    ("POST", "/uploads/{id}"),
    ("POST", "/uploads/{id}/finish"),
    ("GET", "/groups"),
    // Whoever isn't a PI of the job's owner is told that there is no such job: usage_pages/jobs.rs.
    ("GET", "/groups/{id}/usage/jobs/{slug}/{job}"),
    ("GET", "/groups/{id}/usage/jobs/{slug}/{job}/accounting"),
    ("GET", "/events"),
    ("POST", "/join/{token}/as-me"),
];

/// What is for anyone.
const OPEN: &[&str] = &[
    "/sign-in",
    "/sign-in/code",
    "/sign-out",
    "/setup/{token}",
    "/join/{token}",
    "/reset/{token}",
    "/theme",
    "/healthz",
    "/assets/{file}",
    "/styleguide",
];

fn method(name: &str) -> reqwest::Method {
    name.parse().unwrap()
}

/// Sends a form as a page of the portal does, as text.
async fn ask(portal: &TestApp, who: &Client, verb: &str, path: &str, form: &str) -> u16 {
    let request = who.request(method(verb), path).header("origin", &portal.url);
    let kind = "application/x-www-form-urlencoded";
    let request = request.header("content-type", kind).body(form.to_owned());
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn rights_are_checked_on_every_route() {
    let World { portal, admin, lab, people, .. } = world().await;
    portal.invite(&admin, lab, "member").await;
    let max = portal.person_id("max").await;
    let link = open_invitations(&admin, lab).await[0];
    let (_, pi) = &people[0];
    let frozen = pi.post(&format!("/groups/{lab}/reports"), &[("month", "2026-10")]).await;
    let report = frozen.location().rsplit('/').next().unwrap().to_owned();
    let links = format!("/groups/{lab}/reports/{report}/guest-links");
    assert_eq!(pi.post(&links, &[("label", "x"), ("days", "7")]).await.status, 303);
    let fill = |path: &str| {
        let path = path.replace("{report}", &report).replace("{shared}", "1");
        let path = path.replace("{lab}", &lab.to_string()).replace("{max}", &max.to_string());
        path.replace("{link}", &link.to_string()).replace("{allocation}", "1")
    };
    let before = portal.snapshot().await;
    for (verb, path, form, allowed) in RIGHTS {
        let path = fill(path);
        for (name, client) in people.iter().filter(|(name, _)| !allowed.contains(name)) {
            assert_eq!(ask(&portal, client, verb, &path, form).await, 403, "{name}: {verb} {path}");
        }
        let visitor = portal.visitor();
        assert_eq!(ask(&portal, &visitor, verb, &path, form).await, 303, "nobody: {verb} {path}");
    }
    for (verb, path) in OWN {
        let path = path.replace("{id}", "1").replace("{token}", "x");
        // Streams and upload clients aren't led to a page that they would read as theirs.
        let is_page = path != "/events" && !path.starts_with("/uploads") && !path.ends_with("/socket");
        let expected = if is_page { 303 } else { 401 };
        assert_eq!(ask(&portal, &portal.visitor(), verb, &path, "").await, expected, "{verb} {path}");
    }
    assert_eq!(portal.snapshot().await, before, "a refused request changes nothing");
    for (verb, path, form, allowed) in RIGHTS {
        for (name, client) in people.iter().filter(|(name, _)| allowed.contains(name)) {
            let status = ask(&portal, client, verb, &fill(path), form).await;
            // They may, but there is no such account, allocation, cluster or user name.
            let names_nothing = ["/allocations", "/refresh", "/user-names"].iter().any(|part| path.contains(part));
            let may = [200, 303].contains(&status) || (names_nothing && [404, 422].contains(&status));
            assert!(may, "{name}: {verb} {path} gives {status}");
        }
    }
}

/// A new address must be put into one of the tables above.
#[test]
fn every_route_has_a_row_in_the_table_of_rights() {
    let same = |table: &str, path: &str| {
        let parts = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
        let (table, path) = (parts(table), parts(path));
        let fits = |(a, b): (&String, &String)| a == b || (a.starts_with('{') && b.starts_with('{'));
        table.len() == path.len() && table.iter().zip(&path).all(fits)
    };
    for route in crate::attacks::routes() {
        for verb in route.verbs {
            let known = RIGHTS.iter().any(|(v, path, ..)| *v == verb && same(path, &route.path))
                || OWN.iter().any(|(v, path)| *v == verb && same(path, &route.path))
                || OPEN.contains(&route.path.as_str());
            assert!(known, "{verb} {} is in no table of rights", route.path);
        }
    }
}

/// The numbers of the open invitations that a group's page shows.
async fn open_invitations(viewer: &Client, group: i64) -> Vec<i64> {
    let page = viewer.get(&format!("/groups/{group}/members")).await;
    let html = scraper::Html::parse_document(page.text());
    let forms = scraper::Selector::parse("form[action$='/revoke']").unwrap();
    let number = |action: &str| action.split('/').nth(4).unwrap().parse().unwrap();
    html.select(&forms).map(|form| number(form.attr("action").unwrap())).collect()
}

/// Numbers of other groups, people and invitations do not help anyone, administrators included.
#[tokio::test]
async fn ids_of_other_groups_find_nothing() {
    let World { portal, admin, lab, other, people } = world().await;
    let [(_, pi), _, (_, other_pi), _] = &people;
    portal.invite(&admin, lab, "member").await;
    let link = open_invitations(pi, lab).await[0];
    let (max, otto) = (portal.person_id("max").await, portal.person_id("otto").await);
    let before = portal.snapshot().await;
    let by_other = format!("/groups/{other}/invitations/{link}/revoke");
    assert_eq!(other_pi.post(&by_other, &[]).await.status, 404);
    for path in [
        by_other,
        format!("/groups/{lab}/invitations/999/revoke"),
        format!("/groups/{other}/people/{max}/role"),
        format!("/groups/{other}/people/{max}/remove"),
        format!("/groups/{lab}/people/{otto}/remove"),
        format!("/groups/{lab}/people/999/role"),
        format!("/groups/999/people/{max}/role"),
        "/groups/999/name".into(),
        "/groups/999/invitations".into(),
        "/groups/-1/name".into(),
        "/groups/1e3/name".into(),
        "/groups/9223372036854775808/name".into(),
        "/people/999/disable".into(),
        "/people/999/enable".into(),
        "/people/999/delete".into(),
        "/people/999/reset-link".into(),
        "/people/999/second-factor-off".into(),
        "/people/0/admin".into(),
    ] {
        let form = [("name", "x"), ("role", "pi"), ("days", "7"), ("admin", "true")];
        assert_eq!(admin.post(&path, &form).await.status, 404, "{path}");
    }
    for path in ["/groups/999", "/groups/x", "/people/999", "/people/%20", "/people/1/"] {
        assert_eq!(admin.get(path).await.status, 404, "{path}");
    }
    assert_eq!(portal.snapshot().await, before);
    assert_eq!(pi.get("/groups/999").await.status, 403, "the same as for a group that exists");
    assert_eq!(pi.get(&format!("/groups/{other}")).await.status, 403);
}

#[tokio::test]
async fn pages_offer_only_allowed_actions() {
    let World { portal: _portal, admin, lab, people, .. } = world().await;
    let [(_, pi), (_, member), _, (_, nobody)] = &people;
    let actions = async |viewer: &Client| {
        let page = viewer.get(&format!("/groups/{lab}/members")).await;
        let has = |part: &str| page.text().contains(part);
        (has("/invitations\""), has("value=\"pi\""), has("/role\""), has("/name\""))
    };
    assert_eq!(actions(&admin).await, (true, true, true, true));
    assert_eq!(actions(pi).await, (true, false, false, false));
    assert_eq!(actions(member).await, (false, false, false, false));
    assert_eq!(member.get("/groups").await.location(), format!("/groups/{lab}"), "the only one");
    let opened = pi.get(&format!("/groups/{lab}")).await;
    assert_eq!(opened.location(), format!("/groups/{lab}/usage"), "a PI comes for the usage");
    assert!(member.get(&format!("/groups/{lab}")).await.text().contains("Members of"));
    let links = admin.get("/groups").await.attributes("tbody .cell-actions a", "href");
    assert!(links.contains(&format!("/groups/{lab}/members#invite")), "{links:?}");
    assert!(admin.get(&format!("/groups/{lab}/members")).await.text().contains("id=\"invite\""));
    let page = nobody.get("/groups").await;
    assert!(page.text().contains("not in a group") && !page.text().contains(LAB));
}

#[tokio::test]
async fn a_name_belongs_to_one_group() {
    let World { portal, admin, lab, other, .. } = world().await;
    let long = "x".repeat(81);
    for (name, problem) in [
        (LAB, "A group with this name already exists."),
        ("  Smith Lab  ", "A group with this name already exists."),
        ("", "Enter a name."),
        ("  ", "Enter a name."),
        ("a\nb", "Remove line breaks and invisible control characters."),
        (&long, "Use at most 80 characters."),
    ] {
        for path in ["/groups".to_owned(), format!("/groups/{other}/name")] {
            let page = admin.post(&path, &[("name", name)]).await;
            assert_eq!(page.status, 422, "{path}: {name:.10}");
            assert!(page.select_text(".error-summary").contains(problem), "{path}: {problem}");
        }
    }
    let page = admin.post(&format!("/groups/{lab}/name"), &[("name", LAB)]).await;
    assert_eq!(page.status, 303, "its own name is free");
    let page = admin.post(&format!("/groups/{lab}/name"), &[("name", "Smith & Söhne")]).await;
    assert_eq!((page.status, page.location()), (303, format!("/groups/{lab}/members").as_str()));
    assert_eq!(admin.get(&format!("/groups/{lab}")).await.select_text("h1"), "Smith & Söhne");
    assert_ne!(portal.group(&admin, LAB).await, lab, "the old name can be given again");
    let entry = admin.get("/activity?action=group.renamed").await.select_text("tbody tr");
    assert!(entry.contains("previously Smith Lab"), "{entry}");
}

#[tokio::test]
async fn roles_change_at_once() {
    let World { portal, admin, lab, people, .. } = world().await;
    let [_, (_, member), ..] = &people;
    let max = portal.person_id("max").await;
    let role = format!("/groups/{lab}/people/{max}/role");
    for nonsense in ["", "admin", "PI", "pi "] {
        assert_eq!(admin.post(&role, &[("role", nonsense)]).await.status, 400, "{nonsense:?}");
    }
    let may_invite = async || {
        let form = [("role", "member"), ("days", "1")];
        member.post(&format!("/groups/{lab}/invitations"), &form).await.status
    };
    assert_eq!(may_invite().await, 403);
    assert_eq!(admin.post(&role, &[("role", "pi")]).await.status, 303);
    assert_eq!(may_invite().await, 303);
    assert_eq!(admin.post(&role, &[("role", "member")]).await.status, 303);
    assert_eq!(may_invite().await, 403);
    let entry = member.get("/account/activity").await.select_text("tbody tr");
    assert!(entry.contains("max is now a member"), "{entry}");
}

#[tokio::test]
async fn removed_member_keeps_the_account_but_loses_the_group() {
    let World { portal, admin, lab, people, .. } = world().await;
    let [(_, pi), (_, member), ..] = &people;
    let max = portal.person_id("max").await;
    let path = format!("/groups/{lab}/people/{max}/remove");
    assert_eq!(member.post(&path, &[]).await.status, 403);
    assert_eq!(pi.post(&path, &[]).await.status, 303, "a PI removes who has left");
    assert_eq!(member.get(&format!("/groups/{lab}")).await.status, 403);
    assert!(member.is_signed_in().await);
    assert_eq!(admin.post(&path, &[]).await.status, 404, "once is enough");
    assert!(!admin.get(&format!("/groups/{lab}")).await.text().contains("<p class=\"cell-sub\">max"));
}

/// Whoever may no longer invite leaves no open door behind.
#[tokio::test]
async fn invitations_of_a_former_pi_are_revoked() {
    let (portal, admin) = TestApp::with_admin().await;
    let lab = portal.group(&admin, "Smith Lab").await;
    portal.join(&portal.invite(&admin, lab, "pi").await, "pia").await;
    for ending in ["role", "remove"] {
        let name = format!("pi-{ending}");
        let pi = portal.join(&portal.invite(&admin, lab, "pi").await, &name).await;
        let link = portal.invite(&pi, lab, "member").await;
        let path = format!("/groups/{lab}/people/{}/{ending}", portal.person_id(&name).await);
        assert_eq!(admin.post(&path, &[("role", "member")]).await.status, 303);
        let page = portal.visitor().get(&link).await;
        assert_eq!(page.select_text("h1"), "This link was revoked", "{ending}");
    }
}

#[tokio::test]
async fn names_that_differ_in_case_only_are_the_same() {
    let (portal, admin) = TestApp::with_admin().await;
    portal.group(&admin, "Smith Lab").await;
    let page = admin.post("/groups", &[("name", "smith lab")]).await;
    assert_eq!(page.status, 422);
    assert!(page.text().contains("A group with this name already exists."));
}

/// A PI removes members of their own group, but neither other PIs nor members of other groups.
#[tokio::test]
async fn pis_remove_only_members_of_their_own_group() {
    let World { portal, admin, lab, people, .. } = world().await;
    let [(_, pi), _, (_, other_pi), _] = &people;
    let (pia, max) = (portal.person_id("pia").await, portal.person_id("max").await);
    let remove = |person: i64| format!("/groups/{lab}/people/{person}/remove");
    assert_eq!(other_pi.post(&remove(max), &[]).await.status, 403);
    assert_eq!(pi.post(&remove(pia), &[]).await.status, 403, "an administrator decides who is a PI");
    admin.post(&format!("/groups/{lab}/people/{max}/role"), &[("role", "pi")]).await;
    assert_eq!(pi.post(&remove(max), &[]).await.status, 403, "a PI by now");
    let page = pi.get(&format!("/groups/{lab}/members")).await;
    assert_eq!(page.attributes("form[action$='/remove']", "action"), Vec::<String>::new());
    admin.post(&format!("/groups/{lab}/people/{max}/role"), &[("role", "member")]).await;
    let page = pi.get(&format!("/groups/{lab}/members")).await;
    assert_eq!(page.attributes("form[action$='/remove']", "action"), [remove(max)]);
    assert!(page.select_text(".confirm-body").contains("will lose access to Smith Lab"));
    assert_eq!(pi.post(&remove(max), &[]).await.status, 303);
}

#[tokio::test]
async fn a_group_with_members_keeps_a_pi() {
    let World { portal, admin, lab, people, .. } = world().await;
    let [(_, pi), (_, member), ..] = &people;
    let (pia, max) = (portal.person_id("pia").await, portal.person_id("max").await);
    let nora = portal.person_id("nora").await;
    let page = admin.get(&format!("/groups/{lab}/members")).await;
    assert_eq!(page.select_all("select[name=successor] option"), ["Choose…", "max", "Choose…", "max"]);
    assert_eq!(page.attributes("select[name=successor] option[selected]", "value"), Vec::<String>::new());
    for (action, successor) in
        [("role", ""), ("remove", ""), ("role", "empty"), ("remove", "empty"), ("role", "none"), ("remove", "none")]
    {
        let before = portal.snapshot().await;
        let path = format!("/groups/{lab}/people/{pia}/{action}");
        let nora = nora.to_string();
        let mut form = vec![("role", "member")];
        match successor {
            "none" => form.push(("successor", &nora)),
            "empty" => form.push(("successor", "")),
            _ => {}
        }
        let refused = admin.post(&path, &form).await;
        let expected = if successor == "none" { 404 } else { 422 };
        assert_eq!(refused.status, expected, "{action} {successor}");
        if expected == 422 {
            let field = format!("f-{action}-{pia}-successor");
            assert!(refused.select_text(&format!("#{field}-error")).contains("Choose who becomes the new PI"));
            assert_eq!(refused.attributes(".error-summary a", "href"), [format!("#{field}")]);
            assert_eq!(refused.select_all("details.confirm[open]").len(), 1, "only the one that was sent");
        }
        assert_eq!(portal.snapshot().await, before, "{action} {successor}");
    }
    let max_text = max.to_string();
    let form = [("role", "member"), ("successor", max_text.as_str())];
    assert_eq!(admin.post(&format!("/groups/{lab}/people/{pia}/role"), &form).await.status, 303);
    assert_eq!(pi.get(&format!("/groups/{lab}/accounts")).await.status, 403);
    assert_eq!(member.get(&format!("/groups/{lab}/accounts")).await.status, 200);

    // A PI who cannot sign in does not count.
    admin.post(&format!("/groups/{lab}/people/{pia}/role"), &[("role", "pi")]).await;
    admin.post(&format!("/people/{pia}/disable"), &[]).await;
    let refused = admin.post(&format!("/groups/{lab}/people/{max}/remove"), &[]).await;
    assert_eq!(refused.select_text("h1"), "A group with members needs a PI");
    // Disabling works at once, because it may be urgent; the page says what is missing then.
    assert!(admin.get(&format!("/people/{max}")).await.text().contains("the only PI of"));
    assert_eq!(admin.post(&format!("/people/{max}/disable"), &[]).await.status, 303);
    let page = admin.get(&format!("/groups/{lab}/members")).await;
    let alert = page.select_text(".alert.is-warning");
    assert!(alert.contains("This group has no PI") && alert.contains("Change a member to PI below"), "{alert}");
    let usage = admin.get(&format!("/groups/{lab}/usage")).await;
    assert_eq!(usage.status, 403);
    assert!(usage.select_text("main").contains("Ask a PI of the group if you need them"), "{}", usage.text());
}
