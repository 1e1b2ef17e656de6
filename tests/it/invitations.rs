//! Invitations: links that work once, for a while, into one group and as one role.

use crate::support::app::new_person;
use crate::support::{Client, TestApp};

const DAY: i64 = 86_400;

async fn lab() -> (TestApp, Client, i64) {
    let (portal, admin) = TestApp::with_admin().await;
    let lab = portal.group(&admin, "Smith Lab").await;
    (portal, admin, lab)
}

/// The group's people as the page lists them: name and role.
async fn members(viewer: &Client, group: i64) -> Vec<String> {
    let page = viewer.get(&format!("/groups/{group}/members")).await;
    let names = page.select_all("[aria-labelledby=people-title] tbody .cell-sub");
    let roles = page.select_all("[aria-labelledby=people-title] td[data-label=Role]");
    names.iter().zip(&roles).map(|(name, role)| format!("{name}: {role}")).collect()
}

/// The states of the group's invitations, newest first.
async fn states(viewer: &Client, group: i64) -> Vec<String> {
    viewer.get(&format!("/groups/{group}/members")).await.select_all("td[data-label=Status]")
}

/// Takes the newest open invitation back.
async fn revoke_newest(viewer: &Client, group: i64) -> u16 {
    let page = viewer.get(&format!("/groups/{group}/members")).await;
    viewer.post(&page.attribute("form[action$='/revoke']", "action"), &[]).await.status
}

#[tokio::test]
async fn an_invitation_makes_an_account_in_the_group_and_works_once() {
    let (portal, admin, lab) = lab().await;
    let link = portal.invite(&admin, lab, "member").await;
    let page = portal.visitor().get(&link).await;
    assert_eq!(page.select_text("h1"), "Join Smith Lab");
    assert!(page.text().contains("ada invited you"));

    let bob = portal.join(&link, "bob").await;
    let home = bob.get("/").await;
    assert!(home.text().contains("Smith Lab") && home.text().contains("Welcome aboard."));
    assert_eq!(members(&admin, lab).await, ["bob: Member"]);
    assert_eq!(states(&admin, lab).await, ["Used by bob"]);
    let late = portal.visitor();
    for page in [late.get(&link).await, late.post(&link, &new_person("eve")).await] {
        assert_eq!(page.status, 410);
        assert_eq!(page.select_text("h1"), "This link was already used");
    }
    assert!(portal.app.auth.find_person(&"eve".parse().unwrap()).await.is_err());
    assert_eq!(bob.get("/people").await.status, 403, "no more rights than invited to");
}

#[tokio::test]
async fn two_people_using_one_link_at_once_make_one_account() {
    let (portal, admin, lab) = lab().await;
    let link = portal.invite(&admin, lab, "member").await;
    let (one, two) = (portal.visitor(), portal.visitor());
    let (form_a, form_b) = (new_person("bob"), new_person("eve"));
    let (a, b) = tokio::join!(one.post(&link, &form_a), two.post(&link, &form_b));
    let mut statuses = [a.status, b.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 410]);
    assert_eq!(members(&admin, lab).await.len(), 1);
    assert_eq!(admin.get("/people").await.select_all("tbody tr").len(), 2, "no half account");
}

#[tokio::test]
async fn old_withdrawn_and_forged_invitations_do_not_work() {
    let (portal, admin, lab) = lab().await;
    let old = portal.invite(&admin, lab, "member").await;
    let withdrawn = portal.invite(&admin, lab, "member").await;
    assert_eq!(revoke_newest(&admin, lab).await, 303);
    portal.clock.advance(7 * DAY - 1);
    let admin = portal.visitor();
    admin.sign_in("ada", crate::support::PASSWORD).await;
    assert_eq!(portal.visitor().get(&old).await.status, 200, "a second is left");
    portal.clock.advance(1);
    let long = format!("/join/{}", "x".repeat(10_000));
    let cut = &old[..old.len() - 1];
    let before = portal.snapshot().await;
    for (link, title) in [
        (old.as_str(), "This link has expired"),
        (&withdrawn, "This link was revoked"),
        (cut, "Invalid link"),
        ("/join/made-up", "Invalid link"),
        ("/join/%00%0A", "Invalid link"),
        ("/join/'%20OR%201=1", "Invalid link"),
        (&long, "Invalid link"),
    ] {
        let visitor = portal.visitor();
        for page in [
            visitor.get(link).await,
            visitor.post(link, &new_person("eve")).await,
            admin.post(&format!("{link}/as-me"), &[]).await,
        ] {
            assert_eq!((page.status, page.select_text("h1").as_str()), (410, title), "{link:.20}");
        }
    }
    assert_eq!(portal.snapshot().await, before);
    assert_eq!(states(&admin, lab).await, ["Revoked", "Expired"]);
}

#[tokio::test]
async fn guessing_links_is_limited() {
    let (portal, _admin, _lab) = lab().await;
    let visitor = portal.visitor();
    for number in 0..30 {
        assert_eq!(visitor.get(&format!("/join/guess-{number}")).await.status, 410);
    }
    let page = visitor.get("/join/guess").await;
    assert_eq!((page.status, page.header("retry-after")), (429, "10"));
    portal.clock.advance(10);
    assert_eq!(visitor.get("/join/guess").await.status, 410);
}

#[tokio::test]
async fn a_pi_invites_members_and_sees_only_their_own_group() {
    let (portal, admin, lab) = lab().await;
    let other = portal.group(&admin, "Jones Lab").await;
    let pi = portal.join(&portal.invite(&admin, lab, "pi").await, "pia").await;
    assert_eq!(members(&admin, lab).await, ["pia: PI"]);
    let bob = portal.join(&portal.invite(&pi, lab, "member").await, "bob").await;
    assert_eq!(members(&pi, lab).await, ["pia: PI", "bob: Member"]);

    let invite = async |who: &Client, group: i64, role: &str| {
        let form = [("role", role), ("days", "7")];
        who.post(&format!("/groups/{group}/invitations"), &form).await.status
    };
    let before = portal.snapshot().await;
    assert_eq!(invite(&pi, lab, "pi").await, 403, "who leads is decided by administrators");
    assert_eq!(invite(&pi, other, "member").await, 403);
    assert_eq!(invite(&bob, lab, "member").await, 403);
    assert_eq!(invite(&pi, lab, "admin").await, 400);
    assert_eq!(portal.snapshot().await, before);
    assert!(states(&bob, lab).await.is_empty(), "members see no invitations");
    portal.invite(&admin, lab, "pi").await;
    assert_eq!(revoke_newest(&pi, lab).await, 303, "a PI may take back what was made for the group");
    portal.invite(&pi, lab, "member").await;
    let page = pi.get(&format!("/groups/{lab}/members")).await;
    assert_eq!(page.select_text("#invitations-title"), "Invitations (1 open)");
    assert_eq!(page.select_all("#closed-invitations td[data-label=Status]").len(), 3, "two used and one revoked");
    assert!(!page.select_text("#closed-invitations").contains("Open"));
}

#[tokio::test]
async fn someone_with_an_account_joins_another_group_with_it() {
    let (portal, admin, lab) = lab().await;
    let other = portal.group(&admin, "Jones Lab").await;
    let bob = portal.join(&portal.invite(&admin, lab, "member").await, "bob").await;
    let link = portal.invite(&admin, other, "pi").await;
    assert_eq!(bob.get(&link).await.select_text("h1"), "Join Jones Lab");
    let page = portal.visitor().post(&format!("{link}/as-me"), &[]).await;
    assert_eq!((page.status, page.location()), (303, "/sign-in"), "as whom?");
    assert_eq!(bob.post(&format!("{link}/as-me"), &[]).await.status, 303);
    assert_eq!(members(&bob, other).await, ["bob: PI"]);
    assert_eq!(members(&bob, lab).await, ["bob: Member"], "the first group stays");
    assert_eq!(bob.post(&format!("{link}/as-me"), &[]).await.status, 410);
}

/// A member's own second invitation is for somebody else, and must not change their role.
#[tokio::test]
async fn a_member_does_not_use_up_another_invitation() {
    let (portal, admin, lab) = lab().await;
    let pi = portal.join(&portal.invite(&admin, lab, "pi").await, "pia").await;
    let link = portal.invite(&pi, lab, "member").await;
    let page = pi.get(&link).await;
    assert_eq!(page.select_text("h1"), "You're already a member of Smith Lab");
    assert!(page.select_all("form[action$='/as-me']").is_empty());
    pi.post(&format!("{link}/as-me"), &[]).await;
    assert_eq!(members(&pi, lab).await, ["pia: PI"]);
    portal.join(&link, "bob").await;
}

#[tokio::test]
async fn invitation_and_joining_are_recorded_for_both_people() {
    let (portal, admin, lab) = lab().await;
    let bob = portal.join(&portal.invite(&admin, lab, "member").await, "bob").await;
    portal.invite(&admin, lab, "pi").await;
    revoke_newest(&admin, lab).await;
    let rows = async |who: &Client, path: &str| who.get(path).await.select_all("tbody tr").join("|");
    for (word, detail) in [
        ("invitation.made", "someone (Member)"),
        ("invitation.made", "someone (PI)"),
        ("invitation.revoked", "someone (PI)"),
        ("invitation.used", "Member"),
    ] {
        let text = rows(&admin, &format!("/activity?action={word}")).await;
        assert!(text.contains(detail) && text.contains("Smith Lab"), "{word}: {text}");
        assert!(!text.contains("/join/"), "links are not in the log");
    }
    let text = rows(&bob, "/account/activity").await;
    assert!(text.contains("Joined a group"), "{text}");
}

#[tokio::test]
async fn invalid_days_and_notes_are_refused() {
    let (portal, admin, lab) = lab().await;
    let path = format!("/groups/{lab}/invitations");
    let long = "x".repeat(10_000);
    let before = portal.snapshot().await;
    for (label, days, problem) in [
        ("bob", "0", "Enter a number of days from 1 to 30."),
        ("bob", "31", "Enter a number of days from 1 to 30."),
        ("bob", "-1", "Enter a number of days from 1 to 30."),
        ("bob", "", "Enter a number of days from 1 to 30."),
        ("bob", "7.5", "Enter a number of days from 1 to 30."),
        ("bob", "99999999999999999999", "Enter a number of days from 1 to 30."),
        (&long, "7", "Use at most 80 characters."),
        ("a\u{0}b", "7", "invisible control characters"),
        ("a\nb", "7", "invisible control characters"),
        ("a\u{202E}b", "7", "invisible control characters"),
    ] {
        let form = [("label", label), ("role", "member"), ("days", days)];
        let page = admin.post(&path, &form).await;
        assert_eq!(page.status, 422, "{label:.10} {days}");
        assert!(page.select_text(".error-summary").contains(problem), "{problem}");
        assert!(page.text().len() < 40_000, "what was typed is not repeated without end");
    }
    assert_eq!(portal.snapshot().await, before);
    for (label, days) in [("", "1"), ("<b>Bob & Söhne</b>", "30"), ("a|b", " 7 ")] {
        let form = [("label", label), ("role", "member"), ("days", days)];
        assert_eq!(admin.post(&path, &form).await.status, 303, "{label}");
    }
    let labels = admin.get(&format!("/groups/{lab}/members")).await;
    let labels = labels.select_all("[aria-labelledby=invitations-title] .cell-title");
    assert_eq!(labels, ["a|b", "<b>Bob & Söhne</b>", "(no note)"]);
}

#[tokio::test]
async fn a_taken_name_leaves_the_link_usable() {
    let (portal, admin, lab) = lab().await;
    let link = portal.invite(&admin, lab, "member").await;
    let before = portal.snapshot().await;
    for name in ["ada", " ADA"] {
        let page = portal.visitor().post(&link, &new_person(name)).await;
        assert_eq!(page.status, 422);
        let words = page.select_text(".error-summary");
        assert!(words.contains("This user name is taken."), "{words}");
    }
    assert_eq!(portal.snapshot().await, before);
    portal.join(&link, "bob").await;
}

/// Reloading the page that shows a new link neither shows it again nor makes another.
#[tokio::test]
async fn a_new_link_is_shown_once() {
    let (portal, admin, lab) = lab().await;
    portal.invite(&admin, lab, "member").await;
    let again = admin.get(&format!("/groups/{lab}/members")).await;
    assert!(again.select_all(".alert code").is_empty());
    assert_eq!(states(&admin, lab).await.len(), 1, "one invitation");
}

/// The cookie that carries a new link opens only for its owner.
#[tokio::test]
async fn a_new_link_is_shown_to_nobody_else() {
    let (portal, admin, lab) = lab().await;
    let pi = portal.join(&portal.invite(&admin, lab, "pi").await, "pia").await;
    let form = [("label", "Bob"), ("role", "member"), ("days", "7")];
    let answer = admin.post(&format!("/groups/{lab}/invitations"), &form).await;
    let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
    assert!(cookie.starts_with("portolan_once="), "{cookie}");
    pi.set_cookie(&cookie);
    assert!(pi.get(&format!("/groups/{lab}/members")).await.select_all(".alert code").is_empty());
}
