//! Links for guests: made, shown once, kept as hashes only, taken back by those who may.

use super::{EVIL, Run};
use crate::support::secret_scan::{Needle, in_files};
use crate::support::{Client, Page, TestApp};

const PASSPHRASE: &str = "gulls above the fish market";

struct World {
    portal: TestApp,
    admin: Client,
    max: Client,
    board: i64,
}

async fn world() -> World {
    let (portal, admin, max) = TestApp::with_member("max").await;
    portal.give_cluster_account(&max, "max").await;
    let board = portal.put_board("max", EVIL, &["/scratch/max/runs"]).await;
    portal.put_run(board, Run { state: "over", end: "time", ..Run::default() }).await;
    World { portal, admin, max, board }
}

impl World {
    async fn share(&self, label: &str, passphrase: &str) -> Page {
        let form = [("label", label), ("days", "7"), ("passphrase", passphrase)];
        self.max.post_and_follow(&format!("/dashboards/{}/guest-links", self.board), &form).await
    }
}

#[tokio::test]
async fn link_is_shown_once_and_stored_only_as_a_hash() {
    let world = world().await;
    let World { portal, max, board, .. } = &world;
    let page = world.share(EVIL, PASSPHRASE).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let link = page.select_text("main > .alert code");
    let token = link.strip_prefix(&format!("{}/s/", portal.dashboards_url)).expect("on its own origin");
    assert!(token.len() >= 22, "128 bits at least: {token}");
    assert_eq!(page.attribute("main > .alert [data-copy]", "data-copy"), link);
    assert!(page.select_all("#evil").is_empty());
    assert_eq!(page.attribute("main > .alert .qr rect", "fill"), "#ffffff", "a QR code is on white in every theme");
    let told = page.select_all("main > .alert").join("\n");
    assert!(told.contains("The dashboard isn't running. Guests see a page that says so"), "{told}");
    assert_eq!(page.select_all("#guests-see").len(), 1, "that is said once");
    let path = format!("/dashboards/{board}");
    for path in [path.as_str(), "/dashboards", "/account/activity"] {
        assert!(!max.get(path).await.text().contains(token), "{path}");
    }
    let page = max.get(&path).await;
    assert!(page.select_text("#guests-see").contains("isn't running") && page.select_all(".qr").is_empty());
    let fragment = max.get(&format!("{path}/fragment")).await;
    assert!(
        fragment.select_text("#guests-see[hx-swap-oob]").contains("isn't running"),
        "it changes with the dashboard"
    );
    let row = page.select_text("[aria-labelledby=links-title] .row");
    assert!(row.contains(EVIL) && row.contains("never opened"), "{row}");
    assert!(row.contains("with a passphrase") && row.contains("23 Nov 2026"), "{row}");
    let needles = [
        Needle::new("the link", token),
        Needle::new("the passphrase", PASSPHRASE),
        Needle::new("the label, to see that the search finds anything", EVIL),
    ];
    let found = in_files(&portal.app.config.data_dir, &needles);
    assert!(found.iter().all(|one| one.starts_with("the label")), "{found:#?}");
    assert!(!found.is_empty());

    portal.clock.advance(8 * 86_400);
    assert_eq!(max.sign_in("max", crate::support::PASSWORD).await.status, 303);
    let page = max.get(&path).await;
    assert!(page.text().contains("None. Nobody outside"), "{}", page.text());
    assert!(page.select_text("#ended-links").contains("expired"));
}

#[tokio::test]
async fn a_link_needs_a_label_a_time_and_no_short_passphrase() {
    let world = world().await;
    let World { portal, max, board, .. } = &world;
    let path = format!("/dashboards/{board}/guest-links");
    for (field, value, problem) in [
        ("label", "", "Add a note"),
        ("label", "a\u{202e}", "invisible"),
        ("days", "0", "Enter a number of days from 1 to 90."),
        ("days", "91", "Enter a number of days from 1 to 90."),
        ("days", "-1", "Enter a number of days from 1 to 90."),
        ("days", "week", "Enter a number of days from 1 to 90."),
        ("passphrase", "short", "at least 8 characters"),
    ] {
        let mut form = vec![("label", EVIL), ("days", "30"), ("passphrase", PASSPHRASE)];
        form.retain(|(known, _)| *known != field);
        form.push((field, value));
        let page = max.post(&path, &form).await;
        assert_eq!(page.status, 422, "{field}={value}");
        assert!(page.select_text(".error-summary").contains(problem), "{field}={value}");
        assert!(!page.text().contains(PASSPHRASE), "a passphrase is not shown again");
        if field != "label" {
            assert_eq!(page.attribute("#f-label", "value"), EVIL);
        }
        assert!(page.select_all("#evil").is_empty());
    }
    assert_eq!(max.post(&path, &[("label", "x")]).await.status, 400);
    assert!(portal.dashboards_as_stored().await.ends_with("[]"));
}

/// Owners, those who lead their group and administrators take links back; for others there is none.
#[tokio::test]
async fn owners_pis_and_administrators_can_revoke_links() {
    let world = world().await;
    let World { portal, admin, max, .. } = &world;
    let lab = portal.group(admin, "Smith Lab").await;
    let other = portal.group(admin, "Jones Lab").await;
    let pia = portal.join(&portal.invite(admin, lab, "pi").await, "pia").await;
    let otto = portal.join(&portal.invite(admin, other, "pi").await, "otto").await;
    let mia = portal.member(admin, "mia").await;
    for label in ["one", "two", "three", "four"] {
        world.share(label, "").await;
    }
    assert!(max.get("/dashboards").await.select_all("a[href='/dashboards/guest-links']").is_empty());
    assert_eq!(max.get("/dashboards/guest-links").await.status, 403);
    assert_eq!(mia.get("/dashboards/guest-links").await.status, 403);
    let none = otto.get("/dashboards/guest-links").await;
    assert!(none.status == 200 && none.text().contains("No active guest links"));
    assert_eq!(pia.get("/dashboards").await.select_all("a[href='/dashboards/guest-links']").len(), 1);
    for (who, name) in [(&pia, "pia"), (admin, "ada")] {
        let page = who.get("/dashboards/guest-links").await;
        assert_eq!(page.select_all("tbody tr").len(), 4, "{name}");
        assert!(page.select_text("tbody").contains(EVIL) && page.select_all("#evil").is_empty());
        assert_eq!(who.get("/dashboards/1").await.status, 404, "{name} sees links, not results");
    }
    let before = portal.dashboards_as_stored().await;
    for (who, name) in [(&otto, "otto"), (&mia, "mia")] {
        for id in ["1", "999", "x", "-1"] {
            let path = format!("/dashboards/guest-links/{id}/revoke");
            assert_eq!(who.post(&path, &[]).await.status, 404, "{name}: {id}");
        }
    }
    assert_eq!(portal.dashboards_as_stored().await, before);
    for (who, id, to) in [
        (max, 1, "/dashboards/1"),
        (&pia, 2, "/dashboards/guest-links"),
        (admin, 3, "/dashboards/guest-links"),
        (max, 3, "/dashboards/1"),
    ] {
        let page = who.post(&format!("/dashboards/guest-links/{id}/revoke"), &[]).await;
        assert_eq!((page.status, page.location()), (303, to), "{id}");
    }
    let page = max.get("/dashboards/1").await;
    assert!(page.text().contains("Guest link revoked"));
    assert_eq!(page.select_all("[aria-labelledby=links-title] .row").len(), 1, "one is left");
    assert_eq!(page.select_all("#ended-links .row").len(), 3);
    assert_eq!(pia.get("/dashboards/guest-links").await.select_all("tbody tr").len(), 1);
    let log = admin.get("/activity").await;
    assert!(log.text().contains("pia") && log.text().contains("two"), "it is recorded");
}
