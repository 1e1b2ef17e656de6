//! People, as administrators see them: switching accounts off and on, rights, and never losing the last one.

use portolan::domain::{GroupId, GroupRole, PersonId};
use portolan::store;
use portolan::store::guest_links::{self, GuestLinkTarget, NewGuestLink};

use crate::support::{PASSWORD, TestApp};

#[tokio::test]
async fn everyone_is_listed_with_groups_and_state() {
    let (portal, admin, _bob) = TestApp::with_member("bob").await;
    let page = admin.get("/people").await;
    let rows = page.select_all("tbody tr");
    assert_eq!(rows.len(), 2);
    assert!(rows[0].contains("ada") && rows[0].contains("Administrator"), "{}", rows[0]);
    assert!(rows[1].contains("bob") && rows[1].contains("Smith Lab"), "{}", rows[1]);
    let bob = portal.person_id("bob").await;
    let page = admin.get(&format!("/people/{bob}")).await;
    assert_eq!(page.select_text("h1"), "bob");
    assert_eq!(page.select_all(".dl dd")[..3], ["bob", "No", "Off"]);
}

#[tokio::test]
async fn accounts_are_switched_off_and_on() {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    let path = format!("/people/{}", portal.person_id("bob").await);
    let state = async || admin.get(&path).await.select_text(".card-head .badge");
    assert_eq!(state().await, "Active");
    let page = admin.post(&format!("{path}/disable"), &[]).await;
    assert_eq!((page.status, page.location()), (303, path.as_str()));
    assert_eq!(state().await, "Disabled");
    assert!(!bob.is_signed_in().await);
    assert_eq!(admin.post(&format!("{path}/enable"), &[]).await.status, 303);
    assert_eq!(state().await, "Active");
    assert_eq!(bob.sign_in("bob", PASSWORD).await.status, 303);

    let words = bob.get("/account/activity").await.select_all("tbody .cell-title");
    for expected in ["Disabled a portal account", "Enabled a portal account"] {
        assert!(words.contains(&expected.to_owned()), "{words:?}");
    }
}

/// What a disabled person left behind does not let anyone in.
#[tokio::test]
async fn disabling_an_account_ends_its_invitations_and_reset_links() {
    let (portal, admin) = TestApp::with_admin().await;
    let lab = portal.group(&admin, "Smith Lab").await;
    let pi = portal.join(&portal.invite(&admin, lab, "pi").await, "pia").await;
    let invitation = portal.invite(&pi, lab, "member").await;
    let path = format!("/people/{}", portal.person_id("pia").await);
    let text = admin.post_and_follow(&format!("{path}/reset-link"), &[]).await.select_text(".alert code");
    let reset = text.strip_prefix(&portal.url).unwrap();
    admin.post(&format!("{path}/disable"), &[]).await;
    admin.post(&format!("{path}/enable"), &[]).await;
    for link in [invitation.as_str(), reset] {
        let page = portal.visitor().get(link).await;
        assert_eq!(page.select_text("h1"), "This link was revoked", "{link:.9}");
    }
}

/// Helping someone with their password must not break what they made.
#[tokio::test]
async fn making_a_reset_link_keeps_invitations() {
    let (portal, admin) = TestApp::with_admin().await;
    let lab = portal.group(&admin, "Smith Lab").await;
    let pi = portal.join(&portal.invite(&admin, lab, "pi").await, "pia").await;
    let invitation = portal.invite(&pi, lab, "member").await;
    let path = format!("/people/{}/reset-link", portal.person_id("pia").await);
    assert_eq!(admin.post(&path, &[]).await.status, 303);
    assert_eq!(portal.visitor().get(&invitation).await.status, 200);
}

#[tokio::test]
async fn the_last_administrator_stays() {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    let (ada, bob_id) = (portal.person_id("ada").await, portal.person_id("bob").await);
    let refuse = async |path: String| {
        let before = portal.snapshot().await;
        let page = admin.post(&path, &[("admin", "false")]).await;
        assert_eq!(page.status, 409, "{path}");
        assert_eq!(page.select_text("h1"), "The portal needs at least one administrator");
        assert_eq!(portal.snapshot().await, before);
    };
    refuse(format!("/people/{ada}/disable")).await;
    refuse(format!("/people/{ada}/admin")).await;
    // The page says so before anything is pressed.
    let page = admin.get(&format!("/people/{ada}")).await;
    for title in ["admin-title", "disable-title", "delete-title"] {
        let section = page.select_text(&format!("section[aria-labelledby={title}]"));
        assert!(section.contains("You're the only administrator who can sign in"), "{section}");
    }
    assert_eq!(page.select_all(".confirm"), Vec::<String>::new());
    let refused = ["/admin", "/disable", "/delete"].map(|end| format!("/people/{ada}{end}"));
    let links = [page.attributes("main form", "action"), page.attributes("main a", "href")].concat();
    assert!(!links.iter().any(|link| refused.contains(link)), "{links:?}");

    // A second one who cannot sign in does not count.
    admin.post(&format!("/people/{bob_id}/admin"), &[("admin", "true")]).await;
    assert_eq!(bob.get("/people").await.status, 200);
    let page = admin.get(&format!("/people/{ada}")).await;
    assert!(!page.text().contains("last administrator"), "another one can sign in");
    admin.post(&format!("/people/{bob_id}/disable"), &[]).await;
    refuse(format!("/people/{ada}/disable")).await;
    refuse(format!("/people/{ada}/admin")).await;
}

/// Two administrators who take each other's rights at the same moment: one of them is late.
#[tokio::test]
async fn two_administrators_cannot_remove_each_other() {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    let (ada, bob_id) = (portal.person_id("ada").await, portal.person_id("bob").await);
    admin.post(&format!("/people/{bob_id}/admin"), &[("admin", "true")]).await;
    let (paths, none) = ([bob_id, ada].map(|id| format!("/people/{id}/disable")), []);
    let (a, b) = tokio::join!(admin.post(&paths[0], &none), bob.post(&paths[1], &none));
    let left = [admin.is_signed_in().await, bob.is_signed_in().await];
    assert_ne!(left[0], left[1], "exactly one is left: {} {}", a.status, b.status);
}

#[tokio::test]
async fn administrators_can_give_their_own_rights_away() {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    let (ada, bob_id) = (portal.person_id("ada").await, portal.person_id("bob").await);
    assert_eq!(bob.get("/people").await.status, 403);
    let page = admin.post(&format!("/people/{bob_id}/admin"), &[("admin", "true")]).await;
    assert_eq!(page.location(), format!("/people/{bob_id}"));
    assert_eq!(bob.get("/people").await.status, 200, "at once, without signing in again");
    for nonsense in ["", "maybe", "1"] {
        let form = [("admin", nonsense)];
        assert_eq!(admin.post(&format!("/people/{ada}/admin"), &form).await.status, 400);
    }
    let page = admin.post(&format!("/people/{ada}/admin"), &[("admin", "false")]).await;
    assert_eq!((page.status, page.location()), (303, "/"), "to a page that is still theirs");
    assert_eq!(admin.get("/people").await.status, 403, "and gone at once");
    assert!(admin.is_signed_in().await);
    let words = admin.get("/account/activity").await.select_all("tbody .cell-title");
    assert_eq!(words[0], "Removed someone's administrator rights");
}

#[tokio::test]
async fn people_change_their_display_name_but_not_their_user_name() {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    let form = [("display_name", "Bob “the” O'Brien"), ("name", "ada"), ("is_admin", "true")];
    assert_eq!(bob.post("/account/name", &form).await.location(), "/account");
    assert_eq!(bob.get("/").await.select_text("h1"), "Hello Bob");
    let rows = admin.get("/people").await.select_all("tbody tr");
    assert!(rows[1].contains("Bob “the” O'Brien") && rows[1].contains("bob"), "{}", rows[1]);
    assert_eq!(bob.get("/people").await.status, 403, "fields that no form has do nothing");
    assert_eq!(portal.visitor().sign_in("bob", PASSWORD).await.status, 303);
}

/// What someone made as an administrator must not bring the rights back after they were ended.
#[tokio::test]
async fn links_of_a_former_administrator_end() {
    let (portal, ada, bob) = TestApp::with_member("bob").await;
    let (ada_id, bob_id) = (portal.person_id("ada").await, portal.person_id("bob").await);
    ada.post(&format!("/people/{bob_id}/admin"), &[("admin", "true")]).await;
    let page = bob.post_and_follow(&format!("/people/{ada_id}/reset-link"), &[]).await;
    let reset = page.select_text(".alert code").replace(&portal.url, "");
    let invitation = portal.invite(&bob, 1, "pi").await;
    assert_eq!(portal.visitor().get(&reset).await.status, 200);
    ada.post(&format!("/people/{bob_id}/admin"), &[("admin", "false")]).await;
    for link in [reset, invitation] {
        assert_eq!(portal.visitor().get(&link).await.status, 410, "{link:.8}");
    }
}

#[tokio::test]
async fn a_new_password_ends_open_reset_links() {
    let (portal, ada, bob) = TestApp::with_member("bob").await;
    let path = format!("/people/{}/reset-link", portal.person_id("bob").await);
    let reset = ada.post_and_follow(&path, &[]).await.select_text(".alert code").replace(&portal.url, "");
    let form = [
        ("current", crate::support::PASSWORD),
        ("password", "another calm morning"),
        ("again", "another calm morning"),
    ];
    assert_eq!(bob.post("/account/password", &form).await.status, 303);
    assert_eq!(portal.visitor().get(&reset).await.status, 410);
}

#[tokio::test]
async fn role_and_account_changes_ask_first() {
    let (portal, admin, _bob) = TestApp::with_member("bob").await;
    let bob = portal.person_id("bob").await;
    let page = admin.get(&format!("/people/{bob}")).await;
    let questions = page.select_all(".confirm");
    assert_eq!(questions.len(), 2, "{questions:?}");
    assert!(questions[0].contains("bob will be able to disable and delete accounts"), "{questions:?}");
    assert!(questions[1].contains("closes their cluster connections"), "{questions:?}");
    let page = admin.get("/groups/1/members").await;
    let questions = page.select_all(".confirm");
    assert!(questions[0].contains("bob will see each member's usage by name"), "{questions:?}");
    assert!(questions[1].contains("bob will lose access to Smith Lab"), "{questions:?}");
    // To oneself it is told as such.
    let ada = portal.person_id("ada").await;
    let mut tx = portal.app.store.write().await.unwrap();
    let now = portal.clock.now();
    store::groups::set_member(&mut tx, GroupId(1), PersonId(ada), GroupRole::Pi, now).await.unwrap();
    store::commit(tx).await.unwrap();
    let page = admin.get("/groups/1/members").await;
    let questions = page.select_all(".confirm").join(" ");
    for words in ["You'll no longer see each member's usage", "You're the only PI", "You'll lose access to Smith Lab"] {
        assert!(questions.contains(words), "{words}: {questions}");
    }
    // Every button that changes something is inside its question.
    let asked = page.select_all("tbody .confirm form").len();
    assert_eq!(page.select_all("tbody form").len(), asked);
}

#[tokio::test]
async fn deleting_an_account_says_what_goes_and_keeps_the_log() {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    let id = portal.person_id("bob").await;
    bob.make_key().await;
    let path = format!("/people/{id}/delete");
    assert!(admin.get(&format!("/people/{id}")).await.attributes("a.btn", "href").contains(&path));
    let page = admin.get(&path).await;
    let deleted = page.select_text("section[aria-labelledby=deleted-title]");
    assert!(deleted.contains("SSH keys on this portal: 1."));
    for absent in [" 0", "Guest links", "Dashboards", "Recipes", "Job history", "connections for"] {
        assert!(!deleted.contains(absent), "{absent}: {deleted}");
    }
    // Of links, those count that still lead somewhere.
    let mut tx = portal.app.store.write().await.unwrap();
    let now = portal.clock.now();
    let (group, person) = (GroupId(1), PersonId(id));
    for (number, state) in ["open", "open", "deleted", "revoked", "expired"].into_iter().enumerate() {
        let report = store::reports::add(&mut tx, group, person, "A month", "{}", now).await.unwrap();
        let token_hash = [u8::try_from(number).unwrap(); 32];
        let expires_at = now.plus(if state == "expired" { -60 } else { 86_400 });
        let target = GuestLinkTarget::Report(group, report);
        let new = NewGuestLink { target, created_by: person, token_hash, label: "", passphrase: "", expires_at };
        guest_links::add(&mut tx, &new, now).await.unwrap();
        if state == "revoked" {
            sqlx::query("UPDATE guest_links SET revoked_at = 1 WHERE report_id = $1")
                .bind(report.0)
                .execute(&mut *tx)
                .await
                .unwrap();
        }
        if state == "deleted" {
            sqlx::query("UPDATE reports SET removed_at = 1 WHERE id = $1")
                .bind(report.0)
                .execute(&mut *tx)
                .await
                .unwrap();
        }
    }
    store::commit(tx).await.unwrap();
    let page = admin.get(&path).await;
    assert!(page.select_text("section[aria-labelledby=deleted-title]").contains("Guest links: 2."));
    assert!(page.select_text("section[aria-labelledby=kept-title]").contains("The activity log"));
    assert_eq!(page.attribute("main form", "action"), path);
    let done = admin.post(&path, &[]).await;
    assert_eq!((done.status, done.location()), (303, "/people"));
    assert!(!bob.is_signed_in().await);
    assert_eq!(admin.get(&format!("/people/{id}")).await.status, 404);
    assert_eq!(admin.post(&path, &[]).await.status, 404, "once is enough");
    let answer = portal.visitor().sign_in("bob", PASSWORD).await;
    assert!(answer.select_text(".error-summary").contains("Wrong user name or password."));
    let words = admin.get("/activity?text=bob").await.select_all("tbody .cell-title");
    for expected in ["Deleted a portal account", "Created an SSH key"] {
        assert!(words.contains(&expected.to_owned()), "{words:?}");
    }
    let mut db = portal.app.store.read().await.unwrap();
    let sql = "SELECT (SELECT count(*) FROM people WHERE id = $1) + (SELECT count(*) FROM ssh_keys WHERE person_id = $1)
        + (SELECT count(*) FROM keychains WHERE person_id = $1) + (SELECT count(*) FROM memberships WHERE person_id = $1)
        + (SELECT count(*) FROM sessions WHERE person_id = $1)";
    let left: i64 = sqlx::query_scalar(sql).bind(id).fetch_one(&mut *db).await.unwrap();
    assert_eq!(left, 0);
    drop(db);
    portal.member(&admin, "bob").await;
    assert_ne!(portal.person_id("bob").await, id, "the name can be used again, by another account");
}

#[tokio::test]
async fn the_last_administrator_and_the_last_pi_are_not_deleted() {
    let (portal, admin) = TestApp::with_admin().await;
    let lab = portal.group(&admin, "Smith Lab").await;
    portal.join(&portal.invite(&admin, lab, "pi").await, "pia").await;
    portal.join(&portal.invite(&admin, lab, "member").await, "max").await;
    let (pia, max) = (portal.person_id("pia").await, portal.person_id("max").await);
    for (name, title) in
        [("ada", "The portal needs at least one administrator"), ("pia", "A group with members needs a PI")]
    {
        let path = format!("/people/{}/delete", portal.person_id(name).await);
        let page = admin.get(&path).await;
        assert!(page.select_text(".alert").contains(title), "{name}");
        assert_eq!(page.select_all("main form").len(), 0, "{name}: nothing to press");
        let before = portal.snapshot().await;
        let refused = admin.post(&path, &[]).await;
        assert_eq!((refused.status, refused.select_text("h1").as_str()), (409, title));
        assert_eq!(portal.snapshot().await, before);
    }
    admin.post(&format!("/groups/{lab}/people/{max}/role"), &[("role", "pi")]).await;
    assert_eq!(admin.post(&format!("/people/{pia}/delete"), &[]).await.status, 303);
    // The last one of a group may go: nobody is left who would need a PI.
    assert_eq!(admin.post(&format!("/people/{max}/delete"), &[]).await.status, 303);
}

#[tokio::test]
async fn administrators_can_delete_their_own_account() {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    let (ada, bob_id) = (portal.person_id("ada").await, portal.person_id("bob").await);
    admin.post(&format!("/people/{bob_id}/admin"), &[("admin", "true")]).await;
    let done = admin.post(&format!("/people/{ada}/delete"), &[]).await;
    assert_eq!((done.status, done.location()), (303, "/sign-in"));
    assert!(!admin.is_signed_in().await);
    assert_eq!(bob.get("/people").await.select_all("tbody tr").len(), 1);
}
